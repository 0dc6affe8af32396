"""What a problem does to the numbers: means of measures over judged documents and their ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankgauge.checking.problems import Effect
from rankgauge.checking.survey import Survey
from rankgauge.errors import InputError
from rankgauge.ids import Ids, IntArray
from rankgauge.join import Joined, join
from rankgauge.judged import Values
from rankgauge.kernels.measure import Measure, parse
from rankgauge.model import Qrels, Run
from rankgauge.table import PairTable, offsets_of

__all__ = [
    "Look", "best_of", "cutoff_of", "least_rel", "means", "reordered", "turned_round",
    "unjudged_found", "values_of",
]  # fmt: skip

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


def values_of(joined: Joined, measure: Measure, queries: IntArray | None = None) -> Values | None:
    """The value of a measure for each of these queries of the judgments, for all if left out.

    None where the measure refuses the judgments.
    """
    wanted = np.arange(len(joined.qrels)) if queries is None else queries
    found = np.full(len(wanted), np.nan)
    for places, block in joined.blocks(wanted):
        try:
            found[places] = measure.values(block)
        except InputError:
            return None
    return found


def means(
    joined: Joined, measures: Iterable[Measure], queries: IntArray | None = None
) -> list[float]:
    """The mean of each measure over these queries; NaN where it refuses the judgments."""
    found = []
    for measure in measures:
        values = values_of(joined, measure, queries)
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
    )


def reordered(joined: Joined, *, best: bool) -> Joined:
    """The ranks as they are if equal scores stand in the best order by grade, or in the worst."""
    sizes = np.diff(joined.offsets)
    query = np.repeat(np.arange(len(sizes)), sizes)
    worth = np.maximum(joined.grade, 0.0)
    order = np.lexsort((-worth if best else worth, joined.tie_first, query))
    first, last = joined.tie_first[order], joined.tie_last[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (query[1:] != query[:-1]) | (first[1:] != first[:-1])
    heads = np.flatnonzero(new)
    members = np.diff(np.append(heads, len(order)))
    inside = np.arange(len(order)) - np.repeat(heads, members)
    # What is not judged stands where it does least harm, or most.
    behind = np.repeat(members, members) - 1 - inside
    rank = (first + inside if best else last - behind).astype(np.int64)
    return replace(joined, rank=rank, grade=joined.grade[order], tie_first=first, tie_last=last)


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


def unjudged_found(joined: Joined, k: int, grade: float) -> Joined:
    """The same with every document of the first k ranks that is not judged judged with this grade.

    Documents that nobody retrieved stay unknown.
    """
    sizes = np.diff(joined.offsets)
    depth = np.minimum(joined.retrieved, k)
    starts = offsets_of(depth)
    free = np.ones(int(starts[-1]), dtype=bool)
    query = np.repeat(np.arange(len(sizes)), sizes)
    shallow = joined.rank <= np.repeat(depth, sizes)
    free[starts[:-1][query[shallow]] + joined.rank[shallow] - 1] = False
    rows = np.flatnonzero(free)
    owner = np.repeat(np.arange(len(depth)), depth)[rows]
    rank = rows - starts[:-1][owner] + 1
    everyone = np.concatenate([query, owner])
    ranks = np.concatenate([joined.rank, rank])
    order = np.lexsort((ranks, everyone))
    more = np.full(len(rows), float(grade))
    table = joined.qrels.table
    judged = np.concatenate([table.query_numbers(), joined.numbers[owner]])
    by_query = np.argsort(judged, kind="stable")
    added = Ids.of([b"\x01%d" % row for row in range(len(rows))] or [b"\x01"])
    docs = Ids.joined([table.docs, added.take(np.arange(len(rows)))])
    wider = PairTable(
        table.queries,
        offsets_of(np.bincount(judged, minlength=len(table.queries))),
        docs.take(by_query),
        np.concatenate([table.values, more])[by_query],
        unique=True,
    )
    return replace(
        joined,
        qrels=Qrels(wider),
        offsets=offsets_of(np.bincount(everyone, minlength=len(sizes))),
        rank=ranks[order],
        tie_first=np.concatenate([joined.tie_first, rank])[order],
        tie_last=np.concatenate([joined.tie_last, rank])[order],
        grade=np.concatenate([joined.grade, more])[order],
    )


def precision(k: int, rel: float) -> Measure:
    """P at this cut-off."""
    return parse(f"P@{k}") if rel == 1 else parse("P")(rel=rel) @ k
