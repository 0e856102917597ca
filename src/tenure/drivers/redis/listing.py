"""Listing waiting and running jobs, a page at a time: without their payloads, or what one holder holds, with them."""

import base64
import binascii
import re
import time
from itertools import islice
from typing import NamedTuple

from tenure.drivers.redis.record import envelope_of, held_lease
from tenure.drivers.redis.session import Session
from tenure.errors import InvalidOption
from tenure.naming import check_holder, held_prefix, shown
from tenure.operating import HeldPage, JobPage, JobSummary
from tenure.queue import JobState, Lease
from tenure.summaries import job_name, page_length

_SCRIPTS = {JobState.READY: "ready", JobState.DELAYED: "delayed", JobState.RUNNING: "running"}
_INDEX = rb"[0-9]{1,16}"
_SCORE = rb"-?(?:[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[+-]?[0-9]{1,3})?|inf)"
_PLACE = {
    # A place in a stream is the id of an entry.
    JobState.READY: re.compile(
        rb"ready ([13]) (|%b(?:-[0-9]{1,20})?) ()|ready ([24]) (|%b) (.{0,100})" % (_INDEX, _SCORE), re.DOTALL
    ),
    JobState.DELAYED: re.compile(rb"delayed (1) (%b) (.{0,100})" % _SCORE, re.DOTALL),
    JobState.RUNNING: re.compile(rb"running (1) (%b) (.{0,100})" % _SCORE, re.DOTALL),
}
_HEADER = re.compile(
    rb"(\d{1,19})\|(\d{1,9})\|(\d{1,9})\|(\d{1,9})\|\d{1,9}\|\d{1,15}\|(\d{1,15})\|(-?\d{1,3})(?:\|.*)?"
)


class _Place(NamedTuple):
    """Where a page begins, in the words of the scripts."""

    line: bytes = b"1"
    place: bytes = b""
    mark: bytes = b""


class Listing:
    """The listings of one event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def held(self, queue: str, holder: str, limit: int, cursor: str | None) -> HeldPage:
        """Return leases of one holder; see ``tenure.operating.Holdings``."""
        prefix = held_prefix(check_holder(holder))
        length = page_length(JobState.RUNNING, limit)
        place = _Place() if cursor is None else _read(cursor, JobState.RUNNING)
        while True:
            sent = time.monotonic()
            now, *rest = await self._session.run(queue, "held", (length, *place, prefix))
            place, found = _Place(*rest[:3]), iter(rest[3:])
            leases: list[Lease] = []
            while job := tuple(islice(found, 3)):
                member, score, record = job
                lease = held_lease(queue, member, record, sent + (float(score) - int(now)) / 1000)
                leases += [lease] if lease is not None else []
            if not place.line:
                return HeldPage(leases=leases, cursor=None)
            if leases:
                return HeldPage(leases=leases, cursor=_written(JobState.RUNNING, place))

    async def page(self, queue: str, state: JobState, limit: int, cursor: str | None) -> JobPage:
        """Return jobs of one state; see ``tenure.operating.JobLister``.

        Each call reads a bounded number of entries. Where that many are of jobs that are gone, the next call follows.
        """
        length = page_length(state, limit)
        place = _Place() if cursor is None else _read(cursor, state)
        while True:
            now, *rest = await self._session.run(queue, _SCRIPTS[state], (length, *place))
            place, found = _Place(*rest[:3]), iter(rest[3:])
            jobs = []
            while job := tuple(islice(found, 3)):
                jobs.append(_summary(queue, state, int(now), *job))
            if not place.line:
                return JobPage(jobs=jobs, cursor=None)
            if jobs:
                return JobPage(jobs=jobs, cursor=_written(state, place))


def _written(state: JobState, place: _Place) -> str:
    return base64.urlsafe_b64encode(b" ".join((state.encode(), *place))).decode()


def _read(cursor: str, state: JobState) -> _Place:
    try:
        found = _PLACE[state].fullmatch(base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True))
    except (binascii.Error, UnicodeEncodeError):
        found = None
    if found is None:
        raise InvalidOption(f"{shown(cursor)} is no cursor of this listing; begin without one")
    return _Place(*(part for part in found.groups() if part is not None))


def _summary(queue: str, state: JobState, now: int, entry: bytes, score: bytes, record: bytes) -> JobSummary:
    job_id, *counted = entry.split(b"|")
    line, _, _ = record.partition(b"\n")
    header = _HEADER.fullmatch(line)
    deliveries, free, crashes, at, priority = map(int, header.groups()[1:]) if header else (0, 0, 0, 0, 0)
    seconds: float | None = None
    if state is JobState.RUNNING and all(number.isdigit() for number in counted[1:4]) and len(counted) > 4:
        # A lease counts its own delivery; the record is as it was when it waited.
        deliveries, free, crashes = map(int, counted[1:4])
    if score:
        seconds = (float(score) - now) / 1000
    elif header:
        seconds = max(0, now - at) / 1000
    return JobSummary(
        queue=queue,
        id=job_id.decode(errors="replace"),
        state=state,
        name=job_name(envelope_of(record)) if header else "",
        priority=priority,
        attempts=deliveries - free,
        crashes=crashes,
        seconds=seconds,
    )
