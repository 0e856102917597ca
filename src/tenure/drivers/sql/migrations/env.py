"""What Alembic runs around each migration: with the connection, or the dialect, that ``running`` put there."""

from alembic import context

given = context.config.attributes["tenure"]

context.configure(
    connection=given.connection,
    dialect_name=given.dialect,
    version_table=given.names.prefix + "version",
    version_table_schema=given.names.schema,
)
with context.begin_transaction():
    if context.is_offline_mode():
        for text in given.guards:
            context.execute(text)
    context.run_migrations()
