"""Looks at the file, its directory and its disk for what would break a promise; changes nothing."""

import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tenure.drivers.sql.sqlite import faults, schema
from tenure.operating import Finding, Severity

LEAST_FREE: Final = 64 << 20
LITTLE_FREE: Final = 1 << 30
"""Bytes on the disk."""
LARGE_LOG: Final = 256 << 20
"""Bytes of the write-ahead log, four times what it is cut back to."""
LONGEST_CHECK: Final = 10.0
"""Seconds that the look through the whole file may take."""
REMOTE: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs", "fuse.glusterfs", "lustre"}
)
"""File systems that other hosts may write to: their locks and shared memory do not carry SQLite's log."""
MOUNTS: Final = Path("/proc/self/mountinfo")
_ORDER: Final = {severity: place for place, severity in enumerate(Severity)}


def examine(path: Path, mounts: Path = MOUNTS) -> list[Finding]:
    """Return what was found about the file, the serious first."""
    found = [*_disk(path, mounts), *(_file(path) if path.exists() else _no_file(path))]
    return sorted(found, key=lambda finding: _ORDER[finding.severity])


def _finding(severity: Severity, check: str, found: str, risk: str, remedy: str) -> Finding:
    return Finding(severity=severity, check=check, found=found, risk=risk, remedy=remedy)


# ------------------------------------------------------------------------------------------------------------ the disk


def _disk(path: Path, mounts: Path) -> Iterator[Finding]:
    place = next((parent for parent in path.parents if parent.exists()), path.parent)
    free = shutil.disk_usage(place).free
    if free < LITTLE_FREE:
        yield _finding(
            Severity.SERIOUS if free < LEAST_FREE else Severity.WARNING,
            "disk",
            f"{free >> 20:,} MiB are free on the disk of the file",
            "when it is full, every push, claim and settlement is refused (FULL)",
            "make room, or move the file to a larger disk",
        )
    kind = file_system(path, mounts)
    if kind in REMOTE:
        yield _finding(
            Severity.SERIOUS,
            "filesystem",
            f"the file lies on a network file system ({kind})",
            "locks that fail there let two workers run one job, or damage the file",
            "choose a path on a local disk; for several hosts use Redis",
        )


def file_system(path: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the kind of file system that the path is on, or None where the system does not tell."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return None
    best, kind = "", None
    for line in lines:
        fields, _, rest = line.partition(" - ")
        words = fields.split()
        if len(words) < 5 or not rest:
            continue
        point = words[4].replace("\\040", " ")
        # The last of several mounts at one point is the one that is seen.
        if len(point) >= len(best) and path.is_relative_to(point):
            best, kind = point, rest.split()[0]
    return kind


# ------------------------------------------------------------------------------------------------------------ the file


def _no_file(path: Path) -> Iterator[Finding]:
    place = next((parent for parent in path.parents if parent.exists()), path.parent)
    if os.access(place, os.W_OK | os.X_OK):
        yield _finding(
            Severity.NOTE,
            "file",
            f"there is no file {path} yet",
            "none: the first push or worker makes it",
            "nothing, if the path is right",
        )
    else:
        yield _finding(
            Severity.SERIOUS,
            "file",
            f"there is no file {path}, and this user may not make one in {place}",
            "nothing can be pushed or claimed",
            "let this user write to the directory, or choose another path",
        )


def _file(path: Path) -> Iterator[Finding]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield _finding(
            Severity.WARNING,
            "permissions",
            f"other users of this host may use the file (mode {mode:o})",
            "they can read the arguments of jobs, or change them",
            f"chmod 600 {path}, unless workers run as several users of one group",
        )
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        what = "the file" if not os.access(path, os.W_OK) else "its directory, where the write-ahead log lies"
        yield _finding(
            Severity.SERIOUS,
            "permissions",
            f"this user may not write to {what}",
            "nothing can be pushed, claimed or settled by it",
            "run as the owner of the file, or let this user write to both",
        )
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size > LARGE_LOG:
        yield _finding(
            Severity.WARNING,
            "log",
            f"the write-ahead log has grown to {log.stat().st_size >> 20:,} MiB",
            "a program that reads the file without an end keeps it from being cut back, until the disk is full",
            "find and end the long reader (a backup, a shell with an open transaction)",
        )
    yield from _contents(path)


def _contents(path: Path) -> Iterator[Finding]:
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=5, isolation_level=None)
    except sqlite3.Error as error:
        yield _broken(error)
        return
    try:
        yield from _schema(connection)
        yield from _damage(connection)
    except sqlite3.Error as error:
        yield _broken(error)
    finally:
        connection.close()


def _broken(error: sqlite3.Error) -> Finding:
    return _finding(
        Severity.SERIOUS,
        "integrity",
        f"the file cannot be read ({faults.name(error)})",
        "nothing can be pushed, claimed or settled, and jobs in it may be lost",
        "stop the workers and restore a copy, or recover what can be read with `sqlite3 FILE .recover`",
    )


def _schema(connection: sqlite3.Connection) -> Iterator[Finding]:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if names and "tenure_queues" not in names:
        yield _finding(
            Severity.SERIOUS,
            "schema",
            "the file belongs to another program",
            "tenure refuses to write to it",
            "choose another path",
        )
        return
    if version > schema.VERSION:
        yield _finding(
            Severity.SERIOUS,
            "schema",
            f"the file has schema version {version}, and this tenure knows versions up to {schema.VERSION}",
            "this tenure refuses to use it",
            "upgrade tenure here to the version that workers run",
        )
    if names and 0 < version < schema.VERSION:
        yield _finding(
            Severity.NOTE,
            "schema",
            f"the file has schema version {version}, which this tenure brings to {schema.VERSION} at its next use",
            "older versions of tenure refuse the file from then on",
            "upgrade all programs that use the file together",
        )
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if names and mode != "wal":
        yield _finding(
            Severity.WARNING,
            "journal",
            f"the journal mode is {mode}, not wal",
            "some other program changed it; readers and writers then wait for each other",
            "nothing for now (tenure sets it back at its next use), but find the program",
        )


def _damage(connection: sqlite3.Connection) -> Iterator[Finding]:
    until = time.monotonic() + LONGEST_CHECK
    connection.set_progress_handler(lambda: int(time.monotonic() > until), 100_000)
    try:
        rows = connection.execute("PRAGMA quick_check(3)").fetchall()
    except sqlite3.OperationalError as error:
        if faults.primary(error) != sqlite3.SQLITE_INTERRUPT:
            raise
        yield _finding(
            Severity.NOTE,
            "integrity",
            f"the file is too large to be checked in {LONGEST_CHECK:g} s, and no damage was seen",
            "damage in the rest of it is not known",
            "check it at leisure: sqlite3 FILE 'PRAGMA quick_check'",
        )
        return
    if [row[0] for row in rows] != ["ok"]:
        yield _finding(
            Severity.SERIOUS,
            "integrity",
            "the file is damaged (PRAGMA quick_check)",
            "jobs may be lost, or calls fail",
            "stop the workers and restore a copy, or recover what can be read with `sqlite3 FILE .recover`",
        )
