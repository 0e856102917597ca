"""Mail over TLS: from the first byte, or once STARTTLS was said; what cannot be trusted gets no mail."""

import ssl
from collections.abc import Iterator

import pytest

from tenure import Tenure
from tests.mail.conftest import mail, make_app
from tests.support.mail import Post, post_office
from tests.support.tls import Certificates, certificates
from tests.worker.support import drain


@pytest.fixture(scope="module")
def trusted() -> Iterator[Certificates]:
    with certificates() as found:
        yield found


def context(trusted: Certificates) -> ssl.SSLContext:
    found = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    found.load_cert_chain(trusted.server_cert, trusted.server_key)
    return found


async def problem(app: Tenure) -> str:
    """Send one mail in one attempt, and return why it failed, if it did."""
    await app.mail.push(mail(), max_attempts=1)
    await drain(app)
    await app.aclose()
    failed = await app.failed("default")
    await app.aclose()
    return failed[0].failure.message if failed else ""


async def test_starttls_with_a_server_that_is_trusted(namespace: str, trusted: Certificates) -> None:
    async with post_office(tls_context=context(trusted), require_starttls=True) as post:
        assert not await problem(make_app(namespace, post.url(starttls="required", ca=trusted.ca)))
        assert len(post.received) == 1


async def test_tls_from_the_first_byte(namespace: str, trusted: Certificates) -> None:
    async with post_office(over=context(trusted)) as post:
        url = post.url(ca=trusted.ca).replace("smtp://", "smtps://")
        assert not await problem(make_app(namespace, url))
        assert len(post.received) == 1


async def test_a_stranger_gets_no_mail(namespace: str, trusted: Certificates) -> None:
    async with post_office(tls_context=context(trusted)) as post:
        assert "no connection, or no login" in await problem(make_app(namespace, post.url()))
        assert not post.received


async def test_a_server_that_offers_no_tls_gets_neither_password_nor_mail(namespace: str, post: Post) -> None:
    url = post.url("user:c4nary", starttls="required")
    assert "no connection, or no login (SMTPException)" in await problem(make_app(namespace, url))
    assert not post.logins
    assert not post.received
