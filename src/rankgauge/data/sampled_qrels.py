"""Judgments of a sample of the pool, and runs joined with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import FloatArray, distinct
from rankgauge.core.text import many
from rankgauge.data.join import Joined
from rankgauge.data.judged_run import BoolArray, JudgedRun, Level, best_grade
from rankgauge.data.special_qrels import SpecialQrels, as_mapping
from rankgauge.formats.extra_columns import Wide
from rankgauge.formats.lines import Source

_MAPPING = '{"q1": {"stratum": {"d1": grade, "d2": -1}}}'


def _rows_of(data: Mapping[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield rows of query -> stratum -> document -> grade."""
    for query, strata in data.items():
        for stratum, docs in as_mapping(strata, f"query {query!r}", "strata", _MAPPING).items():
            where = f"query {query!r}, stratum {stratum!r}"
            for doc, grade in as_mapping(docs, where, "documents", _MAPPING).items():
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
        mapping=_MAPPING,
        rows_of=_rows_of,
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
        found = np.empty(len(self.row), dtype=np.int64)
        found[self.row] = self.label_number[0]
        return found

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
        if isinstance(rel, str):
            return best_grade(np.where(self.pool_judged, self.pool, 0.0))
        return rel

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
