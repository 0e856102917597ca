"""Unique jobs through an application: what makes two calls one job, and what a push of the second tells."""

import subprocess
import sys
from typing import Annotated, Any

import pytest

from tenure import InvalidOption, JobState, NotSupported, Sensitive, Tenure
from tenure.envelope import decode
from tenure.events import JobPushed
from tenure.uniqueness import unique_text

SECRET = "hunter2-correct-horse"


def plain(a: Any = None, b: Any = None) -> None: ...


def first_only(a: int, /, *rest: int, b: int = 0, **more: int) -> None: ...


def other(a: Any = None, b: Any = None) -> None: ...


def tagged(tags: set[str], names: frozenset[int] = frozenset()) -> None: ...


def mapped(prices: dict[str, list[int]]) -> None: ...


def secretive(user: str, token: Annotated[str, Sensitive] = "") -> None: ...


def keyed() -> None: ...


def usual(a: Any = None) -> None: ...


def make() -> Tenure:
    app = Tenure("memory://", namespace="tests")
    for function in (plain, first_only, other, tagged, mapped, secretive):
        app.job(name=function.__name__, unique=True)(function)
    app.job(name="keyed", unique="key of the job")(keyed)
    app.job(name="usual")(usual)
    return app


@pytest.fixture
def app() -> Tenure:
    return make()


