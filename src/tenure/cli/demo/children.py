"""Child processes that never outlive their parent, whatever ends it, and the directory that they share."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

# It leads the group that all children are in. Its standard input is a pipe that only the parent holds: the pipe ends
# with the parent, even when that is killed, and then so do the children, and the directory goes. Signalling its own
# group (0) cannot meet a process that got a reused id.
_WATCHDOG: Final = 'trap "" TERM INT HUP; read -r _; kill -TERM 0; sleep 2; rm -rf "$1"; kill -KILL 0'
ENDING: Final = 10.0
"""Seconds that children have to end in order."""


class Children:
    """A group of child processes and their directory; both are gone at the end of the ``with`` block."""

    def __init__(self, ending: float = ENDING) -> None:
        self._ending = ending
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.directory: Path = Path(tempfile.mkdtemp(prefix="tenure-demo-"))
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, "sh", str(self.directory)],
            stdin=subprocess.PIPE,
            # A group of its own: Ctrl-C at the terminal is for the parent alone.
            process_group=0,
        )
        return self

    @property
    def group(self) -> int:
        """The process group of the children."""
        return self._watchdog.pid

    def start(self, command: Sequence[str], *, log: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a child whose output goes to the end of the log."""
        with log.open("ab") as out:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, process_group=self.group
            )
        self._children.append(child)
        return child

    def end(self) -> None:
        """End all children: by SIGTERM, and those that take too long by SIGKILL."""
        for child in self._children:
            if child.poll() is None:
                child.terminate()
        deadline = time.monotonic() + self._ending
        for child in self._children:
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def __exit__(self, *_: object) -> None:
        try:
            self.end()
        finally:
            # What is left in the group, a child's child at most, goes with its leader.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGKILL)
            self._watchdog.wait()
            if self._watchdog.stdin is not None:
                self._watchdog.stdin.close()
            shutil.rmtree(self.directory)
