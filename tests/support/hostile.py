"""Jobs for hostile and odd inputs, and how their tests store, run and count them."""

import asyncio
import uuid
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec

from tenure import Call, Injected, Retry, Sensitive, Tenure
from tenure.naming import check_job_id
from tenure.queue import Counts, Push
from tenure.worker import ExitReason, Worker, WorkerOptions

QUEUE = "hostile"


class Seen:
    """What handlers were called with."""

    def __init__(self) -> None:
        self.values: list[Any] = []


async def keep(value: Any, *, seen: Seen = Injected) -> None:
    seen.values.append(value)


async def keep_text(value: str, *, seen: Seen = Injected) -> None:
    seen.values.append(value)


async def keep_secret(value: str, token: Annotated[str, Sensitive], *, seen: Seen = Injected) -> None:
    seen.values.append(value)


async def twice(value: Any, *, seen: Seen = Injected) -> None:
    seen.values.append(value)
    if len(seen.values) < 2:
        raise Retry(after=0.0)


async def raising(kind: str, *, seen: Seen = Injected) -> None:
    seen.values.append(kind)
    raise RAISED[kind]()


def returning(kind: str, *, seen: Seen = Injected) -> Any:
    seen.values.append(kind)
    return RETURNED[kind]()


async def typed(days: dict[int, tuple[int, ...]], tags: frozenset[str], *, seen: Seen = Injected) -> None:
    seen.values.append((days, tags))


class TextRaises(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class TextIsHuge(Exception):
    def __str__(self) -> str:
        return "x" * 100_000_000


class Own(BaseException):
    pass


RAISED: dict[str, Callable[[], BaseException]] = {
    "base": Own,
    "interrupt": KeyboardInterrupt,
    "exit": lambda: SystemExit(3),
    "cancelled": asyncio.CancelledError,
    "group": lambda: BaseExceptionGroup("many", [ValueError("one"), Own("two")]),
    "text raises": TextRaises,
    "text is huge": TextIsHuge,
}


def endless() -> Iterator[int]:
    while True:
        yield 1


def loop() -> list[Any]:
    around: list[Any] = []
    around.append(around)
    return around


RETURNED: dict[str, Callable[[], Any]] = {
    "nothing that JSON has": object,
    "an endless generator": endless,
    "far too much": lambda: "x" * 10_000_000,
    "itself": loop,
}

JOBS = (keep, keep_text, keep_secret, twice, raising, returning, typed)


def equipped(url: str, namespace: str, seen: Seen) -> Tenure:
    """Return an application with the jobs of this module."""
    app = Tenure(url, namespace=namespace)
    app.services.register_value(Seen, seen)
    for function in JOBS:
        app.job(name=f"hostile.{function.__name__}", queue=QUEUE)(function)
    return app


def call(app: Tenure, name: str, *args: Any, **kwargs: Any) -> Call[Any]:
    definition = app.registry.get(f"hostile.{name}")
    assert definition is not None
    return Call(definition, *definition.encode(args, kwargs))


async def put(app: Tenure, envelope: bytes, job_id: str | None = None) -> None:
    """Store a record as another program would, under the id that its envelope names, where it names one."""
    await app.queue().push([Push(queue=QUEUE, id=job_id or named(envelope) or uuid.uuid4().hex, envelope=envelope)])


def named(envelope: bytes) -> str | None:
    try:
        return check_job_id(msgspec.json.decode(envelope, type=Named).id)
    except (ValueError, RecursionError):
        return None


class Named(msgspec.Struct):
    id: str


def stored(args: bytes, kwargs: bytes = b"{}", *, name: str = "hostile.keep", **fields: Any) -> bytes:
    """Return an envelope with these arguments, made without the codec."""
    rest = msgspec.json.encode({"v": 1, "id": uuid.uuid4().hex, "name": name, "queue": QUEUE} | fields)
    return rest[:-1] + b',"args":' + args + b',"kwargs":' + kwargs + b"}"


async def drain(app: Tenure, **options: Any) -> Counts:
    """Run a worker until nothing is ready, and return what is left."""
    options = {"queues": (QUEUE,), "stop_when_empty": True, "backoff": 0.0, "tries": 2, **options}
    assert await Worker(app, WorkerOptions(**options)).run() is ExitReason.EMPTY
    return await app.counts(QUEUE)


async def after_a_good_job(app: Tenure, **options: Any) -> Counts:
    """Push a good job behind whatever is there, drain, and return what is left."""
    await app.push(call(app, "keep", "good"))
    return await drain(app, **options)


def left(counts: Counts) -> dict[str, int]:
    """Return the numbers that are not zero."""
    names = ("ready", "delayed", "leased", "failed", "unreadable")
    return {name: getattr(counts, name) for name in names if getattr(counts, name)}


CANARY = "canary-5a1f\x1b[31m\r\nInjected: line\u202e<script>"


def tell_tale(text: str) -> bool:
    """Tell whether a text holds a part of the canary, or would act on a terminal or a page."""
    return "canary" in text or "\x1b" in text or "\u202e" in text or "<script>" in text
