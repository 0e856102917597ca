"""Hostile and odd inputs, each under its number: what is refused at the push, what is parked, what is exact.

Refused means a typed error before anything is sent. Parked means that the job goes to a dead state, the worker goes on,
and nothing of the content is told. Where a store is involved, every store gives the same answer.
"""

import asyncio
import logging
import math
import pathlib
import pickle
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
import redis.asyncio

from tenure import Call, Injected, Retry, Sensitive, Tenure
from tenure.envelope import MAX_BYTES, decode, encode
from tenure.errors import InvalidOption, NotEncodable, NotSupported, PayloadTooLarge, PushIncomplete, Refused
from tenure.queue import Ack, Counts, Lease, Push, Release, Renewal, Settled
from tenure.worker import ExitReason, Worker, WorkerOptions
from tests.support.servers import Server

QUEUE = "hostile"


class Seen:
    """What handlers were called with."""

    def __init__(self) -> None:
        self.values: list[Any] = []


async def keep(value: Any, *, seen: Seen = Injected) -> None:
    seen.values.append(value)


async def keep_text(value: str, *, seen: Seen = Injected) -> None:
    seen.values.append(value)


async def keep_secret(value: str, token: Annotated[str, Sensitive], *, seen: Seen = Injected) -> None:
    seen.values.append(value)


async def twice(value: Any, *, seen: Seen = Injected) -> None:
    seen.values.append(value)
    if len(seen.values) < 2:
        raise Retry(after=0.0)


async def raising(kind: str, *, seen: Seen = Injected) -> None:
    seen.values.append(kind)
    raise RAISED[kind]()


def returning(kind: str, *, seen: Seen = Injected) -> Any:
    seen.values.append(kind)
    return RETURNED[kind]()


async def typed(days: dict[int, tuple[int, ...]], tags: frozenset[str], *, seen: Seen = Injected) -> None:
    seen.values.append((days, tags))


class TextRaises(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class TextIsHuge(Exception):
    def __str__(self) -> str:
        return "x" * 100_000_000


class Own(BaseException):
    pass


RAISED: dict[str, Callable[[], BaseException]] = {
    "base": Own,
    "interrupt": KeyboardInterrupt,
    "exit": lambda: SystemExit(3),
    "cancelled": asyncio.CancelledError,
    "group": lambda: BaseExceptionGroup("many", [ValueError("one"), Own("two")]),
    "text raises": TextRaises,
    "text is huge": TextIsHuge,
}


def endless() -> Iterator[int]:
    while True:
        yield 1


RETURNED: dict[str, Callable[[], Any]] = {
    "nothing that JSON has": object,
    "an endless generator": endless,
    "far too much": lambda: "x" * 10_000_000,
    "itself": lambda: (loop := [], loop.append(loop))[0],  # type: ignore[func-returns-value]
}

JOBS = (keep, keep_text, keep_secret, twice, raising, returning, typed)


@pytest.fixture
def seen() -> Seen:
    return Seen()


def equipped(url: str, namespace: str, seen: Seen) -> Tenure:
    """Return an application with the jobs of this module."""
    app = Tenure(url, namespace=namespace)
    app.services.register_value(Seen, seen)
    for function in JOBS:
        app.job(name=f"hostile.{function.__name__}", queue=QUEUE)(function)
    return app


@pytest.fixture(params=["memory", "sqlite", "valkey"])
async def app(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path, namespace: str, seen: Seen
) -> AsyncIterator[Tenure]:
    """An application on each kind of store."""
    server: Server | None = None
    url = "memory://"
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'jobs.db'}"
    elif request.param == "valkey":
        server = request.getfixturevalue("valkey")
        url = server.url
    made = equipped(url, namespace, seen)
    yield made
    await made.aclose()
    if server is not None:
        async with redis.asyncio.Redis(unix_socket_path=server.socket) as client:
            async for key in client.scan_iter(match=f"*{namespace}*", count=1000):
                await client.unlink(key)


