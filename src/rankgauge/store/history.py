"""`History`, a store of evaluations."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from rankgauge.core.arguments import of_kind
from rankgauge.core.ids import Id, id_bytes
from rankgauge.core.project_file import ProjectFile
from rankgauge.core.project_names import SHORT_NAME, find_project_file, is_short_name
from rankgauge.core.provenance import current_commit, versions
from rankgauge.corpus.collection import Collection, Document, Query
from rankgauge.data.qrels import Pairs, Qrels, fingerprint
from rankgauge.data.records import Records
from rankgauge.data.run import Run
from rankgauge.data.special_qrels import SpecialQrels
from rankgauge.errors import InputError, MismatchError, RankgaugeError
from rankgauge.evaluation.context import special_qrels
from rankgauge.evaluation.result import Evaluation
from rankgauge.formats.texts import TextRow
from rankgauge.measures.measure import Measure, parse
from rankgauge.store.artifacts import (
    ANSWERS,
    DOCUMENTS,
    JUDGMENTS,
    QUESTIONS,
    RUN,
    Artifact,
    Artifacts,
    Read,
    digest_of,
    digests_in,
    ids_in,
    line_of,
    pack_pairs,
    pack_texts,
    read_pairs,
    read_texts,
)
from rankgauge.store.database import Store
from rankgauge.store.entries import (
    VALUES,
    HistoryEntries,
    HistoryEntry,
    Packed,
    obstacles,
    pack,
    read_entry,
    unpack,
    unpack_ids,
)
from rankgauge.store.schema import SCHEMA

if TYPE_CHECKING:
    from sqlalchemy import Connection

_LONGEST = 200
_LIST = "see their names: rankgauge history list"


class History(Store):
    """Store of evaluations, with the rankings, judgments, and texts that they were computed from.

    It is an SQLite file with a folder of artifacts beside it, or a PostgreSQL database for several
    machines, and is created when the first evaluation is added. Saved evaluations never change, and
    loading restores them exactly. See :func:`rankgauge.comparison.trend_of`.

    An evaluation is named by its number, or by a short name: ``bm25#3`` or ``#3`` (the number),
    ``bm25@latest`` or ``@latest``, ``@baseline``.

    Example:
        >>> import tempfile
        >>> from rankgauge import evaluate
        >>> history = History(tempfile.mkdtemp() + "/store.db")
        >>> entry = history.add(evaluate({"q1": {"d1": 1}}, {"q1": ["d2", "d1"]}, "RR"), label="1.0")
        >>> entry.name, history.load(entry).mean()
        ('run#1 (1.0)', {'RR': 0.5})
    """

    def __init__(self, where: str | os.PathLike[str] | None = None, *, wait: float = 30.0, baseline: str = "") -> None:
        """Open a store, as any other.

        Args:
            where: As for any store.
            wait: Seconds to wait while another program holds a lock.
            baseline: What ``@baseline`` names: a run, whose latest evaluation it is, or the short
                name of an evaluation. For the store of the project of the current folder, that of
                its file.
        """
        super().__init__(where, wait=wait)
        project = find_project_file() if where is None and not baseline else None
        self.baseline: str = baseline if project is None else ProjectFile.read(project).baseline

    # ---- add and delete

    def add(
        self,
        evaluation: Evaluation,
        qrels: Any = None,
        *,
        run: Any = None,
        collection: Collection | None = None,
        answers: Mapping[str, Mapping[str, Any]] | None = None,
        texts: bool = True,
        label: str = "",
        settings: Mapping[str, Any] | None = None,
        time: datetime | date | str | None = None,
    ) -> HistoryEntry:
        """Save an evaluation; if this fails, nothing is saved.

        Args:
            evaluation: An evaluation from any source.
            qrels: The judgments, which are saved: anything that :meth:`Qrels.of` accepts, special
                judgments, or records (if binary and graded measures use different judgments, only
                their fingerprint is saved). Evaluations with different judgments are not
                comparable. Without judgments, this is not checked.
            run: The run, which is saved; default: the rankings of the records.
            collection: The documents and queries, whose fingerprint is saved.
            answers: The fields of generated answers, by question (``AnswerSet.rows``).
            texts: Whether to save answers, and the texts of the queries and of the retrieved and judged
                documents of the collection.
            label: Free text, such as ``release 2.1``.
            settings: Other values to save: text, finite numbers, and lists and mappings of them.
            time: The time of the evaluation, default now: a datetime (UTC if naive), a date
                (midnight UTC), or either as ISO text. It does not change the order of evaluations.

        Returns:
            The metadata, including the number in the store.

        Raises:
            MismatchError: If a query of the evaluation is not in the judgments.
            InputError: If the evaluation cannot be saved or the store cannot be written.
        """
        if not isinstance(evaluation, Evaluation):
            raise InputError(
                f"got {type(evaluation).__name__}, expected an evaluation",
                where="history",
                fix="pass the result of evaluate()",
            )
        settings = {} if settings is None else settings
        of_kind("the settings", settings, Mapping, 'pass them as a mapping: {"latency_ms": 12}', where="settings")
        if collection is not None:
            of_kind("the collection", collection, Collection, "pass Collection.load(...)", where="collection")
        pairs, judgments = _inputs(evaluation, qrels, run)
        commit = current_commit()
        about = {
            "label": _label(label),
            "settings": dict(settings),
            "qrels": judgments,
            "ranking": fingerprint(pairs["run"]) if "run" in pairs else None,
            "collection": None if collection is None else collection.fingerprint,
            "versions": dict(versions()),
            "commit": None if commit is None else commit.id,
            "dirty": commit is not None and commit.dirty,
        }
        packed = pack(evaluation, about)
        moment = utc(time).isoformat(timespec="microseconds")
        row = {
            "time": moment,
            "run": _plain(evaluation.run_name),
            "queries": packed.query_set,
            "head": packed.head,
            "seal": seal(moment, packed.head),
        }
        with self._database.writing():
            pass  # an unusable store is reported before artifacts are written
        kept: dict[str, Mapping[str, Document] | Mapping[str, Query]] = {}
        if collection is not None and texts:
            kept = {QUESTIONS: collection.queries, DOCUMENTS: collection.documents}
        lines = [(key, line_of(key, Query(key, "", row))) for key, row in (answers or {}).items() if texts]
        share = True
        while True:
            written = [self._artifacts.write(*pack_pairs(kind, part)) for kind, part in pairs.items()]
            written += [self._artifacts.write(*packed) for packed in pack_texts(ANSWERS, lines)]
            earlier: list[str] = []
            for kind, rows in kept.items():
                new, old = self._write_texts(kind, rows, ids_in(kind, pairs.values()), share=share)
                written += new
                earlier += old
            with self._database.writing() as connection:
                if self._artifacts.name(connection, written, earlier):
                    names = dict.fromkeys([*(artifact.name for artifact in written), *earlier])
                    return read_entry(self._insert(connection, row, packed, names), moment, packed.head)
            share = False  # an artifact was collected before it was named: write it again

    def _write_texts(
        self, kind: str, rows: Mapping[str, Document] | Mapping[str, Query], wanted: set[str], *, share: bool
    ) -> tuple[list[Artifact], list[str]]:
        """Write the wanted texts that no earlier artifact contains.

        Returns the new artifacts, and the names of the earlier ones with the other texts, newest
        first: the text of an id is in the first of these artifacts that contains the id.
        """
        held: dict[str, tuple[str, bytes]] = {}  # the latest text of each id
        with self._database.reading() as connection:
            table = SCHEMA.table("artifacts")
            kept = table.select().with_only_columns(table.c.name).where(table.c.kind == kind)
            names = list(connection.scalars(kept.order_by(table.c.sequence))) if share else []
            for name in names:
                with suppress(InputError):  # it is damaged, or has been collected
                    for key, digest in digests_in(partial(self._artifacts.read, connection, name)):
                        if key in wanted:
                            held[key] = name, digest
        used = set()

        def missing() -> Iterator[tuple[str, bytes]]:
            for key, row in rows.items():
                if key in wanted:
                    line = line_of(key, row)
                    name, digest = held.get(key, ("", b""))
                    if digest == digest_of(line):
                        used.add(name)
                    else:
                        yield key, line

        new = [self._artifacts.write(*packed) for packed in pack_texts(kind, missing())]
        return new, [name for name in reversed(names) if name in used]

    def _insert(self, connection: Connection, row: Mapping[str, Any], packed: Packed, names: Iterable[str]) -> int:
        """Insert the rows of an evaluation and return its number."""
        queries, evaluations, values, uses = map(SCHEMA.table, ("queries", "evaluations", "values", "uses"))
        known = connection.scalar(
            queries.select().with_only_columns(queries.c.hash).where(queries.c.hash == packed.query_set)
        )
        if known is None:
            connection.execute(queries.insert().values(hash=packed.query_set, ids=packed.ids))
        key = connection.execute(evaluations.insert().values(row)).inserted_primary_key
        number = int(key[0]) if key else 0
        connection.execute(
            values.insert(),
            [{"evaluation": number, "kind": kind, "name": name, "body": body} for kind, name, body in packed.parts],
        )
        for place, name in enumerate(names):
            connection.execute(uses.insert().values(evaluation=number, number=place, artifact=name))
        return number

    def delete(self, which: int | str | HistoryEntry) -> HistoryEntry:
        """Delete an evaluation and return its metadata; its number is not reused.

        Artifacts that no other evaluation uses are deleted, too.

        Raises:
            InputError: If there is no evaluation with this number.
        """
        queries, evaluations, values, uses = map(SCHEMA.table, ("queries", "evaluations", "values", "uses"))
        with self._database.reading() as connection:
            gone = self._entry(connection, which)
        with self._database.writing() as connection:
            connection.execute(values.delete().where(values.c.evaluation == gone.id))
            connection.execute(uses.delete().where(uses.c.evaluation == gone.id))
            connection.execute(evaluations.delete().where(evaluations.c.id == gone.id))
            used = evaluations.select().with_only_columns(evaluations.c.queries)
            connection.execute(queries.delete().where(queries.c.hash.not_in(used)))
        self.collect_garbage()
        return gone

    def collect_garbage(self) -> None:
        """Delete artifacts that no evaluation uses, and what interrupted programs left an hour ago."""
        self._artifacts.collect()

    # ---- read

    def entries(self, *, run: str | None = None, measure: str | Measure | None = None) -> HistoryEntries:
        """Return the metadata of all evaluations in the order of addition.

        Args:
            run: Return only evaluations of the run with this name.
            measure: Return only evaluations with this measure.

        Raises:
            InputError: If the store does not exist or cannot be read.
        """
        with self._database.reading() as connection:
            entries = HistoryEntries(self._entries(connection, run))
        if measure is None:
            return entries
        name = str(parse(measure))
        return HistoryEntries(entry for entry in entries if name in entry.means)

    def entry(self, which: int | str | HistoryEntry) -> HistoryEntry:
        """Return the metadata of one evaluation.

        Raises:
            InputError: If there is no evaluation with this number.
        """
        with self._database.reading() as connection:
            return self._entry(connection, which)

    def load(self, which: int | str | HistoryEntry, measure: str | Measure | None = None) -> Evaluation:
        """Return an evaluation exactly as it was added.

        Args:
            which: The number or the metadata of the evaluation.
            measure: Load only the values of this measure.

        Raises:
            InputError: If the evaluation does not exist or is damaged.
        """
        with self._database.reading() as connection:
            name = "" if measure is None else str(parse(measure))
            return self._load(connection, self._entry(connection, which), name)

    def comparable(self, names: Iterable[int | str | HistoryEntry]) -> list[Evaluation]:
        """Return evaluations for :func:`compare`, each named by its short name.

        Raises:
            MismatchError: If their judgments, policies, or profiles differ.
            InputError: If an evaluation does not exist.
        """
        entries = [self.entry(name) for name in names]
        for other in entries[1:]:
            differences = list(obstacles(entries[0], other))
            if differences:
                raise MismatchError(
                    f"{entries[0].short_name} and {other.short_name} are not comparable: {'; '.join(differences)}",
                    where=self.where,
                    fix="evaluate both on the same judgments: rankgauge evaluate --again",
                )
        return [replace(self.load(entry), run_name=entry.short_name) for entry in entries]

    def run(self, which: int | str | HistoryEntry, queries: Iterable[Id] | None = None) -> Run:
        """Return the run of an evaluation exactly as it was added.

        Args:
            which: The number, the short name, or the metadata of the evaluation.
            queries: Read only the rankings of these queries, which is fast.

        Raises:
            InputError: If the evaluation does not exist, was saved without its run, or is damaged.
        """
        wanted = None if queries is None else map(id_bytes, queries)
        with self._database.reading() as connection:
            entry = self._entry(connection, which)
            (read,) = self._used(connection, entry, RUN, "run")
            table, _ = read_pairs(read, f"evaluation {entry.id}", wanted)
        return Run(table, name=entry.run, settings=entry.run_settings)

    def qrels(self, which: int | str | HistoryEntry, queries: Iterable[Id] | None = None) -> Qrels | SpecialQrels:
        """Return the judgments of an evaluation exactly as they were added.

        Args:
            which: The number, the short name, or the metadata of the evaluation.
            queries: Read only the judgments of these queries.

        Raises:
            InputError: If the evaluation does not exist, was saved without judgments, or is damaged.
        """
        with self._database.reading() as connection:
            entry = self._entry(connection, which)
            (read,) = self._used(connection, entry, JUDGMENTS, "qrels")
            wanted = None if queries is None else map(id_bytes, queries)
            table, reads = read_pairs(read, f"evaluation {entry.id}", wanted)
        return special_qrels(reads).of_keyed(table) if reads else Qrels(table)

    def collection(
        self,
        which: int | str | HistoryEntry,
        documents: Iterable[str] | None = None,
        queries: Iterable[str] | None = None,
    ) -> Collection:
        """Return the texts saved with an evaluation: its queries, and retrieved and judged documents.

        Args:
            which: The number, the short name, or the metadata of the evaluation.
            documents: Read only the texts of these documents, which is fast.
            queries: With documents: read only the texts of these queries.

        Raises:
            InputError: If the evaluation does not exist, was saved without texts, or is damaged.
        """
        with self._database.reading() as connection:
            entry = self._entry(connection, which)
            pairs = []
            for kind in (RUN, JUDGMENTS) if documents is None else ():
                for read in self._used(connection, entry, kind):
                    table, reads = read_pairs(read, "")
                    pairs.append(special_qrels(reads).of_keyed(table) if reads else Pairs(table))
            texts: dict[str, dict[str, TextRow]] = {}
            ids = {kind: ids_in(kind, pairs) for kind in (QUESTIONS, DOCUMENTS)}
            if documents is not None:
                wanted_queries = self._query_ids(connection, entry) if queries is None else queries
                ids = {QUESTIONS: set(wanted_queries), DOCUMENTS: set(documents)}
            for kind, wanted in ids.items():
                texts[kind] = {}
                for read in self._used(connection, entry, kind) if wanted else ():
                    texts[kind] |= {row.id: row for row in read_texts(read, wanted - texts[kind].keys())}
        if not any(texts.values()):
            raise self._without(entry, "texts", "collection")
        documents = {key: Document(key, row.title, row.text, row.fields) for key, row in texts[DOCUMENTS].items()}
        queries = {key: Query(key, row.text, row.fields) for key, row in texts[QUESTIONS].items()}
        return Collection(documents, queries, f"evaluation {entry.id}")

    def answers(self, which: int | str | HistoryEntry) -> dict[str, Mapping[str, Any]]:
        """Return the fields of the answers saved with an evaluation, by question.

        Raises:
            InputError: If the evaluation does not exist, was saved without answers, or is damaged.
        """
        with self._database.reading() as connection:
            reads = self._used(connection, self._entry(connection, which), ANSWERS, "answers")
            return {row.id: row.fields for read in reads for row in read_texts(read)}

    def sizes(self) -> dict[str, int]:
        """Return the bytes of values and of each kind of artifact, after compression.

        Raises:
            InputError: If the store does not exist or cannot be read.
        """
        from sqlalchemy import func, select

        values, artifacts = map(SCHEMA.table, ("values", "artifacts"))
        by_kind = select(artifacts.c.kind, func.sum(artifacts.c.size)).group_by(artifacts.c.kind)
        with self._database.reading() as connection:
            sizes = {"values": connection.scalar(select(func.sum(func.length(values.c.body))))}
            sizes |= dict(connection.execute(by_kind.order_by(artifacts.c.kind)).all())
        return {kind: int(size or 0) for kind, size in sizes.items()}

    # ---- rows

    @cached_property
    def _artifacts(self) -> Artifacts:
        return Artifacts(self._database)

    def _used(self, connection: Connection, entry: HistoryEntry, kind: str, argument: str = "") -> list[Read]:
        """Return functions that read the artifacts of an evaluation; one at least if `argument` would save them."""
        artifacts, uses = map(SCHEMA.table, ("artifacts", "uses"))
        names = (
            artifacts.join(uses, uses.c.artifact == artifacts.c.name)
            .select()
            .with_only_columns(artifacts.c.name)
            .where(uses.c.evaluation == entry.id, artifacts.c.kind == kind)
            .order_by(uses.c.number)
        )
        reads: list[Read] = [partial(self._artifacts.read, connection, name) for name in connection.scalars(names)]
        if argument and not reads:
            raise self._without(entry, kind, argument)
        return reads

    def _without(self, entry: HistoryEntry, what: str, argument: str) -> InputError:
        return InputError(
            f"evaluation {entry.id} was saved without its {what}",
            where=self.where,
            fix=f"pass them when saving: history.add(evaluation, ..., {argument}={argument})",
        )

    def _entries(self, connection: Connection, run: str | None) -> Iterator[HistoryEntry]:
        table = SCHEMA.table("evaluations")
        asked = table.select().with_only_columns(table.c.id, table.c.time, table.c.head, table.c.seal)
        if run is not None:
            asked = asked.where(table.c.run == _plain(run))
        for row in connection.execute(asked.order_by(table.c.id)):
            yield HistoryEntry.unread(row[0], partial(self._read, *row))

    def _entry(self, connection: Connection, which: int | str | HistoryEntry) -> HistoryEntry:
        from sqlalchemy import func, select

        table = SCHEMA.table("evaluations")
        asked = select(table.c.id, table.c.time, table.c.head, table.c.seal).order_by(table.c.id.desc()).limit(1)
        number: Any = which.id if isinstance(which, HistoryEntry) else which
        if which == "@baseline":
            if not self.baseline:
                raise InputError(
                    "there is no baseline", where=self.where, fix='write baseline = "bm25" in rankgauge.toml'
                )
            number = self.baseline if is_short_name(self.baseline) else f"{self.baseline}@latest"
        if isinstance(number, str) and (match := SHORT_NAME.fullmatch(f"#{number}" if number.isdecimal() else number)):
            if match["run"]:
                asked = asked.where(table.c.run == _plain(match["run"]))
            number = None if match["number"] is None else int(match["number"])
        elif isinstance(number, bool) or not isinstance(number, int):
            raise InputError(
                f"got {number!r:.60}, expected the number or the short name of an evaluation, such as bm25#3",
                where=self.where,
                fix=_LIST,
            )
        if number is not None:  # otherwise the latest
            asked = asked.where(table.c.id == (number if 0 < number < 2**31 else 0))
        row = connection.execute(asked).first()
        if row is None:
            count = connection.scalar(select(func.count()).select_from(table)) or 0
            raise InputError(
                f"there is no evaluation {getattr(which, 'id', which)} among the {count} saved",
                where=self.where,
                fix=_LIST,
            )
        return self._read(*row)

    def _read(self, number: int, time: str, head: str, sealed: str) -> HistoryEntry:
        if seal(time, head) != sealed:
            raise self._database.damaged(f"evaluation {number} differs from what was saved")
        try:
            return read_entry(number, time, head)
        except ValueError as error:
            raise self._broken(error) from None

    def _load(self, connection: Connection, entry: HistoryEntry, name: str = "") -> Evaluation:
        """Return an evaluation, or only its values of the measure `name`."""
        table = SCHEMA.table("values")
        columns = (table.c.kind, table.c.name, table.c.body)
        asked = table.select().with_only_columns(*columns).where(table.c.evaluation == entry.id)
        if name:
            entry = replace(entry, means={name: entry.means[name]})
            asked = asked.where(table.c.kind == VALUES, table.c.name == name)
        parts = {(kind, own): body for kind, own, body in connection.execute(asked)}
        ids = self._query_ids(connection, entry)
        try:
            return unpack(entry, ids, parts)
        except ValueError as error:
            raise self._broken(error) from None

    def _query_ids(self, connection: Connection, entry: HistoryEntry) -> tuple[str, ...]:
        queries = SCHEMA.table("queries")
        ids = connection.scalar(
            queries.select().with_only_columns(queries.c.ids).where(queries.c.hash == entry.query_set)
        )
        if ids is None:
            raise self._database.damaged("the ids of its queries are missing")
        try:
            return unpack_ids(ids, entry.query_set)
        except ValueError as error:
            raise self._broken(error) from None

    def _broken(self, error: ValueError) -> RankgaugeError:
        """Return the error for an unreadable evaluation."""
        return error if isinstance(error, RankgaugeError) else self._database.damaged(str(error))


def _inputs(evaluation: Evaluation, qrels: Any, run: Any) -> tuple[dict[str, Pairs | SpecialQrels], str | None]:
    """Return the run and the judgments to save, and the fingerprint of the judgments."""
    pairs: dict[str, Pairs | SpecialQrels] = {} if run is None else {RUN: Run.of(run)}
    if qrels is None:
        return pairs, None
    truth = qrels.qrels if isinstance(qrels, Records) else Qrels.of(qrels)
    for query in evaluation.query_ids:
        if query not in truth:
            raise MismatchError(
                f"query {query!r} of the evaluation is not in these judgments",
                where="history",
                fix="pass the judgments that the evaluation was made with",
            )
    if isinstance(qrels, Records):
        pairs.setdefault(RUN, qrels.run)
        both = [fingerprint(qrels.qrels), fingerprint(qrels.graded)]
        if both[0] != both[1]:
            return pairs, hashlib.sha256("".join(both).encode()).hexdigest()
    pairs[JUDGMENTS] = qrels if isinstance(qrels, SpecialQrels) else truth
    return pairs, fingerprint(pairs[JUDGMENTS])


def seal(time: str, head: str) -> str:
    """Return the hash that detects changes of an evaluation's metadata."""
    return hashlib.sha256(f"{time}\n{head}".encode()).hexdigest()


def _plain(text: str) -> str:
    """Return a name that every database can store: without NUL and other control characters."""
    return text.encode("unicode_escape").decode("ascii")


def _label(label: Any) -> str:
    if not isinstance(label, str) or len(label) > _LONGEST or not label.isprintable():
        raise InputError(
            f"got {label!r:.60} for the label",
            where="label",
            fix=f"pass one line of text of at most {_LONGEST} characters",
        )
    return label


def utc(time: datetime | date | str | None) -> datetime:
    """Convert a time to UTC; naive times are UTC, dates are midnight UTC."""
    if time is None:
        return datetime.now(UTC)
    try:
        moment: Any = datetime.fromisoformat(time) if isinstance(time, str) else time
        if isinstance(moment, date) and not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
        if isinstance(moment, datetime):
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # not a date, or out of range in UTC
    raise InputError(
        f"got {time!r:.60}, expected a time",
        where="time",
        fix='pass a datetime, a date, or ISO text: time="2026-01-05T12:30:00+00:00"',
    )
