"""Taskiq on Redis: on lists, or (variant ``stream``) on a stream; one worker process, no results."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

from taskiq_redis import ListQueueBroker, RedisStreamBroker

from benchmarks.peers import common

if common.VARIANT == "stream":
    short: dict[str, Any] = {"idle_timeout": 5_000, "unacknowledged_lock_timeout": 2} if common.CRASH else {}
    broker: Any = RedisStreamBroker(common.URL, queue_name=common.QUEUE, **short)
else:
    broker = ListQueueBroker(common.URL, queue_name=common.QUEUE)


@broker.task(task_name="noop")
async def noop() -> None:
    common.noop()


@broker.task(task_name="timed")
async def timed(sent: float) -> None:
    common.timed(sent)


@broker.task(task_name="slow")
async def slow(number: int) -> None:
    await common.async_slow(number)


TASKS = {"noop": noop, "timed": timed, "slow": slow}


class Taskiq(common.Peer):
    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        await broker.startup()
        try:
            yield
        finally:
            await broker.shutdown()

    async def apush(self, job: str, *args: Any) -> None:
        await TASKS[job].kiq(*args)

    def work(self, concurrency: int) -> None:
        command = [sys.executable, "-m", "taskiq", "worker", "benchmarks.peers.taskiq:broker", "--workers=1"]
        os.execv(sys.executable, [*command, f"--max-async-tasks={concurrency}", "--log-level=WARNING"])


if __name__ == "__main__":
    common.main(Taskiq())
