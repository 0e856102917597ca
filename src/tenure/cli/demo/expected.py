"""What the jobs must come to: a plain loop over the same files, in this process."""

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tenure.cli.demo.parsing import Counts, count


class Expected(msgspec.Struct, frozen=True):
    """The loop's results by path."""

    counts: dict[str, Counts]
    errors: dict[str, str]
    """Which error each file that did not parse raised."""
    seconds: float

    @property
    def total(self) -> Counts:
        """All files together."""
        return sum(self.counts.values(), Counts())

    def with_(self, more: "Expected") -> "Expected":
        """Return these results and others."""
        return Expected(self.counts | more.counts, self.errors | more.errors, self.seconds + more.seconds)


def plain_loop(files: Sequence[Path], advance: Callable[[int], None]) -> Expected:
    """Parse all files one after the other."""
    counts: dict[str, Counts] = {}
    errors: dict[str, str] = {}
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old code has odd escapes, and Python says so
        for number, path in enumerate(map(str, files), 1):
            try:
                counts[path] = count(path)
            except Exception as error:  # noqa: BLE001 - whatever the parser raises is a result here
                errors[path] = type(error).__name__
            advance(number)
    return Expected(counts, errors, time.perf_counter() - begin)
