"""What each type looks like on the wire, and that it comes back."""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Required, TypedDict, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from tenure.errors import NotEncodable, Undecodable
from tests.support.codecs import from_wire, there_and_back, wire_of

T = TypeVar("T")
Number = TypeVar("Number", int, Decimal)
Bounded = TypeVar("Bounded", bound=date)
UserId = NewType("UserId", int)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(enum.StrEnum):
    YES = "yes"


class Point(enum.Enum):
    """Values that are neither strings nor integers."""

    ORIGIN = (0, 0)
    ONE = (1, 1)


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Row(NamedTuple):
    name: str
    size: int = 3


class Options(TypedDict):
    name: str
    limit: NotRequired[int]


class Loose(TypedDict, total=False):
    name: Required[str]
    when: date


@dataclass
class Person:
    name: str
    born: date | None = None
    friends: list["Person"] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    amount: Decimal
    currency: Literal["EUR", "USD"] = "EUR"


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class Circle:
    radius: float


@dataclass
class Square:
    radius: float


def numbered(cases: list[Any]) -> list[str]:
    """Names for cases whose values have none."""
    return [f"{index}-{case[0]}" for index, case in enumerate(cases)]


NOON = datetime(2025, 6, 1, 12, 0, 0, 7)  # noqa: DTZ001

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


class Text(str):
    __slots__ = ()


class Count(int):
    pass


class Ratio(float):
    pass


class Instant(datetime):
    pass


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


REFUSED: list[tuple[Any, Any, str, str]] = [
    (Any, NOON, "", "datetime is not a JSON value; annotate the parameter"),
    (Any, {"when": [NOON]}, "[key #1][0]", "datetime is not a JSON value"),
    (Any, (1, 2), "", "tuple is not a JSON value"),
    (Any, {1, 2}, "", "set is not a JSON value"),
    (Any, {1: 2}, "[key #1]", "a key of type int would come back a string"),
    (Any, Level.LOW, "", "Level is not a JSON value"),
    (Any, [Text("a")], "[0]", "Text is not a JSON value"),
    (Any, [[float("nan")]], "[0][0]", "NaN and infinities"),
    (Any, object(), "", "object is not a JSON value"),
    (Any, b"a", "", "bytes is not a JSON value"),
    (float, float("inf"), "", "NaN and infinities"),
    (float, Ratio("nan"), "", "NaN and infinities"),
    (float, 2**53 + 1, "", "an integer that no float holds exactly"),
    (float, 10**400, "", "an integer that no float holds exactly"),
    (float, True, "", "expected float, got bool"),
    (list[float], [1.0, float("-inf")], "[1]", "NaN and infinities"),
    (Decimal, Decimal("NaN"), "", "NaN and infinities"),
    (Decimal, Decimal("sNaN"), "", "NaN and infinities"),
    (Decimal, Decimal("-Infinity"), "", "NaN and infinities"),
    (int, True, "", "expected int, got bool"),
    (int, 1.0, "", "expected int, got float"),
    (int, 10**4300, "", "an integer of more than 4,300 digits"),
    (list[int], [1, -(10**4299)], "[1]", "an integer of more than 4,300 digits"),
    (bool, 1, "", "expected bool, got int"),
    (str, b"a", "", "expected str, got bytes"),
    (str, None, "", "expected str, got None"),
    (None, 0, "", "expected None, got int"),
    (str, "\ud800", "", "lone surrogate"),
    (list[str], ["a", "\udfff"], "[1]", "lone surrogate"),
    (dict[str, int], {"a": 1, "\ud800": 2}, "[key #2]", "lone surrogate"),
    (Any, {"a": [{"b": "\ud800"}]}, "[key #1][0][key #1]", "lone surrogate"),
    (set[str], {"\ud800"}, "[0]", "lone surrogate"),
    (date, NOON, "", "a datetime would come back a different date"),
    (datetime, date(2025, 1, 1), "", "expected datetime, got date"),
    (datetime, "2025-01-01T00:00:00", "", "expected datetime, got str"),
    (datetime, NOON.replace(fold=1), "", "fold=1"),
    (time, time(1, fold=1), "", "fold=1"),
    (datetime, NOON.replace(tzinfo=timezone(timedelta(seconds=30))), "", "not of whole minutes"),
    (time, time(1, tzinfo=ZoneInfo("Europe/Berlin")), "", "its time zone has no offset"),
    (Colour, "red", "", "expected Colour, got str"),
    (Level, 1, "", "expected Level, got int"),
    (Literal["a", 1], True, "", "expected Literal['a', 1], got another bool"),
    (Literal["a", 1], "b", "", "expected Literal['a', 1], got another str"),
    (list[int], (1,), "", "expected list[int], got tuple"),
    (list[int], [1, "a"], "[1]", "expected int, got str"),
    (Sequence[int], (1,), "", "expected Sequence[int], got tuple"),
    (Iterable[int], iter([1]), "", "expected Iterable[int], got list_iterator"),
    (set[int], frozenset({1}), "", "expected set[int], got frozenset"),
    (tuple[int, str], (1,), "", "expected 2 members, got 1"),
    (tuple[int, str], (1, 2), "[1]", "expected str, got int"),
    (tuple[int, str], [1, "a"], "", "expected tuple[int, str], got list"),
    (dict[str, int], {1: 1}, "[key #1]", "expected str, got int"),
    (dict[int, int], {"1": 1}, "[key #1]", "expected int, got str"),
    (dict[str, int], [("a", 1)], "", "expected dict[str, int], got list"),
    (dict[str, list[int]], {"a": [], "b": [1, None]}, "[key #2][1]", "expected int, got None"),
    (dict[float, int], {1.0: 1}, "", "keys of type float have no wire form"),
    (dict[tuple[int, int], int], {}, "", "keys of type tuple[int, int] have no wire form"),
    (dict[int | None, int], {}, "", "keys of type int | None have no wire form"),
    (Row, ("a", 1), "", "expected Row, got tuple"),
    (Row, Row("a", "b"), ".size", "expected int, got str"),  # type: ignore[arg-type]
    (Options, {"limit": 1}, ".name", "missing"),
    (Options, {"name": "a", "other": 1}, "", "a field that Options does not have"),
    (Options, {"name": "a", 1: 1}, "", "a field that Options does not have"),
    (Options, {"name": "a", "limit": "b"}, ".limit", "expected int, got str"),
    (Options, [], "", "expected Options, got list"),
    (Person, {"name": "Ana"}, "", "expected Person, got dict"),
    (list[Person], [Person("a"), Person("b", friends=[Person(5)])], "[1].friends[0].name", "expected str, got int"),  # type: ignore[arg-type]
    (date | datetime, "2025", "", "expected date | datetime, got str"),
    (int | None, "a", "", "expected int | None, got str"),
    (int | list[str], ["a", 1], "[1]", "expected str, got int"),
    (complex, 1j, "", "complex has no wire form"),
    (complex | None, 1j, "", "complex has no wire form"),
    (type[int], int, "", "type[int] has no wire form"),
    ("Missing", 1, "", "its annotation could not be resolved"),
]


