"""Likely causes of a bad value: each by a stated rule, with its evidence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rankgauge.corpus.collection import Collection
from rankgauge.diagnosis.ranked_queries import RankedQuery
from rankgauge.diagnosis.terms import Texts

__all__ = [
    "CAUSES",
    "Cause",
    "CauseTotal",
    "Examiner",
    "Missed",
    "QueryDiagnosis",
    "shares",
    "totals",
]

_HALF = 0.5
_NEARLY_ALL = 0.75
_SEVERAL = 2
_ENOUGH_JUDGED = 5
_ENOUGH_MISSED = 3
_ALPHA = 0.05
_SHOWN = 5


@dataclass(frozen=True)
class Cause:
    """A kind of failure.

    Attributes:
        name: What it is called.
        of: Whether it is found for each missed document or for a query.
        reads: What it is decided from.
        rule: The condition.
        fix: What to do.
    """

    name: str
    of: Literal["document", "query"]
    reads: Literal["ranks", "documents", "documents and queries"]
    rule: str
    fix: str


SUSPICIOUS = Cause(
    "judgments suspicious", "query", "documents",
    "a relevant document is not in the collection or has no text; a document in the first k is not "
    "in the collection; a judged document, or one in the first k, has the same words as a relevant "
    "one and another grade or none; or at least 5 documents are judged and all have one grade, "
    "though in most queries grades differ and some documents are judged not relevant",
    "check judgments and ids first",
)  # fmt: skip
UNJUDGED = Cause(
    "unjudged at the top", "query", "ranks",
    "at least half of the documents in the first k have no grade, in judgments that also say of "
    "some documents that they are not relevant",
    "judge these first",
)  # fmt: skip
DUPLICATES = Cause(
    "duplicates crowd the top", "query", "documents",
    "a document in the first k repeats a better placed one: Jaccard similarity of their runs of "
    "five words at least .9",
    "keep one of each",
)  # fmt: skip
GAP = Cause(
    "vocabulary gap", "document", "documents and queries",
    "no term of the query stands in title or text of the document",
    "semantic or hybrid search",
)  # fmt: skip
IGNORED = Cause(
    "terms ignored", "document", "documents and queries",
    "the document holds at least 3 in 4 terms of the query, at least 2, and each document in the "
    "first k that has a lower grade holds at most 3 in 4 of as many: near in meaning, wrong in "
    "terms",
    "add keyword search",
)  # fmt: skip
LENGTH = Cause(
    "very long or short", "document", "documents",
    "the length of the document lies outside the quartiles of the collection stretched by 1.5 "
    "times their distance on a logarithmic scale, at least by a factor of 2; and over all queries "
    "at least 3 such relevant documents are missed, a larger share than of those of usual length, "
    "and larger than chance explains (Fisher's exact test, one-sided, .05)",
    "chunking",
)  # fmt: skip
NOT_RETRIEVED = Cause(
    "not retrieved", "document", "ranks",
    "the document stands at no rank of the run",
    "another embedding model, or more depth",
)  # fmt: skip
BELOW_K = Cause(
    "ranked below k", "document", "ranks",
    "the document was retrieved below rank k",
    "reranking",
)  # fmt: skip
LOW = Cause(
    "low in the top k", "query", "ranks",
    "nothing is missed, but in the first k a document stands above one of a higher grade",
    "reranking",
)  # fmt: skip

#: In the order in which the first (primary) one of a query is chosen: what puts the judgments in
#: doubt, then what explains a failure, then what only locates it. A cause of documents counts there
#: only if at least half of the missed documents of the highest grade have it.
CAUSES = (SUSPICIOUS, UNJUDGED, DUPLICATES, GAP, IGNORED, LENGTH, NOT_RETRIEVED, BELOW_K, LOW)
_PLACE = {cause.name: place for place, cause in enumerate(CAUSES)}


@dataclass(frozen=True)
class Missed:
    """A relevant document that is not in the first k, though a place there is ill spent.

    Attributes:
        doc_id: The document.
        grade: Its grade.
        rank: Its rank; None if it was not retrieved.
        causes: Names of the causes found, in the order of `CAUSES`.
        evidence: What was seen, one sentence a cause.
        snippet: Its title, or the beginning of its text; empty without a collection.
    """

    doc_id: str
    grade: float
    rank: int | None
    causes: tuple[str, ...]
    evidence: tuple[str, ...]
    snippet: str = ""


@dataclass(frozen=True)
class QueryDiagnosis:
    """What went wrong in one query.

    Attributes:
        query_id: The query.
        text: What was asked; empty without a collection.
        value: Its value by the measure of the diagnosis.
        attainable: The value of the best ranking that the judgments allow.
        terms: The words of the query whose terms are looked for in documents.
        relevant: How many relevant documents it has.
        found: How many of them stand in the first k.
        causes: Names of the causes, the primary one first.
        evidence: What was seen of the causes that belong to the query, one sentence each.
        missed: The documents missed: highest grade first, then best rank.
        unjudged: Documents in the first k without a grade: judge these first.
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
        """The cause to look at first; empty if none was found."""
        return self.causes[0] if self.causes else ""


