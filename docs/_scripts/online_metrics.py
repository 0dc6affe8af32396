"""Accuracy of intervals, change points, and verdicts on logs: simulations.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/online_metrics.py [--write]

``--write`` writes the tables into docs/explain/online-metrics.md. All seeds are fixed.
"""

import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from page_tables import write_tables

from rankgauge import Evaluation, parse
from rankgauge.production import METRICS, online_metrics
from rankgauge.production.monitor import offline_signal, online_signal, verdict_of
from rankgauge.production.online import find_changes
from rankgauge.rendering.tables import Table
from rankgauge.stats import (
    ClusterSums,
    DailySums,
    clustered_proportion,
    different_week,
    first_change,
    holm,
    linear_trend,
)

RATES, CORRELATIONS, CLUSTERS = (0.01, 0.05, 0.2, 0.5), (0.0, 0.1, 0.3, 0.5), (20, 200, 2000)
SIZES = (1.5, 4, 20)
DRAWS = {20: 2000, 200: 2000, 2000: 1000}
SERIES, TRUTHS, POWER, LOGS = 100, 20, 100, 20


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


def logistic(values: np.ndarray) -> np.ndarray:
    """Return probabilities from logits."""
    return 1 / (1 + np.exp(-values))


def disturbances(rng: np.random.Generator, days: int, correlation: float, spread: float) -> np.ndarray:
    """Return logits that all users of a day share: AR(1)."""
    numbers = np.arange(days)
    root = np.linalg.cholesky(correlation ** np.abs(np.subtract.outer(numbers, numbers)))
    return spread * root @ rng.standard_normal(days)


