"""What a worker answers over HTTP while it runs, and a supervisor for its children."""

import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from http import HTTPStatus
from typing import Any, Final

from tenure.app import Tenure
from tenure.errors import MissingExtra
from tenure.web.paths import METRICS
from tenure.web.probes import crew_probes, probes
from tenure.web.server import TEXT, Address, Answer, Listener, Routes
from tenure.worker.supervisor import Crew, Telling, Told
from tenure.worker.vitals import Vitals

EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"

logger: logging.Logger = logging.getLogger("tenure.worker")


@contextmanager
def listening(address: Address | None) -> Iterator[Listener | None]:
    """Bind the address, if there is one, for the length of the block."""
    if address is None:
        yield None
        return
    with contextlib.closing(Listener(address)) as listener:
        yield listener


def answering(listener: Listener, app: Tenure) -> Callable[[Vitals], AbstractContextManager[None]]:
    """Return what answers for a worker while it lives."""

    @contextmanager
    def around(vitals: Vitals) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            try:
                from tenure.ext.prometheus import WorkerMetrics  # noqa: PLC0415 - an extra
            except MissingExtra as error:
                missing = _missing(error)
                stack.enter_context(_serving(listener, probes(vitals, lambda: missing)))
            else:
                counted = stack.enter_context(WorkerMetrics(app, vitals))
                stack.enter_context(_serving(listener, probes(vitals, lambda: _exposed(counted.text()))))
            yield

    return around


def answering_for_all(listener: Listener) -> Callable[[Crew], AbstractContextManager[None]]:
    """Return what answers for a supervisor and its children."""

    @contextmanager
    def around(crew: Crew) -> Iterator[None]:
        with _serving(listener, crew_probes(crew, _metrics_of(crew))):
            yield

    return around


def telling(end: socket.socket, app: Tenure) -> Callable[[Vitals], AbstractContextManager[None]]:
    """Return what tells the supervisor how a child fares while it lives."""

    @contextmanager
    def around(vitals: Vitals) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            data: Callable[[], bytes] = bytes
            with contextlib.suppress(MissingExtra):  # the supervisor says so, once
                from tenure.ext.prometheus import WorkerMetrics  # noqa: PLC0415 - an extra

                data = stack.enter_context(WorkerMetrics(app, vitals)).data
            stack.enter_context(Telling(end, lambda: Told(ready=vitals.ready, metrics=data())))
            yield

    return around


@contextmanager
def _serving(listener: Listener, routes: Routes) -> Iterator[None]:
    with listener.serving(routes):
        logger.info("answering on http://%s: /livez /readyz /metrics", listener.address)
        yield


def _metrics_of(crew: Crew) -> Callable[[], Coroutine[Any, Any, Answer]]:
    try:
        from tenure.ext.prometheus import CrewMetrics  # noqa: PLC0415 - an extra
    except MissingExtra as error:
        missing = _missing(error)

        async def told() -> Answer:
            return missing
    else:
        metrics = CrewMetrics(crew)

        async def told() -> Answer:
            return _exposed(await metrics.text())

    return told


def _missing(error: MissingExtra) -> Answer:
    logger.warning("%s is not answered: %s", METRICS, error)
    return Answer(HTTPStatus.NOT_IMPLEMENTED, f"{error}\n".encode(), TEXT)


def _exposed(text: bytes) -> Answer:
    return Answer(HTTPStatus.OK, text, EXPOSITION)
