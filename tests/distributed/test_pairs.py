"""Comparisons from sums of partitions equal `rankgauge.compare`, for any split."""

import math
import random
from dataclasses import replace
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rankgauge
from rankgauge.comparison.differences import Design
from rankgauge.distributed.comparison import compare_sums, spread_job
from rankgauge.distributed.worker import PairJob, PairSums, SpreadSums, Sum, read_sums, sum_pairs, sum_spreads
from rankgauge.errors import InputError
from rankgauge.evaluation import Evaluation
from rankgauge.stats import poisson_bootstrap_interval

pa = pytest.importorskip("pyarrow", reason="without pyarrow no batch is made")

MEASURES = ("nDCG@10", "RR", "FirstRel", "GMAP")


def table_of(values, measures=MEASURES):
    """Return rows sorted by query; `values` maps run to query to the values of the measures."""
    rows = sorted(
        (query.encode(), run, query, *numbers)
        for run, by_query in values.items()
        for query, numbers in by_query.items()
    )
    columns = list(zip(*(row[1:] for row in rows), strict=True))
    return pa.table(
        {
            "run": pa.array(columns[0]),
            "query_id": pa.array(columns[1]),
            **{
                measure: pa.array([None if math.isnan(v) else v for v in column], pa.float64())
                for measure, column in zip(measures, columns[2:], strict=True)
            },
        }
    )


def parts_of(values, measures, cuts):
    """Return partitions of whole queries, each as batches that split queries."""
    queries = sorted({q for of_run in values.values() for q in of_run})
    bounds = [0, *sorted({cut % (len(queries) + 1) for cut in cuts}), len(queries)]
    for start, stop in pairwise(bounds):
        chosen = set(queries[start:stop])
        part = {run: {q: v for q, v in of.items() if q in chosen} for run, of in values.items()}
        yield table_of(part, measures).to_batches(max_chunksize=3) if chosen else []


def compared(values, measures=MEASURES, cuts=(), *, skip=False, **words):
    names = tuple(values)
    design = Design(**({"tested": measures[:1], "baseline": names[0], "test": "t"} | words))
    shown = tuple(dict.fromkeys([*map(str, design.tested), *measures]))
    job = PairJob(shown, names, tuple(design.pairs_of(names)), skip)
    parts = list(parts_of(values, measures, cuts))
    random.Random(len(cuts)).shuffle(parts)
    batches = [batch for part in parts for batch in sum_pairs(part, job)]
    means = read_sums((text for batch in batches for text in batch["sums"].to_pylist()), Sum)
    sums = read_sums((text for batch in batches for text in batch["pairs"].to_pylist()), PairSums)
    around = spread_job(job, sums, design)
    batches = [batch for part in parts for batch in sum_spreads(part, around)]
    spreads = read_sums((text for batch in batches for text in batch["sums"].to_pylist()), SpreadSums)
    return compare_sums(names, design, means, sums, spreads, skip_undefined=skip)


def evaluations_of(values, measures, undefined):
    found = []
    for run, by_query in values.items():
        columns = dict(zip(measures, zip(*by_query.values(), strict=True), strict=True))
        made = Evaluation.from_values(run, list(by_query), columns)
        found.append(replace(made, policies=rankgauge.Policies(undefined=undefined)))
    return found


def random_values(queries, seed, runs=("b", "a", "c")):
    rng = random.Random(seed)
    steps = [0.0, 1 / 3, 0.1, 0.7, 1.0]
    return {
        run: {
            f"q{n}": (
                rng.choice(steps),
                1 / rng.randint(1, 9),
                math.nan if rng.random() < 0.2 else float(rng.randint(1, 5)),
                rng.random() ** 4,
            )
            for n in range(queries)
        }
        for run in runs
    }


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("queries", [2, 5, 9, 200])
def test_numbers_are_those_of_compare_to_the_last_bit(queries, skip):
    values = random_values(queries, queries)
    words = {"pairs": "all", "tested": ("RR", "FirstRel"), "interval": "t", "baseline": "a"}
    mine = compared(values, cuts=(1, 4, 90), skip=skip, **words)
    undefined = "skip" if skip else "zero"
    theirs = rankgauge.compare(evaluations_of(values, MEASURES, undefined), test="t", **words)
    for one, other in zip(mine.differences, theirs.differences, strict=True):
        # NumPy's logarithms may differ in the last bit.
        exact = str(one.measure) != "GMAP"
        for name in (
            "run",
            "baseline",
            "measure",
            "mean",
            "baseline_mean",
            "difference",
            "low",
            "high",
            "p",
            "corrected",
            "sd",
            "effect",
            "queries",
            "wins",
            "ties",
            "losses",
            "verdict",
            "alpha",
            "unit",
        ):
            a, b = getattr(one, name), getattr(other, name)
            close = not exact and isinstance(a, float) and a == pytest.approx(b, rel=1e-13)
            assert a == b or close or (a != a and b != b), name  # noqa: PLR0124 - NaN
    assert mine.means() == {run: dict(theirs.means()[run]) for run in mine.means()}
    assert set(mine.sentences[1:]) <= set(theirs.sentences)


