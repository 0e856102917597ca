"""The doctor finds what is wrong with a real server, says nothing serious of a good one, and changes nothing.

The misconfigurations that are planted: nothing persisted · eviction · memory nearly full · a clock that stands still ·
a clock that is wrong · a forbidden command · a forbidden key · another program's data under our key · a fence ahead of
the clock · a spoilt sequence · no connections left · too few replicas to write · a disk that refuses · a replica · a
cluster's node · a busy server · a missing password; as warnings: a short idle timeout, a short limit for scripts, no
fsync, snapshots alone.
"""

import asyncio
import pathlib
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import pytest
from redis.crc import key_slot

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.doctor import contents, rights
from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.layout import LAYOUTS, LISTS, Layout
from tenure.drivers.redis.scripts import Scripts
from tenure.operating import Diagnosis, Finding, Severity
from tenure.queue import Push, feature
from tests.redis.conftest import BINARIES, SERVERS
from tests.support import faults, least
from tests.support.absent import not_proven
from tests.support.cluster import cluster, lone_node, port_of
from tests.support.servers import ROOT, Server, redis7_binary, redis_like
from tests.support.topologies import acl_server, client, info, tell

GOOD = ("--maxmemory", "512mb", "--maxmemory-policy", "noeviction")
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  int (*real)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
  int result = real(now, zone);
  const char *stands = getenv("CLOCK_STANDS_AT"), *ahead = getenv("CLOCK_AHEAD");
  if (stands) { now->tv_sec = atol(stands); now->tv_usec = 0; }
  if (ahead) now->tv_sec += atol(ahead);
  return result;
}
"""


@pytest.fixture(params=SERVERS)
def good(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server as docs/redis.md asks for it."""
    with running(request.param) as server:
        yield server


@contextmanager
def running(kind: str, *arguments: str) -> Iterator[Server]:
    binary = BINARIES[kind]()
    if binary is None:
        not_proven(kind, "see tests/conftest.py")
    with redis_like(binary, extra_args=[*GOOD, *arguments], tcp=True) as server:
        yield server


async def examined(url: str, durability: int = 1, *, push: bool = False) -> Sequence[Finding]:
    queue = RedisQueue.from_url(url, namespace="shop")
    try:
        if push:
            await queue.push([Push(queue="emails", id="a", envelope=b"{}")])
        return await queue.diagnose(durability=durability)
    finally:
        await queue.aclose()


def serious(found: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(finding.check, finding.found) for finding in found if finding.severity is Severity.SERIOUS]


def only(found: Sequence[Finding], severity: Severity, check: str) -> Finding:
    matching = [finding for finding in found if finding.severity is severity and finding.check == check]
    assert len(matching) == 1, found
    [finding] = matching
    assert finding.risk
    assert finding.remedy
    return finding


def test_the_driver_can_be_diagnosed() -> None:
    assert feature(RedisQueue.from_url("redis://localhost", namespace="shop"), Diagnosis)


async def test_a_well_configured_server_has_nothing_serious_and_no_warning(good: Server) -> None:
    found = await examined(good.url, push=True)
    assert [finding for finding in found if finding.severity is not Severity.NOTE] == []


async def test_it_changes_nothing(good: Server) -> None:
    await examined(good.url, push=True)
    before = everything(good)
    await examined(good.url, durability=3)
    assert everything(good) == before


READ = {"string": "GET", "hash": "HGETALL", "list": "LRANGE", "zset": "ZRANGE", "set": "SMEMBERS", "stream": "XRANGE"}
ALL = {"list": ("0", "-1"), "zset": ("0", "-1", "WITHSCORES"), "stream": ("-", "+")}


def everything(server: Server) -> dict[str, Any]:
    with closing(client(server)) as control:
        kinds = {str(key): str(control.type(key)) for key in control.scan_iter(count=1000)}
    return {key: tell(server, READ[kind], key, *ALL.get(kind, ())) for key, kind in kinds.items()}


