"""Event loops, and running one through what handlers leave behind."""

import asyncio
import importlib
import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

logger: logging.Logger = logging.getLogger("tenure.worker")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes event loops: uvloop's where it is installed."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def run_through(loop: asyncio.AbstractEventLoop, main: "asyncio.Future[T]") -> T:
    """Run the loop until a task or future has ended, and return its result.

    ``SystemExit`` in an attempt is its failure. In a task or callback that a handler left behind, asyncio lets it out
    of the loop, and one job would end all others with it.
    """
    while True:
        try:
            return loop.run_until_complete(main)
        except (SystemExit, KeyboardInterrupt) as error:
            if main.done():
                raise
            logger.warning("%s was raised outside of any attempt, by what a handler left behind", type(error).__name__)
