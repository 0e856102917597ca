"""Looking at queues and changing them: jobs, status, cancel, clear, pause and resume, on each store."""

import json
from typing import Any

import pytest

from tenure import Tenure
from tenure.queue import JobState
from tests.cli.conftest import Program
from tests.cli.stocking import SECRET, failed, lease, on, running, waiting
from tests.support import processes


def listed(program: Program, *arguments: str) -> list[dict[str, Any]]:
    done = program("jobs", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["jobs"]
    return rows


def counted(program: Program, queue: str = "default") -> dict[str, Any]:
    [row] = json.loads(program("status", "--json", "--queue", queue).stdout)["queues"]
    return dict(row)


# ---------------------------------------------------------------------------------------------------------------- jobs


def test_jobs_that_run_and_wait_are_listed_with_their_states_and_without_arguments(everywhere: Program) -> None:
    failed(everywhere, 1, queue="mail", ids=["broken"])
    running(everywhere, "busy", queue="slow")
    waiting(everywhere, "low", "lower", queue="mail")
    waiting(everywhere, "later", delay=7000)
    done = everywhere("jobs")
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows = [line.split() for line in done.stdout.splitlines()]
    assert " ".join(head) == "id queue state name priority attempts crashes time"
    assert [row[:7] for row in rows] == [
        ["later", "default", "delayed", "greet", "0", "0", "0"],
        ["low", "mail", "ready", "greet", "0", "0", "0"],
        ["lower", "mail", "ready", "greet", "0", "0", "0"],
        ["busy", "slow", "running", "greet", "0", "1", "0"],
    ]
    assert "due in 1h56m" in done.stdout
    assert "lapses in" in done.stdout
    assert SECRET not in done.stdout + everywhere("jobs", "--json").stdout


def test_a_lapsed_lease_is_told_from_one_that_lives(everywhere: Program) -> None:
    running(everywhere, "abandoned", seconds=0.05)

    def lapsed() -> bool:
        return bool(counted(everywhere)["lapsed"] == 1)

    processes.eventually(lapsed)
    assert "lapsed" in everywhere("jobs").stdout
    [row] = listed(everywhere)
    assert row["seconds"] < 0


def test_jobs_are_chosen_by_queue_and_by_state(everywhere: Program) -> None:
    waiting(everywhere, "a", queue="one")
    waiting(everywhere, "b", "c", queue="two")
    waiting(everywhere, "d", queue="two", delay=60)
    assert [row["id"] for row in listed(everywhere, "--queue", "two", "--state", "ready")] == ["b", "c"]
    assert [row["id"] for row in listed(everywhere, "--state", "delayed")] == ["d"]
    assert [row["id"] for row in listed(everywhere, "--queue", "two,one")] == ["b", "c", "d", "a"]
    assert listed(everywhere, "--state", "running") == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7])
