"""Settings, from the environment and nothing else. A bad value is refused by the name of its key, never quoted.

Empty and blank values count as unset. The default connection reads the plain keys; a connection named ``reports``
reads only its own: ``TENURE_REPORTS_URL``, ``REDIS_REPORTS_HOST``, ``QUEUE_REPORTS_MAX_ATTEMPTS``. The names of the
drivers (``redis``, ``redis-streams``, ``sql``, ``sqlite``, ``postgresql``, ``mysql``, ``memory``, ``sync``) and
``auto`` are connections too, which read the plain keys.
"""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.environ import Tuning, namespace, prefix, redis, tuning
from tenure.errors import ConfigurationError
from tenure.naming import shown
from tenure.urls import REDIS, Address, parse

DEFAULT: Final = "default"
AUTO: Final = "auto"
_DRIVERS: Final[Mapping[str, tuple[str, ...]]] = {
    "redis": ("redis",),
    "redis-streams": ("redis-streams",),
    "redis_streams": ("redis-streams",),
    "sql": ("sqlite", "postgresql", "mysql"),
    "sqlite": ("sqlite",),
    "postgresql": ("postgresql",),
    "postgres": ("postgresql",),
    "mysql": ("mysql",),
    "mariadb": ("mysql",),
    "memory": ("memory",),
    "sync": ("sync",),
}
"""What each name may turn out to be."""
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_KEYS: Final = re.compile(r"(TENURE|QUEUE|REDIS)_[A-Z0-9_]+|DATABASE_URL", re.ASCII)
_MARKS: Final = ("pyproject.toml", "manage.py", "setup.py", ".git")
_TAKEN: Final = frozenset({"tls", "password", "sentinel", "sentinels", "outbox"})
"""Names whose keys already mean something: ``REDIS_TLS_CA``, ``TENURE_OUTBOX_URL``."""
OUTBOX_KEY: Final = "TENURE_OUTBOX_URL"

Credentials = Callable[[str], str | tuple[str, str] | None]
"""Called with a connection's name for each connection to Redis that is made, from any thread: returns a password, a
user's name and a password, or None when what is configured applies."""


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
    credentials: Credentials | None = None

    def __repr__(self) -> str:
        return f"<connection {self.name}: {self.configured or 'nothing configured'}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name), ("configured", self.configured)]


