"""Connections: redis-py's own, used as transport, so that URLs, TLS, users and passwords stay its trade.

Its retries are off (it would repeat a script up to ten times), its replies are taken raw, and each exchange ends in a
reply or in one of the troubles of ``trouble.py``. A link is used by one call at a time; a call that needs one while all
are in use opens another, so no call waits for another's answer. Everything that depends on redis-py's types is here and
in ``server.py``.
"""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Iterable
from typing import Any, Protocol, cast

from hiredis import pack_command
from redis import exceptions

from tenure.drivers.redis import refusals
from tenure.drivers.redis.trouble import Elsewhere, Lost, Rejected, Trouble, Unloaded, Unsent

Reply = Any
"""What the server answered: bytes, an integer, None, or a list of replies."""

ROLE_SECONDS = 5.0
"""How long a server may take to tell what it is."""


def pack(*arguments: bytes | str | int) -> bytes:
    """Return a command as it goes over the wire."""
    packed: bytes = pack_command(cast("Any", arguments))
    return packed


class _Connection(Protocol):
    """What is used of redis-py's asyncio connection."""

    @property
    def is_connected(self) -> bool: ...
    async def connect(self) -> None: ...
    async def can_read(self) -> bool: ...
    async def send_packed_command(self, command: Iterable[bytes], *, check_health: bool) -> None: ...
    async def read_response(self) -> Any: ...
    async def disconnect(self, *, nowait: bool) -> None: ...


class _BlockingConnection(Protocol):
    """What is used of redis-py's blocking connection."""

    @property
    def is_connected(self) -> bool: ...
    def connect(self) -> None: ...
    def can_read(self, timeout: float = 0) -> bool: ...
    def send_packed_command(self, command: Iterable[bytes], *, check_health: bool) -> None: ...
    def read_response(self) -> Any: ...
    def disconnect(self) -> None: ...


_ASKING = pack(b"ASKING")
_ROLE = pack(b"ROLE")


class Link:
    """One connection of one event loop, for one exchange at a time."""

    def __init__(self, connection: _Connection, place: str, *, primary_only: bool = False) -> None:
        self._connection = connection
        self._place = place
        self._primary_only = primary_only

    async def exchange(self, command: bytes, timeout: float) -> Reply:
        """Send a packed command and return its reply, or raise a ``Trouble``; connects first where need be."""
        await self._ready()
        return await self._sent(command, timeout)

    async def ask(self, command: bytes, timeout: float) -> Reply:
        """Do what ``exchange`` does, as one whom another node has sent here."""
        await self._ready()
        connection = self._connection
        try:
            async with asyncio.timeout(timeout):
                await connection.send_packed_command((_ASKING, command), check_health=False)
                await connection.read_response()
        except (exceptions.RedisError, OSError) as error:
            await self.close()  # the command's own reply is still to come
            raise _unanswered(error) from error
        return await self._answer(timeout)

    async def _ready(self) -> None:
        connection = self._connection
        try:
            # A connection that the server has closed meanwhile must not turn "not sent" into "unknown".
            if connection.is_connected and await connection.can_read():
                await connection.disconnect(nowait=True)
            if not connection.is_connected:
                await self._open()
        except (exceptions.RedisError, OSError) as error:
            raise _unconnected(error, self._place) from error

    async def _open(self) -> None:
        connection = self._connection
        try:
            await connection.connect()
            if self._primary_only:
                async with asyncio.timeout(ROLE_SECONDS):
                    await connection.send_packed_command((_ROLE,), check_health=False)
                    _check_primary(await connection.read_response())
        except BaseException:
            # Half a handshake must not be taken for a connection.
            await self.close()
            raise

    async def go_on(self, command: bytes, timeout: float) -> Reply:
        """Send a packed command on the connection as it is; ``Lost`` when it was closed meanwhile."""
        if not self._connection.is_connected:
            raise Lost("closed meanwhile")
        return await self._sent(command, timeout)

    async def _sent(self, command: bytes, timeout: float) -> Reply:
        connection = self._connection
        try:
            async with asyncio.timeout(timeout):
                await connection.send_packed_command((command,), check_health=False)
                return await connection.read_response()
        except (exceptions.RedisError, OSError) as error:
            # A timeout has closed the connection already (TimeoutError is an OSError).
            raise _unanswered(error) from error

    async def _answer(self, timeout: float) -> Reply:
        try:
            async with asyncio.timeout(timeout):
                return await self._connection.read_response()
        except (exceptions.RedisError, OSError) as error:
            raise _unanswered(error) from error

    async def close(self, *, wait: bool = False) -> None:
        """Close it; idempotent. ``wait``: until it is closed, if its server takes no longer than to connect.

        TLS says goodbye first: a loop that ended meanwhile would leave the socket open.
        """
        with contextlib.suppress(exceptions.TimeoutError):
            await self._connection.disconnect(nowait=not wait)


