"""Time of comparisons and statistics compared with ranx and SciPy, as Markdown tables.

    python benchmarks/comparing.py [--large] [--write PAGE]

Judgments and runs are prepared in each engine's fastest form before timing; timed is the single
call that evaluates, tests, and corrects. Each engine runs in a separate process. If ranx is not
installed, its column is empty. Its Fisher test is the same sign-flip randomization test of every
pair, without correction, intervals, or wins/ties/losses. The second table starts from evaluations:
a new comparison, and the change of one query in all runs. The third table is about statistics: each
with the part that cannot be avoided (drawing its random numbers with NumPy, or evaluating the runs).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from page import number, put, table
from scipy.stats import bootstrap, permutation_test

import rankgauge
from rankgauge import stats

TEN = (
    "ndcg@10",
    "map",
    "mrr",
    "precision@5",
    "precision@10",
    "recall@5",
    "recall@10",
    "ndcg@5",
    "hit_rate@1",
    "hit_rate@5",
)
OURS = {
    "ndcg@10": "nDCG@10",
    "ndcg@5": "nDCG@5",
    "map": "AP",
    "mrr": "RR",
    "precision@5": "P@5",
    "precision@10": "P@10",
    "recall@5": "R@5",
    "recall@10": "R@10",
    "hit_rate@1": "Success@1",
    "hit_rate@5": "Success@5",
}
# queries, documents per run, runs, measures, permutations
SMALL = ((7000, 100, 2, 1, 10_000), (1000, 20, 10, 10, 1_000))
LARGE = ((1000, 20, 100, 10, 10_000),)
TINY = ((5, 4, 2, 1, 10),)
# queries, runs, measures, from evaluations
FROM_EVALUATIONS = ((7000, 3, 4), (1000, 10, 10))
# queries of statistics; queries, documents per run, and draws
STATISTICS = (50, 200, 7000)
FUSED = (200, 100, 10_000)
TIMEOUT = 200  # seconds for ranx
_BATCH = 1 << 16  # random numbers at once

Columns = tuple[list[str], list[str], list[float]]


def made(queries: int, depth: int, runs: int) -> tuple[Columns, list[Columns]]:
    """Return seeded random judgments and runs as columns."""
    rng = np.random.default_rng(7)
    names = [f"q{q}" for q in range(queries) for _ in range(10)]
    docs = [f"d{d}" for _ in range(queries) for d in rng.choice(3 * depth, 10, replace=False)]
    qrels = (names, docs, rng.integers(0, 3, len(docs)).tolist())
    found = []
    for _ in range(runs):
        rows = [f"q{q}" for q in range(queries) for _ in range(depth)]
        ids = [f"d{d}" for _ in range(queries) for d in rng.permutation(3 * depth)[:depth]]
        found.append((rows, ids, np.tile(np.arange(depth, 0, -1.0), queries).tolist()))
    return qrels, found


def _dicts(columns: Columns) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for query, doc, value in zip(*columns, strict=True):
        table.setdefault(query, {})[doc] = value
    return table


def _timed(engine: str, work: tuple[int, int, int, int, int]) -> float:
    queries, depth, runs, measures, draws = work
    qrels, found = made(queries, depth, runs)
    names = list(islice(TEN, measures))
    if engine == "rankgauge":
        truth = rankgauge.Qrels.from_columns(*qrels)
        ready = [rankgauge.Run.from_columns(*run, name=f"s{n}") for n, run in enumerate(found)]
        start = time.process_time()
        ours = [OURS[name] for name in names]
        rankgauge.compare(truth, ready, ours, tested=ours, pairs="all", draws=draws)
        return time.process_time() - start
    import ranx

    truth = ranx.Qrels(_dicts((qrels[0], qrels[1], [int(g) for g in qrels[2]])))
    ready = [ranx.Run(_dicts(run), name=f"s{n}") for n, run in enumerate(found)]
    ranx.compare(truth, ready[:2], names[:1], stat_test="fisher", n_permutations=10)  # compile
    start = time.process_time()
    ranx.compare(truth, ready, names, stat_test="fisher", n_permutations=draws)
    return time.process_time() - start


def evaluations_of(queries: int, runs: int, measures: int) -> list[rankgauge.Evaluation]:
    """Return seeded random evaluations, in which all queries differ."""
    rng = np.random.default_rng(7)
    ids, names = [f"q{q}" for q in range(queries)], [OURS[name] for name in islice(TEN, measures)]
    return [
        rankgauge.Evaluation.from_values(f"s{run}", ids, {name: rng.random(queries).tolist() for name in names})
        for run in range(runs)
    ]


def _least(action: Callable[[], object], times: int = 7) -> float:
    """Return the least CPU milliseconds of several calls."""
    least = float("inf")
    for _ in range(times):
        start = time.process_time()
        action()
        least = min(least, time.process_time() - start)
    return 1000 * least


def _from_evaluations(work: tuple[int, int, int]) -> tuple[str, ...]:
    queries, runs, measures = work
    evaluations, changed = evaluations_of(queries, runs, measures), evaluations_of(1, runs, measures)
    options = {"tested": evaluations[0].measures}
    comparison = rankgauge.compare(evaluations, **options)
    new = _least(lambda: rankgauge.compare(evaluations, **options))
    return (f"{runs} × {queries:,} × {measures}", number(new), number(_least(lambda: comparison.updated(changed))))


def _drawn(number: int, draw: Callable[[int], object], most: int = _BATCH) -> Callable[[], None]:
    """Return an action that draws so many random numbers, in batches that fit the cache."""

    def draw_all() -> None:
        for start in range(0, number, most):
            draw(min(most, number - start))

    return draw_all


def _measured(
    name: str, times: int, ours: Callable[[], object], *others: Callable[[], object] | None
) -> tuple[str, ...]:
    """Return a row: CPU milliseconds of a statistic, of the least that it needs, and of a peer."""
    took, floor, theirs = (None if action is None else _least(action, times) for action in (ours, *others))
    ratios = floor and took / floor, theirs and theirs / took
    return (name, *("–" if value is None else number(value) for value in (took, floor, ratios[0], theirs, ratios[1])))


def _of_draws(queries: int, draws: int) -> Iterator[tuple[str, ...]]:
    """Measure statistics with random numbers."""
    rng, times = np.random.default_rng(7), 7 if queries < 1000 else 2
    table = rng.random((queries, 10)).round(2)
    column, batch = table[:, 0] - table[:, 1], max(1, _BATCH // queries)
    what = {"n_resamples": draws, "batch": batch}
    flipped = {**what, "permutation_type": "samples"}
    integers = _drawn(queries * draws, lambda size: rng.integers(queries, size=size))
    bits = _drawn(queries * draws // 64, rng.bit_generator.random_raw)
    for method in ("percentile", "bca"):
        yield _measured(
            f"{method.replace('bca', 'BCa')} interval, {queries:,}",
            times,
            lambda: stats.bootstrap_interval(column, draws=draws, method=method),  # noqa: B023 - called at once
            integers,
            lambda: bootstrap((column,), np.mean, method=method, **what),  # noqa: B023 - called at once
        )
    yield _measured(
        f"randomization test, {queries:,}",
        times,
        lambda: stats.randomization_test(column, draws),
        bits,
        lambda: permutation_test((column,), np.mean, **flipped),
    )
    yield _measured(f"max-T, {queries:,} × 10", times, lambda: stats.max_t(table - 0.5, draws), bits, None)
    for systems in (2, 5, 10):
        own = np.ascontiguousarray(table[:, :systems])
        some = min(draws, max(1, _BATCH // own.size))
        copies = np.broadcast_to(own, (some, *own.shape))
        yield _measured(
            f"Tukey HSD, {queries:,} × {systems}",
            times,
            lambda: stats.tukey_hsd(own, draws),  # noqa: B023 - called at once
            _drawn(draws, lambda count: rng.permuted(copies[:count], axis=2), some),  # noqa: B023 - called at once
            None,
        )


def _of_runs(queries: int, depth: int) -> Iterator[tuple[str, ...]]:
    """Measure statistics of several runs."""
    for runs in (2, 5, 10):
        qrels, found = made(queries, depth, runs)
        truth = rankgauge.Qrels.from_columns(*qrels)
        ready = [rankgauge.Run.from_columns(*run, name=f"s{n}") for n, run in enumerate(found)]
        yield _measured(
            f"`reliability`, {runs} runs of {queries:,} × {depth:,}",
            5,
            lambda: rankgauge.reliability(truth, ready),  # noqa: B023 - called at once
            lambda: [rankgauge.evaluate(truth, run, ["AP", "nDCG@10"]) for run in ready],  # noqa: B023
            None,
        )
    for runs, method in ((2, "rrf"), (2, "wsum"), (3, "wsum")):
        qrels, found = made(queries, depth, runs)
        truth = rankgauge.Qrels.from_columns(*qrels)
        ready = [rankgauge.Run.from_columns(*run, name=f"s{n}") for n, run in enumerate(found)]
        points = len(rankgauge.tune_fusion(truth, ready, method=method).candidates)
        yield _measured(
            f"`tune_fusion`, {method}, {runs} runs, {points} points",
            5,
            lambda: rankgauge.tune_fusion(truth, ready, method=method),  # noqa: B023 - called at once
            None,
            _tuned_by_ranx(qrels, found) if method == "wsum" else None,
        )


def _tuned_by_ranx(qrels: Columns, found: Sequence[Columns]) -> Callable[[], object] | None:
    """Return the search of ranx for weights in steps of 0.1, without folds; None if it is not installed."""
    if importlib.util.find_spec("ranx") is None:
        return None
    import ranx

    truth = ranx.Qrels(_dicts((qrels[0], qrels[1], [int(grade) for grade in qrels[2]])))
    ready = [ranx.Run(_dicts(run), name=f"s{n}") for n, run in enumerate(found)]
    words = {"norm": "min-max", "method": "wsum", "metric": "ndcg@10", "step": 0.1, "show_progress": False}
    ranx.optimize_fusion(truth, ready, **words)  # compile
    return lambda: ranx.optimize_fusion(truth, ready, **words)


def _apart(engine: str, work: tuple[int, int, int, int, int]) -> float | None:
    """Return the CPU seconds of one call in a separate process; None after a timeout."""
    words = [sys.executable, __file__, "--engine", engine, "--work", json.dumps(work)]
    limit = None if engine == "rankgauge" else TIMEOUT
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    return float(done.stdout)


def _row(work: tuple[int, int, int, int, int]) -> tuple[str, ...]:
    queries, _, runs, measures, draws = work
    what = f"{runs} × {queries:,} × {measures}, {draws:,}"
    ours = _apart("rankgauge", work)
    if importlib.util.find_spec("ranx") is None:
        return (what, number(ours), "–", "–")
    theirs = _apart("ranx", work)
    if theirs is None:
        return (what, number(ours), f"over {TIMEOUT} s", "–")
    return (what, number(ours), number(theirs), number(theirs / ours))


def main() -> None:
    """Print the table, or time one engine."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--large", action="store_true", help="also compare 4,950 pairs in ten measures")
    parser.add_argument("--tiny", action="store_true", help="only a few rows, as a test of the script")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table into this page")
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.engine:
        print(_timed(given.engine, given.work))
        return
    works = TINY if given.tiny else SMALL + LARGE * given.large
    head = ("runs × queries × measures, permutations", "rankgauge s", "ranx s", "ranx / rankgauge")
    text = table(head, map(_row, works))
    sizes = ((20, 2, 1),) if given.tiny else FROM_EVALUATIONS
    ours = table(("runs × queries × tested measures", "compare ms", "updated ms"), map(_from_evaluations, sizes))
    queries, depth, draws = (20, 10, 100) if given.tiny else FUSED
    rows = [row for queries in ((20,) if given.tiny else STATISTICS) for row in _of_draws(queries, draws)]
    head = ("statistic, queries × systems", "ms", "at least, ms", "ms / at least", "peer ms", "peer / ours")
    statistics = table(head, [*rows, *_of_runs(queries, depth)])
    print(text, ours, statistics, sep="\n")
    if given.write:
        for name, written in (("comparing", text), ("updating", ours), ("statistics", statistics)):
            put(given.write, name, written)


if __name__ == "__main__":
    main()
