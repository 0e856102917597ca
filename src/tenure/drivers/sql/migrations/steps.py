"""What migrations are written with: the tables' prefix and schema are put in, and a step that is done is passed over.

MySQL has no transaction around a change of tables: one that was killed half-way is run again from its beginning.
"""

from typing import Any

from alembic import context, op
from sqlalchemy import inspect
from sqlalchemy.schema import CreateSequence, SchemaItem, Sequence

from tenure.drivers.sql.server.columns import OPTIONS
from tenure.drivers.sql.server.names import Names


def names() -> Names:
    """Return what the tables are called."""
    found: Names = context.config.attributes["tenure"].names
    return found


def on_postgresql() -> bool:
    """Tell whether it is PostgreSQL, and not MySQL or MariaDB."""
    return op.get_context().dialect.name == "postgresql"


def create(name: str, *parts: SchemaItem, **more: Any) -> None:
    """Make a table."""
    own = names()
    op.create_table(own.prefix + name, *parts, schema=own.schema, if_not_exists=True, **OPTIONS, **more)


def index(name: str, table: str, *columns: str, **options: Any) -> None:
    """Make an index of a table."""
    own = names()
    name, table = own.prefix + name, own.prefix + table
    # MySQL, which MariaDB is not, knows no CREATE INDEX IF NOT EXISTS.
    if context.is_offline_mode() or not inspect(op.get_bind()).has_index(table, name, schema=own.schema):
        op.create_index(name, table, list(columns), schema=own.schema, **options)


def sequence(name: str, **options: Any) -> None:
    """Make a sequence; PostgreSQL only."""
    own = names()
    op.execute(CreateSequence(Sequence(own.prefix + name, schema=own.schema, **options), if_not_exists=True))
