"""Finding jobs by their ids, over all queues: one step a queue, however many ids."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from tenure.cli.errors import CommandFailed
from tenure.cli.store import Store
from tenure.queue import JobState

OPEN: Final = frozenset({JobState.READY, JobState.DELAYED, JobState.RUNNING})
FAILED: Final = frozenset({JobState.FAILED})


async def find(
    store: Store, names: Sequence[str] | None, ids: Sequence[str], states: Collection[JobState], kind: str
) -> Mapping[str, Sequence[str]]:
    """Return the ids by the queues that hold them in one of the states.

    Raises ``CommandFailed`` when one of them is nowhere, or in several queues: a mistyped id changes nothing.
    """
    places: dict[str, list[str]] = {job_id: [] for job_id in ids}
    for name in await store.queues(names):
        found = await store.operations.states(name, ids, **store.on)
        for job_id, state in zip(ids, found, strict=True):
            if state in states:
                places[job_id].append(name)
    if missing := [job_id for job_id, queues in places.items() if not queues]:
        raise CommandFailed(f"there is no {kind} {', '.join(missing)}")
    by_queue: dict[str, list[str]] = {}
    for job_id, queues in places.items():
        if len(queues) > 1:
            where = ", ".join(queues)
            raise CommandFailed(f"there is a {kind} {job_id} in several queues ({where}): choose one with --queue")
        by_queue.setdefault(queues[0], []).append(job_id)
    return by_queue
