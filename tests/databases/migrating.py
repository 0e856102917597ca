"""Words for tests of migrations: tables that are a test's own, and what the server itself says of them."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenure import databases
from tenure.drivers.sql.migrations import Migrations, Names
from tenure.drivers.sql.migrations.running import VERSIONS
from tenure.drivers.sql.server.driver import ServerQueue
from tests.databases.support import Place, driver

NEXT = """
import sqlalchemy as sa
from alembic import op
from tenure.drivers.sql.migrations import steps

revision = "{revision}"
down_revision = "{before}"

def upgrade():
    own = steps.names()
    op.add_column(own.prefix + "jobs", sa.Column("later_thought", sa.BigInteger), schema=own.schema, if_not_exists=True)
    steps.create("extra", sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False))
    {last}
"""
"""A version that may come after the newest: it adds a column, and a table."""


@dataclass(frozen=True)
class Tables:
    """A name for tables that nobody else uses; there are none at first."""

    place: Place
    names: Names

    @property
    def url(self) -> str:
        schema = f"&schema={self.names.schema}" if self.names.schema else ""
        url = self.place.database.url
        return f"{url}{'&' if '?' in url else '?'}table_prefix={self.names.prefix}{schema}"

    def migrations(self, versions: Path = VERSIONS, tries: int = 10) -> Migrations:
        return Migrations(databases.of(self.url, "tests"), versions=versions, tries=tries)

    def queue(self) -> ServerQueue:
        return driver(self.url, self.place.namespace)

    def full(self, name: str) -> str:
        return self.names.table(name)

    def described(self) -> list[str]:
        """Return all that the server knows of the tables, the one of the version left out."""
        rows = _postgres(self) if self.place.postgres else _mysql(self)
        own = [row.replace(f"{self.names.schema}.", "").replace(self.names.prefix, "") for row in rows]
        return sorted(row for row in own if not row.startswith("version"))


def _mysql(tables: Tables) -> list[str]:
    names = tables.place.ask(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = database() AND table_name LIKE :like",
        like=tables.names.prefix.replace("_", r"\_") + "%",
    )
    return [_lines(name, tables.place.ask(f"SHOW CREATE TABLE {name}")[0][1]) for (name,) in names]


def _lines(name: str, text: str) -> str:
    """Return a table's definition with its columns as they come, and with its keys and checks in one order."""
    lines = [line.strip().rstrip(",") for line in text.splitlines()]
    columns = [line for line in lines if line.startswith("`")]
    return "\n".join([name, *columns, *sorted(set(lines) - set(columns))])


def _postgres(tables: Tables) -> list[str]:
    statements = (
        """
        SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), l.collname, a.attnotnull,
               a.attidentity, pg_get_expr(d.adbin, d.adrelid), c.reloptions
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND c.relkind = 'r'
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        LEFT JOIN pg_collation l ON l.oid = a.attcollation
        WHERE c.relnamespace = CAST(:schema AS regnamespace)
        """,
        """
        SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = CAST(:schema AS regnamespace) AND contype <> 'n'
        """,
        "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = :schema",
        "SELECT sequencename, start_value, increment_by, cycle FROM pg_sequences WHERE schemaname = :schema",
    )
    schema = tables.names.schema
    rows = [row for text in statements for row in tables.place.ask(text.replace("::", r"\:\:"), schema=schema)]
    return [" ".join(map(str, row)) for row in rows]


def tables_of(place: Place, word: str) -> Tables:
    """Give names that are free. What gets them is left behind: the server itself goes when the tests end."""
    own = f"{word}_{place.namespace}"
    if place.postgres:
        place.ask(f"CREATE SCHEMA {own}")
    return Tables(place, Names(f"{own}_", own if place.postgres else None))


def known() -> list[Path]:
    """Return the versions of this tenure, in order."""
    return sorted(VERSIONS.glob("v[0-9]*.py"))


def versions(directory: Path, files: Sequence[Path], *, last: str | None = None) -> Path:
    """Return a directory of these versions, and of a next one with such a last step, if there is to be one."""
    directory.mkdir(exist_ok=True)
    for file in files:
        shutil.copy(file, directory)
    if last is not None:
        number = len(files) + 1
        text = NEXT.format(revision=f"{number:03}", before=f"{number - 1:03}", last=last)
        (directory / f"v{number:03}.py").write_text(text)
    return directory


Make = Callable[[str], Tables]
