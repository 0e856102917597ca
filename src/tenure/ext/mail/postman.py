"""The postman, in the worker: sends a stored mail, and decides what becomes of each recipient.

A job's arguments never change, so that what a server has taken for some recipients cannot be noted in the job itself.
When it takes a message for a part of them, the others go on in **jobs of their own**, one for those that are to be
tried again and one for those that were refused for good, and this job is done. That is exact under crashes:

- Their ids are made of the mail's series and the round, so a repeat of this attempt, by whoever holds the job then,
  finds them there and makes no second one. It pushes all that it still knows to be without the message, so that
  everybody is in the accepted part of an attempt or in a job that exists.
- They are pushed before this job is acknowledged. A worker that dies between the two leaves the job to another one,
  which sends the message again: the window between a server's answer and its record, which SMTP cannot close.
- The job of those refused asks once more and gives up: it ends in the failed store with these recipients and with what
  the server said, and an operator's retry reaches nobody else.
"""

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tenure.context import Current, current
from tenure.envelope import Envelope, decode
from tenure.errors import StoreError
from tenure.ext.mail.errors import MailDeferred, MailRefused
from tenure.ext.mail.transports import Transport, transport
from tenure.naming import derived_id
from tenure.retry import Backoff

if TYPE_CHECKING:
    from tenure.app import Tenure
    from tenure.ext.mail.dialogue import Delivery, Reply
    from tenure.ext.mail.lines import Lines

logger: Final = logging.getLogger("tenure.mail")

PATIENCE: Final = Backoff(base=30.0, cap=3600.0)
"""Between attempts: greylisting wants some minutes, and a server that is down some hours."""
ATTEMPTS: Final = 12
_PUSHING: Final = Backoff(base=0.2, cap=5.0)


Follow = Callable[[list[str], int, dict[str, Any]], Awaitable[None]]
"""Pushes the job of recipients that are left, of this round, with these options; raises what a push raises."""


class Postman:
    """Sends the mails of one application's jobs."""

    def __init__(self, app: "Tenure") -> None:
        self._app = app
        self._transports: dict[str, Transport] = {}
        # Of each event loop its own: a connection belongs to the loop that it was made in.
        self._lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Lines]] = (
            weakref.WeakKeyDictionary()
        )

    async def deliver(
        self,
        text: str,
        sender: str,
        recipients: Sequence[str],
        *,
        via: str,
        series: str,
        rounds: int,
        follow: Follow,
    ) -> None:
        """Send a mail; returns when every recipient has it, or is in another job that will see to it.

        Raises ``MailDeferred``, ``MailRefused`` and ``MailUnconfirmed`` when nobody is known to have it, and
        ``ConfigurationError`` for a transport that this worker does not have.
        """
        from tenure.ext.mail.dialogue import send  # noqa: PLC0415 - a program that only pushes does not load SMTP

        where = self._transport(via)
        async with self._line(where).line() as smtp:
            delivery = await send(smtp, where, text, sender, recipients)
        if not delivery.accepted:
            raise _failure(where, delivery)
        if delivery.deferred or delivery.refused:
            await self._pass_on(delivery, series, rounds, follow)

    async def aclose(self) -> None:
        """Close the connections, those of other loops from within these."""
        here = asyncio.get_running_loop()
        for loop, by_name in list(self._lines.items()):
            for lines in list(by_name.values()):
                if loop is here:
                    await lines.aclose()
                elif not loop.is_closed():
                    loop.call_soon_threadsafe(lines.close)

    def _transport(self, via: str) -> Transport:
        found = self._transports.get(via)
        if found is None:
            found = self._transports[via] = transport(via, self._app.settings.environ)
        return found

    def _line(self, where: Transport) -> "Lines":
        from tenure.ext.mail.lines import Lines  # noqa: PLC0415 - as above

        by_name = self._lines.setdefault(asyncio.get_running_loop(), {})
        return by_name.setdefault(where.name, Lines(where))

    async def _pass_on(self, delivery: "Delivery", series: str, rounds: int, follow: Follow) -> None:
        attempt = current()
        envelope = decode(attempt.lease.envelope)
        logger.info(
            "job %s: the mail was taken for %d of its recipients; %d are tried again and %d were refused, in jobs of "
            "their own",
            attempt.id,
            len(delivery.accepted),
            len(delivery.deferred),
            len(delivery.refused),
        )
        common = _options(attempt, envelope)
        if delivery.refused:
            options = {**common, "id": derived_id(series, f"x{rounds + 1}")}
            await _certainly(follow, list(delivery.refused), rounds + 1, options)
        if delivery.deferred:
            # One attempt at least: they had none of their own yet that failed.
            left = max(1, attempt.max_attempts - attempt.attempt) if attempt.max_attempts else None
            wait = PATIENCE.delay(attempt.attempt) if envelope.backoff is None else envelope.backoff
            options = {**common, "id": derived_id(series, f"r{rounds + 1}"), "delay": wait}
            if left is not None:
                options["max_attempts"] = left
            await _certainly(follow, list(delivery.deferred), rounds + 1, options)


async def _certainly(follow: Follow, recipients: list[str], rounds: int, options: dict[str, Any]) -> None:
    """Push, again and again while the store cannot take it: giving up would send everybody the message once more.

    What ends it is the job's own end: its timeout, the loss of its lease, the worker's stop.
    """
    tries = 0
    while True:
        try:
            return await follow(recipients, rounds, options)
        except StoreError as error:
            tries += 1
            logger.warning(
                "the job of a mail's other recipients could not be pushed (%s); it is tried again", type(error).__name__
            )
            await asyncio.sleep(_PUSHING.delay(tries))


def _options(attempt: Current, envelope: Envelope) -> dict[str, Any]:
    """Return what was said of this job, for one that goes on with it."""
    options: dict[str, Any] = {
        "queue": attempt.queue,
        "connection": attempt.connection,
        "priority": envelope.priority,
        "meta": dict(envelope.meta),
    }
    if envelope.timeout is not None:
        options["timeout"] = envelope.timeout
    if envelope.backoff is not None:
        options["backoff"] = envelope.backoff
    if attempt.lease.keep:
        options["result_ttl"] = attempt.lease.keep
    return options


def _failure(where: Transport, delivery: "Delivery") -> MailDeferred | MailRefused:
    deferred, refused = delivery.deferred, delivery.refused
    said = "; ".join(_counted(list((deferred or refused).values())))
    name = f"mail transport {where.name!r} ({where.key})"
    if deferred:
        return MailDeferred(f"{name}: not now for {len(deferred)} of {len(deferred) + len(refused)} recipients: {said}")
    return MailRefused(f"{name}: refused for good for {len(refused)} recipients: {said}")


def _counted(replies: "Sequence[Reply]") -> list[str]:
    """Return the first few different answers."""
    return list(dict.fromkeys(str(reply) for reply in replies))[:3]
