"""Rates of the gate's verdicts with and without a true loss: simulations, as tables in the page.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/gate_rates.py [--write]

The folder contains ``<collection>/runs/*.run.gz`` and judgments. Queries are drawn with replacement
from populations of differences with a known mean, from fixed seeds.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from page_tables import write_tables
from paired_populations import (
    MEASURES,
    below,
    beyond_worst,
    collapse,
    draw,
    mean_cdf,
    moments,
    pools,
    shape_of,
    shifted,
)

from rankgauge import stats
from rankgauge.gates.non_inferiority import ALPHA_FAIL, LEVEL, queries_to_decide, testable_margin as margin_of
from rankgauge.rendering.tables import Table

PAGE = Path(__file__).parents[1] / "explain" / "gate-rates.md"
MARGIN = 0.02
QUERIES = (25, 50, 100, 200, 400)
DRAWS, REAL_DRAWS = 4000, 400
SHARES = (0.01, 0.02, 0.03, 0.05)
VERDICTS = ("PASS", "PASS unless rare collapse", "INCONCLUSIVE", "FAIL")
_POINTS = 141
# Numbers of queries of samples that state how many are needed; larger stated numbers are not simulated.
NEEDED_FROM, MOST = (50, 100, 200), 3000


def collapse_p(rows: np.ndarray, at: float, lowest: float) -> np.ndarray:
    """Return the p-value of a mean of at most `at` with an unobserved share at `lowest`."""
    queries = rows.shape[1]
    mean, error = moments(rows)
    found = np.zeros(len(rows))
    for point in np.linspace(-8, 6, _POINTS):
        others = mean + point * error
        with np.errstate(divide="ignore", invalid="ignore"):
            unseen = np.where(others > at, (lowest - at) / (lowest - others), 0.0)
        found = np.maximum(found, below(point, queries) * unseen**queries)
    return found


def sided(rows: np.ndarray, at: float, lowest: float) -> tuple[np.ndarray, np.ndarray]:
    """Return p-values of a mean of at most `at`: without and with rare collapses."""
    mean, error = moments(rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_t = below(np.nan_to_num(-(mean - at) / error), rows.shape[1])
    few = np.mean(np.abs(rows) > 1e-12, axis=1) < 1 / 3
    worst = np.maximum(np.minimum(lowest, mean), beyond_worst(rows))
    unseen = np.where(few, lowest, worst)
    usual = np.maximum(by_t, mean_cdf(np.column_stack([rows, unseen]), at))
    return usual, np.maximum(usual, collapse_p(rows, at, lowest))


def p_worse(rows: np.ndarray) -> np.ndarray:
    """Return the p-value of no loss for each row."""
    return sided(-rows, 0.0, -1.0)[1]


def verdicts(rows: np.ndarray, margin: float = MARGIN) -> np.ndarray:
    """Return the verdict of `decide` for each row of gains, as an index of VERDICTS."""
    usual, lower = (p < 1 - LEVEL for p in sided(rows, -margin, -1.0))
    moved = np.abs(rows).max(axis=1) > 1e-12
    fails = moved & (p_worse(rows) < ALPHA_FAIL)
    return np.select([lower, fails, usual], [0, 3, 1], 2)


def shares(found: np.ndarray) -> np.ndarray:
    """Return the share of each verdict."""
    return np.bincount(found, minlength=len(VERDICTS)) / len(found)


def kind_of(name: str, pool: np.ndarray) -> str:
    """Return the group of a real pair and measure."""
    shape = shape_of(pool)
    wide = shape == "dense" and name.endswith("RR@10")
    if shape != "dense":
        return f"real pairs, {shape}"
    return f"real pairs, many differ, {'RR@10' if wide else 'nDCG@10 and AP'}"


def synthetic(mean: float) -> Iterator[tuple[str, np.ndarray]]:
    """Yield populations in which a few queries lose much, or gain much if the mean is 0."""
    sign, word = (1, "lose") if mean else (-1, "gain")
    if mean:
        for share in (0.02, 0.05):
            name = f"{share:.0%} lose {MARGIN / share:.2g}, the others 0"
            yield name, np.array([[mean / share, 0.0], [share, 1 - share]])
    for share in SHARES:
        found = collapse(share, sign * mean, 0.01)
        yield f"{share:.0%} {word} 0.9, the others ±0.01", found * np.array([[sign], [1]])


def groups(real: dict[str, np.ndarray], mean: float, *, grid: bool) -> dict[str, list[np.ndarray]]:
    """Return all populations with this mean by group."""
    found: dict[str, list[np.ndarray]] = {}
    if grid:
        found |= {name: [population] for name, population in synthetic(mean)}
    for name, pool in sorted(real.items(), key=lambda one: kind_of(*one)):
        moved = shifted(pool, mean)
        if moved is not None:
            found.setdefault(kind_of(name, pool), []).append(moved)
    return found


def rates(populations: Sequence[np.ndarray], queries: int, draws: int = REAL_DRAWS) -> np.ndarray:
    """Return the share of each verdict (populations, 4) for samples of a size."""
    rng = np.random.default_rng([queries, len(populations)])
    count = draws if len(populations) > 1 else DRAWS * draws // REAL_DRAWS
    return np.array([shares(verdicts(draw(one, (count, queries), rng))) for one in populations])


def table(
    real: dict[str, np.ndarray],
    mean: float,
    errors: Sequence[Sequence[int]],
    *,
    grid: bool = True,
    sizes: Sequence[int] = QUERIES,
) -> Table:
    """Return the share of each verdict by population and number of queries.

    `errors` are sets of verdicts that are an error together, as places in VERDICTS.
    """
    rows = []
    for name, populations in groups(real, mean, grid=grid).items():
        for queries in sizes:
            found = rates(populations, queries)
            rows.append(
                (
                    name,
                    str(queries),
                    *map(_percent, found.mean(axis=0)),
                    *(_percent(found[:, wrong].sum(axis=1).max()) if len(populations) > 1 else "" for wrong in errors),
                )
            )
    names = (f"highest {' or '.join(VERDICTS[place] for place in wrong)}" for wrong in errors)
    return Table(columns=("differences", "queries", *VERDICTS, *names), rows=tuple(rows))


def unshifted(real: dict[str, np.ndarray]) -> Table:
    """Return the rates for real pairs as they are, by their true mean difference."""
    kinds: dict[str, list[np.ndarray]] = {f"loss of {MARGIN} or more": [], "smaller loss": [], "no loss": []}
    for pool in real.values():
        mean = pool.mean()
        name = list(kinds)[0 if mean <= -MARGIN else 1 if mean < 0 else 2]
        kinds[name].append(np.stack([pool, np.full(len(pool), 1 / len(pool))]))
    rows = []
    for name, populations in kinds.items():
        for queries in QUERIES:
            found = rates(populations, queries)
            wrong = {0: 0, 2: 3}.get(list(kinds).index(name))
            worst = "" if wrong is None else f"{VERDICTS[wrong]} {_percent(found[:, wrong].max())}"
            rows.append((f"{name} ({len(populations)} pairs)", str(queries), *map(_percent, found.mean(axis=0)), worst))
    return Table(columns=("true difference", "queries", *VERDICTS, "highest rate of an error"), rows=tuple(rows))


def several(real: dict[str, np.ndarray], queries: int = 100) -> Table:
    """Return how often one of several measures fails without a loss, with Holm and without."""
    pairs: dict[str, list[np.ndarray]] = {}
    for name, pool in real.items():
        if shape_of(pool) == "dense":
            pairs.setdefault(name.rsplit(", ", 1)[0], []).append(pool - pool.mean())
    rng = np.random.default_rng([queries, len(MEASURES)])
    found = []
    for columns in pairs.values():
        if len(columns) < 3:
            continue
        places = rng.integers(len(columns[0]), size=(2 * REAL_DRAWS, queries))
        p = np.stack([p_worse(column[places]) for column in columns[:3]])
        least = p.min(axis=0)
        found.append((np.mean(least < ALPHA_FAIL), np.mean(least < ALPHA_FAIL / 3)))
    alone, together = np.mean(found, axis=0)
    return Table(
        columns=("pairs", "queries", "any FAIL without correction", "with Holm's correction"),
        rows=((str(len(found)), str(queries), _percent(alone), _percent(together)),),
    )


def anchored(real: dict[str, np.ndarray]) -> Table:
    """Return how often a run without a loss fails if the baseline differs a little from an anchor.

    The baseline has a quarter of the differences of the run, in other queries, and no true gain.
    """
    chosen = [pool - pool.mean() for pool in real.values() if shape_of(pool) == "dense"]
    rows = []
    for queries in (50, 100, 200):
        rng = np.random.default_rng([queries, 6])
        found = []
        for pool in chosen:
            places = rng.integers(len(pool), size=(5 * REAL_DRAWS, queries))
            earlier = rng.permutation(pool)[places] / 4
            checks = [p_worse(gains) < ALPHA_FAIL for gains in (pool[places], pool[places] + earlier)]
            found.append((checks[0].mean(), (checks[0] | checks[1]).mean()))
        one, either = (np.array(column) for column in zip(*found, strict=True))
        rows.append(
            (
                str(len(chosen)),
                str(queries),
                _percent(one.mean()),
                _percent(one.max()),
                _percent(either.mean()),
                _percent(either.max()),
            )
        )
    return Table(
        columns=(
            "pairs and measures",
            "queries",
            "FAIL with the baseline",
            "highest",
            "FAIL with the baseline or the anchor",
            "highest of either",
        ),
        rows=tuple(rows),
    )


def power(real: dict[str, np.ndarray]) -> Table:
    """Return how often a run without a loss passes the median stated testable margin."""
    normal = np.random.default_rng(4).normal(size=5000)
    chosen = {f"normal, sd {sd}": sd * normal for sd in (0.01, 0.03, 0.1, 0.3)} | {
        "real pairs, many differ, nDCG@10 and AP": None,
        "real pairs, many differ, RR@10": None,
    }
    rows = []
    for name, pool in chosen.items():
        mine = [pool] if pool is not None else [p for n, p in real.items() if kind_of(n, p) == name]
        cells = []
        for queries in QUERIES:
            rng = np.random.default_rng([queries, 8])
            passed = []
            for one in mine:
                some = [
                    margin_of(stats.non_inferiority(row, MARGIN, LEVEL, lowest=-1.0), queries)
                    for row in draw(shifted(one, 0.0), (9, queries), rng)
                ]
                margin = float(np.median(some))
                count = 2000 if len(mine) == 1 else 100
                rows_of = draw(shifted(one, 0.0), (count, queries), rng)
                passed.append(np.mean(sided(rows_of, -margin, -1.0)[1] < 1 - LEVEL))
            cells.append(_percent(np.mean(passed)))
        rows.append((name, *cells))
    return Table(columns=("differences", *(f"{n} queries" for n in QUERIES)), rows=tuple(rows))


def needed(real: dict[str, np.ndarray], pilots: int = 8) -> Table:
    """Return how often the number of queries stated with an inconclusive verdict decides.

    Samples have a true gain of 0, a loss of twice the margin, or that of the pair. The later
    samples, of the stated number of queries, have the observed mean of the first as the true one.
    """
    found: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for name, pool in real.items():
        populations = (
            shifted(pool, 0.0),
            shifted(pool, -2 * MARGIN),
            np.stack([pool, np.full(len(pool), 1 / len(pool))]),
        )
        for queries in NEEDED_FROM:
            rng = np.random.default_rng([queries, len(pool), 7])
            samples = [draw(one, (pilots, queries), rng) for one in populations if one is not None]
            rows = np.concatenate(samples)
            for row in rows[np.isin(verdicts(rows), (1, 2))]:
                bounds = stats.non_inferiority(row, MARGIN, LEVEL, lowest=-1.0, highest=1.0)
                number, later = queries_to_decide(bounds, queries), shifted(pool, bounds.mean)
                if number is not None and number <= MOST and later is not None:
                    decided = np.isin(verdicts(draw(later, (60, number), rng)), (0, 3)).mean()
                    for group in (kind_of(name, pool), "all real pairs"):
                        found.setdefault((group, queries), []).append((number, decided))
    rows_of = []
    for (group, queries), some in sorted(found.items(), key=lambda one: (one[0][0] == "all real pairs", one[0])):
        numbers, decided = (np.array(column) for column in zip(*some, strict=True))
        cells = (f"{np.median(numbers):.0f}", _percent(decided.mean()), _percent((decided >= 0.75).mean()))
        rows_of.append((group, str(queries), str(len(some)), *cells, _percent(decided.min())))
    columns = ("differences", "queries", "statements", "stated: median", "PASS or FAIL: mean", "75% or more", "lowest")
    return Table(columns=columns, rows=tuple(rows_of))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def tables(data: Path) -> Iterator[tuple[str, Table]]:
    """Yield the tables of the page."""
    passed = ([0], [0, 1])
    real = dict(pools(data))
    counts: dict[str, list[float]] = {}
    for name, pool in real.items():
        counts.setdefault(kind_of(name, pool), []).append(float(pool.std(ddof=1)))
    yield (
        "pairs",
        Table(
            columns=("group", "pairs and measures", "standard deviation: median", "lowest", "highest"),
            rows=tuple(
                (name, str(len(sds)), *(f"{f(sds):.3f}" for f in (np.median, min, max)))
                for name, sds in sorted(counts.items())
            ),
        ),
    )
    yield "margin", table(real, -MARGIN, passed)
    yield "none", table(real, 0.0, ([3],))
    yield "twice", table(real, -2 * MARGIN, passed, grid=False)
    yield "unshifted", unshifted(real)
    yield "several", several(real)
    yield "anchor", anchored(real)
    yield "power", power(real)
    yield "needed", needed(real)


if __name__ == "__main__":
    write_tables(tables, PAGE)
