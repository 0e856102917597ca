"""Recorded processes: ``python -m tests.torture.proof.program push|work URL NAMESPACE [options as JSON]``.

A pusher pushes at its rate until SIGTERM, then waits for its last outcomes. A worker is the ordinary one. What both ask
of the driver, and what handlers do, is written down in the directory that ``TENURE_PROOF_LOGS`` names.
"""

import asyncio
import contextlib
import functools
import itertools
import json
import logging
import os
import pathlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from tenure import Snooze, Tenure, current
from tenure.errors import CompositionIncomplete, StoreError
from tenure.flow.values import Composition
from tenure.naming import new_job_id
from tenure.queue import Cancelled
from tenure.worker import WorkerOptions, run_worker
from tests.torture.proof import drivers
from tests.torture.proof.recording import LOGS, Log

QUEUES = ("aside", "default")
LONG, SNOOZE, DELAY = 0.3, 0.05, 0.2
TRIES = 50
COMPOSED = 20
"""Of so many pushes one is a composition."""


@functools.cache
def log() -> Log:
    """The log of this process."""
    return Log(pathlib.Path(os.environ[LOGS]), sys.argv[1])


async def step(number: int) -> None:
    """Brief as a rule; one in so many is long, comes again, or fails."""
    attempt = current()
    log().passing("before-handler")
    log().effect("start", attempt.lease, attempt.attempt)
    log().passing("mid-handler")
    if number % 20 == 0 and attempt.lease.deliveries == 1:
        raise Snooze(for_=SNOOZE)
    if number % 33 == 0 and attempt.attempt == 1:
        raise ValueError("the first attempt fails")
    await asyncio.sleep(LONG if number % 10 == 1 else 0.001)  # handler
    log().effect("end", attempt.lease, attempt.attempt)
    log().passing("after-handler")


async def fresh() -> None:
    """What an older version of the application does not know."""
    log().effect("start", current().lease, current().attempt)
    log().effect("end", current().lease, current().attempt)


async def poison() -> None:
    """Ends its process."""
    log().effect("start", current().lease, current().attempt)
    os.kill(os.getpid(), signal.SIGKILL)


async def blocks(seconds: float) -> None:
    """Keeps the event loop from everything else."""
    log().effect("start", current().lease, current().attempt)
    time.sleep(seconds)  # noqa: ASYNC251 # handler
    log().effect("end", current().lease, current().attempt)


async def forks() -> None:
    """Forks a child that ends without having done anything with what it inherited."""
    log().effect("start", current().lease, current().attempt)
    child = os.fork()
    if not child:
        os._exit(0)
    await asyncio.to_thread(os.waitpid, child, 0)
    log().effect("end", current().lease, current().attempt)


async def fails(number: int) -> None:
    """Always, after a while or at once."""
    log().effect("start", current().lease, current().attempt)
    await asyncio.sleep(LONG if number % 2 else 0.001)  # handler
    raise ValueError("it always fails")


JOBS = (step, fresh, poison, blocks, forks, fails)
LIMITS = {"poison": 2, "fails": 1}


def build(url: str, namespace: str, options: dict[str, Any]) -> Tenure:
    """Return an application whose driver is recorded."""
    drivers.record(log(), options)
    app = Tenure(url, namespace=namespace)
    for function in JOBS:
        name = function.__name__
        if name not in options.get("unknown", ()):
            app.job(name=name, max_attempts=LIMITS.get(name, TRIES))(function)
    return app


def options_of(number: int) -> dict[str, Any]:
    """A share of the jobs has more than an id and arguments."""
    if number % 7 == 0:
        return {"delay": DELAY}
    if number % 11 == 0:
        return {"priority": 10}
    if number % 10 == 1:  # those that take long
        return {"unique": f"one of {number % 3}"}
    return {}


def composition_of(app: Tenure, number: int) -> Composition:
    """Return a chain, a batch, or one in the other; some end with a failure."""
    queue = QUEUES[number % 2]

    def one(place: int) -> Any:
        return app.call("fails" if place == 2 and number % 3 == 0 else "step", [number + place]).options(queue=queue)

    if number % 4 == 0:
        return app.chain(*map(one, range(3)))
    then: dict[str, Any] = {
        name: app.call("step", [3]).options(queue=queue) for name in ("on_success", "on_failure", "on_finish")
    }
    members = [one(place) for place in range(1 + number % 5)]
    if number % 4 == 1:
        return app.batch([*members, app.chain(one(2), one(3))], **then)
    if number % 4 == 2:
        return app.batch(members, **then)
    return app.chain(app.batch(members), one(4), one(5))


