"""Batches that are empty, or of one: OB-14. Members of batches that run twice: OB-15."""

import contextlib
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tenure import Call, CompositionHandle, CompositionState, CompositionStatus, InvalidOption, JobState
from tests.cases.conftest import Benches
from tests.support.processes import eventually
from tests.worker.bench import Bench

LEASE = 1.0


def calls(bench: Bench, number: int, name: str = "plain") -> list[Call[Any]]:
    return [bench.app.call(name, [f"{name} {place}"]) for place in range(number)]


def over(handle: CompositionHandle, timeout: float = 5) -> CompositionStatus:
    status = handle.wait_sync(timeout=timeout)
    assert status is not None
    assert status.pending == 0
    return status


def told(bench: Bench, callback: str = "callback") -> int:
    return sum(line["label"] == callback for line in bench.journal.lines("plain"))


# ------------------------------------------------------------------------------------------------------------- OB-14


def batch(bench: Bench, members: Sequence[Any]) -> Any:
    return bench.app.batch(iter(members), on_finish=bench.app.call("plain", ["callback"]))


PLACES: dict[str, Callable[[Bench, Sequence[Any]], Any]] = {
    "alone": batch,
    "inside of a chain": lambda bench, members: bench.app.chain(
        bench.app.call("plain", ["before"]), batch(bench, members), bench.app.call("plain", ["after"])
    ),
    "at the end of a chain": lambda bench, members: bench.app.chain(
        bench.app.call("plain", ["before"]), batch(bench, members)
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", [0, 1, 3])
def test_ob_14_a_batch_of_any_size_ends_once_or_is_refused(benches: Benches, number: int, place: str) -> None:

    bench = benches(f"b{number}")
    with pytest.raises(InvalidOption, match="no calls") if not number else contextlib.nullcontext():
        handle = PLACES[place](bench, calls(bench, number)).push_sync()
    if not number:
        assert bench.app.counts_sync("default").size == 0
        assert bench.app.operate.compositions.listed_sync("default").compositions == []
        return
    with bench.worker():
        status = over(handle)
        eventually(lambda: told(bench) == 1, 5, what="the callback")
    assert status.state is CompositionState.COMPLETED
    assert status.succeeded == status.total == number + place.count("chain") + place.count("inside")
    assert told(bench) == 1
    assert told(bench, "after") == place.count("inside")


def test_ob_14_an_empty_chain_is_refused(benches: Benches) -> None:
    with pytest.raises(InvalidOption, match="the chain has no calls; nothing was sent"):
        benches("empty").app.chain()


# ------------------------------------------------------------------------------------------------------------- OB-15


def test_ob_15_a_member_whose_worker_was_killed_before_its_acknowledgement_counts_once(bench: Bench) -> None:
    handle = batch(bench, [*calls(bench, 2), bench.app.call("hangs_at_first", ["last"])]).push_sync()
    with bench.worker(lease=LEASE) as first:
        bench.journaled(1, "start")
        eventually(lambda: over_but(handle, 1), 10, what="the others have ended")
        first.kill9()
    with bench.worker(lease=LEASE):
        status = over(handle, 20)
        eventually(lambda: told(bench) == 1, 5, what="the callback")
        bench.counts(ready=0, leased=0, failed=0)
    assert [line["attempt"] for line in bench.journal.lines("start")] == [1, 2]
    assert (status.succeeded, status.failed, status.total) == (3, 0, 3)
    assert told(bench) == 1


def over_but(handle: CompositionHandle, pending: int) -> bool:
    status = handle.status_sync()
    assert status is not None
    assert status.succeeded + status.failed + status.cancelled <= status.total
    return status.pending == pending


def test_ob_15_fifty_that_end_in_the_same_instant_on_four_workers_end_it_once(
    bench: Bench, tmp_path: pathlib.Path
) -> None:
    go = tmp_path / "go"
    handle = batch(bench, [bench.app.call("until", [str(go)]) for _ in range(50)]).push_sync()
    with contextlib.ExitStack() as workers:
        for _ in range(4):
            workers.enter_context(bench.worker(concurrency=13))
        bench.journaled(50, "start", 40)
        go.touch()
        status = over(handle, 20)
        eventually(lambda: told(bench) >= 1, 5, what="the callback")
        bench.counts(ready=0, leased=0, failed=0)
    assert (status.succeeded, status.failed, status.total) == (50, 0, 50)
    assert told(bench) == 1


def test_ob_15_a_member_that_is_retried_by_hand_is_a_job_of_its_own(bench: Bench, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mended"
    needs = bench.app.call("needs", [str(path)]).options(max_attempts=1)
    handle = batch(bench, [*calls(bench, 2), needs]).push_sync()
    with bench.worker():
        status = over(handle)
        path.touch()
        [record] = bench.app.failed_sync("default")
        bench.app.retry_sync("default", [record.id])
        bench.journaled(2, "start")
        eventually(
            lambda: bench.app.states_sync("default", [record.id]) == [JobState.GONE], 10, what="the retry has ended"
        )
        bench.counts(ready=0, leased=0, failed=0)
    assert status.state is CompositionState.COMPLETED_WITH_FAILURES
    assert handle.status_sync() == status
    assert told(bench) == 1
