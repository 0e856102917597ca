"""Reading annotations: what stands behind their wrappers, aliases and variables, and how they are shown."""

from collections.abc import Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

_WRAPPERS: Final = {"Required", "NotRequired", "ReadOnly", "Final", "ClassVar"}


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


def filled(hint: Any, filling: Mapping[Any, Any]) -> Any:
    """Return the annotation with type variables replaced."""
    if not filling:
        return hint
    if isinstance(hint, TypeVar):
        return filling.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    return hint[tuple(filling.get(parameter, parameter) for parameter in parameters)] if parameters else hint


def is_alias(hint: Any, origin: Any) -> bool:
    """Tell whether this is a ``type Name = …`` of Python 3.12, or one with its parameters filled in."""
    return hasattr(hint, "__value__") or hasattr(origin, "__value__")


def aliased(hint: Any, origin: Any, args: tuple[Any, ...]) -> Any:
    """Return what an alias stands for."""
    if origin is None:
        return hint.__value__
    return filled(origin.__value__, dict(zip(origin.__type_params__, args, strict=False)))


def alternatives(hints: Iterable[Any]) -> Iterator[Any]:
    """Yield the members of a union, with those of the unions inside it that Python has not made one with it."""
    for hint in hints:
        origin, args = get_origin(hint), get_args(hint)
        if origin is Union or origin is UnionType:
            yield from alternatives(args)
        elif origin is Annotated:
            yield from alternatives(args[:1])
        elif is_alias(hint, origin):
            yield from alternatives([aliased(hint, origin, args)])
        elif isinstance(hint, TypeVar) and hint.__constraints__:
            yield from alternatives(hint.__constraints__)
        else:
            yield hint


def wrapper(origin: Any) -> str:
    """Return the name of what only says how a field is used, such as ``NotRequired``, or nothing."""
    name = getattr(origin, "_name", None) if type(origin).__module__ in {"typing", "typing_extensions"} else None
    return name if name in _WRAPPERS else ""
