"""A stored composition, as its handle sees it."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tenure.compositions import CompositionStatus, job_id
from tenure.definition import JobDefinition
from tenure.flow.handle import Member
from tenure.operations import Operations
from tenure.queue import JobState
from tenure.results import Ending
from tenure.returned import ResultCodec


class Whose:
    """Which job, in which queue, each member is: four bytes a member, however many there are."""

    def __init__(self) -> None:
        self._kinds: list[tuple[str, JobDefinition]] = []
        self._places: dict[tuple[str, str], int] = {}
        self._members: array[int] = array("I")

    def note(self, number: int, queue: str, definition: JobDefinition) -> None:
        """Note a member; they come in nearly any order."""
        place = self._places.setdefault((queue, definition.name), len(self._kinds))
        if place == len(self._kinds):
            self._kinds.append((queue, definition))
        self._members.extend([0] * (number + 1 - len(self._members)))
        self._members[number] = place + 1

    def of(self, number: int) -> tuple[str, JobDefinition] | None:
        """Return a member's queue and job, or None for one that joined later."""
        place = self._members[number] if number < len(self._members) else 0
        return self._kinds[place - 1] if place else None


class Stored:
    """Looks into the store for one composition."""

    def __init__(
        self, operations: Operations, composition_id: str, *, home: str, connection: str, whose: Whose | None = None
    ) -> None:
        self._operations = operations
        self._id = composition_id
        self._home = home
        self._connection = connection
        self._whose = whose or Whose()

    async def status(self) -> CompositionStatus | None:
        """Return how far it has come."""
        return await self._operations.compositions.status(self._id, queue=self._home, connection=self._connection)

    async def cancel(self) -> bool:
        """Cancel what has not ended."""
        return await self._operations.compositions.cancel(self._id, queue=self._home, connection=self._connection)

    async def members(self, first: int, number: int) -> Sequence[Member]:
        """Return what became of so many members, from this one on."""
        status = await self.status()
        numbers = range(first, min(first + number, 0 if status is None else status.total))
        by_queue: dict[str, list[int]] = {}
        for one in numbers:
            known = self._whose.of(one)
            by_queue.setdefault(self._home if known is None else known[0], []).append(one)
        found: dict[int, Member] = {}
        for queue, some in by_queue.items():
            found |= await self._members(queue, some)
        if strangers := [one for one in numbers if self._whose.of(one) is None and _nowhere(found[one])]:
            found |= await self._elsewhere(strangers)
        return [found[one] for one in numbers]

    async def _elsewhere(self, numbers: Sequence[int]) -> Mapping[int, Member]:
        """Look for members in the store's other queues: whose they are is only known where they were pushed."""
        found: dict[int, Member] = {}
        if not self._operations.compositions.spanning(self._connection):
            return found
        for queue in await self._operations.queues(connection=self._connection):
            left = [one for one in numbers if one not in found]
            if queue != self._home and left:
                there = await self._members(queue, left)
                found |= {one: member for one, member in there.items() if not _nowhere(member)}
        return found

    async def _members(self, queue: str, numbers: Sequence[int]) -> dict[int, Member]:
        ids = [job_id(self._id, number) for number in numbers]
        endings = await self._operations.endings(queue, ids, connection=self._connection)
        open_ids = [one for one, ending in zip(ids, endings, strict=True) if ending is None]
        states = dict(zip(open_ids, await self._states(queue, open_ids), strict=True))
        return {
            number: self._member(number, one, ending, states.get(one))
            for number, one, ending in zip(numbers, ids, endings, strict=True)
        }

    async def _states(self, queue: str, ids: Sequence[str]) -> Iterable[JobState]:
        return await self._operations.states(queue, ids, connection=self._connection) if ids else ()

    def _member(self, number: int, one: str, ending: Ending | None, state: JobState | None) -> Member:
        if ending is None:
            return Member(number=number, id=one, state=state or JobState.GONE)
        result = None if ending.result is None else self._restored(number, ending.result)
        return Member(number=number, id=one, state=ending.state, result=result, reason=ending.reason, type=ending.type)

    def _restored(self, number: int, result: bytes) -> Any:
        known = self._whose.of(number)
        return ResultCodec().decode(result) if known is None else known[1].restore(result)


def _nowhere(member: Member) -> bool:
    return member.state is JobState.GONE
