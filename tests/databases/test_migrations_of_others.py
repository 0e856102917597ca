"""Projects that use Alembic or Django themselves: what the documentation tells them, run as it is written there."""

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config

from tenure.queue import Queue
from tenure.testing.contract.steps import job, pushed_and_claimed
from tests.cli.conftest import Program
from tests.cli.here import Done
from tests.databases.migrating import Tables, tables_of
from tests.databases.support import Place, place_of
from tests.docs.snippets import snippets
from tests.support.databases import Database

Keep = Callable[[Queue], Queue]
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "migrations.md"
EXAMPLES = {snippet.file_name: snippet.text for snippet in snippets(PAGE.read_text()) if snippet.file_name}
SEQUENCE = re.search(r'^op\.execute\("(CREATE SEQUENCE .*)"\)$', PAGE.read_text(), re.MULTILINE)

ENV = """
from alembic import context
given = context.config.attributes
context.configure(include_schemas=True, **given["options"])
with context.begin_transaction():
    context.run_migrations()
"""
MAKO = """
from alembic import op
import sqlalchemy as sa
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
def upgrade():
    ${upgrades if upgrades else "pass"}
def downgrade():
    pass
"""
SETTINGS = """
SECRET_KEY = "x"
INSTALLED_APPS = ["shop"]
PLACE = {{"HOST": {host!r}, "PORT": {port}, "USER": "tenure", "NAME": "postgres"}}
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql", **PLACE}}}}
"""


@pytest.fixture
def tables(place: Place) -> Tables:
    return tables_of(place, "own")


class Theirs:
    """A project that uses Alembic, on the database of a test."""

    def __init__(self, directory: pathlib.Path, tables: Tables) -> None:
        self._tables = tables
        (directory / "versions").mkdir()
        (directory / "env.py").write_text(ENV)
        (directory / "script.py.mako").write_text(MAKO)
        self._versions = directory / "versions"
        self._seen: set[pathlib.Path] = set()
        self._config = Config()
        self._config.set_main_option("script_location", str(directory))

    def revise(self, **options: object) -> str:
        """Write what Alembic finds that the database lacks, or has too much, and return its name."""
        self._run(lambda: command.revision(self._config, "next", autogenerate=True), options)
        there = set(self._versions.glob("*.py"))
        [newest] = there - self._seen
        self._seen = there
        return newest.read_text()

    def upgrade(self) -> None:
        self._run(lambda: command.upgrade(self._config, "head"), {})

    def _run(self, action: Callable[[], object], options: dict[str, object]) -> None:
        with self._tables.place.database.engine().connect() as connection:
            common = {
                "connection": connection,
                "include_name": self._own,
                "version_table": f"{self._tables.names.prefix}their_version",
                "version_table_schema": self._tables.names.schema,
            }
            self._config.attributes["options"] = {**common, **options}
            action()
            connection.commit()

    def _own(self, name: str | None, kind: str, _: object) -> bool:
        """Tell whether it is this test's: the database is shared."""
        if kind == "schema":
            return name == self._tables.names.schema
        return kind != "table" or str(name).startswith(self._tables.names.prefix)


async def test_alembic_takes_the_tables_into_migrations_of_its_own(
    tables: Tables, tmp_path: pathlib.Path, opened: Keep
) -> None:
    taken: dict[str, object] = {}
    schema = f", {tables.names.schema!r}" if tables.names.schema else ""
    text = EXAMPLES["take/models.py"].replace('Names("tenure_")', f"Names({tables.names.prefix!r}{schema})")
    text = text if tables.place.postgres else text.replace('dialect="postgresql"', 'dialect="mysql"')
    exec(text, taken)
    theirs = Theirs(tmp_path, tables)
    theirs.revise(target_metadata=taken["target_metadata"])
    theirs.upgrade()
    if tables.place.postgres:
        assert SEQUENCE
        tables.place.ask(SEQUENCE[1].replace("tenure_numbers", tables.full("numbers")))
    made, migrated = tables.described(), tables_of(tables.place, "migrated")
    migrated.migrations().upgrade()
    assert [row for row in made if not row.startswith("their")] == migrated.described()
    assert "pass" in theirs.revise(target_metadata=taken["target_metadata"])  # there is nothing left to do
    await pushed_and_claimed(opened(tables.queue()), job("x"))


def test_alembic_leaves_the_tables_to_tenure_when_it_is_told_to(tables: Tables, tmp_path: pathlib.Path) -> None:
    tables.migrations().upgrade()
    rules: dict[str, object] = {}
    exec(EXAMPLES["leave/rules.py"].replace("tenure_", tables.names.prefix), rules)
    theirs, nothing = Theirs(tmp_path, tables), sqlalchemy.MetaData()
    assert "drop_table" not in theirs.revise(target_metadata=nothing, include_object=rules["include_object"])
    theirs.upgrade()
    assert "drop_table" in theirs.revise(target_metadata=nothing)


async def test_django_runs_what_migrate_prints(
    postgresql: Database, namespace: str, tmp_path: pathlib.Path, opened: Keep
) -> None:
    tables = tables_of(place_of(postgresql, namespace), "own")
    host, port = re.findall(r"@([\d.]+):(\d+)/", tables.url)[0]
    shop = tmp_path / "shop" / "migrations"
    shop.mkdir(parents=True)
    for package in (shop, shop.parent):
        (package / "__init__.py").touch()
    (shop / "0001_tenure.py").write_text(EXAMPLES["shop/migrations/0001_tenure.py"])
    (tmp_path / "settings.py").write_text(SETTINGS.format(host=host, port=int(port)))
    (shop / "tenure.sql").write_text(run(tmp_path, "tenure", "migrate", "--sql", "--url", tables.url))
    said = run(tmp_path, "django", "migrate", "--settings", "settings")
    assert "Applying shop.0001_tenure... OK" in said
    assert tables.migrations().standing().lacking == []
    migrated = tables_of(tables.place, "migrated")
    migrated.migrations().upgrade()
    assert tables.described() == migrated.described()
    await pushed_and_claimed(opened(tables.queue()), job("x"))


def test_the_command_tells_how_the_tables_stand(tables: Tables, tmp_path: pathlib.Path) -> None:
    def migrate(*options: str) -> Done:
        return Program(tmp_path)("migrate", *options, env={"TENURE_URL": tables.url})

    done = migrate("--check")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there are no tables" in done.stderr
    assert "up to date: version" in migrate().stdout
    assert migrate("--check").returncode == 0
    tables.place.ask(f"UPDATE {tables.full('version')} SET version_num = '999'")
    done = migrate("--check")
    assert done.returncode == 0
    assert re.search(r"version 999, made by a newer tenure; this one knows \d+", done.stdout)


def run(directory: pathlib.Path, module: str, *arguments: str) -> str:
    """Run a program in a directory and return what it printed; raises ``CalledProcessError``."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(directory), *sys.path]))}
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=directory, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout
