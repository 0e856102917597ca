"""What a job costs nothing to report: one append of 24 bytes, about 2 µs, safe across threads and processes.

The standard library is all it needs: the scripts of other libraries use it in environments of their own.
"""

import os
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PATH_KEY: Final = "BENCH_RECORD"
_ROW: Final = struct.Struct("<ddQ")


class Recorder:
    """The writing end, in a worker."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, sent: float) -> None:
        """Record that a job, sent at this time, starts now."""
        os.write(self._descriptor, _ROW.pack(sent, time.time(), os.getpid()))

    def began(self, number: int) -> None:
        """Record that the job of this number starts now."""
        self.write(number + 1.0)

    def ended(self, number: int) -> None:
        """Record that the job of this number has done its work."""
        self.write(-number - 1.0)


class Records:
    """The reading end, in the benchmark."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    @property
    def count(self) -> int:
        """How many jobs have run."""
        return self.path.stat().st_size // _ROW.size

    def rows(self) -> Sequence[tuple[float, float]]:
        """Return when each job was sent and when it ran, in the order they ran."""
        data = self.path.read_bytes()
        return [(sent, ran) for sent, ran, _ in _ROW.iter_unpack(data[: len(data) // _ROW.size * _ROW.size])]

    def starts(self) -> Sequence[tuple[int, float]]:
        """Return the numbers of the jobs that began, and when, in that order."""
        return [(int(sent) - 1, ran) for sent, ran in self.rows() if sent > 0]

    def ends(self) -> Sequence[tuple[int, float]]:
        """Return the numbers of the jobs that did their work, and when, in that order."""
        return [(-int(sent) - 1, ran) for sent, ran in self.rows() if sent < 0]
