"""What a worker can be told."""

import math
from typing import Any

import pytest

from tenure.errors import InvalidOption
from tenure.worker import WorkerOptions


def options(name: str, value: Any) -> WorkerOptions:
    return WorkerOptions(**{name: value})


@pytest.mark.parametrize("name", ["backoff", "timeout", "lease", "sleep", "max_time", "drain_timeout"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, -math.inf, True, "5"])
def test_a_number_of_seconds_that_cannot_be_right_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=name):
        options(name, value)


@pytest.mark.parametrize("name", ["timeout", "lease", "sleep", "max_time"])
def test_zero_seconds_are_refused_where_they_make_no_sense(name: str) -> None:
    with pytest.raises(InvalidOption, match=name):
        options(name, 0)


def test_zero_seconds_make_sense_for_a_backoff_and_a_drain() -> None:
    made = WorkerOptions(backoff=0, drain_timeout=0)
    assert (made.backoff, made.drain_timeout) == (0, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("concurrency", 0), ("concurrency", 1.5), ("concurrency", True), ("tries", -1), ("max_jobs", 0)],
)
def test_a_count_that_cannot_be_right_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=name):
        options(name, value)


@pytest.mark.parametrize("queues", [(), ("a", "a"), ("a b",), ("",)])
def test_queues_that_cannot_be_are_refused(queues: tuple[str, ...]) -> None:
    with pytest.raises(InvalidOption, match="queue"):
        WorkerOptions(queues=queues)
