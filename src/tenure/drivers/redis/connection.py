"""Connections: redis-py's own, used as transport, so that URLs, TLS, users and passwords stay its trade.

Its retries are off (it would repeat a script up to ten times), its replies are taken raw, and each exchange ends in a
reply or in one of the troubles of ``trouble.py``. A link is used by one call at a time; a call that needs one while all
are in use opens another, so no call waits for another's answer. Everything that depends on redis-py's types is here.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Protocol, cast

import redis.asyncio
import redis.connection
from hiredis import pack_command
from redis import exceptions
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.retry import Retry as BlockingRetry

from tenure.drivers.redis import refusals
from tenure.drivers.redis.trouble import Lost, Rejected, Trouble, Unloaded, Unsent
from tenure.errors import ConfigurationError, NotSupported

Reply = Any
"""What the server answered: bytes, an integer, None, or a list of replies."""

_KEPT = frozenset(
    {
        *("host", "port", "path", "db", "username", "password", "credential_provider", "client_name"),
        *("socket_keepalive", "socket_keepalive_options", "socket_type", "socket_connect_timeout"),
    }
)
_CONNECT_TIMEOUT = 5.0
MOST_IDLE = 16
"""How many links of one event loop are kept open while nobody uses them."""


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


class Endpoint:
    """Where the server is and how to get in. Opens nothing itself; its repr shows no password."""

    def __init__(self, kind: type, options: dict[str, Any]) -> None:
        self._kind = kind
        kept = {name: value for name, value in options.items() if name in _KEPT or name.startswith("ssl_")}
        self._options = {"socket_connect_timeout": _CONNECT_TIMEOUT, **kept}

    @classmethod
    def from_url(cls, url: str) -> "Endpoint":
        """Read a ``redis://``, ``rediss://`` or ``unix://`` URL; ``ConfigurationError`` does not show it."""
        scheme, colon, rest = url.partition("://")
        known = {"valkey": "redis", "valkeys": "rediss"}.get(scheme, scheme)
        if known not in {"redis", "rediss", "unix"} or not colon:
            raise ConfigurationError("url", "not a redis://, rediss:// or unix:// URL")
        try:
            options: dict[str, Any] = dict(parse_url(f"{known}://{rest}"))
        except ValueError:
            raise ConfigurationError("url", "not a valid Redis URL (its content is not shown)") from None
        return cls(options.pop("connection_class", redis.asyncio.Connection), options)

    @classmethod
    def of(cls, client: "redis.asyncio.Redis") -> "Endpoint":
        """Take the place and the credentials of a client; its connections stay its own."""
        pool = getattr(client, "connection_pool", None)
        options = dict(getattr(pool, "connection_kwargs", {"connection_pool": None}))
        if "connection_pool" in options:
            # A cluster's client has no pool of its own, and Sentinel's pool resolves names for its connections.
            raise NotSupported("redis", "clients of Sentinel or of a cluster")
        return cls(cast("type", getattr(pool, "connection_class", None)), options)

    def link(self) -> "Link":
        """Return a new connection for the running event loop, not opened yet."""
        connection = self._kind(
            **self._options,
            socket_timeout=None,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            driver_info=None,
            decode_responses=False,
        )
        return Link(cast("_Connection", connection), str(self))

    def blocking_link(self, timeout: float) -> "BlockingLink":
        """Return a new blocking connection, not opened yet; ``timeout`` seconds are allowed for each answer."""
        if issubclass(self._kind, redis.asyncio.SSLConnection):
            kind: type = redis.connection.SSLConnection
        elif issubclass(self._kind, redis.asyncio.UnixDomainSocketConnection):
            kind = redis.connection.UnixDomainSocketConnection
        else:
            kind = redis.connection.Connection
        connection = kind(
            **self._options,
            socket_timeout=timeout,
            retry=BlockingRetry(NoBackoff(), 0),
            protocol=2,
            driver_info=None,
            decode_responses=False,
        )
        return BlockingLink(cast("_BlockingConnection", connection), str(self))

    def __str__(self) -> str:
        path = self._options.get("path")
        return str(path) if path else f"{self._options.get('host', 'localhost')}:{self._options.get('port', 6379)}"

    def __repr__(self) -> str:
        return f"Endpoint({self})"


class Link:
    """One connection of one event loop, for one exchange at a time."""

    def __init__(self, connection: _Connection, place: str) -> None:
        self._connection = connection
        self._place = place

    async def exchange(self, command: bytes, timeout: float) -> Reply:
        """Send a packed command and return its reply, or raise a ``Trouble``; connects first where need be."""
        connection = self._connection
        try:
            # A connection that the server has closed meanwhile must not turn "not sent" into "unknown".
            if connection.is_connected and await connection.can_read():
                await connection.disconnect(nowait=True)
            if not connection.is_connected:
                await connection.connect()
        except (exceptions.RedisError, OSError) as error:
            raise _unconnected(error, self._place) from error
        return await self._sent(command, timeout)

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

    async def close(self) -> None:
        """Close it; idempotent."""
        await self._connection.disconnect(nowait=True)


class BlockingLink:
    """One blocking connection, for one exchange at a time."""

    def __init__(self, connection: _BlockingConnection, place: str) -> None:
        self._connection = connection
        self._place = place

    def exchange(self, command: bytes) -> Reply:
        """Send a packed command and return its reply, or raise a ``Trouble``; connects first where need be."""
        connection = self._connection
        try:
            if connection.is_connected and self._stale():
                connection.disconnect()
            if not connection.is_connected:
                connection.connect()
        except (exceptions.RedisError, OSError) as error:
            raise _unconnected(error, self._place) from error
        return self._sent(command)

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

    def _stale(self) -> bool:
        try:
            return self._connection.can_read(0)
        except (exceptions.RedisError, OSError):
            return True

    def close(self) -> None:
        """Close it; idempotent."""
        self._connection.disconnect()


class LinkPool:
    """The links of one event loop: one for each call that is under way, kept for the next."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._idle: list[Link] = []
        self._busy: set[Link] = set()

    def take(self) -> Link:
        """Return a link that nobody uses."""
        link = self._idle.pop() if self._idle else self._endpoint.link()
        self._busy.add(link)
        return link

    async def give(self, link: Link) -> None:
        """Take a link back. One that had trouble comes back closed, and is opened again by its next exchange."""
        self._busy.discard(link)
        if len(self._idle) < MOST_IDLE:
            self._idle.append(link)
        else:
            await link.close()

    @property
    def size(self) -> int:
        """How many links there are."""
        return len(self._idle) + len(self._busy)

    async def close(self) -> None:
        """Close all links; a call that is under way on one loses its answer."""
        for link in [*self._idle, *self._busy]:
            await link.close()
        self._idle.clear()


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
    return Lost(type(error).__name__)


def _rejected(error: exceptions.RedisError) -> Rejected:
    text = str(error)
    code = refusals.code(text, error.status_code)
    partly = refusals.broke(text, error.status_code)
    return Rejected(code, refusals.REFUSALS.get(code, "its words are not shown; see its log"), partly=partly)
