"""A bench for each scenario of a case, on Redis and on SQLite."""

import asyncio
import pathlib
from collections.abc import Iterator
from typing import Protocol

import pytest

from tests.cases import apart, program
from tests.support.servers import Server
from tests.worker.bench import Bench
from tests.worker.conftest import forget
from tests.worker.program import Journal


class Benches(Protocol):
    """Makes a bench by name, each on a namespace of its own and, with SQLite, in a file of its own."""

    def __call__(self, name: str, *, processes: bool = False) -> Bench:
        """``processes``: it has a job that runs in a process of its own."""
        ...


@pytest.fixture(params=["redis", "sqlite"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(request: pytest.FixtureRequest, store: str) -> Server | None:
    """The server of the store, which others use too; None for SQLite."""
    made: Server | None = request.getfixturevalue("redis7") if store == "redis" else None
    return made


@pytest.fixture
def benches(server: Server | None, namespace: str, tmp_path: pathlib.Path) -> Iterator[Benches]:
    """What makes benches for one test."""
    made: list[Bench] = []

    def make(name: str, *, processes: bool = False) -> Bench:
        url = f"sqlite:///{tmp_path / f'{name}.db'}" if server is None else server.url
        journal = Journal(tmp_path / f"{name}.journal")
        module = apart if processes else program
        made.append(Bench(url, f"{namespace}{name}", journal, program=module.__name__, build=module.build))
        return made[-1]

    yield make
    for bench in made:
        bench.app.close_sync()
    if server is not None:
        asyncio.run(forget(server, namespace))


@pytest.fixture
def bench(benches: Benches) -> Bench:
    """The only one of a test."""
    return benches("a")
