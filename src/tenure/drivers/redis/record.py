"""What is stored of a job, as text: the header line of its record, the member that is its lease, failed records.

A record is a header line and the envelope. The header is
``incarnation|deliveries|free|crashes|crash limit|expiry|at|priority``, for most jobs, and for the others up to three
parts more, each behind a ``|``: the ms for which the end is kept, the text of a unique job, and its place in a
composition as ``id:number:next:flags:size``. Of the latter's record, so many bytes at the end are not the envelope, but
what the job before it returned. The scripts read and carry all of it. A lease is the member
``id|incarnation|deliveries|free|crashes|token|fence|length`` of the sorted set ``leased``.
"""

import math
import re
from typing import NamedTuple

import msgspec

from tenure.errors import InvalidOption
from tenure.queue import Doom, FailedRecord, Failure, Lease, Push

LONGEST_MS = 10**14
"""The longest duration that is stored, about three thousand years; longer ones are cut to it."""

_UNIQUE = re.compile(r"[0-9a-f]{32}", re.ASCII)
_PLACE = re.compile(rb"([^:|]{0,64}):-?[0-9]*:-?[0-9]*:([a-z]*):([0-9]{0,15})")
_BARS = 8
"""How many bars a header has, at least, that tells more than all do."""
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


def looked_at(lease: Lease, *, acknowledged: bool) -> bool:
    """Tell whether ending the lease takes a look at its record: its token does not tell all that is to be done."""
    if acknowledged and "+" in lease.token:
        return False
    return lease.keep > 0 or bool(lease.composition) or "~" in lease.token


def lease(queue: str, named: bytes, record: bytes, mark: str, deadline: float) -> Lease:
    """Return the lease that a claim's reply tells of."""
    job_id, incarnation, deliveries, free, crashes, token, fence, length = named.decode().split("|")
    end = record.index(b"\n")
    keep, composition, flags, size = _more(record, end)
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
        envelope=record[end + 1 : len(record) - (size or 0)],
        doomed=_DOOMS.get(mark),
        suspect=mark == "s",
        waited=_waited(record[:end], fence),
        keep=keep,
        composition=composition,
        input=None if size is None else record[len(record) - size :],
        gives=b"g" in flags,
    )


def envelope_of(record: bytes) -> bytes:
    """Return a record without its header, and without what the job before it returned."""
    end = record.find(b"\n")
    return record[end + 1 : len(record) - (_more(record, end).size or 0)]


def held_lease(queue: str, named: bytes, record: bytes, deadline: float) -> Lease | None:
    """Return the lease that a listing tells of, or None for a member or a record that cannot be one."""
    try:
        return lease(queue, named, record, "", deadline)
    except (ValueError, OverflowError):
        return None


def _waited(header: bytes, fence: str) -> float | None:
    """Return how long a job was ready. Both times are the server's: a fence is its clock's µs, or just ahead of it."""
    fields = header.split(b"|", 7)
    # A line that is not ours may hold anything, and more digits than any number has.
    if len(fields) < 8 or len(fields[6]) > 15 or not fields[6].isdigit():
        return None
    return max(0.0, int(fence) / 1e6 - int(fields[6]) / 1e3)


class _More(NamedTuple):
    """What is special about a job."""

    keep: float = 0.0
    composition: str = ""
    flags: bytes = b""
    size: int | None = None
    """Of what the job before it returned."""


_PLAIN = _More()


def _more(record: bytes, end: int) -> _More:
    """Return what stands behind the first parts of a header, which ends there."""
    if record.count(b"|", 0, end) < _BARS:
        return _PLAIN
    keep, _, *place = *record[:end].split(b"|", _BARS + 2)[_BARS:], b""
    found = _PLACE.fullmatch(place[0]) if place else None
    seconds = int(keep) / 1000 if keep.isdigit() else 0.0
    if found is None:
        return _More(seconds)
    size = int(found[3]) if found[3] else None
    if size is not None and size > len(record) - end - 1:
        size = None
    return _More(seconds, found[1].decode(), found[2], size)


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
        size = _more(record, len(header)).size
        return FailedRecord(
            queue=queue,
            id=job_id.decode(),
            incarnation=int(fields[0]),
            attempts=int(fields[1]) - int(fields[2]),
            failed_at=int(fields[6]) / 1000,
            failure=_failure_decoder.decode(line),
            envelope=envelope[: len(envelope) - (size or 0)],
        )
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError):
        return None
