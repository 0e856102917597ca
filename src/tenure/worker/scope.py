"""The services of one attempt: a container of its own, closed after it whatever happens."""

import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import svcs

from tenure.definition import JobDefinition
from tenure.errors import ConfigurationError

logger: logging.Logger = logging.getLogger("tenure.worker")


class Scopes:
    """Makes the services that handlers ask for."""

    def __init__(self, services: svcs.Registry) -> None:
        self._services = services

    def check(self, definitions: Iterable[JobDefinition]) -> None:
        """Raise ``ConfigurationError``, naming every service that a job asks for and nobody registered.

        Also reads every annotation, so that one that cannot be resolved is told now and not by failing jobs.
        """
        known = list(definitions)
        for definition in known:
            _ = definition.codec
        missing = sorted(
            f"{definition.name} asks for {getattr(kind, '__qualname__', kind)} ({parameter})"
            for definition in known
            for parameter, kind in definition.injected.items()
            if kind not in self._services
        )
        if missing:
            raise ConfigurationError("app.services", f"not registered: {'; '.join(missing)}")

    @asynccontextmanager
    async def on_the_loop(self, wanted: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Make the services of an asynchronous handler, and close what was made."""
        container = svcs.Container(self._services)
        try:
            yield {parameter: await container.aget(kind) for parameter, kind in wanted.items()}
        finally:
            await container.aclose()

    @contextmanager
    def in_a_thread(self, wanted: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Make the services of a handler in the thread that runs it, and close what was made, there as well.

        Many clients may only be used in the thread that made them, so factories that are coroutines are refused.
        """
        container = svcs.Container(self._services)
        try:
            yield {parameter: container.get(kind) for parameter, kind in wanted.items()}
        finally:
            container.close()
