"""Jobs in a MySQL or MariaDB database."""

from tenure.drivers.sql.mysql.queue import MysqlQueue

__all__ = ["MysqlQueue"]
