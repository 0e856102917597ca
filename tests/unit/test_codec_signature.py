"""Which arguments a job takes: what a call of the function itself would take."""

import inspect
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, NotRequired, Optional, TypedDict, Unpack

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import InvalidOption, NotEncodable, PayloadTooLarge, Undecodable
from tenure.sensitive import Sensitive
from tests.support.codecs import codec_of


def nothing() -> None: ...
def plain(a: int, b: str = "x", *, c: bool = False, d: int) -> None: ...
def positional(a: int, b: int = 0, /, c: int = 0) -> None: ...
def variadic(a: int, *rest: date, key: int = 1, **more: date) -> None: ...
def catching(a: int, /, **more: Any) -> None: ...
def unannotated(a, b=1): ...  # type: ignore[no-untyped-def]


FUNCTIONS: list[Callable[..., Any]] = [nothing, plain, positional, variadic, catching, unannotated]


# K19
@pytest.mark.parametrize(
    ("function", "args", "kwargs", "problem"),
    [
        (nothing, (1,), {}, "takes at most 0 positional arguments, got 1"),
        (plain, (1, "x", True), {"d": 1}, "takes at most 2 positional arguments, got 3"),
        (plain, (), {"d": 1}, "argument 'a' is missing"),
        (plain, (1,), {}, "argument 'd' is missing"),
        (plain, (1,), {"a": 1, "d": 1}, "argument 'a' is given twice"),
        (plain, (1,), {"d": 1, "e\n": 1}, r"unexpected argument 'e\n'"),
        (positional, (), {"a": 1}, "unexpected argument 'a'"),
        (variadic, (), {"key": 1}, "argument 'a' is missing"),
        (catching, (), {"a": 1}, "argument 'a' is missing"),
    ],
)
def test_arguments_that_the_function_would_not_take_are_refused(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidOption) as refused:
        codec_of(function).encode(args, kwargs)
    assert str(refused.value) == f"{problem}; nothing was sent"


def test_defaults_are_not_sent_so_that_the_workers_own_apply() -> None:
    args, kwargs = codec_of(plain).encode((1,), {"d": 2})
    assert (bytes(args), bytes(kwargs)) == (b"[1]", b'{"d":2}')


def test_arguments_stay_positional_or_named_as_the_caller_gave_them() -> None:
    codec = codec_of(plain)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1, "y"), {"d": 2}),
        ((), {"a": 1, "b": "y", "c": True, "d": 2}),
    ]
    for args, kwargs in calls:
        assert codec.decode(*codec.encode(args, kwargs)) == (args, kwargs)


def test_further_positional_and_named_arguments_follow_their_annotation() -> None:
    codec, day = codec_of(variadic), date(2025, 1, 1)
    args, kwargs = (1, day, day), {"key": 2, "when": day}
    assert codec.decode(*codec.encode(args, kwargs)) == (args, kwargs)


def test_a_positional_only_name_is_free_among_the_further_named_ones() -> None:
    codec = codec_of(catching)
    assert codec.decode(*codec.encode((1,), {"a": 2})) == ((1,), {"a": 2})


@pytest.mark.parametrize(
    ("args", "kwargs", "where"),
    [
        (("x",), {}, "a"),
        ((1, date.max, "x"), {}, "rest[1]"),
        ((1,), {"key": "x"}, "key"),
        ((1,), {"key": 1, "secret": "x"}, "more[key #2]"),
        (("\ud800",), {}, "a"),
        ((1,), {"\ud800": date.max}, "more[key #1]"),
    ],
)
def test_a_refusal_names_the_parameter_that_the_argument_is_for(
    args: tuple[Any, ...], kwargs: dict[str, Any], where: str
) -> None:
    with pytest.raises(NotEncodable) as refused:
        codec_of(variadic).encode(args, kwargs)
    assert refused.value.argument + refused.value.path == where
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("args", "kwargs", "where"),
    [
        ('["x"]', "{}", "a"),
        ('[1, "2025-01-01", "x"]', "{}", "rest[1]"),
        ("[1]", '{"key": "x"}', "key"),
        ("[1]", '{"key": 1, "secret": "x"}', "more[key #2]"),
    ],
)
def test_what_is_stored_and_does_not_fit_is_told_by_parameter(args: str, kwargs: str, where: str) -> None:
    with pytest.raises(Undecodable) as unreadable:
        codec_of(variadic).decode(msgspec.Raw(args.encode()), msgspec.Raw(kwargs.encode()))
    assert str(unreadable.value).endswith(f" at {where}")
    assert "secret" not in str(unreadable.value)


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        ("[]", '{"d": 1}', "argument 'a' is missing"),
        ("[1, 2, 3]", '{"d": 1}', "takes at most 2 positional arguments, got 3"),
        ("[1]", '{"d": 1, "a": 1}', "argument 'a' is given twice"),
        ("[1]", '{"d": 1, "secret": 1}', "an unexpected argument"),
        ("{}", "{}", "not an array and an object"),
        ("[]", "[]", "not an array and an object"),
        ("null", "{}", "not an array and an object"),
    ],
)
def test_stored_arguments_that_the_job_does_not_take_are_undecodable(args: str, kwargs: str, problem: str) -> None:
    with pytest.raises(Undecodable, match=problem) as unreadable:
        codec_of(plain).decode(msgspec.Raw(args.encode()), msgspec.Raw(kwargs.encode()))
    assert "secret" not in str(unreadable.value)


