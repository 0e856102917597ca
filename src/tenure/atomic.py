"""Handlers of which the whole is a ``current().transaction()``: ``@app.job(atomic="default")``."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from tenure.context import current


def atomically(alias: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function in a transaction of a Django database that is committed with its job's acknowledgement."""
    return partial(_run, alias, function)


def _run(alias: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    with current().transaction(alias):
        value = function(*args, **kwargs)
        if inspect.iscoroutine(value):
            # Its body has not run; behind the block it would be too late to say so.
            value.close()
            raise TypeError("the handler returned a coroutine, which nobody awaits: make it a plain function")
        return value
