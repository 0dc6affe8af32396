"""Error rates of intervals and tests of differences: a simulation, in Markdown.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/interval_coverage.py

The folder contains ``<collection>/runs/*.run.gz`` and judgments. The differences of each pair of
runs are treated as the population: their mean is the true one. Queries are drawn from them with
replacement, from fixed seeds.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from paired_populations import (
    below,
    beyond_worst as beyond_each,
    collapse,
    draw,
    mean_cdf,
    moments as moments_of,
    pools,
    shape_of,
    shifted,
)

from rankgauge import stats
from rankgauge.comparison.differences import FAILING
from rankgauge.rendering.tables import Table, to_markdown
from rankgauge.stats.arrays import moments
from rankgauge.stats.intervals import beyond_worst, weighted_mean_cdf

QUERIES = {25: 1000, 50: 1000, 100: 1000, 200: 600, 1000: 200}
FEWEST, SHOWN = 8, 0.2
SMALL = (10, 25, 50, 100)
TESTS, FLIPS = 1000, 499


def shapes() -> Iterator[tuple[str, np.ndarray]]:
    """Yield synthetic distributions of differences."""
    rng = np.random.default_rng(5)
    yield "normal", rng.normal(0, 0.1, 20_000)
    yield "exponential losses", -rng.exponential(0.1, 20_000)
    yield "lognormal losses", -np.clip(rng.lognormal(-3, 1, 20_000), 0, 1)


def covers(moved: np.ndarray, mean: float) -> tuple[bool, bool]:
    """Return whether `mean_interval` and the t interval include this mean, the fast way."""
    by_t = stats.t_interval(moved)
    if not by_t.low <= mean <= by_t.high:
        side, at = (moved, mean) if by_t.mean > mean else (-moved, -mean)
        with_worse = np.append(side, beyond_worst(side, moments(side)[0], stats.skewness(side)))
        return weighted_mean_cdf(with_worse, at) >= 0.025, False
    return True, True


def shows(moved: np.ndarray) -> bool:
    """Return whether `compare` shows an interval: unless few queries differ, or it is narrow."""
    if np.count_nonzero(moved) < FEWEST:
        return False
    wide, by_t = 2 / (len(moved) + 1), stats.t_interval(moved)
    if by_t.high - by_t.low >= wide:
        return True
    low, high = stats.mean_interval(moved)
    return high - low >= wide


def row(name: str, pool: np.ndarray, queries: int, draws: int) -> tuple[str, int, float, ...]:
    """Return how often this pair has an interval, and the coverage of it and of the t interval."""
    rng = np.random.default_rng([queries, len(pool), round(1e6 * float(np.abs(pool).sum()))])
    found = []
    for moved in rng.choice(pool, (draws, queries)):
        any_spread = moments(moved)[1] > 0
        found.append((any_spread and shows(moved), any_spread, *(covers(moved, pool.mean()) if any_spread else (0, 0))))
    shown, spread, ours, by_t = (np.array(column, dtype=bool) for column in zip(*found, strict=True))
    share = lambda hit, of: float(hit[of].mean()) if of.sum() >= 50 else float("nan")  # noqa: E731
    return (
        name,
        queries,
        float((pool != 0).mean()),
        float(shown.mean()),
        share(ours, shown),
        float((shown & ~ours).mean()),
        share(by_t, spread),
    )


def coverage(rows: Sequence[tuple]) -> Iterator[Table]:
    """Yield tables by number of queries: the range over all pairs, and the cases below 93%."""
    lines = []
    for queries in QUERIES:
        mine = [r for r in rows if r[1] == queries]
        kept = [r for r in mine if r[3] >= SHOWN]
        dense = [1 - r[3] for r in mine if r[2] >= 0.5]
        ours, by_t = np.array([r[4] for r in kept]), np.array([r[6] for r in mine])
        lines.append(
            (
                str(queries),
                str(len(mine)),
                str(len(kept)),
                _percent(np.median(ours)),
                str(int((ours < 0.93).sum())),
                _percent(ours.max()),
                _percent(np.mean(dense)),
                _percent(np.nanmin(by_t)),
                str(int((by_t < 0.93).sum())),
            )
        )
    yield Table(
        columns=(
            "queries",
            "cases",
            "shown in 20% or more",
            "coverage: median",
            "cases below 93%",
            "highest",
            "half differ: withheld",
            "t: lowest",
            "t: cases below 93%",
        ),
        rows=tuple(lines),
    )
    out = [r for r in rows if r[3] >= SHOWN and r[4] < 0.93]
    yield Table(
        columns=("case", "queries", "queries that differ", "shown", "coverage", "by t"),
        rows=tuple((r[0], str(r[1]), *(_percent(x) for x in (r[2], r[3], r[4], r[6]))) for r in sorted(out)),
    )


def bootstrap_t(moved: np.ndarray, rng: np.random.Generator) -> float:
    """Return the p-value of a studentized bootstrap of centered differences."""
    drawn = rng.choice(moved - moved.mean(), (FLIPS, len(moved)))
    spread = drawn.std(axis=1, ddof=1)
    with np.errstate(all="ignore"):
        seen = abs(moved.mean()) / moved.std(ddof=1)
        reached = np.abs(drawn.mean(axis=1)) / spread >= seen
    return float((1 + reached.sum()) / (1 + FLIPS))


def verdicts(moved: np.ndarray, rng: np.random.Generator) -> tuple[bool, ...]:
    """Return whether each rule rejects: flips, t, studentized bootstrap, flips and interval."""
    if np.count_nonzero(moved) < 6 or moments(moved)[1] == 0:
        return False, False, False, False
    flips = stats.randomization_test(moved, FLIPS, int(rng.integers(2**31))).p[0] < 0.05
    agrees = np.count_nonzero(moved) < FEWEST or not covers(moved, 0.0)[0]
    return (bool(flips), stats.t_test(moved).p < 0.05, bootstrap_t(moved, rng) < 0.05, bool(flips and agrees))


def skewed(found: dict[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield differences with mean 0, from symmetric to very skewed."""
    rng = np.random.default_rng(6)
    yield "normal", rng.normal(0, 0.1, 20_000)
    yield "exponential", rng.exponential(0.1, 20_000)
    yield "lognormal", np.clip(rng.lognormal(-3, 1, 20_000), 0, 1)
    yield "10% with large losses", np.where(rng.random(20_000) < 0.1, -0.9, 0.1) * 0.2
    yield from found.items()


