"""Storing jobs.

A call stores its jobs in rounds, many at once: all those whose ids and texts none before them has. Seldom is there a
second one: for a unique job that another of the same call did not keep away after all, because that was not stored.
"""

from collections.abc import Sequence
from typing import Any, Final

from tenure.drivers.sql.nodes import cleared
from tenure.drivers.sql.server import statements
from tenure.drivers.sql.server.texts import DELAYED, READY
from tenure.drivers.sql.server.transaction import QueueRow, Transaction
from tenure.drivers.sql.server.transitions.advancing import advance
from tenure.drivers.sql.server.transitions.locking import holders, unlock_cleared
from tenure.drivers.sql.server.transitions.sweeping import sweep
from tenure.drivers.sql.units import micros, nearest_micros
from tenure.errors import NotSupported, StoreRefused
from tenure.queue import Push, Pushed

MOST_ROUNDS: Final = 1000
"""More than the jobs of a call: every round answers for the first that is left, unless others come and go at once."""

Placed = tuple[int, Push]
"""A job, and its place in the call."""


def push(transaction: Transaction, jobs: Sequence[Push]) -> list[Pushed]:
    """Store each job whose id does not exist yet, in whatever state, and whose text no other job has."""
    transaction.open(job.queue for job in jobs)
    if any(job.durability > 1 for job in jobs) and not transaction.one(statements.ON_DISK)[0]:
        raise NotSupported("sql", "durability 2", "the server does not write each commit to its disk")
    queues = {queue.name: queue for queue in transaction.find(*(job.queue for job in jobs))}
    answers: dict[int, Pushed] = {}
    left = list(enumerate(jobs))
    for _ in range(MOST_ROUNDS):
        _round(transaction, queues, left, answers)
        left = [placed for placed in left if placed[0] not in answers]
        if not left:
            break
    else:
        raise StoreRefused("BUSY", "jobs with the same unique text come and go too fast; nothing was stored; try again")
    for queue in queues.values():
        new = [job.id for place, job in enumerate(jobs) if job.queue == queue.name and _is_new(answers[place])]
        if new and queue.first_until is not None:
            transaction.change(statements.DROP_ENDS, queue=queue.number, ids=new)
        sweep(transaction, queue)
    return [answers[place] for place in range(len(jobs))]


def _is_new(pushed: Pushed) -> bool:
    return pushed.outcome == "stored"


def _round(
    transaction: Transaction, queues: dict[str, QueueRow], left: Sequence[Placed], answers: dict[int, Pushed]
) -> None:
    """Store those jobs that none before them keeps away, and answer for them and for all of the same ids."""
    tried = _first_of_each(left)
    numbered = zip(transaction.numbers(len(tried)), tried, strict=True)
    numbers = dict(sorted(numbered, key=_in_order))
    rows = {number: _row(queues[job.queue], job, number, transaction.now) for number, (_, job) in numbers.items()}
    stored = _stored(transaction, list(queues.values()), rows)
    for number in stored:
        place, job = numbers[number]
        delayed = job.delay > 0
        queues[job.queue].delayed += delayed
        queues[job.queue].ready += not delayed
        transaction.woken.add(job.queue)
        answers[place] = Pushed(job.id, "stored")
    held = [placed for number, placed in numbers.items() if number not in stored]
    answers.update(_held(transaction, queues, held))
    there = {(left_job.queue, answers[place].id) for place, left_job in left if place in answers}
    answers.update(
        (place, Pushed(job.id, "held")) for place, job in left if place not in answers and (job.queue, job.id) in there
    )


def _first_of_each(left: Sequence[Placed]) -> list[Placed]:
    """Return the jobs of which none before has the id, nor the text."""
    first: list[Placed] = []
    seen: set[tuple[str, str, str]] = set()
    for place, job in left:
        names = {(job.queue, "id", job.id)} | ({(job.queue, "text", job.unique)} if job.unique else set())
        if not names & seen:
            first.append((place, job))
        seen |= names
    return first


def _in_order(numbered: tuple[int, Placed]) -> tuple[str, str, str]:
    # Whoever stores the same ones does so in the same order: they wait for each other, not in a circle.
    _, (_, job) = numbered
    return job.queue, job.unique, job.id


def _held(transaction: Transaction, queues: dict[str, QueueRow], jobs: Sequence[Placed]) -> dict[int, Pushed]:
    """Return the answers for jobs that were not stored. For one whose holder has gone meanwhile there is none yet."""
    answers = {place: Pushed(job.id, "held") for place, job in jobs if not job.unique}
    for queue in queues.values() if len(answers) < len(jobs) else ():
        unique = [(place, job) for place, job in jobs if job.unique and job.queue == queue.name]
        ids, locks = holders(transaction, queue, [job.id for _, job in unique], [job.unique for _, job in unique])
        for place, job in unique:
            if job.id in ids:
                answers[place] = Pushed(job.id, "held")
            elif job.unique in locks:
                answers[place] = Pushed(locks[job.unique], "held")
    return answers


def _row(queue: QueueRow, job: Push, number: int, now: int) -> dict[str, Any]:
    delayed = job.delay > 0
    return {
        "incarnation": number,
        "queue": queue.number,
        "id": job.id,
        "shelf": queue.line,
        "state": DELAYED if delayed else READY,
        "place": now + micros(job.delay) if delayed else -job.priority,
        "entry": number,
        "since": now,
        "priority": job.priority,
        "crash_limit": job.crash_limit,
        "expires": None if job.expires_in is None else now + micros(job.expires_in),
        "keep": nearest_micros(job.keep),
        "envelope": job.envelope,
        "unique_key": job.unique or None,
        "locked": job.unique or None,
    }


def _stored(transaction: Transaction, queues: Sequence[QueueRow], rows: dict[int, dict[str, Any]]) -> set[int]:
    """Add the rows, and return which of them are there."""
    unique = any(row["locked"] for row in rows.values())
    statement = statements.PUSH_UNIQUE if unique else statements.PUSH
    if transaction.insert(statement, list(rows.values())) == len(rows):
        return set(rows)
    stored = _there(transaction, rows)
    # An id, or a text, that waited in a line that was cleared is gone: only its row is left.
    left = [row for number, row in rows.items() if number not in stored]
    gone: list[Any] = []
    unlocked = 0
    for queue in queues:
        here = [row for row in left if row["queue"] == queue.number]
        if here:
            ids = [row["id"] for row in here]
            found = transaction.all(statements.FIND_CLEARED, queue=queue.number, ids=ids, line=queue.line)
            gone += found
            unlocked += unlock_cleared(transaction, queue, [row["locked"] for row in here if row["locked"]])
    if gone or unlocked:
        transaction.change_all(statements.REMOVE, (row[0] for row in gone))
        advance(transaction, cleared(row[1:] for row in gone))
        transaction.insert(statement, left)
        stored = _there(transaction, rows)
    return stored


def _there(transaction: Transaction, rows: dict[int, dict[str, Any]]) -> set[int]:
    return {number for (number,) in transaction.all(statements.FIND_MINE, incarnations=list(rows))}
