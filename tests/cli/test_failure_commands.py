"""Retrying by queue and by name, pruning, and the records that nobody could read, on each store."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tenure.queue import Failure
from tests.cli.conftest import Program
from tests.cli.stocking import SECRET, failed, on, unreadable, waiting

ODD = b"\x80\x04\x00not a record\x1b[2J\xff" + SECRET.encode()


def left(program: Program) -> list[str]:
    return [row["id"] for row in json.loads(program("failed", "--json").stdout)["failed"]]


def set_aside(program: Program, *arguments: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(program("unreadable", *arguments, "--json").stdout)["unreadable"]
    return rows


# ---------------------------------------------------------------------------------------------------------------- retry


def test_failed_jobs_of_a_queue_or_of_a_name_are_retried(everywhere: Program) -> None:  # S18, S15
    failed(everywhere, 2, queue="mail", name="greet", ids=["m1", "m2"])
    failed(everywhere, 1, queue="mail", name="fail", ids=["m3"])
    failed(everywhere, 2, queue="default", name="greet", ids=["d1", "d2"])
    by_name = everywhere("retry", "--name", "greet", "--queue", "mail")
    assert (by_name.returncode, by_name.stdout, by_name.stderr) == (0, "retried 2\n", "")
    assert sorted(left(everywhere)) == ["d1", "d2", "m3"]
    assert everywhere("retry", "--queue", "mail").stdout == "retried 1\n"
    assert everywhere("retry", "--name", "greet").stdout == "retried 2\n"
    assert everywhere("retry", "--name", "greet").stdout == "retried 0\n"
    assert left(everywhere) == []


@pytest.mark.parametrize(
    "arguments",
    [["retry", "--force"], ["retry", "id", "--name", "greet"], ["retry", "--name", "not a name"], ["retry", "--all"]],
    ids=" ".join,
)
def test_what_to_retry_is_said_in_one_way_and_on_the_command_line(tenure: Program, arguments: list[str]) -> None:
    failed(tenure, 1)
    done = tenure(*arguments, env={"TENURE_QUEUE": "default", "TENURE_NAME": "fail", "TENURE_ALL": "1"})
    assert (done.returncode, done.stdout) == (2, "")
    assert len(left(tenure)) == 1


def test_ids_in_several_queues_are_answered_in_their_order(everywhere: Program) -> None:
    failed(everywhere, 2, queue="one", ids=["a", "c"])
    failed(everywhere, 1, queue="two", ids=["b"])
    assert everywhere("retry", "a", "b", "c").stdout.splitlines() == ["retried a", "retried b", "retried c"]
    assert left(everywhere) == []


# ---------------------------------------------------------------------------------------------------------------- prune


def test_only_old_failures_are_pruned_and_their_number_is_exact(everywhere: Program) -> None:  # S18
    failed(everywhere, 3, ids=["a", "b", "c"])
    failed(everywhere, 2, queue="other", ids=["d", "e"])
    kept = everywhere("prune", "--hours", "1")
    assert (kept.returncode, kept.stdout, kept.stderr) == (0, "pruned 0\n", "")
    assert everywhere("prune", "--hours", "1e-9", "--queue", "other").stdout == "pruned 2\n"
    assert left(everywhere) == ["a", "b", "c"]
    assert everywhere("prune", "--hours", "1e-9").stdout == "pruned 3\n"


@pytest.mark.parametrize("hours", ["0", "-1", "nan", "inf", "1e400", "soon", ""])
def test_prune_takes_a_finite_number_of_hours_above_0(tenure: Program, hours: str) -> None:
    failed(tenure, 1)
    done = tenure("prune", "--hours", hours)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--hours" in done.stderr
    assert tenure("prune", env={"TENURE_HOURS": "0.000001"}).returncode == 2
    assert len(left(tenure)) == 1


def test_the_api_prunes_by_seconds_hours_and_timedelta(everywhere: Program) -> None:
    from datetime import timedelta  # noqa: PLC0415

    failed(everywhere, 1)
    for age in ({"older_than": 3600.0}, {"older_than": timedelta(hours=1)}, {"hours": 1}):
        assert on(everywhere, lambda app, age=age: app.operate.prune("default", **age)) == 0  # type: ignore[misc]
    assert on(everywhere, lambda app: app.operate.prune("default", older_than=0)) == 1


# ----------------------------------------------------------------------------------------------------------- unreadable


def test_unreadable_records_are_listed_without_their_bytes(everywhere: Program) -> None:  # K12
    key = unreadable(everywhere, ODD, job_id="odd", queue="mail")
    waiting(everywhere, "fine")
    done = everywhere("unreadable")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == everywhere("unreadable", "list").stdout
    for part in (key, "mail", "odd", "it is not a record"):
        assert part in done.stdout
    assert SECRET not in done.stdout + everywhere("unreadable", "--json").stdout
    [row] = set_aside(everywhere, "list", "--queue", "mail")
    assert row["bytes"] >= len(ODD)
    assert {**row, "bytes": 0, "set_aside_at": ""} == {
        "key": key, "queue": "mail", "id": "odd", "reason": "it is not a record", "bytes": 0, "set_aside_at": ""
    }  # fmt: skip
    assert set_aside(everywhere, "--queue", "default") == []


def test_the_oldest_are_shown_and_that_there_are_more_is_said(everywhere: Program) -> None:
    keys = [unreadable(everywhere, ODD, job_id=f"odd{number}") for number in range(3)]
    assert [row["key"] for row in set_aside(everywhere, "--limit", "2")] == keys[:2]
    assert "there are more" in everywhere("unreadable", "--limit", "2").stderr
    assert "there are more" not in everywhere("unreadable", "--limit", "3").stderr


def test_a_record_is_exported_byte_for_byte(everywhere: Program) -> None:
    key = unreadable(everywhere, ODD)
    done = everywhere.shell(f"{sys.executable} -m tenure unreadable export {key} > exported")
    assert (done.returncode, done.stderr) == (0, "")
    exported = (everywhere.directory / "exported").read_bytes()
    # Redis keeps the job's counters in a line before it.
    assert exported == ODD or exported.partition(b"\n")[2] == ODD
    [row] = set_aside(everywhere)
    assert row["bytes"] == len(exported)


def test_a_terminal_is_given_no_bytes(tenure: Program) -> None:
    key = unreadable(tenure, ODD)
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "tenure", "unreadable", "export", key]
    try:
        done = subprocess.run(
            command, cwd=tenure.directory, env=tenure.env, stdout=theirs, stderr=subprocess.PIPE, text=True,
            timeout=30, check=False,
        )  # fmt: skip
        os.set_blocking(ours, False)
        with pytest.raises(BlockingIOError):
            os.read(ours, 1)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 2
    assert "> file" in done.stderr


def test_a_dropped_record_is_gone_and_dropping_needs_to_be_confirmed(everywhere: Program) -> None:
    first, second = (unreadable(everywhere, ODD, job_id=f"odd{number}") for number in range(2))
    refused = everywhere("unreadable", "drop", first, env={"TENURE_FORCE": "1"})
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--force" in refused.stderr
    done = everywhere("unreadable", "drop", first, "--force")
    assert (done.returncode, done.stdout) == (0, f"dropped {first}\n")
    assert [row["key"] for row in set_aside(everywhere)] == [second]


@pytest.mark.parametrize("command", [["export", "77-7"], ["drop", "77-7", "--force"]], ids=" ".join)
def test_a_key_that_is_not_there_changes_nothing_and_is_1(everywhere: Program, command: list[str]) -> None:
    key = unreadable(everywhere, ODD)
    verb, *rest = command
    done = everywhere("unreadable", verb, *([key, *rest] if verb == "drop" else rest))
    assert (done.returncode, done.stdout) == (1, "")
    assert "77-7" in done.stderr
    assert len(set_aside(everywhere)) == 1


@pytest.mark.parametrize(
    "arguments",
    [["unreadable", "--queue", "one", "list"], ["failed", "--queue", "one", "show", "id"],
     ["unreadable", "drop", "\x1b[2J", "--force"], ["unreadable", "--limit", "0"]],
    ids=ascii,
)  # fmt: skip
def test_options_in_the_wrong_place_and_odd_keys_are_refused(tenure: Program, arguments: list[str]) -> None:
    done = tenure(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().isprintable()


def test_a_failed_listing_has_what_an_operator_needs_and_no_message(everywhere: Program) -> None:  # S18, K13
    failed(everywhere, 1, ids=["a"], failure=Failure(reason="exception", type="ValueError", message=SECRET))
    [row] = json.loads(everywhere("failed", "--json").stdout)["failed"]
    assert {**row, "failed_at": ""} == {
        "id": "a", "queue": "default", "name": "fail", "error": "ValueError", "attempts": 1, "failed_at": ""
    }  # fmt: skip
    assert row["failed_at"].endswith("Z")
    assert SECRET not in everywhere("failed").stdout
