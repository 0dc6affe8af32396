"""Power of `compare` for the differences that it calls detectable: a simulation, in Markdown.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/detectable_differences.py [--write]

The differences of each pair of runs are a population. A sample of queries states which difference
is detectable; its power is the share of other samples with a verdict if the population has this
mean. Populations are shifted to the mean; where fewer than half of the queries differ, they are
weighted by an exponential function of the differences, so that the others still do not differ.
Half of the samples are of mirrored populations. The seeds are fixed.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from interval_coverage import pools
from page_tables import write_tables
from paired_populations import MEASURES

from rankgauge import stats
from rankgauge.comparison.differences import (
    ALPHA,
    FAILING,
    FEW_CHANGES,
    FEWEST_FOR_INTERVAL,
    DifferenceSample,
    make_difference,
)
from rankgauge.measures.measure import parse
from rankgauge.rendering.tables import Table
from rankgauge.stats.arrays import root
from rankgauge.stats.intervals import beyond_worst

PAGE = Path(__file__).parents[1] / "explain" / "interval-coverage.md"
QUERIES = (10, 25, 50, 100)
DRAWS, FLIPS, WEIGHTS = 120, 499, 600
# Statements of the number of queries needed: samples that make them, and later ones of that many queries.
PILOTS, LATER, MOST = 10, 60, 3000
DENSE = 0.5
# Differences for which the power is simulated, in standard errors.
GRID = np.array([1.0, 2.0, 2.4, 2.8, 3.2, 3.8, 4.6, 6.0, 9.0, 14.0, 22.0])
KURTOSIS = range(3, 10)


class Samples(NamedTuple):
    """Samples of differences (D, n), and what `compare` would say.

    Attributes:
        verdict: Whether each has a verdict.
        sd: Standard deviations.
        mean: Means.
        level: Level of a t test as strict as the interval.
        changed: Numbers of differences that are not 0.
    """

    verdict: np.ndarray
    sd: np.ndarray
    mean: np.ndarray
    level: np.ndarray
    changed: np.ndarray


def judged(drawn: np.ndarray, rng: np.random.Generator) -> Samples:
    """Return the verdicts on samples, with random sign flips and weights shared by all of them."""
    n = drawn.shape[1]
    mean, sd = drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
    changed = np.count_nonzero(drawn, axis=1)
    flipped = np.abs(rng.choice([-1.0, 1.0], (FLIPS, n)) @ drawn.T) >= np.abs(n * mean) - 1e-12
    p = (1 + flipped.sum(axis=0)) / (1 + FLIPS)
    weights = rng.exponential(size=(WEIGHTS, n + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    by_t = stats.student_t_quantile(0.975, n - 1) * sd / math.sqrt(n)
    widths = []
    for side in (drawn, -drawn):
        worse = [[beyond_worst(one, stats.moments(one)[0], stats.skewness(one)) if one.any() else 0.0] for one in side]
        low = np.quantile(weights @ np.hstack([side, worse]).T, 0.025, axis=0)
        widths.append(np.maximum(by_t, side.mean(axis=1) - low))
    inner = np.where(mean > 0, *widths)
    shown = changed >= FEWEST_FOR_INTERVAL
    verdict = (p < ALPHA) & (changed >= FEW_CHANGES) & (~shown | (np.abs(mean) > inner))
    verdict &= n * np.abs(mean) > FAILING + 1e-9  # measures from 0 to 1
    t = np.max(widths, axis=0) * math.sqrt(n) / np.where(sd > 0, sd, 1)
    level = [2 * stats.student_t_cdf(-one, n - 1) if own else ALPHA for one, own in zip(t, shown, strict=True)]
    return Samples(verdict, sd, mean, np.minimum(level, ALPHA), changed)


def moved_to(pool: np.ndarray, mean: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and probabilities of a population moved to this mean."""
    if np.mean(pool != 0) >= DENSE:
        return pool - pool.mean() + mean, np.full(len(pool), 1 / len(pool))
    values = pool / np.abs(pool).max()
    values = np.append(values, [-1.0, 1.0])  # so that every mean is possible

    def weights(tilt: float) -> np.ndarray:
        raw = np.exp(tilt * values - abs(tilt))
        return raw / raw.sum()

    wanted = mean / np.abs(pool).max()
    tilt = root(lambda at: weights(at) @ values >= wanted, -40.0, 40.0)
    return values * np.abs(pool).max(), weights(tilt)