class Pushes:
    """Pushes at a steady rate, whatever becomes of those before; a share of them from a blocking thread."""

    def __init__(self, app: Tenure, rate: int, first: int, *, priorities: bool) -> None:
        self._app = app
        self._rate = rate
        self._numbers = itertools.count(first)
        self._priorities = priorities
        self._over = threading.Event()

    def end(self) -> None:
        self._over.set()

    async def run(self) -> None:
        blocking = threading.Thread(target=self._blocking, daemon=True)
        blocking.start()
        under_way: set[asyncio.Task[None]] = set()
        begun, made = time.monotonic(), 0
        while not self._over.is_set():
            due = int((time.monotonic() - begun) * self._rate * 0.8)
            for _ in range(due - made):
                task = asyncio.create_task(self._push())
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            made = due
            await asyncio.sleep(0.02)  # handler: the load's own pace
        await asyncio.gather(*under_way)
        await asyncio.to_thread(blocking.join)

    def _call(self, number: int) -> Any:
        more = options_of(number)
        if not self._priorities:
            more.pop("priority", None)
        return self._app.call("step", [number]).options(queue=QUEUES[number % 2], **more)

    async def _push(self) -> None:
        number = next(self._numbers)
        if number % COMPOSED == COMPOSED - 1:
            await self._compose(number)
            return
        try:
            pushing = self._app.push(self._call(number), id=new_job_id())
            if number % 50 == 49:  # a caller that is cancelled: nobody knows
                await asyncio.wait_for(pushing, 0.0005)
            else:
                await pushing
        except (StoreError, TimeoutError):
            pass  # what became of it is in the log

    async def _compose(self, number: int) -> None:
        with contextlib.suppress(StoreError, CompositionIncomplete):  # what became of it is in the log
            await composition_of(self._app, number // COMPOSED).push()

    def _blocking(self) -> None:
        while not self._over.wait(5 / self._rate):
            number = next(self._numbers)
            try:
                self._app.push_sync(self._call(number), id=new_job_id())
            except StoreError:
                self._over.wait(0.05)


async def push(app: Tenure, options: dict[str, Any]) -> None:
    pushes = Pushes(
        app, options.get("rate", 60), options.get("first", 0), priorities=app.queue().capabilities.priorities
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, pushes.end)
    await pushes.run()


async def once(app: Tenure, options: dict[str, Any]) -> None:
    """Push some jobs, and tell their ids."""
    ids: list[str] = []
    for name, arguments in options["jobs"]:
        ids.append((await app.push(app.call(name, arguments))).id)
    sys.stdout.write(f"pushed: {' '.join(ids)}\n")


async def cancel(app: Tenure, options: dict[str, Any]) -> None:
    """Give up pushes a moment after they have begun, each a little later than the one before."""
    given_up = 0
    for number in range(120):
        pushing = asyncio.ensure_future(app.push(app.call("step", [3])))
        for _ in range(number % 30):
            await asyncio.sleep(0)
        if number % 2:
            await asyncio.sleep(number / 100_000)  # handler: later than any number of rounds
        given_up += pushing.cancel()
        await asyncio.wait([pushing])
    sys.stdout.write(f"done: {given_up}\n")


async def crowd(app: Tenure, options: dict[str, Any]) -> None:
    """Push from many tasks at once."""
    outcomes = await asyncio.gather(*(app.push(app.call("step", [3])) for _ in range(150)), return_exceptions=True)
    sys.stdout.write(f"done: {sum(not isinstance(one, BaseException) for one in outcomes)}\n")


async def operate(app: Tenure, options: dict[str, Any]) -> None:
    """Pause, resume and cancel, while everything goes on."""
    done = 0
    for _ in range(10):
        handles = [await app.push(app.call("step", [3]), delay=0.01 * number) for number in range(5)]
        await app.operate.pause("aside")
        cancelled = await app.cancel("default", [handle.id for handle in handles])
        done += sum(one is not Cancelled.NOT_FOUND for one in cancelled)
        await app.operate.resume("aside")
    sys.stdout.write(f"done: {done}\n")


ROLES: dict[str, Callable[[Tenure, dict[str, Any]], Coroutine[Any, Any, None]]] = {
    "push": push,
    "once": once,
    "cancel": cancel,
    "crowd": crowd,
    "operate": operate,
}


async def play(role: str, app: Tenure, options: dict[str, Any]) -> None:
    try:
        await ROLES[role](app, options)
    finally:
        await app.aclose()


def main() -> None:
    role, url, namespace, *rest = sys.argv[1:]
    options = json.loads(rest[0]) if rest else {}
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    app = build(url, namespace, options)
    sys.stdout.write(f"process {log().process}\n")
    if "ahead" in options:
        sys.stdout.write("the clock is off\n")
    if role in ROLES:
        asyncio.run(play(role, app, options))
        return
    chosen = {"queues": QUEUES, "concurrency": 10, "sleep": 0.5, "tries": TRIES, "backoff": 0.01}
    ended = run_worker(app, WorkerOptions(**{**chosen, **options.get("worker", {})}))
    sys.stdout.write(f"exit reason: {ended.reason.value}\n")


if __name__ == "__main__":
    main()
