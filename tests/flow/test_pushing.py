"""What is refused before anything is sent, and what a composition is that could not be stored whole."""

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tenure import (
    Call,
    CompositionIncomplete,
    CompositionState,
    InvalidOption,
    NotEncodable,
    NotRegistered,
    NotSupported,
    OutcomeUnknown,
    PayloadTooLarge,
    StoreRefused,
    Tenure,
    WrongContext,
    current,
)
from tenure.compositions import Gate, Node
from tenure.config import Settings
from tenure.drivers.memory import MemoryQueue
from tenure.queue import Capabilities
from tests.flow.shop import Shop
from tests.worker.support import drain, working


async def nothing_stored(shop: Shop) -> bool:
    page = await shop.app.operate.compositions.listed("default")
    return not page.compositions and (await shop.app.counts("default")).size == 0


REFUSED: dict[str, tuple[type[Exception], str, Callable[[Shop], Any]]] = {
    "transaction": (
        NotSupported,
        "transaction= and after_commit= in compositions.*after the commit",
        lambda shop: shop.note.options(transaction=object()).bind(shop.key, 1),
    ),
    "after_commit": (
        NotSupported,
        "transaction= and after_commit=",
        lambda shop: shop.note.options(after_commit=object()).bind(shop.key, 1),
    ),
    "id": (InvalidOption, "numbers its jobs itself", lambda shop: shop.note.options(id="x").bind(shop.key, 1)),
    "unique": (
        NotSupported,
        "unique jobs in compositions.*waiting for ever",
        lambda shop: shop.note.options(unique=True).bind(shop.key, 1),
    ),
    "connection": (
        InvalidOption,
        "a composition is in one",
        lambda shop: shop.note.options(connection="sync").bind(shop.key, 1),
    ),
    "date": (
        InvalidOption,
        "its turn may come after it",
        lambda shop: shop.note.options(at=datetime.now(UTC) + timedelta(days=1)).bind(shop.key, 1),
    ),
    "stranger": (NotRegistered, "another application", lambda _: Shop(Tenure("memory://")).drops.bind()),
    "size": (PayloadTooLarge, "60000", lambda shop: shop.noted("x" * 60_000)),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_a_member_cannot_be_is_refused_before_anything_is_sent(quick: Shop, name: str) -> None:
    kind, text, make = REFUSED[name]
    with pytest.raises(kind, match=text):
        await quick.app.chain(quick.noted("a"), make(quick)).push()
    assert await nothing_stored(quick)


async def test_a_date_is_for_what_begins_with_the_composition(quick: Shop) -> None:
    later = quick.note.options(at=datetime.now(UTC) + timedelta(days=1)).bind(quick.key, 1)
    await quick.app.push(later.then(quick.add))
    await quick.app.batch([later, later]).push()
    assert (await quick.app.counts("default")).delayed == 3


# S17
def test_auto_is_refused_since_a_later_process_could_choose_another_store() -> None:
    shop = Shop(Tenure(settings=Settings.from_environ({"QUEUE_CONNECTION": "auto", "REDIS_PORT": "1"})))
    with pytest.raises(NotSupported, match=r"'auto' connection.*a later process could choose another store"):
        shop.app.chain(shop.noted("a")).push_sync()
    with pytest.raises(NotSupported, match="'auto' connection"):
        shop.app.push_sync(shop.noted("a").then(shop.add))


async def test_several_queues_are_refused_where_no_step_can_span_them(
    quick: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = quick.app.chain(quick.noted("a"), quick.note.options(queue="b").bind(quick.key, "b"))
    can = Capabilities(driver="memory", shared=False, compositions=True)
    monkeypatch.setattr(MemoryQueue, "capabilities", property(lambda _: can))
    with pytest.raises(NotSupported, match=r"over several queues \(default and b\).*a slot of its own"):
        await chain.push()


async def test_several_queues_are_one_composition_where_steps_span_them(quick: Shop) -> None:
    chain = quick.app.chain(
        quick.note.options(queue="b", result_ttl=60).bind(quick.key, "a"),
        quick.note.options(result_ttl=60).bind(quick.key, "b"),
    )
    handle = await chain.push()
    assert handle.home == "b"
    async with working(quick.app, queues=("default", "b")):
        status = await handle.wait(timeout=30)
    assert status is not None
    assert status.state is CompositionState.COMPLETED
    assert [member.result async for member in handle.results()] == ["a", "b"]
    found = await quick.app.composition(handle.id)
    assert found is not None
    assert [member.result async for member in found.results()] == ["a", "b"]


async def test_pushing_from_the_wrong_world_is_refused_at_once(quick: Shop) -> None:
    with pytest.raises(WrongContext):
        quick.app.chain(quick.noted("a")).push_sync()


def test_a_forgotten_loop_is_refused_at_once(blocking_shop: Shop) -> None:
    with pytest.raises(WrongContext):
        _ = blocking_shop.app.chain(blocking_shop.noted("a")).push()


async def test_chains_are_no_part_of_a_bulk_push(quick: Shop) -> None:
    with pytest.raises(NotSupported, match=r"chains in a bulk push.*app.batch"):
        await quick.app.push_many([quick.noted("a"), quick.noted("b").then(quick.add)])


async def test_a_connection_is_that_of_the_push_or_of_the_first_call(quick: Shop) -> None:
    handle = await quick.app.chain(quick.note.options(connection="memory").bind(quick.key, 1)).push()
    assert handle.connection == "default", "its other name"
    assert (await quick.app.chain(quick.noted("a")).push(connection="sync")).connection == "sync"
    assert quick.ran == ["a"]


# -------------------------------------------------------------------------------------------------- steps of a chain


async def test_a_step_is_checked_when_it_is_made(quick: Shop) -> None:
    first: Any = quick.one.bind(quick.key, 1)
    with pytest.raises(InvalidOption, match="at most 2 positional arguments, got 3"):
        first.then(quick.add, 1, 2)
    with pytest.raises(NotEncodable, match="'more'"):
        first.then(quick.add, "x")
    with pytest.raises(NotEncodable, match="'more'"):
        first.then(quick.add, more="x")
    with pytest.raises(InvalidOption, match="'text' is missing"):
        first.then(quick.app.job(name="two")(two))


def two(number: int, text: str) -> None: ...


async def test_a_job_that_passes_its_result_on_cannot_acknowledge_itself_before(quick: Shop) -> None:
    atomic: Any = quick.app.job(name="atomic", atomic="default")(one_in_one)
    with pytest.raises(InvalidOption, match="atomic is atomic: it is acknowledged before"):
        atomic.bind().then(quick.add)
    begins: Any = quick.app.job(name="begins", max_attempts=1)(begins_a_transaction)
    handle = await quick.app.push(begins.bind().then(quick.add))
    async with working(quick.app):
        await handle.wait(timeout=30)
    [record] = await quick.app.failed("default")
    assert "passes its result on" in record.failure.message


def one_in_one() -> int:
    return 1


def begins_a_transaction() -> int:
    with current().transaction("default"):
        raise AssertionError("it must not begin")


async def test_options_of_a_chain_are_those_of_its_first_job_and_the_time_to_live_of_its_last(quick: Shop) -> None:
    call = quick.one.bind(quick.key, 1).then(quick.add, 2)
    handle = await quick.app.push(call, delay=60, result_ttl=30)
    assert (await quick.app.counts("default")).delayed == 1
    assert (await handle.status()).value == "delayed"
    assert (await handle.cancel()).value == "requested"
    assert (await handle.wait(timeout=30)).value == "cancelled"
    assert (await handle.cancel()).value == "not_found"


# ------------------------------------------------------------------------------------------------ stored, or not at all


class Failing:
    """A store of compositions of which a call fails."""

    def __init__(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        self._queue: Any = shop.app.queue()
        self._patch = monkeypatch
        self.parts: list[Sequence[Node]] = []

    def at(self, method: str, error: Exception, *, call: int = 1) -> None:
        """Let a call of this method fail."""
        original, calls = getattr(self._queue, method), 0

        async def failing(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            if method == "add":
                self.parts.append(args[2])
            if calls == call:
                raise error
            return await original(*args)

        self._patch.setattr(self._queue, method, failing)


FULL = StoreRefused("OOM", "memory is full")


async def test_an_error_in_between_gives_it_up_and_nothing_of_it_runs(
    quick: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(quick, monkeypatch)
    failing.at("add", FULL, call=3)
    with pytest.raises(CompositionIncomplete, match="nothing of it runs: the store refused") as raised:
        await quick.app.batch(quick.noted(number) for number in range(3_000)).push()
    assert raised.value.__cause__ is FULL
    assert [len(part) for part in failing.parts] == [500, 500, 500]
    assert await quick.app.composition(raised.value.composition_id) is None
    await drain(quick.app)
    assert quick.ran == []


async def test_nothing_at_all_is_stored_when_the_first_call_fails(quick: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    Failing(quick, monkeypatch).at("prepare", FULL)
    with pytest.raises(StoreRefused):
        await quick.app.chain(quick.noted("a")).push()


async def test_what_is_refused_late_gives_it_up_too(quick: Shop) -> None:
    calls = (quick.noted("x" * (60_000 if number == 2_000 else 1)) for number in range(3_000))
    with pytest.raises(CompositionIncomplete, match="60000"):
        await quick.app.batch(calls).push()
    batch = quick.app.batch([*[quick.noted("a")] * 1_000, quick.app.batch(iter([]), name="none")])
    with pytest.raises(CompositionIncomplete, match=r"'none'.*has no calls"):
        await batch.push()
    assert await nothing_stored(quick)


async def test_an_error_of_the_callers_own_iterable_is_raised_as_it_is(quick: Shop) -> None:
    def members() -> Iterator[Any]:
        yield from [quick.noted("a")] * 1_000
        raise LookupError("the list ends here")

    with pytest.raises(LookupError, match="the list ends here") as raised:
        await quick.app.batch(members()).push()
    assert "nothing of it runs" in raised.value.__notes__[0]
    assert await nothing_stored(quick)


async def test_a_start_without_an_answer_is_said_to_be_unknown(quick: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    Failing(quick, monkeypatch).at("start", OutcomeUnknown("no answer"))
    with pytest.raises(OutcomeUnknown, match="composition nightly is stored, and whether it has begun is not known"):
        await quick.app.chain(quick.noted("a"), id="nightly").push()
    with pytest.raises(CompositionIncomplete, match="has not begun"):
        await quick.app.chain(quick.noted("a"), id="nightly").push()


async def test_a_start_that_is_refused_gives_it_up(quick: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    Failing(quick, monkeypatch).at("start", FULL)
    with pytest.raises(CompositionIncomplete):
        await quick.app.chain(quick.noted("a")).push()


async def test_members_are_never_held_all_at_once(quick: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    most = 0

    def members() -> Iterator[Any]:
        nonlocal most
        for number in range(20_000):
            most = max(most, len(alive))
            one = quick.app.bind(Held(number))
            held = Marked(one.definition, one.args, one.kwargs)
            alive.add(held)
            yield held

    quick.app.job(Held)

    async def taken(*_: Any) -> None:
        gc.collect(0)

    monkeypatch.setattr(quick.app.queue(), "add", taken)
    monkeypatch.setattr(quick.app.queue(), "start", taken)
    await quick.app.batch(members()).push()
    assert most <= 510


class Held:
    def __init__(self, number: int) -> None:
        self.number = number

    def handle(self) -> None: ...


class Marked(Call[None]):
    """A call that can be seen to be gone."""

    __slots__ = ("__weakref__",)


def test_gates_go_with_their_members(blocking_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(blocking_shop, monkeypatch)
    failing.at("add", FULL, call=99)
    blocking_shop.app.batch(blocking_shop.noted(number) for number in range(1_000)).push_sync()
    assert [len(part) for part in failing.parts] == [500, 500, 13]
    assert any(isinstance(node, Gate) for node in failing.parts[0])
