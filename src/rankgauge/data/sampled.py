"""Judgments of a sample of the pool, and a run seen through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rankgauge.core.ids import Id, Ids, IntArray, freeze, id_bytes
from rankgauge.core.pair_table import FloatArray, PairTable, distinct
from rankgauge.data.join import Joined, numbered
from rankgauge.data.judged_run import BoolArray, JudgedRun, Level, best_grade
from rankgauge.data.model import Qrels, Run
from rankgauge.errors import InputError
from rankgauge.formats.extra_columns import Wide, WideRows, wide_rows
from rankgauge.formats.lines import Source

__all__ = ["SampledQrels", "SampledRun", "read_sampled_qrels"]

_CELLS = 1 << 17
_READ = "a sample was judged; ordinary measures take the rest of the pool for not relevant"


def _rows_of(data: Mapping[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of query -> stratum -> document -> grade."""
    for query, strata in data.items():
        for stratum, docs in _mapping(strata, f"query {query!r}", "strata").items():
            where = f"query {query!r}, stratum {stratum!r}"
            for doc, grade in _mapping(docs, where, "documents").items():
                yield query, doc, stratum, grade


def _mapping(found: Any, where: str, wanted: str) -> Mapping[Any, Any]:
    if not isinstance(found, Mapping):
        raise InputError(
            f"got {found!r:.60} where {wanted} were wanted",
            where=f"judgments, {where}",
            fix=f"write {_WIDE.mapping}",
        )
    return found


_WIDE = Wide(
    words="judgments of a sample",
    fields=("query", "-iteration", "document", "stratum", "grade"),
    columns={"stratum": ("stratum", "stratum_id", "strata")},
    numbers=frozenset(),
    example="q1 0 d1 2 -1",
    mapping='{"q1": {"stratum": {"d1": grade, "d2": -1}}}',
    rows_of=_rows_of,
)


