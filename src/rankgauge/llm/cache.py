"""Replies and embeddings kept in a file of SQLite, so that none is paid twice.

The file holds replies, not the texts of requests, and is made with mode 0600: only its owner
may read it. Several processes may use it at once; each reply is one transaction, which a killed
process leaves whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankgauge.core.database import sqlite_error
from rankgauge.errors import InputError

# The number is that of the layout: a newer one begins anew.
_TABLE = "rankgauge_replies_1"
_PATIENCE = 60.0


def cache_key(request: Mapping[str, Any]) -> str:
    """SHA-256 of all that decides a reply, as JSON."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class ReplyCache:
    """A file of replies, opened for each use."""

    path: Path

    def find(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the replies that are kept under these keys."""
        found: dict[str, Any] = {}
        with self._open("read") as file:
            for key in keys:
                row = file.execute(f"SELECT reply FROM {_TABLE} WHERE key = ?", [key]).fetchone()  # noqa: S608 - a constant
                if row is not None:
                    found[key] = json.loads(row[0])
        return found

    def put(self, replies: Mapping[str, Any]) -> None:
        """Keep replies by key, in place of earlier ones: all or none."""
        # As ASCII: a reply may hold half of a surrogate pair.
        rows = [(key, json.dumps(reply)) for key, reply in replies.items()]
        with self._open("written") as file:
            file.execute("BEGIN IMMEDIATE")
            file.executemany(f"INSERT OR REPLACE INTO {_TABLE} VALUES (?, ?)", rows)  # noqa: S608 - a constant
            file.execute("COMMIT")

    @contextmanager
    def _open(self, done: str) -> Iterator[sqlite3.Connection]:
        where = str(self.path)
        try:
            if not self.path.exists():
                self._make_file()
            with closing(
                sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            ) as file:
                file.execute("PRAGMA synchronous = FULL")
                self._make_table(file)
                yield file
        except sqlite3.Error as error:
            raise sqlite_error(
                error, done, store="cache", where=where, patience=_PATIENCE
            ) from None
        except OSError as error:
            raise InputError(
                f"cannot be {done}: {error.strerror}", where=where,
                fix="check the path, and that its folder is writable",
            ) from None  # fmt: skip

    def _make_file(self) -> None:
        """Make an empty file for its owner only; SQLite gives its journal the same mode.

        It is closed before it gets its name: a process that closes a file loses the locks of all
        its other connections to it.
        """
        part = self.path.with_name(f".{secrets.token_hex(8)}.part")
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with suppress(FileExistsError):
                os.link(part, self.path)
        finally:
            part.unlink()

    def _make_table(self, file: sqlite3.Connection) -> None:
        names = {row[0] for row in file.execute("SELECT name FROM sqlite_master")}
        other = next(
            (name for name in names if not name.startswith(("rankgauge_replies", "sqlite_"))), None
        )
        if other is not None:
            raise InputError(
                f"this is another kind of database: it contains {other!r:.60}",
                where=str(self.path), fix="name another file for the cache",
            )  # fmt: skip
        if _TABLE not in names:
            file.execute(
                f"CREATE TABLE IF NOT EXISTS {_TABLE} "
                "(key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID"
            )