@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.1, 0.3, 1 / 3, 1.0])] * 2), min_size=2, max_size=40),
    st.lists(st.integers(0, 40), max_size=5),
)
def test_no_split_of_queries_changes_anything(pairs, cuts):
    values = {run: {f"q{n}": (pair[place],) for n, pair in enumerate(pairs)} for place, run in enumerate("ab")}
    words = {"interval": "percentile", "draws": 50}
    whole = compared(values, ("RR",), **words)
    assert compared(values, ("RR",), cuts, **words).to_dict() == whole.to_dict()


def test_moments_are_those_of_the_definition():
    values = random_values(300, 3, ("a", "b"))
    found = compared(values, interval="t").difference("b", "RR")
    moved = [values["b"][q][1] - values["a"][q][1] for q in values["a"]]
    mean = sum(moved) / 300
    sd = math.sqrt(sum((d - mean) ** 2 for d in moved) / 299)
    assert (found.difference, found.sd) == pytest.approx((mean, sd), rel=1e-12)
    half = NormalDist().inv_cdf(0.975) * sd / math.sqrt(300)
    assert found.high - found.low == pytest.approx(2 * half, rel=0.01)


def test_the_bootstrap_is_that_of_one_machine():
    values = random_values(500, 4, ("a", "b"))
    for baseline in "ab":
        mine = compared(values, cuts=(3, 77), interval="percentile", draws=64, seed=9, baseline=baseline)
        found = mine.differences[0]
        other = "b" if baseline == "a" else "a"
        queries = list(values["a"])
        moved = [values[other][q][0] - values[baseline][q][0] for q in queries]
        exact = poisson_bootstrap_interval(moved, queries, draws=64, seed=9)
        assert (found.low, found.high) == (exact.low, exact.high)
    assert "percentile bootstrap, 64 draws, seed 9" in mine.differences_table().notes[-1]


def test_skewed_differences_and_few_changes_are_reported_as_by_compare():
    for changed in (20, 3):
        values = {"a": {f"q{n}": (0.0,) for n in range(5000)}}
        values["b"] = {q: (float(n < changed),) for n, q in enumerate(values["a"])}
        mine = compared(values, ("RR",))
        theirs = rankgauge.compare(evaluations_of(values, ("RR",), "zero"), test="t", interval="t")
        assert mine.warnings == theirs.warnings != ()
        assert repr(mine.differences) == repr(theirs.differences)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda rows: rows[:-1], "run 'b' has no value for query 'q9', which another run has"),
        (lambda rows: [*rows, rows[-1]], "run 'b' has 2 rows for query 'q9'"),
        (lambda rows: [("a", None, 1.0), *rows], "a query id is missing in the values"),
    ],
)
def test_rows_that_do_not_pair_are_refused(fault, message):
    rows = fault([(run, f"q{n}", 0.5) for n in range(10) for run in "ab"])
    table = pa.table(dict(zip(("run", "query_id", "RR"), zip(*rows, strict=True), strict=True)))
    job = PairJob(("RR",), ("a", "b"), (("b", "a"),), skip_undefined=False)
    with pytest.raises(InputError, match=message):
        list(sum_pairs(table.to_batches(), job))


def test_a_single_query_is_refused():
    with pytest.raises(InputError, match="one query is too few"):
        compared({"a": {"q": (1.0,)}, "b": {"q": (0.5,)}}, ("RR",))
    with pytest.raises(InputError, match="there are no values"):
        compared({"a": {}, "b": {}}, ("RR",))


@pytest.mark.slow
@pytest.mark.parametrize("interval", ["t", "percentile"])
def test_intervals_cover_the_simulated_difference(interval):
    """Skewed differences in 30% of the queries: 95% of 200 intervals, within three errors."""
    rng = np.random.default_rng(5)
    covered = 0
    for trial in range(200):
        changed = rng.random(800) < 0.3
        moved = np.where(changed, rng.beta(2, 5, 800) - 0.25, 0.0)
        values = {
            "a": {f"t{trial}q{n}": (0.3,) for n in range(800)},
            "b": {f"t{trial}q{n}": (0.3 + d,) for n, d in enumerate(moved.tolist())},
        }
        found = compared(values, ("RR",), interval=interval, draws=200).differences[0]
        covered += found.low <= 0.3 * (2 / 7 - 0.25) <= found.high
    assert 0.95 - 3 * math.sqrt(0.95 * 0.05 / 200) <= covered / 200 <= 0.995
