"""Split records that contain rankings and judgments into judgments and a run."""

from __future__ import annotations

import bisect
import itertools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankgauge.core.ids import Blame, Ids, show_id
from rankgauge.core.pair_table import FloatArray, PairTable, distinct, offsets_of
from rankgauge.core.text import keep, many
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout, finite_numbers
from rankgauge.formats.records import Record, RecordRows, read_records


@dataclass(frozen=True)
class Records:
    """Records, split into judgments and a run. Create them with :meth:`of`.

    A record contains the retrieved and the relevant documents of a query, and optionally grades and
    retrieval scores.

    Attributes:
        qrels: Judgments for binary measures.
        graded: Judgments for graded measures; the same object if the two agree.
        run: The rankings.
        notes: Notes on interpretation.

    Example:
        >>> records = Records.of([{"id": "q1", "retrieved": ["d2", "d1"], "relevant": {"d1"}}])
        >>> records.qrels["q1"], list(records.run["q1"])
        ({'d1': 1.0}, ['d2', 'd1'])
    """

    qrels: Qrels
    graded: Qrels
    run: Run
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: Any) -> Records:
        """Convert any supported source to records.

        The fields of a record are ``id``, ``retrieved`` (best first, or document id to score),
        ``relevant`` (document ids, or document id to grade), ``relevance_scores`` (document id to
        grade), and ``retrieval_scores`` (one for each retrieved document). Only the ranking and one
        kind of judgments are required. Alternative names: ``query_id``, ``qid``, ``question_id``;
        ``retrieved_ids``, ``retrieved_doc_ids``, ``retrieved_docs``; ``relevant_ids``,
        ``relevant_doc_ids``, ``relevant_docs``; ``relevance_grades``; ``scores``. Without ids,
        queries are numbered from 1.

        If ``relevant`` and the grades disagree, binary measures use ``relevant`` and graded
        measures use the grades, with a note. If list order and retrieval scores disagree, the
        scores determine the ranking, with a note.

        Args:
            source: A list (or any iterable) of mappings, of tuples ``(retrieved, relevant)`` or
                ``(id, retrieved, relevant)``, optionally followed by grades, or of objects with
                such attributes; parallel lists ``{"retrieved": [[...]], "relevant": [[...]]}`` or a
                data frame with such columns; records by query id; the path of a file of JSON lines
                or a JSON list; or records, which are returned unchanged. A list of numbers, such as
                ``[0, 1, 2]``, has the grades of a ranking, best rank first.

        Raises:
            InputError: If a field is missing, duplicated, or inconsistent; the message names the
                record or the line of the file.
            UnknownName: If a key is a misspelling of one of these names.

        Example:
            >>> Records.of([(["d2", "d1"], {"d1"}), (["d3"], {"d4"})]).run.query_ids
            ('1', '2')
        """
        if isinstance(source, Records):
            return source
        if isinstance(source, Qrels | Run):
            raise InputError(
                f"got {type(source).__name__} alone, expected records or judgments and a run",
                fix="pass both: evaluate(qrels, run)",
            )
        read = read_records(source)
        queries, numbered = _queries(read)
        docs = _packed(read.rows, [row.docs for row in read.rows], "document id")
        # A plain list is a ranking: the first document gets the highest score.
        ranks_or_scores = [range(len(row.docs), 0, -1) if row.scores is None else row.scores for row in read.rows]
        scores = _numbers(read.rows, ranks_or_scores, RUN)
        offsets = offsets_of([len(row.docs) for row in read.rows])
        rising = np.flatnonzero(scores[1:] > scores[:-1]) + 1
        row = np.searchsorted(offsets, rising, side="right") - 1
        # Ignore the first score of each query, which follows another query's score.
        reordered = len(distinct(row[offsets[row] != rising]))
        run = Run.of(PairTable(queries, offsets, docs, scores, source=read.source))
        if isinstance(source, str | os.PathLike) and source != "-":
            run = Run.of(run, name=Path(source).name.partition(".")[0] or "run")
        qrels, graded, notes = _judgments(read, queries)
        messages = keep(
            numbered and "without ids: queries are numbered from 1",
            *notes,
            reordered
            and f"{many(reordered, 'query')} whose list order and retrieval scores disagree: the scores are used",
        )
        return cls(qrels, graded, run, (*read.notes, *(f"{read.source}: {message}" for message in messages)))

    @classmethod
    def of_inputs(cls, qrels: Any, run: Any) -> Records:
        """Convert judgments and a run; without `run`, convert records with both."""
        if run is None:
            return cls.of(qrels)
        judged = Qrels.of(qrels)
        return cls(judged, judged, Run.of(run))


