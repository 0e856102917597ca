"""Lists, tuples, sets and mappings of other forms."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

import msgspec

from tenure.wire.form import MAX_DIGITS, Form, Misfit, Walk
from tenure.wire.plain import key_path

_ARRAY: Final = frozenset({list})
_OBJECT: Final = frozenset({dict})


class ArrayForm(Form):
    """``list``, ``tuple[T, ...]``, ``set`` or ``frozenset`` of one form: a JSON array, sorted of sets."""

    __slots__ = ("_cls", "_item")

    def __init__(self, name: str, cls: type[Any], item: Form) -> None:
        super().__init__(name, _ARRAY)
        self._cls = cls
        self._item = item

    def holds(self, value: Any) -> bool:
        """Tell by the exact type."""
        return type(value) is self._cls

    def encode(self, value: Any, walk: Walk) -> Any:
        """Return the members' wire values."""
        if type(value) is not self._cls:
            raise self.mismatch(value)
        walk.enter(len(value))
        wire = value if self._item.goes_as_is(value) else _each(index_path, self._item.encode, value, walk)
        walk.leave()
        return wire if self._cls is list or self._cls is tuple else sorted(wire, key=_written)

    def decode(self, wire: Any) -> Any:
        """Return the container of the members."""
        if type(wire) is not list:
            raise self.mismatch(wire)
        members = wire if self._item.comes_as_is(wire) else _each(index_path, self._item.decode, wire)
        if self._cls is list:
            return members
        try:
            return self._cls(members)
        except TypeError:
            raise Misfit("members that cannot be in a set") from None


def _written(wire: Any) -> bytes:
    """Return what sorts the members of a set: the same in every process, so that equal calls are written equally."""
    try:
        return msgspec.json.encode(wire)
    except ValueError:
        return b""  # it has no JSON form, and whoever writes the whole says so


class TupleForm(Form):
    """``tuple[A, B]``: a JSON array of exactly these."""

    __slots__ = ("_items",)

    def __init__(self, name: str, items: tuple[Form, ...]) -> None:
        super().__init__(name, _ARRAY)
        self._items = items

    def holds(self, value: Any) -> bool:
        """Tell by the exact type, and the length."""
        return type(value) is tuple and len(value) == len(self._items)

    def encode(self, value: Any, walk: Walk) -> Any:
        """Return the members' wire values."""
        if type(value) is not tuple:
            raise self.mismatch(value)
        self._check_length(value)
        walk.enter(len(value))
        wire = [_member(form.encode, index, value[index], walk) for index, form in enumerate(self._items)]
        walk.leave()
        return wire

    def decode(self, wire: Any) -> Any:
        """Return the tuple."""
        if type(wire) is not list:
            raise self.mismatch(wire)
        self._check_length(wire)
        return tuple(_member(form.decode, index, wire[index]) for index, form in enumerate(self._items))

    def _check_length(self, value: Collection[Any]) -> None:
        if len(value) != len(self._items):
            raise Misfit(f"expected {len(self._items)} members, got {len(value)}")


class DictForm(Form):
    """``dict`` of two forms: a JSON object, whose keys are strings."""

    __slots__ = ("_key", "_value")

    def __init__(self, name: str, key: "KeyForm", value: Form) -> None:
        super().__init__(name, _OBJECT)
        self._key = key
        self._value = value

    def holds(self, value: Any) -> bool:
        """Tell by the exact type."""
        return type(value) is dict

    def encode(self, value: Any, walk: Walk) -> Any:
        """Return the object."""
        if type(value) is not dict:
            raise self.mismatch(value)
        walk.enter(len(value))
        keys = value if self._key.goes_as_is(value) else _each(key_path, self._key.encode, value, walk)
        members = value.values()
        if not self._value.goes_as_is(members):
            wire = dict(zip(keys, _each(key_path, self._value.encode, members, walk), strict=True))
        elif keys is value:
            wire = value
        else:
            wire = dict(zip(keys, members, strict=True))
        walk.leave()
        return wire

    def decode(self, wire: Any) -> Any:
        """Return the dict."""
        if type(wire) is not dict:
            raise self.mismatch(wire)
        plain_keys, plain_values = self._key.comes_as_is(wire), self._value.comes_as_is(wire.values())
        if plain_keys and plain_values:
            return wire
        keys = wire if plain_keys else _each(key_path, self._key.decode, wire)
        values = wire.values() if plain_values else _each(key_path, self._value.decode, wire.values())
        return dict(zip(keys, values, strict=True))


class KeyForm:
    """A form in the place of a key: strings as they are, integers in plain decimal."""

    __slots__ = ("_form", "_number")

    def __init__(self, form: Form) -> None:
        self._form = form
        self._number = form.kinds == {int}

    def encode(self, key: Any, walk: Walk) -> str:
        """Return the key's string."""
        return str(msgspec.to_builtins(self._form.encode(key, walk)))

    def decode(self, text: str) -> Any:
        """Return the key."""
        return self._form.decode(_integer(text) if self._number else text)

    def goes_as_is(self, keys: Collection[Any]) -> bool:
        """Tell whether all keys are strings and stay so."""
        return not self._number and self._form.goes_as_is(keys) and {str}.issuperset(map(type, keys))

    def comes_as_is(self, keys: Collection[Any]) -> bool:
        """Tell whether all keys are strings and stay so."""
        return not self._number and self._form.comes_as_is(keys)


def can_be_key(form: Form) -> bool:
    """Tell whether the form's values are told apart as the keys of a JSON object."""
    return form.kinds in (frozenset({str}), frozenset({int}))


def _integer(text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(text) > MAX_DIGITS:
        raise Misfit("expected a key of digits")
    try:
        return int(text)
    except ValueError:  # sys.set_int_max_str_digits
        raise Misfit("a key of more digits than this process reads") from None


def _each(place: Callable[[int], str], convert: Callable[..., Any], values: Iterable[Any], *rest: Walk) -> list[Any]:
    converted: list[Any] = []
    try:
        for value in values:
            converted.append(convert(value, *rest))  # noqa: PERF401  (its length is the path)
    except Misfit as misfit:
        raise misfit.under(place(len(converted))) from None
    return converted


def index_path(index: int) -> str:
    """Return the path to a member of an array."""
    return f"[{index}]"


def _member(convert: Callable[..., Any], index: int, value: Any, *rest: Walk) -> Any:
    try:
        return convert(value, *rest)
    except Misfit as misfit:
        raise misfit.under(index_path(index)) from None
