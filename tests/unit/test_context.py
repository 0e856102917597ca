"""`current()` is the attempt that runs here, and never another one."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from tenure import Current, InvalidOption, Progress, WrongContext, current
from tenure.context import StopFlag
from tenure.queue import Lease


def attempt(job_id: str = "a", **meta: object) -> Current:
    lease = Lease(
        queue="q", id=job_id, incarnation=1, token="t", fence=7, deliveries=3, free=1, crashes=0,
        length=30.0, deadline=0.0, envelope=b"{}",
    )  # fmt: skip
    return Current(lease, name="mail.send", max_attempts=5, meta=meta)


def test_outside_a_job_there_is_no_attempt() -> None:
    with pytest.raises(WrongContext, match="no job is running"):
        current()


def test_a_handler_learns_what_it_is() -> None:
    with attempt(tenant=7).enter() as entered:
        found = current()
    assert found is entered
    assert (found.id, found.queue, found.name, found.lease.token) == ("a", "q", "mail.send", "t")
    assert (found.attempt, found.deliveries, found.max_attempts, found.fence) == (2, 3, 5, 7)
    assert found.meta == {"tenant": 7}
    assert repr(found) == "<attempt 2 of mail.send a from q>"


def test_nothing_of_an_attempt_can_be_written() -> None:
    found = attempt(tenant=7)
    with pytest.raises(TypeError):
        found.meta["tenant"] = 8  # type: ignore[index]
    with pytest.raises(AttributeError):
        found.id = "b"  # type: ignore[misc]
    assert attempt().meta == {}


def test_a_cancel_is_seen_from_every_thread() -> None:
    stop = StopFlag()
    found = Current(attempt().lease, name="x", max_attempts=1, stop=stop)
    assert not found.cancelled
    assert not stop.seen
    thread = threading.Thread(target=found.cancel)
    thread.start()
    thread.join()
    assert not stop.seen
    assert found.cancelled
    assert stop.seen


def test_the_end_of_an_attempt_ends_it_even_when_it_raises() -> None:
    with attempt("outer").enter():
        with pytest.raises(KeyError), attempt("inner").enter():
            raise KeyError
        assert current().id == "outer"
    with pytest.raises(WrongContext):
        current()


async def test_attempts_that_share_a_loop_and_threads_never_see_each_other() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="default")
    seen: queue.SimpleQueue[tuple[str, str, str, str]] = queue.SimpleQueue()

    def note(job_id: str, before: str) -> None:
        seen.put((job_id, current().id, before, variable.get()))

    async def on_the_loop(job_id: str) -> None:
        with attempt(job_id).enter():
            before = variable.get()
            variable.set(job_id)
            for _ in range(3):
                await asyncio.sleep(0)
            note(job_id, before)

    def threaded(job_id: str) -> None:
        with attempt(job_id).enter():
            before = variable.get()
            variable.set(job_id)
            note(job_id, before)

    with ThreadPoolExecutor(4) as pool:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(on_the_loop(f"a{number}"))
                group.create_task(_in(loop, pool, contextvars.copy_context(), threaded, f"t{number}"))
    notes = [seen.get_nowait() for _ in range(seen.qsize())]
    assert len(notes) == 400
    assert all(job_id == found == set_ and before == "default" for job_id, found, before, set_ in notes)


async def _in(
    loop: asyncio.AbstractEventLoop,
    pool: ThreadPoolExecutor,
    context: contextvars.Context,
    function: Callable[[str], None],
    job_id: str,
) -> None:
    await loop.run_in_executor(pool, lambda: context.run(function, job_id))


# ------------------------------------------------------------------------------------------------------------- progress


def telling(keep: float) -> tuple[Current, list[Progress]]:
    told: list[Progress] = []
    lease = msgspec.structs.replace(attempt().lease, keep=keep)
    return Current(lease, name="n", max_attempts=1, report=lambda _, progress: told.append(progress)), told


def test_progress_is_told_as_it_was_said_and_bounded() -> None:
    current, told = telling(keep=60)
    current.progress(0)
    current.progress(0.4, "half way")
    current.progress(1, "n" * 501)
    current.progress(1.0, "\ud800 is no text")
    assert told == [Progress(0.0), Progress(0.4, "half way"), Progress(1.0, "n" * 500), Progress(1.0, "? is no text")]


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), float("inf"), True, "0.5", None])
def test_what_is_no_fraction_is_refused(fraction: Any) -> None:
    current, told = telling(keep=60)
    with pytest.raises(InvalidOption, match="from 0 to 1"):
        current.progress(fraction)
    with pytest.raises(InvalidOption, match="text"):
        current.progress(0.5, 5)  # type: ignore[arg-type] # pyright: ignore
    assert told == []


def test_progress_of_a_job_that_keeps_nothing_goes_nowhere() -> None:
    current, told = telling(keep=0)
    current.progress(0.5)
    assert told == []
    attempt().progress(0.5)  # nor does it without a worker
