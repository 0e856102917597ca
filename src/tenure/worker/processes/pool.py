"""The processes of one worker: started when a job needs one, used again, ended when they were idle for long."""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from tenure.errors import ConfigurationError
from tenure.queue import Lease
from tenure.results import Progress
from tenure.worker.judgement import ProcessDied, ProcessNotStarted
from tenure.worker.processes.process import END_SECONDS, Process
from tenure.worker.processes.talk import Answer, Load

logger: logging.Logger = logging.getLogger("tenure.worker")

IDLE_SECONDS: Final = 60.0
"""How long an idle process is kept."""
TRIES: Final = 3
"""Processes that one job is given to, when they end before they take it."""


class Processes:
    """Runs jobs in child processes. There are never more than there are jobs to run at one time."""

    def __init__(self, load: Callable[[], Load], carried: Callable[[], Mapping[str, str]] = dict) -> None:
        self._load = load
        """What a process is told first; raises ``ConfigurationError``."""
        self._carried = carried
        """The trace's context where a job is given to a process."""
        self._idle: dict[Process, asyncio.TimerHandle] = {}
        self._waiting: deque[asyncio.Future[Process]] = deque()
        self._starting: set[asyncio.Task[None]] = set()
        self._starts_at_once = max(2, os.cpu_count() or 1)
        """Starting is work for a processor: more at a time would all be late."""
        self._all: set[Process] = set()
        """All that have not ended."""
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    async def check(self) -> None:
        """Start the first process, to see that it can be; raises ``ConfigurationError``."""
        load = self._load()
        try:
            self._offer(await self._started(load))
        except ProcessNotStarted as error:
            raise ConfigurationError('executor="process"', str(error)) from None

    async def run(
        self,
        lease: Lease,
        name: str,
        max_attempts: int,
        *,
        began: Callable[[], None],
        notice: Callable[[], float],
        told: Callable[[Progress], None],
    ) -> Answer:
        """Run a job in a process and return what it came to.

        Raises ``ProcessDied`` when its process ended in the middle of it, and ``ProcessNotStarted`` when it has not
        run. ``told`` is called with the progress that its handler tells of. A cancelled caller has the process killed
        before this ends. If ``notice`` is above 0 then, its handler is told first, and has so many seconds to answer
        all the same.
        """
        process = await self._taking(lease, name, max_attempts, told)
        try:
            began()
            answer = await process.answer()
        except asyncio.CancelledError:
            seconds = notice()
            last = await process.stopped(seconds) if seconds else None
            if last is None:
                await process.killed()
                raise
            answer = last
        except BaseException:
            process.kill()
            raise
        self._offer(process)
        return answer

    async def close(self) -> None:
        """End all processes: those that run a job, or are not ready, by force."""
        self._closed = True
        for starting in self._starting:
            starting.cancel()
        for timer in self._idle.values():
            timer.cancel()
        idle = set(self._idle)
        self._idle.clear()
        ends = [process.end() if process in idle else process.killed() for process in self._all]
        if ends:  # bounded: the system may keep a killed process for as long as it likes
            await asyncio.wait([asyncio.ensure_future(end) for end in ends], timeout=END_SECONDS + 1)

    # ------------------------------------------------------------------------------------------------------ one of them

    async def _taking(self, lease: Lease, name: str, max_attempts: int, told: Callable[[Progress], None]) -> Process:
        """Return a process that has taken the job."""
        for _ in range(TRIES):
            process = await self._get()
            try:
                await process.begin(lease, name, max_attempts, trace=self._carried(), told=told)
            except ProcessDied as died:  # before it took the job: while it was idle
                logger.warning("an idle process (%d) %s", process.pid, died.how)
            except BaseException:
                process.kill()
                raise
            else:
                return process
        raise ProcessNotStarted("no process lived long enough to take the job")

    async def _get(self) -> Process:
        while self._idle:
            process, timer = self._idle.popitem()  # the last one used: the others grow old, and end
            timer.cancel()
            if process.alive:
                return process
        waiter: asyncio.Future[Process] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._start_some()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._offer(waiter.result())
            raise

    def _offer(self, process: Process) -> None:
        """Give a process to the job that has waited longest, or keep it."""
        if self._closed:
            process.kill()
            return
        if not process.alive:
            return
        waiter = self._next_waiting()
        if waiter is not None:
            waiter.set_result(process)
            return
        timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._retire, process)
        self._idle[process] = timer

    def _next_waiting(self) -> "asyncio.Future[Process] | None":
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                return waiter
        return None

    def _retire(self, process: Process) -> None:
        if self._idle.pop(process, None) is not None:
            task = asyncio.get_running_loop().create_task(process.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    # --------------------------------------------------------------------------------------------------------- starting

    def _start_some(self) -> None:
        wanted = sum(not waiter.done() for waiter in self._waiting)
        while not self._closed and len(self._starting) < min(wanted, self._starts_at_once):
            # Not the job's own: one that is stopped meanwhile must not stop the start, or a slow one never succeeds.
            task = asyncio.get_running_loop().create_task(self._start())
            self._starting.add(task)
            task.add_done_callback(self._start_over)

    async def _start(self) -> None:
        try:
            process = await self._started(self._load())
        except (ProcessNotStarted, ConfigurationError) as error:
            logger.error("a job is given back: %s", error)  # noqa: TRY400 - the process has told the rest
            waiter = self._next_waiting()
            if waiter is not None:
                waiter.set_exception(ProcessNotStarted(str(error)))
        else:
            self._offer(process)

    def _start_over(self, task: "asyncio.Task[None]") -> None:
        self._starting.discard(task)
        self._start_some()

    async def _started(self, load: Load) -> Process:
        try:
            process = Process(self._all.discard)
        except OSError as error:
            raise ProcessNotStarted(f"the system starts no process ({error.strerror})") from None
        self._all.add(process)
        await process.ready(load)
        return process
