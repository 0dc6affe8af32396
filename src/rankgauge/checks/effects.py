"""What a problem does to the numbers: means of measures over judged documents and their ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from rankgauge.checks.survey import Survey
from rankgauge.core.findings import Effect
from rankgauge.core.ids import IntArray
from rankgauge.data.join import Joined, join
from rankgauge.data.judged_run import JudgedRun, Values
from rankgauge.data.model import Qrels, Run
from rankgauge.errors import InputError
from rankgauge.measures.measure import Measure, parse
from rankgauge.sensitivity.unjudged import filled

__all__ = [
    "Look", "all_found", "best_of", "cutoff_of", "least_rel", "means", "precision",
    "turned_round", "values_of",
]  # fmt: skip

# Another look at a judged run.
Seen: TypeAlias = Callable[[JudgedRun], JudgedRun]

_DEPTH = 10


@dataclass(frozen=True, eq=False)
class Look:
    """A run beside its judgments, and the measures by which effects are measured.

    Attributes:
        survey: What a pass through the run has found.
        qrels: The judgments.
        measures: The measures.
        now: Their means as the data are.
    """

    survey: Survey
    qrels: Qrels
    measures: tuple[Measure, ...]
    now: tuple[float, ...]

    @classmethod
    def at(cls, survey: Survey, qrels: Qrels, measures: tuple[Measure, ...]) -> Look:
        """Measure a run as it is."""
        return cls(survey, qrels, measures, tuple(means(survey.joined, measures)))

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.survey.given.name

    @property
    def source(self) -> str:
        """Where it stands."""
        return self.survey.given.source

    def effects(self, then: Sequence[float], by: str) -> tuple[Effect, ...]:
        """From the means as they are to these."""
        return tuple(
            Effect(self.name, str(measure), now, mended, by)
            for measure, now, mended in zip(self.measures, self.now, then, strict=True)
        )

    def refused(self, by: str) -> tuple[Effect, ...]:
        """From nothing, since an evaluation refuses the input, to the means of what was read."""
        return tuple(
            Effect(self.name, str(measure), math.nan, mean, by)
            for measure, mean in zip(self.measures, self.now, strict=True)
        )

    def if_joined(self, joined: Joined, by: str) -> tuple[Effect, ...]:
        """From the means as they are to those of other ranks."""
        return self.effects(means(joined, self.measures), by)


def values_of(
    joined: Joined,
    measure: Measure,
    queries: IntArray | None = None,
    *,
    seen: Seen | None = None,
) -> Values | None:
    """The value of a measure for each of these queries of the judgments, for all if left out.

    None where the measure refuses the judgments. `seen` says as what a judged run is seen.
    """
    wanted = np.arange(len(joined.qrels)) if queries is None else queries
    found = np.full(len(wanted), np.nan)
    for places, block in joined.blocks(wanted):
        try:
            found[places] = measure.values(block if seen is None else seen(block))
        except InputError:
            return None
    return found


def means(
    joined: Joined,
    measures: Iterable[Measure],
    queries: IntArray | None = None,
    *,
    seen: Seen | None = None,
) -> list[float]:
    """The mean of each measure over these queries; NaN where it refuses the judgments."""
    found = []
    for measure in measures:
        values = values_of(joined, measure, queries, seen=seen)
        found.append(math.nan if values is None else measure.mean(values))
    return found


def least_rel(measures: Iterable[Measure]) -> float:
    """The lowest grade that makes a document relevant to one of the measures."""
    return min((m.level for m in measures if m.level is not None), default=1.0)


def cutoff_of(measures: Iterable[Measure]) -> int:
    """The deepest cut-off of the measures; 10 without one."""
    found = [value for m in measures for word, value in m.params if word == "k"]
    return max((int(value) for value in found if isinstance(value, int)), default=_DEPTH)


def turned_round(joined: Joined) -> Joined:
    """The ranks as they are if the lowest scores are the best."""
    sizes = np.diff(joined.offsets)
    last = np.repeat(joined.retrieved, sizes) + 1
    first = last - joined.tie_last
    rank = first + (joined.rank - joined.tie_first)
    order = np.lexsort((rank, np.repeat(np.arange(len(sizes)), sizes)))
    return replace(
        joined,
        rank=rank[order],
        tie_first=first[order],
        tie_last=(last - joined.tie_first)[order],
        grade=joined.grade[order],
        rows=joined.rows[order],
    )


def best_of(joined: Joined, depth: int) -> Joined:
    """The best rankings of the same queries that end at this depth."""
    table = joined.qrels.table
    query = table.query_numbers()
    order = np.lexsort((-table.values, query))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - table.offsets[:-1][query[order]]
    rows = np.flatnonzero((place < depth) & np.isin(query, joined.numbers))
    best = replace(table.keep(rows), values=-place[rows].astype(np.float64))
    return join(joined.qrels, Run(best), ties="trec", table=best)


def all_found(k: int, grade: float) -> Seen:
    """Sees every document of the first k ranks that is not judged as if it had this grade.

    Documents that nobody retrieved stay unknown.
    """

    def seen(block: JudgedRun) -> JudgedRun:
        depth = block.depth(k)
        return filled(block, depth, np.full((len(block), int(depth.max(initial=0))), float(grade)))

    return seen


def precision(k: int, rel: float) -> Measure:
    """P at this cut-off."""
    return parse(f"P@{k}") if rel == 1 else parse("P")(rel=rel) @ k
