"""``tenure migrate``."""

from typing import TYPE_CHECKING, Any

import click

from tenure.cli.errors import CommandFailed
from tenure.cli.options import spoken, store_options
from tenure.cli.output import inert, note, say
from tenure.cli.store import Where, app_of
from tenure.connections import require_database
from tenure.errors import NotSupported

if TYPE_CHECKING:
    from tenure.drivers.sql.migrations import Migrations, Standing


@click.command()
@spoken("--sql", "as_sql", is_flag=True, help="Print the SQL instead, for others to run; opens no connection.")
@spoken("--from", "since", metavar="VERSION", help="With --sql: the version that the tables are of.  [default: none]")
@spoken("--check", is_flag=True, help="Change nothing, and end with 1 when tables are missing or out of date.")
@store_options
def migrate(*, as_sql: bool, since: str | None, check: bool, **where: Any) -> None:
    """Make the tables of a database server, or bring them to this version.

    Safe to run before every deployment, by several hosts at once, while workers run: the older ones go on.
    """
    if as_sql and check:
        raise click.UsageError("--sql and --check exclude each other")
    if since is not None and not as_sql:
        raise click.UsageError("--from goes with --sql")
    migrations = _migrations(Where(**where))
    if migrations is None:
        note("the SQLite file makes and upgrades its tables itself; nothing to do")
    elif as_sql:
        say(migrations.script(since).rstrip())
    elif check:
        _check(migrations.standing())
    else:
        migrations.upgrade(lambda version: say(f"migrated to version {version}"))
        _say_standing(migrations.standing())


def _migrations(where: Where) -> "Migrations | None":
    """Return the migrations of the store; None when it is a SQLite file."""
    address = app_of(where).settings.connection(where.connection).address
    if address.driver == "sqlite":
        return None
    if address.database is None:
        hint = "name a database with --connection or --url"
        raise NotSupported(address.driver, "migrations, because it has no tables", hint)
    require_database(address.database.server, "tenure migrate", "sqlalchemy", "alembic")
    from tenure.drivers.sql.migrations import Migrations  # noqa: PLC0415 - an extra

    return Migrations(address.database)


def _check(standing: "Standing") -> None:
    if standing.lacking:
        found = f"the tables are of version {standing.found}" if standing.found else "there are no tables"
        raise CommandFailed(f"{found}, and {standing.newest} is the newest; run `tenure migrate`")
    _say_standing(standing)


def _say_standing(standing: "Standing") -> None:
    newer = "" if standing.found == standing.newest else f", made by a newer tenure; this one knows {standing.newest}"
    say(inert(f"up to date: version {standing.found}{newer}"))
