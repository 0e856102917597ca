"""``tenure worker --workers``: real children on real stores, killed, worn out, signalled and left alone."""

import os
import re
import signal
import time

import pytest

from tests.support import processes
from tests.support.processes import eventually
from tests.worker.office import Office, ended_with, said_by, started_by, workers_of

on_sqlite = pytest.mark.parametrize("office", ["sqlite"], indirect=True)


# K3
def test_the_jobs_of_a_killed_child_run_again_within_a_second_with_its_crash_counted(office: Office) -> None:
    with office.supervisor("--workers", "2", "--lease", "300", started=2) as supervisor:
        job_id = office.push("works", "interrupted", 2.0)
        [start] = office.journaled(1, "start")
        processes.kill9(start["pid"])
        killed = time.monotonic()
        again = office.journaled(2, "start")[1]
        assert again["at"] - killed < 1.0
        assert (again["attempt"], again["pid"] != start["pid"]) == (2, True)
        assert [(job.id, job.crashes) for job in office.running()] == [(job_id, 1)]
        supervisor.wait_for_output(f"worker process {start['pid']} died after")
        assert re.search(rf"worker process {start['pid']} died after [\d.]+ s: SIGKILL", supervisor.output)
        told = f"gave back 1 jobs that worker process {start['pid']} held: {job_id} (works)"
        assert told in supervisor.output
        eventually(lambda: started_by(supervisor) == 3, 20, what="a replacement")
        office.journaled(1, "end")
        supervisor.signal(signal.SIGTERM)
        ended_with(supervisor, "shutdown")
    office.counts(ready=0, leased=0, failed=0)


def test_a_job_that_takes_its_process_down_fails_as_crashed_and_healthy_ones_go_on(office: Office) -> None:
    poison = [office.push("exits"), office.push("dereferences_null")]
    for number in range(30):
        office.push("works", str(number), 0.02)
    with office.supervisor("--workers", "3", "-c", "1", "--tries", "2") as supervisor:
        eventually(lambda: set(office.failed()) == set(poison), 30, what="poison in the failed store")
        office.push("works", "after", 0)
        eventually(lambda: len(labels_of(office, "end")) == 31, 20, what="all healthy jobs")
        office.counts(ready=0, delayed=0, leased=0)
        supervisor.signal(signal.SIGTERM)
        ended_with(supervisor, "shutdown")
        assert "SIGSEGV" in supervisor.output
        assert "exit code 1" in supervisor.output
    assert {record.failure.reason for record in office.failed().values()} == {"crashed"}
    # One may have been held beside the poison, once.
    assert max(line["attempt"] for line in office.journal.lines("end")) <= 2


def labels_of(office: Office, what: str) -> set[str]:
    return {line["label"] for line in office.journal.lines(what)}


@on_sqlite
@pytest.mark.parametrize(
    ("reason", "options"),
    [
        ("max_jobs", ["--max-jobs", "5"]),
        ("max_time", ["--max-time", "1"]),
        ("memory", ["--memory", "200MiB"]),
        ("restart", []),
    ],
)
def test_a_worn_child_goes_on_until_its_replacement_claims(office: Office, reason: str, options: list[str]) -> None:
    with office.supervisor("--workers", "1", *options) as supervisor:
        [first] = workers_of(supervisor)
        if reason == "memory":
            office.push("swells", 200 * 2**20)
        pushed = 0
        while not said_by(first, supervisor, "worker stopped"):
            office.push("works", str(pushed), 0.01)
            pushed += 1
            office.journaled(pushed, "end")
            if reason == "restart" and pushed % 20 == 0:
                office.app.operate.restart_sync()  # it is no news to a child that has not looked before
        assert said_by(first, supervisor, f"worker stopped: {reason}")
        second = workers_of(supervisor)[1]
        lines = supervisor.output.splitlines()
        [begun] = [n for n, line in enumerate(lines) if f"[{second}] tenure.worker: worker started" in line]
        [over] = [n for n, line in enumerate(lines) if f"[{first}] tenure.worker: worker stopped" in line]
        assert begun < over, "there was a gap"
        office.counts(ready=0, leased=0)
        supervisor.signal(signal.SIGTERM)
        ended_with(supervisor, "shutdown")
    assert {line["attempt"] for line in office.journal.lines("end")} == {1}


