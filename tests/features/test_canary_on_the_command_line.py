"""What is secret is in nothing that a command prints, at any level of its logs and in any form (P12).

Two commands show what was pushed, because they are asked to: `failed show --reveal`, which asks first, and
`unreadable export`, which writes bytes to a file. The password of the store is in neither.
"""

import json
import subprocess
import sys

import pytest

from tests.cli.conftest import Program
from tests.features.canaries import Canaries
from tests.support.ports import free_port
from tests.support.servers import Server

APP = """
from typing import Annotated

from tenure import Sensitive, Tenure

app = Tenure()


@app.job(name="login", max_attempts=2, backoff=0)
def login(user: str, password: Annotated[str, Sensitive], text: str) -> None:
    raise PermissionError(f"{user} may not enter: {text}")


@app.job(name="enter")
async def enter(user: str, password: Annotated[str, Sensitive]) -> None:
    pass


@app.job(name="count")
def count(number: int) -> None:
    pass
"""

LISTINGS = [
    ["status"],
    ["failed"],
    ["failed", "show", "bad"],
    ["jobs"],
    ["jobs", "--state", "ready"],
    ["unreadable"],
    ["unreadable", "list"],
    ["doctor"],
    ["health"],
]
CHANGES = [
    ["pause", "mail"],
    ["resume", "mail"],
    ["cancel", "waits"],
    ["retry", "bad"],
    ["retry", "--all", "--force"],
    ["prune", "--hours", "1"],
    ["clear", "--queue", "mail", "--force"],
    ["restart"],
    ["completion", "bash"],
]


def said(done: "subprocess.CompletedProcess[str]") -> str:
    return done.stdout + done.stderr


@pytest.fixture
def office(tenure: Program, secret_url: str, namespace: str) -> Program:
    """The command, with this application beside it, configured by the environment alone."""
    tenure.write("office.py", APP)
    tenure.env |= {
        "TENURE_URL": secret_url,
        "QUEUE_NAMESPACE": namespace,
        "TENURE_APP": "office:app",
        "PYTHONASYNCIODEBUG": "1",
    }
    return tenure


def stocked(office: Program, canaries: Canaries) -> str:
    """Push jobs that will fail, succeed, wait and not be readable; return all that was said."""
    secrets = [canaries.argument.text, canaries.sensitive.text]
    login = json.dumps([*secrets, canaries.exception.text])
    entering = ["push", "enter", json.dumps(secrets), "--app", "office:app"]
    steps = [
        office("push", "login", login, "--id", "bad", "--app", "office:app"),
        office(*entering, "--id", "good"),
        office("push", "enter", "--kwargs", json.dumps(dict(zip(["user", "password"], secrets, strict=True)))),
        office(*entering, "--id", "waits", "--queue", "mail"),
        office(*entering, "--id", "later", "--delay", "3600"),
        office(*entering, "--id", "later", "--delay", "3600"),
    ]
    assert [done.returncode for done in steps] == [0] * len(steps), steps[-1].stderr
    return "".join(map(said, steps))


def set_aside(office: Program, canaries: Canaries) -> None:
    """Store what is no record of a job, as another program would."""
    code = (
        "import sys; from tenure import Tenure; from tenure.queue import Push; app = Tenure()\n"
        "odd = Push(queue='default', id='odd', envelope=sys.stdin.buffer.read())\n"
        "app.queue().pusher().push([odd]); app.close_sync()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=office.env, cwd=office.directory, input=canaries.argument.text, text=True,
        capture_output=True, check=True, timeout=30,
    )  # fmt: skip
    assert said(done) == ""


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_command_says_what_is_secret(office: Program, canaries: Canaries, form: str) -> None:  # K13
    text = stocked(office, canaries)
    set_aside(office, canaries)
    worker = ["worker", "--stop-when-empty", "--queues", "default", "--log-level", "debug", "--log-format", form]
    worked = office.process(*worker)
    assert worked.returncode == 0, worked.stderr
    assert "worker starts: " in worked.stderr
    assert "PermissionError" in worked.stderr
    assert "set aside" in worked.stderr
    text += said(worked)
    for command in LISTINGS:
        for done in (office(*command), office(*command, "--json")):
            assert done.returncode == 0, done.stderr
            text += said(done)
    for word in ("bad", "later", "odd", "PermissionError", "default"):
        assert word in text
    for command in CHANGES:
        done = office(*command)
        assert done.returncode == 0, (command, said(done))
        text += said(done)
    text += said(office.process(*worker))
    forgotten = office("forget", "bad")
    assert forgotten.stdout == "forgot bad\n"
    canaries.check(text + said(forgotten), "what commands print")


