"""A steady load on a store, and the books about it: what was accepted, what was leased, what was settled."""

import asyncio
import collections
import itertools
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.durability import Assurance
from tenure.errors import ConnectionFailed, OutcomeUnknown, StoreError, StoreRefused
from tenure.queue import Ack, Lease, Push, Queue, Renewal, Settled


class Load:
    """A pusher for each queue, a blocking one for all, and claimers. Bulks are of ten; every job is acknowledged."""

    def __init__(
        self,
        url: str,
        namespace: str,
        queues: tuple[str, ...] = ("q",),
        *,
        durability: int = 1,
        replicas: int = 1,
        lease: float = 30,
    ) -> None:
        self.queues = queues
        self._url = url
        self._namespace = namespace
        self._durability = durability
        self._lease = lease
        self.driver = RedisQueue.from_url(url, namespace=namespace, assurance=Assurance(replicas=replicas))
        self.accepted: set[str] = set()
        self.unknown: set[str] = set()
        """Pushed, and no answer came."""
        self.leased: dict[str, list[int]] = collections.defaultdict(list)
        self.settled: collections.Counter[tuple[str, int]] = collections.Counter()
        """By id and fence: how often the store accepted the settlement."""
        self.done: set[str] = set()
        self.errors: collections.Counter[str] = collections.Counter()
        self.renewals: collections.Counter[Renewal] = collections.Counter()
        self._held: dict[tuple[str, int], Lease] = {}
        self._numbers = itertools.count()  # which threads may share
        self._pushing = True
        self._claiming = True
        self._keeping = threading.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Push and claim during the block; behind it claim what is left, and close."""
        keeper = threading.Thread(target=self._keep, daemon=True)
        keeper.start()
        claimers = [asyncio.create_task(self._claim()) for _ in range(3)]
        pushers = [asyncio.create_task(self._push(queue)) for queue in self.queues]
        blocking = asyncio.create_task(asyncio.to_thread(self._push_blocking))
        try:
            yield
            self._pushing = False
            await asyncio.gather(*pushers, blocking)
            await self._rest()
        finally:
            self._pushing = self._claiming = False
            self._keeping.set()
            await asyncio.gather(*claimers, *pushers, blocking)
            await asyncio.to_thread(keeper.join)
            await self.driver.aclose()

    async def _rest(self) -> None:
        async with asyncio.timeout(40):
            while True:
                try:
                    counts = [await self.driver.counts(queue) for queue in self.queues]
                except StoreError:
                    continue
                if all(one.ready == one.delayed == one.leased == 0 for one in counts):
                    return
                await asyncio.sleep(0)

    def _bulk(self, queue: str) -> list[Push]:
        pushes = []
        for _ in range(10):
            job_id = f"j{next(self._numbers)}"
            pushes.append(Push(queue=queue, id=job_id, envelope=b"{}", durability=self._durability))
        return pushes

    async def _push(self, queue: str) -> None:
        while self._pushing:
            pushes = self._bulk(queue)
            try:
                answers = await self.driver.push(pushes)
            except StoreError as error:
                await self._failed(error, pushes)
            else:
                self._pushed(answers)
            await asyncio.sleep(0.002)

    def _pushed(self, answers: object) -> None:
        for one in answers:  # type: ignore[attr-defined]
            if one.outcome == "stored" and one.error is None:
                self.accepted.add(one.id)
            elif one.outcome in {"unknown", "stored", "held"}:
                self.unknown.add(one.id)

    async def _failed(self, error: StoreError, pushes: list[Push] | None = None) -> None:
        self.errors[getattr(error, "code", type(error).__name__)] += 1
        assert isinstance(error, (ConnectionFailed, StoreRefused, OutcomeUnknown)), repr(error)
        if pushes is not None and isinstance(error, OutcomeUnknown):
            self.unknown.update(push.id for push in pushes)
        await asyncio.sleep(0.02)

    def _push_blocking(self) -> None:
        pusher = self.driver.pusher()
        pause = threading.Event()
        for queue in itertools.cycle(self.queues):
            if not self._pushing:
                break
            pushes = self._bulk(queue)
            try:
                self._pushed(pusher.push(pushes))
            except StoreError as error:
                self.errors[getattr(error, "code", type(error).__name__)] += 1
                if isinstance(error, OutcomeUnknown):
                    self.unknown.update(push.id for push in pushes)
                pause.wait(0.02)
        pusher.close()

    async def _claim(self) -> None:
        queue: Queue = self.driver
        while self._claiming:
            try:
                claimed = await queue.claim(self.queues, limit=20, lease=self._lease, wait=0.2)
            except StoreError as error:
                await self._failed(error)
                continue
            for lease in claimed.leases:
                self.leased[lease.id].append(lease.fence)
                self._held[lease.id, lease.fence] = lease
            await self._settle([Ack(lease) for lease in claimed.leases])

    async def _settle(self, acks: list[Ack]) -> None:
        while acks:
            try:
                answers = await self.driver.settle(acks)
            except StoreError as error:
                await self._failed(error)
                continue
            for ack, answer in zip(acks, answers, strict=True):
                self._held.pop((ack.lease.id, ack.lease.fence), None)
                if answer in {Settled.DONE, Settled.REPEATED}:
                    self.settled[ack.lease.id, ack.lease.fence] += 1
                    self.done.add(ack.lease.id)
            return

    def _keep(self) -> None:
        keeper = self.driver.keeper()
        while not self._keeping.wait(0.02):
            held = list(self._held.values())
            try:
                self.renewals.update(keeper.renew(held))
            except StoreError as error:
                self.errors[f"renew: {getattr(error, 'code', type(error).__name__)}"] += 1
        keeper.close()

    def judge(self) -> None:
        """Assert what no fault may change: each lease was settled once, and each job's fences rose."""
        assert set(self.settled.values()) <= {1}
        for job_id, fences in self.leased.items():
            assert fences == sorted(set(fences)), job_id
