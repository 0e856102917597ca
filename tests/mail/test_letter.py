"""What is stored of a message, and what is refused before anything is."""

import asyncio
import email
import email.policy
from collections.abc import Callable
from email.message import EmailMessage
from email.mime.text import MIMEText
from typing import Any

import pytest

from tenure import InvalidOption, NotEncodable, PayloadTooLarge, Tenure, WrongContext
from tenure.envelope import decode
from tenure.ext.mail.letter import letter

Make = Callable[..., EmailMessage]
INJECTED = [
    "a@example.com\r\nRCPT TO:<evil@example.com>",
    "a@example.com\nBcc: evil@example.com",
    "a@example.com\0",
    "a\rb@c.de",
]


def read(text: str) -> EmailMessage:
    found = email.message_from_string(text, policy=email.policy.default)
    assert isinstance(found, EmailMessage)
    return found


def test_the_message_is_left_as_it_is(make: Make) -> None:
    message = make(Bcc="secret@example.com")
    before = message.as_bytes()
    ready = letter(message, sender=None, recipients=None)
    assert message.as_bytes() == before
    assert "Message-ID" not in message
    assert ready.recipients == ["ana@example.com", "secret@example.com"]
    assert "secret@example.com" not in ready.text
    assert ready.text.isascii()
    assert "\r" not in ready.text


def test_message_id_and_date_are_fixed_and_given_ones_kept(make: Make) -> None:
    first, second = (letter(make(), sender=None, recipients=None) for _ in range(2))
    assert read(first.text)["Message-ID"] != read(second.text)["Message-ID"]
    assert read(first.text)["Date"].datetime is not None
    given = letter(make(**{"Message-ID": "<mine@shop.test>"}), sender=None, recipients=None)
    assert read(given.text)["Message-ID"] == "<mine@shop.test>"


def test_sender_and_recipients_of_the_envelope_may_differ(make: Make) -> None:
    ready = letter(make(), sender="bounces+7@shop.test", recipients=["bob@example.com", "bob@example.com"])
    assert (ready.sender, ready.recipients) == ("bounces+7@shop.test", ["bob@example.com"])
    assert letter(make(Sender="desk@shop.test"), sender=None, recipients=None).sender == "desk@shop.test"
    assert letter(make(), sender="", recipients=None).sender == ""  # a bounce has none


@pytest.mark.parametrize(
    "address", [*INJECTED, "", "a b@example.com", "ana", "ana@", "<ana@example.com>", "anä@example.com", 7]
)
def test_what_is_no_address_is_refused_and_not_shown(make: Make, address: Any) -> None:
    with pytest.raises(InvalidOption) as caught:
        letter(make(), sender=None, recipients=[address])
    assert "evil" not in str(caught.value)
    if address:
        with pytest.raises(InvalidOption):
            letter(make(), sender=address, recipients=None)


def legacy(headers: str) -> EmailMessage:
    """A message whose own policy checks nothing."""
    message = EmailMessage(policy=email.policy.compat32)
    message["From"] = "shop@shop.test"
    message["To"] = "ana@example.com"
    message["Subject"] = headers
    message.set_payload("text")
    return message


@pytest.mark.parametrize("text", ["a\r\nBcc: evil@example.com", "a\nX: y", "a\n\nbody", "a\rX: y", "a\0b", "a\n"])
def test_headers_with_line_breaks_are_refused(text: str) -> None:
    if text == "a\n":
        letter(legacy("a"), sender=None, recipients=None)
        return
    with pytest.raises(InvalidOption, match="line break"):
        letter(legacy(text), sender=None, recipients=None)


def test_headers_of_parts_are_checked_too(make: Make) -> None:
    message = make()
    part = legacy("inner\nX-Evil: 1")
    message.add_attachment(part)
    with pytest.raises(InvalidOption, match="line break"):
        letter(message, sender=None, recipients=None)