def test_a_value_that_does_not_fit_is_refused_without_it(office: Program, canaries: Canaries) -> None:
    for arguments in (
        ["count", json.dumps([canaries.argument.text])],
        ["count", "--kwargs", json.dumps({"number": canaries.argument.text})],
        ["count", f'["{canaries.argument.text}'],
        ["count", json.dumps({"number": canaries.argument.text})],
        ["login", json.dumps([canaries.argument.text, 7, canaries.exception.text])],
        ["login", json.dumps([canaries.argument.text] * 9)],
    ):
        done = office("push", *arguments)
        assert done.returncode == 2
        canaries.check(said(done), f"the refusal of {arguments[0]}")


def test_what_is_revealed_is_what_was_asked_for(office: Program, canaries: Canaries) -> None:
    """The failed store holds the job and its error, and gives them to whoever asks and says yes."""
    stocked(office, canaries)
    assert office("worker", "--stop-when-empty", "--queues", "default").returncode == 0
    refused = office("failed", "show", "bad", "--reveal")
    assert refused.returncode == 2
    canaries.check(said(refused), "what is shown to those who were not asked")
    held = [canary.place for canary in canaries if canary is not canaries.url]
    for form in ([], ["--json"]):
        done = office("failed", "show", "bad", "--reveal", "--yes", *form)
        assert canaries.leaks(said(done)) == held


def test_the_bytes_of_an_unreadable_record_are_exported_and_not_listed(office: Program, canaries: Canaries) -> None:
    set_aside(office, canaries)
    assert office("worker", "--stop-when-empty").returncode == 0
    listed = office("unreadable", "--json")
    canaries.check(said(listed), "the listing")
    [row] = json.loads(listed.stdout)["unreadable"]
    assert office.process("unreadable", "export", row["key"]).stdout.endswith(canaries.argument.text)
    dropped = office("unreadable", "drop", row["key"], "--force")
    assert dropped.returncode == 0
    canaries.check(said(dropped), "the answer to a drop")


# ------------------------------------------------------------------------------------------- stores that cannot be used


@pytest.mark.parametrize("wrong", ["unreachable", "a wrong user", "a wrong password", "no URL", "a wrong host"])
@pytest.mark.parametrize("given", ["by the environment", "by an option"])
def test_a_store_that_cannot_be_used_is_told_without_its_password(
    tenure: Program, guarded: Server, canaries: Canaries, wrong: str, given: str
) -> None:
    secret = canaries.url.quoted
    url = {
        "unreachable": f"redis://:{secret}@127.0.0.1:{free_port()}/0",
        "a wrong user": guarded.tcp_url.replace("://", f"://nobody:{secret}@"),
        "a wrong password": guarded.tcp_url.replace("://", f"://:wrong{secret}@"),
        "no URL": f"redis:/:{secret}@localhost",
        "a wrong host": f"redis://:{secret}@no host/0",
    }[wrong]
    by_option = given == "by an option"
    env = {"PYTHONASYNCIODEBUG": "1", "TENURE_URL": "" if by_option else url}
    options = ["--url", url] if by_option else []
    text = ""
    for command in LISTINGS:
        for form in ([], ["--json"]):
            done = tenure(*command, *form, *options, env=env)
            assert done.returncode != 0
            assert done.stdout or done.stderr
            text += said(done)
    for command in (["retry", "bad"], ["clear", "--queue", "mail", "--force"], ["pause", "mail"], ["restart"]):
        done = tenure(*command, *options, env=env)
        assert done.returncode != 0
        text += said(done)
    if not by_option:
        done = tenure("push", "greet", json.dumps([canaries.argument.text]), "--app", "shop:app", env=env)
        assert done.returncode != 0
        text += said(done)
        for log_format in ("text", "json"):
            limits = ["--max-time", "0.5", "--log-level", "debug", "--log-format", log_format]
            text += said(tenure.process("worker", "shop:app", *limits, env=env))
    canaries.check(text, f"what is said of {wrong}")


def test_separate_keys_are_as_silent_as_the_url(tenure: Program, guarded: Server, canaries: Canaries) -> None:
    env = {
        "TENURE_URL": "",
        "QUEUE_CONNECTION": "redis",
        "REDIS_HOST": "127.0.0.1",
        "REDIS_PORT": str(guarded.port),
        "REDIS_PASSWORD": canaries.url.text,
    }
    text = ""
    for more in ({}, {"REDIS_USERNAME": "nobody"}, {"REDIS_PORT": "x"}, {"REDIS_TLS": canaries.url.text}):
        commands = (["status"], ["health"], ["doctor"], ["jobs", "--json"])
        done = [tenure(*command, env=env | more) for command in commands]
        assert {each.returncode == 0 for each in done} == {not more}
        text += "".join(map(said, done))
    canaries.check(text, "what commands print")