@on_sqlite
def test_a_signal_reaches_every_child_once_and_they_finish_what_runs(office: Office) -> None:
    with office.supervisor("--workers", "2", "-c", "1", started=2) as supervisor:
        for label in ("a", "b"):
            office.push("works", label, 1.0)
        pids = {line["pid"] for line in office.journaled(2, "start")}
        assert pids == set(workers_of(supervisor))
        assert {os.getsid(pid) for pid in pids} == pids, "Ctrl-C at the terminal would reach them a second time"
        supervisor.signal(signal.SIGTTIN)
        eventually(lambda: all(said_by(pid, supervisor, "thread MainThread is at") for pid in pids), 10)
        supervisor.signal(signal.SIGTSTP)
        eventually(lambda: all(said_by(pid, supervisor, "quiet") for pid in pids), 10)
        office.push("works", "later", 0)
        supervisor.signal(signal.SIGINT)
        ended_with(supervisor, "shutdown")
    assert labels_of(office, "end") == {"a", "b"}
    office.counts(ready=1, leased=0)


@on_sqlite
def test_a_second_signal_gives_back_at_once_and_is_1(office: Office) -> None:
    office.push("works", "long", 60.0)
    with office.supervisor("--workers", "1") as supervisor:
        [start] = office.journaled(1, "start")
        supervisor.signal(signal.SIGTERM)
        eventually(lambda: said_by(start["pid"], supervisor, "draining"), 10)
        supervisor.signal(signal.SIGTERM)
        ended_with(supervisor, "shutdown, forced", code=1, timeout=5)
    office.counts(ready=1, leased=0)


def test_children_whose_supervisor_is_killed_finish_what_they_can_and_end(office: Office) -> None:
    with office.supervisor("--workers", "1", "--drain-timeout", "0.5") as supervisor:
        [pid] = workers_of(supervisor)
        office.push("works", "long", 60.0)
        office.journaled(1, "start")
        supervisor.kill9()
        office.push("works", "later", 0)
        eventually(lambda: not processes.alive(pid), 10, what="the child ends")
        assert "the supervisor has died" in supervisor.output
    office.counts(ready=2, leased=0)
    assert [line["label"] for line in office.journal.lines("start")] == ["long"], "it claimed on"
    with office.supervisor("--workers", "1", "--drain-timeout", "0"):
        assert {line["attempt"] for line in office.journaled(3, "start")} == {1}


def test_after_the_death_of_parent_and_child_the_lease_ends_the_waiting(office: Office) -> None:
    with office.supervisor("--workers", "1", "--lease", "1") as first:
        office.push("works", "long", 60.0)
        [start] = office.journaled(1, "start")
        with office.supervisor("--workers", "1", "--lease", "1", "--drain-timeout", "0"):
            first.kill9()
            processes.kill9(start["pid"])
            killed = time.monotonic()
            again = office.journaled(2, "start")[1]
            assert again["at"] - killed < 1.0 + 1.0


def test_a_child_that_stood_still_for_three_leases_stops_what_it_lost_and_goes_on(office: Office) -> None:
    lease = 1.0
    with office.supervisor("--workers", "2", "-c", "1", "--lease", str(lease), started=2) as supervisor:
        office.push("works", "contested", 5 * lease)
        [start] = office.journaled(1, "start")
        processes.pause(start["pid"])
        stopped = time.monotonic()
        again = office.journaled(2, "start")[1]
        eventually(lambda: time.monotonic() > stopped + 3 * lease, what="three leases")
        processes.cont(start["pid"])
        [cancelled] = office.journaled(1, "cancelled")
        assert (cancelled["pid"], cancelled["fence"]) == (start["pid"], start["fence"])
        [end] = office.journaled(1, "end")
        assert (end["pid"], end["fence"]) == (again["pid"], again["fence"])
        for label in ("a", "b"):
            office.push("works", label, 1.0)
        assert {line["pid"] for line in office.journaled(4, "start")[2:]} == set(workers_of(supervisor))
        office.journaled(3, "end")
        supervisor.signal(signal.SIGTERM)
        ended_with(supervisor, "shutdown")
    office.counts(ready=0, delayed=0, leased=0, failed=0)


@on_sqlite
def test_a_supervisor_whose_children_find_nothing_left_ends(office: Office) -> None:
    for number in range(20):
        office.push("works", str(number), 0.01)
    with office.supervisor("--workers", "2", "-c", "2", "--stop-when-empty", started=0) as supervisor:
        ended_with(supervisor, "empty")
    assert len(office.journal.lines("end")) == 20
