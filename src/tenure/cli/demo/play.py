"""The play: push, watch, kill, replace, and judge."""

import asyncio
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import msgspec

from tenure.app import Tenure
from tenure.cli.demo.jobs import QUEUE, registered
from tenure.cli.demo.journal import Progress
from tenure.cli.demo.parsing import Counts
from tenure.cli.demo.screen import Screen
from tenure.cli.demo.stage import LEASE, Stage
from tenure.cli.errors import CommandFailed
from tenure.queue import FailedJobs, FailedRecord, Queue

KILL_AT: Final = 0.4
"""The share of the files after which a worker is killed."""
LIMIT: Final = 110.0
"""Seconds that all of it may take."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the jobs."""

    pushed: int
    results: dict[str, Counts]
    """By path."""
    failed: dict[str, FailedRecord]
    """By path."""
    held: int
    """Jobs in the middle of which the worker was killed."""
    redelivered: int
    redelivered_after: float | None
    """Seconds from the kill to the first of them."""
    attempts: int
    seconds: float


class Play:
    """One run of the jobs on a stage."""

    def __init__(self, stage: Stage, screen: Screen, files: Sequence[Path]) -> None:
        self._stage = stage
        self._screen = screen
        self._files = files
        self._progress = Progress(stage.journal)
        self._workers: list[subprocess.Popen[bytes]] = []
        self._deadline = time.monotonic() + LIMIT
        self._held = 0
        self._killed_at: float | None = None
        self._redelivered_after: float | None = None

    def run(self) -> Outcome:
        """Run it to its end. Raises ``CommandFailed`` when it does not come to one."""
        return asyncio.run(self._run())

    async def _run(self) -> Outcome:
        app = Tenure(self._stage.url, namespace=self._stage.namespace)
        try:
            paths = await self._push(app)
            begin = time.monotonic()
            self._workers = [self._stage.start_worker() for _ in range(2)]
            await self._watch(app.queue())
            seconds = time.monotonic() - begin
            records = await self._failed(app.queue())
        finally:
            await app.aclose()
        progress = self._progress
        return Outcome(
            pushed=len(paths),
            results={paths[job_id]: counts for job_id, counts in progress.results.items()},
            failed={paths[record.id]: record for record in records},
            held=self._held,
            redelivered=len(progress.redelivered),
            redelivered_after=self._redelivered_after,
            attempts=progress.attempts,
            seconds=seconds,
        )

    async def _push(self, app: Tenure) -> dict[str, str]:
        journal = str(self._stage.journal)
        parse = registered(app)
        calls = [parse.bind(str(path), journal) for path in self._files]
        begin = time.monotonic()
        handles = await app.push_many(calls)
        took = time.monotonic() - begin
        self._screen.line(f"pushed {len(handles):,} jobs in {took:.2f} s; two workers start, leases of {LEASE} s")
        return {handle.id: str(path) for handle, path in zip(handles, self._files, strict=True)}

    async def _watch(self, queue: Queue) -> None:
        """Return when nothing is left to run, with a worker killed on the way."""
        with self._screen.bar("parsed", len(self._files)) as advance:
            while True:
                self._progress.refresh()
                advance(self._progress.seen)
                if self._killed_at is None and self._progress.seen >= KILL_AT * len(self._files):
                    await self._kill_one()
                if self._killed_at and self._redelivered_after is None and self._progress.redelivered:
                    self._redelivered_after = time.monotonic() - self._killed_at
                if self._progress.seen == len(self._files) and await self._is_over(queue):
                    return
                self._check()
                await asyncio.sleep(0.05)

    async def _is_over(self, queue: Queue) -> bool:
        counts = await queue.counts(QUEUE)
        return not (counts.ready or counts.delayed or counts.leased)

    async def _kill_one(self) -> None:
        """Kill a worker in the middle of its jobs, and start another in its place."""
        victim = self._workers[0]
        victim.send_signal(signal.SIGSTOP)  # now it cannot end what it has started
        await asyncio.sleep(0.02)
        self._progress.refresh()
        held = self._progress.running(victim.pid)
        if not held:
            victim.send_signal(signal.SIGCONT)
            return  # between two jobs: tried again at the next look
        victim.kill()
        victim.wait()
        self._killed_at = time.monotonic()
        self._held = len(held)
        self._workers[0] = self._stage.start_worker()
        self._screen.line(
            f"killed worker {victim.pid} (SIGKILL) in the middle of {len(held)} job{'s' if len(held) > 1 else ''}; "
            "another one takes its place"
        )

    def _check(self) -> None:
        ended = [worker.returncode for worker in self._workers if worker.poll() is not None]
        if ended:
            raise CommandFailed(f"a worker ended by itself, with {ended[0]}; its log ends: {self._stage.last_words()}")
        if time.monotonic() > self._deadline:
            raise CommandFailed(f"not done in {LIMIT:.0f} s; the workers' log ends: {self._stage.last_words()}")

    async def _failed(self, queue: Queue) -> Sequence[FailedRecord]:
        return await cast("FailedJobs", queue).failed(QUEUE, limit=len(self._files))
