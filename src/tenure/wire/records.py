"""Objects with named fields that Python itself offers: dataclasses, typed dictionaries and named tuples.

Every field is sent, defaults too. A field that the reader does not know is refused, like an argument that it does not
know: dropping it in silence would lose what a newer program sent.

A class may be a field of itself, so its form is made first and told its fields (``fill``) afterwards.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tenure.wire.form import Form, Misfit, Walk
from tenure.wire.same import same

_OBJECT: Final = frozenset({dict})
_ARRAY: Final = frozenset({list})


class DataclassForm(Form):
    """A dataclass: a JSON object of its fields."""

    __slots__ = ("_cls", "_encoder", "_fields", "_optional", "_verify", "_whole")

    def __init__(self, name: str, cls: type[Any]) -> None:
        super().__init__(name, _OBJECT)
        self._cls = cls
        self._fields: Mapping[str, Form] = {}
        every = dataclasses.fields(cls)
        self._optional = {
            field.name
            for field in every
            if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        }
        # Where a class computes something, only a look at what comes back shows whether it is what was sent.
        self._verify = hasattr(cls, "__post_init__") or not all(field.init for field in every) or not _generated(cls)
        self._encoder = msgspec.json.Encoder()

    def fill(self, fields: Mapping[str, Form]) -> None:
        """Take the forms of the fields, once, before the first use."""
        self._fields = fields

    def holds(self, value: Any) -> bool:
        """Tell by the exact class."""
        return type(value) is self._cls

    def encode(self, value: Any, walk: Walk) -> Any:
        """Return the object."""
        if type(value) is not self._cls:
            raise self.mismatch(value)
        walk.enter(len(self._fields))
        wire = {}
        for name, form in self._fields.items():
            try:
                wire[name] = form.encode(getattr(value, name), walk)
            except Misfit as misfit:
                raise misfit.under(f".{name}") from None
            except AttributeError:
                raise Misfit("a field without a value", f".{name}") from None
        walk.leave()
        if self._verify:
            self._check(value, wire)
        return wire

    def decode(self, wire: Any) -> Any:
        """Return a new instance."""
        values = read_object(self.name, wire, self._fields, self._optional)
        try:
            return self._cls(**values)
        except Exception as error:  # noqa: BLE001  (the class may raise whatever it likes)
            raise Misfit(f"{self.name} refused its fields ({type(error).__qualname__})") from None

    def _check(self, value: Any, wire: Any) -> None:
        try:
            back = self.decode(msgspec.json.decode(self._encoder.encode(wire)))
        except ValueError:
            return  # it has no JSON at all, which the codec explains
        if not same(value, back):
            raise Misfit(f"this {self.name} would come back different")


class TypedDictForm(Form):
    """A typed dictionary: a JSON object."""

    __slots__ = ("_fields", "_optional")

    def __init__(self, name: str) -> None:
        super().__init__(name, _OBJECT)
        self._fields: Mapping[str, Form] = {}
        self._optional: frozenset[str] = frozenset()

    def fill(self, fields: Mapping[str, Form], optional: frozenset[str]) -> None:
        """Take the forms of the fields, and which of them may be left out; once, before the first use."""
        self._fields = fields
        self._optional = optional

    def holds(self, value: Any) -> bool:
        """Tell by the exact type."""
        return type(value) is dict

    def encode(self, value: Any, walk: Walk) -> Any:
        """Return the object."""
        if type(value) is not dict:
            raise self.mismatch(value)
        walk.enter(len(value))
        wire = read_object(self.name, value, self._fields, self._optional, walk)
        walk.leave()
        return wire

    def decode(self, wire: Any) -> Any:
        """Return the dictionary."""
        return read_object(self.name, wire, self._fields, self._optional)


class NamedTupleForm(Form):
    """A named tuple: a JSON array of its fields, in order."""

    __slots__ = ("_cls", "_fields", "_required")

    def __init__(self, name: str, cls: type[Any]) -> None:
        super().__init__(name, _ARRAY)
        self._cls = cls
        self._fields: Mapping[str, Form] = {}
        self._required = len(cls._fields) - len(cls._field_defaults)

    def fill(self, fields: Mapping[str, Form]) -> None:
        """Take the forms of the fields, once, before the first use."""
        self._fields = fields

    def holds(self, value: Any) -> bool:
        """Tell by the exact class."""
        return type(value) is self._cls

    def encode(self, value: Any, walk: Walk) -> Any:
        """Return the fields."""
        if type(value) is not self._cls:
            raise self.mismatch(value)
        walk.enter(len(value))
        wire = []
        for (name, form), item in zip(self._fields.items(), value, strict=True):
            try:
                wire.append(form.encode(item, walk))
            except Misfit as misfit:
                raise misfit.under(f".{name}") from None
        walk.leave()
        return wire

    def decode(self, wire: Any) -> Any:
        """Return the tuple."""
        forms = self._fields
        if type(wire) is not list:
            raise self.mismatch(wire)
        if not self._required <= len(wire) <= len(forms):
            raise Misfit(f"expected {len(forms)} members, got {len(wire)}")
        values = []
        for (name, form), item in zip(forms.items(), wire, strict=False):
            try:
                values.append(form.decode(item))
            except Misfit as misfit:
                raise misfit.under(f".{name}") from None
        return self._cls(*values)


def read_object(
    title: str, given: Any, forms: Mapping[str, Form], optional: set[str] | frozenset[str], walk: Walk | None = None
) -> dict[str, Any]:
    """Return each field's value, decoded, or encoded when there is a walk; or raise ``Misfit``."""
    if type(given) is not dict:
        raise Misfit(f"expected {title}, got {type(given).__qualname__}")
    read = {}
    for name, item in given.items():
        form = forms.get(name) if type(name) is str else None
        if form is None:
            raise Misfit(f"a field that {title} does not have")
        try:
            read[name] = form.decode(item) if walk is None else form.encode(item, walk)
        except Misfit as misfit:
            raise misfit.under(f".{name}") from None
    if len(read) < len(forms):
        for name in forms:
            if name not in read and name not in optional:
                raise Misfit("missing", f".{name}")
    return read


def _generated(cls: type[Any]) -> bool:
    """Tell whether the class's ``__init__`` is the one that ``dataclass`` writes, which only assigns the fields."""
    parameters = cls.__dict__.get("__dataclass_params__")
    code = getattr(cls.__init__, "__code__", None)
    return parameters is not None and parameters.init and code is not None and code.co_filename == "<string>"