# ------------------------------------------------------------------------------------------------ what a setting can do

Plant = Callable[[Server], AbstractContextManager[None] | None]


def setting(*pairs: str) -> Plant:
    def plant(server: Server) -> None:
        for name, value in zip(pairs[::2], pairs[1::2], strict=True):
            tell(server, "CONFIG", "SET", name, value)

    return plant


def nearly_full(server: Server) -> None:
    tell(server, "CONFIG", "SET", "maxmemory", str(round(info(server, "memory")["used_memory"] * 0.98)))


def foreign(server: Server) -> None:
    tell(server, "SET", "{shop:emails}:delayed", "not a sorted set")


def fence_ahead(server: Server) -> None:
    seconds, _ = tell(server, "TIME")
    tell(server, "SET", "{shop:emails}:fence", f"{int(seconds) + 7200}000000")


def sequence(server: Server) -> None:
    tell(server, "SET", "{shop:emails}:seq", "twelve")


def crowded(server: Server) -> None:
    tell(server, "CONFIG", "SET", "maxclients", "4")


SERIOUS: dict[str, tuple[Plant, str, str]] = {
    "nothing persisted": (setting("appendonly", "no"), "persistence", "neither an append-only file nor snapshots"),
    "all keys evicted": (setting("maxmemory-policy", "allkeys-lru"), "eviction", "maxmemory-policy is allkeys-lru"),
    "expiring keys evicted": (setting("maxmemory-policy", "volatile-ttl"), "eviction", "volatile-ttl"),
    "memory nearly full": (nearly_full, "memory", "of maxmemory is used"),
    "foreign data": (foreign, "types", "{shop:emails}:delayed"),
    "fence ahead of the clock": (fence_ahead, "fence", "s ahead of the server's clock"),
    "spoilt sequence": (sequence, "sequence", "queue emails: the sequence"),
    "no connections left": (crowded, "clients", "of 4 connections are taken"),
    "too few replicas to write": (setting("min-replicas-to-write", "1"), "replicas", "min-replicas-to-write is 1"),
    "disk refuses": (faults.failing_saves, "disk", "the last snapshot failed"),
    "replica": (faults.read_only, "role", "the server is a replica"),
    "busy": (faults.busy, "answers", "(BUSY)"),
}


@pytest.mark.parametrize("planted", SERIOUS)
async def test_a_planted_misconfiguration_is_found_and_serious(good: Server, planted: str) -> None:
    plant, check, phrase = SERIOUS[planted]
    await examined(good.url, push=True)
    block = plant(good)
    if block is None:
        found = await examined(good.url)
    else:
        # The blocks wait for facts, without an event loop.
        found = await asyncio.to_thread(within, block, lambda: asyncio.run(as_task(examined(good.url))))
    finding = only(found, Severity.SERIOUS, check)
    assert phrase in finding.found
    assert found[0].severity is Severity.SERIOUS


def within(block: AbstractContextManager[None], act: Callable[[], Sequence[Finding]]) -> Sequence[Finding]:
    with block:
        return act()


async def as_task(work: Awaitable[Sequence[Finding]]) -> Sequence[Finding]:
    return await work


WARNINGS: dict[str, tuple[Plant, str, str]] = {
    "short idle timeout": (setting("timeout", "5"), "timeout", "idle for 5 s"),
    "short script limit": (setting("lua-time-limit", "20"), "scripts", "after 20 ms"),
    "never forced to the disk": (setting("appendfsync", "no"), "fsync", "appendfsync is no"),
    "snapshots only": (setting("appendonly", "no", "save", "3600 1"), "persistence", "only snapshots"),
    "eviction without effect": (
        setting("maxmemory", "0", "maxmemory-policy", "allkeys-lru"),
        "eviction",
        "allkeys-lru",
    ),
}


@pytest.mark.parametrize("planted", WARNINGS)
async def test_a_lesser_misconfiguration_is_a_warning(good: Server, planted: str) -> None:
    plant, check, phrase = WARNINGS[planted]
    plant(good)
    found = await examined(good.url)
    assert phrase in only(found, Severity.WARNING, check).found
    assert serious(found) == []


