"""Every way to end has its exit code and, unless it is 0, one clear line; never a traceback of tenure's."""

import signal
import socket
import subprocess
import sys

import pytest

from tests.cli.conftest import Program

CANARY = "hunter2-canary"


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line that a failing command said."""
    assert "Traceback" not in done.stderr, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert done.stdout == ""
    assert lines[0].startswith("tenure")
    return lines[0]


def test_done_is_0(tenure: Program) -> None:
    assert tenure.process("status").returncode == 0
    assert tenure.process("--version").stdout.startswith("tenure ")


def test_failed_is_1(tenure: Program) -> None:
    done = tenure.process("forget", "no-such-job")
    assert done.returncode == 1
    assert "no-such-job" in one_line(done)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        (["status"], 0),
        (["forget", "no-such-job"], 1),
        (["retry", "--all"], 2),
        (["nothing"], 2),
        (["worker", "nowhere:app", "--once"], 3),
    ],
    ids=str,
)
def test_a_process_ends_and_says_what_the_command_does(tenure: Program, arguments: list[str], code: int) -> None:
    here, there = tenure(*arguments), tenure.process(*arguments)
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)
    assert there.returncode == code


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["worker", "shop:app", "--concurency", "5"], "--concurrency"),
        (["wroker"], "wroker"),
        (["worker", "shop:app", "-c", "0"], "--concurrency"),
        (["worker", "shop:app", "--lease", "nan"], "--lease"),
        (["worker", "shop:app", "--lease", "0"], "--lease"),
        (["worker", "shop:app", "--timeout", "-1"], "--timeout"),
        (["worker", "shop:app", "--max-time", "1e400"], "--max-time"),
        (["worker", "shop:app", "--memory", "0"], "--memory"),
        (["worker", "shop:app", "--memory", "512M"], "is not a size"),
        (["worker", "shop:app", "--memory", "-1MiB"], "is not a size"),
        (["worker", "shop:app", "--memory", "1e9"], "is not a size"),
        (["worker", "shop:app", "--workers", "0"], "--workers"),
        (["worker", "shop:app", "--workers", "2", "--once"], "--once is for one process"),
        (["worker", "shop:app", "-q", "a}:{b"], "queue name"),
        (["worker", "shop:app", "-q", "high,,low"], "queue name"),
        (["worker", "shop:app", "--log-level", "loud"], "--log-level"),
        (["worker", "shop", "--once"], "module:attribute"),
        (["worker", "shop.py:app", "--once"], "not of the form"),
        (["worker", "../shop:app", "--once"], "not of the form"),
        (["worker"], "no application is named"),
        (["retry"], "--all"),
        (["jobs", "--state", "failed"], "--state"),
        (["pause"], "QUEUE"),
        (["cancel"], "ID"),
        (["cancel", "not an id"], "job id"),
        (["clear"], "--queue"),
        (["prune"], "--hours"),
        (["unreadable", "export"], "KEY"),
        (["restart", "--url", "memory://"], "memory"),
        (["retry", "an-id", "--all"], "--all"),
        (["retry", "--all"], "--force"),
        (["retry", "not an id"], "job id"),
        (["forget"], "ID"),
        (["status", "--url", "gopher://store"], "Tenure(url)"),
        (["status", "--namespace", "a b"], "--namespace"),
        (["status", "--connection", "reports"], "TENURE_REPORTS_URL"),
        (["status", "--url", "memory://"], "memory"),
        (["completion", "tcsh"], "tcsh"),
        (["failed", "show"], "ID"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_usage_and_configuration_are_2(tenure: Program, arguments: list[str], says: str) -> None:
    done = tenure(*arguments)
    assert done.returncode == 2, done.stderr
    assert says in one_line(done)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("TENURE_URL", f"redis://:{CANARY}#@localhost"),
        ("TENURE_URL", f"nothing-{CANARY}"),
        ("QUEUE_VISIBILITY_TIMEOUT_SECONDS", f"-{CANARY}"),
        ("QUEUE_NAMESPACE", f"{CANARY} "),
        ("TENURE_LIMIT", "many"),
    ],
)
def test_a_bad_value_in_the_environment_is_2_and_names_its_key(tenure: Program, key: str, value: str) -> None:
    done = tenure("failed", env={key: value})
    if key == "QUEUE_NAMESPACE":  # surrounding blanks are no mistake
        assert done.returncode == 0
        return
    assert done.returncode == 2
    line = one_line(done)
    assert key in line
    assert CANARY not in line


def test_no_arguments_show_the_help_and_are_2(tenure: Program) -> None:
    done = tenure.process()
    assert done.returncode == 2
    assert "Commands:" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nowhere:app", "no module 'nowhere'"),
        ("shop.deeper:app", "no module"),
        ("shop:missing", "it has app"),
        ("shop:other", "is not a Tenure application but a str"),
        ("shop:app.registry", "Registry"),
    ],
)
def test_an_application_that_cannot_be_found_is_3(tenure: Program, target: str, says: str) -> None:
    done = tenure("worker", target, "--once")
    assert done.returncode == 3
    assert says in one_line(done)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("def broken(:\n    pass\n", "SyntaxError"),
        ("import no_such_library\n", "ModuleNotFoundError"),
        ("raise SystemExit(0)\n", "SystemExit"),
        ("def f():\n    return 1 / 0\n\nf()\n", "ZeroDivisionError"),
        ("from tenure import Tenure\napp = Tenure()\n@app.job(queue='a b')\ndef f(): ...\n", "InvalidOption"),
    ],
)
def test_an_application_that_raises_shows_its_own_traceback_and_is_3(tenure: Program, code: str, says: str) -> None:
    tenure.write("broken.py", code)
    done = tenure("worker", "broken:app", "--once")
    assert done.returncode == 3
    *traceback, line = done.stderr.strip().splitlines()
    assert line == f"tenure: the argument APP: 'broken' raised {says} while it was imported"
    shown = "\n".join(traceback)
    assert says in shown
    assert "broken.py" in shown or says == "SystemExit"
    for ours in ("tenure/cli", "importlib", "click"):
        assert ours not in shown
    if says == "InvalidOption":
        assert "src/tenure" not in shown


def test_an_unreachable_store_is_4(tenure: Program) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused at once
        url = f"redis://user:{CANARY}@127.0.0.1:{taken.getsockname()[1]}/0"
        for arguments in (
            ["status"],
            ["jobs"],
            ["failed"],
            ["unreadable"],
            ["unreadable", "export", "1-1"],
            ["unreadable", "drop", "1-1", "--force"],
            ["retry", "--all", "--force"],
            ["retry", "an-id"],
            ["forget", "an-id"],
            ["prune", "--hours", "1"],
            ["cancel", "an-id"],
            ["clear", "--queue", "default", "--force"],
            ["pause", "default"],
            ["resume", "default"],
            ["restart"],
            ["compositions"],
            ["compositions", "show", "an-id"],
            ["compositions", "cancel", "an-id"],
            ["compositions", "prune", "--hours", "1"],
            ["push", "greet", '["a"]', "--app", "shop:app"],
        ):
            done = tenure(*arguments, env={"TENURE_URL": url})
            assert done.returncode == 4, (arguments, done.stderr)
            assert CANARY not in one_line(done)
        assert tenure.process("status", env={"TENURE_URL": url}).returncode == 4


def test_a_closed_pipe_is_no_traceback(tenure: Program) -> None:
    done = tenure.shell(f"{sys.executable} -m tenure status --json | true")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_an_interrupted_command_is_130(tenure: Program) -> None:
    with tenure.begin("demo", "--limit", "400") as child:
        child.wait_for_output("plain loop", 20)
        child.signal(signal.SIGINT)
        assert child.wait(20) == 130
        assert "Traceback" not in child.output
        assert child.output.strip().splitlines()[-1] == "tenure: interrupted"


def test_an_option_from_the_environment_is_taken(tenure: Program) -> None:
    done = tenure("failed", env={"TENURE_JSON": "1"})
    assert done.stdout.strip() == '{"failed": []}'
    assert tenure("status", env={"TENURE_QUEUE": "mail", "TENURE_JSON": "1"}).stdout.count('"queue": "mail"') == 1


@pytest.mark.parametrize(
    "arguments", [["retry", "--all"], ["clear", "--queue", "default"], ["unreadable", "drop", "1"]], ids=" ".join
)
def test_no_environment_variable_confirms(tenure: Program, arguments: list[str]) -> None:
    keys = ("TENURE_FORCE", "TENURE_RETRY_FORCE", "TENURE_CLEAR_FORCE", "TENURE_YES", "TENURE_DROP_FORCE")
    done = tenure(*arguments, env=dict.fromkeys(keys, "1"))
    assert done.returncode == 2
    assert "--force" in one_line(done)
