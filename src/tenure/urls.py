"""Addresses of stores, read strictly: a URL that could mean two things is refused, and never quoted.

A password with a reserved character in it must be percent-encoded. Raw, it would cut the URL in the wrong place, and
what is left of it would name another host or another database.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, NoReturn
from urllib.parse import quote, unquote

import msgspec

from tenure.databases import SCHEMES, DatabaseUrl, read
from tenure.errors import ConfigurationError

Driver = Literal["redis", "redis-streams", "sqlite", "postgresql", "mysql", "memory", "sync"]
REDIS: Final = frozenset[Driver]({"redis", "redis-streams"})
"""The drivers that share everything but the way in which ready jobs stand in line."""

Topology = Literal["", "sentinel", "cluster"]

_REDIS: Final[Mapping[str, str]] = MappingProxyType(
    {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss"}
)
_TOPOLOGIES: Final[Mapping[str, Topology]] = MappingProxyType({"": "", "sentinel": "sentinel", "cluster": "cluster"})
_KNOWN: Final = (
    *("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"),
    *("redis+streams", "redis+streams+sentinel", "redis+streams+cluster"),
    *("sqlite", "postgresql", "mysql", "mariadb", "memory", "sync"),
)
_LIBRARY: Final = re.compile(r"\w+", re.ASCII)
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?", re.ASCII)
_TLS: Final = "ssl_(?:ca_certs|ca_path|certfile|keyfile|password|cert_reqs|check_hostname|min_version|ciphers)"
_PARAMETER: Final = re.compile(rf"({_TLS}|client_name|db|password_file|sentinel_[a-z_]+)=[^=]*")
_CHOICES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "ssl_cert_reqs": frozenset({"none", "optional", "required"}),
        "ssl_check_hostname": frozenset({"true", "false", "True", "False", "1", "0"}),
    }
)
_WATCHING: Final = frozenset({"sentinel_username", "sentinel_password", "sentinel_password_file"})
_MASTER: Final = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
PORT: Final = 6379
SENTINEL_PORT: Final = 26379
_DATABASES: Final = 2**31


class Address(msgspec.Struct, frozen=True):
    """Where a store is. Its ``repr`` shows the driver alone."""

    driver: Driver
    url: str = ""
    """For Redis and for a database server: normalized, everything in it percent-encoded."""
    path: str = ""
    """For SQLite."""
    host: str = ""
    topology: Topology = ""
    """For Redis, with several hosts: what they are."""
    hosts: tuple[tuple[str, int], ...] = ()
    """The sentinels, or the nodes of the cluster that are asked first."""
    base: str = ""
    """With several hosts: how each server of the store is entered, as the URL of one."""
    master: str = ""
    """The name by which the sentinels know the primary."""
    sentinel_base: str = ""
    """How each sentinel is entered, but for its credentials."""
    sentinel_username: str = ""
    sentinel_password: str = ""
    sentinel_password_file: str = ""
    database: DatabaseUrl | None = None
    """For a database server: the same in parts."""

    @property
    def local(self) -> bool:
        """Whether the store is certainly on this host."""
        if self.database is not None:
            return self.database.local
        hosts = [host for host, _ in self.hosts] or [self.host]
        return self.driver not in REDIS or all(host in {"", "localhost", "127.0.0.1", "::1"} for host in hosts)

    def __repr__(self) -> str:
        return f"<{self.driver} address>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("driver", self.driver)]


def parse(url: str, key: str) -> Address:
    """Return the address that a URL names, or raise ``ConfigurationError`` that names the key and not the URL."""
    scheme, separator, rest = url.strip().partition("://")
    scheme = scheme.lower()
    if not separator:
        _refuse(key, "is not a URL: it must be like redis://host:6379/0, sqlite:///file.db, memory:// or sync://")
    if any(character.isspace() or not character.isprintable() for character in rest):
        _refuse(key, "holds a space or a control character: percent-encode it")
    if _BAD_PERCENT.search(rest):
        _refuse(key, "holds a raw '%': write it as %25")
    plain, _, several = scheme.partition("+")
    line, _, behind = several.partition("+")
    if line == "streams" and behind in _TOPOLOGIES and plain in {*_REDIS, "unix"}:
        scheme = f"{plain}+{behind}" if behind else plain
        return msgspec.structs.replace(parse(f"{scheme}://{rest}", key), driver="redis-streams")
    if plain in _REDIS and several in _TOPOLOGIES:
        topology = _TOPOLOGIES[several]
        return _several(_REDIS[plain], topology, rest, key) if topology else _redis(_REDIS[plain], rest, key)
    if plain in SCHEMES and (not several or _LIBRARY.fullmatch(several)):
        # What stands behind a '+' is a library of other programs, which share the URL.
        database = read(SCHEMES[plain], rest, key)
        return Address(database.server, url=database.text, host=database.host, database=database)
    if scheme in _OTHERS:
        return _OTHERS[scheme](rest, key)
    raise ConfigurationError(key, f"has a scheme that tenure does not know; it knows {', '.join(_KNOWN)}")


def redis_address(
    *,
    hosts: Sequence[tuple[str, int]],
    db: int,
    username: str,
    password: str,
    tls: bool,
    parameters: Mapping[str, str],
    topology: Topology = "",
    master: str = "",
    host_key: str,
) -> Address:
    """Return the address of a Redis of which everything is given apart; a bare IPv6 host is right here."""
    scheme = "rediss" if tls else "redis"
    query = "&".join(
        f"{name}={quote(value, safe='' if name == 'sentinel_password' else '/')}" for name, value in parameters.items()
    )
    checked = [(_host(host, host_key), port) for host, port in hosts]
    if topology:
        return _grouped(scheme, topology, checked, master, db, username, password, query, host_key)
    (host, port), *_ = checked
    return _assembled(scheme, host, port, db, username, password, query)


def host_list(text: str, default_port: int, key: str) -> list[tuple[str, int]]:
    """Return the hosts of a list like ``one:6379,two,[::1]:6380``, or raise ``ConfigurationError``."""
    return [_host_and_port(part.strip(), key, default_port) for part in text.split(",")]


def _redis(scheme: str, rest: str, key: str) -> Address:
    authority, path, query = _split(rest, key)
    userinfo, at, hostport = authority.rpartition("@")
    _refuse_raw(path, query, key)
    username, password = _credentials(userinfo, key)
    host, port = _host_and_port(hostport, key) if hostport or at else ("localhost", PORT)
    _check_parameters(scheme, query, password, key)
    return _assembled(scheme, host, port, _database(path, query, key), username, password, query)


def _several(scheme: str, topology: Topology, rest: str, key: str) -> Address:
    authority, path, query = _split(rest, key)
    userinfo, _, hostports = authority.rpartition("@")
    _refuse_raw(path, query, key)
    username, password = _credentials(userinfo, key)
    master = ""
    if topology == "sentinel":
        _, _, path = path.partition("/")
        master, slash, path = path.partition("/")
        path = slash + path
        if not _MASTER.fullmatch(master):
            _refuse(key, "must name what the sentinels watch: redis+sentinel://host:26379,host:26379/name")
    hosts = host_list(hostports, SENTINEL_PORT if topology == "sentinel" else PORT, key)
    _check_parameters(scheme, query, password, key, topology)
    db = _database(path, query, key)
    return _grouped(scheme, topology, hosts, master, db, username, password, query, key)


def _refuse_raw(path: str, query: str, key: str) -> None:
    if "@" in path or "@" in query:
        _refuse(key, "has an '@' behind the host: percent-encode '/', '?' and '@' in the password")


def _unix(rest: str, key: str) -> Address:
    authority, path, query = _split(rest, key)
    if authority and not authority.endswith("@"):
        _refuse(key, "must be unix:///path/to/the.socket, with three slashes")
    username, password = _credentials(authority[:-1], key)
    if not path.strip("/"):
        _refuse(key, "names no socket")
    _check_parameters("unix", query, password, key)
    database = _database("", query, key)
    credentials = _quoted(username, password)
    return Address("redis", url=f"unix://{credentials}{path}?{_parameters(query, database)}")


def _check_parameters(scheme: str, query: str, password: str, key: str, topology: Topology = "") -> None:
    given: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        if name in given:
            _refuse(key, f"has the parameter {name} twice")
        given[name] = value
    for name, value in given.items():
        if name.startswith("ssl_") and scheme != "rediss":
            _refuse(key, "has TLS parameters, and is no rediss:// URL: nothing would be encrypted")
        if name.startswith("sentinel_") and (topology != "sentinel" or name not in _WATCHING):
            _refuse(key, "has parameters for sentinels that do not belong there")
        if name in _CHOICES and value not in _CHOICES[name]:
            _refuse(key, f"has a parameter {name} that is none of {', '.join(sorted(_CHOICES[name]))}")
        if not value:
            _refuse(key, f"has a parameter {name} that is empty")
    if password and "password_file" in given:
        _refuse(key, "has both a password and a password_file")


def _memory(rest: str, key: str) -> Address:
    if rest:
        _refuse(key, "memory:// takes nothing after it")
    return Address("memory")


def _sync(rest: str, key: str) -> Address:
    if rest:
        _refuse(key, "sync:// takes nothing after it")
    return Address("sync")


def _sqlite(rest: str, key: str) -> Address:
    if not rest.startswith("/"):
        _refuse(key, "must be sqlite:///file.db, or sqlite:////absolute/file.db")
    if "?" in rest or "#" in rest:
        _refuse(key, "takes no parameters: percent-encode '?' and '#' in the file's name")
    path = _unquoted(rest[1:], key)
    if not path or path.endswith("/") or "\0" in path:
        _refuse(key, "names no file")
    if path == ":memory:":
        _refuse(key, "cannot be in memory, which no other process sees; memory:// is for tests")
    return Address("sqlite", path=path)


def _split(rest: str, key: str) -> tuple[str, str, str]:
    if "#" in rest:
        _refuse(key, "holds a raw '#': write it as %23")
    before, _, query = rest.partition("?")
    authority, slash, path = before.partition("/")
    if query and not all(_PARAMETER.fullmatch(part) for part in query.split("&")):
        _refuse(key, "has parameters that tenure does not know, or a raw '?' (write it as %3F)")
    if authority.count("@") > 1:
        _refuse(key, "holds a raw '@' in its user or password: write it as %40")
    return authority, slash + path, query


def _credentials(userinfo: str, key: str) -> tuple[str, str]:
    username, _, password = userinfo.partition(":")
    return _unquoted(username, key), _unquoted(password, key)


def _host_and_port(hostport: str, key: str, default: int = PORT) -> tuple[str, int]:
    if hostport.startswith("["):
        inside, closed, after = hostport[1:].partition("]")
        if not closed or (after and not after.startswith(":")):
            _refuse(key, "has a broken IPv6 address")
        return _ipv6(inside, key), _port(after[1:], key) if after else default
    if hostport.count(":") > 1:
        _refuse(key, "has several ':' in its host: an IPv6 address needs brackets, a ':' in a user must be %3A")
    host, colon, port = hostport.partition(":")
    return _host(host, key), _port(port, key) if colon else default


def _host(host: str, key: str) -> str:
    if ":" in host:
        return _ipv6(host, key)
    if not _HOST.fullmatch(host):
        _refuse(key, "has no host, or one with characters that no host has")
    return host


def _ipv6(text: str, key: str) -> str:
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        _refuse(key, "has a host that is neither a name nor an address")


def _port(text: str, key: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:6]) < 65536:
        _refuse(key, "has a port that is not a number from 1 to 65535")
    return int(text)


def _database(path: str, query: str, key: str) -> int:
    asked = [part[3:] for part in query.split("&") if part.startswith("db=")]
    if path.strip("/"):
        asked.append(path.strip("/"))
    for text in asked:
        if not text.isascii() or not text.isdigit() or int(text[:11]) >= _DATABASES:
            _refuse(key, "has a database that is not a number")
    if len({int(text) for text in asked}) > 1:
        _refuse(key, "names two databases")
    return int(asked[0]) if asked else 0


def _assembled(scheme: str, host: str, port: int, db: int, username: str, password: str, query: str) -> Address:
    parameters = _parameters(query, None)
    hostport = _joined([(host, port)])
    url = f"{scheme}://{_quoted(username, password)}{hostport}/{db}{parameters and '?' + parameters}"
    return Address("redis", url=url, host=host)


def _grouped(
    scheme: str,
    topology: Topology,
    hosts: Sequence[tuple[str, int]],
    master: str,
    db: int,
    username: str,
    password: str,
    query: str,
    key: str,
) -> Address:
    if topology == "cluster" and db:
        _refuse(key, "names a database, of which a cluster has only one")
    (host, port), *_ = hosts
    own = "&".join(part for part in query.split("&") if not part.startswith("sentinel_"))
    watching: dict[str, Any] = {
        name: _unquoted(value, key)
        for name, _, value in (part.partition("=") for part in query.split("&"))
        if name in _WATCHING
    }
    if "sentinel_password" in watching and "sentinel_password_file" in watching:
        _refuse(key, "has both a sentinel_password and a sentinel_password_file")
    tls = "&".join(part for part in own.split("&") if part.startswith("ssl_"))
    parameters = _parameters(query, None)
    place = f"{_quoted(username, password)}{_joined(hosts)}{f'/{master}/{db}' if topology == 'sentinel' else ''}"
    return Address(
        "redis",
        url=f"{scheme}+{topology}://{place}{parameters and '?' + parameters}",
        topology=topology,
        hosts=tuple(hosts),
        base=_assembled(scheme, host, port, db, username, password, own).url,
        master=master,
        sentinel_base=_assembled(scheme, host, port, 0, "", "", tls).url,
        **watching,
    )


def _joined(hosts: Sequence[tuple[str, int]]) -> str:
    return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts)


def _parameters(query: str, db: int | None) -> str:
    kept = [part for part in query.split("&") if part and not part.startswith("db=")]
    return "&".join([*kept, *([] if db is None else [f"db={db}"])])


def _quoted(username: str, password: str) -> str:
    if not username and not password:
        return ""
    return f"{quote(username, safe='')}{password and ':' + quote(password, safe='')}@"


def _unquoted(text: str, key: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        _refuse(key, "holds percent-encoded bytes that are not UTF-8")


_OTHERS: Final[Mapping[str, Callable[[str, str], Address]]] = MappingProxyType(
    {"memory": _memory, "sync": _sync, "sqlite": _sqlite, "unix": _unix}
)


def _refuse(key: str, problem: str) -> NoReturn:
    raise ConfigurationError(key, problem)
