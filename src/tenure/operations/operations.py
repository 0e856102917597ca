"""What operators read and change in the queues of one application's connections."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, cast

from tenure.config import DEFAULT
from tenure.connections import Connections
from tenure.errors import InvalidOption, NotSupported
from tenure.naming import check_job_id, check_job_name, check_queue
from tenure.operating import (
    Control,
    FailedJobs,
    Inspector,
    JobLister,
    JobPage,
    Pruning,
    UnreadableRecord,
    UnreadableStore,
)
from tenure.operations.compositions import CompositionOperations
from tenure.operations.numbers import age, at_least
from tenure.operations.retrying import PAGE, Retried, name_of, retry_all, retry_each
from tenure.portal import blocking
from tenure.queue import Cancelled, Counts, FailedRecord, JobState, Queue, feature
from tenure.results import Ending, Progress, Results

LISTED: Final = (JobState.RUNNING, JobState.READY, JobState.DELAYED)
"""The states of jobs that can be listed; the failed ones are listed by ``failed``."""


class Operations:
    """Reads and operates the queues. Each change is one atomic step, and asking again does no harm.

    What a connection's driver cannot do raises ``NotSupported``, a name that cannot be one ``InvalidOption``, both
    before anything is sent; a store that does not answer raises ``StoreError``. Nothing here reads a payload, but for
    ``failed``, whose records hold theirs, ``endings``, whose results are handlers', and ``unreadable_bytes``.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.compositions: CompositionOperations = CompositionOperations(connections, self.queues)
        """The same for chains, batches and workflows."""

    # --------------------------------------------------------------------------------------------------------- reading

    async def queues(self, *, connection: str = DEFAULT) -> list[str]:
        """Return the names of the queues that were ever pushed to, sorted."""
        return list(await self._inspector(connection, "listing queues").queues())

    async def states(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[JobState]:
        """Tell where jobs are, in order."""
        inspector = self._inspector(connection, "reading the state of a job")
        return list(await inspector.states(check_queue(queue), [check_job_id(job_id) for job_id in ids]))

    async def endings(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[Ending | None]:
        """Return how jobs ended, in order, results as they were encoded; None where nothing is kept."""
        if not self._queue(connection).capabilities.results:
            return [None] * len(ids)
        return list(await self._results(connection).endings(check_queue(queue), [check_job_id(one) for one in ids]))

    async def progress(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[Progress | None]:
        """Return how far running jobs have come, in order; None for those that did not tell."""
        if not self._queue(connection).capabilities.results:
            return [None] * len(ids)
        return list(await self._results(connection).progress(check_queue(queue), [check_job_id(one) for one in ids]))

    async def counts(self, queue: str, *, connection: str = DEFAULT) -> Counts:
        """Count a queue's jobs by state."""
        return await self._queue(connection).counts(check_queue(queue))

    async def size(self, queue: str, *, connection: str = DEFAULT) -> int:
        """Count the work that waits: ready, delayed, and what lapsed; not what a worker holds."""
        return (await self.counts(queue, connection=connection)).size

    async def jobs(
        self, queue: str, state: JobState, *, limit: int = PAGE, cursor: str | None = None, connection: str = DEFAULT
    ) -> JobPage:
        """List running, ready or delayed jobs, those first that are first in line, a page at a time."""
        if state not in LISTED:
            raise InvalidOption(f"state must be one of {', '.join(LISTED)}; failed jobs are listed by failed()")
        at_least("limit", limit, 1)
        lister = cast("JobLister", self._able(connection, JobLister, "listing jobs"))
        return await lister.jobs(check_queue(queue), JobState(state), limit=limit, cursor=cursor)

    # ------------------------------------------------------------------------------------------------- waiting, running

    async def cancel(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[Cancelled]:
        """Remove what waits, request it of what runs, and answer for each in order."""
        chosen = [check_job_id(job_id) for job_id in ids]
        return list(await self._queue(connection).cancel(check_queue(queue), chosen))

    async def clear(self, queue: str, *, connection: str = DEFAULT) -> int:
        """Remove all ready and delayed jobs of a queue, and return their exact number."""
        return await self._queue(connection).clear(check_queue(queue))

    async def pause(self, queue: str, *, connection: str = DEFAULT) -> bool:
        """Stop handing out the queue's jobs; what runs and all else goes on. False when it was paused already."""
        return await self._control(connection).pause(check_queue(queue))

    async def resume(self, queue: str, *, connection: str = DEFAULT) -> bool:
        """Hand out the queue's jobs again. False when it was not paused."""
        return await self._control(connection).resume(check_queue(queue))

    async def paused(self, queues: Sequence[str], *, connection: str = DEFAULT) -> list[bool]:
        """Tell which queues are paused, in order."""
        return list(await self._control(connection).paused([check_queue(queue) for queue in queues]))

    async def restart(self, *, connection: str = DEFAULT) -> str:
        """Ask all workers of the namespace to finish what runs and exit; return the new marker, which is opaque."""
        return await self._control(connection).request_restart()

    # ---------------------------------------------------------------------------------------------------------- failed

    async def failed(
        self, queue: str, *, limit: int = PAGE, offset: int = 0, connection: str = DEFAULT
    ) -> list[FailedRecord]:
        """Return failed jobs of a queue, oldest first."""
        at_least("limit", limit, 1)
        at_least("offset", offset, 0)
        return list(await self._failures(connection).failed(check_queue(queue), limit=limit, offset=offset))

    async def failed_record(self, queue: str, job_id: str, *, connection: str = DEFAULT) -> FailedRecord | None:
        """Return one failed job, or None."""
        return await self._failures(connection).failed_record(check_queue(queue), check_job_id(job_id))

    async def retry(
        self, queue: str, ids: Sequence[str] | None = None, *, name: str | None = None, connection: str = DEFAULT
    ) -> list[Retried]:
        """Make failed jobs of a queue ready again, their counters at zero: those of the ids, or of the name, or all.

        All are all that have failed so far: one that fails again meanwhile is not chased. A record that this version
        cannot read is not retried, for no worker like this one could run it, and it has no name.
        """
        failures = self._failures(connection)
        if ids is not None:
            if name is not None:
                raise InvalidOption("retry takes ids or a name, not both")
            return await retry_each(failures, check_queue(queue), [check_job_id(job_id) for job_id in ids])
        wanted = None if name is None else check_job_name(name)
        number = (await self.counts(queue, connection=connection)).failed
        return await retry_all(failures, queue, number, lambda record: wanted in {None, name_of(record)})

    async def forget(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[bool]:
        """Remove failed jobs for good; False for one that is not there."""
        failures = self._failures(connection)
        records = [await failures.failed_record(check_queue(queue), check_job_id(job_id)) for job_id in ids]
        there = [record for record in records if record is not None]
        answers = iter(await failures.forget(there)) if there else iter(())
        return [record is not None and next(answers) for record in records]

    async def prune(
        self,
        queue: str,
        *,
        older_than: float | timedelta | None = None,
        hours: float | None = None,
        connection: str = DEFAULT,
    ) -> int:
        """Remove failed jobs for good that failed that long ago, and return their exact number.

        Say it in seconds, as a timedelta, or in hours; the clock is the store's.
        """
        seconds = age(older_than, hours)
        pruning = cast("Pruning", self._able(connection, Pruning, "pruning failed jobs"))
        return await pruning.prune(check_queue(queue), older_than=seconds)

    # ------------------------------------------------------------------------------------------------------ unreadable

    async def unreadable(
        self, queue: str, *, limit: int = PAGE, after: str = "", connection: str = DEFAULT
    ) -> list[UnreadableRecord]:
        """Return records that nobody could read, oldest first, those behind the key ``after``; not their bytes."""
        at_least("limit", limit, 1)
        return list(await self._unreadable(connection).unreadable(check_queue(queue), limit=limit, after=after))

    async def unreadable_bytes(self, queue: str, key: str, *, connection: str = DEFAULT) -> bytes | None:
        """Return one such record byte for byte, or None."""
        return await self._unreadable(connection).unreadable_bytes(check_queue(queue), key)

    async def drop_unreadable(self, queue: str, keys: Sequence[str], *, connection: str = DEFAULT) -> list[bool]:
        """Remove such records for good; False for one that is not there."""
        return list(await self._unreadable(connection).drop_unreadable(check_queue(queue), keys))

    # -------------------------------------------------------------------------------------------------- blocking twins

    def queues_sync(self, *, connection: str = DEFAULT) -> list[str]:
        """Do what ``queues`` does, blocking."""
        return blocking("queues", lambda: self.queues(connection=connection))

    def states_sync(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[JobState]:
        """Do what ``states`` does, blocking."""
        return blocking("states", lambda: self.states(queue, ids, connection=connection))

    def endings_sync(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[Ending | None]:
        """Do what ``endings`` does, blocking."""
        return blocking("endings", lambda: self.endings(queue, ids, connection=connection))

    def progress_sync(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[Progress | None]:
        """Do what ``progress`` does, blocking."""
        return blocking("progress", lambda: self.progress(queue, ids, connection=connection))

    def counts_sync(self, queue: str, *, connection: str = DEFAULT) -> Counts:
        """Do what ``counts`` does, blocking."""
        return blocking("counts", lambda: self.counts(queue, connection=connection))

    def size_sync(self, queue: str, *, connection: str = DEFAULT) -> int:
        """Do what ``size`` does, blocking."""
        return blocking("size", lambda: self.size(queue, connection=connection))

    def jobs_sync(
        self, queue: str, state: JobState, *, limit: int = PAGE, cursor: str | None = None, connection: str = DEFAULT
    ) -> JobPage:
        """Do what ``jobs`` does, blocking."""
        return blocking("jobs", lambda: self.jobs(queue, state, limit=limit, cursor=cursor, connection=connection))

    def cancel_sync(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[Cancelled]:
        """Do what ``cancel`` does, blocking."""
        return blocking("cancel", lambda: self.cancel(queue, ids, connection=connection))

    def clear_sync(self, queue: str, *, connection: str = DEFAULT) -> int:
        """Do what ``clear`` does, blocking."""
        return blocking("clear", lambda: self.clear(queue, connection=connection))

    def pause_sync(self, queue: str, *, connection: str = DEFAULT) -> bool:
        """Do what ``pause`` does, blocking."""
        return blocking("pause", lambda: self.pause(queue, connection=connection))

    def resume_sync(self, queue: str, *, connection: str = DEFAULT) -> bool:
        """Do what ``resume`` does, blocking."""
        return blocking("resume", lambda: self.resume(queue, connection=connection))

    def paused_sync(self, queues: Sequence[str], *, connection: str = DEFAULT) -> list[bool]:
        """Do what ``paused`` does, blocking."""
        return blocking("paused", lambda: self.paused(queues, connection=connection))

    def restart_sync(self, *, connection: str = DEFAULT) -> str:
        """Do what ``restart`` does, blocking."""
        return blocking("restart", lambda: self.restart(connection=connection))

    def failed_sync(
        self, queue: str, *, limit: int = PAGE, offset: int = 0, connection: str = DEFAULT
    ) -> list[FailedRecord]:
        """Do what ``failed`` does, blocking."""
        return blocking("failed", lambda: self.failed(queue, limit=limit, offset=offset, connection=connection))

    def failed_record_sync(self, queue: str, job_id: str, *, connection: str = DEFAULT) -> FailedRecord | None:
        """Do what ``failed_record`` does, blocking."""
        return blocking("failed_record", lambda: self.failed_record(queue, job_id, connection=connection))

    def retry_sync(
        self, queue: str, ids: Sequence[str] | None = None, *, name: str | None = None, connection: str = DEFAULT
    ) -> list[Retried]:
        """Do what ``retry`` does, blocking."""
        return blocking("retry", lambda: self.retry(queue, ids, name=name, connection=connection))

    def forget_sync(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[bool]:
        """Do what ``forget`` does, blocking."""
        return blocking("forget", lambda: self.forget(queue, ids, connection=connection))

    def prune_sync(
        self,
        queue: str,
        *,
        older_than: float | timedelta | None = None,
        hours: float | None = None,
        connection: str = DEFAULT,
    ) -> int:
        """Do what ``prune`` does, blocking."""
        return blocking("prune", lambda: self.prune(queue, older_than=older_than, hours=hours, connection=connection))

    def unreadable_sync(
        self, queue: str, *, limit: int = PAGE, after: str = "", connection: str = DEFAULT
    ) -> list[UnreadableRecord]:
        """Do what ``unreadable`` does, blocking."""
        return blocking("unreadable", lambda: self.unreadable(queue, limit=limit, after=after, connection=connection))

    def unreadable_bytes_sync(self, queue: str, key: str, *, connection: str = DEFAULT) -> bytes | None:
        """Do what ``unreadable_bytes`` does, blocking."""
        return blocking("unreadable_bytes", lambda: self.unreadable_bytes(queue, key, connection=connection))

    def drop_unreadable_sync(self, queue: str, keys: Sequence[str], *, connection: str = DEFAULT) -> list[bool]:
        """Do what ``drop_unreadable`` does, blocking."""
        return blocking("drop_unreadable", lambda: self.drop_unreadable(queue, keys, connection=connection))

    # ---------------------------------------------------------------------------------------------- what a driver can

    def _queue(self, connection: str) -> Queue:
        return self._connections.get(connection).queue

    def _inspector(self, connection: str, what: str) -> Inspector:
        return cast("Inspector", self._able(connection, Inspector, what))

    def _failures(self, connection: str) -> FailedJobs:
        return cast("FailedJobs", self._able(connection, FailedJobs, "a store of failed jobs"))

    def _results(self, connection: str) -> Results:
        return cast("Results", self._able(connection, Results, "results"))

    def _control(self, connection: str) -> Control:
        return cast("Control", self._able(connection, Control, "pausing queues and restarting workers"))

    def _unreadable(self, connection: str) -> UnreadableStore:
        return cast("UnreadableStore", self._able(connection, UnreadableStore, "a store of unreadable records"))

    def _able(self, connection: str, protocol: type, what: str) -> Any:
        queue = self._queue(connection)
        if not feature(queue, protocol):
            raise NotSupported(queue.capabilities.driver, what)
        return queue
