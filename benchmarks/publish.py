"""Put the figures of runs into docs/benchmarks.md, and their plots beside it.

    python -m benchmarks.publish DIRECTORY

The directory has what ``python -m benchmarks.everything`` leaves: a file of JSON lines a step. What stands in the page
between ``<!-- figures: NAME -->`` and ``<!-- end -->`` is replaced; figures of steps that are not there stay as they
are, and of those that were never measured the page says so.
"""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import crash, limits, plots, report, scaling, server
from benchmarks.contender import ROOT
from benchmarks.stores import servers

PAGE: Final = ROOT / "docs" / "benchmarks.md"
PLACE: Final = re.compile(r"(<!-- figures: (?P<name>[\w-]+) -->\n\n).*?(\n\n<!-- end -->)", re.DOTALL)
PUSHES: Final = ("push_many", "push awaited", "push at once", "push_sync")
IMAGES: Final = {
    "drain": "![Jobs a second, by library and concurrency, on a logarithmic axis](benchmarks-drain.svg)",
    "scaling": "![Jobs claimed and settled a second, by store and number of processes](benchmarks-scaling.svg)",
}
Rows = list[dict[str, Any]]


def tables(runs: Mapping[str, Rows]) -> dict[str, str]:
    """Return the text of each place of the page whose step was run."""
    found = {name: table(runs[step]) for name, (step, table) in TABLES.items() if runs.get(step)}
    found = {name: f"{IMAGES[name]}\n\n{text}" if name in IMAGES else text for name, text in found.items()}
    return {**found, "machine": "; ".join([report.machine(), *servers()])} if found else {}


def drawings(runs: Mapping[str, Rows]) -> dict[str, str]:
    """Return the plots of the steps that were run, by the names of their files."""
    found: dict[str, str] = {}
    if runs.get("drain"):
        rows: dict[str, dict[str, list[float]]] = {}
        for row in (row for row in runs["drain"] if "values" in row):
            at = f"{row['measure'].rpartition(' ')[2]} at a time"
            rows.setdefault(row["contender"], {}).setdefault(at, []).append(row["values"]["jobs/s"])
        found["benchmarks-drain.svg"] = plots.dots("No-op jobs a second, one worker process", rows)
    if runs.get("scaling"):
        points: dict[str, dict[int, list[float]]] = {}
        least = min(row["backlog"] for row in runs["scaling"])
        for row in runs["scaling"]:
            name = row["store"] + ("" if row["backlog"] == least else "*")
            points.setdefault(name, {}).setdefault(row["workers"], []).append(row["jobs/s"])
        across = sorted({row["workers"] for row in runs["scaling"]})
        title = "Jobs claimed and settled a second by so many processes; dashed: the longer backlog"
        found["benchmarks-scaling.svg"] = plots.lines(title, across, points)
    return found


def filled(page: str, texts: Mapping[str, str]) -> str:
    """Return the page with these texts in their places."""
    return PLACE.sub(
        lambda place: f"{place[1]}{texts[place['name']]}{place[3]}" if place["name"] in texts else place[0], page
    )


def publish(directory: Path, page: Path = PAGE) -> Sequence[str]:
    """Rewrite the page and the plots from the runs in a directory, and return the places that were filled."""
    runs = {path.stem: _read(path) for path in sorted(directory.glob("*.jsonl"))}
    texts = tables(runs)
    page.write_text(filled(page.read_text(), texts))
    for name, drawing in drawings(runs).items():
        page.with_name(name).write_text(drawing)
    return list(texts)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.publish", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    print(f"filled: {', '.join(publish(arguments.directory, arguments.page)) or 'nothing'}")


def _read(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _of(*measures: str) -> Callable[[Rows], str]:
    def table(rows: Rows) -> str:
        wanted = [row for row in rows if row["measure"].startswith(measures)]
        return report.table(wanted)

    return table


def _memory(rows: Rows) -> str:
    values = rows[-1]["values"]
    return report.markdown(["", "bytes"], [[name.strip(), report.number(value)] for name, value in values.items()])


TABLES: Final[Mapping[str, tuple[str, Callable[[Rows], str]]]] = {
    "drain": ("drain", report.table),
    "push": ("push", _of(*PUSHES)),
    "latency": ("push", _of("latency")),
    "threads": ("ours", _of("drain")),
    "load": ("ours", _of("latency at half", "idle")),
    "crash": ("crash", crash.table),
    "scaling": ("scaling", scaling.table),
    "server": ("server", server.table),
    "memory": ("memory", _memory),
    "limits": ("limits", limits.table),
}
"""The places of the page, with the step that each is filled from."""

if __name__ == "__main__":
    main()
