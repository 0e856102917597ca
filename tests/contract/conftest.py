"""The stores that the contract suite runs on: a parameter named `driver`, and a fresh `store` for each test."""

import pathlib
from collections.abc import AsyncIterator

import pytest

from tenure.testing.contract import StoreUnderTest
from tests.contract import stores
from tests.support.servers import Server, redis62_binary

LISTS = {"redis": "redis7", "valkey": "valkey", "redis62": "redis62"}
STREAMS = {f"{driver}-streams": server for driver, server in LISTS.items()}
SERVERS = {driver: server for driver, server in {**LISTS, **STREAMS}.items() if server != "redis62" or redis62_binary()}
DRIVERS = ["memory", "sqlite", "postgresql", "mariadb", *SERVERS]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "driver" in metafunc.fixturenames:
        metafunc.parametrize("driver", getattr(metafunc.module, "DRIVERS", DRIVERS))


@pytest.fixture
async def store(
    driver: str, tmp_path: pathlib.Path, namespace: str, request: pytest.FixtureRequest
) -> AsyncIterator[StoreUnderTest]:
    if driver == "memory":
        async with stores.memory_store() as store:
            yield store
    elif driver == "sqlite":
        async with stores.sqlite_store(tmp_path, namespace) as store:
            yield store
    elif driver in {"postgresql", "mariadb"}:
        async with stores.database_store(request.getfixturevalue(driver), namespace) as store:
            yield store
    else:
        server: Server = request.getfixturevalue(SERVERS[driver])
        opened = stores.streams_store if driver in STREAMS else stores.redis_store
        async with opened(server, namespace) as store:
            yield store