class Settings(Tuning, frozen=True, kw_only=True):
    """The settings of one application. The fields of ``Tuning`` are those of its default connection."""

    url: str = ""
    """The store of the default connection, over everything that the environment says of it."""
    namespace: str = ""
    outbox_url: str = ""
    """The database that holds the outbox, over what the environment says of it."""
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The keys that connections are read from."""
    credentials: Credentials | None = None
    """Credentials for Redis that may change, instead of those that are configured."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """Return the settings that an environment says, this process's by default; raises ``ConfigurationError``."""
        source = os.environ if environ is None else environ
        kept = {key: value for key, value in source.items() if _KEYS.fullmatch(key) and value.strip()}
        return cls(environ=kept, namespace=namespace(kept, ""), **msgspec.structs.asdict(tuning(kept, "")))

    def connection(self, name: str = DEFAULT) -> ConnectionSettings:
        """Return a connection's settings; raises ``ConfigurationError`` when it is not configured, or wrongly."""
        if not _NAME.fullmatch(name):
            raise ConfigurationError("connection", f"{shown(name)} is not the name of a connection")
        if name == DEFAULT:
            return self._default()
        if name.lower() in _TAKEN:
            raise ConfigurationError("connection", f"{name!r} cannot name one: {_meaning(name)} has a meaning")
        scope = name.upper().replace("-", "_") + "_"
        # Of the group TENURE_ the URL alone: TENURE_MAIL_… and TENURE_NOTIFY_… are transports and channels, too.
        if f"TENURE_{scope}URL" in self.environ or any(
            key.startswith((f"QUEUE_{scope}CONNECTION", f"REDIS_{scope}")) for key in self.environ
        ):
            return self._named(name, scope)
        if name == AUTO or name in _DRIVERS:
            default = self._default()
            return default if default.configured in _DRIVERS.get(name, (name,)) else self._plain(name)
        raise ConfigurationError(f"TENURE_{scope}URL", f"is not set, so there is no connection {name!r}")

    def outbox(self) -> Address | None:
        """Return the database that holds the outbox, or None; raises ``ConfigurationError``.

        It is ``TENURE_OUTBOX_URL``, else ``DATABASE_URL`` where that is a database that tenure works with.
        """
        for url, key in ((self.outbox_url, "Tenure(outbox)"), (self.environ.get(OUTBOX_KEY, ""), OUTBOX_KEY)):
            if url:
                address = parse(url, key)
                if address.driver not in _DRIVERS["sql"]:
                    raise ConfigurationError(key, "must be a sqlite://, postgresql:// or mysql:// URL")
                return address
        try:
            address = parse(self.environ.get("DATABASE_URL", ""), "DATABASE_URL")
        except ConfigurationError:
            return None  # it is other programs' too, and may be of a kind that is nothing to us
        return address if address.driver in _DRIVERS["sql"] else None

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
            if chosen and address.driver not in _DRIVERS.get(chosen, ()):
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
        address = self._address(name, "")
        return self._made(keep_as or address.driver, address.driver, address)

    def _automatic(self, keep_as: str) -> ConnectionSettings:
        given = parse(self.environ["TENURE_URL"], "TENURE_URL") if "TENURE_URL" in self.environ else None
        tried = given if given is not None and given.driver in REDIS else redis(self.environ, "")
        fallback = given if given is not None and given.driver in _DRIVERS["sql"] else self._address("sql", "")
        return self._made(keep_as, AUTO, tried, fallback=fallback)

    def _made(
        self, name: str, configured: str, address: Address, fallback: Address | None = None
    ) -> ConnectionSettings:
        return ConnectionSettings(
            name=name,
            configured=configured,
            address=address,
            fallback=fallback,
            prefix=prefix(self.environ, ""),
            namespace=self.namespace or path_namespace(),
            namespace_given=bool(self.namespace),
            credentials=self.credentials,
            **{field: getattr(self, field) for field in Tuning.__struct_fields__},
        )

    def _address(self, name: str, scope: str) -> Address:
        drivers = _DRIVERS[name]
        if drivers[0] in REDIS:
            return msgspec.structs.replace(redis(self.environ, scope), driver=drivers[0])
        if name not in {"memory", "sync"}:
            # DATABASE_URL alone selects nothing; a file that was asked for is not refused for a server that it names.
            database = "" if scope else self.environ.get("DATABASE_URL", "")
            if database and (name != "sqlite" or database.startswith("sqlite:")):
                address = parse(database, "DATABASE_URL")
                if address.driver not in drivers:
                    raise ConfigurationError("DATABASE_URL", f"is of another kind than the connection {name!r}")
                return address
            if "sqlite" not in drivers:
                raise ConfigurationError(
                    f"TENURE_{scope}URL" if scope else "DATABASE_URL", f"is not set; the connection {name!r} needs it"
                )
            return embedded()
        return Address(name)  # type: ignore[arg-type] # the two that are left

    # ------------------------------------------------------------------------------------------------ named connections

    def _named(self, name: str, scope: str) -> ConnectionSettings:
        key = f"TENURE_{scope}URL"
        chosen = self.environ.get(f"QUEUE_{scope}CONNECTION", "").strip()
        fallback: Address | None = None
        if chosen and chosen != AUTO and chosen not in _DRIVERS:
            raise ConfigurationError(f"QUEUE_{scope}CONNECTION", "is not a driver that this version of tenure has")
        if key in self.environ:
            address = parse(self.environ[key], key)
            if chosen and address.driver not in _DRIVERS.get(chosen, ()):
                raise ConfigurationError(f"QUEUE_{scope}CONNECTION", f"does not agree with {key}: unset one")
        else:
            address = self._address("redis" if chosen in {"", AUTO} else chosen, scope)
            fallback = embedded() if chosen == AUTO else None
        given = self.namespace or namespace(self.environ, scope)
        return ConnectionSettings(
            name=name,
            configured=AUTO if chosen == AUTO else address.driver,
            address=address,
            fallback=fallback,
            prefix=prefix(self.environ, scope),
            namespace=given or path_namespace(),
            namespace_given=bool(given),
            credentials=self.credentials,
            **msgspec.structs.asdict(tuning(self.environ, scope)),
        )


def _meaning(name: str) -> str:
    return OUTBOX_KEY if name.lower() == "outbox" else f"REDIS_{name.upper()}…"


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
