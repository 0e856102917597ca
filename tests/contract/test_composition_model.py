"""Random compositions walked at random: every driver answers what the model answers, step by step.

The store's time stands still but for leases that are made to lapse. The seed of a failed run is in its output;
`TENURE_MODEL_SEED` walks it again, and `TENURE_MODEL_WALKS` says how often it is walked.
"""

import asyncio
import contextlib
import os
import pathlib
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, cast

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

from tenure.compositions import Compositions, JobNode, Kind, NewComposition, job_id
from tenure.drivers.memory import MemoryQueue
from tenure.operating import FailedJobs, Inspector
from tenure.queue import Ack, Drop, Fail, FailedRecord, Failure, Lease, Push, Queue, Release, SetAside, Settlement
from tenure.testing.contract import StoreUnderTest
from tests.contract import stores
from tests.contract.composition_model import FlowModel
from tests.contract.graphs import graphs
from tests.contract.model import CRASH_LIMIT, LEASE

DRIVERS = ["memory", "sqlite", "postgresql", "mariadb", "valkey", "valkey-streams"]
WALKS = {"memory": 100, "sqlite": 15}
"""Walks of one run; fewer where each takes long."""
SHORT = 0.02
MOST = 3
"""Compositions of one walk."""
Q = "q"

ends: list[Callable[[Lease], Settlement]] = [
    *[lambda lease: Ack(lease, b"of " + lease.id.encode())] * 5,
    Ack,
    Drop,
    Release,
    lambda lease: Release(lease, free=True),
    lambda lease: Release(lease, crashed=True),
    lambda lease: Fail(lease, Failure(reason="exception", message="no")),
    lambda lease: SetAside(lease, "unreadable"),
]


class ManualClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


class Driver(Queue, Compositions, FailedJobs, Inspector, Protocol):
    """A driver that keeps compositions, and can be read and operated."""


Opened = tuple[AbstractAsyncContextManager[StoreUnderTest], ManualClock | None]


