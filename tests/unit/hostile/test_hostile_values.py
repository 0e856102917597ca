"""Odd values that are allowed: exact by every road, on every store.

Numbered as in the list of hostile inputs.
"""

import asyncio
import pathlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tenure import Call, Tenure
from tenure.envelope import MAX_BYTES, decode, encode
from tenure.errors import InvalidOption, PayloadTooLarge, PushIncomplete, Refused
from tests.support.hostile import (
    QUEUE,
    Seen,
    call,
    drain,
    left,
    stored,
)

SERVER_COMMAND = "FLUSH" + "ALL"

EXACT: list[Any] = [
    130775545883395173,
    2**53 + 1,
    2**63 - 1,
    2**64,
    2**64 + 1,
    -(2**70),
    10**4300 - 1,
    1.1,
    -0.0,
    [],
    {},
    "",
    None,
    [[], {}, [[]], {"a": []}],
    "nul \x00 inside",
    "Zoë 😀 \u2028 \u202e",
    "'); DROP TABLE jobs; --",
    "%s %d {0} $1 ? :name",
    f']] redis.call("{SERVER_COMMAND}") --',
    "a|b|c\r\n*1\r\n",
]


# K19, S10, S16
async def test_06_11_16_21_22_values_are_exact_by_every_road(app: Tenure, seen: Seen) -> None:
    everything: Any = [EXACT, {str(index): value for index, value in enumerate(EXACT)}]
    await app.push(call(app, "keep", everything))
    await app.push(call(app, "keep", everything).options(delay=0.001))
    await app.push(call(app, "keep", value=everything).options(priority=7, meta={"a": EXACT[-1]}))
    await app.push_many([call(app, "keep", everything)])
    while len(seen.values) < 4:
        await drain(app)
    assert left(await app.counts(QUEUE)) == {}
    for value in seen.values:
        assert repr(value) == repr(everything)


async def test_06_values_are_exact_after_a_retry_and_out_of_the_failed_store(app: Tenure, seen: Seen) -> None:
    handle = await app.push(call(app, "twice", EXACT).options(max_attempts=1))
    assert left(await drain(app)) == {"failed": 1}
    await app.retry(QUEUE, [handle.id])
    assert left(await drain(app)) == {}
    assert [repr(value) for value in seen.values] == [repr(EXACT)] * 2
    seen.values.clear()
    await app.push(call(app, "twice", EXACT).options(max_attempts=2))
    assert left(await drain(app)) == {}
    assert [repr(value) for value in seen.values] == [repr(EXACT)] * 2


async def test_07_an_id_of_digits_beyond_a_double_stays_exact_and_apart_from_its_neighbours(
    app: Tenure, seen: Seen
) -> None:
    ids = ["9007199254740992", "9007199254740993", "9007199254740994", "3e8", "300000000"]
    handles = [await app.push(call(app, "keep", each).options(id=each)) for each in ids]
    assert [handle.id for handle in handles] == ids
    assert left(await app.counts(QUEUE)) == {"ready": 5}
    claimed = await app.queue().claim([QUEUE], limit=5, lease=30.0, wait=0.0)
    assert [lease.id for lease in claimed.leases] == ids


def test_07_a_priority_beyond_its_range_is_refused(quick: Tenure) -> None:
    with pytest.raises(InvalidOption, match="priority"):
        call(quick, "keep", 1).options(priority=9007199254740993)


async def test_14_typed_containers_come_back_as_what_they_were(app: Tenure, seen: Seen) -> None:
    days, tags = {1: (2, 3), -4: ()}, frozenset({"a", ""})
    await app.push(call(app, "typed", days, tags))
    assert left(await drain(app)) == {}
    assert seen.values == [(days, tags)]


async def test_21_names_in_the_statements_of_a_store_cannot_be_given_from_outside(
    tmp_path: pathlib.Path, namespace: str
) -> None:
    for hostile in ["'; DROP TABLE jobs; --", 'a"b', "a b", "a;b", ""]:
        with pytest.raises(Refused):
            Tenure(f"sqlite:///{tmp_path / 'jobs.db'}", namespace=hostile)


async def test_23_names_that_differ_in_case_are_different_in_every_store(app: Tenure) -> None:
    for queue in ("Case", "case"):
        for job_id in ("A", "a"):
            handle = await app.push(call(app, "keep", 1).options(queue=queue, id=job_id))
            assert not handle.held
    assert [(await app.counts(queue)).ready for queue in ("Case", "case", "CASE")] == [2, 2, 0]
    assert set(await app.queues()) >= {"Case", "case"}
    await app.clear("Case")
    assert (await app.counts("case")).ready == 2


