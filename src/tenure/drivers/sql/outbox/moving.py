"""The steps by which rows leave the outbox, each one transaction.

``begin`` records which rows a call carries, and its number, before it is sent; ``finish`` removes them once its answer
is in. Whoever finds a recorded call repeats that very call: the store that it goes to knows its number. Each step
changes nothing when another relay has gone on meanwhile, so that no lock is needed for what is promised.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from tenure.drivers.sql.outbox import statements
from tenure.drivers.sql.outbox.lines import Line, Sending, Waiting
from tenure.drivers.sql.parts import MOST_BYTES, MOST_JOBS
from tenure.drivers.sql.server.texts import Statement
from tenure.drivers.sql.units import SECOND
from tenure.naming import new_token
from tenure.queue import Push

LEAST: Final = 0.001
"""Seconds after which a job expires whose time has passed in the outbox: it is stored, and fails as expired."""


class Desk(Protocol):
    """A transaction on the outbox's tables."""

    @property
    def now(self) -> int:
        """The time by the database's clock, in microseconds since 1970."""
        ...

    @property
    def seen(self) -> int:
        """What a line's last call is marked with."""
        ...

    def all(self, statement: Statement, /, **values: Any) -> list[Any]:
        """Return the rows of a statement."""
        ...

    def change(self, statement: Statement, /, **values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        ...


def lines(desk: Desk) -> list[Line]:
    """Return the lines in which jobs wait, sorted: a look into an index for each."""
    return list(_lines(desk))


def lag(desk: Desk) -> list[Waiting]:
    """Return what waits in each line."""
    found = []
    for line in _lines(desk):
        ((jobs, created),) = desk.all(statements.WAITING, **line.values)
        found.append(Waiting(line, jobs, max(0, desk.now - created) / SECOND))
    return found


def begin(desk: Desk, line: Line) -> Sending | None:
    """Return the recorded call of a line that is to be repeated, or record the next one; None when nothing waits."""
    client, number, sent = _call(desk, line)
    if sent is not None:
        rows = msgspec.json.decode(bytes(sent), type=list[int])
        return _sending(desk, line, client, number, rows, repeated=True)
    rows = _next(desk, line)
    if not rows:
        return None
    # From the second on by the clock: a database that was restored to an earlier state uses no number twice.
    following = max(number + 1, desk.now) if number else 1
    _record(desk, line, (client, number), (client, following), rows)
    return _sending(desk, line, client, following, rows, repeated=False)


def renew(desk: Desk, line: Line, sending: Sending) -> bool:
    """Let a recorded call that its store cannot place be made by a new client; False when it is not ours any more."""
    client, number, sent = _call(desk, line)
    if sent is None or (client, number) != (sending.client, sending.number):
        return False
    _record(desk, line, (client, number), (new_token(), 1), sending.rows)
    return True


def finish(desk: Desk, line: Line, sending: Sending) -> bool:
    """Remove the rows of a call whose answer is in; False, and nothing removed, when it is not ours any more."""
    values = {**line.values, "client": sending.client, "number": sending.number, "seen": desk.seen}
    if not desk.change(statements.ANSWERED, **values):
        return False
    if sending.rows:
        desk.change(statements.REMOVE, ids=list(sending.rows))
    return True


def _lines(desk: Desk) -> Iterator[Line]:
    for namespace in _each(desk, statements.NEXT_NAMESPACE):
        for target in _each(desk, statements.NEXT_TARGET, namespace=namespace):
            for queue in _each(desk, statements.NEXT_QUEUE, namespace=namespace, target=target):
                yield Line(namespace, target, queue)


def _each(desk: Desk, following: Statement, **values: str) -> Iterator[str]:
    """Yield names in order, each by a look for the first one behind the last."""
    after: str | None = ""
    while after is not None:
        found = desk.all(following, **values, after=after)
        after = found[0][0] if found else None
        if after is not None:
            yield after


def _call(desk: Desk, line: Line) -> tuple[str, int, bytes | None]:
    found = desk.all(statements.FIND_CALL, **line.values)
    if not found:
        desk.change(statements.ADD_CALL, **line.values, client=new_token(), seen=desk.seen)
        found = desk.all(statements.FIND_CALL, **line.values)
    client, number, sent = found[0]
    return client, number, sent


def _record(desk: Desk, line: Line, before: tuple[str, int], now: tuple[str, int], rows: Sequence[int]) -> None:
    desk.change(
        statements.RECORD,
        **line.values,
        client=now[0],
        number=now[1],
        sent=msgspec.json.encode(rows),
        seen=desk.seen,
        client_before=before[0],
        number_before=before[1],
    )


def _next(desk: Desk, line: Line) -> list[int]:
    """Return the first rows of a line that go in one call: of one class of durability, as many as a call carries."""
    rows: list[int] = []
    first, size = None, 0
    for row, length, durability in desk.all(statements.SIZES, **line.values, limit=MOST_JOBS):
        first = durability if first is None else first
        if durability != first or (rows and size + length > MOST_BYTES):
            break
        rows.append(row)
        size += length
    return rows


def _sending(desk: Desk, line: Line, client: str, number: int, rows: Sequence[int], *, repeated: bool) -> Sending:
    found = desk.all(statements.ROWS, ids=list(rows)) if rows else []
    jobs = [_job(line.queue, desk.now, *row[1:]) for row in found]
    return Sending(client=client, number=number, rows=rows, jobs=jobs, repeated=repeated)


def _job(
    queue: str,
    now: int,
    job: str,
    priority: int,
    durability: int,
    crash_limit: int | None,
    due: int | None,
    expires: int | None,
    keep: int,
    unique: str | None,
    envelope: bytes,
) -> Push:
    return Push(
        queue=queue,
        id=job,
        envelope=bytes(envelope),
        delay=0.0 if due is None else max(0, due - now) / SECOND,
        priority=priority,
        crash_limit=crash_limit,
        expires_in=None if expires is None else max(LEAST, (expires - now) / SECOND),
        durability=durability,
        keep=keep / SECOND,
        unique=unique or "",
    )
