"""Processes that fire the same schedules, killed and started again at random: each slot fires once, and in time.

What is pushed is leased at once by the test itself, so that the store tells when each job became ready.
"""

import asyncio
import contextlib
import pathlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple

import pytest
import redis

from tenure import Tenure
from tenure.envelope import decode
from tenure.queue import Ack, Counts
from tenure.timetables import CatchUp, Cron, Interval
from tests.schedule import jobs
from tests.schedule.ticking import READY
from tests.support import processes
from tests.support.processes import Child
from tests.support.servers import Server

QUEUES = ("default", "mail", "slow")
SCHEDULES: Mapping[str, Mapping[str, Any]] = {
    **{f"every-{length}": {"every": length} for length in (1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 30)},
    **{
        f"cron-{number}": {"cron": cron, "tz": tz}
        for number, (cron, tz) in enumerate(
            [
                ("* * * * * *", "UTC"),
                ("*/2 * * * * *", "Europe/Berlin"),
                ("*/3 * * * * *", "America/St_Johns"),
                ("1-59/4 * * * * *", "Asia/Kathmandu"),
                ("*/5 * * * * *", "UTC"),
                ("0,10,11,12,40 * * * * *", "UTC"),
                ("*/15 * * * * *", "Australia/Lord_Howe"),
                ("30 * * * * *", "UTC"),
                ("* * * * *", "Pacific/Chatham"),
                ("*/2 * * * *", "UTC"),
            ]
        )
    },
}
LATE = 1.0
STALL = 0.3


class Fired(NamedTuple):
    """A job that a schedule pushed."""

    schedule: str
    slot: float
    earliest: float
    latest: float
    """Between which times it became ready, by the store's clock."""


@pytest.fixture(params=["valkey", "postgresql", "redis-streams", "sqlite", "mariadb"])
def url(request: pytest.FixtureRequest, namespace: str, tmp_path: pathlib.Path, scale: int) -> Iterator[str]:
    if scale == 1 and request.param not in {"valkey", "postgresql"}:
        pytest.skip("only under make torture: there the contract is all that differs")
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'jobs.db'}"
    elif request.param in {"postgresql", "mariadb"}:
        yield request.getfixturevalue(request.param).url
    else:
        server: Server = request.getfixturevalue("valkey")
        yield server.url if request.param == "valkey" else server.url.replace("unix://", "unix+streams://")
        with redis.Redis(unix_socket_path=server.socket) as client:
            for key in client.scan_iter(match=f"*{namespace}*", count=1000):
                client.unlink(key)


class Taking:
    """Leases and ends whatever is ready."""

    def __init__(self, app: Tenure) -> None:
        self._app = app
        self.fired: list[Fired] = []
        self.stopped = False

    async def run(self) -> None:
        queue, store = self._app.queue(), self._app.schedules.store()
        while not self.stopped:
            # A job has waited until it was claimed, which was between these two times.
            before = (await store.schedules("default")).now
            claimed = await queue.claim(QUEUES, limit=100, lease=60, wait=0)
            after = (await store.schedules("default")).now
            for lease in claimed.leases:
                meta, waited = decode(lease.envelope).meta, lease.waited or 0.0
                slot = datetime.fromisoformat(meta["slot"]).timestamp()
                self.fired.append(Fired(meta["schedule"], slot, before - waited, after - waited))
            await queue.settle([Ack(lease) for lease in claimed.leases])
            await asyncio.sleep(0.02)  # handler: it takes them at a pace of its own


class Crew:
    """Three processes, of which now and then one is killed, and started again a little later."""

    def __init__(self, url: str, namespace: str, rng: random.Random) -> None:
        self._arguments = ("-m", "tests.schedule.ticking", url, namespace)
        self._rng = rng
        self.lives: list[list[float]] = []
        """From when to when each ticked, by this machine's clock, which is the store's."""
        self.kills = 0
        self.stalls: list[tuple[float, float]] = []
        """From when to when this machine gave this process, too, no time to run: nothing can be told of the others."""

    async def pulse(self) -> None:
        while True:
            before = time.time()
            await asyncio.sleep(0.02)  # handler: the pulse itself
            if time.time() - before > STALL:
                self.stalls.append((before, time.time()))

    def tick(self) -> AbstractContextManager[Child]:
        return processes.python(*self._arguments)

    async def member(self, end: float) -> None:
        while time.time() < end:
            with self.tick() as child:
                await asyncio.to_thread(child.wait_for_output, READY, 30)
                life = [time.time(), float("inf")]
                self.lives.append(life)
                long = min(self._rng.uniform(1.0, 8.0), max(0.0, end - time.time()))
                await asyncio.sleep(long)  # handler: so long it lives
                life[1] = time.time()
                if time.time() < end:
                    self.kills += 1
                child.kill9()
            await asyncio.sleep(self._rng.uniform(0.0, 1.5))  # handler: so long it is dead

    def watched(self, slot: float) -> bool:
        """Tell whether one process ticked from shortly before a slot to when it was to have fired."""
        if any(began < slot + LATE and slot < ended for began, ended in self.stalls):
            return False
        return any(began < slot - 0.1 and slot + LATE <= ended for began, ended in self.lives)


@contextlib.asynccontextmanager
async def taking(app: Tenure) -> AsyncIterator[Taking]:
    taker = Taking(app)
    task = asyncio.create_task(taker.run())
    try:
        yield taker
    finally:
        taker.stopped = True
        await task