@pytest.mark.parametrize(("hint", "value", "path", "problem"), REFUSED, ids=numbered(REFUSED))
def test_what_would_not_come_back_is_refused_by_argument_and_path(
    hint: Any, value: Any, path: str, problem: str
) -> None:
    with pytest.raises(NotEncodable) as refused:
        wire_of(hint, value)
    assert refused.value.argument == "value"
    assert refused.value.path == path
    assert problem in str(refused.value)
    assert f"at value{path}; nothing was sent" in str(refused.value)


def test_a_field_that_may_be_none_accepts_none_though_its_other_type_has_no_wire_form() -> None:
    assert there_and_back(complex | None, None) is None


@dataclass
class Temperature:
    celsius: float

    def __post_init__(self) -> None:
        self.celsius = round(self.celsius)


@dataclass
class Total:
    parts: list[int]
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(self.parts)


@dataclass(init=False)
class Picky:
    word: str

    def __init__(self, word: str) -> None:
        if word == "bad":
            raise RuntimeError(word)
        self.word = word


@dataclass
class Seeded:
    seed: InitVar[int]
    value: int = 0


def test_a_dataclass_that_computes_a_field_comes_back_with_it() -> None:
    assert there_and_back(Total, Total([1, 2])) == Total([1, 2])


def test_a_dataclass_that_would_compute_another_field_is_refused() -> None:
    changed = Total([1, 2])
    changed.total = 99
    with pytest.raises(NotEncodable, match="this Total would come back different"):
        wire_of(Total, changed)


def test_a_dataclass_that_would_change_what_it_is_given_is_refused() -> None:
    warm = Temperature(20)
    warm.celsius = 20.5
    with pytest.raises(NotEncodable, match="this Temperature would come back different"):
        wire_of(Temperature, warm)


def test_a_dataclass_whose_constructor_refuses_what_it_was_given_is_refused_without_the_value() -> None:
    changed = Picky("good")
    assert there_and_back(Picky, changed) == changed
    changed.word = "bad"
    with pytest.raises(NotEncodable, match=r"Picky refused its fields \(RuntimeError\)") as refused:
        wire_of(Picky, changed)
    assert "bad" not in str(refused.value)
    with pytest.raises(Undecodable, match=r"Picky refused its fields \(RuntimeError\)") as unreadable:
        from_wire(Picky, '{"word":"bad"}')
    assert "bad" not in str(unreadable.value)


def test_a_dataclass_without_one_of_its_fields_is_refused() -> None:
    hollow = Money.__new__(Money)
    with pytest.raises(NotEncodable, match=r"a field without a value at value\.amount"):
        wire_of(Money, hollow)


def test_a_dataclass_with_values_that_it_does_not_keep_has_no_wire_form() -> None:
    with pytest.raises(NotEncodable, match="takes values that it does not keep"):
        wire_of(Seeded, Seeded(1))


def test_a_subclass_of_a_dataclass_is_refused() -> None:
    @dataclass
    class Employee(Person):
        salary: int = 0

    with pytest.raises(NotEncodable, match=r"expected Person, got .*Employee"):
        wire_of(Person, Employee("Ana"))


def test_a_lone_surrogate_inside_a_dataclass_that_computes_is_explained() -> None:
    @dataclass
    class Named:
        name: str

        def __post_init__(self) -> None:
            pass

    with pytest.raises(NotEncodable, match="lone surrogate"):
        wire_of(Named, Named("\ud800"))
