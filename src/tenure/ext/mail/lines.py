"""Connections to a transport's server: as many as it allows, reused while they are warm."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiosmtplib import SMTP
from aiosmtplib.errors import SMTPException, SMTPResponseException

from tenure.ext.mail.errors import MailDeferred
from tenure.ext.mail.transports import Transport

IDLE: Final = 30.0
"""Seconds that an unused connection is kept: servers end them, and count those that lie about."""
GOODBYE: Final = 2.0
"""Seconds for the answer to QUIT."""
_STARTTLS: Final = {"required": True, "auto": None, "never": False}


class Lines:
    """The connections to one server, of one event loop."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._free = asyncio.Semaphore(transport.connections)
        self._idle: list[tuple[SMTP, asyncio.TimerHandle]] = []

    @asynccontextmanager
    async def line(self) -> AsyncIterator[SMTP]:
        """Lend a connection that has just answered; raises ``MailDeferred`` when there is none to be had.

        One that comes back with an exception is closed: nobody knows what its server will say next.
        """
        async with self._free:
            smtp = await self._warm() or await self._connected()
            try:
                yield smtp
            except BaseException:
                smtp.close()
                raise
            if smtp.is_connected:
                timer = asyncio.get_running_loop().call_later(IDLE, self._expire, smtp)
                self._idle.append((smtp, timer))

    async def aclose(self) -> None:
        """Take leave on all idle connections."""
        idle, self._idle = self._idle, []
        for smtp, timer in idle:
            timer.cancel()
            with contextlib.suppress(SMTPException, OSError):
                await smtp.quit(timeout=GOODBYE)
            smtp.close()

    def close(self) -> None:
        """Drop all idle connections."""
        for smtp, timer in self._idle:
            timer.cancel()
            smtp.close()
        self._idle.clear()

    async def _warm(self) -> SMTP | None:
        while self._idle:
            smtp, timer = self._idle.pop()
            timer.cancel()
            try:
                # The server may have ended it meanwhile: found out here, it costs no attempt.
                await smtp.rset(timeout=self._transport.timeout)
            except (SMTPException, OSError):
                smtp.close()
                continue
            except BaseException:
                smtp.close()
                raise
            return smtp
        return None

    async def _connected(self) -> SMTP:
        transport = self._transport
        smtp = SMTP(
            hostname=transport.host,
            port=transport.port,
            username=transport.username or None,
            password=transport.password or None,
            local_hostname=transport.helo,
            timeout=transport.timeout,
            use_tls=transport.tls,
            start_tls=None if transport.tls else _STARTTLS[transport.starttls],
            cert_bundle=transport.ca,
        )
        try:
            await smtp.connect()
        except (SMTPException, OSError, ValueError) as error:
            smtp.close()
            # Never its text: a server may repeat what the login has sent.
            code = f" {error.code}" if isinstance(error, SMTPResponseException) else ""
            raise MailDeferred(
                f"mail transport {transport.name!r} ({transport.key}): no connection, or no login "
                f"({type(error).__name__}{code}); nobody has the message"
            ) from None
        except BaseException:
            smtp.close()
            raise
        return smtp

    def _expire(self, smtp: SMTP) -> None:
        self._idle = [entry for entry in self._idle if entry[0] is not smtp]
        smtp.close()
