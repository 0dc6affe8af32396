"""Potential gains of fixes: change the rankings, and evaluate them like a run."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import neg
from typing import Literal, TypeAlias

import numpy as np

from rankgauge.core.pair_table import distinct
from rankgauge.core.text import many
from rankgauge.corpus.collection import Collection, Document, Query
from rankgauge.data.qrels import Qrels
from rankgauge.diagnosis.causes import ABSENT, CUT, GAP, IGNORED, LENGTH, NOT_RETRIEVED, QueryDiagnosis, shares
from rankgauge.diagnosis.ranked_queries import RankedQuery
from rankgauge.diagnosis.terms import Texts
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure

Kind: TypeAlias = Literal["at most", "if retrieved", "measured", "judged only"]
_Change: TypeAlias = Callable[[RankedQuery], Sequence[str]]
_Docs: TypeAlias = Mapping[str, frozenset[str]]
#: The end of descriptions of changes with another run.
BOTH = "of both runs"
CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
_STEPS = 10
_SMALL_DEPTH = 20
#: Duplicates are searched for in the first ``DEEPER * k`` documents.
DEEPER = 4
# Number of documents of changed rankings that are in memory at once.
_BLOCK = 1 << 19


@dataclass(frozen=True)
class PotentialGain:
    """The effect of a change of the rankings on the means.

    Attributes:
        fix: The fix that this change represents.
        what: The change.
        kind: ``at most``: the documents are in ideal order, so no other order gains more;
            ``if retrieved``: the named documents were added at the top, which is not a bound
            because a fix can also retrieve others; ``measured``: the change can be applied
            unchanged; ``judged only``: all unjudged documents are removed, which shows the
            sensitivity to them.
        means: The means after the change, by measure.
    """

    fix: str
    what: str
    kind: Kind
    means: Mapping[str, float]


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

    def gains(self, diagnoses: Sequence[QueryDiagnosis]) -> Iterator[PotentialGain]:
        """Yield the potential gain of each fix with evidence."""
        for fix, cause in (
            ("retrieve deeper", CUT),
            ("index", ABSENT),
            ("embedding model", NOT_RETRIEVED),
            ("chunking", LENGTH),
            ("hybrid search", GAP),
            ("hybrid search", IGNORED),
        ):
            docs = shares(diagnoses, cause.name)
            if docs:
                what = f"{many(count_documents(docs), 'missed document')} at the top ({cause.name})"
                yield self._gain(fix, what, partial(_move_up, docs), "if retrieved")
        yield from self._filtered()
        deepest = min(self.depth, max(len(query.docs) for query in self.queries))
        # A reranker of slightly more documents adds no information.
        for depth in dict.fromkeys((_SMALL_DEPTH, deepest)):
            if self.k < depth <= deepest / 2 or depth == deepest > 0:
                what = f"a perfect reranker of the first {depth}"
                yield self._gain("reranking", what, partial(_rerank, depth), "at most")
        deeper = DEEPER * self.k
        repeats = self._chosen(lambda q: (doc for doc, _, _ in self.texts.near_duplicates(q.docs[:deeper])))
        if repeats:
            what = f"{many(count_documents(repeats), 'near-duplicate')} removed from the first {deeper}"
            yield self._gain("no duplicates", what, partial(_remove, repeats), "measured")
        # If only relevant documents are judged, the remaining ranking would be perfect.
        if any(grade < q.rel for q in self.queries for grade in q.grades.values()):
            unjudged = sum(len(query.docs) - len(query.ranks) for query in self.queries)
            if unjudged:
                what = f"{many(unjudged, 'unjudged document')} removed"
                yield self._gain("judging", what, lambda query: list(query.ranks), "judged only")

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
        """Return the means after a change; unchanged queries keep their values."""
        changed = {query.query_id: (query.docs, change(query)) for query in self.queries}
        moved = {query: docs for query, (before, docs) in changed.items() if docs is not before}
        if not moved:
            return PotentialGain(fix, what, kind, self.evaluation.mean())
        evaluation = self._evaluated(moved, self.evaluation.measures)
        rows = dict(zip(evaluation.query_ids, evaluation.per_query, strict=True))
        kept = zip(self.evaluation.query_ids, self.evaluation.per_query, strict=True)
        values = np.array([rows[query] if query in moved else row for query, row in kept])
        return PotentialGain(fix, what, kind, replace(self.evaluation, per_query=values).mean())

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


def _move_up(raised_docs: _Docs, query: RankedQuery) -> Sequence[str]:
    """Move documents up to the rank of the first one with a lower grade.

    The replaced document moves to the next document of a still lower grade, and so on; the last one
    is appended. The grade at each rank does not decrease.
    """
    raised = raised_docs.get(query.query_id)
    if raised is None:
        return query.docs
    order = [doc for doc in query.docs if doc not in raised]
    for doc in query.relevant:
        moved = doc if doc in raised else ""
        for place, other in enumerate(order if moved else ()):
            if query.grade(other) < query.grade(moved):
                order[place], moved = moved, other
                if not query.grade(moved):
                    break  # no grade is lower
        if moved:
            order.append(moved)
    return order


def _rerank(depth: int, query: RankedQuery) -> Sequence[str]:
    best = query.best_first(query.docs[:depth])
    return query.docs if best == [*query.docs[:depth]] else [*best, *query.docs[depth:]]


def _remove(removed_docs: _Docs, query: RankedQuery) -> Sequence[str]:
    removed = removed_docs.get(query.query_id)
    return query.docs if removed is None else [doc for doc in query.docs if doc not in removed]
