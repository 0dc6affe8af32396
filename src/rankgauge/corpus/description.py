"""Description of the content of a collection, with findings that affect evaluations.

One pass over the documents finds their lengths, repeats, and embedded queries.
"""

from __future__ import annotations

import hashlib
import os
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.findings import (
    DOCUMENT_NOT_IN_COLLECTION,
    EMPTY_TEXT,
    NO_RELEVANT_DOCUMENT,
    QUERY_NOT_IN_COLLECTION,
    QUESTION_INSIDE_DOCUMENT,
    REPEATED_TEXT,
    Evidence,
    Finding,
    FindingKind,
)
from rankgauge.core.ids import IntArray
from rankgauge.core.text import Ratio, keep, many
from rankgauge.corpus.collection import Collection, Document, Query
from rankgauge.corpus.loading import other_splits
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Detail, Table

_EXAMPLES = 3
_EFFECTS = 2  # effects in a short report
_GRADES = "judgments of grade"
# Shorter queries occur in documents by chance.
_LEAST_WORDS = 4


_WORD = re.compile(r"[^\W_]+")


_RELEVANT = 1
# Kinds of findings that only descriptions report.
UNREADABLE_TEXT = FindingKind(
    "T106",
    "unreadable-text",
    "warning",
    "lines or files of a collection that cannot be read",
    "their contents are missing from the collection",
    "fix these lines or files",
)
EMPTY_QUERY = FindingKind(
    "T107",
    "empty-query",
    "warning",
    "queries without text",
    "no document can be retrieved for them",
    "load the texts again, or remove the queries",
)
REPEATED_QUERY = FindingKind(
    "T108",
    "repeated-query",
    "warning",
    "queries with the same text under different ids",
    "one question counts several times in a mean, and intervals are too narrow",
    "keep one of them",
)
QUERY_IS_DOCUMENT = FindingKind(
    "T109",
    "query-is-document",
    "info",
    "queries with the id of a document",
    "harmless if ids are only numbers; a query that is also a document retrieves itself first",
    "remove the query's own document from its ranking",
)
QUERY_IN_OTHER_SPLIT = FindingKind(
    "T110",
    "query-in-other-split",
    "warning",
    "queries that are also judged in another split",
    "a system tuned on that split has seen them",
    "tune on other queries",
)
UNJUDGED_QUERY = FindingKind(
    "T111",
    "unjudged-query",
    "info",
    "queries of the collection without judgments",
    "they are run, but are not part of means",
    "none if the judgments are meant to cover only some queries",
)
PARTS = ("min", "median", "mean", "p95", "max")  # of a distribution


@dataclass
class Scan:
    """Results of a pass over the documents."""

    characters: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    words: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    empty: list[str] = field(default_factory=list)
    # Pairs of a document and the first with the same text; groups of documents with the same text
    # as a relevant document.
    repeats: int = 0
    first_repeats: list[tuple[str, str]] = field(default_factory=list)
    twins: list[tuple[str, ...]] = field(default_factory=list)
    # Query id to the first document that contains its words.
    leaks: dict[str, str] = field(default_factory=dict)
    same_ids: list[str] = field(default_factory=list)
    # Number of judged documents, and those that are not in the collection.
    judged: int = 0
    absent: list[str] = field(default_factory=list)
    relevant_empty: list[str] = field(default_factory=list)
    missing: list[list[str]] = field(default_factory=list)


def folded(text: str) -> str:
    """Return a text in lower case with single blanks between words."""
    return " ".join(text.casefold().split())


def plain_words(text: str) -> str:
    """Return the words of a text in lower case, separated by single blanks."""
    return " ".join(_WORD.findall(text.casefold()))


class _Leaks:
    """Queries to find in documents, indexed by their longest words."""

    def __init__(self, collection: Collection) -> None:
        self._by_word: dict[str, list[tuple[str, str, frozenset[str]]]] = {}
        self.documents: dict[str, str] = {}
        for query in collection.queries.values():
            text = plain_words(query.text)
            words = text.split()
            if len(words) >= _LEAST_WORDS:
                anchor = max(words, key=len)
                self._by_word.setdefault(anchor, []).append((query.id, f" {text} ", frozenset(words)))

    def search(self, document: Document) -> None:
        """Record the queries whose text occurs in a document in sequence."""
        if not self._by_word:
            return
        here = plain_words(document.full_text)
        words = set(here.split())
        for word in words & self._by_word.keys():
            for query, text, parts in self._by_word[word]:
                if query not in self.documents and parts <= words and text in f" {here} ":
                    self.documents[query] = document.id


