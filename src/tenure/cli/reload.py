"""``tenure worker --reload``: a parent that runs the worker as a child, and a new one whenever a source file changes.

The parent imports nothing of the application, so code that cannot be imported ends the child alone: it shows its
traceback, and the parent waits for the next change.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import FrameType
from typing import Final

from tenure.cli.errors import ExitCode
from tenure.cli.target import Target
from tenure.errors import MissingExtra
from tenure.worker.supervisor.run import MARGIN

LOOK_EVERY: Final = 200
"""Milliseconds between two looks at the child."""
DRAIN: Final = 5.0
"""Seconds that running jobs have on a change, and once more when they were given back."""
SUPERVISED: Final = MARGIN + 2.0
"""Seconds instead of the second time for a supervisor: it has killed what does not end by then, which dies with nobody
else."""
FLAG: Final = "--reload"
NAMED: Final = 3


class Reloader:
    """Runs a command, and runs it anew when a Python file below one of the roots changes."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        roots: Sequence[Path],
        say: Callable[[str], None],
        *,
        last: float = DRAIN,
    ) -> None:
        """``last``: seconds that the command has to end in when it was told a second time, before it is killed."""
        self._command = command
        self._environ = environ
        self._roots = roots
        self._say = say
        self._last = last
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()

    def run(self) -> int:
        """Return when the command has ended with 0, or a signal has ended it, with its exit code."""
        with self._handled():
            started = False
            for changed in self._changes():
                if changed or not started:
                    started = True
                    self._start(changed)
                elif self._child is not None and (code := self._child.poll()) is not None:
                    if code == ExitCode.DONE:
                        break
                    self._child = None
                    self._say(f"the worker ended with {_shell_code(code)}, and starts again when a file changes")
            return ExitCode.DONE if self._child is None else _shell_code(self._child.wait())

    def _changes(self) -> Iterator[Sequence[str]]:
        """Yield the names of files that changed, or none, until a signal comes; the watching has begun by then."""
        from watchfiles import PythonFilter, watch  # noqa: PLC0415 - an extra

        for changes in watch(
            *self._roots,
            watch_filter=PythonFilter(),
            stop_event=self._stopping,
            rust_timeout=LOOK_EVERY,
            yield_on_timeout=True,
            raise_interrupt=False,
        ):
            yield sorted({Path(path).name for _, path in changes})

    def _start(self, changed: Sequence[str]) -> None:
        if changed:
            others = " and others" if len(changed) > NAMED else ""
            self._say(f"{', '.join(changed[:NAMED])}{others} changed: the worker starts anew")
        self._end()
        self._child = subprocess.Popen(self._command, env=self._environ)

    def _end(self) -> None:
        """End the child in order, as far as the drain time reaches; what it held is given back then."""
        if self._child is None:
            return
        for seconds in (DRAIN, self._last):
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(seconds)
            except subprocess.TimeoutExpired:
                continue
            return
        self._child.kill()
        self._child.wait()

    @contextmanager
    def _handled(self) -> Iterator[None]:
        def handler(number: int, _: FrameType | None) -> None:
            self._stopping.set()
            # Ctrl-C on a terminal has reached the child already, and a second one would be an order of its own.
            if self._child is not None and (number == signal.SIGTERM or not sys.stdin.isatty()):
                self._child.send_signal(number)

        before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, earlier in before.items():
                signal.signal(number, earlier)


def run_reloading(target: Target, say: Callable[[str], None], *, supervised: bool) -> int:
    """Run this process's command without the flag, again and again; raises ``MissingExtra``."""
    if importlib.util.find_spec("watchfiles") is None:
        raise MissingExtra("reload", FLAG)
    arguments = [argument for argument in sys.argv[1:] if argument != FLAG]
    environ = {
        **os.environ,
        "TENURE_RELOAD": "0",
        # Bytecode is matched by whole seconds and sizes: a quick second change could run as the first one.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "tenure", *arguments]
    return Reloader(command, environ, sources(target), say, last=SUPERVISED if supervised else DRAIN).run()


def sources(target: Target) -> list[Path]:
    """Return the directory that imports start from, and that of the application when it is elsewhere on the path."""
    spec = PathFinder.find_spec(target.module.partition(".")[0], [str(target.root), *sys.path])
    if spec is None:
        return [target.root]
    places = spec.submodule_search_locations or ([str(Path(spec.origin).parent)] if spec.origin else [])
    installed = Path(sysconfig.get_path("purelib"))
    away = [
        place
        for place in map(Path, places)
        if not place.is_relative_to(target.root) and not place.is_relative_to(installed)
    ]
    return [target.root, *away]


def _shell_code(code: int) -> int:
    """Return an exit code as shells show it: 128 and the signal's number for a process that a signal has ended."""
    return 128 - code if code < 0 else code
