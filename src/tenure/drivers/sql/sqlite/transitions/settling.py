"""Renewing and ending leases. Each statement names the token, so that only the current lease can act (P3)."""

from collections.abc import Sequence

import msgspec

from tenure.drivers.sql.advancing import Budget
from tenure.drivers.sql.nodes import End, Member, ended_by, member
from tenure.drivers.sql.sqlite import compositions, statements
from tenure.drivers.sql.sqlite.schema import DELAYED, READY
from tenure.drivers.sql.sqlite.transaction import QueueRow, Transaction
from tenure.drivers.sql.sqlite.transitions import keeping
from tenure.drivers.sql.sqlite.transitions.advancing import advance, work_off
from tenure.drivers.sql.units import micros
from tenure.queue import Ack, Drop, Fail, Lease, Release, Renewal, SetAside, Settled, Settlement

Named = tuple[int, int, str, str]
"""What names a lease: incarnation, queue, id, token."""


def renew(transaction: Transaction, leases: Sequence[Lease]) -> list[Renewal]:
    """Extend each current lease by its own length from now."""
    renewals = []
    for lease in leases:
        queue = transaction.find(lease.queue)
        held = queue and transaction.one(statements.RENEW, (transaction.now, *_named(queue, lease)))
        if not held:
            renewals.append(Renewal.LOST)
        else:
            renewals.append(Renewal.CANCEL_REQUESTED if held[0] else Renewal.HELD)
    return renewals


def settle(transaction: Transaction, settlements: Sequence[Settlement]) -> list[Settled]:
    """End each current lease."""
    numbered = sum(isinstance(settlement, Release | Fail | SetAside) for settlement in settlements)
    entries = iter(transaction.numbers(numbered))
    settled: list[Settled] = []
    members = _members(transaction, settlements)
    ends: list[End] = []
    queues: dict[str, QueueRow] = {}
    for settlement in settlements:
        queue = transaction.find(settlement.lease.queue)
        if queue is None:
            settled.append(Settled.STALE)
            continue
        queues[queue.name] = queue
        named = _named(queue, settlement.lease)
        match settlement:
            case Release():
                settled.append(_release(transaction, queue, settlement, named, next(entries)))
            case Fail():
                settled.append(_fail(transaction, queue, settlement, named, next(entries)))
            case SetAside():
                settled.append(_set_aside(transaction, queue, settlement, named, next(entries)))
            case Ack() | Drop():
                settled.append(_finish(transaction, queue, named))
        if settlement.lease.keep and settled[-1] is not Settled.STALE:
            _keep(transaction, queue, settlement, settled[-1])
        if members and (what := members.get(settlement.lease.incarnation)) is not None:
            ends += ended_by(what, settlement, settled[-1])
    budget = Budget()
    advance(transaction, ends, budget)
    work_off(transaction, queues.values(), budget)
    return settled


def _members(transaction: Transaction, settlements: Sequence[Settlement]) -> dict[int, Member]:
    """Return what jobs belong to, by their incarnations. A lease says whether, so that other jobs cost no look."""
    leases = [settlement.lease.incarnation for settlement in settlements if settlement.lease.composition]
    if not leases:
        return {}
    rows = transaction.all(compositions.FIND_MEMBERS, (msgspec.json.encode(leases).decode(),))
    return {row[0]: what for row in rows if (what := member(*row[1:])) is not None}


def _keep(transaction: Transaction, queue: QueueRow, settlement: Settlement, answer: Settled) -> None:
    lease = settlement.lease
    transaction.change(statements.DROP_PROGRESS, (lease.incarnation,))
    if answer is Settled.CANCELLED or isinstance(settlement, Ack | Drop | Fail):
        keeping.end(transaction, queue, (lease.id, lease.incarnation), micros(lease.keep), settlement)


def _named(queue: QueueRow, lease: Lease) -> Named:
    return lease.incarnation, queue.number, lease.id, lease.token


def _finish(transaction: Transaction, queue: QueueRow, named: Named, settled: Settled = Settled.DONE) -> Settled:
    if not transaction.change(statements.FINISH, named):
        return Settled.STALE
    queue.d_leased -= 1
    return settled


def _release(transaction: Transaction, queue: QueueRow, release: Release, named: Named, entry: int) -> Settled:
    # Who is a suspect is judged by the claim that finds the job, which knows its limit: it enters the ready line.
    delayed = release.delay > 0
    changed = transaction.change(
        statements.RELEASE,
        (
            queue.line,
            DELAYED if delayed else READY,
            transaction.now + micros(release.delay) if delayed else None,
            entry,
            transaction.now,
            release.free,
            release.crashed,
            *named,
        ),
    )
    if not changed:
        # Either the lease is not current, or it is and somebody asked to cancel the job.
        return _finish(transaction, queue, named, Settled.CANCELLED)
    queue.d_leased -= 1
    queue.d_delayed += delayed
    queue.d_ready += not delayed
    transaction.woken.add(queue.name)
    return Settled.DONE


def _fail(transaction: Transaction, queue: QueueRow, fail: Fail, named: Named, entry: int) -> Settled:
    if not transaction.change(statements.FAIL, (transaction.now, entry, *named)):
        return Settled.STALE
    failure = fail.failure
    transaction.change(
        statements.ADD_FAILURE,
        (fail.lease.incarnation, failure.reason, failure.type, failure.message, failure.traceback),
    )
    queue.d_leased -= 1
    queue.d_failed += 1
    return Settled.DONE


def _set_aside(transaction: Transaction, queue: QueueRow, aside: SetAside, named: Named, number: int) -> Settled:
    if not transaction.change(statements.SET_ASIDE, (number, transaction.now, aside.reason, *named)):
        return Settled.STALE
    queue.d_unreadable += 1
    return _finish(transaction, queue, named)
