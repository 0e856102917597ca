"""The contract suite: one set of behaviour tests that every driver of ``tenure.queue.Queue`` passes.

A driver's own test module takes all of them and says in a fixture how its store is opened::

    from tenure.testing.contract import StoreUnderTest, behaviours

    @pytest.fixture
    async def store(tmp_path):
        queue = MyQueue(tmp_path)
        yield StoreUnderTest(queue=queue, another=lambda: MyQueue(tmp_path), elsewhere=..., opener=...)
        await queue.aclose()

    globals().update(behaviours())

Each behaviour is a plain ``async def test_…(store)``: any pytest plugin that runs coroutines will do. None of them
depends on another, on the order, or on a queue that is not in the store's own namespace.

Deliberately absent: a store's layout, its faults (a cut reply, a full disk) and its speed. Those are a driver's own
tests.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

import pytest

# Before the modules are imported: without this a failed behaviour would not show the values it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{info.name}" for info in pkgutil.iter_modules(__path__)))

from tenure.testing.contract.store import Opener, StoreUnderTest  # noqa: E402

__all__ = ["Opener", "StoreUnderTest", "behaviours"]

Behaviour = Callable[..., Any]


def behaviours() -> Mapping[str, Behaviour]:
    """Return every behaviour by its name, to be put into a test module's namespace.

    Raises ``ValueError`` when two topics use the same name: one of the two would silently not run.
    """
    found: dict[str, Behaviour] = {}
    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("about_"):
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        for name, value in vars(module).items():
            if not name.startswith("test_"):
                continue
            if name in found:
                raise ValueError(f"two behaviours are called {name}")
            found[name] = value
    return found
