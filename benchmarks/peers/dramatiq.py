"""Dramatiq on Redis: one process of threads.

The variant ``swept`` recovers what dead workers hold fifty times as often as without options.
"""

import os
import sys
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers import common

options: dict[str, Any] = {}
if common.CRASH:
    options["heartbeat_timeout"] = 5_000
    if common.VARIANT == "swept":
        options["maintenance_chance"] = 50_000
broker = RedisBroker(url=common.URL, namespace=common.QUEUE, **options)
dramatiq.set_broker(broker)
ACTORS = {name: dramatiq.actor(body, actor_name=name) for name, body in common.BODIES.items()}


class Dramatiq(common.Peer):
    def push(self, job: str, *args: Any) -> None:
        ACTORS[job].send(*args)

    def work(self, concurrency: int) -> None:
        command = [sys.executable, "-m", "dramatiq", "benchmarks.peers.dramatiq"]
        os.execv(sys.executable, [*command, "--processes", "1", "--threads", str(concurrency)])


if __name__ == "__main__":
    common.main(Dramatiq())
