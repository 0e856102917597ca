"""Where a store is: read from a URL or from a client. Opens nothing."""

from pathlib import Path
from typing import Any, Final, cast

import redis.asyncio
from redis.asyncio.connection import parse_url

from tenure.drivers.redis.cluster import Cluster
from tenure.drivers.redis.credentials import Credentials, PasswordFile, Provider
from tenure.drivers.redis.sentinel import Sentinel
from tenure.drivers.redis.server import Server
from tenure.drivers.redis.topology import Alone, Topology
from tenure.errors import ConfigurationError, NotSupported
from tenure.urls import Address, parse

_PLAIN: Final = frozenset({"redis", "rediss", "unix"})
_FILES: Final = frozenset({"ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "password_file"})


class Endpoint:
    """Where a store is and how to get in; its repr shows no password."""

    def __init__(self, topology: Topology) -> None:
        self.topology: Topology = topology

    @classmethod
    def from_url(cls, url: str, *, credentials: Credentials | None = None) -> "Endpoint":
        """Read a URL; raises ``ConfigurationError``, which does not show it.

        ``redis://``, ``rediss://`` (TLS), ``unix://``, and ``redis+sentinel://`` and ``redis+cluster://``, which may
        be ``rediss+…`` as well. ``credentials`` is called for each connection that is made, instead of what the URL
        says; it returns a password, or a user's name and a password.
        """
        scheme, colon, rest = url.partition("://")
        plain, plus, _ = scheme.partition("+")
        known = {"valkey": "redis", "valkeys": "rediss"}.get(plain, plain)
        if known not in _PLAIN or not colon:
            raise ConfigurationError(
                "url", "not a redis://, rediss://, unix://, redis+sentinel:// or redis+cluster:// URL"
            )
        if not plus:
            return cls(Alone(_server(f"{known}://{rest}", credentials)))
        return cls(_several(parse(url, "url"), credentials))

    @classmethod
    def of(cls, client: "redis.asyncio.Redis") -> "Endpoint":
        """Take the place and the credentials of a client; its connections stay its own."""
        pool = getattr(client, "connection_pool", None)
        options = dict(getattr(pool, "connection_kwargs", {"connection_pool": None}))
        if "connection_pool" in options:
            # A cluster's client has no pool of its own, and Sentinel's pool resolves names for its connections.
            raise NotSupported("redis", "clients of Sentinel or of a cluster", "give their URL instead")
        return cls(Alone(Server(cast("type", getattr(pool, "connection_class", None)), options)))

    def __str__(self) -> str:
        return str(self.topology)

    def __repr__(self) -> str:
        return f"Endpoint({self})"


def _several(address: Address, credentials: Credentials | None) -> Topology:
    server = _server(address.base, credentials)
    if address.topology == "cluster":
        return Cluster([server.at(host, port) for host, port in address.hosts])
    username, password, file = address.sentinel_username, address.sentinel_password, address.sentinel_password_file
    watching: Credentials | None = _fixed(username, password) if password else None
    if file:
        watching = PasswordFile(username, _existing(file, "sentinel_password_file"))
    sentinel = _server(address.sentinel_base, watching)
    return Sentinel([sentinel.at(host, port) for host, port in address.hosts], address.master, server)


def _server(url: str, credentials: Credentials | None) -> Server:
    try:
        options: dict[str, Any] = dict(parse_url(url))
    except ValueError:
        raise ConfigurationError("url", "not a valid Redis URL (its content is not shown)") from None
    for name in _FILES & options.keys():
        _existing(options[name], name)
    file = options.pop("password_file", None)
    username, password = options.pop("username", ""), options.pop("password", "")
    configured = _fixed(username, password) if username or password else None
    if file is not None:
        configured = PasswordFile(username, Path(file))
    asked = [ask for ask in (credentials, configured) if ask is not None]
    if asked:
        options["credential_provider"] = Provider(*asked)
    return Server(options.pop("connection_class", redis.asyncio.Connection), options)


def _fixed(username: str, password: str) -> Credentials:
    return lambda: (username, password)


def _existing(file: str, name: str) -> Path:
    # Missing at first use it is a mistake to be told; missing later, when a connection is made, an outage.
    if not Path(file).exists():
        raise ConfigurationError(name, "names a file that does not exist")
    return Path(file)
