"""Leasing jobs, and what a claim does before: recover lapsed leases, promote due jobs."""

from collections.abc import Sequence

from tenure.drivers.sql.claims import (
    DOOMED,
    Candidate,
    Choice,
    Claim,
    Looked,
    Sight,
    choose,
    doomed_by,
    is_suspect,
    leased,
    members,
)
from tenure.drivers.sql.sqlite import compositions, statements
from tenure.drivers.sql.sqlite.schema import READY, SUSPECT
from tenure.drivers.sql.sqlite.transaction import QueueRow, Transaction
from tenure.drivers.sql.sqlite.transitions.advancing import work_off
from tenure.drivers.sql.sqlite.transitions.sweeping import sweep
from tenure.drivers.sql.transitions import STEP
from tenure.drivers.sql.units import SECOND, micros
from tenure.naming import new_token
from tenure.queue import Claimed, Lease


def glance(transaction: Transaction, claim: Claim) -> Looked | None:
    """Return the claim's answer if it would change nothing, else None: an idle worker never locks the file."""
    queues = _queues(transaction, claim)
    sights = [_sight(transaction, queue) for queue in queues]
    for queue, sight in zip(queues, sights, strict=True):
        if sight.asks_for_work(transaction.now, suspects=claim.suspects, paused=queue.paused):
            return None
    if any(queue.abandoned is not None or _has_something_to_do(transaction, queue) for queue in queues):
        return None
    return Looked(Claimed(next_due=_next_due(transaction, sights)))


def claim(transaction: Transaction, claim: Claim) -> Looked:
    """Lease jobs, the first queue's first, after recovering and promoting in each of them, the paused ones too."""
    queues = _queues(transaction, claim)
    moved = 0
    for queue in queues:
        _repair(transaction, queue)
        moved += _recover(transaction, queue, claim.crash_limit)
        moved += _promote(transaction, queue, claim.crash_limit)
        sweep(transaction, queue)
    work_off(transaction, queues)
    leases: list[Lease] = []
    for queue in queues:
        if len(leases) < claim.limit and not queue.paused:
            suspects = claim.suspects and not any(lease.suspect for lease in leases)
            leases += _take(transaction, queue, claim, claim.limit - len(leases), suspects=suspects)
    sights = [_sight(transaction, queue) for queue in queues]
    if leases or moved:
        # Only a claim that changed something passes the rest on: two that may not take what is there would otherwise
        # wake each other for ever.
        transaction.woken |= {
            queue.name
            for queue, sight in zip(queues, sights, strict=True)
            if (sight.ready or sight.suspects) and not queue.paused
        }
    # More of compositions may be had at once: the next claim makes jobs of it.
    more = any(queue.name in transaction.unfinished for queue in queues)
    return Looked(Claimed(leases=leases, next_due=0.0 if more else _next_due(transaction, sights)), more)


def _has_something_to_do(transaction: Transaction, queue: QueueRow) -> bool:
    return queue.first_todo is not None and queue.first_todo <= transaction.now


def _queues(transaction: Transaction, claim: Claim) -> list[QueueRow]:
    return [queue for name in dict.fromkeys(claim.queues) if (queue := transaction.find(name)) is not None]


def _sight(transaction: Transaction, queue: QueueRow) -> Sight:
    return Sight(*transaction.one(statements.SIGHT, {"line": queue.line, "number": queue.number}))


def _next_due(transaction: Transaction, sights: Sequence[Sight]) -> float | None:
    times = [sight.next_time for sight in sights if sight.next_time is not None]
    return max(0, min(times) - transaction.now) / SECOND if times else None


def _repair(transaction: Transaction, queue: QueueRow) -> None:
    """Pull back deadlines that lie further ahead than their lease is long: the clock went back (rule 6).

    Those are the farthest of all as long as the clock went back by more than a lease; otherwise they are late by less
    than that, and no harm is done.
    """
    rows = transaction.all(statements.FARTHEST, {"number": queue.number, "step": 1})
    if not any(_astray(transaction, *row) for row in rows):
        return
    for incarnation, rank, length in transaction.all(statements.FARTHEST, {"number": queue.number, "step": STEP}):
        if _astray(transaction, incarnation, rank, length):
            transaction.change(statements.SET_DEADLINE, (transaction.now + length, incarnation))


def _astray(transaction: Transaction, _: int, rank: int, length: int) -> bool:
    return rank > transaction.now + length


