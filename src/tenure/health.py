"""Whether a store can be used, and if not, why: one cheap read through the driver's own keys, never an exception."""

import asyncio
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from tenure.config import DEFAULT
from tenure.connections import Connections
from tenure.errors import ConfigurationError, ConnectionFailed, OutcomeUnknown, Refused, StoreRefused, TenureError
from tenure.naming import check_queue
from tenure.registry import DEFAULT_QUEUE

TIMEOUT: Final = 2.0
"""Seconds after which a store that has not answered is not ready."""

Cause = Literal["", "configuration", "unreachable", "refused", "unanswered", "error"]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What one read through a connection told."""

    ready: bool
    """Pushes and claims can be made."""
    waiting: int | None = None
    """Jobs of the queues that wait: ready, delayed, or with a lapsed lease; None when it is not ready."""
    cause: Cause = ""
    """Why it is not ready: ``configuration``, ``unreachable`` (no connection), ``refused`` (the store's own word),
    ``unanswered`` (connected, and no answer in time), ``error``; empty when it is."""
    reason: str = ""
    """The same for people; without credentials."""


async def health(
    connections: Connections,
    connection: str = DEFAULT,
    *,
    queues: Sequence[str] = (DEFAULT_QUEUE,),
    timeout: float = TIMEOUT,
) -> Health:
    """Count the jobs of queues through a connection, within ``timeout`` seconds. Never raises."""
    try:
        names = [check_queue(name) for name in queues]
        driver = connections.get(connection).queue
        async with asyncio.timeout(timeout):
            waiting = sum([(await driver.counts(name)).size for name in names])
    except TimeoutError:
        return Health(ready=False, cause="unanswered", reason=f"the store did not answer within {timeout:g} s")
    except Exception as error:  # noqa: BLE001 - a probe that raises tells less than one that says so
        return Health(ready=False, cause=_cause(error), reason=_reason(error))
    return Health(ready=True, waiting=waiting)


def _cause(error: Exception) -> Cause:
    match error:
        case ConfigurationError() | Refused():
            return "configuration"
        case ConnectionFailed():
            return "unreachable"
        case StoreRefused():
            return "refused"
        case OutcomeUnknown():
            return "unanswered"
        case _:
            return "error"


def _reason(error: Exception) -> str:
    match error:
        case StoreRefused():
            return f"the store refuses calls ({error.code}): {error.problem}"
        case OutcomeUnknown():
            return "the store did not answer"
        case TenureError():
            return str(error).removesuffix("; nothing was sent")
        case _:
            # Whose words these are is not known, so they are not repeated.
            return f"an unexpected {type(error).__name__}"
