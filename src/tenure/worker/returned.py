"""What a handler returned becomes part of its acknowledgement, if its end is kept or the next job takes it."""

from typing import Any

from tenure.queue import Ack, Fail, Failure, Lease, Settlement
from tenure.returned import Unkeepable
from tenure.worker.held import Held
from tenure.worker.judgement import NoWireForm
from tenure.worker.reports import Reports


def acknowledged(held: Held, value: Any, *, max_bytes: int, reports: Reports) -> tuple[Settlement, Failure | None]:
    """Return how an attempt ends whose handler returned.

    What cannot be kept is told in the log and left out: the job is done, and doing it again would do its effects again.
    What cannot be passed on to the next job of a chain fails the job, at once: nothing could follow it.
    """
    lease = held.lease
    if held.work is None or not (lease.keep or lease.gives):
        return Ack(lease), None
    try:
        return Ack(lease, _encoded(held, value, max_bytes)), None
    except Unkeepable as problem:
        if lease.gives:
            return _stuck(lease, str(problem))
        reports.unkept(held, str(problem))
        return Ack(lease), None


def _encoded(held: Held, value: Any, max_bytes: int) -> bytes:
    assert held.work is not None
    if isinstance(value, NoWireForm):
        raise Unkeepable(value.problem)
    return held.work.route.definition.encode_result(value, max_bytes=max_bytes)


def _stuck(lease: Lease, problem: str) -> tuple[Settlement, Failure]:
    message = f"it returned, but what it returned cannot be passed on to the next job: {problem}"
    failure = Failure(reason="result", message=message)
    return Fail(lease, failure), failure
