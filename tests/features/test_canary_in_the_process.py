"""What is secret stays so inside a process: in logs at DEBUG, and in whatever an object shows of itself (P12).

What the design lets out is asked for by name: the attributes of a failed record and of a lease, and a handler's own
arguments. No test here says that these hide anything.
"""

import asyncio
import contextlib
import gc
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from tenure import (
    Current,
    Discard,
    NotEncodable,
    Retry,
    Sensitive,
    Tenure,
    current,
)
from tenure.config import Settings
from tenure.envelope import decode
from tenure.errors import ConfigurationError, ConnectionFailed, InvalidOption, StoreError, StoreRefused, Undecodable
from tenure.events import Event
from tenure.queue import Ack, Drop, Fail, Failure, JobState, Lease, Push, Release, SetAside, Settlement
from tests.features.canaries import Canaries, Heard, every_form, listening
from tests.support.ports import free_port
from tests.support.servers import Server
from tests.worker.support import drain, until, working

attempts: list[Current] = []
exceptions: list[BaseException] = []
released = threading.Event()


async def login(user: str, password: Annotated[str, Sensitive], text: str) -> None:
    attempts.append(current())
    error = PermissionError(f"{user} may not enter: {text}")
    exceptions.append(error)
    raise error from ValueError(text)


def login_in_a_thread(user: str, password: Annotated[str, Sensitive], text: str) -> str:
    attempts.append(current())
    if current().attempt == 1:
        raise Retry(after=0)
    return user


class Opened:
    def __init__(self, user: str, password: Annotated[str, Sensitive]) -> None:
        self.user = user
        self.password = password

    async def handle(self) -> str:
        attempts.append(current())
        raise Discard(f"not for {self.user}")


async def wants_a_number(number: int) -> None:
    raise AssertionError(number)


async def fails_too_late(text: str) -> None:
    attempts.append(current())
    while not released.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)  # handler
    raise ValueError(text)


def fails_too_late_in_a_thread(text: str) -> None:
    attempts.append(current())
    released.wait(20)
    raise ValueError(text)


async def takes_long(user: str) -> None:
    attempts.append(current())
    try:
        await asyncio.Event().wait()
    finally:
        attempts.append(current())


@pytest.fixture(autouse=True)
def _forget() -> None:
    attempts.clear()
    exceptions.clear()
    released.clear()


@pytest.fixture
def heard() -> Iterator[Heard]:
    with listening() as heard:
        yield heard


def open_app(url: str, namespace: str) -> Tenure:
    app = Tenure(url, namespace=namespace, settings=Settings.from_environ({"TENURE_URL": url}))
    for function in (login, login_in_a_thread, wants_a_number, takes_long, fails_too_late, fails_too_late_in_a_thread):
        app.job(name=function.__name__)(function)
    app.job(name="opened")(Opened)
    return app


def everything_of(app: Tenure) -> list[object]:
    """Return what an application hands out that knows of its store."""
    connection = app.settings.connection()
    return [
        app, app.settings, connection, connection.address, app.queue(), app.queue().capabilities, app.infrastructure(),
        app.registry, list(app.registry), app.events, app.middleware, app.lifespan, app.operate, app.services,
        app.queue().keeper(), app.queue().pusher(),
    ]  # fmt: skip


async def test_nothing_secret_is_logged_or_shown_from_a_push_to_the_end(
    secret_url: str, canaries: Canaries, namespace: str, heard: Heard
) -> None:  # K13
    asyncio.get_running_loop().set_debug(True)  # asyncio's own logs then hold what it runs
    app = open_app(secret_url, namespace)
    shown: list[object] = []
    app.events.on(Event, shown.append)
    secrets = (canaries.argument.text, canaries.sensitive.text, canaries.exception.text)
    names = {definition.name: definition for definition in app.registry}
    calls = [
        app.call("login", secrets).options(max_attempts=2, backoff=0, meta={"note": canaries.argument.text}),
        app.call("login_in_a_thread", secrets),
        app.bind(Opened(*secrets[:2])),
    ]
    shown += [*calls, *(call.overrides for call in calls), names, *(call.steps for call in calls)]
    handles = [await app.push(call) for call in calls]
    handles += await app.push_many(calls)
    shown += handles
    shown += [await app.operate.jobs("default", state) for state in (JobState.READY, JobState.DELAYED)]
    await drain(app, tries=2)
    records = await app.failed("default")
    shown += [records, *records, *(record.failure for record in records), *attempts, await app.counts("default")]
    shown += [await handle.status() for handle in handles]
    shown += await app.retry("default")
    await drain(app, tries=1)
    shown += [await app.health(), *everything_of(app)]
    await app.aclose()
    assert {record.failure.type for record in records} == {"PermissionError"}
    assert len(attempts) == 14
    kinds = {type(thing).__name__ for thing in shown}
    assert {"JobPushed", "AttemptStarted", "JobSucceeded", "JobReleased", "JobFailed", "JobDiscarded"} <= kinds
    canaries.check("\n".join(map(every_form, shown)), "what objects show of themselves")
    assert "PermissionError" in heard.text
    canaries.check(heard.text, "a log record")


