"""What went wrong in a query: each cause by a stated rule, with the evidence it was found by."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rankgauge.corpus.collection import Collection
from rankgauge.diagnosis.terms import Texts
from rankgauge.diagnosis.views import View

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
        rule: When it is claimed.
        cure: What to do.
    """

    name: str
    of: Literal["document", "query"]
    reads: Literal["ranks", "documents", "documents and queries"]
    rule: str
    cure: str


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


def totals(findings: Sequence[QueryDiagnosis], seen: frozenset[str]) -> tuple[CauseTotal, ...]:
    """Every cause with how often it was found; `seen` are the names of those looked at."""
    queries = Counter(name for found in findings for name in found.causes)
    first = Counter(found.primary for found in findings)
    docs = Counter(name for found in findings for doc in found.missed for name in doc.causes)
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
        views: Every query, for what is usual in these judgments.
    """

    texts: Texts
    k: int
    views: tuple[View, ...]

    @property
    def _collection(self) -> Collection:
        return self.texts.collection

    @cached_property
    def looked_at(self) -> frozenset[str]:
        """Names of the causes that can be decided in full from what was given."""
        known = {
            "ranks": True,
            "documents": bool(self._collection.documents),
            "documents and queries": bool(self._collection.documents and self._collection.queries),
        }
        names = {cause.name for cause in CAUSES if known[cause.reads]}
        if not self._judges_non_relevant:
            names.discard(UNJUDGED.name)
        return frozenset(names)

    @cached_property
    def _judges_non_relevant(self) -> bool:
        return any(grade < view.rel for view in self.views for grade in view.grades.values())

    @cached_property
    def _grades_differ(self) -> bool:
        """Whether in most queries not all documents have one grade, and some are not relevant."""
        if not self._judges_non_relevant:
            return False
        mixed = sum(len(set(view.grades.values())) > 1 for view in self.views)
        return mixed > _HALF * len(self.views)

    def finding(self, view: View, value: float, attainable: float) -> QueryDiagnosis:
        """What went wrong in this query."""
        missed = tuple(self._missed(view, doc) for doc in view.missed(self.k))
        seen = list(self._of_query(view, missed=bool(missed)))
        names = {name for name, _ in seen} | {name for doc in missed for name in doc.causes}
        query = self._collection.queries.get(view.query_id)
        return QueryDiagnosis(
            query_id=view.query_id,
            text="" if query is None else query.text,
            value=value,
            attainable=attainable,
            terms=self.texts.asked_words(view.query_id),
            relevant=len(view.relevant),
            found=view.hits(self.k),
            causes=_in_order(names, missed),
            evidence=tuple(sentence for _, sentence in seen),
            missed=missed,
            unjudged=view.unjudged(self.k),
        )

    # ---- causes of a missed document

    def _missed(self, view: View, doc: str) -> Missed:
        seen = [
            (cause.name, sentence)
            for cause, sentence in (
                (GAP, self._gap(view, doc)),
                (IGNORED, self._ignored(view, doc)),
                (LENGTH, self._length(doc)),
                (NOT_RETRIEVED, _not_retrieved(view, doc)),
                (BELOW_K, f"rank {view.ranks[doc]}" if doc in view.ranks else ""),
            )
            if sentence
        ]
        document = self._collection.documents.get(doc)
        return Missed(
            doc_id=doc,
            grade=view.grades[doc],
            rank=view.ranks.get(doc),
            causes=tuple(name for name, _ in seen),
            evidence=tuple(sentence for _, sentence in seen),
            snippet="" if document is None else document.snippet(),
        )

    def _gap(self, view: View, doc: str) -> str:
        asked = self.texts.asked(view.query_id)
        if not asked or not self.texts.words(doc) or self.texts.shared(view.query_id, doc):
            return ""
        return "no term of the query in it"

    def _ignored(self, view: View, doc: str) -> str:
        asked = self.texts.asked(view.query_id)
        held = len(self.texts.shared(view.query_id, doc))
        if held < _SEVERAL or held < _NEARLY_ALL * len(asked):
            return ""
        above = [d for d in view.docs[: self.k] if view.worth(d) < view.grades[doc]]
        if not above or not all(map(self.texts.knows, above)):
            return ""
        most = max(len(self.texts.shared(view.query_id, other)) for other in above)
        if most > _NEARLY_ALL * held:
            return ""
        return f"holds {held} of {len(asked)} terms of the query; those in its place {most} at most"

    @cached_property
    def lengths(self) -> Mapping[str, tuple[int, int]]:
        """Relevant documents missed, and those missed or in the first k, by size of their text."""
        counts = {"short": [0, 0], "usual": [0, 0], "long": [0, 0]}
        for view in self.views:
            missed = set(view.missed(self.k))
            for doc in view.relevant:
                if self.texts.length(doc) and (doc in missed or view.within(doc, self.k)):
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

    def _of_query(self, view: View, *, missed: bool) -> Iterator[tuple[str, str]]:
        for sentence in self._suspicions(view):
            yield SUSPICIOUS.name, sentence
        top = view.docs[: self.k]
        if not missed:
            low = _inverted(view, self.k)
            if low:
                yield LOW.name, low
            return
        bare = view.unjudged(self.k)
        if UNJUDGED.name in self.looked_at and bare and len(bare) >= _HALF * len(top):
            yield UNJUDGED.name, f"{len(bare)} of the first {len(top)} are unjudged: {_few(bare)}"
        repeats = self.texts.near_duplicates(top)
        if repeats:
            pairs = [f"{doc} is like {first} ({alike:.2f})" for doc, first, alike in repeats]
            yield (
                DUPLICATES.name,
                f"{len(repeats)} of the first {len(top)} repeat another: {_few(pairs)}",
            )

    def _suspicions(self, view: View) -> Iterator[str]:
        grades = set(view.grades.values())
        if len(view.grades) >= _ENOUGH_JUDGED and len(grades) == 1 and self._grades_differ:
            yield f"all {len(view.grades)} judged documents have grade {grades.pop():g}"
        if not self._collection.documents:
            return
        absent = [doc for doc in view.relevant if not self.texts.knows(doc)]
        if absent:
            yield f"relevant, but not in the collection: {_few(absent)}"
        empty = [d for d in view.relevant if self.texts.knows(d) and not self.texts.length(d)]
        if empty:
            yield f"relevant, but without a text: {_few(empty)}"
        strange = [doc for doc in view.docs[: self.k] if not self.texts.knows(doc)]
        if strange:
            yield f"in the first {self.k}, but not in the collection: {_few(strange)}"
        twins = list(self._twins(view))
        if twins:
            yield f"same words, judged otherwise: {_few(twins)}"

    def _twins(self, view: View) -> Iterator[str]:
        """Documents with the words of a relevant one and another grade."""
        others = list(dict.fromkeys([*view.docs[: self.k], *view.grades]))
        by_words: dict[tuple[str, ...], list[str]] = {}
        for doc in others:
            by_words.setdefault(self.texts.words(doc), []).append(doc)
        for doc in view.relevant:
            for other in by_words.get(self.texts.words(doc), []) if self.texts.words(doc) else []:
                grade = view.grades.get(other)
                # Each pair once, told from the higher grade.
                if other != doc and (grade is None or grade < view.grades[doc]):
                    said = "none" if grade is None else f"{grade:g}"
                    yield f"{other} (grade {said}) and {doc} (grade {view.grades[doc]:g})"


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


def _not_retrieved(view: View, doc: str) -> str:
    if doc in view.ranks:
        return ""
    if not view.docs:
        return "the run has no document for this query"
    return f"not among the {len(view.docs):,} retrieved"


def _inverted(view: View, k: int) -> str:
    """Where the first document stands that has a better one below it in the first k."""
    top = [view.worth(doc) for doc in view.docs[:k]]
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


def shares(findings: Sequence[QueryDiagnosis], name: str) -> Mapping[str, frozenset[str]]:
    """The missed documents that have a cause, by query."""
    found = {
        finding.query_id: frozenset(doc.doc_id for doc in finding.missed if name in doc.causes)
        for finding in findings
    }
    return {query: docs for query, docs in found.items() if docs}
