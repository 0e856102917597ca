"""Jobs in a PostgreSQL database."""

from tenure.drivers.sql.postgresql.queue import PostgresQueue

__all__ = ["PostgresQueue"]