async def test_an_event_of_a_failure_carries_it_and_does_not_show_it(
    secret_url: str, canaries: Canaries, namespace: str
) -> None:
    """Whoever asks a failed record or an event for its message has it: that is what they are for."""
    app = open_app(secret_url, namespace)
    events: list[Any] = []
    app.events.on(Event, events.append)
    await app.push(app.call("login", (canaries.argument.text, canaries.sensitive.text, canaries.exception.text)))
    await drain(app, tries=1)
    [record] = await app.failed("default")
    await app.aclose()
    assert canaries.exception.found_in(record.failure.message)
    assert canaries.exception.found_in(record.failure.traceback)
    assert canaries.sensitive.found_in(str(bytes(decode(record.envelope).args)))
    [failed] = [event for event in events if type(event).__name__ == "JobFailed"]
    assert failed.failure == record.failure
    canaries.check(every_form(failed) + every_form(record), "an event or a record")


async def test_what_the_contract_carries_shows_no_bytes_no_token_and_no_message(
    secret_url: str, canaries: Canaries, namespace: str
) -> None:
    app = open_app(secret_url, namespace)
    queue = app.queue()
    push = Push(queue="default", id="one", envelope=canaries.argument.text.encode())
    shown: list[object] = [push, await queue.push([push])]
    claimed = await queue.claim(["default"], limit=1, lease=30, wait=0)
    lease: Lease = claimed.leases[0]
    failure = Failure(reason="exception", message=canaries.exception.text, traceback=canaries.exception.text)
    settlements: list[Settlement] = [
        Ack(lease),
        Drop(lease),
        Release(lease),
        SetAside(lease, "why"),
        Fail(lease, failure),
    ]
    shown += [claimed, lease, failure, *settlements, await queue.settle(settlements[-1:])]
    shown += [await app.failed("default"), await app.operate.failed_record("default", "one")]
    await app.aclose()
    text = "\n".join(map(every_form, shown))
    canaries.check(text, "what the contract's records show")
    assert lease.token not in text
    assert f"envelope=<{len(lease.envelope)} bytes>" in repr(lease)


async def test_a_record_that_cannot_be_read_is_reported_without_its_bytes(
    secret_url: str, canaries: Canaries, namespace: str, heard: Heard
) -> None:
    """Its bytes are had by their key alone."""
    app = open_app(secret_url, namespace)
    events: list[object] = []
    app.events.on(Event, events.append)
    await app.queue().push([Push(queue="default", id="odd", envelope=f'{{"{canaries.argument.text}'.encode())])
    await drain(app)
    listed = await app.operate.unreadable("default")
    content = await app.operate.unreadable_bytes("default", listed[0].key)
    await app.aclose()
    assert content is not None
    assert canaries.argument.found_in(content.decode())
    canaries.check("\n".join(map(every_form, [listed, *listed, *events])), "a listing or an event")
    assert "set aside" in heard.text
    canaries.check(heard.text, "a log record")


async def test_a_value_that_does_not_fit_is_refused_and_fails_unrepeated(
    secret_url: str, canaries: Canaries, namespace: str, heard: Heard
) -> None:
    app = open_app(secret_url, namespace)
    errors: list[BaseException] = []
    for refused in (
        lambda: app.call("wants_a_number", [canaries.argument.text]),
        lambda: app.bind(Opened(object(), canaries.sensitive.text)),  # type: ignore[arg-type]
        lambda: app.bind(Opened(canaries.argument.text, b"\xff" + canaries.sensitive.text.encode())),  # type: ignore[arg-type]
    ):
        with pytest.raises((InvalidOption, NotEncodable)) as raised:
            refused()
        errors.append(raised.value)
    good = app.call("login", [canaries.argument.text, canaries.sensitive.text, ""])
    other = app.registry.get("wants_a_number")
    assert other is not None
    with pytest.raises(Undecodable) as undecodable:
        other.codec.decode(good.args, good.kwargs)
    errors.append(undecodable.value)
    canaries.check("\n".join(map(every_form, errors)), "an error of a push")
    args = f'"args":["{canaries.argument.text}"]'.encode()
    envelope = b'{"v":1,"id":"two","name":"wants_a_number","queue":"default",%s}' % args
    await app.queue().push([Push(queue="default", id="two", envelope=envelope)])
    await drain(app)
    [record] = await app.failed("default")
    await app.aclose()
    assert record.failure.reason == "arguments"
    canaries.check(record.failure.message + record.failure.traceback + every_form(record), "the failure")
    canaries.check(heard.text, "a log record")


