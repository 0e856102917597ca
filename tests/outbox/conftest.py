"""Businesses on each database, whose jobs go to another store by way of the outbox."""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from tenure import Tenure
from tests.outbox.support import Scene
from tests.support.databases import Database
from tests.transactions.conftest import LIBRARIES
from tests.transactions.support import Base, note

Open = Callable[[str, str], Scene]


@pytest.fixture
def open_scene(request: pytest.FixtureRequest, tmp_path: pathlib.Path, namespace: str) -> Iterator[Open]:
    """Opens a scene by the names of a client library of the business, and of the store that its jobs are for."""
    apps: list[Tenure] = []

    def opened(library: str, target: str) -> Scene:
        name = LIBRARIES[library]
        if name == "sqlite":
            database_url = f"sqlite:///{tmp_path / 'business.sqlite'}"
            library_url = database_url if library == "sqlite" else database_url.replace("sqlite", "sqlite+aiosqlite", 1)
        else:
            database: Database = request.getfixturevalue(name)
            database_url = database.url
            scheme, _, rest = database_url.partition("://")
            library_url = f"{scheme}+{library}://{rest}"
        app = Tenure(_store(request, target, tmp_path), namespace=namespace, outbox=database_url)
        app.job(note)
        apps.append(app)
        scene = Scene(library_url, database_url, app, namespace)
        if library in {"sqlite", "psycopg", "psycopg2", "pymysql"}:
            with scene.engine() as engine:
                Base.metadata.create_all(engine)
        if name == "sqlite":
            scene.relay()  # makes the tables in the file
        return scene

    yield opened
    for app in apps:
        app.close_sync()


def _store(request: pytest.FixtureRequest, target: str, tmp_path: pathlib.Path) -> str:
    if target == "file":
        return f"sqlite:///{tmp_path / 'jobs.sqlite'}"
    if target == "streams":
        return str(request.getfixturevalue("valkey").url).replace("unix://", "unix+streams://")
    return str(request.getfixturevalue(target).url)