def test_pages_join_up_over_queues_and_states(everywhere: Program, limit: int) -> None:
    expected = [
        *waiting(everywhere, "a1", "a2", "a3", queue="a"),
        *waiting(everywhere, "a4", queue="a", delay=60),
        *waiting(everywhere, "c1", "c2", queue="c"),
        *waiting(everywhere, "d1", queue="d", delay=60),
    ]
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(len(expected) // limit + 1):
        more = [] if cursor is None else ["--cursor", cursor]
        page = json.loads(everywhere("jobs", "--json", "--limit", f"{limit}", *more).stdout)
        assert 0 < len(page["jobs"]) <= limit
        seen += [row["id"] for row in page["jobs"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert (seen, cursor) == (expected, None)


def test_the_table_says_how_to_go_on(everywhere: Program) -> None:
    waiting(everywhere, "a", "b")
    first = everywhere("jobs", "--limit", "1")
    *_, cursor = first.stderr.split()
    second = everywhere("jobs", "--cursor", cursor)
    assert "there are more" in first.stderr
    assert second.stderr == ""
    assert "b " in second.stdout


@pytest.mark.parametrize("cursor", ["", "default", "default/ready", "elsewhere/ready/", "default/failed/", "a/b/c/d"])
def test_a_cursor_of_another_listing_is_refused(tenure: Program, cursor: str) -> None:
    waiting(tenure, "a")
    done = tenure("jobs", "--queue", "default", "--state", "delayed", "--cursor", cursor)
    assert done.returncode == 2
    assert "--cursor" in done.stderr


def test_a_cursor_that_was_tampered_with_is_refused_by_the_store(everywhere: Program) -> None:
    waiting(everywhere, "a")
    done = everywhere("jobs", "--cursor", "default/ready/nonsense")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


# --------------------------------------------------------------------------------------------------------------- status


def test_status_counts_without_reading_and_shows_size_and_pauses(everywhere: Program) -> None:  # S7, K5, K18
    """The size is what waits: ready, delayed and lapsed jobs, not those that a worker holds."""
    waiting(everywhere, "a", "b")
    waiting(everywhere, "c", delay=60)
    running(everywhere, "d", queue="slow")
    everywhere("pause", "slow")
    assert {**counted(everywhere), "oldest_age": 0} == {
        "queue": "default", "ready": 2, "delayed": 1, "leased": 0, "lapsed": 0, "failed": 0, "unreadable": 0,
        "size": 3, "oldest_age": 0, "paused": False,
    }  # fmt: skip
    slow = counted(everywhere, "slow")
    assert (slow["leased"], slow["size"], slow["paused"]) == (1, 0, True)
    assert [line.split()[-1] for line in everywhere("status").stdout.splitlines()] == ["paused", "-", "yes"]


# --------------------------------------------------------------------------------------------------------------- cancel


def test_what_waits_is_cancelled_and_what_runs_is_requested_to_stop(everywhere: Program) -> None:
    waiting(everywhere, "ready", queue="mail")
    waiting(everywhere, "delayed", delay=60)
    running(everywhere, "running", queue="slow")
    done = everywhere("cancel", "delayed", "running", "ready")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "cancelled delayed", "requested running: it runs, and its worker is told", "cancelled ready"
    ]  # fmt: skip
    assert [row["id"] for row in listed(everywhere)] == ["running"]


def test_a_mistyped_id_cancels_nothing(everywhere: Program) -> None:
    failed(everywhere, 1, ids=["failed-already"])
    waiting(everywhere, "right")
    for wrong in ("mistyped", "failed-already"):
        done = everywhere("cancel", "right", wrong)
        assert (done.returncode, done.stdout) == (1, "")
        assert wrong in done.stderr
    assert [row["id"] for row in listed(everywhere)] == ["right"]


def test_an_id_in_two_queues_is_cancelled_where_it_is_said(everywhere: Program) -> None:
    for queue in ("one", "two"):
        waiting(everywhere, "twin", queue=queue)
    refused = everywhere("cancel", "twin")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--queue" in refused.stderr
    assert everywhere("cancel", "twin", "--queue", "two").returncode == 0
    assert [row["queue"] for row in listed(everywhere)] == ["one"]


def test_a_worker_stops_the_job_that_is_cancelled(everywhere: Program) -> None:
    everywhere("push", "sleep", "[60]", "--id", "long", "--app", "shop:app")
    with everywhere.begin("worker", "shop:app") as worker:
        processes.eventually(lambda: "sleep begins" in everywhere.ran)
        assert everywhere("cancel", "long").returncode == 0
        worker.wait_for_output("was cancelled")
        assert worker.stop() == 0
    assert counted(everywhere, "slow")["size"] == 0
    assert everywhere.ran == ["sleep begins"]


# ---------------------------------------------------------------------------------------------------------------- clear


def test_clear_removes_what_waits_and_prints_the_exact_number(everywhere: Program) -> None:  # K4, K18
    """Leases that live or have lapsed, failed jobs and other queues stay."""
    running(everywhere, "held")
    failed(everywhere, 2)
    waiting(everywhere, "elsewhere", queue="other")
    waiting(everywhere, *(f"r{number}" for number in range(7)))
    waiting(everywhere, *(f"d{number}" for number in range(5)), delay=60)
    done = everywhere("clear", "--queue", "default", "--force")
    assert (done.returncode, done.stdout, done.stderr) == (0, "cleared 12\n", "")
    row = counted(everywhere)
    assert (row["ready"], row["delayed"], row["leased"], row["failed"]) == (0, 0, 1, 2)
    assert counted(everywhere, "other")["ready"] == 1
    assert everywhere("clear", "--queue", "default", "--force").stdout == "cleared 0\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["clear", "--queue", "default"], "--force"),
        (["clear", "--force"], "--queue"),
        (["clear", "--queue", "a,b", "--force"], "queue name"),
    ],
    ids=str,
)
def test_clear_needs_one_queue_and_to_be_confirmed(tenure: Program, arguments: list[str], says: str) -> None:
    waiting(tenure, "a")
    done = tenure(*arguments, env={"TENURE_FORCE": "1", "TENURE_QUEUE": "default", "TENURE_CLEAR_FORCE": "1"})
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert counted(tenure)["ready"] == 1


