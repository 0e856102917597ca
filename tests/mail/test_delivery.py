"""Mails over a real SMTP server that fails: nobody is left out, and only what SMTP cannot rule out is repeated."""

import asyncio
import logging
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import pytest

from tenure import Tenure
from tenure.envelope import decode
from tenure.errors import StoreRefused
from tenure.ext.mail import lines
from tests.mail.conftest import make_app
from tests.support.mail import Fault, Post, drops, hangs, says
from tests.worker.support import drain, until, until_counts, working

Make = Callable[..., EmailMessage]


SOON: dict[str, Any] = {"backoff": 0.01}


async def sent(app: Tenure, message: EmailMessage, **options: Any) -> None:
    """Push it, and work until it is done or failed."""
    await app.mail.push(message, **{**SOON, **options})
    async with working(app):
        await until_counts(app, ready=0, delayed=0, leased=0)


# S19
async def test_a_mail_arrives_as_it_was_written(app: Tenure, post: Post, make: Make) -> None:
    message = make("Ana <ana@example.com>", Cc="bob@example.com", Bcc="secret@example.com")
    message.add_alternative("<p>Grüße</p>", subtype="html")
    message.add_attachment(b"\0\1\2\r\n.\r\n", maintype="application", subtype="x-thing", filename="Äpfel.bin")
    await sent(app, message)
    [received] = post.received
    assert received.sender == "shop@shop.test"
    assert received.recipients == ("ana@example.com", "bob@example.com", "secret@example.com")
    assert b"secret@example.com" not in received.content
    assert received.message["Subject"] == "Rechnung für Äpfel"
    body = received.message.get_body(("plain",))
    assert body is not None
    assert body.get_content() == "Grüße\n.\nund ein Punkt am Anfang einer Zeile\n"
    [attachment] = received.message.iter_attachments()
    assert (attachment.get_filename(), attachment.get_content()) == ("Äpfel.bin", b"\0\1\2\r\n.\r\n")
    assert received.message_id.endswith("@shop.test>")


@pytest.mark.parametrize("stage", ["at_mail", "at_data"])
@pytest.mark.parametrize(
    "fault", [says("451 4.3.0 later"), says("421 4.3.2 going down"), drops], ids=["451", "421", "drop"]
)
async def test_what_is_temporary_is_tried_again(app: Tenure, post: Post, make: Make, stage: str, fault: Fault) -> None:
    getattr(post, stage).extend([fault, fault])
    await sent(app, make())
    assert [mail.recipients for mail in post.received] == [("ana@example.com",)]


async def test_a_timeout_before_the_message_repeats_nothing(post: Post, make: Make, impatient: Tenure) -> None:
    post.at_mail.append(hangs)
    await sent(impatient, make())
    assert post.copies("ana@example.com") == 1


@pytest.mark.parametrize("fault", [drops, hangs])
async def test_an_answer_that_is_lost_repeats_the_mail_with_its_message_id(
    impatient: Tenure, post: Post, make: Make, fault: Fault
) -> None:
    post.after_data.append(fault)
    await sent(impatient, make())
    assert post.copies("ana@example.com") == 2
    assert len({mail.message_id for mail in post.received}) == 1
    assert len({mail.content for mail in post.received}) == 1


@pytest.mark.parametrize("stage", ["at_mail", "at_data"])
async def test_what_is_permanent_gives_up_at_once(app: Tenure, post: Post, make: Make, stage: str) -> None:
    getattr(post, stage).append(says("550 5.7.1 never"))
    await sent(app, make())
    assert not post.received
    [record] = await app.failed("default")
    assert (record.failure.reason, record.failure.type) == ("gave-up", "tenure.ext.mail.errors.MailRefused")
    assert "550 5.7.1 never" in record.failure.message
    assert record.attempts == 1


