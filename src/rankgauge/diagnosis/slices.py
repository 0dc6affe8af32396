"""Difficulty of queries: distribution of values, and means by group, length, and judgments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankgauge.diagnosis.ranked_queries import RankedQuery
from rankgauge.diagnosis.terms import Texts, words
from rankgauge.measures.measure import Measure

__all__ = ["ENOUGH", "OWN_CUTS", "Difficulty", "Slice", "difficulty", "slices"]

#: With fewer queries, a slice has no interval.
ENOUGH = 10
#: Properties by which queries are always sliced.
OWN_CUTS = ("words of the query", "relevant documents")
_BINS = 10
_LENGTHS = ((1, "1–3"), (4, "4–6"), (7, "7 and more"))
_RELEVANT = ((1, "1"), (2, "2–3"), (4, "4–9"), (10, "10 and more"))


@dataclass(frozen=True)
class Difficulty:
    """The distribution of values over queries.

    Attributes:
        counts: The number of queries in each tenth of the range 0 to 1, the last one closed; empty
            for a measure with other bounds.
        undefined: The number of queries without a value: they have no relevant document.
        nothing_at_k: The number of queries with a relevant document, but none in the first k.
        nothing_at_all: The number of these queries without a relevant document at any depth.
    """

    counts: tuple[int, ...]
    undefined: int
    nothing_at_k: int
    nothing_at_all: int


@dataclass(frozen=True)
class Slice:
    """A group of queries with a common property.

    Attributes:
        by: The property.
        label: The value of the property.
        queries: The number of queries with a value of the measure.
        mean: The mean over these queries.
        low: The lower bound of the 95% interval (see `Measure.mean_interval`); None with too few
            queries.
        high: The upper bound of the interval.
    """

    by: str
    label: str
    queries: int
    mean: float
    low: float | None
    high: float | None


def difficulty(ranked: Sequence[RankedQuery], values: Mapping[str, float], measure: Measure, k: int) -> Difficulty:
    """Return the distribution of values over queries."""
    known = _known(values.values())
    counts = [0] * _BINS
    if measure.declaration.bounds == (0, 1):
        for value in known:
            # The tolerance assigns 0.3 to the fourth bin even if rounding errors make it smaller.
            counts[min(_BINS - 1, math.floor(value * _BINS + 1e-9))] += 1
    missing = [one for one in ranked if one.relevant and not one.hits(k)]
    return Difficulty(
        counts=tuple(counts) if sum(counts) == len(known) else (),
        undefined=len(values) - len(known),
        nothing_at_k=len(missing),
        nothing_at_all=sum(not one.hits(len(one.docs)) for one in missing),
    )


def slices(
    ranked: Sequence[RankedQuery], values: Mapping[str, float], texts: Texts, group_by: str | None, *, measure: Measure
) -> tuple[Slice, ...]:
    """Return means by group, by query length in words, and by number of relevant documents."""
    queries = texts.collection.queries

    def field(one: RankedQuery) -> str:
        query = queries.get(one.query_id)
        found = None if query is None else query.fields.get(group_by or "")
        return "(none)" if found is None else str(found)

    def length(one: RankedQuery) -> str:
        query = queries.get(one.query_id)
        return _range(0 if query is None else len(words(query.text)), _LENGTHS)

    def relevant(one: RankedQuery) -> str:
        return _range(len(one.relevant), _RELEVANT)

    cuts: list[tuple[str, Callable[[RankedQuery], str], list[str]]] = []
    if group_by is not None:
        cuts.append((group_by, field, sorted(set(map(field, ranked)))))
    if queries:
        cuts.append((OWN_CUTS[0], length, [label for _, label in _LENGTHS]))
    cuts.append((OWN_CUTS[1], relevant, [label for _, label in _RELEVANT]))
    return tuple(
        _slice(by, label, own, measure)
        for by, label_of, labels in cuts
        for label in labels
        if (own := _known(values[v.query_id] for v in ranked if label_of(v) == label))
    )


def _range(number: int, ranges: Sequence[tuple[int, str]]) -> str:
    return next((label for least, label in reversed(ranges) if number >= least), "")


def _known(values: Iterable[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def _slice(by: str, label: str, values: list[float], measure: Measure) -> Slice:
    mean = math.fsum(values) / len(values)
    low, high = measure.mean_interval(np.array(values))
    if len(values) < ENOUGH or math.isnan(low):
        return Slice(by, label, len(values), mean, None, None)
    return Slice(by, label, len(values), mean, low, high)
