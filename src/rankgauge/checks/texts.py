"""What is wrong with the texts behind the ids, and what that does to the numbers."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgauge.checks.problems import Problem
from rankgauge.core.findings import FINDING_KINDS, Effect, Location
from rankgauge.core.ids import Ids, id_bytes
from rankgauge.core.pair_table import PairTable, offsets_of
from rankgauge.core.text import many
from rankgauge.corpus.collection import Collection
from rankgauge.corpus.scan import Scan, scan
from rankgauge.data.model import Qrels, Run
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure

__all__ = ["collection_of", "text_problems"]

_LOCATIONS = 5
_RELEVANT = 1


@dataclass(frozen=True)
class _Texts:
    """What is looked at: the collection with what was seen in it, judgments and runs."""

    collection: Collection
    scanned: Scan
    qrels: Qrels
    runs: Sequence[Run]
    measures: Sequence[str | Measure]

    def effects(
        self, changed: Callable[[Run], tuple[Qrels, Run, Iterable[str]]], by: str
    ) -> tuple[Effect, ...]:
        """What becomes of the means of each run if judgments, run or queries are others."""
        found = []
        for run in self.runs:
            qrels, other, queries = changed(run)
            now = self._evaluated(self.qrels, run, self.qrels)
            then = self._evaluated(qrels, other, queries)
            if now is None or then is None:
                continue
            means = then.mean()
            found += [
                Effect(run.name, name, mean, means[name], by)
                for name, mean in now.mean().items()
                if mean != means[name]
            ]
        return tuple(found)

    def _evaluated(self, qrels: Qrels, run: Run, queries: Iterable[str]) -> Evaluation | None:
        """None where it is refused."""
        wanted = [query for query in queries if query in qrels]
        if not wanted:
            return None
        try:
            return evaluate(qrels, run, self.measures, queries=wanted, duplicates="first")
        except InputError:
            # No query in common, a grade above the top of ERR: problems of their own.
            return None

    def locations(self, documents: Iterable[str]) -> tuple[Location, ...]:
        """The first of these documents, in the collection."""
        shown = [document for _, document in zip(range(_LOCATIONS), documents, strict=False)]
        return tuple(Location(self.collection.name, document=document) for document in shown)


def collection_of(given: Any, qrels: Qrels) -> Collection:
    """The collection that is meant; what does not fit in its files is passed over.

    Raises:
        InputError: If there is none.
    """
    if isinstance(given, Collection):
        return given
    if isinstance(given, Mapping) and not type(given).__module__.startswith("datasets"):
        return Collection.of(given)
    return Collection.load(given, qrels=qrels, broken="skip")


def text_problems(
    collection: Collection, qrels: Qrels, runs: Mapping[str, Run], measures: Sequence[str | Measure]
) -> Iterator[Problem]:
    """What is wrong with the texts of a collection, as far as it touches judgments and runs.

    Args:
        collection: Documents and queries; of what is missing nothing is said.
        qrels: The judgments.
        runs: The runs by their source: a path, or what they are called.
        measures: By which effects are measured.
    """
    scanned = scan(collection, qrels, tuple(runs.values()))
    seen = _Texts(collection, scanned, qrels, tuple(runs.values()), measures)
    if collection.documents:
        yield from _empty(seen)
        yield from _repeated(seen)
        yield from _leaks(seen)
        yield from _absent_documents(seen, tuple(runs))
    if collection.queries:
        yield from _absent_queries(seen)


def _empty(seen: _Texts) -> Iterator[Problem]:
    scanned = seen.scanned
    if not scanned.empty:
        return
    relevant = scanned.relevant_empty
    what = f"{many(scanned.empty, 'document')} without any text"
    if relevant:
        what += f", {len(relevant)} of them judged relevant"
    without = _without(seen.qrels, set(relevant))
    yield Problem(
        FINDING_KINDS["T101"], seen.collection.name, what,
        count=scanned.empty, of=len(scanned.characters), unit="document",
        locations=seen.locations(
            [*relevant, *(d for d in scanned.first_empty if d not in relevant)]
        ),
        effects=seen.effects(
            lambda run: (without, run, seen.qrels), "no judgments of empty documents"
        ) if relevant else (),
    )  # fmt: skip


def _repeated(seen: _Texts) -> Iterator[Problem]:
    scanned = seen.scanned
    if not scanned.repeats:
        return
    first = [document for document, _ in scanned.first_repeats]
    what = f"{many(scanned.repeats, 'document')} with the text of another"
    shared, unjudged = _sharing(seen.qrels, scanned.twins)
    if scanned.twins:
        twins = sum(map(len, scanned.twins))
        what += (
            f"; {twins} of them say what a relevant document says, {len(unjudged)} without a "
            "judgment"
        )
        first = [document for group in scanned.twins for document in group]
    yield Problem(
        FINDING_KINDS["T102"], seen.collection.name, what,
        count=scanned.repeats, of=len(scanned.characters), unit="document",
        locations=seen.locations(first),
        effects=seen.effects(lambda run: (shared, run, shared), "twins share the grade"),
    )  # fmt: skip


def _leaks(seen: _Texts) -> Iterator[Problem]:
    leaks = {q: d for q, d in seen.scanned.leaks.items() if q in seen.qrels}
    if not leaks:
        return
    rest = [query for query in seen.qrels if query not in leaks]
    found = sum(seen.qrels[query].get(key, 0) >= _RELEVANT for query, key in leaks.items())
    name = seen.collection.name
    yield Problem(
        FINDING_KINDS["T103"], name,
        f"{many(len(leaks), 'query')} whose words stand in a document, in a row; in one that is "
        f"relevant to it: {found}",
        count=len(leaks), of=len(seen.qrels), unit="query",
        locations=tuple(Location(name, query=q, document=d) for q, d in leaks.items())[:_LOCATIONS],
        effects=seen.effects(
            lambda run: (seen.qrels, run, rest), f"without {many(len(leaks), 'query')}"
        ),
    )  # fmt: skip


def _absent_documents(seen: _Texts, sources: Sequence[str]) -> Iterator[Problem]:
    there = seen.scanned.judged
    lacking = [document for document in seen.scanned.judged_ids if document not in there]
    if lacking:
        without = _without(seen.qrels, set(lacking))
        yield Problem(
            FINDING_KINDS["T104"], seen.collection.name,
            f"{many(len(lacking), 'judged document')} without a text in the collection",
            count=len(lacking), of=len(seen.scanned.judged_ids), unit="document",
            locations=seen.locations(lacking),
            effects=seen.effects(
                lambda run: (without, run, seen.qrels), "no judgments of these documents"
            ),
        )  # fmt: skip
    for source, run, missing in zip(sources, seen.runs, seen.scanned.missing, strict=True):
        if missing:
            gone = set(missing)
            alone = _Texts(seen.collection, seen.scanned, seen.qrels, (run,), seen.measures)
            yield Problem(
                FINDING_KINDS["T104"], source,
                f"{many(len(missing), 'retrieved document')} without a text in the collection",
                count=len(missing), of=len(set(run.table.docs.shown())), unit="document",
                locations=tuple(Location(source, document=doc) for doc in missing[:_LOCATIONS]),
                effects=alone.effects(
                    lambda run: (seen.qrels, _thinned(run, gone), seen.qrels),  # noqa: B023 - asked at once
                    "rankings without these documents",
                ),
            )  # fmt: skip


def _absent_queries(seen: _Texts) -> Iterator[Problem]:
    lacking = [query for query in seen.qrels if query not in seen.collection.queries]
    if not lacking:
        return
    rest = [query for query in seen.qrels if query in seen.collection.queries]
    name = seen.collection.name
    yield Problem(
        FINDING_KINDS["T105"], name,
        f"{many(len(lacking), 'judged query')} without a text in the collection",
        count=len(lacking), of=len(seen.qrels), unit="query",
        locations=tuple(Location(name, query=query) for query in lacking[:_LOCATIONS]),
        effects=seen.effects(
            lambda run: (seen.qrels, run, rest), f"without {many(len(lacking), 'query')}"
        ),
    )  # fmt: skip


def _others(table: PairTable, documents: Container[str]) -> PairTable:
    """The rows of other documents; queries stay."""
    keep = [document not in documents for document in table.docs.shown()]
    return table.keep(np.flatnonzero(keep))


def _without(qrels: Qrels, documents: Container[str]) -> Qrels:
    return Qrels(_others(qrels.table, documents))


def _thinned(run: Run, documents: Container[str]) -> Run:
    return Run(_others(run.table, documents), name=run.name)


def _sharing(
    qrels: Qrels, twins: Iterable[Sequence[str]]
) -> tuple[Qrels, list[tuple[str, str, float]]]:
    """The judgments in which what says the same has the same grade, and those that are new."""
    group_of = {document: group for group in twins for document in group}
    new: dict[tuple[str, str], float] = {}
    for query in qrels:
        grades = qrels[query]
        for document, grade in grades.items():
            if grade < _RELEVANT:
                continue
            for twin in group_of.get(document, ()):
                if twin not in grades:
                    new[query, twin] = max(grade, new.get((query, twin), grade))
    rows = [(query, document, grade) for (query, document), grade in new.items()]
    if not rows:
        return qrels, rows
    table = qrels.table
    added = [qrels.query_index[id_bytes(query)] for query, _, _ in rows]
    numbers = np.append(table.query_numbers(), added)
    order = np.argsort(numbers, kind="stable")
    docs = Ids.joined([table.docs, Ids.of([document for _, document, _ in rows])])
    merged = PairTable(
        table.queries,
        offsets_of(np.bincount(numbers, minlength=len(qrels))),
        docs.take(order),
        np.append(table.values, [grade for _, _, grade in rows])[order],
    )
    return Qrels(merged), rows
