"""What operators tell the workers: to leave a queue alone, to take from it again, to make room for their successors."""

from collections.abc import Sequence
from typing import Final

from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.transaction import Transaction
from tenure.naming import new_token

_RESTART: Final = "restart"
"""The setting that holds the restart marker."""


def pause(transaction: Transaction, name: str) -> bool:
    """Let claims leave the queue's jobs where they are; False when they did already."""
    return bool(transaction.change(statements.PAUSE, (transaction.namespace, name, transaction.now)))


def resume(transaction: Transaction, name: str) -> bool:
    """Let claims take the queue's jobs again; False when they did already."""
    transaction.woken.add(name)
    return bool(transaction.change(statements.RESUME, (transaction.namespace, name)))


def paused(transaction: Transaction, names: Sequence[str]) -> list[bool]:
    """Tell which queues are paused."""
    return [transaction.one(statements.FIND_PAUSED, (transaction.namespace, name)) is not None for name in names]


def request_restart(transaction: Transaction) -> str:
    """Write a new marker and return it."""
    marker = new_token()
    transaction.change(statements.SET_SETTING, (transaction.namespace, _RESTART, marker))
    return marker


def restart_marker(transaction: Transaction) -> str | None:
    """Return the marker, or None when there was never one."""
    row = transaction.one(statements.FIND_SETTING, (transaction.namespace, _RESTART))
    return None if row is None else str(row[0])