async def test_a_node_of_a_cluster_is_told_from_a_single_server() -> None:
    with lone_node(binary("redis7"), ["--cluster-enabled", "yes"]) as server:
        found = await examined(server.tcp_url)
        assert "belongs to a cluster" in only(found, Severity.SERIOUS, "cluster").found


async def test_each_node_of_a_cluster_is_looked_at() -> None:
    with cluster(binary("redis7"), extra_args=GOOD) as nodes:
        url = nodes.url.replace("redis://", "redis+cluster://")
        assert serious(await examined(url, push=True)) == []
        spoilt = nodes.first_masters[1]
        tell(spoilt, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        finding = only(await examined(url), Severity.SERIOUS, "eviction")
        assert finding.found.startswith(f"127.0.0.1:{port_of(spoilt)}: ")


async def test_slots_that_nobody_serves_are_found() -> None:
    with cluster(binary("redis7"), full_coverage=False) as nodes:
        tell(nodes.first_masters[0], "CLUSTER", "DELSLOTS", "100", "101")
        found = await examined(nodes.url.replace("redis://", "redis+cluster://"))
        assert "2 of 16,384 slots are served by nobody" in only(found, Severity.SERIOUS, "cluster").found


def test_all_keys_of_a_queue_lie_in_one_slot_whatever_the_prefix() -> None:
    for prefix in ("", "app:", "a.b-c_d:"):
        keys = Keyspace("shop", prefix).queue("emails")
        assert (
            len({key_slot(keys.named(name)) for name in (*contents.READERS, *LISTS.readers, "client:1", "gone:2")}) == 1
        )


# -------------------------------------------------------------------------------------------------------- the clock


@pytest.fixture(scope="session")
def clock(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A library that stands before the system's clock."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or redis7_binary() is None:
        not_proven("compiler, or Redis 7", "apt-get install gcc redis-server")
    directory = tmp_path_factory.mktemp("clock")
    source, library = directory / "clock.c", directory / "clock.so"
    source.write_text(CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True, timeout=60)
    return library


@contextmanager
def with_clock(library: pathlib.Path, name: str, value: int) -> Iterator[Server]:
    program = library.with_name(f"redis-{name.lower()}-{value}")
    program.write_text(f'#!/bin/sh\nexport LD_PRELOAD={library} {name}={value}\nexec {redis7_binary()} "$@"\n')
    program.chmod(0o755)
    with redis_like(program, extra_args=GOOD) as server:
        yield server


async def test_a_clock_that_stands_still_is_found(clock: pathlib.Path) -> None:
    with with_clock(clock, "CLOCK_STANDS_AT", round(time.time()) + 5) as server:
        found = await examined(server.url)
    assert ("clock", "the server's clock stands still") in serious(found)


@pytest.mark.parametrize(
    ("ahead", "severity"), [(3600, Severity.SERIOUS), (-3600, Severity.SERIOUS), (10, Severity.WARNING)]
)
async def test_a_clock_that_is_wrong_is_found(clock: pathlib.Path, ahead: int, severity: Severity) -> None:
    with with_clock(clock, "CLOCK_AHEAD", ahead) as server:
        found = await examined(server.url)
    finding = only(found, severity, "clock")
    assert ("ahead of" if ahead > 0 else "behind") in finding.found


# ------------------------------------------------------------------------------------------------------------- rights


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize(
    "lacking", ["zadd", "evalsha", "eval", "rpush", "set", "time", "sadd", "blpop", "hset", "xadd"]
)
async def test_a_forbidden_command_is_found_and_named(kind: str, lacking: str) -> None:
    with acl_server(binary(kind), f"~{{shop:*}}:* ~shop:* +@all -{lacking}") as server:
        found = await examined(server.unix_url)
    finding = only(found, Severity.SERIOUS, "rights")
    assert finding.found == f"this user may not call {lacking.upper()}"
    assert f"+{lacking}" in finding.remedy


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize(
    ("patterns", "missing"),
    [
        ("~shop:*", "~{shop:default}:*"),
        ("~{shop:*}:*", "~shop:queues"),
        ("~{mine:*}:* ~mine:*", "~{shop:default}:* ~shop:queues"),
    ],
)
async def test_a_forbidden_key_is_found_and_named(kind: str, patterns: str, missing: str) -> None:
    with acl_server(binary(kind), f"{patterns} +@all") as server:
        found = await examined(server.unix_url)
    assert f"may not touch the keys {missing}" in only(found, Severity.SERIOUS, "rights").found


@pytest.mark.parametrize("kind", SERVERS)
async def test_the_least_set_of_rights_is_enough_for_the_doctor_too(kind: str) -> None:
    """What it cannot read it says, and nothing else."""
    commands = " ".join(f"+{name.lower()}" for name in needed())
    with acl_server(binary(kind), f"~{{shop:*}}:* ~shop:* {commands}") as server:
        found = await examined(server.unix_url, push=True)
    assert [finding.check for finding in found] == ["unknown", "unknown"]
    assert "INFO" in found[0].found
    assert "appendfsync" in found[1].found
    assert serious(found) == []


async def test_a_missing_password_and_a_wrong_one_are_found_without_being_repeated() -> None:
    with running("redis7", "--requirepass", "hunter2-canary") as server:
        found = [*await examined(server.url)]
        assert "(NOAUTH)" in only(found, Severity.SERIOUS, "answers").found
        wrong = await examined(server.url.replace("unix://", "unix://:wrong-canary@"))
        assert "(WRONGPASS)" in only(wrong, Severity.SERIOUS, "answers").found
        found += wrong
        found += await examined(server.url.replace("unix://", "unix://:hunter2-canary@"))
    assert "canary" not in repr(found)


def binary(kind: str) -> str:
    found = BINARIES[kind]()
    if found is None:
        not_proven(kind, "see tests/conftest.py")
    return found


def needed(layout: Layout = LISTS, durability: int = 1) -> list[str]:
    return rights.needed(Scripts(line=layout.line), durability)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_command_of_the_scripts_can_be_tried(layout: Layout) -> None:
    assert {command for durability in (1, 2, 3) for command in needed(layout, durability)} <= set(rights.FORMS)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_key_of_the_scripts_is_looked_at(layout: Layout) -> None:
    scripts = Scripts(line=layout.line)
    names = {key for name in scripts.names for key in scripts[name].keys}
    # Those that belong to one call, and the one that never exists.
    assert names - {"client", "fresh", "leftover", "none"} == {*contents.READERS, *layout.readers}


# -------------------------------------------------------------------------------------------------------- durability


@pytest.mark.parametrize("kind", SERVERS)
async def test_what_a_class_of_durability_needs_is_judged_when_it_is_asked_for(kind: str) -> None:
    with running(kind) as server:
        assert serious(await examined(server.url, 1)) == []
        class_2 = serious(await examined(server.url, 2))
        assert [check for check, _ in class_2] == ([] if kind == "valkey" else ["fsync"])
        tell(server, "CONFIG", "SET", "appendfsync", "always")
        assert serious(await examined(server.url, 2)) == []
        assert (
            "pushes of durability 3 wait for 1"
            in only(await examined(server.url, 3), Severity.SERIOUS, "replicas").found
        )


def test_the_documented_least_set_is_what_the_scripts_and_the_driver_call() -> None:
    assert sorted(word.removeprefix("+").upper() for word in least.documented() if word.startswith("+")) == needed()


def test_the_documentation_names_every_key_and_every_script() -> None:
    page = (ROOT / "docs" / "redis.md").read_text()
    for key in (*contents.READERS, *LISTS.readers):
        assert f":{key}`" in page, key
    for script in Scripts().names:
        assert f"`{script}`" in page, script
