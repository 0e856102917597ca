"""The stores that the contract suite runs on: a parameter named `driver`, and a fresh `store` for each test."""

import pathlib
from collections.abc import AsyncIterator

import pytest

from tenure.testing.contract import StoreUnderTest
from tests.contract import stores
from tests.support.servers import Server, redis62_binary

DRIVERS = ["memory", "sqlite", "redis", "valkey", *(["redis62"] if redis62_binary() else [])]
SERVERS = {"redis": "redis7", "valkey": "valkey", "redis62": "redis62"}


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
    else:
        server: Server = request.getfixturevalue(SERVERS[driver])
        async with stores.redis_store(server, namespace) as store:
            yield store
