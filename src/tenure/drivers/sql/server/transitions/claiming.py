"""Leasing jobs, and what a claim does before: recover lapsed leases, promote due jobs."""

from collections.abc import Sequence
from typing import Any

from tenure.drivers.sql.claims import (
    DOOMED,
    Candidate,
    Claim,
    Looked,
    Sight,
    choose,
    doomed_by,
    is_suspect,
    leased,
    members,
)
from tenure.drivers.sql.server import compositions, statements
from tenure.drivers.sql.server.texts import READY, SUSPECT
from tenure.drivers.sql.server.transaction import QueueRow, Transaction
from tenure.drivers.sql.server.transitions.advancing import work_off
from tenure.drivers.sql.server.transitions.sweeping import sweep
from tenure.drivers.sql.transitions import STEP
from tenure.drivers.sql.units import SECOND, micros
from tenure.naming import new_token
from tenure.queue import Claimed, Lease

Seen = list[tuple[QueueRow, Sight]]


def glance(transaction: Transaction, claim: Claim) -> Looked | None:
    """Return the claim's answer if it would change nothing, else None: an idle worker never writes."""
    seen = transaction.see(claim.queues)
    for queue, sight in seen:
        asks = sight.asks_for_work(transaction.now, suspects=claim.suspects, paused=queue.paused)
        something = queue.first_todo is not None and queue.first_todo <= transaction.now
        if asks or something or queue.abandoned is not None:
            return None
    return Looked(Claimed(next_due=_next_due(transaction, seen)))


def claim(transaction: Transaction, claim: Claim) -> Looked:
    """Lease jobs, the first queue's first, after recovering and promoting in each of them, the paused ones too."""
    seen = transaction.see(claim.queues)
    moved = sum(_prepare(transaction, queue, sight, claim) for queue, sight in seen)
    before = set(transaction.woken)
    work_off(transaction, [queue for queue, _ in seen])
    if moved or transaction.woken != before:
        seen = transaction.see(claim.queues)
    leases: list[Lease] = []
    left: set[str] = set()
    for queue, sight in seen:
        limit = claim.limit - len(leases)
        if queue.paused or not (sight.ready or (sight.suspects and claim.suspects)):
            continue
        if limit:
            suspects = claim.suspects and not any(lease.suspect for lease in leases)
            leases += _take(transaction, queue, sight, claim, limit, suspects=suspects)
        if len(leases) == claim.limit:
            left.add(queue.name)
    if leases or moved:
        # Only a claim that changed something passes the rest on: two that may not take what is there would otherwise
        # wake each other for ever. Other processes were told when the jobs came, unless it was this claim's doing.
        transaction.woken |= left
        transaction.told |= set() if moved else left
        seen = transaction.see(claim.queues) if len(leases) < claim.limit else []
    # More of compositions may be had at once: the next claim makes jobs of it.
    more = any(queue.name in transaction.unfinished for queue, _ in seen)
    return Looked(Claimed(leases=leases, next_due=0.0 if more else _next_due(transaction, seen)), more)


def _next_due(transaction: Transaction, seen: Seen) -> float | None:
    times = [sight.next_time for _, sight in seen if sight.next_time is not None]
    return max(0, min(times) - transaction.now) / SECOND if times else None


def _prepare(transaction: Transaction, queue: QueueRow, sight: Sight, claim: Claim) -> int:
    """Repair, recover, promote and sweep what is to be, and return how many jobs became ready."""
    now, moved = transaction.now, 0
    if sight.farthest_start is not None and sight.farthest_start > now:
        _repair(transaction, queue)
    if sight.deadline is not None and sight.deadline <= now:
        lapsed = transaction.all(statements.LAPSED, shelf=queue.number, now=now, step=STEP)
        _enter(transaction, queue, lapsed, claim.crash_limit, crashed=1)
        queue.leased -= len(lapsed)
        moved += len(lapsed)
    if sight.due is not None and sight.due <= now:
        due = transaction.all(statements.DUE, shelf=queue.line, now=now, step=STEP)
        _enter(transaction, queue, due, claim.crash_limit, crashed=0)
        queue.delayed -= len(due)
        moved += len(due)
    sweep(transaction, queue)
    return moved