def same(app: Tenure, name: str, first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Tell whether two calls of one job, each with its arguments by position and by name, are one job."""
    one, two = (app.push_sync(app.call(name, args, kwargs)) for args, kwargs in (first, second))
    assert one.held is False
    assert two.held is (two.id == one.id)
    return two.held


EQUAL: list[tuple[str, Any, Any]] = [
    ("plain", ([1, "x"], {}), ([1, "x"], {})),
    ("plain", ([1, "x"], {}), ([1], {"b": "x"})),
    ("plain", ([], {"a": 1, "b": 2}), ([], {"b": 2, "a": 1})),
    ("plain", ([{"x": 1, "y": [{"p": 1, "q": 2}]}], {}), ([{"y": [{"q": 2, "p": 1}], "x": 1}], {})),
    ("first_only", ([1, 2, 3], {"b": 4, "a": 5}), ([1, 2, 3], {"a": 5, "b": 4})),
    ("tagged", ([{"a", "b", "c"}, frozenset({3, 1})], {}), ([{"c", "b", "a"}], {"names": frozenset({1, 3})})),
    ("mapped", ([{"x": [1], "y": [2]}], {}), ([{"y": [2], "x": [1]}], {})),
    ("keyed", ([], {}), ([], {})),
]
UNEQUAL: list[tuple[str, Any, Any]] = [
    ("plain", ([1], {}), ([2], {})),
    ("plain", ([1], {}), (["1"], {})),
    ("plain", ([1], {}), ([None, 1], {})),
    ("plain", ([1], {}), ([1, None], {})),
    ("plain", ([[1, 2]], {}), ([[2, 1]], {})),
    ("plain", ([2**64], {}), ([2**64 + 1], {})),
    ("first_only", ([1, 2], {}), ([2, 1], {})),
    ("first_only", ([1], {"a": 2}), ([2], {"a": 1})),
    ("first_only", ([1], {"c": 2}), ([1], {"d": 2})),
    ("tagged", ([{"a"}], {}), ([{"a", "b"}], {})),
    ("mapped", ([{"x": [1], "y": [2]}], {}), ([{"x": [2], "y": [1]}], {})),
]


@pytest.mark.parametrize(("name", "first", "second"), EQUAL)
def test_equal_calls_are_one_job_however_they_are_written(app: Tenure, name: str, first: Any, second: Any) -> None:
    assert same(app, name, first, second)
    assert app.counts_sync("default").ready == 1


@pytest.mark.parametrize(("name", "first", "second"), UNEQUAL)
def test_other_arguments_are_another_job(app: Tenure, name: str, first: Any, second: Any) -> None:
    assert not same(app, name, first, second)
    assert app.counts_sync("default").ready == 2


def test_another_job_another_queue_and_no_wish_to_be_unique_are_other_jobs(app: Tenure) -> None:
    calls = [app.call("plain", [1]), app.call("other", [1])]
    calls += [call.options(queue="elsewhere") for call in calls]
    calls += [app.call("plain", [1]).options(unique=False), app.call("usual", [1]), app.call("usual", [1])]
    assert [handle.held for handle in app.push_many_sync(calls)] == [False] * 7


def test_a_text_is_shared_by_whatever_job_says_it_and_by_no_call_without(app: Tenure) -> None:
    first = app.push_sync(app.call("usual", [1]), unique="import")
    second = app.push_sync(app.call("other", [2]), unique="import")
    assert (second.held, second.id) == (True, first.id)
    # The nearest says it: the push's text counts, not the job's own.
    third = app.push_sync(app.call("keyed"), unique="import")
    assert third.id == first.id
    assert not app.push_sync(app.call("keyed")).held
    assert app.push_sync(app.call("usual"), unique="key of the job").held
    assert not app.push_sync(app.call("usual", [1]), unique=True).held
    assert not app.push_sync(app.call("usual", [1]), unique="other").held


async def test_a_push_that_is_held_tells_of_the_job_that_has_the_place(app: Tenure) -> None:
    told: list[tuple[str, bool]] = []
    app.events.on(JobPushed, lambda event: told.append((event.id, event.held)))
    first = await app.push(app.call("plain", [1]), id="first", delay=60)
    second = await app.push(app.call("plain", [1]), id="second")
    assert (first.id, first.held, second.id, second.held) == ("first", False, "first", True)
    assert await second.status() is JobState.DELAYED
    many = await app.push_many([app.call("plain", [number % 3]) for number in range(6)])
    assert [handle.held for handle in many] == [False, True, False, True, True, True]
    assert [handle.id for handle in many] == [many[0].id, "first", many[2].id, many[0].id, "first", many[2].id]
    assert told[:2] == [("first", False), ("first", True)]
    await second.cancel()
    assert not (await app.push(app.call("plain", [1]))).held


async def test_the_digest_shows_nothing_and_the_envelope_knows_nothing_of_it(app: Tenure) -> None:
    call = app.call("secretive", ["ana", SECRET])
    digest = unique_text(call)
    assert len(digest) == 32
    assert int(digest, 16)
    assert digest != unique_text(app.call("secretive", ["ana", f"{SECRET}!"]))
    await app.push(call)
    [lease] = (await app.queue().claim(["default"], limit=1, lease=60, wait=0)).leases
    assert digest not in lease.envelope.decode()
    assert "unique" not in lease.envelope.decode()
    assert decode(lease.envelope).name == "secretive"


def test_the_digest_is_the_same_in_every_process() -> None:
    """A set has another order in each, and memory addresses differ."""
    program = (
        "from tests.unit.test_app_unique import make; from tenure.uniqueness import unique_text; "
        "print(unique_text(make().call('tagged', [set('abcdefghij')], {'names': frozenset(range(50))})))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 32


def test_the_digests_stay_what_they_are() -> None:
    """Two releases push to one store during a deploy: what made a call unique must go on doing so."""
    app = make()
    assert unique_text(app.call("plain", [1, "x"])) == "9c62f1ca8c50b6d5564d8bd69be8183e"
    assert unique_text(app.call("usual").options(unique="import")) == "c41884a201e202e474a02fc3b59c934f"
    assert unique_text(app.call("usual")) == ""


def test_a_driver_without_unique_jobs_refuses_them() -> None:
    app = Tenure("sync://", namespace="tests")
    app.job(name="plain")(plain)
    with pytest.raises(NotSupported, match="'sync' driver does not support unique jobs"):
        app.push_sync(app.call("plain"), unique=True)
    app.push_sync(app.call("plain"), unique=False)


def test_a_text_that_cannot_be_one_is_refused(app: Tenure) -> None:
    for wrong in ("", "k" * 1025, 1, b"k"):
        with pytest.raises(InvalidOption):
            app.push_sync(app.call("plain"), unique=wrong)  # type: ignore[arg-type]
