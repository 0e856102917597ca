"""msgspec structs and pydantic models: their own wire form, and still the same rules."""

import enum
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from tenure.errors import NotEncodable, PayloadTooLarge, Undecodable
from tests.support.codecs import from_wire, there_and_back, wire_of

T = TypeVar("T")


class Level(enum.IntEnum):
    LOW = 1


class Inner(pydantic.BaseModel):
    when: datetime
    tags: frozenset[str] = frozenset()


class Point(msgspec.Struct):
    x: int
    y: float = 0.0


class Renamed(msgspec.Struct, rename="camel", omit_defaults=True):
    first_name: str
    born_on: date | None = None


class Pair(msgspec.Struct, array_like=True):
    left: int
    right: int


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    barks: bool


class Tree(msgspec.Struct):
    children: list["Tree"] = []


class Mixed(msgspec.Struct):
    inner: Inner
    keys: dict[int, Decimal]
    anything: Any = None
    numbers: tuple[int, ...] = ()


class Parcel(msgspec.Struct, Generic[T]):
    content: T


class Guarded(msgspec.Struct):
    word: str

    def __post_init__(self) -> None:
        if self.word == "s3cret":
            raise ValueError(f"Expected `{self.word}`")


class Grumpy(msgspec.Struct):
    divisor: int

    def __post_init__(self) -> None:
        self.divisor = 1 // self.divisor


class Strange(msgspec.Struct):
    number: complex


class Unreadable(msgspec.Struct):
    when: date | datetime


NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hint", "value", "wire"),
    [
        (Point, Point(1), '{"x":1,"y":0.0}'),
        (Renamed, Renamed("Ana"), '{"firstName":"Ana"}'),
        (Pair, Pair(1, 2), "[1,2]"),
        (Cat | Dog, Dog(barks=True), '{"type":"Dog","barks":true}'),
        (Point | Renamed, Point(1), '{"Point":{"x":1,"y":0.0}}'),
        (Point | Pair | None, Pair(1, 2), "[1,2]"),
        (Tree, Tree([Tree()]), '{"children":[{"children":[]}]}'),
        (
            Mixed,
            Mixed(Inner(when=NOW), {1: Decimal("1.0")}, [1], (2,)),
            '{"inner":{"when":"2025-06-01T12:00:00Z","tags":[]},"keys":{"1":"1.0"},"anything":[1],"numbers":[2]}',
        ),
        (Parcel[date], Parcel(date(2025, 1, 1)), '{"content":"2025-01-01"}'),
        (list[Point], [Point(1), Point(2)], '[{"x":1,"y":0.0},{"x":2,"y":0.0}]'),
        (Guarded, Guarded("a"), '{"word":"a"}'),
    ],
)
def test_a_struct_travels_as_msgspec_writes_it(hint: Any, value: Any, wire: str) -> None:
    assert wire_of(hint, value) == wire
    back = there_and_back(hint, value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    ("hint", "value", "path", "problem"),
    [
        (Point, Point("a"), ".x", "expected int, got str"),  # type: ignore[arg-type]
        (Point, Point(1, float("nan")), "[key #2]", "NaN and infinities"),
        (Point, Renamed("a"), "", "expected Point, got Renamed"),
        (list[Tree], [Tree([Tree(), Tree(1)])], "[0].children[1].children", "expected array, got int"),  # type: ignore[arg-type]
        (Mixed, Mixed(Inner(when=NOW), {}, (1,)), "", "this Mixed would come back different"),
        (Mixed, Mixed(Inner(when=NOW), {}, 1, [1]), "", "this Mixed would come back different"),  # type: ignore[arg-type]
        (Mixed, Mixed(Inner(when=NOW), {}, object()), "", "object has no wire form"),
        (Mixed, Mixed(Inner(when=NOW), {True: Decimal(1)}), "", "Mixed"),
        (Mixed, Mixed(Inner(when=NOW), {}, Level.LOW), "", "this Mixed would come back different"),
        (Unreadable, Unreadable(date(2025, 1, 1)), "", "msgspec cannot read Unreadable"),
        (Renamed, Renamed("\ud800"), "[key #1]", "lone surrogate"),
    ],
)
def test_a_struct_that_would_not_come_back_is_refused(hint: Any, value: Any, path: str, problem: str) -> None:
    with pytest.raises(NotEncodable) as refused:
        wire_of(hint, value)
    assert problem in str(refused.value)
    assert refused.value.path == path


def test_a_struct_that_contains_itself_is_refused() -> None:
    tree = Tree()
    tree.children = [tree]
    with pytest.raises(PayloadTooLarge, match="argument 'value' is nested too deeply"):
        wire_of(Tree, tree)


def test_a_struct_that_raises_anything_is_told_by_the_errors_class() -> None:
    with pytest.raises(Undecodable, match=r"Grumpy refused its fields \(ZeroDivisionError\)"):
        from_wire(Grumpy, '{"divisor":0}')


def test_a_struct_of_other_classes_is_undecodable() -> None:
    with pytest.raises(Undecodable, match="complex has no wire form"):
        from_wire(Strange, '{"number":"1j"}')


