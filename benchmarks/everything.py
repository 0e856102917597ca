"""Take every figure of docs/benchmarks.md, and write the page: about an hour and a half.

    python -m benchmarks.everything
    python -m benchmarks.everything --only drain,crash --runs 1
    python -m benchmarks.everything --list

Each step is one command, whose runs are kept as JSON lines in ``benchmarks/results``; its tables are in the page as
soon as it has ended. A step that fails is told, and the others go on.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.contender import ROOT
from benchmarks.publish import PAGE, publish

RESULTS: Final = ROOT / "benchmarks" / "results"


class Step(NamedTuple):
    """One command of a run of everything."""

    module: str
    options: Sequence[str]
    minutes: int
    """That it takes on two cores that have nothing else to do."""
    runs: int

    def command(self, runs: int | None) -> Sequence[str]:
        """Return its words; a step without runs is made once."""
        several = ["--runs", str(runs or self.runs)] if self.runs else []
        return ["-m", self.module, *self.options, *several]


STEPS: Final[Mapping[str, Step]] = {
    "limits": Step("benchmarks.limits", (), 2, 5),
    "memory": Step("benchmarks.memory", (), 1, 0),
    "server": Step("benchmarks.server", (), 2, 5),
    "crash": Step("benchmarks.crash", (), 8, 1),
    "drain": Step("benchmarks", ("--only", "drain", "--concurrency", "1,10,100", "--seconds", "2"), 25, 5),
    "push": Step("benchmarks", ("--only", "push_many;push awaited;push at once;push_sync;latency"), 28, 5),
    "ours": Step(
        "benchmarks",
        (
            *("--contender", "tenure", "--idle-seconds", "5"),
            *("--only", "drain, threads;drain, 2 workers;latency at half;idle"),
        ),
        10,
        5,
    ),
    "scaling": Step("benchmarks.scaling", (), 14, 3),
}
GROUPS: Final = {"compare": ("drain", "push", "crash")}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.everything", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--only", help=f"steps, separated by commas: {', '.join(STEPS)}; compare is drain, push, crash")
    parser.add_argument("--runs", type=int, help="of each step, instead of its own number")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the runs are kept")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that is written")
    parser.add_argument("--list", action="store_true", help="tell the commands and how long they take, and run none")
    arguments = parser.parse_args()
    named = arguments.only.split(",") if arguments.only else list(STEPS)
    wanted = [step for name in named for step in GROUPS.get(name, (name,))]
    if not set(wanted) <= set(STEPS):
        raise SystemExit(f"steps are: {', '.join([*STEPS, *GROUPS])}")
    if arguments.list:
        for name in wanted:
            words = [f"'{word}'" if " " in word else word for word in STEPS[name].command(arguments.runs)]
            print(f"{STEPS[name].minutes:3} min  {name:8} python {' '.join(words)}")
        return
    arguments.results.mkdir(parents=True, exist_ok=True)
    failed = [name for name in wanted if not _taken(name, arguments)]
    if failed:
        raise SystemExit(f"not whole: {', '.join(failed)}")


def _taken(name: str, arguments: argparse.Namespace) -> bool:
    """Run a step anew and publish what it found; tells whether all of its runs went well."""
    out = arguments.results / f"{name}.jsonl"
    out.unlink(missing_ok=True)
    print(f"{name}: about {STEPS[name].minutes} minutes", file=sys.stderr, flush=True)
    begin = time.monotonic()
    command = [sys.executable, *STEPS[name].command(arguments.runs), "--out", str(out)]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    publish(arguments.results, arguments.page)
    print(f"{name}: took {(time.monotonic() - begin) / 60:.1f} minutes", file=sys.stderr, flush=True)
    return code == 0


if __name__ == "__main__":
    main()
