"""streaQ on a stream of Redis."""

import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from streaq import Worker

from benchmarks.peers import common

worker = Worker(
    redis_url=common.URL,
    queue_name=common.QUEUE,
    idle_timeout=5 if common.CRASH else 60,
    anyio_kwargs={"use_uvloop": True},
)


@worker.task(name="noop")
async def noop() -> None:
    common.noop()


@worker.task(name="timed")
async def timed(sent: float) -> None:
    common.timed(sent)


@worker.task(name="slow")
async def slow(number: int) -> None:
    await common.async_slow(number)


TASKS = {"noop": noop, "timed": timed, "slow": slow}


class Streaq(common.Peer):
    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        async with worker:
            yield

    async def apush(self, job: str, *args: Any) -> None:
        await TASKS[job].enqueue(*args)

    async def apush_all(self, count: int) -> None:
        for size in common.parts(count):
            await worker.enqueue_many([noop.enqueue() for _ in range(size)])

    def work(self, concurrency: int) -> None:
        logging.basicConfig(level=logging.WARNING)
        # The constructor would have made the same of its own option, which is not known to a producer.
        worker.concurrency = worker.sync_concurrency = concurrency
        worker.prefetch = 2 * concurrency
        worker.run_sync()


if __name__ == "__main__":
    common.main(Streaq())