def power_of(pool: np.ndarray, queries: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return differences and the share of samples with the right verdict, in both directions."""
    least = pool.std() / math.sqrt(queries)
    sizes = least * GRID[least * GRID < np.abs(pool).max() * 0.95]
    shares = []
    for size in sizes:
        right = []
        for side in (1.0, -1.0):
            values, weights = moved_to(side * pool, size)
            found = judged(rng.choice(values, (DRAWS, queries), p=weights), rng)
            right.append((found.verdict & (found.mean > 0)).mean())
        shares.append(np.mean(right))
    return sizes, np.maximum.accumulate(shares) if shares else np.array([])


@cache
def effects(queries: int) -> tuple[np.ndarray, np.ndarray]:
    """Return logarithms of levels and the detectable effects."""
    levels = np.geomspace(1e-6, ALPHA, 12)
    return np.log(levels), np.array([stats.detectable_difference(1.0, queries, alpha=level) for level in levels])


class Stated(NamedTuple):
    """Power of what is stated about a pair, averaged over samples.

    Attributes:
        pair: The pair.
        queries: The number of queries.
        power: Power of the stated difference, by kurtosis allowed for (0: none).
        ratio: Stated difference relative to the one with a power of 80%, in the median.
    """

    pair: str
    queries: int
    power: dict[int, float]
    ratio: dict[int, float]


def stated(pair: str, pool: np.ndarray, numbers: Sequence[int] = QUERIES) -> Iterator[Stated]:
    """Yield the power of the statements for each number of queries."""
    rng = np.random.default_rng([len(pool), round(1e6 * float(np.abs(pool).sum()))])
    curves = {queries: power_of(pool, queries, rng) for queries in numbers}
    for queries, (sizes, shares) in curves.items():
        drawn = judged(rng.choice(pool, (DRAWS, queries)), rng)
        share = np.maximum(drawn.changed, 1) / queries
        effect = np.interp(np.log(drawn.level), *effects(queries))
        more = np.sqrt(np.minimum(1, (effect**2 + np.hypot(effect**2, 2 * share)) / 2) / share)
        base = drawn.sd * effect * more
        few = FAILING / queries
        kept = (drawn.changed > 0) & (base < 1)
        if kept.mean() < 0.5 or not len(shares) or shares[-1] < 0.8:
            continue
        exact = np.interp(0.8, shares, sizes)
        power, ratio = {}, {}
        for kurtosis in (0, *KURTOSIS):
            allowed = math.sqrt((queries - 1) / (queries - kurtosis)) if kurtosis else 1.0
            found = (base if kurtosis else drawn.sd * effect)[kept] * allowed
            if kurtosis:
                sd = drawn.sd[kept] * allowed / math.sqrt(queries)
                found = np.maximum(found, few + NormalDist().inv_cdf(0.8) * sd)
            power[kurtosis] = float(np.interp(found, sizes, shares, left=0.0).mean())
            ratio[kurtosis] = float(np.median(found) / exact)
        yield Stated(pair, queries, power, ratio)


class Needed(NamedTuple):
    """Share of later samples with a verdict, where a sample states the number of queries needed.

    Attributes:
        pair: The pair.
        queries: The number of queries of the first sample.
        stated: The number stated.
        share: Share of samples of that many queries with the right verdict.
    """

    pair: str
    queries: int
    stated: int
    share: float


def needed(pair: str, pool: np.ndarray, numbers: Sequence[int] = QUERIES[1:]) -> Iterator[Needed]:
    """Yield how often the stated number of queries suffices if the true mean is the observed one."""
    rng = np.random.default_rng([len(pool), round(1e6 * float(np.abs(pool).sum())), 1])
    measure = parse(pair.rpartition(", ")[2])
    for queries in numbers:
        drawn = rng.choice(pool, (PILOTS, queries))
        verdicts = judged(drawn, rng).verdict
        for moved in drawn[~verdicts]:
            if not moved.any():
                continue
            mean, sd = stats.moments(moved)
            low, high = (
                stats.mean_interval(moved) if np.count_nonzero(moved) >= FEWEST_FOR_INTERVAL else (math.nan,) * 2
            )
            sample = DifferenceSample(mean, low, high, sd, queries, (moved > 0).sum(), (moved < 0).sum(), None)
            found = make_difference(("new", "old", measure), (0.5, 0.5), sample, 1.0, 1.0, ALPHA)
            if found.queries_needed is None or found.queries_needed > MOST:
                continue
            values, weights = moved_to(pool, mean)
            later = judged(rng.choice(values, (LATER, found.queries_needed), p=weights), rng)
            share = float((later.verdict & (later.mean * mean > 0)).mean())
            yield Needed(pair, queries, found.queries_needed, share)


def needed_table(found: Sequence[Needed]) -> Table:
    """Return the mean share of right verdicts, and its range over pairs."""
    rows = []
    for name in (*MEASURES, "all"):
        for queries in QUERIES[1:]:
            some = [one for one in found if one.queries == queries and name in {"all", one.pair.rpartition(", ")[2]}]
            if len(some) < 20:
                continue
            shares = np.array([one.share for one in some])
            pairs = [np.mean([one.share for one in some if one.pair == pair]) for pair in {one.pair for one in some}]
            rows.append(
                (
                    name,
                    str(queries),
                    str(len(some)),
                    f"{np.median([one.stated for one in some]):.0f}",
                    _percent(shares.mean()),
                    _percent((shares >= 0.75).mean()),
                    _percent(min(pairs)),
                )
            )
    columns = ("measure", "queries", "statements", "stated: median", "verdicts: mean", "75% or more", "lowest pair")
    return Table(columns=columns, rows=tuple(rows))


def tables(data: Path) -> Iterator[tuple[str, Table]]:
    """Yield the tables of the page."""
    found = [one for pair, pool in pools(data) for one in stated(pair, pool)]
    chosen = 6
    rows = []
    for name, keep in (
        ("nDCG@10", lambda one: one.pair.endswith("nDCG@10")),
        ("AP", lambda one: one.pair.endswith(", AP")),
        ("RR@10", lambda one: one.pair.endswith("RR@10")),
        ("Success@5", lambda one: one.pair.endswith("Success@5")),
        ("all", bool),
    ):
        for queries in QUERIES:
            some = [one for one in found if one.queries == queries and keep(one)]
            if len(some) < 5:
                continue
            power = np.array([one.power[chosen] for one in some])
            before = np.array([one.power[0] for one in some])
            rows.append(
                (
                    name,
                    str(queries),
                    str(len(some)),
                    _percent(power.mean()),
                    _percent((power >= 0.75).mean()),
                    _percent(power.min()),
                    f"{np.median([one.ratio[chosen] for one in some]):.2f}",
                    _percent(before.mean()),
                )
            )
    yield (
        "power",
        Table(
            columns=(
                "measure",
                "queries",
                "pairs",
                "power: mean",
                "pairs with 75% or more",
                "lowest",
                "stated / exact",
                "mean by the observed sd",
            ),
            rows=tuple(rows),
        ),
    )
    lines = []
    for collection in sorted({one.pair.partition(":")[0] for one in found}):
        inside = [one for one in found if one.pair.startswith(collection)]
        rest = [one for one in found if not one.pair.startswith(collection)]
        least = next((k for k in KURTOSIS if min(_means(rest, k).values()) >= 0.795), KURTOSIS[-1])
        means = _means(inside, least)
        lines.append((collection, str(least), *(_percent(means[queries]) for queries in QUERIES)))
    yield (
        "left-out",
        Table(columns=("left out", "kurtosis", *(f"{queries} queries" for queries in QUERIES)), rows=tuple(lines)),
    )
    yield "needed", needed_table([one for pair, pool in pools(data) for one in needed(pair, pool)])


def _means(found: list[Stated], kurtosis: int) -> dict[int, float]:
    return {
        queries: float(np.mean([one.power[kurtosis] for one in found if one.queries == queries])) for queries in QUERIES
    }


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


if __name__ == "__main__":
    write_tables(tables, PAGE)
