"""Looking at failed jobs, retrying and forgetting them, without any user code."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tenure import Tenure
from tenure.operations import Retried
from tenure.queue import Fail, Failure, Push
from tests.cli.conftest import Program
from tests.cli.stocking import SECRET, failed, lease, on
from tests.support import processes


def listed(tenure: Program, *arguments: str) -> list[dict[str, Any]]:
    done = tenure("failed", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["failed"]
    return rows


def test_status_counts_every_queue_and_needs_no_user_code(tenure: Program) -> None:
    failed(tenure, 2)
    tenure("push", "sleep", "[1]", "--app", "shop:app")
    tenure("push", "greet", '["x"]', "--delay", "60", "--app", "shop:app")
    tenure.write("shop.py", "raise SystemExit('not imported')")
    done = tenure("status")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    head, *rows = [line.split() for line in done.stdout.splitlines()]
    assert " ".join(head) == "queue ready delayed leased lapsed failed unreadable size oldest paused"
    assert [row[:8] for row in rows] == [
        ["default", "0", "1", "0", "0", "2", "0", "1"],
        ["slow", "1", "0", "0", "0", "0", "0", "1"],
    ]
    [only] = json.loads(tenure("status", "--queue", "slow", "--json").stdout)["queues"]
    assert only["oldest_age"] >= 0
    assert {**only, "oldest_age": 0} == {
        "queue": "slow", "ready": 1, "delayed": 0, "leased": 0, "lapsed": 0, "failed": 0, "unreadable": 0,
        "size": 1, "oldest_age": 0, "paused": False,
    }  # fmt: skip


def test_the_listing_has_neither_arguments_nor_messages(everywhere: Program) -> None:
    tenure = everywhere
    [job_id] = failed(tenure, 1)
    tenure.write("shop.py", "raise SystemExit('not imported')")
    for done in (tenure("failed"), tenure("failed", "--json"), tenure("failed", "show", job_id)):
        assert done.returncode == 0
        assert SECRET not in done.stdout + done.stderr
        for part in (job_id, "default", "fail", "ValueError", "20"):
            assert part in done.stdout
    [row] = listed(tenure)
    assert set(row) == {"id", "queue", "name", "error", "attempts", "failed_at"}
    assert row["attempts"] == 1


def test_revealing_asks_first(tenure: Program) -> None:
    [job_id] = failed(tenure, 1)
    nobody = tenure("failed", "show", job_id, "--reveal")
    assert nobody.returncode == 2
    assert "--yes" in nobody.stderr
    assert SECRET not in nobody.stdout
    sure = tenure("failed", "show", job_id, "--reveal", "--yes", "--json")
    shown = json.loads(sure.stdout)
    assert shown["args"] == [SECRET]
    assert SECRET in shown["message"]
    assert "ValueError" in shown["traceback"]
    text = tenure("failed", "show", job_id, "--reveal", "--yes").stdout
    assert f'["{SECRET}"]' in text


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_on_a_terminal_only_a_yes_reveals(tenure: Program, answer: str, code: int) -> None:
    [job_id] = failed(tenure, 1)
    ours, theirs = os.openpty()
    os.write(ours, answer.encode())
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tenure", "failed", "show", job_id, "--reveal"],
            cwd=tenure.directory,
            env=tenure.env,
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == code
    assert "may hold secrets" in done.stderr
    assert (SECRET in done.stdout) == (code == 0)


def test_no_environment_variable_reveals(tenure: Program) -> None:
    [job_id] = failed(tenure, 1)
    done = tenure("failed", "show", job_id, env={"TENURE_REVEAL": "1", "TENURE_YES": "1"})
    assert SECRET not in done.stdout


def test_the_limit_shows_the_oldest_and_says_that_there_are_more(tenure: Program) -> None:
    ids = failed(tenure, 5)
    done = tenure("failed", "--limit", "3", "--json")
    assert [row["id"] for row in json.loads(done.stdout)["failed"]] == ids[:3]
    assert "there are more" in done.stderr
    assert "there are more" not in tenure("failed", "--limit", "5").stderr


def test_a_retried_job_runs_again_with_all_its_attempts(everywhere: Program) -> None:
    tenure = everywhere
    [job_id] = failed(tenure, 1)
    done = tenure("retry", job_id)
    assert (done.returncode, done.stdout.strip()) == (0, f"retried {job_id}")
    assert listed(tenure) == []
    tenure("worker", "shop:app", "--stop-when-empty")
    assert tenure.ran == ["fail"]
    assert [row["attempts"] for row in listed(tenure)] == [1]


def test_a_forgotten_job_is_gone(everywhere: Program) -> None:
    tenure = everywhere
    first, second = failed(tenure, 2)
    done = tenure("forget", first)
    assert (done.returncode, done.stdout.strip()) == (0, f"forgot {first}")
    assert [row["id"] for row in listed(tenure)] == [second]


def test_a_job_that_no_worker_could_read_is_not_retried(everywhere: Program) -> None:
    tenure = everywhere
    [good] = failed(tenure, 1)

    async def fail_a_newer_one(app: Tenure) -> None:
        await app.queue().push([Push(queue="default", id="newer", envelope=b'{"v":99}')])
        [held] = await lease(app, "default", 1)
        await app.queue().settle([Fail(held, Failure(reason="unknown-job"))])

    on(tenure, fail_a_newer_one)
    one = tenure("retry", "newer")
    assert (one.returncode, one.stdout) == (1, "")
    assert "newer version" in one.stderr
    everything = tenure("retry", "--all", "--force")
    assert (everything.returncode, everything.stdout.strip()) == (1, "retried 1")
    assert "newer" in everything.stderr
    assert [row["id"] for row in listed(tenure)] == ["newer"]
    assert good not in tenure("failed").stdout


@pytest.mark.parametrize("command", ["retry", "forget"])
def test_a_mistyped_id_changes_nothing_and_is_1(everywhere: Program, command: str) -> None:
    tenure = everywhere
    [job_id] = failed(tenure, 1)
    done = tenure(command, job_id, "mistyped")
    assert done.returncode == 1
    assert "mistyped" in done.stderr
    assert done.stdout == ""
    assert [row["id"] for row in listed(tenure)] == [job_id]


def test_one_id_in_two_queues_is_not_guessed(everywhere: Program) -> None:
    tenure = everywhere
    for queue in ("default", "other"):
        failed(tenure, 1, queue=queue, ids=["twin"])
    done = tenure("retry", "twin")
    assert done.returncode == 1
    assert "--queue" in done.stderr
    assert tenure("retry", "twin", "--queue", "other").returncode == 0
    assert [row["queue"] for row in listed(tenure)] == ["default"]


def test_retrying_all_runs_each_once_though_each_fails_again_at_once(everywhere: Program) -> None:
    tenure = everywhere
    failed(tenure, 50)
    with tenure.begin("worker", "shop:app", "--concurrency", "10") as worker:
        worker.wait_for_output("worker starts")
        done = tenure("retry", "--all", "--force")
        assert (done.returncode, done.stdout.strip()) == (0, "retried 50")
        processes.eventually(lambda: len(tenure.ran) >= 50, 20)
        assert worker.stop() == 0
    assert len(tenure.ran) == 50
    assert len({row["id"] for row in listed(tenure, "--limit", "200")}) == 50


def test_two_operators_at_once_retry_each_job_once(everywhere: Program) -> None:
    tenure = everywhere
    failed(tenure, 250)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: tenure.process("retry", "--all", "--force"), range(2)))
    assert [done.returncode for done in both] == [0, 0]
    assert sum(int(done.stdout.split()[1]) for done in both) == 250
    assert tenure("worker", "shop:app", "--stop-when-empty").returncode == 0
    assert len(tenure.ran) == 250
    assert len(listed(tenure, "--limit", "1000")) == 250


def test_two_operators_at_the_same_moment_do_not_retry_what_fails_again_meanwhile(everywhere: Program) -> None:
    tenure = everywhere
    failed(tenure, 250)

    async def retry_twice(app: Tenure) -> list[list[Retried]]:
        return await asyncio.gather(*(app.retry("default") for _ in range(2)))

    with tenure.begin("worker", "shop:app", "--concurrency", "10") as worker:
        worker.wait_for_output("worker started")
        retried = on(tenure, retry_twice)
        assert sum(answer.outcome == "retried" for answers in retried for answer in answers) == 250
        processes.eventually(lambda: len(tenure.ran) >= 250, 30)
        assert worker.stop() == 0
    assert len(tenure.ran) == 250
    assert len(listed(tenure, "--limit", "1000")) == 250


def test_a_retry_of_all_that_is_killed_leaves_each_job_in_one_place(everywhere: Program) -> None:
    tenure = everywhere
    ids = failed(tenure, 6000)
    app = tenure.app
    with tenure.begin("retry", "--all", "--force") as retrying:
        processes.eventually(lambda: app.counts_sync("default").failed < 6000, 20, every=0.001)
        retrying.kill9()
    left = app.counts_sync("default")
    app.close_sync()
    assert 0 < left.failed < 6000
    assert left.ready + left.failed == 6000
    tenure("worker", "shop:app", "--stop-when-empty")
    assert Counter(row["id"] for row in listed(tenure, "--limit", "9000")) == Counter(ids)
