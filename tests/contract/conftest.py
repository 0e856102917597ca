"""The stores that the contract suite runs on: a parameter named `driver`, and a fresh `store` for each test."""

import os
import pathlib
from collections.abc import AsyncIterator

import pytest

from tenure.testing.contract import StoreUnderTest
from tests.contract import stores
from tests.support.absent import PREFIX
from tests.support.servers import Server, redis62_binary

LISTS = {"redis": "redis7", "valkey": "valkey", "redis62": "redis62"}
STREAMS = {f"{driver}-streams": server for driver, server in LISTS.items()}
SERVERS = {driver: server for driver, server in {**LISTS, **STREAMS}.items() if server != "redis62" or redis62_binary()}
DRIVERS = ["memory", "sqlite", "postgresql", "mariadb", *SERVERS]

EVERYWHERE = bool(os.environ.get("CI") or os.environ.get("TENURE_EVERYWHERE"))
WHOLE = {"memory", "sqlite", "postgresql", "mariadb", "valkey", "valkey-streams"}
"""Each driver once: there every behaviour is tested. Further ways to the same drivers, servers of another make and
topologies, take most of the whole time, which CI has."""
EACH_SCRIPT = {f"about_{what}" for what in ("advancing", "claiming", "clearing", "failing", "pushing", "settling")}
"""Of those a part is tested by default, which runs each script that works on jobs there."""
LEFT = f"{PREFIX}: a part of the contract on a further way to its driver (make test EVERYWHERE=1)"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "driver" in metafunc.fixturenames:
        metafunc.parametrize("driver", getattr(metafunc.module, "DRIVERS", DRIVERS))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        callspec = getattr(item, "callspec", None)
        if EVERYWHERE or callspec is None or callspec.params.get("driver", "memory") in WHOLE:
            continue
        written = getattr(getattr(item, "function", None), "__module__", "").rpartition(".")[2]
        if written not in EACH_SCRIPT:
            item.add_marker(pytest.mark.skip(LEFT))


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
