"""Classes with a wire form of their own making: msgspec structs and pydantic models.

What they write is taken as it is, after a look at whether the same comes back. pydantic is never imported: a program
that has a model has imported it.
"""

import re
import sys
from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec

from tenure.wire.form import Form, Misfit, Walk, kind
from tenure.wire.plain import ALL_KINDS, PlainForm
from tenure.wire.same import same

_OBJECT: Final = frozenset({dict})
_ARRAY: Final = frozenset({list})
# Of msgspec's messages these speak of types only; others may repeat a value, or what a class's own code said of it.
_WORD: Final = "(?:any|null|bool|int|float|str|bytes|datetime|date|time|duration|uuid|decimal|array|object)"
_HARMLESS: Final = re.compile(
    rf"(Expected `{_WORD}(?: \| {_WORD})*`(?:, got `{_WORD}`)?|Object missing required field) ?(?:`\w+`)?"
    r"(?: - at `\$((?:\.\w+|\[\.\.\.\]|\[\d+\])*)`)?",
    re.ASCII,
)


class StructForm(Form):
    """A msgspec struct, or a tagged union of structs."""

    __slots__ = ("_classes", "_encoder", "_hint", "_plain")

    def __init__(self, name: str, hint: Any, classes: Collection[type]) -> None:
        array = [bool(cls.__struct_config__.array_like) for cls in classes]  # type: ignore[attr-defined]
        super().__init__(name, _ARRAY if all(array) else _OBJECT if not any(array) else _ARRAY | _OBJECT)
        self._hint = hint
        self._classes = frozenset(classes)
        self._plain = PlainForm(name, tuples=True)

    def holds(self, value: Any) -> bool:
        """Tell by the exact class."""
        return type(value) in self._classes

    def encode(self, value: Any, walk: Walk) -> Any:
        """Return what msgspec makes of it."""
        if type(value) not in self._classes:
            raise self.mismatch(value)
        try:
            wire = msgspec.to_builtins(value, enc_hook=_to_builtins, str_keys=True)
        except (ValueError, TypeError, AttributeError) as error:
            raise Misfit(f"{kind(value)} refused to be written ({type(error).__qualname__})") from None
        return proven(self, value, wire, walk, self._plain)

    def decode(self, wire: Any) -> Any:
        """Return what msgspec makes of the wire value."""
        try:
            return msgspec.convert(wire, self._hint, dec_hook=_from_builtins, str_keys=True)
        except msgspec.ValidationError as error:
            raise _scrubbed(self.name, error) from None
        except Misfit as misfit:
            raise Misfit(misfit.problem) from None  # its path starts in the middle
        except Exception as error:  # noqa: BLE001  (the class may raise whatever it likes)
            raise Misfit(f"{self.name} refused its fields ({type(error).__qualname__})") from None


class ModelForm(Form):
    """A pydantic model: what ``model_dump(mode="json", by_alias=True, round_trip=True)`` writes."""

    __slots__ = ("_cls", "_plain")

    def __init__(self, cls: Any) -> None:
        super().__init__(cls.__qualname__, ALL_KINDS if getattr(cls, "__pydantic_root_model__", False) else _OBJECT)
        self._cls = cls
        self._plain = PlainForm(self.name)

    def holds(self, value: Any) -> bool:
        """Tell by the exact class."""
        return type(value) is self._cls

    def encode(self, value: Any, walk: Walk) -> Any:
        """Return what pydantic makes of it."""
        if type(value) is not self._cls:
            raise self.mismatch(value)
        return proven(self, value, _dumped(value), walk, self._plain)

    def decode(self, wire: Any) -> Any:
        """Return what pydantic makes of the wire value."""
        return _validated(self._cls, wire)


def proven(form: StructForm | ModelForm, value: Any, wire: Any, walk: Walk, plain: PlainForm) -> Any:
    """Return the wire value after a look at whether it is JSON and the same comes back."""
    plain.encode(wire, walk)
    try:
        read = msgspec.json.decode(msgspec.json.encode(wire))
    except ValueError:
        return wire  # it has no JSON at all, which the codec explains
    if not same(value, form.decode(read)):
        raise Misfit(f"this {form.name} would come back different")
    return read


def is_model(hint: Any) -> bool:
    """Tell whether a class is a pydantic model, without importing pydantic."""
    pydantic = sys.modules.get("pydantic")
    base = getattr(pydantic, "BaseModel", None)
    return base is not None and isinstance(hint, type) and issubclass(hint, base)


def _dumped(value: Any) -> Any:
    try:
        return value.model_dump(mode="json", by_alias=True, round_trip=True, warnings=False)
    except Exception as error:  # noqa: BLE001  (the model may raise whatever it likes)
        raise Misfit(f"{kind(value)} refused to be written ({type(error).__qualname__})") from None


def _validated(cls: Any, wire: Any) -> Any:
    try:
        # From JSON, not from Python values: strict models take a string for a date only there.
        return cls.model_validate_json(msgspec.json.encode(wire))
    except Exception as error:  # noqa: BLE001  (the model may raise whatever it likes)
        raise Misfit(f"{cls.__qualname__} refused it", _model_path(cls, error)) from None


def _model_path(cls: Any, error: Exception) -> str:
    """Return the path to the first field that is wrong; further in, a path may hold keys, which are values."""
    errors: Callable[..., list[Any]] = getattr(error, "errors", lambda **_: [])
    for detail in errors(include_url=False, include_context=False, include_input=False):
        location = detail.get("loc", ())
        if location and location[0] in cls.model_fields:
            return f".{location[0]}"
    return ""


def _to_builtins(value: Any) -> Any:
    if is_model(type(value)):
        return _dumped(value)
    raise Misfit(f"{kind(value)} has no wire form")


def _from_builtins(cls: Any, wire: Any) -> Any:
    if is_model(cls):
        return _validated(cls, wire)
    raise Misfit(f"{getattr(cls, '__qualname__', 'this type')} has no wire form")


def _scrubbed(name: str, error: msgspec.ValidationError) -> Misfit:
    # With a cause, the message is the class's own, whatever it looks like.
    match = _HARMLESS.fullmatch(str(error)) if error.__cause__ is None else None
    if match is None:
        return Misfit(f"it does not fit {name}")
    problem = match[1].replace("`", "")
    return Misfit(problem[0].lower() + problem[1:], match[2] or "")
