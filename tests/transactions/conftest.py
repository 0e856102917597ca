"""Businesses on each database, through each client library."""

import pathlib
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy

from tests.support.databases import Database
from tests.transactions.support import Base, Business, file_url, make_app

LIBRARIES = {
    "sqlite": "sqlite",
    "aiosqlite": "sqlite",
    "psycopg": "postgresql",
    "psycopg2": "postgresql",
    "asyncpg": "postgresql",
    "pymysql": "mariadb",
    "asyncmy": "mariadb",
}
"""Client libraries, and the database that each is for."""

Open = Callable[[str], Business]


@pytest.fixture
def open_business(request: pytest.FixtureRequest, tmp_path: pathlib.Path, namespace: str) -> Iterator[Open]:
    """Opens a business whose jobs are in its own database, by the name of a client library."""
    apps = []

    def opened(library: str) -> Business:
        name = LIBRARIES[library]
        if name == "sqlite":
            url = file_url(tmp_path)
            app = make_app(url, namespace)
            library_url = url if library == "sqlite" else url.replace("sqlite", "sqlite+aiosqlite", 1)
            engine = sqlalchemy.create_engine(url)
            app.counts_sync("default")  # makes the file
        else:
            database: Database = request.getfixturevalue(name)
            url = database.url
            app = make_app(url, namespace)
            scheme, _, rest = url.partition("://")
            library_url = f"{scheme}+{library}://{rest}"
            engine = database.engine()
        Base.metadata.create_all(engine)
        engine.dispose()
        apps.append(app)
        return Business(library_url, url, app, namespace)

    yield opened
    for app in apps:
        app.close_sync()
