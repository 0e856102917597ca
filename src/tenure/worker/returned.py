"""What a handler returned becomes part of its acknowledgement, if the job asked for its end to be kept."""

from typing import Any

from tenure.queue import Ack
from tenure.returned import Unkeepable
from tenure.worker.held import Held
from tenure.worker.judgement import NoWireForm
from tenure.worker.reports import Reports


def acknowledged(held: Held, value: Any, *, max_bytes: int, reports: Reports) -> Ack:
    """Return the acknowledgement of an attempt whose handler returned.

    What cannot be kept is told in the log and left out: the job is done, and doing it again would do its effects again.
    """
    if not held.lease.keep or held.work is None:
        return Ack(held.lease)
    if isinstance(value, NoWireForm):
        reports.unkept(held, value.problem)
        return Ack(held.lease)
    try:
        result = held.work.route.definition.encode_result(value, max_bytes=max_bytes)
    except Unkeepable as problem:
        reports.unkept(held, str(problem))
        return Ack(held.lease)
    return Ack(held.lease, result)
