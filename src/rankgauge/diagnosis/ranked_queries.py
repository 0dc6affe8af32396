"""The ranking and judgments of single queries, and the documents missed at a cut-off."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, repeat
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import IntArray
from rankgauge.data.alignment import Alignment, align
from rankgauge.data.join import join, ranked
from rankgauge.data.judged_run import BoolArray
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run


@dataclass(frozen=True)
class RankedQuery:
    """The ranking of a query with its judgments.

    Attributes:
        query_id: The query id.
        docs: The documents, best rank first.
        scores: The scores of the documents.
        ranks: The rank, from 1, of each retrieved document with a grade, best first.
        grades: The grade of each judged document (>= 0), retrieved or not.
        rel: The lowest grade of a relevant document.
    """

    query_id: str
    docs: tuple[str, ...]
    scores: Sequence[float]
    ranks: Mapping[str, int]
    grades: Mapping[str, float]
    rel: float

    @cached_property
    def relevant(self) -> tuple[str, ...]:
        """Relevant documents: highest grade first, then best rank."""
        found = [doc for doc, grade in self.grades.items() if grade >= self.rel]
        last = len(self.docs) + 1
        return tuple(sorted(found, key=lambda d: (-self.grades[d], self.ranks.get(d, last), d)))

    @cached_property
    def _good(self) -> frozenset[str]:
        """Documents with a grade above 0."""
        return frozenset(doc for doc, grade in self.grades.items() if grade > 0)

    def grade(self, doc: str) -> float:
        """Return the grade of a document; 0 if unjudged."""
        return self.grades.get(doc, 0.0)

    def within(self, doc: str, k: int) -> bool:
        """Return whether a judged document is in the first k ranks."""
        return self.ranks.get(doc, k + 1) <= k

    def hits(self, k: int) -> int:
        """Return the number of relevant documents in the first k ranks."""
        return sum(self.within(doc, k) for doc in self.relevant)

    def missed(self, k: int) -> tuple[str, ...]:
        """Return relevant documents below the first k ranks that should be among them.

        These are documents with a higher grade than the lowest grade in the first k ranks (0 if
        unjudged), or all of them if fewer than k documents were retrieved.
        """
        top = self.docs[:k]
        least = min(map(self.grade, top)) if len(top) == k else float("-inf")
        return tuple(doc for doc in self.relevant if not self.within(doc, k) and self.grades[doc] > least)

    def unjudged(self, k: int) -> tuple[str, ...]:
        """Return unjudged documents in the first k ranks."""
        return tuple(doc for doc in self.docs[:k] if doc not in self.grades)

    def ideal(self) -> list[str]:
        """Return the ideal ranking."""
        return sorted(self._good, key=lambda doc: (-self.grades[doc], doc))

    def best_first(self, docs: Collection[str]) -> list[str]:
        """Return documents by grade, highest first; documents of equal grade keep their order."""
        found = [doc for doc in docs if doc in self._good]
        rest = [doc for doc in docs if doc not in self._good]
        return sorted(found, key=self.grade, reverse=True) + rest


# By query: documents, scores, and the ranks of judged documents.
Rankings: TypeAlias = Mapping[str, tuple[tuple[str, ...], Sequence[float], Mapping[str, int]]]


def rankings_of(runs: Sequence[Run], qrels: Qrels, named: int | None = None) -> tuple[Rankings, ...]:
    """Return documents, scores, and judged ranks of the judged queries of runs, best first.

    With `named`, only the first `named` documents and documents judged for any query have their
    ids. Other documents have a placeholder that is not a valid id and is the same in all runs.
    """
    best = [ranked(run) for run in runs]
    numbers = [run.table.query_numbers() for run in best]
    rows = [np.arange(len(run.table)) for run in best]
    places = [at - run.table.offsets[n] for run, n, at in zip(best, numbers, rows, strict=True)]
    if named is not None:
        judged = [qrels.likely_judged(run.table.docs) for run in best]
        wanted = [at < named for at in places]
        for own, found in zip(wanted, judged, strict=True):
            own[found] = True
        if len(best) > 1:
            places = _common_names(align(best), wanted)
        rows = [np.flatnonzero(own) for own in wanted]
    return tuple(map(_rankings, best, repeat(qrels), places, rows))


def _common_names(aligned: Alignment, wanted: Sequence[BoolArray]) -> list[IntArray]:
    """Return a number for each row that identifies its document across runs.

    A document marked in one run becomes marked in all runs.
    """
    sizes = np.diff(aligned.offsets)
    number = np.arange(len(aligned.rows)) - np.repeat(aligned.offsets[:-1], sizes)
    found = aligned.rows >= 0
    several = np.zeros(len(number), dtype=bool)
    for column, own in enumerate(wanted):
        several[found[:, column]] |= own[aligned.rows[found[:, column], column]]
    names = []
    for column, own in enumerate(wanted):
        rows = aligned.rows[found[:, column], column]
        own[rows] = several[found[:, column]]
        names.append(np.empty(len(own), dtype=np.int64))
        names[-1][rows] = number[found[:, column]]
    return names


def _rankings(run: Run, qrels: Qrels, places: IntArray, rows: IntArray) -> Rankings:
    """Return the rankings of a ranked run, with placeholders for the ids of other rows."""
    table = run.table
    docs = _unnamed(int(places.max(initial=-1)) + 1)[places]
    docs[rows] = np.array(table.docs.take(rows).shown(), dtype=object)
    ends = table.offsets.tolist()
    joined = join(qrels, run, ties="trec")
    judged, ranks = qrels.table.docs.take(joined.rows).shown(), joined.rank.tolist()
    queries, names, found = table.queries.shown(), docs.tolist(), {}
    for n, (first, last) in zip(joined.in_run.tolist(), pairwise(joined.offsets.tolist()), strict=True):
        known = dict(zip(judged[first:last], ranks[first:last], strict=True))
        here = slice(ends[n], ends[n + 1])
        found[queries[n]] = tuple(names[here]), array("d", table.values[here].tobytes()), known
    return found


@lru_cache(maxsize=1)
def _unnamed(count: int) -> npt.NDArray[np.object_]:
    """Return distinct placeholders; ids as text never contain control characters."""
    return np.array([f"\x1funjudged {number}" for number in range(1, count + 1)], dtype=object)


def judgments_of(qrels: Qrels) -> dict[str, dict[str, float]]:
    """Return the grades of each judged query, with ids as text."""
    docs, grades = qrels.table.docs.shown(), qrels.table.values.tolist()
    return {
        query: dict(zip(docs[first:last], grades[first:last], strict=True))
        for query, (first, last) in zip(qrels.query_ids, pairwise(qrels.table.offsets.tolist()), strict=True)
    }


def ranked_queries(
    judgments: Mapping[str, Mapping[str, float]], rankings: Rankings, rel: float
) -> tuple[RankedQuery, ...]:
    """Return each judged query, in the order of the judgments."""
    found = []
    for query, known in judgments.items():
        docs, scores, judged = rankings.get(query, ((), (), {}))
        grades = {doc: grade for doc, grade in known.items() if grade >= 0}
        ranks = {doc: rank for doc, rank in judged.items() if doc in grades}
        found.append(RankedQuery(query, docs, scores, ranks, grades, rel))
    return tuple(found)
