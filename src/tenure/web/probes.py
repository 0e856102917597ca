"""What a worker answers to those who look after it: whether it lives, whether it is ready. So does a supervisor."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any, Final

from tenure.web.paths import LIVE, METRICS, READY
from tenure.web.server import Answer, Routes
from tenure.worker.supervisor import Crew, any_ready
from tenure.worker.vitals import Vitals

TURN_SECONDS: Final = 3.0
"""What an answer of a supervisor may take, whose event loop does nothing that takes long."""

_ALIVE: Final = Answer(HTTPStatus.OK, b"alive\n")
_READY: Final = Answer(HTTPStatus.OK, b"ready\n")


def probes(vitals: Vitals, metrics: Callable[[], Answer]) -> Mapping[str, Callable[[], Answer]]:
    """Return the paths of a worker and their answers."""

    def live() -> Answer:
        illness = vitals.illness
        return _said(illness) if illness else _ALIVE

    def ready() -> Answer:
        if vitals.ready:
            return _READY
        return _said("no claim has succeeded yet, or the last one that was due failed")

    return {LIVE: live, READY: ready, METRICS: metrics}


def crew_probes(crew: Crew, metrics: Callable[[], Coroutine[Any, Any, Answer]]) -> Routes:
    """Return the paths of a supervisor and their answers, which are made in the event loop that runs here.

    It lives while that turns: children that hang are its own business. It is ready when one of them is.
    """
    loop = asyncio.get_running_loop()

    async def live() -> Answer:
        return _ALIVE

    async def ready() -> Answer:
        if await any_ready(crew.children):
            return _READY
        return _said("no worker process is ready: none has claimed yet, or the last claims that were due failed")

    return {path: _made_in(loop, answer) for path, answer in ((LIVE, live), (READY, ready), (METRICS, metrics))}


def _made_in(
    loop: asyncio.AbstractEventLoop, answer: Callable[[], Coroutine[Any, Any, Answer]]
) -> Callable[[], Awaitable[Answer]]:
    async def made() -> Answer:
        try:
            async with asyncio.timeout(TURN_SECONDS):
                return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answer(), loop))
        except TimeoutError:
            return _said(f"the supervisor's event loop has not turned for {TURN_SECONDS:g} s")

    return made


def _said(why: str) -> Answer:
    return Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{why}\n".encode())
