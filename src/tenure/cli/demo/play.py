"""The play: push, watch, kill, replace, and judge."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import msgspec

from tenure.app import Tenure
from tenure.cli.demo.crew import Crew
from tenure.cli.demo.jobs import QUEUE, registered
from tenure.cli.demo.journal import Progress
from tenure.cli.demo.parsing import Counts
from tenure.cli.demo.screen import Screen
from tenure.cli.demo.stage import LEASE, Stage
from tenure.cli.errors import CommandFailed
from tenure.operating import FailedJobs
from tenure.queue import FailedRecord, Queue

KILL_AT: Final = 0.4
"""The share of the files after which a worker is killed."""
WORKERS: Final = 2
LIMIT: Final = 110.0
"""Seconds that all of it may take."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the jobs."""

    pushed: int
    results: dict[str, Counts]
    """By path."""
    failed: dict[str, FailedRecord]
    """By path."""
    redelivered: int
    redelivered_after: float | None
    """Seconds from the kill to the first of them."""
    attempts: int
    seconds: float


class Play:
    """One run of the jobs on a stage."""

    def __init__(self, stage: Stage, screen: Screen, files: Sequence[Path], limit: float = LIMIT) -> None:
        self._stage = stage
        self._screen = screen
        self._files = files
        self._progress = Progress(stage.journal)
        self._limit = limit
        self._deadline = time.monotonic() + limit
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
            await self._watch(Crew(self._stage.start_worker, WORKERS), app.queue())
            seconds = time.monotonic() - begin
            records = await self._failed(app.queue())
        finally:
            await app.aclose()
        progress = self._progress
        return Outcome(
            pushed=len(paths),
            results={paths[job_id]: counts for job_id, counts in progress.results.items()},
            failed={paths[record.id]: record for record in records},
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

    async def _watch(self, crew: Crew, queue: Queue) -> None:
        """Return when nothing is left to run, with a worker killed on the way."""
        progress, number = self._progress, len(self._files)
        with self._screen.bar("parsed", number) as advance:
            while True:
                progress.refresh()
                advance(progress.seen)
                if self._killed_at is None and progress.seen >= KILL_AT * number:
                    self._kill(crew)
                if self._killed_at and self._redelivered_after is None and progress.redelivered:
                    self._redelivered_after = time.monotonic() - self._killed_at
                if progress.seen == number and await self._is_over(queue):
                    break
                self._check(crew)
                await asyncio.sleep(0.01 if self._killed_at is None else 0.05)
        if self._killed_at is None:
            raise CommandFailed(
                "the jobs were over before a worker could be killed in the middle of one: take more files"
            )

    async def _is_over(self, queue: Queue) -> bool:
        counts = await queue.counts(QUEUE)
        return not (counts.ready or counts.delayed or counts.leased)

    def _kill(self, crew: Crew) -> None:
        killed = crew.kill_one(self._progress)
        if killed is None:
            return  # it was between two jobs: tried again at the next look
        self._killed_at = time.monotonic()
        jobs = f"{killed.running} job{'s' if killed.running > 1 else ''}"
        self._screen.line(f"killed worker {killed.pid} (SIGKILL) in the middle of {jobs}; another one takes its place")

    def _check(self, crew: Crew) -> None:
        if crew.ended is not None:
            problem = f"a worker ended by itself, with {crew.ended}"
        elif time.monotonic() > self._deadline:
            problem = f"not done in {self._limit:g} s"
        else:
            return
        raise CommandFailed(f"{problem}; the workers' log ends: {self._stage.last_words()}")

    async def _failed(self, queue: Queue) -> Sequence[FailedRecord]:
        return await cast("FailedJobs", queue).failed(QUEUE, limit=len(self._files))
