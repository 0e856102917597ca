"""What of a failed job is shown."""

from typing import Any

from tenure.cli.output import utc
from tenure.operations import name_of
from tenure.queue import FailedRecord


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