def asked(
    rng: np.random.Generator, days: int, *, rate: float, returning: int, daily: np.ndarray, stay: int, single: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return questions and logits by user and day.

    Returning users stay some days, ask a Poisson number of questions a day (means `daily`), and
    differ in their rate; all other users ask one question.
    """
    start = rng.integers(1 - stay, days, returning)[:, None]
    here = (np.arange(days) >= start) & (np.arange(days) < start + stay)
    often = rng.poisson(here * daily[:, None])
    once = np.repeat(np.eye(days, dtype=int), rng.poisson(single, days), axis=0)
    own = np.append(rng.normal(0, 1.2, returning), np.zeros(len(once)))
    return np.concatenate([often, once]), np.log(rate / (1 - rate)) + np.repeat(own[:, None], days, axis=1)


# Returning users, whether their activity is heavy-tailed, days they stay, single questions a day,
# correlation and standard deviation of the disturbances that users share, and effect of weekends.
TRUTHS_WITHOUT_CHANGE = {
    "independent questions": (0, False, 1, 60, 0.0, 0.0, 0.0),
    "returning users": (150, False, 10, 20, 0.0, 0.0, 0.0),
    "few returning users": (40, False, 21, 10, 0.0, 0.0, 0.0),
    "heavy-tailed users": (150, True, 14, 30, 0.0, 0.0, 0.0),
    "weekends": (60, False, 10, 40, 0.0, 0.0, 0.7),
    "days differ": (60, False, 10, 60, 0.0, 0.3, 0.0),
    "days differ, AR(1) 0.3": (60, False, 10, 60, 0.3, 0.3, 0.0),
    "days differ, AR(1) 0.6": (60, False, 10, 60, 0.6, 0.3, 0.0),
    "days differ, AR(1) 0.9": (60, False, 10, 60, 0.9, 0.3, 0.0),
}


def unchanged(rng: np.random.Generator, kind: str, days: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numerators and denominators by user and day without a change."""
    returning, tailed, stay, single, correlation, spread, weekend = TRUTHS_WITHOUT_CHANGE[kind]
    daily = rng.lognormal(0, 1.3, returning) if tailed else np.full(returning, 3.0)
    x, logits = asked(rng, days, rate=0.12, returning=returning, daily=daily, stay=stay, single=single)
    shared = disturbances(rng, days, correlation, spread) + weekend * (np.arange(days) % 7 >= 5)
    return rng.binomial(x, logistic(logits + shared)), x


def folded(table: np.ndarray) -> np.ndarray:
    """Return sums of at most 1000 groups of users, as for a log."""
    groups = np.zeros((min(1000, len(table)), table.shape[1]))
    np.add.at(groups, np.arange(len(table)) % len(groups), table)
    return groups


def found_p(sums: DailySums) -> tuple[float, float]:
    """Return the p-values of shift and week with Holm's correction; 1 if withheld."""
    week = different_week(sums, draws=199)
    p = [first_change(sums, draws=199), math.nan if week is None else week.p]
    tested = [value for value in p if not math.isnan(value)]
    corrected = iter(holm(tested) if tested else ())
    return tuple(1.0 if math.isnan(value) else float(next(corrected)) for value in p)


def false_alarms() -> Table:
    """Return how often a change is found where there is none."""
    rows = []
    for kind in TRUTHS_WITHOUT_CHANGE:
        for users, periods in (
            ("known", 14),
            ("known", 28),
            ("known", 56),
            ("known", 182),
            ("unknown", 84),
            ("unknown", 182),
        ):
            rng = np.random.default_rng([len(kind), periods, len(users)])
            counts = np.zeros(5)
            for _ in range(SERIES):
                y, x = unchanged(rng, kind, periods)
                sums = DailySums.of(folded(y), folded(x)) if users == "known" else DailySums.of(y.sum(0), x.sum(0))
                shift, week = found_p(sums)
                line = linear_trend(sums, draws=199)
                worse = 2 * np.nanmin([shift, line.p, 1]) <= 0.05 and line.change > 0
                counts += shift <= 0.05, week <= 0.05, min(shift, week) <= 0.05, line.p <= 0.05, worse
            rows.append((kind, users, str(periods), *(f"{count / SERIES:.1%}" for count in counts)))
    return Table(("days", "users", "number", "shift", "week", "either", "line", "worse"), tuple(rows))


def changed(rng: np.random.Generator, days: int, answers: float, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sums by user and day: 158 users of lognormal activity and rates with a beta distribution."""
    activity = rng.lognormal(0, 0.8, 158)
    x = rng.poisson(np.repeat(activity[:, None] / activity.sum() * answers / 7, days, axis=1))
    own = rng.beta(rates * 8, (1 - rates) * 8, (158, days))
    first = rng.beta(rates.min() * 8, (1 - rates.min()) * 8, (158, 1))
    return rng.binomial(x, np.where(rates == rates.min(), first, own)), x


def power() -> Table:
    """Return how often planted changes are found."""
    rows = []
    for answers in (100, 300):
        for weeks, kind, users, before, after in (
            (8, "shift", "known", 0.065, 0.13),
            (8, "shift", "known", 0.065, 0.255),
            (26, "shift", "known", 0.065, 0.13),
            (26, "shift", "unknown", 0.065, 0.13),
            *((weeks, "week", "known", 0.065, 0.255) for weeks in (5, 6, 7, 8, 12)),
            *((weeks, "week", "known", 0.22, 0.49) for weeks in (6, 8, 12)),
        ):
            rng = np.random.default_rng([answers, weeks, len(users), int(1000 * after)])
            hits = 0
            for _ in range(POWER):
                place = rng.integers(weeks)
                day = np.arange(7 * weeks)
                high = day // 7 == place if kind == "week" else day >= 7 * weeks * 2 // 3
                y, x = changed(rng, 7 * weeks, answers, np.where(high, after, before))
                sums = DailySums.of(y, x) if users == "known" else DailySums.of(y.sum(0), x.sum(0))
                shift, week = found_p(sums)
                named = different_week(sums, draws=199)
                hits += shift <= 0.05 if kind == "shift" else week <= 0.05 and named.week == place
            rows.append((kind, f"{before:g} to {after:g}", users, str(weeks), str(answers), f"{hits / POWER:.0%}"))
    return Table(("change", "rate", "users", "weeks", "answers a week", "found"), tuple(rows))


def write_log(path: Path, rng: np.random.Generator, kind: str) -> None:
    """Write a log of eight weeks with 200 answers each, of which one week differs."""
    count, place = 1600, 4
    day, user = np.arange(count) * 56 // count, rng.integers(0, 150, count)
    language, inside = rng.choice(["de", "en", "fr"], count, p=[0.3, 0.5, 0.2]), day // 7 == place
    affected = {"none": inside, "model": inside, "language": inside & (language == "de")}[kind]
    rate = np.where(affected, 0.6 if kind == "language" else 0.255, 0.065)
    start = datetime(2026, 3, 2, 12, tzinfo=UTC)
    versions = np.where(inside & (kind == "model"), "v2", "v1")
    rows = {
        "event_id": [f"e{n}" for n in range(count)],
        "question_id": [f"q{n}" for n in range(count)],
        "user_id": [f"u{n}" for n in user],
        "kind": ["answer"] * count,
        "time": [start + timedelta(days=int(n)) for n in day],
        "text": np.where(rng.random(count) < rate, "I don't know.", "Yes.").tolist(),
        "attributes": [
            [("language", a), ("model", b)] for a, b in zip(language.tolist(), versions.tolist(), strict=True)
        ],
    }
    kinds = {name: pa.string() for name in rows} | {
        "time": pa.timestamp("us", "UTC"),
        "attributes": pa.map_(pa.string(), pa.string()),
    }
    pq.write_table(pa.table(rows, schema=pa.schema(kinds)), path)


def explanations() -> Table:
    """Return how often a week is named, and which attribute explains it."""
    rows = []
    for kind in ("model", "language", "none"):
        rng, counts = np.random.default_rng(len(kind)), Counter()
        for _ in range(LOGS):
            with tempfile.TemporaryDirectory() as folder:
                write_log(Path(folder, "log.parquet"), rng, kind)
                (change,) = online_metrics(f"{folder}/log.parquet", "idk_rate", by="week").changes
            if change.week is not None and change.week.start == "2026-03-30":
                text = change.week.explanation
                counts["named"] += 1
                counts[
                    "model"
                    if "model=v2" in text
                    else "language"
                    if "language=de" in text
                    else "other"
                    if text
                    else "none"
                ] += 1
        rows.append((kind, *(f"{counts[name] / LOGS:.0%}" for name in ("named", "model", "language", "other", "none"))))
    return Table(("cause", "week named", "model=v2", "language=de", "another value", "no explanation"), tuple(rows))


def simulated_states(rng: np.random.Generator, change: str, answers: int) -> list[str]:
    """Return the states of metrics after 56 days of thumbs and abstentions with a change in the middle."""
    late, found = np.arange(56) >= 28, {}
    gradual = np.clip((np.arange(56) - 14) / 28, 0, 1)
    for name, share, rate, loss in (
        ("thumbs_ratio", 0.1, 0.75, -0.15),
        ("idk_rate", 1.0, 0.1, 0.1),
        ("reformulation_rate", 1.0, 0.12, 0.0),
    ):
        x = rng.poisson(answers * share / 200, (200, 56))
        step = {"none": 0.0, "abrupt": late, "gradual": gradual}[change]
        spread = 100
        center = rate + loss * step
        rates = rng.beta(center * spread, (1 - center) * spread, 56)
        found[METRICS[name]] = DailySums.of(rng.binomial(x, rates), x)
    return [online_signal(one, 0.05).state for one in find_changes(found)]


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
    yield "power", power()
    yield "explanations", explanations()
    yield "coverage", coverage()


if __name__ == "__main__":
    write_tables(tables, Path(__file__).parents[1] / "explain" / "online-metrics.md")
