"""A run from its seed: which faults, in which order, at which moments."""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenure.testing.history import Terms, Verdict
from tests.support.absent import not_proven
from tests.torture.proof import places
from tests.torture.proof.nemesis import SEVERAL, TABLE
from tests.torture.proof.nemesis.act import Act
from tests.torture.proof.recording import now
from tests.torture.proof.stage import MARGIN, Stage, effective

WORKERS = 3
HOLD = 0.5
RATES = {
    **dict.fromkeys(("redis", "redis-streams", "redis-sentinel", "redis-cluster"), 80),
    "sqlite": 60,
    "postgresql": 60,
}
ALL = {**TABLE, **SEVERAL}


class Outcome(NamedTuple):
    """What a run found."""

    driver: str
    seed: int
    faults: Sequence[str]
    verdict: Verdict

    def __str__(self) -> str:
        head = f"{self.driver}, seed {self.seed}: {', '.join(self.faults)}"
        return f"{head}\n{self.verdict}"


def chosen(driver: str, names: Sequence[str]) -> list[Act]:
    by_name = {act.name: act for act in ALL[driver]}
    return [by_name[name] for name in names]


def run(
    driver: str,
    seed: int,
    acts: Sequence[Act],
    *,
    seconds: float = 0.0,
    hold: float = HOLD,
    workers: int = WORKERS,
    keep: pathlib.Path | None = None,
    heard: Callable[[str], object] = str,
) -> Outcome:
    """Do all of these faults, in an order of the seed's, again and again until the time is over; then judge."""
    for act in acts:
        if act.needs and shutil.which(act.needs) is None:
            not_proven(act.needs, f"apt-get install {act.needs}")
    chance = random.Random(seed)
    done: list[str] = []
    namespace = f"proof-{seed}"
    with tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True) as name:
        directory = keep or pathlib.Path(name)
        with (
            places.opened(driver, namespace, directory) as place,
            Stage(place, namespace, directory, seed, hold) as stage,
        ):
            begun = now()
            for worker in [stage.worker() for _ in range(workers)]:
                stage.ready(worker)
            for _ in range(2):
                stage.pusher(RATES[driver] // 2)
            stage.come_back(now())
            while True:
                for act in chance.sample(acts, len(acts)):
                    stage.last(chance.uniform(0.05, 0.3))
                    heard(act.name)
                    with effective(stage, act.name) as proof:
                        act.inflict(stage, proof)
                    stage.come_back(stage.faults[-1].ended)
                    done.append(act.name)
                    if seconds and now() - begun > seconds * 1e6:
                        break
                if now() - begun >= seconds * 1e6:
                    break
            dumps = stage.drain()
            terms = Terms(
                margin=MARGIN,
                faults=len(done),
                tolerance=0.003 if driver == "sqlite" else 0.0,
                apart=None if any(act.needs == "gcc" for act in acts) else 1.0,
            )
            return Outcome(driver, seed, done, stage.verdict(dumps, terms))


def main() -> None:
    """Run some faults, or all; ``--keep`` leaves what was recorded in a directory."""
    arguments = argparse.ArgumentParser(prog="python -m tests.torture.proof.running", description=main.__doc__)
    arguments.add_argument("driver", choices=sorted(ALL))
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--seconds", type=float, default=0.0)
    arguments.add_argument("--hold", type=float, default=HOLD)
    arguments.add_argument("--keep", type=pathlib.Path)
    arguments.add_argument("--faults", nargs="+")
    given = arguments.parse_args()
    acts = chosen(given.driver, given.faults) if given.faults else ALL[given.driver]
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
    outcome = run(
        given.driver,
        given.seed,
        acts,
        seconds=given.seconds,
        hold=given.hold,
        keep=given.keep,
        heard=lambda line: sys.stderr.write(f"{line}\n"),
    )
    sys.stdout.write(f"{outcome}\n")
    sys.exit(outcome.verdict.decision != "valid")


if __name__ == "__main__":
    main()
