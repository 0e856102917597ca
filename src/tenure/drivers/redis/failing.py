"""The failed store: reading it, and making its jobs new ones."""

from collections.abc import Sequence
from itertools import islice

from tenure.drivers.redis import record
from tenure.drivers.redis.session import Session
from tenure.queue import FailedRecord
from tenure.summaries import check_age

MOST = 500
"""How many jobs one call reads or changes at most."""
STEP = 100
"""How many jobs one step of a prune looks at."""


class FailedStore:
    """The failed jobs, as one event loop sees them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def listed(self, queue: str, limit: int, offset: int) -> list[FailedRecord]:
        """Return failed jobs of the queue, oldest first."""
        records: list[FailedRecord] = []
        end = offset + limit
        while offset < end:
            most = min(MOST, end - offset)
            reply = await self._session.run(queue, "failed", (offset, most))
            found = (record.failed_record(queue, *pair) for pair in zip(reply[::2], reply[1::2], strict=True))
            records += [each for each in found if each is not None]
            if len(reply) < 2 * most:
                break
            offset += most
        return records

    async def one(self, queue: str, job_id: str) -> FailedRecord | None:
        """Return one failed job, or None."""
        key = self._session.keyspace.queue(queue).named("failed")
        stored = await self._session.command(b"HGET", key, job_id)
        return None if stored is None else record.failed_record(queue, job_id.encode(), stored)

    async def change(self, verb: str, records: Sequence[FailedRecord]) -> list[bool]:
        """Retry or forget each, and tell for each in order whether it was still there."""
        done = [False] * len(records)
        by_queue: dict[str, list[int]] = {}
        for place, each in enumerate(records):
            by_queue.setdefault(each.queue, []).append(place)
        for queue, all_places in by_queue.items():
            rest = iter(all_places)
            while places := list(islice(rest, MOST)):
                arguments: list[bytes | str | int] = []
                for place in places:
                    arguments += (records[place].id, records[place].incarnation)
                _, letters = await self._session.write(queue, verb, arguments)
                for place, letter in zip(places, letters.decode(), strict=True):
                    done[place] = letter == "y"
        return done

    async def prune(self, queue: str, older_than: float) -> int:
        """Forget jobs that failed at least so many seconds ago, step by step, and return their exact number.

        What a step has removed stays removed when a later one fails or the caller is cancelled.
        """
        check_age(older_than)
        age = record.milliseconds(min(older_than, record.LONGEST_MS / 1000), "older_than")
        total, until = 0, ""
        while True:
            removed, looked_at, until = await self._session.through(self._step(queue, age, until))
            total += removed
            if until and looked_at < STEP:
                return total

    async def _step(self, queue: str, age: int, until: str) -> tuple[int, int, str]:
        _, answer = await self._session.write(queue, "prune", (age, until))
        removed, looked_at, next_until = answer.decode().split("|")
        return int(removed), int(looked_at), next_until
