"""What differs between operating systems, in one place: signals, memory, and how a child process is started.

Linux is where the tests run. The branches for others follow their documentation and were not run.
"""

import os
import signal
import sys
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


def child_options(inherited: int) -> dict[str, Any]:
    """Return how ``Popen`` starts a child that inherits this file descriptor and no other.

    It leads a session of its own: Ctrl-C at the terminal reaches the supervisor alone, which passes it on once.
    """
    return {"pass_fds": (inherited,), "start_new_session": True}


def exit_text(code: int) -> str:
    """Return what a child's exit code says: the signal that ended it, by name, or the code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
