"""Potential gains of fixes: change the rankings, and evaluate them like a run."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, filterfalse
from operator import neg
from typing import Any, Literal, TypeAlias

import numpy as np

from rankgauge.core.pair_table import FloatArray, distinct
from rankgauge.core.text import many
from rankgauge.corpus.collection import Collection, Document, Query
from rankgauge.data.qrels import Qrels
from rankgauge.diagnosis.causes import (
    ABSENT,
    BELOW_K,
    CAUSES,
    CUT,
    DUPLICATES,
    GAP,
    IGNORED,
    LENGTH,
    LOW,
    NOT_RETRIEVED,
    REVERSED,
    SWAPPED,
    UNJUDGED,
    UNORDERED,
    Cause,
    Examiner,
    Gain,
    QueryDiagnosis,
    shares,
)
from rankgauge.diagnosis.ranked_queries import Patterns, RankedQuery
from rankgauge.diagnosis.terms import Texts
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure
from rankgauge.stats.intervals import mean_interval

Kind: TypeAlias = Literal["at most", "as others", "measured", "judged only"]
_Change: TypeAlias = Callable[[RankedQuery], Sequence[str]]
_Docs: TypeAlias = Mapping[str, frozenset[str]]
#: The end of descriptions of changes with another run.
BOTH = "of both runs"
CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
_STEPS = 10
_SMALL_DEPTH = 20
#: Duplicates are searched for in the first ``DEEPER * k`` documents.
DEEPER = 4
#: Keyword search reorders this many of the first documents.
KEYWORDS = 50
# BM25, and the constant of reciprocal rank fusion, which is smaller than usual because few documents are fused.
_K1, _B, _FUSED = 0.9, 0.4, 11
# A wrong lower bound of any of the four measured gains has a probability of at most 5%; other changes cannot lose.
# Keyword search is tried without a sign of a fault, so that its gain must be more certain.
_LEVEL, _UNPROMPTED = 0.97, 0.995
_FEWEST_CHANGES = 8
# Number of documents of changed rankings that are in memory at once.
_BLOCK = 1 << 19


@dataclass(frozen=True)
class PotentialGain:
    """The effect of a change of the rankings on the means.

    Attributes:
        fix: The fix that this change represents.
        what: The change.
        kind: ``at most``: the documents are in ideal order, so no other order gains more;
            ``as others``: the named documents reach the top as often as other relevant documents of
            this run, an assumption; ``measured``: the change can be applied unchanged;
            ``judged only``: unjudged documents are removed, which assumes that they are relevant as
            often as judged ones.
        means: The means after the change, by measure.
    """

    fix: str
    what: str
    kind: Kind
    means: Mapping[str, float]


@dataclass(frozen=True)
class Effect:
    """The effect of fixing a cause on each query.

    Attributes:
        cause: The cause.
        what: The change, with the assumption that it needs.
        kind: The kind of the change (see `PotentialGain`).
        differences: (Q, M) the change of each value.
        rate: (Q, 2) numerators and denominators of the rate at which the change succeeds.
    """

    cause: Cause
    what: str
    kind: Kind
    differences: FloatArray
    rate: FloatArray | None = None

    def expected(self, rows: Any = slice(None)) -> tuple[FloatArray, str]:
        """Return the expected changes of the values of some queries, and their description."""
        rate = 1.0
        if self.rate is not None:
            successes, cases = self.rate[rows].sum(axis=0).tolist()
            # With one more success and failure (Laplace), the rate is known of runs that find nothing.
            rate = (successes + 1) / (cases + 2)
        return np.nan_to_num(self.differences[rows]) * rate, self.what.format(rate=rate)

    def gain(self, column: int, rows: Any = slice(None), level: float = _LEVEL) -> Gain:
        """Return the mean gain in a measure, with its interval over queries."""
        changes, what = self.expected(rows)
        values = np.sort(changes[:, column])
        low, high = mean_interval(values, level) if len(values) > 1 else (-math.inf, math.inf)
        # With fewer changes, the interval covers less than its level.
        if np.count_nonzero(values) < _FEWEST_CHANGES:
            low, high = min(low, 0.0), max(high, 0.0)
        return Gain(math.fsum(values.tolist()) / len(values), low, high, what, self.kind == "measured")


@dataclass(frozen=True)
class CutOff:
    """Means at a cut-off.

    Attributes:
        k: The cut-off.
        precision: The mean of P@k.
        recall: The mean of R@k.
        success: The mean of Success@k.
    """

    k: int
    precision: float
    recall: float
    success: float


@dataclass(frozen=True)
class Threshold:
    """The effect of a minimum score on the first k documents.

    Attributes:
        score: The minimum score.
        shown: The mean number of documents per query that remain.
        precision: The mean share of relevant documents among those that remain, over queries with
            any.
        recall: The mean share of the relevant documents that remain.
        f: The mean of SetF, the harmonic mean of precision and recall of a query.
        empty: The number of queries without remaining documents.
        lost: The number of these queries whose first k documents had a relevant one.
    """

    score: float
    shown: float
    precision: float
    recall: float
    f: float
    empty: int
    lost: int


@dataclass(frozen=True)
class Sweep:
    """Thresholds on the score, lowest first (the lowest keeps all documents).

    Attributes:
        thresholds: The thresholds, at each tenth of the scores in the first k.
        why_not: The reason if there are no thresholds; empty otherwise.
    """

    thresholds: tuple[Threshold, ...]
    why_not: str = ""

    @property
    def best(self) -> Threshold | None:
        """The threshold with the highest mean SetF; the lowest of several such thresholds."""
        return max(self.thresholds, key=lambda row: (row.f, -row.score), default=None)


@dataclass(frozen=True)
class Simulation:
    """Evaluates changed rankings of a run.

    Attributes:
        qrels: The judgments.
        queries: All queries.
        evaluation: The evaluation of the unchanged run.
        k: The cut-off.
        depth: The number of documents that a reranker receives.
        rel: The lowest grade of a relevant document.
        texts: The texts of the collection.
        filters: The fields that both queries and documents have (see `shared_fields`).
    """

    qrels: Qrels
    queries: tuple[RankedQuery, ...]
    evaluation: Evaluation
    k: int
    depth: int
    rel: float
    texts: Texts
    filters: Sequence[str] = ()

    def confirmed(self, patterns: Patterns, column: int, rows: Any = slice(None)) -> Patterns:
        """Return the patterns without reversed ranks and swapped queries whose fix gains nothing.

        Adds the missed documents that keyword search promotes, if it gains.

        Args:
            patterns: The patterns.
            column: The measure that decides.
            rows: The queries that decide.
        """
        levels = {
            IGNORED: _UNPROMPTED,
            SWAPPED: _LEVEL if patterns.swapped else 0,
            REVERSED: _LEVEL if patterns.reversed else 0,
        }
        sure = {
            cause: level > 0 and self._measured(cause, patterns).gain(column, rows, level).significant
            for cause, level in levels.items()
        }
        promoted = frozenset(
            (query.query_id, doc)
            for query in (self.queries if sure[IGNORED] else ())
            for doc in {*query.missed(self.k)}.intersection(self._keyword(query)[: self.k])
        )
        return replace(
            patterns,
            swapped=patterns.swapped if sure[SWAPPED] else (),
            reversed=patterns.reversed if sure[REVERSED] else 0,
            unordered=0 if sure[REVERSED] else patterns.unordered,
            promoted=promoted,
        )

    def _measured(self, cause: Cause, patterns: Patterns) -> Effect:
        """Return the effect of keyword search, of the reverse order, or of exchanged rankings."""
        key = cause, patterns.swapped, patterns.reversed
        if key not in self._effects:
            rankings, fitting = {query.query_id: query.docs for query in self.queries}, dict(patterns.swapped)
            top = patterns.reversed
            changes: dict[Cause, tuple[str, _Change]] = {
                IGNORED: (f"the first {KEYWORDS} fused with their order by BM25 of the texts", self._keyword),
                REVERSED: (f"the first {top} reversed", lambda query: [*query.docs[:top][::-1], *query.docs[top:]]),
                SWAPPED: (
                    "rankings exchanged with those that have more terms of the query",
                    lambda query: rankings[fitting.get(query.query_id, query.query_id)],
                ),
            }
            what, change = changes[cause]
            self._effects[key] = Effect(cause, what, "measured", self._differences(change))
        return self._effects[key]

    @cached_property
    def _effects(self) -> dict[tuple[Cause, tuple[tuple[str, str], ...], int], Effect]:
        return {}

    def effects(self, diagnoses: Sequence[QueryDiagnosis], examiner: Examiner) -> Iterator[Effect]:
        """Yield the effect of fixing each cause with evidence."""
        patterns, k = examiner.patterns, self.k
        affected = {cause: {d.query_id for d in diagnoses if cause.name in d.causes} for cause in CAUSES}
        queries = {cause: many(len(names), "query") for cause, names in affected.items()}
        for cause in (IGNORED, SWAPPED, REVERSED):
            if patterns.promoted if cause == IGNORED else affected[cause]:
                yield self._measured(cause, patterns)
        if affected[DUPLICATES]:
            repeats = self._chosen(lambda q: examiner.repeats(q, q.docs[: DEEPER * k]))
            what = f"{many(count_documents(repeats), 'near-duplicate')} removed from the first {DEEPER * k}"
            yield Effect(DUPLICATES, what, "measured", self._differences(partial(_remove, repeats)))
        if affected[UNJUDGED]:
            yield Effect(
                UNJUDGED,
                f"unjudged documents of {queries[UNJUDGED]} removed, as if they were relevant as often as judged ones",
                "judged only",
                self._differences(lambda q: list(q.ranks) if q.query_id in affected[UNJUDGED] else q.docs),
            )
        if affected[CUT]:
            cut_off, end = shares(diagnoses, CUT.name), patterns.limit
            yield Effect(
                CUT,
                f"if the ranks below {end} had as many relevant documents as the last ones above ({{rate:.0%}})",
                "as others",
                self._differences(lambda q: [*q.docs, *sorted(cut_off.get(q.query_id, ()), key=q.relevant.index)]),
                np.array([(q.hits(end) - q.hits(end // 2), end - end // 2) for q in self.queries], dtype=np.float64),
            )
        if affected[UNORDERED]:
            what = f"if the first {patterns.unordered} gained {{rate:.0%}} of what their best order gains"
            rate = np.tile((0.5, 1.0), (len(self.queries), 1))
            yield Effect(UNORDERED, what, "as others", self._differences(partial(_rerank, patterns.unordered)), rate)
        rate_of_run = "at this run's rate for relevant documents ({rate:.0%})"
        reached = np.array([(query.hits(k), min(len(query.relevant), k)) for query in self.queries], dtype=np.float64)
        for cause in (ABSENT, LENGTH, GAP, IGNORED, NOT_RETRIEVED, BELOW_K):
            # Other causes explain these two.
            docs = shares(diagnoses, cause.name, alone=cause in {NOT_RETRIEVED, BELOW_K})
            if docs and not (cause == IGNORED and patterns.promoted):
                what = f"if {many(count_documents(docs), 'missed document')} reached the top {k} {rate_of_run}"
                yield Effect(cause, what, "as others", self._differences(partial(_move_up, docs, k)), reached)
        if affected[LOW]:
            what = f"if the top {k} of {queries[LOW]} gained {{rate:.0%}} of what their best order gains"
            best = self._differences(lambda q: _rerank(k, q) if q.query_id in affected[LOW] else q.docs)
            yield Effect(LOW, what, "as others", best, reached)

    def _keyword(self, query: RankedQuery) -> Sequence[str]:
        """Fuse the order of the first documents with their order by BM25 (reciprocal ranks)."""
        asked = sorted(self.texts.query_terms(query.query_id))
        head = query.docs[:KEYWORDS]
        if not asked or not any(map(self.texts.length, head)):
            return query.docs
        found, length, number = self._background
        scores = {}
        for doc in head:
            frequencies, ratio = self.texts.frequencies(doc), len(self.texts.words(doc)) / length
            scores[doc] = math.fsum(
                math.log1p((number - found[term] + 0.5) / (found[term] + 0.5))
                * frequencies[term]
                / (frequencies[term] + _K1 * (1 - _B + _B * ratio))
                for term in asked
                if frequencies[term]
            )
        ranks = [
            {doc: rank for rank, doc in enumerate(docs)} for docs in (head, sorted(head, key=lambda d: -scores[d]))
        ]
        fused = sorted(head, key=lambda doc: -sum(1 / (_FUSED + by[doc]) for by in ranks))
        return [*fused, *query.docs[KEYWORDS:]]

    @cached_property
    def _background(self) -> tuple[Counter[str], float, int]:
        """Document frequencies of terms, the mean length, and the number of the first documents."""
        docs = {doc for query in self.queries for doc in query.docs[:KEYWORDS]}
        found = Counter(chain.from_iterable(map(self.texts.terms, sorted(docs))))
        return found, max(1.0, sum(len(self.texts.words(doc)) for doc in docs) / max(1, len(docs))), len(docs)

    def gains(self, effects: Sequence[Effect]) -> Iterator[PotentialGain]:
        """Yield the potential gain of each fix with evidence."""
        for effect in effects:
            changes, what = effect.expected()
            values = replace(self.evaluation, per_query=self.evaluation.per_query + changes)
            yield PotentialGain(effect.cause.name, what, effect.kind, values.mean())
        yield from self._filtered()
        deepest = min(self.depth, max(len(query.docs) for query in self.queries))
        # A reranker of slightly more documents adds no information.
        for depth in dict.fromkeys((_SMALL_DEPTH, deepest)):
            if self.k < depth <= deepest / 2 or depth == deepest > 0:
                what = f"a perfect reranker of the first {depth}"
                yield self._gain("reranking", what, partial(_rerank, depth), "at most")

    def with_other(self, others: Mapping[str, RankedQuery]) -> Iterator[PotentialGain]:
        """Yield the gains of a perfect reranker of both runs: of the top documents, and of all.

        The latter is an upper bound for any fusion of the two runs.
        """

        def union(depth: int, query: RankedQuery) -> list[str]:
            other = others[query.query_id].docs if query.query_id in others else ()
            pool = dict.fromkeys([*query.docs[:depth], *other[:depth]])
            return [*query.best_first(pool), *(d for d in query.docs if d not in pool)]

        what = f"a perfect reranker of the first {self.depth} {BOTH}"
        yield self._gain("hybrid search", what, partial(union, self.depth), "at most")
        deepest = max(len(query.docs) for query in (*self.queries, *others.values()))
        if deepest > self.depth:
            what = "a perfect reranker of everything that either run retrieved"
            yield self._gain("hybrid search", what, partial(union, deepest), "at most")

    def attainable(self) -> dict[str, float]:
        """Return the means of the ideal rankings."""
        best = {query.query_id: query.ideal() for query in self.queries}
        return self._evaluated(best, self.evaluation.measures).mean()

    def cutoffs(self) -> Iterator[CutOff]:
        """Yield precision, recall, and success at several cut-offs, no deeper than the run."""
        deepest = max(len(query.docs) for query in self.queries)
        chosen = sorted({k for k in (*CUTOFFS, self.depth) if k <= deepest} | {self.k})
        measures = [Measure(name)(k=k, rel=self.rel) for k in chosen for name in ("P", "R", "Success")]
        heads = {query.query_id: query.docs[: chosen[-1]] for query in self.queries}
        means = list(self._evaluated(heads, measures).mean().values())
        for k, *row in zip(chosen, means[::3], means[1::3], means[2::3], strict=True):
            yield CutOff(k, *row)

    def sweep(self) -> Sweep:
        """Return thresholds on the score with their effects on the first k documents."""
        scores = np.array([s for query in self.queries for s in query.scores[: self.k]])
        if not len(scores) or scores.min() == scores.max():
            return Sweep((), "all scores in the first k are equal")
        if self._scores_are_ranks():
            return Sweep((), "the scores carry no more information than the ranks")
        at = np.quantile(scores, np.arange(_STEPS) / _STEPS, method="inverted_cdf")
        return Sweep(tuple(self._threshold(score) for score in distinct(at).tolist()))

    def _scores_are_ranks(self) -> bool:
        """Return whether scores fall by 1 per rank, or depend only on the rank in all queries."""
        steps = (above - below == 1 for query in self.queries for above, below in itertools.pairwise(query.scores))
        if next(steps, False) and all(steps):
            return True
        columns = itertools.zip_longest(*(query.scores[: self.k] for query in self.queries))
        several = sum(bool(query.docs) for query in self.queries) > 1
        return several and all(len(set(column) - {None}) == 1 for column in columns)

    def _threshold(self, score: float) -> Threshold:
        kept = {
            query.query_id: query.docs[: bisect_right(query.scores[: self.k], -score, key=neg)]
            for query in self.queries
        }
        measures = [Measure(name)(rel=self.rel) for name in ("SetP", "SetR", "SetF")]
        evaluation = self._evaluated(kept, measures)
        _, recall, f = evaluation.mean().values()
        empty = [query for query in self.queries if not kept[query.query_id]]
        return Threshold(
            score=score,
            shown=sum(map(len, kept.values())) / len(self.queries),
            precision=measures[0].mean(evaluation.per_query[:, 0], skip_undefined=True),
            recall=recall,
            f=f,
            empty=len(empty),
            lost=sum(query.hits(self.k) > 0 for query in empty),
        )

    def _filtered(self) -> Iterator[PotentialGain]:
        """Yield the gain of removing documents whose field differs from that of the query."""
        for name in self.filters:
            removed = self._chosen(partial(self._mismatched, name))
            if removed:
                relevant = sum(len(removed.get(q.query_id, frozenset()).intersection(q.relevant)) for q in self.queries)
                what = f"documents of another {name} removed ({count_documents(removed):,}, {relevant} relevant)"
                yield self._gain("metadata filter", what, partial(_remove, removed), "measured")

    def _mismatched(self, name: str, query: RankedQuery) -> Iterator[str]:
        collection = self.texts.collection
        wanted = field_values(collection.queries.get(query.query_id)).get(name)
        for doc in query.docs if wanted else ():
            own = field_values(collection.documents.get(doc)).get(name)
            if own is not None and own.isdisjoint(wanted or ()):
                yield doc

    def _chosen(self, choose: Callable[[RankedQuery], Iterable[str]]) -> _Docs:
        chosen = {query.query_id: frozenset(choose(query)) for query in self.queries}
        return {query: docs for query, docs in chosen.items() if docs}

    def _gain(self, fix: str, what: str, change: _Change, kind: Kind) -> PotentialGain:
        """Return the means after a change."""
        values = self.evaluation.per_query + self._differences(change)
        return PotentialGain(fix, what, kind, replace(self.evaluation, per_query=values).mean())

    def _differences(self, change: _Change) -> FloatArray:
        """Return the differences of the values after a change; 0 for unchanged queries."""
        changed = {query.query_id: (query.docs, change(query)) for query in self.queries}
        values = self._values({query: docs for query, (before, docs) in changed.items() if docs is not before})
        return values - self.evaluation.per_query

    def _values(self, rankings: Mapping[str, Sequence[str]]) -> FloatArray:
        """Return the values with some other rankings; other queries keep their values."""
        values = self.evaluation.per_query.copy()
        if rankings:
            evaluation = self._evaluated(rankings, self.evaluation.measures)
            by_query = dict(zip(evaluation.query_ids, evaluation.per_query, strict=True))
            for row, query in enumerate(self.evaluation.query_ids):
                values[row] = by_query[query] if query in rankings else values[row]
        return values

    def _evaluated(self, rankings: Mapping[str, Sequence[str]], measures: Sequence[Measure]) -> Evaluation:
        """Evaluate rankings in blocks, so that not all scores are in memory at once."""

        def blocks() -> Iterator[dict[str, dict[str, int]]]:
            falling = list(range(max(map(len, rankings.values())), 0, -1))
            rows, size = iter(rankings.items()), _BLOCK // max(1, len(falling))
            while some := [*itertools.islice(rows, max(1, size))]:
                yield {query: dict(zip(docs, falling[len(falling) - len(docs) :], strict=True)) for query, docs in some}

        return evaluate(self.qrels, blocks(), measures)


def count_documents(docs: _Docs) -> int:
    """Return the number of documents of all queries."""
    return sum(map(len, docs.values()))


def field_values(item: Document | Query | None) -> dict[str, set[str]]:
    """Return the fields with a plain value or a list of them, including those of ``metadata``."""
    values: dict[str, set[str]] = {}
    for fields in () if item is None else (item.fields, item.fields.get("metadata")):
        for name, value in fields.items() if isinstance(fields, Mapping) else ():
            several = value if isinstance(value, list | tuple) else [value]
            plain = {str(entry) for entry in several if isinstance(entry, str | int | float) and entry != ""}
            if plain:
                values[name] = plain
    return values


def shared_fields(collection: Collection) -> list[str]:
    """Return the fields with values in both queries and documents, usable as filters."""
    of_queries = {name for query in collection.queries.values() for name in field_values(query)}
    if not of_queries:
        return []
    of_docs = {name for doc in collection.documents.values() for name in field_values(doc)}
    return sorted(of_queries & of_docs)


def _move_up(raised_docs: _Docs, k: int, query: RankedQuery) -> Sequence[str]:
    """Move documents to the end of the first k ranks, where they replace documents of the lowest grades.

    The replaced documents are appended.
    """
    raised = raised_docs.get(query.query_id)
    if raised is None:
        return query.docs
    order = [*filterfalse(raised.__contains__, query.docs)]
    top = [*order[:k], *(doc for doc in query.relevant if doc in raised)]
    kept = {*sorted(top, key=query.grade, reverse=True)[:k]}
    return [*(doc for doc in top if doc in kept), *order[k:], *(doc for doc in top if doc not in kept)]


def _rerank(depth: int, query: RankedQuery) -> Sequence[str]:
    best = query.best_first(query.docs[:depth])
    return query.docs if best == [*query.docs[:depth]] else [*best, *query.docs[depth:]]


def _remove(removed_docs: _Docs, query: RankedQuery) -> Sequence[str]:
    removed = removed_docs.get(query.query_id)
    return query.docs if removed is None else [*filterfalse(removed.__contains__, query.docs)]
