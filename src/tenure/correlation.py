"""Correlation: one id that follows a request through every job that it causes, and to the logs of each attempt.

It travels in a job's ``meta``. A push takes the id that is current where it is made: that of a ``correlated`` block, or
else that of the attempt that pushes. Nothing is made up: without an id there is none.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from tenure.context import running
from tenure.errors import InvalidOption
from tenure.naming import new_job_id

META: Final = "correlation_id"
"""The field of ``meta``, and the attribute of log records."""
_ID: Final = re.compile(r"[!-~]{1,128}", re.ASCII)

_given: ContextVar[str] = ContextVar("tenure.correlation")


@contextmanager
def correlated(given: str | None = None) -> Iterator[str]:
    """Let this id, or a new one, be current within the block; what is pushed there carries it.

    Raises ``InvalidOption`` unless it is 1 to 128 visible ASCII characters: it ends up in log lines, and often comes
    from a header that anybody may send.
    """
    if given is not None and carried_id({META: given}) is None:
        raise InvalidOption("a correlation id is 1 to 128 visible ASCII characters, without spaces")
    found = given or new_job_id()
    token = _given.set(found)
    try:
        yield found
    finally:
        _given.reset(token)


def correlation_id() -> str | None:
    """Return the id that is current here, or None: that of the nearest ``correlated``, else that of the attempt."""
    given = _given.get(None)
    if given is not None:
        return given
    attempt = running()
    return None if attempt is None else carried_id(attempt.meta)


def carried_id(meta: Mapping[str, Any]) -> str | None:
    """Return the id that a job carries, or None. Whatever else another program wrote there is none."""
    found = meta.get(META)
    return found if isinstance(found, str) and _ID.fullmatch(found) else None


def with_id(meta: dict[str, Any]) -> dict[str, Any]:
    """Return what travels as a job's ``meta``, with the current id unless the caller gave one."""
    found = correlation_id()
    return meta if found is None or META in meta else {**meta, META: found}


class CorrelationFilter(logging.Filter):
    """Gives each record that passes the id that is current where it is logged, as ``record.correlation_id``.

    For a handler (``handler.addFilter``). A record that has one keeps it; without an id there is no attribute.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let the record pass."""
        if not hasattr(record, META):
            found = correlation_id()
            if found is not None:
                setattr(record, META, found)
        return True
