"""Values gathered from a run, block of queries by block, and what there is to say about them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgauge.errors import InputError, MismatchError
from rankgauge.ids import Ids, IntArray, id_bytes, near_match, show_id
from rankgauge.join import Joined, join
from rankgauge.judged import Values
from rankgauge.kernels.measure import Measure, parse
from rankgauge.model import Policies, Qrels, Run
from rankgauge.notes import (
    SHOWN,
    first_ranks_note,
    many,
    queries_note,
    some,
    ties_note,
    undefined_notes,
)
from rankgauge.table import distinct

__all__ = ["Gathered", "Gathering"]

_JUDGED_AT = 10
_SAMPLE = 10_000


@dataclass(frozen=True)
class Gathered:
    """What came of a run.

    Attributes:
        run_name: What the run is called.
        settings: What made it.
        query_ids: (Q,) the queries evaluated, as text.
        ids: The same, as they are kept.
        values: (Q, M) the value of each measure, NaN where undefined.
        counts: What happened to how many queries and documents.
        coverage: The mean share of judged documents at each cut-off, and at 10.
        notes: The same in sentences.
    """

    run_name: str
    settings: Mapping[str, Any]
    query_ids: tuple[str, ...]
    ids: Ids
    values: Values
    counts: Mapping[str, int]
    coverage: Mapping[int, float]
    notes: tuple[str, ...]


class Gathering:
    """Values gathered block by block; the only mutable thing here, and it never leaves."""

    def __init__(
        self, qrels: Qrels, graded: Qrels, measures: tuple[Measure, ...], policies: Policies
    ) -> None:
        if not len(qrels):
            raise InputError(
                "the judgments hold no query", where="judgments", fix="give at least one"
            )
        self.qrels, self.graded, self.policies = qrels, graded, policies
        self.measures = measures
        cutoffs = {value for m in measures for word, value in m.params if word == "k"}
        depths = sorted(map(int, cutoffs))  # type: ignore[arg-type] # k is an int
        self.deepest = depths[-1] if depths else _JUDGED_AT
        self.depths = sorted({*depths, _JUDGED_AT})
        self.coverage = [parse(f"Judged@{depth}") for depth in self.depths]
        # The mean of RR hides where the first relevant documents stand; the notes say it.
        firsts = (parse("FirstRel")(rel=m.rel) for m in measures if m.name == "RR")
        self.first_ranks = {first: np.full(len(qrels), np.nan) for first in firsts}
        self.judged_apart = any(_reads_judged(measure) for measure in measures)
        self.values = np.full((len(qrels), len(measures)), np.nan)
        self.judged = np.full((len(qrels), len(self.depths)), np.nan)
        self.wanted = np.ones(len(qrels), dtype=bool)
        self.seen = np.zeros(len(qrels), dtype=bool)
        self.name, self.settings = "", dict[str, Any]()
        self.tied = self.removed = self.documents = self.matched = 0
        self.unknown: set[bytes] = set()
        self.run_ids: list[str] = []
        self.sample = Ids.of([])
        self.notes = [*qrels.table.notes]

    def select(self, queries: Iterable[Any]) -> None:
        """Keep only the given queries."""
        self.wanted[:] = False
        for query in queries:
            number = self.qrels.query_index.get(id_bytes(query, "query id"))
            if number is None:
                raise MismatchError(
                    f"query '{show_id(id_bytes(query, 'query id'))}' is not judged",
                    where="queries",
                    fix=f"judged are, among others: {some(self.qrels.query_ids)}",
                )
            self.wanted[number] = True
        if not self.wanted.any():
            raise InputError("the list of queries is empty", where="queries", fix="name some")

    def add(self, run: Run) -> None:
        """Evaluate one block of the run."""
        table = run.without_repeats(self.policies.duplicates)
        joined = join(self.qrels, run, ties=self.policies.ties, table=table)
        again = joined.numbers[self.seen[joined.numbers]]
        if len(again):
            raise InputError(
                f"query {self.qrels.query_ids[int(again[0])]!r} stands in two blocks of the run",
                where="run",
                fix="yield all documents of a query in one block",
            )
        self.seen[joined.numbers] = True
        graded = joined
        if self.graded is not self.qrels:
            graded = join(self.graded, run, ties=self.policies.ties, table=table)
        self._calculate(joined, graded, joined.numbers[self.wanted[joined.numbers]])
        tied = joined.tied(judged_apart=self.judged_apart)
        if graded is not joined:
            tied = distinct(np.append(tied, graded.tied(judged_apart=self.judged_apart)))
        self.tied += int(self.wanted[tied].sum())
        self.unknown.update(run.table.queries.take(joined.unknown_queries).tolist())
        self.removed += len(run.table) - len(table)
        self.documents += len(table)
        self.matched += len(joined.rank)
        self.name = self.name or run.name
        self.settings = self.settings or dict(run.settings)
        self.notes += [note for note in run.table.notes if note not in self.notes]
        if len(self.run_ids) < SHOWN:
            self.run_ids += run.query_ids[:SHOWN]
        if len(table) and not len(self.sample):
            self.sample = table.docs.take(np.arange(min(_SAMPLE, len(table)))).compact()
        self.last = (joined, graded)

    def _calculate(self, joined: Joined, graded: Joined, rows: IntArray) -> None:
        for source in (joined, graded):
            columns = [
                (number, measure)
                for number, measure in enumerate(self.measures)
                if graded is joined or (measure.declaration.reads == "grades") == (source is graded)
            ]
            for places, block in source.blocks(rows):
                at = rows[places]
                for number, measure in columns:
                    self.values[at, number] = measure.values(block)
                if source is joined:
                    for number, covered in enumerate(self.coverage):
                        self.judged[at, number] = covered.values(block)
                    for first, ranks in self.first_ranks.items():
                        ranks[at] = first.values(block)
            if graded is joined:
                break

    def finished(self) -> Gathered:
        """The values of all blocks, and what there is to say about them."""
        if not (self.seen & self.wanted).any():
            raise self._mismatch()
        if self.documents and not self.matched:
            self._refuse_near_misses()
        if self.policies.queries == "intersection":
            self.wanted &= self.seen
        missing = np.flatnonzero(self.wanted & ~self.seen)
        self._calculate(*self.last, missing)
        rows = np.flatnonzero(self.wanted)
        values = self.values[rows]
        counts = {
            "queries": len(rows),
            "missing_from_run": len(missing),
            "without_judgments": len(self.unknown),
            "tied": self.tied,
            "documents": self.documents,
            "duplicates_removed": self.removed,
        }
        return Gathered(
            run_name=self.name,
            settings=self.settings,
            # Kept with the judgments, so that the next run finds them made.
            query_ids=tuple(map(self.qrels.query_ids.__getitem__, rows.tolist())),
            ids=self.qrels.table.queries.take(rows),
            values=values,
            counts=counts,
            coverage=self._coverage(rows),
            notes=tuple(self._said(counts, values, rows)),
        )

    def _mismatch(self) -> MismatchError:
        if not self.run_ids:
            return MismatchError(
                "the run holds no query", where="run", fix="give at least one ranking"
            )
        mine = [
            query for query, wanted in zip(self.qrels.query_ids, self.wanted, strict=True) if wanted
        ]
        known, theirs = ("judged", "the judgments have")
        if len(mine) < len(self.seen):
            known, theirs = ("asked for", "asked for were")
        return MismatchError(
            f"no query of the run is {known}: the run has {some(self.run_ids)}, "
            f"{theirs} {some(mine)}",
            fix="use the same query ids in both (check the columns, prefixes, leading zeros)",
        )

    def _refuse_near_misses(self) -> None:
        """No document is judged: a fair zero, unless ids that are meant to be equal are not."""
        near = near_match(self.sample.tolist(), self._judged_sample().tolist())
        if near is not None:
            ours, theirs = map(show_id, near)
            raise MismatchError(
                f"no retrieved document is judged: the run has '{ours}', the judgments have "
                f"'{theirs}', which differ only in leading zeros, blanks or case",
                fix="use the same document ids in both",
            )

    def _said(self, counts: Mapping[str, int], values: Values, rows: IntArray) -> Iterator[str]:
        yield queries_note(counts, self.policies)
        yield ties_note(counts, self.policies)
        if not self.matched and self.documents:
            yield (
                "WARNING: no retrieved document is among the judged ones of its query: the run has "
                f"{some(self.sample.shown())}, the judgments have "
                f"{some(self._judged_sample().shown())}; "
                "check that both use the same document ids"
            )
        covered = self._coverage(rows)
        if covered:
            known = f"Judged@{self.deepest} = {covered[self.deepest]:.3f}"
            yield f"documents without a judgment count as not relevant; {known}"
        for first, ranks in self.first_ranks.items():
            yield first_ranks_note(first, ranks[rows])
        yield from undefined_notes(self.measures, values, self.policies)
        pooled = int((self.qrels.table.values < 0).sum())
        if pooled:
            yield f"{many(pooled, 'judgment')} with a negative grade: pooled but not judged"
        if self.removed:
            yield (
                f"{many(self.removed, 'repeated document')} removed from the rankings "
                f"(duplicates={self.policies.duplicates})"
            )
        yield from dict.fromkeys(self.notes)

    def _coverage(self, rows: IntArray) -> dict[int, float]:
        """The mean share of judged documents at each cut-off; empty if nothing was retrieved."""
        known = self.judged[rows]
        known = known[~np.isnan(known[:, 0])]
        if not len(known):
            return {}
        columns = zip(self.depths, known.T.tolist(), strict=True)
        return {depth: math.fsum(column) / len(column) for depth, column in columns}

    def _judged_sample(self) -> Ids:
        docs = self.qrels.table.docs
        return docs.take(np.arange(min(_SAMPLE, len(docs))))


def _reads_judged(measure: Measure) -> bool:
    """Whether it tells documents judged not relevant from those not judged."""
    gain = dict(measure.params).get("gain")
    gains_for_nothing = isinstance(gain, tuple) and dict(gain).get(0.0, 0.0) > 0
    return measure.declaration.reads == "judged" or gains_for_nothing
