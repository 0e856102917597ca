"""How this process, and each contending one, opens the stores that are tested here.

A contending process imports the driver that it needs and no other.
"""

from typing import TYPE_CHECKING

from tenure import databases
from tenure.queue import Queue

if TYPE_CHECKING:
    from tenure.drivers.redis.scripts import Scripts


def sqlite(path: str, namespace: str) -> Queue:
    from tenure.drivers.sql import SqliteQueue  # noqa: PLC0415

    return SqliteQueue(path, namespace=namespace)


def postgresql(url: str, namespace: str) -> Queue:
    from tenure.drivers.sql.postgresql import PostgresQueue  # noqa: PLC0415

    return PostgresQueue.from_url(databases.of(url, "tests"), namespace=namespace)


def mysql(url: str, namespace: str) -> Queue:
    from tenure.drivers.sql.mysql import MysqlQueue  # noqa: PLC0415

    return MysqlQueue.from_url(databases.of(url, "tests"), namespace=namespace)


def redis(url: str, namespace: str, scripts: "Scripts | None" = None) -> Queue:
    from tenure.drivers.redis import RedisQueue  # noqa: PLC0415

    return RedisQueue.from_url(url, namespace=namespace, scripts=scripts)


def streams(url: str, namespace: str, scripts: "Scripts | None" = None) -> Queue:
    from tenure.drivers.redis import RedisQueue  # noqa: PLC0415
    from tenure.drivers.redis.layout import STREAMS  # noqa: PLC0415

    return RedisQueue.from_url(url, namespace=namespace, layout=STREAMS, scripts=scripts)
