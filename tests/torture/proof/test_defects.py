"""The check finds every defect, and none where there is none."""

import contextlib
import pathlib
from collections.abc import Mapping

import pytest

from tenure.drivers.redis import RedisQueue
from tenure.drivers.sql import SqliteQueue
from tenure.drivers.sql.sqlite import compositions, statements
from tenure.testing.history import INVARIANTS, Verdict
from tests.support.topologies import client
from tests.torture.proof import places, redis_audit
from tests.torture.proof.mutants import COMPOSED, SCRIPTS, STATEMENTS, Defect, mutated
from tests.torture.proof.recording import Log, recorded
from tests.torture.proof.rehearsal import rehearsed


@pytest.fixture
def logs(tmp_path: pathlib.Path) -> pathlib.Path:
    directory = tmp_path / "logs"
    directory.mkdir()
    return directory


async def on_redis(
    namespace: str, tmp_path: pathlib.Path, logs: pathlib.Path, sources: Mapping[str, str] | None
) -> Verdict:
    scripts = redis_audit.instrumented(sources=sources)
    with places.opened("redis", namespace, tmp_path) as place:
        proxy, server = place.proxy, place.server
        assert proxy is not None
        assert server is not None

        async def evict() -> None:
            """What a server that evicts would: keys that expire are gone before their time."""
            with contextlib.closing(client(server)) as control:
                for key in control.scan_iter(match="*leased:*"):
                    if control.ttl(key) >= 0:
                        control.delete(key)

        both = [Log(logs, "work") for _ in range(2)]
        drivers = [recorded(RedisQueue, log, scripts=scripts).from_url(place.url, namespace=namespace) for log in both]
        try:
            return await rehearsed(
                place, both, drivers[0], drivers[1], lambda name: proxy.cut_next_reply(scripts[name].digest), evict
            )
        finally:
            for driver in drivers:
                await driver.aclose()


async def on_sqlite(namespace: str, tmp_path: pathlib.Path, logs: pathlib.Path) -> Verdict:
    async def evict() -> None:
        """Nothing of it expires."""

    with places.opened("sqlite", namespace, tmp_path) as place:
        both = [Log(logs, "work") for _ in range(2)]
        drivers = [recorded(SqliteQueue, log)(place.file, namespace=namespace) for log in both]
        try:
            return await rehearsed(place, both, drivers[0], drivers[1], None, evict)
        finally:
            for driver in drivers:
                await driver.aclose()


async def test_the_scripts_as_they_are_are_sound(namespace: str, tmp_path: pathlib.Path, logs: pathlib.Path) -> None:
    verdict = await on_redis(namespace, tmp_path, logs, None)
    assert verdict.decision == "valid", str(verdict)
    assert verdict.figures["lapsed"] >= 6


@pytest.mark.parametrize("one", SCRIPTS, ids=lambda one: one.name)
async def test_a_defect_of_a_script_is_found(
    one: Defect, namespace: str, tmp_path: pathlib.Path, logs: pathlib.Path
) -> None:
    found(one, await on_redis(namespace, tmp_path, logs, mutated(one)))


async def test_the_statements_as_they_are_are_sound(namespace: str, tmp_path: pathlib.Path, logs: pathlib.Path) -> None:
    verdict = await on_sqlite(namespace, tmp_path, logs)
    assert verdict.decision == "valid", str(verdict)


@pytest.mark.parametrize("one", STATEMENTS, ids=lambda one: one.name)
async def test_a_defect_of_a_statement_is_found(
    one: Defect, namespace: str, tmp_path: pathlib.Path, logs: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, one.text, one.of(getattr(statements, one.text)))
    found(one, await on_sqlite(namespace, tmp_path, logs))


@pytest.mark.parametrize("one", COMPOSED, ids=lambda one: one.name)
async def test_a_defect_of_a_statement_of_compositions_is_found(
    one: Defect, namespace: str, tmp_path: pathlib.Path, logs: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compositions, one.text, one.of(getattr(compositions, one.text)))
    found(one, await on_sqlite(namespace, tmp_path, logs))


def found(one: Defect, verdict: Verdict) -> None:
    broken = {violation.invariant for violation in verdict.violations}
    if one.breaks:
        assert verdict.decision == "invalid", str(verdict)
        assert broken & one.breaks, f"{sorted(broken)} and not {sorted(one.breaks)}\n{verdict}"
    else:
        assert verdict.decision == "unknown", str(verdict)


def test_most_invariants_have_a_defect() -> None:
    broken = frozenset[str]().union(*(one.breaks for one in (*SCRIPTS, *STATEMENTS, *COMPOSED)))
    assert broken >= set(INVARIANTS) - {"I10"}
