"""Storing jobs by calls whose numbers the relay of an outbox keeps (P1)."""

from collections.abc import Sequence
from typing import Final

from tenure.drivers.sql.server.texts import Differ
from tenure.drivers.sql.server.transaction import Transaction
from tenure.drivers.sql.server.transitions.pushing import push
from tenure.queue import Push, Pushed
from tenure.relaying import Forgotten

FOR_GOOD: Final = 100 * 31_557_600 * 1_000_000
"""A hundred years, in microseconds: so far ahead a relay's call is noted, so that it is not swept."""

LAST: Final = "SELECT number FROM {clients} WHERE client = %(client)s"
"""A relay's last call."""

NOTE: Final = Differ(
    postgresql="""
INSERT INTO {clients} AS c (client, number, seen) VALUES (%(client)s, %(number)s, {now} + %(ahead)s)
ON CONFLICT (client) DO UPDATE SET number = excluded.number, seen = excluded.seen WHERE c.number < excluded.number
""",
    mysql="""
INSERT INTO {clients} (client, number, seen) VALUES (%(client)s, %(number)s, {now} + %(ahead)s)
ON DUPLICATE KEY UPDATE
    seen = IF(number < VALUES(number), VALUES(seen), seen), number = GREATEST(number, VALUES(number))
""",
)
"""Note a relay's call; no row is changed when it, or a later one, was made before."""


def push_numbered(transaction: Transaction, client: str, number: int, jobs: Sequence[Push]) -> list[Pushed]:
    """Store the jobs, unless this call was made before; whoever makes it twice at once waits here for the other."""
    if number > 1 and not transaction.all(LAST, client=client):
        raise Forgotten
    if transaction.change(NOTE, client=client, number=number, ahead=FOR_GOOD):
        return push(transaction, jobs)
    ((last,),) = transaction.all(LAST, client=client)
    if last != number:
        raise Forgotten
    return [Pushed(job.id, "stored") for job in jobs]
