"""Rates of the gate's verdicts with and without a true loss: a simulation, in Markdown.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/gate_rates.py

The folder contains ``<collection>/trec/qrels.txt`` and ``<collection>/runs/*.run.gz``. Differences
between real pairs of runs are centered, so that the true difference is known; queries are drawn
from them with replacement, from fixed seeds.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import rankgauge
from rankgauge import stats
from rankgauge.gates.non_inferiority import ALPHA_FAIL, LEVEL, decide
from rankgauge.rendering.tables import Table, to_markdown
from rankgauge.stats.intervals import unseen_value, weighted_mean_cdf

BM25, PLAIN = "bm25-lucene-k0.9-b0.4-stem", "bm25-robertson-k1.5-b0.75-nostem"
DENSE, HYBRID = "minilm-l6-v2-cosine", "rrf-bm25-minilm-k60"
PAIRS = (
    ("cranfield", BM25, PLAIN), ("cranfield", BM25, HYBRID), ("cranfield", BM25, DENSE),
    ("cisi", BM25, PLAIN), ("cisi", BM25, HYBRID), ("cisi", BM25, DENSE), ("npl", BM25, PLAIN),
)  # fmt: skip
MEASURES = ("nDCG@10", "RR@10", "P@10", "R@100", "AP")
MARGIN = 0.02
QUERIES = (30, 50, 100, 200, 400, 800)
DRAWS = 1500
MARGINS = (0.01, 0.02, 0.05)
# Number of draws for each number of queries.
CELLS = {25: 2000, 50: 2000, 200: 2000, 1000: 1000, 5000: 400}
SHARES = (0.2, 0.1, 0.05, 0.02)
REAL = (
    "cranfield: bm25 stemmed to dense",
    "cisi: bm25 stemmed to dense",
    "npl: bm25 stemmed to bm25 plain",
)
SPARSE = ("cranfield: bm25 stemmed to dense", "cranfield: bm25 stemmed to dense, RR@10")
_ANY, _BOTH = "any drop", "drop over 2% and p < .05"


@dataclass(frozen=True)
class Pool:
    """Queries of a real pair of runs: values before, and differences with a known mean.

    Attributes:
        name: The collection and what was changed.
        before: (Q, M) values of the first run.
        differences: (Q, M) differences, centered to mean 0.
    """

    name: str
    before: np.ndarray
    differences: np.ndarray

    @property
    def spread(self) -> float:
        """Standard deviation of the differences for the first measure."""
        return float(self.differences[:, 0].std(ddof=1))


def pool(name: str, qrels: Path, runs: Sequence[Path], measures: Sequence[str] = MEASURES) -> Pool:
    """Return the pool of one pair."""
    judgments = rankgauge.read_qrels(qrels)
    before, after = (
        rankgauge.evaluate(judgments, rankgauge.read_run(run), measures).per_query for run in runs
    )
    differences = after - before
    return Pool(name, before, differences - differences.mean(axis=0))


def pools(data: Path) -> Iterator[Pool]:
    """Yield the pools of the shared collections and of the bundled sample."""
    for collection, one, other in PAIRS:
        folder = data / collection
        runs = [folder / "runs" / f"{run}.run.gz" for run in (one, other)]
        yield pool(
            f"{collection}: {_short(one)} to {_short(other)}", folder / "trec" / "qrels.txt", runs
        )
    sample = rankgauge.sample_path("qrels.txt").parent
    runs = [sample / "runs" / f"{run}.run" for run in ("bm25", "keyword")]
    yield pool("sample: bm25 to keyword", sample / "qrels.txt", runs)


def _short(run: str) -> str:
    return {BM25: "bm25 stemmed", PLAIN: "bm25 plain", DENSE: "dense", HYBRID: "hybrid"}[run]


def verdict(gains: np.ndarray, margin: float, lowest: float = -1.0) -> tuple[str, bool]:
    """Return the verdict of `decide` for one measure, and whether t alone would pass."""
    by_t = stats.t_interval(gains, 2 * LEVEL - 1).low > -margin
    unseen = np.append(gains, unseen_value(gains, lowest))
    if by_t and weighted_mean_cdf(unseen, -margin) < 1 - LEVEL:
        return "PASS", True
    moved = bool(gains.any())
    fails = moved and stats.t_test(gains).p / 2 < ALPHA_FAIL and gains.mean() < 0
    return "FAIL" if fails else "INCONCLUSIVE", by_t


def verdicts(
    of: Pool, queries: int, loss: float, *, draws: int, seed: int
) -> dict[str, Counter[str]]:
    """Count the verdicts of the gate and of two simple rules for a true loss in one measure."""
    rng = np.random.default_rng([seed, queries])
    said = {rule: Counter[str]() for rule in ("gate", _ANY, _BOTH)}
    for _ in range(draws):
        rows = rng.integers(len(of.differences), size=queries)
        gains = of.differences[rows, 0] - loss
        said["gate"][verdict(gains, MARGIN)[0]] += 1
        drop = -gains.mean()
        said[_ANY]["FAIL" if drop > 0 else "PASS"] += 1
        sure = drop > 0.02 * of.before[rows, 0].mean() and stats.t_test(gains).p < 0.05
        said[_BOTH]["FAIL" if sure else "PASS"] += 1
    return said


def several(of: Pool, queries: int, draws: int, seed: int) -> tuple[int, int]:
    """Count draws in which one of five measures fails with no true loss: with Holm, and without."""
    rng = np.random.default_rng([seed, queries, 5])
    together = alone = 0
    for _ in range(draws):
        rows = rng.integers(len(of.differences), size=queries)
        columns = [of.differences[rows, number] for number in range(of.differences.shape[1])]
        margins = [MARGIN] * len(columns)
        together += any(
            found.verdict == "FAIL" for found in decide(columns, margins, [-1.0] * len(columns))
        )
        alone += any(verdict(column, MARGIN)[0] == "FAIL" for column in columns)
    return together, alone


def shapes(found: Sequence[Pool]) -> Iterator[tuple[str, np.ndarray, float]]:
    """Yield distributions of differences, and the share of queries that change."""
    rng = np.random.default_rng(7)
    every = {of.name: of.differences for of in found}
    for name in REAL:
        yield f"all: {name}", every[name][:, 0], 1.0
    yield "all: normal, sd 0.1", rng.normal(0, 0.1, 20_000), 1.0
    yield "all: exponential losses, sd 0.1", -rng.exponential(0.1, 20_000), 1.0
    yield "all: lognormal losses, sd 0.1", -np.clip(rng.lognormal(-3, 1, 20_000), 0, 1), 1.0
    for share in SHARES:
        for name in SPARSE:
            column = 1 if name.endswith("RR@10") else 0
            values = every[name.removesuffix(", RR@10")][:, column]
            yield f"{share:.0%}: {name}", values, share
        yield f"{share:.0%}: binary, as in Success@5", np.array([-1.0, 1.0]), share


def drawn(
    shape: tuple[str, np.ndarray, float], queries: int, mean: float, *, draws: int, seed: int
) -> np.ndarray | None:
    """Return (draws, queries) gains of this shape and true mean; None if the mean is impossible.

    If all queries change, differences are shifted. If few change, each changed query gets the loss
    or gain of some real query, and the share of losses follows from the mean.
    """
    _, values, share = shape
    rng = np.random.default_rng([seed, queries])
    if share == 1:
        return rng.choice(values - values.mean() + mean, (draws, queries))
    losses, gains = values[values < 0], values[values > 0]
    lost = (mean / share - gains.mean()) / (losses.mean() - gains.mean())
    if not 0 <= lost <= 1:
        return None
    size = (draws, queries)
    changed = np.where(rng.random(size) < lost, rng.choice(losses, size), rng.choice(gains, size))
    return np.where(rng.random(size) < share, changed, 0.0)


def cells(
    shape: tuple[str, np.ndarray, float], queries: int, margin: float, draws: int
) -> tuple[str, ...] | None:
    """Return a row: rates of PASS by t, PASS, and INCONCLUSIVE, with and without a loss.

    Draws without any changed value are excluded: they are IDENTICAL, or without evidence.
    """
    row: list[str] = []
    for mean in (-margin, 0.0):
        gains = drawn(shape, queries, mean, draws=draws, seed=round(1000 * margin))
        if gains is None:
            return None
        said = [verdict(one, margin) for one in gains if one.any()]
        counted = Counter(name for name, _ in said)
        row += [_percent(sum(by_t for _, by_t in said), len(said))]
        row += [_percent(counted[name], len(said)) for name in ("PASS", "INCONCLUSIVE")]
    return (shape[0], str(queries), f"{margin:g}", *row)


def rare_losses(found: Sequence[Pool]) -> Table:
    """Return the rates for a true loss equal to the margin and for none, by shape."""
    rows = [
        cells(shape, queries, margin, draws)
        for shape in shapes(found)
        for queries, draws in CELLS.items()
        for margin in MARGINS
    ]
    return Table(
        columns=(
            "changed queries", "queries", "margin",
            "loss = margin: t passes", "PASS", "INCONCLUSIVE",
            "no loss: t passes", "PASS ", "INCONCLUSIVE ",
        ),
        rows=tuple(row for row in rows if row is not None),
    )  # fmt: skip


def _percent(number: int, whole: int) -> str:
    return f"{100 * number / whole:.1f}%"


def rates(found: Sequence[Pool], loss: float, sizes: Sequence[int] = QUERIES) -> Table:
    """Return the rates by number of queries: over all pools, and in the worst pool."""
    rows = []
    bad = "FAIL" if loss == 0 else "PASS"
    for queries in sizes:
        by_pool = [verdicts(of, queries, loss, draws=DRAWS, seed=n) for n, of in enumerate(found)]
        whole = DRAWS * len(found)
        total = {rule: sum((said[rule] for said in by_pool), Counter()) for rule in by_pool[0]}
        gate = [
            _percent(total["gate"][verdict], whole) for verdict in ("PASS", "INCONCLUSIVE", "FAIL")
        ]
        worst = max(said["gate"][bad] for said in by_pool)
        rows.append((
            str(queries), *gate, _percent(worst, DRAWS),
            *(_percent(total[rule][bad], whole) for rule in (_ANY, _BOTH)),
        ))  # fmt: skip
    return Table(
        columns=(
            "queries", "PASS", "INCONCLUSIVE", "FAIL", f"worst pair: {bad}",
            *(f"{rule}: {bad}" for rule in (_ANY, _BOTH)),
        ),
        rows=tuple(rows),
    )  # fmt: skip


def main() -> None:
    """Print the tables."""
    data = os.environ.get("RANKGAUGE_TEST_DATA", "")
    if not data:
        sys.exit("set RANKGAUGE_TEST_DATA to the folder of the collections")
    found = list(pools(Path(data)))
    spreads = Table(
        columns=("pair", "queries", "standard deviation"),
        rows=tuple((of.name, str(len(of.differences)), f"{of.spread:.3f}") for of in found),
    )
    corrected = [several(of, 100, DRAWS, n) for n, of in enumerate(found)]
    together, alone = (sum(counts) for counts in zip(*corrected, strict=True))
    whole = DRAWS * len(found)
    sys.stdout.write(
        f"## The pairs\n\n{to_markdown(spreads)}\n"
        f"## No true loss\n\n{to_markdown(rates(found, 0.0))}\n"
        f"## A true loss of twice the margin\n\n{to_markdown(rates(found, 2 * MARGIN))}\n"
        "## Few changed queries, or skewed losses\n\n"
        f"{to_markdown(rare_losses(found))}\n"
        "## Five measures, no true loss, 100 queries\n\n"
        f"At least one `FAIL` in {_percent(together, whole)} of draws; without correction, "
        f"in {_percent(alone, whole)}.\n"
    )


if __name__ == "__main__":
    main()
