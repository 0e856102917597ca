"""The codec over generated annotations, values and bytes."""

import enum
import json
import operator
import pickle
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import GenericAlias
from typing import Any, Literal, NamedTuple, TypedDict, Union, cast
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import NotEncodable, PayloadTooLarge, Undecodable
from tests.support.codecs import codec_for, codec_of, from_wire, there_and_back
from tests.support.examples import Point


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Leaf:
    name: str
    when: datetime | None
    parts: dict[int, Decimal] = field(default_factory=dict)


class Pair(NamedTuple):
    left: bytes
    right: "timedelta"


class Shape(TypedDict):
    colour: Colour
    sizes: list[float]


class Packed(msgspec.Struct):
    key: UUID
    words: frozenset[str]


text = st.text(st.characters(exclude_categories=["Cs"]))
offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
# What has a fold but no zone is refused.
moments = st.datetimes(timezones=st.none() | offsets).map(lambda moment: moment.replace(fold=0))
times = st.times(timezones=st.none() | offsets).map(lambda moment: moment.replace(fold=0))
integers = st.integers() | st.integers(-(10**4299) + 1, 10**4300 - 1)
decimals = st.decimals(allow_nan=False, allow_infinity=False)
numbers = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | integers | numbers | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=20,
)

SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (None, st.none()),
    (bool, st.booleans()),
    (int, integers),
    (float, numbers),
    (str, text),
    (bytes, st.binary()),
    (datetime, moments),
    (date, st.dates()),
    (time, times),
    (timedelta, st.timedeltas()),
    (Decimal, decimals),
    (UUID, st.uuids()),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Literal["a", 5, None], st.sampled_from(["a", 5, None])),
    (Any, plain),
    (Leaf, st.builds(Leaf, text, st.none() | moments, st.dictionaries(integers, decimals, max_size=3))),
    (Pair, st.builds(Pair, st.binary(), st.timedeltas())),
    (Shape, st.fixed_dictionaries({"colour": st.sampled_from(Colour), "sizes": st.lists(numbers, max_size=3)})),
    (Packed, st.builds(Packed, st.uuids(), st.frozensets(text, max_size=3))),
]
HASHABLE = [pair for pair in SCALARS if pair[0] not in (Any, Leaf, Shape, Packed)]
KEYS = [pair for pair in SCALARS if pair[0] in (str, int, datetime, date, Decimal, UUID, Colour, Level, bytes)]


Annotated = tuple[Any, st.SearchStrategy[Any]]


@st.composite
def annotated(draw: st.DrawFn, depth: int = 2) -> Annotated:
    """Draw an annotation with the strategy of its values."""
    if depth == 0 or draw(st.booleans()):
        scalar: Annotated = draw(st.sampled_from(SCALARS))
        return scalar
    shape: Annotated = draw(st.sampled_from(SHAPES))(draw, depth - 1)
    return shape


def a_list(draw: st.DrawFn, depth: int) -> Annotated:
    hint, values = draw(annotated(depth))
    return GenericAlias(list, (hint,)), st.lists(values, max_size=4)


def a_set(draw: st.DrawFn, depth: int) -> Annotated:
    hint, values = draw(st.sampled_from(HASHABLE))
    return GenericAlias(set, (hint,)), st.sets(values, max_size=4)


def a_pair(draw: st.DrawFn, depth: int) -> Annotated:
    (left, lefts), (right, rights) = draw(annotated(depth)), draw(annotated(depth))
    return GenericAlias(tuple, (left, right)), st.tuples(lefts, rights)


def a_tuple(draw: st.DrawFn, depth: int) -> Annotated:
    hint, values = draw(annotated(depth))
    return GenericAlias(tuple, (hint, ...)), st.lists(values, max_size=4).map(tuple)


def a_dict(draw: st.DrawFn, depth: int) -> Annotated:
    (key, keys), (hint, values) = draw(st.sampled_from(KEYS)), draw(annotated(depth))
    return GenericAlias(dict, (key, hint)), st.dictionaries(keys, values, max_size=4)