def scan(collection: Collection, judged: Qrels | None, runs: Sequence[Run]) -> Scan:
    """Scan the documents once, and again for the ids of repeated documents if there are any."""
    scanned = Scan()
    relevant: set[str] = set()
    wanted = [dict.fromkeys(run.table.docs.shown()) for run in runs]
    if judged is not None:
        ids, values = judged.table.docs.shown(), judged.table.values.tolist()
        relevant = {key for key, grade in zip(ids, values, strict=True) if grade >= 1}
        wanted.append(dict.fromkeys(ids))
        scanned.judged = len(wanted[-1])
    leaks = _Leaks(collection)
    characters, words, hashes = array("q"), array("q"), array("Q")
    places: list[int] = []
    for document in collection.documents.values():
        key = document.id
        text = folded(document.full_text)
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
        count = text.count(" ") + 1 if text else 0
        characters.append(len(document.full_text))
        words.append(count)
        # Empty texts are not duplicates: each has a unique number.
        number = int.from_bytes(digest.digest(), "little") if count else len(hashes)
        hashes.append(number)
        if not count:
            scanned.empty.append(key)
            if key in relevant:
                scanned.relevant_empty.append(key)
        if count and key in relevant:
            places.append(len(hashes) - 1)
        if key in collection.queries:
            scanned.same_ids.append(key)
        for missing in wanted:
            missing.pop(key, None)
        leaks.search(document)
    scanned.characters, scanned.words = np.array(characters), np.array(words)
    scanned.missing = [list(rest) for rest in wanted]
    scanned.absent = [] if judged is None else scanned.missing.pop()
    scanned.leaks = leaks.documents
    _repeats(scanned, collection, np.frombuffer(hashes, dtype=np.uint64), places)
    return scanned


def _repeats(scanned: Scan, collection: Collection, hashes: npt.NDArray[np.uint64], relevant: Sequence[int]) -> None:
    """Record the first repeated documents, and all that repeat a relevant document."""
    if len(hashes) < 2:
        return
    _, first, numbers = np.unique(hashes, return_index=True, return_inverse=True)
    original = first[numbers]
    later = np.flatnonzero(original != np.arange(len(hashes)))
    scanned.repeats = len(later)
    if not len(later):
        return
    pairs = [(int(place), int(original[place])) for place in later[:_EXAMPLES]]
    groups: dict[int, list[int]] = {}
    for place in later[np.isin(original[later], original[list(relevant)])].tolist():
        groups.setdefault(int(original[place]), [int(original[place])]).append(place)
    places = {place for pair in pairs for place in pair}.union(*groups.values())
    names: dict[int, str] = {}
    for place, key in enumerate(collection.documents):
        if place in places:
            names[place] = key
        if len(names) == len(places):
            break
    scanned.first_repeats = [(names[place], names[first_place]) for place, first_place in pairs]
    scanned.twins = [tuple(names[place] for place in group) for group in groups.values()]


@dataclass(frozen=True)
class Spread:
    """A distribution of numbers: minimum, median, mean, 95th percentile, and maximum."""

    least: float
    median: float
    mean: float
    p95: float
    most: float

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Spread | None:
        """Return the distribution of numbers; None if there are none."""
        values = np.array(list(numbers) if not isinstance(numbers, np.ndarray) else numbers)
        if not len(values):
            return None
        median, p95 = np.quantile(values, [0.5, 0.95]).tolist()
        return cls(int(values.min()), median, float(values.mean()), p95, int(values.max()))


