"""Pushing by name: what is pushed is checked by the application, and only what fits is sent."""

import json

import pytest

from tests.cli.conftest import Program

WHO = "6f1c2f0e-0000-4000-8000-000000000001"


def pushed(tenure: Program, *arguments: str) -> str:
    done = tenure("push", *arguments, "--app", "shop:app")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def run(tenure: Program) -> list[str]:
    done = tenure("worker", "shop:app", "--stop-when-empty", "-c", "1")
    assert done.returncode == 0, done.stderr
    return tenure.ran


def test_it_prints_the_id_and_a_worker_runs_the_job(tenure: Program) -> None:
    job_id = pushed(tenure, "greet", '["Ana", 3]')
    assert len(job_id) == 36
    assert run(tenure) == ["greet Ana 3"]


def test_arguments_may_be_given_by_name(tenure: Program) -> None:
    pushed(tenure, "greet", "--kwargs", '{"name": "Ana", "times": 2}')
    pushed(tenure, "greet", '["Ben"]', "--kwargs", '{"times": 4}')
    assert run(tenure) == ["greet Ana 2", "greet Ben 4"]


def test_arguments_become_what_the_job_declares(tenure: Program) -> None:
    pushed(tenure, "remind", json.dumps([WHO, "2027-02-28"]))
    assert run(tenure) == [f"remind {WHO} datetime.date(2027, 2, 28)"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing"], "nothing"),
        (["os:system", '["true"]'], "os:system"),
        (["greet"], "name"),
        (["greet", "[1]"], "name"),
        (["greet", '["Ana", 1, 2]'], ""),
        (["greet", '["Ana"]', "--kwargs", '{"colour": "red"}'], "colour"),
        (["greet", '["Ana"]', "--kwargs", '{"name": "Ben"}'], "name"),
        (["greet", '["Ana"'], "ARGS is not JSON"),
        (["greet", "5"], "ARGS must be a JSON list"),
        (["greet", "--kwargs", "[]"], "--kwargs must be a JSON object"),
        (["greet", "[" * 100_000], "ARGS is not JSON"),
        (["greet", '["Ana", 1e400]'], "JSON"),
        (["greet", '["Ana", NaN]'], ""),
        (["remind", '["nobody", "2027-02-28"]'], "who"),
        (["greet", '["Ana"]', "--delay", "-1"], "--delay"),
        (["greet", '["Ana"]', "--delay", "nan"], "--delay"),
        (["greet", '["Ana"]', "--priority", "101"], "--priority"),
        (["greet", '["Ana"]', "--id", "not an id"], "id"),
        (["greet", '["Ana"]', "--queue", "a:b"], "queue"),
        (["greet", json.dumps(["A" * 70_000])], "60000"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_what_does_not_fit_is_refused_in_one_line_and_not_sent(
    tenure: Program, arguments: list[str], says: str
) -> None:
    done = tenure("push", *arguments, "--app", "shop:app")
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert says in done.stderr
    assert done.stdout == ""
    assert json.loads(tenure("status", "--json").stdout) == {"queues": []}


def test_the_options_travel_with_the_job(tenure: Program) -> None:
    job_id = pushed(tenure, "greet", '["later"]', "--delay", "3600", "--queue", "evening", "--id", "one")
    assert job_id == "one"
    pushed(tenure, "greet", '["low"]', "--priority", "-5")
    pushed(tenure, "greet", '["high"]', "--priority", "5")
    assert run(tenure) == ["greet high 1", "greet low 1"]
    rows = {row["queue"]: row for row in json.loads(tenure("status", "--json").stdout)["queues"]}
    assert (rows["evening"]["delayed"], rows["default"]["ready"]) == (1, 0)


def test_an_id_that_exists_is_left_as_it_is_and_said_to_exist(tenure: Program) -> None:
    pushed(tenure, "greet", '["first"]', "--id", "one")
    done = tenure("push", "greet", '["second"]', "--id", "one", "--app", "shop:app")
    assert (done.returncode, done.stdout.strip()) == (0, "one")
    assert "exists" in done.stderr
    assert run(tenure) == ["greet first 1"]
