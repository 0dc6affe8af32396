"""What the numbers say together: the whole run in words, and each cure with its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rankgauge.core.text import many
from rankgauge.diagnosis.bands import Band
from rankgauge.diagnosis.causes import (
    BELOW_K,
    GAP,
    IGNORED,
    LENGTH,
    NOT_RETRIEVED,
    QueryDiagnosis,
    shares,
)
from rankgauge.diagnosis.potential import BOTH, CutOff, Potential, Sweep, Threshold
from rankgauge.diagnosis.views import View
from rankgauge.measures.measure import Measure

__all__ = ["CURES", "Cure", "Evidence", "Quality", "Reading", "levels"]

#: In the order in which they are usually tried.
CURES = ("embedding model", "chunking", "metadata filter", "hybrid search", "reranking")
Kind: TypeAlias = Literal[
    "noisy context", "missing information", "both are low", "both are high", "not to be said"
]
_HIGH = ("Good", "Excellent")
# From this share of what is attainable on there is little left to gain.
_NEARLY = 0.9
# A smaller gain is none: it would not show in two digits.
_NOTHING = 0.005


@dataclass(frozen=True)
class Quality:
    """A mean, its band, and what could be reached at all.

    Attributes:
        measure: The measure.
        mean: Its mean.
        level: The band it lies in; None if it is undefined.
        attainable: Its mean for the best rankings that the judgments allow.
        highest: The band that lies in: the judgments allow no higher one.
    """

    measure: Measure
    mean: float
    level: str | None
    attainable: float
    highest: str | None


@dataclass(frozen=True)
class Reading:
    """Precision and recall read together.

    Attributes:
        kind: ``noisy context`` (recall high, precision low), ``missing information`` (precision
            high, recall low), ``both are low``, ``both are high``; high is Good or Excellent.
        sentences: What that means here, with what the cures could gain.
    """

    kind: Kind
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Cure:
    """A cure with what speaks for it in this run.

    Attributes:
        name: The cure.
        queries: Failing queries with a missed document that it could help.
        documents: These documents.
        evidence: What was seen, with numbers; empty if nothing here speaks for it.
    """

    name: str
    queries: int
    documents: int
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Evidence:
    """What was found out about a run, to be read.

    Attributes:
        measure: The measure of the diagnosis.
        k: The cut-off.
        depth: How many documents a reranker is given.
        views: Every query.
        findings: What went wrong in each.
        qualities: Means with their bands.
        potentials: What changes of the rankings would do.
        cutoffs: Means at several cut-offs.
        sweep: Thresholds.
        now: Means as they are.
        lengths: Relevant documents missed, and those looked at, by size of their text.
        hurting: Which sizes are missed more often than the usual one.
        others: The views of another run, by query; empty without one.
        other_name: What that run is called.
    """

    measure: Measure
    k: int
    depth: int
    views: tuple[View, ...]
    findings: tuple[QueryDiagnosis, ...]
    qualities: tuple[Quality, ...]
    potentials: tuple[Potential, ...]
    cutoffs: tuple[CutOff, ...]
    sweep: Sweep
    now: Mapping[str, float]
    lengths: Mapping[str, tuple[int, int]]
    hurting: tuple[str, ...]
    others: Mapping[str, View]
    other_name: str

    def reading(self, precision: Measure, recall: Measure) -> Reading:
        """Precision and recall read together."""
        by = {quality.measure: quality for quality in self.qualities}
        p, r = by[precision], by[recall]
        high = (p.level in _HIGH, r.level in _HIGH)
        kinds: dict[tuple[bool, bool], Kind] = {
            (False, True): "noisy context", (True, False): "missing information",
            (False, False): "both are low", (True, True): "both are high",
        }  # fmt: skip
        kind = kinds[high]
        if p.level is None or r.level is None:
            return Reading("not to be said", ())
        told = f"{_said(p)}, {_said(r)}"
        sentences = [f"{kind}: {told}"]
        if kind in {"noisy context", "both are low"}:
            sentences += self._noise(p)
        if kind in {"missing information", "both are low"}:
            sentences += self._gaps(r)
        return Reading(kind, tuple(sentences))

    def _noise(self, p: Quality) -> Iterator[str]:
        if p.mean >= _NEARLY * p.attainable:
            yield (
                f"{p.measure} cannot pass {p.attainable:.2f} with these judgments: reranking can "
                "hardly raise it; a smaller k or a threshold can make the context cleaner"
            )
        else:
            yield from self._lifts("reranking", p.measure)
        here = next(row for row in self.cutoffs if row.k == self.k)
        fewer = [row for row in self.cutoffs if row.k < self.k and row.precision > here.precision]
        if fewer:
            row = fewer[-1]
            yield (
                f"k = {row.k} instead of {self.k} would lift precision from {here.precision:.2f} "
                f"to {row.precision:.2f}, {_moved('recall', here.recall, row.recall)}"
            )
        whole, best = (self.sweep.thresholds or (None,))[0], self.sweep.best
        if whole is not None and best is not None and best.precision > whole.precision + _NOTHING:
            yield _threshold_sentence(whole, best)

    def _gaps(self, r: Quality) -> Iterator[str]:
        if r.mean >= _NEARLY * r.attainable:
            yield (
                f"{r.measure} cannot pass {r.attainable:.2f} with these judgments: there are more "
                f"relevant documents than {self.k} places"
            )
        here = next(row for row in self.cutoffs if row.k == self.k)
        more = [row for row in self.cutoffs if row.k > self.k and row.recall > here.recall]
        row = next((row for row in more if row.k >= 4 * self.k), more[-1] if more else None)
        if row is not None:
            yield (
                f"k = {row.k} instead of {self.k} would lift recall from {here.recall:.2f} to "
                f"{row.recall:.2f}, {_moved('precision', here.precision, row.precision)}"
            )
        for cure in ("embedding model", "chunking", "hybrid search"):
            yield from self._lifts(cure, r.measure)

    def _lifts(self, cure: str, measure: Measure) -> Iterator[str]:
        """The largest gain of a cure by this measure."""
        name = str(measure)
        own = [found for found in self.potentials if found.cure == cure]
        if own:
            best = max(own, key=lambda found: found.means[name])
            if best.means[name] > self.now[name] + _NOTHING:
                most = " at most" if best.kind == "at most" else ""
                yield (
                    f"{cure}: {best.what} would lift {name} from {self.now[name]:.2f} to "
                    f"{best.means[name]:.2f}{most}{self._alone(best, name)}"
                )

    def _alone(self, found: Potential, name: str) -> str:
        """What a reranker needs no other run for, lest it be taken for a gain of hybrid search."""
        own = [other for other in self.potentials if other.cure == "reranking"]
        if not own or not found.what.endswith(BOTH):
            return ""
        return f"; of this run alone to {own[-1].means[name]:.2f}"

    # ---- the cures in their usual order

    def cures(self) -> tuple[Cure, ...]:
        """Each cure with what speaks for it."""
        told = {
            "embedding model": self._embedding,
            "chunking": self._chunking,
            "metadata filter": self._filters,
            "hybrid search": self._hybrid,
            "reranking": self._reranking,
        }
        return tuple(
            Cure(name, len(docs), sum(map(len, docs.values())), tuple(self._told(name, docs)))
            for name in CURES
            for docs in [told[name]()]
        )

    def _told(self, cure: str, docs: Mapping[str, frozenset[str]]) -> Iterator[str]:
        if docs:
            yield from self._seen(cure, docs)
        name = str(self.measure)
        for found in self.potentials:
            if found.cure == cure and found.means[name] > self.now[name] + _NOTHING:
                yield (
                    f"{found.what}: {name} {self.now[name]:.2f} to {found.means[name]:.2f} "
                    f"({found.kind}{self._alone(found, name)})"
                )

    def _seen(self, cure: str, docs: Mapping[str, frozenset[str]]) -> Iterator[str]:
        number, among = sum(map(len, docs.values())), many(len(docs), "query")
        if cure == "embedding model":
            yield f"{many(number, 'missed document')} in {among} not retrieved at any depth"
        elif cure == "reranking":
            yield (
                f"{many(number, 'missed document')} in {among} at ranks {self.k + 1} to "
                f"{self.depth}"
            )
        elif cure == "chunking":
            yield from self._lengths()
        elif cure == "hybrid search":
            gaps, ignored = (
                sum(map(len, shares(self.findings, c.name).values())) for c in (GAP, IGNORED)
            )
            if gaps:
                yield f"{many(gaps, 'missed document')} without a term of the query (semantic)"
            if ignored:
                yield f"{many(ignored, 'missed document')} whose terms were ignored (keyword)"
            if self.others:
                yield self._elsewhere()

    def _lengths(self) -> Iterator[str]:
        """How many of the very long or short relevant documents are missed, and of the others."""
        usual, every = self.lengths["usual"]
        for size in self.hurting:
            missed, number = self.lengths[size]
            yield (
                f"missed are {missed} of {number} relevant documents that are very {size}, and "
                f"{usual} of {every} of usual length"
            )

    def _elsewhere(self) -> str:
        """How many missed documents the other run has."""
        missed = [(f.query_id, doc.doc_id) for f in self.findings for doc in f.missed]
        at_k, deeper = (
            sum(q in self.others and self.others[q].within(doc, depth) for q, doc in missed)
            for depth in (self.k, self.depth)
        )
        return (
            f"of {many(len(missed), 'missed document')} {self.other_name} has {at_k} in its first "
            f"{self.k} and {deeper} in its first {self.depth}"
        )

    def _embedding(self) -> Mapping[str, frozenset[str]]:
        return shares(self.findings, NOT_RETRIEVED.name)

    def _chunking(self) -> Mapping[str, frozenset[str]]:
        return shares(self.findings, LENGTH.name)

    @staticmethod
    def _filters() -> Mapping[str, frozenset[str]]:
        return {}

    def _hybrid(self) -> Mapping[str, frozenset[str]]:
        """Missed documents with a cause that hybrid search mends, or that the other run has."""
        found: dict[str, frozenset[str]] = {}
        for finding in self.findings:
            other = self.others.get(finding.query_id)
            docs = frozenset(
                doc.doc_id for doc in finding.missed
                if {GAP.name, IGNORED.name} & set(doc.causes)
                or (other is not None and other.within(doc.doc_id, self.k))
            )  # fmt: skip
            if docs:
                found[finding.query_id] = docs
        return found

    def _reranking(self) -> Mapping[str, frozenset[str]]:
        ranks = {view.query_id: view.ranks for view in self.views}
        below = shares(self.findings, BELOW_K.name)
        within = {
            query: frozenset(doc for doc in docs if ranks[query][doc] <= self.depth)
            for query, docs in below.items()
        }
        return {query: docs for query, docs in within.items() if docs}


def _said(quality: Quality) -> str:
    return f"{quality.measure} is {quality.level} ({quality.mean:.2f})"


def _moved(name: str, now: float, then: float) -> str:
    if abs(now - then) < _NOTHING:
        return f"and {name} would stay at {now:.2f}"
    return f"and {name} would {'fall' if then < now else 'rise'} from {now:.2f} to {then:.2f}"


def _threshold_sentence(whole: Threshold, best: Threshold) -> str:
    return (
        f"a threshold of {best.score:.4g} on the score would lift precision from "
        f"{whole.precision:.2f} to {best.precision:.2f} and change recall from {whole.recall:.2f} "
        f"to {best.recall:.2f}, {many(best.empty, 'query')} left empty (chosen on these queries: "
        "optimistic)"
    )


def levels(
    means: Mapping[str, float], attainable: Mapping[str, float], bands: Sequence[Band]
) -> tuple[Quality, ...]:
    """Each mean with its band, and the highest band that the judgments allow."""
    return tuple(
        Quality(
            band.measure, means[str(band.measure)], band.level(means[str(band.measure)]),
            attainable[str(band.measure)], band.level(attainable[str(band.measure)]),
        )
        for band in bands
    )  # fmt: skip
