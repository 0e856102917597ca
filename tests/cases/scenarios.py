"""Scenarios of one case, side by side, and facts that must hold all the time."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from tenure.queue import Counts
from tests.worker.bench import Bench


def together(*scenarios: Callable[[], None]) -> None:
    """Run scenarios at the same time, since they mostly wait, and fail with the first that fails."""
    with ThreadPoolExecutor(len(scenarios)) as threads:
        for running in [threads.submit(scenario) for scenario in scenarios]:
            running.result()


@contextlib.contextmanager
def watched(bench: Bench, every: float = 0.02) -> Iterator[list[Counts]]:
    """Give the list into which the counts of the queue go, again and again, until the block ends."""
    seen: list[Counts] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(every):
            seen.append(bench.app.counts_sync("default"))

    with ThreadPoolExecutor(1) as thread:
        looking = thread.submit(look)
        try:
            yield seen
        finally:
            over.set()
        looking.result()
