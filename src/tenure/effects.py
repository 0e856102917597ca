"""Exactly-once effects: a handler's writes are committed together with the acknowledgement of its job.

``current().transaction(session)`` is such a block. Its last statements before COMMIT check the lease's token and take
the job out of the store, over the caller's own connection; so the job's row is locked for as long as a COMMIT takes,
and the keeper renews the lease until then. Whoever holds the lease no longer gets ``StaleLease``, and nothing of the
block is written.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine
from enum import IntEnum
from functools import partial
from types import TracebackType
from typing import Any, Final, Generic, Protocol, TypeVar

from tenure.enlisting import Begun, Statements, begin
from tenure.errors import NotSupported, StaleLease, StoreRefused, WrongContext
from tenure.queue import Lease, feature

T = TypeVar("T")
G = TypeVar("G")

logger: Final = logging.getLogger("tenure")

FEATURE: Final = "current().transaction()"


class Effects(IntEnum):
    """How far the block of an attempt has come."""

    NONE = 0
    """There is none, or it was rolled back."""
    BEGUN = 1
    CLOSING = 2
    """Its acknowledgement and its COMMIT are on their way: only their answer tells whether the lease is current."""
    UNKNOWN = 3
    """The COMMIT failed, and it may have been done: whether the lease is still current will tell."""
    DONE = 4
    """It is committed, and the job is acknowledged with it."""


class Attempt(Protocol):
    """The attempt that a block belongs to."""

    lease: Lease
    effects: Effects
    """Written by the block, in the handler's thread; read by others."""


class Acknowledges(Protocol):
    """A driver whose jobs a caller's own connection can acknowledge, when it leads to the same database."""

    def join_within(self, caller: Statements, lease: Lease) -> float | None:
        """Make ready for an acknowledgement at the end of a transaction that has just begun.

        Returns the seconds in which it must end, or None when the connection does not see the tables of this store.
        Raises ``InvalidOption`` for a transaction in which it could not be made.
        """
        ...

    def acknowledge_within(self, caller: Statements, lease: Lease) -> bool:
        """Take the job out of the store if the lease is current, true once the caller commits; else False."""
        ...


class EffectsBlock(Generic[G]):
    """``with`` or ``async with``: begins a transaction, and commits it with the acknowledgement of the job.

    Args:
        given: what the transaction is of.
        attempt: whose job is acknowledged.
        queue: the driver; None acknowledges nothing, for jobs that are in no store.
    """

    def __init__(self, given: G, attempt: Attempt, queue: Any) -> None:
        if queue is not None and not feature(queue, Acknowledges):
            raise NotSupported(
                queue.capabilities.driver, FEATURE, "the jobs must be in the database that the handler writes to"
            )
        self._given = given
        self._attempt = attempt
        self._queue: Acknowledges | None = queue
        self._driver: str = "" if queue is None else queue.capabilities.driver
        self._begun: Begun = begin(FEATURE, given)
        self._seconds = float("inf")
        self._until = float("inf")
        self._limit: asyncio.Timeout | None = None

    def __enter__(self) -> G:
        self._begun.call(self._begin)
        return self._given

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._begun.call(partial(self._end, error))

    async def __aenter__(self) -> G:
        try:
            await _whole(self._begun.call_async(self._begin))
        except asyncio.CancelledError as error:
            if self._attempt.effects is Effects.BEGUN:
                await _whole(self._begun.call_async(partial(self._end, error)))
            raise
        if self._seconds < float("inf"):
            self._limit = asyncio.timeout(self._seconds)
            await self._limit.__aenter__()
        return self._given

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        late = False
        if self._limit is not None:
            try:
                await self._limit.__aexit__(kind, error, trace)
            except TimeoutError:
                late = True
        await _whole(self._begun.call_async(partial(self._end, error)))
        if late:
            raise self._late() from error

    # ------------------------------------------------------------------------------------------------- its two ends

    def _begin(self) -> None:
        attempt = self._attempt
        if attempt.effects is not Effects.NONE:
            raise WrongContext(
                f"{FEATURE}: the attempt has such a block already, and it can commit one only; nothing was sent"
            )
        self._begun.begin()
        attempt.effects = Effects.BEGUN
        try:
            self._begun.within(self._join)
        except BaseException:
            self._roll_back()
            raise

    def _join(self, caller: Statements) -> None:
        if self._queue is None:
            return
        seconds = self._queue.join_within(caller, self._attempt.lease)
        if seconds is None:
            raise NotSupported(
                self._driver,
                f"{FEATURE} of another database than its own",
                "give it a connection to the database that holds tenure's tables",
            )
        self._seconds, self._until = seconds, time.monotonic() + seconds

    def _end(self, error: BaseException | None) -> None:
        if error is not None:
            self._roll_back()
            return
        try:
            self._begun.within(self._acknowledge)
        except BaseException:
            self._roll_back()
            raise
        try:
            self._begun.commit()
        except BaseException:
            # Some are refusals, and some are lost answers; the attempt's own outcome, by its token, finds out which.
            self._roll_back(Effects.UNKNOWN)
            raise
        self._attempt.effects = Effects.DONE

    def _acknowledge(self, caller: Statements) -> None:
        if self._queue is None:
            return
        if time.monotonic() > self._until:
            raise self._late()
        # Noted first: the keeper may see from now on that the lease is gone.
        self._attempt.effects = Effects.CLOSING
        lease = self._attempt.lease
        if not self._queue.acknowledge_within(caller, lease):
            raise StaleLease(
                f"the lease of job {lease.id} was settled, reclaimed or cancelled meanwhile; "
                "the transaction was rolled back and nothing was written"
            )

    def _roll_back(self, now: Effects = Effects.NONE) -> None:
        try:
            self._begun.roll_back()
        except Exception as error:  # noqa: BLE001 - what ended the block is raised; this follows from it
            kind = type(error).__name__
            logger.debug("the transaction of job %s could not be rolled back: %s", self._attempt.lease.id, kind)
        self._attempt.effects = now

    def _late(self) -> StoreRefused:
        return StoreRefused(
            "TOO-LONG",
            f"the transaction has kept the file locked for longer than {self._seconds:g} s, a third of its lease, and "
            "nobody renews leases meanwhile; it was rolled back: do less in it, or ask for a longer lease",
        )


async def _whole(step: Coroutine[Any, Any, T]) -> T:
    """Do something to its end, and let a cancellation go on only then: no connection is left in the middle of it."""
    task = asyncio.ensure_future(step)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError from task.exception()
    return task.result()
