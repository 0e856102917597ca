"""Listeners: one job each for an event, restored as what it was."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest
import sqlalchemy
from sqlalchemy.orm import Session

from tenure import InvalidOption, NotEncodable, Sensitive, Tenure, WrongContext
from tests.worker.support import drain, push_raw

heard: list[tuple[str, Any]] = []


@dataclass(frozen=True)
class OrderPaid:
    order: int
    token: Annotated[str, Sensitive] = "c4nary"


class Shipped(msgspec.Struct, frozen=True):
    order: int


@dataclass(frozen=True)
class PaidTwice(OrderPaid):
    pass


async def bill(event: OrderPaid) -> None:
    heard.append(("bill", event))


def thank(event: OrderPaid, /, greeting: str = "thanks") -> None:
    heard.append((greeting, event))


def ship(event: Shipped) -> None:
    heard.append(("ship", event))


def misled(event: Shipped) -> None: ...


def bare(event) -> None: ...  # type: ignore[no-untyped-def]


def nothing() -> None: ...


def two(event: OrderPaid, other: int) -> None: ...


def unresolved(event: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.fixture
def app(namespace: str) -> Tenure:
    heard.clear()
    return Tenure("memory://", namespace=namespace)


# S19
async def test_each_listener_of_the_event_s_class_runs_once_as_a_job(app: Tenure) -> None:
    app.listener(OrderPaid, queue="events", max_attempts=2)(bill)
    app.listener(OrderPaid)(thank)
    app.listener(Shipped)(ship)
    handles = await app.emit(OrderPaid(7))
    assert [handle.queue for handle in handles] == ["events", "default"]
    await drain(app, queues=("events", "default"))
    assert sorted(heard) == [("bill", OrderPaid(7)), ("thanks", OrderPaid(7))]
    assert await app.emit(PaidTwice(7)) == []  # another event: nobody listens to it
    assert await app.emit(7) == []


async def test_a_listener_is_a_job_and_a_function_as_ever(app: Tenure) -> None:
    job = app.listener(OrderPaid, name="thank")(thank)
    job(OrderPaid(1))
    assert heard == [("thanks", OrderPaid(1))]
    handle = await job.options(delay=60).push(OrderPaid(2))
    assert await handle.status() == "delayed"
    assert app.registry.get("thank") is job.definition


async def test_options_hold_for_all_and_an_id_is_completed(app: Tenure) -> None:
    app.listener(OrderPaid, name="bill")(bill)
    app.listener(OrderPaid, name="thank")(thank)
    handles = await app.emit(OrderPaid(7), id="order-7", delay=60)
    assert [handle.id for handle in handles] == ["order-7.bill", "order-7.thank"]
    assert [handle.held for handle in await app.emit(OrderPaid(7), id="order-7")] == [True, True]
    assert (await app.counts("default")).delayed == 2
    with pytest.raises(InvalidOption):
        await app.emit(Shipped(7), loud=True)  # type: ignore[call-arg]


async def test_what_is_stored_is_validated_on_its_way_back(app: Tenure) -> None:
    app.listener(OrderPaid, name="bill")(bill)
    envelope = b'{"v":1,"id":"x","name":"bill","queue":"default","args":[{"order":"c4nary"}]}'
    await push_raw(app, envelope, "x")
    await drain(app)
    [record] = await app.failed("default")
    assert (record.failure.reason, heard) == ("arguments", [])
    assert "c4nary" not in record.failure.message


def test_sensitive_values_are_not_shown(app: Tenure) -> None:
    job = app.listener(OrderPaid)(bill)
    assert "c4nary" not in repr(job.bind(OrderPaid(7)))


async def test_what_does_not_come_back_equal_is_refused_and_nobody_is_told(app: Tenure) -> None:
    app.listener(OrderPaid, name="bill")(bill)
    with pytest.raises(NotEncodable):
        await app.emit(OrderPaid(object()))  # type: ignore[arg-type]
    assert (await app.counts("default")).ready == 0


def test_what_cannot_listen_is_refused_where_it_is_decorated(app: Tenure) -> None:
    for target, problem in [
        (bare, "annotate 'event' with OrderPaid"),
        (nothing, "must take the event"),
        (two, "'other' needs a default"),
        (OrderPaid, "must be a function"),
    ]:
        with pytest.raises(InvalidOption, match=problem):
            app.listener(OrderPaid)(target)  # type: ignore[call-overload]
    with pytest.raises(InvalidOption, match="takes the class of an event"):
        app.listener("OrderPaid")(bill)  # type: ignore[arg-type]
    assert len(app.registry) == 0


@pytest.mark.parametrize(("target", "problem"), [(misled, "takes 'Shipped'"), (unresolved, "cannot be resolved")])
async def test_a_listener_that_takes_another_event_is_refused_at_the_first_emit(
    app: Tenure, target: Any, problem: str
) -> None:
    app.listener(OrderPaid, name="other")(target)
    with pytest.raises(InvalidOption, match=problem):
        await app.emit(OrderPaid(7))


# S19
async def test_a_listener_may_want_a_commit(app: Tenure) -> None:
    app.listener(OrderPaid, name="bill", after_commit=True)(bill)
    app.listener(OrderPaid, name="thank")(thank)
    with pytest.raises(InvalidOption, match=r"listener bill is told after a commit only.*nothing was sent"):
        await app.emit(OrderPaid(7))
    await asyncio.to_thread(in_transactions, app)
    assert (await app.counts("default")).ready == 2
    await drain(app)
    assert sorted(heard) == [("bill", OrderPaid(8)), ("thanks", OrderPaid(8))]


def in_transactions(app: Tenure) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    for order, committed in [(7, False), (8, True)]:
        with Session(engine) as session, session.begin():
            session.execute(sqlalchemy.text("select 1"))
            handles = app.emit_sync(OrderPaid(order), after_commit=session)
            assert len(handles) == 2
            assert app.counts_sync("default").ready == 0
            if not committed:
                session.rollback()
    engine.dispose()


async def test_a_forgotten_await_and_a_blocked_loop_are_refused(app: Tenure) -> None:
    app.listener(OrderPaid, name="bill")(bill)
    with pytest.raises(WrongContext):
        app.emit_sync(OrderPaid(7))
    with pytest.raises(WrongContext):
        await asyncio.to_thread(lambda: app.emit(OrderPaid(7)).close())
