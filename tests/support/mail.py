# ruff: noqa: ARG002 - the library says which arguments its hooks take
"""A real SMTP server (aiosmtpd) that fails as a test says, and the mails that it answered for."""

import asyncio
import dataclasses
import ssl
import warnings
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.support.processes import eventually_async

Fault = Callable[[SMTP], Awaitable[str]]


def says(status: str) -> Fault:
    """It answers so instead."""

    async def fault(_: SMTP) -> str:
        return status

    return fault


async def hangs(_: SMTP) -> str:
    """It never answers."""
    await asyncio.Event().wait()
    return "250 too late"


async def drops(server: SMTP) -> str:
    """The connection is gone."""
    _abort(server)
    return "250 into the void"


def _abort(server: SMTP) -> None:
    if isinstance(server.transport, asyncio.Transport):
        server.transport.abort()


@dataclasses.dataclass(frozen=True)
class Received:
    """A mail that the server took."""

    sender: str
    recipients: tuple[str, ...]
    content: bytes

    @property
    def message(self) -> EmailMessage:
        found = BytesParser(policy=policy.default).parsebytes(self.content)
        assert isinstance(found, EmailMessage)
        return found

    @property
    def message_id(self) -> str:
        return str(self.message["Message-ID"])


class Post:
    """What the server does and has done. Each fault happens once, in order."""

    def __init__(self) -> None:
        self.port = 0
        self.received: list[Received] = []
        self.servers: list[SMTP] = []
        """One a connection."""
        self.logins: list[tuple[str, str]] = []
        self.commands: list[str] = []
        self.at_mail: deque[Fault] = deque()
        self.at_rcpt: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.at_data: deque[Fault] = deque()
        """Instead of taking the mail."""
        self.after_data: deque[Fault] = deque()
        """Instead of telling that the mail was taken."""
        self.password: str | None = None

    def url(self, login: str = "", **parameters: object) -> str:
        """Return a transport's URL."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"smtp://{login}{'@' if login else ''}127.0.0.1:{self.port}{'?' if query else ''}{query}"

    @property
    def connections(self) -> int:
        """How many there were."""
        return len(self.servers)

    async def hang_up(self) -> None:
        """End all connections, as a server does with idle ones."""
        for server in self.servers:
            _abort(server)
        await eventually_async(self._silent)

    async def _silent(self) -> bool:
        return all(server.transport is None or server.transport.is_closing() for server in self.servers)

    def copies(self, address: str) -> int:
        """Count the mails that one recipient got."""
        return sum(mail.recipients.count(address) for mail in self.received)

    # ------------------------------------------------------------------------------------------------ aiosmtpd's hooks

    async def handle_MAIL(  # noqa: N802 - the library's names
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.commands.append("MAIL")
        if self.at_mail:
            return await self.at_mail.popleft()(server)
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.commands.append("RCPT")
        if self.at_rcpt[address]:
            return await self.at_rcpt[address].popleft()(server)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.commands.append("DATA")
        if self.at_data:
            return await self.at_data.popleft()(server)
        assert isinstance(envelope.content, bytes)
        self.received.append(Received(envelope.mail_from or "", tuple(envelope.rcpt_tos), envelope.content))
        if self.after_data:
            return await self.after_data.popleft()(server)
        return "250 OK"

    def authenticate(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=data.password.decode() == self.password, handled=False)


@asynccontextmanager
async def post_office(over: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[Post]:
    """Run a server in this loop, on a free port of the loopback interface."""
    post = Post()

    def connection() -> SMTP:
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of logins without TLS: it is loopback
            server = SMTP(
                post, hostname="mail.test", authenticator=post.authenticate, auth_require_tls=False, **options
            )
        post.servers.append(server)
        return server

    listening = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0, ssl=over)
    post.port = listening.sockets[0].getsockname()[1]
    try:
        yield post
    finally:
        listening.close()
        await post.hang_up()
        await listening.wait_closed()