@dataclass(frozen=True)
class CollectionInfo(Result):
    """Description of the content of a collection.

    Attributes:
        name: The name of the collection.
        documents: Number of documents.
        queries: Number of queries.
        judgments: Number of judgments; None without judgments.
        grades: Number of judgments of each grade.
        judged_documents: Number of documents judged for at least one query.
        spreads: Distributions of lengths and of numbers of relevant documents, by name.
        findings: Findings that affect evaluations.
        notes: Notes of the reader.
        fingerprint: The fingerprint of documents and queries, if requested.
    """

    _attributes = "* judged_share"

    name: str
    documents: int
    queries: int
    judgments: int | None
    grades: Mapping[float, int]
    judged_documents: int
    spreads: Mapping[str, Spread]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = field(default=())
    fingerprint: str = ""

    @property
    def judged_share(self) -> float:
        """Share of documents that are judged for at least one query."""
        return self.judged_documents / self.documents if self.documents else 0.0

    def counts(self) -> dict[str, int]:
        """Return the numbers of documents, queries, and judgments, by name."""
        counts = {"documents": self.documents, "queries": self.queries}
        if self.judgments is None:
            return counts
        counts |= {"judgments": self.judgments}
        counts |= {f"{_GRADES} {grade:g}": count for grade, count in self.grades.items()}
        return counts | ({"judged documents": self.judged_documents} if self.documents else {})

    def table(self) -> Table:
        """Return the counts; judgments by grade are details."""
        counts = ((Detail(name) if name.startswith(_GRADES) else name, count) for name, count in self.counts().items())
        return Table(("what", "number"), tuple(counts), title=self.name, unit="count")

    def tables(self) -> tuple[Table, ...]:
        """Return the counts, the lengths of texts, the quality problems, and notes."""
        lengths = Table(
            ("length", *PARTS),
            tuple(
                (Detail(name) if name.startswith("characters") else name, *astuple(spread))
                for name, spread in self.spreads.items()
            ),
            digits=1,
        )
        problems = Table(
            ("what", "number", "of", "such as"),
            tuple(
                (finding.message, finding.evidence.count, finding.evidence.of, ", ".join(finding.evidence.examples))
                for finding in self.findings
            ),
            title="quality problems",
            shortened=frozenset({3}),
        )
        effects = [f"{finding.message}: {finding.effect} ({finding.code})" for finding in self.findings]
        notes = keep(
            *effects[:_EFFECTS],
            *map(Detail, effects[_EFFECTS:]),
            *self.notes,
            self.judgments is None and "no judgments were given: checks that need them were skipped",
            self.judgments is not None
            and self.documents
            and f"{Ratio(self.judged_share):.1%} of the documents are judged for some query",
            not self.documents and "no documents were given: checks that need them were skipped",
            not self.findings
            and "no quality problems found: checked for empty and duplicate texts, missing ids, leaks",
        )
        return keep(self.table(), lengths.rows and lengths, problems.rows and problems, Table((), (), notes=notes))

    def data_table(self) -> Table:
        """Return counts, distributions, and findings with examples as unformatted values."""
        counts = ((name, count, "", "") for name, count in self.counts().items())
        spreads = (
            (f"{name}: {what}", number, "", "")
            for name, spread in self.spreads.items()
            for what, number in zip(PARTS, astuple(spread), strict=True)
        )
        findings = (
            (finding.message, finding.evidence.count, finding.evidence.of, "; ".join(finding.evidence.examples))
            for finding in self.findings
        )
        return Table(("what", "value", "of", "examples"), (*counts, *spreads, *findings))

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        judged = "" if self.judgments is None else f", {many(self.judgments, 'judgment')}"
        problems = "; ".join(
            f"{finding.evidence.count} of {finding.evidence.of} {finding.message}" for finding in self.findings
        )
        return (
            f"{self.name}: {many(self.documents, 'document')}, "
            f"{many(self.queries, 'query')}{judged}. {f'Problems: {problems}' if problems else 'No problems found.'}"
        )

    def _data(self) -> dict[str, Any]:
        grades = {f"{grade:g}": count for grade, count in self.grades.items()}
        return super()._data() | {"grades": grades, "findings": self.findings}


def describe_collection(
    collection: Any, qrels: Any = None, *, queries: Any = None, runs: Sequence[Run] = (), split: str | None = None
) -> CollectionInfo:
    """Describe the content of a collection, with findings that affect evaluations.

    Documents are read once, one at a time (twice if some are repeated). A query occurs in a
    document if the document contains the words of the query in sequence, ignoring case and
    punctuation; only queries with at least four words are searched for.

    Args:
        collection: A collection, or anything that :meth:`Collection.load` accepts; in this case,
            invalid lines and files are skipped and counted.
        qrels: Judgments that replace those of the collection.
        queries: Queries that replace those of the collection.
        runs: Runs whose documents are checked against the collection.
        split: The split of the judgments.

    Raises:
        InputError: If the collection does not exist, or its judgments cannot be read.

    Example:
        >>> texts = Collection.of({"d1": "Fees", "d2": "fees "}, {"q1": "fees"})
        >>> found = describe_collection(texts, {"q1": {"d1": 1, "d3": 1}})
        >>> [(one.message, one.evidence.examples) for one in found.findings]
        [('documents with the same text as another', ('d2 = d1',)),
         ('judged documents not in the collection', ('d3',))]
    """
    known = collection
    if not isinstance(collection, Collection):
        known = Collection.load(collection, queries=queries, split=split, invalid="skip")
    elif queries is not None:
        texts, own = collection.documents, collection.qrels
        known = Collection.load(documents=texts, queries=queries, qrels=own, invalid="skip")
    judged = known.qrels if qrels is None else Qrels.of(qrels)
    scanned = scan(known, judged, runs)
    findings = (
        _of_reading(known, collection),
        _finding(EMPTY_TEXT, "documents without any text", scanned.empty, len(scanned.characters)),
        _finding(
            REPEATED_TEXT,
            "documents with the same text as another",
            [f"{key} = {first}" for key, first in scanned.first_repeats],
            len(scanned.characters),
            count=scanned.repeats,
        ),
        *_of_queries(known, scanned, other_splits(collection, split), judged),
        *_of_judgments(known, scanned, judged),
        *(
            _finding(
                DOCUMENT_NOT_IN_COLLECTION,
                f"documents of the run {run.name} that are not in the collection",
                missing,
                len(run.table),
            )
            for run, missing in zip(runs, scanned.missing, strict=True)
        ),
    )
    return CollectionInfo(
        name=known.name,
        documents=len(scanned.characters),
        queries=len(known.queries),
        judgments=None if judged is None else len(judged.table),
        grades={} if judged is None else dict(sorted(Counter(judged.table.values.tolist()).items())),
        judged_documents=scanned.judged - len(scanned.absent),
        spreads=dict(_spreads(known, scanned, judged)),
        findings=tuple(finding for finding in findings if finding.evidence.count),
        notes=known.notes,
    )


