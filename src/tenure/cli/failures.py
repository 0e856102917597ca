"""Finding failed jobs, and what of them is shown."""

from collections.abc import Sequence
from typing import Any

from tenure import envelope
from tenure.cli.errors import CommandFailed
from tenure.cli.output import utc
from tenure.cli.store import Store
from tenure.errors import Undecodable
from tenure.queue import FailedRecord

PAGE = 100


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


class Snapshot:
    """The failed jobs of one queue at one moment; those that fail again later are not in it.

    No list of them is kept: all that failed before the youngest are in it, and of those that failed at the very same
    time, the ones that were there.
    """

    def __init__(self, latest: Sequence[FailedRecord]) -> None:
        self.until = latest[-1].failed_at if latest else float("-inf")
        self._latest = {(record.id, record.incarnation) for record in latest if record.failed_at == self.until}

    def __contains__(self, record: FailedRecord) -> bool:
        if record.failed_at == self.until:
            return (record.id, record.incarnation) in self._latest
        return record.failed_at < self.until


async def snapshot(store: Store, queue: str) -> Snapshot:
    """Take a snapshot of the queue's failed jobs now."""
    latest: Sequence[FailedRecord] = ()
    end = (await store.counts(queue)).failed
    while end > 0:
        start = max(0, end - PAGE)
        latest = [*await store.failures.failed(queue, limit=end - start, offset=start), *latest]
        if latest and latest[0].failed_at < latest[-1].failed_at:
            break
        end = start
    return Snapshot(latest)


async def retry_all(store: Store, queue: str) -> int:
    """Make ready what failed until now, whatever fails again meanwhile, and return how many this call retried."""
    members = await snapshot(store, queue)
    total = 0
    # Another operator at the same work shifts the pages, so that a pass may miss some: again until one finds none.
    while retried := await _pass(store, queue, members):
        total += retried
    return total


async def _pass(store: Store, queue: str, members: Snapshot) -> int:
    retried = offset = 0
    while page := await store.failures.failed(queue, limit=PAGE, offset=offset):
        taken = sum(await store.failures.retry([record for record in page if record in members]))
        retried += taken
        offset += len(page) - taken
        if page[-1].failed_at > members.until:
            break
    return retried
