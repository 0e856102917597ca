"""What operators tell the workers: to leave a queue alone, to take from it again, to make room for their successors."""

from collections.abc import Sequence
from typing import Final

from tenure.drivers.sql.server import statements
from tenure.drivers.sql.server.transaction import Transaction
from tenure.naming import new_token

_RESTART: Final = "restart"
"""The setting that holds the restart marker."""


def pause(transaction: Transaction, name: str) -> bool:
    """Let claims leave the queue's jobs where they are; False when they did already."""
    row = {"namespace": transaction.namespace, "name": name, "since": transaction.now}
    return bool(transaction.insert(statements.PAUSE, [row]))


def resume(transaction: Transaction, name: str) -> bool:
    """Let claims take the queue's jobs again; False when they did already."""
    transaction.woken.add(name)
    return bool(transaction.change(statements.RESUME, namespace=transaction.namespace, name=name))


def paused(transaction: Transaction, names: Sequence[str]) -> list[bool]:
    """Tell which queues are paused."""
    if not names:
        return []
    found = transaction.all(statements.FIND_PAUSED, namespace=transaction.namespace, names=list(names))
    return [(name,) in {tuple(row) for row in found} for name in names]


def request_restart(transaction: Transaction) -> str:
    """Write a new marker and return it."""
    marker = new_token()
    row = {"namespace": transaction.namespace, "name": _RESTART, "value": marker}
    transaction.insert(statements.SET_SETTING, [row])
    return marker


def restart_marker(transaction: Transaction) -> str | None:
    """Return the marker, or None when there was never one."""
    row = transaction.one(statements.FIND_SETTING, namespace=transaction.namespace, name=_RESTART)
    return None if row is None else str(row[0])