def a_union(draw: st.DrawFn, depth: int) -> Annotated:
    # A union with Any is Any.
    hint, values = draw(annotated(depth).filter(lambda pair: pair[0] is not Any))
    other, others = draw(st.sampled_from([pair for pair in SCALARS if pair[0] is not Any]))
    return operator.getitem(cast("Any", Union), (hint, other)), values | others


SHAPES = [a_list, a_set, a_pair, a_tuple, a_dict, a_union]


def alike(one: Any, other: Any) -> bool:
    """Tell whether two values are equal, and all of their types too. Independent of the codec's own comparison."""
    return bool(exact(one) == exact(other))


def exact(value: Any) -> Any:
    """Return the value as text and tuples that differ where it does."""
    match value:
        case dict():
            shown: Any = [(exact(key), exact(item)) for key, item in value.items()]
        case Leaf() | Packed():
            shown = [exact(getattr(value, name)) for name in type(value).__annotations__]
        case list() | tuple():
            shown = [exact(item) for item in value]
        case set() | frozenset():
            shown = sorted(map(repr, value))
        case datetime() | time():
            shown = (value.isoformat(), value.utcoffset())
        case _:
            shown = repr(value)
    return type(value), shown


# K19
@given(st.data())
def test_every_value_of_every_annotation_comes_back_equal_and_of_equal_types(data: st.DataObject) -> None:
    hint, values = data.draw(annotated())
    value = data.draw(values)
    assert alike(there_and_back(hint, value), value)


@given(st.data())
def test_a_value_of_another_annotation_is_refused_or_comes_back_equal(data: st.DataObject) -> None:
    hint, _ = data.draw(annotated())
    _, others = data.draw(annotated())
    value = data.draw(others)
    with suppress(NotEncodable):
        assert there_and_back(hint, value) == value


@given(st.data())
def test_what_is_encoded_is_json_that_any_parser_reads(data: st.DataObject) -> None:
    hint, values = data.draw(annotated())
    args, kwargs = codec_for(hint).encode((), {"value": data.draw(values)})
    assert json.loads(bytes(args)) == []
    assert list(json.loads(bytes(kwargs))) == ["value"]


@given(data=st.data(), wire=st.binary(max_size=200) | plain.map(msgspec.json.encode))
def test_whatever_the_store_holds_is_decoded_or_undecodable(data: st.DataObject, wire: bytes) -> None:
    hint, _ = data.draw(annotated())
    codec = codec_for(hint)
    for args, kwargs in [
        (wire, b"{}"),
        (b"[" + wire + b"]", b"{}"),
        (b"[]", wire),
        (b"[]", b'{"value":' + wire + b"}"),
    ]:
        with suppress(Undecodable):
            codec.decode(msgspec.Raw(args), msgspec.Raw(kwargs))


@given(data=st.data())
def test_a_damaged_wire_form_is_decoded_or_undecodable(data: st.DataObject) -> None:
    hint, values = data.draw(annotated())
    codec = codec_for(hint)
    args, kwargs = codec.encode((data.draw(values),), {})
    damaged = bytearray(bytes(args))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(Undecodable):
        codec.decode(msgspec.Raw(bytes(damaged)), kwargs)


def deep(hint: Any) -> None: ...


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"[",
        b"[1",
        b"[1]]",
        b"nonsense",
        pickle.dumps([1]),
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000,
        b"[" + b"1" * 5_000 + b"]",
        b"[-" + b"1" * 4_300 + b"]",
        b"[1e400]",
        b"[NaN]",
        b"[Infinity]",
        b'["\xff"]',
        b'["\\ud800"]',
        b"\xef\xbb\xbf[1]",
        b"\xff\xfe[\x001\x00]\x00",
        b"{}",
        b"1",
        b"null",
    ],
)
def test_bytes_that_are_no_list_of_arguments_are_undecodable(wire: bytes) -> None:
    with pytest.raises(Undecodable):
        codec_of(deep).decode(msgspec.Raw(wire), msgspec.Raw(b"{}"))


