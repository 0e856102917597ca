"""A call that is ready to run, and how the jobs of one name run in this worker."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tenure.definition import JobDefinition
from tenure.retry import Backoff
from tenure.sensitive import Discreet


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """How the jobs of one definition run in this worker, found out once."""

    definition: JobDefinition
    plain: bool
    """A coroutine function without services: its task runs nothing around it."""
    injected: Mapping[str, Any]
    max_attempts: int
    timeout: float | None
    backoff: Backoff


class Work(Discreet, frozen=True, gc=False):
    """A call that is ready to run."""

    route: Route
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    max_attempts: int
    timeout: float | None
    backoff: Backoff
    meta: Mapping[str, Any]
