"""A user's module of jobs, as the tests of the jobs layer import it."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import msgspec

from tenure import Discard, Injected, Retry, Sensitive, Tenure, current

if TYPE_CHECKING:
    from tests.unit.nowhere import Unknown  # type: ignore[import-not-found]

P = ParamSpec("P")
R = TypeVar("R")

app = Tenure("memory://", namespace="tests")
inline = Tenure("sync://", namespace="tests")


class Mailer:
    """A service."""

    closed = 0


@app.job(queue="emails", max_attempts=5, timeout=30)
async def send_welcome(
    email: str, name: str = "you", token: Annotated[str, Sensitive] = "", *, mailer: Mailer = Injected
) -> Later:
    """Welcome somebody."""
    return Later(f"{email} {name} {token} {mailer}")


@app.job
def add(a: int, b: int = 0) -> int:
    return a + b


@app.job
def ordinary_text(text: str) -> int:
    return len(text)


@app.job
async def take_all(first: int, /, *rest: int, flag: bool = False, **named: str) -> str:
    return f"{first} {rest} {flag} {named}"


@app.job(queue="reports")
@dataclass(frozen=True)
class Report:
    number: int
    title: str = "none"
    _: KW_ONLY
    draft: bool = False
    made: list[int] = field(default_factory=list, init=False)

    async def handle(self, mailer: Mailer) -> str:
        return f"{self.number} {self.title} {self.draft} {mailer}"


@dataclass(slots=True)
@app.job
class Slotted:
    """Made twice: once before and once after it was registered."""

    number: int

    def handle(self) -> int:
        return self.number


@app.job
class Plain:
    def __init__(self, number: int, /, word: str = "x") -> None:
        if number < 0:
            raise ValueError(f"secret {number}")
        self.number = number
        self.word = word

    def handle(self) -> str:
        return self.word * self.number


@app.job
class Forgetful:
    def __init__(self, number: int) -> None:
        self.twice = number * 2

    def handle(self) -> int:
        return self.twice


@app.job
class Structured(msgspec.Struct):
    number: int

    def handle(self) -> int:
        return self.number


@app.job
@dataclass
class WithInitVar:
    number: InitVar[int] = 3

    def handle(self) -> None: ...


@app.job
class Variadic:
    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    def handle(self) -> None: ...


class SubReport(Report):
    pass


class Later(str):
    """Defined below the job whose annotation names it."""

    __slots__ = ()


@app.job
async def unresolvable(value: Unknown) -> None: ...


@app.job
async def unresolvable_service(value: int, *, service: Unknown = Injected) -> None: ...


def noted(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    @functools.wraps(function)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return await function(*args, **kwargs)

    return wrapper


def generator(n: int) -> Any:
    yield n


async def async_generator(n: int) -> Any:
    yield n


def ordinary(n: int) -> int:
    return n


async def asynchronous(n: int) -> int:
    return n


class Holder:
    def method(self, n: int) -> None: ...

    @staticmethod
    def static(n: int) -> None: ...

    class Nested:
        def handle(self) -> int:
            return 1


class WithoutHandle:
    pass


def positional_service(mailer: Mailer = Injected) -> None: ...


def nameless_service(*, mailer=Injected) -> None: ...  # type: ignore[no-untyped-def]


# ------------------------------------------------------------------------------------------ jobs that run where pushed


@inline.job
async def where_async() -> tuple[str, int]:
    return current().id, threading.get_ident()


@inline.job
def where_plain() -> tuple[str, int]:
    return current().id, threading.get_ident()


@inline.job
def plain_pushes_async() -> str:
    return where_async.push_sync().result_sync(timeout=1)[0]


@inline.job
async def async_pushes_plain() -> int:
    return (await (await where_plain.push()).result(timeout=1))[1]


@inline.job
async def with_service(*, mailer: Mailer = Injected) -> str:
    return type(mailer).__name__


@inline.job
def plain_with_service(*, mailer: Mailer = Injected) -> tuple[str, int]:
    return type(mailer).__name__, threading.get_ident()


@inline.job
@dataclass
class InlineReport:
    number: int

    def handle(self, mailer: Mailer) -> str:
        return f"{self.number} {type(mailer).__name__}"


class Boom(Exception):
    pass


OUTCOMES: dict[str, Callable[[], BaseException]] = {
    "boom": Boom,
    "exit": lambda: SystemExit(3),
    "stop": StopIteration,
    "retry": Retry,
    "discard": Discard,
}


@inline.job
async def raises_async(what: str) -> None:
    raise OUTCOMES[what]()


@inline.job
def raises_plain(what: str) -> None:
    raise OUTCOMES[what]()


CANCELLED = threading.Event()


@inline.job
async def interrupts_its_caller() -> None:
    await asyncio.sleep(0.05)  # handler: by then its caller waits
    os.kill(os.getpid(), signal.SIGINT)
    try:
        await asyncio.Event().wait()
    finally:
        CANCELLED.set()


@inline.job(priority=5, timeout=1)
async def count(n: int) -> dict[str, Any]:
    return {"n": n, "meta": dict(current().meta), "attempt": current().attempt, "max": current().max_attempts}