def _queries(read: RecordRows) -> tuple[Ids, bool]:
    """Return the query ids, and whether they were generated because no record has one."""
    without = [row for row in read.rows if row.id is None]
    if len(without) == len(read.rows):
        return Ids.of([str(number) for number in range(1, len(read.rows) + 1)]), True
    if without:
        raise InputError(
            f"it has no id, like {len(without)} of {len(read.rows)} records; the others have one",
            where=without[0].place,
            fix="give every record an id, or none",
        )
    ids = _packed(read.rows, [[row.id] for row in read.rows], "query id")
    first: dict[bytes, Record] = {}
    for row, query in zip(read.rows, ids.tolist(), strict=True):
        if query in first:
            raise InputError(
                f"query {show_id(query)!r} is already in {first[query].place}",
                where=row.place,
                fix="give every query one record",
            )
        first[query] = row
    return ids, False


def _judgments(read: RecordRows, queries: Ids) -> tuple[Qrels, Qrels, tuple[str, ...]]:
    """Return judgments for binary measures and for graded measures, and notes on them."""
    binary: list[dict[bytes, float]] = []
    graded: list[dict[bytes, float]] = []
    split = fractions = 0
    relevant_docs = _by_record(
        read.rows,
        [row.relevant or [] for row in read.rows],
        itertools.repeat(1.0),
        fault="a relevant document is listed twice: {doc!r}",
        fix="list every relevant document once, for example with set(...)",
    )
    graded_docs = [[doc for doc, _ in row.grades or []] for row in read.rows]
    listed_grades = [[grade for _, grade in row.grades or []] for row in read.rows]
    grade_maps = _by_record(
        read.rows,
        graded_docs,
        _numbers(read.rows, listed_grades, JUDGMENTS).tolist(),
        fault="document {doc!r} has two grades",
        fix="give every document one grade",
    )
    for row, relevant, grades in zip(read.rows, relevant_docs, grade_maps, strict=True):
        if row.grades is None:
            grades = dict.fromkeys(relevant, 1.0)  # noqa: PLW2901 - the grades of this row
        graded.append(grades)
        if row.relevant is None or set(relevant) == {d for d, g in grades.items() if g >= 1}:
            binary.append(grades)
            continue
        # Keep grades except where they contradict `relevant`.
        own = {doc: max(g, 1.0) if doc in relevant else min(g, 0.0) for doc, g in grades.items()}
        binary.append(dict.fromkeys(relevant, 1.0) | own)
        if set(relevant) == {doc for doc, grade in grades.items() if grade > 0}:
            fractions += 1
        else:
            split += 1
    notes = keep(
        split
        and f"{many(split, 'query')} where 'relevant' and the grades disagree; binary measures use "
        "'relevant', gains use the grades",
        fractions
        and f"{many(fractions, 'query')} with grades between 0 and 1; binary measures use "
        "'relevant', gains use the grades",
    )
    gains = _qrels(queries, graded, read.source)
    return (_qrels(queries, binary, read.source) if notes else gains), gains, notes


def _by_record(
    rows: Sequence[Record], docs: Sequence[Sequence[Any]], values: Iterable[float], *, fault: str, fix: str
) -> list[dict[bytes, float]]:
    """Return document id to value for each record; `fault` describes a repeated document."""
    ids, numbers = iter(_packed(rows, docs, "document id").tolist()), iter(values)
    maps = []
    for row, own in zip(rows, docs, strict=True):
        keys = list(itertools.islice(ids, len(own)))
        maps.append(dict(zip(keys, numbers, strict=False)))
        if len(maps[-1]) < len(keys):
            twice = next(key for place, key in enumerate(keys) if key in keys[:place])
            raise InputError(fault.format(doc=show_id(twice)), where=row.place, fix=fix)
    return maps


def _qrels(queries: Ids, rows: Sequence[dict[bytes, float]], source: str) -> Qrels:
    docs = Ids.of(list(itertools.chain.from_iterable(rows)), "document id")
    values = np.array([grade for row in rows for grade in row.values()], dtype=np.float64)
    offsets = offsets_of([len(row) for row in rows])
    return Qrels.of(PairTable(queries, offsets, docs, values, unique=True, source=source))


def _packed(rows: Sequence[Record], columns: Sequence[Sequence[Any]], what: str) -> Ids:
    """Return the ids of all records in one column; errors name the record."""
    return Ids.of(list(itertools.chain.from_iterable(columns)), what, _blame(rows, columns))


def _numbers(rows: Sequence[Record], columns: Sequence[Sequence[Any]], layout: Layout) -> FloatArray:
    """Return the finite numbers of all records in one column; errors name the record."""
    return finite_numbers(list(itertools.chain.from_iterable(columns)), layout, _blame(rows, columns))


def _blame(rows: Sequence[Record], columns: Sequence[Sequence[Any]]) -> Blame:
    """Return a factory of errors that locate a cell of a flattened column in its record."""
    ends = list(itertools.accumulate(map(len, columns)))

    def error(cell: int, what: str, fix: str) -> InputError:
        return InputError(what, where=rows[bisect.bisect_right(ends, cell)].place, fix=fix)

    return error
