"""The jobs of a soak, and leaks that can be planted in them: what a soak measures must be able to find those."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from tenure import Retry, Snooze, Tenure, current

QUEUE: Final = "soak"
TASKS_KEY: Final = "SOAK_TASKS"
PLANT_KEY: Final = "SOAK_PLANT"
MIX: Final = 25
BESIDE: Final = {1: "threaded", 2: "retried", 3: "snoozed"}
"""Of so many jobs, these; the others do nothing."""

_kept: list[Any] = []


async def quick(number: int) -> None:
    match os.environ.get(PLANT_KEY):
        case "memory":
            _kept.append(bytearray(4_000))
        case "tasks" if number % 100 == 0:
            _kept.append(asyncio.create_task(asyncio.Event().wait()))
        case "connections" if number % 100 == 0:
            url = urlsplit(os.environ["TENURE_URL"])
            _kept.append(socket.create_connection((url.hostname, url.port)))


def threaded(number: int) -> None:
    time.sleep(0.001 if number else 0.3)


async def retried(_: int) -> None:
    if current().attempt == 1:
        raise Retry(after=0)


async def snoozed(_: int) -> None:
    if current().lease.deliveries == 1:
        raise Snooze(0.05)


def registered(app: Tenure) -> Tenure:
    """Register the jobs."""
    for function in (quick, threaded, retried, snoozed):
        app.job(name=function.__name__, queue=QUEUE)(function)
    return app


app = registered(Tenure())


@app.lifespan
@asynccontextmanager
async def counted() -> AsyncIterator[None]:
    """Write down how many tasks there are, for those who cannot look into this process."""

    async def count() -> None:
        while True:
            os.pwrite(place, b"%6d" % len(asyncio.all_tasks()), 0)
            await asyncio.sleep(0.05)

    place = os.open(os.environ[TASKS_KEY], os.O_WRONLY | os.O_CREAT, 0o600)
    counting = asyncio.create_task(count())
    try:
        yield
    finally:
        counting.cancel()
        os.close(place)
