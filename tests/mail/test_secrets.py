"""A canary for a password: in no payload, log, listing or error, whatever the server does."""

import base64
import logging
from collections.abc import AsyncIterator

import pytest
from aiosmtpd.smtp import SMTP

from tenure import Tenure
from tests.mail.conftest import mail, make_app
from tests.support.mail import Fault, Post, post_office, says
from tests.worker.support import drain, until_counts, working

PASSWORD = "c4nary/p@ss"
FORMS = [
    PASSWORD,
    "c4nary%2Fp%40ss",
    base64.b64encode(PASSWORD.encode()).decode(),
    base64.b64encode(f"\0user\0{PASSWORD}".encode()).decode(),
]


@pytest.fixture
async def guarded() -> AsyncIterator[Post]:
    async with post_office(auth_required=True) as post:
        yield post


@pytest.fixture
async def app(namespace: str, guarded: Post) -> AsyncIterator[Tenure]:
    made = make_app(namespace, guarded.url("user:c4nary%2Fp%40ss"))
    yield made
    await made.aclose()


async def everything(app: Tenure, caplog: pytest.LogCaptureFixture) -> str:
    """All that is stored, logged, listed and shown."""
    failed = await app.failed("default", limit=100)
    claimed = await app.queue().claim(["default"], limit=100, lease=60, wait=0)
    shown = [repr(app), repr(app.mail), repr(app.settings), str(app.infrastructure())]
    told = [f"{record.failure.message} {record.failure.traceback} {record!r}" for record in failed]
    logged = [f"{record.getMessage()} {record.exc_info} {vars(record)}" for record in caplog.records]
    return "\n".join([*shown, *told, *logged, *(lease.envelope.decode() for lease in claimed.leases)])


# S19
@pytest.mark.parametrize(
    "fault",
    [None, *(says(f"{code} you said {' '.join(FORMS)}") for code in (451, 550))],
    ids=["refused", "451", "550"],
)
async def test_a_password_appears_nowhere(
    app: Tenure, guarded: Post, caplog: pytest.LogCaptureFixture, fault: Fault | None
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, "mail.log")  # the server's own log, in the same process
    guarded.password = PASSWORD if fault else "another"
    guarded.at_mail.extend([fault] * 2 if fault else [])
    await app.mail.push(mail(), max_attempts=2, backoff=0.01)
    async with working(app):
        await until_counts(app, failed=1)
    assert guarded.logins[0] == ("user", PASSWORD)
    await app.mail.push(mail())
    text = await everything(app, caplog)
    assert "MailRefused" in text or "MailDeferred" in text
    assert not [form for form in FORMS if form in text]
    assert not guarded.received


async def test_a_login_that_works_sends(app: Tenure, guarded: Post) -> None:
    guarded.password = PASSWORD
    await app.mail.push(mail())
    await drain(app)
    assert len(guarded.received) == 1


async def test_a_server_that_says_the_password_at_the_login_is_not_quoted(
    app: Tenure, guarded: Post, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def echo(server: SMTP, *_: object) -> str:
        return f"535 5.7.8 not {PASSWORD}"

    monkeypatch.setattr(guarded, "handle_AUTH", echo, raising=False)
    await app.mail.push(mail(), max_attempts=1)
    await drain(app)
    text = await everything(app, caplog)
    assert "no connection, or no login" in text
    assert not [form for form in FORMS if form in text]
