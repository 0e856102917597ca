"""arq on Redis. It looks for jobs each half second; in the variant ``often`` each 5 ms."""

import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from arq import create_pool, func
from arq.connections import RedisSettings
from arq.worker import Worker

from benchmarks.peers import common

SETTINGS = RedisSettings.from_dsn(common.URL)


async def noop(_: Any) -> None:
    common.noop()


async def timed(_: Any, sent: float) -> None:
    common.timed(sent)


async def slow(_: Any, number: int) -> None:
    await common.async_slow(number)


class Arq(common.Peer):
    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        self.pool = await create_pool(SETTINGS, default_queue_name=common.QUEUE)
        try:
            yield
        finally:
            await self.pool.aclose()

    async def apush(self, job: str, *args: Any) -> None:
        await self.pool.enqueue_job(job, *args)

    def work(self, concurrency: int) -> None:
        logging.basicConfig(level=logging.WARNING)
        options: dict[str, Any] = {"poll_delay": 0.005} if common.VARIANT == "often" else {}
        if common.CRASH:
            # What a dead worker ran is free ten seconds after this.
            options["job_timeout"] = 1

        async def main() -> None:
            worker = Worker(
                [func(noop), func(timed), func(slow)],
                queue_name=common.QUEUE,
                redis_settings=SETTINGS,
                max_jobs=concurrency,
                handle_signals=False,
                **options,
            )
            await worker.async_run()

        common.run(main())


if __name__ == "__main__":
    common.main(Arq())
