"""The command line inside the tests' own process, as isolated as a process of its own would be."""

import contextlib
import importlib
import logging
import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence

from click.testing import CliRunner

from tenure.cli.errors import run
from tenure.cli.main import cli

Done = subprocess.CompletedProcess[str]


def run_here(arguments: Sequence[str], directory: pathlib.Path, env: Mapping[str, str]) -> Done:
    """Run a command to its end, and return what a process would have returned."""
    with CliRunner().isolation() as (out, err, _), _isolated(directory, env):
        code = run(lambda: cli.main(list(arguments), prog_name="tenure", standalone_mode=False))
        sys.stdout.flush()
        sys.stderr.flush()
        said, complained = out.getvalue(), err.getvalue()
    return Done(list(arguments), int(code), said.decode(), complained.decode())


@contextlib.contextmanager
def _isolated(directory: pathlib.Path, env: Mapping[str, str]) -> Iterator[None]:
    """Take back what a command leaves behind in its process."""
    before = pathlib.Path.cwd(), dict(os.environ), sys.path.copy(), set(sys.modules), sys.dont_write_bytecode
    root = logging.getLogger()
    handlers, level = root.handlers.copy(), root.level
    # Only the main thread may handle signals, and a command in another one does not.
    in_main = threading.current_thread() is threading.main_thread()
    terminates = signal.getsignal(signal.SIGTERM)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(env)
    # A module that a test writes anew within the same second would be taken from its bytecode.
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        path, environ, sys.path[:], modules, sys.dont_write_bytecode = before
        os.chdir(path)
        os.environ.clear()
        os.environ.update(environ)
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(directory)):
                del sys.modules[name]
        root.handlers[:] = handlers
        root.setLevel(level)
        if in_main:
            signal.signal(signal.SIGTERM, terminates)
