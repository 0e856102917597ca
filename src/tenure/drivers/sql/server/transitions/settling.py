"""Renewing and ending leases. Only the current one, by its token, can act (P3)."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from tenure.drivers.sql.advancing import Budget
from tenure.drivers.sql.nodes import End, Member, ended_by, member
from tenure.drivers.sql.server import statements
from tenure.drivers.sql.server.texts import DELAYED, READY
from tenure.drivers.sql.server.transaction import QueueRow, Transaction
from tenure.drivers.sql.server.transitions.advancing import advance, work_off
from tenure.drivers.sql.server.transitions.ending import Row, ended, keep
from tenure.drivers.sql.units import micros
from tenure.queue import Ack, Drop, Fail, Lease, Release, Renewal, SetAside, Settled, Settlement


class Current(NamedTuple):
    """A current lease."""

    asked: bool
    """Somebody asked to cancel its job."""
    keep: int
    """How long the job's end is kept."""
    member: Member | None
    """What it belongs to."""


class Held(NamedTuple):
    """The current leases of some jobs, locked until the transaction ends."""

    queues: dict[str, QueueRow]
    leases: dict[tuple[int, int, str, str], Current]
    """By incarnation, queue, id and token."""

    def key(self, lease: Lease) -> tuple[int, int, str, str]:
        """Return what names a lease; a queue that does not exist has the number 0."""
        queue = self.queues.get(lease.queue)
        return lease.incarnation, queue.number if queue else 0, lease.id, lease.token


def renew(transaction: Transaction, leases: Sequence[Lease]) -> list[Renewal]:
    """Extend each current lease by its own length from now."""
    held = current(transaction, leases)
    kept = {lease.incarnation for lease in leases if held.key(lease) in held.leases}
    transaction.change_all(statements.SET_DEADLINES, sorted(kept), now=transaction.now)
    found = [held.leases.get(held.key(lease)) for lease in leases]
    return [Renewal.LOST if one is None else Renewal.CANCEL_REQUESTED if one.asked else Renewal.HELD for one in found]


def settle(transaction: Transaction, settlements: Sequence[Settlement]) -> list[Settled]:
    """End each current lease."""
    held = current(transaction, (settlement.lease for settlement in settlements))
    entries = iter(transaction.numbers(sum(isinstance(one, Release | Fail | SetAside) for one in settlements)))
    gone: list[int] = []
    released: list[dict[str, Any]] = []
    ends: list[Row] = []
    told: list[End] = []
    settled = []
    for settlement in settlements:
        lease = settlement.lease
        found = held.leases.pop(held.key(lease), None)
        if found is None:
            settled.append(Settled.STALE)
            continue
        queue = held.queues[lease.queue]
        queue.leased -= 1
        cancelled = found.asked and isinstance(settlement, Release)
        settled.append(Settled.CANCELLED if cancelled else Settled.DONE)
        if found.keep and (cancelled or isinstance(settlement, Ack | Drop | Fail)):
            ends.append(ended(queue, (lease.id, lease.incarnation), found.keep, transaction.now, settlement))
        if found.member is not None:
            told += ended_by(found.member, settlement, settled[-1])
        match settlement:
            case Release() if not cancelled:
                # Who is a suspect is judged by the claim that finds the job, which knows its limit.
                released.append(_released(queue, settlement, next(entries), transaction.now))
                transaction.woken.add(queue.name)
            case Fail():
                _fail(transaction, queue, settlement, next(entries))
            case SetAside():
                _set_aside(transaction, queue, settlement, next(entries))
                gone.append(lease.incarnation)
            case Ack() | Drop() | Release():
                gone.append(lease.incarnation)
    transaction.change_all(statements.REMOVE, gone)
    transaction.change_each(statements.RELEASE, released)
    keep(transaction, list(held.queues.values()), ends)
    budget = Budget()
    advance(transaction, told, budget)
    work_off(transaction, held.queues.values(), budget)
    return settled


def current(transaction: Transaction, leases: Iterable[Lease]) -> Held:
    """Lock the leases that are current, and return them."""
    named = list(leases)
    queues = {queue.name: queue for queue in transaction.find(*(lease.queue for lease in named))}
    incarnations = sorted({lease.incarnation for lease in named})
    rows = transaction.all(statements.HELD, incarnations=incarnations)
    return Held(queues, {tuple(row[:4]): Current(bool(row[4]), row[5], member(*row[6:])) for row in rows})


def _released(queue: QueueRow, release: Release, entry: int, now: int) -> dict[str, Any]:
    delayed = release.delay > 0
    queue.delayed += delayed
    queue.ready += not delayed
    return {
        "g_incarnation": release.lease.incarnation,
        "g_shelf": queue.line,
        "g_state": DELAYED if delayed else READY,
        "g_place": now + micros(release.delay) if delayed else None,
        "g_entry": entry,
        "g_since": now,
        "g_free": int(release.free),
        "g_crashed": int(release.crashed),
    }


def _fail(transaction: Transaction, queue: QueueRow, fail: Fail, entry: int) -> None:
    transaction.change(
        statements.FAIL,
        incarnation=fail.lease.incarnation,
        now=transaction.now,
        entry=entry,
        failure=msgspec.json.encode(fail.failure),
    )
    queue.failed += 1


def _set_aside(transaction: Transaction, queue: QueueRow, aside: SetAside, number: int) -> None:
    transaction.change(
        statements.SET_ASIDE,
        incarnation=aside.lease.incarnation,
        number=number,
        now=transaction.now,
        reason=aside.reason.encode(errors="replace"),
    )
    queue.unreadable += 1
