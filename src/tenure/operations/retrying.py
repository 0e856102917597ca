"""Retrying failed jobs: each once, and none that no worker could run."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from tenure.envelope import decode
from tenure.errors import NewerEnvelope, Undecodable
from tenure.operating import FailedJobs
from tenure.queue import FailedRecord

PAGE: Final = 100

Wanted = Callable[[FailedRecord], bool]


class Retried(NamedTuple):
    """What became of a request to retry a failed job."""

    id: str
    outcome: Literal["retried", "gone", "refused"]
    """``refused``: its record cannot be run again; it stays where it is."""
    problem: str = ""


def name_of(record: FailedRecord) -> str | None:
    """Return the failed job's name, or None when its record cannot be read."""
    try:
        return decode(record.envelope).name
    except Undecodable:
        return None


async def retry_each(failures: FailedJobs, queue: str, ids: Sequence[str]) -> list[Retried]:
    """Retry the jobs of these ids, and answer for each in order."""
    records = {job_id: await failures.failed_record(queue, job_id) for job_id in ids}
    there = [record for record in records.values() if record is not None]
    answers = {answer.id: answer for answer in await _retried(failures, there)}
    return [answers.get(job_id, Retried(job_id, "gone", "it is not in the failed store")) for job_id in ids]


async def retry_all(failures: FailedJobs, queue: str, number: int, wanted: Wanted) -> list[Retried]:
    """Retry those of the queue's ``number`` failed jobs that are wanted, and none that fails from now on."""
    members = await _snapshot(failures, queue, number)
    answers: dict[str, Retried] = {}
    # Another operator at the same work shifts the pages, so that a pass may miss some: again until one finds none.
    while await _pass(failures, queue, lambda record: record in members and wanted(record), members.until, answers):
        pass
    return list(answers.values())


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


async def _pass(failures: FailedJobs, queue: str, chosen: Wanted, until: float, answers: dict[str, Retried]) -> int:
    """Retry what is left of the chosen ones, page by page, and return how many this pass retried."""
    retried = offset = 0
    while page := await failures.failed(queue, limit=PAGE, offset=offset):
        these = await _retried(failures, [record for record in page if chosen(record)])
        answers.update((answer.id, answer) for answer in these)
        taken = sum(answer.outcome == "retried" for answer in these)
        retried += taken
        offset += len(page) - taken
        if page[-1].failed_at > until:
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
        else Retried(record.id, "gone", "another retry took it, or it is a unique job and another one waits or runs")
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