def _repair(transaction: Transaction, queue: QueueRow) -> None:
    """Pull back deadlines that lie further ahead than their lease is long: the clock went back (rule 6).

    The farthest of all is one as long as the clock went back by more than a lease; otherwise they are late by less
    than that, and no harm is done.
    """
    astray = transaction.all(statements.FARTHEST, shelf=queue.number, now=transaction.now, step=STEP)
    transaction.change_all(statements.SET_DEADLINES, (number for (number,) in astray), now=transaction.now)


def _enter(transaction: Transaction, queue: QueueRow, jobs: Sequence[Any], crash_limit: int, *, crashed: int) -> None:
    """Put jobs at the tail of their line. A cancel request outlives a lapse: the job is leased doomed, to end so."""
    entries = transaction.numbers(len(jobs))
    records = [
        {
            "g_incarnation": incarnation,
            "g_shelf": queue.line,
            "g_state": SUSPECT if is_suspect(limit, crashes, crash_limit) else READY,
            "g_entry": entry,
            "g_since": transaction.now,
            "g_crashes": crashed,
        }
        for (incarnation, limit, crashes), entry in zip(jobs, entries, strict=True)
    ]
    transaction.change_each(statements.ENTER, records)
    queue.ready += len(jobs)


def _take(
    transaction: Transaction, queue: QueueRow, sight: Sight, claim: Claim, limit: int, *, suspects: bool
) -> list[Lease]:
    """Lease the first ready jobs, at most one suspect among them.

    A ready job that is a suspect to this claim, and that it must leave to others, steps over to the line of the
    suspects; at most ``STEP`` do in one go, give or take a window.
    """
    leases: list[Lease] = []
    passed_over = 0
    while True:
        window = limit - len(leases)
        ready = _first(transaction, queue, READY, window)
        others = _first(transaction, queue, SUSPECT, window) if suspects and (sight.suspects or passed_over) else []
        choice = choose(ready, others, claim, window, transaction.now, suspects=suspects)
        leases += _lease(transaction, queue, claim, choice.leased)
        transaction.change_all(statements.STEP_ASIDE, (candidate.incarnation for candidate in choice.aside))
        suspects = choice.suspects
        passed_over += len(choice.aside)
        if len(leases) == limit or not choice.aside or passed_over >= STEP:
            return leases


def _first(transaction: Transaction, queue: QueueRow, state: int, limit: int) -> list[Candidate]:
    rows = transaction.all(statements.FIRST, shelf=queue.line, state=state, limit=limit)
    candidates = [Candidate(*row) for row in rows]
    of = members(candidates)
    cancelling = [number for (number,) in transaction.all(compositions.ARE_CANCELLING, numbers=of)] if of else ()
    return [doomed_by(cancelling, candidate) for candidate in candidates] if cancelling else candidates


def _lease(transaction: Transaction, queue: QueueRow, claim: Claim, chosen: Sequence[Candidate]) -> list[Lease]:
    if not chosen:
        return []
    now, length, token = transaction.now, micros(claim.length), new_token(claim.holder)
    transaction.change_all(
        statements.LEASE,
        (candidate.incarnation for candidate in chosen),
        deadline=now + length,
        token=token,
        length=length,
        now=now,
    )
    # Whoever releases it finds the request.
    doomed = [candidate.incarnation for candidate in chosen if candidate.cancel_requested == DOOMED]
    transaction.change_all(statements.REQUEST_CANCELS, doomed)
    queue.ready -= len(chosen)
    queue.leased += len(chosen)
    return [
        leased(candidate, claim, queue.name, token=token, fence=max(candidate.fence + 1, now), now=now)
        for candidate in chosen
    ]
