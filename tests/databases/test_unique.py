"""Unique jobs on a database server: who waits for whom, and what a transaction that is rolled back leaves."""

import asyncio
from collections.abc import Callable

import pytest
import sqlalchemy

from tenure.queue import Ack, Fail, Failure, Push, Queue
from tenure.testing.contract.steps import Q, claim, claim_one, done, failed_jobs
from tests.databases.support import Place

Keep = Callable[[Queue], Queue]

A, B = "a" * 32, "b" * 32


def unique(name: str, text: str = A) -> Push:
    return Push(queue=Q, id=name, envelope=b"{}", unique=text)


async def told(queue: Queue, *jobs: Push) -> list[tuple[str, str]]:
    return [(one.id, one.outcome) for one in await queue.push(jobs)]


async def test_one_waits_or_runs_at_a_time(place: Place, opened: Keep) -> None:
    queue = opened(place.queue())
    assert await told(queue, unique("1"), unique("2"), unique("3", B), unique("1", B)) == [
        ("1", "stored"), ("1", "held"), ("3", "stored"), ("1", "held"),
    ]  # fmt: skip
    assert await told(queue, unique("4"), unique("5", B)) == [("1", "held"), ("3", "held")]
    first, second = await claim(queue, 2)
    assert await told(queue, unique("4")) == [("1", "held")]
    await done(queue, Ack(first), Fail(second, Failure(reason="exception")))
    assert await told(queue, unique("4"), unique("5", B), unique("3", A)) == [
        ("4", "stored"), ("5", "stored"), ("3", "held"),
    ]  # fmt: skip
    (failed,) = await failed_jobs(queue).failed(Q)
    assert await failed_jobs(queue).retry([failed]) == [False]
    await done(queue, *map(Ack, await claim(queue, 2)))
    assert await failed_jobs(queue).retry([failed]) == [True]
    assert await told(queue, unique("6", B)) == [("3", "held")]


async def test_a_job_that_was_not_stored_keeps_no_other_of_its_call_away(place: Place, opened: Keep) -> None:
    queue = opened(place.queue())
    await told(queue, unique("1", ""))
    assert await told(queue, unique("1"), unique("2"), unique("3")) == [
        ("1", "held"), ("2", "stored"), ("2", "held"),
    ]  # fmt: skip


async def test_what_was_cleared_keeps_nothing_away(place: Place, opened: Keep) -> None:
    queue = opened(place.queue())
    await told(queue, *(unique(f"x{n}", f"{n:032x}") for n in range(300)))
    assert await queue.clear(Q) == 300
    assert await told(queue, *(unique(f"y{n}", f"{n:032x}") for n in range(300))) == [
        (f"y{n}", "stored") for n in range(300)
    ]


async def test_of_many_that_push_at_once_one_stores(place: Place, opened: Keep) -> None:
    queues = [opened(place.queue()) for _ in range(4)]
    for turn in range(10):
        names = [f"{turn}-{n}" for n in range(len(queues))]
        answers = await asyncio.gather(
            *(told(queue, unique(name), unique(f"{name}b", B)) for queue, name in zip(queues, names, strict=True))
        )
        for of_text in range(2):
            assert sorted(answer[of_text][1] for answer in answers) == ["held"] * 3 + ["stored"]
            assert len({answer[of_text][0] for answer in answers}) == 1
        await done(queues[0], *map(Ack, await claim(queues[0], 10)))


@pytest.mark.parametrize("commits", [True, False])
async def test_a_second_push_waits_for_the_end_of_the_first(place: Place, opened: Keep, commits: bool) -> None:
    queue = opened(place.queue())
    await told(queue, unique("0"))
    await done(queue, Ack(await claim_one(queue)))
    ((number, line),) = place.ask("SELECT number, line FROM tenure_queues WHERE namespace = :n", n=place.namespace)
    with place.database.engine().connect() as connection:
        begun = connection.begin()
        connection.execute(
            sqlalchemy.text(
                "INSERT INTO tenure_jobs (incarnation, queue, id, shelf, state, place, entry, since, priority, "
                "envelope, unique_key, locked) "
                "VALUES (-:line, :queue, 'first', :line, 0, 0, 7, 7, 0, :envelope, :u, :u)"
            ),
            {"queue": number, "line": line, "envelope": b"{}", "u": A},
        )
        second = asyncio.ensure_future(told(queue, unique("second")))
        await asyncio.wait([second], timeout=0.3)
        assert not second.done()
        begun.commit() if commits else begun.rollback()
    assert await second == [("first", "held") if commits else ("second", "stored")]
