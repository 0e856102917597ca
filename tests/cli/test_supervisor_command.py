"""What the worker command says and ends with when it supervises processes, and its limit of memory."""

import json

import pytest

from tenure.cli.worker import worker
from tests.cli.conftest import Program
from tests.cli.test_worker_command import LONELY, push


def test_more_memory_than_it_may_have_ends_it_with_0(tenure: Program) -> None:
    done = tenure("worker", "shop:app", "--memory", "1MiB", "--log-format", "text")
    assert (done.returncode, done.stderr.strip().splitlines()[-1]) == (0, "tenure: stopped: memory")


@pytest.mark.parametrize(
    ("said", "size"),
    [("4096", 4096), ("512MiB", 512 * 2**20), ("1GB", 10**9), ("1.5 gib", 3 * 2**29), ("2kB", 2000), ("7KiB", 7168)],
)
def test_a_size_is_bytes_or_has_a_unit(said: str, size: int) -> None:
    assert worker.make_context("worker", ["shop:app", "--memory", said]).params["memory"] == size


def test_several_processes_need_a_store_that_they_share(tenure: Program) -> None:
    done = tenure.process("worker", "shop:app", "--workers", "2", env={"TENURE_URL": "memory://"})
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("tenure: several processes cannot share the store 'memory'")


def test_the_logs_of_several_processes_tell_which_wrote_a_line(tenure: Program) -> None:
    push(tenure, "greet", ["Ana"])
    options = ["--workers", "2", "--stop-when-empty", "--log-format", "json"]
    done = tenure.process("worker", "shop:app", *options, timeout=50)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert len({line["process"] for line in lines}) == 3
    assert lines[-1]["message"] == "stopped: empty"
    assert tenure.ran == ["greet Ana 1"]


def test_processes_that_cannot_begin_end_the_command_with_1(tenure: Program) -> None:
    tenure.write("lonely.py", LONELY)
    done = tenure.process("worker", "lonely:app", "--workers", "2", "--log-format", "text")
    assert done.returncode == 1
    assert "app.services: not registered" in done.stderr
    assert done.stderr.strip().splitlines()[-1] == "tenure: stopped: error"
