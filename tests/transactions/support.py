"""A business of one table, an application that pushes beside it, and what is in its queue."""

import json
import pathlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tenure import Tenure
from tenure.portal import blocking
from tenure.queue import Lease

QUEUE = "default"


class WentWrong(Exception):
    """What a transaction is left with."""


class Base(DeclarativeBase):
    pass


class Order(Base):
    """What the business writes beside its jobs. Tests share the table, each by its own namespace."""

    __tablename__ = "test_orders"

    number: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str] = mapped_column(sqlalchemy.String(64), primary_key=True)


@dataclass(frozen=True)
class Business:
    """A database, as a client library of SQLAlchemy reaches it, and an application that keeps its jobs in it."""

    url: str
    store: str
    """Where the jobs are, as the application takes it."""
    app: Tenure
    namespace: str

    def order(self, number: int) -> Order:
        return Order(number=number, owner=self.namespace)

    def insert(self, number: int) -> sqlalchemy.Insert:
        return sqlalchemy.insert(Order).values(number=number, owner=self.namespace)

    @property
    def orders(self) -> "sqlalchemy.Select[Any]":
        """Ask which orders there are."""
        return sqlalchemy.select(Order.number).where(Order.owner == self.namespace).order_by(Order.number)

    @contextmanager
    def engine(self, **options: Any) -> Iterator[sqlalchemy.Engine]:
        engine = sqlalchemy.create_engine(self.url, **options)
        begin_by_hand(engine)
        try:
            yield engine
        finally:
            engine.dispose()

    @asynccontextmanager
    async def async_engine(self, **options: Any) -> AsyncIterator[AsyncEngine]:
        engine = create_async_engine(self.url, **options)
        begin_by_hand(engine.sync_engine)
        try:
            yield engine
        finally:
            await engine.dispose()


def begin_by_hand(engine: sqlalchemy.Engine) -> None:
    """Begin transactions when they begin, as SQLAlchemy's documentation has it: SQLite's library would do so later."""
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "connect")
        def connected(connection: Any, _: object) -> None:
            connection.isolation_level = None

        @event.listens_for(engine, "begin")
        def begun(connection: sqlalchemy.Connection) -> None:
            connection.exec_driver_sql("BEGIN")


def make_app(url: str, namespace: str) -> Tenure:
    app = Tenure(url, namespace=namespace)
    app.job(note)
    return app


def note(number: int) -> int:
    return number


NOTE = f"{__name__}.note"


def pushing(app: Tenure, number: int, **options: Any) -> Any:
    """Return a call that is told by its number."""
    return app.call(NOTE, [number]).options(**options)


def numbers(leases: Sequence[Lease]) -> list[int]:
    return [json.loads(lease.envelope)["args"][0] for lease in leases]


async def pushed(app: Tenure, limit: int = 100) -> list[int]:
    """Take all ready jobs out of the queue, and return their numbers in order."""
    return numbers((await app.queue().claim([QUEUE], limit=limit, lease=60, wait=0)).leases)


def pushed_sync(app: Tenure) -> list[int]:
    return blocking("claim", lambda: pushed(app))


def file_url(directory: pathlib.Path) -> str:
    return f"sqlite:///{directory / 'jobs.sqlite'}"
