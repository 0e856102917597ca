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
        members = await _snapshot(failures, queue, (await self.counts(queue, connection=connection)).failed)
        answers: dict[str, Retried] = {}
        # Another operator at the same work shifts the pages, so that a pass may miss some: again until one finds none.
        while await _pass(failures, queue, members, answers):
            pass
        return list(answers.values())

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


class _Snapshot:
    """The failed jobs of a queue at one moment; those that fail again later, and must not be chased, are not in it.

    No list of them is kept: all that failed before the youngest are in it, and of those that failed at the very same
    time, the ones that were there.
    """

    def __init__(self, latest: Sequence[FailedRecord]) -> None:
        self.until = latest[-1].failed_at if latest else float("-inf")
        self._latest = {(record.id, record.incarnation) for record in latest if record.failed_at == self.until}

    def __contains__(self, record: FailedRecord) -> bool:
        if record.failed_at == self.until:
            return (record.id, record.incarnation) in self._latest
        return record.failed_at < self.until


async def _snapshot(failures: FailedJobs, queue: str, number: int) -> _Snapshot:
    latest: Sequence[FailedRecord] = ()
    while number > 0:
        start = max(0, number - PAGE)
        latest = [*await failures.failed(queue, limit=number - start, offset=start), *latest]
        if latest and latest[0].failed_at < latest[-1].failed_at:
            break
        number = start
    return _Snapshot(latest)


async def _pass(failures: FailedJobs, queue: str, members: _Snapshot, answers: dict[str, Retried]) -> int:
    """Retry what is left of the members, page by page, and return how many this pass retried."""
    retried = offset = 0
    while page := await failures.failed(queue, limit=PAGE, offset=offset):
        these = await _retried(failures, [record for record in page if record in members])
        answers.update((answer.id, answer) for answer in these)
        taken = sum(answer.outcome == "retried" for answer in these)
        retried += taken
        offset += len(page) - taken
        if page[-1].failed_at > members.until:
            break
    return retried


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
