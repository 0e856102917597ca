"""The end of the demo: a table, the failures, and whether all of it is as a plain loop says."""

from collections.abc import Iterator
from pathlib import Path

from tenure.cli.demo.expected import Expected
from tenure.cli.demo.parsing import Counts
from tenure.cli.demo.play import Outcome
from tenure.cli.output import inert, table


def summary(outcome: Outcome, expected: Expected) -> str:
    """Return the table of what happened."""
    after = outcome.redelivered_after
    wait = "" if after is None else f"the first after {after:.1f} s: its lease, then the jobs in line before it"
    rows: list[tuple[str, object, str]] = [
        ("pushed", outcome.pushed, ""),
        ("done", len(outcome.results), ""),
        ("redelivered after the kill", outcome.redelivered, wait),
        ("attempts", outcome.attempts, ""),
        ("failed", len(outcome.failed), "files that do not parse"),
        ("jobs per second", round(outcome.pushed / outcome.seconds), f"{outcome.seconds:.1f} s, the kill included"),
        ("plain loop, files per second", round(outcome.pushed / expected.seconds), f"{expected.seconds:.1f} s"),
    ]
    return table(("", "jobs", ""), rows)


def failures(outcome: Outcome, root: Path) -> str:
    """Return the failed jobs with their errors, as the failed store has them."""
    rows = [
        (_short(path, root), record.attempts, record.failure.type, _first_line(record.failure.message))
        for path, record in sorted(outcome.failed.items())
    ]
    return table(("failed file", "attempts", "error", ""), rows)


def totals(outcome: Outcome, expected: Expected) -> str:
    """Return the totals of the jobs beside those of the plain loop."""
    jobs = sum(outcome.results.values(), Counts())
    fields = Counts.__struct_fields__
    return table(
        ("totals", *fields),
        [
            ("jobs", *(getattr(jobs, field) for field in fields)),
            ("plain loop", *(getattr(expected.total, field) for field in fields)),
        ],
    )


def differences(outcome: Outcome, expected: Expected) -> Iterator[str]:
    """Give what is not as the plain loop says; nothing, if all is well."""
    for path in sorted(expected.counts.keys() | outcome.results.keys()):
        if expected.counts.get(path) != outcome.results.get(path):
            yield f"{inert(path)}: the jobs counted {outcome.results.get(path)}, the loop {expected.counts.get(path)}"
    for path in sorted(expected.errors.keys() | outcome.failed.keys()):
        record = outcome.failed.get(path)
        found = record.failure.type if record else None
        if expected.errors.get(path) != found:
            yield f"{inert(path)}: the job failed with {found}, the loop with {expected.errors.get(path)}"
    if not outcome.redelivered:
        yield "no job was delivered again after the kill"


def _short(path: str, root: Path) -> str:
    file = Path(path)
    return str(file.relative_to(root)) if file.is_relative_to(root) else file.name


def _first_line(text: str) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= 90 else f"{line[:87]}..."
