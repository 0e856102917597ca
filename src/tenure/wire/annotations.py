"""From an annotation to its form."""

import dataclasses
import typing
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
    Set,
)
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from tenure.wire.choices import EnumForm, LiteralForm, TaggedForm, UnionForm, overlap
from tenure.wire.containers import ArrayForm, DictForm, KeyForm, TupleForm, can_be_key
from tenure.wire.foreign import ModelForm, StructForm, is_model
from tenure.wire.form import Form, Misfit, Walk
from tenure.wire.plain import ALL_KINDS, PlainForm
from tenure.wire.reading import aliased, alternatives, filled, is_alias, title, wrapper
from tenure.wire.records import DataclassForm, NamedTupleForm, TypedDictForm
from tenure.wire.scalars import NoneForm, scalars

_ARRAYS: Final[Mapping[Any, type]] = {
    list: list,
    Sequence: list,
    MutableSequence: list,
    Collection: list,
    Iterable: list,
    set: set,
    Set: set,
    MutableSet: set,
    frozenset: frozenset,
}
_MAPPINGS: Final = (dict, Mapping, MutableMapping)


class NoForm(Form):
    """An annotation that has no wire form: nothing fits it."""

    __slots__ = ("_cls", "_problem")

    def __init__(self, name: str, problem: str, cls: Any = None) -> None:
        super().__init__(name, frozenset())
        self._problem = problem
        self._cls = cls if isinstance(cls, type) else None

    def holds(self, value: Any) -> bool:
        """Tell by the class: of a union's members, this one knows what is wrong with the value."""
        return self._cls is not None and isinstance(value, self._cls)

    def encode(self, value: Any, walk: Walk) -> Any:  # noqa: ARG002
        """Refuse the value."""
        raise Misfit(self._problem)

    def decode(self, wire: Any) -> Any:  # noqa: ARG002
        """Refuse the value."""
        raise Misfit(self._problem)


class Later(Form):
    """An alias that is still being made, because it contains itself. Classes that do are made in two steps instead."""

    __slots__ = ("_find",)

    def __init__(self, name: str, find: Callable[[], Form]) -> None:
        super().__init__(name, ALL_KINDS)
        self._find = find

    def holds(self, value: Any) -> bool:
        """Ask the form."""
        return self._find().holds(value)

    def encode(self, value: Any, walk: Walk) -> Any:
        """Ask the form."""
        return self._find().encode(value, walk)

    def decode(self, wire: Any) -> Any:
        """Ask the form."""
        return self._find().decode(wire)


