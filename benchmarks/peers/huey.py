"""Huey on a list of Redis: a consumer of threads, results off."""

import logging
from typing import Any

from huey import RedisHuey

from benchmarks.peers import common

app = RedisHuey(common.QUEUE, url=common.URL, results=False)
TASKS = {name: app.task(name=name)(body) for name, body in common.BODIES.items()}


class Huey(common.Peer):
    def push(self, job: str, *args: Any) -> None:
        TASKS[job](*args)

    def work(self, concurrency: int) -> None:
        logging.basicConfig(level=logging.WARNING)
        app.create_consumer(workers=concurrency, worker_type="thread", periodic=False).run()


if __name__ == "__main__":
    common.main(Huey())
