"""Rankings of single queries with their judgments, and patterns common to all rankings of a run.

Each pattern (cut rankings, random order, missing documents) is derived from counts that are summed
over the queries.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, filterfalse, pairwise, repeat
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import FloatArray
from rankgauge.data.alignment import Alignment, align
from rankgauge.data.join import join, ranked
from rankgauge.data.judged_run import BoolArray
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.diagnosis.terms import Texts


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
        docs = [doc for doc, grade in self.grades.items() if grade >= self.rel]
        last = len(self.docs) + 1
        return tuple(sorted(docs, key=lambda d: (-self.grades[d], self.ranks.get(d, last), d)))

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
        good, rest = (kept(self._good.__contains__, docs) for kept in (filter, filterfalse))
        return [*sorted(good, key=self.grade, reverse=True), *rest]


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
        for own, judged_rows in zip(wanted, judged, strict=True):
            own[judged_rows] = True
        if len(best) > 1:
            places = _common_names(align(best), wanted)
        rows = [np.flatnonzero(own) for own in wanted]
    return tuple(map(_rankings, best, repeat(qrels), places, rows))


def _common_names(aligned: Alignment, wanted: Sequence[BoolArray]) -> list[IntArray]:
    """Return a number for each row that identifies its document across runs.

    A document marked in one run becomes marked in all runs.
    """
    number = np.arange(len(aligned.rows)) - np.repeat(aligned.offsets[:-1], np.diff(aligned.offsets))
    present = aligned.rows >= 0
    several = np.zeros(len(number), dtype=bool)
    for column, own in enumerate(wanted):
        several[present[:, column]] |= own[aligned.rows[present[:, column], column]]
    names = []
    for column, own in enumerate(wanted):
        rows = aligned.rows[present[:, column], column]
        own[rows] = several[present[:, column]]
        names.append(np.empty(len(own), dtype=np.int64))
        names[-1][rows] = number[present[:, column]]
    return names


def _rankings(run: Run, qrels: Qrels, places: IntArray, rows: IntArray) -> Rankings:
    """Return the rankings of a ranked run, with placeholders for the ids of other rows."""
    table = run.table
    docs = _unnamed(int(places.max(initial=-1)) + 1)[places]
    docs[rows] = np.array(table.docs.take(rows).shown(), dtype=object)
    ends = table.offsets.tolist()
    joined = join(qrels, run, ties="trec")
    judged, ranks = qrels.table.docs.take(joined.rows).shown(), joined.rank.tolist()
    queries = table.queries.shown()
    rankings = {}
    for n, (first, last) in zip(joined.in_run.tolist(), pairwise(joined.offsets.tolist()), strict=True):
        known = dict(zip(judged[first:last], ranks[first:last], strict=True))
        here = slice(ends[n], ends[n + 1])
        rankings[queries[n]] = tuple(docs[here].tolist()), array("d", table.values[here].tobytes()), known
    return rankings


@lru_cache(maxsize=1)
def _unnamed(count: int) -> npt.NDArray[np.object_]:
    """Return distinct placeholders; ids as text never contain control characters."""
    return np.array([f"\x1funjudged {number}" for number in range(1, count + 1)], dtype=object)


def ranked_queries(
    judgments: Mapping[str, Mapping[str, float]], rankings: Rankings, rel: float
) -> tuple[RankedQuery, ...]:
    """Return each judged query, in the order of the judgments."""
    queries = []
    for query, known in judgments.items():
        docs, scores, judged = rankings.get(query, ((), (), {}))
        grades = {doc: grade for doc, grade in known.items() if grade >= 0}
        ranks = {doc: rank for doc, rank in judged.items() if doc in grades}
        queries.append(RankedQuery(query, docs, scores, ranks, grades, rel))
    return tuple(queries)


Overlap: TypeAlias = Literal["few", "some", "many"]

# Rankings are cut if at least this share of them ends at the same rank.
_NEARLY_ALL = 0.75
_CUT_QUERIES = 2
# Depths that a reranker or a fault could have reordered.
_TOPS = (10, 20, 50, 100)
_ENOUGH_RELEVANT = 50
# The number of top documents whose query terms are counted. In fewer of them, a shuffled ranking may have no terms.
_FIRST = 20
# Ranks are unordered if the mean rank of relevant documents is less than 2.5 standard errors, or
# less than 3.5% of the depth, better than in a random order, although the ranks below have fewer
# relevant documents.
_NO_ORDER, _HARDLY, _CONTRAST, _DENSER = -2.5, -0.035, 3.0, 1.25
# Where ranks are unordered, they are reversed only from this number of standard errors; elsewhere, from one.
_REVERSED = 3.5
# Earlier documents have more terms of the query if the correlation of ranks and numbers of terms is below -0.1,
# and by five standard errors.
_CORRELATED, _SURELY_CORRELATED = 0.1, 5
# With fewer retrieved documents per document of the collection, being in no ranking may be due to
# chance.
_RANKINGS = 5
_ENOUGH_MISSED = 3
_ALPHA = 0.05
# Shares of the query terms, and the ratio by which documents with few of them are retrieved less
# often.
_FEW, _MANY, _LONG_QUERY, _SEVERAL = 0.2, 0.5, 5, 2
_RARER = 4
_SURE = 0.001
# The ranking of another query fits better if it has this many times the weight of the query's terms.
_BETTER = 1.3
# From this share of queries, most of whose terms are in no document, they are in another language.
_FOREIGN = 0.1
_SIZES = ("short", "usual", "long")
_OVERLAPS: tuple[Overlap, ...] = ("few", "some", "many")
_WORDED = 4 * len(_TOPS)
_LENGTHS = _WORDED + 5


@dataclass(frozen=True)
class Patterns:
    """Patterns common to all rankings of a run.

    Attributes:
        cut: The rank at which the rankings are cut; 0 if they are not cut.
        limit: The same rank if it limits the value; 0 if deeper rankings would not change the
            value.
        reversed: The number of top ranks whose last documents are more often relevant than the first
            ones; 0 if there are none.
        unordered: The number of top ranks that are not ordered by relevance; 0 if they are.
        swapped: Queries with the query whose ranking fits their terms better than their own ranking.
        promoted: Queries with missed documents that keyword search among the first documents would
            rank in the first k, if this would raise the mean.
        absent: The relevant documents that are in no ranking of any query.
        sizes: The numbers of missed and of all relevant documents, by text size.
        hurting: The text sizes (``short``, ``long``) missed more often than usual ones.
        foreign: Whether many queries have mostly terms that neither relevant nor first documents have.
        few_terms: Whether documents with few query terms are retrieved far less often.
        many_terms: Whether documents with many query terms are retrieved less often.
    """

    cut: int = 0
    limit: int = 0
    reversed: int = 0
    unordered: int = 0
    swapped: tuple[tuple[str, str], ...] = ()
    promoted: frozenset[tuple[str, str]] = frozenset()
    absent: frozenset[str] = frozenset()
    sizes: tuple[tuple[str, tuple[int, int]], ...] = ()
    hurting: tuple[str, ...] = ()
    foreign: bool = False
    few_terms: bool = False
    many_terms: bool = False


def find_patterns(queries: Sequence[RankedQuery], texts: Texts, k: int, depth: int, *, last_read: int) -> Patterns:
    """Return the patterns of a run.

    Rankings that end at rank `depth` or deeper are not cut; a cut below rank `last_read` does not
    limit the value.
    """
    counts = np.array([pattern_counts(query, texts, k) for query in queries]).sum(axis=0)
    lengths = [len(query.docs) for query in queries if query.docs]
    last = max(lengths, default=0)
    nearly_all = lengths.count(last) >= max(_CUT_QUERIES, _NEARLY_ALL * len(lengths))
    cut = last if nearly_all and last < depth else 0
    absent: set[str] = set()
    # Only long rankings show that a document is in none of them.
    if not cut and sum(lengths) >= _RANKINGS * max(len(texts.collection.documents), 1):
        absent = {doc for query in queries for doc in query.relevant if texts.length(doc)}
        for query in queries if absent else ():
            absent.difference_update(query.docs)
    limit = cut if cut <= last_read else 0
    return with_counts(Patterns(cut, limit, swapped=_swapped(queries, texts), absent=frozenset(absent)), counts)


def _swapped(queries: Sequence[RankedQuery], texts: Texts) -> tuple[tuple[str, str], ...]:
    """Return queries whose terms are rather in the top 20 of another query than in their own.

    The other query has the same fault. Rare terms have more weight.
    """
    docs = {q.query_id: q.docs[:_FIRST] for q in queries if q.docs and q.relevant and texts.query_terms(q.query_id)}
    names = sorted(docs)
    asked = frozenset(chain.from_iterable(map(texts.query_terms, names)))
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for place, name in enumerate(names):
        for term in chain.from_iterable(asked.intersection(texts.terms(doc)) for doc in docs[name]):
            counts[term][place] += 1
    having = {
        term: (np.array(list(found)), math.log1p(len(names) / (1 + len(found))) * np.array(list(found.values())))
        for term, found in counts.items()
    }
    # A ranking belongs to one query, and to its own if no other ranking fits it better.
    free = np.ones(len(names), dtype=bool)
    waiting, fitting = set(range(len(names))), dict[int, int]()
    while waiting:
        claims: dict[int, tuple[float, int]] = {}
        better = set()
        for place in sorted(waiting):
            fit = np.zeros(len(names))
            for term in sorted(texts.query_terms(names[place]) & having.keys()):
                fit[having[term][0]] += having[term][1]
            best = int((fit * free).argmax())
            if free[best] and fit[best] > _BETTER * fit[place]:
                better.add(place)
                claims[best] = max(claims.get(best, (0.0, 0)), (float(fit[best] - fit[place]), place))
        kept = waiting - better
        if kept and not fitting:
            free[list(kept)] = False
        else:
            fitting |= {place: best for best, (_, place) in claims.items()}
            free[list(claims)] = False
        waiting = better - fitting.keys()
    return tuple((names[place], names[best]) for place, best in sorted(fitting.items()))


def with_counts(patterns: Patterns, counts: FloatArray) -> Patterns:
    """Return the patterns, completed from the sum of `pattern_counts`."""
    whole = [round(number) for number in counts[_LENGTHS:].tolist()]
    *of_sizes, few, some, many = zip(whole[::2], whole[1::2], strict=True)
    sizes = dict(zip(_SIZES, of_sizes, strict=True))
    hurting = tuple(
        size
        for size in ("short", "long")
        if sizes[size][0] >= _ENOUGH_MISSED and by_chance(sizes[size], sizes["usual"]) < _ALPHA
    )
    tops = list(zip(_TOPS, counts[:_WORDED].reshape(-1, 4).tolist(), strict=True))
    foreign = bool(counts[_WORDED] >= max(_SEVERAL, _FOREIGN * counts[_WORDED + 1]))
    covariance, variance, degrees = counts[_WORDED + 2 : _LENGTHS].tolist()
    by_terms = covariance < -max(_SURELY_CORRELATED, _CORRELATED * math.sqrt(degrees)) * math.sqrt(variance)
    unordered = max(
        (
            top
            for (_, above), (top, row) in pairwise(tops)
            # Cut rankings have no lower ranks to compare with.
            if not (foreign or by_terms or 0 < patterns.cut < 2 * top) and _in_no_order(top, row, above)
        ),
        default=0,
    )
    # Whether reversing these ranks gains is measured later; a random order is reversed by chance.
    turned = max(((row[1] / math.sqrt(row[2]), top) for top, row in tops if row[2]), default=(0.0, 0))
    rarer = few[1] and some[1] and _RARER * (few[1] - few[0]) / few[1] < 1 - some[0] / some[1]
    return replace(
        patterns,
        reversed=turned[1] if turned[0] > (_REVERSED if unordered else 1) else 0,
        unordered=unordered,
        sizes=tuple(sizes.items()),
        hurting=hurting,
        foreign=foreign,
        few_terms=not patterns.cut and bool(rarer) and by_chance(few, some) < _SURE,
        many_terms=not patterns.cut and by_chance(many, some) < _SURE,
    )


def pattern_counts(query: RankedQuery, texts: Texts, k: int) -> FloatArray:
    """Return the contribution of a query to the counts of patterns."""
    row: list[float] = []
    ranks = [rank for doc in query.relevant if (rank := query.ranks.get(doc))]
    for top in _TOPS:
        last = min(top, len(query.docs))
        near = [rank - (last + 1) / 2 for rank in ranks if rank <= last]
        after = sum(top < rank <= 2 * top for rank in ranks)
        row += (len(near), sum(near), len(near) * (last * last - 1) / 12, after)
    row += (is_foreign(query, texts, k), 1)
    asked, first = texts.query_terms(query.query_id), query.docs[:_FIRST]
    common = np.array([len(asked & texts.terms(doc)) for doc in first] if asked else [])
    # In a random order, the covariance has this variance.
    row += ((np.arange(len(common)) - (len(common) - 1) / 2) @ common, 0.0, 0.0)
    if len(common) > 1:
        row[-2:] = len(common) ** 2 * (len(common) + 1) / 12 * common.var(), len(common) - 1
    sizes = {size: [0, 0] for size in _SIZES}
    missed = set(query.missed(k))
    terms: dict[str, list[int]] = {share: [0, 0] for share in _OVERLAPS}
    for doc in query.relevant:
        if not texts.length(doc):
            continue
        if doc in missed or query.within(doc, k):
            of_size = sizes[texts.size(doc)]
            of_size[0] += doc in missed
            of_size[1] += 1
        share = overlap(query, doc, texts)
        if share:
            terms[share][0] += doc not in query.ranks
            terms[share][1] += 1
    row += chain.from_iterable((*sizes.values(), *terms.values()))
    return np.array(row, dtype=np.float64)


def is_foreign(query: RankedQuery, texts: Texts, k: int) -> bool:
    """Return whether most terms of a query are neither in a relevant document nor in the first k."""
    asked = texts.query_terms(query.query_id)
    docs = {*query.relevant, *query.docs[:k]} if len(asked) >= _SEVERAL else ()
    known = frozenset(chain.from_iterable(texts.shared(query.query_id, doc) for doc in docs if texts.length(doc)))
    return any(map(texts.length, docs)) and len(known) <= len(asked) / 2


def overlap(query: RankedQuery, doc: str, texts: Texts) -> Overlap | None:
    """Return how many query terms a document has; None for a query without terms."""
    asked = len(texts.query_terms(query.query_id))
    if not asked:
        return None
    common = len(texts.shared(query.query_id, doc))
    if not common or (asked >= _LONG_QUERY and common <= _FEW * asked):
        return "few"
    return "many" if common >= max(_SEVERAL, _MANY * asked) else "some"


def by_chance(some: tuple[int, int], others: tuple[int, int]) -> float:
    """Return the p-value of Fisher's exact test (1922, one-sided) for the misses in `some`.

    Each argument: number of misses and total number.
    """
    (missed, size), (others_missed, others_size) = some, others
    every, every_missed = size + others_size, missed + others_missed

    def ways(among: int, chosen: int) -> float:
        return math.lgamma(among + 1) - math.lgamma(chosen + 1) - math.lgamma(among - chosen + 1)

    return math.fsum(
        math.exp(ways(size, here) + ways(others_size, every_missed - here) - ways(every, every_missed))
        for here in range(missed, min(size, every_missed) + 1)
    )


def _in_no_order(top: int, counts: Sequence[float], above: Sequence[float]) -> bool:
    """Return whether relevant documents are at random top ranks, but rarer below.

    The counts of fewer top ranks, `above`, show whether relevant documents are rarer within the top ranks.
    """
    near, distance, variance, _ = counts
    if near < _ENOUGH_RELEVANT or distance <= min(_NO_ORDER * math.sqrt(variance), _HARDLY * top * near):
        return False
    return _rarer_below(counts) and not _rarer_below(above)


def _rarer_below(counts: Sequence[float]) -> bool:
    near, _, _, after = counts
    return near > _DENSER * after and near - after > _CONTRAST * math.sqrt(near + after)
