"""Mutants: copies of a driver's own texts with one protection removed, which the contract suite must notice."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tenure.testing.contract import StoreUnderTest

Behaviour = Callable[[StoreUnderTest], Awaitable[Any]]
PATIENCE = 20.0


@dataclass(frozen=True)
class Mutant:
    """One text of a driver in which every ``old`` is replaced by ``new``."""

    name: str
    text: str
    """The name of the script or statement."""
    old: str
    new: str
    noticed_by: Behaviour
    times: int = 1
    """How often ``old`` stands in it."""

    def of(self, source: str) -> str:
        """Return the mutated text; fail loudly when it is no longer the text that this mutant was made for."""
        found = source.count(self.old)
        assert found == self.times, f"{self.text} holds {self.old!r} {found} times, not {self.times}: renew this mutant"
        return source.replace(self.old, self.new)


async def notices(behaviour: Behaviour, store: StoreUnderTest) -> bool:
    """Tell whether a behaviour fails on the store. Only a failed expectation counts, not a store that breaks down."""
    try:
        await asyncio.wait_for(behaviour(store), PATIENCE)
    except (AssertionError, TimeoutError):
        return True
    return False
