"""Procrastinate on PostgreSQL. When its worker is killed, its documentation's task that retries stalled jobs runs; in
the variant ``plain`` it does not, as without options.
"""

import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from benchmarks.peers import common

app = App(connector=PsycopgConnector(conninfo=common.URL))


@app.task(name="noop", queue=common.QUEUE)
async def noop() -> None:
    common.noop()


@app.task(name="timed", queue=common.QUEUE)
async def timed(sent: float) -> None:
    common.timed(sent)


@app.task(name="slow", queue=common.QUEUE)
async def slow(number: int) -> None:
    await common.async_slow(number)


if common.CRASH and common.VARIANT != "plain":

    @app.periodic(cron="* * * * * */5")
    @app.task(name="retry_stalled", queue=common.QUEUE, queueing_lock="retry_stalled", pass_context=True)
    async def retry_stalled(context: Any, timestamp: int) -> None:  # noqa: ARG001 - given by the library
        manager = context.app.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=5):
            await manager.retry_job(job)


ARGUMENTS = {"noop": (), "timed": ("sent",), "slow": ("number",)}
TASKS = {"noop": noop, "timed": timed, "slow": slow}


class Procrastinate(common.Peer):
    def prepare(self) -> None:
        with app.open():
            app.schema_manager.apply_schema()

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        with (
            app.replace_connector(SyncPsycopgConnector(conninfo=common.URL)) as blocking,
            blocking.open(),
        ):
            yield

    def push(self, job: str, *args: Any) -> None:
        TASKS[job].defer(**dict(zip(ARGUMENTS[job], args, strict=True)))

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        async with app.open_async():
            yield

    async def apush(self, job: str, *args: Any) -> None:
        await TASKS[job].defer_async(**dict(zip(ARGUMENTS[job], args, strict=True)))

    async def apush_all(self, count: int) -> None:
        for size in common.parts(count):
            await noop.batch_defer_async(*({} for _ in range(size)))

    def work(self, concurrency: int) -> None:
        logging.basicConfig(level=logging.WARNING)
        short: dict[str, Any] = {"update_heartbeat_interval": 1, "stalled_worker_timeout": 5}
        app.run_worker(queues=[common.QUEUE], concurrency=concurrency, **(short if common.CRASH else {}))


if __name__ == "__main__":
    common.main(Procrastinate())
