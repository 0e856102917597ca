"""A mail server, and an application whose worker knows it."""

from collections.abc import AsyncIterator, Callable
from email.message import EmailMessage

import pytest

from tenure import Tenure
from tenure.config import Settings
from tests.support.mail import Post, post_office


def make_app(namespace: str, url: str) -> Tenure:
    """Return an application with this default transport, its jobs in memory."""
    settings = Settings.from_environ({"TENURE_MAIL_DEFAULT_URL": url})
    return Tenure("memory://", namespace=namespace, settings=settings)


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    """The server."""
    async with post_office() as post:
        yield post


@pytest.fixture
async def app(namespace: str, post: Post) -> AsyncIterator[Tenure]:
    """Its jobs are in memory, and its default transport is that server."""
    made = make_app(namespace, post.url(timeout=5, data_timeout=5))
    yield made
    await made.aclose()


def mail(*recipients: str, **headers: str) -> EmailMessage:
    """Return a message as a program writes one."""
    message = EmailMessage()
    message["From"] = "Shop <shop@shop.test>"
    message["To"] = ", ".join(recipients or ("ana@example.com",))
    message["Subject"] = "Rechnung für Äpfel"
    for name, value in headers.items():
        message[name] = value
    message.set_content("Grüße\n.\nund ein Punkt am Anfang einer Zeile\n")
    return message


@pytest.fixture
def make() -> Callable[..., EmailMessage]:
    """What makes messages."""
    return mail


@pytest.fixture
async def impatient(namespace: str, post: Post) -> AsyncIterator[Tenure]:
    """The application, with a transport that does not wait long for an answer."""
    made = make_app(namespace, post.url(timeout=0.3, data_timeout=0.3))
    yield made
    await made.aclose()
