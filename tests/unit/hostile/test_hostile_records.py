"""Hostile records in the store: parked, and nothing of them is run, imported or told.

Numbered as in the list of hostile inputs.
"""

import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tenure import Tenure
from tenure.queue import Ack, Lease, Release, Renewal, Settled
from tests.support.hostile import QUEUE, Seen, after_a_good_job, call, drain, left, put, stored


class Bomb:
    """Pickles to a call that makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (pathlib.Path.touch, (pathlib.Path(self.path),))


# S10
async def test_01_pickle_bytes_are_set_aside_and_never_unpickled(
    app: Tenure, seen: Seen, tmp_path: pathlib.Path
) -> None:
    marker = tmp_path / "unpickled"
    bomb = pickle.dumps(Bomb(str(marker)))
    await put(app, bomb)
    await put(app, stored(bomb))
    await put(app, stored(msgspec.json.encode([bomb])))  # a string of base64, and nothing more
    counts = await after_a_good_job(app)
    assert left(counts) == {"unreadable": 2}
    assert [type(value) for value in seen.values] == [str, str]
    assert not marker.exists()


# W5
async def test_02_a_name_that_is_no_job_of_ours_is_released_for_another_worker_and_never_imported(
    app: Tenure, seen: Seen, tmp_path: pathlib.Path
) -> None:
    marker = tmp_path / "ran"
    args = msgspec.json.encode([f"touch {marker}"])
    for name in ["os:system", "os.system", "builtins.eval", "__import__", "hostile.keep.__globals__"]:
        await put(app, stored(args, name=name))
    assert left(await after_a_good_job(app)) == {"delayed": 5}
    assert seen.values == ["good"]
    assert not marker.exists()


async def test_02_and_fails_as_an_unknown_job_when_nobody_took_it_for_long(app: Tenure) -> None:
    await put(app, stored(b"[]", name="os:system"))
    assert left(await drain(app, unknown_limit=0.0)) == {"failed": 1}
    [record] = await app.failed(QUEUE)
    assert record.failure.reason == "unknown-job"


async def test_03_deep_brackets_in_the_store_are_set_aside(app: Tenure, seen: Seen) -> None:
    for envelope in [
        b"[" * 100_000,
        b"[" * 50_000 + b"]" * 50_000,
        stored(b"[" * 50_000 + b"]" * 50_000),
        stored(b"[]", b'{"value":' * 10_000 + b"1" + b"}" * 10_000),
        stored(b"[" * 33 + b"]" * 33),
    ]:
        await put(app, envelope)
    assert left(await after_a_good_job(app)) == {"unreadable": 5}
    assert seen.values == ["good"]


async def test_05_an_integer_of_5000_digits_in_the_store_fails_its_job(app: Tenure, seen: Seen) -> None:
    await put(app, stored(b"[" + b"7" * 5_000 + b"]"))
    assert left(await after_a_good_job(app)) == {"failed": 1}
    [record] = await app.failed(QUEUE)
    assert record.failure.reason == "arguments"
    assert "777" not in str(record.failure)
    assert seen.values == ["good"]


async def test_12_text_that_is_no_utf8_in_the_store_never_reaches_a_handler(app: Tenure, seen: Seen) -> None:
    for args in [b'["\xff"]', b"\xef\xbb\xbf[1]", b'["\xc3\x28"]', b'["\\ud800"]', b"[\xff]"]:
        await put(app, stored(args))
    counts = await after_a_good_job(app)
    assert counts.unreadable + counts.failed == 5
    assert seen.values == ["good"]


async def test_13_the_last_of_two_equal_keys_wins_on_every_store(app: Tenure, seen: Seen) -> None:
    await put(app, stored(b"[]", b'{"value":1,"value":{"a":1,"a":2}}'))
    assert left(await drain(app)) == {}
    assert seen.values == [{"a": 2}]


WHOLE = stored(b"[1]")


async def test_15_a_broken_record_is_set_aside(app: Tenure, seen: Seen) -> None:
    for envelope in [
        b"",
        b"\x00",
        b"{}",
        WHOLE[: len(WHOLE) // 2],
        WHOLE[:-1],
        WHOLE + b"}",
        b'{"v":1,"id":"a","queue":"hostile"}',
        b'{"v":1,"name":"hostile.keep"}',
        stored(b"[1]", v=0),
        stored(b"[1]", v="1"),
    ]:
        await put(app, envelope)
    assert left(await after_a_good_job(app)) == {"unreadable": 10}
    assert seen.values == ["good"]


async def test_15_a_record_of_a_newer_version_is_released_for_a_newer_worker_without_an_attempt(
    app: Tenure, seen: Seen
) -> None:
    await put(app, b'{"v":2,"job":{"of":"another shape"}}')
    before = await app.queue().claim([QUEUE], limit=1, lease=30.0, wait=0.0)
    assert [lease.attempt for lease in before.leases] == [1]
    await app.queue().settle([Release(before.leases[0], free=True)])
    assert left(await after_a_good_job(app)) == {"delayed": 1}
    assert seen.values == ["good"]


FORGED: list[dict[str, Any]] = [
    {"max_attempts": -1},
    {"max_attempts": 0},
    {"max_attempts": 2**63},
    {"priority": 2**63},
    {"timeout": -1.0},
    {"timeout": "x"},
    {"backoff": -1.0},
    {"queue": "}:{other"},
    {"id": "x\r\nSET a b"},
    {"name": "\x1b[2J"},
    {"meta": "x"},
]


async def test_29_a_forged_record_is_set_aside(app: Tenure, seen: Seen) -> None:
    for fields in FORGED:
        await put(app, stored(b"[1]", **fields))
    assert left(await after_a_good_job(app)) == {"unreadable": len(FORGED)}
    assert seen.values == ["good"]


async def test_29_a_record_with_the_id_of_another_job_does_not_touch_that_job(app: Tenure, seen: Seen) -> None:
    other = await app.push(call(app, "keep", "other").options(delay=3600))
    await put(app, stored(b'["forged"]', id=other.id), job_id="forged")
    assert left(await drain(app)) == {"delayed": 1, "unreadable": 1}
    assert [str(state) for state in await app.states(QUEUE, [other.id, "forged"])] == ["delayed", "gone"]


@pytest.mark.parametrize(
    "forge",
    [
        lambda lease: msgspec.structs.replace(lease, token="another worker's"),
        lambda lease: msgspec.structs.replace(lease, fence=2**63, token="another worker's"),
        lambda lease: msgspec.structs.replace(lease, id="another-job"),
        lambda lease: msgspec.structs.replace(lease, queue="another-queue"),
        lambda lease: msgspec.structs.replace(lease, token="x|y|z"),
        lambda lease: msgspec.structs.replace(lease, token=""),
    ],
    ids=["token", "fence", "id", "queue", "separators", "empty"],
)
async def test_29_a_forged_lease_changes_nothing(app: Tenure, forge: Callable[[Lease], Lease]) -> None:
    await app.push(call(app, "keep", 1))
    queue = app.queue()
    claimed = await queue.claim([QUEUE], limit=1, lease=30.0, wait=0.0)
    [lease] = claimed.leases
    before = await app.counts(QUEUE)
    forged = forge(lease)
    assert list(await queue.settle([Ack(forged)])) == [Settled.STALE]
    assert list(await queue.renew([forged])) == [Renewal.LOST]
    assert left(await app.counts(QUEUE)) == left(before) == {"leased": 1}
    assert list(await queue.settle([Ack(lease)])) == [Settled.DONE]
