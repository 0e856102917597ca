"""The keeper: renews every held lease from a thread and over a connection of its own.

A handler that blocks the event loop keeps its lease, because nothing here waits for the loop. What the store answers
is passed on to the loop; only the flag behind ``current().cancelled`` is set from here, so that a handler in a thread,
or one that blocks the loop, can see it.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from tenure.effects import Effects
from tenure.errors import OutcomeUnknown, StoreError
from tenure.outage import Outage
from tenure.queue import Keeper, Renewal
from tenure.worker.held import Held, HeldLeases, Stage, Stop

LONGEST_INTERVAL: Final = 1.0
"""Seconds between renewals at most, however long the lease: the answer also brings cancel requests."""
GROUP: Final = 500


class KeeperThread:
    """Renews the leases of one worker every third of their length, and at least each second.

    ``told`` is called in the loop with each lease that is lost or asked to be cancelled, ``failed`` once an outage,
    ``broke`` when a defect ends the thread, and ``tick`` in the thread itself, each time round.
    """

    def __init__(
        self,
        make_keeper: Callable[[], Keeper],
        leases: HeldLeases,
        lease: float,
        *,
        told: Callable[[Held, Stop], None],
        failed: Callable[[str, int], None],
        broke: Callable[[BaseException], None],
        tick: Callable[[], None],
    ) -> None:
        self._make_keeper = make_keeper
        self._leases = leases
        self._interval = min(lease / 3, LONGEST_INTERVAL)
        self._told = told
        self._failed = failed
        self._broke = broke
        self._tick = tick
        self.rounds: int = 0
        """Rounds that have ended, with or without an answer; the watchdog looks whether they go on."""
        self.outage: Outage = Outage("renewing leases")
        """What its store calls came to; written in the thread."""
        self._stopping = threading.Event()
        self._ended = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="tenure-keeper", daemon=True)

    def start(self) -> None:
        """Start the thread; its answers come to the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self, seconds: float) -> None:
        """Stop renewing, and wait for the thread, but not for a store that does not answer."""
        self._stopping.set()
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            return  # it is a daemon, and holds nothing but its connection

    def _run(self) -> None:
        try:
            keeper = self._make_keeper()
            try:
                delay = self._interval
                while not self._stopping.wait(delay):
                    self._tick()
                    delay = self._round(keeper)
                    self.rounds += 1
            finally:
                keeper.close()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the worker must not go on without its keeper
            self._tell(self._broke, error)
        finally:
            self._tell(self._ended.set)

    def _round(self, keeper: Keeper) -> float:
        """Renew all leases once, and return the seconds until the next time."""
        now = time.monotonic()
        due = [
            held
            for held in self._leases.snapshot()
            if held.effects is not Effects.DONE and (held.renew_until is None or now < held.renew_until)
        ]
        failed: StoreError | None = None
        for start in range(0, len(due), GROUP):
            try:
                failed = self._renew(keeper, due[start : start + GROUP]) or failed
            except StoreError as error:
                failed = error
                break  # whoever answers for none of these does not for the next, and may take long over it
        if failed is not None:
            if not self.outage.going_on:
                self._tell(self._failed, type(failed).__name__, len(due))
            return min(self.outage.failed(failed), self._interval)
        if due:
            self.outage.succeeded()
        return self._interval

    def _renew(self, keeper: Keeper, group: Sequence[Held]) -> StoreError | None:
        """Renew leases, and return an error when the store answered for a part of them only."""
        sent = time.monotonic()
        answers = keeper.renew([held.lease for held in group])
        self._take(group, answers, sent)
        unknown = {held.lease.queue for held, answer in zip(group, answers, strict=True) if answer is Renewal.UNKNOWN}
        if not unknown:
            return None
        return OutcomeUnknown(f"no answer for the leases of queue {', '.join(sorted(unknown))}; others are renewed")

    def _take(self, group: Sequence[Held], answers: Sequence[Renewal], sent: float) -> None:
        for held, answer in zip(group, answers, strict=True):
            if answer is Renewal.UNKNOWN:
                continue
            if answer is not Renewal.LOST:
                # Counted from before the call was sent: the store counts from later, so it trusts the lease longer.
                held.deadline = sent + held.lease.length
            if answer is Renewal.HELD or held.stage >= Stage.SETTLING or held.effects >= Effects.CLOSING:
                # A lease that is being settled may be gone because it was settled: its own answer tells.
                continue
            why = Stop.LOST if answer is Renewal.LOST else Stop.CANCELLED
            if held.stop is None or (why is Stop.LOST and held.stop is not Stop.LOST):
                held.tell()
                self._tell(self._told, held, why)

    def _tell(self, callback: Callable[..., object], *arguments: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(callback, *arguments)
            except RuntimeError:
                return  # closed in between: nobody is left to tell
