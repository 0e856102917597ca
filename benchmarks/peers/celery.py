"""Celery on Redis: a pool of processes, results ignored.

Acknowledged after the job (``acks_late``), as a reliable installation has it; the variant ``early`` leaves that out, as
without options.
"""

from typing import Any

from celery import Celery

from benchmarks.peers import common

LATE = common.VARIANT != "early"

app = Celery("bench", broker=common.URL)
app.conf.update(
    task_default_queue=common.QUEUE,
    task_acks_late=LATE,
    task_reject_on_worker_lost=LATE,
    task_ignore_result=True,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": 5 if common.CRASH else 3600},
)
TASKS = {name: app.task(name=name)(body) for name, body in common.BODIES.items()}


class CeleryPeer(common.Peer):
    def push(self, job: str, *args: Any) -> None:
        TASKS[job].delay(*args)

    def work(self, concurrency: int) -> None:
        app.worker_main(["worker", "--loglevel=WARNING", f"--concurrency={concurrency}"])


if __name__ == "__main__":
    common.main(CeleryPeer())
