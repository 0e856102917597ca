"""What a worker answers to those who look after it: whether it lives, whether it is ready."""

from collections.abc import Callable
from http import HTTPStatus

from tenure.web.paths import LIVE, METRICS, READY
from tenure.web.server import Answer, Routes
from tenure.worker.vitals import Vitals


def probes(vitals: Vitals, metrics: Callable[[], Answer]) -> Routes:
    """Return the paths and their answers."""

    def live() -> Answer:
        illness = vitals.illness
        return _said(illness) if illness else Answer(HTTPStatus.OK, b"alive\n")

    def ready() -> Answer:
        if vitals.ready:
            return Answer(HTTPStatus.OK, b"ready\n")
        return _said("no claim has succeeded yet, or the last one that was due failed")

    return {LIVE: live, READY: ready, METRICS: metrics}


def _said(why: str) -> Answer:
    return Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{why}\n".encode())
