"""One slot, several processes and restarts: OB-09. At length, and on more stores: tests/schedule/test_ticking.py."""

import asyncio
import contextlib
import pathlib
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

import pytest

from tenure import Tenure
from tenure.envelope import decode
from tenure.queue import Ack
from tests.schedule import jobs
from tests.schedule.ticking import READY
from tests.support import processes
from tests.support.processes import Child
from tests.support.servers import Server
from tests.worker.conftest import forget

EVERY = 3.0
BEHIND = 2


@pytest.fixture
def url(store: str, server: Server | None, namespace: str, tmp_path: pathlib.Path) -> Iterator[str]:
    if server is None:
        yield f"sqlite:///{tmp_path / 'jobs.db'}"
        return
    yield server.url
    asyncio.run(forget(server, namespace))


def ticks(url: str, namespace: str, *, behind: bool = False) -> AbstractContextManager[Child]:
    command: Sequence[str] = ("-m", "tests.schedule.ticking", url, namespace)
    if not behind:
        return processes.python(*command)
    # Its own clock goes wrong; what the store says is what counts. SQLite's is that of each process: see below.
    return processes.python("-m", "tests.cases.behind", str(BEHIND), url, namespace)


async def ticking(stack: contextlib.ExitStack, url: str, namespace: str, *, behind: bool = False) -> Child:
    child = stack.enter_context(ticks(url, namespace, behind=behind))
    await asyncio.to_thread(child.wait_for_output, READY, 30)
    return child


async def test_ob_09_each_slot_has_one_job_whoever_restarts_and_however_short_the_job_is(
    url: str, store: str, namespace: str
) -> None:
    """A process is killed and started again, two more start on the same host, and the clock of one is wrong."""
    app = Tenure(url, namespace=namespace)
    queue = app.queue()
    fired: list[float] = []

    async def run() -> None:
        """Stand for a worker: each job is done a moment after it came."""
        while True:
            for lease in (await queue.claim(["default"], limit=10, lease=60, wait=0.5)).leases:
                meta = decode(lease.envelope).meta
                fired.append(datetime.fromisoformat(meta["slot"]).timestamp())
                await queue.settle([Ack(lease)])

    await app.schedules.add("due", app.job(name="plain")(jobs.plain).bind(), every=EVERY)
    began = (await app.schedules.find("due")).cursor
    worker = asyncio.create_task(run())

    async def until(slots: int) -> None:
        async def there() -> bool:
            return len(set(fired)) >= slots

        await processes.eventually_async(there, 30)

    with contextlib.ExitStack() as stack:
        first = await ticking(stack, url, namespace)
        await until(1)
        first.kill9()
        await ticking(stack, url, namespace)
        await ticking(stack, url, namespace)
        await ticking(stack, url, namespace, behind=store == "redis")
        await until(4)

    async def taken() -> bool:
        counts = await queue.counts("default")
        return not counts.size + counts.leased

    await processes.eventually_async(taken, 30)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    first_slot = (began // EVERY + 1) * EVERY
    assert fired == [first_slot + EVERY * number for number in range(len(fired))]
    assert fired[-1] <= time.time()
    await app.aclose()
