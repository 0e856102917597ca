"""One server: where it is and how to get in. Everything that is given to redis-py's connections is chosen here."""

from collections.abc import Mapping
from typing import Any, cast

import redis.asyncio
import redis.connection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.retry import Retry as BlockingRetry

from tenure.drivers.redis.connection import BlockingLink, Link

CONNECT_TIMEOUT = 5.0
"""Seconds that making a connection may take."""

_KEPT = frozenset(
    {
        *("host", "port", "path", "db", "username", "password", "credential_provider", "client_name"),
        *("socket_keepalive", "socket_keepalive_options", "socket_type", "socket_connect_timeout"),
    }
)


class Server:
    """One server and how to get in. Opens nothing itself; its repr shows no password."""

    def __init__(self, kind: type, options: Mapping[str, Any], *, primary_only: bool = False) -> None:
        """Take redis-py's asyncio kind of connection and its arguments; those about retries and replies are ours.

        ``primary_only``: a connection is used only when the server says, as it is made, that it is a primary.
        """
        self._kind = kind
        kept = {name: value for name, value in options.items() if name in _KEPT or name.startswith("ssl_")}
        self._options = {"socket_connect_timeout": CONNECT_TIMEOUT, **kept}
        self._primary_only = primary_only

    def at(self, host: str, port: int, *, primary_only: bool = False) -> "Server":
        """Return another server that is entered in the same way."""
        return Server(self._kind, {**self._options, "host": host, "port": port}, primary_only=primary_only)

    @property
    def host(self) -> str:
        """Its host's name or address."""
        return str(self._options.get("host", "localhost"))

    def link(self) -> Link:
        """Return a new connection for the running event loop, not opened yet."""
        connection = self._kind(
            **self._options,
            socket_timeout=None,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            driver_info=None,
            decode_responses=False,
        )
        return Link(cast("Any", connection), str(self), primary_only=self._primary_only)

    def blocking_link(self, timeout: float) -> BlockingLink:
        """Return a new blocking connection, not opened yet; ``timeout`` seconds are allowed for each answer."""
        if issubclass(self._kind, redis.asyncio.SSLConnection):
            kind: type = redis.connection.SSLConnection
        elif issubclass(self._kind, redis.asyncio.UnixDomainSocketConnection):
            kind = redis.connection.UnixDomainSocketConnection
        else:
            kind = redis.connection.Connection
        connection = kind(
            **{**self._options, "socket_connect_timeout": min(timeout, self._options["socket_connect_timeout"])},
            socket_timeout=timeout,
            retry=BlockingRetry(NoBackoff(), 0),
            protocol=2,
            driver_info=None,
            decode_responses=False,
        )
        return BlockingLink(cast("Any", connection), str(self), primary_only=self._primary_only)

    def __str__(self) -> str:
        path = self._options.get("path")
        return str(path) if path else f"{self.host}:{self._options.get('port', 6379)}"

    def __repr__(self) -> str:
        return f"Server({self})"
