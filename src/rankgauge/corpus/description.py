"""``describe_collection()``: what is in a collection, and what in it bends numbers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rankgauge.core.text import many
from rankgauge.corpus.collection import Collection, Query
from rankgauge.corpus.loading.folders import other_splits, place_of
from rankgauge.corpus.scan import Scan, folded, scan
from rankgauge.data.model import Qrels, Run
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

__all__ = ["CollectionInfo", "Remark", "Spread", "describe_collection"]

_EXAMPLES = 3
_RELEVANT = 1


@dataclass(frozen=True)
class Spread:
    """How numbers spread: the least, the median, the mean, the 95th percentile, the most."""

    least: float
    median: float
    mean: float
    p95: float
    most: float

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Spread | None:
        """That of these numbers; None of none."""
        values = np.array(list(numbers) if not isinstance(numbers, np.ndarray) else numbers)
        if not len(values):
            return None
        median, p95 = np.quantile(values, [0.5, 0.95]).tolist()
        return cls(int(values.min()), median, float(values.mean()), p95, int(values.max()))


@dataclass(frozen=True)
class Remark:
    """Something to know before numbers are made with a collection.

    Attributes:
        name: What it is about.
        count: How often it was seen.
        of: Out of how many.
        examples: The first ones.
        effect: What it does to numbers.
    """

    name: str
    count: int
    of: int
    examples: tuple[str, ...]
    effect: str


@dataclass(frozen=True)
class CollectionInfo(Result):
    """What is in a collection.

    Attributes:
        name: What it is called.
        documents: How many documents there are.
        queries: How many queries.
        judgments: How many judgments; None without any.
        grades: Each grade, and how many judgments have it.
        judged_documents: How many documents of the collection are judged for any query.
        spreads: By name, how lengths and the numbers of relevant documents spread.
        remarks: What bends numbers, as far as it was seen.
        notes: What the reader had to say.
        fingerprint: The fingerprint of documents and queries, if it was asked for.
    """

    name: str
    documents: int
    queries: int
    judgments: int | None
    grades: Mapping[float, int]
    judged_documents: int
    spreads: Mapping[str, Spread]
    remarks: tuple[Remark, ...]
    notes: tuple[str, ...] = field(default=())
    fingerprint: str = ""

    @property
    def judged_share(self) -> float:
        """The share of documents that are judged for any query."""
        return self.judged_documents / self.documents if self.documents else 0.0

    def table(self) -> Table:
        """One line a number, and one for whatever makes numbers wrong."""
        counts = (("documents", self.documents), ("queries", self.queries))
        found = ((remark.name, remark.count) for remark in self.remarks)
        return Table(("what", "number"), (*counts, *found), title=self.name, notes=self.notes)

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        judged = "" if self.judgments is None else f", {many(self.judgments, 'judgment')}"
        remarks = "; ".join(
            f"{remark.count} of {remark.of} {remark.name}" for remark in self.remarks
        )
        return (
            f"{self.name}: {many(self.documents, 'document')}, "
            f"{many(self.queries, 'query')}{judged}. {remarks or 'Nothing wrong found.'}"
        )

    def _data(self) -> dict[str, Any]:
        grades = {f"{grade:g}": count for grade, count in self.grades.items()}
        return {**asdict(self), "grades": grades, "judged_share": self.judged_share}


def describe_collection(
    collection: Any,
    qrels: Any = None,
    *,
    queries: Any = None,
    runs: Sequence[Run] = (),
    split: str | None = None,
) -> CollectionInfo:
    """What is in a collection, and what in it bends numbers.

    Documents are gone through once, one at a time (twice, if some are repeated). A text stands
    inside another if its words do, in a row, whatever their case and the signs between them; only
    queries of at least four words are looked for.

    Args:
        collection: A collection, or anything that :meth:`Collection.load` takes. Of the latter,
            lines and files that do not fit are passed over and counted.
        qrels: Judgments that take the place of those that came with it.
        queries: Queries that take the place of those that came with it.
        runs: Runs, to see whether what they retrieved is there.
        split: Which judgments, where there are several.

    Raises:
        InputError: If there is no such collection, or its judgments cannot be read.

    Example:
        >>> texts = Collection.of({"d1": "Fees", "d2": "fees "}, {"q1": "fees"})
        >>> found = describe_collection(texts, {"q1": {"d1": 1, "d3": 1}})
        >>> [(remark.name, remark.count, remark.examples) for remark in found.remarks]
        [('documents that repeat another', 1, ('d2 = d1',)),
         ('judged documents that are not there', 1, ('d3',))]
    """
    known: Collection = (
        collection
        if isinstance(collection, Collection) and queries is None
        else _loaded(collection, queries, split)
    )
    judged = known.qrels if qrels is None else Qrels.of(qrels)
    scanned = scan(known, judged, runs)
    others = _other_splits(collection, split)
    remarks = (
        *_of_reading(known, collection),
        *_of_documents(scanned),
        *_of_queries(known, scanned, others, judged),
        *_of_judgments(known, scanned, judged),
        *(_of_run(run, missing) for run, missing in zip(runs, scanned.missing, strict=True)),
    )
    return CollectionInfo(
        name=known.name,
        documents=len(scanned.characters),
        queries=len(known.queries),
        judgments=None if judged is None else len(judged.table),
        grades={}
        if judged is None
        else dict(sorted(Counter(judged.table.values.tolist()).items())),
        judged_documents=len(scanned.judged),
        spreads=dict(_spreads(known, scanned, judged)),
        remarks=tuple(remark for remark in remarks if remark.count),
        notes=known.notes,
    )


def _loaded(given: Any, queries: Any, split: str | None) -> Collection:
    if isinstance(given, Collection):
        return Collection.load(
            documents=given.documents, queries=queries, qrels=given.qrels, broken="skip"
        )
    return Collection.load(given, queries=queries, split=split, broken="skip")


def _other_splits(given: Any, split: str | None) -> dict[str, Qrels]:
    if not isinstance(given, str | os.PathLike) or not Path(given).exists():
        return {}
    place = place_of(Path(given))
    return {} if place is None else other_splits(place, split)


def _spreads(
    known: Collection, scanned: Scan, judged: Qrels | None
) -> Iterator[tuple[str, Spread]]:
    asked = [len(query.text.split()) for query in known.queries.values()]
    relevant = [] if judged is None else list(_relevant(judged).values())
    for name, numbers in (
        ("characters of a document", scanned.characters),
        ("words of a document", scanned.words),
        ("words of a query", np.array(asked, dtype=np.int64)),
        ("relevant documents of a query", np.array(relevant, dtype=np.int64)),
    ):
        found = Spread.of(numbers)
        if found is not None:
            yield name, found


def _relevant(judged: Qrels) -> dict[str, int]:
    """How many relevant documents each judged query has."""
    numbers = judged.table.query_numbers()[judged.table.values >= _RELEVANT]
    return dict(
        zip(judged.query_ids, np.bincount(numbers, minlength=len(judged)).tolist(), strict=True)
    )


def _remark(name: str, found: Sequence[str], of: int, effect: str) -> Remark:
    return Remark(name, len(found), of, tuple(found[:_EXAMPLES]), effect)


def _of_reading(known: Collection, given: Any) -> Iterator[Remark]:
    faults = known.faults
    # Of a collection at a path, the part below it tells which file is meant.
    above = os.fspath(given).rstrip("/") if isinstance(given, str | os.PathLike) else ""
    first = [one.removeprefix(f"{above}/").removeprefix(f"{above}!") for one in faults.first]
    yield Remark(
        "lines or files that were passed over", faults.count,
        faults.count + len(known.documents) + len(known.queries), tuple(first[:_EXAMPLES]),
        "what they held can be neither retrieved nor asked",
    )  # fmt: skip


def _of_documents(scanned: Scan) -> Iterator[Remark]:
    total = len(scanned.characters)
    yield Remark(
        "documents without any text", scanned.empty, total, tuple(scanned.first_empty),
        "nothing can find them; if they are relevant, recall cannot reach 1",
    )  # fmt: skip
    yield Remark(
        "documents that repeat another", scanned.repeats, total,
        tuple(f"{key} = {first}" for key, first in scanned.first_repeats),
        "a copy of a relevant document counts as not relevant unless it is judged, too",
    )  # fmt: skip


def _of_queries(
    known: Collection, scanned: Scan, others: Mapping[str, Qrels], judged: Qrels | None
) -> Iterator[Remark]:
    total = len(known.queries)
    blank = [key for key, query in known.queries.items() if not query.text.strip()]
    yield _remark("queries without any text", blank, total, "nothing can be found for them")
    yield _remark(
        "queries that repeat another", list(_repeated(known.queries.values())), total,
        "one question counts several times in a mean, and intervals are too narrow",
    )  # fmt: skip
    yield Remark(
        "queries whose words stand in a document", len(scanned.leaks), total,
        tuple(f"{query} in {key}" for query, key in scanned.leaks.items())[:_EXAMPLES],
        "retrievers that match words find that document for free: a leak, unless users ask so",
    )  # fmt: skip
    yield _remark(
        "queries with the id of a document", scanned.same_ids, total,
        "harmless if ids are only numbers; a query that is itself a document finds itself first",
    )  # fmt: skip
    mine = set(known.queries if judged is None else judged)
    for name, other in others.items():
        yield _remark(
            f"queries that are judged in the split {name}, too",
            [key for key in other if key in mine], len(mine),
            "what was tuned on that split has seen them",
        )  # fmt: skip


def _repeated(queries: Iterable[Query]) -> Iterator[str]:
    first: dict[str, str] = {}
    for query in queries:
        text = " ".join(folded(query.text))
        if text and first.setdefault(text, query.id) != query.id:
            yield f"{query.id} = {first[text]}"


def _of_judgments(known: Collection, scanned: Scan, judged: Qrels | None) -> Iterator[Remark]:
    if judged is None:
        return
    relevant = _relevant(judged)
    yield _remark(
        "queries without judgments", [key for key in known.queries if key not in judged],
        len(known.queries), "they are retrieved for and then left out of means",
    )  # fmt: skip
    yield _remark(
        "judged queries that are not there",
        [key for key in judged if key not in known.queries] if known.queries else [], len(judged),
        "no retriever is asked them, and they count 0 in means",
    )  # fmt: skip
    yield _remark(
        "judged queries without a relevant document",
        [key for key, count in relevant.items() if not count], len(judged),
        "they count 0 in means, whatever is retrieved",
    )  # fmt: skip
    if scanned.judged_ids:
        lacking = [key for key in scanned.judged_ids if key not in scanned.judged]
        yield _remark(
            "judged documents that are not there", lacking if known.documents else [],
            len(scanned.judged_ids), "if they are relevant, recall cannot reach 1",
        )  # fmt: skip
    yield _remark(
        "relevant documents without any text", scanned.relevant_empty, len(scanned.judged_ids),
        "no retriever can find them by their text",
    )  # fmt: skip


def _of_run(run: Run, missing: list[str]) -> Remark:
    return _remark(
        f"documents of the run {run.name} that are not there", missing, len(run.table),
        "it was made with another collection, or other ids",
    )  # fmt: skip
