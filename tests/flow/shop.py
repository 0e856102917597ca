"""An application whose jobs note what they do, wherever in this process they run."""

import asyncio
from typing import Any

from tenure import Discard, Tenure, current
from tenure.job import AsyncJob, SyncJob

running: dict[str, list[Any]] = {}
"""What the jobs of each shop noted, by its namespace: jobs are functions of a module, and have no other way."""

apps: "dict[str, Shop]" = {}
"""The shops, the same way."""


class Shop:
    """One application, and what its jobs noted."""

    def __init__(self, app: Tenure) -> None:
        self.app = app
        self.key = str(app.settings.namespace)
        self.ran: list[Any] = running.setdefault(self.key, [])
        apps[self.key] = self
        self.note: AsyncJob[[str, Any], Any] = app.job(note)
        self.one: AsyncJob[[str, int], int] = app.job(one)
        self.add: SyncJob[..., int] = app.job(add)
        self.fails: SyncJob[[str], None] = app.job(max_attempts=1)(fails)
        self.drops: SyncJob[[], None] = app.job(drops)
        self.odd: AsyncJob[[], object] = app.job(odd)
        self.large: AsyncJob[[], str] = app.job(large)
        self.grows: AsyncJob[[str, int], None] = app.job(grows)
        self.grows_too: SyncJob[[str, int], None] = app.job(grows_too)
        self.waits: AsyncJob[[str], None] = app.job(waits)

    def noted(self, what: Any) -> Any:
        """Return a call that notes something."""
        return self.note.bind(self.key, what)


async def note(key: str, what: Any) -> Any:
    running[key].append(what)
    return what


async def one(key: str, number: int) -> int:
    running[key].append(number)
    return number


def add(number: int, more: int = 1, *, key: str = "") -> int:
    if key:
        running[key].append((number, more))
    return number + more


def fails(key: str) -> None:
    running[key].append("fails")
    raise ValueError("no luck")


def drops() -> None:
    raise Discard


async def odd() -> object:
    return object()


async def large() -> str:
    return "x" * 60_000


async def grows(key: str, number: int) -> None:
    app = apps[key]
    await current().batch.add(*(app.one.bind(key, one) for one in range(number)))


def grows_too(key: str, number: int) -> None:
    app = apps[key]
    current().batch.add_sync(*(app.one.bind(key, one) for one in range(number)))


async def waits(key: str) -> None:
    running[key].append("waits")
    await asyncio.Event().wait()
