"""From a message to what is stored of it: its text, and the two addresses that an envelope of paper has.

The text is ASCII with bare newlines, so that JSON carries it as it is. ``Message-ID`` and ``Date`` are fixed here, not
when it is sent: each attempt sends the same bytes, and a receiver that keeps the ids it has seen can drop a repeat.
"""

import copy
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email import policy
from email.errors import MessageError
from email.message import EmailMessage, Message
from email.parser import Parser
from email.utils import format_datetime
from typing import Final, NamedTuple

from tenure.errors import InvalidOption, NotEncodable
from tenure.naming import new_job_id

_WIRE: Final = policy.SMTP.clone(cte_type="7bit")
"""Nothing but ASCII in lines of bearable length, which every server takes."""
_HEADERS: Final = policy.default
_HIDDEN: Final = ("Bcc", "Resent-Bcc")
_BROKEN: Final = re.compile(r"[\r\0]|\n(?![ \t])")
"""A line break that ends a header; one before a blank only folds it."""
_FIELD: Final = re.compile(r"[!-9;-~]+", re.ASCII)
_LOCAL: Final = r"(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}|\"(?:[ !#-\[\]-~]|\\[ -~]){1,62}\")"
_DOMAIN: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:.IPv]{3,64}\])"
_ADDRESS: Final = re.compile(f"{_LOCAL}@{_DOMAIN}", re.ASCII)


class Letter(NamedTuple):
    """A message that is ready to be stored."""

    text: str
    sender: str
    recipients: list[str]
    series: str
    """Names all jobs that carry this message, whatever becomes of its recipients."""


def letter(message: EmailMessage, *, sender: str | None, recipients: Sequence[str] | None) -> Letter:
    """Return what is stored of a message, which is left as it is.

    Raises ``InvalidOption`` for addresses and headers that are none, or hold a line break, and for a message without a
    sender or recipients; ``NotEncodable`` for one that cannot be written down.
    """
    if not isinstance(message, EmailMessage):
        raise InvalidOption(
            f"a mail is an email.message.EmailMessage, not a {type(message).__name__}; nothing was sent"
        )
    for part in message.walk():
        _check_headers(part)
    origin = _sender(message) if sender is None else _checked(sender, "sender") if sender else ""
    addresses = _recipients(message) if recipients is None else _given(recipients)
    if not addresses:
        raise InvalidOption("the mail has no recipients (To, Cc, Bcc or recipients=); nothing was sent")
    series = new_job_id()
    return Letter(_text(message, series, origin), origin, addresses, series)


def _text(message: EmailMessage, series: str, sender: str) -> str:
    ready = copy.deepcopy(message)
    for name in _HIDDEN:  # whoever receives it must not learn who else does
        del ready[name]
    if "Message-ID" not in ready:
        ready["Message-ID"] = f"<{series}@{sender.rpartition('@')[2].strip('[]') or 'localhost'}>"
    if "Date" not in ready:
        ready["Date"] = format_datetime(datetime.now(UTC))
    try:
        text = ready.as_bytes(policy=_WIRE).decode("ascii").replace("\r\n", "\n")
    except (MessageError, ValueError, LookupError, TypeError, AttributeError) as error:
        # The library's own text may quote what it could not write.
        raise NotEncodable("message", "", f"it cannot be written as mail ({type(error).__name__})") from None
    # What is read back must be what was meant: a header that could end its line would have begun another one here.
    if [name.lower() for name in Parser(policy=_HEADERS).parsestr(text, headersonly=True)] != [
        name.lower() for name in ready
    ]:
        raise InvalidOption("the mail's headers hold a line break that would make others of them; nothing was sent")
    return text


def _check_headers(part: "Message[str, str]") -> None:
    for name, value in part.raw_items():
        if not _FIELD.fullmatch(name):
            raise InvalidOption("the mail has a header whose name is none; nothing was sent")
        if _BROKEN.search(str(value).replace("\r\n", "\n").rstrip("\n")):
            raise InvalidOption(f"the mail's header {name} holds a line break; nothing was sent")


def _sender(message: EmailMessage) -> str:
    for name in ("Sender", "From"):
        found = list(_addresses(message, name))
        if found:
            return found[0]
    raise InvalidOption("the mail has no sender (From, Sender or sender=); nothing was sent")


def _recipients(message: EmailMessage) -> list[str]:
    return list(dict.fromkeys(address for name in ("To", "Cc", "Bcc") for address in _addresses(message, name)))


def _given(recipients: Sequence[str]) -> list[str]:
    if isinstance(recipients, str) or not isinstance(recipients, Sequence):
        raise InvalidOption("recipients must be a list of addresses; nothing was sent")
    return list(dict.fromkeys(_checked(address, "recipients") for address in recipients))


def _addresses(message: EmailMessage, name: str) -> Iterator[str]:
    for value in message.get_all(name, []):
        header = value if hasattr(value, "addresses") else _HEADERS.header_factory(name, str(value))
        for address in header.addresses:
            yield _checked(address.addr_spec, name)


def _checked(address: object, where: str) -> str:
    """Return an address that can stand in an SMTP command. None is shown: it is somebody's."""
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address) or len(address) > 254:
        hint = "" if isinstance(address, str) and address.isascii() else ": ASCII only, a domain in its xn-- form"
        raise InvalidOption(f"{where} holds what is no mail address{hint}; nothing was sent")
    return address
