"""An exception as data, whatever it does to prevent that."""

import threading
import time
from typing import Any, NoReturn

import pytest

from tenure.worker import failures


def raised(error: BaseException) -> BaseException:
    try:
        raise error  # noqa: TRY301 - it gets its traceback this way
    except BaseException as caught:  # noqa: BLE001 - the hostile ones are what it is about
        return caught


class TwoArguments(Exception):
    def __init__(self, code: int, detail: str) -> None:
        super().__init__(f"{code}: {detail}")


class HoldsALock(Exception):
    def __init__(self) -> None:
        super().__init__("locked")
        self.lock = threading.Lock()


class TextRaises(Exception):
    def __str__(self) -> NoReturn:
        raise SystemExit(1)


class TextIsNoText(Exception):
    __str__: Any = lambda _: 5


class TextIsHuge(Exception):
    def __str__(self) -> str:
        return "x" * 100_000_000


class PicklingRaises(Exception):
    def __reduce__(self) -> NoReturn:
        raise RuntimeError("no")


class StrSubclass(str):
    __slots__ = ()

    def __getitem__(self, key: Any) -> NoReturn:
        raise RuntimeError("no")


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        if name == "__module__":
            raise RuntimeError("no module")
        return super().__getattribute__(name)


class Nameless(Exception, metaclass=Meta):
    pass


class GroupRaises(ExceptionGroup[Exception]):
    @property
    def exceptions(self) -> NoReturn:
        raise RuntimeError("no")


def cycle() -> BaseException:
    first, second = raised(ValueError("a")), raised(KeyError("b"))
    first.__cause__, second.__cause__ = second, first
    return first


def long_chain() -> BaseException:
    error: BaseException = ValueError("the first")
    for number in range(5_000):
        following = ValueError(f"number {number}")
        following.__context__ = error
        error = following
    return error


def deep() -> BaseException:
    def down(levels: int) -> None:
        if levels:
            down(levels - 1)
        raise ValueError("at the bottom")

    try:
        down(500)
    except ValueError as error:
        return error
    raise AssertionError


def nested_groups() -> BaseException:
    error: Exception = ValueError("innermost")
    for level in range(200):
        members: list[Exception] = [error, *(ValueError("x" * 900) for _ in range(50))]
        error = ExceptionGroup(f"level {level}", members)
    return error


def local_class() -> BaseException:
    class Local(Exception):
        pass

    return Local("here")


HOSTILE = [
    TwoArguments(1, "x"),
    HoldsALock(),
    TextRaises(),
    TextIsNoText(),
    PicklingRaises("p"),
    ValueError("y" * 5_000_000),
    cycle(),
    long_chain(),
    deep(),
    ExceptionGroup("group", [ValueError("one"), TypeError("two")]),
    nested_groups(),
    GroupRaises("group", [ValueError("one")]),
    ValueError("lone \ud800 surrogate"),
    ValueError("nul \0 inside"),
    ValueError(StrSubclass("z" * 3000)),
    local_class(),
    Nameless("n"),
    KeyboardInterrupt(),
    SystemExit(3),
    GeneratorExit(),
]


@pytest.mark.parametrize("error", HOSTILE, ids=lambda error: type(error).__qualname__)
def test_every_exception_becomes_bounded_text_that_can_be_stored(error: BaseException) -> None:
    began = time.monotonic()
    failure = failures.describe(raised(error))
    assert time.monotonic() - began < 2
    assert failure.reason == "exception"
    assert 0 < len(failure.type) <= 1_000
    assert len(failure.message) <= 1_000
    assert 0 < len(failure.traceback) <= 20_000
    for text in (failure.type, failure.message, failure.traceback):
        assert "\0" not in text
        text.encode("utf-8")


def test_a_text_of_a_hundred_megabytes_is_cut_and_says_so() -> None:
    failure = failures.describe(raised(TextIsHuge()))
    assert failure.message.startswith("xxx")
    assert failure.message.endswith("(cut)")
    assert len(failure.message) == 1_000


def test_a_text_that_cannot_be_had_is_replaced_by_the_reason() -> None:
    assert failures.message(TextRaises()) == "(its text cannot be had: SystemExit)"
    assert failures.message(TextIsNoText()) == "(its text cannot be had: TypeError)"


def test_a_class_is_named_with_its_module_and_a_builtin_without() -> None:
    assert failures.type_name(ValueError()) == "ValueError"
    assert failures.type_name(HoldsALock()).endswith("test_failures.HoldsALock")


def test_the_traceback_shows_the_place_and_the_cause() -> None:
    try:
        try:
            raise KeyError("inner")  # noqa: TRY301 - a nested failure is wanted
        except KeyError as inner:
            raise ValueError("outer") from inner
    except ValueError as outer:
        text = failures.describe(outer).traceback
    assert text.index("KeyError: 'inner'") < text.index("direct cause") < text.index("ValueError: outer")
    assert "test_failures.py" in text
    assert 'raise ValueError("outer") from inner' in text


def test_a_context_is_shown_and_a_suppressed_one_is_not() -> None:
    error = ValueError("shown")
    error.__context__ = KeyError("context")
    assert "another exception occurred" in failures.describe(error).traceback
    error.__suppress_context__ = True
    assert "context" not in failures.describe(error).traceback


def test_a_group_shows_its_members() -> None:
    text = failures.describe(raised(ExceptionGroup("several", [ValueError("one"), TypeError("two")]))).traceback
    assert "1 of 2" in text
    assert "ValueError: one" in text
    assert "TypeError: two" in text


def test_only_the_innermost_of_many_frames_are_shown() -> None:
    text = failures.describe(deep()).traceback
    assert "outer frames left out" in text
    assert text.count("in down") == failures.FRAMES
