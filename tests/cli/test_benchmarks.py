"""The benchmarks still work: a slice of each, of which no figure is believed."""

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from tests.cli.conftest import Program

ROOT = pathlib.Path(__file__).parents[2]


MEASURES = ["push_many", "push awaited", "push_sync", "drain", "latency", "idle"]
FURTHER = ["push at once", "drain, threads", "drain, 2 workers", "latency at half"]


def run(tenure: Program, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a tool of the benchmarks, which must end well."""
    words = [sys.executable, "-m", *command]
    done = subprocess.run(words, cwd=ROOT, env=tenure.env, capture_output=True, text=True, check=False, timeout=55)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def rows(path: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.bench
@pytest.mark.parametrize(
    ("store", "measures"),
    [
        *[(store, MEASURES) for store in ("redis", "redis-streams", "sqlite")],
        *[(store, FURTHER) for store in ("redis", "sqlite")],
        ("memory", ["drain", "drain, threads"]),
        # Each measure has a server of its own, and these take seconds to be made.
        *[(store, ["drain", "latency"]) for store in ("postgresql", "mariadb")],
    ],
)
def test_every_measure_gives_a_figure(tenure: Program, store: str, measures: list[str]) -> None:
    out = tenure.directory / "runs.jsonl"
    command = ["benchmarks", "--contender", f"tenure {store}", "--runs", "1", "--jobs", "50", "--seconds", "0.2"]
    done = run(tenure, *command, "--idle-seconds", "1", "--only", ",".join(measures), "--out", str(out))
    assert [row["measure"] for row in rows(out)] == measures
    assert all(value >= 0 for row in rows(out) for value in row["values"].values())
    assert f"| tenure {store} |" in done.stdout


@pytest.mark.bench
def test_a_queue_is_drained_at_each_concurrency(tenure: Program) -> None:
    command = ["benchmarks", "--contender", "tenure memory", "--only", "drain", "--runs", "1", "--jobs", "50"]
    done = run(tenure, *command, "--concurrency", "1,10")
    assert "| drain at 1, jobs/s | drain at 10, jobs/s |" in done.stdout


def test_an_unknown_measure_is_refused_with_the_known_ones(tenure: Program) -> None:
    command = [sys.executable, "-m", "benchmarks", "--only", "speed"]
    done = subprocess.run(command, cwd=ROOT, env=tenure.env, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode != 0
    assert "push_many" in done.stderr


@pytest.mark.bench
def test_what_a_job_costs_in_memory_is_measured(tenure: Program) -> None:
    done = run(tenure, "benchmarks.memory", "--jobs", "2000")
    found = {what: int(number) for number, what in (line.split(" bytes  ") for line in done.stdout.splitlines()[1:])}
    # The documentation promises no more than the envelope's 250 bytes and 200 beside them.
    assert 250 < found["a ready job, by used_memory"] < 500


@pytest.mark.bench
def test_claiming_is_measured_with_a_backlog_that_is_kept(tenure: Program) -> None:
    out = tenure.directory / "runs.jsonl"
    command = ["benchmarks.scaling", "--stores", "redis-streams,sqlite", "--workers", "2", "--backlogs", "500"]
    done = run(tenure, *command, "--delayed", "10", "--runs", "1", "--seconds", "0.2", "--out", str(out))
    assert [(row["store"], row["workers"]) for row in rows(out)] == [("redis-streams", 2), ("sqlite", 2)]
    assert all(row["jobs/s"] > 0 for row in rows(out))
    assert "| sqlite, 500 wait, 10 delayed |" in done.stdout


@pytest.mark.bench
def test_a_killed_worker_loses_nothing(tenure: Program) -> None:
    out = tenure.directory / "runs.jsonl"
    run(tenure, "benchmarks.crash", "--contender", "tenure sqlite", "--jobs", "20", "--out", str(out))
    [row] = rows(out)
    assert row["values"]["missing"] == 0


@pytest.mark.bench
def test_the_server_and_the_machine_are_measured(tenure: Program) -> None:
    out = tenure.directory / "runs.jsonl"
    run(tenure, "benchmarks.server", "--jobs", "200", "--runs", "1", "--out", str(out))
    assert [row["driver"] for row in rows(out)] == ["redis", "redis-streams"]
    assert all(value >= 0 for row in rows(out) for value in row["values"].values())
    assert "loop: empty tasks" in run(tenure, "benchmarks.limits", "--number", "4000", "--runs", "1").stdout


@pytest.mark.bench
@pytest.mark.parametrize(
    ("plant", "verdict"),
    [("", "flat"), ("memory", "not flat: memory"), ("connections", "not flat: files, connections")],
)
def test_a_soak_is_flat_unless_a_job_leaks(tenure: Program, plant: str, verdict: str) -> None:
    command = [sys.executable, "-m", "benchmarks.soak", "--seconds", "3", *(["--plant", plant] if plant else [])]
    done = subprocess.run(command, cwd=ROOT, env=tenure.env, capture_output=True, text=True, check=False, timeout=55)
    assert verdict in (done.stdout + done.stderr).splitlines(), done.stdout + done.stderr
    assert (done.returncode == 0) is not bool(plant)
