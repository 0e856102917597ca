"""Settings, from the environment and nothing else. A bad value is refused by the name of its key, never quoted.

Empty and blank values count as unset. The default connection reads the plain keys; a connection named ``reports``
reads only its own: ``TENURE_REPORTS_URL``, ``REDIS_REPORTS_HOST``, ``QUEUE_REPORTS_MAX_ATTEMPTS``. The names of the
drivers (``redis``, ``sqlite``, ``memory``, ``sync``) and ``auto`` are connections too, which read the plain keys.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from tenure.envelope import MAX_BYTES
from tenure.errors import ConfigurationError, InvalidOption
from tenure.naming import check_namespace, shown
from tenure.urls import Address, parse, redis_address

DEFAULT: Final = "default"
AUTO: Final = "auto"
_DRIVERS: Final = {"redis": "redis", "sqlite": "sqlite", "sql": "sqlite", "memory": "memory", "sync": "sync"}
_LATER: Final = frozenset({"redis-streams", "redis_streams", "postgresql", "postgres", "mysql", "mariadb"})
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_KEYS: Final = re.compile(r"(TENURE|QUEUE|REDIS)_[A-Z0-9_]+|DATABASE_URL", re.ASCII)
_MARKS: Final = ("pyproject.toml", "manage.py", "setup.py", ".git")
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


_TUNING_KEYS: Final = {
    "visibility_timeout": "VISIBILITY_TIMEOUT_SECONDS",
    "max_attempts": "MAX_ATTEMPTS",
    "retry_base_delay": "RETRY_BASE_DELAY_SECONDS",
    "poll_timeout": "POLL_TIMEOUT",
    "max_payload_bytes": "MAX_PAYLOAD_BYTES",
}


class ConnectionSettings(Tuning, frozen=True, kw_only=True):
    """One connection, ready to be opened. Its ``repr`` shows neither endpoint nor credentials."""

    name: str
    """The name under which it is kept: two names of one connection share it."""
    configured: str
    """What was asked for: a driver, ``auto``, or nothing."""
    address: Address
    """For ``auto``: the Redis that is tried."""
    fallback: Address | None = None
    """For ``auto``: what is used when that does not answer."""
    prefix: str = ""
    """Stands before every key in Redis."""
    namespace: str
    namespace_given: bool
    """False when the namespace is a hash of the project's path, which other hosts may not share."""

    def __repr__(self) -> str:
        return f"<connection {self.name}: {self.configured or 'nothing configured'}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name), ("configured", self.configured)]


class _Redis(msgspec.Struct, frozen=True):
    db: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    tls: bool = False
    cluster: bool = False


