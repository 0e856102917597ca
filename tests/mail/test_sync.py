"""Mails on the sync driver: sent where they are pushed, and what becomes of them is raised there."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tenure import Tenure
from tenure.config import Settings
from tenure.ext.mail import MailDeferred, MailRefused
from tests.mail.conftest import mail
from tests.support.mail import Post, says
from tests.support.processes import eventually_async


@pytest.fixture
async def app(post: Post) -> AsyncIterator[Tenure]:
    made = Tenure("sync://", settings=Settings.from_environ({"TENURE_MAIL_DEFAULT_URL": post.url(timeout=5)}))
    yield made
    await made.aclose()


async def test_a_mail_is_sent_by_the_push(app: Tenure, post: Post) -> None:
    await app.mail.push(mail())
    assert post.copies("ana@example.com") == 1


async def test_what_goes_wrong_is_raised_there(app: Tenure, post: Post) -> None:
    post.at_mail.append(says("451 4.3.0 later"))
    with pytest.raises(MailDeferred):
        await app.mail.push(mail())
    post.at_rcpt["b@example.com"].extend([says("550 5.1.1 nobody")] * 2)
    with pytest.raises(MailRefused, match="refused for good for 1 recipients: 550"):
        await app.mail.push(mail("a@example.com", "b@example.com"))
    assert post.copies("a@example.com") == 1
    post.at_rcpt["b@example.com"].append(says("450 4.2.1 busy"))
    await app.mail.push(mail("a@example.com", "b@example.com"))
    assert (post.copies("a@example.com"), post.copies("b@example.com")) == (2, 1)


async def test_connections_of_another_loop_are_closed_too(app: Tenure, post: Post) -> None:
    await asyncio.to_thread(app.mail.push_sync, mail())  # on the loop in the background
    await app.mail.push(mail())
    assert post.connections == 2
    await app.aclose()

    async def closed() -> bool:
        return all(server.transport is None or server.transport.is_closing() for server in post.servers)

    await eventually_async(closed)
