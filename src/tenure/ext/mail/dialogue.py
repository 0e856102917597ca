"""One message over one connection, in SMTP: what the server says of each recipient."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from aiosmtplib import SMTP
from aiosmtplib.errors import SMTPDataError, SMTPException, SMTPResponseException

from tenure.ext.mail.errors import MailDeferred, MailUnconfirmed
from tenure.ext.mail.transports import Transport

TOO_MANY: Final = 552
"""To a recipient: an old way to say that there are too many for one message (RFC 5321, 4.5.3.1.10)."""
_SPACE: Final = re.compile(r"[^ -~]+")


class Reply(NamedTuple):
    """A refusal."""

    code: int
    text: str
    """The server's words, short and without this transport's secrets."""

    def __str__(self) -> str:
        return f"{self.code} {self.text}".rstrip()


class Delivery(NamedTuple):
    """What a server made of a message."""

    accepted: list[str]
    """It is answerable for these now."""
    deferred: dict[str, Reply]
    refused: dict[str, Reply]


async def send(smtp: SMTP, transport: Transport, text: str, sender: str, recipients: Sequence[str]) -> Delivery:
    """Offer a message, and return what became of each recipient.

    Raises ``MailDeferred`` when the connection failed before the message was whole: nobody has it. Raises
    ``MailUnconfirmed`` when it failed afterwards: the one thing that SMTP cannot tell is whether it was taken then.
    """
    data = text.replace("\n", "\r\n").encode("ascii")
    delivery = Delivery([], {}, {})
    try:
        accepted = await _offer(smtp, transport, len(data), sender, recipients, delivery)
    except (SMTPException, OSError) as error:
        problem = type(error).__name__
        raise MailDeferred(f"{_name(transport)}: {problem} before the message was sent; nobody has it") from None
    if not accepted:
        return delivery
    try:
        await smtp.data(data, timeout=transport.data_timeout)
    except SMTPDataError as error:
        if not 400 <= error.code < 600:
            raise MailUnconfirmed(f"{_name(transport)}: an answer that is none ({error.code})") from None
        _refuse(delivery, accepted, error, transport)
        return delivery
    except (SMTPException, OSError) as error:
        raise MailUnconfirmed(
            f"{_name(transport)}: {type(error).__name__} while the message was sent: the server may have it or not, "
            "and the next attempt may repeat it with the same Message-ID"
        ) from None
    delivery.accepted.extend(accepted)
    return delivery


async def _offer(
    smtp: SMTP, transport: Transport, size: int, sender: str, recipients: Sequence[str], delivery: Delivery
) -> list[str]:
    try:
        await smtp.mail(sender, options=[f"SIZE={size}"] if smtp.supports_extension("size") else [])
    except SMTPResponseException as error:
        _refuse(delivery, recipients, error, transport)
        return []
    accepted = []
    for recipient in recipients:
        try:
            await smtp.rcpt(recipient)
        except SMTPResponseException as error:
            _refuse(delivery, [recipient], error, transport, soft=TOO_MANY)
        else:
            accepted.append(recipient)
    return accepted


def _refuse(
    delivery: Delivery,
    recipients: Sequence[str],
    error: SMTPResponseException,
    transport: Transport,
    *,
    soft: int | None = None,
) -> None:
    text = _SPACE.sub(" ", transport.redacted(error.message))
    reply = Reply(error.code, text if len(text) <= 200 else f"{text[:197]}...")
    for_good = 500 <= error.code < 600 and error.code != soft
    (delivery.refused if for_good else delivery.deferred).update(dict.fromkeys(recipients, reply))


def _name(transport: Transport) -> str:
    return f"mail transport {transport.name!r} ({transport.key})"
