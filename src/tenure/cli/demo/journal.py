"""What the demo's jobs report: one line each in one file, which many processes append to and one reads.

An entry is a single write at the end of the file, so entries of two processes never mix. Results are read by job id:
a job that is delivered twice counts once.
"""

import contextlib
import os
from pathlib import Path
from typing import Literal

import msgspec

from tenure.cli.demo.parsing import Counts


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened to one job."""

    kind: Literal["started", "counted", "failed"]
    id: str
    pid: int
    crashes: int = 0
    """How often a worker died with the job."""
    counts: Counts | None = None


class Journal:
    """The writing end; any number of them may share the file."""

    def __init__(self, path: str | Path) -> None:
        self._path = path

    def write(self, entry: Entry) -> None:
        """Append the entry."""
        # Opened for each entry: it costs 10 µs, and nothing has to be kept and closed by a worker that may be killed.
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, msgspec.json.encode(entry) + b"\n")
        finally:
            os.close(descriptor)


class Progress:
    """The reading end: what is known so far."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._offset = 0
        self._rest = b""
        self._decoder = msgspec.json.Decoder(Entry)
        self.results: dict[str, Counts] = {}
        self.failing: set[str] = set()
        """Jobs whose last attempt raised."""
        self.attempts: int = 0
        self.redelivered: set[str] = set()
        """Jobs that ran again after a worker died with them."""
        self._running: dict[int, set[str]] = {}

    def refresh(self) -> None:
        """Read what was written since the last time."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            # A worker that is killed within its write may leave half an entry, and the next stands on the same line.
            with contextlib.suppress(msgspec.DecodeError):
                self._take(self._decoder.decode(line))

    def _take(self, entry: Entry) -> None:
        running = self._running.setdefault(entry.pid, set())
        if entry.kind == "started":
            running.add(entry.id)
            self.attempts += 1
            if entry.crashes:
                self.redelivered.add(entry.id)
            return
        running.discard(entry.id)
        if entry.counts is not None:
            self.results[entry.id] = entry.counts
            self.failing.discard(entry.id)
        else:
            self.failing.add(entry.id)

    @property
    def seen(self) -> int:
        """Jobs that were run to an end at least once."""
        return len(self.results) + len(self.failing)

    def running(self, pid: int) -> frozenset[str]:
        """Return the jobs that this process has started and not ended."""
        return frozenset(self._running.get(pid, ()))
