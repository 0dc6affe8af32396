"""One query at a time: its ranking, its judgments, and the documents missed at a cut-off."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from typing import TypeAlias

import numpy as np

from rankgauge.core.pair_table import ranges_of
from rankgauge.data.join import join
from rankgauge.data.qrels import Qrels
from rankgauge.data.ranking import query_of, ranked
from rankgauge.data.run import Run

__all__ = ["RankedQuery", "Rankings", "ranked_queries", "rankings_of"]


@dataclass(frozen=True)
class RankedQuery:
    """The ranking of a run for one query, with its judgments.

    Attributes:
        query_id: The query.
        docs: Its documents, best rank first.
        scores: Their scores.
        ranks: The rank of each retrieved document with a grade, from 1, best first.
        grades: The grade of each judged document (>= 0), retrieved or not.
        rel: The grade from which a document is relevant.
    """

    query_id: str
    docs: tuple[str, ...]
    scores: Sequence[float]
    ranks: Mapping[str, int]
    grades: Mapping[str, float]
    rel: float

    @cached_property
    def relevant(self) -> tuple[str, ...]:
        """The relevant documents: highest grade first, then best rank."""
        found = [doc for doc, grade in self.grades.items() if grade >= self.rel]
        last = len(self.docs) + 1
        return tuple(sorted(found, key=lambda d: (-self.grades[d], self.ranks.get(d, last), d)))

    @cached_property
    def _good(self) -> frozenset[str]:
        """The documents that have a grade above 0."""
        return frozenset(doc for doc, grade in self.grades.items() if grade > 0)

    def grade(self, doc: str) -> float:
        """Return the grade of a document; 0 without one."""
        return self.grades.get(doc, 0.0)

    def within(self, doc: str, k: int) -> bool:
        """Return whether a document with a grade is in the first k ranks."""
        return self.ranks.get(doc, k + 1) <= k

    def hits(self, k: int) -> int:
        """Return the number of relevant documents in the first k ranks."""
        return sum(self.within(doc, k) for doc in self.relevant)

    def missed(self, k: int) -> tuple[str, ...]:
        """Return relevant documents outside the first k ranks that deserve one of these ranks.

        That is: one of these ranks has a document of a lower grade (0 without a judgment), or none.
        So with five good documents in the first five, the sixth is not missed.
        """
        top = self.docs[:k]
        least = min(map(self.grade, top)) if len(top) == k else float("-inf")
        return tuple(
            doc for doc in self.relevant if not self.within(doc, k) and self.grades[doc] > least
        )

    def unjudged(self, k: int) -> tuple[str, ...]:
        """Return documents in the first k ranks without a grade >= 0."""
        return tuple(doc for doc in self.docs[:k] if doc not in self.grades)

    def ideal(self) -> list[str]:
        """Return the best ranking that the judgments allow."""
        return sorted(self._good, key=lambda doc: (-self.grades[doc], doc))

    def best_first(self, docs: Collection[str]) -> list[str]:
        """Return documents by grade, highest first; those of one grade stay in their order."""
        found = [doc for doc in docs if doc in self._good]
        rest = [doc for doc in docs if doc not in self._good]
        return sorted(found, key=self.grade, reverse=True) + rest


# By query: documents, scores, and the ranks of those that are judged.
Rankings: TypeAlias = Mapping[str, tuple[tuple[str, ...], Sequence[float], Mapping[str, int]]]


def rankings_of(run: Run, qrels: Qrels, named: int | None = None) -> Rankings:
    """Return documents, scores and judged ranks of the judged queries of a run, best first.

    With `named` only so many first documents have their ids, and those below that are judged for
    any query: the others get an id that says their rank, and that no document can have.
    """
    table = ranked(run).table
    ends = table.offsets.tolist()
    sizes = np.diff(table.offsets)
    most = int(sizes.max(initial=0)) if named is None else named
    heads = ranges_of(table.offsets[:-1], np.minimum(sizes, most))
    names = iter(table.docs.take(heads).shown())
    rest = _unnamed(int(sizes.max(initial=0)))
    docs = [
        [*islice(names, min(stop - start, most)), *rest[most : stop - start]]
        for start, stop in pairwise(ends)
    ]
    rows = qrels.judged_docs.likely(table.docs.hashes())
    numbers = query_of(table, rows)
    places = rows - table.offsets[numbers]
    for n, place, doc in zip(
        numbers.tolist(), places.tolist(), table.docs.take(rows).shown(), strict=True
    ):
        docs[n][place] = doc
    joined = join(qrels, run, ties="trec", table=run.without_repeats("error"))
    judged, ranks = qrels.table.docs.take(joined.rows).shown(), joined.rank.tolist()
    queries, found = table.queries.shown(), {}
    for n, (first, last) in zip(
        joined.in_run.tolist(), pairwise(joined.offsets.tolist()), strict=True
    ):
        known = dict(zip(judged[first:last], ranks[first:last], strict=True))
        scores = array("d", table.values[ends[n] : ends[n + 1]].tobytes())
        found[queries[n]] = tuple(docs[n]), scores, known
    return found


@lru_cache(maxsize=1)
def _unnamed(count: int) -> tuple[str, ...]:
    """Ids for each rank; a control character is never in an id as it is shown."""
    return tuple(f"\x1funjudged {rank}" for rank in range(1, count + 1))


def ranked_queries(qrels: Qrels, rankings: Rankings, rel: float) -> tuple[RankedQuery, ...]:
    """Return each judged query, in the order of the judgments."""
    found = []
    for query in qrels.query_ids:
        docs, scores, judged = rankings.get(query, ((), (), {}))
        grades = {doc: grade for doc, grade in qrels[query].items() if grade >= 0}
        ranks = {doc: rank for doc, rank in judged.items() if doc in grades}
        found.append(RankedQuery(query, docs, scores, ranks, grades, rel))
    return tuple(found)
