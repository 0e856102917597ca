"""All that can be compared, in the order of the tables."""

from collections.abc import Sequence
from typing import Final

from benchmarks.contender import Contender
from benchmarks.ours import TenureInMemory, TenureOn
from benchmarks.peer import AWAITED, BLOCKING, BULK, CRASHED, WORKED, PeerOn

_LATER: Final = 150.0
"""Seconds for those who look for what a dead worker held once in a hundred seconds or so."""


def known() -> Sequence[Contender]:
    """Return all, whether they are installed or not."""
    ours: list[Contender] = [TenureOn("redis"), TenureOn("redis", "streams")]
    ours += [TenureOn(store) for store in ("sqlite", "postgresql", "mariadb")]
    return [*ours, TenureInMemory(), *_on_redis(), *_on_postgresql()]


def contenders() -> Sequence[Contender]:
    """Return those that are installed."""
    return [contender for contender in known() if contender.available()]


def chosen(names: str | None) -> Sequence[Contender]:
    """Return the contenders with these names, separated by commas, or that begin with one; all of them for None."""
    wanted = [name.strip() for name in names.split(",")] if names else [""]
    exact = {contender.name for contender in known()} & set(wanted)
    begun = tuple(name for name in wanted if name not in exact)
    return [found for found in contenders() if found.name in exact or found.name.startswith(begun)]


def _on_redis() -> list[Contender]:
    return [
        PeerOn("bullmq", offers=AWAITED | BULK | WORKED, fill=12_000),
        PeerOn("huey", offers=BLOCKING | WORKED),
        PeerOn("taskiq", offers=AWAITED | WORKED, label="taskiq list"),
        PeerOn("taskiq", offers=AWAITED | WORKED, variant="stream"),
        PeerOn("dramatiq", offers=BLOCKING | WORKED),
        PeerOn("dramatiq", offers=CRASHED, variant="swept"),
        PeerOn(
            "rq", offers=BLOCKING | BULK | (WORKED - {"drain, 2 workers", "latency"}), most=1, fill=400, patience=_LATER
        ),
        PeerOn("rq", offers=frozenset({"drain", "latency"}), variant="simple", most=1, fill=1_500),
        PeerOn("rq", offers=CRASHED, variant="once", most=1, patience=_LATER),
        PeerOn("arq", offers=AWAITED | WORKED, fill=2_500),
        PeerOn("arq", offers=frozenset({"drain", "latency"}), variant="often", fill=2_500),
        PeerOn("saq", offers=AWAITED | WORKED, fill=2_500),
        PeerOn("saq", offers=CRASHED, variant="once"),
        PeerOn("celery", offers=BLOCKING | WORKED, most=10, fill=1_500, patience=_LATER),
        PeerOn("celery", offers=CRASHED, variant="early", most=10, patience=_LATER),
        PeerOn("streaq", offers=AWAITED | BULK | WORKED, fill=1_500),
        PeerOn("docket", offers=AWAITED | BULK | WORKED, fill=3_000),
        PeerOn("docket", offers=frozenset({"drain"}), variant="often", fill=3_000),
    ]


def _on_postgresql() -> list[Contender]:
    return [
        PeerOn("pgqueuer", "postgresql", offers=AWAITED | BULK | WORKED, fill=12_000),
        PeerOn("procrastinate", "postgresql", offers=AWAITED | BLOCKING | BULK | WORKED, fill=1_000),
        PeerOn("procrastinate", "postgresql", offers=CRASHED, variant="plain"),
    ]
