"""What differs between operating systems, in one place: signals, memory, how a child process is started, and its end.

Linux is where the tests run. The branches for others follow their documentation and were not run.
"""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

STOP: Final = (signal.SIGTERM, signal.SIGINT)
"""What asks a worker to stop."""
QUIET: Final[signal.Signals | None] = getattr(signal, "SIGTSTP", None)
"""What asks it to claim no more; None where there is no such signal (Windows)."""
DUMP: Final[signal.Signals | None] = getattr(signal, "SIGTTIN", None)
"""What asks it for its stacks; None where there is no such signal (Windows)."""

SUPERVISES: Final = os.name == "posix"
"""Whether children can be supervised: they inherit a socket by its number, and live in sessions of their own."""

POLL: Final = 0.05
"""Seconds between looks at a child process, where the system cannot tell of its end."""
_PR_SET_PDEATHSIG: Final = 1
_STATM: Final = Path("/proc/self/statm")


def resident_memory() -> int | None:
    """Return the bytes of memory that this process has in use now; None where nobody tells.

    Without ``/proc`` (macOS, BSD) it is the most that was ever in use: what counts for a limit all the same.
    """
    try:
        return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return _most_memory()


def _most_memory() -> int | None:
    try:
        import resource  # noqa: PLC0415 - it does not exist on Windows
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def child_options(inherited: Sequence[int]) -> dict[str, Any]:
    """Return how ``Popen`` starts a child that inherits these file descriptors and no others.

    It leads a session of its own: Ctrl-C at the terminal reaches the supervisor alone, which passes it on once.
    """
    return {"pass_fds": tuple(inherited), "start_new_session": True}


def exit_text(code: int) -> str:
    """Return what a child's exit code says: the signal that ended it, by name, or the code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def end_with_parent(parent: int) -> None:
    """Have the system kill this process when the parent ends, whatever ends it. Linux; elsewhere it does nothing.

    Linux means the thread that started this process: it must live as long as the parent does.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before it could be asked for
            os._exit(0)


def watch_exit(popen: subprocess.Popen[bytes], ended: Callable[[], None]) -> None:
    """Call ``ended`` in the running loop once the process has ended; where the system can tell, before it is reaped."""
    loop = asyncio.get_running_loop()
    try:
        watched = os.pidfd_open(popen.pid)
    except (AttributeError, OSError):
        _poll(loop, popen, ended)
        return

    def readable() -> None:
        loop.remove_reader(watched)
        os.close(watched)
        ended()

    loop.add_reader(watched, readable)


def _poll(loop: asyncio.AbstractEventLoop, popen: subprocess.Popen[bytes], ended: Callable[[], None]) -> None:
    if popen.poll() is None:
        loop.call_later(POLL, _poll, loop, popen, ended)
    else:
        ended()
