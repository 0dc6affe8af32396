"""Judgments with labels in addition to grades: their base, judgments by subtopic, and of a sample.

Labels are the subtopic, the stratum, or group and subgroup (`preference_qrels`).
`formats.extra_columns` reads rows with these columns; this module arranges them by query, and joins
runs with them: the input of measures for diversity and for samples.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from rankgauge.core.arguments import of_kind
from rankgauge.core.ids import Id, Ids, IntArray, freeze, id_bytes, show_id
from rankgauge.core.pair_table import FloatArray, PairTable, distinct, heads_of, offsets_of, ranges_of
from rankgauge.core.text import many
from rankgauge.data.join import CELLS, Joined
from rankgauge.data.judged_run import UNRANKED, BoolArray, JudgedRun, Level, RankedRun, best_grade
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.formats.columns import JUDGMENTS, number_text
from rankgauge.formats.extra_columns import Wide, WideRows, wide_rows, write_wide
from rankgauge.formats.lines import Source
from rankgauge.formats.rows import id_texts


@dataclass(frozen=True, eq=False, repr=False)
class SpecialQrels(Mapping[str, Any]):
    """Judgments with labels: entries by query, each with a document, labels, and a grade.

    Attributes:
        qrels: The same as ordinary judgments, with the highest grade of each document.
        offsets: (Q + 1,) entries of query q are ``offsets[q]:offsets[q + 1]``.
        row: (E,) row of the entry's document in ``qrels.table``.
        labels: Labels of the entries, one column of ids per kind of label.
        grade: (E,) grade of the entry.
    """

    reads: ClassVar[str]
    """Kind of judgments that measures read: `Declaration.reads`."""
    layout: ClassVar[Wide]
    """Declaration of the rows."""
    labeled: ClassVar[str]
    """Name of what ordinary judgments lack, for messages."""
    note: ClassVar[str]
    """Note on the interpretation of ordinary measures."""
    nesting: ClassVar[tuple[str, ...]]
    """Order of entries and of mapping levels: labels and ``document``."""
    judged_once: ClassVar[tuple[str, ...]]
    """Labels that, with query and document, identify a grade."""

    qrels: Qrels
    offsets: IntArray
    row: IntArray
    labels: tuple[Ids, ...]
    grade: FloatArray

    def __post_init__(self) -> None:
        freeze(self.offsets, self.row, self.grade)

    @classmethod
    def of(cls, source: Any) -> Self:
        """Convert any supported source to judgments of this kind."""
        if isinstance(source, cls):
            return source
        if isinstance(source, Qrels | Run) or hasattr(type(source), "reads"):
            raise InputError(
                f"got the run {source.name!r}, expected judgments"
                if isinstance(source, Run)
                else f"these judgments have no {cls.labeled}",
                where="judgments",
                fix=f"pass {cls.layout.words}: a path, {cls.layout.mapping}, or rows ({', '.join(cls.layout.written)})",
            )
        return cls.read(source)

    @classmethod
    def read(cls, path: Any, form: str | None = None) -> Self:
        """Read judgments of this kind from a file (TREC format, CSV, TSV, JSON, or JSON lines), or from memory."""
        rows = wide_rows(path, cls.layout, form)
        return cls._made(rows, *rows.queries.unique(), f"{rows.source}: {cls.note}")

    @classmethod
    def _made(cls, rows: WideRows, query: IntArray, queries: Ids, *notes: str) -> Self:
        """Build judgments from rows: queries in order of appearance, documents by ascending id."""
        codes = {name: labels.ascending() for name, labels in rows.labels.items()}
        codes["document"] = doc = rows.docs.ascending()
        cls._refuse_repeated(rows, query, codes)
        by_doc = np.lexsort((doc, query))
        heads = heads_of(query[by_doc], doc[by_doc])
        row = np.empty(len(by_doc), dtype=np.int64)
        row[by_doc] = np.searchsorted(heads, np.arange(len(by_doc)), side="right") - 1
        table = PairTable(
            queries,
            offsets_of(np.bincount(query[by_doc[heads]], minlength=len(queries))),
            rows.docs.take(by_doc[heads]).compact(),
            np.maximum.reduceat(rows.grades[by_doc], heads) if len(heads) else rows.grades,
            unique=True,
            source=rows.source,
            notes=notes,
        )
        order = np.lexsort((*(codes[name] for name in reversed(cls.nesting)), query))
        return cls(
            qrels=Qrels(table),
            offsets=offsets_of(np.bincount(query, minlength=len(queries))),
            row=row[order],
            labels=tuple(rows.labels[name].take(order).compact() for name in cls.layout.columns),
            grade=rows.grades[order],
        )

    @classmethod
    def _refuse_repeated(cls, rows: WideRows, query: IntArray, codes: Mapping[str, IntArray]) -> None:
        keys = [query, *(codes[name] for name in cls.judged_once), codes["document"]]
        order = np.lexsort(keys[::-1])
        same = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in keys])
        if not same.any():
            return
        at = int(np.flatnonzero(same)[0])
        row, other = order[at : at + 2].tolist()
        named = [f"{name} '{show_id(rows.labels[name][row])}'" for name in cls.judged_once[::-1]]
        where = rows.source
        if rows.lines is not None:
            where += ", lines " + " and ".join(str(int(rows.lines[place])) for place in sorted((row, other)))
        raise InputError(
            f"duplicate document '{show_id(rows.docs[row])}' for "
            + " of ".join([*named, f"query '{show_id(rows.queries[row])}'"]),
            where=where,
            fix="keep one grade of each document for each " + " and ".join(cls.judged_once or ("query",)),
        )

    def write(self, path: Source, form: str | None = None) -> None:
        """Write the judgments to a file atomically.

        Args:
            path: The file, whose name determines the format (default: TREC format); ``-`` is
                standard output.
            form: ``trec``, ``csv``, ``tsv``, ``json``, or ``jsonl``.

        Raises:
            InputError: If the format cannot represent an id, or the file cannot be written.
        """
        rows = list(self.rows())
        places = [self.layout.parts.index(name) for name in ("query", *self.nesting, "grade")]
        nested = _nested([row[place] for place in places] for row in rows)
        texts = ((*row[:-1], number_text(row[-1], JUDGMENTS)) for row in rows)
        write_wide(texts, nested, self.layout, path, form=form)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the entries as rows in column order, with exact ids as text.

        Raises:
            InputError: If an id is not UTF-8.
        """
        cells: dict[str, list[Any]] = {
            "query": id_texts(self.qrels.table.queries.take(self.query)),
            "document": id_texts(self.qrels.table.docs.take(self.row)),
            "grade": self.grade.tolist(),
            **dict(zip(self.layout.columns, map(id_texts, self.labels), strict=True)),
        }
        yield from zip(*(cells[field] for field in self.layout.parts), strict=True)

    def __len__(self) -> int:
        return len(self.qrels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.qrels)

    def __getitem__(self, query: Id) -> Any:
        number = self.qrels.query_index.get(id_bytes(query))
        if number is None:
            raise KeyError(query)
        own = slice(*self.offsets[number : number + 2].tolist())
        columns = dict(zip(self.layout.columns, self.labels, strict=True))
        levels = [
            self.qrels.table.docs.take(self.row[own]).shown() if name == "document" else columns[name].take(own).shown()
            for name in self.nesting
        ]
        return _nested(zip(*levels, self.grade[own].tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        # Compare exact ids; iteration yields them as displayed.
        mine, theirs = (judgments.qrels.table.queries.tolist() for judgments in (self, other))
        return {q: self[q] for q in mine} == {q: other[q] for q in theirs}

    __hash__ = None  # type: ignore[assignment] # holds arrays

    @cached_property
    def query(self) -> IntArray:
        """(E,) number of each entry's query."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def label_number(self) -> tuple[IntArray, int]:
        """(E,) number of each entry's first label within its query, and their total number."""
        codes = self.labels[0].ascending()
        wide = int(codes.max(initial=0)) + 1
        pairs = self.query * wide + codes
        known = distinct(pairs)
        first = np.searchsorted(known, np.arange(len(self)) * wide)
        return np.searchsorted(known, pairs) - first[self.query], len(known)

    @cached_property
    def width(self) -> int:
        """Largest number of labels of a query."""
        return int(self.label_number[0].max(initial=0)) + 1

    @cached_property
    def keyed(self) -> PairTable:
        """The entries as pairs: each document followed by a NUL and its labels, with its grade."""
        docs = self.qrels.table.docs.take(self.row).tolist()
        names = map(b"\0".join, zip(*(labels.tolist() for labels in self.labels), strict=True))
        keyed = Ids.keyed(zip(docs, names, strict=True))
        return PairTable(self.qrels.table.queries, self.offsets, keyed, self.grade, unique=True)

    @classmethod
    def of_keyed(cls, table: PairTable) -> Self:
        """Return the judgments with these entries, the inverse of :attr:`keyed`, with the notes of the table."""
        parts = [name.split(b"\0") for name in table.docs.tolist()]
        docs, *labels = (Ids.of(list(column), "id") for column in zip(*parts, strict=True))
        query = table.query_numbers()
        columns = dict(zip(cls.layout.columns, labels, strict=True))
        rows = WideRows(table.queries.take(query), docs, table.values, columns, table.source, None)
        judgments = cls._made(rows, query, table.queries)
        return replace(judgments, qrels=Qrels(replace(judgments.qrels.table, notes=table.notes)))

    @cached_property
    def _numbered(self) -> Qrels:
        # Row numbers in place of grades.
        return Qrels(replace(self.qrels.table, values=np.arange(len(self.qrels.table), dtype=np.float64)))

    def blocks(self, joined: Joined, queries: IntArray, cells: int = CELLS) -> Iterator[tuple[IntArray, Any]]:
        """Yield kernel inputs for blocks of these queries, with the indices of their rows."""
        joined = replace(joined, qrels=self._numbered, grade=joined.rows.astype(np.float64))
        for places, block in joined.blocks(queries, max(1, cells // self.width)):
            yield places, self._seen(block, queries[places])

    @abstractmethod
    def _seen(self, block: JudgedRun, queries: IntArray) -> Any:
        """Return the kernel input for a block whose grades are row numbers of documents."""

    @abstractmethod
    def tied(self, joined: Joined) -> IntArray:
        """Return the queries in which a tie could change a value."""


def _nested(rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """Return nested mappings, given rows of the keys of all levels and a value."""
    nested: dict[str, Any] = {}
    for *outer, last, value in rows:
        inside = nested
        for key in outer:
            inside = inside.setdefault(key, {})
        inside[last] = value
    return nested


def as_mapping(value: Any, where: str, wanted: str, layout: str) -> Mapping[Any, Any]:
    """Check that a level of a nested mapping is a mapping, and return it."""
    of_kind(wanted, value, Mapping, f"write {layout}", where=f"judgments, {where}")
    level: Mapping[Any, Any] = value
    return level


_SAMPLED_MAPPING = '{"q1": {"stratum": {"d1": grade, "d2": -1}}}'


def _sampled_rows(data: Mapping[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield rows of query -> stratum -> document -> grade."""
    for query, strata in data.items():
        for stratum, docs in as_mapping(strata, f"query {query!r}", "strata", _SAMPLED_MAPPING).items():
            where = f"query {query!r}, stratum {stratum!r}"
            for doc, grade in as_mapping(docs, where, "documents", _SAMPLED_MAPPING).items():
                yield query, doc, stratum, grade


@dataclass(frozen=True, eq=False, repr=False)
class SampledQrels(SpecialQrels):
    """Judgments of a sample: query id to stratum to document to grade. Immutable.

    The pool of a query is divided into *strata*, and a random sample of each is judged; other
    documents of the pool have a negative grade. Measures for samples (``infNDCG``, ``xinfAP``)
    estimate the value for a fully judged pool. Create it with :meth:`of`. It is a mapping:
    ``judgments["q1"]["2"]["d1"]`` is a grade. Columns and rows are ``query_id, doc_id, stratum,
    relevance``.

    Example:
        >>> judged = SampledQrels.of({"q1": {"top": {"d1": 1}, "deep": {"d2": 0, "d3": -1}}})
        >>> judged["q1"]["deep"], judged.qrels["q1"]
        ({'d2': 0.0, 'd3': -1.0}, {'d1': 1.0, 'd2': 0.0, 'd3': -1.0})
    """

    reads = "samples"
    labeled = "strata"
    note = "only a sample was judged; ordinary measures count the rest of the pool as not relevant"
    nesting = ("stratum", "document")
    judged_once = ()
    layout = Wide(
        words="judgments of a sample",
        fields=("query", "-iteration", "document", "stratum", "grade"),
        columns={"stratum": ("stratum", "stratum_id", "strata")},
        example="q1 0 d1 2 -1",
        mapping=_SAMPLED_MAPPING,
        rows_of=_sampled_rows,
    )

    def __repr__(self) -> str:
        judged = int(np.count_nonzero(self.grade >= 0))
        return (
            f"<SampledQrels: {many(len(self), 'query')}, {self.label_number[1]} strata, "
            f"{judged} of {len(self.grade)} documents judged>"
        )

    @cached_property
    def stratum(self) -> IntArray:
        """(R,) stratum of each row of ``qrels.table``, numbered within the query."""
        numbers = np.empty(len(self.row), dtype=np.int64)
        numbers[self.row] = self.label_number[0]
        return numbers

    def _seen(self, block: JudgedRun, queries: IntArray) -> SampledRun:  # noqa: ARG002 - as all
        values = self.qrels.table.values
        rows, pool = block.grade.astype(np.int64), block.ideal.astype(np.int64)
        pooled = pool >= 0
        grade = np.where(block.in_qrels, values[rows], 0.0)
        return SampledRun(
            rank=block.rank,
            grade=grade,
            stratum=np.where(block.in_qrels, self.stratum[rows], -1),
            judged=block.in_qrels & (grade >= 0),
            pool=np.where(pooled, values[pool], 0.0),
            pool_stratum=np.where(pooled, self.stratum[pool], -1),
            pool_judged=pooled & (values[pool] >= 0),
        )

    def tied(self, joined: Joined) -> IntArray:
        """Return the queries with a tie between documents of different strata or grades."""
        grades = np.maximum(joined.grade, -1.0)
        kinds = np.searchsorted(distinct(grades), grades) * self.width + self.stratum[joined.rows]
        return replace(joined, grade=(kinds + 1).astype(np.float64)).tied()


@dataclass(frozen=True, eq=False)
class SampledRun:
    """A run joined with judgments of a sample: the input of measures for samples.

    Row q is a query; column j is the j-th document that was retrieved and is in the pool, best rank
    first.

    Attributes:
        rank: (Q, J) int, 1-based rank in the run; `UNRANKED` where padded.
        grade: (Q, J) float, grade; 0 where padded.
        stratum: (Q, J) int, number of the stratum; -1 where padded.
        judged: (Q, J) bool, whether the document was sampled and judged.
        pool: (Q, N) float, grade of each document in the pool; 0 where padded.
        pool_stratum: (Q, N) int, stratum of each document in the pool; -1 where padded.
        pool_judged: (Q, N) bool, whether each document in the pool was judged.
    """

    rank: IntArray
    grade: FloatArray
    stratum: IntArray
    judged: BoolArray
    pool: FloatArray
    pool_stratum: IntArray
    pool_judged: BoolArray

    def least(self, rel: Level) -> float | FloatArray:
        """Return the lowest relevant grade; see :meth:`JudgedRun.least`."""
        return best_grade(np.where(self.pool_judged, self.pool, 0.0)) if isinstance(rel, str) else rel

    @property
    def strata(self) -> int:
        """Largest number of strata of a query."""
        return int(self.pool_stratum.max(initial=-1)) + 1


def read_sampled_qrels(path: Source, *, format: str | None = None) -> SampledQrels:
    r"""Read judgments of a sample from a file.

    Args:
        path: A file in the format of sample_eval.pl by NIST (``query 0 document stratum grade``,
            grade -1 for documents of the stratum that were not sampled), CSV, TSV, or JSON lines
            with a header or keys (``query_id, doc_id, stratum, relevance``), or JSON (query to
            stratum to document to grade), also compressed; ``-`` for standard input.
        format: ``trec``, ``csv``, ``tsv``, ``json``, or ``jsonl``, if name and first line are
            ambiguous.

    Raises:
        FormatError: With path and line, if a line is invalid.
        InputError: If the file does not exist, or a query has a duplicate document.
    """
    return SampledQrels.read(path, format)


_SUBTOPIC_MAPPING = '{"q1": {"d1": {"subtopic": grade}}}'


def _subtopic_rows(data: Mapping[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield rows of query -> document -> subtopic -> grade, or -> list of covered subtopics."""
    for query, docs in data.items():
        for doc, covered in as_mapping(docs, f"query {query!r}", "documents", _SUBTOPIC_MAPPING).items():
            where = f"query {query!r}, document {doc!r}"
            grades: Iterable[tuple[Any, Any]] = (
                ((subtopic, 1) for subtopic in covered)
                if isinstance(covered, list | tuple | set | frozenset)
                else as_mapping(covered, where, "subtopics", _SUBTOPIC_MAPPING).items()
            )
            for subtopic, grade in grades:
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
        mapping=_SUBTOPIC_MAPPING,
        rows_of=_subtopic_rows,
    )

    @classmethod
    def _made(cls, rows: WideRows, query: IntArray, queries: Ids, *notes: str) -> Self:
        names = rows.labels["subtopic"].unique()[1].tolist()
        if names in ([b"0"], [b"Q0"]):
            # Ordinary judgments: the second field is not a subtopic.
            raise InputError(
                f"these judgments have no subtopics: all are of '{names[0].decode()}'",
                where=rows.source,
                fix="pass judgments by subtopic, with lines such as: q1 2 d1 1 (query, subtopic, document, grade)",
            )
        judgments = super()._made(rows, query, queries, *notes)
        if judgments.width > 1:
            return judgments
        table = judgments.qrels.table.with_notes(f"WARNING: {rows.source}: no query has more than one subtopic")
        return replace(judgments, qrels=Qrels(table))

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
class SubtopicRun(RankedRun):
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

    def relevant(self, rel: Level) -> IntArray:
        """Return the number of relevant documents of each subtopic, (Q, S), retrieved or not."""
        return self.once(("relevant", rel), lambda: np.add.reduce(self.reaches(self.pool, rel), axis=1, dtype=np.int64))

    def subtopics(self, rel: Level) -> FloatArray:
        """Return the number of subtopics with a relevant document, (Q,); NaN if there is none.

        Dividing by it then gives an undefined value.
        """
        count = self.count(self.relevant(rel) > 0)
        return np.where(count > 0, count, np.nan)

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
