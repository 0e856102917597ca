"""A steady load in processes of its own: `python -m tests.torture.steady push|work URL NAMESPACE [options as JSON]`.

Both write to the journal that `TENURE_TEST_JOURNAL` names, a line for each fact, each in one call.

The pusher goes on through outages until it gets SIGTERM, then waits for its last outcomes and ends. It is an open
system: pushes begin at their rate, whatever became of those before; a share of them comes from a blocking thread.
"""

import asyncio
import contextlib
import functools
import itertools
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from tenure import Snooze, Tenure, current
from tenure.errors import StoreError, StoreRefused
from tenure.events import AttemptEvent, JobSucceeded, SettlementLost
from tenure.naming import new_job_id
from tenure.worker import WorkerOptions, run_worker

QUEUES = ("aside", "default")
RATE = 500
"""Pushes a second, over both queues."""
BLOCKING_RATE = 50
"""How many of them are made by a thread without an event loop, one after another."""
TICK = 0.01
SNOOZE_EVERY, LONG_EVERY = 20, 250
"""One job in so many goes back to the store once, and one is at work for longer than a moment."""
SNOOZE, LONG = 0.1, 0.5


class Writer:
    """The journal's writing side: short lines, each by one append, so that processes share it and a kill tears none."""

    def __init__(self) -> None:
        self._file = os.open(os.environ["TENURE_TEST_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, **facts: object) -> None:
        os.write(self._file, json.dumps({**facts, "pid": os.getpid(), "at": time.monotonic()}).encode() + b"\n")


@functools.cache
def journal() -> Writer:
    """The one of this process."""
    return Writer()


async def step(number: int) -> None:
    """A job: brief as a rule, now and then long, or one that comes again."""
    attempt = current()
    journal().write(what="start", id=attempt.id, fence=attempt.fence, attempt=attempt.attempt)
    if number % SNOOZE_EVERY == 0 and attempt.lease.deliveries == 1:
        journal().write(what="snooze", id=attempt.id, fence=attempt.fence)
        raise Snooze(for_=SNOOZE)
    await asyncio.sleep(LONG if number % LONG_EVERY == 1 else 0.001)  # handler
    journal().write(what="end", id=attempt.id, fence=attempt.fence)


def build(url: str, namespace: str) -> Tenure:
    """Return an application with the job of the load."""
    app = Tenure(url, namespace=namespace)
    app.job(name="step")(step)
    return app


# ----------------------------------------------------------------------------------------------------------- the worker


def work(app: Tenure, options: dict[str, Any]) -> None:
    """Run a worker that also writes down which settlements the store took, and which it refused as stale."""
    writer = journal()

    def settled(event: AttemptEvent) -> None:
        what = "settled" if isinstance(event, JobSucceeded) else "stale"
        writer.write(what=what, id=event.lease.id, fence=event.lease.fence)

    app.events.on(JobSucceeded, settled)
    app.events.on(SettlementLost, settled)
    ended = run_worker(app, WorkerOptions(queues=tuple(options.pop("queues", QUEUES)), **options))
    sys.stdout.write(f"exit reason: {ended.reason.value}\n")


# ----------------------------------------------------------------------------------------------------------- the pusher


class Pushes:
    """Pushes at a steady rate, and writes down what became of each; with ``most``, ends by itself after so many.

    With ``telling`` it also writes down that it begins one, for a pusher that may be killed in the middle of it.
    """

    def __init__(
        self,
        app: Tenure,
        rate: int = RATE,
        blocking_rate: int = BLOCKING_RATE,
        most: int | None = None,
        *,
        telling: bool = False,
    ) -> None:
        self._app = app
        self._rate = rate
        self._blocking_rate = blocking_rate
        self._most = most
        self._telling = telling
        self._writer = journal()
        self._numbers = itertools.count()
        self._over = threading.Event()

    def end(self) -> None:
        self._over.set()

    async def run(self) -> None:
        blocking = threading.Thread(target=self._blocking, daemon=True)
        blocking.start()
        begun = time.monotonic()
        made = 0
        under_way: set[asyncio.Task[None]] = set()
        while not self._over.is_set():
            due = int((time.monotonic() - begun) * (self._rate - self._blocking_rate))
            if self._most is not None and due >= self._most:
                due = self._most
                self.end()
            for _ in range(due - made):
                task = asyncio.create_task(self._push())
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            made = due
            await asyncio.sleep(TICK)  # handler: the load's own pace
        await asyncio.gather(*under_way)
        await asyncio.to_thread(blocking.join)

    async def _push(self) -> None:
        number = next(self._numbers)
        job_id, queue = new_job_id(), QUEUES[number % 2]
        with self._written(job_id, queue):
            await self._app.push(self._app.call("step", [number]), id=job_id, queue=queue)

    def _blocking(self) -> None:
        begun = time.monotonic()
        made = 0
        while not self._over.is_set():
            number = next(self._numbers)
            job_id, queue = new_job_id(), QUEUES[number // 2 % 2]
            with self._written(job_id, queue):
                self._app.push_sync(self._app.call("step", [number]), id=job_id, queue=queue)
            made += 1
            ahead = begun + made / self._blocking_rate - time.monotonic()
            if ahead > 0:
                self._over.wait(ahead)
            else:
                # What an outage held up is not made up for.
                begun, made = time.monotonic(), 0

    @contextlib.contextmanager
    def _written(self, job_id: str, queue: str) -> Iterator[None]:
        began, outcome = time.monotonic(), "ok"
        if self._telling:
            self._writer.write(what="pushing", id=job_id, queue=queue)
        try:
            yield
        except StoreRefused as error:
            outcome = error.code
        except StoreError as error:
            outcome = type(error).__name__
        self._writer.write(what="push", id=job_id, queue=queue, began=began, outcome=outcome)


async def push(app: Tenure, options: dict[str, Any]) -> None:
    pushes = Pushes(app, **options)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, pushes.end)
    try:
        await pushes.run()
    finally:
        await app.aclose()


def main() -> None:
    role, url, namespace, *rest = sys.argv[1:]
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    app = build(url, namespace)
    options = json.loads(rest[0]) if rest else {}
    if role == "push":
        asyncio.run(push(app, options))
        sys.stdout.write("all outcomes are known\n")
    else:
        work(app, options)


if __name__ == "__main__":
    main()
