"""SAQ on Redis. When its worker is killed, jobs have three tries; in the variant ``once`` one, as without options."""

import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from saq import Queue, Worker

from benchmarks.peers import common


async def noop(_: Any) -> None:
    common.noop()


async def timed(_: Any, *, sent: float) -> None:
    common.timed(sent)


async def slow(_: Any, *, number: int) -> None:
    await common.async_slow(number)


ARGUMENTS = {"noop": (), "timed": ("sent",), "slow": ("number",)}


class Saq(common.Peer):
    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        self.queue = Queue.from_url(common.URL, name=common.QUEUE)
        await self.queue.connect()
        try:
            yield
        finally:
            await self.queue.disconnect()

    async def apush(self, job: str, *args: Any) -> None:
        options: dict[str, Any] = dict(zip(ARGUMENTS[job], args, strict=True))
        if common.CRASH:
            options["timeout"] = 5
            if common.VARIANT != "once":
                options["retries"] = 3
        await self.queue.enqueue(job, **options)

    def work(self, concurrency: int) -> None:
        logging.basicConfig(level=logging.WARNING)

        async def main() -> None:
            queue = Queue.from_url(common.URL, name=common.QUEUE)
            await queue.connect()
            timers: Any = {"sweep": 2} if common.CRASH else None
            await Worker(queue, [noop, timed, slow], concurrency=concurrency, timers=timers).start()

        common.run(main())


if __name__ == "__main__":
    common.main(Saq())
