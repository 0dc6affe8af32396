"""Journal of a run: one line per response, appended immediately.

A journal is a folder with two files. ``responses.jsonl`` is append-only, with one write per line: a
killed process loses only the queries in flight, and an incomplete last line is truncated when the
journal is opened again. ``run.json`` describes the run and is replaced atomically. Each line and
``run.json`` have a checksum; damaged data is ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import time
import weakref
import zlib
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

from rankgauge.core.files import lock_file, write_atomically
from rankgauge.core.text import many
from rankgauge.corpus.collection import Query
from rankgauge.errors import InputError
from rankgauge.retrievers.hits import Hits

RESPONSES, HEAD = "responses.jsonl", "run.json"
_EARLIER = "responses-earlier.jsonl"
_FORMAT = 3
_TAIL = b',"sum":"%08x"}\n'
_TAIL_LENGTH = len(_TAIL % 0)
_FLAWS = ("repeated", "beyond", "ascending")
_SYNC_EVERY = 1.0  # seconds of responses that a power failure may lose; a killed process loses none
_MAX_ERROR = 500


class Response(NamedTuple):
    """The response to one query.

    Attributes:
        query: The query id.
        key: A hash of the id and the content of the query.
        hits: The documents retrieved; None if the response is invalid.
        error: The error message; empty without an error.
        kind: ``""`` without an error; ``error`` (the retriever raised an exception), ``timeout``,
            or ``response`` (the result is not a ranking).
        seconds: Duration of the last attempt, divided by the number of queries of a batch.
        attempts: Number of attempts.
    """

    query: str
    key: str
    hits: Hits | None
    error: str = ""
    kind: str = ""
    seconds: float = 0.0
    attempts: int = 1


def query_key(query: Query) -> str:
    """Return a hash of the id and content of a query: 32 hexadecimal digits.

    Example:
        >>> query_key(Query("q1", "late fees")) == query_key(Query("q1", "late fee"))
        False
    """
    message = f"{query.id}\0{query.text}"
    if query.fields:
        message += "\0" + json.dumps(query.fields, sort_keys=True, default=str)
    return blake2b(message.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def query_keys(queries: Mapping[str, Query]) -> set[tuple[str, str]]:
    """Return the id and hash of each query, which a response repeats."""
    return {(query.id, query_key(query)) for query in queries.values()}


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _line(response: Response) -> bytes:
    hits = response.hits
    row: dict[str, Any] = {"query": response.query, "key": response.key, "seconds": round(response.seconds, 7)}
    if response.attempts != 1:
        row["attempts"] = response.attempts
    if hits is None:
        row |= {"kind": response.kind, "error": response.error[:_MAX_ERROR]}
    else:
        row["ids"] = hits.ids
        if hits.scored:
            row["scores"] = hits.scores
        row |= {name: value for name in _FLAWS if (value := getattr(hits, name))}
    body = _encode(row).encode("utf-8", "backslashreplace")[:-1]
    return body + _TAIL % zlib.crc32(body)


def _response(row: Mapping[str, Any]) -> Response:
    hits, ids, scores = None, row.get("ids"), row.get("scores")
    if ids is not None:
        flaws = {name: row[name] for name in _FLAWS if name in row}
        ranks = [float(n) for n in range(len(ids), 0, -1)] if scores is None else scores
        hits = Hits(ids, ranks, scored=scores is not None, **flaws)
    return Response(
        row["query"],
        row["key"],
        hits,
        row.get("error", ""),
        row.get("kind", ""),
        row["seconds"],
        row.get("attempts", 1),
    )


@dataclass(eq=False)
class Journal:
    """Context manager that stores the responses of one retriever immediately.

    Only one process can write to a journal at a time. The last response to a query counts.

    Attributes:
        folder: The folder; nothing is created or read before it is opened.
        keeper: The object that removes a temporary folder when it is garbage collected.
        head: The contents of ``run.json``.
        notes: Warnings about damaged data found when the journal was opened.
        resumed: Whether the journal contained responses when it was opened.
    """

    folder: Path
    keeper: object = None
    head: dict[str, Any] = field(default_factory=dict, init=False)
    notes: list[str] = field(default_factory=list, init=False)
    resumed: bool = field(default=False, init=False)
    _file: int = field(default=-1, init=False)
    _lock: int = field(default=-1, init=False)
    _synced: float = field(default=0.0, init=False)

    # ---- writing

    def open(self, *, fresh: bool = False) -> None:
        """Open the journal for writing, creating it if missing; ``fresh`` discards its content."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock_file(self.folder / ".lock")
            _JOURNALS.add(self)
            self.notes.clear()
            self.head = self._read_head()
            if fresh:
                for name in (RESPONSES, HEAD, _EARLIER):
                    (self.folder / name).unlink(missing_ok=True)
                self.head = {}
            elif not self.head and (self.folder / HEAD).exists():
                self.notes.append(
                    f"WARNING: {self.folder / HEAD} is damaged: times and costs of earlier responses are unknown"
                )
            self._open_responses()
        except OSError as error:
            self.close()
            raise _unwritable(self.folder, error) from None
        if "stamp" not in self.head:
            self.note(stamp=secrets.token_hex(8))
        self.resumed = os.fstat(self._file).st_size > 0
        self._synced = time.monotonic()

    def _open_responses(self) -> None:
        """Open the file of responses for appending, without its damaged lines."""
        path = self.folder / RESPONSES
        whole = lines = torn = 0
        if path.exists():
            with path.open("rb") as stream:
                for line in stream:
                    lines += 1
                    whole += self._row(line) is not None
                    torn = not line.endswith(b"\n")  # the last line of a killed process
        damaged = lines - whole - torn
        if whole < lines:
            with path.open("rb") as stream, write_atomically(path) as kept:
                kept.writelines(line for line in stream if self._row(line) is not None)
        if damaged:
            self.notes.append(
                f"WARNING: {many(damaged, 'damaged line')} in {path}: "
                + ("its query is" if damaged == 1 else "their queries are")
                + " run again"
            )
        mode = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, mode, 0o644)

    def set_aside(self) -> None:
        """Start an empty journal, and keep the earlier responses for :meth:`take_back`."""
        try:
            self._add_to_earlier()
            os.ftruncate(self._file, 0)
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        self.head, self.resumed = {}, False
        self.note(stamp=secrets.token_hex(8))

    def take_back(self) -> None:
        """Restore the responses that were set aside, followed by the newer ones."""
        earlier = self.folder / _EARLIER
        if not earlier.exists():
            return
        try:
            self._add_to_earlier()
            os.close(self._file)
            self._file = -1
            earlier.replace(self.folder / RESPONSES)
            self._open_responses()
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        self.resumed = os.fstat(self._file).st_size > 0

    def _add_to_earlier(self) -> None:
        path, earlier = self.folder / RESPONSES, self.folder / _EARLIER
        with path.open("rb") as stream, earlier.open("ab") as kept:
            shutil.copyfileobj(stream, kept)
            kept.flush()
            os.fsync(kept.fileno())

    def forget_earlier(self) -> None:
        """Delete the responses that were set aside."""
        with contextlib.suppress(OSError):
            (self.folder / _EARLIER).unlink(missing_ok=True)

    def append(self, response: Response) -> None:
        """Append a response; when this returns, the operating system has it."""
        line = _line(response)
        try:
            written = os.write(self._file, line)
            if written != len(line):  # full disk; truncated at the next opening
                os.write(self._file, line[written:])
            now = time.monotonic()
            if now - self._synced > _SYNC_EVERY:
                os.fsync(self._file)
                self._synced = now
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    def note(self, **facts: Any) -> None:
        """Update ``run.json`` atomically with these facts."""
        self.head = {**self.head, "format": _FORMAT, **facts}
        text = json.dumps({**self.head, "sum": _head_sum(self.head)}, indent=1)
        with write_atomically(self.folder / HEAD) as stream:
            stream.write(text.encode())

    def close(self, *, sync: bool = True) -> None:
        """Close the journal and release its lock; with ``sync``, flush it to disk first."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                if sync:
                    os.fsync(self._file)
            os.close(self._file)
        if self._lock >= 0:
            os.close(self._lock)
        self._file = self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- reading

    def known(self, *, failed: bool) -> set[tuple[str, str]]:
        """Return the id and key of each query with a response; failures count if ``failed``."""
        good = {(row["query"], row["key"]): "ids" in row for row in self._rows()}
        return {query for query, fine in good.items() if fine or failed}

    def responses(self, keys: Container[tuple[str, str]]) -> Iterator[Response]:
        """Yield the last response to each query with one of these keys, in order of arrival."""
        last: dict[tuple[str, str], int] = {}
        if self.resumed:
            for number, row in enumerate(self._rows()):
                last[row["query"], row["key"]] = number
        for number, row in enumerate(self._rows()):
            key = row["query"], row["key"]
            if key in keys and last.get(key, number) == number:
                yield _response(row)

    def stamp(self) -> str:
        """Return the identity of the current content; empty if the journal was never started."""
        return str(self._read_head().get("stamp", ""))

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield the undamaged lines; a query with a damaged line counts as not sent."""
        path = self.folder / RESPONSES
        if path.is_file():
            with path.open("rb") as stream:
                yield from filter(None, map(self._row, stream))

    def _row(self, line: bytes) -> Mapping[str, Any] | None:
        """Return a parsed line; None if it is damaged."""
        body = line[:-_TAIL_LENGTH]
        if line[-_TAIL_LENGTH:] != _TAIL % zlib.crc32(body):
            return None
        try:
            row = json.loads(body + b"}")
        except (ValueError, RecursionError):
            return None
        return row if isinstance(row, dict) and "query" in row else None

    def _read_head(self) -> dict[str, Any]:
        """Return the contents of ``run.json``; empty if it is damaged or missing.

        Checksums of other formats are unknown and not verified.
        """
        try:
            head = json.loads((self.folder / HEAD).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(head, dict) or type(head.get("format")) is not int:
            return {}
        checksum = head.pop("sum", None)
        # A format number changed by a damaged bit is not another format.
        if (checksum == _head_sum(head)) != (head["format"] == _FORMAT):
            return {}
        if head["format"] != _FORMAT:
            self.close()
            raise InputError(
                f"the journal has format {head['format']!r}, expected {_FORMAT}",
                where=str(self.folder),
                fix="use the version of rankgauge that wrote it, or another store",
            )
        return head


def _head_sum(head: Mapping[str, Any]) -> str:
    body = json.dumps({**head, "format": _FORMAT}, sort_keys=True)
    return f"{zlib.crc32(body.encode()):08x}"


def _lock_file(path: Path) -> int:
    """Lock a file until the process ends."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    if not lock_file(file):
        os.close(file)
        raise InputError(
            "another process is running this retriever on this collection",
            where=str(path.parent),
            fix="wait for it, or use another store",
        )
    return file


# Open journals of this process. A forked child inherits their files and locks, which would outlive
# a killed parent: the child closes them and writes no journal.
_JOURNALS: weakref.WeakSet[Journal] = weakref.WeakSet()


def _close_in_child() -> None:
    for journal in list(_JOURNALS):
        journal.close(sync=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"the journal cannot be written: {error.strerror or error}",
        where=str(folder),
        fix="free space, or use a store in a writable folder; then run it again: it continues where it stopped",
    )
