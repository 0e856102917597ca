"""Addresses of database servers, read as strictly as those of other stores: no message quotes any of a URL."""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NoReturn
from urllib.parse import quote, unquote

import msgspec

from tenure.errors import ConfigurationError

Server = Literal["postgresql", "mysql"]

SCHEMES: Final[Mapping[str, Server]] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_PORTS: Final[Mapping[Server, int]] = {"postgresql": 5432, "mysql": 3306}
_SOCKET: Final[Mapping[Server, str]] = {"postgresql": "host", "mysql": "unix_socket"}
"""The parameter that names a socket instead of a host."""
_OWN: Final = ("table_prefix", "schema")
_PARAMETERS: Final[Mapping[Server, frozenset[str]]] = {
    "postgresql": frozenset(
        {"host", "sslmode", "sslrootcert", "sslcert", "sslkey", "passfile", "target_session_attrs", *_OWN}
    ),
    "mysql": frozenset({"unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_identity", "table_prefix"}),
}
_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?", re.ASCII)
_IPV6: Final = re.compile(r"\[[0-9A-Fa-f:.]+\]", re.ASCII)
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_LOCAL: Final = frozenset({"", "localhost", "127.0.0.1", "::1"})


class DatabaseUrl(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a URL. Its ``repr`` shows the kind of server alone."""

    server: Server
    host: str = ""
    port: int
    user: str = ""
    password: str = ""
    database: str
    parameters: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<{self.server} address>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("server", self.server)]

    @property
    def local(self) -> bool:
        """Whether the server is certainly on this host."""
        return self.host in _LOCAL and not ("host" in self.parameters and self.socket is None)

    @property
    def socket(self) -> str | None:
        """The path of the socket, or of its directory, if there is one."""
        path = self.parameters.get(_SOCKET[self.server])
        return path if path and path.startswith("/") else None

    @property
    def text(self) -> str:
        """The URL, normalized, everything in it percent-encoded."""
        user = f"{quote(self.user, safe='')}{self.password and ':' + quote(self.password, safe='')}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        query = "&".join(f"{name}={quote(value, safe='/')}" for name, value in sorted(self.parameters.items()))
        where = f"{user and user + '@'}{host and f'{host}:{self.port}'}"
        return f"{self.server}://{where}/{quote(self.database, safe='')}{query and '?' + query}"


def of(url: str, key: str) -> DatabaseUrl:
    """Return the parts of a URL, or raise ``ConfigurationError`` that names the key."""
    scheme, _, rest = url.partition("://")
    server = SCHEMES.get(scheme.partition("+")[0].lower())
    if server is None:
        _refuse(key, "must be a postgresql:// or mysql:// URL")
    return read(server, rest, key)


def read(server: Server, rest: str, key: str) -> DatabaseUrl:
    """Return the parts of what stands behind ``://``, or raise ``ConfigurationError`` that names the key."""
    if "#" in rest:
        _refuse(key, "holds a raw '#': write it as %23")
    before, _, query = rest.partition("?")
    authority, _, path = before.partition("/")
    if authority.count("@") > 1 or "@" in path or "@" in query:
        _refuse(key, "has an '@' in the wrong place: percent-encode '/', '?' and '@' in the user and the password")
    userinfo, _, hostport = authority.rpartition("@")
    user, _, password = userinfo.partition(":")
    parameters = _read_parameters(server, query, key)
    host, port = _host_and_port(server, hostport, key)
    database = _unquoted(path, key)
    if not database or "/" in database or "\0" in database:
        _refuse(key, f"must name a database: {server}://user@host/database")
    if host and _SOCKET[server] in parameters:
        _refuse(key, f"has both a host and the parameter {_SOCKET[server]}")
    return DatabaseUrl(
        server=server,
        host=host,
        port=port,
        user=_unquoted(user, key),
        password=_unquoted(password, key),
        database=database,
        parameters=parameters,
    )


def _host_and_port(server: Server, text: str, key: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon:
        host = text
    if host and not _HOST.fullmatch(host) and not _IPV6.fullmatch(host):
        _refuse(key, "has a host that is neither a name nor an address; an IPv6 address needs brackets")
    if not colon:
        return host.strip("[]"), _PORTS[server]
    if not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65536:
        _refuse(key, "has a port that is not a number from 1 to 65535")
    return host.strip("[]"), int(port)


def _read_parameters(server: Server, query: str, key: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        if name not in _PARAMETERS[server] or not value:
            _refuse(key, "has parameters that tenure does not know, or a raw '?' (write it as %3F)")
        if name in given:
            _refuse(key, f"has the parameter {name} twice")
        given[name] = _unquoted(value, key)
    for name, longest in (("table_prefix", 32), ("schema", 63)):
        if name in given and (not _NAME.fullmatch(given[name]) or len(given[name]) > longest):
            _refuse(key, f"has a {name} that is not 1 to {longest} of a-z, 0-9 and '_', no digit first")
    return given


def _unquoted(text: str, key: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        _refuse(key, "holds percent-encoded bytes that are not UTF-8")


def _refuse(key: str, problem: str) -> NoReturn:
    raise ConfigurationError(key, problem)
