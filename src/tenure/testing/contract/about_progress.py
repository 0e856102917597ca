"""Progress belongs to the attempt that tells it: written while its lease is current, and gone with it (P3)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import msgspec
import pytest

from tenure.naming import new_token
from tenure.queue import Ack, Drop, Fail, Lease, Push, Queue, Release, SetAside, Settlement
from tenure.results import Progress, ProgressReport
from tenure.testing.contract.operators import results
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    claim,
    claim_one,
    done,
    job,
    lapsed,
    numbered,
    push,
    pushed_and_claimed,
)
from tenure.testing.contract.store import StoreUnderTest

KEPT: Push = job("x", keep=60.0)
HALF = Progress(0.5, "half | way\n¾ \U0001f40c")


async def report(queue: Queue, lease: Lease, progress: Progress = HALF) -> bool:
    (answer,) = await results(queue).report([ProgressReport(lease, progress)])
    return answer


async def progress(queue: Queue, job_id: str = "x") -> Progress | None:
    (found,) = await results(queue).progress("q", [job_id])
    return found


async def test_the_last_progress_of_a_running_job_is_read_by_anybody(store: StoreUnderTest) -> None:
    results(store.queue)
    lease = await pushed_and_claimed(store.queue, KEPT)
    assert await progress(store.queue) is None
    for told in (Progress(0.0), HALF, Progress(1.0, "n" * 500), Progress(1 / 3, "")):
        assert await report(store.queue, lease, told)
        assert await progress(store.another()) == told


async def test_a_job_that_keeps_nothing_has_no_progress(store: StoreUnderTest) -> None:
    results(store.queue)
    lease = await pushed_and_claimed(store.queue, job("x"))
    assert not await report(store.queue, lease)
    assert await progress(store.queue) is None


@pytest.mark.parametrize("kind", ["ack", "drop", "fail", "release", "later", "aside"])
async def test_progress_ends_with_its_lease_and_a_settled_one_reports_nothing(store: StoreUnderTest, kind: str) -> None:
    results(store.queue)
    lease = await pushed_and_claimed(store.queue, KEPT)
    assert await report(store.queue, lease)
    settlements: dict[str, Settlement] = {
        "ack": Ack(lease, b"1"),
        "drop": Drop(lease),
        "fail": Fail(lease, WHY),
        "release": Release(lease),
        "later": Release(lease, delay=60),
        "aside": SetAside(lease, "unreadable"),
    }
    await done(store.queue, settlements[kind])
    assert await progress(store.queue) is None
    assert not await report(store.queue, lease)
    assert await progress(store.queue) is None
    (end,) = await results(store.queue).endings("q", ["x"])
    assert (end is not None) == (kind in {"ack", "drop", "fail"})


async def test_a_reclaimed_lease_reports_nothing_and_its_progress_is_gone(store: StoreUnderTest) -> None:
    results(store.queue)
    past = await pushed_and_claimed(store.queue, KEPT, lease=SHORT)
    assert await report(store.queue, past)
    await lapsed(store.queue)
    assert await report(store.queue, past, Progress(0.6))  # nobody has reclaimed it yet
    present = await claim_one(store.queue)
    assert await progress(store.queue) is None
    assert not await report(store.queue, past)
    assert await report(store.queue, present, Progress(0.1))
    assert not await report(store.another(), past)
    assert await progress(store.queue) == Progress(0.1)


async def test_another_token_reports_nothing(store: StoreUnderTest) -> None:
    results(store.queue)
    lease = await pushed_and_claimed(store.queue, KEPT)
    assert not await report(store.queue, msgspec.structs.replace(lease, token=new_token()))
    assert not await report(store.queue, msgspec.structs.replace(lease, incarnation=lease.incarnation + 1))
    assert await progress(store.queue) is None


async def test_a_new_job_with_the_same_id_begins_without_progress(store: StoreUnderTest) -> None:
    results(store.queue)
    past = await pushed_and_claimed(store.queue, KEPT)
    assert await report(store.queue, past)
    await done(store.queue, Ack(past, b"1"))
    await pushed_and_claimed(store.queue, KEPT)
    assert await progress(store.queue) is None
    assert not await report(store.queue, past)
    assert await progress(store.queue) is None


async def test_many_reports_go_in_one_call_and_are_answered_in_order(store: StoreUnderTest) -> None:
    results(store.queue)
    await push(store.queue, *numbered(600, keep=60.0), job("x", queue="other", keep=60.0))
    leases = await claim(store.queue, 300) + await claim(store.queue, 300)
    leases += await claim(store.queue, 1, queues=["other"])
    await done(store.queue, Ack(leases[1], b"1"), Release(leases[2]))
    told = [ProgressReport(lease, Progress(place / 1000)) for place, lease in enumerate(leases)]
    answers = await results(store.queue).report(told)
    assert list(answers) == [place not in {1, 2} for place in range(601)]
    found = await results(store.queue).progress("q", [lease.id for lease in leases[:600]])
    assert [one and one.fraction for one in found] == [
        None if place in {1, 2} else place / 1000 for place in range(600)
    ]
    assert await results(store.queue).progress("other", ["x", "y"]) == [Progress(0.6), None]


async def test_a_call_without_reports_changes_nothing(store: StoreUnderTest) -> None:
    results(store.queue)
    assert list(await results(store.queue).report([])) == []
