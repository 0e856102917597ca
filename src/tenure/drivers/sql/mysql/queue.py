"""``MysqlQueue``: the contract over a MySQL or MariaDB database."""

from collections.abc import Mapping
from typing import Any

from tenure.databases import DatabaseUrl
from tenure.drivers.sql.mysql.doctor import examine
from tenure.drivers.sql.mysql.server import Mysql
from tenure.drivers.sql.server.driver import ServerQueue, named
from tenure.drivers.sql.server.names import Names
from tenure.drivers.sql.server.polling import Polling
from tenure.drivers.sql.server.texts import Texts
from tenure.drivers.sql.server.transaction import Place
from tenure.naming import check_namespace


class MysqlQueue(ServerQueue):
    """Jobs in a database of MySQL 8 or MariaDB 10.6, or newer ones. ``parameters`` are PyMySQL's.

    Nobody tells of jobs there: a waiting claim looks ten times a second.
    """

    @classmethod
    def from_url(cls, url: DatabaseUrl, *, namespace: str, names: Names | None = None) -> "MysqlQueue":
        """Return a driver for the database that a URL names."""
        return cls(Mysql.parameters(url), namespace=namespace, names=names or named(url))

    def __init__(self, parameters: Mapping[str, Any], *, namespace: str, names: Names | None = None) -> None:
        server = Mysql(parameters)
        place = Place(server, Texts(server.dialect, names or Names()), check_namespace(namespace))
        super().__init__(place, lambda _: Polling(), examine)
