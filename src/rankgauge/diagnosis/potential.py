"""What each cure could gain: a ranking is changed, built as a run, and evaluated like any other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from rankgauge.core.text import many
from rankgauge.corpus.collection import Document, Query
from rankgauge.data.model import Qrels, Run
from rankgauge.diagnosis.causes import GAP, IGNORED, LENGTH, NOT_RETRIEVED, QueryDiagnosis, shares
from rankgauge.diagnosis.terms import Texts
from rankgauge.diagnosis.views import View, best_first, ideal, means
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.measures.measure import Measure

__all__ = ["BOTH", "CUTOFFS", "CutOff", "Potential", "Sweep", "Threshold", "Workshop"]

Kind: TypeAlias = Literal["at most", "measured", "judged only"]
#: How that ends what was changed with another run.
BOTH = "of both runs"
CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
_STEPS = 10
_SMALL_DEPTH = 20
# Duplicates and filters are looked for in so many times k documents.
_DEEPER = 4


@dataclass(frozen=True)
class Potential:
    """What a change of the rankings does to the means.

    Attributes:
        cure: The cure it belongs to.
        what: What was changed.
        kind: ``at most`` if the change knows the judgments, so that no cure of its kind
            reaches more;
            ``measured`` if it can be made as it stands; ``judged only`` if all that is unjudged
            was taken out, which says how much hangs on it.
        means: The means after it, by measure.
    """

    cure: str
    what: str
    kind: Kind
    means: Mapping[str, float]


@dataclass(frozen=True)
class CutOff:
    """Means at a cut-off."""

    k: int
    precision: float
    recall: float
    success: float


@dataclass(frozen=True)
class Threshold:
    """The first k documents without those of a lower score.

    Attributes:
        score: The lowest score that is kept.
        shown: Documents kept a query.
        precision: Mean share of the documents kept that are relevant, over queries that keep any.
        recall: Mean share of the relevant documents that are kept.
        f: Mean of SetF: their harmonic mean in each query.
        empty: Queries left without a document.
        lost: Of these, queries whose first k held a relevant document.
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
    """Thresholds over the score, lowest first (the first one keeps everything).

    Attributes:
        thresholds: One for each tenth of the scores in the first k.
        why_not: Why there is none; empty if there is.
    """

    thresholds: tuple[Threshold, ...]
    why_not: str = ""

    @property
    def best(self) -> Threshold | None:
        """The threshold with the highest mean of SetF; the lowest of these if there are several."""
        return max(self.thresholds, key=lambda row: (row.f, -row.score), default=None)


