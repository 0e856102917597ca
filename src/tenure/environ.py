"""The environment's keys in their groups: what tunes a connection, and where Redis is. A bad value names its key."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Meta

from tenure.compositions import MAX_MEMBERS
from tenure.envelope import MAX_BYTES
from tenure.errors import ConfigurationError, InvalidOption
from tenure.naming import check_namespace
from tenure.urls import PORT, SENTINEL_PORT, Address, host_list, parse, redis_address

_YEAR: Final = 31_536_000

T = TypeVar("T", bound=msgspec.Struct)


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """What one connection is tuned with; times are seconds."""

    visibility_timeout: Annotated[int, Meta(ge=1, le=_YEAR)] = 300
    """How long a lease is, hence how long work of a dead host stays away."""
    max_attempts: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    retry_base_delay: Annotated[float, Meta(ge=0, le=_YEAR)] = 1.0
    """The base of the exponential backoff of jobs that have none of their own."""
    poll_timeout: Annotated[float, Meta(gt=0, le=3600)] = 1.0
    """The longest that one idle claim waits."""
    max_payload_bytes: Annotated[int, Meta(ge=1, le=500_000_000)] = MAX_BYTES
    max_composition_members: Annotated[int, Meta(ge=1, le=10_000_000)] = MAX_MEMBERS
    """Counted jobs of one composition."""


_TUNING_KEYS: Final = {
    "visibility_timeout": "VISIBILITY_TIMEOUT_SECONDS",
    "max_attempts": "MAX_ATTEMPTS",
    "retry_base_delay": "RETRY_BASE_DELAY_SECONDS",
    "poll_timeout": "POLL_TIMEOUT",
    "max_payload_bytes": "MAX_PAYLOAD_BYTES",
    "max_composition_members": "MAX_COMPOSITION_MEMBERS",
}


class _Redis(msgspec.Struct, frozen=True):
    db: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    tls: bool = False
    cluster: bool = False


_REDIS_KEYS: Final = {"db": "DB", "tls": "TLS", "cluster": "CLUSTER"}
_TLS_KEYS: Final = {"TLS_CA": "ssl_ca_certs", "TLS_CERT": "ssl_certfile", "TLS_KEY": "ssl_keyfile"}
_SENTINEL_KEYS: Final = {
    "SENTINEL_USERNAME": "sentinel_username",
    "SENTINEL_PASSWORD": "sentinel_password",
    "SENTINEL_PASSWORD_FILE": "sentinel_password_file",
}


def tuning(environ: Mapping[str, str], scope: str) -> Tuning:
    """Return what the ``QUEUE_`` keys of a scope tune."""
    return _converted(Tuning, environ, f"QUEUE_{scope}", _TUNING_KEYS)


def namespace(environ: Mapping[str, str], scope: str) -> str:
    """Return the namespace of a scope, or nothing."""
    name = environ.get(f"QUEUE_{scope}NAMESPACE", "").strip()
    try:
        return check_namespace(name) if name else ""
    except InvalidOption:
        raise ConfigurationError(
            f"QUEUE_{scope}NAMESPACE", "must be 1 to 128 of letters, digits, '.', '_', '-'"
        ) from None


def prefix(environ: Mapping[str, str], scope: str) -> str:
    """Return what stands before every key in Redis."""
    text = environ.get(f"REDIS_{scope}PREFIX", "")
    # Braces would move Redis Cluster's hash tag away from the queue's name.
    if not text.isascii() or not text.isprintable() or set(text) & set("{} ") or len(text) > 128:
        raise ConfigurationError(f"REDIS_{scope}PREFIX", "must be at most 128 printable characters without braces")
    return text


def redis(environ: Mapping[str, str], scope: str) -> Address:
    """Return the address that the ``REDIS_`` keys of a scope tell: by a URL, or in parts."""
    group = f"REDIS_{scope}"
    rest = _converted(_Redis, environ, group, _REDIS_KEYS)
    if f"{group}URL" in environ:
        return _by_url(environ, group, rest)
    if not rest.tls:
        _refuse_any(environ, group, _TLS_KEYS, f"needs {group}TLS=true")
    if f"{group}TLS_KEY" in environ and f"{group}TLS_CERT" not in environ:
        raise ConfigurationError(f"{group}TLS_KEY", f"needs {group}TLS_CERT")
    parameters = _parameters(environ, group, _TLS_KEYS)
    parameters |= _password_file(environ, group)
    common: dict[str, Any] = {
        "db": rest.db,
        "username": environ.get(f"{group}USERNAME", ""),
        "password": environ.get(f"{group}PASSWORD", ""),
        "tls": rest.tls,
    }
    if f"{group}SENTINELS" in environ:
        return _watched(environ, group, rest, parameters, common)
    _refuse_any(environ, group, {**_SENTINEL_KEYS, "SENTINEL_MASTER": ""}, f"needs {group}SENTINELS")
    key = f"{group}HOST"
    host, port = environ.get(key, "127.0.0.1").strip(), _port(environ, f"{group}PORT")
    if rest.cluster and rest.db:
        raise ConfigurationError(f"{group}DB", "must be 0: a cluster has only one database")
    hosts = host_list(host, port, key) if rest.cluster and "," in host else [(host, port)]
    topology: Any = "cluster" if rest.cluster else ""
    return redis_address(hosts=hosts, parameters=parameters, topology=topology, host_key=key, **common)


def _watched(
    environ: Mapping[str, str], group: str, rest: _Redis, parameters: dict[str, str], common: Mapping[str, Any]
) -> Address:
    key = f"{group}SENTINELS"
    if rest.cluster:
        raise ConfigurationError(key, f"does not agree with {group}CLUSTER: unset one")
    if f"{group}HOST" in environ:
        raise ConfigurationError(key, f"does not agree with {group}HOST, which the sentinels tell: unset one")
    master = environ.get(f"{group}SENTINEL_MASTER", "").strip()
    if not master:
        raise ConfigurationError(f"{group}SENTINEL_MASTER", f"must name what {key} watch")
    parameters |= _parameters(environ, group, _SENTINEL_KEYS)
    if "sentinel_password" in parameters and "sentinel_password_file" in parameters:
        raise ConfigurationError(
            f"{group}SENTINEL_PASSWORD_FILE", f"does not agree with {group}SENTINEL_PASSWORD: unset one"
        )
    hosts = host_list(environ[key], SENTINEL_PORT, key)
    return redis_address(hosts=hosts, parameters=parameters, topology="sentinel", master=master, host_key=key, **common)


def _by_url(environ: Mapping[str, str], group: str, rest: _Redis) -> Address:
    key = f"{group}URL"
    url = environ[key].strip()
    scheme, _, behind = url.partition("://")
    encrypted = scheme.lower().startswith(("rediss", "valkeys"))
    if rest.tls and not encrypted:
        raise ConfigurationError(f"{group}TLS", f"does not agree with {key}, which is no rediss:// URL: change one")
    if not encrypted:
        _refuse_any(environ, group, _TLS_KEYS, f"needs a rediss:// URL in {key}")
    if f"{group}SENTINELS" in environ:
        raise ConfigurationError(f"{group}SENTINELS", f"does not agree with {key}: unset one")
    if rest.cluster and "+" not in scheme:
        scheme += "+cluster"
    elif rest.cluster and not scheme.lower().endswith("+cluster"):
        raise ConfigurationError(f"{group}CLUSTER", f"does not agree with {key}: unset one")
    # What a URL is often given without: a secret in a file, and whom to trust.
    given = {part.partition("=")[0] for part in behind.partition("?")[2].split("&")}
    more = {**_parameters(environ, group, _TLS_KEYS), **_password_file(environ, group, alone=True)}
    for name, value in more.items():
        if name not in given:
            behind += f"{'&' if '?' in behind else '?'}{name}={quote(value, safe='/')}"
    address = parse(f"{scheme}://{behind}", key)
    if address.driver != "redis":
        raise ConfigurationError(
            key,
            "must be a redis://, rediss:// or unix:// URL, or one of sentinels or a cluster; the driver redis-streams "
            "is chosen by QUEUE_CONNECTION",
        )
    return address


def _password_file(environ: Mapping[str, str], group: str, *, alone: bool = False) -> dict[str, str]:
    key = f"{group}PASSWORD_FILE"
    if key not in environ:
        return {}
    if not alone and f"{group}PASSWORD" in environ:
        raise ConfigurationError(key, f"does not agree with {group}PASSWORD: unset one")
    return {"password_file": environ[key].strip()}


def _parameters(environ: Mapping[str, str], group: str, keys: Mapping[str, str]) -> dict[str, str]:
    return {name: environ[group + key] for key, name in keys.items() if group + key in environ}


def _refuse_any(environ: Mapping[str, str], group: str, keys: Mapping[str, str], problem: str) -> None:
    for key in keys:
        if group + key in environ:
            raise ConfigurationError(group + key, problem)


def _port(environ: Mapping[str, str], key: str) -> int:
    text = environ.get(key, "").strip()
    if not text or text.startswith("tcp://"):
        # Kubernetes sets REDIS_PORT=tcp://10.0.0.1:6379 for a service called redis: not meant for us.
        return PORT
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:6]) < 65536:
        raise ConfigurationError(key, "must be a port from 1 to 65535")
    return int(text)


def _converted(kind: type[T], environ: Mapping[str, str], group: str, keys: Mapping[str, str]) -> T:
    given: dict[str, Any] = {}
    for field, suffix in keys.items():
        text = environ.get(group + suffix, "").strip()
        if text:
            given[field] = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(text.lower(), text)
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        # msgspec's text names the field and what was expected, and not the value.
        expected, _, path = str(error).partition(" - at `$.")
        raise ConfigurationError(group + keys.get(path.rstrip("`"), ""), _plainly(expected)) from None


def _plainly(expected: str) -> str:
    text = expected.replace("`", "").replace("int | null", "int").replace("float | null", "float")
    text = text.partition(", got")[0].replace("Expected int", "must be a whole number")
    return text.replace("Expected float", "must be a number").replace("Expected bool", "must be true or false")
