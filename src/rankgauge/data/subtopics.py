"""Judgments with subtopics, and a run seen through them: what measures of diversity read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Id, Ids, IntArray, freeze, id_bytes, show_id
from rankgauge.core.pair_table import FloatArray, PairTable, distinct, offsets_of
from rankgauge.data.join import Joined, numbered
from rankgauge.data.judged_run import UNRANKED, BoolArray, JudgedRun, Level, best_grade
from rankgauge.data.model import Qrels, Run
from rankgauge.errors import InputError
from rankgauge.formats.extra_columns import Wide, WideRows, row_place, wide_rows
from rankgauge.formats.lines import Source

__all__ = ["SubtopicQrels", "SubtopicRun", "read_subtopic_qrels"]

_Array = TypeVar("_Array", bound=npt.NDArray[Any])
# Cells of one block, each a document and a subtopic.
_CELLS = 1 << 17
_READ = "judged by subtopic; ordinary measures read the highest grade of each document"
# What stands in the second field of judgments that have no subtopics.
_ITERATIONS = {b"0", b"Q0"}


def _rows_of(data: Mapping[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of query -> document -> subtopic -> grade, or -> the subtopics it covers."""
    for query, docs in data.items():
        if not isinstance(docs, Mapping):
            raise _no_mapping(f"query {query!r}", docs, "documents")
        for doc, covered in docs.items():
            if isinstance(covered, Mapping):
                for subtopic, grade in covered.items():
                    yield query, subtopic, doc, grade
            elif isinstance(covered, list | tuple | set | frozenset):
                for subtopic in covered:
                    yield query, subtopic, doc, 1
            else:
                raise _no_mapping(f"query {query!r}, document {doc!r}", covered, "subtopics")


def _no_mapping(where: str, got: Any, wanted: str) -> InputError:
    return InputError(
        f"got {got!r:.60} where {wanted} were wanted",
        where=f"judgments, {where}",
        fix=f"write {_WIDE.mapping}",
    )


