"""What is stored of a job, as text: the header line of its record, the member that is its lease, failed records.

A record is a header line and the envelope. The header is
``incarnation|deliveries|free|crashes|crash limit|expiry|at|priority``, then ``|`` and the ms for which the end is kept
if it is, and whatever later versions add behind another ``|``; the scripts read and carry it. A lease is the member
``id|incarnation|deliveries|free|crashes|token|fence|length`` of the sorted set ``leased``.
"""

import math
import re

import msgspec

from tenure.errors import InvalidOption
from tenure.queue import Doom, FailedRecord, Failure, Lease, Push

LONGEST_MS = 10**14
"""The longest duration that is stored, about three thousand years; longer ones are cut to it."""

_UNIQUE = re.compile(r"[0-9a-f]{32}", re.ASCII)
_BARS = 8
"""How many bars a header has, at least, that tells for how long the end is kept."""
_DOOMS = {"x": Doom.CANCELLED, "c": Doom.CRASHED, "e": Doom.EXPIRED, "d": Doom.DELIVERIES}
_failure_encoder = msgspec.json.Encoder()
_failure_decoder = msgspec.json.Decoder(Failure)


def milliseconds(seconds: float, what: str) -> int:
    """Return a duration in whole ms, rounded up, or raise ``InvalidOption``."""
    if not math.isfinite(seconds) or seconds < 0:
        raise InvalidOption(f"{what} must be a number of seconds, 0 or more; nothing was sent")
    return min(math.ceil(seconds * 1000), LONGEST_MS)


def lease_milliseconds(seconds: float) -> int:
    """Return a lease's length in whole ms, at least one, or raise ``InvalidOption``."""
    return max(1, milliseconds(seconds, "lease"))


def push_options(job: Push) -> str:
    """Return what the push script must know of a job besides its id: '' when everything is as usual."""
    usual = not job.delay and not job.priority and job.crash_limit is None and job.expires_in is None
    if usual and not job.keep and not job.unique:
        return ""
    if not -100 <= job.priority <= 100:
        raise InvalidOption("priority must lie between -100 and 100; nothing was sent")
    if job.crash_limit is not None and not 1 <= job.crash_limit < 10**9:
        raise InvalidOption("crash_limit must be 1 or more; nothing was sent")
    delay = milliseconds(job.delay, "delay")
    # Zero means none in the script, and a job that expires at once expires within a millisecond.
    expires = 0 if job.expires_in is None else max(1, milliseconds(job.expires_in, "expires_in"))
    options = f"{delay}|{job.priority}|{job.crash_limit or 0}|{expires}|{milliseconds(job.keep, 'keep')}"
    if not job.unique:
        return options
    if not _UNIQUE.fullmatch(job.unique):
        raise InvalidOption("unique must be 32 hexadecimal digits; nothing was sent")
    return f"{options}|{job.unique}"


def member(lease: Lease) -> str:
    """Return the member that is the lease in the store."""
    return (
        f"{lease.id}|{lease.incarnation}|{lease.deliveries}|{lease.free}|{lease.crashes}|{lease.token}|{lease.fence}"
        f"|{round(lease.length * 1000)}"
    )


def looked_at(lease: Lease) -> bool:
    """Tell whether settling the lease takes a look at its record: there is more to be done than to remove it."""
    return lease.keep > 0 or "~" in lease.token


def lease(queue: str, named: bytes, record: bytes, mark: str, deadline: float) -> Lease:
    """Return the lease that a claim's reply tells of."""
    job_id, incarnation, deliveries, free, crashes, token, fence, length = named.decode().split("|")
    end = record.index(b"\n")
    return Lease(
        queue=queue,
        id=job_id,
        incarnation=int(incarnation),
        token=token,
        fence=int(fence),
        deliveries=int(deliveries),
        free=int(free),
        crashes=int(crashes),
        length=int(length) / 1000,
        deadline=deadline,
        envelope=record[end + 1 :],
        doomed=_DOOMS.get(mark),
        suspect=mark == "s",
        waited=_waited(record[:end], fence),
        keep=_keep(record[:end]) if record.count(b"|", 0, end) >= _BARS else 0.0,
    )


def held_lease(queue: str, named: bytes, record: bytes, deadline: float) -> Lease | None:
    """Return the lease that a listing tells of, or None for a member or a record that cannot be one."""
    try:
        return lease(queue, named, record, "", deadline)
    except ValueError:
        return None


def _waited(header: bytes, fence: str) -> float | None:
    """Return how long a job was ready. Both times are the server's: a fence is its clock's µs, or just ahead of it."""
    fields = header.split(b"|", 7)
    # A line that is not ours may hold anything, and more digits than any number has.
    if len(fields) < 8 or len(fields[6]) > 15 or not fields[6].isdigit():
        return None
    return max(0.0, int(fence) / 1e6 - int(fields[6]) / 1e3)


def _keep(header: bytes) -> float:
    digits = header.split(b"|", _BARS + 1)[_BARS]
    return int(digits) / 1000 if digits.isdigit() else 0.0


def failure_line(failure: Failure) -> bytes:
    """Return a failure as one line."""
    return _failure_encoder.encode(failure)


def failed_record(queue: str, job_id: bytes, record: bytes) -> FailedRecord | None:
    """Return a failed job, or None for something else that was put in its place."""
    header, _, rest = record.partition(b"\n")
    line, found, envelope = rest.partition(b"\n")
    fields = header.split(b"|")
    if not found or len(fields) < 8 or not all(field.isdigit() for field in fields[:7]):
        return None
    try:
        failure = _failure_decoder.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return FailedRecord(
        queue=queue,
        id=job_id.decode(),
        incarnation=int(fields[0]),
        attempts=int(fields[1]) - int(fields[2]),
        failed_at=int(fields[6]) / 1000,
        failure=failure,
        envelope=envelope,
    )
