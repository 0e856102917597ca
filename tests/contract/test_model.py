"""Random walks through the contract: every driver answers what the model answers, step by step.

The store's time stands still in them: leases and delays are longer than a walk, and only the memory driver, which
takes a clock, lets it pass. The seed of a failed run is in its output; `TENURE_MODEL_SEED` walks it again.
"""

import asyncio
import contextlib
import os
import pathlib
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, cast

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tenure.drivers.memory import MemoryQueue
from tenure.operating import FailedJobs, Inspector
from tenure.queue import Ack, Drop, Fail, FailedRecord, Failure, Lease, Push, Queue, Release, SetAside, Settlement
from tenure.testing.contract import StoreUnderTest
from tests.contract import stores
from tests.contract.model import CRASH_LIMIT, LEASE, Model
from tests.support.manual_clock import ManualClock

DRIVERS = ["memory", "sqlite", "postgresql", "mariadb", "valkey", "valkey-streams"]
IDS = ["a", "b", "c", "d", "e", "f"]
Q = "q"

ids = st.lists(st.sampled_from(IDS), min_size=1, max_size=4)
pushes = st.builds(
    Push,
    queue=st.just(Q),
    id=st.sampled_from(IDS),
    envelope=st.binary(max_size=12),
    delay=st.sampled_from([0.0, 0.0, 0.0, 500.0, 900.0]),
    priority=st.sampled_from([0, 0, 0, 7, -7]),
    crash_limit=st.sampled_from([None, None, 1, 2]),
)
ends: list[Callable[[Lease], Settlement]] = [
    Ack,
    Ack,
    Drop,
    Release,
    Release,
    lambda lease: Release(lease, free=True),
    lambda lease: Release(lease, delay=700.0),
    lambda lease: Release(lease, crashed=True),
    lambda lease: Release(lease, crashed=True),
    lambda lease: Fail(lease, Failure(reason="exception", message="no")),
    lambda lease: SetAside(lease, "unreadable"),
]


class Driver(Queue, FailedJobs, Inspector, Protocol):
    """A driver that can be read and operated too."""


Opened = tuple[AbstractAsyncContextManager[StoreUnderTest], ManualClock | None]


class Walk(RuleBasedStateMachine):
    """One walk on a fresh queue of one driver."""

    def __init__(self, open_store: Callable[[], Opened]) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = contextlib.AsyncExitStack()
        store, self.clock = open_store()
        self.queue = cast("Driver", self.run(self.stack.enter_async_context(store)).queue)
        self.model = Model()
        self.leases: list[Lease] = []
        self.records: list[FailedRecord] = []

    def run(self, call: Any) -> Any:
        return self.runner.run(call)

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.runner.close()

    @initialize(start=st.lists(pushes, max_size=6))
    def start(self, start: list[Push]) -> None:
        self.push(start)

    @rule(jobs=st.lists(pushes, min_size=1, max_size=4))
    def push(self, jobs: list[Push]) -> None:
        if not self.queue.capabilities.priorities:
            jobs = [msgspec.structs.replace(job, priority=0) for job in jobs]
        answers = self.run(self.queue.push(jobs))
        assert [(one.id, one.outcome) for one in answers] == list(
            zip([job.id for job in jobs], self.model.push(jobs), strict=True)
        )

    @rule(limit=st.integers(1, 5), suspects=st.booleans(), length=st.sampled_from([LEASE, LEASE, 800.0]))
    def claim(self, limit: int, suspects: bool, length: float) -> None:
        claimed = self.run(
            self.queue.claim([Q], limit=limit, lease=length, wait=0, crash_limit=CRASH_LIMIT, suspects=suspects)
        )
        assert list(claimed.unreadable) == []
        self.model.check_claim(claimed.leases, limit, suspects=suspects, length=length)
        self.leases += claimed.leases

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.leases[-12:]), min_size=1, max_size=4), "leases")
        settlements = [data.draw(st.sampled_from(ends), "end")(lease) for lease in chosen]
        assert list(self.run(self.queue.settle(settlements))) == self.model.settle(settlements)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.leases[-12:]), min_size=1, max_size=4), "leases")
        assert list(self.run(self.queue.renew(chosen))) == self.model.renew(chosen)

    @rule(chosen=ids)
    def cancel(self, chosen: list[str]) -> None:
        assert list(self.run(self.queue.cancel(Q, chosen))) == self.model.cancel(chosen)

    @rule(really=st.sampled_from([False, False, True]))
    def clear(self, really: bool) -> None:
        if really:
            assert self.run(self.queue.clear(Q)) == self.model.clear()

    @rule()
    def read_failed(self) -> None:
        records = list(self.run(self.queue.failed(Q)))
        oldest_first = sorted(self.model.of("failed"), key=lambda job: job.entered)
        # Those that failed within one millisecond may come in either order.
        assert sorted(record.id for record in records) == sorted(job.id for job in oldest_first)
        for record in records:
            job = self.model.jobs[record.id]
            assert (record.envelope, record.attempts) == (job.envelope, job.deliveries - job.free)
        self.records += records

    @precondition(lambda self: self.records)
    @rule(data=st.data(), again=st.booleans())
    def operate(self, data: st.DataObject, again: bool) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.records[-8:]), min_size=1, max_size=3), "records")
        if again:
            assert list(self.run(self.queue.retry(chosen))) == self.model.retry(chosen)
        else:
            assert list(self.run(self.queue.forget(chosen))) == self.model.forget(chosen)

    @precondition(lambda self: self.clock is not None)
    @rule(seconds=st.sampled_from([1.0, 300.0, 600.0, 1200.0]))
    def let_time_pass(self, seconds: float) -> None:
        assert self.clock is not None
        self.clock.now += seconds
        self.model.now += seconds

    @invariant()
    def the_counts_agree(self) -> None:
        counts = self.run(self.queue.counts(Q))
        assert {state: getattr(counts, state) for state in self.model.counts()} == self.model.counts()
        assert (counts.oldest_age is None) == (counts.ready == 0)

    @invariant()
    def the_states_agree(self) -> None:
        assert [state.value for state in self.run(self.queue.states(Q, IDS))] == self.model.states(IDS)


@contextlib.asynccontextmanager
async def memory_on(clock: ManualClock) -> AsyncIterator[StoreUnderTest]:
    queue = MemoryQueue(clock=clock)
    yield StoreUnderTest(queue=queue, another=lambda: queue, elsewhere=MemoryQueue)


def test_random_walks_agree_with_the_model(
    driver: str, tmp_path: pathlib.Path, namespace: str, request: pytest.FixtureRequest, scale: int
) -> None:
    walks = 0

    def open_store() -> Opened:
        nonlocal walks
        walks += 1
        if driver == "memory":
            clock = ManualClock()
            return memory_on(clock), clock
        if driver == "sqlite":
            return stores.sqlite_store(tmp_path, f"{namespace}-{walks}"), None
        opened = stores.streams_store if driver == "valkey-streams" else stores.redis_store
        return opened(request.getfixturevalue("valkey"), f"{namespace}-{walks}"), None

    number = int(os.environ.get("TENURE_MODEL_SEED") or random.SystemRandom().randrange(2**32))
    print(f"seed {number}")  # noqa: T201 - pytest shows it when the walk fails
    run_state_machine_as_test(
        seed(number)(cast("type[Walk]", lambda: Walk(open_store))),
        settings=settings(
            max_examples=(60 if driver == "memory" else 25) * scale,
            stateful_step_count=40,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )
