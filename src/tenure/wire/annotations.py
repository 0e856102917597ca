"""From an annotation to its form."""

import dataclasses
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from collections.abc import MutableSet, Set
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from tenure.wire.choices import EnumForm, LiteralForm, TaggedForm, UnionForm, overlap
from tenure.wire.containers import ArrayForm, DictForm, KeyForm, TupleForm, can_be_key
from tenure.wire.foreign import ModelForm, StructForm, is_model
from tenure.wire.form import Base, Form, Misfit, Walk
from tenure.wire.plain import ALL_KINDS, PlainForm
from tenure.wire.records import DataclassForm, NamedTupleForm, TypedDictForm
from tenure.wire.scalars import scalars

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
_WRAPPERS: Final = {"Required", "NotRequired", "ReadOnly", "Final", "ClassVar"}


class NoForm(Base):
    """An annotation that has no wire form: nothing fits it."""

    __slots__ = ("_problem",)

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, ALL_KINDS)
        self._problem = problem

    def holds(self, value: Any) -> bool:  # noqa: ARG002
        """Hold nothing."""
        return False

    def encode(self, value: Any, walk: Walk) -> Any:  # noqa: ARG002
        """Refuse the value."""
        raise Misfit(self._problem)

    def decode(self, wire: Any) -> Any:  # noqa: ARG002
        """Refuse the value."""
        raise Misfit(self._problem)


class Later(Base):
    """A form that is still being made, because its annotation contains itself."""

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
        self._made: dict[Any, Form] = {Any: self._any, object: self._any, **scalars(), None: scalars()[NoneType]}

    def form(self, hint: Any) -> Form:
        """Return the annotation's form. What has no wire form gets one that refuses every value, and says why."""
        try:
            made = self._made.get(hint)
        except TypeError:  # a literal or an extra that cannot be hashed
            return self._make(hint)
        if made is None:
            self._made[hint] = Later(title(hint), lambda: self._made[hint])
            made = self._made[hint] = self._make(hint)
        return made

    def _make(self, hint: Any) -> Form:
        origin, args = get_origin(hint), get_args(hint)
        form: Form
        if isinstance(hint, str | typing.ForwardRef):
            form = NoForm(title(hint), "its annotation could not be resolved")
        elif origin is Annotated or getattr(origin, "__name__", getattr(origin, "_name", None)) in _WRAPPERS:
            form = self.form(args[0])
        elif isinstance(hint, typing.NewType):
            form = self.form(hint.__supertype__)
        elif isinstance(hint, TypeVar):
            form = self._variable(hint)
        elif hasattr(hint, "__value__"):  # `type Alias = …` of Python 3.12
            form = self.form(hint.__value__)
        elif hasattr(origin, "__value__"):
            form = self.form(_filled(origin.__value__, dict(zip(origin.__type_params__, args, strict=False))))
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
        if any(arg is Any or arg is object for arg in args):
            return self._any
        if all(isinstance(arg, type) and issubclass(arg, msgspec.Struct) for arg in args):
            try:
                msgspec.json.Decoder(hint)
            except TypeError:
                pass  # structs without tags: told apart by ours, below
            else:
                return StructForm(title(hint), hint, args)
        members = [self.form(arg) for arg in args]
        for member in members:
            if isinstance(member, NoForm):
                return member
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
        if origin is tuple:
            if not args and hint is not tuple:
                return TupleForm(title(hint), ())
            if not args or (len(args) == 2 and args[1] is Ellipsis):  # noqa: PLR2004
                return ArrayForm(title(hint), tuple, self.form(args[0]) if args else self._any)
            return TupleForm(title(hint), tuple(self.form(arg) for arg in args))
        if origin in _ARRAYS:
            return ArrayForm(title(hint), _ARRAYS[origin], self.form(args[0]) if args else self._any)
        if origin in _MAPPINGS:
            key = self.form(args[0] if args else str)
            if not args or isinstance(key, PlainForm):
                key = self.form(str)
            if not can_be_key(key):
                return NoForm(title(hint), f"keys of type {key.name} have no wire form")
            return DictForm(title(hint), KeyForm(key), self.form(args[1]) if args else self._any)
        return None

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
        elif dataclasses.is_dataclass(origin):
            form = self._dataclass(name, origin, args)
        elif typing.is_typeddict(origin):
            optional = frozenset(getattr(origin, "__optional_keys__", ()))
            form = TypedDictForm(name, lambda: self._fields(origin, args), optional)
        elif issubclass(origin, tuple) and hasattr(origin, "_field_defaults"):
            form = NamedTupleForm(name, origin, lambda: self._named(origin, args))
        else:
            form = NoForm(name, f"{name} has no wire form")
        return form

    @staticmethod
    def _struct(name: str, hint: Any, cls: type) -> Form:
        try:
            msgspec.json.Decoder(hint)
        except (TypeError, NameError) as error:
            return NoForm(name, f"msgspec cannot read {name} ({type(error).__name__})")
        return StructForm(name, hint, [cls])

    def _dataclass(self, name: str, cls: type[Any], args: tuple[Any, ...]) -> Form:
        if any(kind is dataclasses.InitVar or isinstance(kind, dataclasses.InitVar) for kind in _raw_hints(cls)):
            return NoForm(name, f"{name} takes values that it does not keep (InitVar)")
        sent = [field.name for field in dataclasses.fields(cls) if field.init]
        return DataclassForm(name, cls, lambda: self._only(sent, self._fields(cls, args)))

    @staticmethod
    def _only(names: list[str], forms: Mapping[str, Form]) -> Mapping[str, Form]:
        return {name: forms[name] for name in names}

    def _fields(self, cls: Any, args: tuple[Any, ...]) -> Mapping[str, Form]:
        filling = dict(zip(getattr(cls, "__parameters__", ()), args, strict=False))
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
        except (NameError, TypeError, AttributeError) as error:
            raise Misfit(f"the annotations of {cls.__qualname__} could not be resolved ({type(error).__name__})") from None
        return {name: self.form(_filled(hint, filling)) for name, hint in hints.items()}

    def _named(self, cls: Any, args: tuple[Any, ...]) -> Mapping[str, Form]:
        hints = self._fields(cls, args)
        return {name: hints.get(name, self._any) for name in cls._fields}


def title(hint: Any) -> str:
    """Return an annotation as messages and tags show it: the short names of its classes."""
    origin, args = get_origin(hint), get_args(hint)
    shown: str
    if hint is None or hint is NoneType:
        shown = "None"
    elif hint is Ellipsis:
        shown = "..."
    elif origin is Annotated:
        shown = title(args[0])
    elif origin is Union or origin is UnionType:
        shown = " | ".join(map(title, args))
    elif origin is Literal:
        shown = f"Literal[{', '.join(map(repr, args))}]"
    elif args:
        shown = f"{title(origin)}[{', '.join(map(title, args))}]"
    else:
        shown = str(getattr(hint, "__qualname__", None) or getattr(hint, "__name__", None) or hint)
    return shown


def _filled(hint: Any, filling: Mapping[Any, Any]) -> Any:
    """Return the annotation with type variables replaced."""
    if not filling:
        return hint
    if isinstance(hint, TypeVar):
        return filling.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    return hint[tuple(filling.get(parameter, parameter) for parameter in parameters)] if parameters else hint


def _raw_hints(cls: type[Any]) -> list[Any]:
    return [hint for base in cls.__mro__ for hint in base.__dict__.get("__annotations__", {}).values()]
