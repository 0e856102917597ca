"""Real pushers and workers on a store of their own, faults one after another, and the check of all that was recorded.

Each run is one seed's: ``make torture DRIVER=redis SEED=7`` plays it again. The ordinary suite does short faults once;
``TIER=night`` mixes all of them for minutes, ``TIER=release`` for hours.
"""

import os
import pathlib
import sys
from collections.abc import Sequence

import pytest

from tests.torture.proof import listing
from tests.torture.proof.nemesis import SEVERAL, TABLE
from tests.torture.proof.nemesis.act import Act
from tests.torture.proof.running import run

TIER = os.environ.get("TENURE_PROOF_TIER") or "change"
DRIVER = os.environ.get("TENURE_PROOF_DRIVER") or ""
ALL = {**TABLE, **SEVERAL}
SEED = int(os.environ.get("TENURE_PROOF_SEED") or 1)
SECONDS = {
    "change": {},
    "night": {**dict.fromkeys(ALL, 30.0), "redis": 90.0},
    "release": dict.fromkeys(ALL, 1800.0),
}
MIXES = 14
IN_A_MIX = 6
ORDINARY = {"redis": 27, "redis-streams": 9, "sqlite": 9, "postgresql": 9}
"""How many faults of each driver the ordinary suite does."""
IN_A_RUN = 9


def ordinary(driver: str) -> list[Act]:
    """The short ones; of a driver of which not all are done, every so-manieth, so that all kinds are among them."""
    short = [act for act in TABLE[driver] if not act.long]
    number = min(ORDINARY[driver], len(short))
    return [short[place * len(short) // number] for place in range(number)]


def plan() -> list[tuple[str, int, Sequence[Act], float]]:
    """Driver, seed, faults and seconds of each run."""
    drivers = [driver for driver in (TABLE if TIER == "change" else ALL) if DRIVER in {"", driver}]
    if TIER == "change":
        return [
            (driver, SEED + number, ordinary(driver)[start : start + IN_A_RUN], 0.0)
            for driver in drivers
            for number, start in enumerate(range(0, len(ordinary(driver)), IN_A_RUN))
        ]
    return [
        (driver, SEED + number, mixed(driver, number), SECONDS[TIER][driver])
        for driver in drivers
        for number in range(MIXES)
    ]


def mixed(driver: str, number: int) -> list[Act]:
    """Some of the faults, such that the mixes have all of them."""
    acts = ALL[driver]
    return [acts[(number * IN_A_MIX + place) % len(acts)] for place in range(IN_A_MIX)]


@pytest.mark.torture
@pytest.mark.timeout(300 if TIER == "change" else 4000)
@pytest.mark.parametrize(
    ("kind", "seed", "acts", "seconds"), plan(), ids=[f"{driver}-{seed}" for driver, seed, *_ in plan()]
)
def test_a_run_keeps_every_promise(
    kind: str, seed: int, acts: Sequence[Act], seconds: float, tmp_path: pathlib.Path
) -> None:
    if TIER == "change":
        outcome = run(kind, seed, acts, keep=tmp_path, workers=2, hold=0.3)
    else:
        outcome = run(kind, seed, acts, keep=tmp_path, seconds=seconds)
    sys.stdout.write(f"{outcome}\n")
    assert outcome.verdict.decision == "valid", f"make torture DRIVER={kind} SEED={seed}\n{outcome}"


@pytest.mark.parametrize("kind", TABLE)
def test_every_driver_has_enough_faults(kind: str) -> None:
    names = [act.name for act in TABLE[kind]]
    assert len(set(names)) == len(names) >= 25
    assert len(ordinary(kind)) >= (25 if kind == "redis" else 8)
    assert {act.name for number in range(MIXES) for act in mixed(kind, number)} == set(names)


def test_the_documentation_lists_every_fault() -> None:
    page = pathlib.Path(__file__).parents[3] / "docs" / "reliability.md"
    assert "\n".join(listing.lines()) in page.read_text(encoding="utf-8"), "python -m tests.torture.proof.listing"
