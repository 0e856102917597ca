"""Finding failed jobs, and what of them is shown."""

from collections.abc import Sequence
from typing import Any

from tenure import envelope
from tenure.cli.errors import CommandFailed
from tenure.cli.output import utc
from tenure.cli.store import Store
from tenure.errors import Undecodable
from tenure.queue import FailedRecord


def name_of(record: FailedRecord) -> str | None:
    """Return the job's name, or None when its envelope cannot be read."""
    try:
        return envelope.decode(record.envelope).name
    except Undecodable:
        return None


def summary(record: FailedRecord) -> dict[str, Any]:
    """Return what a listing shows: neither arguments nor the error's message, either may hold what is secret."""
    return {
        "id": record.id,
        "queue": record.queue,
        "name": name_of(record),
        "error": record.failure.type or record.failure.reason,
        "attempts": record.attempts,
        "failed_at": utc(record.failed_at),
    }


async def find(store: Store, queues: Sequence[str] | None, job_id: str) -> FailedRecord:
    """Return the failed job with this id. Raises ``CommandFailed`` when there is none, or one in several queues."""
    names = await store.queues(queues)
    found = [record for name in names if (record := await store.failures.failed_record(name, job_id))]
    if not found:
        raise CommandFailed(f"there is no failed job {job_id}")
    if len(found) > 1:
        where = ", ".join(record.queue for record in found)
        raise CommandFailed(f"there are failed jobs {job_id} in several queues ({where}): choose one with --queue")
    return found[0]
