"""W13: whatever kind of attempt ran before, and however it ended, the next one sees nothing of it.

A worker runs coroutines, threads and class jobs that succeed, fail, time out, are cancelled, snooze or are abandoned,
mixed up and many at the same time. Each first looks whether anything is left of another one, and then leaves what it
can. So do those in processes of their own. What a thread keeps outside of its context (`threading.local`) is the
thread's and not the attempt's: it is shared by design, as the documentation says, and shown here to be the only thing
that is.
"""

import decimal
import os
import pathlib
import random

import pytest

from tenure import Tenure, current
from tenure.errors import WrongContext
from tests.worker import stateless
from tests.worker.program import Journal
from tests.worker.stateless import (
    APART,
    HOWS,
    LONG,
    Service,
    build,
    build_apart,
    found,
    lines,
    mine,
    ran,
    thread_leftovers,
)
from tests.worker.support import drain, until, working


@pytest.fixture(autouse=True)
def _fresh() -> None:
    for kept in (found, ran, thread_leftovers, Service.made, lines):
        kept.clear()


async def has_run(job_id: str) -> None:
    await until(lambda: job_id in ran, what=f"{job_id} runs")


# W13
@pytest.mark.parametrize("concurrency", [1, 8])
async def test_no_attempt_sees_anything_of_another(app: Tenure, concurrency: int) -> None:
    build(app)
    kinds = ("coroutine", "plain_coroutine", "threaded", "of_a_class")
    calls = [app.call(kind, [how]) for kind in kinds for how in HOWS for _ in range(3)]
    calls += [app.call(kind, [LONG[0]]) for kind in ("coroutine", "threaded")]
    random.shuffle(calls)
    handles = await app.push_many(calls)
    mine.set("the worker's own surroundings")
    decimal.getcontext().prec = 9
    await drain(app, concurrency=concurrency)
    assert found == []
    assert set(ran) == {handle.id for handle in handles}
    # Retries and snoozes are attempts of the same job, and see nothing of the first one either.
    assert len(ran) > len(handles)
    assert all(message == context for message, context in lines)
    assert not any(service.open for service in Service.made)
    assert (mine.get(), decimal.getcontext().prec) == ("the worker's own surroundings", 9)
    with pytest.raises(WrongContext):
        current()
    assert thread_leftovers, "threads are reused, and what they keep of their own is the thread's"


async def test_after_a_cancelled_attempt_the_next_one_is_clean(app: Tenure) -> None:
    build(app)
    async with working(app, concurrency=1, backoff=0.0):
        for kind in ("coroutine", "threaded"):
            running = await app.push(app.call(kind, ["is cancelled"]))
            await has_run(running.id)
            await app.cancel("default", [running.id])
            after = await app.push(app.call(kind, ["succeeds"]))
            await has_run(after.id)
    assert found == []
    assert not any(service.open for service in Service.made)


async def test_no_attempt_in_a_process_sees_anything_of_another(
    namespace: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_TEST_JOURNAL", str(tmp_path / "journal"))
    app = build_apart(namespace)
    monkeypatch.setattr(stateless, "app", app)
    calls = [app.call(job.__name__, [how]) for job in APART for how in HOWS] * 2
    calls += [
        app.call("apart_and_killed", [LONG[0]]),
        app.call("coroutine", ["succeeds"]),
        app.call("threaded", ["fails"]),
    ]
    random.shuffle(calls)
    handles = await app.push_many(calls)
    await drain(app, concurrency=3)
    await app.aclose()
    attempts = Journal(tmp_path / "journal").lines("apart")
    assert {line["label"][0] for line in attempts if line["label"]} == set()
    assert found == [], "nothing of them is seen by attempts in the worker either"
    killed = 1
    assert len({line["id"] for line in attempts} | set(ran)) == len(handles) - killed
    pids = [line["pid"] for line in attempts]
    assert os.getpid() not in pids
    assert len(pids) > 5 * len(set(pids)), "processes are used again"