def _spreads(known: Collection, scanned: Scan, judged: Qrels | None) -> Iterator[tuple[str, Spread]]:
    asked = [len(query.text.split()) for query in known.queries.values()]
    relevant = [] if judged is None else list(_relevant(judged).values())
    for name, numbers in (
        ("characters of a document", scanned.characters),
        ("words of a document", scanned.words),
        ("words of a query", np.array(asked, dtype=np.int64)),
        ("relevant documents of a query", np.array(relevant, dtype=np.int64)),
    ):
        spread = Spread.of(numbers)
        if spread is not None:
            yield name, spread


def _relevant(judged: Qrels) -> dict[str, int]:
    """Return the number of relevant documents of each judged query."""
    numbers = judged.table.query_numbers()[judged.table.values >= _RELEVANT]
    return dict(zip(judged.query_ids, np.bincount(numbers, minlength=len(judged)).tolist(), strict=True))


def _finding(kind: FindingKind, message: str, examples: Sequence[str], of: int, *, count: int | None = None) -> Finding:
    evidence = Evidence(count=len(examples) if count is None else count, of=of, examples=tuple(examples[:_EXAMPLES]))
    return Finding(kind.code, kind.severity, message, kind.effect, kind.fix, evidence)


def _of_reading(known: Collection, source: Any) -> Finding:
    faults = known.faults
    # For a collection at a path, the relative path identifies the file.
    above = os.fspath(source).rstrip("/") if isinstance(source, str | os.PathLike) else ""
    first = [fault.removeprefix(f"{above}/").removeprefix(f"{above}!") for fault in faults.first]
    total = faults.count + len(known.documents) + len(known.queries)
    return _finding(UNREADABLE_TEXT, "lines or files that were skipped", first, total, count=faults.count)


def _of_queries(
    known: Collection, scanned: Scan, others: Mapping[str, Qrels], judged: Qrels | None
) -> Iterator[Finding]:
    total = len(known.queries)
    blank = [key for key, query in known.queries.items() if not query.text.strip()]
    repeats = list(_repeated(known.queries.values()))
    leaks = [f"{query} in {key}" for query, key in scanned.leaks.items()]
    for kind, message, examples in (
        (EMPTY_QUERY, "queries without any text", blank),
        (REPEATED_QUERY, "queries with the same text as another", repeats),
        (QUESTION_INSIDE_DOCUMENT, "queries whose text occurs in a document", leaks),
        (QUERY_IS_DOCUMENT, "queries with the id of a document", scanned.same_ids),
    ):
        yield _finding(kind, message, examples, total)
    mine = set(known.queries if judged is None else judged)
    for name, other in others.items():
        shared = [key for key in other if key in mine]
        message = f"queries that are also judged in the split {name}"
        yield _finding(QUERY_IN_OTHER_SPLIT, message, shared, len(mine))


def _repeated(queries: Iterable[Query]) -> Iterator[str]:
    first: dict[str, str] = {}
    for query in queries:
        text = folded(query.text)
        if text and first.setdefault(text, query.id) != query.id:
            yield f"{query.id} = {first[text]}"


def _of_judgments(known: Collection, scanned: Scan, judged: Qrels | None) -> Iterator[Finding]:
    if judged is None:
        return
    unjudged = [key for key in known.queries if key not in judged]
    absent = [key for key in judged if key not in known.queries] if known.queries else []
    empty = [key for key, count in _relevant(judged).items() if not count]
    lacking = scanned.absent if known.documents else []
    for kind, message, examples, of in (
        (UNJUDGED_QUERY, "queries without judgments", unjudged, len(known.queries)),
        (QUERY_NOT_IN_COLLECTION, "judged queries not in the collection", absent, len(judged)),
        (NO_RELEVANT_DOCUMENT, "judged queries without a relevant document", empty, len(judged)),
        (DOCUMENT_NOT_IN_COLLECTION, "judged documents not in the collection", lacking, scanned.judged),
        (EMPTY_TEXT, "relevant documents without any text", scanned.relevant_empty, scanned.judged),
    ):
        yield _finding(kind, message, examples, of)
