"""Words for tests of the SQLite driver."""

import os
import pathlib
import sqlite3
import sys
from collections.abc import Sequence
from typing import Any

from tenure.drivers.sql import SqliteQueue
from tenure.queue import Lease, Push, Pushed

Q = "q"
LONG = 60.0

ENV = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
"""What a child process needs to find the modules that this one found."""


def job(name: str, envelope: bytes = b"{}", **options: Any) -> Push:
    return Push(queue=options.pop("queue", Q), id=name, envelope=envelope, **options)


def numbered(count: int, *, start: int = 0, envelope: bytes = b"{}") -> list[Push]:
    return [job(f"j{number:06}", envelope) for number in range(start, start + count)]


async def push(queue: SqliteQueue, *jobs: Push) -> None:
    """Push, and see that each is stored."""
    assert outcomes(await queue.push(jobs)) == ["stored"] * len(jobs)


def outcomes(pushed: Sequence[Pushed]) -> list[str]:
    return [one.outcome for one in pushed]


async def claim(queue: SqliteQueue, limit: int = 1, **options: Any) -> list[Lease]:
    options = {"lease": LONG, "wait": 0, **options}
    return list((await queue.claim(options.pop("queues", [Q]), limit=limit, **options)).leases)


async def claim_one(queue: SqliteQueue, **options: Any) -> Lease:
    (lease,) = await claim(queue, **options)
    return lease


def ids(leases: Sequence[Lease]) -> list[str]:
    return [lease.id for lease in leases]


def ask(path: pathlib.Path, statement: str, *values: object) -> list[Any]:
    """Return what the file itself says."""
    connection = sqlite3.connect(path, timeout=30)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


COUNTED = """
SELECT name, ready, delayed, leased, failed, unreadable FROM tenure_queues ORDER BY number
"""
PRESENT = """
SELECT name,
       (SELECT count(*) FROM tenure_jobs WHERE queue = q.number AND shelf = q.line AND state IN (0, 1)),
       (SELECT count(*) FROM tenure_jobs WHERE queue = q.number AND shelf = q.line AND state = 2),
       (SELECT count(*) FROM tenure_jobs WHERE queue = q.number AND shelf = q.number AND state = 3),
       (SELECT count(*) FROM tenure_jobs JOIN tenure_failures USING (incarnation)
        WHERE queue = q.number AND shelf = q.number AND state = 4),
       (SELECT count(*) FROM tenure_unreadable AS u WHERE u.queue = q.number)
FROM tenure_queues AS q ORDER BY q.number
"""


def assert_consistent(path: pathlib.Path) -> None:
    """Every counter says what is there, nothing is out of place, and SQLite finds the file sound."""
    assert ask(path, "PRAGMA integrity_check") == [("ok",)]
    counted, present = ask(path, COUNTED), ask(path, PRESENT)
    assert counted == present, f"counted {counted}, present {present}"
    strays = """
    SELECT count(*) FROM tenure_jobs JOIN tenure_queues ON queue = number
    WHERE shelf NOT IN (line, number) AND NOT EXISTS
          (SELECT 1 FROM tenure_cleared AS c WHERE c.queue = number AND c.shelf = tenure_jobs.shelf)
    """
    assert ask(path, strays) == [(0,)]
    assert ask(
        path,
        "SELECT count(*) FROM tenure_failures WHERE incarnation NOT IN "
        "(SELECT incarnation FROM tenure_jobs WHERE state = 4)",
    ) == [(0,)]
    assert ask(
        path,
        "SELECT count(*) FROM tenure_progress WHERE incarnation NOT IN "
        "(SELECT incarnation FROM tenure_jobs WHERE state = 3)",
    ) == [(0,)]
