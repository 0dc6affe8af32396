"""`EventLog`: a production log in Parquet files, queried with DuckDB."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from rankgauge.core.files import lock_file, read_text, write_atomically
from rankgauge.core.keyed_hash import keyed_hash
from rankgauge.core.libraries import library
from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError, RankgaugeError, StorageError
from rankgauge.production.events import COLUMNS, KINDS, TIMES, statement, stored
from rankgauge.rendering import Result, Table

MANIFEST = "manifest.json"
# Required columns of a Parquet file; other columns are NULL if missing.
REQUIRED_COLUMNS = ("event_id", "kind", "time", "question_id")

# As `COLUMNS`, except for times: DuckDB requires pytz for times with a time zone.
_VIEW = COLUMNS | {"time": "TIMESTAMP"}
# Columns of `questions`, one row per question: SQL type and description.
QUESTION_COLUMNS: Mapping[str, tuple[str, str]] = {
    "question_id": ("VARCHAR", "The question."),
    "user_id": ("VARCHAR", "The user; NULL if unknown."),
    "session_id": ("VARCHAR", "The session; NULL if unknown."),
    "cluster": ("VARCHAR", "The unit of clustering: user, else session, else question."),
    "time": ("TIMESTAMP", "The time of the question in UTC; if it was not logged, the earliest known time."),
    "day": ("DATE", "The day in UTC."),
    "arm": ("VARCHAR", "The arm of an experiment; NULL if none."),
    "text": ("VARCHAR", "The text of the question; NULL if unknown."),
    "attributes": ("MAP(VARCHAR, VARCHAR)", "Attributes of the question, else of any of its events."),
    "retrieved": ("BIGINT", "Documents in the longest ranking; NULL without a ranking."),
    "impressions": ("BIGINT", "Results shown."),
    "clicks": ("BIGINT", "Clicks on results."),
    "clicked_results": ("BIGINT", "Results with a click."),
    "first_click_rank": ("INTEGER", "The rank of the first click; NULL if unknown."),
    "click_rr": ("DOUBLE", "1 / the best clicked rank; NULL if unknown."),
    "answered": ("BOOLEAN", "Whether an answer was shown."),
    "abstained": ("BOOLEAN", "Whether the application abstained."),
    "answer_text": ("VARCHAR", "The last answer; NULL if unknown."),
    "answerable": ("BOOLEAN", "The last label; NULL without a label."),
    "citations_shown": ("BIGINT", "Citations shown."),
    "citations_clicked": ("BIGINT", "Citations with a click."),
    "thumbs_up": ("INTEGER", "1 if the last rating is up, else 0."),
    "thumbs_down": ("INTEGER", "1 if the last rating is down, else 0."),
    "handed_over": ("BOOLEAN", "Whether the conversation was handed to a person."),
    "preference": ("DOUBLE", "1 first, 0 tie, -1 second; NULL if none, or both bad."),
    "preference_label": ("VARCHAR", "The last preference as logged."),
    "latency_ms": ("DOUBLE", "Latency of the answer, else of the retrieval; NULL if unknown."),
    "next_question_seconds": ("DOUBLE", "Seconds until the next question of the session; NULL if none."),
    "next_text": ("VARCHAR", "The next question of the session; NULL if none or unknown."),
}


@dataclass(frozen=True)
class LogSummary(Result):
    """A summary of a log.

    Attributes:
        where: The path of the log.
        kinds: The number of events of each kind.
        questions: The number of questions.
        first: The time of the first event, or None.
        last: The time of the last event, or None.
    """

    where: str
    kinds: Mapping[str, int]
    questions: int
    first: datetime | None
    last: datetime | None

    def table(self) -> Table:
        """Return one row for each kind of event in the log."""
        rows = tuple((kind, count, KINDS.get(kind, "")) for kind, count in self.kinds.items())
        return Table(("event", "number", "meaning"), rows, title=self.summary())

    def summary(self) -> str:
        """Return the number and period of the questions."""
        if self.first is None or self.last is None:
            return f"{self.where}: no events"
        return (
            f"{self.where}: {many(self.questions, 'question')}, "
            f"{many(sum(self.kinds.values()), 'event')}, {self.first:%Y-%m-%d} to "
            f"{self.last:%Y-%m-%d}"
        )


class EventLog:
    """A production log: events in Parquet files.

    Args:
        path: A folder created by `import_log`, a Parquet file, or a glob pattern such as
            ``events/*.parquet``. The files have the columns of `COLUMNS`; only ``event_id``,
            ``kind``, ``time``, and ``question_id`` are required.
        files: The Parquet files of the log; default: those at `path`.

    Raises:
        InputError: If the log does not exist.
        FormatError: If a file is not Parquet, or lacks a column.
        MissingExtra: If DuckDB is not installed.

    Example:
        >>> import duckdb, tempfile
        >>> path = tempfile.mkdtemp() + "/log.parquet"
        >>> _ = duckdb.execute(f'''COPY (SELECT 'e1' AS event_id, 'question' AS kind,
        ...     TIMESTAMPTZ '2026-05-01 12:00+00' AS time, 'q1' AS question_id) TO '{path}' ''')
        >>> with EventLog(path).connection() as connection:
        ...     connection.execute("SELECT question_id, clicks FROM questions").fetchall()
        [('q1', 0)]
    """

    @classmethod
    def of(cls, source: EventLog | str | os.PathLike[str]) -> EventLog:
        """Return a log unchanged, or open the log at a path."""
        return source if isinstance(source, EventLog) else cls(source)

    def __init__(self, path: str | os.PathLike[str], files: Iterable[str] | None = None) -> None:
        self.path = os.fspath(path)
        _duckdb()
        self.files = _files(self.path) if files is None else tuple(files)

    def __repr__(self) -> str:
        return f"EventLog({self.path!r})"

    def connection(self) -> Any:
        """Open an in-memory DuckDB connection with the views ``events`` and ``questions``.

        ``events`` has one row per event with the columns `COLUMNS`, ``questions`` one row per
        question with the columns `QUESTION_COLUMNS`. Times are ``TIMESTAMP`` in UTC. The macro
        ``word_similarity(a, b)`` is the cosine similarity of the word sets of two texts. Results
        larger than memory go to temporary files. The limits are two threads and 1.5 GB of memory;
        ``SET threads`` and ``SET memory_limit`` change them.

        Returns:
            A ``duckdb.DuckDBPyConnection``; close it, or use it in a ``with`` block.
        """
        connection = _duckdb().connect(
            config={
                "threads": 2,
                "memory_limit": "1.5GB",
                "temp_directory": tempfile.gettempdir(),
                "autoinstall_known_extensions": False,
                "preserve_insertion_order": False,
            }
        )
        try:
            connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
            connection.execute(f"CREATE VIEW events AS {self._events(connection)}")
            self._check_times(connection)
            connection.execute(f"CREATE VIEW questions AS {statement('questions')}")
            connection.execute(statement("similarity"))
        except BaseException:
            connection.close()
            raise
        return connection

    def fingerprint(self) -> tuple[tuple[str, int, int], ...]:
        """Return the name, size, and modification time of each file, to detect changes."""
        states = ((name, os.stat(name)) for name in _files(self.path))  # noqa: PTH116 - a pattern
        return tuple((name, state.st_size, state.st_mtime_ns) for name, state in states)

    def summary(self) -> LogSummary:
        """Return the number of events by kind and the period of the log."""
        with self.connection() as connection:
            rows = connection.execute(
                "SELECT kind, count(*), min(time), max(time) FROM events GROUP BY kind"
            ).fetchall()
            [(questions,)] = connection.execute("SELECT count(*) FROM questions").fetchall()
        counts = {kind: count for kind, count, _, _ in rows}
        return LogSummary(
            self.path,
            {kind: counts[kind] for kind in (*KINDS, *sorted(counts.keys() - KINDS)) if kind in counts},
            questions,
            min((first.replace(tzinfo=UTC) for *_, first, _ in rows), default=None),
            max((last.replace(tzinfo=UTC) for *_, last in rows), default=None),
        )

    def texts(self) -> list[tuple[str, int]]:
        """Return the texts of the questions in alphabetical order, and how often each was asked."""
        with self.connection() as connection:
            rows: list[tuple[str, int]] = connection.execute(
                "SELECT text, count(*) FROM questions WHERE text IS NOT NULL GROUP BY text ORDER BY text"
            ).fetchall()
        return rows

    def joins(self) -> dict[str, Any]:
        """Return counts of events, of known questions, and of clicks with an impression."""
        with self.connection() as connection:
            counted = connection.execute(statement("joins"))
            names = [name for name, *_ in counted.description]
            [row] = counted.fetchall()
        values = (value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for value in row)
        return dict(zip(names, values, strict=True))

    def forget_user(self, user: str) -> dict[str, int]:
        """Remove a user from the files of the log; return the numbers of what was removed.

        Removed are the events of the user, and events without a user of the same questions and
        sessions. Each changed file is replaced atomically. Of a folder with hashed identifiers, the
        key of the machine that imported it is needed.

        Args:
            user: The identifier of the user, as in the sources of the log.

        Raises:
            InputError: If the log has no such user, or another program is writing to it.
            StorageError: If a file cannot be written; repeat the call.
        """
        removed, ids, folder, fix = Counter[str](), [user], None, "check the identifier"
        with contextlib.ExitStack() as stack:
            stack.enter_context(_reported(Path(self.path)))
            if os.path.isdir(self.path):  # noqa: PTH112 - a pattern is no Path
                settings = read_manifest(self.path)["settings"]
                folder = stack.enter_context(LogFolder.opened(Path(self.path), settings, dry_run=False))
                if settings["personal"] == "hash":
                    ids.append(keyed_hash(user))
                    fix += "; identifiers are hashed with a key: run this on the machine that imported the log"
            log = EventLog(self.path)  # which no import changes now
            connection = stack.enter_context(log.connection())
            connection.execute("SET threads = 1; SET preserve_insertion_order = true")
            connection.execute(statement("events_of_user"), {"ids": ids})
            counts = "SELECT count(*), count(DISTINCT question_id) FROM removed"
            [(removed["event"], removed["question"])] = connection.execute(counts).fetchall()
            known = "coalesce(event_id::VARCHAR IN (SELECT event_id FROM removed), false)"
            for number, file in enumerate(log.files):
                read_files(connection, [file]).create_view("one_file")
                kept = f"FROM one_file WHERE NOT {known}"
                [(found, left)] = connection.execute(
                    f"SELECT count(*) FILTER ({known}), count(*) FILTER (NOT {known}) FROM one_file"
                ).fetchall()
                if found:
                    _write_parquet(connection, f"SELECT * {kept}", Path(file))
                    removed["rewritten file"] += 1
                    if folder is not None:
                        folder.manifest["segments"][number]["events"] = left
            if folder is not None:
                removed["refused row"] = folder.forget_refused(user)
                folder.commit()
        removed = +removed  # without zeros
        if not removed:
            raise InputError(f"the log has no user {user!r:.60}", where=self.path, fix=fix)
        return dict(removed)

    def _check_times(self, connection: Any) -> None:
        try:
            [(wrong,)] = connection.execute(f"SELECT count(*) FROM events WHERE time NOT BETWEEN {TIMES}").fetchall()
            what = f"{many(wrong, 'event')} outside the years 1 to 9999 in UTC" if wrong else ""
        except _duckdb().ConversionException as error:
            what = str(error).partition("\n")[0][:200]
        if what:
            raise FormatError(
                f"this is not a log: {what}",
                path=self.path,
                fix="import it into a new log, which refuses such rows: rankgauge logs import SOURCE LOG",
            )

    def _events(self, connection: Any) -> str:
        """Return the SELECT statement of all events."""
        if not self.files:
            return f"SELECT {_columns({})} WHERE false"
        try:
            # Folders with names such as arm=A are columns only if a pattern selects them.
            read_files(connection, self.files, hive=_is_pattern(self.path)).create_view("stored")
            types = {
                name: "TIMESTAMPTZ" if kind == "TIMESTAMP WITH TIME ZONE" else kind
                for name, kind, *_ in connection.execute("DESCRIBE stored").fetchall()
            }
        except _duckdb().Error as error:
            reason = next(iter(str(error).splitlines()), "")
            raise FormatError(
                f"this is not a log: {reason:.200}", path=self.path, fix="import it: rankgauge logs import SOURCE LOG"
            ) from None
        missing = [name for name in REQUIRED_COLUMNS if name not in types]
        if missing:
            raise FormatError(
                f"there is no column {missing[0]!r}: the columns are {', '.join(sorted(types))}",
                path=self.path,
                fix="import it: rankgauge logs import --mapping FILE SOURCE LOG",
            )
        return f"SELECT {_columns(types)} FROM stored"


def _duckdb() -> ModuleType:
    return library("duckdb", extra="production", of="a production log")


def _columns(types: Mapping[str, str]) -> str:
    """Return the columns of the view of events, NULL for missing columns."""
    columns = {name: f"{name if name in types else 'NULL'}::{kind}" for name, kind in _VIEW.items()}
    if types.get("time") == COLUMNS["time"]:
        # Converts to UTC like a cast, but without calendar computations for each row.
        columns["time"] = "make_timestamp(epoch_us(time))"
    return ", ".join(f"{sql} AS {name}" for name, sql in columns.items())


def read_files(connection: Any, files: Iterable[str], *, hive: bool = False) -> Any:
    """Return the rows of exactly these Parquet files, as a relation of a DuckDB connection."""
    # DuckDB treats names as patterns, and a relative name may look like a URL.
    names = [re.sub(r"[*?[]", r"[\g<0>]", os.path.abspath(file)) for file in files]  # noqa: PTH100
    return connection.read_parquet(names, union_by_name=True, hive_partitioning=hive)


def is_log(path: str) -> bool:
    """Return whether a path is that of a log: a folder, a Parquet file, or a pattern."""
    return os.path.isdir(path) or path.endswith(".parquet") or _is_pattern(path)  # noqa: PTH112


def _is_pattern(path: str) -> bool:
    return glob.has_magic(path) and not os.path.exists(path)  # noqa: PTH110 - a pattern


def _files(path: str) -> tuple[str, ...]:
    """Return the Parquet files of a log."""
    if os.path.isdir(path):  # noqa: PTH112 - a pattern is no Path
        return tuple(str(Path(path) / segment["file"]) for segment in read_manifest(path)["segments"])
    folder, name = os.path.split(path)  # the name of an existing folder is no pattern
    pattern = f"{glob.escape(folder)}/{name}" if os.path.isdir(folder) else path  # noqa: PTH112
    files = [path] if os.path.isfile(path) else sorted(glob.glob(pattern))  # noqa: PTH113, PTH207
    if not files:
        raise InputError("there is no such log", where=path, fix="import one: rankgauge logs import SOURCE LOG")
    return tuple(files)


def read_manifest(folder: str) -> dict[str, Any]:
    """Return the manifest of a log: its settings and segments."""
    path = Path(folder) / MANIFEST
    if not path.exists():
        raise InputError(
            "this folder is not a log: it has no manifest.json",
            where=folder,
            fix="import a log into it: rankgauge logs import SOURCE LOG",
        )
    try:
        manifest: dict[str, Any] = json.loads(read_text(path))
        known = [segment["file"] for segment in manifest["segments"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        known = [None]
    if not all(isinstance(name, str) and Path(name).name == name for name in known):
        raise FormatError("the manifest cannot be read", path=str(path), fix="import the log again into a new folder")
    return manifest


REFUSED = "refused.jsonl"
_SHOWN = 2000  # characters of a refused row that are kept


@dataclass(frozen=True)
class Refused:
    """A row that is not an event: line, reason, and content."""

    line: int
    fault: str
    text: str


class LogFolder:
    """The folder of a log, with its manifest, segments, and refused rows.

    The manifest is written last and atomically. Segments missing from it are ignored, and the file
    of refused rows is truncated to the size that it records.
    """

    def __init__(self, folder: Path, written: Path, manifest: dict[str, Any]) -> None:
        self.folder, self._written, self.manifest = folder, written, manifest
        # Hashes of the stored refused rows, so that a second import does not add them again.
        self._refused: set[int] | None = None

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, settings: Mapping[str, Any], *, dry_run: bool) -> Iterator[LogFolder]:
        """Open a log exclusively for an import; in a dry run, write to a temporary folder."""
        if folder.exists() and not folder.is_dir():
            raise InputError("this is a file, expected the folder of a log", where=str(folder), fix="name a new folder")
        new = not folder.exists()
        if (
            folder.is_dir()
            and not (folder / MANIFEST).exists()
            and any(not entry.name.startswith((".", "events-", REFUSED)) for entry in folder.iterdir())
        ):
            raise InputError("this folder has other files and is not a log", where=str(folder), fix="name a new folder")
        with contextlib.ExitStack() as stack:
            stack.enter_context(_reported(folder))
            if not dry_run:
                stack.enter_context(_locked(folder))
            exists = (folder / MANIFEST).exists()
            manifest: dict[str, Any] = (
                read_manifest(str(folder))
                if exists
                else {
                    "schema": "rankgauge log 1",
                    "settings": dict(settings),
                    "segments": [],
                    "first_ranks": {},
                    "refused_bytes": 0,
                    "unfinished": {},
                }
            )
            if manifest["settings"] != settings:
                raise InputError(
                    "this log was imported with other settings for personal data: "
                    + ", ".join(f"{k}={v}" for k, v in dict(manifest["settings"]).items()),
                    where=str(folder),
                    fix="use the same settings, or import into a new folder",
                )
            written = Path(stack.enter_context(tempfile.TemporaryDirectory())) if dry_run else folder
            store = cls(folder, written, manifest)
            if not dry_run:
                store.clean()
            try:
                if not (exists or dry_run):
                    store.commit()  # so that the log can be read if the process ends before the first segment
                yield store
            except RankgaugeError:
                if not (exists or dry_run or manifest["unfinished"] or manifest["segments"]):
                    _remove_empty(folder, whole=new)
                raise

    def clean(self) -> None:
        """Remove the files of an interrupted import."""
        known = {segment["file"] for segment in self.manifest["segments"]}
        for path in self.folder.iterdir():
            if (path.name.startswith("events-") and path.name not in known) or path.suffix == ".part":
                path.unlink()
        refused = self.folder / REFUSED
        if refused.exists():
            os.truncate(refused, self.manifest["refused_bytes"])

    @property
    def files(self) -> list[str]:
        """Paths of the segments."""
        # In a dry run, new segments are in a temporary folder.
        names = [segment["file"] for segment in self.manifest["segments"]]
        folders = [self._written if (self._written / name).exists() else self.folder for name in names]
        return [str(folder / name) for folder, name in zip(folders, names, strict=True)]

    def write(self, connection: Any, refused: Sequence[tuple[str, Refused]]) -> None:
        """Write the events of the table ``fresh`` as a segment, and append the refused rows."""
        [(count,)] = connection.execute("SELECT count(*) FROM fresh").fetchall()
        segments = self.manifest["segments"]
        if count:
            name = f"events-{len(segments) + 1:06}.parquet"
            _write_parquet(connection, f"SELECT {stored()} FROM fresh", self._written / name)
            segments.append({"file": name, "events": count})
        if refused:
            keeps = self.manifest["settings"] == {"personal": "keep", "scrub": False, "drop_text": False}
            path, opener = self._written / REFUSED, partial(os.open, mode=0o600)
            with open(path, "ab+", opener=opener) as stream:
                if self._refused is None:
                    stream.seek(0)
                    self._refused = {hash(line) for line in stream}
                for source, refusal in refused:
                    row = {"source": f"{source}:{refusal.line}", "reason": refusal.fault}
                    if keeps:
                        row["row"] = refusal.text[:_SHOWN]
                    line = json.dumps(row).encode() + b"\n"
                    if hash(line) not in self._refused:
                        self._refused.add(hash(line))
                        stream.write(line)
                stream.flush()
                os.fsync(stream.fileno())
                self.manifest["refused_bytes"] = stream.tell()

    def forget_refused(self, user: str) -> int:
        """Remove the refused rows that contain an identifier as a word; return their number."""
        path, word = self.folder / REFUSED, re.compile(rf"(?<!\w){re.escape(user)}(?!\w)")
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        kept = [line for line in lines if not word.search(" ".join(map(str, json.loads(line).values())))]
        if len(kept) < len(lines):
            with write_atomically(path) as stream:
                stream.writelines(kept)
            self.manifest["refused_bytes"] = path.stat().st_size
        return len(lines) - len(kept)

    def commit(self) -> None:
        """Write the manifest."""
        with write_atomically(self._written / MANIFEST) as stream:
            stream.write(json.dumps(self.manifest, indent=1).encode())


def _write_parquet(connection: Any, query: str, path: Path) -> None:
    """Write the rows of a query to a file atomically; only the owner can read a new file."""
    with write_atomically(path, private=not path.exists()) as stream:
        target = os.path.abspath(stream.name).replace("'", "''")  # noqa: PTH100
        connection.execute(
            f"COPY ({query}) TO '{target}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, USE_TMP_FILE false)"
        )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder of a log, which is created, for this process."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # contains texts of users
    with (folder / ".lock").open("ab") as lock:  # ends with the process
        # The file may have been removed with a log whose import failed.
        if not (lock_file(lock.fileno()) and os.path.samestat(os.fstat(lock.fileno()), os.stat(lock.name))):  # noqa: PTH116
            raise InputError("another import into this log is running", where=str(folder), fix="wait until it ends")
        yield


def _remove_empty(folder: Path, *, whole: bool) -> None:
    """Remove a log without events, and its folder if it contains nothing else."""
    with contextlib.suppress(OSError):
        for name in (MANIFEST, ".lock"):
            (folder / name).unlink(missing_ok=True)
        if whole:
            folder.rmdir()


@contextmanager
def _reported(folder: Path) -> Iterator[None]:
    """Report errors of the file system, such as a full disk."""
    import duckdb

    try:
        yield
    except (OSError, duckdb.IOException, duckdb.OutOfMemoryException) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise StorageError(
            f"the log cannot be written: {reason:.200}",
            where=str(folder),
            fix="check its permissions and the free disk space, and repeat the command; events that "
            "were stored before are unchanged",
        ) from None