async def test_a_job_that_is_cancelled_leaves_nothing_in_the_log(
    secret_url: str, canaries: Canaries, namespace: str, heard: Heard
) -> None:
    app = open_app(secret_url, namespace)
    handle = await app.push(app.call("takes_long", [canaries.argument.text]))
    async with working(app):
        await until(lambda: attempts)
        await handle.cancel()
        await until(lambda: "was told to stop" in heard.text)
    await app.aclose()
    canaries.check(heard.text, "a log record")


@pytest.mark.parametrize("name", ["fails_too_late", "fails_too_late_in_a_thread"])
async def test_what_an_abandoned_handler_raises_in_the_end_is_in_no_log(
    name: str, canaries: Canaries, namespace: str, heard: Heard
) -> None:
    asyncio.get_running_loop().set_debug(True)
    app = open_app("memory://", namespace)
    await app.push(app.call(name, [canaries.exception.text]).options(timeout=0.05))
    async with working(app, tries=1, cancel_grace=0.1):
        await until(lambda: "was abandoned" in heard.text)
        released.set()
        await until(lambda: "its outcome is ignored" in heard.text)
    await app.aclose()
    gc.collect()  # asyncio tells of an exception that nobody looked at when it is thrown away
    canaries.check(heard.text, "a log record")


# ------------------------------------------------------------------------------------------- stores that cannot be used


def wrong_urls(server: Server, canaries: Canaries) -> dict[str, str]:
    """Addresses of stores that cannot be used, by what is wrong with them; each holds the canary as its password."""
    secret = canaries.url.quoted
    return {
        "unreachable": f"redis://:{secret}@127.0.0.1:{free_port()}/0",
        "a wrong user": server.tcp_url.replace("://", f"://nobody:{secret}@"),
        "a wrong password": server.tcp_url.replace("://", f"://:wrong{secret}@"),
    }


@pytest.mark.parametrize("wrong", ["unreachable", "a wrong user", "a wrong password"])
async def test_a_store_that_cannot_be_used_is_told_without_its_password(
    wrong: str, guarded: Server, canaries: Canaries, namespace: str, heard: Heard
) -> None:
    app = open_app(wrong_urls(guarded, canaries)[wrong], namespace)
    errors: list[object] = []
    for attempt in (
        lambda: app.push(app.call("login", [canaries.argument.text, canaries.sensitive.text, ""])),
        lambda: app.counts("default"),
        lambda: app.queue().claim(["default"], limit=1, lease=30, wait=0),
        lambda: app.failed("default"),
    ):
        with pytest.raises(StoreError) as raised:
            await attempt()
        assert isinstance(raised.value, ConnectionFailed | StoreRefused)
        errors.append(raised.value)
    with pytest.raises(StoreError) as raised:
        app.queue().pusher().push([Push(queue="default", id="x", envelope=canaries.argument.text.encode())])
    errors.append(raised.value)
    health = await app.health()
    assert not health.ready
    await drain(app, max_time=0.3, stop_when_empty=False)
    shown = [*errors, health, *everything_of(app)]
    await app.aclose()
    canaries.check("\n".join(map(every_form, shown)), f"what is said of {wrong}")
    assert "failed, and is tried again" in heard.text
    canaries.check(heard.text, "a log record")


@pytest.mark.parametrize(
    "url",
    [
        "redis://:SECRET@host:99999/0",
        "redis://:SECRET@host/nodatabase",
        "redis://:SECRET@ho st/0",
        "nothing://:SECRET@host",
        "redis+sentinel://:SECRET@host",
        "redis://:SECRET%@host",
        "postgresql://user:SECRET@host:99999/db",
        "SECRET",
        "redis://:SECRET@host?password=SECRET&unknown=1",
    ],
)
def test_a_url_that_is_wrong_is_refused_by_its_key_alone(url: str, canaries: Canaries) -> None:
    given = url.replace("SECRET", canaries.url.quoted)
    for app in (Tenure(given), Tenure(settings=Settings.from_environ({"TENURE_URL": given}))):
        with pytest.raises(ConfigurationError) as raised:
            app.queue()
        canaries.check(every_form(raised.value) + every_form(app.settings), "a refusal")


@pytest.mark.parametrize("key", ["REDIS_PORT", "REDIS_DB", "REDIS_TLS", "QUEUE_MAX_ATTEMPTS", "QUEUE_NAMESPACE"])
def test_a_value_that_is_wrong_is_refused_by_its_key_alone(key: str, canaries: Canaries) -> None:
    environ = {"QUEUE_CONNECTION": "redis", "REDIS_HOST": "host", "REDIS_PASSWORD": canaries.url.text}
    with pytest.raises(ConfigurationError, match=key) as raised:
        Settings.from_environ({**environ, key: f"{canaries.argument.text}:{{"}).connection()
    canaries.check(every_form(raised.value), "a refusal")
