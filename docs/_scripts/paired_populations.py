"""Populations of paired differences for simulations, and tests of many samples at once."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy import special

import rankgauge
from rankgauge import stats

COLLECTIONS = {
    "cranfield": "trec/qrels.txt",
    "cisi": "trec/qrels.txt",
    "npl": "trec/qrels.txt",
    "dl20-doc": "qrels.txt",
}
MEASURES = ("nDCG@10", "RR@10", "Success@5", "AP")
COLLAPSE = 0.9  # loss of a query that fails completely
_STEPS, _NEAR = 60, 1e-9


def pools(data: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the differences of each pair of runs in each measure, if any query differs."""
    for collection, name in COLLECTIONS.items():
        judgments = rankgauge.read_qrels(data / collection / name)
        runs = sorted((data / collection / "runs").glob("*.gz"))
        values = {
            run.name.removesuffix(".run.gz"): rankgauge.evaluate(judgments, rankgauge.read_run(run), MEASURES).per_query
            for run in runs
        }
        for one, other in combinations(values, 2):
            for column, measure in enumerate(MEASURES):
                moved = np.nan_to_num(values[other][:, column] - values[one][:, column])
                if moved.any():
                    yield f"{collection}: {one} to {other}, {measure}", moved


def shape_of(pool: np.ndarray) -> str:
    """Return the shape of differences: `few differ`, `skewed`, or `dense`."""
    if np.mean(pool != 0) < 1 / 3:
        return "few differ"
    return "skewed" if abs(stats.skewness(pool)) >= 2 else "dense"


def shifted(pool: np.ndarray, mean: float) -> np.ndarray | None:
    """Return chances of the values of a population (Q, 2) with this mean; None if impossible.

    If few queries differ, the share of losses among them follows from the mean. Otherwise, all
    differences are shifted.
    """
    even = np.full(len(pool), 1 / len(pool))
    if shape_of(pool) != "few differ":
        return np.stack([pool - pool.mean() + mean, even])
    lost, won = pool < 0, pool > 0
    if not (lost.any() and won.any()):
        return None
    share = (mean / np.mean(pool != 0) - pool[won].mean()) / (pool[lost].mean() - pool[won].mean())
    if not 0 <= share <= 1:
        return None
    moved = np.mean(pool != 0)
    chances = np.where(lost, moved * share / lost.sum(), np.where(won, moved * (1 - share), 0))
    chances[won] /= won.sum()
    chances[pool == 0] = (1 - moved) / (pool == 0).sum()
    return np.stack([pool, chances])


def collapse(share: float, mean: float, spread: float, loss: float = COLLAPSE) -> np.ndarray:
    """Return a population: a share loses much, and the others move so that the mean is this one."""
    others = (mean + share * loss) / (1 - share)
    rest = (1 - share) / 2
    return np.array([[-loss, others - spread, others + spread], [share, rest, rest]])


def draw(population: np.ndarray, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Return samples of a population, one in each row."""
    values, chances = population
    return rng.choice(values, shape, p=chances / chances.sum())


def moments(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard error of each row."""
    return rows.mean(axis=1), rows.std(axis=1, ddof=1) / np.sqrt(rows.shape[1])


def below(t: np.ndarray, queries: int) -> np.ndarray:
    """Return the probability that Student's t is at most `t`."""
    return special.stdtr(queries - 1, t)


def beyond_worst(rows: np.ndarray) -> np.ndarray:
    """Compute the value of the same name in `rankgauge.stats.intervals` for each row."""
    mean, spread = rows.mean(axis=1), rows.std(axis=1)
    apart = rows - mean[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.nan_to_num((apart**3).mean(axis=1) / spread**3)
    return mean - (0.5 + 20 / rows.shape[1] * np.maximum(0, -skew)) * np.abs(apart).max(axis=1)


def mean_cdf(values: np.ndarray, at: float) -> np.ndarray:
    """Compute `weighted_mean_cdf` of each row (D, n)."""
    parts = values - at
    least, most = parts.min(axis=1), parts.max(axis=1)
    found = np.where(least >= 0, 0.0, 1.0)
    open_ = np.flatnonzero((least < 0) & (most > 0))
    parts = parts[open_]
    low, high, point = 1 / least[open_], 1 / most[open_], np.zeros(len(open_))
    curve = np.ones(len(open_))
    active = np.arange(len(open_))
    for _ in range(_STEPS):
        ratios = parts[active] / (1 - parts[active] * point[active, None])
        slope = ratios.sum(axis=1)
        curve[active] = (ratios * ratios).sum(axis=1)
        down = slope < 0
        low[active] = np.where(down, point[active], low[active])
        high[active] = np.where(down, high[active], point[active])
        moved = point[active] - slope / curve[active]
        outside = (moved <= low[active]) | (moved >= high[active])
        moved = np.where(outside, (low[active] + high[active]) / 2, moved)
        left = np.abs(moved - point[active]) > _NEAR * np.abs(moved)
        point[active[left]] = moved[left]
        active = active[left]
        if not len(active):
            break
    exponent = 2 * np.log1p(-parts * point[:, None]).sum(axis=1)
    signed = np.copysign(np.sqrt(np.maximum(exponent, 0)), point)
    scaled = point * np.sqrt(curve)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.exp(-(signed**2) / 2) / np.sqrt(2 * np.pi)
        p = special.ndtr(signed) + density * (1 / signed - 1 / scaled)
    found[open_] = np.where(np.abs(signed) < 1e-4, 0.5, p)
    return found
