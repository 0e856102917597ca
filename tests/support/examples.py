"""Types as users write them, for tests of the codec."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from types import GenericAlias
from typing import Any, Generic, Literal, NamedTuple, NewType, NotRequired, Required, TypedDict, TypeVar, Union, cast

from typing_extensions import TypeAliasType

T = TypeVar("T")
Number = TypeVar("Number", int, Decimal)
Bounded = TypeVar("Bounded", bound=date)
UserId = NewType("UserId", int)
Maybe: Any = cast("Any", NewType)("Maybe", int | None)


class Alias:
    """What ``type Name = …`` of Python 3.12 makes, as far as reading it goes: the value is looked at when needed."""

    def __init__(self, name: str, value: Callable[[], Any]) -> None:
        self.__name__ = name
        self._value = value

    @property
    def __value__(self) -> Any:
        return self._value()

    def __or__(self, other: Any) -> Any:
        return cast("Any", Union)[self, other]

    def __repr__(self) -> str:
        # Goes into the names of tests, which must be the same in every process.
        return self.__name__


def _json() -> Any:
    return cast("Any", Union)[GenericAlias(dict, (str, JSON)), GenericAlias(list, (JSON,)), str, float, None]


JSON: Any = Alias("JSON", _json)
Grid: Any = cast("Any", TypeAliasType)("Grid", list[list[T]], type_params=(T,))  # type: ignore[valid-type]


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


class Text(str):
    __slots__ = ()


class Count(int):
    pass


class Ratio(float):
    pass


class Instant(datetime):
    pass


NOON = datetime(2025, 6, 1, 12, 0, 0, 7)  # noqa: DTZ001


def numbered(cases: list[Any]) -> list[str]:
    """Names for cases whose values have none."""
    return [f"{index}-{case[0]}" for index, case in enumerate(cases)]