class Settings(Tuning, frozen=True, kw_only=True):
    """The settings of one application. The fields of ``Tuning`` are those of its default connection."""

    url: str = ""
    """The store of the default connection, over everything that the environment says of it."""
    namespace: str = ""
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The keys that connections are read from."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """Return the settings that an environment says, this process's by default; raises ``ConfigurationError``."""
        source = os.environ if environ is None else environ
        kept = {key: value for key, value in source.items() if _KEYS.fullmatch(key) and value.strip()}
        tuning = _tuning(kept, "")
        return cls(environ=kept, namespace=_namespace(kept, ""), **msgspec.structs.asdict(tuning))

    def connection(self, name: str = DEFAULT) -> ConnectionSettings:
        """Return a connection's settings; raises ``ConfigurationError`` when it is not configured, or wrongly."""
        if not _NAME.fullmatch(name):
            raise ConfigurationError("connection", f"{shown(name)} is not the name of a connection")
        if name == DEFAULT:
            return self._default()
        scope = name.upper().replace("-", "_") + "_"
        if any(
            key.startswith((f"TENURE_{scope}", f"QUEUE_{scope}CONNECTION", f"REDIS_{scope}")) for key in self.environ
        ):
            return self._named(name, scope)
        if name == AUTO or name in _DRIVERS:
            default = self._default()
            return default if default.configured == _DRIVERS.get(name, name) else self._plain(name)
        if name in _LATER:
            raise ConfigurationError("connection", f"the driver {name!r} is not available in this version of tenure")
        raise ConfigurationError(f"TENURE_{scope}URL", f"is not set, so there is no connection {name!r}")

    def __repr__(self) -> str:
        tuned = ", ".join(f"{field}={getattr(self, field)!r}" for field in Tuning.__struct_fields__)
        return f"Settings({tuned})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(field, getattr(self, field)) for field in Tuning.__struct_fields__]

    # ------------------------------------------------------------------------------------------- the default connection

    def _default(self) -> ConnectionSettings:
        chosen = self.environ.get("QUEUE_CONNECTION", "").strip()
        chosen = chosen.lower() if chosen.lower() in {AUTO, *_DRIVERS} else chosen
        if self.url:
            address = parse(self.url, "Tenure(url)")
            return self._made(DEFAULT, address.driver, address)
        if chosen == AUTO:
            return self._automatic(DEFAULT)
        if "TENURE_URL" in self.environ:
            address = parse(self.environ["TENURE_URL"], "TENURE_URL")
            if chosen and _DRIVERS.get(chosen) != address.driver:
                raise ConfigurationError(
                    "QUEUE_CONNECTION", f"does not agree with TENURE_URL, which selects {address.driver}: unset one"
                )
            return self._made(DEFAULT, address.driver, address)
        if chosen in _DRIVERS or (not chosen and "REDIS_URL" in self.environ):
            return self._plain(chosen or "redis", keep_as=DEFAULT)
        return self._chosen(chosen) if chosen else self._made(DEFAULT, "", embedded())

    def _chosen(self, name: str) -> ConnectionSettings:
        if name == DEFAULT or not _NAME.fullmatch(name):
            raise ConfigurationError("QUEUE_CONNECTION", "is neither a driver nor the name of a connection")
        try:
            return self.connection(name)
        except ConfigurationError as error:
            raise ConfigurationError("QUEUE_CONNECTION", str(error)) from None

    def _plain(self, name: str, keep_as: str | None = None) -> ConnectionSettings:
        if name == AUTO:
            return self._automatic(keep_as or name)
        driver = _DRIVERS[name]
        return self._made(keep_as or driver, driver, self._address(driver, ""))

    def _automatic(self, keep_as: str) -> ConnectionSettings:
        given = parse(self.environ["TENURE_URL"], "TENURE_URL") if "TENURE_URL" in self.environ else None
        redis = given if given is not None and given.driver == "redis" else _redis(self.environ, "")
        sqlite = given if given is not None and given.driver == "sqlite" else self._address("sqlite", "")
        return self._made(keep_as, AUTO, redis, fallback=sqlite)

    def _made(
        self, name: str, configured: str, address: Address, fallback: Address | None = None
    ) -> ConnectionSettings:
        return ConnectionSettings(
            name=name,
            configured=configured,
            address=address,
            fallback=fallback,
            prefix=_prefix(self.environ, ""),
            namespace=self.namespace or path_namespace(),
            namespace_given=bool(self.namespace),
            **{field: getattr(self, field) for field in Tuning.__struct_fields__},
        )

    def _address(self, driver: str, scope: str) -> Address:
        if driver == "redis":
            return _redis(self.environ, scope)
        if driver == "sqlite":
            database = self.environ.get("DATABASE_URL", "")
            # DATABASE_URL alone selects nothing, and another program's PostgreSQL is no reason to refuse a file.
            return parse(database, "DATABASE_URL") if database.startswith("sqlite:") and not scope else embedded()
        return Address(driver)  # type: ignore[arg-type] # the two that are left

    # ------------------------------------------------------------------------------------------------ named connections

    def _named(self, name: str, scope: str) -> ConnectionSettings:
        key = f"TENURE_{scope}URL"
        chosen = self.environ.get(f"QUEUE_{scope}CONNECTION", "").strip()
        fallback: Address | None = None
        if chosen and chosen != AUTO and chosen not in _DRIVERS:
            raise ConfigurationError(f"QUEUE_{scope}CONNECTION", "is not a driver that this version of tenure has")
        if key in self.environ:
            address = parse(self.environ[key], key)
            if chosen and _DRIVERS.get(chosen) != address.driver:
                raise ConfigurationError(f"QUEUE_{scope}CONNECTION", f"does not agree with {key}: unset one")
        else:
            address = self._address("redis" if chosen in {"", AUTO} else _DRIVERS[chosen], scope)
            fallback = embedded() if chosen == AUTO else None
        given = self.namespace or _namespace(self.environ, scope)
        return ConnectionSettings(
            name=name,
            configured=AUTO if chosen == AUTO else address.driver,
            address=address,
            fallback=fallback,
            prefix=_prefix(self.environ, scope),
            namespace=given or path_namespace(),
            namespace_given=bool(given),
            **msgspec.structs.asdict(_tuning(self.environ, scope)),
        )


