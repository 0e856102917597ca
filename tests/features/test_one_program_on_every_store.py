"""The same program and the same worker on every store: only the environment changes."""

import asyncio
import json
from collections.abc import Callable, Iterator

import pytest

from tenure.config import Settings
from tests.cli.conftest import Program
from tests.support.addresses import cluster_url
from tests.support.cluster import cluster
from tests.support.servers import Server
from tests.support.topologies import client, info
from tests.worker.conftest import forget

UNSET = {"TENURE_URL": ""}


@pytest.fixture(autouse=True)
def _forgotten(valkey: Server, namespace: str) -> Iterator[None]:
    """What a test leaves on the server that all tests share is removed."""
    yield
    asyncio.run(forget(valkey, namespace))


def by_url(server: Server) -> dict[str, str]:
    return {"TENURE_URL": server.url}


def by_url_of_streams(server: Server) -> dict[str, str]:
    return {"TENURE_URL": server.url.replace("unix://", "unix+streams://")}


def by_redis_keys_on_streams(server: Server) -> dict[str, str]:
    return {**by_redis_keys(server), "QUEUE_CONNECTION": "redis-streams"}


def by_redis_keys(server: Server) -> dict[str, str]:
    return {**UNSET, "QUEUE_CONNECTION": "redis", "REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(server.port)}


def by_redis_url(server: Server) -> dict[str, str]:
    return {**UNSET, "REDIS_URL": server.tcp_url, "REDIS_PREFIX": "shops:"}


def automatically(server: Server) -> dict[str, str]:
    return {**UNSET, "QUEUE_CONNECTION": "auto", "REDIS_URL": server.tcp_url}


def by_nothing(server: Server) -> dict[str, str]:
    return UNSET


def by_database_url(server: Server) -> dict[str, str]:
    return {**UNSET, "QUEUE_CONNECTION": "sql", "DATABASE_URL": "sqlite:///own.db"}


def life_of_a_job(program: Program) -> list[str]:
    """Push, look, work and look again, by the command line; return what became visible."""
    steps = [
        ["push", "greet", '["Ana"]', "--app", "shop:app"],
        ["push", "greet", '["Bob", 2]', "--app", "shop:app", "--delay", "3600"],
        ["push", "fail", '["x"]', "--app", "shop:app"],
    ]
    for step in steps:
        assert program(*step).returncode == 0
    assert program("worker", "shop:app", "--stop-when-empty", "--concurrency", "1").returncode == 0
    [row] = json.loads(program("status", "--json").stdout)["queues"]
    [failed] = json.loads(program("failed", "--json").stdout)["failed"]
    return [*program.ran, *(f"{state} {row[state]}" for state in ("ready", "delayed", "failed")), failed["error"]]


# K1, S1, S2
@pytest.mark.parametrize(
    "configured",
    [
        *(by_url, by_redis_keys, by_redis_url, automatically, by_nothing, by_database_url),
        *(by_url_of_streams, by_redis_keys_on_streams),
    ],
)
def test_only_the_configuration_changes(
    tenure: Program, valkey: Server, namespace: str, configured: Callable[[Server], dict[str, str]]
) -> None:
    tenure.write("pyproject.toml", "")
    tenure.env |= {**configured(valkey), "QUEUE_NAMESPACE": namespace}
    assert life_of_a_job(tenure) == ["greet Ana 1", "fail", "ready 0", "delayed 1", "failed 1", "ValueError"]


# S1, K9
def test_one_worker_program_serves_the_connection_that_it_is_told(
    tenure: Program, valkey: Server, namespace: str
) -> None:
    """The default connection is an SQLite file, and `reports` a server; a cluster on plain keys leaves it alone."""
    tenure.env |= {
        "QUEUE_NAMESPACE": namespace,
        "REDIS_HOST": "nowhere.invalid",
        "REDIS_CLUSTER": "true",
        "REDIS_REPORTS_HOST": "127.0.0.1",
        "REDIS_REPORTS_PORT": str(valkey.port),
        "REDIS_REPORTS_PREFIX": "reports:",
        "QUEUE_REPORTS_NAMESPACE": namespace,
    }
    for name, options in (("file", []), ("server", ["--connection", "reports"])):
        assert tenure("push", "greet", json.dumps([name]), "--app", "shop:app", *options).returncode == 0
    for expected, options in (("server", ["--connection", "reports"]), ("file", [])):
        assert tenure("worker", "shop:app", "--stop-when-empty", *options).returncode == 0
        assert tenure.ran[-1] == f"greet {expected} 1"
    assert len(tenure.ran) == 2
    with client(valkey) as control:
        assert {key for key in control.scan_iter(match=f"*{namespace}*") if not key.startswith("reports:")} == set()


@pytest.fixture(scope="module")
def nodes(valkey: Server) -> Iterator[str]:
    with cluster(valkey.binary) as built:
        yield cluster_url(built)


# K9, W11
@pytest.mark.parametrize("driver", ["redis", "redis-streams"])
def test_a_cluster_is_a_store_like_another(tenure: Program, nodes: str, namespace: str, driver: str) -> None:
    host, _, port = nodes.removeprefix("redis+cluster://").partition(",")[0].partition(":")
    tenure.env |= {
        "QUEUE_NAMESPACE": namespace,
        **UNSET,
        "QUEUE_CONNECTION": driver,
        "REDIS_HOST": host,
        "REDIS_PORT": port.partition("/")[0],
        "REDIS_CLUSTER": "true",
    }
    assert Settings.from_environ(tenure.env).connection().address.topology == "cluster"
    assert life_of_a_job(tenure) == ["greet Ana 1", "fail", "ready 0", "delayed 1", "failed 1", "ValueError"]


# S20
def test_the_oldest_supported_server_is_enough(tenure: Program, redis62: Server, namespace: str) -> None:
    assert info(redis62, "server")["redis_version"].startswith("6.2.")
    tenure.env |= {"TENURE_URL": redis62.url, "QUEUE_NAMESPACE": namespace}
    assert life_of_a_job(tenure) == ["greet Ana 1", "fail", "ready 0", "delayed 1", "failed 1", "ValueError"]


# S2
@pytest.mark.parametrize("apart", [{"QUEUE_NAMESPACE": "other"}, {"REDIS_PREFIX": "other:"}])
def test_prefix_and_namespace_keep_programs_on_one_server_apart(
    tenure: Program, valkey: Server, namespace: str, apart: dict[str, str]
) -> None:
    tenure.env |= {**by_redis_url(valkey), "QUEUE_NAMESPACE": namespace}
    elsewhere = {key: f"{namespace}-{value}" for key, value in apart.items()}
    push = ["push", "greet", '["Ana"]', "--app", "shop:app"]
    assert tenure(*push).returncode == tenure(*push, env=elsewhere).returncode == 0
    cleared = tenure("clear", "--queue", "default", "--force", env=elsewhere)
    assert cleared.stdout == "cleared 1\n"
    assert tenure("worker", "shop:app", "--stop-when-empty", env=elsewhere).returncode == 0
    assert tenure.ran == []
    assert tenure("worker", "shop:app", "--stop-when-empty").returncode == 0
    assert tenure.ran == ["greet Ana 1"]
    with client(valkey) as control:
        names = set(control.scan_iter(match=f"*{namespace}*", count=1000))
        assert all(key.startswith(("shops:", f"{namespace}-other:")) for key in names)
        assert names