class Forms:
    """Makes forms, one for each annotation."""

    def __init__(self) -> None:
        self._any = PlainForm()
        self._made: dict[Any, Form] = {Any: self._any, object: self._any, **scalars(), None: NoneForm()}

    def form(self, hint: Any) -> Form:
        """Return the annotation's form. What has no wire form gets one that refuses every value, and says why."""
        try:
            made = self._made.get(hint)
        except TypeError:  # a literal or an extra that cannot be hashed
            return self._make(hint)
        if made is None:
            if is_alias(hint, get_origin(hint)):
                self._made[hint] = Later(title(hint), lambda: self._made[hint])
            made = self._made[hint] = self._make(hint)
        return made

    def _make(self, hint: Any) -> Form:
        origin, args = get_origin(hint), get_args(hint)
        form: Form
        if isinstance(hint, str | typing.ForwardRef):
            form = NoForm(title(hint), "its annotation could not be resolved")
        elif origin is Annotated or wrapper(origin):
            form = self.form(args[0])
        elif isinstance(hint, typing.NewType):
            form = self.form(hint.__supertype__)
        elif isinstance(hint, TypeVar):
            form = self._variable(hint)
        elif is_alias(hint, origin):
            form = self.form(aliased(hint, origin, args))
        elif origin is Union or origin is UnionType:
            form = self._union(hint, args)
        elif origin is Literal:
            form = self._literal(hint, args)
        else:
            form = self._container(hint, origin or hint, args) or self._record(hint, origin or hint, args)
        return form

    def _variable(self, hint: TypeVar) -> Form:
        if hint.__constraints__:
            return self.form(Union[hint.__constraints__])  # noqa: UP007
        return self.form(hint.__bound__) if hint.__bound__ is not None else self._any

    def _union(self, hint: Any, args: tuple[Any, ...]) -> Form:
        args = tuple(dict.fromkeys(alternatives(args)))
        if all(isinstance(arg, type) and issubclass(arg, msgspec.Struct) for arg in args):
            try:
                msgspec.json.Decoder(hint)
            except TypeError:
                pass  # structs without tags: told apart by ours, below
            else:
                return StructForm(title(hint), hint, args)
        members = [self.form(arg) for arg in args]
        if any(isinstance(member, PlainForm) for member in members):
            return self._any  # a type variable without a bound
        if not overlap(members):
            return UnionForm(members)
        if len({member.name for member in members}) < len(members):
            return NoForm(title(hint), "two members of its union have the same name")
        # None is told apart from everything that is not itself null: `date | datetime | None` tags only the first two.
        nulls = [member for member in members if member.kinds == {NoneType}]
        rest = [member for member in members if member.kinds != {NoneType}]
        return UnionForm([TaggedForm(rest), *nulls]) if nulls else TaggedForm(members)

    def _literal(self, hint: Any, args: tuple[Any, ...]) -> Form:
        choices = [(value, self.form(type(value))) for value in args]
        try:
            return LiteralForm(choices)
        except Misfit:
            return NoForm(title(hint), "a literal without a wire form")

    def _container(self, hint: Any, origin: Any, args: tuple[Any, ...]) -> Form | None:
        if hint is tuple or (origin is tuple and args[1:] == (Ellipsis,)):
            return ArrayForm(title(hint), tuple, self._first(args))
        if origin is tuple:
            return TupleForm(title(hint), tuple(self.form(arg) for arg in args))
        if origin in _ARRAYS:
            return ArrayForm(title(hint), _ARRAYS[origin], self._first(args))
        return self._mapping(hint, args) if origin in _MAPPINGS else None

    def _first(self, args: tuple[Any, ...]) -> Form:
        return self.form(args[0]) if args else self._any

    def _mapping(self, hint: Any, args: tuple[Any, ...]) -> Form:
        key, value = (self.form(args[0]), self.form(args[1])) if args else (self._any, self._any)
        if isinstance(key, PlainForm):
            key = self.form(str)
        if not can_be_key(key):
            return NoForm(title(hint), f"keys of type {key.name} have no wire form")
        return DictForm(title(hint), KeyForm(key), value)

    def _record(self, hint: Any, origin: Any, args: tuple[Any, ...]) -> Form:
        name = title(hint)
        form: Form
        if not isinstance(origin, type):
            form = NoForm(name, f"{name} has no wire form")
        elif is_model(origin):
            form = ModelForm(origin)
        elif issubclass(origin, Enum):
            form = EnumForm(origin)
        elif issubclass(origin, msgspec.Struct):
            form = self._struct(name, hint, origin)
        elif dataclasses.is_dataclass(origin) or typing.is_typeddict(origin) or hasattr(origin, "_field_defaults"):
            form = self._fielded(name, hint, origin, args)
        else:
            form = NoForm(name, f"{name} has no wire form", origin)
        return form

    @staticmethod
    def _struct(name: str, hint: Any, cls: type) -> Form:
        try:
            msgspec.json.Decoder(hint)
        except (TypeError, NameError) as error:
            return NoForm(name, f"msgspec cannot read {name} ({type(error).__name__})", cls)
        return StructForm(name, hint, [cls])

    def _fielded(self, name: str, hint: Any, cls: Any, args: tuple[Any, ...]) -> Form:
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
        except (NameError, TypeError, AttributeError) as error:
            problem = f"the annotations of {name} could not be resolved ({type(error).__name__})"
            return NoForm(name, problem, cls if dataclasses.is_dataclass(cls) else None)
        filling = dict(zip(getattr(cls, "__parameters__", ()), args, strict=False))
        hints = {field: filled(one, filling) for field, one in hints.items()}
        if typing.is_typeddict(cls):
            form = self._made[hint] = TypedDictForm(name)
            left_out = {field for field, one in hints.items() if wrapper(get_origin(one)) == "NotRequired"}
            given = {field for field, one in hints.items() if wrapper(get_origin(one)) == "Required"}
            optional = (cls.__optional_keys__ - given) | left_out
            form.fill({field: self.form(one) for field, one in hints.items()}, optional)
            return form
        if not dataclasses.is_dataclass(cls):
            named = self._made[hint] = NamedTupleForm(name, cls)
            named.fill({field: self.form(hints.get(field, Any)) for field in cls._fields})
            return named
        if any(isinstance(one, dataclasses.InitVar) for one in hints.values()):
            return NoForm(name, f"{name} takes values that it does not keep (InitVar)", cls)
        data = self._made[hint] = DataclassForm(name, typing.cast("type[Any]", cls))
        data.fill({field.name: self.form(hints[field.name]) for field in dataclasses.fields(cls) if field.init})
        return data
