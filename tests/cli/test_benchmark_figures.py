"""What runs found gets into the page, and what other libraries are measured with is pinned."""

import json
import pathlib
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from benchmarks import publish, report
from benchmarks.everything import STEPS
from benchmarks.field import known
from benchmarks.measures import MEASURES

ROOT = pathlib.Path(__file__).parents[2]
PEERS = ROOT / "benchmarks" / "peers"
PAGE = """# Figures

<!-- figures: drain -->

TBM

<!-- end -->

<!-- figures: scaling -->

TBM

<!-- end -->
"""


def ran(run: int, contender: str, measure: str, value: float) -> dict[str, object]:
    rival = "" if contender.startswith("tenure") else "tenure redis"
    values = {"jobs/s": value}
    return {"run": run, "contender": contender, "rival": rival, "measure": measure, "values": values}


def drained() -> list[dict[str, object]]:
    figures = {"tenure redis": (1000.0, 2000.0, 4000.0), "huey": (500.0, 500.0, 400.0)}
    return [
        ran(run, name, f"drain at {slots}", value)
        for run in range(3)
        for slots in (1, 10)
        for name, values in figures.items()
        for value in values[run : run + 1]
    ]


def test_another_library_is_told_as_a_part_of_what_ran_beside_it() -> None:
    text = report.table(drained())
    # 0.5, 0.25 and 0.1: the median of the ratios, not the ratio of the medians.
    assert "| tenure redis | 2,000 (1,000 to 4,000) |" in text
    assert "| huey | 500 (400 to 500), 0.25x |" in text


def test_a_run_that_failed_is_left_out_of_the_figures() -> None:
    broken = {"run": 0, "contender": "rq", "rival": "tenure redis", "measure": "drain at 1", "error": "no"}
    assert "| rq | - | - |" in report.table([*drained(), broken])


def test_figures_replace_what_stood_in_their_places(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    (tmp_path / "drain.jsonl").write_text("".join(json.dumps(row) + "\n" for row in drained()))
    assert publish.publish(tmp_path, page) == ["drain", "machine"]
    text = page.read_text()
    assert text.count("TBM") == 1, "what was not measured stays marked"
    assert "| huey | 500" in text.partition("<!-- end -->")[0]
    publish.publish(tmp_path, page)
    assert page.read_text() == text, "once more changes nothing"


def test_plots_are_images_of_all_contenders(tmp_path: pathlib.Path) -> None:
    scaled = [
        {"store": store, "backlog": backlog, "delayed": 0, "workers": workers, "jobs/s": 10.0 * workers, "least": 1}
        for store in ("sqlite", "redis")
        for backlog in (10, 1000)
        for workers in (1, 2)
    ]
    found = publish.drawings({"drain": drained(), "scaling": scaled})
    assert set(found) == {"benchmarks-drain.svg", "benchmarks-scaling.svg"}
    for text, names in zip(found.values(), (["tenure redis", "huey"], ["sqlite", "redis"]), strict=True):
        words = {element.text for element in ElementTree.fromstring(text).iter()}
        assert set(names) <= words


def test_every_place_of_the_page_has_a_step_that_fills_it() -> None:
    places = {place["name"] for place in publish.PLACE.finditer(publish.PAGE.read_text())}
    assert places == {*publish.TABLES, "machine"}
    assert {step for step, _ in publish.TABLES.values()} == set(STEPS)


def test_the_steps_are_listed_with_their_commands() -> None:
    command = [sys.executable, "-m", "benchmarks.everything", "--list", "--only", "compare"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    assert [line.split()[2] for line in done.stdout.splitlines()] == ["drain", "push", "crash"]


def test_each_library_has_a_script_and_exact_versions() -> None:
    scripts = {path.stem for path in PEERS.glob("*.*") if path.stem not in {"__init__", "common"}}
    pinned = {path.stem: path for path in (PEERS / "requirements").iterdir()}
    assert scripts == set(pinned)
    for path in pinned.values():
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        if path.suffix == ".json":
            versions = json.loads(path.read_text())["dependencies"].values()
            assert all(re.fullmatch(r"[0-9.]+", version) for version in versions)
        else:
            assert all(re.fullmatch(r"[\w.-]+==[\w.+]+", line) for line in lines), path


@pytest.mark.parametrize("contender", known(), ids=lambda contender: contender.name)
def test_a_contender_offers_what_is_measured(contender: object) -> None:
    assert contender.offers <= {*MEASURES, "crash"}  # type: ignore[attr-defined]