@dataclass(frozen=True)
class Workshop:
    """Makes changed rankings of a run, and evaluates them.

    Attributes:
        qrels: The judgments.
        views: Every query.
        measures: What is evaluated.
        k: The cut-off.
        depth: How many documents a reranker is given.
        texts: The texts of the collection.
    """

    qrels: Qrels
    views: tuple[View, ...]
    measures: tuple[Measure, ...]
    k: int
    depth: int
    texts: Texts

    def potentials(self, findings: Sequence[QueryDiagnosis]) -> Iterator[Potential]:
        """What each cure could gain; one without evidence is left out."""
        for cure, cause in (
            ("embedding model", NOT_RETRIEVED), ("chunking", LENGTH),
            ("hybrid search", GAP), ("hybrid search", IGNORED),
        ):  # fmt: skip
            found = shares(findings, cause.name)
            if found:
                number = sum(map(len, found.values()))
                what = f"{many(number, 'missed document')} put in place ({cause.name})"
                yield self._made(cure, what, _lifted(found), "at most")
        yield from self._filtered()
        for depth in self._depths():
            what = f"a perfect reranker of the first {depth}"
            yield self._made("reranking", what, _reranked(depth), "at most")
        repeats = self._repeats()
        if repeats:
            number = sum(map(len, repeats.values()))
            what = f"{many(number, 'near-duplicate')} removed from the first {_DEEPER * self.k}"
            yield self._made("no duplicates", what, _without(repeats), "measured")
        # Where only relevant documents are named, what is left would be perfect.
        if any(grade < v.rel for v in self.views for grade in v.grades.values()):
            bare = {v.query_id: frozenset(v.unjudged(len(v.docs))) for v in self.views}
            number = sum(map(len, bare.values()))
            if number:
                what = f"{many(number, 'unjudged document')} taken out"
                yield self._made("judging", what, _without(bare), "judged only")

    def _depths(self) -> list[int]:
        """The depth of the reranker, no deeper than the run, and a smaller one."""
        deepest = min(self.depth, max(len(view.docs) for view in self.views))
        small = [depth for depth in (_SMALL_DEPTH,) if self.k < depth < deepest]
        return [*small, deepest] if deepest else []

    def with_other(self, others: Mapping[str, View]) -> Potential:
        """A perfect reranker of the first documents of both runs together."""

        def union(view: View) -> list[str]:
            other = others[view.query_id].docs[: self.depth] if view.query_id in others else ()
            pool = dict.fromkeys([*view.docs[: self.depth], *other])
            return [*best_first(view, pool), *(d for d in view.docs if d not in pool)]

        what = f"a perfect reranker of the first {self.depth} {BOTH}"
        return self._made("hybrid search", what, union, "at most")

    def attainable(self) -> dict[str, float]:
        """The means of the best rankings that the judgments allow."""
        return means(self.qrels, {v.query_id: ideal(v) for v in self.views}, self.measures)

    def cutoffs(self, rel: float) -> Iterator[CutOff]:
        """Precision, recall and success at several cut-offs, no deeper than the run."""
        deepest = max(len(view.docs) for view in self.views)
        chosen = sorted({k for k in (*CUTOFFS, self.depth) if k <= deepest} | {self.k})
        asked = {
            (name, k): Measure(name)(k=k, rel=rel) for k in chosen for name in ("P", "R", "Success")
        }
        found = means(self.qrels, {v.query_id: v.docs for v in self.views}, asked.values())
        for k in chosen:
            yield CutOff(k, *(found[str(asked[name, k])] for name in ("P", "R", "Success")))

    def sweep(self, rel: float) -> Sweep:
        """Thresholds over the score, each with what it does to the first k."""
        scores = np.array([s for view in self.views for s in view.scores[: self.k]])
        why = self._why_no_sweep(scores)
        if why:
            return Sweep((), why)
        at = np.quantile(scores, np.arange(_STEPS) / _STEPS, method="inverted_cdf")
        return Sweep(tuple(self._threshold(score, rel) for score in np.unique(at).tolist()))

    def _why_no_sweep(self, scores: Any) -> str:
        if not len(scores) or scores.min() == scores.max():
            return "all scores in the first k are equal"
        by_rank: dict[int, set[float]] = {}
        for view in self.views:
            for place, score in enumerate(view.scores[: self.k]):
                # Ranks, or one over rank: counted from the first or from the last document.
                by_rank.setdefault(place, set()).add(score)
        several = sum(bool(view.docs) for view in self.views) > 1
        if _counted(self.views) or (several and all(len(found) == 1 for found in by_rank.values())):
            return "the scores say no more than the ranks"
        return ""

    def _threshold(self, score: float, rel: float) -> Threshold:
        kept = {
            view.query_id: [
                doc
                for doc, own in zip(view.docs[: self.k], view.scores[: self.k], strict=True)
                if own >= score
            ]
            for view in self.views
        }
        run = Run.of(kept)
        some, whole = Measure("SetP")(rel=rel), [Measure(n)(rel=rel) for n in ("SetR", "SetF")]
        shown = evaluate(self.qrels, run, some, undefined="skip").mean()[str(some)]
        recall, f = evaluate(self.qrels, run, whole).mean().values()
        empty = [view for view in self.views if not kept[view.query_id]]
        return Threshold(
            score=score,
            shown=sum(map(len, kept.values())) / len(self.views),
            precision=shown,
            recall=recall,
            f=f,
            empty=len(empty),
            lost=sum(view.hits(self.k) > 0 for view in empty),
        )

    def _filtered(self) -> Iterator[Potential]:
        """Rankings without documents whose field says otherwise than the field of the query."""
        collection = self.texts.collection
        of_queries = {name for query in collection.queries.values() for name in _fields(query)}
        of_docs = {name for doc in collection.documents.values() for name in _fields(doc)}
        for name in sorted(of_queries & of_docs):
            removed = {view.query_id: frozenset(self._otherwise(view, name)) for view in self.views}
            number = sum(map(len, removed.values()))
            relevant = sum(len(removed[v.query_id].intersection(v.relevant)) for v in self.views)
            if number:
                what = f"documents of another {name} removed ({number:,}, {relevant} relevant)"
                yield self._made("metadata filter", what, _without(removed), "measured")

    def _otherwise(self, view: View, name: str) -> Iterator[str]:
        collection = self.texts.collection
        wanted = _fields(collection.queries.get(view.query_id)).get(name)
        if wanted is None:
            return
        for doc in view.docs:
            own = _fields(collection.documents.get(doc)).get(name)
            if own is not None and own.isdisjoint(wanted):
                yield doc

    def _repeats(self) -> dict[str, frozenset[str]]:
        found = {
            view.query_id: frozenset(
                doc for doc, _, _ in self.texts.near_duplicates(view.docs[: _DEEPER * self.k])
            )
            for view in self.views
        }
        return {query: docs for query, docs in found.items() if docs}

    def _made(
        self, cure: str, what: str, change: Callable[[View], Sequence[str]], kind: Kind
    ) -> Potential:
        rankings = {view.query_id: change(view) for view in self.views}
        return Potential(cure, what, kind, means(self.qrels, rankings, self.measures))


