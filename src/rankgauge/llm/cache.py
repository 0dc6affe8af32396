"""Cache of replies and embeddings in an SQLite file.

The file contains replies, not the texts of requests, and is created with mode 0600 (readable only
by its owner). Several processes may use it at once; each reply is written in one transaction.
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

# The number is the version of the layout; a new version starts with an empty table.
_TABLE = "rankgauge_replies_1"
_PATIENCE = 60.0


def cache_key(request: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the JSON of everything that determines a reply."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class ReplyCache:
    """File of replies, which is opened for each use."""

    path: Path

    def find(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the stored replies with these keys."""
        found: dict[str, Any] = {}
        with self._open("read") as file:
            for key in keys:
                row = file.execute(f"SELECT reply FROM {_TABLE} WHERE key = ?", [key]).fetchone()  # noqa: S608 - a constant
                if row is not None:
                    found[key] = json.loads(row[0])
        return found

    def put(self, replies: Mapping[str, Any]) -> None:
        """Store replies by key in one transaction, replacing earlier replies."""
        # ASCII, because a reply may contain a lone surrogate.
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
        """Create an empty file readable only by its owner; SQLite gives its journal the same mode.

        The file is closed before it is renamed: closing a file releases the locks of all other
        connections of the process.
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