def test_what_a_struct_says_about_a_value_is_not_repeated() -> None:
    guarded = Guarded("a")
    guarded.word = "s3cret"
    with pytest.raises(NotEncodable, match="it does not fit Guarded") as refused:
        wire_of(Guarded, guarded)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("hint", "wire", "problem"),
    [
        (Point, '{"y":1.0}', "object missing required field"),
        (Point, '{"x":"s3cret"}', "expected int, got str at value.x"),
        (Point, "[1]", "expected object, got array"),
        (Cat | Dog, '{"type":"s3cret"}', "it does not fit Cat | Dog"),
        (Mixed, '{"inner":{"when":"s3cret"},"keys":{}}', "Inner refused it at value"),
        (Inner, '{"when":"s3cret"}', "Inner refused it at value.when"),
        (Inner, '"s3cret"', "Inner refused it at value"),
        (Point | Renamed, '{"s3cret":{}}', "whose name is one of Point | Renamed"),
        (Point | Renamed, "1", "whose name is one of Point | Renamed, got int"),
    ],
)
def test_a_stored_model_that_does_not_fit_is_told_without_its_content(hint: Any, wire: str, problem: str) -> None:
    with pytest.raises(Undecodable) as unreadable:
        from_wire(hint, wire)
    assert problem in str(unreadable.value)
    assert "s3cret" not in str(unreadable.value)


class Address(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    street: str
    since: date
    raw: bytes = b""


class Customer(pydantic.BaseModel):
    key: UUID = pydantic.Field(alias="customerKey")
    balance: Decimal = Decimal(0)
    address: Address | None = None
    extra: dict[str, Any] = {}

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def rich(self) -> bool:
        return self.balance > 1000


class Tags(pydantic.RootModel[list[str]]):
    pass


class Account(pydantic.BaseModel):
    password: pydantic.SecretStr


class Hidden(pydantic.BaseModel):
    kept: int
    dropped: int = pydantic.Field(default=0, exclude=True)


class Wide(pydantic.BaseModel):
    sizes: dict[str, int]


class Node(pydantic.BaseModel):
    children: list["Node"] = []


@pydantic.dataclasses.dataclass
class Checked:
    size: int


@dataclass
class Order:
    customer: Customer
    lines: list[Point]


ANA = Customer(customerKey=UUID(int=1), balance=Decimal("1.50"), address=Address(street="Ä", since=date(2025, 1, 1)))


@pytest.mark.parametrize(
    ("hint", "value", "wire"),
    [
        (
            Customer,
            ANA,
            '{"customerKey":"00000000-0000-0000-0000-000000000001","balance":"1.50",'
            '"address":{"street":"Ä","since":"2025-01-01","raw":""},"extra":{}}',
        ),
        (Tags, Tags(["a"]), '["a"]'),
        (Tags | None, None, "null"),
        (list[Inner], [Inner(when=NOW)], '[{"when":"2025-06-01T12:00:00Z","tags":[]}]'),
        (Checked, Checked(1), '{"size":1}'),
        (Hidden, Hidden(kept=1), '{"kept":1}'),
        (dict[UUID, Wide], {UUID(int=1): Wide(sizes={"a": 1})}, None),
        (Order, Order(ANA, [Point(1)]), None),
    ],
)
def test_a_model_travels_as_pydantic_writes_it(hint: Any, value: Any, wire: str | None) -> None:
    assert wire is None or wire_of(hint, value) == wire
    back = there_and_back(hint, value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    ("hint", "value", "problem"),
    [
        (Account, Account(password=pydantic.SecretStr("s3cret")), "this Account would come back different"),
        (Hidden, Hidden(kept=1, dropped=2), "this Hidden would come back different"),
        (Customer, {"key": 1}, "expected Customer, got dict"),
        (Customer, ANA.model_copy(update={"balance": "s3cret"}), "Customer refused it at value.balance"),
        (Customer, ANA.model_copy(update={"extra": {"s3cret": object()}}), "Customer refused to be written"),
        (Customer, ANA.model_copy(update={"extra": {"a": float("nan")}}), "value"),
        (Wide, Wide.model_construct(sizes={"s3cret": "x"}), "Wide refused it at value.sizes"),
    ],
)
def test_a_model_that_would_not_come_back_is_refused(hint: Any, value: Any, problem: str) -> None:
    with pytest.raises(NotEncodable) as refused:
        wire_of(hint, value)
    assert problem in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_model_that_contains_itself_is_refused() -> None:
    node = Node()
    node.children = [node]
    with pytest.raises((NotEncodable, PayloadTooLarge), match="argument 'value'"):
        wire_of(Node, node)


def test_a_model_nested_too_deeply_is_refused() -> None:
    node = Node()
    for _ in range(20):
        node = Node(children=[node])
    with pytest.raises(PayloadTooLarge, match="nested more deeply than 30 levels"):
        wire_of(Node, node)


def test_the_codec_does_not_import_pydantic() -> None:
    program = (
        "import sys, inspect\n"
        "from tenure.codec import ArgumentCodec\n"
        "def job(a: int, b: 'list[str]'): ...\n"
        "codec = ArgumentCodec(list(inspect.signature(job).parameters.values()), {'a': int, 'b': list[str]})\n"
        "assert codec.decode(*codec.encode((1, ['x']), {})) == ((1, ['x']), {})\n"
        "assert 'pydantic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
