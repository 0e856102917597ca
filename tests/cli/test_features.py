"""One application from its push to its end, by the command line alone: what its users were promised, on each store."""

import json
from typing import Any

import pytest

from tenure.queue import Push
from tests.cli.conftest import Program
from tests.cli.stocking import on, running, waiting

CANARY = "hunter2-canary"

APP = """
import itertools
from typing import Annotated

from tenure import Injected, Retry, Sensitive, Tenure
from tenure.events import JobFailed, JobReleased, JobSucceeded, SettlementLost

app = Tenure()
numbers = itertools.count(1)


def note(text):
    with open("ran", "a") as file:
        file.write(text + "\\n")


for kind in (JobSucceeded, JobReleased, JobFailed, SettlementLost):
    app.events.on(kind, lambda event: note(f"{type(event).__name__} {event.lease.id}"))


class Desk:
    def __init__(self):
        self.number = next(numbers)


def desk():
    made = Desk()
    yield made
    note(f"desk {made.number} closed")


app.services.register_factory(Desk, desk)


@app.job(name="login", max_attempts=2, backoff=0.01)
def login(user: str, password: Annotated[str, Sensitive]) -> None:
    raise PermissionError(f"{user} may not enter with {password}")


@app.job(name="write")
def write(text: str, *, desk: Desk = Injected) -> None:
    note(f"{text} at desk {desk.number}")


@app.job(name="late", queue="slow")
def late(text: str) -> None:
    note(text)
"""


@pytest.fixture
def office(everywhere: Program) -> Program:
    """The command, with this application beside it."""
    everywhere.write("office.py", APP)
    return everywhere


def push(program: Program, name: str, arguments: list[Any], *options: str) -> None:
    done = program("push", name, json.dumps(arguments), "--app", "office:app", *options)
    assert done.returncode == 0, done.stderr


def work(program: Program, *options: str) -> str:
    """Run a worker until nothing is ready, and return all that it said."""
    done = program("worker", "office:app", "--stop-when-empty", *options)
    assert (done.returncode, done.stdout) == (0, "")
    return done.stderr


def test_a_job_is_pushed_to_a_queue_and_for_later(office: Program) -> None:  # S5
    push(office, "late", ["now"], "--id", "one")
    push(office, "late", ["another queue"], "--queue", "mail", "--id", "two")
    push(office, "late", ["much later"], "--delay", "3600", "--id", "three")
    work(office)
    assert office.ran == ["now", "JobSucceeded one"]
    rows = {row["queue"]: row for row in json.loads(office("status", "--json").stdout)["queues"]}
    assert (rows["mail"]["ready"], rows["slow"]["delayed"], rows["slow"]["size"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("options", "reason", "ran"),
    [
        (["--once"], "completed", 1),
        (["--max-jobs", "2"], "max_jobs", 2),
        (["--stop-when-empty"], "empty", 3),
        (["--max-time", "0.3", "--sleep", "0.1"], "max_time", 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_each_limit_of_a_worker_has_its_reason(
    office: Program, options: list[str], reason: str, ran: int
) -> None:  # S6
    for number in range(3):
        push(office, "late", [f"{number}"])
    done = office("worker", "office:app", *options)
    assert (done.returncode, done.stderr.strip().splitlines()[-1]) == (0, f"tenure: stopped: {reason}")
    assert len([line for line in office.ran if line.isdigit()]) == ran


def test_what_is_no_record_is_set_aside_and_work_goes_on(office: Program) -> None:  # K12
    half = b'{"v": 1, "id": "broken", "name": "la'
    on(office, lambda app: app.queue().push([Push(queue="slow", id="broken", envelope=half)]))
    push(office, "late", ["fine"])
    work(office)
    assert "fine" in office.ran
    [row] = json.loads(office("unreadable", "--json").stdout)["unreadable"]
    assert (row["id"], row["queue"]) == ("broken", "slow")


def test_a_sensitive_argument_is_shown_nowhere(office: Program) -> None:  # K13
    push(office, "login", ["Ana", CANARY], "--id", "one", "--delay", "0.001")
    push(office, "login", ["Ana", CANARY], "--id", "two", "--queue", "mail")
    shown = work(office, "--log-level", "debug", "--log-format", "json", "--backoff", "0")
    shown += work(office, "--log-level", "debug", "--queues", "mail,default", "--backoff", "0")
    for command in (["failed"], ["failed", "show", "one"], ["jobs"], ["status"], ["unreadable"]):
        for form in ([], ["--json"]):
            done = office(*command, *form)
            assert done.returncode == 0, done.stderr
            shown += done.stdout + done.stderr
    assert "PermissionError" in shown
    assert CANARY not in shown


def test_what_becomes_of_a_job_is_told_to_observers(office: Program) -> None:  # K14
    """Succeeded, released and failed; that a lost settlement is told too is a test of the worker's."""
    push(office, "login", ["Ana", CANARY], "--id", "bad")
    push(office, "write", ["a letter"], "--id", "good")
    work(office, "--concurrency", "1")
    while not any(line.startswith("JobFailed") for line in office.ran):
        work(office)
    told = [line for line in office.ran if line.startswith("Job")]
    assert sorted(told) == ["JobFailed bad", "JobReleased bad", "JobSucceeded good"]
    assert told.index("JobReleased bad") < told.index("JobFailed bad")


def test_the_sync_connection_runs_the_job_in_the_push(office: Program) -> None:  # K15
    push(office, "write", ["a note"], "--connection", "sync")
    assert office.ran == ["a note at desk 1", "desk 1 closed"]
    assert json.loads(office("status", "--json").stdout) == {"queues": []}
    assert office("status", "--connection", "sync").returncode == 2


def test_each_attempt_has_services_of_its_own_that_are_closed_after_it(office: Program) -> None:  # K16
    for number in range(2):
        push(office, "write", [f"letter {number}"])
    work(office, "--concurrency", "1")
    lines = [line for line in office.ran if not line.startswith("Job")]
    assert lines == ["letter 0 at desk 1", "desk 1 closed", "letter 1 at desk 2", "desk 2 closed"]


def test_clear_and_size_leave_out_what_a_worker_holds(office: Program) -> None:  # K4, K5
    running(office, "held", queue="slow")
    waiting(office, "waits", queue="slow")
    [row] = json.loads(office("status", "--json").stdout)["queues"]
    assert (row["size"], row["leased"]) == (1, 1)
    assert office("clear", "--queue", "slow", "--force").stdout == "cleared 1\n"
    [row] = json.loads(office("status", "--json").stdout)["queues"]
    assert (row["size"], row["leased"]) == (0, 1)
