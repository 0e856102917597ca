"""The worker command: how it starts, what it says, how it ends, and with which exit code."""

import json
import signal
import socket
import time

import pytest

from tests.cli.conftest import Program
from tests.support import processes
from tests.support.servers import Server

LONELY = """
from tenure import Injected, Tenure

app = Tenure()


class Mailer: ...


@app.job
def send(to: str, *, mailer: Mailer = Injected) -> None: ...
"""

ODD = """
from tenure import Tenure

app = Tenure("memory://")


@app.job(name="count", result_ttl=60)
def count() -> int:
    return 1
"""

BUSY = ["worker", "shop:app", "--queues", "slow", "--concurrency", "2"]


def push(tenure: Program, name: str, arguments: list[object], *options: str) -> str:
    done = tenure("push", name, json.dumps(arguments), "--app", "shop:app", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_says_what_it_works_on_and_why_it_ended(tenure: Program) -> None:
    push(tenure, "greet", ["Ana"])
    done = tenure.process("worker", "shop:app", "--stop-when-empty", "-c", "7")
    assert done.returncode == 0
    assert done.stdout == ""
    first, *_, last = done.stderr.strip().splitlines()
    for part in ("store sql", "namespace shop", "queues default,slow", "concurrency 7", "4 jobs"):
        assert part in first
    assert last == "tenure: stopped: empty"
    assert tenure.ran == ["greet Ana 1"]


def test_its_start_shows_no_credentials(tenure: Program, valkey: Server) -> None:
    url = valkey.url.replace("unix://", "unix://user:hunter2-canary@")
    with tenure.begin("worker", "shop:app", env={"TENURE_URL": url}) as worker:
        worker.wait_for_output("store redis")
        assert worker.stop() == 0
        assert "hunter2" not in worker.output
        assert str(valkey.socket) not in worker.output


@pytest.mark.parametrize(
    ("options", "reason"),
    [(["--once"], "completed"), (["--max-jobs", "2"], "max_jobs"), (["--stop-when-empty"], "empty")],
)
def test_a_limit_ends_it_with_its_reason_and_0(tenure: Program, options: list[str], reason: str) -> None:
    for _ in range(3):
        push(tenure, "greet", ["Ana"])
    done = tenure("worker", "shop:app", *options)
    assert (done.returncode, done.stderr.strip().splitlines()[-1]) == (0, f"tenure: stopped: {reason}")


def test_a_time_limit_ends_it_with_0(tenure: Program) -> None:
    done = tenure("worker", "shop:app", "--max-time", "0.2")
    assert (done.returncode, done.stderr.strip().splitlines()[-1]) == (0, "tenure: stopped: max_time")


def test_one_shot_mode_with_a_failing_job_ends_with_0_on_each_run(tenure: Program) -> None:
    for _ in range(2):
        push(tenure, "fail", ["hunter2"])
        assert tenure("worker", "shop:app", "--once").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_jobs_end_and_is_0(tenure: Program, number: signal.Signals) -> None:  # K17
    push(tenure, "sleep", [0.5])
    with tenure.begin(*BUSY) as worker:
        processes.eventually(lambda: "sleep begins" in tenure.ran, 10)
        worker.signal(number)
        assert worker.wait(10) == 0
        assert worker.output.strip().splitlines()[-1] == "tenure: stopped: shutdown"
        assert "Traceback" not in worker.output
    assert tenure.ran == ["sleep begins", "sleep ends"]


def test_a_second_signal_gives_the_jobs_back_at_once_and_is_1(tenure: Program) -> None:
    push(tenure, "sleep", [30])
    with tenure.begin(*BUSY) as worker:
        processes.eventually(lambda: "sleep begins" in tenure.ran, 10)
        worker.signal(signal.SIGINT)
        worker.wait_for_output("draining")  # two signals at the same moment are one
        worker.signal(signal.SIGINT)
        assert worker.wait(10) == 1
        assert worker.output.strip().splitlines()[-1] == "tenure: stopped: shutdown, forced by a second signal"
        assert "Traceback" not in worker.output
    [row] = json.loads(tenure("status", "--queue", "slow", "--json").stdout)["queues"]
    assert (row["ready"] + row["delayed"], row["leased"]) == (1, 0)


def test_the_signal_after_a_limit_is_the_first_one(tenure: Program) -> None:
    push(tenure, "sleep", [0.8])
    with tenure.begin(*BUSY, "--max-jobs", "1") as worker:
        processes.eventually(lambda: "sleep begins" in tenure.ran, 10)
        worker.signal(signal.SIGTERM)
        assert worker.wait(10) == 0
        assert worker.output.strip().splitlines()[-1] == "tenure: stopped: max_jobs"
    assert tenure.ran == ["sleep begins", "sleep ends"]


def test_restart_lets_all_workers_finish_and_end_with_0(everywhere: Program) -> None:  # S8, K17
    for _ in range(2):
        push(everywhere, "sleep", [1.5])
    one_at_a_time = ["worker", "shop:app", "--queues", "slow", "--concurrency", "1"]
    with everywhere.begin(*one_at_a_time) as first, everywhere.begin(*one_at_a_time) as second:
        processes.eventually(lambda: everywhere.ran.count("sleep begins") == 2, 10)
        done = everywhere("restart")
        assert (done.returncode, done.stdout, done.stderr) == (0, "restart requested\n", "")
        for worker in (first, second):
            assert worker.wait(15) == 0
            assert worker.output.strip().splitlines()[-1] == "tenure: stopped: restart"
    assert everywhere.ran == ["sleep begins"] * 2 + ["sleep ends"] * 2
    assert everywhere("worker", "shop:app", "--stop-when-empty").returncode == 0


def test_the_wait_of_a_claim_comes_from_the_environment_unless_it_is_said(tenure: Program) -> None:
    poll = {"QUEUE_POLL_TIMEOUT": "1.3"}
    for options, least in (([], 1.3), (["--sleep", "0.05"], 0.05)):
        began = time.monotonic()
        assert tenure("worker", "shop:app", "--once", *options, env=poll).returncode == 0
        assert time.monotonic() - began >= least
    assert "QUEUE_POLL_TIMEOUT" in tenure("worker", "shop:app", "--once", env={"QUEUE_POLL_TIMEOUT": "0"}).stderr


def test_a_service_that_nobody_registered_is_one_line_and_2(tenure: Program) -> None:
    tenure.write("lonely.py", LONELY)
    done = tenure.process("worker", "lonely:app", "--once")
    assert (done.returncode, done.stdout) == (2, "")
    *_, last = done.stderr.strip().splitlines()
    assert "Traceback" not in done.stderr
    assert last.startswith("tenure: app.services: not registered")
    assert "Mailer" in last


def test_without_its_store_it_keeps_trying(tenure: Program) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"
        with tenure.begin("worker", "shop:app", env={"TENURE_URL": url}) as worker:
            worker.wait_for_output("WARNING", 15)
            assert worker.exit_code is None
            worker.signal(signal.SIGTERM)
            assert worker.wait(15) == 0
            assert "Traceback" not in worker.output


def test_logs_are_lines_of_json_when_asked_for(tenure: Program) -> None:
    push(tenure, "fail", ["hunter2-canary"])
    done = tenure("worker", "shop:app", "--stop-when-empty", "--log-format", "json", "--log-level", "debug")
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert lines
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert "hunter2" not in json.dumps([line["message"] for line in lines])


def test_where_no_terminal_reads_them_all_its_lines_are_json(tenure: Program) -> None:
    push(tenure, "greet", ["Ana"])
    done = tenure("worker", "shop:app", "--stop-when-empty", env={"TENURE_LOG_FORMAT": "auto"})
    first, *_, last = [json.loads(line)["message"] for line in done.stderr.splitlines()]
    assert first.startswith("worker starts: store sql")
    assert last == "stopped: empty"


def test_it_warns_of_what_is_probably_not_meant(tenure: Program) -> None:
    tenure.write("empty.py", "from tenure import Tenure\napp = Tenure()\n")
    tenure.write("odd.py", ODD)
    assert "no job is registered" in tenure("worker", "empty:app", "--stop-when-empty").stderr
    said = tenure("worker", "odd:app", "--stop-when-empty").stderr
    assert "is this process's own memory" in said
    said = tenure("worker", "shop:app", "--stop-when-empty", env={"TENURE_URL": ""}).stderr
    assert "no store is configured" in said
    assert "WARNING" not in tenure("worker", "shop:app", "--stop-when-empty").stderr


def test_the_application_is_found_in_the_environment_and_in_pyproject(tenure: Program) -> None:
    assert tenure("worker", "--stop-when-empty", env={"TENURE_APP": "shop:app"}).returncode == 0
    tenure.write("pyproject.toml", '[tool.tenure]\napp = "shop:app"\n')
    done = tenure("worker", "--stop-when-empty")
    assert done.returncode == 0, done.stderr
    assert "4 jobs" in done.stderr
    # The nearer one counts.
    assert tenure("worker", "--stop-when-empty", env={"TENURE_APP": "nowhere:app"}).returncode == 3
    assert tenure("worker", "shop:app", "--stop-when-empty", env={"TENURE_APP": "nowhere:app"}).returncode == 0


@pytest.mark.parametrize(
    "text", ["[tool.tenure]\napp = 5\n", "[tool.tenure\n", '[tool.tenure]\napp = "shop"\n', '[tool]\ntenure = "x"\n']
)
def test_a_wrong_pyproject_is_2_and_names_the_file(tenure: Program, text: str) -> None:
    tenure.write("pyproject.toml", text)
    done = tenure("worker", "--stop-when-empty")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "pyproject.toml" in done.stderr


def test_an_application_in_the_directory_of_pyproject_is_found_from_below(tenure: Program) -> None:
    tenure.write("pyproject.toml", '[tool.tenure]\napp = "shop:app"\n')
    (tenure.directory / "deep" / "er").mkdir(parents=True)
    tenure.directory = tenure.directory / "deep" / "er"
    # In a process of its own: within this one, a module from above the directory would stay imported.
    assert tenure.process("worker", "--stop-when-empty").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_application_is_imported_is_an_orderly_end(tenure: Program, number: signal.Signals) -> None:
    tenure.write("slow_start.py", "print('importing', flush=True)\nimport time\ntime.sleep(30)\n")
    with tenure.begin("worker", "slow_start:app") as worker:
        worker.wait_for_output("importing")
        worker.signal(number)
        assert worker.wait(10) == 0
        assert worker.output.strip().splitlines()[-1] == "tenure: stopped: shutdown"


def test_queues_have_weights_all_of_them_or_none(tenure: Program) -> None:
    for _ in range(2):
        push(tenure, "greet", ["Ana"])
    done = tenure("worker", "shop:app", "-q", "slow:3, default:1", "--stop-when-empty")
    assert done.returncode == 0, done.stderr
    assert "queues slow:3,default:1" in done.stderr
    assert tenure.ran == ["greet Ana 1"] * 2


@pytest.mark.parametrize(
    ("queues", "problem"),
    [
        ("high:3,default", "queue default has no weight and others have"),
        ("high:3,high:1", "queue high is named twice"),
        ("high:,low:1", "the weight of queue high is not a whole number"),
        ("high:0,low:1", "the weight of queue high must be a whole number of at least 1"),
        (":3", "queue"),
    ],
)
def test_weights_that_cannot_be_meant_are_2(tenure: Program, queues: str, problem: str) -> None:
    for options, env in ((["-q", queues], {}), ([], {"TENURE_QUEUES": queues})):
        done = tenure("worker", "shop:app", "--once", *options, env=env)
        assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
        assert problem in done.stderr
