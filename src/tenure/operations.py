"""Looking into queues and operating them: what handles, operators and the command line ask of an application."""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from tenure.config import DEFAULT
from tenure.connections import Connections
from tenure.envelope import decode
from tenure.errors import NewerEnvelope, NotSupported, Undecodable
from tenure.naming import check_job_id, check_queue
from tenure.queue import Cancelled, Counts, FailedJobs, FailedRecord, Inspector, JobState, Queue, feature

PAGE: Final = 100


class Retried(NamedTuple):
    """What became of a request to retry a failed job."""

    id: str
    outcome: Literal["retried", "gone", "refused"]
    """``refused``: its record cannot be run again; it stays where it is."""
    problem: str = ""


class Operations:
    """Reads and operates the queues of one application's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def queues(self, *, connection: str = DEFAULT) -> list[str]:
        """Return the names of the queues that were ever pushed to, sorted."""
        return list(await self._inspector(connection, "listing queues").queues())

    async def states(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[JobState]:
        """Tell where jobs are, in order."""
        inspector = self._inspector(connection, "reading the state of a job")
        return list(await inspector.states(check_queue(queue), [check_job_id(job_id) for job_id in ids]))

    async def counts(self, queue: str, *, connection: str = DEFAULT) -> Counts:
        """Count a queue's jobs by state."""
        return await self._queue(connection).counts(check_queue(queue))

    async def cancel(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[Cancelled]:
        """Remove what waits, request it of what runs, and answer for each in order."""
        chosen = [check_job_id(job_id) for job_id in ids]
        return list(await self._queue(connection).cancel(check_queue(queue), chosen))

    async def clear(self, queue: str, *, connection: str = DEFAULT) -> int:
        """Remove all ready and delayed jobs of a queue, and return their exact number."""
        return await self._queue(connection).clear(check_queue(queue))

    async def failed(
        self, queue: str, *, limit: int = PAGE, offset: int = 0, connection: str = DEFAULT
    ) -> list[FailedRecord]:
        """Return failed jobs of a queue, oldest first."""
        return list(await self._failures(connection).failed(check_queue(queue), limit=limit, offset=offset))

    async def failed_record(self, queue: str, job_id: str, *, connection: str = DEFAULT) -> FailedRecord | None:
        """Return one failed job, or None."""
        return await self._failures(connection).failed_record(check_queue(queue), check_job_id(job_id))

    async def retry(self, queue: str, ids: Sequence[str] | None = None, *, connection: str = DEFAULT) -> list[Retried]:
        """Make failed jobs of a queue ready again, their counters at zero; all that have failed so far if None.

        A record that this version cannot read is not retried: no worker like this one could run it.
        """
        failures = self._failures(connection)
        if ids is not None:
            return await self._retry_each(failures, check_queue(queue), [check_job_id(job_id) for job_id in ids])
        done: list[Retried] = []
        left, kept = (await self.counts(queue, connection=connection)).failed, 0
        # No more than there were at the start: a job that fails again at once must not be chased for ever.
        while left > 0 and (page := await failures.failed(queue, limit=min(PAGE, left), offset=kept)):
            answers = await _retried(failures, page)
            kept += sum(answer.outcome == "refused" for answer in answers)
            left -= len(page)
            done += answers
        return done

    async def forget(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[bool]:
        """Remove failed jobs for good; False for one that is not there."""
        failures = self._failures(connection)
        records = [await failures.failed_record(check_queue(queue), check_job_id(job_id)) for job_id in ids]
        there = [record for record in records if record is not None]
        answers = iter(await failures.forget(there)) if there else iter(())
        return [record is not None and next(answers) for record in records]

    async def _retry_each(self, failures: FailedJobs, queue: str, ids: Sequence[str]) -> list[Retried]:
        records = {job_id: await failures.failed_record(queue, job_id) for job_id in ids}
        there = [record for record in records.values() if record is not None]
        answers = {answer.id: answer for answer in await _retried(failures, there)}
        return [answers.get(job_id, Retried(job_id, "gone", "it is not in the failed store")) for job_id in ids]

    def _queue(self, connection: str) -> Queue:
        return self._connections.get(connection).queue

    def _inspector(self, connection: str, what: str) -> Inspector:
        return cast("Inspector", self._able(connection, Inspector, what))

    def _failures(self, connection: str) -> FailedJobs:
        return cast("FailedJobs", self._able(connection, FailedJobs, "a store of failed jobs"))

    def _able(self, connection: str, protocol: type, what: str) -> Any:
        queue = self._queue(connection)
        if not feature(queue, protocol):
            raise NotSupported(queue.capabilities.driver, what)
        return queue


async def _retried(failures: FailedJobs, records: Sequence[FailedRecord]) -> list[Retried]:
    problems = [_problem(record) for record in records]
    fit = [record for record, problem in zip(records, problems, strict=True) if not problem]
    answers = iter(await failures.retry(fit)) if fit else iter(())
    return [
        Retried(record.id, "refused", problem)
        if problem
        else Retried(record.id, "retried")
        if next(answers)
        else Retried(record.id, "gone", "another retry took it")
        for record, problem in zip(records, problems, strict=True)
    ]


def _problem(record: FailedRecord) -> str:
    try:
        decode(record.envelope)
    except NewerEnvelope:
        return "it was written by a newer version of tenure"
    except Undecodable as error:
        return f"its record cannot be read: {error}"
    return ""
