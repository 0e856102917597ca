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
from tests.support.manual_clock import ManualClock

DRIVERS = ["memory", "sqlite", "postgresql", "mariadb", "valkey", "valkey-streams"]
WALKS = {"memory": 100, "sqlite": 15}
"""Walks of one run; fewer where each takes long."""
SHORT = 0.02
MOST = 5
"""Compositions of one walk."""
Q = "q"

ACTS = {
    "work": 8,
    "claim": 4,
    "settle": 4,
    "let_lapse": 2,
    "finish": 1,
    "begin": 3,
    "push": 1,
    "cancel": 1,
    "cancel_composition": 1,
    "grow": 3,
    "operate": 4,
    "prune": 1,
}
"""What is done, and how often: rules of their own would be left out of whole walks, and most steps need others."""

ends: list[Callable[[Lease], Settlement]] = [
    *[lambda lease: Ack(lease, b"of " + lease.id.encode())] * 14,
    Ack,
    Drop,
    Release,
    lambda lease: Release(lease, free=True),
    lambda lease: Release(lease, crashed=True),
    *[lambda lease: Fail(lease, Failure(reason="exception", message="no"))] * 3,
    lambda lease: SetAside(lease, "unreadable"),
]


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

    @rule(data=st.data())
    def act(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([name for name, weight in ACTS.items() for _ in range(weight)]), "act")
        getattr(self, name)(data)

    def begin(self, data: st.DataObject) -> None:
        if len(self.names) == MOST:
            return
        of = "abcde"[len(self.names)]
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

    def push(self, _data: st.DataObject) -> None:
        job = Push(queue=Q, id="plain", envelope=b"plain")
        (answer,) = self.run(self.queue.push([job]))
        assert [answer.outcome] == self.model.push([job])

    def claim(self, data: st.DataObject) -> None:
        limit, suspects = data.draw(st.integers(1, 8), "limit"), data.draw(st.booleans(), "suspects")
        self.leases += self.claimed(limit, suspects=suspects, length=LEASE)

    def claimed(self, limit: int, *, suspects: bool, length: float) -> list[Lease]:
        claimed = self.run(
            self.queue.claim([Q], limit=limit, lease=length, wait=0, crash_limit=CRASH_LIMIT, suspects=suspects)
        )
        assert list(claimed.unreadable) == []
        self.model.check_claim(claimed.leases, limit, suspects=suspects, length=length)
        return list(claimed.leases)

    def let_lapse(self, data: st.DataObject) -> None:
        leases = self.claimed(data.draw(st.integers(1, 3), "limit"), suspects=True, length=SHORT)
        if not leases:
            return
        self.model.now += SHORT
        if self.clock is not None:
            self.clock.now += SHORT
        deadline = time.monotonic() + 10
        while self.run(self.queue.counts(Q)).lapsed < self.model.counts()["lapsed"]:
            assert time.monotonic() < deadline, "the leases do not lapse"
        self.leases += leases

    def work(self, data: st.DataObject) -> None:
        """Claim, and settle all that is held but for one."""
        self.claim(data)
        held = [lease for lease in self.leases if self.model.holder(lease) is not None]
        self.end(held[data.draw(st.integers(0, 1), "left") :], data)

    def settle(self, data: st.DataObject) -> None:
        self.end(data.draw(st.lists(self.some_lease(), max_size=6), "leases") if self.leases else [], data)

    def end(self, chosen: list[Lease], data: st.DataObject) -> None:
        settlements = [data.draw(st.sampled_from(self.fitting(lease)), "end")(lease) for lease in chosen]
        assert list(self.run(self.queue.settle(settlements))) == self.model.settle(settlements)

    def some_lease(self) -> st.SearchStrategy[Lease]:
        """Choose a lease that is held, three times out of four, or any of the last ones."""
        held = [lease for lease in self.leases if self.model.holder(lease) is not None]
        return st.sampled_from([*(held * 3), *self.leases[-max(1, len(held)) :]])

    def fitting(self, lease: Lease) -> list[Callable[[Lease], Settlement]]:
        """Return how a lease may be ended. Whether a callback may be given back that a cancel came upon is open."""
        of, number = self.model.members.get(lease.id, ("", 0))
        if not of or number >= 0 or not self.model.compositions[of].cancelled:
            return ends
        return [end for end in ends if not isinstance(end(lease), Release)]

    def finish(self, _data: st.DataObject) -> None:
        """Acknowledge what runs and can be claimed, three times over: so that walks come to an end of something."""
        for _ in range(3):
            held = [lease for lease in self.leases if self.model.holder(lease) is not None]
            held += self.claimed(50, suspects=False, length=LEASE)
            settlements = [Ack(lease, b"done") for lease in held]
            assert list(self.run(self.queue.settle(settlements))) == self.model.settle(settlements)

    def cancel(self, data: st.DataObject) -> None:
        # One at a time: whether a call finds what it lets begin itself is open.
        chosen = data.draw(st.sampled_from(self.jobs), "job")
        with self.model.together():
            answers = self.model.cancel([chosen])
        assert list(self.run(self.queue.cancel(Q, [chosen]))) == answers

    def cancel_composition(self, data: st.DataObject) -> None:
        of = data.draw(st.sampled_from([*self.names * 3, "nobody"]), "composition")
        assert self.run(self.queue.cancel_composition(Q, of)) is self.model.cancel_composition(of)

    def grow(self, data: st.DataObject) -> None:
        if not self.leases:
            return
        lease, count = data.draw(self.some_lease(), "lease"), data.draw(st.integers(0, 3), "how many")
        nodes = [
            JobNode(number=number, push=Push(queue=Q, id=f"x{number}", envelope=b"more")) for number in range(count)
        ]
        of, _ = self.model.members.get(lease.id, ("", 0))
        total = self.model.compositions[of].total if of else 0
        grown = self.model.grow(lease, nodes)
        assert self.run(self.queue.grow(lease, nodes)) is grown
        if grown:
            self.jobs += [job_id(of, number) for number in range(total, total + count)]

    def operate(self, data: st.DataObject) -> None:
        records: list[FailedRecord] = list(self.run(self.queue.failed(Q)))[:3]
        if data.draw(st.sampled_from([True, True, False]), "again"):
            assert list(self.run(self.queue.retry(records))) == self.model.retry(records)
        else:
            assert list(self.run(self.queue.forget(records))) == self.model.forget(records)

    def prune(self, _data: st.DataObject) -> None:
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


@pytest.mark.torture
@pytest.mark.timeout(300)
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

    number = int(os.environ.get("TENURE_MODEL_SEED") or random.SystemRandom().randrange(2**32))
    print(f"seed {number}")  # noqa: T201 - pytest shows it when the walk fails
    run_state_machine_as_test(
        seed(number)(cast("type[Walk]", lambda: Walk(open_store))),
        settings=settings(
            max_examples=int(os.environ.get("TENURE_MODEL_WALKS") or WALKS.get(driver, 10) * scale),
            stateful_step_count=50,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )
