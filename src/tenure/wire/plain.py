"""Parameters without an annotation, or annotated Any: JSON values and nothing else."""

from collections.abc import Sequence
from types import NoneType
from typing import Any

from tenure.wire.form import Form, Misfit, Walk, kind
from tenure.wire.scalars import finite, short

_SIMPLE = frozenset({str, bool, NoneType})
ALL_KINDS = frozenset({NoneType, bool, int, float, str, list, dict})


class PlainForm(Form):
    """JSON values: None, bool, int, float, str, list, and dict with string keys, exactly these types.

    Anything else would come back as something else, since nothing says what it was.

    Args:
        name: the annotation.
        tuples: take tuples for lists, where somebody else looks at what they come back as.
    """

    __slots__ = ("_arrays",)

    def __init__(self, name: str = "Any", *, tuples: bool = False) -> None:
        super().__init__(name, ALL_KINDS)
        self._arrays = (list, tuple) if tuples else (list,)

    def holds(self, value: Any) -> bool:
        """Tell by the exact type."""
        return type(value) in ALL_KINDS

    def encode(self, value: Any, walk: Walk) -> Any:
        """Return the value itself."""
        cls = type(value)
        if cls in _SIMPLE:
            return value
        if cls is int:
            return short(value)
        if cls is float:
            return finite(value)
        if cls in self._arrays:
            self._check_list(value, walk)
        elif cls is dict:
            self._check_dict(value, walk)
        else:
            raise Misfit(f"{kind(value)} is not a JSON value; annotate the parameter with its type")
        return value

    def decode(self, wire: Any) -> Any:
        """Return the value itself."""
        return wire

    def _check_list(self, value: Sequence[Any], walk: Walk) -> None:
        walk.enter(len(value))
        for index, item in enumerate(value):
            if type(item) not in _SIMPLE:
                try:
                    self.encode(item, walk)
                except Misfit as misfit:
                    raise misfit.under(f"[{index}]") from None
        walk.leave()

    def _check_dict(self, value: dict[Any, Any], walk: Walk) -> None:
        walk.enter(len(value))
        for index, (key, item) in enumerate(value.items()):
            if type(key) is not str:
                raise Misfit(
                    f"a key of type {kind(key)} would come back a string; annotate the parameter with its type",
                    key_path(index),
                )
            if type(item) not in _SIMPLE:
                try:
                    self.encode(item, walk)
                except Misfit as misfit:
                    raise misfit.under(key_path(index)) from None
        walk.leave()


def key_path(index: int) -> str:
    """Return the path to a member of a mapping. Keys are values too, so they are counted, not named (P12)."""
    return f"[key #{index + 1}]"
