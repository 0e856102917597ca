"""Tenure, as a contender."""

import asyncio
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.contender import Job
from benchmarks.jobs import app, noop, slow, threaded, timed
from benchmarks.stores import available

AT_ONCE: Final = 50
CRASH_LEASE: Final = "5"
"""Seconds of a lease when the worker is going to be killed: as short as the time-outs of the others are set."""
_JOBS: Final = {"noop": noop, "threaded": threaded}
_EVERYWHERE: Final = frozenset({"push_many", "push awaited", "push at once", "push_sync", "idle", "latency at half"})
_WORKED: Final = frozenset({"drain", "drain, threads", "drain, 2 workers", "latency", "crash"})


class TenureOn:
    """Tenure on one of its stores."""

    offers = _EVERYWHERE | _WORKED
    rival = ""
    most = 1000
    fill = 40_000
    patience = 60.0

    def __init__(self, store: str, line: str = "") -> None:
        """``line``: how the store keeps ready jobs, where it can do so in two ways."""
        self.store = store
        self.name = f"tenure {store}{line and '-'}{line}"
        self._line = line
        self._runner = asyncio.Runner()

    def available(self) -> bool:
        return available(self.store)

    def environment(self, url: str) -> Mapping[str, str]:
        url = url.replace("://", f"+{self._line}://", 1) if self._line else url
        return {"TENURE_URL": url, "QUEUE_NAMESPACE": f"bench-{secrets.token_hex(6)}"}

    def prepare(self) -> None:
        pass

    def worker(self, concurrency: int) -> Sequence[str]:
        command = [sys.executable, "-m", "tenure", "worker", "benchmarks.jobs:app"]
        return [*command, "--concurrency", str(concurrency), "--log-level", "warning"]

    def push_many(self, jobs: int, job: Job = "noop") -> float:
        async def body() -> float:
            calls = [_JOBS[job].bind() for _ in range(jobs)]
            await app.counts("bench")  # connects
            begin = time.perf_counter()
            await app.push_many(calls)
            return time.perf_counter() - begin

        return self._runner.run(body())

    def push_awaited(self, jobs: int) -> float:
        async def body() -> float:
            await noop.push()
            begin = time.perf_counter()
            for _ in range(jobs):
                await noop.push()
            return time.perf_counter() - begin

        return self._runner.run(body())

    def push_gathered(self, jobs: int) -> float:
        async def one_after_the_other(number: int) -> None:
            for _ in range(number):
                await noop.push()

        async def body() -> float:
            await noop.push()
            shares = [jobs // AT_ONCE + (place < jobs % AT_ONCE) for place in range(AT_ONCE)]
            begin = time.perf_counter()
            await asyncio.gather(*(one_after_the_other(share) for share in shares))
            return time.perf_counter() - begin

        return self._runner.run(body())

    def push_blocking(self, jobs: int) -> float:
        noop.push_sync()
        begin = time.perf_counter()
        for _ in range(jobs):
            noop.push_sync()
        return time.perf_counter() - begin

    def push_timed(self) -> None:
        timed.push_sync(time.time())

    def push_paced(self, jobs: int, rate: float) -> float:
        async def body() -> float:
            await app.counts("bench")
            begin, first, pushed = time.perf_counter(), time.time(), 0
            while pushed < jobs:
                due = min(jobs, int((time.perf_counter() - begin) * rate) + 1)
                if due > pushed:
                    # A job was sent when it was due, however long the call that it is in was kept waiting.
                    await app.push_many([timed.bind(first + place / rate) for place in range(pushed, due)])
                    pushed = due
                else:
                    await asyncio.sleep(0.001)
            return time.perf_counter() - begin

        return self._runner.run(body())

    def push_slow(self, jobs: int) -> float:
        async def body() -> float:
            begin = time.perf_counter()
            await app.push_many([slow.bind(number) for number in range(jobs)])
            return time.perf_counter() - begin

        return self._runner.run(body())

    def close(self) -> None:
        self._runner.run(app.aclose())
        self._runner.close()


class TenureInMemory(TenureOn):
    """Tenure in the memory of one process: what the worker itself costs, without a store."""

    offers = frozenset({"drain", "drain, threads"})

    def __init__(self) -> None:
        super().__init__("memory")
        self._filled: tuple[int, Job] = (0, "noop")

    def environment(self, url: str) -> Mapping[str, str]:
        return {"TENURE_URL": url}

    def push_many(self, jobs: int, job: Job = "noop") -> float:
        """Have the worker fill the queue itself as it starts: nobody else can."""
        self._filled = (jobs, job)
        return 0.0

    def worker(self, concurrency: int) -> Sequence[str]:
        jobs, job = self._filled
        return [sys.executable, "-m", "benchmarks.inside", job, str(jobs), str(concurrency)]
