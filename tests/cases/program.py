"""The worker process of the cases: `python -m tests.cases.program URL NAMESPACE [options as JSON]`.

It knows the jobs of `tests.worker.program`, and more: as such it is a newer release of that one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tenure import Injected, Retry, Tenure, current
from tenure.context import Current
from tenure.events import AttemptEvent, JobSucceeded, SettlementLost
from tenure.retry import Backoff
from tests.worker import program
from tests.worker.program import journal
from tests.worker.toxic import ERRORS


async def hangs_at_first(label: str) -> None:
    """The first attempt waits to be killed, any other ends at once."""
    journal().write("start", label)
    if current().attempt == 1:
        await asyncio.sleep(60)  # handler
    journal().write("end", label)


async def at_the_same_time(seconds: float) -> None:
    journal().write("begin", "slot")
    await asyncio.sleep(seconds)  # handler
    journal().write("over", "slot")


# ------------------------------------------------------------------------------------ code that does not let itself end


async def catches_ordinary_exceptions(seconds: float) -> str:
    journal().write("start", "catches_ordinary_exceptions")
    caught, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            await asyncio.sleep(0.01)  # handler
            int("no number")
        except Exception:  # noqa: BLE001
            caught += 1
    journal().write("late", "catches_ordinary_exceptions")
    return f"caught {caught}"


async def catches_everything(seconds: float) -> str:
    journal().write("start", "catches_everything")
    caught, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            await asyncio.sleep(0.05)  # handler
        except BaseException:  # noqa: BLE001
            caught += 1
    journal().write("late", "catches_everything")
    return f"caught {caught}"


async def cleans_up_slowly(seconds: float) -> str:
    journal().write("start", "cleans_up_slowly")
    try:
        await asyncio.sleep(seconds)  # handler
    finally:
        await asyncio.sleep(seconds)  # handler
        journal().write("late", "cleans_up_slowly")
    return "done"


async def blocks_and_catches(seconds: float) -> str:
    """Gives the loop no turn in which it could be cancelled, until it is over."""
    journal().write("start", "blocks_and_catches")
    time.sleep(seconds)  # handler  # noqa: ASYNC251
    journal().write("late", "blocks_and_catches")
    return "done"


def in_a_thread(seconds: float) -> str:
    journal().write("start", "in_a_thread")
    caught, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            time.sleep(0.01)  # handler
            int("no number")
        except BaseException:  # noqa: BLE001
            caught += 1
    journal().write("late", "in_a_thread")
    return f"caught {caught}"


# ------------------------------------------------------------------------------- what cannot be stored or ended


async def raises(kind: str) -> None:
    journal().write("raise", kind)
    raise ERRORS[kind]()


async def raises_while_asking_for_a_retry(kind: str) -> None:
    journal().write("raise", kind)
    raise Retry(after=0) from ERRORS[kind]()


async def fails_around(kind: str) -> None:
    """Its middleware raises, see `build`."""
    journal().write("raise", kind)


async def plain(label: Any) -> None:
    journal().write("plain", label)


# ---------------------------------------------------------------------------------- what is new with this one


async def single(number: int) -> None:
    journal().write("single", number)
    await asyncio.sleep(0.01)  # handler


async def recurs(series: int, *, app: Tenure = Injected) -> None:
    """Each run pushes the next one."""
    journal().write("recurs", series)
    await app.push(app.call("recurs", [series]), delay=1.0)


async def until(path: str) -> None:
    """Ends when there is such a file."""
    journal().write("start", path)
    while not Path(path).exists():  # noqa: ASYNC110, ASYNC240 - it comes from another process
        await asyncio.sleep(0.005)  # handler


async def needs(path: str) -> None:
    """Fails when there is no such file."""
    journal().write("start", path)
    if not Path(path).exists():  # noqa: ASYNC240
        raise FileNotFoundError


async def fails() -> None:
    journal().write(current().name, "fails")
    raise ValueError


# Their powers leave the range of a float at the 1,025th and at the 310th attempt, and that of an exact product before.
FOR_EVER = {
    f"fails.{factor!r}.times.as.late": Backoff(base=0.001, factor=factor, cap=0.002, jitter=jitter)
    for factor, jitter in ((2, False), (2.0, True), (10.0, True))
}


HANDLERS = (
    hangs_at_first, at_the_same_time, catches_ordinary_exceptions, catches_everything, cleans_up_slowly,
    blocks_and_catches, in_a_thread, raises, raises_while_asking_for_a_retry, fails_around, plain, single, recurs,
    until, needs,
)  # fmt: skip


def build(url: str, namespace: str) -> Tenure:
    """Return an application that knows everything."""
    app = program.build(url, namespace)
    for function in HANDLERS:
        app.job(name=function.__name__)(function)

    for name, backoff in FOR_EVER.items():
        app.job(name=name, backoff=backoff)(fails)
    app.services.register_value(Tenure, app)

    def settled(event: AttemptEvent) -> None:
        journal().write("settled" if isinstance(event, JobSucceeded) else "stale", event.name, event.lease)

    app.events.on(JobSucceeded, settled)
    app.events.on(SettlementLost, settled)

    @app.middleware
    async def around(attempt: Current, call_next: Callable[[], Awaitable[Any]]) -> Any:
        result = await call_next()
        if attempt.name == "fails_around":
            raise ERRORS["a lone surrogate"]()
        return result

    return app


if __name__ == "__main__":
    program.main(build)
