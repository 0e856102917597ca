"""A thread that calls run on: one connection, one transaction for all calls that wait."""

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from tenure.errors import ConnectionFailed, OutcomeUnknown, StoreError, StoreRefused
from tenure.waiting import Waiters

T = TypeVar("T")
Tx = TypeVar("Tx")
Tx_co = TypeVar("Tx_co", covariant=True)

POLL: Final = 0.02
"""Seconds between two looks at what other processes committed, while a claim waits."""
QUIET_POLL: Final = 0.05
QUIET_AFTER: Final = 2.0
"""The same once nobody has committed anything for so many seconds: half of what an idle worker costs is these looks."""

GROUP: Final = 1000
"""How many jobs the calls of one shared transaction move, about: 30 ms, for which other processes wait."""


class Session(Protocol[Tx_co]):
    """One connection, whose transactions are what operations see."""

    def read(self, operation: Callable[[Tx_co], T]) -> T:
        """Run an operation that changes nothing."""
        ...

    def write(self, operations: Sequence[Callable[[Tx_co], Any]], *, durable: bool) -> list[Any]:
        """Run the operations in one transaction and return what each returned; all are done or none is."""
        ...

    def close(self) -> None:
        """Close the connection; idempotent."""
        ...


@dataclass(slots=True, eq=False)
class Work(Generic[Tx]):
    """One call, handed to the thread."""

    operation: Callable[[Tx], Any]
    writes: bool
    durable: bool = False
    weight: int = 1
    glance: Callable[[Tx], Any] | None = None
    """Reads, and answers for the operation when there is nothing to change."""
    future: "Future[Any]" = field(default_factory=Future)


class Engine(Generic[Tx]):
    """Runs calls in order on a thread of its own. The thread starts with the first call.

    Calls that wait while the thread is busy share the next transaction, and so its one write to the disk: a hundred
    tasks that push one job each wait for one commit, not for a hundred.

    ``watch`` tells whether others changed anything; it is asked fifty times a second while a claim waits,
    twenty times when it has been quiet.
    """

    def __init__(self, session: Session[Tx], waiters: Waiters, watch: Callable[[], bool] | None = None) -> None:
        self._session = session
        self._waiters = waiters
        self._watch = watch
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._arrived: queue.SimpleQueue[Work[Tx] | None] = queue.SimpleQueue()
        self._backlog: deque[Work[Tx]] = deque()
        self._polled = 0.0
        self._stirred = time.monotonic()
        """When anything was last committed, as far as this process knows."""
        self._closed = False
        self._ended: Future[None] = Future()

    def read(self, operation: Callable[[Tx], T]) -> "Future[T]":
        """Run an operation that changes nothing."""
        return self._submit(Work(operation, writes=False))

    def write(
        self,
        operation: Callable[[Tx], T],
        *,
        durable: bool,
        weight: int = 1,
        glance: Callable[[Tx], T | None] | None = None,
    ) -> "Future[T]":
        """Run an operation that writes, unless ``glance``, which only reads, already has the answer."""
        return self._submit(Work(operation, writes=True, durable=durable, weight=weight, glance=glance))

    def stop(self) -> "Future[None]":
        """End the thread after the calls before this one, and close its connection; idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                if self._thread is None:
                    self._ended.set_result(None)
                else:
                    self._arrived.put(None)
        return self._ended

    def _submit(self, work: Work[Tx]) -> "Future[Any]":
        with self._lock:
            if self._closed:
                raise ConnectionFailed("the driver was closed while it was in use; nothing was sent")
            if self._thread is None:
                # A daemon: a program that ends without closing its driver must not hang; what was begun is whole or
                # not there at all.
                self._thread = threading.Thread(target=self._run, name="tenure-sql", daemon=True)
                self._thread.start()
            self._arrived.put(work)
        return work.future

    # --------------------------------------------------------------------------------------------------- in the thread

    def _run(self) -> None:
        while self._collect():
            work = self._backlog.popleft()
            if work.writes:
                self._write(self._group(work))
            else:
                self._read(work)
            if self._watch and self._waiters and time.monotonic() - self._polled >= self._pause:
                self._poll(self._watch)
        self._session.close()
        self._ended.set_result(None)

    def _collect(self) -> bool:
        """Wait for a call unless one waits already, and fetch all that arrived; False at the end."""
        ended = False
        if not self._backlog:
            ended = not self._add(self._next())
        with contextlib.suppress(queue.Empty):
            while not ended:
                ended = not self._add(self._arrived.get_nowait())
        if ended:
            self._arrived.put(None)  # to be found again when the backlog is done
        return bool(self._backlog)

    def _next(self) -> Work[Tx] | None:
        while True:
            try:
                return self._arrived.get(timeout=self._pause if self._watch and self._waiters else None)
            except queue.Empty:
                if self._watch:
                    self._poll(self._watch)

    def _add(self, work: Work[Tx] | None) -> bool:
        if work is not None:
            self._backlog.append(work)
        return work is not None

    @property
    def _pause(self) -> float:
        """How long to wait until the next look: jobs seldom come alone."""
        return POLL if time.monotonic() - self._stirred < QUIET_AFTER else QUIET_POLL

    def _poll(self, watch: Callable[[], bool]) -> None:
        """Wake every waiting claim if another process committed anything: it glances, and waits on if it was nothing.

        A file that cannot be read wakes them too: the claim itself reports what is wrong.
        """
        try:
            changed = watch()
        except StoreError:
            changed = True
        self._polled = time.monotonic()
        if changed:
            self._stirred = self._polled
            self._waiters.wake_all()

    def _group(self, first: Work[Tx]) -> list[Work[Tx]]:
        """Return the call and those after it that may share its transaction."""
        group, weight = [first], first.weight
        while self._backlog and self._backlog[0].writes and weight + self._backlog[0].weight <= GROUP:
            group.append(self._backlog.popleft())
            weight += group[-1].weight
        return group

    def _read(self, work: Work[Tx]) -> None:
        if not work.future.set_running_or_notify_cancel():
            return
        try:
            result = self._session.read(work.operation)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
            work.future.set_exception(error)
        else:
            work.future.set_result(result)

    def _write(self, group: Sequence[Work[Tx]]) -> None:
        works = [work for work in group if work.future.set_running_or_notify_cancel() and not self._glanced(work)]
        if not works:
            return
        try:
            results = self._session.write([w.operation for w in works], durable=any(w.durable for w in works))
        except Exception as error:  # noqa: BLE001 - whatever it is, the callers get it
            self._failed(works, error)
        else:
            self._stirred = time.monotonic()
            for work, result in zip(works, results, strict=True):
                work.future.set_result(result)

    def _glanced(self, work: Work[Tx]) -> bool:
        """Tell whether the call is answered already, because there was nothing to change."""
        if work.glance is None:
            return False
        try:
            answer = self._session.read(work.glance)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
            work.future.set_exception(error)
            return True
        if answer is not None:
            work.future.set_result(answer)
        return answer is not None

    def _failed(self, works: Sequence[Work[Tx]], error: Exception) -> None:
        shared = isinstance(error, OutcomeUnknown | ConnectionFailed) or (
            isinstance(error, StoreRefused) and error.code == "BUSY"
        )
        if len(works) == 1 or shared:
            for work in works:
                work.future.set_exception(error)
            return
        # One of them may be at fault, and nothing was written: each is tried alone.
        for work in works:
            try:
                (result,) = self._session.write([work.operation], durable=work.durable)
            except Exception as own:  # noqa: BLE001 - whatever it is, the caller gets it
                work.future.set_exception(own)
            else:
                work.future.set_result(result)