@dataclass(frozen=True, eq=False, repr=False)
class SampledQrels(Mapping[str, Mapping[str, Mapping[str, float]]]):
    """Judgments of a sample: query id to stratum to document to grade. Immutable.

    The pool of a query was parted into *strata*, and of each some documents were drawn at random
    and judged; the others are in the pool with a negative grade. Measures that read samples
    (``infNDCG``, ``xinfAP``) estimate what they would be if all had been judged. Make it with
    :meth:`of`. It is a mapping: ``judgments["q1"]["2"]["d1"]`` is a grade.

    Attributes:
        qrels: The same as ordinary judgments.
        strata: The strata of all queries, ascending by their bytes within each.
        stratum_offsets: (Q + 1,) those of query q are ``offsets[q]:offsets[q + 1]``.
        stratum: (R,) the stratum of each row of ``qrels.table``, by its number within the query.

    Example:
        >>> judged = SampledQrels.of({"q1": {"top": {"d1": 1}, "deep": {"d2": 0, "d3": -1}}})
        >>> judged["q1"]["deep"], judged.qrels["q1"]
        ({'d2': 0.0, 'd3': -1.0}, {'d1': 1.0, 'd2': 0.0, 'd3': -1.0})
    """

    reads: ClassVar[str] = "samples"

    qrels: Qrels
    strata: Ids
    stratum_offsets: IntArray
    stratum: IntArray

    def __post_init__(self) -> None:
        freeze(self.stratum_offsets, self.stratum)

    @classmethod
    def of(cls, source: Any) -> SampledQrels:
        """Judgments of a sample from whatever holds them.

        Args:
            source: A mapping of query id to stratum to ``{document: grade}``; a path (see
                :func:`read_sampled_qrels`); a data frame or a mapping of columns with ``query_id,
                doc_id, stratum, relevance``; rows ``(query, document, stratum, grade)`` or objects
                with such names; or judgments of a sample, which are returned as they are.

        Raises:
            InputError: If it is none of these, or a document stands twice.

        Example:
            >>> SampledQrels.of([("q1", "d1", "a", 1), ("q1", "d2", "a", -1)])["q1"]
            {'a': {'d1': 1.0, 'd2': -1.0}}
        """
        if isinstance(source, SampledQrels):
            return source
        if isinstance(source, Qrels | Run) or hasattr(type(source), "reads"):
            raise InputError(
                f"got {type(source).__name__}, which has no strata",
                where="judgments",
                fix=f"give judgments of a sample: a path, {_WIDE.mapping}, or rows (query, "
                "document, stratum, grade)",
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
        rows = slice(*table.offsets[number : number + 2].tolist())
        names = self.strata.take(slice(*self.stratum_offsets[number : number + 2].tolist())).shown()
        found: dict[str, dict[str, float]] = {name: {} for name in names}
        for doc, grade, stratum in zip(
            table.docs.take(rows).shown(), table.values[rows].tolist(),
            self.stratum[rows].tolist(), strict=True,
        ):  # fmt: skip
            found[names[stratum]][doc] = grade
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SampledQrels):
            return NotImplemented
        return {q: self[q] for q in self} == {q: other[q] for q in other}

    __hash__ = None  # type: ignore[assignment] # holds arrays

    def __repr__(self) -> str:
        judged = int(np.count_nonzero(self.qrels.table.values >= 0))
        return (
            f"<SampledQrels: {len(self)} queries, {len(self.strata)} strata, {judged} of "
            f"{len(self.stratum)} documents judged>"
        )

    @cached_property
    def keyed(self) -> PairTable:
        """The same in pairs: each document with a NUL and its stratum behind it, and the grade."""
        table, names = self.qrels.table, self.strata.tolist()
        place = self.stratum_offsets[table.query_numbers()] + self.stratum
        pairs = zip(table.docs.tolist(), place.tolist(), strict=True)
        return replace(table, docs=Ids.keyed((doc, names[number]) for doc, number in pairs))

    @cached_property
    def _most(self) -> int:
        """The most strata a query has."""
        return int(np.diff(self.stratum_offsets).max(initial=1))

    @cached_property
    def _numbered(self) -> Qrels:
        return numbered(self.qrels)

    def blocks(
        self, joined: Joined, queries: IntArray, cells: int = _CELLS
    ) -> Iterator[tuple[IntArray, SampledRun]]:
        """The runs of these queries seen through the sample, each with the places of its rows.

        Args:
            joined: A run, joined with `qrels`.
            queries: The numbers of the queries.
            cells: How large a block may be: no value depends on it.
        """
        joined = joined.by_rows(self._numbered)
        for places, block in joined.blocks(queries, max(1, cells // self._most)):
            yield places, self._seen(block)

    def _seen(self, block: JudgedRun) -> SampledRun:
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
        """Queries in which a tie could change a value: of other strata, or of other grades."""
        grades = np.maximum(joined.grade, -1.0)
        known = distinct(grades)
        kinds = np.searchsorted(known, grades) * self._most + self.stratum[joined.rows] + 1
        return replace(joined, grade=kinds.astype(np.float64)).tied()


@dataclass(frozen=True, eq=False)
class SampledRun:
    """A run seen through judgments of a sample: what measures of samples read.

    Row q is a query; column j is the j-th document that it retrieved and that stands in the pool,
    best rank first.

    Attributes:
        rank: (Q, J) int, the 1-based rank in the run; `UNRANKED` where padded.
        grade: (Q, J) float, its grade; 0 where padded.
        stratum: (Q, J) int, the number of its stratum; -1 where padded.
        judged: (Q, J) bool, whether it was drawn and judged.
        pool: (Q, N) float, the grade of every document of the pool; 0 where padded.
        pool_stratum: (Q, N) int, its stratum; -1 where padded.
        pool_judged: (Q, N) bool, whether it was judged.
    """

    rank: IntArray
    grade: FloatArray
    stratum: IntArray
    judged: BoolArray
    pool: FloatArray
    pool_stratum: IntArray
    pool_judged: BoolArray

    def least(self, rel: Level) -> float | FloatArray:
        """The least grade that is relevant; see :meth:`JudgedRun.least`."""
        if isinstance(rel, str):
            return best_grade(np.where(self.pool_judged, self.pool, 0.0))
        return rel

    def expansion(self, stratum: IntArray) -> FloatArray:
        """How many documents of the pool a judged one of these strata stands for; 0 for padding.

        Args:
            stratum: (Q, ...) numbers of strata.
        """
        found = np.zeros(stratum.shape)
        for number in range(int(self.pool_stratum.max(initial=-1)) + 1):
            inside = self.pool_stratum == number
            whole = JudgedRun.count(inside)
            drawn = JudgedRun.count(inside & self.pool_judged)
            share = np.where(drawn > 0, whole / np.maximum(drawn, 1), 0.0)
            found = np.where(stratum == number, share[:, None], found)
        return found


def _made(rows: WideRows) -> SampledQrels:
    """The judgments of rows, in the order given within each query."""
    table = PairTable.of_rows(rows.queries, rows.docs, rows.grades, lines=rows.lines)
    table = table.said(f"{rows.source}: {_READ}", source=rows.source)
    query, queries = rows.queries.unique()
    order = np.argsort(query, kind="stable")
    names = rows.labels["stratum"]
    codes, known = names.unique()
    every = np.arange(len(known))
    rank = np.empty(len(known), dtype=np.int64)
    rank[known.descending(every, np.zeros(len(known), dtype=np.int64))[::-1]] = every
    pairs = query[order] * len(known) + rank[codes[order]]
    strata = distinct(pairs)
    offsets = np.searchsorted(strata, np.arange(len(queries) + 1) * len(known))
    place = np.searchsorted(strata, pairs)
    of_stratum = np.empty(len(strata), dtype=np.int64)
    of_stratum[place] = order
    return SampledQrels(
        qrels=Qrels(table),
        strata=names.take(of_stratum).compact(),
        stratum_offsets=offsets,
        stratum=place - offsets[query[order]],
    )


def read_sampled_qrels(path: Source, *, format: str | None = None) -> SampledQrels:
    r"""Read judgments of a sample from a file.

    Args:
        path: A file as sample_eval.pl of NIST takes it (``query 0 document stratum grade``, -1 for
            what is in the stratum and was not drawn), CSV, TSV or JSON lines with a header or keys
            (``query_id, doc_id, stratum, relevance``), or JSON (query to stratum to document to
            grade); packed too; ``-`` for standard input.
        format: ``trec``, ``csv``, ``tsv``, ``json`` or ``jsonl``, where name and first line do not
            say it.

    Raises:
        FormatError: With path and line, if a line does not fit.
        InputError: If there is no such file, or a document stands twice.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "prels"
        >>> _ = path.write_text("q1 0 d1 1 1\nq1 0 d2 2 0\nq1 0 d3 2 -1\n")
        >>> read_sampled_qrels(path)
        <SampledQrels: 1 queries, 2 strata, 2 of 3 documents judged>
    """
    return _made(wide_rows(path, _WIDE, format))
