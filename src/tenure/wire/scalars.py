"""Single values: what JSON has of its own, and the standard library's types that travel as strings.

A value of a subclass arrives as the annotated class, if it is equal to that. ``bool`` is no ``int`` here.
"""

import math
import re
from collections.abc import Callable, Collection
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec

from tenure.wire.form import INTEGER_LIMIT, NEGATIVE_LIMIT, Form, Misfit, Walk

T = TypeVar("T")
_STRING: Final = frozenset({str})
_NUMBERS: Final = frozenset({int, float})


class NoneForm(Form):
    """None: JSON null."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("None", frozenset({NoneType}))

    def holds(self, value: Any) -> bool:
        """Only None is None."""
        return value is None

    def encode(self, value: Any, walk: Walk) -> Any:  # noqa: ARG002
        """Return None."""
        return self.decode(value)

    def decode(self, wire: Any) -> Any:
        """Return None."""
        if wire is not None:
            raise self.mismatch(wire)


class NativeForm(Form):
    """Strings and booleans: their own wire form."""

    __slots__ = ("_cls",)

    def __init__(self, cls: type) -> None:
        super().__init__(cls.__name__, frozenset({cls}))
        self._cls = cls

    def holds(self, value: Any) -> bool:
        """Tell by the exact type."""
        return type(value) is self._cls

    def encode(self, value: Any, walk: Walk) -> Any:  # noqa: ARG002
        """Return the value."""
        if type(value) is self._cls:
            return value
        if isinstance(value, str) and self._cls is str:
            return str.__str__(value)
        raise self.mismatch(value)

    def decode(self, wire: Any) -> Any:
        """Return the value."""
        if type(wire) is self._cls:
            return wire
        raise self.mismatch(wire)

    def goes_as_is(self, values: Collection[Any]) -> bool:
        """Look at the types."""
        return {self._cls}.issuperset(map(type, values))

    def comes_as_is(self, wires: Collection[Any]) -> bool:
        """Look at the types."""
        return self.goes_as_is(wires)


class IntForm(Form):
    """Integers, exact up to 4,300 digits."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("int", frozenset({int}))

    def holds(self, value: Any) -> bool:
        """Tell by the exact type."""
        return type(value) is int

    def encode(self, value: Any, walk: Walk) -> Any:  # noqa: ARG002
        """Return the integer."""
        if type(value) is not int:
            if not isinstance(value, int) or isinstance(value, bool):
                raise self.mismatch(value)
            value = int.__int__(value)
        return short(value)

    def decode(self, wire: Any) -> Any:
        """Return the integer."""
        if type(wire) is int:
            return wire
        raise self.mismatch(wire)

    def goes_as_is(self, values: Collection[Any]) -> bool:
        """Look at the types, and at the largest and smallest."""
        return (
            {int}.issuperset(map(type, values))
            and max(values, default=0) < INTEGER_LIMIT
            and min(values, default=0) > NEGATIVE_LIMIT
        )

    def comes_as_is(self, wires: Collection[Any]) -> bool:
        """Look at the types."""
        return {int}.issuperset(map(type, wires))


