"""Judgments by subtopic, and runs joined with them: the input of diversity measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import FloatArray, offsets_of, ranges_of
from rankgauge.core.text import many
from rankgauge.data.join import Joined
from rankgauge.data.judged_run import UNRANKED, BoolArray, Cached, JudgedRun, Level, best_grade
from rankgauge.data.qrels import Qrels
from rankgauge.data.special_qrels import SpecialQrels, as_mapping
from rankgauge.errors import InputError
from rankgauge.formats.extra_columns import Wide, WideRows
from rankgauge.formats.lines import Source

_MAPPING = '{"q1": {"d1": {"subtopic": grade}}}'
# Values of the second field in judgments without subtopics.
_ITERATIONS = {b"0", b"Q0"}


def _rows_of(data: Mapping[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield rows of query -> document -> subtopic -> grade, or -> list of covered subtopics."""
    for query, docs in data.items():
        for doc, covered in as_mapping(docs, f"query {query!r}", "documents", _MAPPING).items():
            if isinstance(covered, list | tuple | set | frozenset):
                for subtopic in covered:
                    yield query, subtopic, doc, 1
                continue
            where = f"query {query!r}, document {doc!r}"
            for subtopic, grade in as_mapping(covered, where, "subtopics", _MAPPING).items():
                yield query, subtopic, doc, grade


@dataclass(frozen=True, eq=False, repr=False)
class SubtopicQrels(SpecialQrels):
    """Judgments by subtopic: query id to document id to subtopic to grade. Immutable.

    A query may have several meanings or aspects, its *subtopics*. Diversity measures
    (``alpha_nDCG``, ``ERR_IA``, ...) measure how many of them a ranking covers. Create it with
    :meth:`of`. It is a mapping: ``judgments["q1"]["d1"]["2"]`` is the grade of the document for
    subtopic 2 of the query; a list of subtopics means grade 1 for each. Columns and rows are
    ``query_id, subtopic_id, doc_id, relevance``.

    Example:
        >>> judged = SubtopicQrels.of({"q1": {"d1": {"a": 1}, "d2": {"a": 0, "b": 2}}})
        >>> judged["q1"]["d2"], judged.qrels["q1"]
        ({'a': 0.0, 'b': 2.0}, {'d1': 1.0, 'd2': 2.0})
    """

    reads = "subtopics"
    labeled = "subtopics"
    note = "judged by subtopic; ordinary measures read the highest grade of each document"
    nesting = ("document", "subtopic")
    judged_once = ("subtopic",)
    layout = Wide(
        words="judgments by subtopic",
        fields=("query", "subtopic", "document", "grade"),
        columns={
            "subtopic": (
                "subtopic_id",
                "subtopic",
                "subtopicid",
                "intent_id",
                "intent",
                "aspect_id",
                "aspect",
                "nugget_id",
                "nugget",
                "iteration",
            )
        },
        example="q1 2 d1 1",
        mapping=_MAPPING,
        rows_of=_rows_of,
    )

    @classmethod
    def _made(cls, rows: WideRows, query: IntArray, queries: Ids, *notes: str) -> Self:
        names = rows.labels["subtopic"].unique()[1].tolist()
        if len(names) == 1 and names[0] in _ITERATIONS:
            # Ordinary judgments: the second field is not a subtopic.
            raise InputError(
                f"these judgments have no subtopics: all are of '{names[0].decode()}'",
                where=rows.source,
                fix="pass judgments by subtopic, with lines such as: q1 2 d1 1 (query, subtopic, document, grade)",
            )
        found = super()._made(rows, query, queries, *notes)
        if found.width > 1:
            return found
        text = f"WARNING: {rows.source}: no query has more than one subtopic"
        return replace(found, qrels=Qrels(found.qrels.table.with_notes(text)))

    def __repr__(self) -> str:
        return (
            f"<SubtopicQrels: {many(len(self), 'query')}, "
            f"{many(self.label_number[1], 'subtopic')}, {many(len(self.grade), 'judgment')}>"
        )

    @cached_property
    def _per_row(self) -> IntArray:
        """(R,) number of grades for the document in each row of ``qrels.table``."""
        return np.bincount(self.row, minlength=len(self.qrels.table))

    def _seen(self, block: JudgedRun, queries: IntArray) -> SubtopicRun:
        stop = self.qrels.table.offsets[queries + 1]
        start, sizes = self.offsets[queries], np.diff(self.offsets)[queries]
        at = ranges_of(start, sizes)
        query = np.repeat(np.arange(len(queries)), sizes)
        number = self.label_number[0][at]
        # Subtopics are the first axis, so that each is a contiguous matrix.
        pool = np.zeros((int(number.max(initial=0)) + 1, len(queries), block.ideal.shape[1]))
        # Descending ids, because ties in the ideal ranking are broken by the highest id.
        pool[number, query, (stop - 1)[query] - self.row[at]] = self.grade[at]
        rows = block.grade.astype(np.int64)
        place = np.where(block.in_qrels, (stop - 1)[:, None] - rows, 0)
        grade = np.take_along_axis(pool, place[None], axis=2)
        grade[:, ~block.in_qrels] = 0.0
        highest = self.qrels.table.values[rows]
        return SubtopicRun(
            rank=block.rank,
            grade=np.moveaxis(grade, 0, 2),
            judged=block.in_qrels & (highest >= 0),
            pool=np.moveaxis(pool, 0, 2),
            retrieved=block.retrieved,
        )

    def tied(self, joined: Joined) -> IntArray:
        """Return the queries with a tie between documents that cover different subtopics."""
        inside = np.flatnonzero(joined.tie_first != joined.tie_last)
        kind = np.zeros(len(joined.rank))
        kind[inside] = self._kinds(joined.rows[inside])
        return replace(joined, grade=kind).tied()

    def _kinds(self, rows: IntArray) -> FloatArray:
        """Number documents so that equal numbers mean equal grades; 0 if none is positive."""
        wide = np.zeros((len(rows), self.width))
        sizes = self._per_row[rows]
        at = ranges_of(offsets_of(self._per_row)[rows], sizes)
        wide[np.repeat(np.arange(len(rows)), sizes), self.label_number[0][at]] = self.grade[at]
        wide = np.maximum(wide, 0.0)
        order = np.lexsort(wide.T)
        new = (wide[order][1:] != wide[order][:-1]).any(axis=1)
        kinds = np.ones(len(rows))
        kinds[order[1:]] += np.cumsum(new)
        return np.where(wide.any(axis=1), kinds, 0.0)