async def begun(app: Tenure, schedules: Mapping[str, Mapping[str, Any]], **terms: Any) -> dict[str, float]:
    """Store the schedules; return the cursor of each."""
    call = app.job(name="plain")(jobs.plain).bind()
    for number, (name, when) in enumerate(schedules.items()):
        await app.schedules.add(name, call.options(queue=QUEUES[number % len(QUEUES)]), **when, **terms)
    return {name: (await app.schedules.find(name)).cursor for name in schedules}


def slots(name: str, after: float, until: float) -> list[float]:
    when = SCHEDULES[name]
    timetable = Interval(when["every"]) if "every" in when else Cron(when["cron"], when["tz"])
    found = []
    for slot in timetable.slots(after):
        if slot > until:
            break
        found.append(slot)
    return found


@pytest.mark.torture
@pytest.mark.timeout(300)
async def test_three_processes_that_are_killed_at_random_fire_each_slot_once_and_in_time(
    url: str, namespace: str, scale: int, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = 180.0 if scale > 1 else 8.0
    app = Tenure(url, namespace=namespace)
    cursors = await begun(app, SCHEDULES, catch_up="all")
    crew = Crew(url, namespace, random.Random(7))
    pulse = asyncio.create_task(crew.pulse())
    async with taking(app) as taker:
        end = time.time() + seconds
        await asyncio.gather(*(crew.member(end) for _ in range(3)))
        # One more, which finds nothing undone, or does it.
        last = time.time()
        with crew.tick() as child:
            await asyncio.to_thread(child.wait_for_output, READY, 30)
            await until_fired(taker, {name: slots(name, cursor, last) for name, cursor in cursors.items()})
            child.kill9()
        await drained(app)
    pulse.cancel()
    fired = Counter((one.schedule, one.slot) for one in taker.fired)
    assert set(fired.values()) == {1}, [slot for slot, times in fired.items() if times > 1]
    assert {(name, slot) for name, cursor in cursors.items() for slot in slots(name, cursor, last)} <= set(fired)
    assert all(slot in slots(name, cursors[name], time.time()) for name, slot in fired), "and nothing else"
    assert [one for one in taker.fired if one.latest < one.slot] == [], "none is early"
    lateness = sorted(one.earliest - one.slot for one in taker.fired if crew.watched(one.slot))
    with capsys.disabled():
        print(  # noqa: T201 - its figures
            f"\n{len(fired)} slots, {crew.kills} kills, {len(crew.stalls)} stalls, "
            f"{len(lateness)} slots with a process alive: "
            f"late by {lateness[len(lateness) // 2]:.3f} s in the middle, {lateness[-1]:.3f} s at most"
        ) if scale > 1 else None
    assert lateness
    assert lateness[-1] <= LATE
    await app.aclose()


async def until_fired(taker: Taking, wanted: Mapping[str, Sequence[float]]) -> None:
    goal = {(name, slot) for name, times in wanted.items() for slot in times}

    async def there() -> bool:
        return goal <= {(one.schedule, one.slot) for one in taker.fired}

    await processes.eventually_async(there, 60, what="every slot has fired")


async def drained(app: Tenure) -> None:
    async def empty() -> bool:
        counted: list[Counts] = [await app.counts(queue) for queue in QUEUES]
        return not any(counts.size or counts.leased for counts in counted)

    await processes.eventually_async(empty, 20)


@pytest.mark.torture
@pytest.mark.timeout(300)
async def test_an_outage_of_all_processes_is_caught_up_with_as_each_schedule_says(
    url: str, namespace: str, scale: int
) -> None:
    if scale == 1:
        pytest.skip("an outage of a minute: make torture; tests/schedule/test_ticker.py has one on a moved clock")
    outage = 60.0
    app = Tenure(url, namespace=namespace)
    crew = Crew(url, namespace, random.Random(7))
    call = app.job(name="plain")(jobs.plain).bind()
    policies: tuple[CatchUp, ...] = ("skip", "last", "all")
    for policy in policies:
        await app.schedules.add(policy, call, every=1, catch_up=policy)
    async with taking(app) as taker:
        with crew.tick() as child:
            await asyncio.to_thread(child.wait_for_output, READY, 30)
            await until_fired(taker, {policy: [float(int(time.time()) + 1)] for policy in policies})
            child.kill9()
        await asyncio.sleep(outage)  # handler: nobody is there
        cursors = {policy: (await app.schedules.find(policy)).cursor for policy in policies}
        again = time.time()
        with crew.tick() as child:
            await asyncio.to_thread(child.wait_for_output, READY, 30)
            began = time.time()
            await until_fired(taker, {policy: [float(int(began) + 2)] for policy in policies})
            child.kill9()
        await drained(app)
    missed = {
        policy: [float(slot) for slot in range(round(cursors[policy]) + 1, int(again) + 1)] for policy in policies
    }
    fired = {policy: sorted(one.slot for one in taker.fired if one.schedule == policy) for policy in policies}
    assert all(len(times) == len(set(times)) for times in fired.values())
    during = {policy: [slot for slot in missed[policy] if slot in fired[policy]] for policy in policies}
    assert during["all"] == missed["all"]
    # The last one before it looked; which may be one that fell due while the process started.
    assert during["last"] in ([], missed["last"][-1:])
    assert len([slot for slot in fired["last"] if cursors["last"] < slot <= began]) >= 1
    assert all(slot > again - 11 for slot in during["skip"])
    assert len(missed["all"]) > 55
    assert len(during["skip"]) < len(missed["skip"]) - 40
    await app.aclose()
