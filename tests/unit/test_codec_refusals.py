"""What the codec refuses at the push, by argument and path and never by value."""

import enum
import sys
from collections.abc import Iterable, Sequence
from dataclasses import InitVar, dataclass, field, make_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal, Union, cast
from zoneinfo import ZoneInfo

import msgspec
import pytest

from tenure.errors import NotEncodable, Undecodable
from tests.support.codecs import from_wire, there_and_back, wire_of
from tests.support.examples import NOON, Colour, Level, Money, Options, Person, Ratio, Row, Text, numbered

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


# K19
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


def test_a_union_of_containers_tells_them_apart_however_often_the_first_does_not_fit() -> None:
    rows: list[list[int] | list[str]] = [["a"], [1]] * 100
    assert there_and_back(list[list[int] | list[str]], rows) == rows


def test_an_integer_that_this_process_may_not_write_is_refused_and_one_that_it_may_not_read_undecodable() -> None:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(700)
    try:
        with pytest.raises(NotEncodable, match=r"an integer of more digits than this process writes at value\[1\]"):
            wire_of(Any, [1, 10**800])
        with pytest.raises(Undecodable):
            from_wire(dict[int, int], '{"' + "1" * 800 + '":1}')
    finally:
        sys.set_int_max_str_digits(limit)


def test_a_stored_value_that_nests_deeper_than_the_stack_is_undecodable() -> None:
    deep = '{"name":"a","friends":[' * 300 + "]}" * 300
    with pytest.raises(Undecodable, match="the arguments are nested too deeply"):
        from_wire(Person, deep)


def test_two_members_of_a_union_with_the_same_name_have_no_wire_form() -> None:
    here, there = make_dataclass("Twin", [("a", int)]), make_dataclass("Twin", [("b", int)])
    with pytest.raises(NotEncodable, match="two members of its union have the same name"):
        wire_of(cast("Any", Union)[here, there], here(1))


@dataclass
class Lost:
    where: "Nowhere"  # type: ignore[name-defined]  # noqa: F821


class LostStruct(msgspec.Struct):
    where: "Nowhere"  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("cls", [Lost, LostStruct])
def test_a_class_whose_annotations_cannot_be_resolved_has_no_wire_form(cls: Any) -> None:
    with pytest.raises(NotEncodable, match=rf"{cls.__name__}.* \(NameError\)"):
        wire_of(cls, cls(1))
    with pytest.raises(Undecodable):
        from_wire(cls, '{"where":1}')


def test_a_literal_without_a_wire_form_is_refused() -> None:
    hint = cast("Any", Literal)[1j]
    with pytest.raises(NotEncodable, match="a literal without a wire form"):
        wire_of(hint, 1j)


def test_a_member_that_its_enumeration_does_not_give_back_is_refused() -> None:
    class Loose(enum.IntFlag, boundary=enum.EJECT):
        READ = 1

    pseudo = int.__new__(Loose, 4)
    pseudo._value_ = 4
    with pytest.raises(NotEncodable, match="Loose would not come back"):
        wire_of(Loose, pseudo)
    with pytest.raises(Undecodable, match="not a member of"):
        from_wire(Loose, "4")