@pytest.fixture
def quick(namespace: str, seen: Seen) -> Tenure:
    """The same in memory only, for what is decided before the store."""
    return equipped("memory://", namespace, seen)


def call(app: Tenure, name: str, *args: Any, **kwargs: Any) -> Call[Any]:
    definition = app.registry.get(f"hostile.{name}")
    assert definition is not None
    return Call(definition, *definition.encode(args, kwargs))


async def put(app: Tenure, envelope: bytes, job_id: str | None = None) -> None:
    """Store a record as another program would."""
    await app.queue().push([Push(queue=QUEUE, id=job_id or uuid.uuid4().hex, envelope=envelope)])


def stored(args: bytes, kwargs: bytes = b"{}", *, name: str = "hostile.keep", **fields: Any) -> bytes:
    """Return an envelope with these arguments, made without the codec."""
    rest = msgspec.json.encode({"v": 1, "id": "forged", "name": name, "queue": QUEUE} | fields)
    return rest[:-1] + b',"args":' + args + b',"kwargs":' + kwargs + b"}"


async def drain(app: Tenure, **options: Any) -> Counts:
    """Run a worker until nothing is ready, and return what is left."""
    options = {"queues": (QUEUE,), "stop_when_empty": True, "backoff": 0.0, "tries": 2, **options}
    assert await Worker(app, WorkerOptions(**options)).run() is ExitReason.EMPTY
    return await app.counts(QUEUE)


async def after_a_good_job(app: Tenure, **options: Any) -> Counts:
    """Push a good job behind whatever is there, drain, and return what is left."""
    await app.push(call(app, "keep", "good"))
    return await drain(app, **options)


def left(counts: Counts) -> dict[str, int]:
    """Return the numbers that are not zero."""
    names = ("ready", "delayed", "leased", "failed", "unreadable")
    return {name: getattr(counts, name) for name in names if getattr(counts, name)}


# ------------------------------------------------------------------------------------------------- what is in the store


