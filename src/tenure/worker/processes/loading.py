"""How a process that has nothing but names finds the application and its jobs, and which names those are."""

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

from tenure.app import Tenure
from tenure.config import DEFAULT
from tenure.errors import ConfigurationError
from tenure.worker.processes.talk import Load
from tenure.worker.scope import Scopes

KEY: Final = 'executor="process"'


class NotLoaded(Exception):
    """The application or its jobs are not where a process of its own looks for them."""


def has_process_jobs(app: Tenure) -> bool:
    """Tell whether jobs are registered that want processes of their own."""
    return any(definition.executor == "process" for definition in app.registry)


def load_of(app: Tenure, prepare: Sequence[str], connection: str = DEFAULT) -> Load:
    """Return what a child process has to load; raises ``ConfigurationError`` for what it could not import."""
    wanted = [definition for definition in app.registry if definition.executor == "process"]
    place = _place_of(app)
    if place is None:
        raise ConfigurationError(
            KEY,
            "the application is no global variable of a module that was imported, so a process of its own cannot find "
            "it (__main__ is another module there); put it into one",
        )
    homeless = [definition.name for definition in wanted if definition.registered.__module__ == "__main__"]
    if homeless:
        raise ConfigurationError(
            KEY, f"{', '.join(homeless)}: defined in __main__, which is another module in a process; move it to one"
        )
    return Load(
        app=place,
        modules=sorted({definition.registered.__module__ for definition in wanted}),
        jobs=[definition.name for definition in wanted],
        prepare=tuple(prepare),
        connection=connection,
    )


def load(order: Load) -> Tenure:
    """Return the application, with its jobs; raises ``NotLoaded``, and whatever the imports raise."""
    if order.prepare:
        prepare, *arguments = order.prepare
        _named(prepare)(*arguments)
    app = _named(order.app)
    for module in order.modules:
        importlib.import_module(module)
    if not isinstance(app, Tenure):
        raise NotLoaded(f"{order.app} is no application in a process of its own")
    missing = [name for name in order.jobs if name not in app.registry]
    if missing:
        raise NotLoaded(
            f"{', '.join(missing)}: not registered when {order.app} is imported; register jobs while their module is "
            "imported, not later"
        )
    return app


def check(app: Tenure, order: Load) -> None:
    """Raise ``ConfigurationError`` for services that these jobs ask for and nobody registered."""
    found = [app.registry.get(name) for name in order.jobs]
    Scopes(app.services).check(definition for definition in found if definition is not None)


def _named(text: str) -> Any:
    module, _, attribute = text.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _place_of(app: Tenure) -> str | None:
    for name, module in tuple(sys.modules.items()):
        if name == "__main__" or not isinstance(module, ModuleType):
            continue
        for attribute, value in tuple(vars(module).items()):
            if value is app:
                return f"{name}:{attribute}"
    return None