def _counted(views: Iterable[View]) -> bool:
    """Whether scores go down by one from each rank to the next."""
    seen = False
    for view in views:
        for above, below in itertools.pairwise(view.scores):
            if above - below != 1:
                return False
            seen = True
    return seen


def _fields(item: Document | Query | None) -> dict[str, set[str]]:
    """The fields that have plain values, or several; those of ``metadata`` among them."""
    found: dict[str, set[str]] = {}
    for fields in () if item is None else (item.fields, item.fields.get("metadata")):
        for name, value in fields.items() if isinstance(fields, Mapping) else ():
            several = value if isinstance(value, list | tuple) else [value]
            plain = {
                str(one) for one in several if isinstance(one, str | int | float) and one != ""
            }
            if plain:
                found[name] = plain
    return found


def _lifted(found: Mapping[str, frozenset[str]]) -> Callable[[View], list[str]]:
    """Each of these documents before the first one of a lower grade; the others keep their order.

    At the very top they would push down documents that are better still.
    """

    def change(view: View) -> list[str]:
        lifted = found.get(view.query_id, frozenset())
        waiting = [doc for doc in reversed(view.relevant) if doc in lifted]
        order: list[str] = []
        for doc in view.docs:
            if doc not in lifted:
                while waiting and view.worth(waiting[-1]) > view.worth(doc):
                    order.append(waiting.pop())
                order.append(doc)
        return order + waiting[::-1]

    return change


def _reranked(depth: int) -> Callable[[View], list[str]]:
    return lambda view: [*best_first(view, view.docs[:depth]), *view.docs[depth:]]


def _without(removed: Mapping[str, frozenset[str]]) -> Callable[[View], list[str]]:
    def change(view: View) -> list[str]:
        gone = removed.get(view.query_id, frozenset())
        return [doc for doc in view.docs if doc not in gone]

    return change