@dataclass(frozen=True, eq=False)
class SubtopicRun(Cached):
    """A run joined with judgments by subtopic: the input of diversity measures.

    Row q is a query; column j is the j-th document that was retrieved and is in the judgments, best
    rank first. S is the largest number of subtopics of these queries; a missing subtopic is one
    without relevant documents.

    Attributes:
        rank: (Q, J) int, 1-based rank in the run; `UNRANKED` where padded.
        grade: (Q, J, S) float, grade for each subtopic; 0 where padded.
        judged: (Q, J) bool, whether the highest grade is 0 or more.
        pool: (Q, N, S) float, grades of all judged documents by descending document id; 0 where
            padded.
        retrieved: (Q,) int, number of documents retrieved.
    """

    rank: IntArray
    grade: FloatArray
    judged: BoolArray
    pool: FloatArray
    retrieved: IntArray

    def __len__(self) -> int:
        return len(self.retrieved)

    def reaches(self, grades: FloatArray, rel: Level) -> BoolArray:
        """Return which grades are relevant, (Q, N, S); ``best`` is the highest of the query."""
        if isinstance(rel, str):
            return grades >= best_grade(self.pool.reshape(len(self.pool), -1))[:, :, None]
        return grades >= rel

    def hits(self, rel: Level) -> BoolArray:
        """Return whether each document is relevant to each subtopic, (Q, J, S)."""
        return self.once(("hits", rel), lambda: self.reaches(self.grade, rel))

    def within(self, k: int) -> BoolArray:
        """Return whether each document is in the first `k`, (Q, J)."""
        return self.once(("within", k), lambda: self.rank <= k)

    def relevant(self, rel: Level) -> IntArray:
        """Return the number of relevant documents of each subtopic, (Q, S), retrieved or not."""
        return self.once(("relevant", rel), lambda: np.add.reduce(self.reaches(self.pool, rel), axis=1, dtype=np.int64))

    def subtopics(self, rel: Level) -> FloatArray:
        """Return the number of subtopics with a relevant document, (Q,); NaN if there is none.

        Dividing by it then gives an undefined value.
        """
        found = JudgedRun.count(self.relevant(rel) > 0)
        return np.where(found > 0, found, np.nan)

    @staticmethod
    def total(values: npt.NDArray[Any]) -> FloatArray:
        """Return the sum of each row, (Q,); see :meth:`JudgedRun.total`."""
        return JudgedRun.total(values)

    def judged_only(self) -> SubtopicRun:
        """Return the run without documents that lack a grade >= 0, ranked again."""
        return self.once("judged_only", self._of_judged)

    def _of_judged(self) -> SubtopicRun:
        first = np.argsort(~self.judged, axis=1, kind="stable")
        judged = np.take_along_axis(self.judged, first, axis=1)
        grade = np.take_along_axis(self.grade, first[:, :, None], axis=1)
        return SubtopicRun(
            rank=np.where(judged, np.arange(1, judged.shape[1] + 1), UNRANKED),
            grade=np.where(judged[:, :, None], grade, 0.0),
            judged=judged,
            pool=self.pool,
            retrieved=np.count_nonzero(judged, axis=1),
        )


def read_subtopic_qrels(path: Source, *, format: str | None = None) -> SubtopicQrels:
    r"""Read judgments by subtopic from a file.

    Args:
        path: A file in the format of TREC diversity judgments (``query subtopic document grade``),
            CSV, TSV, or JSON lines with a header or keys (``query_id, subtopic_id, doc_id,
            relevance``), or JSON (query to document to subtopic to grade), also compressed; ``-``
            for standard input; or ``ir_datasets:NAME``.
        format: ``trec``, ``csv``, ``tsv``, ``json``, or ``jsonl``, if name and first line are
            ambiguous.

    Raises:
        FormatError: With path and line, if a line is invalid.
        InputError: If the file does not exist, or a grade is duplicated.
    """
    return SubtopicQrels.read(path, format)
