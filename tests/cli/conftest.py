"""The command line as its users run it: a process in a directory, with an environment."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import pytest

from tests.support import processes

CONFIGURATION = ("TENURE_", "QUEUE_", "REDIS_", "DATABASE_URL", "_TENURE")

SHOP = """
import asyncio, datetime, os, pathlib, uuid
from typing import Annotated
from tenure import Sensitive, Tenure

app = Tenure()
other = "not an application"


def note(text):
    with open("ran", "a") as file:
        file.write(text + "\\n")


@app.job(name="greet")
def greet(name: str, times: int = 1) -> None:
    note(f"greet {name} {times}")


@app.job(name="remind")
def remind(who: uuid.UUID, when: datetime.date) -> None:
    note(f"remind {who} {when!r}")


@app.job(name="fail", max_attempts=1)
def fail(secret: str) -> None:
    note("fail")
    raise ValueError(f"no luck with {secret}")


@app.job(name="sleep", queue="slow")
async def sleep(seconds: float) -> None:
    note("sleep begins")
    await asyncio.sleep(seconds)
    note("sleep ends")
"""


class Program:
    """`tenure` in a directory of its own, with nothing configured but what a test says."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        source = str(pathlib.Path(__file__).parents[2] / "src")
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(CONFIGURATION)}
        self.env["PYTHONPATH"] = os.pathsep.join(filter(None, [source, self.env.get("PYTHONPATH")]))
        self.env["QUEUE_NAMESPACE"] = "shop"
        self.env["TENURE_URL"] = f"sqlite:///{directory / 'jobs.db'}"

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def __call__(
        self, *arguments: str, env: Mapping[str, str] | None = None, text: str | None = None, timeout: float = 30
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            [sys.executable, "-m", "tenure", *arguments],
            cwd=self.directory,
            env={**self.env, **(env or {})},
            input=text if text is not None else "",
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a shell's line."""
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self.directory,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def begin(self, *arguments: str, env: Mapping[str, str] | None = None) -> AbstractContextManager[processes.Child]:
        """Run it beside the test."""
        # Everything that is configured is set here, so what the test run itself inherited must not shine through.
        cleared = {key: "" for key in os.environ if key.startswith(CONFIGURATION)}
        return processes.python(
            "-m", "tenure", *arguments, env={**cleared, **self.env, **(env or {})}, cwd=self.directory
        )

    @property
    def ran(self) -> list[str]:
        """What the shop's jobs noted."""
        path = self.directory / "ran"
        return path.read_text().splitlines() if path.exists() else []


class Failing(Protocol):
    def __call__(self, number: int) -> list[str]: ...


@pytest.fixture
def tenure(tmp_path: pathlib.Path) -> Program:
    """The command, with a small shop's application beside it."""
    program = Program(tmp_path)
    program.write("shop.py", SHOP)
    return program


@pytest.fixture
def fails(tenure: Program) -> Failing:
    """Make a number of failed jobs, and return their ids."""

    def make(number: int) -> list[str]:
        pushed = [tenure("push", "fail", '["hunter2"]', "--app", "shop:app").stdout.strip() for _ in range(number)]
        assert tenure("worker", "shop:app", "--stop-when-empty").returncode == 0
        return pushed

    return make
