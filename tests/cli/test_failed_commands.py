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
from tenure.queue import Fail, Failure, Push
from tests.cli.conftest import Failing, Program
from tests.support import processes

SECRET = "hunter2"

BULK = """
import shop
shop.app.push_many_sync([shop.fail.bind("hunter2") for _ in range({number})])
shop.app.close_sync()
"""


def listed(tenure: Program, *arguments: str) -> list[dict[str, Any]]:
    done = tenure("failed", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["failed"]
    return rows


def fail_many(tenure: Program, number: int) -> list[str]:
    with processes.python("-c", BULK.format(number=number), env=tenure.env, cwd=tenure.directory) as pushing:
        assert pushing.wait(20) == 0, pushing.output
    assert tenure("worker", "shop:app", "--stop-when-empty").returncode == 0
    return [row["id"] for row in listed(tenure, "--limit", "5000")]


def test_status_counts_every_queue_and_needs_no_user_code(tenure: Program, fails: Failing) -> None:
    fails(2)
    tenure("push", "sleep", "[1]", "--app", "shop:app")
    tenure("push", "greet", '["x"]', "--delay", "60", "--app", "shop:app")
    tenure.write("shop.py", "raise SystemExit('not imported')")
    done = tenure("status")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    head, *rows = [line.split() for line in done.stdout.splitlines()]
    assert head == ["queue", "ready", "delayed", "leased", "lapsed", "failed", "unreadable", "oldest"]
    assert [row[:7] for row in rows] == [
        ["default", "0", "1", "0", "0", "2", "0"],
        ["slow", "1", "0", "0", "0", "0", "0"],
    ]
    [only] = json.loads(tenure("status", "--queue", "slow", "--json").stdout)["queues"]
    assert only["oldest_age"] >= 0
    assert {**only, "oldest_age": 0} == {
        "queue": "slow", "ready": 1, "delayed": 0, "leased": 0, "lapsed": 0, "failed": 0, "unreadable": 0,
        "oldest_age": 0,
    }  # fmt: skip


def test_the_listing_has_neither_arguments_nor_messages(tenure: Program, fails: Failing) -> None:
    [job_id] = fails(1)
    tenure.write("shop.py", "raise SystemExit('not imported')")
    for done in (tenure("failed"), tenure("failed", "--json"), tenure("failed", "show", job_id)):
        assert done.returncode == 0
        assert SECRET not in done.stdout + done.stderr
        for part in (job_id, "default", "fail", "ValueError", "20"):
            assert part in done.stdout
    [row] = listed(tenure)
    assert set(row) == {"id", "queue", "name", "error", "attempts", "failed_at"}
    assert row["attempts"] == 1


def test_revealing_asks_first(tenure: Program, fails: Failing) -> None:
    [job_id] = fails(1)
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
def test_on_a_terminal_only_a_yes_reveals(tenure: Program, fails: Failing, answer: str, code: int) -> None:
    [job_id] = fails(1)
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


def test_no_environment_variable_reveals(tenure: Program, fails: Failing) -> None:
    [job_id] = fails(1)
    done = tenure("failed", "show", job_id, env={"TENURE_REVEAL": "1", "TENURE_YES": "1"})
    assert SECRET not in done.stdout


def test_the_limit_shows_the_oldest_and_says_that_there_are_more(tenure: Program) -> None:
    ids = fail_many(tenure, 5)
    done = tenure("failed", "--limit", "3", "--json")
    assert [row["id"] for row in json.loads(done.stdout)["failed"]] == ids[:3]
    assert "there are more" in done.stderr
    assert "there are more" not in tenure("failed", "--limit", "5").stderr


def test_a_retried_job_runs_again_with_all_its_attempts(tenure: Program, fails: Failing) -> None:
    [job_id] = fails(1)
    done = tenure("retry", job_id)
    assert (done.returncode, done.stdout.strip()) == (0, f"retried {job_id}")
    assert listed(tenure) == []
    tenure("worker", "shop:app", "--stop-when-empty")
    assert tenure.ran == ["fail", "fail"]
    assert [row["attempts"] for row in listed(tenure)] == [1]


def test_a_forgotten_job_is_gone(tenure: Program, fails: Failing) -> None:
    first, second = fails(2)
    done = tenure("forget", first)
    assert (done.returncode, done.stdout.strip()) == (0, f"forgot {first}")
    assert [row["id"] for row in listed(tenure)] == [second]


async def test_a_job_that_no_worker_could_read_is_not_retried(tenure: Program, fails: Failing) -> None:
    [good] = fails(1)
    app = Tenure(tenure.env["TENURE_URL"], namespace="shop")
    queue = app.queue()
    await queue.push([Push(queue="default", id="newer", envelope=b'{"v":99}')])
    [lease] = (await queue.claim(["default"], limit=1, lease=30, wait=0)).leases
    await queue.settle([Fail(lease, Failure(reason="unknown-job"))])
    await app.aclose()
    one = tenure("retry", "newer")
    assert (one.returncode, one.stdout) == (1, "")
    assert "newer version" in one.stderr
    everything = tenure("retry", "--all", "--force")
    assert (everything.returncode, everything.stdout.strip()) == (1, "retried 1")
    assert "newer" in everything.stderr
    assert [row["id"] for row in listed(tenure)] == ["newer"]
    assert good not in tenure("failed").stdout


@pytest.mark.parametrize("command", ["retry", "forget"])
def test_a_mistyped_id_changes_nothing_and_is_1(tenure: Program, fails: Failing, command: str) -> None:
    [job_id] = fails(1)
    done = tenure(command, job_id, "mistyped")
    assert done.returncode == 1
    assert "mistyped" in done.stderr
    assert done.stdout == ""
    assert [row["id"] for row in listed(tenure)] == [job_id]


def test_one_id_in_two_queues_is_not_guessed(tenure: Program) -> None:
    for queue in ("default", "other"):
        tenure("push", "fail", '["x"]', "--id", "twin", "--queue", queue, "--app", "shop:app")
    tenure("worker", "shop:app", "--stop-when-empty", "-q", "default,other")
    done = tenure("retry", "twin")
    assert done.returncode == 1
    assert "--queue" in done.stderr
    assert tenure("retry", "twin", "--queue", "other").returncode == 0
    assert [row["queue"] for row in listed(tenure)] == ["default"]


def test_retrying_all_runs_each_once_though_each_fails_again_at_once(tenure: Program) -> None:
    fail_many(tenure, 50)
    with tenure.begin("worker", "shop:app", "--concurrency", "10") as worker:
        worker.wait_for_output("worker starts")
        done = tenure("retry", "--all", "--force")
        assert (done.returncode, done.stdout.strip()) == (0, "retried 50")
        processes.eventually(lambda: len(tenure.ran) >= 100, 20)
        assert worker.stop() == 0
    assert len(tenure.ran) == 100
    assert len({row["id"] for row in listed(tenure, "--limit", "200")}) == 50


def test_two_operators_at_once_retry_each_job_once(tenure: Program) -> None:
    fail_many(tenure, 250)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: tenure("retry", "--all", "--force"), range(2)))
    assert [done.returncode for done in both] == [0, 0]
    assert sum(int(done.stdout.split()[1]) for done in both) == 250
    assert tenure("worker", "shop:app", "--stop-when-empty").returncode == 0
    assert len(tenure.ran) == 500
    assert len(listed(tenure, "--limit", "1000")) == 250


