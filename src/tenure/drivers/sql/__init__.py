"""The SQL drivers. SQLite, which needs no server and no library, is the default of a program that configures none."""

from tenure.drivers.sql.sqlite.driver import SqliteQueue

__all__ = ["SqliteQueue"]
