"""Calls between the blocking world and the asynchronous one.

``portal()`` is the one background event loop of the process: every ``_sync`` twin runs the same coroutine as its
asynchronous original there, and waits for it. Its thread starts at first use; a forked child starts its own; at the
exit of the process it closes what was opened on it.
"""

import asyncio
import atexit
import functools
import logging
import os
import selectors
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tenure.errors import WrongContext

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

T = TypeVar("T")

logger: Final = logging.getLogger("tenure.portal")

EXIT_SECONDS: Final = 5.0
"""How long the exit of the process waits for the loop to close what is open on it."""


def loop_is_running() -> bool:
    """Tell whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def require_loop(method: str) -> None:
    """Raise ``WrongContext`` when no event loop runs: nothing would ever await the coroutine."""
    if not loop_is_running():
        raise WrongContext(
            f"{method}() was called where no event loop runs, so nothing would await it; "
            f"call {method}_sync() in blocking code; nothing was sent"
        )


def refuse_loop(method: str) -> None:
    """Raise ``WrongContext`` when an event loop runs: a blocking call would stop all that runs on it."""
    if loop_is_running():
        raise WrongContext(
            f"{method}_sync() was called inside a running event loop and would block it; "
            f"use 'await {method}()' there; nothing was sent"
        )


def blocking(method: str, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run what ``make`` returns on the background loop and return its result; raises ``WrongContext`` inside a loop."""
    refuse_loop(method)
    return portal().run(make)


class ForkSafeSelector(selectors.BaseSelector):
    """A selector that a forked child can let go of.

    Parent and child share one epoll object: when the child's garbage collector closes an inherited connection, its
    loop would take that connection out of the parent's epoll, and the parent would wait for replies for ever.
    """

    def __init__(self) -> None:
        self._inner: selectors.BaseSelector = selectors.DefaultSelector()

    def let_go(self) -> None:
        """Know nothing any more of what was registered, and leave it as it is in the parent."""
        self._inner.close()
        self._inner = selectors.DefaultSelector()

    def register(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a file."""
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        """Watch a file no more."""
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a file for something else."""
        return self._inner.modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready."""
        return self._inner.select(timeout)

    def get_key(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        """Return what is known of a file."""
        return self._inner.get_key(fileobj)

    def get_map(self) -> Mapping["FileDescriptorLike", selectors.SelectorKey]:
        """Return all that is watched."""
        return self._inner.get_map()

    def close(self) -> None:
        """Close it."""
        self._inner.close()


class Portal:
    """An event loop in a thread of its own. Safe from many threads, and after ``fork``."""

    def __init__(self) -> None:
        self._closers: list[weakref.WeakMethod[Callable[[], Coroutine[Any, Any, None]]]] = []
        self._inherited: list[asyncio.AbstractEventLoop | None] = []
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._selector = ForkSafeSelector()
        self._thread: threading.Thread | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.close)

    def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine that ``make`` returns, in the caller's context, and return its result.

        An interrupted caller (Ctrl-C) cancels it.
        """
        future = self.start(make)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, make: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Start the coroutine that ``make`` returns, in the caller's context, and return its future."""
        return asyncio.run_coroutine_threadsafe(make(), self._started())

    def at_close(self, closer: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a bound method on the loop before it closes, unless its object is gone by then."""
        self._closers = [known for known in self._closers if known() is not None]
        self._closers.append(weakref.WeakMethod(closer))

    def close(self) -> None:
        """End the loop and its thread; idempotent. A later call starts another."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._finish(), loop).result(EXIT_SECONDS)
        except TimeoutError:
            logger.warning("what is open on the background loop did not close in %g s", EXIT_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(EXIT_SECONDS)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._selector = ForkSafeSelector()
                loop = self._loop = asyncio.SelectorEventLoop(self._selector)
                self._thread = threading.Thread(target=_serve, args=(loop,), name="tenure-portal", daemon=True)
                self._thread.start()
            return self._loop

    async def _finish(self) -> None:
        for closer in [found for known in self._closers if (found := known()) is not None]:
            try:
                await closer()
            except Exception as error:  # noqa: BLE001 - contained: the others must close too
                logger.warning("closing at exit failed: %s", type(error).__name__)

    def _forget(self) -> None:
        # In a forked child: the thread does not exist here, and the lock may have been held by another one. The loop is
        # kept, so that it is not collected while it seems to run, and never used again.
        self._selector.let_go()
        self._inherited.append(self._loop)
        self._lock = threading.Lock()
        self._loop = self._thread = None


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@functools.cache
def portal() -> Portal:
    """Return the process's portal."""
    return Portal()
