"""A producer and a worker in one process: ``python -m benchmarks.inside noop 1000 100``."""

import asyncio
import sys

from benchmarks.jobs import app, noop, threaded
from tenure.worker import Worker, WorkerOptions


async def main(job: str, jobs: int, concurrency: int) -> None:
    await app.push_many([{"noop": noop, "threaded": threaded}[job].bind() for _ in range(jobs)])
    await Worker(app, WorkerOptions(concurrency=concurrency)).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
