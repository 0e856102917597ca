"""What Alembic runs around each migration: with the connection, or the dialect, that ``running`` put there."""

from alembic import context

_given = context.config.attributes["tenure"]

context.configure(
    connection=_given.connection,
    dialect_name=_given.dialect,
    version_table=_given.names.prefix + "version",
    version_table_schema=_given.names.schema,
)
with context.begin_transaction():
    if context.is_offline_mode():
        for _text in _given.guards:
            context.execute(_text)
    context.run_migrations()
