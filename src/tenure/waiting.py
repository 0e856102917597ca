"""Claims that wait for a job, woken at once from any thread and any event loop of the process."""

import asyncio
import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence


class Waiter:
    """One waiting claim. Woken from anywhere, it sleeps in the event loop that made it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()

    def reset(self) -> None:
        """Forget earlier wake-ups. Call it before looking, so that none between looking and sleeping is lost."""
        self._woken.clear()

    async def sleep(self, seconds: float) -> None:
        """Return when woken, after that many seconds at the latest."""
        timer = self._loop.call_later(seconds, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()

    def wake(self) -> None:
        """End the sleep. A waiter whose loop was closed sleeps no more, and nothing happens."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._woken.set)


class Waiters:
    """The waiting claims of one process, by queue.

    Every waiter of a queue is woken, not just one: they are few, and one that was woken and then cancelled, or that
    may not take what is there, would otherwise have to pass the news on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_queue: dict[str, set[Waiter]] = {}

    def __bool__(self) -> bool:
        """Tell whether anything waits."""
        return bool(self._by_queue)

    @contextlib.contextmanager
    def waiting(self, queues: Sequence[str]) -> Iterator[Waiter]:
        """Give a waiter for these queues, known until the block ends."""
        waiter = Waiter()
        with self._lock:
            for queue in queues:
                self._by_queue.setdefault(queue, set()).add(waiter)
        try:
            yield waiter
        finally:
            with self._lock:
                for queue in set(queues):
                    others = self._by_queue[queue]
                    others.discard(waiter)
                    if not others:
                        del self._by_queue[queue]

    def wake(self, queues: Iterable[str]) -> None:
        """Wake whatever waits for any of these queues."""
        if not self._by_queue:
            # Read without the lock: a waiter registers first and looks afterwards, so one that is missed here sees
            # what happened before this call.
            return
        with self._lock:
            waiters = {waiter for queue in queues for waiter in self._by_queue.get(queue, ())}
        for waiter in waiters:
            waiter.wake()

    def wake_all(self) -> None:
        """Wake everything that waits."""
        self.wake(list(self._by_queue))
