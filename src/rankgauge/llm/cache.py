"""Cache of replies and embeddings in an SQLite file.

The file contains replies, not the texts of requests, and is created with mode 0600 (readable only
by its owner). Several processes may use it at once; each reply is written in one transaction.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from rankgauge.core.files import create_privately
from rankgauge.core.sqlite import sqlite_error
from rankgauge.errors import InputError

Reply = TypeVar("Reply")

# The number is the version of the layout; a new version starts with an empty table.
_TABLE = "rankgauge_replies_1"
_CLAIMS = "rankgauge_replies_claims_1"
_PATIENCE = 60.0
# Seconds between renewals of a claim, until a claim without renewal expires, and between checks
# of the claims of others.
_RENEWAL, _LEASE, _POLL = 1.0, 6.0, 0.2


def cache_key(request: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the JSON of everything that determines a reply."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


class ReplyCache:
    """File of replies, which is opened for each use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._owner = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._claiming = 0
        self._finished = threading.Event()

    def find(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the stored replies with these keys."""
        query = f"SELECT key, reply FROM {_TABLE} WHERE key IN (SELECT value FROM json_each(?))"  # noqa: S608 - a constant
        with self._open("read") as file:
            rows = file.execute(query, [json.dumps(list(keys))])
            return {key: json.loads(reply) for key, reply in rows}

    def put(self, replies: Mapping[str, Any]) -> None:
        """Store replies by key in one transaction, replacing earlier replies and ending claims."""
        # ASCII, because a reply may contain a lone surrogate.
        rows = [(key, json.dumps(reply)) for key, reply in replies.items()]
        with self._writing() as file:
            file.executemany(f"INSERT OR REPLACE INTO {_TABLE} VALUES (?, ?)", rows)  # noqa: S608 - a constant
            file.executemany(f"DELETE FROM {_CLAIMS} WHERE key = ?", [(key,) for key in replies])  # noqa: S608 - a constant

    def obtain(
        self,
        keys: Iterable[str],
        find: Callable[[list[str]], Mapping[str, Reply]],
        request: Callable[[list[str]], Mapping[str, Reply]],
        wait: Callable[[float], object] = time.sleep,
    ) -> dict[str, Reply]:
        """Return the reply of each key, requesting those that nobody has requested.

        Each key is claimed before its reply is requested. The replies of keys that another thread
        or process has claimed are awaited; if that thread or process fails or ends, this one
        requests them.

        Args:
            keys: The keys.
            find: Function that returns the stored replies that are usable.
            request: Function that requests and stores the replies of keys.
            wait: Function that waits for a number of seconds, or raises an error.
        """
        keys = list(keys)
        replies = dict(find(keys))  # without claims, which are written
        while missing := [key for key in keys if key not in replies]:
            with self._claim(missing) as mine:
                replies |= find(missing)
                if some := [key for key in mine if key not in replies]:
                    replies |= request(some)
            if not mine:
                wait(_POLL)
        return replies

    @contextmanager
    def _claim(self, keys: Iterable[str]) -> Iterator[list[str]]:
        """Claim the unclaimed keys for the duration of the block, and yield them.

        No claim is awaited within the block, so that processes cannot wait for each other.
        """
        # A claim from the future has expired, too: the clock was set back.
        claim = (
            f"INSERT INTO {_CLAIMS} VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE "  # noqa: S608 - a constant
            "SET owner = excluded.owner, renewed = excluded.renewed "
            "WHERE abs(renewed - excluded.renewed) > ?"
        )
        row = (self._owner, time.time(), _LEASE)
        with self._writing() as file:
            mine = [key for key in keys if file.execute(claim, (key, *row)).rowcount > 0]
        if not mine:
            yield mine
            return
        with self._lock:
            self._claiming += 1
            if self._claiming == 1:
                self._finished = threading.Event()
                threading.Thread(target=self._renew, args=[self._finished], daemon=True).start()
        try:
            yield mine
        finally:
            with self._lock:
                self._claiming -= 1
                if not self._claiming:
                    self._finished.set()
            # Claims that cannot be deleted expire.
            with suppress(InputError), self._writing() as file:
                rows = [(key, self._owner) for key in mine]
                file.executemany(f"DELETE FROM {_CLAIMS} WHERE key = ? AND owner = ?", rows)  # noqa: S608 - a constant

    def _renew(self, finished: threading.Event) -> None:
        """Renew the claims of this object until they are deleted."""
        while not finished.wait(_RENEWAL):
            with suppress(InputError), self._writing() as file:
                file.execute(
                    f"UPDATE {_CLAIMS} SET renewed = ? WHERE owner = ?",  # noqa: S608 - a constant
                    [time.time(), self._owner],
                )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._open("written") as file:
            file.execute("BEGIN IMMEDIATE")
            yield file
            file.execute("COMMIT")

    @contextmanager
    def _open(self, done: str) -> Iterator[sqlite3.Connection]:
        where = str(self.path)
        try:
            if not self.path.exists():
                with suppress(FileExistsError), create_privately(self.path):
                    pass
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)) as file:
                file.execute("PRAGMA synchronous = FULL")
                self._make_tables(file)
                yield file
        except sqlite3.Error as error:
            raise sqlite_error(error, done, store="cache", where=where, patience=_PATIENCE) from None
        except OSError as error:
            raise InputError(
                f"cannot be {done}: {error.strerror}",
                where=where,
                fix="check the path, and that its folder is writable",
            ) from None

    def _make_tables(self, file: sqlite3.Connection) -> None:
        names = {row[0] for row in file.execute("SELECT name FROM sqlite_master")}
        other = next((name for name in names if not name.startswith(("rankgauge_replies", "sqlite_"))), None)
        if other is not None:
            raise InputError(
                f"this is another kind of database: it contains {other!r:.60}",
                where=str(self.path),
                fix="name another file for the cache",
            )
        for table, columns in (
            (_TABLE, "reply TEXT NOT NULL"),
            (_CLAIMS, "owner TEXT NOT NULL, renewed REAL NOT NULL"),
        ):
            file.execute(f"CREATE TABLE IF NOT EXISTS {table} (key TEXT PRIMARY KEY, {columns}) WITHOUT ROWID")