def _recover(transaction: Transaction, queue: QueueRow, crash_limit: int) -> int:
    """Take lapsed leases back. A cancel request outlives the lapse: the job is leased doomed, to end by settlement."""
    now = transaction.now
    lapsed = transaction.all(statements.LAPSED, {"number": queue.number, "now": now, "step": STEP})
    if lapsed:
        entries = transaction.numbers(len(lapsed))
        transaction.change_each(
            statements.RECOVER,
            [
                (queue.line, _line(limit, crashes, crash_limit), entry, now, incarnation)
                for (incarnation, limit, crashes, _), entry in zip(lapsed, entries, strict=True)
            ],
        )
        transaction.change_each(statements.DROP_PROGRESS, [(row[0],) for row in lapsed if row[3]])
        queue.d_leased -= len(lapsed)
        queue.d_ready += len(lapsed)
    return len(lapsed)


def _promote(transaction: Transaction, queue: QueueRow, crash_limit: int) -> int:
    """Make due jobs ready."""
    now = transaction.now
    due = transaction.all(statements.DUE, {"line": queue.line, "now": now, "step": STEP})
    if due:
        entries = transaction.numbers(len(due))
        transaction.change_each(
            statements.PROMOTE,
            [
                (_line(limit, crashes, crash_limit), entry, now, incarnation)
                for (incarnation, limit, crashes), entry in zip(due, entries, strict=True)
            ],
        )
        queue.d_delayed -= len(due)
        queue.d_ready += len(due)
    return len(due)


def _line(own_limit: int | None, crashes: int, default: int) -> int:
    return SUSPECT if is_suspect(own_limit, crashes, default) else READY


def _take(transaction: Transaction, queue: QueueRow, claim: Claim, limit: int, *, suspects: bool) -> list[Lease]:
    """Lease the first ready jobs, at most one suspect among them.

    Who is a suspect may depend on who claims, by the crash limit that it gives to jobs without one. A ready job that
    this claim must leave to others steps over to the line of the suspects; at most ``STEP`` do in one go, give or
    take a window.
    """
    leases: list[Lease] = []
    passed_over = 0
    while True:
        window = limit - len(leases)
        choice = _choose(transaction, queue, claim, window, suspects=suspects)
        leases += _lease(transaction, queue, claim, choice.leased)
        transaction.change_each(statements.STEP_ASIDE, [(candidate.incarnation,) for candidate in choice.aside])
        suspects = choice.suspects
        passed_over += len(choice.aside)
        if len(leases) == limit or not choice.aside or passed_over >= STEP:
            return leases


def _choose(transaction: Transaction, queue: QueueRow, claim: Claim, window: int, *, suspects: bool) -> Choice:
    ready = transaction.all(statements.FIRST, (queue.line, READY, window))
    others = transaction.all(statements.FIRST, (queue.line, SUSPECT, window)) if suspects else []
    candidates = [_judged(transaction, [Candidate(*row) for row in rows]) for rows in (ready, others)]
    return choose(
        candidates[0],
        candidates[1],
        claim,
        window,
        transaction.now,
        suspects=suspects,
    )


def _judged(transaction: Transaction, candidates: list[Candidate]) -> list[Candidate]:
    """Return the jobs, those doomed whose compositions were cancelled."""
    cancelling = [number for number in members(candidates) if _is_cancelling(transaction, number)]
    return [doomed_by(cancelling, candidate) for candidate in candidates] if cancelling else candidates


def _is_cancelling(transaction: Transaction, composition: int) -> bool:
    row = transaction.one(compositions.IS_CANCELLING, (composition,))
    return bool(row and row[0])


def _lease(transaction: Transaction, queue: QueueRow, claim: Claim, chosen: Sequence[Candidate]) -> list[Lease]:
    if not chosen:
        return []
    length = micros(claim.length)
    deadline = transaction.now + length
    token = new_token(claim.holder)
    # A fence is never below the clock, so that it also rises when the file was replaced by an older copy.
    queue.fence = max(queue.fence + 1, transaction.now)
    transaction.change(statements.SET_FENCE, (queue.fence, queue.number))
    transaction.change_each(
        statements.LEASE,
        [(queue.number, deadline, token, length, candidate.incarnation) for candidate in chosen],
    )
    # Whoever releases it finds the request.
    doomed = [(candidate.incarnation,) for candidate in chosen if candidate.cancel_requested == DOOMED]
    if doomed:
        transaction.change_each(statements.REQUEST_CANCEL, doomed)
    queue.d_ready -= len(chosen)
    queue.d_leased += len(chosen)
    return [
        leased(candidate, claim, queue.name, token=token, fence=queue.fence, now=transaction.now)
        for candidate in chosen
    ]
