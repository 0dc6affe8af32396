"""Likely causes of failures: the rule for each cause, and its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from rankgauge.core.text import many
from rankgauge.diagnosis.ranked_queries import Patterns, RankedQuery, is_foreign, overlap
from rankgauge.diagnosis.terms import Texts

_HALF = 0.5
_NEARLY_ALL = 0.75
_SEVERAL = 2
_ENOUGH_JUDGED = 5
_SHOWN = 5
# Causes that the rules find for the run as a whole are its faults from this share of missed documents.
_OF_MISSED = 0.05
#: Smaller gains are not visible with two decimals.
VISIBLE = 0.005


@dataclass(frozen=True)
class Cause:
    """A kind of failure.

    Attributes:
        name: The name.
        of: Whether the cause is determined for each missed document or for a query.
        reads: The inputs that determine it.
        rule: The condition.
        fix: The suggested fix.
    """

    name: str
    of: Literal["document", "query"]
    reads: Literal["ranks", "documents", "documents and queries"]
    rule: str
    fix: str


SUSPICIOUS = Cause(
    "suspicious judgments",
    "query",
    "documents",
    "a relevant document is not in the collection or has no text; a document in the top k is not "
    "in the collection; two judged documents have the same words but different grades, one of "
    "them relevant; or at least 5 documents are judged and all have the same grade, although "
    "grades differ in most queries and some documents are judged not relevant",
    "check judgments and ids first",
)
SWAPPED = Cause(
    "query ids swapped",
    "query",
    "documents and queries",
    "the top 20 of another query has more terms of this query (weighted by rarity, 1.3 times as many), "
    "that query misses its terms in the same way, and exchanging these rankings raises the mean",
    "check the query ids of run and judgments",
)
CUT = Cause(
    "rankings cut",
    "document",
    "ranks",
    "the document is not in the ranking, and at least 3 in 4 rankings of the run end at the same "
    "rank as this one, which is not deeper than the measure reads (nDCG@10: 10), less deep than "
    "a reranker reads (depth), and less deep than the run that it is compared with, if any",
    "retrieve deeper",
)
UNJUDGED = Cause(
    "unjudged at the top",
    "query",
    "ranks",
    "at least half of the documents in the top k have no grade, and the judgments also contain "
    "documents that are not relevant",
    "judge these first",
)
DUPLICATES = Cause(
    "duplicates crowd the top",
    "query",
    "documents",
    "a document in the top k repeats a higher-ranked one (Jaccard similarity of their five-word "
    "shingles of at least .9), or an unjudged one has the same words as a relevant one",
    "keep one of each",
)
REVERSED = Cause(
    "top reversed",
    "query",
    "ranks",
    "over all queries, relevant documents are closer to the end than to the beginning of the top 10, "
    "20, 50, or 100 (by a standard deviation, or by 3.5 if they are in no order), and reversing them raises the mean; "
    "and this query misses a document in these ranks",
    "sort by decreasing score",
)
UNORDERED = Cause(
    "no order at the top",
    "query",
    "ranks",
    "over all queries, relevant documents are not closer to the beginning than to the end of the "
    "top 20, 50, or 100 (at least 50 documents; by less than 2.5 standard deviations, or 3.5% of "
    "these ranks), although these ranks, but not the first 10, 20, or 50 of them, have more "
    "relevant documents than the same number of ranks below; earlier documents do not have more terms of the query "
    "(correlation of at least -.1 in the top 20); and this query misses a document in these ranks",
    "check the scores and the sorting, then reranking",
)
ABSENT = Cause(
    "in no ranking",
    "document",
    "documents",
    "the document has a term of the query and is in no ranking of any query, although the "
    "rankings contain each document of the collection 5 times on average",
    "check the index and its filters",
)
LENGTH = Cause(
    "very long or short",
    "document",
    "documents",
    "on a logarithmic scale, the length of the document is outside the quartiles of the "
    "collection by more than 1.5 times the interquartile range, and at least by a factor of 2; "
    "or it is more than 5 times, or less than a fifth of, the median; and over all queries at "
    "least 3 such relevant documents are missed, a larger share than of documents with a usual "
    "length, and significantly so (Fisher's exact test, one-sided, .05)",
    "chunking",
)
GAP = Cause(
    "vocabulary gap",
    "document",
    "documents and queries",
    "title and text of the document have no term of the query; or they have at most 1 in 5 of at "
    "least 5 terms, the document is not retrieved, and the run retrieves relevant documents with "
    "so few terms less than a quarter as often as others (Fisher's exact test, one-sided, .001)",
    "add semantic search (lexical) or change the embedding model (dense)",
)
IGNORED = Cause(
    "ignored query terms",
    "document",
    "documents and queries",
    "the document has at least 3 in 4 terms of the query, at least 2, and each document in the "
    "top k with a lower grade has at most 3 in 4 of this number: similar meaning, but other "
    "terms; or it has at least half of the terms, at least 2, is not retrieved, and the run "
    "retrieves relevant documents with so many terms less often than others (the same test)",
    "add keyword search (dense) or check stemming and tokens (lexical)",
)
NOT_RETRIEVED = Cause(
    "not retrieved",
    "document",
    "ranks",
    "the document is not in the ranking, and the ranking is not cut",
    "add semantic search (lexical) or change the embedding model (dense)",
)
BELOW_K = Cause(
    "ranked below k",
    "document",
    "ranks",
    "the document was retrieved below rank k, or may be below the rank at which the rankings are "
    "cut, where deeper rankings would not change the value or not explain the difference",
    "reranking",
)
LOW = Cause(
    "low in the top k",
    "query",
    "ranks",
    "nothing is missed, but in the top k a document is ranked above one with a higher grade",
    "reranking",
)

#: In order of priority for the primary cause of a query: first causes that question the judgments,
#: then causes that explain a failure, then causes that only locate it. A cause of documents has
#: this priority only if at least half of the missed documents with the highest grade have it.
CAUSES = (
    SUSPICIOUS,
    SWAPPED,
    CUT,
    UNJUDGED,
    DUPLICATES,
    REVERSED,
    UNORDERED,
    ABSENT,
    LENGTH,
    GAP,
    IGNORED,
    NOT_RETRIEVED,
    BELOW_K,
    LOW,
)
# The fix if the kind of the retriever is known.
_FIXES = {
    ("vocabulary gap", "lexical"): "add semantic search",
    ("vocabulary gap", "dense"): "another embedding model",
    ("vocabulary gap", "hybrid"): "another embedding model",
    ("vocabulary gap", "hashing"): "add semantic search",
    ("ignored query terms", "lexical"): "check stemming and tokens of index and queries",
    ("ignored query terms", "dense"): "add keyword search",
    ("ignored query terms", "hashing"): "add keyword search",
    ("ignored query terms", "hybrid"): "more weight for keyword search",
    ("not retrieved", "lexical"): "add semantic search",
    ("not retrieved", "dense"): "another embedding model",
    ("not retrieved", "hybrid"): "another embedding model",
    ("not retrieved", "hashing"): "add semantic search",
}
_PLACE = {cause.name: place for place, cause in enumerate(CAUSES)}


@dataclass(frozen=True)
class Missed:
    """A relevant document outside the top k, although the top k has a less relevant one.

    Attributes:
        doc_id: The document id.
        grade: The grade.
        rank: The rank; None if not retrieved.
        causes: The names of its causes, in the order of `CAUSES`.
        evidence: One sentence for each cause.
        snippet: The title or the beginning of the text; empty without a collection.
    """

    doc_id: str
    grade: float
    rank: int | None
    causes: tuple[str, ...]
    evidence: tuple[str, ...]
    snippet: str = ""


@dataclass(frozen=True)
class QueryDiagnosis:
    """Likely causes of the loss in one query.

    Attributes:
        query_id: The query id.
        text: The text of the query; empty without a collection.
        value: The value of the measure of the diagnosis.
        attainable: The value of the ideal ranking.
        terms: The query words whose terms are searched for in documents.
        relevant: The number of relevant documents.
        found: The number of relevant documents in the top k.
        causes: The names of the causes, the primary one first.
        evidence: One sentence for each cause of the query.
        missed: The missed documents: highest grade first, then best rank.
        unjudged: The documents in the top k without a grade, to be judged first.
    """

    query_id: str
    text: str
    value: float
    attainable: float
    terms: tuple[str, ...]
    relevant: int
    found: int
    causes: tuple[str, ...]
    evidence: tuple[str, ...]
    missed: tuple[Missed, ...]
    unjudged: tuple[str, ...]

    @property
    def primary(self) -> str:
        """The cause to examine first; empty without a cause."""
        return self.causes[0] if self.causes else ""


@dataclass(frozen=True)
class Gain:
    """The mean gain of fixing a cause.

    Attributes:
        mean: The mean over queries.
        low: The lower bound of the 97% interval.
        high: The upper bound of this interval.
        assumption: The change of the rankings, and what it assumes.
        measured: Whether the change can be applied unchanged, without an assumption.
    """

    mean: float
    low: float
    high: float
    assumption: str
    measured: bool

    @property
    def significant(self) -> bool:
        """Whether the gain is visible with two decimals, and its interval excludes 0."""
        return self.low > 0 and self.mean >= VISIBLE


@dataclass(frozen=True)
class CauseTotal:
    """The frequency of a cause, and the gain of fixing it.

    Attributes:
        cause: The cause, with a fix for the kind of the retriever.
        queries: The number of queries with this cause.
        primary: The number of queries in which it is the primary cause.
        documents: The number of missed documents with this cause; None for a cause of queries.
        checked: False if the inputs that determine the cause were not given.
        systematic: Whether the cause is a fault of the run as a whole, rather than a limit of the retriever.
        gain: The gain in the measure of the diagnosis; None for a cause without queries or a fix that
            can be simulated.
    """

    cause: Cause
    queries: int
    primary: int
    documents: int | None
    checked: bool
    systematic: bool
    gain: Gain | None

    def sentence(self, measure: str) -> str:
        """Return the name of the cause with its gain in a measure."""
        queries = many(self.queries, "query")
        if self.gain is None:
            return f"{self.cause.name} ({queries})"
        mean, low, high = (f"{value:+.3f}" for value in (self.gain.mean, self.gain.low, self.gain.high))
        return f"{self.cause.name} ({queries}; {measure} {mean}, 97% CI {low} to {high}: {self.gain.assumption})"


def totals(
    diagnoses: Sequence[QueryDiagnosis], examiner: Examiner, gains: Mapping[str, Gain]
) -> tuple[CauseTotal, ...]:
    """Return the frequency of each cause, and its gain."""
    queries = Counter(name for diagnosis in diagnoses for name in diagnosis.causes)
    first = Counter(diagnosis.primary for diagnosis in diagnoses)
    docs = Counter(name for diagnosis in diagnoses for doc in diagnosis.missed for name in doc.causes)
    missed = sum(len(diagnosis.missed) for diagnosis in diagnoses)
    return tuple(
        CauseTotal(
            replace(cause, fix=_FIXES.get((cause.name, examiner.retriever), cause.fix)),
            queries[cause.name],
            first[cause.name],
            docs[cause.name] if cause.of == "document" else None,
            cause.name in examiner.checked,
            cause in examiner.systematic
            and queries[cause.name] > 0
            and docs[cause.name] >= _OF_MISSED * missed * (cause.of == "document"),
            gains.get(cause.name),
        )
        for cause in CAUSES
    )


def first_causes(cause_totals: Sequence[CauseTotal]) -> tuple[CauseTotal, ...]:
    """Return the causes with a significant gain: faults of the run, then measured gains, then assumed ones.

    Each group is in descending order of the gain. Gains of a retriever's limits include losses by
    faults of the run, so the two are not compared.
    """
    significant = [total for total in cause_totals if total.gain is not None and total.gain.significant]
    order = {
        total.cause: (total.systematic, total.gain.measured, total.gain.mean) for total in significant if total.gain
    }
    return tuple(sorted(significant, key=lambda total: order[total.cause], reverse=True))


@dataclass(frozen=True)
class Examiner:
    """Determines the causes of single queries.

    Attributes:
        texts: The texts of the collection.
        k: The cut-off.
        queries: All queries, which show what is usual in these judgments.
        patterns: The properties common to all rankings.
        retriever: ``lexical``, ``dense``, ``hashing``, or ``hybrid``; empty if unknown.
    """

    texts: Texts
    k: int
    queries: tuple[RankedQuery, ...]
    patterns: Patterns
    retriever: str = ""

    @cached_property
    def checked(self) -> frozenset[str]:
        """Names of the causes that the inputs fully determine."""
        documents, queries = self.texts.collection.documents, self.texts.collection.queries
        known = {"ranks": True, "documents": documents, "documents and queries": documents and queries}
        names = {cause.name for cause in CAUSES if known[cause.reads]}
        return frozenset(names if self._judges_non_relevant else names - {UNJUDGED.name})

    @cached_property
    def systematic(self) -> frozenset[Cause]:
        """Causes that affect the run as a whole.

        These are no limits of a retriever.
        """
        affects_run = {
            SWAPPED: True,
            CUT: True,
            UNJUDGED: True,
            DUPLICATES: True,
            REVERSED: True,
            UNORDERED: self.patterns.unordered > 0,
            ABSENT: bool(self.patterns.absent),
            GAP: self.patterns.few_terms or self.patterns.foreign,
            IGNORED: self.patterns.many_terms,
            LENGTH: bool(self.patterns.hurting),
        }
        return frozenset(cause for cause, systematic in affects_run.items() if systematic)

    @cached_property
    def _fitting(self) -> Mapping[str, str]:
        return dict(self.patterns.swapped)

    @cached_property
    def _judges_non_relevant(self) -> bool:
        return any(grade < query.rel for query in self.queries for grade in query.grades.values())

    @cached_property
    def _grades_differ(self) -> bool:
        """Whether grades differ within most queries and some judged documents are not relevant."""
        if not self._judges_non_relevant:
            return False
        mixed = sum(len(set(query.grades.values())) > 1 for query in self.queries)
        return mixed > _HALF * len(self.queries)

    def diagnose(self, query: RankedQuery, value: float, attainable: float) -> QueryDiagnosis:
        """Return the likely causes of the value of a query."""
        missed = tuple(self._missed(query, doc) for doc in query.missed(self.k))
        evidence = list(self._of_query(query, missed))
        names = {name for name, _ in evidence} | {name for doc in missed for name in doc.causes}
        text = self.texts.collection.queries.get(query.query_id)
        return QueryDiagnosis(
            query_id=query.query_id,
            text="" if text is None else text.text,
            value=value,
            attainable=attainable,
            terms=self.texts.query_words(query.query_id),
            relevant=len(query.relevant),
            found=query.hits(self.k),
            causes=_in_order(names, missed),
            evidence=tuple(sentence for _, sentence in evidence),
            missed=missed,
            unjudged=query.unjudged(self.k),
        )

    # ---- causes of a missed document

    def _missed(self, query: RankedQuery, doc: str) -> Missed:
        rank, depth = query.ranks.get(doc), len(query.docs)
        cut = rank is None and 0 < depth == self.patterns.cut
        beyond = f"may be below rank {depth}, at which the rankings are cut" if cut else ""
        limited = cut and self.patterns.limit > 0
        texts = self.texts.collection.documents
        unmatched = self.texts.query_terms(query.query_id) and not self.texts.shared(query.query_id, doc)
        absent = f"not among the {depth:,} retrieved" if depth else "the run has no document for this query"
        evidence = {
            CUT: beyond if limited else "",
            ABSENT: "in no ranking of any query" if doc in self.patterns.absent and not unmatched else "",
            LENGTH: self._length(doc) if texts else "",
            GAP: self._gap(query, doc) if texts else "",
            IGNORED: self._ignored(query, doc) if texts else "",
            NOT_RETRIEVED: absent if rank is None and not cut else "",
            BELOW_K: ("" if limited else beyond) if rank is None else f"rank {rank}",
        }
        document = self.texts.collection.documents.get(doc)
        return Missed(
            doc_id=doc,
            grade=query.grades[doc],
            rank=rank,
            causes=tuple(cause.name for cause, sentence in evidence.items() if sentence),
            evidence=tuple(filter(None, evidence.values())),
            snippet="" if document is None else document.snippet(),
        )

    def _gap(self, query: RankedQuery, doc: str) -> str:
        asked = len(self.texts.query_terms(query.query_id))
        if not asked or not self.texts.words(doc):
            return ""
        common = len(self.texts.shared(query.query_id, doc))
        if not common:
            return "no term of the query in it"
        if self.patterns.foreign and is_foreign(query, self.texts, self.k):
            return (
                f"has {common} of {asked} terms of the query; relevant documents and the top {self.k} lack most of them"
            )
        few = self.patterns.few_terms and doc not in query.ranks
        if not few or overlap(query, doc, self.texts) != "few":
            return ""
        return f"only {common} of {asked} terms of the query in it"

    def _ignored(self, query: RankedQuery, doc: str) -> str:
        asked = self.texts.query_terms(query.query_id)
        common = len(self.texts.shared(query.query_id, doc))
        if (query.query_id, doc) in self.patterns.promoted:
            return f"has {common} of {len(asked)} terms of the query; with keyword search in the first {self.k}"
        retrieved = doc in query.ranks or not self.patterns.many_terms
        if not retrieved and overlap(query, doc, self.texts) == "many":
            return f"has {common} of {len(asked)} terms of the query and is not retrieved"
        if common < _SEVERAL or common < _NEARLY_ALL * len(asked):
            return ""
        above = [d for d in query.docs[: self.k] if query.grade(d) < query.grades[doc]]
        if not above or not all(map(self.texts.knows, above)):
            return ""
        most = max(len(self.texts.shared(query.query_id, other)) for other in above)
        if most > _NEARLY_ALL * common:
            return ""
        return f"has {common} of {len(asked)} terms of the query; documents ranked above it have at most {most}"

    def _length(self, doc: str) -> str:
        length, what = self.texts.length(doc), self.texts.size(doc)
        if not length or what not in self.patterns.hurting:
            return ""
        low, _, high = self.texts.quartiles
        return f"very {what}: {length:,} characters (half of all: {low:,.0f} to {high:,.0f})"

    # ---- causes of a query

    def _of_query(self, query: RankedQuery, missed: Sequence[Missed]) -> Iterator[tuple[str, str]]:
        for sentence in self._suspicions(query):
            yield SUSPICIOUS.name, sentence
        if missed and query.query_id in self._fitting:
            yield SWAPPED.name, f"the ranking of {self._fitting[query.query_id]} has more terms of this query"
        top = query.docs[: self.k]
        if not missed:
            yield from _inversions(query, self.k)
            return
        bare = query.unjudged(self.k)
        if UNJUDGED.name in self.checked and bare and len(bare) >= _HALF * len(top):
            yield UNJUDGED.name, f"{len(bare)} of the first {len(top)} are unjudged: {_few(bare)}"
        pairs = self.repeats(query, top)
        if pairs:
            yield DUPLICATES.name, f"{len(pairs)} of the first {len(top)} repeat another: {_few([*pairs.values()])}"
        first = self.patterns.reversed
        if any(doc.rank is not None and doc.rank <= first for doc in missed):
            yield REVERSED.name, f"over all queries, relevant documents are near the end of the first {first} ranks"
        first = self.patterns.unordered
        if any(doc.rank is not None and doc.rank <= first for doc in missed):
            yield UNORDERED.name, f"relevant documents are at random ranks in the first {first}, over all queries"

    def repeats(self, query: RankedQuery, docs: Sequence[str]) -> Mapping[str, str]:
        """Return a sentence for each of some documents of a ranking that repeats another one."""
        repeated = self.texts.near_duplicates(docs) if self.texts.collection.documents else []
        pairs = {doc: f"{doc} repeats {first} ({alike:.2f})" for doc, first, alike in repeated}
        for doc, relevant in self._same_words(query):
            if doc in docs and doc not in query.grades and relevant not in docs:
                pairs.setdefault(doc, f"{doc} repeats {relevant} (relevant)")
        return pairs

    def _suspicions(self, query: RankedQuery) -> Iterator[str]:
        grades = set(query.grades.values())
        if len(query.grades) >= _ENOUGH_JUDGED and len(grades) == 1 and self._grades_differ:
            yield f"all {len(query.grades)} judged documents have grade {grades.pop():g}"
        if not self.texts.collection.documents:
            return
        known = self.texts.knows
        for what, docs in (
            ("relevant, but not in the collection", [d for d in query.relevant if not known(d)]),
            ("relevant, but without a text", [d for d in query.relevant if known(d) and not self.texts.length(d)]),
            (
                f"in the first {self.k}, but not in the collection",
                [doc for doc in query.docs[: self.k] if not known(doc)],
            ),
            (
                "same words, different grades",
                [
                    f"{other} (grade {query.grades[other]:g}) and {doc} (grade {query.grades[doc]:g})"
                    for other, doc in self._same_words(query)
                    if other in query.grades
                ],
            ),
        ):
            if docs:
                yield f"{what}: {_few(docs)}"

    def _same_words(self, query: RankedQuery) -> Iterator[tuple[str, str]]:
        """Yield pairs of documents with equal words: one of a lower or no grade, one relevant."""
        by_words: dict[tuple[str, ...], list[str]] = {}
        docs = [*query.docs[: self.k], *query.grades] if self.texts.collection.documents else ()
        for doc in dict.fromkeys(docs):
            by_words.setdefault(self.texts.words(doc), []).append(doc)
        by_words.pop((), None)
        for doc in query.relevant:
            for other in by_words.get(self.texts.words(doc), []):
                grade = query.grades.get(other)
                # Yield each pair once, the higher grade last.
                if other != doc and (grade is None or grade < query.grades[doc]):
                    yield other, doc


def _in_order(names: Iterable[str], missed: Sequence[Missed]) -> tuple[str, ...]:
    """Return the causes of a query, the primary one first."""
    best = [doc for doc in missed if doc.grade == missed[0].grade]
    of_docs = Counter(name for doc in best for name in doc.causes)
    lesser = {name for doc in missed for name in doc.causes if of_docs[name] < _HALF * len(best)}
    return tuple(sorted(names, key=lambda name: (name in lesser, _PLACE[name])))


def _inversions(query: RankedQuery, k: int) -> Iterator[tuple[str, str]]:
    """Yield a cause for the first document of the top k that is ranked above a better one."""
    top = [query.grade(doc) for doc in query.docs[:k]]
    for place, grade in enumerate(top):
        best = max(range(place, len(top)), key=lambda below: (top[below], -below))
        if top[best] > grade:
            above = f"grade {grade:g} at rank {place + 1}"
            yield LOW.name, f"nothing is missed, but grade {top[best]:g} at rank {best + 1} is ranked below {above}"
            return


def _few(items: Sequence[str]) -> str:
    shown = ", ".join(items[:_SHOWN])
    return shown if len(items) <= _SHOWN else f"{shown} and {len(items) - _SHOWN} more"


def shares(diagnoses: Sequence[QueryDiagnosis], name: str, *, alone: bool = False) -> Mapping[str, frozenset[str]]:
    """Return the missed documents with a cause, by query; `alone`: without causes that precede it."""
    return {
        finding.query_id: docs
        for finding in diagnoses
        if (docs := frozenset(doc.doc_id for doc in finding.missed if name in doc.causes[: 1 if alone else None]))
    }