@dataclass(frozen=True)
class CauseTotal:
    """How often a cause was found.

    Attributes:
        cause: The cause.
        queries: Queries that have it.
        primary: Queries in which it is the primary one.
        documents: Missed documents that have it; None for a cause of queries.
        looked_at: False if what it is decided from was not given.
    """

    cause: Cause
    queries: int
    primary: int
    documents: int | None
    looked_at: bool


def totals(diagnoses: Sequence[QueryDiagnosis], seen: frozenset[str]) -> tuple[CauseTotal, ...]:
    """Every cause with how often it was found; `seen` are the names of those looked at."""
    queries = Counter(name for found in diagnoses for name in found.causes)
    first = Counter(found.primary for found in diagnoses)
    docs = Counter(name for found in diagnoses for doc in found.missed for name in doc.causes)
    return tuple(
        CauseTotal(
            cause, queries[cause.name], first[cause.name],
            docs[cause.name] if cause.of == "document" else None, cause.name in seen,
        )
        for cause in CAUSES
    )  # fmt: skip


@dataclass(frozen=True)
class Examiner:
    """Finds the causes of one query after the other.

    Attributes:
        texts: The texts of the collection.
        k: The cut-off.
        queries: Every query, for what is usual in these judgments.
    """

    texts: Texts
    k: int
    queries: tuple[RankedQuery, ...]

    @property
    def _collection(self) -> Collection:
        return self.texts.collection

    @cached_property
    def looked_at(self) -> frozenset[str]:
        """Names of the causes that can be decided in full from what was given."""
        documents, queries = self._collection.documents, self._collection.queries
        unknown = {"documents and queries"} if not (documents and queries) else set()
        unknown |= set() if documents else {"documents"}
        names = {cause.name for cause in CAUSES if cause.reads not in unknown}
        return frozenset(names if self._judges_non_relevant else names - {UNJUDGED.name})

    @cached_property
    def _judges_non_relevant(self) -> bool:
        return any(grade < query.rel for query in self.queries for grade in query.grades.values())

    @cached_property
    def _grades_differ(self) -> bool:
        """Whether in most queries not all documents have one grade, and some are not relevant."""
        if not self._judges_non_relevant:
            return False
        mixed = sum(len(set(query.grades.values())) > 1 for query in self.queries)
        return mixed > _HALF * len(self.queries)

    def diagnose(self, query: RankedQuery, value: float, attainable: float) -> QueryDiagnosis:
        """Return the likely causes of the value of a query."""
        missed = tuple(self._missed(query, doc) for doc in query.missed(self.k))
        found = list(self._of_query(query, missed=bool(missed)))
        names = {name for name, _ in found} | {name for doc in missed for name in doc.causes}
        text = self._collection.queries.get(query.query_id)
        return QueryDiagnosis(
            query_id=query.query_id,
            text="" if text is None else text.text,
            value=value,
            attainable=attainable,
            terms=self.texts.query_words(query.query_id),
            relevant=len(query.relevant),
            found=query.hits(self.k),
            causes=_in_order(names, missed),
            evidence=tuple(sentence for _, sentence in found),
            missed=missed,
            unjudged=query.unjudged(self.k),
        )

    # ---- causes of a missed document

    def _missed(self, query: RankedQuery, doc: str) -> Missed:
        rank, depth = query.ranks.get(doc), len(query.docs)
        absent = (
            f"not among the {depth:,} retrieved" if depth
            else "the run has no document for this query"
        )  # fmt: skip
        evidence = {
            GAP: self._gap(query, doc),
            IGNORED: self._ignored(query, doc),
            LENGTH: self._length(doc),
            NOT_RETRIEVED: absent if rank is None else "",
            BELOW_K: "" if rank is None else f"rank {rank}",
        }
        document = self._collection.documents.get(doc)
        return Missed(
            doc_id=doc,
            grade=query.grades[doc],
            rank=rank,
            causes=tuple(cause.name for cause, sentence in evidence.items() if sentence),
            evidence=tuple(filter(None, evidence.values())),
            snippet="" if document is None else document.snippet(),
        )

    def _gap(self, query: RankedQuery, doc: str) -> str:
        asked = self.texts.query_terms(query.query_id)
        if not asked or not self.texts.words(doc) or self.texts.shared(query.query_id, doc):
            return ""
        return "no term of the query in it"

    def _ignored(self, query: RankedQuery, doc: str) -> str:
        asked = self.texts.query_terms(query.query_id)
        held = len(self.texts.shared(query.query_id, doc))
        if held < _SEVERAL or held < _NEARLY_ALL * len(asked):
            return ""
        above = [d for d in query.docs[: self.k] if query.grade(d) < query.grades[doc]]
        if not above or not all(map(self.texts.knows, above)):
            return ""
        most = max(len(self.texts.shared(query.query_id, other)) for other in above)
        if most > _NEARLY_ALL * held:
            return ""
        return f"holds {held} of {len(asked)} terms of the query; those in its place {most} at most"

    @cached_property
    def lengths(self) -> Mapping[str, tuple[int, int]]:
        """Relevant documents missed, and those missed or in the first k, by size of their text."""
        counts = {"short": [0, 0], "usual": [0, 0], "long": [0, 0]}
        for query in self.queries:
            missed = set(query.missed(self.k))
            for doc in query.relevant:
                if self.texts.length(doc) and (doc in missed or query.within(doc, self.k)):
                    of_size = counts[self.texts.size(doc)]
                    of_size[0] += doc in missed
                    of_size[1] += 1
        return {size: (missed, all_) for size, (missed, all_) in counts.items()}

    @cached_property
    def hurting(self) -> tuple[str, ...]:
        """Which of ``short`` and ``long`` texts are missed more often than usual ones."""
        usual = self.lengths["usual"]
        return tuple(
            size for size in ("short", "long")
            if self.lengths[size][0] >= _ENOUGH_MISSED
            and _by_chance(self.lengths[size], usual) < _ALPHA
        )  # fmt: skip

    def _length(self, doc: str) -> str:
        length, what = self.texts.length(doc), self.texts.size(doc)
        if not length or what not in self.hurting:
            return ""
        low, high = self.texts.quartiles
        return f"very {what}: {length:,} characters (half of all: {low:,.0f} to {high:,.0f})"

    # ---- causes of a query

    def _of_query(self, query: RankedQuery, *, missed: bool) -> Iterator[tuple[str, str]]:
        for sentence in self._suspicions(query):
            yield SUSPICIOUS.name, sentence
        top = query.docs[: self.k]
        if not missed:
            low = _inverted(query, self.k)
            if low:
                yield LOW.name, low
            return
        bare = query.unjudged(self.k)
        if UNJUDGED.name in self.looked_at and bare and len(bare) >= _HALF * len(top):
            yield UNJUDGED.name, f"{len(bare)} of the first {len(top)} are unjudged: {_few(bare)}"
        repeats = self.texts.near_duplicates(top)
        if repeats:
            pairs = [f"{doc} is like {first} ({alike:.2f})" for doc, first, alike in repeats]
            yield (
                DUPLICATES.name,
                f"{len(repeats)} of the first {len(top)} repeat another: {_few(pairs)}",
            )

    def _suspicions(self, query: RankedQuery) -> Iterator[str]:
        grades = set(query.grades.values())
        if len(query.grades) >= _ENOUGH_JUDGED and len(grades) == 1 and self._grades_differ:
            yield f"all {len(query.grades)} judged documents have grade {grades.pop():g}"
        if not self._collection.documents:
            return
        known = self.texts.knows
        for what, docs in (
            ("relevant, but not in the collection", [d for d in query.relevant if not known(d)]),
            (
                "relevant, but without a text",
                [d for d in query.relevant if known(d) and not self.texts.length(d)],
            ),
            (
                f"in the first {self.k}, but not in the collection",
                [doc for doc in query.docs[: self.k] if not known(doc)],
            ),
            ("same words, judged otherwise", list(self._twins(query))),
        ):
            if docs:
                yield f"{what}: {_few(docs)}"

    def _twins(self, query: RankedQuery) -> Iterator[str]:
        """Documents with the words of a relevant one and another grade."""
        by_words: dict[tuple[str, ...], list[str]] = {}
        for doc in dict.fromkeys([*query.docs[: self.k], *query.grades]):
            by_words.setdefault(self.texts.words(doc), []).append(doc)
        by_words.pop((), None)
        for doc in query.relevant:
            for other in by_words.get(self.texts.words(doc), []):
                grade = query.grades.get(other)
                # Each pair once, from the higher grade.
                if other != doc and (grade is None or grade < query.grades[doc]):
                    its = "none" if grade is None else f"{grade:g}"
                    yield f"{other} (grade {its}) and {doc} (grade {query.grades[doc]:g})"