def test_23_names_that_are_equal_after_normalisation_are_refused_everywhere(quick: Tenure) -> None:
    for name in ("caf\u00e9", "cafe\u0301", "\uff43afe"):
        with pytest.raises(InvalidOption):
            call(quick, "keep", 1).options(queue=name)
        with pytest.raises(InvalidOption):
            call(quick, "keep", 1).options(id=name)


async def test_17_a_payload_of_one_byte_over_the_limit_is_refused_with_both_sizes(app: Tenure, seen: Seen) -> None:
    base = len(encode(decode(stored(b'[""]', id="x" * 36)), max_bytes=10**6))
    fitting = "x" * (MAX_BYTES - base)
    with pytest.raises(PayloadTooLarge, match=r"60001 bytes, over the limit of 60000"):
        await app.push(call(app, "keep", fitting + "x").options(id="y" * 36))
    assert left(await app.counts(QUEUE)) == {}
    await app.push(call(app, "keep", fitting).options(id="y" * 36))
    await drain(app)
    assert seen.values == [fitting]


async def test_17_a_payload_of_64_megabytes_is_refused(quick: Tenure) -> None:
    with pytest.raises(PayloadTooLarge, match="over the limit of 60000"):
        await quick.push(call(quick, "keep", "x" * 64_000_000))
    assert left(await quick.counts(QUEUE)) == {}


async def test_18_a_bulk_push_is_sent_in_parts_and_can_be_repeated_by_its_ids(app: Tenure) -> None:
    def calls() -> Iterator[Call[Any]]:
        for number in range(1_300):
            yield call(app, "keep", number).options(id=f"job-{number}")

    def broken() -> Iterator[Call[Any]]:
        for number, one in enumerate(calls()):
            yield one if number < 1_200 else one.options(meta={"too": "x" * 4_000}, id="x" * 64).options(timeout=-1)

    with pytest.raises((PushIncomplete, InvalidOption)):
        await app.push_many(broken())
    stored_so_far = (await app.counts(QUEUE)).ready
    assert stored_so_far % 500 == 0
    handles = await app.push_many(calls())
    assert sum(handle.held for handle in handles) == stored_so_far
    assert left(await app.counts(QUEUE)) == {"ready": 1_300}


async def test_18_a_bulk_push_draws_its_calls_as_it_sends_them(quick: Tenure) -> None:
    drawn = 0

    def calls() -> Iterator[Call[Any]]:
        nonlocal drawn
        for number in range(2_000):
            drawn += 1
            yield call(quick, "keep", number)

    pushing = asyncio.create_task(quick.push_many(calls()))
    claimed = await quick.queue().claim([QUEUE], limit=1, lease=30.0, wait=10.0)
    assert claimed.leases
    assert drawn < 2_000
    await pushing
    assert drawn == 2_000


class Odd(tzinfo):
    """A zone whose offset is not of whole minutes, and that knows no more."""

    def utcoffset(self, _moment: datetime | None, /) -> timedelta:
        return timedelta(hours=1, seconds=7, microseconds=3)

    def dst(self, _moment: datetime | None, /) -> None:
        return None

    def tzname(self, _moment: datetime | None, /) -> str:
        return "Odd/\x1b[2J"


async def test_25_a_moment_in_the_past_means_now_and_a_far_one_is_kept(app: Tenure, seen: Seen) -> None:
    past = datetime(1970, 1, 1, tzinfo=UTC)
    await app.push(call(app, "keep", "past").options(at=past))
    await app.push(call(app, "keep", "odd").options(at=datetime(2001, 1, 1, tzinfo=Odd())))
    await app.push(call(app, "keep", "first year").options(at=datetime.min.replace(tzinfo=UTC)))
    await app.push(call(app, "keep", "far").options(at=datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)))
    assert left(await drain(app)) == {"delayed": 1}
    assert seen.values == ["past", "odd", "first year"]


def test_25_a_moment_without_a_zone_is_refused(quick: Tenure) -> None:
    with pytest.raises(InvalidOption, match="must have a time zone"):
        call(quick, "keep", 1).options(at=datetime(2030, 1, 1))  # noqa: DTZ001


def test_25_a_moment_in_the_gap_of_a_clock_going_forward_is_read_with_the_offset_before_it(quick: Tenure) -> None:
    gap = datetime(2035, 3, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    made = call(quick, "keep", 1).options(at=gap)
    assert made.overrides.at == datetime(2035, 3, 25, 1, 30, tzinfo=UTC).timestamp()