async def test_two_operators_at_the_same_moment_do_not_retry_what_fails_again_meanwhile(tenure: Program) -> None:
    fail_many(tenure, 250)
    app = Tenure(tenure.env["TENURE_URL"], namespace="shop")
    with tenure.begin("worker", "shop:app", "--concurrency", "10") as worker:
        worker.wait_for_output("worker started")
        retried = await asyncio.gather(*(app.retry("default") for _ in range(2)))
        assert sum(answer.outcome == "retried" for answers in retried for answer in answers) == 250
        processes.eventually(lambda: len(tenure.ran) >= 500, 30)
        assert worker.stop() == 0
    await app.aclose()
    assert len(tenure.ran) == 500
    assert len(listed(tenure, "--limit", "1000")) == 250


def test_a_retry_of_all_that_is_killed_leaves_each_job_in_one_place(tenure: Program) -> None:
    ids = fail_many(tenure, 3000)
    app = Tenure(tenure.env["TENURE_URL"], namespace="shop")
    with tenure.begin("retry", "--all", "--force") as retrying:
        processes.eventually(lambda: app.counts_sync("default").failed < 3000, 20, every=0.001)
        retrying.kill9()
    left = app.counts_sync("default")
    app.close_sync()
    assert 0 < left.failed < 3000
    assert left.ready + left.failed == 3000
    tenure("worker", "shop:app", "--stop-when-empty")
    assert Counter(row["id"] for row in listed(tenure, "--limit", "5000")) == Counter(ids)
