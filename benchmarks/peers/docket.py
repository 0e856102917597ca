"""docket on a stream of Redis. A full worker looks for a free slot each 100 ms, as its command line does; in the
variant ``often`` each millisecond.
"""

import contextlib
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from docket import Docket, Worker

from benchmarks.peers import common

# With the client's own limit of a hundred connections jobs fail at a concurrency of a hundred.
URL = f"{common.URL}?max_connections=400"


async def noop() -> None:
    common.noop()


async def timed(sent: float) -> None:
    common.timed(sent)


async def slow(number: int) -> None:
    await common.async_slow(number)


TASKS: dict[str, Any] = {"noop": noop, "timed": timed, "slow": slow}


class DocketPeer(common.Peer):
    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        async with Docket(name=common.QUEUE, url=URL) as self.docket:
            yield

    async def apush(self, job: str, *args: Any) -> None:
        await self.docket.add(TASKS[job])(*args)

    async def apush_all(self, count: int) -> None:
        await self.docket.add_many(self.docket.call(noop)() for _ in range(count))

    def work(self, concurrency: int) -> None:
        logging.basicConfig(level=logging.WARNING)
        options: dict[str, Any] = {"redelivery_timeout": timedelta(seconds=5)} if common.CRASH else {}
        options["minimum_check_interval"] = timedelta(milliseconds=1 if common.VARIANT == "often" else 100)

        async def main() -> None:
            async with Docket(name=common.QUEUE, url=URL) as docket:
                for task in TASKS.values():
                    docket.register(task)
                async with Worker(docket, concurrency=concurrency, **options) as worker:
                    await worker.run_forever()

        common.run(main())


if __name__ == "__main__":
    common.main(DocketPeer())
