"""Chains, batches and workflows at the command line: no user code is needed, and nothing of a payload is shown."""

import json
from typing import Any

import pytest

from tenure import Tenure
from tenure.compositions import JobNode, Kind, NewComposition, job_id
from tenure.flow.plan import Plan
from tenure.flow.tails import Planned
from tenure.queue import Ack, Push
from tests.cli.conftest import Program
from tests.cli.stocking import SECRET, lease, on, record
from tests.flow.jobs import app as planning
from tests.flow.jobs import one


@pytest.fixture
def stocked(everywhere: Program) -> Program:
    """A program on a store with compositions."""
    assert everywhere.app.queue().capabilities.compositions
    return everywhere


def made(
    program: Program, composition_id: str, *, jobs: int = 2, queue: str = "default", kind: Kind = Kind.BATCH
) -> None:
    """Store a composition whose jobs are secrets."""

    async def store(app: Tenure) -> None:
        keeps = app.operate.compositions.store()
        new = NewComposition(id=composition_id, home=queue, kind=kind, name="mails", retention=3600)
        assert await keeps.prepare(new)
        plan = Plan(planning.batch(one.bind(number) for number in range(jobs)))
        nodes = [_node(node, composition_id, queue) if isinstance(node, Planned) else node for node in plan.nodes()]
        await keeps.add(queue, composition_id, nodes)
        await keeps.start(queue, composition_id)

    on(program, store)


def _node(node: Planned, composition_id: str, queue: str) -> JobNode:
    one_id = job_id(composition_id, node.number)
    push = Push(queue=queue, id=one_id, envelope=record(one_id, queue=queue))
    return JobNode(number=node.number, push=push, needs=node.needs, when=node.when, next=node.next)


def finish(program: Program, number: int, queue: str = "default") -> None:
    """Acknowledge so many jobs."""

    async def settle(app: Tenure) -> None:
        await app.queue().settle([Ack(held) for held in await lease(app, queue, number)])

    on(program, settle)


def listed(program: Program, *arguments: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(program("compositions", "list", "--json", *arguments).stdout)[
        "compositions"
    ]
    return rows


def test_compositions_are_listed_by_their_numbers(stocked: Program) -> None:  # S17
    made(stocked, "first")
    made(stocked, "second", queue="mail", kind=Kind.CHAIN)
    finish(stocked, 1)
    done = stocked("compositions")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == stocked("compositions", "list").stdout
    assert SECRET not in done.stdout
    rows = {row["id"]: row for row in listed(stocked)}
    assert set(rows) == {"first", "second"}
    assert rows["first"] | {"created": ""} == {
        "id": "first", "kind": "batch", "name": "mails", "queue": "default", "state": "active", "progress": 50,
        "total": 2, "succeeded": 1, "failed": 0, "cancelled": 0, "created": "",
    }  # fmt: skip
    assert [row["id"] for row in listed(stocked, "--queue", "mail")] == ["second"]
    assert listed(stocked, "--state", "completed") == []
    done = stocked("compositions", "--limit", "1")
    assert "there are more" in done.stderr


def test_one_is_shown_cancelled_and_pruned(stocked: Program) -> None:  # S17
    made(stocked, "nightly", queue="mail")
    shown = json.loads(stocked("compositions", "show", "nightly", "--json").stdout)
    assert (shown["state"], shown["pending"], shown["finished"]) == ("active", 2, None)
    assert "pending" in stocked("compositions", "show", "nightly").stdout
    assert stocked("compositions", "prune", "--hours", "0").stdout == "pruned 0\n"
    assert stocked("compositions", "cancel", "nightly").stdout.startswith("cancelled nightly")
    assert json.loads(stocked("compositions", "show", "nightly", "--json").stdout)["state"] == "cancelled"
    again = stocked("compositions", "cancel", "nightly")
    assert again.returncode == 1
    assert "is over" in again.stderr
    assert stocked("compositions", "prune", "--hours", "1").stdout == "pruned 0\n"
    assert stocked("compositions", "prune", "--hours", "0").stdout == "pruned 1\n"
    gone = stocked("compositions", "show", "nightly")
    assert gone.returncode == 1
    assert "there is no composition nightly" in gone.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["prune"],
        ["prune", "--hours", "-1"],
        ["show", "not an id"],
        ["cancel"],
        ["--state", "tired"],
        ["--limit", "0"],
        ["--json", "show", "x"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2(tenure: Program, arguments: list[str]) -> None:
    assert tenure("compositions", *arguments).returncode == 2
