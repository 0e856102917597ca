"""A worker process for tests: `python -m tests.worker.program URL NAMESPACE [options as JSON]`.

Handlers write lines to the journal that `TENURE_TEST_JOURNAL` names, each in one call, so that several processes can
share it and a kill tears none.
"""

import asyncio
import contextlib
import json
import logging
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

from tenure import Tenure, current
from tenure.queue import Lease
from tenure.worker import WorkerOptions, run_worker


class Journal:
    """What handlers did, by whom and when."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)

    def write(self, what: str, label: object, lease: Lease | None = None) -> None:
        attempt = lease or current()
        line = json.dumps(
            {
                "what": what, "label": label, "id": attempt.id, "attempt": attempt.attempt, "fence": attempt.fence,
                "pid": os.getpid(), "at": time.monotonic(),
            }
        )  # fmt: skip
        with self.path.open("ab", buffering=0) as out:
            out.write(line.encode() + b"\n")

    def lines(self, what: str | None = None) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        # A line that is being written right now is not there yet.
        whole, _, _ = self.path.read_bytes().rpartition(b"\n")
        found = [json.loads(line) for line in whole.splitlines()]
        return [line for line in found if what in {None, line["what"]}]


def journal() -> Journal:
    """The one of this process."""
    return Journal(os.environ["TENURE_TEST_JOURNAL"])


async def brief(seconds: float) -> None:
    journal().write("start", "brief")
    await asyncio.sleep(seconds)  # handler
    journal().write("end", "brief")


async def works(label: str, seconds: float) -> None:
    journal().write("start", label)
    try:
        await asyncio.sleep(seconds)  # handler
    except asyncio.CancelledError:
        journal().write("cancelled", label)
        raise
    journal().write("end", label)


async def blocks(label: str, seconds: float) -> None:
    journal().write("start", label)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        sum(range(1000))
    journal().write("end", label)


def blocks_a_thread(label: str, seconds: float) -> None:
    journal().write("start", label)
    time.sleep(seconds)  # handler
    journal().write("end", label)


async def ignores(label: str, seconds: float) -> None:
    journal().write("start", label)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(seconds)  # handler


async def leaves_system_exit_behind() -> None:
    async def exits() -> None:
        raise SystemExit(7)

    journal().write("start", "exits")
    task = asyncio.create_task(exits())
    await asyncio.sleep(0.2)  # handler
    journal().write("end", task.done())


def build(url: str, namespace: str) -> Tenure:
    """Return an application with the jobs of these tests."""
    app = Tenure(url, namespace=namespace)
    for function in (brief, works, blocks, blocks_a_thread, ignores, leaves_system_exit_behind):
        app.job(name=function.__name__)(function)
    return app


def main(build: Callable[[str, str], Tenure] = build) -> None:
    """Run a worker of the application that is built."""
    url, namespace, *rest = sys.argv[1:]
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    options = json.loads(rest[0]) if rest else {}
    ended = run_worker(build(url, namespace), WorkerOptions(queues=("default",), **options))
    sys.stdout.write(f"exit reason: {ended.reason.value}{', forced' if ended.forced else ''}\n")


if __name__ == "__main__":
    main()
