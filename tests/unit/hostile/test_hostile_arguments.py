"""Hostile arguments and options: refused at the push, before anything is sent.

Numbered as in the list of hostile inputs.
"""

import math
from typing import Any

import pytest

from tenure import Tenure
from tenure.errors import InvalidOption, NotEncodable, PayloadTooLarge
from tenure.worker import WorkerOptions
from tests.support.hostile import CANARY, call, keep_text, tell_tale


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
    absurd: Any = {option: number}
    with pytest.raises(InvalidOption, match=option):
        call(quick, "keep", 1).options(**absurd)


@pytest.mark.parametrize("option", ["lease", "sleep", "timeout", "backoff", "max_time", "drain_timeout"])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -1.0])
def test_09_absurd_numbers_in_a_workers_options_are_refused(option: str, number: float) -> None:
    absurd: dict[str, Any] = {option: number}
    with pytest.raises(InvalidOption, match=option):
        WorkerOptions(**absurd)


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_10_lone_surrogates_are_refused_wherever_text_is_taken(quick: Tenure, text: str) -> None:
    for argument in (text, [text], {text: 1}, {"a": {"b": [text]}}):
        with pytest.raises(NotEncodable, match="lone surrogate"):
            call(quick, "keep", argument)
    with pytest.raises(NotEncodable, match="lone surrogate"):
        call(quick, "keep_text", text)
    wrong: list[Any] = [
        {"queue": text},
        {"id": text},
        {"meta": {"a": text}},
        {"meta": {text: 1}},
        {"connection": text},
    ]
    for options in wrong:
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
    ']] redis.call("INFO") --',
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