class BlockingLink:
    """One blocking connection, for one exchange at a time."""

    def __init__(self, connection: _BlockingConnection, place: str, *, primary_only: bool = False) -> None:
        self._connection = connection
        self._place = place
        self._primary_only = primary_only

    def exchange(self, command: bytes) -> Reply:
        """Send a packed command and return its reply, or raise a ``Trouble``; connects first where need be."""
        self._ready()
        return self._sent(command)

    def ask(self, command: bytes) -> Reply:
        """Do what ``exchange`` does, as one whom another node has sent here."""
        self._ready()
        try:
            self._connection.send_packed_command((_ASKING, command), check_health=False)
            self._connection.read_response()
        except (exceptions.RedisError, OSError) as error:
            self.close()  # the command's own reply is still to come
            raise _unanswered(error) from error
        return self._answer()

    def _ready(self) -> None:
        connection = self._connection
        try:
            if connection.is_connected and self._stale():
                connection.disconnect()
            if not connection.is_connected:
                self._open()
        except (exceptions.RedisError, OSError) as error:
            raise _unconnected(error, self._place) from error

    def _open(self) -> None:
        connection = self._connection
        try:
            connection.connect()
            if self._primary_only:
                connection.send_packed_command((_ROLE,), check_health=False)
                _check_primary(connection.read_response())
        except BaseException:
            self.close()
            raise

    def go_on(self, command: bytes) -> Reply:
        """Send a packed command on the connection as it is; ``Lost`` when it was closed meanwhile."""
        if not self._connection.is_connected:
            raise Lost("closed meanwhile")
        return self._sent(command)

    def _sent(self, command: bytes) -> Reply:
        connection = self._connection
        try:
            connection.send_packed_command((command,), check_health=False)
            return connection.read_response()
        except (exceptions.RedisError, OSError) as error:
            raise _unanswered(error) from error

    def _answer(self) -> Reply:
        try:
            return self._connection.read_response()
        except (exceptions.RedisError, OSError) as error:
            raise _unanswered(error) from error

    def _stale(self) -> bool:
        try:
            return self._connection.can_read(0)
        except (exceptions.RedisError, OSError):
            return True

    def close(self) -> None:
        """Close it; idempotent."""
        self._connection.disconnect()


def _check_primary(role: Reply) -> None:
    if role[0] != b"master":
        raise Rejected("READONLY", refusals.REFUSALS["READONLY"])


_SAID = (exceptions.AuthenticationError, exceptions.ResponseError, exceptions.BusyLoadingError)
"""The server's own words, however redis-py wraps them."""


def _unconnected(error: Exception, place: str) -> Trouble:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, _SAID):
            return _rejected(cause)
        if isinstance(cause, OSError):
            break
        cause = cause.__context__
    # redis-py puts the system's words into a text of its own; the system's alone are clearer.
    why = (cause is not None and cause.strerror) or type(error).__name__
    return Unsent(f"no connection to {place} ({why}); nothing was sent")


def _unanswered(error: Exception) -> Trouble:
    if isinstance(error, exceptions.NoScriptError):
        return Unloaded("the script is not loaded")
    if isinstance(error, _SAID):
        return _rejected(error)
    if isinstance(error, exceptions.ConnectionError) and "max number of clients" in str(error):
        return Unsent("the server has as many clients as it takes (maxclients); nothing was sent")
    if reason := _untrusted(error):
        return Unsent(f"the server does not take this side's certificate ({reason}); nothing was sent")
    return Lost(type(error).__name__)


_ALERT = re.compile("ALERT_(UNKNOWN_CA|.*CERTIFICATE)")


def _untrusted(error: BaseException | None) -> str | None:
    # TLS 1.3 tells it only when the first answer is read; until then the server has executed nothing.
    while error is not None:
        if isinstance(error, ssl.SSLError) and _ALERT.search(error.reason or ""):
            return error.reason
        error = error.__context__
    return None


def _rejected(error: exceptions.RedisError) -> Rejected:
    text = str(error)
    code = refusals.code(text, error.status_code)
    problem = refusals.REFUSALS.get(code, "its words are not shown; see its log")
    if isinstance(error, exceptions.AskError):  # a MovedError is one, too
        asking = not isinstance(error, exceptions.MovedError)
        return Elsewhere(code, problem, slot=error.slot_id, host=error.host, port=error.port, asking=asking)
    return Rejected(code, problem, partly=refusals.broke(text, error.status_code))
