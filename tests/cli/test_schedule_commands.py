"""Schedules on the command line, on each store."""

import json
import signal
from typing import Any

import pytest

from tests.cli.conftest import Program
from tests.support.processes import eventually

TIMED = """
from shop import app, greet

app.every(1, name="beat", args=["Ana"], catch_up="all")(greet)
app.cron("30 3 * * *", tz="Europe/Berlin", name="nightly", args=["Ben"])(greet)
"""


@pytest.fixture
def timed(everywhere: Program) -> Program:
    everywhere.write("timed.py", TIMED)
    return everywhere


def listed(program: Program, *arguments: str) -> dict[str, dict[str, Any]]:
    done = program("schedule", "list", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)["schedules"]}


def added(program: Program, name: str, *arguments: str) -> str:
    done = program("schedule", "add", name, "greet", '["Ana", 2]', "--app", "shop:app", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_schedule_is_added_listed_and_changed(everywhere: Program) -> None:
    assert added(everywhere, "nine", "--cron", "0 9 * * *", "--tz", "America/New_York") == "added nine"
    assert added(everywhere, "often", "--every", "30", "--catch-up", "skip", "--no-overlap", "--queue", "mail") == (
        "added often"
    )
    assert added(everywhere, "nine", "--cron", "5 9 * * *", "--tz", "America/New_York") == "changed nine"
    done = everywhere("schedule", "list")
    head, first, second = done.stdout.splitlines()
    assert head.split() == ["name", "queue", "when", "next", "state", "from", "last", "job"]
    assert first.startswith("nine   default  5 9 * * *")
    assert "09:05:00 -0" in first
    assert "America/New_York" in first
    assert second.split()[:5] == ["often", "mail", "every", "30", "s"]
    rows = listed(everywhere)
    assert (rows["often"]["catch_up"], rows["often"]["overlap"], rows["often"]["source"]) == ("skip", False, "cli")


def test_next_times_are_shown_with_their_zone(everywhere: Program) -> None:
    added(everywhere, "nine", "--cron", "0 9 * * *", "--tz", "Asia/Kathmandu")
    lines = everywhere("schedule", "next", "nine", "--count", "3").stdout.splitlines()
    assert len(lines) == 3
    assert all(line[10:] == " 09:00:00 +05:45 Asia/Kathmandu" for line in lines)
    times = json.loads(everywhere("schedule", "next", "nine", "--json").stdout)["next"]
    assert len(times) == 5
    assert all(time.endswith("T09:00:00+05:45") for time in times)


def test_a_schedule_is_paused_resumed_and_removed(everywhere: Program) -> None:
    added(everywhere, "nine", "--every", "60")
    said = [
        everywhere("schedule", verb, "nine").stdout.strip() for verb in ("pause", "pause", "resume", "resume", "remove")
    ]
    assert said == ["paused nine", "nine was paused already", "resumed nine", "nine was not paused", "removed nine"]
    assert listed(everywhere) == {}


@pytest.mark.parametrize("verb", ["pause", "resume", "remove", "next"])
def test_what_is_not_there_is_told(tenure: Program, verb: str) -> None:
    done = tenure("schedule", verb, "nobody")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no schedule 'nobody'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--cron", "* * * *"], "is not a cron expression"),
        (["--cron", "@daily", "--tz", "Nowhere"], "not a time zone"),
        (["--cron", "@daily", "--every", "5"], "cron= or every="),
        ([], "cron= or every="),
        (["--every", "5", "--catch-up", "all", "--no-overlap"], "catch_up='all'"),
        (["--every", "0.2"], "every must be"),
    ],
)
def test_what_cannot_be_a_schedule_is_refused(tenure: Program, arguments: list[str], why: str) -> None:
    done = tenure("schedule", "add", "x", "greet", '["Ana"]', "--app", "shop:app", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr


def test_arguments_that_do_not_fit_are_refused(tenure: Program) -> None:
    done = tenure("schedule", "add", "x", "greet", "[]", "--every", "5", "--app", "shop:app")
    assert done.returncode == 2
    assert "nothing was sent" in done.stderr


def test_a_store_that_nobody_else_sees_is_refused(tenure: Program) -> None:
    for arguments in (["list"], ["run", "shop:app"]):
        done = tenure("schedule", *arguments, env={"TENURE_URL": "memory://"})
        assert done.returncode == 2
        assert "memory" in done.stderr


def test_a_process_fires_and_a_worker_fires_and_runs(timed: Program) -> None:
    with timed.begin("schedule", "run", "timed:app") as child:
        child.wait_for_output("schedules are fired", 20)
        eventually(lambda: listed(timed).get("beat", {}).get("last_job"), 20)
        child.signal(signal.SIGTERM)
        assert child.wait() == 0
        assert child.output.rstrip().endswith("stopped")
    assert timed.ran == []
    with timed.begin("worker", "timed:app", "--with-schedule", "--sleep", "0.2") as child:
        eventually(lambda: len(timed.ran) > 3, 20)
        child.signal(signal.SIGTERM)
        assert child.wait() == 0
    assert set(timed.ran) == {"greet Ana 1"}
    rows = listed(timed, "--app", "shop:app")
    assert {name: (row["source"], row["orphaned"]) for name, row in rows.items()} == {
        "beat": ("code", False), "nightly": ("code", False),
    }  # fmt: skip
    timed.write("timed.py", TIMED.replace('"beat"', '"pulse"'))
    assert [name for name, row in listed(timed, "--app", "timed:app").items() if row["orphaned"]] == ["beat"]


def test_supervised_workers_fire_each_slot_once(tenure: Program) -> None:
    tenure.write("timed.py", TIMED)
    with tenure.begin("worker", "timed:app", "--with-schedule", "--workers", "2", "--sleep", "0.2") as child:
        eventually(lambda: len(tenure.ran) > 2, 30)
        child.signal(signal.SIGTERM)
        assert child.wait(20) == 0
    began, last = listed(tenure)["beat"], len(tenure.ran)
    assert began["last_job"]
    assert last > 2