class Bomb:
    """Pickles to a call that makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (pathlib.Path.touch, (pathlib.Path(self.path),))


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
    assert left(await drain(app)) == {"delayed": 1}
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


# --------------------------------------------------------------------------------------------------- what comes back


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
    ']] redis.call("FLUSHALL") --',
    "a|b|c\r\n*1\r\n",
]


async def test_06_11_16_21_22_values_are_exact_by_every_road(app: Tenure, seen: Seen) -> None:
    everything: Any = [EXACT, {str(index): value for index, value in enumerate(EXACT)}]
    await app.push(call(app, "keep", everything))
    await app.push(call(app, "keep", everything).options(delay=0.001))
    await app.push(call(app, "keep", value=everything).options(priority=7, meta={"a": EXACT[-1]}))
    await app.push_many([call(app, "keep", everything)])
    await asyncio.sleep(0.002)
    assert left(await drain(app)) == {}
    assert len(seen.values) == 4
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


# ------------------------------------------------------------------------------------------- what is refused at the push


def test_04_an_argument_nested_too_deeply_is_refused(quick: Tenure) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(PayloadTooLarge, match="argument 'value' is nested"):
        call(quick, "keep", deep)
    while deep:  # taken apart from outside: freeing it in one go would recurse as deeply as it is nested
        (deep,) = deep


def test_04_an_argument_that_contains_itself_is_refused(quick: Tenure) -> None:
    around: dict[str, Any] = {}
    around["me"] = [around]
    with pytest.raises(PayloadTooLarge, match="argument 'value' is nested"):
        call(quick, "keep", around)


def test_05_an_integer_of_5000_digits_is_refused(quick: Tenure) -> None:
    with pytest.raises(NotEncodable, match=r"an integer of more than 4,300 digits at value\[1\]"):
        call(quick, "keep", [1, 10**5000])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_08_numbers_that_json_does_not_have_are_refused_in_arguments_and_meta(quick: Tenure, number: float) -> None:
    with pytest.raises(NotEncodable, match=r"NaN and infinities have no wire form at value\[key #1\]\[0\]"):
        call(quick, "keep", {"a": [number]})
    with pytest.raises(InvalidOption, match="meta"):
        call(quick, "keep", 1).options(meta={"a": number})


@pytest.mark.parametrize("option", ["delay", "timeout", "backoff", "expires_in", "result_ttl", "priority"])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -1.0, float("1e400"), 1e300, "1", True])
def test_09_absurd_numbers_in_options_are_refused(quick: Tenure, option: str, number: Any) -> None:
    with pytest.raises(InvalidOption, match=option):
        call(quick, "keep", 1).options(**{option: number})


@pytest.mark.parametrize("option", ["lease", "sleep", "timeout", "backoff", "max_time", "drain_timeout"])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -1.0])
def test_09_absurd_numbers_in_a_workers_options_are_refused(option: str, number: float) -> None:
    with pytest.raises(InvalidOption, match=option):
        WorkerOptions(**{option: number})


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_10_lone_surrogates_are_refused_wherever_text_is_taken(quick: Tenure, text: str) -> None:
    for argument in (text, [text], {text: 1}, {"a": {"b": [text]}}):
        with pytest.raises(NotEncodable, match="lone surrogate"):
            call(quick, "keep", argument)
    with pytest.raises(NotEncodable, match="lone surrogate"):
        call(quick, "keep_text", text)
    for options in ({"queue": text}, {"id": text}, {"meta": {"a": text}}, {"meta": {text: 1}}, {"connection": text}):
        with pytest.raises(InvalidOption):
            call(quick, "keep", 1).options(**options)


def test_12_bytes_are_no_text_and_text_is_no_bytes(quick: Tenure) -> None:
    for argument in (b"\xff", bytearray(b"a"), memoryview(b"a")):
        with pytest.raises(NotEncodable):
            call(quick, "keep", argument)
        with pytest.raises(NotEncodable):
            call(quick, "keep_text", argument)


@pytest.mark.parametrize("value", [{1: 2}, (1,), {1}, frozenset({1}), [{"a": (1,)}], {None: 1}, {True: 1}, range(3)])
def test_14_containers_that_would_come_back_as_others_are_refused(quick: Tenure, value: Any) -> None:
    with pytest.raises(NotEncodable):
        call(quick, "keep", value)


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
    while not (await quick.counts(QUEUE)).ready:
        await asyncio.sleep(0)
    assert drawn < 2_000
    await pushing
    assert drawn == 2_000


HOSTILE_NAMES = [
    "a}:{b",
    "{x}",
    "a:b",
    "*",
    "a?",
    "[a",
    "a\nb",
    "a b",
    "..",
    ".",
    "",
    "x" * 10_000,
    "\x00",
    "'); DROP TABLE jobs; --",
    ']] redis.call("FLUSHALL") --',
    "\ud800",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_19_20_queues_are_taken_from_an_allow_list(quick: Tenure, name: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        call(quick, "keep", 1).options(queue=name)
    assert str(refused.value).isprintable()
    with pytest.raises(InvalidOption):
        quick.job(queue=name)(keep_text)
    with pytest.raises(InvalidOption):
        WorkerOptions(queues=(name,))
    with pytest.raises(InvalidOption):
        Tenure("memory://", namespace=name)


@pytest.mark.parametrize("name", [name for name in HOSTILE_NAMES if name not in (".", "..")])
def test_20_ids_and_job_names_are_taken_from_an_allow_list(quick: Tenure, name: str) -> None:
    with pytest.raises(InvalidOption):
        call(quick, "keep", 1).options(id=name)
    if name != "a:b":
        with pytest.raises(InvalidOption):
            quick.job(name=name)(keep_text)


class Odd(tzinfo):
    """A zone whose offset is not of whole minutes, and that knows no more."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(hours=1, seconds=7, microseconds=3)

    def dst(self, moment: datetime | None) -> None:
        return None

    def tzname(self, moment: datetime | None) -> str:
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


