"""Annotations, one at a time: one that cannot be resolved must not take the others with it."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, get_type_hints

from tenure.errors import InvalidOption

Names = Mapping[str, Any]


def resolved(job: str, name: str, annotation: Any, namespaces: Iterable[Names]) -> Any:
    """Return the annotation of a parameter, or of ``return``, with its forward references resolved, extras included.

    Each namespace is tried in order; raises ``InvalidOption`` when none has all the names.
    """
    problem: Exception = NameError(name)
    for names in namespaces:
        holder = SimpleNamespace(__annotations__={name: annotation})
        try:
            return get_type_hints(holder, globalns=dict(names), include_extras=True)[name]
        except Exception as error:  # noqa: BLE001 - an annotation is code, and may fail in any way
            problem = error
    raise InvalidOption(
        f"job {job}: the annotation of {name!r} cannot be resolved ({type(problem).__name__}: {problem}); "
        "a name imported under TYPE_CHECKING is not there at run time"
    ) from problem


def namespaces_of_class(target: type, function: Callable[..., Any]) -> list[Names]:
    """Return the namespaces in which annotations of a class's method may have been written, likeliest first.

    A generated constructor repeats annotations of base classes, which may stand in other modules.
    """
    own = getattr(inspect.unwrap(function), "__globals__", {})
    found: list[Names] = [{**own, **vars(target)}]
    for base in target.__mro__:
        module = sys.modules.get(base.__module__)
        if base is not object and module is not None:
            found.append({**vars(module), **vars(base)})
    return found
