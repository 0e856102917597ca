"""Services that handlers ask for by annotation, and that the container of the application gives them.

A function's injected parameter is keyword-only with the default ``Injected``; its annotation is the service::

    @app.job
    async def send(address: str, *, mailer: Mailer = Injected) -> None: ...

All parameters of a class job's ``handle()`` are services.
"""

import inspect
from collections.abc import Iterable
from typing import Any, Final, final

from tenure.errors import InvalidOption


@final
class InjectedType:
    """The type of ``Injected``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Injected"


# Typed as Any so that it can be the default of a parameter of any type.
Injected: Final[Any] = InjectedType()
"""The default of a parameter that the worker fills with a service. Pushing a value for one is refused."""


def is_injected(parameter: inspect.Parameter) -> bool:
    """Tell whether a function's parameter is a service."""
    return isinstance(parameter.default, InjectedType)


def services_of_function(job: str, parameters: Iterable[inspect.Parameter]) -> tuple[str, ...]:
    """Return the names of a function's injected parameters, or raise ``InvalidOption`` for one that cannot be filled.

    Keyword-only, so that no positional argument of a push can reach one by mistake.
    """
    found = [parameter for parameter in parameters if is_injected(parameter)]
    for parameter in found:
        if parameter.kind is not parameter.KEYWORD_ONLY:
            raise InvalidOption(
                f"job {job}: the injected parameter {parameter.name!r} must be keyword-only; put a '*' before it"
            )
        _require_annotation(job, parameter)
    return tuple(parameter.name for parameter in found)


def services_of_handle(job: str, parameters: Iterable[inspect.Parameter]) -> tuple[str, ...]:
    """Return the names of ``handle()``'s parameters, all of them services, or raise ``InvalidOption``."""
    names = []
    for parameter in parameters:
        if parameter.kind in {parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            raise InvalidOption(
                f"job {job}: handle() gets services by keyword and cannot take {parameter}; "
                "arguments belong to the constructor"
            )
        _require_annotation(job, parameter)
        names.append(parameter.name)
    return tuple(names)


def _require_annotation(job: str, parameter: inspect.Parameter) -> None:
    if parameter.annotation is parameter.empty:
        raise InvalidOption(f"job {job}: the injected parameter {parameter.name!r} needs an annotation, its service")
