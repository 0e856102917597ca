"""The command line as its users run it: a process in a directory, with an environment."""

import asyncio
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import pytest

from tenure import Tenure
from tenure.portal import loop_is_running
from tests.cli.here import Done, run_here
from tests.support import processes
from tests.support.servers import Server
from tests.worker.conftest import forget

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
        self.env["TENURE_LOG_FORMAT"] = "text"
        self.env["TENURE_URL"] = f"sqlite:///{directory / 'jobs.db'}"

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def __call__(self, *arguments: str, env: Mapping[str, str] | None = None) -> Done:
        """Run it to its end inside this process: its arguments, output and exit code are those of the real one."""
        if not loop_is_running():
            return run_here(arguments, self.directory, {**self.env, **(env or {})})
        # A command runs an event loop of its own, which a thread with one has no room for.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(run_here, arguments, self.directory, {**self.env, **(env or {})}).result()

    def process(
        self, *arguments: str, env: Mapping[str, str] | None = None, text: str = "", timeout: float = 30
    ) -> Done:
        """Run it to its end as its users do, in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "tenure", *arguments],
            cwd=self.directory,
            env={**self.env, **(env or {})},
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )

    def shell(self, command: str) -> Done:
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
    def app(self) -> Tenure:
        """A new application on the store that is configured, without jobs."""
        return Tenure(self.env["TENURE_URL"], namespace=self.env["QUEUE_NAMESPACE"])

    @property
    def ran(self) -> list[str]:
        """What the shop's jobs noted."""
        path = self.directory / "ran"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def tenure(tmp_path: pathlib.Path) -> Program:
    """The command, with a small shop's application beside it, on an SQLite file."""
    program = Program(tmp_path)
    program.write("shop.py", SHOP)
    return program


@pytest.fixture(params=["sqlite", "valkey"])
def everywhere(request: pytest.FixtureRequest, tenure: Program, namespace: str) -> Iterator[Program]:
    """The same, once on an SQLite file and once on Valkey."""
    if request.param == "sqlite":
        yield tenure
        return
    server: Server = request.getfixturevalue("valkey")
    tenure.env |= {"TENURE_URL": server.url, "QUEUE_NAMESPACE": namespace}
    yield tenure
    asyncio.run(forget(server, namespace))