@pytest.mark.parametrize(
    ("hint", "wire"),
    [
        (int, "1.0"),
        (int, "true"),
        (int, '"1"'),
        (bool, "1"),
        (float, "true"),
        (float, "9007199254740993"),
        (float, "1" + "0" * 400),
        (str, "1"),
        (datetime, '"yesterday"'),
        (datetime, "0"),
        (datetime, '"2025-01-01"'),
        (datetime, '"2025-13-01T00:00:00"'),
        (date, '"2025-02-30"'),
        (time, '"25:00:00"'),
        (timedelta, '"P1Y"'),
        (timedelta, '"P10000000000D"'),
        (Decimal, '"NaN"'),
        (Decimal, '" 1"'),
        (Decimal, '"1_0"'),
        (Decimal, '"\u0661"'),
        (Decimal, '"1E9999999999999999999"'),
        (Decimal, "1.5"),
        (UUID, '"1"'),
        (bytes, '"a"'),
        (bytes, '"YQ==\\n"'),
        (Colour, '"green"'),
        (Colour, "1"),
        (Point, '"TWO"'),
        (Point, "0"),
        (Level, "true"),
        (Level, "1.0"),
        (Level, "3"),
        (Literal["a", 1], "true"),
        (Literal["a", 1], '"b"'),
        (list[int], "{}"),
        (set[int], "1"),
        (tuple[int, int], "{}"),
        (tuple[int, int], "[1]"),
        (tuple[int, int], "[1,2,3]"),
        (set[Any], "[[]]"),
        (dict[int, int], '{"a":1}'),
        (dict[int, int], '{"1.0":1}'),
        (dict[int, int], '{"\u0661":1}'),
        (dict[int, int], '{"' + "1" * 4301 + '":1}'),
        (dict[str, int], "[]"),
        (Leaf, '{"name":"a","when":null,"other":1}'),
        (Leaf, '{"name":"a"}'),
        (Leaf, "[]"),
        (Pair, '["YQ=="]'),
        (Pair, '["YQ==","P1D",1]'),
        (Pair, '["YQ==",1]'),
        (Pair, "{}"),
        (Shape, '{"colour":"red"}'),
        (int | str, "[]"),
        (date | datetime, '"2025-01-01"'),
        (date | datetime, '{"os.system":"2025-01-01"}'),
        (date | datetime, '{"date":"2025-01-01","datetime":"2025-01-01"}'),
        (complex, '"1j"'),
    ],
)
def test_json_that_does_not_fit_the_annotation_is_undecodable(hint: Any, wire: str) -> None:
    with pytest.raises(Undecodable, match="cannot be restored"):
        from_wire(hint, wire)


@pytest.mark.parametrize(
    ("hint", "wire", "value"),
    [
        (float, "1", 1.0),
        (int | float, "1", 1),
        (Decimal, '"1e3"', Decimal("1E+3")),
        (datetime, '"2025-01-01T00:00:00.1234567Z"', datetime.fromisoformat("2025-01-01T00:00:00.123457+00:00")),
        (UUID, '"00000000000000000000000000000001"', UUID(int=1)),
        (Leaf, '{"when":null,"name":"a"}', Leaf("a", None)),
        (dict[int, int], '{"01":1}', {1: 1}),
    ],
)
def test_other_languages_may_write_a_value_another_way(hint: Any, wire: str, value: Any) -> None:
    assert alike(from_wire(hint, wire), value)


@given(value=plain)
def test_a_refusal_and_an_acceptance_never_change_the_callers_value(value: Any) -> None:
    before = msgspec.json.encode(value)
    with suppress(PayloadTooLarge):
        codec_for(Any).encode((value,), {})
    assert msgspec.json.encode(value) == before
