"""Which version the tables of a database are of, and what brings them to this one's."""

import io
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, NullPool, create_engine, inspect
from sqlalchemy.exc import DBAPIError

from tenure.databases import DatabaseUrl
from tenure.drivers.sql.migrations.target import Target
from tenure.drivers.sql.server.connection import Again, Lost
from tenure.drivers.sql.server.driver import named
from tenure.drivers.sql.server.names import Names
from tenure.drivers.sql.server.texts import Dialect
from tenure.errors import ConnectionFailed, InvalidOption, StoreRefused

VERSIONS: Final = Path(__file__).with_name("versions")
BASE: Final = "base"
"""What Alembic calls a database without tables."""
MOST_TRIES: Final = 10


class Standing(NamedTuple):
    """Which version the tables are of."""

    found: str | None
    """None: there are none yet."""
    newest: str
    """The newest that this tenure knows."""
    lacking: Sequence[str]
    """The versions that are missing, in order; none when a newer tenure made the tables."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a migration is told."""

    names: Names
    dialect: Dialect
    guards: Sequence[str] = ()
    connection: Connection | None = None
    """None: it is written down, and not run."""


class Migrations:
    """The tables of one database server, and their versions.

    Every call opens a connection of its own and closes it; Alembic serves one thread of a process at a time. Raises
    ``ConnectionFailed``, and ``StoreError`` with the reason; no migration is left half-way, but on MySQL, which has no
    transaction around a change of tables: there it may be run again.
    """

    def __init__(self, url: DatabaseUrl, *, versions: Path = VERSIONS, tries: int = MOST_TRIES) -> None:
        self._tries = tries
        self._names = named(url)
        self._target = _target(url)
        self._key = self._names.key("migrate", url.database)
        self._config = _config(versions)
        script = ScriptDirectory.from_config(self._config)
        self._versions = [found.revision for found in script.walk_revisions()][::-1]

    def standing(self) -> Standing:
        """Return which version the tables are of; changes nothing."""
        with self._transaction() as connection:
            return self._standing(connection)

    def upgrade(self, told: Callable[[str], None] = lambda _: None) -> None:
        """Bring the tables to the newest version, and call ``told`` with each version that was reached.

        Each version is one short transaction, in which no other process migrates, and no table's lock is waited for
        longer than two seconds: it gives way and tries again, so that jobs flow meanwhile. Repeated, it does nothing.
        """
        while version := self._patiently(self._step):
            told(version)

    def script(self, since: str | None = None) -> str:
        """Return the SQL that ``upgrade`` would run on tables of a version, or on none; opens no connection.

        Raises ``InvalidOption`` for a version that this tenure does not know.
        """
        if since is not None and since not in self._versions:
            raise InvalidOption(f"there is no such version of the tables; there are {', '.join(self._versions)}")
        written = io.StringIO()
        self._config.output_buffer = written
        steps = [BASE, *self._versions]
        for before, version in pairwise(steps[steps.index(since or BASE) :]):
            given = Given(self._names, self._target.dialect, self._target.guards(self._key))
            self._run(f"{before}:{version}", given, sql=True)
        return written.getvalue()

    # -------------------------------------------------------------------------------------------------- one version

    def _step(self) -> str | None:
        """Bring the tables to the next version, and return it, or None when there is none."""
        with self._transaction() as connection:
            self._target.guard(connection, self._key)
            lacking = self._standing(connection).lacking
            if not lacking:
                return None
            if lacking[0] == self._versions[0]:
                self._refuse_others(connection)
            self._run(lacking[0], Given(self._names, self._target.dialect, connection=connection))
            return lacking[0]

    def _run(self, version: str, given: Given, *, sql: bool = False) -> None:
        self._config.attributes["tenure"] = given
        command.upgrade(self._config, version, sql=sql)

    def _standing(self, connection: Connection) -> Standing:
        options = {"version_table": f"{self._names.prefix}version", "version_table_schema": self._names.schema}
        found = MigrationContext.configure(connection, opts=options).get_current_revision()
        steps = [None, *self._versions]
        lacking = self._versions[steps.index(found) :] if found in steps else ()
        return Standing(found, self._versions[-1], lacking)

    def _refuse_others(self, connection: Connection) -> None:
        """Refuse tables that are there without a version: then migrations of the user's own look after them."""
        there = inspect(connection)
        ours, schema = self._names.prefix, self._names.schema
        # On MySQL a first migration that was broken off has left the table of the version, without a row.
        if there.has_table(f"{ours}jobs", schema=schema) and not there.has_table(f"{ours}version", schema=schema):
            raise StoreRefused(
                "FOREIGN", "the tables are there, and not by `tenure migrate`: use the migrations that made them"
            )

    def _patiently(self, step: Callable[[], str | None]) -> str | None:
        for tries in range(self._tries):
            try:
                return step()
            except Again:
                time.sleep(random.uniform(0.5, 1) * min(tries + 1, 3))  # noqa: S311 - no secret
        raise StoreRefused("BUSY", "another migration runs, or a long transaction holds a table; try again later")

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        engine = create_engine(
            f"{self._target.scheme}://",
            creator=self._target.connect,
            poolclass=NullPool,
            isolation_level="READ COMMITTED",  # what others did is seen once they are waited for
        )
        try:
            with engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            self._tell(error)

    def _tell(self, error: DBAPIError) -> None:
        try:
            with self._target.troubles():
                raise error.orig or error
        except Lost:
            raise ConnectionFailed("the connection broke in the middle of a migration; run it again") from None


def _target(url: DatabaseUrl) -> Target:
    if url.server == "postgresql":
        from tenure.drivers.sql.migrations.postgresql import PostgresTarget  # noqa: PLC0415 - an extra

        return PostgresTarget(url)
    from tenure.drivers.sql.migrations.mysql import MysqlTarget  # noqa: PLC0415 - as above

    return MysqlTarget(url)


def _config(versions: Path) -> Config:
    """Return what Alembic is told; a path is told with its '%' doubled."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(versions).replace("%", "%%"))
    return config
