"""What signals mean to a worker.

SIGTERM and SIGINT: finish what runs within the drain time, give the rest back, stop; the second one gives back at
once. SIGTSTP: quiet, claim no more. SIGTTIN: the stacks of everything that runs go to the log.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import msgspec

from tenure.worker import platform


class SignalActions(msgspec.Struct, frozen=True, kw_only=True):
    """What to do. All but ``dump`` are called in the event loop."""

    stop: Callable[[], None]
    quiet: Callable[[], None]
    dump: Callable[[], None]
    """Called in a thread of its own: it is wanted most when the event loop is blocked."""


@contextmanager
def handled(loop: asyncio.AbstractEventLoop, actions: SignalActions) -> Iterator[None]:
    """Handle the signals within the block, and restore what handled them before. In the main thread only.

    Python's own handlers are used and not the loop's: they also run while a handler blocks the loop.
    """

    def in_the_loop(action: Callable[[], None]) -> Callable[[int, FrameType | None], None]:
        def handler(_: int, __: FrameType | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(action)

        return handler

    def dump(_: int, __: FrameType | None) -> None:
        # Not here: a signal may arrive in the middle of writing a log line.
        threading.Thread(target=actions.dump, name="tenure-stacks", daemon=True).start()

    wanted: dict[signal.Signals | None, Callable[[int, FrameType | None], None]] = {
        **dict.fromkeys(platform.STOP, in_the_loop(actions.stop)),
        platform.QUIET: in_the_loop(actions.quiet),
        platform.DUMP: dump,
    }
    before: dict[int, Any] = {}
    try:
        for one, handler in wanted.items():
            if one is not None:
                before[one] = signal.signal(one, handler)
        yield
    finally:
        for number, handler in before.items():
            # None: it was not set from Python, and cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
