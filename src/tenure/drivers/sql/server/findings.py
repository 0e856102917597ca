"""What a look at a database server finds, in the words of ``tenure.operating``."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from tenure.drivers.sql.server.connection import Connection
from tenure.drivers.sql.server.names import TABLES, Names
from tenure.errors import StoreError
from tenure.operating import Finding, Severity

FAR_APART: Final = 5.0
"""Seconds between this host's clock and the server's that are worth a word."""
FEW: Final = 20
"""Connections that should be left."""
_ORDER: Final = {severity: place for place, severity in enumerate(Severity)}


def finding(severity: Severity, check: str, found: str, risk: str, remedy: str) -> Finding:
    """Return one."""
    return Finding(severity=severity, check=check, found=found, risk=risk, remedy=remedy)


def ordered(found: Iterable[Finding]) -> list[Finding]:
    """Return them, the serious first."""
    return sorted(found, key=lambda one: _ORDER[one.severity])


def one(connection: Connection, text: str, **values: Any) -> tuple[Any, ...]:
    """Return the only row of a question, or nothing where the server does not let this user ask."""
    try:
        rows = connection.run(text, values).rows
    except StoreError:
        return ()
    return tuple(rows[0]) if rows else ()


def clocks(server: float, here: float) -> Iterator[Finding]:
    """Compare the server's clock with this host's."""
    apart = abs(server - here)
    if apart > FAR_APART:
        yield finding(
            Severity.WARNING,
            "clock",
            f"the server's clock and this host's are {apart:.0f} s apart",
            "none for leases and delays, which run on the server's; times in logs and on screens will not agree",
            "let both follow one time server",
        )


def connections(used: int, most: int) -> Iterator[Finding]:
    """See whether connections are left; a worker process takes up to seven."""
    if most - used < FEW:
        yield finding(
            Severity.WARNING,
            "connections",
            f"{used} of the server's {most} connections are taken",
            "workers and pushers that start now may be refused",
            "raise the limit, or put a pooler before the server",
        )


def tables(there: Iterable[str], indexes: Iterable[str], names: Names, *, sequence: bool) -> Iterator[Finding]:
    """Look for tables and indexes that are not there."""
    wanted = {f"{names.prefix}{name}" for name in TABLES if not (sequence and name == "numbers")}
    missing = sorted(wanted - set(there))
    if missing:
        yield finding(
            Severity.SERIOUS,
            "tables",
            f"tables are missing: {', '.join(missing)}",
            "nothing can be pushed, claimed or settled",
            "run `tenure migrate`",
        )
        return
    lost = sorted({f"{names.prefix}jobs_by_line", f"{names.prefix}jobs_by_id"} - set(indexes))
    if lost:
        yield finding(
            Severity.SERIOUS,
            "indexes",
            f"indexes are missing: {', '.join(lost)}",
            "every claim reads the whole backlog, or an id makes two jobs",
            "make them again, as `tenure migrate --sql` shows them",
        )


def not_durable(setting: str, severity: Severity, lost: str) -> Finding:
    """Tell that a commit that was answered may not be on the disk."""
    return finding(
        severity,
        "durability",
        f"the server runs with {setting}",
        f"{lost}, jobs that were accepted and settlements that were answered may be gone",
        "change the setting, unless that is meant",
    )
