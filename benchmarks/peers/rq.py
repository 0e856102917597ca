"""RQ on Redis: a worker that forks for each job, or (variant ``simple``) one that runs them itself; one at a time.

The jobs of the variant ``once`` have no retries, as without options.
"""

import logging
from typing import Any

from redis import Redis
from rq import Queue, Retry, SimpleWorker, Worker

from benchmarks.peers import common

client = Redis.from_url(common.URL)
queue = Queue(common.QUEUE, connection=client)


class Rq(common.Peer):
    def push(self, job: str, *args: Any) -> None:
        options: dict[str, Any] = {}
        if common.CRASH:
            options["job_timeout"] = 5
            if common.VARIANT != "once":
                # Without one, the job of a dead worker is put among the failed ones.
                options["retry"] = Retry(max=3)
        queue.enqueue(f"benchmarks.peers.common.{job}", *args, **options)

    def push_all(self, count: int) -> None:
        for size in common.parts(count):
            queue.enqueue_many([Queue.prepare_data("benchmarks.peers.common.noop") for _ in range(size)])

    def work(self, concurrency: int) -> None:  # noqa: ARG002 - one job at a time
        logging.disable(logging.INFO)
        # Dead workers are looked for as the blocking read ends, which is a little before `worker_ttl`.
        short = {"job_monitoring_interval": 1, "maintenance_interval": 5, "worker_ttl": 30}
        # What is left of a forking worker's child outlives a kill, so that nothing would be seen of one.
        kind = SimpleWorker if common.VARIANT == "simple" or common.CRASH else Worker
        kind([queue], connection=client, **(short if common.CRASH else {})).work(logging_level="WARNING")


if __name__ == "__main__":
    common.main(Rq())
