"""Looks at a MySQL or MariaDB server for what would break a promise; changes nothing."""

import re
import time
from collections.abc import Iterator
from typing import Final

from tenure.drivers.sql.server.connection import Connection
from tenure.drivers.sql.server.findings import clocks, connections, finding, not_durable, one, tables
from tenure.drivers.sql.server.names import Names
from tenure.operating import Finding, Severity

SMALLEST_PACKET: Final = 4 * 1024 * 1024


def examine(connection: Connection, names: Names, durability: int) -> Iterator[Finding]:
    """Return what was found."""
    yield from _server(connection, durability)
    (clock,) = one(connection, "SELECT UNIX_TIMESTAMP(SYSDATE(6))")
    yield from clocks(float(clock), time.time())
    used = one(connection, "SHOW GLOBAL STATUS LIKE 'Threads_connected'")
    (most,) = one(connection, "SELECT @@max_connections")
    if used:
        yield from connections(int(used[1]), int(most))
    there = connection.run(
        "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = DATABASE()", {}
    )
    indexes = connection.run(
        "SELECT index_name FROM information_schema.statistics WHERE table_schema = DATABASE()", {}
    ).rows
    yield from tables((name for name, _ in there.rows), (name for (name,) in indexes), names, sequence=False)
    others = [name for name, engine in there.rows if name.startswith(names.prefix) and engine != "InnoDB"]
    if others:
        yield finding(
            Severity.SERIOUS,
            "engine",
            f"tables are not kept by InnoDB: {', '.join(sorted(others))}",
            "nothing is rolled back there, and two workers get one job",
            "ALTER TABLE … ENGINE = InnoDB",
        )


def _server(connection: Connection, durability: int) -> Iterator[Finding]:
    version, read_only, flush, log, packet, binlog = one(
        connection,
        "SELECT VERSION(), @@global.read_only, @@innodb_flush_log_at_trx_commit, @@log_bin, @@max_allowed_packet, "
        "@@binlog_format",
    )
    number = tuple(int(part) for part in re.findall(r"\d+", str(version))[:2])
    if number < ((10, 6) if "MariaDB" in str(version) else (8, 0)):
        yield finding(
            Severity.SERIOUS,
            "version",
            f"the server is {'.'.join(map(str, number))}",
            "it has no SKIP LOCKED or no JSON_TABLE: claims fail",
            "use MySQL 8 or MariaDB 10.6, or newer",
        )
    if int(read_only):
        yield finding(
            Severity.SERIOUS,
            "readonly",
            "the server takes no writes (a replica?)",
            "every push, claim and settlement is refused",
            "connect to the primary",
        )
    if int(flush) != 1:
        severity = Severity.SERIOUS if durability > 1 else Severity.WARNING
        yield not_durable(f"innodb_flush_log_at_trx_commit = {int(flush)}", severity, "after a crash of the host")
    if int(log) and str(binlog) == "STATEMENT":
        yield finding(
            Severity.SERIOUS,
            "binlog",
            "the server writes its log by statements",
            "READ COMMITTED, which claims need, refuses every write",
            "set binlog_format = ROW, or MIXED",
        )
    if int(packet) < SMALLEST_PACKET:
        yield finding(
            Severity.WARNING,
            "packet",
            f"max_allowed_packet is {int(packet) >> 10:,} KiB",
            "large pushes are refused (TOOBIG)",
            "raise it to 4 MiB at least",
        )