async def test_deferred_recipients_alone_are_tried_again(app: Tenure, post: Post, make: Make) -> None:
    post.at_rcpt["b@example.com"].extend([says("450 4.2.1 busy"), says("451 4.7.1 greylisted")])
    post.at_rcpt["c@example.com"].extend([says("452 4.5.3 too many recipients")])
    await sent(app, make("a@example.com", "b@example.com", "c@example.com"))
    assert [mail.recipients for mail in post.received] == [
        ("a@example.com",),
        ("c@example.com",),
        ("b@example.com",),
    ]
    assert len({mail.message_id for mail in post.received}) == 1


async def test_refused_recipients_end_in_the_failed_store_alone(app: Tenure, post: Post, make: Make) -> None:
    post.at_rcpt["b@example.com"].extend([says("550 5.1.1 no such user")] * 2)
    post.at_rcpt["c@example.com"].append(says("450 4.2.1 busy"))
    await sent(app, make("a@example.com", "b@example.com", "c@example.com"))
    assert [mail.recipients for mail in post.received] == [("a@example.com",), ("c@example.com",)]
    [record] = await app.failed("default")
    assert "550 5.1.1 no such user" in record.failure.message
    # An operator's retry, once the mailbox is there, reaches that one.
    await app.retry("default")
    assert await drain(app)
    assert [post.copies(f"{name}@example.com") for name in "abc"] == [1, 1, 1]