def _in_order(names: Iterable[str], missed: Sequence[Missed]) -> tuple[str, ...]:
    """The causes of a query, the primary one first."""
    best = [doc for doc in missed if doc.grade == missed[0].grade]
    of_docs = Counter(name for doc in best for name in doc.causes)
    lesser = {name for doc in missed for name in doc.causes if of_docs[name] < _HALF * len(best)}
    return tuple(sorted(names, key=lambda name: (name in lesser, _PLACE[name])))


def _by_chance(some: tuple[int, int], others: tuple[int, int]) -> float:
    """How likely so many of `some` are missed if all are missed alike (Fisher 1922, one-sided).

    Each pair: how many are missed, of how many.
    """
    (missed, size), (others_missed, others_size) = some, others
    every, every_missed = size + others_size, missed + others_missed

    def ways(among: int, chosen: int) -> float:
        return math.lgamma(among + 1) - math.lgamma(chosen + 1) - math.lgamma(among - chosen + 1)

    return math.fsum(
        math.exp(
            ways(size, here) + ways(others_size, every_missed - here) - ways(every, every_missed)
        )
        for here in range(missed, min(size, every_missed) + 1)
    )


def _inverted(query: RankedQuery, k: int) -> str:
    """Where the first document stands that has a better one below it in the first k."""
    top = [query.grade(doc) for doc in query.docs[:k]]
    for place, grade in enumerate(top):
        better = [below for below in range(place + 1, len(top)) if top[below] > grade]
        if better:
            best = max(better, key=lambda below: (top[below], -below))
            return (
                f"nothing is missed, but grade {top[best]:g} at rank {best + 1} stands below grade "
                f"{grade:g} at rank {place + 1}"
            )
    return ""


def _few(items: Sequence[str]) -> str:
    shown = ", ".join(items[:_SHOWN])
    return shown if len(items) <= _SHOWN else f"{shown} and {len(items) - _SHOWN} more"


def shares(diagnoses: Sequence[QueryDiagnosis], name: str) -> Mapping[str, frozenset[str]]:
    """The missed documents that have a cause, by query."""
    found = {
        finding.query_id: frozenset(doc.doc_id for doc in finding.missed if name in doc.causes)
        for finding in diagnoses
    }
    return {query: docs for query, docs in found.items() if docs}