# ------------------------------------------------------------------------------------------------------ what handlers do


@pytest.mark.parametrize("kind", RAISED)
async def test_27_whatever_a_handler_raises_is_a_counted_failure(app: Tenure, seen: Seen, kind: str) -> None:
    await app.push(call(app, "raising", kind).options(max_attempts=2))
    assert left(await after_a_good_job(app)) == {"failed": 1}
    assert sorted(seen.values) == sorted([kind, kind, "good"])
    [record] = await app.failed(QUEUE)
    assert record.attempts == 2
    assert record.failure.reason == "exception"
    assert len(record.failure.message) <= 1_000


@pytest.mark.parametrize("kind", RETURNED)
async def test_28_what_a_handler_returns_is_not_looked_at_when_nobody_asked_for_it(
    app: Tenure, seen: Seen, kind: str
) -> None:
    await app.push(call(app, "returning", kind))
    assert left(await after_a_good_job(app)) == {}
    assert sorted(seen.values) == sorted([kind, "good"])


def test_28_keeping_a_result_is_refused_where_results_are_not_kept(quick: Tenure) -> None:
    assert not quick.queue().capabilities.results
    with pytest.raises(NotSupported, match="results"):
        quick.push_sync(call(quick, "returning", "x").options(result_ttl=60))


# ---------------------------------------------------------------------------------------------------------- what is told

CANARY = "canary-5a1f\x1b[31m\r\nInjected: line\u202e<script>"


def tell_tale(text: str) -> bool:
    return "canary" in text or "\x1b" in text or "\u202e" in text or "<script>" in text


async def test_30_nothing_of_an_argument_is_logged_or_shown(
    app: Tenure, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = call(app, "keep_secret", CANARY, CANARY)
    handle = await app.push(made)
    shown = [repr(made), repr(handle), str(made), repr(made.definition), repr(made.options(meta={"a": CANARY}))]
    await put(app, stored(msgspec.json.encode([CANARY]), name="hostile.keep_secret"))  # one is missing
    await put(app, stored(msgspec.json.encode([5, CANARY]), name="hostile.keep_secret"))  # one does not fit
    await put(app, stored(msgspec.json.encode([CANARY] * 3), name="hostile.keep_secret"))  # one is too many
    await put(
        app, stored(b"[]", msgspec.json.encode({"value": "a", "token": "b", CANARY: 1}), name="hostile.keep_secret")
    )
    await put(app, CANARY.encode())
    await put(app, stored(b"[]", name=CANARY))
    assert left(await after_a_good_job(app)) == {"failed": 4, "unreadable": 2}
    assert seen.values == [CANARY, "good"]
    shown += [str(record.failure) for record in await app.failed(QUEUE)]
    shown += [repr(await app.counts(QUEUE)), repr(app), repr(app.queue())]
    assert not [text for text in shown if tell_tale(text)]
    assert not [record for record in caplog.records if tell_tale(record.getMessage())]
    assert not tell_tale(caplog.text)


def test_30_a_refusal_at_the_push_tells_nothing_of_the_value(quick: Tenure) -> None:
    for name, args in [
        ("keep", ({CANARY: (CANARY,)},)),
        ("keep", (object,)),
        ("keep_text", ([CANARY],)),
        ("typed", ({1: (CANARY,)}, frozenset())),
        ("typed", ({CANARY: ()}, frozenset())),
    ]:
        with pytest.raises(NotEncodable) as refused:
            call(quick, name, *args)
        assert not tell_tale(str(refused.value))
        assert str(refused.value).isprintable()


async def test_30_an_exceptions_text_stays_one_line_in_the_log(quick: Tenure, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    RAISED["canary"] = lambda: ValueError(CANARY)
    try:
        await quick.push(call(quick, "raising", "canary").options(max_attempts=1))
        assert left(await drain(quick)) == {"failed": 1}
    finally:
        del RAISED["canary"]
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("tenure")]
    assert lines
    assert all(line.isprintable() for line in lines)
