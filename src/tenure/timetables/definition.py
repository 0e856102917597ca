"""The stored definition of a schedule: versioned JSON that no store reads (P13).

It says all that a firing needs, so that whoever finds a slot due can push its job, whether or not he has its code:
the job's envelope, of which only the id and two fields of ``meta`` are filled in, and what a push says besides.
"""

import hashlib
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from tenure.envelope import Envelope, encode
from tenure.envelope import decode as decode_envelope
from tenure.errors import InvalidOption, NewerEnvelope, Undecodable
from tenure.queue import Push
from tenure.sensitive import Discreet
from tenure.timetables.cron import Cron
from tenure.timetables.interval import Interval
from tenure.timetables.timetable import Timetable

VERSION: Final = 1
NO_LIMIT: Final = 2**31
"""Bytes of an envelope whose size was checked before."""
TEMPLATE: Final = "schedule"
"""In the place of a job's id."""
SCHEDULE: Final = "schedule"
"""In a job's ``meta``: the name of the schedule that pushed it."""
SLOT: Final = "slot"
"""In a job's ``meta``: when it was due, as ISO 8601 in UTC."""

CatchUp = Literal["skip", "last", "all"]
"""What becomes of slots that nobody was there to fire: none of them, the last one, or all, fires afterwards."""
Source = Literal["code", "api", "cli"]


class When(NamedTuple):
    """What a timetable is made from: a cron expression and a zone, or an interval in seconds."""

    cron: str | None = None
    tz: str = "UTC"
    every: float | None = None

    @property
    def timetable(self) -> Timetable:
        """The timetable; raises ``InvalidOption`` for what cannot be one, or is unknown here: a zone, say."""
        if self.cron is not None:
            return Cron(self.cron, self.tz)
        return Interval(0.0 if self.every is None else self.every)


class Written(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The wire form."""

    v: Annotated[int, Meta(ge=1)]
    job: msgspec.Raw
    cron: str | None = None
    tz: str = "UTC"
    every: float | None = None
    catch_up: CatchUp = "last"
    overlap: bool = True
    jitter: Annotated[float, Meta(ge=0)] = 0.0
    since: float = 0.0
    source: Source = "code"
    crash_limit: int | None = None
    expires_in: float | None = None
    keep: float = 0.0
    unique: str = ""


class _Version(msgspec.Struct):
    v: int


class Definition(Discreet, frozen=True, kw_only=True, dict=True):
    """When a schedule is due, and what it pushes then."""

    envelope: Envelope
    """The job; its id is that of no job."""
    when: When
    catch_up: CatchUp = "last"
    overlap: bool = True
    """It fires whether or not its last job has ended."""
    jitter: float = 0.0
    """Seconds by which a job may be delayed: each slot's own share of them, the same for every process."""
    since: float = 0.0
    """What was due before was due by another timetable, and is not caught up with."""
    source: Source = "code"
    """Where it was defined."""
    crash_limit: int | None = None
    expires_in: float | None = None
    keep: float = 0.0
    unique: str = ""

    @cached_property
    def timetable(self) -> Timetable:
        """When it is due; raises ``InvalidOption``."""
        return self.when.timetable

    def push(self, name: str, slot: float, now: float, *, max_bytes: int = NO_LIMIT) -> Push:
        """Return the job of one slot, at a time by the store's clock: always the same one, whoever fires it."""
        job_id = slot_id(name, slot)
        due = datetime.fromtimestamp(round(slot, 3), UTC).isoformat()
        meta: dict[str, Any] = {**self.envelope.meta, SCHEDULE: name, SLOT: due}
        return Push(
            queue=self.envelope.queue,
            id=job_id,
            envelope=encode(msgspec.structs.replace(self.envelope, id=job_id, meta=meta), max_bytes=max_bytes),
            delay=max(0.0, slot + _share(name, slot) * self.jitter - now) if self.jitter else 0.0,
            priority=self.envelope.priority,
            crash_limit=self.crash_limit,
            expires_in=self.expires_in,
            keep=self.keep,
            unique=self.unique,
        )

    def encode(self) -> bytes:
        """Return its stored form."""
        written = Written(
            v=VERSION,
            job=msgspec.Raw(encode(self.envelope, max_bytes=NO_LIMIT)),
            cron=self.when.cron,
            tz=self.when.tz,
            every=self.when.every,
            catch_up=self.catch_up,
            overlap=self.overlap,
            jitter=self.jitter,
            since=self.since,
            source=self.source,
            crash_limit=self.crash_limit,
            expires_in=self.expires_in,
            keep=self.keep,
            unique=self.unique,
        )
        return msgspec.json.encode(written)


def decode(data: bytes) -> Definition:
    """Return a stored definition; raises ``NewerEnvelope`` or ``Undecodable``, both silent about the content."""
    try:
        written = msgspec.json.decode(data, type=Written)
    except (ValueError, RecursionError) as error:
        raise _unreadable(data, error) from None
    if written.v > VERSION:
        raise NewerEnvelope("written by a newer version of tenure")
    definition = Definition(
        envelope=decode_envelope(bytes(written.job)),
        when=When(written.cron, written.tz, written.every),
        catch_up=written.catch_up,
        overlap=written.overlap,
        jitter=written.jitter,
        since=written.since,
        source=written.source,
        crash_limit=written.crash_limit,
        expires_in=written.expires_in,
        keep=written.keep,
        unique=written.unique,
    )
    try:
        _ = definition.timetable
    except InvalidOption as error:
        raise Undecodable(str(error)) from None
    return definition


def slot_id(name: str, slot: float) -> str:
    """Return the id of a slot's job."""
    return f"schedule-{hashlib.sha256(name.encode()).hexdigest()[:24]}-{round(slot * 1000)}"


def _share(name: str, slot: float) -> float:
    digest = hashlib.sha256(f"{name}\n{round(slot * 1000)}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _unreadable(data: bytes, error: Exception) -> Undecodable:
    try:
        newer = msgspec.json.decode(data, type=_Version).v > VERSION
    except (ValueError, RecursionError):
        newer = False
    if newer:
        return NewerEnvelope("written by a newer version of tenure")
    return Undecodable(f"not a schedule's definition ({type(error).__name__})")