def test_a_folded_header_of_a_message_that_was_read_is_none() -> None:
    folded = b"From: shop@shop.test\r\nTo: ana@example.com,\r\n bob@example.com\r\nSubject: a\r\n b\r\n\r\ntext\r\n"
    for policy in (email.policy.default, email.policy.SMTP):
        message = email.message_from_bytes(folded, policy=policy)
        assert isinstance(message, EmailMessage)
        ready = letter(message, sender=None, recipients=None)
        assert ready.recipients == ["ana@example.com", "bob@example.com"]
        assert read(ready.text)["Subject"] == "a b"


def test_what_is_no_mail_is_refused(make: Make) -> None:
    with pytest.raises(InvalidOption, match=r"EmailMessage, not a MIMEText"):
        letter(MIMEText("a"), sender=None, recipients=None)  # type: ignore[arg-type]
    message = make()
    del message["To"]
    with pytest.raises(InvalidOption, match="no recipients"):
        letter(message, sender=None, recipients=None)
    del message["From"]
    with pytest.raises(InvalidOption, match="no sender"):
        letter(message, sender=None, recipients=["ana@example.com"])


async def test_attachments_over_the_limit_are_refused_with_advice(app: Tenure, make: Make) -> None:
    message = make()
    message.add_attachment(b"x" * 60_000, maintype="application", subtype="x-thing")
    with pytest.raises(PayloadTooLarge, match=r"does not fit into a job: .*send a link.*QUEUE_MAX_PAYLOAD_BYTES"):
        await app.mail.push(message)
    assert (await app.counts("default")).ready == 0


async def test_a_forgotten_await_is_refused_where_no_loop_runs_and_back(app: Tenure, make: Make) -> None:
    with pytest.raises(WrongContext):
        app.mail.push_sync(make())
    with pytest.raises(WrongContext):
        await asyncio.to_thread(lambda: app.mail.push(make()).close())
    large = make()
    large.add_attachment(b"x" * 60_000, maintype="application", subtype="x-thing")
    with pytest.raises(PayloadTooLarge, match="send a link"):
        await asyncio.to_thread(app.mail.push_sync, large)
    with pytest.raises(InvalidOption, match="via"):
        await app.mail.push(make(), via="smtp://host")


async def test_the_job_holds_the_transport_s_name_and_no_more_of_it(app: Tenure, make: Make) -> None:
    await app.mail.push(make(), id="welcome-17")
    [lease] = (await app.queue().claim(["default"], limit=1, lease=60, wait=0)).leases
    envelope = decode(lease.envelope)
    assert (envelope.id, envelope.name) == ("welcome-17", "tenure.mail")
    assert b'"default"' in bytes(envelope.args)
    assert b"127.0.0.1" not in lease.envelope
    assert "ana" not in repr(app.mail.bind(make()))


def test_parts_of_the_old_kind_are_taken(make: Make) -> None:
    message = make()
    message.make_mixed()
    message.attach(MIMEText("Grüße", _charset="utf-8"))  # type: ignore[arg-type]
    ready = letter(message, sender=None, recipients=None)
    assert [part.get_content() for part in read(ready.text).iter_attachments()] == ["Grüße"]


def test_what_cannot_be_written_or_read_back_is_refused(make: Make) -> None:
    message = make()
    message["X-Thing"] = "a"
    message._headers[-1] = ("X Thing", "a")  # type: ignore[attr-defined]
    with pytest.raises(InvalidOption, match="whose name is none"):
        letter(message, sender=None, recipients=None)
    broken = make()
    broken.set_payload(7)  # type: ignore[call-overload]
    with pytest.raises(NotEncodable, match=r"argument 'message' cannot be sent: it cannot be written as mail"):
        letter(broken, sender=None, recipients=None)
    with pytest.raises(InvalidOption, match="must be a list"):
        letter(make(), sender=None, recipients="ana@example.com")
