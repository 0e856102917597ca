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

    wanted: dict[str, Callable[[int, FrameType | None], None]] = {
        "SIGTERM": in_the_loop(actions.stop),
        "SIGINT": in_the_loop(actions.stop),
        "SIGTSTP": in_the_loop(actions.quiet),
        "SIGTTIN": dump,
    }
    before: dict[int, Any] = {}
    try:
        for name, handler in wanted.items():
            number = getattr(signal, name, None)  # the last two do not exist everywhere
            if number is not None:
                before[number] = signal.signal(number, handler)
        yield
    finally:
        for number, handler in before.items():
            # None: it was not set from Python, and cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
