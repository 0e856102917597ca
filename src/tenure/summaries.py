"""What the drivers' operating sides share: a job's name out of its record, cursors, keys, and what is refused."""

import math
import struct
from typing import Any, Final

from tenure import envelope
from tenure.errors import InvalidOption, Undecodable
from tenure.naming import shown
from tenure.queue import JobState

LISTED: Final = (JobState.READY, JobState.DELAYED, JobState.RUNNING)
"""The states of ``JobLister``."""

LONGEST_PAGE: Final = 1000
"""How many jobs one page holds at most: no listing holds up the calls behind it for longer."""


def job_name(record: bytes) -> str:
    """Return the name of the job in an envelope, or an empty text when it cannot be read; nothing of its payload."""
    try:
        return envelope.decode(record).name
    except Undecodable:
        return ""


def page_length(state: JobState, limit: int) -> int:
    """Return how many jobs a page of a listing holds, or raise ``InvalidOption`` for one that there cannot be."""
    if state not in LISTED:
        raise InvalidOption(f"jobs are listed by the states {', '.join(LISTED)}, not {shown(str(state))}")
    check_limit(limit)
    return min(limit, LONGEST_PAGE)


def check_limit(limit: int) -> None:
    """Raise ``InvalidOption`` for a page that would hold nothing."""
    if limit < 1:
        raise InvalidOption(f"a page of {limit} cannot be; it must hold one at least")


class Cursors:
    """Writes and reads cursors: the state that is listed, and the numbers that say where a page ended.

    ``numbers`` are their kinds, as the ``struct`` module writes them. Only texts that ``written`` could have returned
    are read, and only for the state that they were written for.
    """

    def __init__(self, numbers: str) -> None:
        self._form = struct.Struct(f"!B{numbers}")

    def written(self, state: JobState, *numbers: float) -> str:
        """Return the cursor."""
        return self._form.pack(LISTED.index(state), *numbers).hex()

    def read(self, cursor: str, state: JobState) -> tuple[Any, ...]:
        """Return its numbers, or raise ``InvalidOption``."""
        try:
            number, *numbers = self._form.unpack(bytes.fromhex(cursor))
        except (ValueError, struct.error):
            raise _garbage(cursor) from None
        if number != LISTED.index(state) or any(map(math.isnan, numbers)) or self.written(state, *numbers) != cursor:
            raise _garbage(cursor)
        return tuple(numbers)


def _garbage(cursor: str) -> InvalidOption:
    return InvalidOption(f"{shown(cursor)} is no cursor of this listing; begin without one")


def check_age(older_than: float) -> None:
    """Raise ``InvalidOption`` for seconds that cannot be an age."""
    if not older_than >= 0:
        raise InvalidOption(f"jobs cannot be older than {older_than} s; nothing was removed")


def record_number(key: str) -> int | None:
    """Return the number that the key of an unreadable record is, or None for a text that is no such key."""
    plain = key.isascii() and key.isdecimal() and len(key) <= 18 and (key == "0" or key[0] != "0")
    return int(key) if plain else None


def number_after(after: str) -> int:
    """Return the number behind which a listing of unreadable records goes on, or raise ``InvalidOption``."""
    number = record_number(after) if after else 0
    if number is None:
        raise InvalidOption(f"{shown(after)} is not the key of an unreadable record")
    return number
