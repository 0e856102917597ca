"""A process of ``python -m benchmarks.scaling``: ``work``, ``hold``, ``fill`` or ``delayed``, and how much of it.

It tells when it is ready, waits for a line, does its part, and tells what came of it as JSON.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Final

from tenure import Tenure
from tenure.naming import new_job_id
from tenure.queue import Ack, Push, Queue

QUEUE: Final = "scaling"
BATCH: Final = 50
CALL: Final = 500
"""Jobs that a driver takes in one call."""
LEASE: Final = 60.0
ENVELOPE: Final = b"x" * 250
"""No driver looks into it."""
DAY: Final = 86_400.0


async def push(queue: Queue, jobs: int, delay: float = 0.0) -> None:
    for begin in range(0, jobs, CALL):
        pushes = [
            Push(queue=QUEUE, id=new_job_id(), envelope=ENVELOPE, delay=delay) for _ in range(min(CALL, jobs - begin))
        ]
        await queue.push(pushes)


async def work(queue: Queue, seconds: float) -> Mapping[str, float]:
    jobs, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds:
        leases = (await queue.claim([QUEUE], limit=BATCH, lease=LEASE, wait=0)).leases
        if leases:
            await queue.settle([Ack(lease) for lease in leases])
        jobs += len(leases)
    return {"jobs": jobs, "seconds": spent}


async def hold(queue: Queue, backlog: float) -> Mapping[str, float]:
    """Push what is missing whenever a fifth of it is, or a call's worth: small pushes would cost what is measured."""
    seconds, part = float(os.environ["SCALING_SECONDS"]), max(BATCH, min(CALL, int(backlog) // 5))
    least, begin = backlog, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        ready = (await queue.counts(QUEUE)).ready
        least = min(least, ready)
        missing = int(backlog) - ready
        if missing >= part:
            await push(queue, min(missing, 2 * CALL))
        else:
            await asyncio.sleep(0.002)
    return {"least": least}


async def fill(queue: Queue, backlog: float) -> Mapping[str, float]:
    begin = time.perf_counter()
    await push(queue, max(0, int(backlog) - (await queue.counts(QUEUE)).ready))
    return {"seconds": time.perf_counter() - begin}


async def delayed(queue: Queue, jobs: float) -> Mapping[str, float]:
    begin = time.perf_counter()
    await push(queue, int(jobs), DAY)
    return {"seconds": time.perf_counter() - begin}


async def main(role: str, amount: float) -> None:
    app = Tenure()
    queue = app.queue()
    await queue.counts(QUEUE)  # connects
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(await ROLES[role](queue, amount)), flush=True)
    await app.aclose()


ROLES: Final = {"work": work, "hold": hold, "fill": fill, "delayed": delayed}

if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
