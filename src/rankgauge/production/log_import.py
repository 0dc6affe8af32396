"""`import_log`: validate the events of log files and convert them to Parquet."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rankgauge.core.arguments import option
from rankgauge.core.keyed_hash import keyed_hash
from rankgauge.core.recommendations import next_step
from rankgauge.core.redaction import scrub as scrub_text
from rankgauge.core.text import Ratio, keep, many
from rankgauge.errors import InputError, UnknownName
from rankgauge.formats.spans import SEVERAL
from rankgauge.production.events import (
    KINDS,
    LogMapping,
    as_mapping,
    create_draft,
    draft_mapped,
    draft_ubi,
    read_mapping,
    statement,
)
from rankgauge.production.log import REFUSED, EventLog, LogFolder, Refused, read_files
from rankgauge.production.sources import FORMATS, Batch, Source, find_format, fingerprint, pa, pc
from rankgauge.production.span_events import draft_of_spans, trace_ends
from rankgauge.rendering import Result, Table


@dataclass(frozen=True)
class Fault:
    """Rows refused for the same reason.

    Attributes:
        reason: The reason.
        rows: The number of rows.
        first: The file and line of the first row.
    """

    reason: str
    rows: int
    first: str


@dataclass(frozen=True)
class LogImport(Result):
    """The report on an import.

    Attributes:
        log: The path of the log.
        sources: The files and their formats.
        dry_run: Whether nothing was written.
        unasked: The number of traces with an answer or documents, but no question.
        several: The number of traces whose outermost spans have different questions.
        rows: The number of rows, without blank lines and bulk request lines.
        lines: The number of nonblank lines of these rows; more than `rows` if cells contain line
            breaks.
        events: The number of new events by kind.
        duplicates: The number of events whose identifier is already in the log.
        identical: The number of events without an identifier that equal an event of the log in
            every field.
        refused: The rows that are not events, by reason.
        out_of_order: The number of rows with an earlier time than the previous row.
        future: The number of new events with a time after the import.
        first_ranks: The number of the first rank (0 or 1), by application or file.
        total: The number of events in the log.
        questions: The number of questions in the log.
        joined: The number of events in the log with a known question.
        orphans: The number of events in the log with an unknown question.
        orphan_clicks: The number of clicks with an unknown question.
        clicks: The number of clicks on results in the log.
        unseen_clicks: The number of clicks without an impression of the result for the question.
        first: The time of the first event of the log.
        last: The time of the last event of the log.
    """

    _attributes = "* first=first.isoformat last=last.isoformat"

    log: str
    sources: tuple[tuple[str, str], ...]
    dry_run: bool
    unasked: int
    several: int
    rows: int
    lines: int
    events: Mapping[str, int]
    duplicates: int
    identical: int
    refused: tuple[Fault, ...]
    out_of_order: int
    future: int
    first_ranks: Mapping[str, int]
    total: int
    questions: int
    joined: int
    orphans: int
    orphan_clicks: int
    clicks: int
    unseen_clicks: int
    first: datetime | None
    last: datetime | None

    def table(self) -> Table:
        """Return the numbers of rows, of new events by kind, and of all events of the log."""
        return self._table(full=False)

    def _table(self, *, full: bool) -> Table:
        faults = (
            ("identical events", self.identical, "without identifiers, equal in every field"),
            ("traces without a question", self.unasked, "no span has an input"),
            ("traces with several questions", self.several, "only the first counts"),
            ("out of order", self.out_of_order, "rows older than the previous row"),
            ("in the future", self.future, "new events later than now"),
            ("orphans", self.orphans, f"of questions not in the log; {many(self.orphan_clicks, 'click')}"),
            ("clicks on results not shown", self.unseen_clicks, f"of {many(self.clicks, 'click')}"),
        )
        return Table(
            ("what", "number", "detail"),
            (
                ("rows read", self.rows, many(self.lines, "line") if self.lines > self.rows else ""),
                ("new events", sum(self.events.values()), ""),
                *((f"  {kind}", count, "") for kind, count in self.events.items()),
                ("duplicates", self.duplicates, "identifiers already in the log"),
                ("rows refused", sum(fault.rows for fault in self.refused), ""),
                *((f"  {fault.reason}", fault.rows, f"first: {fault.first}") for fault in self.refused),
                *(row for row in faults if row[1] or full),
            ),
            title=self._heading(),
            notes=self._notes(),
            fixed=frozenset({0}),
        )

    def _heading(self) -> str:
        done = "would be imported" if self.dry_run else "imported"
        return f"{many(sum(self.events.values()), 'event')} {done} into {self.log}"

    def summary(self) -> str:
        """Return the numbers of new events and refused rows."""
        refused = sum(fault.rows for fault in self.refused)
        return (
            f"{self._heading()}; {many(self.duplicates + self.identical, 'duplicate')}, "
            f"{many(refused, 'row')} refused; the log has {many(self.questions, 'question')}"
        )

    def _notes(self) -> tuple[str, ...]:
        step = "logs import: dry run" if self.dry_run else "logs import: imported"
        return keep(
            self.unasked
            and f"WARNING: {many(self.unasked, 'trace')} with an answer or documents, but without "
            "a question: record the input of the outermost chain or agent, and import all "
            "files of these traces together",
            self.several and f"WARNING: {many(self.several, 'trace')} {SEVERAL}",
            self.first
            and self.last
            and f"the log: {many(self.total, 'event')}, {many(self.questions, 'question')}, "
            f"{self.first:%Y-%m-%d} to {self.last:%Y-%m-%d}",
            self.unseen_clicks
            and f"{Ratio(self.unseen_clicks / self.clicks):.0%} of clicks have no impression: "
            "rates that need impressions exclude them",
            *(
                f"ranks{f' of {name}' if name else ''} count from {number} in the source"
                for name, number in self.first_ranks.items()
            ),
            self.refused and not self.dry_run and f"refused rows are in {Path(self.log) / REFUSED}",
            (self.dry_run or self.questions) and f"next step: {next_step(step, log=shlex.quote(self.log))}",
        )

    def data_table(self) -> Table:
        """Return one row with all counts."""
        rows = self._table(full=True).rows
        return Table(("what", "number"), tuple((str(what).strip(), count) for what, count, _ in rows))

    def _data(self) -> dict[str, Any]:
        return super()._data() | {"sources": [{"file": name, "format": format} for name, format in self.sources]}


@dataclass
class _Progress:
    """Counts of an unfinished import, from which a resumed import continues."""

    batches: int = 0
    rows: int = 0
    breaks: int = 0
    events: dict[str, int] = field(default_factory=dict)
    duplicates: int = 0
    identical: int = 0
    faults: dict[str, list[Any]] = field(default_factory=dict)  # reason: number of rows, first row
    out_of_order: int = 0
    future: int = 0
    last_time: int | None = None  # time of the last row, in microseconds

    def refuse(self, source: str, refused: Sequence[Refused]) -> None:
        """Count refused rows."""
        self.rows += len(refused)
        for refusal in refused:
            self.faults.setdefault(refusal.fault, [0, f"{source}:{refusal.line}"])[0] += 1


def import_log(  # noqa: PLR0913 - one parameter a setting
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    log: str | os.PathLike[str],
    *,
    format: str | None = None,
    mapping: str | os.PathLike[str] | Mapping[str, Any] | LogMapping | None = None,
    personal: str = "keep",
    scrub: bool = False,
    drop_text: bool = False,
    timezone: str | None = None,
    first_rank: int | None = None,
    dry_run: bool = False,
    now: datetime | None = None,
) -> LogImport:
    r"""Import the events of one or more files into a log.

    Events are identified by their identifier or else by the hash of their content (of texts and
    users that are dropped, a hash with a local key), so that importing the same or an overlapping
    file adds only new events. Repeating the call resumes an
    interrupted import. Rows that are not events are counted by reason and written to
    ``refused.jsonl`` in the folder of the log, without their text if personal data is not kept.

    Args:
        source: UBI files, OpenInference or OpenTelemetry spans, exports of Phoenix, Langfuse, or
            LangSmith, MLflow feedback, or, with `mapping`, any CSV, JSON lines, or Parquet file;
            optionally compressed.
        log: The folder of the log; created if it does not exist.
        format: One of ``ubi``, ``spans``, ``phoenix``, ``langfuse``, ``langsmith``, ``mlflow``,
            ``events``; if None, detected.
        mapping: A mapping file or its content: the column of each field of an event.
        personal: ``keep`` user identifiers, ``hash`` them with a local key, or ``drop`` them.
        scrub: Whether to replace recognizable personal data in texts; see `scrub`.
        drop_text: Whether to drop the texts of questions, answers, and comments.
        timezone: The time zone of naive times, such as ``Europe/Berlin``. If None, rows with naive
            times are refused.
        first_rank: The first rank, 0 or 1; if None, detected for each application.
        dry_run: Whether to only count events, without writing anything.
        now: The time of the import; later events are counted as future events.

    Returns:
        The counts of the import and of the resulting log.

    Raises:
        FormatError: If the format of a file is unknown, or the mapping is invalid.
        InputError: If a file or the log cannot be read or written.

    Example:
        >>> import json, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> rows = [
        ...     {"query_id": "q", "user_query": "late fees", "timestamp": "2026-05-01T12:00:00Z"},
        ...     {"query_id": "q", "action_name": "click", "timestamp": "2026-05-01T12:00:09Z",
        ...      "event_attributes": {"object": {"object_id": "d1"}}},
        ... ]
        >>> _ = (folder / "ubi.jsonl").write_text("\n".join(map(json.dumps, rows)))
        >>> report = import_log(folder / "ubi.jsonl", folder / "log")
        >>> dict(report.events), report.unseen_clicks
        ({'question': 1, 'click': 1}, 1)
    """
    option("personal", personal, ("keep", "hash", "drop"))
    # The exports of these tools are read as spans.
    format = "spans" if format in {"phoenix", "langfuse", "langsmith"} else format
    if format is not None and format not in FORMATS:
        raise UnknownName.of("format", format, FORMATS)
    if first_rank not in {None, 0, 1}:
        raise InputError(f"first_rank={first_rank!r:.40}", fix="pass 0 or 1")
    if timezone is not None:
        import zoneinfo

        try:
            zoneinfo.ZoneInfo(timezone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise InputError(
                f"{timezone!r:.60} is not a time zone", where="timezone", fix="use a name such as Europe/Berlin"
            ) from None
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    if isinstance(mapping, LogMapping | None):
        meaning = mapping
    else:
        meaning = as_mapping(mapping) if isinstance(mapping, Mapping) else read_mapping(mapping)
    settings = {"personal": personal, "scrub": scrub, "drop_text": drop_text}
    is_mapped = meaning is not None and (bool(meaning.columns) or bool(meaning.events))
    files = [find_format(os.fspath(path), format=format, mapped=is_mapped) for path in sources]
    with LogFolder.opened(Path(log), settings, dry_run=dry_run) as store:
        importer = _Importer(
            store, mapping=meaning, timezone=timezone, first_rank=first_rank, now=now or datetime.now(UTC)
        )
        spans = [file for file in files if file.format == "spans"]
        if spans:
            importer.ends, importer.traces = trace_ends(batch.rows for file in spans for batch in file.batches())
        return importer.report(os.fspath(log), files, [importer.run(file) for file in files], dry_run=dry_run)


def _numbered(rows: Any) -> tuple[Any, dict[str, str]]:
    """Number the columns, because SQL ignores the case of names; return the SQL of their texts."""
    *fields, line = rows.schema
    return rows.rename_columns([*(f"c{number}" for number in range(len(fields))), line.name]), {
        field.name: f"to_json(c{number})::VARCHAR" if pa.types.is_list(field.type) else f"c{number}"
        for number, field in enumerate(fields)
    }


def _drop(_text: str) -> None:
    """Return nothing in place of a text."""


def _lost(before: str, after: str | None) -> str | None:
    """Return a keyed hash of a replaced text; None if its replacement has the same information."""
    if after == before:
        return None
    key = keyed_hash(before)
    return None if after == key else key


class _Importer:
    """Translates batches of sources to events and writes the new ones."""

    def __init__(
        self,
        store: LogFolder,
        *,
        mapping: LogMapping | None,
        timezone: str | None,
        first_rank: int | None,
        now: datetime,
    ) -> None:
        self._store, self._mapping, self._timezone = store, mapping, timezone
        self._first_rank, self._now = first_rank, now
        self.ends: Mapping[str, Any] = {}  # of traces
        self.traces: Mapping[str, str] = {}  # of spans
        import duckdb

        self._connection: Any = duckdb.connect(
            config={
                "threads": 2,
                "memory_limit": "1.2GB",
                "temp_directory": tempfile.gettempdir(),
                "autoinstall_known_extensions": False,
            }
        )
        self._connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        self._connection.execute(statement("macros"))
        self._connection.execute("CREATE TABLE known AS SELECT md5_number('') AS hash WHERE false")
        if store.files:
            read_files(self._connection, store.files).create_view("stored")
            self._connection.execute("INSERT INTO known SELECT md5_number(event_id) FROM stored")

    def run(self, source: Source) -> _Progress:
        """Import a source, resuming an interrupted import."""
        unfinished = self._store.manifest["unfinished"]
        key = f"{os.path.abspath(source.path)} {fingerprint(source.path)}"  # noqa: PTH100
        progress = _Progress(**unfinished.get(key, {}))
        for number, batch in enumerate(source.batches()):
            if number < progress.batches:
                continue
            refused = [*batch.refused, *self._translate(source, batch, progress)]
            progress.refuse(source.name, refused)
            progress.breaks += batch.breaks
            self._keep_new(progress)
            progress.batches = number + 1
            self._store.write(self._connection, [(source.name, refusal) for refusal in refused])
            unfinished[key] = asdict(progress)
            self._store.commit()
        unfinished.pop(key, None)
        self._store.commit()
        return progress

    def _translate(self, source: Source, batch: Batch, progress: _Progress) -> list[Refused]:
        """Create the table ``new`` from the events of a batch; return rows that are not events."""
        connection, mapping = self._connection, self._mapping
        rows, columns = _numbered(batch.rows) if source.is_table else (batch.rows, None)
        connection.register("batch", rows)
        create_draft(connection)
        own = FORMATS[source.format].mapping
        if source.format == "spans":
            connection.register("spans", draft_of_spans(batch.rows, mapping, self.ends, self.traces))
            connection.execute("INSERT INTO draft BY NAME SELECT * FROM spans")
            counted = "batch" if source.is_table else r"batch WHERE trim(raw, E' \t\r\n') <> ''"
        elif own is None:
            counted = draft_ubi(connection, mapping)
        else:
            if source.format == "mapped" and mapping is not None:
                own = mapping
            elif mapping is not None:
                own = replace(own, kinds={**own.kinds, **mapping.kinds}, values={**own.values, **mapping.values})
            counted = draft_mapped(connection, own, columns, source.name)
        self._protect()
        shifts = self._shifts()
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE new AS {statement('events')}",
            {"source": source.name, "timezone": self._timezone, "groups": [*shifts], "shifts": [*shifts.values()]},
        )
        [(count,)] = connection.execute(f"SELECT count(*) FROM {counted}").fetchall()
        faults = connection.execute(
            """SELECT line, min(problem) FROM new WHERE problem IS NOT NULL
            GROUP BY line ORDER BY line"""
        ).fetchall()
        progress.rows += count - len(faults)
        [(first, last, wrong)] = connection.execute(
            """SELECT arg_min(t, line), arg_max(t, line), count(*) FILTER (t < before) FROM (
              SELECT line, epoch_us(time) AS t, lag(epoch_us(time)) OVER (ORDER BY line) AS before
              FROM new WHERE problem IS NULL AND part = 0)"""
        ).fetchall()
        if first is not None:
            if progress.last_time is not None and first < progress.last_time:
                progress.out_of_order += 1
            progress.out_of_order += wrong
            progress.last_time = last
        return self._texts(faults, batch.rows, is_table=source.is_table)

    def _texts(self, faults: Sequence[tuple[int, str]], rows: Any, *, is_table: bool) -> list[Refused]:
        """Return refused rows with their content."""
        if not faults:
            return []

        refused = rows.filter(pc.is_in(rows.columns[-1], pa.array([line for line, _ in faults], pa.int64())))
        texts = {
            line: json.dumps(row) if is_table else row["raw"]
            for line, row in zip(
                refused.columns[-1].to_pylist(), refused.select(range(refused.num_columns - 1)).to_pylist(), strict=True
            )
        }
        return [Refused(line, fault, texts.get(line, "").strip()) for line, fault in faults]

    def _shifts(self) -> dict[str, int]:
        """Return the offset of the ranks of each group that makes ranks start at 1."""
        known: dict[str, int] = self._store.manifest["first_ranks"]
        stated = self._first_rank
        if stated is None and self._mapping is not None and self._mapping.columns:
            stated = self._mapping.first_rank
        groups = self._connection.execute(
            """SELECT rank_group, min(TRY_CAST(ranks[1] AS DOUBLE)) FROM draft
            WHERE ranks[1] IS NOT NULL AND rank_group IS NOT NULL AND kind <> 'other'
            GROUP BY rank_group ORDER BY rank_group"""
        ).fetchall()
        for name, least in groups:
            detected = 0 if least == 0 else 1
            known.setdefault(name, detected if stated is None else stated)
        return {name: 1 - first for name, first in known.items()}

    def _protect(self) -> None:
        """Hash or drop user identifiers, and scrub or drop texts.

        A keyed hash of each text that is lost still distinguishes events.
        """
        settings = self._store.manifest["settings"]
        of_users = {"keep": None, "hash": keyed_hash, "drop": _drop}[settings["personal"]]
        scrubbing = scrub_text if settings["scrub"] else None
        of_texts = _drop if settings["drop_text"] else scrubbing
        for column, replacement in (("user_id", of_users), ("text", of_texts)):
            if replacement is None:
                continue
            rows = self._connection.execute(f"SELECT DISTINCT {column} FROM draft WHERE {column} IS NOT NULL")
            old = [text for (text,) in rows.fetchall()]
            new = [replacement(text) for text in old]
            columns = {"old": old, "new": new, "lost": [*map(_lost, old, new)]}
            self._connection.register(
                "replacement", pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})
            )
            self._connection.execute(
                f"""UPDATE draft SET {column} = r.new, lost = concat(draft.lost, r.lost)
                FROM replacement AS r WHERE {column} = r.old"""
            )

    def _keep_new(self, progress: _Progress) -> None:
        """Create the table ``fresh`` of events with new identifiers."""
        connection = self._connection
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE fresh AS SELECT *, md5_number(event_id) AS hash"
            " FROM new WHERE problem IS NULL"
        )
        [(before, identified, distinct)] = connection.execute(
            "SELECT count(*), count(*) FILTER (identified), count(DISTINCT hash) FROM fresh"
        ).fetchall()
        if distinct < before:
            connection.execute("DELETE FROM fresh WHERE rowid NOT IN (SELECT min(rowid) FROM fresh GROUP BY hash)")
        connection.execute(
            """DELETE FROM fresh
            WHERE hash IN (SELECT f.hash FROM known JOIN fresh AS f USING (hash))"""
        )
        connection.execute("INSERT INTO known SELECT hash FROM fresh")
        progress.duplicates += identified
        progress.identical += before - identified
        for kind, count, identified, future in connection.execute(
            """SELECT kind, count(*), count(*) FILTER (identified), count(*) FILTER (time > ?)
            FROM fresh GROUP BY kind""",
            [self._now.astimezone(UTC).replace(tzinfo=None)],
        ).fetchall():
            progress.events[kind] = progress.events.get(kind, 0) + count
            progress.future += future
            progress.duplicates -= identified
            progress.identical -= count - identified

    def report(self, log: str, sources: Sequence[Source], imported: Sequence[_Progress], *, dry_run: bool) -> LogImport:
        """Return the counts of the sources and of the resulting log."""
        self._connection.close()
        events: Counter[str] = Counter()
        faults: dict[str, list[Any]] = {}
        for progress in imported:
            events.update(progress.events)
            for reason, (rows, first) in progress.faults.items():
                faults.setdefault(reason, [0, first])[0] += rows
        return LogImport(
            log=log,
            sources=tuple((source.name, source.format) for source in sources),
            dry_run=dry_run,
            unasked=sum(
                ends.question is None and (ends.searches or ends.answer is not None) for ends in self.ends.values()
            ),
            several=sum(ends.several for ends in self.ends.values()),
            rows=sum(progress.rows for progress in imported),
            lines=sum(progress.rows + progress.breaks for progress in imported),
            events={kind: events[kind] for kind in KINDS if events[kind]},
            duplicates=sum(progress.duplicates for progress in imported),
            identical=sum(progress.identical for progress in imported),
            refused=tuple(
                Fault(reason, rows, first)
                for reason, (rows, first) in sorted(faults.items(), key=lambda item: -item[1][0])
            ),
            out_of_order=sum(progress.out_of_order for progress in imported),
            future=sum(progress.future for progress in imported),
            first_ranks=dict(self._store.manifest["first_ranks"]),
            **EventLog(log, self._store.files).joins(),
        )