# ----------------------------------------------------------------------------------------------------- pause and resume


def test_a_paused_queue_hands_out_nothing_until_it_is_resumed(everywhere: Program) -> None:
    waiting(everywhere, "a", "b")
    done = everywhere("pause", "default")
    assert (done.returncode, done.stdout, done.stderr) == (0, "paused default\n", "")
    assert everywhere("worker", "shop:app", "--stop-when-empty").returncode == 0
    assert (everywhere.ran, counted(everywhere)["ready"]) == ([], 2)
    assert everywhere("resume", "default").stdout == "resumed default\n"
    assert everywhere("worker", "shop:app", "--stop-when-empty").returncode == 0
    assert len(everywhere.ran) == 2


def test_pausing_and_resuming_twice_is_said_and_is_no_error(everywhere: Program) -> None:
    waiting(everywhere, "a")
    for command, first, second in (
        ("pause", "paused default", "default was paused already"),
        ("resume", "resumed default", "default was not paused"),
    ):
        assert [everywhere(command, "default").stdout.strip() for _ in range(2)] == [first, second]
        assert everywhere(command, "default").returncode == 0


def test_a_queue_that_nothing_was_pushed_to_is_paused_and_said_to_be_new(everywhere: Program) -> None:
    done = everywhere("pause", "future")
    assert (done.returncode, done.stdout) == (0, "paused future\n")
    assert "nothing was ever pushed to future" in done.stderr
    waiting(everywhere, "a", queue="future")
    assert counted(everywhere, "future")["paused"] is True


def test_several_queues_are_paused_in_one_command(everywhere: Program) -> None:
    waiting(everywhere, "a", queue="one")
    waiting(everywhere, "b", queue="two")
    assert everywhere("pause", "one", "two", "one").stdout == "paused one\npaused two\n"
    assert everywhere("pause", "a b").returncode == 2


def test_a_waiting_worker_goes_on_when_its_queue_is_resumed(everywhere: Program) -> None:
    waiting(everywhere, "a")
    everywhere("pause", "default")
    with everywhere.begin("worker", "shop:app", "--sleep", "30") as worker:
        worker.wait_for_output("worker started")
        everywhere("resume", "default")
        processes.eventually(lambda: everywhere.ran)
        assert worker.stop() == 0


def test_the_api_does_what_the_commands_do(everywhere: Program) -> None:
    waiting(everywhere, "a", "b")

    async def operate(app: Tenure) -> None:
        operate = app.operate
        assert await operate.size("default") == 2
        assert (await operate.pause("default"), await operate.pause("default")) == (True, False)
        assert await operate.paused(["default", "other"]) == [True, False]
        assert not (await app.queue().claim(["default"], limit=1, lease=5, wait=0)).leases
        assert (await operate.resume("default"), await operate.resume("default")) == (True, False)
        assert len(await lease(app, "default", 1)) == 1
        page = await operate.jobs("default", JobState.READY, limit=1)
        assert ([job.id for job in page.jobs], page.cursor) == (["b"], None)
        assert await operate.restart() != await operate.restart()
        assert await operate.clear("default") == 1

    on(everywhere, operate)
