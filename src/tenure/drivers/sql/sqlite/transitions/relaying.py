"""Storing jobs by calls whose numbers the relay of an outbox keeps (P1)."""

from collections.abc import Sequence
from typing import Final

from tenure.drivers.sql.sqlite.transaction import Transaction
from tenure.drivers.sql.sqlite.transitions.pushing import push
from tenure.queue import Push, Pushed
from tenure.relaying import Forgotten

LAST: Final = "SELECT number FROM tenure_clients WHERE client = ?"
NOTE: Final = "INSERT OR REPLACE INTO tenure_clients (client, number) VALUES (?, ?)"


def push_numbered(transaction: Transaction, client: str, number: int, jobs: Sequence[Push]) -> list[Pushed]:
    """Store the jobs, unless this call was made before."""
    found = transaction.one(LAST, (client,))
    if found is not None and found[0] == number:
        return [Pushed(job.id, "stored") for job in jobs]
    if number < found[0] if found is not None else number > 1:
        raise Forgotten
    transaction.change(NOTE, (client, number))
    return push(transaction, jobs)