# --------------------------------------------------------------------------------------------------------- the project


def project() -> Path:
    """Return the project's directory: the nearest one upwards that looks like one, else the current one."""
    here = Path.cwd()
    return next((place for place in (here, *here.parents) if any((place / mark).exists() for mark in _MARKS)), here)


def path_namespace() -> str:
    """Return a namespace made of the project's path."""
    return "p" + hashlib.sha256(os.fsencode(project().resolve())).hexdigest()[:16]


def embedded() -> Address:
    """Return the address of the project's own SQLite file."""
    return Address("sqlite", path=str(project() / ".tenure" / "tenure.db"))


# ------------------------------------------------------------------------------------------------------- groups of keys


def _tuning(environ: Mapping[str, str], scope: str) -> Tuning:
    return _converted(Tuning, environ, f"QUEUE_{scope}", _TUNING_KEYS)


def _namespace(environ: Mapping[str, str], scope: str) -> str:
    name = environ.get(f"QUEUE_{scope}NAMESPACE", "").strip()
    try:
        return check_namespace(name) if name else ""
    except InvalidOption:
        raise ConfigurationError(
            f"QUEUE_{scope}NAMESPACE", "must be 1 to 128 of letters, digits, '.', '_', '-'"
        ) from None


def _prefix(environ: Mapping[str, str], scope: str) -> str:
    prefix = environ.get(f"REDIS_{scope}PREFIX", "")
    # Braces would move Redis Cluster's hash tag away from the queue's name.
    if not prefix.isascii() or not prefix.isprintable() or set(prefix) & set("{} ") or len(prefix) > 128:
        raise ConfigurationError(f"REDIS_{scope}PREFIX", "must be at most 128 printable characters without braces")
    return prefix


def _redis(environ: Mapping[str, str], scope: str) -> Address:
    group = f"REDIS_{scope}"
    rest = _converted(_Redis, environ, group, {"db": "DB", "tls": "TLS", "cluster": "CLUSTER"})
    for key, wanted in ((f"{group}CLUSTER", rest.cluster), (f"{group}SENTINELS", f"{group}SENTINELS" in environ)):
        if wanted:
            raise ConfigurationError(key, "is not available in this version of tenure")
    if f"{group}URL" in environ:
        address = parse(environ[f"{group}URL"], f"{group}URL")
        if address.driver != "redis":
            raise ConfigurationError(f"{group}URL", "must be a redis://, rediss:// or unix:// URL")
        return address
    return redis_address(
        host=environ.get(f"{group}HOST", "127.0.0.1").strip(),
        port=_port(environ, f"{group}PORT"),
        db=rest.db,
        username=environ.get(f"{group}USERNAME", ""),
        password=environ.get(f"{group}PASSWORD", ""),
        tls=rest.tls,
        host_key=f"{group}HOST",
    )


def _port(environ: Mapping[str, str], key: str) -> int:
    text = environ.get(key, "").strip()
    if not text or text.startswith("tcp://"):
        # Kubernetes sets REDIS_PORT=tcp://10.0.0.1:6379 for a service called redis: not meant for us.
        return 6379
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
