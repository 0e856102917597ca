"""What strangers put into the store cannot do anything to an operator's terminal."""

import json

import msgspec
import pytest

from tenure import Tenure
from tenure.queue import Fail, Failure, Push, SetAside
from tests.cli.conftest import Program

HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\nforged: line\u202egpj\x9b31m"


@pytest.fixture
async def hostile(tenure: Program) -> Program:
    """Failed jobs whose error and arguments or whose name misbehave, waiting ones, and a record set aside."""
    app = Tenure(tenure.env["TENURE_URL"], namespace="shop")
    queue = app.queue()
    failure = Failure(reason="exception", type=HOSTILE, message=HOSTILE, traceback=HOSTILE)
    for job_id, name in (("bad", "greet"), ("worse", HOSTILE)):
        envelope = msgspec.json.encode({"v": 1, "id": job_id, "name": name, "queue": "q", "args": [HOSTILE]})
        await queue.push([Push(queue="q", id=job_id, envelope=envelope)])
        [lease] = (await queue.claim(["q"], limit=1, lease=30, wait=0)).leases
        await queue.settle([Fail(lease, failure)])
    await queue.push([Push(queue="q", id="odd", envelope=HOSTILE.encode())])
    [lease] = (await queue.claim(["q"], limit=1, lease=30, wait=0)).leases
    await queue.settle([SetAside(lease, HOSTILE)])
    for job_id, delay in (("ready", 0.0), ("delayed", 60.0)):
        envelope = msgspec.json.encode({"v": 1, "id": job_id, "name": HOSTILE, "queue": "q", "args": [HOSTILE]})
        await queue.push([Push(queue="q", id=job_id, envelope=envelope, delay=delay)])
    await app.aclose()
    return tenure


@pytest.mark.parametrize(
    "arguments",
    [
        ["failed"],
        ["failed", "--json"],
        ["failed", "show", "bad"],
        ["failed", "show", "bad", "--reveal", "--yes"],
        ["failed", "show", "bad", "--reveal", "--yes", "--json"],
        ["failed", "show", "worse", "--reveal", "--yes"],
        ["status"],
        ["jobs"],
        ["jobs", "--json"],
        ["jobs", "--limit", "1"],
        ["unreadable"],
        ["unreadable", "list", "--json"],
    ],
    ids=" ".join,
)
async def test_every_shown_field_is_inert(hostile: Program, arguments: list[str]) -> None:
    done = hostile(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    for line in (done.stdout + done.stderr).split("\n"):
        assert line.isprintable(), ascii(line)
    assert "\nforged" not in done.stdout


async def test_json_gives_the_values_back_exactly(hostile: Program) -> None:
    bad, worse = json.loads(hostile("failed", "--json").stdout)["failed"]
    assert (bad["name"], bad["error"]) == ("greet", HOSTILE)
    assert (worse["name"], worse["error"]) == (None, HOSTILE)
    shown = json.loads(hostile("failed", "show", "bad", "--reveal", "--yes", "--json").stdout)
    assert (shown["args"], shown["message"]) == ([HOSTILE], HOSTILE)


async def test_an_envelope_that_cannot_be_read_is_listed_all_the_same(tenure: Program) -> None:
    app = Tenure(tenure.env["TENURE_URL"], namespace="shop")
    queue = app.queue()
    await queue.push([Push(queue="q", id="raw", envelope=b"\x80\x04pickled\x1b[2J")])
    claimed = await queue.claim(["q"], limit=1, lease=30, wait=0)
    await queue.settle([Fail(lease, Failure(reason="arguments")) for lease in claimed.leases])
    await app.aclose()
    if not claimed.leases:
        pytest.fail("the driver set it aside")
    [row] = json.loads(tenure("failed", "--json").stdout)["failed"]
    assert (row["name"], row["error"]) == (None, "arguments")
    shown = tenure("failed", "show", "raw", "--reveal", "--yes").stdout
    assert "\\x80\\x04pickled\\x1b[2J" in shown


def test_what_the_command_line_itself_was_given_is_inert_in_its_errors(tenure: Program) -> None:
    for arguments in (["\x1b[2J"], ["worker", "\x1b[2J:app"], ["retry", "\x1b[2J"], ["status", "-q", "a\r\nb"],
        ["jobs", "--cursor", "\x1b[2J"], ["pause", "\x9b31m"], ["unreadable", "export", "\u202e"],
        ["prune", "--hours", "\x07"], ["clear", "-q", "\x1b", "--force"],
    ):  # fmt: skip
        done = tenure(*arguments)
        assert done.returncode == 2
        assert len(done.stderr.strip("\n").split("\n")) == 1
        assert done.stderr.strip("\n").isprintable()


def test_a_terminal_that_knows_ascii_only_is_no_obstacle(tenure: Program) -> None:
    done = tenure.process(
        "push", "greet", '["x"]', "--app", "shop:app", "--queue", "é", env={"PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
