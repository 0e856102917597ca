"""From a lease to its call, or to the outcome that it has without running."""

import json

import pytest

from tenure.definition import define
from tenure.options import JobDefaults
from tenure.queue import Doom, Fail, Release, SetAside
from tenure.registry import Registry
from tenure.retry import Backoff, fixed
from tenure.worker.opening import Opening, Refusal, unknown_delay, waited
from tenure.worker.work import Work
from tests.worker.leases import lease


async def greet(name: str) -> None: ...


def opening(*, limit: float = 12 * 3600) -> Opening:
    registry = Registry()
    registry.add(define(greet, {"name": "greet", "timeout": 8}, JobDefaults()))
    return Opening(registry, tries=3, timeout=None, backoff=Backoff(), unknown_limit=limit)


def record(**fields: object) -> bytes:
    values = {"v": 1, "id": "job-1", "name": "greet", "queue": "default", "args": ["Ana"], **fields}
    return json.dumps(values).encode()


def refused(data: bytes, *, free: int = 0, doomed: Doom | None = None, limit: float = 12 * 3600) -> Refusal:
    _, found = opening(limit=limit).open(lease(envelope=data, deliveries=free + 1, free=free, doomed=doomed))
    assert isinstance(found, Refusal)
    return found


def opened(data: bytes) -> Work:
    _, found = opening().open(lease(envelope=data))
    assert isinstance(found, Work)
    return found


def test_a_record_opens_as_its_call() -> None:
    work = opened(record())
    assert work.function is greet
    assert work.args == ("Ana",)
    assert (work.max_attempts, work.timeout) == (3, 8.0)


def test_what_the_record_says_counts_before_what_the_worker_says() -> None:
    work = opened(record(max_attempts=9, timeout=2.5, backoff=4))
    assert (work.max_attempts, work.timeout, work.backoff) == (9, 2.5, fixed(4))


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80\x04\x95pickle", b'{"v": 1', b"[" * 100_000, b'{"v": 1, "id": 5}', record(v=0), b"\xef\xbb\xbf{}"],
    ids=["empty", "pickle", "half", "nested", "wrong types", "version 0", "byte order mark"],
)
def test_a_record_that_cannot_be_read_is_set_aside(data: bytes) -> None:
    assert isinstance(refused(data).settlement, SetAside)


def test_a_newer_record_is_given_back_for_a_newer_worker() -> None:
    settlement = refused(record(v=2, args={"now": "a mapping"})).settlement
    assert isinstance(settlement, Release)
    assert (settlement.free, settlement.delay) == (True, 5.0)


@pytest.mark.parametrize("name", ["os:system", "builtins.eval", "greet.__globals__", "unknown"])
def test_names_resolve_through_the_registry_and_never_by_import(name: str) -> None:
    assert isinstance(refused(record(name=name)).settlement, Release)


def test_the_delay_of_an_unknown_job_doubles_to_a_minute() -> None:
    assert [unknown_delay(free) for free in range(6)] == [5, 10, 20, 40, 60, 60]
    assert unknown_delay(100_000) == 60
    for free in range(50):
        assert waited(free) == sum(unknown_delay(earlier) for earlier in range(free))


def test_an_unknown_job_fails_after_twelve_hours_of_waiting() -> None:
    assert isinstance(refused(record(name="unknown"), free=722).settlement, Release)
    settlement = refused(record(name="unknown"), free=723).settlement
    assert isinstance(settlement, Fail)
    assert settlement.failure.reason == "unknown-job"


def test_arguments_that_do_not_fit_fail_without_another_attempt() -> None:
    settlement = refused(record(args=["Ana", "secret"])).settlement
    assert isinstance(settlement, Fail)
    assert settlement.failure.reason == "arguments"
    assert "secret" not in str(settlement.failure)


@pytest.mark.parametrize("doom", [Doom.CRASHED, Doom.EXPIRED, Doom.DELIVERIES])
@pytest.mark.parametrize("data", [record(), record(name="unknown"), record(v=2)], ids=["known", "unknown", "newer"])
def test_a_doomed_job_fails_unrun(doom: Doom, data: bytes) -> None:
    settlement = refused(data, doomed=doom).settlement
    assert isinstance(settlement, Fail)
    assert settlement.failure.reason == doom.value


def test_a_job_whose_holder_died_after_a_cancel_request_is_removed_unrun() -> None:
    settlement = refused(record(), doomed=Doom.CANCELLED).settlement
    assert isinstance(settlement, Release)
    assert (settlement.delay, settlement.free) == (0.0, False)


def test_a_name_out_of_the_store_stays_one_harmless_line() -> None:
    name, _ = opening().open(lease(envelope=record(name="x\n\x1b[31m")))
    assert name.isprintable()


def test_what_the_job_before_it_returned_is_the_first_argument() -> None:
    for data in (record(args=[]), record(args=[]).replace(b"[]", b"[ ]")):
        _, found = opening().open(lease(envelope=data, input=b'"Ben"'))
        assert isinstance(found, Work)
        assert found.args == ("Ben",)


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        (b"5", {"args": []}),
        (b"", {"args": []}),
        (b"[", {"args": []}),
        (b'"Ben", "more"', {"args": []}),
        (b'"Ben"', {"args": ["Ana"]}),
        (b'"Ben"', {"args": {}}),
        (None, {"args": []}),
    ],
)
def test_what_does_not_fit_as_the_first_argument_fails_the_job(given: bytes | None, fields: dict[str, object]) -> None:
    _, found = opening().open(lease(envelope=record(**fields), input=given))
    assert isinstance(found, Refusal)
    assert isinstance(found.settlement, Fail)
    assert found.failure is not None
    assert found.failure.reason == "arguments"


@pytest.mark.parametrize(("job", "named"), [("batch.17", "batch"), ("batch.17", "batch.17"), ("a.b.0", "a.b")])
def test_a_job_that_joined_a_composition_is_named_by_it(job: str, named: str) -> None:
    _, found = opening().open(lease(envelope=record(id=named), id=job))
    assert isinstance(found, Work)


@pytest.mark.parametrize(
    ("job", "named"), [("batch.c1", "batch"), ("batch.", "batch"), ("batch1", "batch"), ("x", "y")]
)
def test_the_envelope_of_another_job_is_set_aside(job: str, named: str) -> None:
    _, found = opening().open(lease(envelope=record(id=named), id=job))
    assert isinstance(found, Refusal)
    assert isinstance(found.settlement, SetAside)