_WIDE = Wide(
    words="judgments by subtopic",
    fields=("query", "subtopic", "document", "grade"),
    columns={
        "subtopic": (
            "subtopic_id", "subtopic", "subtopicid", "intent_id", "intent", "aspect_id", "aspect",
            "nugget_id", "nugget", "iteration",
        )
    },
    numbers=frozenset(),
    example="q1 2 d1 1",
    mapping='{"q1": {"d1": {"subtopic": grade}}}',
    rows_of=_rows_of,
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class SubtopicQrels(Mapping[str, Mapping[str, Mapping[str, float]]]):
    """Judgments by subtopic: query id to document id to subtopic to grade. Immutable.

    A query may mean several things, or a question have several sides: its *subtopics*. Measures of
    diversity (``alpha_nDCG``, ``ERR_IA``, ...) ask which of them a ranking covers. Make it with
    :meth:`of`. It is a mapping: ``judgments["q1"]["d1"]["2"]`` is the grade of the document for
    subtopic 2 of the query.

    Attributes:
        qrels: The same as ordinary judgments: of each document its highest grade over subtopics.
        subtopics: The subtopics of all queries, ascending by their bytes within each.
        subtopic_offsets: (Q + 1,) those of query q are ``offsets[q]:offsets[q + 1]``.
        entries: (R + 1,) the grades of the document in row r of ``qrels.table`` are
            ``entries[r]:entries[r + 1]``.
        subtopic: (E,) the subtopic of each grade, by its number within the query.
        grade: (E,) the grade.

    Example:
        >>> judged = SubtopicQrels.of({"q1": {"d1": {"a": 1}, "d2": {"a": 0, "b": 2}}})
        >>> judged["q1"]["d2"], judged.qrels["q1"]
        ({'a': 0.0, 'b': 2.0}, {'d1': 1.0, 'd2': 2.0})
    """

    reads: ClassVar[str] = "subtopics"

    qrels: Qrels
    subtopics: Ids
    subtopic_offsets: IntArray
    entries: IntArray
    subtopic: IntArray
    grade: FloatArray

    def __post_init__(self) -> None:
        freeze(self.subtopic_offsets, self.entries, self.subtopic, self.grade)

    @classmethod
    def of(cls, source: Any) -> SubtopicQrels:
        """Judgments by subtopic from whatever holds them.

        Args:
            source: A mapping of query id to document id to ``{subtopic: grade}`` (or to a list of
                the subtopics it covers); a path (see :func:`read_subtopic_qrels`); a data frame or
                a mapping of columns with ``query_id, subtopic_id, doc_id, relevance``; rows
                ``(query, subtopic, document, grade)`` or objects with such names; or judgments by
                subtopic, which are returned as they are.

        Raises:
            InputError: If it is none of these, or a grade of a document stands twice.

        Example:
            >>> SubtopicQrels.of([("q1", "a", "d1", 1), ("q1", "b", "d1", 1)])["q1"]
            {'d1': {'a': 1.0, 'b': 1.0}}
        """
        if isinstance(source, SubtopicQrels):
            return source
        if isinstance(source, Qrels | Run):
            raise InputError(
                "these judgments have no subtopics"
                if isinstance(source, Qrels)
                else f"got the run {source.name!r} where judgments were wanted",
                where="judgments",
                fix=f"give judgments by subtopic: a path, {_WIDE.mapping}, or rows "
                f"({', '.join(_WIDE.fields)})",
            )
        return _made(wide_rows(source, _WIDE))

    def __len__(self) -> int:
        return len(self.qrels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.qrels)

    def __getitem__(self, query: Id) -> Mapping[str, Mapping[str, float]]:
        number = self.qrels.query_index.get(id_bytes(query))
        if number is None:
            raise KeyError(query)
        table = self.qrels.table
        first, stop = table.offsets[number : number + 2].tolist()
        start, end = self.subtopic_offsets[number : number + 2].tolist()
        names = self.subtopics.take(slice(start, end)).shown()
        docs = table.docs.take(slice(first, stop)).shown()
        return {
            doc: {
                names[self.subtopic[entry]]: float(self.grade[entry])
                for entry in range(self.entries[row], self.entries[row + 1])
            }
            for row, doc in enumerate(docs, start=first)
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SubtopicQrels):
            return NotImplemented
        return {q: self[q] for q in self} == {q: other[q] for q in other}

    __hash__ = None  # type: ignore[assignment] # holds arrays

    def __repr__(self) -> str:
        return (
            f"<SubtopicQrels: {len(self)} queries, {len(self.subtopics)} subtopics, "
            f"{len(self.grade)} judgments>"
        )

    @cached_property
    def keyed(self) -> PairTable:
        """The same in pairs: each document with a NUL and a subtopic behind it, and the grade."""
        table = self.qrels.table
        per_row = np.diff(self.entries)
        docs = np.repeat(np.arange(len(table)), per_row)
        start = np.repeat(self.subtopic_offsets[table.query_numbers()], per_row)
        names = self.subtopics.tolist()
        pairs = zip(table.docs.take(docs).tolist(), (start + self.subtopic).tolist(), strict=True)
        packed = Ids.keyed((doc, names[number]) for doc, number in pairs)
        return PairTable(
            table.queries, self.entries[table.offsets], packed, self.grade, unique=True
        )

    @cached_property
    def _most(self) -> int:
        """The most subtopics a query has."""
        return int(np.diff(self.subtopic_offsets).max(initial=1))

    def blocks(
        self, joined: Joined, queries: IntArray, cells: int = _CELLS
    ) -> Iterator[tuple[IntArray, SubtopicRun]]:
        """The runs of these queries seen by subtopic, each with the places of its rows.

        Args:
            joined: A run, joined with `qrels`.
            queries: The numbers of the queries.
            cells: How large a block may be: no value depends on it.
        """
        joined = joined.by_rows(self._numbered)
        for places, block in joined.blocks(queries, max(1, cells // self._most)):
            yield places, self._seen(block, queries[places])

    @cached_property
    def _numbered(self) -> Qrels:
        return numbered(self.qrels)

    def _seen(self, block: JudgedRun, queries: IntArray) -> SubtopicRun:
        offsets = self.qrels.table.offsets
        first, stop = offsets[queries], offsets[queries + 1]
        start, sizes = self.entries[first], self.entries[stop] - self.entries[first]
        at = np.repeat(start - offsets_of(sizes)[:-1], sizes) + np.arange(sizes.sum())
        query = np.repeat(np.arange(len(queries)), sizes)
        documents = stop - first
        row = np.repeat(first - offsets_of(documents)[:-1], documents) + np.arange(documents.sum())
        row = np.repeat(row, np.diff(self.entries)[row])
        width = max(1, int(np.diff(self.subtopic_offsets)[queries].max()))
        # A subtopic behind the other, so that one of them is a plain matrix.
        pool = np.zeros((width, len(queries), block.ideal.shape[1]))
        # Ids ascend in the table, and ties of the ideal ranking go to the highest.
        pool[self.subtopic[at], query, (stop - 1)[query] - row] = self.grade[at]
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
        """Queries in which a tie could change a value: its documents cover different subtopics."""
        inside = np.flatnonzero(joined.tie_first != joined.tie_last)
        kind = np.zeros(len(joined.rank))
        kind[inside] = self._kinds(joined.rows[inside])
        return replace(joined, grade=kind).tied()

    def _kinds(self, rows: IntArray) -> FloatArray:
        """A number for each of these documents, the same where the grades are; 0 without any."""
        wide = np.zeros((len(rows), self._most))
        starts, sizes = self.entries[rows], np.diff(self.entries)[rows]
        at = np.repeat(starts - offsets_of(sizes)[:-1], sizes) + np.arange(sizes.sum())
        wide[np.repeat(np.arange(len(rows)), sizes), self.subtopic[at]] = self.grade[at]
        wide = np.maximum(wide, 0.0)
        order = np.lexsort(wide.T)
        new = (wide[order][1:] != wide[order][:-1]).any(axis=1)
        kinds = np.ones(len(rows))
        kinds[order[1:]] += np.cumsum(new)
        return np.where(wide.any(axis=1), kinds, 0.0)


@dataclass(frozen=True, eq=False)
class SubtopicRun:
    """A run seen through judgments by subtopic: what a measure of diversity reads.

    Row q is a query; column j is the j-th document that it retrieved and that stands in the
    judgments, best rank first. S is the most subtopics that one of the queries has; one that a
    query does not have is a subtopic without a relevant document.

    Attributes:
        rank: (Q, J) int, the 1-based rank in the run; `UNRANKED` where padded.
        grade: (Q, J, S) float, its grade for each subtopic; 0 where padded.
        judged: (Q, J) bool, whether its highest grade is 0 or more.
        pool: (Q, N, S) float, the grades of every document in the judgments, document ids
            descending; 0 where padded.
        retrieved: (Q,) int, documents retrieved.
    """

    rank: IntArray
    grade: FloatArray
    judged: BoolArray
    pool: FloatArray
    retrieved: IntArray
    # What several measures read, by what it is of: neither compared nor pickled.
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.retrieved)

    def once(self, key: Hashable, make: Callable[[], _Array]) -> _Array:
        """An array that several measures read; see :meth:`JudgedRun.once`."""
        found: _Array | None = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
            freeze(found)
        return found

    def reaches(self, grades: FloatArray, rel: Level) -> BoolArray:
        """(Q, N, S) which of these grades are relevant; with ``best``, the highest of the query."""
        if isinstance(rel, str):
            return grades >= best_grade(self.pool.reshape(len(self.pool), -1))[:, :, None]
        return grades >= rel

    def hits(self, rel: Level) -> BoolArray:
        """(Q, J, S) whether a document is relevant to a subtopic."""
        return self.once(("hits", rel), lambda: self.reaches(self.grade, rel))

    def within(self, k: int) -> BoolArray:
        """(Q, J) whether a document stands in the first `k`."""
        return self.once(("within", k), lambda: self.rank <= k)

    def relevant(self, rel: Level) -> IntArray:
        """(Q, S) the relevant documents of each subtopic, retrieved or not."""
        return self.once(
            ("relevant", rel),
            lambda: np.add.reduce(self.reaches(self.pool, rel), axis=1, dtype=np.int64),
        )

    def subtopics(self, rel: Level) -> FloatArray:
        """(Q,) the subtopics with a relevant document; NaN where there is none.

        A value divided by it is then undefined.
        """
        found = JudgedRun.count(self.relevant(rel) > 0)
        return np.where(found > 0, found, np.nan)

    @staticmethod
    def total(values: npt.NDArray[Any]) -> FloatArray:
        """(Q,) the sum of each row; see :meth:`JudgedRun.total`."""
        return JudgedRun.total(values)

    def judged_only(self) -> SubtopicRun:
        """The same run without the documents that have no grade >= 0, ranked anew."""
        only: SubtopicRun | None = self._made.get("judged_only")
        if only is None:
            only = self._made["judged_only"] = self._of_judged()
        return only

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


def _made(rows: WideRows) -> SubtopicQrels:
    """The judgments of rows: sorted by query (as they came), document and subtopic."""
    _refuse_ordinary(rows)
    query, queries = rows.queries.unique()
    doc, subtopic = rows.docs.ascending(), rows.labels["subtopic"].ascending()
    order = np.lexsort((subtopic, doc, query))
    query, doc, subtopic = query[order], doc[order], subtopic[order]
    other = np.ones(len(order), dtype=bool)
    other[1:] = (query[1:] != query[:-1]) | (doc[1:] != doc[:-1])
    twice = np.flatnonzero(~other[1:] & (subtopic[1:] == subtopic[:-1]))
    if len(twice):
        raise _repeated(rows, *order[int(twice[0]) : int(twice[0]) + 2].tolist())
    wide = len(rows.queries) + 1
    pairs = query * wide + subtopic
    known = distinct(pairs)
    notes: tuple[str, ...] = (f"{rows.source}: {_READ}",)
    if len(known) == len(queries):
        notes += (f"WARNING: {rows.source}: no query has more than one subtopic",)
    heads = np.flatnonzero(other)
    grades = rows.grades[order]
    table = PairTable(
        queries,
        offsets_of(np.bincount(query[heads], minlength=len(queries))),
        rows.docs.take(order[heads]).compact(),
        np.maximum.reduceat(grades, heads),
        unique=True,
        source=rows.source,
        notes=notes,
    )
    offsets = np.searchsorted(known, np.arange(len(queries) + 1) * wide)
    of_pair = np.empty(len(known), dtype=np.int64)
    place = np.searchsorted(known, pairs)
    of_pair[place] = order
    return SubtopicQrels(
        qrels=Qrels(table),
        subtopics=rows.labels["subtopic"].take(of_pair).compact(),
        subtopic_offsets=offsets,
        entries=np.append(heads, len(order)),
        subtopic=place - offsets[query],
        grade=grades,
    )


def _refuse_ordinary(rows: WideRows) -> None:
    """Refuse ordinary judgments, whose second field is no subtopic.

    Raises:
        InputError: If they are such.
    """
    names = rows.labels["subtopic"].unique()[1].tolist()
    if len(names) == 1 and names[0] in _ITERATIONS:
        raise InputError(
            f"these judgments have no subtopics: each is of '{names[0].decode()}'",
            where=rows.source,
            fix="give judgments by subtopic, with lines such as: q1 2 d1 1 (query, subtopic, "
            "document, grade)",
        )


def _repeated(rows: WideRows, *places: int) -> InputError:
    query, doc = show_id(rows.queries[places[0]]), show_id(rows.docs[places[0]])
    subtopic = show_id(rows.labels["subtopic"][places[0]])
    return InputError(
        f"document '{doc}' is judged twice for subtopic '{subtopic}' of query '{query}'",
        where=row_place(rows, *sorted(places)),
        fix="keep one judgment of each query, subtopic and document",
    )


def read_subtopic_qrels(path: Source, *, format: str | None = None) -> SubtopicQrels:
    r"""Read judgments by subtopic from a file.

    Args:
        path: A file in the format of the diversity judgments of TREC (``query subtopic document
            grade``), CSV, TSV or JSON lines with a header or keys (``query_id, subtopic_id, doc_id,
            relevance``), or JSON (query to document to subtopic to grade); packed too; ``-`` for
            standard input; or ``ir_datasets:NAME``.
        format: ``trec``, ``csv``, ``tsv``, ``json`` or ``jsonl``, where name and first line do not
            say it.

    Raises:
        FormatError: With path and line, if a line does not fit.
        InputError: If there is no such file, or a grade stands twice.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "qrels.div"
        >>> _ = path.write_text("q1 1 d1 1\nq1 2 d1 0\nq1 2 d2 1\n")
        >>> read_subtopic_qrels(path)
        <SubtopicQrels: 1 queries, 2 subtopics, 3 judgments>
    """
    return _made(wide_rows(path, _WIDE, format))