class FloatForm(Form):
    """Finite floats. An integer that a float can hold arrives as that float (PEP 484)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("float", _NUMBERS)

    def holds(self, value: Any) -> bool:
        """Tell by the exact type."""
        return type(value) is float

    def encode(self, value: Any, walk: Walk) -> Any:  # noqa: ARG002
        """Return the float."""
        if type(value) is float:
            return finite(value)
        if isinstance(value, float):
            return finite(float.__float__(value))
        if isinstance(value, int) and not isinstance(value, bool):
            return self._widened(int.__int__(value))
        raise self.mismatch(value)

    def decode(self, wire: Any) -> Any:
        """Return the float."""
        if type(wire) is float:
            return wire
        if type(wire) is int:
            return self._widened(wire)
        raise self.mismatch(wire)

    def goes_as_is(self, values: Collection[Any]) -> bool:
        """Look at the types, and for NaN and infinities."""
        return {float}.issuperset(map(type, values)) and all(map(math.isfinite, values))

    def comes_as_is(self, wires: Collection[Any]) -> bool:
        """Look at the types."""
        return {float}.issuperset(map(type, wires))

    @staticmethod
    def _widened(value: int) -> float:
        try:
            wide = float(value)
        except OverflowError:
            wide = math.inf
        if wide != value:
            raise Misfit("an integer that no float holds exactly")
        return wide


class StringForm(Form):
    """A type that travels as a string, which the JSON encoder writes.

    Args:
        cls: the type.
        check: raises ``Misfit`` for a value that would not come back equal.
        restore: makes the value out of a string, or raises.
        plain: makes a value of exactly the type out of a subclass's.
    """

    __slots__ = ("_check", "_cls", "_plain", "_restore")

    def __init__(
        self,
        cls: type[T],
        *,
        restore: Callable[[str], T],
        plain: Callable[[T], T],
        check: Callable[[T], object] | None = None,
    ) -> None:
        super().__init__(cls.__name__, _STRING)
        self._cls: type = cls
        self._check: Callable[[Any], object] | None = check
        self._restore: Callable[[str], Any] = restore
        self._plain: Callable[[Any], Any] = plain

    def holds(self, value: Any) -> bool:
        """Tell by the exact type."""
        return type(value) is self._cls

    def encode(self, value: Any, walk: Walk) -> Any:  # noqa: ARG002
        """Return the value, for the JSON encoder to write."""
        if type(value) is not self._cls:
            value = self._narrowed(value)
        if self._check is not None:
            self._check(value)
        return value

    def decode(self, wire: Any) -> Any:
        """Return the value that the string stands for."""
        if type(wire) is not str:
            raise self.mismatch(wire)
        try:
            return self._restore(wire)
        except (ValueError, ArithmeticError):  # their messages hold the string
            raise Misfit(f"not the wire form of {self.name}") from None

    def goes_as_is(self, values: Collection[Any]) -> bool:
        """Look at the types, where these say everything."""
        return self._check is None and {self._cls}.issuperset(map(type, values))

    def _narrowed(self, value: Any) -> Any:
        if not isinstance(value, self._cls):
            raise self.mismatch(value)
        plain = self._plain(value)
        if plain != value:
            raise Misfit(f"a {type(value).__qualname__} would come back a different {self.name}")
        return plain


def short(value: int) -> int:
    """Return the integer, or raise ``Misfit`` when it has over 4,300 digits, or 4,299 and a minus sign."""
    if NEGATIVE_LIMIT < value < INTEGER_LIMIT:
        return value
    raise Misfit("an integer of more than 4,300 digits")


def finite(value: float) -> float:
    """Return the float, or raise ``Misfit``: JSON has neither NaN nor infinities."""
    if math.isfinite(value):
        return value
    raise Misfit("NaN and infinities have no wire form")


def _exact_datetime(value: datetime) -> None:
    if value.tzinfo is None:
        if value.fold:
            raise Misfit("a naive datetime with fold=1 would come back without it; make it aware")
    else:
        _whole_minutes(value.utcoffset())


def _exact_time(value: time) -> None:
    if value.tzinfo is None:
        if value.fold:
            raise Misfit("a time with fold=1 would come back without it")
    else:
        _whole_minutes(value.utcoffset())


def _whole_minutes(offset: timedelta | None) -> None:
    if offset is None:
        raise Misfit("its time zone has no offset from UTC")
    if offset.seconds % 60 or offset.microseconds:
        raise Misfit("its offset from UTC is not of whole minutes; convert it to UTC")


def _finite_decimal(value: Decimal) -> None:
    if not value.is_finite():
        raise Misfit("NaN and infinities have no wire form")


_DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[Ee][+-]?[0-9]{1,18})?", re.ASCII)


def _decimal(text: str) -> Decimal:
    if not _DECIMAL.fullmatch(text):
        raise ValueError
    return Decimal(text)


def scalars() -> dict[Any, Form]:
    """Return the forms of all single values, by their class."""
    return {
        NoneType: NoneForm(),
        str: NativeForm(str),
        bool: NativeForm(bool),
        int: IntForm(),
        float: FloatForm(),
        datetime: StringForm(
            datetime,
            check=_exact_datetime,
            restore=lambda text: msgspec.convert(text, datetime),
            plain=lambda v: datetime.combine(date(v.year, v.month, v.day), v.timetz()),
        ),
        date: StringForm(
            date,
            restore=lambda text: msgspec.convert(text, date),
            plain=lambda v: date(v.year, v.month, v.day),
        ),
        time: StringForm(
            time,
            check=_exact_time,
            restore=lambda text: msgspec.convert(text, time),
            plain=lambda v: time(v.hour, v.minute, v.second, v.microsecond, v.tzinfo, fold=v.fold),
        ),
        timedelta: StringForm(
            timedelta,
            restore=lambda text: msgspec.convert(text, timedelta),
            plain=lambda v: timedelta(v.days, v.seconds, v.microseconds),
        ),
        Decimal: StringForm(Decimal, check=_finite_decimal, restore=_decimal, plain=Decimal),
        UUID: StringForm(
            UUID,
            restore=lambda text: msgspec.convert(text, UUID),
            plain=lambda v: UUID(int=v.int),
        ),
        bytes: StringForm(
            bytes, restore=lambda text: msgspec.convert(text, bytes), plain=lambda v: bytes(memoryview(v))
        ),
        bytearray: StringForm(
            bytearray, restore=lambda text: msgspec.convert(text, bytearray), plain=lambda v: bytearray(memoryview(v))
        ),
    }
