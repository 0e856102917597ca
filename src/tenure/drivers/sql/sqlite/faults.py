"""What SQLite's errors mean to a caller. No message holds a value, so none holds a payload."""

import sqlite3
from typing import Final

from tenure.errors import ConnectionFailed, OutcomeUnknown, StoreError, StoreRefused

_REFUSALS: Final = {
    sqlite3.SQLITE_BUSY: ("BUSY", "the file stayed locked by another process until the deadline; try again"),
    sqlite3.SQLITE_LOCKED: ("BUSY", "the file stayed locked until the deadline; try again"),
    sqlite3.SQLITE_PROTOCOL: ("BUSY", "too many processes raced for the file's lock; try again"),
    sqlite3.SQLITE_FULL: ("FULL", "the disk, or the size that the file may have, is full; make room"),
    sqlite3.SQLITE_READONLY: ("READONLY", "the file is read-only for this process"),
    sqlite3.SQLITE_IOERR: ("IOERR", "reading or writing the file failed; look at the disk and its file system"),
    sqlite3.SQLITE_NOMEM: ("NOMEM", "there is no memory left"),
    sqlite3.SQLITE_TOOBIG: ("TOOBIG", "a value is larger than SQLite takes"),
}
_UNOPENABLE: Final = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_BROKEN: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def translated(error: sqlite3.Error, path: str) -> StoreError:
    """Return what to raise for an error before the commit: nothing was written."""
    code = primary(error)
    if code in _REFUSALS:
        return StoreRefused(*_REFUSALS[code])
    if code in _UNOPENABLE:
        return ConnectionFailed(f"the SQLite file {path} cannot be opened ({name(error)}); nothing was sent")
    if code in _BROKEN:
        return StoreError(
            f"the SQLite file {path} is damaged or no database ({name(error)}); nothing was written; restore a copy, "
            "or move the file away to begin with an empty one"
        )
    return StoreError(f"SQLite failed on {path} ({name(error)}); nothing was written")


def translated_commit(error: sqlite3.Error, path: str) -> StoreError:
    """Return what to raise for an error of the commit itself."""
    if primary(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL}:
        return translated(error, path)  # both are found out before the commit record is written
    return OutcomeUnknown(f"the commit to the SQLite file {path} failed ({name(error)}); it may or may not be there")


def is_locked(error: sqlite3.Error) -> bool:
    """Tell whether another connection has the file locked, so that it is worth to try again."""
    return primary(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


def primary(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code, or that of an error of the Python module itself."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
    return code & 0xFF


def name(error: sqlite3.Error) -> str:
    """Return the name of SQLite's result code."""
    return str(getattr(error, "sqlite_errorname", type(error).__name__))
