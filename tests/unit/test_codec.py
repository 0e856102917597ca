"""What each type looks like on the wire, and that it comes back."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from tests.support.codecs import there_and_back, wire_of
from tests.support.examples import (
    JSON,
    NOON,
    Access,
    Bounded,
    Box,
    Circle,
    Colour,
    Count,
    Grid,
    Instant,
    Level,
    Loose,
    Maybe,
    Money,
    Number,
    Options,
    Person,
    Point,
    Ratio,
    Row,
    Square,
    T,
    Text,
    UserId,
    Word,
    numbered,
)

EXACT: list[tuple[Any, Any, str]] = [
    (None, None, "null"),
    (str, "", '""'),
    (str, "Zoë 😀 \x00 \u2028", '"Zoë 😀 \\u0000 \u2028"'),
    (bool, True, "true"),
    (int, 0, "0"),
    (int, 2**63 - 1, "9223372036854775807"),
    (int, 2**64 + 1, "18446744073709551617"),
    (int, -(2**70), "-1180591620717411303424"),
    (int, 130775545883395173, "130775545883395173"),
    (int, 2**53 + 1, "9007199254740993"),
    (float, 1.0, "1.0"),
    (float, 1.1, "1.1"),
    (float, -0.0, "-0.0"),
    (float, 5e-324, "5e-324"),
    (float, 1.7976931348623157e308, "1.7976931348623157e308"),
    (bytes, b"\x00\xff", '"AP8="'),
    (bytes, b"", '""'),
    (bytearray, bytearray(b"a"), '"YQ=="'),
    (datetime, NOON, '"2025-06-01T12:00:00.000007"'),
    (datetime, NOON.replace(tzinfo=UTC), '"2025-06-01T12:00:00.000007Z"'),
    (datetime, NOON.replace(tzinfo=timezone(timedelta(hours=5, minutes=45))), '"2025-06-01T12:00:00.000007+05:45"'),
    (datetime, datetime.max, '"9999-12-31T23:59:59.999999"'),  # noqa: DTZ901
    (datetime, datetime.min, '"0001-01-01T00:00:00"'),  # noqa: DTZ901
    (date, date(2025, 2, 3), '"2025-02-03"'),
    (time, time(1, 2, 3, 4), '"01:02:03.000004"'),
    (time, time(1, tzinfo=UTC), '"01:00:00Z"'),
    (timedelta, timedelta(0), '"P0D"'),
    (timedelta, timedelta(days=1, seconds=2, microseconds=3), '"P1DT2.000003S"'),
    (timedelta, timedelta(microseconds=-1), '"-PT0.000001S"'),
    (timedelta, timedelta.min, '"-P999999999D"'),
    (Decimal, Decimal("1.10"), '"1.10"'),
    (Decimal, Decimal("-0"), '"-0"'),
    (Decimal, Decimal("1E+400"), '"1E+400"'),
    (Decimal, Decimal("1E-999999999999999999"), '"1E-999999999999999999"'),
    (UUID, UUID(int=5), '"00000000-0000-0000-0000-000000000005"'),
    (Colour, Colour.BLUE, '"blue"'),
    (Level, Level.HIGH, "2"),
    (Word, Word.YES, '"yes"'),
    (Point, Point.ONE, '"ONE"'),
    (Access, Access.READ | Access.WRITE, "3"),
    (Literal["a", 1, None], 1, "1"),
    (Literal["a", 1, None], None, "null"),
    (Literal[Colour.RED, b"x"], Colour.RED, '"red"'),
    (Literal[Colour.RED, b"x"], b"x", '"eA=="'),
    (list[int], [1, 2], "[1,2]"),
    (list[int], [], "[]"),
    (list, [1, "a", None, [], {}], '[1,"a",null,[],{}]'),
    (Sequence[str], ["a"], '["a"]'),
    (Iterable[date], [date(2025, 1, 1)], '["2025-01-01"]'),
    (list[UUID], [UUID(int=1)], '["00000000-0000-0000-0000-000000000001"]'),
    (list[bool], [True, False], "[true,false]"),
    (list[float], [1.0, 2.5], "[1.0,2.5]"),
    (tuple[int, str], (1, "a"), '[1,"a"]'),
    (tuple[int, ...], (1, 2, 3), "[1,2,3]"),
    (tuple, (1, "a"), '[1,"a"]'),
    (tuple[()], (), "[]"),
    (set[int], {3}, "[3]"),
    (set[UUID], {UUID(int=1)}, '["00000000-0000-0000-0000-000000000001"]'),
    (frozenset[Colour], frozenset({Colour.RED}), '["red"]'),
    (dict[str, int], {"a": 1}, '{"a":1}'),
    (dict, {"a": [1]}, '{"a":[1]}'),
    (dict[int, str], {1: "a", -2: "b"}, '{"1":"a","-2":"b"}'),
    (
        dict[UUID, list[date]],
        {UUID(int=1): [date(2025, 1, 1)]},
        '{"00000000-0000-0000-0000-000000000001":["2025-01-01"]}',
    ),
    (dict[Colour, int], {Colour.RED: 1}, '{"red":1}'),
    (dict[Level, int], {Level.LOW: 1}, '{"1":1}'),
    (dict[datetime, int], {NOON: 1}, '{"2025-06-01T12:00:00.000007":1}'),
    (dict[str, date], {"a": date(2025, 1, 1)}, '{"a":"2025-01-01"}'),
    (Mapping[str, Any], {"": {}}, '{"":{}}'),
    (Row, Row("a"), '["a",3]'),
    (Options, {"name": "a"}, '{"name":"a"}'),
    (Options, {"name": "a", "limit": 2}, '{"name":"a","limit":2}'),
    (Loose, {"name": "a", "when": date(2025, 1, 1)}, '{"name":"a","when":"2025-01-01"}'),
    (Money, Money(amount=Decimal("1.50")), '{"amount":"1.50","currency":"EUR"}'),
    (
        Person,
        Person("Ana", date(1999, 1, 1), [Person("Bo")]),
        '{"name":"Ana","born":"1999-01-01","friends":[{"name":"Bo","born":null,"friends":[]}]}',
    ),
    (Box[date], Box(date(2025, 1, 1)), '{"content":"2025-01-01"}'),
    (Box[list[Decimal]], Box([Decimal(1)]), '{"content":["1"]}'),
    (Box, Box([1]), '{"content":[1]}'),
    (int | None, None, "null"),
    (date | None, date(2025, 1, 1), '"2025-01-01"'),
    (int | str | None, "a", '"a"'),
    (int | float, 1, "1"),
    (int | float, 1.0, "1.0"),
    (bool | int, True, "true"),
    (list[int] | dict[str, int] | int, {"a": 1}, '{"a":1}'),
    (date | datetime, date(2025, 1, 1), '{"date":"2025-01-01"}'),
    (date | datetime, NOON, '{"datetime":"2025-06-01T12:00:00.000007"}'),
    (str | bytes | None, "abcd", '{"str":"abcd"}'),
    (str | bytes | None, b"abc", '{"bytes":"YWJj"}'),
    (str | bytes | None, None, "null"),
    (Circle | Square, Square(2.0), '{"Square":{"radius":2.0}}'),
    (list[int] | tuple[int, ...], (1,), '{"tuple[int, ...]":[1]}'),
    (list[int] | list[str], ["a"], '{"list[str]":["a"]}'),
    (Any, {"a": [1, 2.5, None, True, "x", {}]}, '{"a":[1,2.5,null,true,"x",{}]}'),
    (object, [1], "[1]"),
    (str | Any, [1], "[1]"),
    (UserId, UserId(5), "5"),
    (JSON, {"a": [None, {"b": [1.5, "x"]}]}, '{"a":[null,{"b":[1.5,"x"]}]}'),
    (JSON | None, None, "null"),
    (Grid[date], [[date(2025, 1, 1)]], '[["2025-01-01"]]'),
    (Word | str, Word.YES, '{"Word":"yes"}'),
    (Word | str, "yes", '{"str":"yes"}'),
    (Literal["a"] | Word, "a", """{"Literal['a']":"a"}"""),
    (T | None, ["a"], '["a"]'),
    (Number | date, date(2025, 1, 1), '{"date":"2025-01-01"}'),
    (Annotated[int | None, "x"] | str, None, "null"),
    (tuple[int, str] | int, (1, "a"), '[1,"a"]'),
    (Options | int, {"name": "a"}, '{"name":"a"}'),
    (Row | int, Row("a", 1), '["a",1]'),
    (Colour | int, Colour.RED, '"red"'),
    (Maybe | str, None, "null"),
    (JSON | date, [1.5], '{"list[JSON]":[1.5]}'),
    (Annotated[date, ["cannot be hashed"]], date(2025, 1, 1), '"2025-01-01"'),
    (Annotated[date, "a remark"], date(2025, 1, 1), '"2025-01-01"'),
    (T, ["a"], '["a"]'),
    (Number, Decimal(1), '"1"'),
    (Bounded, date(2025, 1, 1), '"2025-01-01"'),
]


@pytest.mark.parametrize(("hint", "value", "wire"), EXACT, ids=numbered(EXACT))
def test_a_value_has_this_wire_form_and_comes_back_equal_and_of_the_same_type(hint: Any, value: Any, wire: str) -> None:
    assert wire_of(hint, value) == wire
    back = there_and_back(hint, value)
    assert back == value
    assert repr(back) == repr(value)


def test_an_integer_of_4300_characters_is_exact() -> None:
    for value in (10**4300 - 1, -(10**4299) + 1):
        assert there_and_back(int, value) == value
        assert there_and_back(dict[int, int], {value: value}) == {value: value}
        assert there_and_back(Any, [value]) == [value]


def test_a_datetime_keeps_its_instant_and_its_offset_but_not_the_name_of_its_zone() -> None:
    summer = datetime(2025, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    back = there_and_back(datetime, summer)
    assert back == summer
    assert back.utcoffset() == timedelta(hours=2)
    assert back.tzinfo == timezone(timedelta(hours=2))


def test_the_two_hours_of_a_clock_going_back_stay_apart() -> None:
    first = datetime(2025, 10, 26, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    second = first.replace(fold=1)
    assert there_and_back(datetime, first).utcoffset() == timedelta(hours=2)
    assert there_and_back(datetime, second).utcoffset() == timedelta(hours=1)


@pytest.mark.parametrize(
    ("hint", "value", "back"),
    [
        (str, Text("a"), "a"),
        (str, Word.YES, "yes"),
        (int, Count(5), 5),
        (int, Level.LOW, 1),
        (float, Ratio(1.5), 1.5),
        (float, 3, 3.0),
        (bytes, type("Blob", (bytes,), {})(b"a"), b"a"),
        (datetime, Instant(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)),
        (date, type("Day", (date,), {})(2025, 1, 1), date(2025, 1, 1)),
        (time, type("Clock", (time,), {})(1, 2), time(1, 2)),
        (timedelta, type("Span", (timedelta,), {})(1, 2, 3), timedelta(1, 2, 3)),
        (Decimal, type("Exact", (Decimal,), {})("1.0"), Decimal("1.0")),
        (UUID, type("Key", (UUID,), {})(int=1), UUID(int=1)),
        (bytearray, type("Buffer", (bytearray,), {})(b"a"), bytearray(b"a")),
    ],
)
def test_a_value_of_a_subclass_arrives_as_the_annotated_class(hint: Any, value: Any, back: Any) -> None:
    arrived = there_and_back(hint, value)
    assert arrived == back
    assert type(arrived) is type(back)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="`type` is a statement since Python 3.12")
def test_a_type_statement_is_what_it_stands_for_and_may_contain_itself() -> None:
    names: dict[str, Any] = {}
    exec("type Tree = dict[str, Tree] | list[Tree] | int\ntype Grid[T] = list[list[T]]", names)
    tree = {"a": [1, {"b": []}]}
    assert there_and_back(names["Tree"], tree) == tree
    assert there_and_back(names["Grid"][date], [[date(2025, 1, 1)]]) == [[date(2025, 1, 1)]]
