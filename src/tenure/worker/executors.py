"""Where plain functions run: threads of the worker's own, as many as there are slots.

They are daemons, and a thread that never returns takes nothing with it: it is simply never idle again, and the next
job gets a new one. (``concurrent.futures`` would wait for it when the process ends.)
"""

import asyncio
import contextvars
import inspect
import queue
import threading
from collections.abc import Callable
from typing import Any


class Threads:
    """Threads that are made when needed and reused while idle."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._idle = 0
        self._made = 0
        self._closed = False

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run the function in a thread, in a copy of this context; return what it returns, raise what it raises.

        A thread cannot be interrupted: a cancelled caller waits on until it ends.
        """
        call = _Call(asyncio.get_running_loop(), function, contextvars.copy_context())
        self._submit(call.run)
        return await call.outcome()

    def close(self) -> None:
        """Let idle threads end, and busy ones when they are done."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._work.put(None)

    def _submit(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
                thread = None
            else:
                self._made += 1
                thread = threading.Thread(target=self._serve, name=f"tenure-job-{self._made}", daemon=True)
        if thread is not None:
            thread.start()
        self._work.put(work)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # an idle thread keeps no arguments alive
            with self._lock:
                if self._closed or self._idle >= self._size:
                    return
                self._idle += 1


class _Call:
    """One function in one thread, and the coroutine that waits for it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, function: Callable[[], Any], context: contextvars.Context
    ) -> None:
        self._loop = loop
        self._function = function
        self._context = context
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._value: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run in the thread; raises nothing."""
        value, error = None, None
        try:
            value = self._context.run(called, self._function)
        except BaseException as raised:  # noqa: BLE001 - SystemExit included: it must not end the thread unheard
            error = raised
        try:
            self._loop.call_soon_threadsafe(self._end, value, error)
        except RuntimeError:
            return  # the loop is closed: this handler was abandoned, and nobody waits for it

    async def outcome(self) -> Any:
        """Wait for the thread, through cancellations: the handler has its own way to learn of them."""
        while not self._ended:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                continue
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # the traceback holds this frame: no cycle
        return self._value

    def _end(self, value: Any, error: BaseException | None) -> None:
        self._ended, self._value, self._error = True, value, error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def called(function: Callable[[], Any]) -> Any:
    """Return what a plain function returns; raises what it raises, and ``TypeError`` for one that only seems plain."""
    value = function()
    if inspect.iscoroutine(value):
        # A plain function around an async one: its body has not run, and an acknowledgement would lose the job.
        value.close()
        raise TypeError("the handler returned a coroutine, which nobody awaits: make the handler async def")
    return value
