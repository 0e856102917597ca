"""Handlers that look whether anything of another attempt is left, and then leave everything that can be left."""

import asyncio
import dataclasses
import decimal
import logging
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from tenure import Current, Discard, GiveUp, Injected, Retry, Snooze, Tenure, current
from tenure.surroundings import CallNext
from tests.worker.program import journal

CLEAN = "clean"
mine: ContextVar[str] = ContextVar("mine", default=CLEAN)
log_context: ContextVar[str] = ContextVar("log_context", default=CLEAN)
of_the_thread = threading.local()

found: list[str] = []
"""What was seen that should not have been."""
ran: list[str] = []
thread_leftovers: list[str] = []


class Service:
    """A service that notes whose it was."""

    made: list["Service"] = []  # noqa: RUF012 - a list of this test's

    def __init__(self) -> None:
        self.owner = CLEAN
        self.open = True
        Service.made.append(self)

    def close(self) -> None:
        self.open = False


def make() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


lines: list[tuple[str, str]] = []


class Handler(logging.Handler):
    """Notes each line with the log context that it was written in."""

    def emit(self, record: logging.LogRecord) -> None:
        lines.append((record.getMessage(), log_context.get()))


log = logging.getLogger("tests.attempts")
log.propagate = False
log.setLevel(logging.INFO)
log.addHandler(Handler())


def looks(service: Service | None) -> str:
    """See whether anything is left of another attempt, then leave everything that can be left."""
    identity = current().id
    ran.append(identity)
    seen = {
        "a context variable": mine.get(),
        "a log context": log_context.get(),
        "a decimal context": CLEAN if decimal.getcontext().prec == 28 else "another's",
        "an exception": CLEAN if sys.exc_info()[0] is None else "another's",
        "a service": CLEAN if service is None else service.owner,
    }
    found.extend(f"{identity} saw {what}: {value}" for what, value in seen.items() if value != CLEAN)
    mine.set(identity)
    log_context.set(identity)
    decimal.getcontext().prec = 5
    if service is not None:
        service.owner = identity
    return identity


def looks_again(identity: str, service: Service | None) -> None:
    """See whether another attempt has changed what is this one's."""
    seen = (current().id, mine.get(), log_context.get(), decimal.getcontext().prec)
    if seen != (identity, identity, identity, 5) or (service is not None and service.owner != identity):
        found.append(f"{identity} became {seen}")
    log.info(identity)


def ends(how: str) -> None:
    match how:
        case "fails":
            raise LookupError(how)
        case "retries":
            if current().attempt < 2:
                raise Retry(how, after=0)
        case "gives up":
            raise GiveUp(how)
        case "discards":
            raise Discard(how)
        case "snoozes":
            if current().deliveries < 2:
                raise Snooze(0, how)
        case "exits":
            raise SystemExit(3)


async def coroutine(how: str, *, service: Service = Injected) -> None:
    identity = looks(service)
    task = asyncio.current_task()
    assert task is not None
    if task.get_name() == "left behind" or task.cancelling():
        found.append(f"{identity} runs in another's task")
    task.set_name("left behind")
    await asyncio.sleep(random.uniform(0, 0.004))  # handler
    looks_again(identity, service)
    if how in {"hangs", "is cancelled"}:
        await asyncio.Event().wait()
    ends(how)


async def plain_coroutine(how: str) -> None:
    identity = looks(None)
    # A task of its own, left behind: it keeps this attempt's context, and gives it to nobody.
    left = asyncio.create_task(asyncio.sleep(0.01))  # handler
    await asyncio.sleep(0)
    left.add_done_callback(lambda _: mine.set("of a task that was left behind"))
    looks_again(identity, None)
    ends(how)


def threaded(how: str, *, service: Service = Injected) -> None:
    identity = looks(service)
    if hasattr(of_the_thread, "owner"):
        thread_leftovers.append(of_the_thread.owner)
    of_the_thread.owner = identity
    time.sleep(random.uniform(0, 0.004))  # handler
    looks_again(identity, service)
    while how in {"hangs", "is cancelled"} and not current().cancelled:
        time.sleep(0.005)  # handler
    ends(how)


@dataclasses.dataclass
class OfAClass:
    how: str

    def handle(self, service: Service) -> None:
        # An instance is the call's own: what one attempt writes on it, the next does not find.
        if vars(self).keys() != {"how"}:
            found.append(f"{current().id} found another's instance")
        self.scratch = looks(service)
        time.sleep(random.uniform(0, 0.004))  # handler
        looks_again(self.scratch, service)
        ends(self.how)


class Apart:
    """Whatever a handler in a process of its own has seen of others, and that it ran."""

    def __enter__(self) -> None:
        # One job at a time: what is open belongs to one before.
        found.extend("a service was left open" for service in Service.made[:-1] if service.open)

    def __exit__(self, *_: object) -> None:
        journal().write("apart", found.copy())


def apart(how: str, *, service: Service = Injected) -> None:
    with Apart():
        threaded(how, service=service)


async def apart_on_a_loop(how: str, *, service: Service = Injected) -> None:
    with Apart():
        await coroutine(how, service=service)


async def apart_with_tasks(how: str) -> None:
    with Apart():
        await plain_coroutine(how)


HOWS = ("succeeds", "fails", "retries", "gives up", "discards", "snoozes", "exits")
APART = (apart, apart_on_a_loop, apart_with_tasks)
LONG = ("hangs", "is cancelled")


def build(app: Tenure) -> None:
    app.services.register_factory(Service, make)
    for function in (coroutine, plain_coroutine, threaded):
        app.job(name=function.__name__, max_attempts=2, timeout=0.3)(function)
    app.job(name="of_a_class", max_attempts=2)(OfAClass)

    @app.middleware
    async def surrounds(attempt: Current, call_next: CallNext) -> Any:
        if mine.get() != CLEAN:
            found.append(f"{attempt.id} came into a context that is not clean")
        return await call_next()


def build_apart(namespace: str) -> Tenure:
    """Return an application some of whose jobs run in processes, which end one after another if they hang."""
    made = Tenure("memory://", namespace=namespace)
    build(made)
    for function in APART:
        made.job(name=function.__name__, max_attempts=2, executor="process")(function)
    made.job(name="apart_and_killed", max_attempts=1, timeout=0.3, executor="process")(apart)
    return made


app = build_apart("stateless")
"""Where a process of its own looks for it."""
