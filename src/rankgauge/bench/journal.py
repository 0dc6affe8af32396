"""The journal of a run: one line an answer, appended as it comes, so that nothing answered is lost.

A journal is a folder of two files. ``answers.jsonl`` is only ever appended to, one write a line: a
process that is killed loses the queries in flight and nothing else, and a line that it was writing
is cut off when the journal is opened again. ``run.json`` says what was asked of whom; it is
replaced whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

from rankgauge.collection import Query
from rankgauge.errors import InputError
from rankgauge.retriever import Hits

__all__ = ["Answer", "Journal", "query_key"]

ANSWERS, HEAD = "answers.jsonl", "run.json"
_FORMAT = 1
_SYNC_EVERY = 1.0  # seconds: what a loss of power may cost; a killed process loses none of it
_SAID = 500


class Answer(NamedTuple):
    """What came of asking one query.

    Attributes:
        query: Its id.
        key: What the query is, by id and content: a hash of both.
        hits: What was retrieved; None if there is no usable answer.
        error: What went wrong, empty if nothing did.
        kind: ``""`` if nothing went wrong, else ``error`` (the retriever raised), ``timeout`` or
            ``answer`` (what it returned is no ranking).
        seconds: How long the last attempt took; of a batch, each query's share of it.
        attempts: How often it was asked.
    """

    query: str
    key: str
    hits: Hits | None
    error: str = ""
    kind: str = ""
    seconds: float = 0.0
    attempts: int = 1


def query_key(query: Query) -> str:
    """What a query is, by id and content: 32 hexadecimal digits.

    Example:
        >>> query_key(Query("q1", "late fees")) == query_key(Query("q1", "late fee"))
        False
    """
    said = f"{query.id}\0{query.text}"
    if query.fields:
        said += "\0" + json.dumps(query.fields, sort_keys=True, default=str)
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _line(answer: Answer) -> bytes:
    hits = answer.hits
    row: dict[str, Any] = {
        "query": answer.query, "key": answer.key, "seconds": round(answer.seconds, 7)
    }  # fmt: skip
    if answer.attempts != 1:
        row["attempts"] = answer.attempts
    if hits is None:
        row["kind"] = answer.kind
        row["error"] = answer.error[:_SAID]
    else:
        row["ids"] = hits.ids
        if hits.scored:
            row["scores"] = hits.scores
        if hits.repeated:
            row["repeated"] = hits.repeated
        if hits.beyond:
            row["beyond"] = hits.beyond
        if hits.ascending:
            row["ascending"] = True
    return _encode(row).encode("utf-8", "backslashreplace") + b"\n"


def _answer(row: Mapping[str, Any]) -> Answer:
    hits = None
    ids = row.get("ids")
    if ids is not None:
        scores = row.get("scores")
        hits = Hits(
            ids,
            [float(n) for n in range(len(ids), 0, -1)] if scores is None else scores,
            scored=scores is not None,
            repeated=row.get("repeated", 0),
            beyond=row.get("beyond", 0),
            ascending=row.get("ascending", False),
        )
    return Answer(
        row["query"], row["key"], hits, row.get("error", ""), row.get("kind", ""),
        row["seconds"], row.get("attempts", 1),
    )  # fmt: skip


class Journal:
    """The answers of one retriever, kept as they come. Use it in a ``with``.

    Only one process writes a journal at a time. Of answers to the same query the last one counts.

    Attributes:
        folder: Where it lies.
        head: What ``run.json`` says.
    """

    def __init__(self, folder: Path, *, keeper: object = None) -> None:
        """Name a journal; nothing is made or read.

        Args:
            folder: Where it lies.
            keeper: What removes the folder when it goes; held as long as the journal is.
        """
        self.folder = folder
        self._keeper = keeper
        self.head: dict[str, Any] = {}
        self._file = -1
        self._lock = -1
        self._synced = 0.0
        self._resumed = False

    # ---- writing

    def open(self, *, fresh: bool = False) -> None:
        """Open it for writing, made if it is not there.

        Args:
            fresh: Begin anew: what it holds is forgotten.

        Raises:
            InputError: If another process is writing it, or the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.folder / ".lock")
            path = self.folder / ANSWERS
            if fresh:
                path.unlink(missing_ok=True)
                (self.folder / HEAD).unlink(missing_ok=True)
            mode = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._file = os.open(path, mode, 0o644)
            _mend_end(self._file)
        except OSError as error:
            self.close()
            raise _unwritable(self.folder, error) from None
        self.head = self._read_head()
        if "stamp" not in self.head:
            self.note(stamp=secrets.token_hex(8))
        self._resumed = os.fstat(self._file).st_size > 0
        self._synced = time.monotonic()

    def append(self, answer: Answer) -> None:
        """Keep an answer: it is with the operating system when this returns.

        Raises:
            InputError: If it cannot be written, as on a full disk; what was written before stays.
        """
        line = _line(answer)
        try:
            written = os.write(self._file, line)
            if written != len(line):  # a full disk; the torn line is cut off at the next opening
                os.write(self._file, line[written:])
            now = time.monotonic()
            if now - self._synced > _SYNC_EVERY:
                os.fsync(self._file)
                self._synced = now
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    def note(self, **facts: Any) -> None:
        """Write facts into ``run.json``, the whole of it or nothing."""
        self.head = {**self.head, "format": _FORMAT, **facts}
        target = self.folder / HEAD
        part = target.with_name(f".{secrets.token_hex(8)}.part")
        try:
            part.write_text(json.dumps(self.head, indent=1, ensure_ascii=False), encoding="utf-8")
            part.replace(target)
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)

    def close(self) -> None:
        """Bring everything to the disk and let others write."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
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

    def known(self, *, failed: bool) -> set[str]:
        """The keys of the queries that have an answer.

        Args:
            failed: Whether a failure counts as one.
        """
        good: dict[str, bool] = {}
        for row in self._rows():
            good[row["key"]] = "ids" in row
        return {key for key, fine in good.items() if fine or failed}

    def answers(self, wanted: Callable[[Answer], bool]) -> Iterator[Answer]:
        """The last answer to each query, in the order they came; one held in memory at a time.

        Args:
            wanted: Whether an answer is to a query as it is asked now.
        """
        last: dict[str, int] = {}
        if self._resumed:
            for number, row in enumerate(self._rows()):
                last[row["key"]] = number
        for number, row in enumerate(self._rows()):
            if last.get(row["key"], number) == number:
                answer = _answer(row)
                if wanted(answer):
                    yield answer

    def stamp(self) -> str:
        """What tells this beginning of the journal from another; empty if it was never begun."""
        return str(self._read_head().get("stamp", ""))

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        """The lines that can be read; a query whose line is damaged is as one never asked."""
        path = self.folder / ANSWERS
        if path.is_file():
            with path.open("rb") as stream:
                yield from filter(None, map(_row, stream))

    def _read_head(self) -> dict[str, Any]:
        try:
            found = json.loads((self.folder / HEAD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict):
            return {}
        if found.get("format", _FORMAT) != _FORMAT:
            self.close()
            raise InputError(
                f"the journal has format {found['format']!r}, wanted {_FORMAT}",
                where=str(self.folder),
                fix="use the version of rankgauge that wrote it, or name another store",
            )
        return found


def _row(line: bytes) -> Mapping[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(row, dict) and {"query", "key", "seconds"} <= row.keys()
    return row if whole and ("ids" in row or "error" in row) else None


def _mend_end(file: int) -> None:
    """Cut off a last line that was not written to its end."""
    size = os.fstat(file).st_size
    end = size
    while end > 0:
        start = max(0, end - 65536)
        os.lseek(file, start, os.SEEK_SET)
        place = os.read(file, end - start).rfind(b"\n")
        if place >= 0:
            end = start + place + 1
            break
        end = start
    if end < size:
        os.ftruncate(file, end)


def _locked(path: Path) -> int:
    """A lock that ends with the process; where the system has none of the kind, none is held."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        import fcntl
    except ImportError:
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise InputError(
            "another process is running this retriever over this collection",
            where=str(path.parent),
            fix="wait for it, or name another store",
        ) from None
    return file


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"the journal cannot be written: {error.strerror or error}", where=str(folder),
        fix="make room, or name a store in a folder that may be written to; then run it again: it "
        "goes on where it stopped",
    )  # fmt: skip
