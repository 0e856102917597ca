"""The demo's job, and the application as its worker processes import it."""

import os
from typing import Final

from tenure.app import Tenure
from tenure.cli.demo.journal import Entry, Journal
from tenure.cli.demo.parsing import count
from tenure.context import current
from tenure.job import SyncJob
from tenure.retry import fixed

QUEUE: Final = "demo"


def parse(path: str, journal: str) -> None:
    """Count what is in a source file and record it under the job's id; a file that does not parse fails the job."""
    job, book, pid = current(), Journal(journal), os.getpid()
    book.write(Entry(kind="started", id=job.id, pid=pid, crashes=job.lease.crashes))
    try:
        counts = count(path)
    except Exception:
        book.write(Entry(kind="failed", id=job.id, pid=pid))
        raise
    book.write(Entry(kind="counted", id=job.id, pid=pid, counts=counts))


def registered(app: Tenure) -> SyncJob[[str, str], None]:
    """Make it a job of the application."""
    return app.job(queue=QUEUE, max_attempts=3, backoff=fixed(0.5))(parse)


app: Tenure = Tenure()
registered(app)
