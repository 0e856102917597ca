"""Cancelling what is not there: OB-16."""

import asyncio
import time

from tenure.queue import Cancelled, JobState
from tests.cases.program import build
from tests.support.processes import eventually
from tests.worker.bench import Bench

LEASE = 0.6
ROUNDS = 100


def cancel(bench: Bench, identity: str) -> Cancelled:
    [answer] = bench.app.cancel_sync("default", [identity])
    return answer


def runs(bench: Bench, identity: str, times: int) -> None:
    """The job that is pushed under this id now runs, as the so manieth of them, and ends."""
    bench.push("plain", identity, id=identity)
    eventually(lambda: starts(bench, identity) == times, what=f"{identity} runs")
    eventually(lambda: bench.app.operate.states_sync("default", [identity]) == [JobState.GONE], what="it has ended")


def starts(bench: Bench, identity: str) -> int:
    return sum(line["id"] == identity for line in bench.journal.lines("plain"))


async def race(bench: Bench, label: str) -> dict[str, Cancelled]:
    """Push and cancel at the same moment from two clients, each of them the first one in turn; return the answers."""
    app, other = build(bench.url, bench.namespace), build(bench.url, bench.namespace)
    answers: dict[str, Cancelled] = {}
    try:
        for number in range(ROUNDS):
            identity = f"{label}-{number}"
            push = app.push(app.call("plain", [identity]), id=identity)
            request = other.cancel("default", [identity])
            first, second = (push, request) if number % 2 else (request, push)
            begun = asyncio.ensure_future(first)
            await asyncio.sleep(number % 8 * 0.0001)  # handler: as much as each of them takes
            both = await asyncio.gather(begun, second)
            [answer] = next(result for result in both if isinstance(result, list))
            answers[identity] = answer
    finally:
        await other.aclose()
        await app.aclose()
    return answers


def test_ob_16_a_cancel_of_nothing_leaves_nothing_behind(bench: Bench) -> None:
    with bench.worker(lease=LEASE):
        assert cancel(bench, "never") is Cancelled.NOT_FOUND
        runs(bench, "never", 1)
        assert cancel(bench, "never") is Cancelled.NOT_FOUND, "it has completed"
        runs(bench, "never", 2)
        assert [cancel(bench, "twice"), cancel(bench, "twice")] == [Cancelled.NOT_FOUND] * 2
        runs(bench, "twice", 1)
        assert cancel(bench, "later") is Cancelled.NOT_FOUND
        asked = time.monotonic()

        answers = asyncio.run(race(bench, "running"))
        bench.app.operate.pause_sync("default")
        answers |= asyncio.run(race(bench, "waiting"))
        bench.app.operate.resume_sync("default")
        bench.counts(ready=0, delayed=0, leased=0, failed=0)
        ran = {line["id"] for line in bench.journal.lines("plain")}
        for identity, answer in answers.items():
            # Requested of a job that runs, it may come too late: then the job has ended all the same.
            if answer is not Cancelled.REQUESTED:
                assert (identity in ran) is (answer is Cancelled.NOT_FOUND)
        assert set(answers.values()) >= {Cancelled.NOT_FOUND, Cancelled.REMOVED}, "they did race"

        # The longest that anything of a worker lives is its lease.
        eventually(lambda: time.monotonic() > asked + 3 * LEASE, what="longer than that")
        runs(bench, "later", 1)
