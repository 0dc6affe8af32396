"""Errors of SQLite files."""

from __future__ import annotations

import sqlite3

from rankgauge.errors import InputError, StorageError


def sqlite_error(error: sqlite3.Error, done: str, *, store: str, where: str, patience: float) -> InputError:
    """Return the error to raise for an SQLite error; `done` is ``read`` or ``written``."""
    text = f"cannot be {done}: {error}"
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return locked(store, where, patience)
        case sqlite3.SQLITE_NOTADB:
            text = "not an SQLite database"
            fix = f"name another file for the {store}"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            fix = "check that the file and its folder are writable"
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            fix = "check the disk; earlier records are unchanged"
        case _:
            return damaged(str(error), store, where)
    return StorageError(text, where=where, fix=fix)


def locked(store: str, where: str, patience: float) -> StorageError:
    """Return the error for a lock of another program."""
    return StorageError(
        f"another program is writing to this {store} and did not finish within {patience:g} seconds",
        where=where,
        fix="wait until it ends, then try again; nothing was written",
    )


def damaged(how: str, store: str, where: str) -> InputError:
    """Return the error for damaged content."""
    return InputError(f"this {store} is damaged: {how}", where=where, fix="restore an intact copy; nothing was changed")
