"""Opened connections: from settings to drivers, each made at first use and kept. Drivers are imported then, too."""

import functools
import importlib.util
import logging
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from tenure.config import DEFAULT, ConnectionSettings, Settings
from tenure.databases import DatabaseUrl, Server
from tenure.drivers.sync import Runner
from tenure.errors import MissingExtra
from tenure.portal import portal
from tenure.queue import Capabilities, Pusher, Queue
from tenure.urls import REDIS, Address

logger: Final = logging.getLogger("tenure")

PROBE_SECONDS: Final = 1.0
"""How long ``auto`` waits for Redis to answer."""
AUTO: Final = "auto"


class Infrastructure(NamedTuple):
    """What a connection is, without endpoints or credentials."""

    configured: str
    """What was asked for: a driver, ``auto``, or nothing."""
    selected: str
    """The driver that it uses."""
    reason: str


class Connection:
    """One opened connection: a driver, its settings, and its blocking pusher."""

    def __init__(self, settings: ConnectionSettings, queue: Queue, infrastructure: Infrastructure) -> None:
        self.settings = settings
        self.queue = queue
        self.capabilities: Capabilities = queue.capabilities
        self.infrastructure = infrastructure
        self._pushers: dict[str, Pusher] = {}
        weakref.finalize(self, _close_all, self._pushers)  # at the exit of the process too

    @property
    def name(self) -> str:
        """The name under which it is kept."""
        return self.settings.name

    @property
    def pusher(self) -> Pusher:
        """The blocking pusher, made at first use."""
        # Threads that race here may make two; one is kept, and the other has opened nothing yet.
        return self._pushers.get("") or self._pushers.setdefault("", self.queue.pusher())

    async def aclose(self) -> None:
        """Close what the driver opened itself; idempotent. Used again, it opens again."""
        _close_all(self._pushers)
        await self.queue.aclose()


class Connections:
    """The connections of one application, by name."""

    def __init__(self, settings: Callable[[], Settings], runner: Runner) -> None:
        self._settings = settings
        self._runner = runner
        self._by_name: dict[str, Connection] = {}
        self._kept: dict[str, Connection] = {}

    def get(self, name: str = DEFAULT) -> Connection:
        """Return a connection; raises ``ConfigurationError``. ``auto`` may block for a second, the first time."""
        found = self._by_name.get(name)
        if found is None:
            settings = self._settings().connection(name)
            kept = self._kept.get(settings.name)
            # No lock, which a fork could copy while it is held: of two that are made in a race one is kept, and the
            # other has opened nothing yet.
            found = kept or self._kept.setdefault(settings.name, self._opened(settings))
            found = self._by_name.setdefault(name, found)
            portal().at_close(found.aclose)
        return found

    def opened(self) -> list[Connection]:
        """Return the connections that were used so far."""
        return list(self._kept.values())

    def _opened(self, settings: ConnectionSettings) -> Connection:
        address, reason = _selected(settings)
        queue = self._driver(address, settings)
        if not settings.configured:
            logger.warning(
                "no store is configured (TENURE_URL, QUEUE_CONNECTION): jobs are kept in the project's %s",
                Path(*Path(address.path).parts[-2:]),
            )
        if not settings.namespace_given and not address.local:
            logger.warning(
                "QUEUE_NAMESPACE is not set: the namespace is a hash of this project's path, "
                "and a process at another path will not share its jobs"
            )
        return Connection(settings, queue, Infrastructure(settings.configured, queue.capabilities.driver, reason))

    def _driver(self, address: Address, settings: ConnectionSettings) -> Queue:
        if address.driver in REDIS:
            _require_redis()
            from tenure.drivers.redis import RedisQueue  # noqa: PLC0415 - an extra, imported when it is used
            from tenure.drivers.redis.endpoint import Endpoint  # noqa: PLC0415
            from tenure.drivers.redis.layout import LAYOUTS  # noqa: PLC0415

            endpoint = Endpoint.from_url(address.url, credentials=_credentials(settings))
            layout = LAYOUTS[address.driver]
            return RedisQueue(endpoint, namespace=settings.namespace, prefix=settings.prefix, layout=layout)
        if address.database is not None:
            return _database(address.database, settings)
        if address.driver == "sqlite":
            from tenure.drivers.sql import SqliteQueue  # noqa: PLC0415 - keeps `import tenure` light

            path = Path(address.path).absolute()
            if not settings.configured or settings.configured == AUTO:
                _make_home(path.parent)
            return SqliteQueue(path, namespace=settings.namespace)
        if address.driver == "memory":
            from tenure.drivers.memory import MemoryQueue  # noqa: PLC0415 - keeps `import tenure` light

            return MemoryQueue()
        from tenure.drivers.sync import SyncQueue  # noqa: PLC0415 - as above

        return SyncQueue(self._runner)


def require_database(server: Server, needed_for: str, *more: str) -> None:
    """Raise ``MissingExtra`` when the client library of a database server, or another library, is not installed."""
    extra, client = ("postgres", "psycopg") if server == "postgresql" else ("mysql", "pymysql")
    for library in (client, *more):
        if importlib.util.find_spec(library) is None:
            raise MissingExtra(extra, needed_for)


def _database(url: DatabaseUrl, settings: ConnectionSettings) -> Queue:
    require_database(url.server, f"a {url.server}:// connection", "sqlalchemy")
    if url.server == "postgresql":
        from tenure.drivers.sql.postgresql import PostgresQueue  # noqa: PLC0415 - an extra, imported when it is used

        return PostgresQueue.from_url(url, namespace=settings.namespace)
    from tenure.drivers.sql.mysql import MysqlQueue  # noqa: PLC0415 - as above

    return MysqlQueue.from_url(url, namespace=settings.namespace)


def _close_all(pushers: dict[str, Pusher]) -> None:
    while pushers:
        pushers.popitem()[1].close()


def _selected(settings: ConnectionSettings) -> tuple[Address, str]:
    if settings.configured != AUTO or settings.fallback is None:
        return settings.address, "it is configured" if settings.configured else "nothing is configured"
    try:
        _require_redis()
    except MissingExtra:
        return settings.fallback, "the redis extra is not installed"
    if _answers(settings):
        return settings.address, "Redis answered at first use"
    return settings.fallback, "Redis did not answer at first use"


def _require_redis() -> None:
    for library in ("redis", "hiredis"):
        if importlib.util.find_spec(library) is None:
            raise MissingExtra("redis", "a redis:// connection")


def _credentials(settings: ConnectionSettings) -> Callable[[], str | tuple[str, str] | None] | None:
    return None if settings.credentials is None else functools.partial(settings.credentials, settings.name)


def _answers(settings: ConnectionSettings) -> bool:
    from tenure.drivers.redis.endpoint import Endpoint  # noqa: PLC0415 - an extra
    from tenure.drivers.redis.probing import answers  # noqa: PLC0415

    endpoint = Endpoint.from_url(settings.address.url, credentials=_credentials(settings))
    return answers(endpoint, settings.prefix, settings.namespace, PROBE_SECONDS)


def _make_home(directory: Path) -> None:
    # Readable by its owner alone, and out of version control by itself.
    directory.mkdir(mode=0o700, exist_ok=True)
    ignore = directory / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
