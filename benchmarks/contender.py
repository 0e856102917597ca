"""What is measured: a job library on a store, behind the few verbs that a measurement needs.

Another library takes part by one more class here; one whose package is not installed is left out of the run.
"""

import asyncio
import importlib.util
import os
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.jobs import app, noop, timed
from benchmarks.stores import available


class Contender(Protocol):
    """A library on a store. All durations are seconds."""

    name: str
    package: str
    store: str
    """The kind of store it runs on: see ``benchmarks.stores``."""

    def environment(self, url: str) -> Mapping[str, str]:
        """Return the environment of its producer and its worker."""
        ...

    def worker(self, concurrency: int) -> Sequence[str]:
        """Return the command of one worker process."""
        ...

    def push_many(self, jobs: int) -> float:
        """Push no-op jobs by the fastest call there is for many, and return how long it took."""
        ...

    def push_awaited(self, jobs: int) -> float:
        """Push no-op jobs one after the other from a coroutine, and return how long it took."""
        ...

    def push_blocking(self, jobs: int) -> float:
        """Push no-op jobs one after the other from plain code, and return how long it took."""
        ...

    def push_timed(self) -> None:
        """Push one job that records when it was sent and when it started."""
        ...


class TenureOn:
    """Tenure on one of its stores."""

    package = "tenure"

    def __init__(self, store: str, line: str = "") -> None:
        """``line``: how the store keeps ready jobs, where it can do so in two ways."""
        self.store = store
        self.name = f"tenure {store}{line and '-'}{line}"
        self._line = line

    def environment(self, url: str) -> Mapping[str, str]:
        url = url.replace("://", f"+{self._line}://", 1) if self._line else url
        return {"TENURE_URL": url, "QUEUE_NAMESPACE": f"bench-{secrets.token_hex(6)}"}

    def worker(self, concurrency: int) -> Sequence[str]:
        command = [sys.executable, "-m", "tenure", "worker", "benchmarks.jobs:app"]
        return [*command, "--concurrency", str(concurrency), "--log-level", "warning"]

    def push_many(self, jobs: int) -> float:
        async def body() -> float:
            calls = [noop.bind() for _ in range(jobs)]
            await noop.push()  # connects
            begin = time.perf_counter()
            await app.push_many(calls)
            seconds = time.perf_counter() - begin
            await app.aclose()
            return seconds

        return asyncio.run(body())

    def push_awaited(self, jobs: int) -> float:
        async def body() -> float:
            await noop.push()
            begin = time.perf_counter()
            for _ in range(jobs):
                await noop.push()
            seconds = time.perf_counter() - begin
            await app.aclose()
            return seconds

        return asyncio.run(body())

    def push_blocking(self, jobs: int) -> float:
        noop.push_sync()
        begin = time.perf_counter()
        for _ in range(jobs):
            noop.push_sync()
        seconds = time.perf_counter() - begin
        app.close_sync()
        return seconds

    def push_timed(self) -> None:
        timed.push_sync(time.time())


def contenders() -> Sequence[Contender]:
    """Return all whose package is installed."""
    known: list[Contender] = [TenureOn("redis"), TenureOn("redis", "streams")]
    known += [TenureOn(store) for store in ("sqlite", "postgresql", "mariadb")]
    return [
        contender for contender in known if importlib.util.find_spec(contender.package) and available(contender.store)
    ]


def clean_environment(directory: Path) -> dict[str, str]:
    """Return this process's environment without what configures a library, for ``directory``'s children."""
    prefixes = ("TENURE_", "QUEUE_", "REDIS_", "DATABASE_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(prefixes)}
    return {**kept, "TMPDIR": str(directory)}
