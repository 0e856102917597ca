"""The table of faults, as ``docs/reliability.md`` shows it: ``python -m tests.torture.proof.listing``."""

import sys
from collections.abc import Iterator

from tests.torture.proof.nemesis import SEVERAL, TABLE

ALL = {**TABLE, **SEVERAL}
HEAD = ["befalls", "fault", *(f"`{driver}`" for driver in ALL)]


def lines() -> Iterator[str]:
    """Yield the table's lines."""
    drivers: dict[tuple[str, str], set[str]] = {}
    for driver, acts in ALL.items():
        for act in acts:
            drivers.setdefault((act.where, act.name), set()).add(driver)
    yield _row(HEAD)
    yield _row(["---"] * len(HEAD))
    for (where, name), having in sorted(drivers.items()):
        yield _row([where, name, *("yes" if driver in having else "" for driver in ALL)])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.stdout.write("\n".join([*lines(), ""]))
