"""What a check finds."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

Decision = Literal["valid", "invalid", "unknown"]

INVARIANTS: Mapping[str, str] = {
    "I1": "no acknowledged push is lost",
    "I2": "nothing is invented, nothing doubled",
    "I3": "one live lease a job, and its fence rises",
    "I4": "no stale lease acts, and answers are true",
    "I5": "attempts are counted at each grant, and bounded",
    "I6": "only legal transitions, and what is over stays over",
    "I7": "counts and indexes agree with what is there",
    "I8": "no job of a composition before its time, and each once",
    "I9": "never early, never above a limit",
    "I10": "it comes back",
}


class Violation(msgspec.Struct, frozen=True):
    """A promise that was broken."""

    invariant: str
    text: str
    queue: str = ""
    id: str = ""


class Losses(msgspec.Struct, frozen=True):
    """The acknowledged pushes of one writer that are gone, by where they stand among all of its own."""

    writer: str
    prefix: tuple[str, ...] = ()
    """The first ones: a store that began again empty."""
    middle: tuple[str, ...] = ()
    """Some between others: a defect."""
    suffix: tuple[str, ...] = ()
    """The last ones: an end that was not on the disk yet."""


class Verdict(msgspec.Struct, frozen=True):
    """``valid`` only if nothing was found and enough was looked at; ``unknown`` is no pass."""

    decision: Decision
    violations: Sequence[Violation] = ()
    doubts: Sequence[str] = ()
    """Why nothing can be said."""
    losses: Sequence[Losses] = ()
    figures: Mapping[str, int] = {}
    timelines: Sequence[str] = ()
    """What happened to the first offending jobs."""

    def __str__(self) -> str:
        lines = [f"{self.decision}: {', '.join(f'{count} {name}' for name, count in self.figures.items())}"]
        lines += [f"unknown: {doubt}" for doubt in self.doubts]
        lines += [
            f"{one.invariant} ({INVARIANTS[one.invariant]}): {one.text}"
            + (f" [{one.queue}/{one.id}]" if one.id else "")
            for one in self.violations[:20]
        ]
        if len(self.violations) > 20:
            lines.append(f"… and {len(self.violations) - 20} more")
        for lost in self.losses:
            lines.append(
                f"lost of {lost.writer}: {len(lost.prefix)} of its first, {len(lost.middle)} in between, "
                f"{len(lost.suffix)} of its last"
            )
        return "\n".join([*lines, *self.timelines])