def errors(pool: np.ndarray, queries: int) -> Iterator[float]:
    """Yield the false positive rate of each rule."""
    rng = np.random.default_rng([queries, 11])
    centred = pool - pool.mean()
    drawn = rng.choice(centred, (TESTS, queries))
    yield from np.mean([verdicts(moved, rng) for moved in drawn], axis=0)


def families(found: dict[str, np.ndarray], queries: int) -> tuple[str, ...]:
    """Return family-wise error rates of five differences with unequal shapes."""
    rng = np.random.default_rng([queries, 12])
    shapes = [pool - pool.mean() for pool in dict(skewed(found)).values()][:5]
    errors = []
    for _ in range(TESTS):
        table = np.stack([rng.choice(pool, queries) for pool in shapes], axis=1)
        seed = int(rng.integers(2**31))
        holm = stats.holm(stats.randomization_test(table, FLIPS, seed).p) < 0.05
        max_t = stats.max_t(table, FLIPS, seed).p < 0.05
        agrees = np.array([verdicts(column, rng)[3] for column in table.T])
        errors.append((holm.any(), max_t.any(), (holm & agrees).any(), (max_t & agrees).any()))
    return str(queries), *map(_percent, np.mean(errors, axis=0))


def significant(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whether t test and interval exclude 0 in each row, and the sum of its differences."""
    queries = rows.shape[1]
    mean, error = moments_of(rows)
    t = np.abs(mean) / np.maximum(error, 1e-15)
    toward = rows * np.sign(mean)[:, None]
    other = mean_cdf(np.column_stack([toward, beyond_each(toward)]), 0.0)
    enough = np.count_nonzero(rows, axis=1) >= FEWEST
    return enough & (2 * below(-t, queries) < 0.05) & (other < 0.025), queries * np.abs(mean)


def withheld(populations: Sequence[np.ndarray], queries: int, draws: int) -> np.ndarray:
    """Return the rate of verdicts if none, 1, 2, or 3 failing queries may reverse them."""
    rng = np.random.default_rng([queries, len(populations)])
    found = []
    for population in populations:
        sure, total = significant(draw(population, (draws, queries), rng))
        found.append([np.mean(sure & (total > k)) for k in range(4)])
    return np.mean(found, axis=0)


def failing_groups(real: dict[str, np.ndarray]) -> Iterator[tuple[str, str, list[np.ndarray], int]]:
    """Yield populations without and with a difference: the truth, a name, and draws for each."""
    for share, loss in ((0.01, 0.9), (0.02, 0.9), (0.03, 0.9), (0.05, 0.9), (0.02, 1.0), (0.04, 1.0)):
        population = collapse(share, 0.0, 0.001, loss)
        yield "none", f"{share:.0%} lose {loss:g}, the others gain", [population], 3000
    dense = [pool for pool in real.values() if shape_of(pool) == "dense"]
    yield "none", "real pairs, many differ", [shifted(pool, 0.0) for pool in dense], 150
    normal = np.random.default_rng(4).normal(0, 0.1, 20_000)
    yield "0.4 sd", "normal, sd 0.1", [shifted(normal, 0.04)], 1500
    wide = [pool for pool in dense if pool.std() >= 0.05]
    for name, pools_of in (("", dense), (", sd 0.05 or more", wide)):
        both = [shifted(pool, 0.4 * s * pool.std()) for pool in pools_of for s in (-1, 1)]
        yield "0.4 sd", f"real pairs, many differ{name}", both, 150


def failing(real: dict[str, np.ndarray]) -> Table:
    """Return how often `compare` gives a verdict, by the number of failing queries it allows."""
    rows = [
        (truth, name, str(queries), *map(_percent, withheld(populations, queries, draws)))
        for truth, name, populations, draws in failing_groups(real)
        for queries in (25, 50, 100, 200, 400)
    ]
    return Table(columns=("difference", "differences", "queries", "k = 0", "k = 1", "k = 2", "k = 3"), rows=tuple(rows))


def best(queries: int, share: float) -> tuple[str, ...]:
    """Return how often four runs without a difference seem to differ: one fails in rare queries."""
    rng = np.random.default_rng([queries, 13])
    population, found = collapse(share, 0.0, 0.01), []
    for seed in range(TESTS // 2):
        near = rng.normal(0, 0.02, (queries, 2))
        moved = draw(population, (1, queries), rng)[0]
        values = np.column_stack([np.zeros(queries), moved, near])
        p = stats.max_t(np.column_stack([a - b for a, b in combinations(values.T, 2)]), FLIPS, seed).p[0]
        apart = p < 0.05 and not covers(moved, 0.0)[0]
        found.append((p < 0.05, apart, apart and abs(moved.sum()) > FAILING))
    return f"{share:.0%} lose 0.9, the others ±0.01", str(queries), *map(_percent, np.mean(found, axis=0))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def bests() -> Table:
    """Return the rates of wrong verdicts by max-T over all pairs of runs, with and without the other rules."""
    columns = ("differences", "queries", "max-T", "and interval", "and two failing queries")
    rows = tuple(best(queries, share) for share in (0.01, 0.02, 0.05) for queries in (25, 50, 100, 200))
    return Table(columns=columns, rows=rows)


def main(say: Callable[[str], object] = sys.stdout.write) -> None:
    """Print the tables."""
    data = os.environ.get("RANKGAUGE_TEST_DATA", "")
    if not data:
        sys.exit("set RANKGAUGE_TEST_DATA to the folder of the collections")
    real = dict(pools(Path(data)))
    say(f"## Failing queries\n\n{to_markdown(failing(real))}\n")
    every = [*real.items(), *shapes()]
    rows = [row(name, pool, n, draws) for name, pool in every for n, draws in QUERIES.items()]
    summary, worst = coverage(rows)
    say(f"## Coverage\n\n{to_markdown(summary)}\n## Cases below 93%\n\n{to_markdown(worst)}\n")
    by_skewness = sorted(real, key=lambda name: abs(stats.skewness(real[name])))
    some = {name: real[name] for name in by_skewness[:: len(by_skewness) // 4]}
    lines = [
        (name, f"{stats.skewness(pool):+.1f}", str(n), *map(_percent, errors(pool, n)))
        for name, pool in skewed(some)
        for n in SMALL
    ]
    table = Table(
        columns=(
            "differences",
            "skewness",
            "queries",
            "sign flips",
            "paired t",
            "studentized bootstrap",
            "sign flips and interval",
        ),
        rows=tuple(lines),
    )
    say(f"## No true difference\n\n{to_markdown(table)}\n")
    family = Table(
        columns=("queries", "Holm", "max-T", "Holm and interval", "max-T and interval"),
        rows=tuple(families(some, n) for n in SMALL),
    )
    say(f"## Five tests of no true difference\n\n{to_markdown(family)}\n")
    say(f"## Runs compared with the best run\n\n{to_markdown(bests())}\n")


if __name__ == "__main__":
    main()