def test_the_last_of_two_equal_names_in_stored_arguments_wins() -> None:
    assert codec_of(plain).decode(msgspec.Raw(b"[1]"), msgspec.Raw(b'{"d": 1, "d": 2}')) == ((1,), {"d": 2})


@given(
    function=st.sampled_from(FUNCTIONS),
    count=st.integers(0, 4),
    names=st.sets(st.sampled_from(["a", "b", "c", "d", "key", "other"])),
)
def test_the_codec_takes_what_python_takes(function: Callable[..., Any], count: int, names: set[str]) -> None:
    codec = codec_of(_loosened(function))
    args, kwargs = (1,) * count, dict.fromkeys(names, 1)
    try:
        function(*args, **kwargs)
    except TypeError:
        with pytest.raises(InvalidOption):
            codec.encode(args, kwargs)
    else:
        assert codec.decode(*codec.encode(args, kwargs)) == (args, kwargs)


def _loosened(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the same parameters that takes any value for them."""

    def loose() -> None: ...

    parameters = inspect.signature(function).parameters.values()
    signature = inspect.Signature([one.replace(annotation=inspect.Parameter.empty) for one in parameters])
    loose.__signature__ = signature  # type: ignore[attr-defined]
    return loose


class Mail(TypedDict):
    to: str
    sent: NotRequired[date]


def unpacked(subject: str, **mail: Unpack[Mail]) -> None: ...


def test_named_arguments_of_a_typed_dictionary_are_parameters_of_their_own() -> None:
    codec = codec_of(unpacked)
    kwargs = {"to": "a", "sent": date(2025, 1, 1)}
    assert codec.decode(*codec.encode(("s",), kwargs)) == (("s",), kwargs)
    assert codec.decode(*codec.encode(("s",), {"to": "a"})) == (("s",), {"to": "a"})
    with pytest.raises(InvalidOption, match="argument 'to' is missing"):
        codec.encode(("s",), {})
    with pytest.raises(InvalidOption, match="unexpected argument 'other'"):
        codec.encode(("s",), {"to": "a", "other": 1})


def test_one_argument_may_be_nested_thirty_levels_which_with_the_envelope_makes_thirty_two() -> None:
    codec = codec_of(unannotated)
    value: Any = 1
    for _ in range(30):
        value = [value]
    codec.encode((value,), {})
    with pytest.raises(PayloadTooLarge, match="argument 'b' is nested more deeply than 30 levels; nothing was sent"):
        codec.encode((1, [value]), {})


def test_a_list_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(PayloadTooLarge, match="argument 'a' is nested"):
        codec_of(unannotated).encode((loop,), {})


def test_lists_that_share_a_list_are_refused_before_they_fill_the_memory() -> None:
    bomb: list[Any] = ["x"] * 100_000
    for _ in range(28):
        bomb = [bomb] * 100
    with pytest.raises(PayloadTooLarge, match="argument 'a' is more than 5,000,000 values"):
        codec_of(unannotated).encode((bomb,), {})


def account(email: str, token: Annotated[str, Sensitive], *pins: Annotated[int, Sensitive()], **more: Any) -> None: ...


# K13
def test_arguments_are_shown_by_name_and_type_and_never_by_value() -> None:
    codec = codec_of(account)
    assert codec.shown(("ana@example.com", "s3cret"), {}) == "email=<str>, token=***"
    assert codec.shown(("a",), {"token": None, "deep": "s3cret"}) == "email=<str>, token=***, **more=<1 more>"
    assert codec.shown(("a", "b", 1, 2), {}) == "email=<str>, token=***, *pins=<2 more>"


def test_arguments_that_do_not_fit_are_shown_too() -> None:
    assert codec_of(nothing).shown((1, 2), {"secret": 3}) == "*…=<2 more>, **…=<1 more>"


@pytest.mark.parametrize(
    "hint",
    [
        Annotated[str, Sensitive],
        Annotated[str, "x", Sensitive()],
        Optional[Annotated[str, Sensitive]],  # noqa: UP045
        list[Annotated[str, Sensitive]],
    ],
)
def test_an_argument_is_hidden_wherever_in_its_annotation_the_mark_stands(hint: Any) -> None:
    def marked(value) -> None: ...  # type: ignore[no-untyped-def]

    marked.__annotations__["value"] = hint
    assert codec_of(marked).shown(("s3cret",), {}) == "value=***"


def test_a_mark_changes_nothing_on_the_wire() -> None:
    codec = codec_of(account)
    assert codec.decode(*codec.encode(("a", "b", 1), {})) == (("a", "b", 1), {})