class Walk(RuleBasedStateMachine):
    """One walk on a fresh queue of one driver."""

    def __init__(self, open_store: Callable[[], Opened]) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = contextlib.AsyncExitStack()
        store, self.clock = open_store()
        self.queue = cast("Driver", self.run(self.stack.enter_async_context(store)).queue)
        self.model = FlowModel()
        self.leases: list[Lease] = []
        self.names: list[str] = []
        self.jobs: list[str] = ["plain"]

    def run(self, call: Any) -> Any:
        return self.runner.run(call)

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.runner.close()

    @initialize(data=st.data())
    def first(self, data: st.DataObject) -> None:
        self.begin(data)

    @precondition(lambda self: len(self.names) < MOST)
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        of = "abc"[len(self.names)]
        nodes = data.draw(graphs(of, Q), "nodes")
        kind = data.draw(st.sampled_from(list(Kind)), "kind")
        assert self.run(self.queue.prepare(NewComposition(id=of, home=Q, kind=kind)))
        cut = data.draw(st.integers(0, len(nodes)), "cut")
        self.run(self.queue.add(Q, of, nodes[:cut]))
        self.run(self.queue.add(Q, of, nodes[cut:]))
        self.run(self.queue.start(Q, of))
        self.model.begin(of, kind, nodes)
        self.names.append(of)
        self.jobs += [node.push.id for node in nodes if isinstance(node, JobNode)]

    @rule()
    def push(self) -> None:
        job = Push(queue=Q, id="plain", envelope=b"plain")
        (answer,) = self.run(self.queue.push([job]))
        assert [answer.outcome] == self.model.push([job])

    @rule(limit=st.integers(1, 8), suspects=st.booleans())
    def claim(self, limit: int, suspects: bool) -> None:
        self.leases += self.claimed(limit, suspects=suspects, length=LEASE)

    def claimed(self, limit: int, *, suspects: bool, length: float) -> list[Lease]:
        claimed = self.run(
            self.queue.claim([Q], limit=limit, lease=length, wait=0, crash_limit=CRASH_LIMIT, suspects=suspects)
        )
        assert list(claimed.unreadable) == []
        self.model.check_claim(claimed.leases, limit, suspects=suspects, length=length)
        return list(claimed.leases)

    @rule(limit=st.integers(1, 3))
    def let_lapse(self, limit: int) -> None:
        leases = self.claimed(limit, suspects=True, length=SHORT)
        if not leases:
            return
        self.model.now += SHORT
        if self.clock is not None:
            self.clock.now += SHORT
        deadline = time.monotonic() + 10
        while self.run(self.queue.counts(Q)).lapsed < self.model.counts()["lapsed"]:
            assert time.monotonic() < deadline, "the leases do not lapse"
        self.leases += leases

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.leases[-16:]), min_size=1, max_size=6), "leases")
        settlements = [data.draw(st.sampled_from(self.fitting(lease)), "end")(lease) for lease in chosen]
        assert list(self.run(self.queue.settle(settlements))) == self.model.settle(settlements)

    def fitting(self, lease: Lease) -> list[Callable[[Lease], Settlement]]:
        """Return how a lease may be ended. Whether a callback may be given back that a cancel came upon is open."""
        of, number = self.model.members.get(lease.id, ("", 0))
        if not of or number >= 0 or not self.model.compositions[of].cancelled:
            return ends
        return [end for end in ends if not isinstance(end(lease), Release)]

    @rule()
    def finish(self) -> None:
        """Acknowledge what runs and can be claimed, three times over: so that walks come to an end of something."""
        for _ in range(3):
            held = [lease for lease in self.leases if self.model.holder(lease) is not None]
            held += self.claimed(50, suspects=False, length=LEASE)
            settlements = [Ack(lease, b"done") for lease in held]
            assert list(self.run(self.queue.settle(settlements))) == self.model.settle(settlements)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        # One at a time: whether a call finds what it lets begin itself is open.
        chosen = data.draw(st.sampled_from(self.jobs), "job")
        with self.model.together():
            answers = self.model.cancel([chosen])
        assert list(self.run(self.queue.cancel(Q, [chosen]))) == answers

    @rule(data=st.data(), really=st.sampled_from([False, False, True]))
    def cancel_composition(self, data: st.DataObject, really: bool) -> None:
        if really:
            of = data.draw(st.sampled_from([*self.names, "nobody"]), "composition")
            assert self.run(self.queue.cancel_composition(Q, of)) is self.model.cancel_composition(of)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), count=st.integers(0, 3))
    def grow(self, data: st.DataObject, count: int) -> None:
        lease = data.draw(st.sampled_from(self.leases[-16:]), "lease")
        nodes = [
            JobNode(number=number, push=Push(queue=Q, id=f"x{number}", envelope=b"more")) for number in range(count)
        ]
        of, _ = self.model.members.get(lease.id, ("", 0))
        total = self.model.compositions[of].total if of else 0
        grown = self.model.grow(lease, nodes)
        assert self.run(self.queue.grow(lease, nodes)) is grown
        if grown:
            self.jobs += [job_id(of, number) for number in range(total, total + count)]

    @rule(again=st.booleans())
    def operate(self, again: bool) -> None:
        records: list[FailedRecord] = list(self.run(self.queue.failed(Q)))[:3]
        if again:
            assert list(self.run(self.queue.retry(records))) == self.model.retry(records)
        else:
            assert list(self.run(self.queue.forget(records))) == self.model.forget(records)

    @rule(really=st.sampled_from([False, False, True]))
    def prune(self, really: bool) -> None:
        if really:
            assert self.run(self.queue.prune_compositions(Q, older_than=0)) == self.model.prune_compositions()

    @invariant()
    def the_counts_agree(self) -> None:
        counts = self.run(self.queue.counts(Q))
        assert {state: getattr(counts, state) for state in self.model.counts()} == self.model.counts()

    @invariant()
    def the_states_agree(self) -> None:
        assert [state.value for state in self.run(self.queue.states(Q, self.jobs))] == self.model.states(self.jobs)

    @invariant()
    def the_compositions_agree(self) -> None:
        listed = self.run(self.queue.compositions(Q)).compositions
        told = {
            one.id: (one.state.value, one.total, one.succeeded, one.failed, one.cancelled, one.finished_at is not None)
            for one in listed
        }
        assert len(told) == len(listed)
        assert told == {
            of: (*composition.status(), composition.pending == 0) for of, composition in self.model.compositions.items()
        }
        for of in self.names:
            status = self.run(self.queue.composition(Q, of))
            assert status == next((one for one in listed if one.id == of), None)


@contextlib.asynccontextmanager
async def memory_on(clock: ManualClock) -> AsyncIterator[StoreUnderTest]:
    queue = MemoryQueue(clock=clock)
    yield StoreUnderTest(queue=queue, another=lambda: queue, elsewhere=MemoryQueue)


def needs_compositions(opened: Opened) -> None:
    async def able() -> bool:
        async with opened[0] as store:
            return store.queue.capabilities.compositions

    if not asyncio.run(able()):
        pytest.skip("the driver keeps no compositions")


@pytest.mark.torture
def test_random_walks_through_compositions_agree_with_the_model(
    driver: str, tmp_path: pathlib.Path, namespace: str, request: pytest.FixtureRequest, scale: int
) -> None:
    walks = 0

    def open_store() -> Opened:
        nonlocal walks
        walks += 1
        name = f"{namespace}-{walks}"
        if driver == "memory":
            clock = ManualClock()
            return memory_on(clock), clock
        if driver == "sqlite":
            return stores.sqlite_store(tmp_path, name), None
        if driver in {"postgresql", "mariadb"}:
            return stores.database_store(request.getfixturevalue(driver), name), None
        opened = stores.streams_store if driver == "valkey-streams" else stores.redis_store
        return opened(request.getfixturevalue("valkey"), name), None

    needs_compositions(open_store())
    number = int(os.environ.get("TENURE_MODEL_SEED") or random.SystemRandom().randrange(2**32))
    print(f"seed {number}")  # noqa: T201 - pytest shows it when the walk fails
    run_state_machine_as_test(
        seed(number)(cast("type[Walk]", lambda: Walk(open_store))),
        settings=settings(
            max_examples=int(os.environ.get("TENURE_MODEL_WALKS") or WALKS.get(driver, 10) * scale),
            stateful_step_count=40,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )
