"""Checks of the texts of documents and queries."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from rankgauge.core.findings import (
    DOCUMENT_NOT_IN_COLLECTION,
    EMPTY_TEXT,
    QUERY_NOT_IN_COLLECTION,
    QUESTION_INSIDE_DOCUMENT,
    REPEATED_TEXT,
    Effect,
    Finding,
    Location,
)
from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable, offsets_of
from rankgauge.core.text import many
from rankgauge.corpus.collection import Collection
from rankgauge.corpus.description import Scan, scan
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.measures.measure import Measure

_SHOWN = 5
_RELEVANT = 1


@dataclass(frozen=True)
class _Checked:
    """A collection, statistics from one pass through it, judgments, and runs."""

    collection: Collection
    scan: Scan
    qrels: Qrels
    runs: Sequence[Run]
    measures: Sequence[str | Measure]

    def documents(self, ids: Iterable[str]) -> tuple[Location, ...]:
        """Return the locations of the first of these documents."""
        return tuple(Location(self.collection.name, document=i) for i in islice(ids, _SHOWN))

    def effects(
        self,
        by: str,
        *,
        qrels: Qrels | None = None,
        queries: Iterable[str] | None = None,
        without: frozenset[str] = frozenset(),
    ) -> tuple[Effect, ...]:
        """Return how other judgments, queries, or rankings change the means of each run."""
        judged = self.qrels if qrels is None else qrels
        effects: list[Effect] = []
        for run in self.runs:
            now = self._means(self.qrels, run, self.qrels)
            changed = Run(_others(run.table, without), name=run.name) if without else run
            then = self._means(judged, changed, judged if queries is None else queries)
            effects += [
                Effect(run.name, name, now[name], then[name], by)
                for name in now
                if name in then and now[name] != then[name]
            ]
        return tuple(effects)

    def _means(self, qrels: Qrels, run: Run, queries: Iterable[str]) -> Mapping[str, float]:
        """Return the means; empty if the evaluation is rejected."""
        wanted = [query for query in queries if query in qrels]
        if not wanted:
            return {}
        try:
            evaluation = evaluate(qrels, run, self.measures, queries=wanted, duplicates="first")
        except InputError:
            # Other findings report the cause, such as no common query or grades above the scale.
            return {}
        return evaluation.mean()


def collection_of(source: Any, qrels: Qrels) -> Collection:
    """Return the collection; invalid rows of its files are skipped."""
    if isinstance(source, Collection):
        return source
    if isinstance(source, Mapping) and not type(source).__module__.startswith("datasets"):
        return Collection.of(source)
    return Collection.load(source, qrels=qrels, invalid="skip")


def check_texts(
    collection: Collection, qrels: Qrels, runs: Mapping[str, Run], measures: Sequence[str | Measure]
) -> Iterator[Finding]:
    """Check the texts of a collection, and measure the effects on the runs."""
    checked = _Checked(collection, scan(collection, qrels, tuple(runs.values())), qrels, tuple(runs.values()), measures)
    if collection.documents:
        yield from (*_empty(checked), *_repeated(checked), *_leaks(checked), *_absent_documents(checked, tuple(runs)))
    if collection.queries:
        yield from _absent_queries(checked)


def _empty(checked: _Checked) -> Iterator[Finding]:
    scanned = checked.scan
    relevant = scanned.relevant_empty
    if scanned.empty:
        message = f"{many(len(scanned.empty), 'document')} without any text"
        effects: tuple[Effect, ...] = ()
        if relevant:
            message += f", {len(relevant)} of them judged relevant"
            without = Qrels(_others(checked.qrels.table, set(relevant)))
            effects = checked.effects("no judgments of empty documents", qrels=without, queries=checked.qrels)
        yield EMPTY_TEXT.finding(
            message,
            checked.collection.name,
            len(scanned.empty),
            len(scanned.characters),
            "document",
            locations=checked.documents(dict.fromkeys([*relevant, *scanned.empty[:_SHOWN]])),
            effects=effects,
        )


def _repeated(checked: _Checked) -> Iterator[Finding]:
    scanned = checked.scan
    if not scanned.repeats:
        return
    first = [document for document, _ in scanned.first_repeats]
    message = f"{many(scanned.repeats, 'document')} with the same text as another"
    shared, unjudged = _share_grades(checked.qrels, scanned.twins)
    if scanned.twins:
        first = [document for group in scanned.twins for document in group]
        message += f"; {len(first)} of them repeat a relevant document, {len(unjudged)} without a judgment"
    yield REPEATED_TEXT.finding(
        message,
        checked.collection.name,
        scanned.repeats,
        len(scanned.characters),
        "document",
        locations=checked.documents(first),
        effects=checked.effects("duplicates share the grade", qrels=shared),
    )


def _leaks(checked: _Checked) -> Iterator[Finding]:
    leaks = {q: d for q, d in checked.scan.leaks.items() if q in checked.qrels}
    if not leaks:
        return
    rest = [query for query in checked.qrels if query not in leaks]
    in_relevant = sum(checked.qrels[query].get(key, 0) >= _RELEVANT for query, key in leaks.items())
    name, queries = checked.collection.name, many(len(leaks), "query")
    yield QUESTION_INSIDE_DOCUMENT.finding(
        f"{queries} whose words occur consecutively in a document; in a relevant one: {in_relevant}",
        name,
        len(leaks),
        len(checked.qrels),
        "query",
        locations=tuple(Location(name, query=q, document=d) for q, d in leaks.items())[:_SHOWN],
        effects=checked.effects(f"without {queries}", queries=rest),
    )


def _absent_documents(checked: _Checked, sources: Sequence[str]) -> Iterator[Finding]:
    scanned, qrels = checked.scan, checked.qrels
    absent = scanned.absent
    if absent:
        without = Qrels(_others(qrels.table, set(absent)))
        yield DOCUMENT_NOT_IN_COLLECTION.finding(
            f"{many(len(absent), 'judged document')} without a text in the collection",
            checked.collection.name,
            len(absent),
            scanned.judged,
            "document",
            locations=checked.documents(absent),
            effects=checked.effects("no judgments of these documents", qrels=without, queries=qrels),
        )
    for source, run, missing in zip(sources, checked.runs, scanned.missing, strict=True):
        if missing:
            yield DOCUMENT_NOT_IN_COLLECTION.finding(
                f"{many(len(missing), 'retrieved document')} without a text in the collection",
                source,
                len(missing),
                len(set(run.table.docs.shown())),
                "document",
                locations=tuple(Location(source, document=doc) for doc in missing[:_SHOWN]),
                effects=replace(checked, runs=(run,)).effects(
                    "rankings without these documents", without=frozenset(missing)
                ),
            )


def _absent_queries(checked: _Checked) -> Iterator[Finding]:
    texts = checked.collection.queries
    absent = [query for query in checked.qrels if query not in texts]
    if absent:
        rest = [query for query in checked.qrels if query in texts]
        name, queries = checked.collection.name, many(len(absent), "query")
        yield QUERY_NOT_IN_COLLECTION.finding(
            f"{many(len(absent), 'judged query')} without a text in the collection",
            name,
            len(absent),
            len(checked.qrels),
            "query",
            locations=tuple(Location(name, query=query) for query in absent[:_SHOWN]),
            effects=checked.effects(f"without {queries}", queries=rest),
        )


def _others(table: PairTable, documents: Container[str]) -> PairTable:
    """Return the rows of other documents; queries remain even without rows."""
    return table.keep(np.flatnonzero([document not in documents for document in table.docs.shown()]))


def _share_grades(qrels: Qrels, twins: Iterable[Sequence[str]]) -> tuple[Qrels, list[tuple[int, str, float]]]:
    """Return judgments with equal grades for equal texts, and the added ones, with the number of their query."""
    group_of = {document: group for group in twins for document in group}
    new: dict[tuple[int, str], float] = {}
    for number, grades in enumerate(qrels.values()):
        for document, grade in grades.items():
            if grade < _RELEVANT:
                continue
            for twin in group_of.get(document, ()):
                if twin not in grades:
                    new[number, twin] = max(grade, new.get((number, twin), grade))
    rows = [(number, document, grade) for (number, document), grade in new.items()]
    if not rows:
        return qrels, rows
    table = qrels.table
    numbers = np.append(table.query_numbers(), [number for number, _, _ in rows])
    order = np.argsort(numbers, kind="stable")
    docs = Ids.joined([table.docs, Ids.of([document for _, document, _ in rows])])
    merged = PairTable(
        table.queries,
        offsets_of(np.bincount(numbers, minlength=len(qrels))),
        docs.take(order),
        np.append(table.values, [grade for _, _, grade in rows])[order],
    )
    return Qrels(merged), rows
