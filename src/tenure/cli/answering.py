"""What a worker answers over HTTP while it runs."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http import HTTPStatus
from typing import Final

from tenure.app import Tenure
from tenure.errors import MissingExtra
from tenure.web.paths import METRICS
from tenure.web.probes import probes
from tenure.web.server import TEXT, Address, Answer, Listener
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
            stack.enter_context(listener.serving(probes(vitals, _metrics(stack, app, vitals))))
            logger.info("answering on http://%s: /livez /readyz /metrics", listener.address)
            yield

    return around


def _metrics(stack: contextlib.ExitStack, app: Tenure, vitals: Vitals) -> Callable[[], Answer]:
    try:
        from tenure.ext.prometheus import WorkerMetrics  # noqa: PLC0415 - an extra
    except MissingExtra as error:
        missing = f"{error}\n".encode()
        logger.warning("%s is not answered: %s", METRICS, error)
        return lambda: Answer(HTTPStatus.NOT_IMPLEMENTED, missing, TEXT)
    metrics = stack.enter_context(WorkerMetrics(app, vitals))
    return lambda: Answer(HTTPStatus.OK, metrics.text(), EXPOSITION)
