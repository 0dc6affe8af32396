"""What a problem does to the numbers: means of measures over judged documents and their ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from rankgauge.checking.problems import Effect
from rankgauge.errors import InputError
from rankgauge.ids import IntArray
from rankgauge.join import Joined
from rankgauge.judged import Values
from rankgauge.kernels.measure import Measure

__all__ = ["effects", "means", "values_of"]


def values_of(joined: Joined, measure: Measure, queries: IntArray | None = None) -> Values:
    """The value of a measure for each of these queries of the judgments; for all if left out.

    NaN everywhere where the measure refuses the judgments.
    """
    wanted = np.arange(len(joined.qrels)) if queries is None else queries
    found = np.full(len(wanted), np.nan)
    for places, block in joined.blocks(wanted):
        try:
            found[places] = measure.values(block)
        except InputError:
            return np.full(len(wanted), np.nan)
    return found


def means(
    joined: Joined, measures: Iterable[Measure], queries: IntArray | None = None
) -> list[float]:
    """The mean of each measure over these queries; NaN where it refuses the judgments."""
    found = []
    for measure in measures:
        values = values_of(joined, measure, queries)
        refused = len(values) and np.isnan(values).all() and not _undefined(joined, measure)
        found.append(math.nan if refused else measure.mean(values))
    return found


def _undefined(joined: Joined, measure: Measure) -> bool:
    """Whether values that are all NaN are so because no query has a relevant document."""
    del measure
    return not (joined.qrels.table.values >= 1).any()


def effects(
    run: str, measures: Sequence[Measure], pair: tuple[Sequence[float], Sequence[float]], by: str
) -> tuple[Effect, ...]:
    """One effect for each measure: the means now, and then."""
    return tuple(
        Effect(run, str(measure), before, after, by)
        for measure, before, after in zip(measures, *pair, strict=True)
    )
