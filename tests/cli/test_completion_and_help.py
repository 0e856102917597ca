"""Help and completion: they tell what there is, quickly."""

import pathlib
import shutil
import subprocess
import sys

import click
import pytest

from tenure.cli.main import COMMANDS, cli
from tests.cli.conftest import Program

DEMO = {"TENURE_DEMO_CONNECTION", "TENURE_DEMO_LIMIT"}


def commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in COMMANDS}
    return {name: command for name, command in found.items() if command is not None}


def test_the_list_in_the_help_says_what_each_command_says_of_itself(tenure: Program) -> None:
    shown = tenure("--help").stdout
    for name, command in commands().items():
        text = COMMANDS[name][1]
        assert f"{name} " in shown
        assert text in shown
        assert command.name == name
        assert len(tenure(name, "--help").stdout) > 100


def test_every_option_has_a_help_or_says_its_choices_and_can_be_set_in_the_environment() -> None:
    spoken = {
        "--all",
        "--check",
        "--cursor",
        "--database",
        "--force",
        "--from",
        "--hours",
        "--id",
        "--kwargs",
        "--live",
        "--name",
    }
    spoken |= {"--database", "--namespace", "--sql", "--url"}
    changing = {"cancel", "clear", "forget", "prune", "retry"}
    for command in commands().values():
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help or isinstance(option.type, click.Choice), option
                spelled = option.opts[-1]
                only_spoken = spelled in spoken or (spelled == "--queue" and command.name in changing)
                only_spoken = only_spoken or (spelled == "--app" and command.name != "push")
                assert (option.envvar is None) == only_spoken, (command.name, option)
                assert option.envvar in {None, f"TENURE_{spelled[2:].replace('-', '_').upper()}"} | DEMO


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed_and_is_one(tenure: Program, shell: str) -> None:
    done = tenure("completion", shell)
    assert done.returncode == 0
    assert "_TENURE_COMPLETE" in done.stdout
    if program := shutil.which(shell):
        checked = subprocess.run([program, "-n"], input=done.stdout, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


def test_the_shell_is_told_commands_options_and_choices(tenure: Program) -> None:
    def completed(words: str, number: int) -> str:
        env = {"_TENURE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": f"{number}"}
        return tenure.process(env=env).stdout

    assert "plain,worker" in completed("tenure w", 1)
    assert "--drain-timeout" in completed("tenure worker --dr", 2)
    assert "plain,redis" in completed("tenure demo --connection ", 3)


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], ["rich", "tenure.worker", "redis", "sqlite3"]),
        (["--version"], ["rich", "tenure.worker", "redis", "sqlite3"]),
        (["status"], ["rich", "tenure.worker", "svcs", "redis"]),
        (["worker", "--help"], ["rich", "redis", "sqlite3"]),
    ],
    ids=str,
)
def test_a_command_imports_only_what_it_needs(tenure: Program, arguments: list[str], absent: list[str]) -> None:
    code = f"""
import sys
before = set(sys.modules)  # whatever measures the tests is in there
from tenure.cli.main import main
sys.argv = ["tenure", *{arguments!r}]
try:
    main()
finally:
    print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tenure.directory, env=tenure.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    imported = set(done.stderr.split())
    assert imported.isdisjoint(absent)


def test_every_command_and_every_option_is_documented() -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    for name, command in commands().items():
        assert f"## `tenure {name}`" in page
        for option in command.params:
            if isinstance(option, click.Option) and option.name != "help":
                for spelling in option.opts:
                    assert f"`{spelling}" in page or f" {spelling}" in page, f"{name} {spelling}"