async def test_the_rest_is_pushed_again_until_the_store_takes_it(
    app: Tenure, post: Post, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    post.at_rcpt["b@example.com"].append(says("450 4.2.1 busy"))
    await app.mail.push(make("a@example.com", "b@example.com"), **SOON)
    push, refusals = app.queue().push, [StoreRefused("OOM", "full")] * 2

    async def full(jobs: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return await push(jobs)

    monkeypatch.setattr(app.queue(), "push", full)
    async with working(app):
        await until_counts(app, ready=0, delayed=0, leased=0)
    assert not refusals
    assert [post.copies("a@example.com"), post.copies("b@example.com")] == [1, 1]


async def test_the_rest_of_an_attempt_that_is_repeated_is_one_job(app: Tenure, post: Post, make: Make) -> None:
    post.at_rcpt["b@example.com"].extend([says("450 4.2.1 busy")] * 2)
    call = app.mail.bind(make("a@example.com", "b@example.com"), backoff=60.0)
    await app.push(call)
    await app.push(call)  # as a worker that died before its acknowledgement lets another one do
    async with working(app):
        await until_counts(app, ready=0, leased=0, delayed=1)
    assert post.copies("a@example.com") == 2
    assert len({mail.message_id for mail in post.received}) == 1


async def test_the_rest_keeps_what_was_said_of_the_mail(app: Tenure, post: Post, make: Make) -> None:
    post.at_rcpt["b@example.com"].append(says("450 4.2.1 busy"))
    handle = await app.mail.push(
        make("a@example.com", "b@example.com"),
        queue="mails",
        priority=7,
        meta={"tenant": 3},
        max_attempts=4,
        backoff=0.5,
    )
    await drain(app, queues=("mails",))
    [rest] = (await app.queue().claim(["mails"], limit=1, lease=60, wait=10)).leases
    assert rest.id == f"{handle.id}.r1"
    envelope = decode(rest.envelope)
    assert (envelope.priority, envelope.max_attempts, envelope.backoff) == (7, 3, 0.5)
    assert envelope.meta == {"tenant": 3}


async def test_a_connection_is_reused_and_replaced_when_the_server_ended_it(
    app: Tenure, post: Post, make: Make
) -> None:
    for _ in range(5):
        await app.mail.push(make(), **SOON)
    assert await drain(app, concurrency=1)
    assert (len(post.received), post.connections) == (5, 1)
    await post.hang_up()
    for _ in range(2):
        await app.mail.push(make(), **SOON)
    await drain(app, concurrency=1)
    assert (len(post.received), post.connections) == (7, 2)
    assert not (await app.counts("default")).failed


async def test_connections_are_not_more_than_the_transport_allows(post: Post, namespace: str, make: Make) -> None:
    app = make_app(namespace, post.url(connections=2))
    for _ in range(20):
        await app.mail.push(make())
    await drain(app)
    assert len(post.received) == 20
    assert post.connections == 2
    await app.aclose()


async def test_a_worker_without_the_transport_names_its_key(app: Tenure, post: Post, make: Make) -> None:
    await app.mail.push(make(), via="bulk-mail", max_attempts=1)
    await drain(app)
    [record] = await app.failed("default")
    assert "TENURE_MAIL_BULK_MAIL_URL: is not set" in record.failure.message


async def test_no_server_at_all_is_tried_again(namespace: str, make: Make, post: Post) -> None:
    app = make_app(namespace, "smtp://127.0.0.1:1")
    await app.mail.push(make(), max_attempts=2, **SOON)
    async with working(app):
        await until_counts(app, failed=1)
    [record] = await app.failed("default")
    assert record.failure.type == "tenure.ext.mail.errors.MailDeferred"
    assert "nobody has the message" in record.failure.message
    await app.aclose()


async def test_a_push_that_waits_for_a_commit_is_a_push_like_others(
    app: Tenure, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await app.push_many([app.mail.bind(make(f"{number}@example.com")) for number in range(3)])
    handle = await asyncio.to_thread(app.mail.push_sync, make())
    assert (await app.counts("default")).ready == 4
    assert await handle.status() == "ready"
    assert "example.com" not in caplog.text


async def test_an_idle_connection_is_closed_after_a_while(
    app: Tenure, post: Post, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "IDLE", 0.05)
    await app.mail.push(make())
    await drain(app)
    await until(lambda: all(server.transport is None for server in post.servers))
    await app.mail.push(make())
    await drain(app)
    assert (len(post.received), post.connections) == (2, 2)


@pytest.mark.parametrize("stage", ["at_mail", "at_data", "after_data"])
async def test_a_cancelled_job_gives_its_connection_back_closed(
    app: Tenure, post: Post, make: Make, stage: str
) -> None:
    getattr(post, stage).append(hangs)
    await app.mail.push(make(), timeout=0.3, **SOON)
    async with working(app):
        await until_counts(app, ready=0, delayed=0, leased=0)
    assert post.connections == 2
    assert post.copies("ana@example.com") == (2 if stage == "after_data" else 1)


async def test_a_worker_that_is_told_to_stop_while_it_connects_gives_the_mail_back(namespace: str, make: Make) -> None:
    silent = await asyncio.start_server(lambda _, writer: opened.append(writer), "127.0.0.1", 0)
    opened: list[asyncio.StreamWriter] = []
    app = make_app(namespace, f"smtp://127.0.0.1:{silent.sockets[0].getsockname()[1]}")
    await app.mail.push(make())
    async with working(app):
        await until(lambda: opened)
    assert (await app.counts("default")).ready == 1
    opened[0].close()
    silent.close()
    await app.aclose()


async def test_an_answer_that_is_none_leaves_it_open(app: Tenure, post: Post, make: Make) -> None:
    post.after_data.append(says("299 what is this"))
    await sent(app, make())
    assert post.copies("ana@example.com") == 2


async def test_priority_and_timeout_of_the_mail_are_the_rest_s_too(app: Tenure, post: Post, make: Make) -> None:
    post.at_rcpt["b@example.com"].append(says("552 5.5.3 too many recipients"))  # an old way to say 452
    await app.mail.push(
        make("a@example.com", "b@example.com"), timeout=20, result_ttl=60, max_attempts=1, id="mine", backoff=0.1
    )
    await drain(app)
    [rest] = (await app.queue().claim(["default"], limit=1, lease=60, wait=10)).leases
    envelope = decode(rest.envelope)
    assert (envelope.timeout, envelope.max_attempts, rest.keep) == (20, 1, 60)
    assert rest.id.endswith(".r1")
    assert not rest.id.startswith("mine")  # which another mail may have had, whose rest would hold this one
