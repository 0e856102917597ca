"""PgQueuer on PostgreSQL, by asyncpg. It wants two slots at least, and claims half of its slots at a time."""

import asyncio
import contextlib
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver

from benchmarks.peers import common

# It has one queue in its tables; jobs of other runs are in other servers.


class Pgqueuer(common.Peer):
    def prepare(self) -> None:
        program = Path(sys.executable).with_name("pgq")
        subprocess.run([program, "--pg-dsn", common.URL, "install"], check=True, stdout=subprocess.DEVNULL)

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        connection = await asyncpg.connect(common.URL)
        self.queries = Queries(AsyncpgDriver(connection))
        self.turn = asyncio.Lock()
        try:
            yield
        finally:
            await connection.close()

    async def apush(self, job: str, *args: Any) -> None:
        # The connection does one thing at a time.
        async with self.turn:
            await self.queries.enqueue(job, json.dumps(args).encode())

    async def apush_all(self, count: int) -> None:
        for size in common.parts(count):
            await self.queries.enqueue(["noop"] * size, [b"[]"] * size, [0] * size)

    def work(self, concurrency: int) -> None:
        logging.basicConfig(level=logging.WARNING)

        async def main() -> None:
            queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(common.URL)))

            @queuer.entrypoint("noop")
            async def noop(_: Any) -> None:
                common.noop()

            @queuer.entrypoint("timed")
            async def timed(job: Any) -> None:
                common.timed(*json.loads(job.payload))

            @queuer.entrypoint("slow")
            async def slow(job: Any) -> None:
                await common.async_slow(*json.loads(job.payload))

            options: dict[str, Any] = {"max_concurrent_tasks": max(2, concurrency)}
            if common.CRASH:
                options["heartbeat_timeout"] = timedelta(seconds=5)
                options["dequeue_timeout"] = timedelta(seconds=2)
            await queuer.run(batch_size=max(1, concurrency // 2), **options)

        common.run(main())


if __name__ == "__main__":
    common.main(Pgqueuer())
