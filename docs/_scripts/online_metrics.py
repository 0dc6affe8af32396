"""Accuracy of intervals, change points, and verdicts on logs: simulations.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/online_metrics.py [--write]

``--write`` writes the tables into docs/explain/online-metrics.md. All seeds are fixed.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from page_tables import write_tables

from rankgauge import Evaluation, parse
from rankgauge.production import METRICS
from rankgauge.production.monitor import offline_signal, online_signal, verdict_of
from rankgauge.production.online import find_changes
from rankgauge.rendering.tables import Table
from rankgauge.stats import ClusterSums, clustered_proportion, first_change, linear_trend

RATES, CORRELATIONS, CLUSTERS = (0.01, 0.05, 0.2, 0.5), (0.0, 0.1, 0.3, 0.5), (20, 200, 2000)
SIZES = (1.5, 4, 20)
DRAWS = {20: 2000, 200: 2000, 2000: 1000}
SERIES, TRUTHS = 1500, 200


def drawn(
    rng: np.random.Generator, *, clusters: int, rate: float, correlation: float, size: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return hits and items of clusters: beta-binomial, with geometric cluster sizes."""
    items = rng.geometric(1 / size, clusters)
    if correlation:
        spread = (1 - correlation) / correlation
        rates = rng.beta(rate * spread, (1 - rate) * spread, clusters)
    else:
        rates = np.full(clusters, rate)
    return rng.binomial(items, rates), items


def sums_of(y: np.ndarray, x: np.ndarray) -> ClusterSums:
    """Return the sums of whole numbers, which are exact in any order."""
    sums = (y.sum(), x.sum(), (y * y).sum(), (x * y).sum(), (x * x).sum())
    return ClusterSums(len(x), *map(float, sums))


def coverage() -> Table:
    """Return the coverage of the interval: the range over rates and cluster sizes."""
    rows = []
    for clusters in CLUSTERS:
        for correlation in CORRELATIONS:
            cells = []
            for size in SIZES:
                for rate in RATES:
                    rng = np.random.default_rng([clusters, int(10 * correlation), int(10 * size), int(100 * rate)])
                    hit = 0
                    for _ in range(DRAWS[clusters]):
                        hits, items = drawn(rng, clusters=clusters, rate=rate, correlation=correlation, size=size)
                        found = clustered_proportion(sums_of(hits, items))
                        hit += found.low <= rate <= found.high
                    cells.append(hit / DRAWS[clusters])
            rows.append(
                (
                    str(clusters),
                    f"{correlation:g}",
                    f"{min(cells):.1%}",
                    f"{np.median(cells):.1%}",
                    f"{max(cells):.1%}",
                    f"{sum(cell < 0.93 for cell in cells)} of {len(cells)}",
                )
            )
    return Table(("clusters", "correlation", "lowest", "median", "highest", "below 93%"), tuple(rows))


def days(rng: np.random.Generator, kind: str, periods: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numerators and denominators of days without a change."""
    x, rate = rng.poisson(100, periods), np.full(periods, 0.15)
    if kind == "growing":
        x = rng.poisson(np.linspace(20, 300, periods))
    elif kind == "days differ":
        rate = rng.beta(15, 85, periods)
    elif kind == "growing, days differ":
        x, rate = rng.poisson(np.linspace(20, 300, periods)), rng.beta(15, 85, periods)
    elif kind == "weekends":
        weekend = np.arange(periods) % 7 >= 5
        x, rate = np.where(weekend, x // 3, x), np.where(weekend, 0.25, 0.12)
    elif kind == "few":
        x = rng.poisson(4, periods)
    return rng.binomial(x, rate), x


def false_alarms() -> Table:
    """Return how often a change is found where there is none."""
    rows = []
    for kind in ("plain", "growing", "days differ", "growing, days differ", "weekends", "few"):
        for periods in (14, 28, 84):
            rng = np.random.default_rng([len(kind), periods])
            found = [days(rng, kind, periods) for _ in range(SERIES)]
            shifts = np.mean([first_change(y, x, draws=199) <= 0.05 for y, x in found])
            lines = [linear_trend(y, x) for y, x in found]
            trends = np.mean([line is not None and line.p <= 0.05 for line in lines])
            rows.append((kind, str(periods), f"{shifts:.1%}", f"{trends:.1%}"))
    return Table(("days", "number", "largest shift", "line"), tuple(rows))


def simulated_states(rng: np.random.Generator, change: str, answers: int) -> list[str]:
    """Return the states of metrics after 56 days of thumbs and abstentions with a change in the middle."""
    late, found = np.arange(56) >= 28, {}
    gradual = np.clip((np.arange(56) - 14) / 28, 0, 1)
    for name, share, rate, loss in (
        ("thumbs_ratio", 0.1, 0.75, -0.15),
        ("idk_rate", 1.0, 0.1, 0.1),
        ("reformulation_rate", 1.0, 0.12, 0.0),
    ):
        x = rng.poisson(answers * share, 56)
        step = {"none": 0.0, "abrupt": late, "gradual": gradual}[change]
        spread = 100
        center = rate + loss * step
        rates = rng.beta(center * spread, (1 - center) * spread, 56)
        found[METRICS[name]] = (rng.binomial(x, rates), x)
    changes = {one.metric: one for one in find_changes(found, range(56))}
    return [online_signal(metric.name, changes.get(metric), 0.05).state for metric in found]


def evaluations(rng: np.random.Generator, loss: float) -> list[Evaluation]:
    """Return two evaluations of 200 queries; the second is lower by `loss` on average."""
    before = rng.beta(2, 1.5, 200)
    after = np.clip(before - loss + rng.normal(0, 0.08, 200), 0, 1)
    names = [f"q{n}" for n in range(200)]
    return [Evaluation.from_values("a", names, {"RR": list(v)}) for v in (before, after)]


def verdicts() -> Table:
    """Return how often each simulated truth gets each verdict."""
    names = ("REFRESH", "WORSE", "OFFLINE ONLY", "STEADY", "CANNOT TELL", "USERS ONLY")
    rows = []
    for answers in (100, 400):
        for loss, offline in ((0.0, "holds"), (0.06, "falls")):
            for change in ("none", "abrupt", "gradual"):
                rng = np.random.default_rng([answers, int(100 * loss), len(change)])
                found = Counter()
                for _ in range(TRUTHS):
                    signal = offline_signal(evaluations(rng, loss), parse("RR"), 0.02)
                    states = simulated_states(rng, change, answers)
                    found[verdict_of(signal.state, states, drift=None)[0]] += 1
                right = {"holds": ("STEADY", "REFRESH"), "falls": ("OFFLINE ONLY", "WORSE")}
                rows.append(
                    (
                        str(answers),
                        offline,
                        change,
                        right[offline][change != "none"],
                        *(f"{found[name] / TRUTHS:.0%}" for name in names),
                    )
                )
    return Table(("answers a day", "metric", "users", "right", *names), tuple(rows))


def tables(_data: Path) -> Iterator[tuple[str, Table]]:
    """Yield the tables of the page in their order."""
    yield "verdicts", verdicts()
    yield "false-alarms", false_alarms()
    yield "coverage", coverage()


if __name__ == "__main__":
    write_tables(tables, Path(__file__).parents[1] / "explain" / "online-metrics.md")
