"""Suggested fixes with their evidence, and the joint interpretation of precision and recall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from rankgauge.core.text import many, some
from rankgauge.diagnosis.causes import (
    ABSENT,
    BELOW_K,
    CUT,
    GAP,
    IGNORED,
    LENGTH,
    LOW,
    NOT_RETRIEVED,
    UNORDERED,
    VISIBLE,
    Cause,
    Examiner,
    QueryDiagnosis,
    shares,
)
from rankgauge.diagnosis.gains import BOTH, CutOff, PotentialGain, Sweep, count_documents, field_values
from rankgauge.diagnosis.quality import Quality
from rankgauge.diagnosis.ranked_queries import RankedQuery
from rankgauge.measures.measure import Measure

#: In the usual order of trying them, with the causes that they fix; the first two are listed only with evidence.
FIXES: Mapping[str, tuple[Cause, ...]] = {
    "retrieve deeper": (CUT,),
    "index": (ABSENT,),
    "embedding model": (NOT_RETRIEVED,),
    "chunking": (LENGTH,),
    "metadata filter": (),
    "hybrid search": (GAP, IGNORED),
    "reranking": (BELOW_K, LOW, UNORDERED),
}
# Deviations for a known kind of retriever.
_FIXES_BY_KIND: Mapping[str, Mapping[str, tuple[Cause, ...]]] = {
    "lexical": {"embedding model": (), "text analysis": (IGNORED,), "hybrid search": (GAP, NOT_RETRIEVED)},
    "dense": {"embedding model": (NOT_RETRIEVED, GAP), "hybrid search": (IGNORED,)},
    "hashing": {"embedding model": (NOT_RETRIEVED, GAP), "hybrid search": (IGNORED,)},
    "hybrid": {"embedding model": (NOT_RETRIEVED, GAP), "hybrid search": (IGNORED,)},
}
Kind: TypeAlias = Literal["noisy context", "missing information", "both are low", "both are high", "undefined"]
_Docs: TypeAlias = Mapping[str, frozenset[str]]
_HIGH = ("Good", "Excellent")
# From this share of the attainable value, little can be gained.
_NEARLY = 0.9
# A field or term is common to documents in no ranking if at least this many have it, and if their
# share exceeds that of other relevant documents by this difference.
_SEVERAL, _APART = 3, 0.5
_ONLY_WITH_EVIDENCE = ("retrieve deeper", "index", "text analysis")


@dataclass(frozen=True)
class PrecisionRecall:
    """The joint interpretation of precision and recall at the cut-off.

    Attributes:
        kind: ``noisy context`` (recall high, precision low), ``missing information`` (precision
            high, recall low), ``both are low``, or ``both are high``, where high means Good or
            Excellent; ``undefined`` if one of the means is undefined.
        sentences: The interpretation with potential gains.
    """

    kind: Kind
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class SuggestedFix:
    """A fix with its evidence in this run.

    Attributes:
        name: The name of the fix.
        queries: The number of failing queries with a missed document that the fix could help.
        documents: The number of these documents.
        evidence: Observations with numbers; empty without evidence.
    """

    name: str
    queries: int
    documents: int
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """The results from which suggestions are derived.

    Attributes:
        measure: The measure of the diagnosis.
        examiner: The queries with their causes of failure.
        depth: The number of documents that a reranker receives.
        diagnoses: The likely causes for each query.
        qualities: Means with their bands.
        gains: The potential gains.
        cutoffs: Means at several cut-offs.
        sweep: Thresholds on the score.
        now: The current means.
        others: The rankings of another run, by query; empty without another run.
        other_name: The name of the other run.
    """

    measure: Measure
    examiner: Examiner
    depth: int
    diagnoses: tuple[QueryDiagnosis, ...]
    qualities: tuple[Quality, ...]
    gains: tuple[PotentialGain, ...]
    cutoffs: tuple[CutOff, ...]
    sweep: Sweep
    now: Mapping[str, float]
    others: Mapping[str, RankedQuery]
    other_name: str

    @property
    def _k(self) -> int:
        return self.examiner.k

    @cached_property
    def _at_k(self) -> CutOff:
        return next(row for row in self.cutoffs if row.k == self._k)

    def precision_recall(self, precision: Measure, recall: Measure) -> PrecisionRecall:
        """Interpret precision and recall jointly."""
        by = {quality.measure: quality for quality in self.qualities}
        p, r = by[precision], by[recall]
        if p.level is None or r.level is None:
            return PrecisionRecall("undefined", ())
        kinds: dict[tuple[bool, bool], Kind] = {
            (False, True): "noisy context",
            (True, False): "missing information",
            (False, False): "both are low",
            (True, True): "both are high",
        }
        kind = kinds[p.level in _HIGH, r.level in _HIGH]
        means = (f"{quality.measure} is {quality.level} ({quality.mean:.2f})" for quality in (p, r))
        sentences = [f"{kind}: {', '.join(means)}"]
        if kind == "missing information" and r.mean >= _NEARLY * r.attainable:
            sentences[0] += f"; {self._k} documents allow {r.attainable:.2f} at most"
        if kind in {"noisy context", "both are low"}:
            sentences += self._noise(p)
        if kind in {"missing information", "both are low"}:
            sentences += self._gaps(r)
        return PrecisionRecall(kind, tuple(sentences))

    def _noise(self, p: Quality) -> Iterator[str]:
        if p.mean >= _NEARLY * p.attainable:
            yield (
                f"{p.measure} cannot exceed {p.attainable:.2f} with these judgments: reranking "
                "can hardly raise it; a smaller k or a score threshold can remove noise"
            )
        else:
            yield from self._largest_gain("reranking", p.measure)
        here = self._at_k
        fewer = [row for row in self.cutoffs if row.k < here.k and row.precision > here.precision]
        if fewer:
            row = fewer[-1]
            yield (
                f"k = {row.k} instead of {here.k} would raise precision from "
                f"{here.precision:.2f} to {row.precision:.2f}, "
                f"{_change('recall', here.recall, row.recall)}"
            )
        best = self.sweep.best
        if best is not None:
            whole = self.sweep.thresholds[0]
            if best.precision > whole.precision + VISIBLE:
                yield (
                    f"a threshold of {best.score:.4g} on the score would raise the share of "
                    f"relevant documents among those shown from {whole.precision:.2f} to "
                    f"{best.precision:.2f} and change recall from {whole.recall:.2f} to "
                    f"{best.recall:.2f}, {many(best.empty, 'query')} without results (chosen on "
                    "these queries: optimistic)"
                )

    def _gaps(self, r: Quality) -> Iterator[str]:
        here = self._at_k
        if r.mean >= _NEARLY * r.attainable:
            yield (
                f"{r.measure} cannot exceed {r.attainable:.2f} with these judgments: some "
                f"queries have more than {here.k} relevant documents"
            )
        more = [row for row in self.cutoffs if row.k > here.k and row.recall > here.recall]
        if more:
            row = next((row for row in more if row.k >= 4 * here.k), more[-1])
            yield (
                f"k = {row.k} instead of {here.k} would raise recall from {here.recall:.2f} to "
                f"{row.recall:.2f}, {_change('precision', here.precision, row.precision)}"
            )
        for fix in self._fixes:
            yield from () if fix == "reranking" else self._largest_gain(fix, r.measure)

    @cached_property
    def _fixes(self) -> Mapping[str, tuple[Cause, ...]]:
        """The fixes for this kind of retriever with their causes."""
        return {**FIXES, **_FIXES_BY_KIND.get(self.examiner.retriever, {})}

    def _gains(self, fix: str) -> list[PotentialGain]:
        names = {fix, *(cause.name for cause in self._fixes[fix])}
        return [gain for gain in self.gains if gain.fix in names]

    def _largest_gain(self, fix: str, measure: Measure) -> Iterator[str]:
        """Yield a sentence with the largest gain of a fix in this measure."""
        name = str(measure)
        best = max(self._gains(fix), key=lambda gain: gain.means[name], default=None)
        if best is not None and best.means[name] > self.now[name] + VISIBLE:
            kind = "" if best.kind == "measured" else f" ({best.kind})"
            # Assumptions begin with "if".
            verb = ", this" if best.kind == "as others" else ""
            yield (
                f"{fix}: {best.what}{verb} would raise {name} from {self.now[name]:.2f} to "
                f"{best.means[name]:.2f}{kind}{self._reranking_alone(best, name)}"
            )

    def _reranking_alone(self, gain: PotentialGain, name: str) -> str:
        """Return the gain of reranking this run alone, to tell it from that of hybrid search."""
        own = [other for other in self.gains if other.kind == "at most" and other.fix == "reranking"]
        if not own or not gain.what.endswith(BOTH):
            return ""
        return f"; of this run alone to {own[-1].means[name]:.2f}"

    # ---- suggested fixes

    def fixes(self) -> tuple[SuggestedFix, ...]:
        """Return the suggested fixes with their evidence."""
        name = str(self.measure)
        suggestions = []
        for fix, causes in self._fixes.items():
            docs = self._helped(fix)
            evidence = list(self._observations(fix, docs)) if docs else []
            evidence += [
                f"{gain.what}: {name} {self.now[name]:.2f} to {gain.means[name]:.2f} "
                f"({gain.kind}{self._reranking_alone(gain, name)})"
                for gain in self._gains(fix)
                if gain.means[name] > self.now[name] + VISIBLE
            ]
            if evidence or (causes and fix not in _ONLY_WITH_EVIDENCE) or fix == "metadata filter":
                suggestions.append(SuggestedFix(fix, len(docs), count_documents(docs), tuple(evidence)))
        return tuple(sorted(suggestions, key=lambda suggestion: not suggestion.evidence))

    def _helped(self, fix: str) -> _Docs:
        """Return the missed documents that a fix could help, by query."""
        names = {cause.name for cause in self._fixes[fix]}
        helped = {}
        for diagnosis in self.diagnoses:
            other = self.others.get(diagnosis.query_id) if fix == "hybrid search" else None
            helped[diagnosis.query_id] = frozenset(
                doc.doc_id
                for doc in diagnosis.missed
                if (names & {*doc.causes} and (fix != "reranking" or (doc.rank or 0) <= self.depth))
                or (other is not None and other.within(doc.doc_id, self._k))
            )
        return {query: docs for query, docs in helped.items() if docs}

    def _observations(self, fix: str, docs: _Docs) -> Iterator[str]:
        missed = f"{many(count_documents(docs), 'missed document')} in {many(len(docs), 'query')}"
        cut, limit = self.examiner.patterns.cut, self.examiner.patterns.limit
        plain = {
            "retrieve deeper": f"rankings are cut at {cut}: {missed} may be below; retrieve deeper",
            "index": f"{missed} in no ranking of any query, such as {some(sorted(set().union(*docs.values())))}",
            "embedding model": f"{missed} not retrieved",
            "text analysis": f"{missed} whose terms were ignored",
            "reranking": f"{missed} at ranks {self._k + 1} to {self.depth}"
            if limit or not cut
            else f"{missed} below rank {self._k}; rankings are cut at {cut}: retrieve deeper",
        }
        if fix in plain:
            yield plain[fix]
            if fix == "index":
                yield from self._in_common()
        elif fix == "chunking":
            sizes = dict(self.examiner.patterns.sizes)
            usual, every = sizes["usual"]
            for size in self.examiner.patterns.hurting:
                number, of = sizes[size]
                yield (
                    f"missed: {number} of {of} very {size} relevant documents, and {usual} of {every} of usual length"
                )
        elif fix == "hybrid search":
            gaps, ignored = (
                count_documents(shares(self.diagnoses, c.name)) if c in self._fixes[fix] else 0 for c in (GAP, IGNORED)
            )
            if gaps:
                few = "few terms or none" if self.examiner.patterns.few_terms else "no term"
                yield f"{many(gaps, 'missed document')} with {few} of the query (semantic)"
            if ignored:
                yield f"{many(ignored, 'missed document')} whose terms were ignored (keyword)"
            if self.others:
                missed_docs = [
                    (diagnosis.query_id, doc.doc_id) for diagnosis in self.diagnoses for doc in diagnosis.missed
                ]
                at_k, deeper = (
                    sum(query in self.others and self.others[query].within(doc, depth) for query, doc in missed_docs)
                    for depth in (self._k, self.depth)
                )
                yield (
                    f"of {many(len(missed_docs), 'missed document')}, {self.other_name} ranks {at_k} in "
                    f"the top {self._k} and {deeper} in the top {self.depth}"
                )

    def _in_common(self) -> Iterator[str]:
        """Yield the field or term that is common only to relevant documents in no ranking."""
        absent = self.examiner.patterns.absent
        relevant = {doc for query in self.examiner.queries for doc in query.relevant}
        others = [doc for doc in relevant - absent if self.examiner.texts.length(doc)]
        for traits in (self._fields, self._terms):
            have, rest = (Counter(t for d in docs for t in traits(d)) for docs in (absent, others))
            apart = {
                trait: number / len(absent) - rest[trait] / max(len(others), 1)
                for trait, number in have.items()
                if number >= _SEVERAL
            }
            most = max(sorted(apart), key=apart.__getitem__, default=None)
            if most is not None and apart[most] >= _APART:
                yield (
                    f"{have[most]} of {many(len(absent), 'document')} in no ranking have "
                    f"{most}, and {rest[most]} of {len(others)} other relevant ones: check for "
                    "a filter"
                )
                return

    def _fields(self, doc: str) -> Iterator[str]:
        fields = field_values(self.examiner.texts.collection.documents.get(doc))
        for name, values in fields.items():
            yield from (f"{name} = {value!r}" for value in values)

    def _terms(self, doc: str) -> Iterator[str]:
        return (f"the term {term!r}" for term in self.examiner.texts.terms(doc))


def _change(name: str, now: float, then: float) -> str:
    if abs(now - then) < VISIBLE:
        return f"and leave {name} at {now:.2f}"
    return f"and {name} would {'fall' if then < now else 'rise'} from {now:.2f} to {then:.2f}"
