"""Error rates of intervals and tests of differences, as stated on the page."""

import os
from pathlib import Path

import numpy as np
import pytest
from docs_scripts import docs_script

from rankgauge.comparison.differences import FAILING

coverage = docs_script("interval_coverage")
RNG = np.random.default_rng(3)
# Near-identical runs: 15% of the queries differ, by differences of reciprocal ranks or by 1.
RECIPROCAL = np.where(RNG.random(5000) < 0.15, RNG.choice([-0.5, 0.17, 0.5, 0.67], 5000), 0.0)
SUCCESS = np.where(RNG.random(5000) < 0.15, RNG.choice([-1.0, 1.0, 1.0], 5000), 0.0)


@pytest.mark.parametrize("pool", [RECIPROCAL, SUCCESS], ids=["RR", "Success"])
@pytest.mark.parametrize("queries", [50, 100])
def test_intervals_cover_or_are_withheld_where_few_queries_differ(pool, queries):
    *_, shown, covered, _, _ = coverage.row("", pool, queries, 400)
    assert shown > 0.4
    assert covered > 0.93 - 3 * np.sqrt(0.07 * 0.93 / (400 * shown))


def test_intervals_are_shown_where_half_of_the_queries_differ():
    pool = np.where(RNG.random(5000) < 0.5, RNG.normal(0, 0.25, 5000), 0.0)
    assert coverage.row("", pool, 25, 300)[3] > 0.95


def test_sign_flips_of_skewed_differences_need_the_interval():
    pool = np.clip(RNG.lognormal(-3, 1, 20_000), 0, 1)
    drawn = RNG.choice(pool - pool.mean(), (300, 10))
    flips, _, _, both = np.mean([coverage.verdicts(moved, RNG) for moved in drawn], axis=0)
    assert flips > 0.1
    assert both < 0.06 + 3 * np.sqrt(0.06 * 0.94 / 300)


@pytest.mark.slow
@pytest.mark.skipif("RANKGAUGE_TEST_DATA" not in os.environ, reason="needs the collections")
def test_intervals_of_real_pairs_cover_93_percent_but_where_one_query_decides():
    found = dict(coverage.pools(Path(os.environ["RANKGAUGE_TEST_DATA"])))
    # The page has all pairs; a third of them, at two sizes, is enough to find a broken rule.
    for name in [name for name in found if not name.endswith("AP")][::3]:
        for queries in (25, 100):
            *_, shown, covered, _, _ = coverage.row(name, found[name], queries, 300)
            if shown >= coverage.SHOWN:
                assert covered > 0.93 - 3.5 * np.sqrt(0.07 * 0.93 / (300 * shown)), (name, queries)


@pytest.mark.slow
@pytest.mark.skipif("RANKGAUGE_TEST_DATA" not in os.environ, reason="needs the collections")
def test_failing_queries_hardly_cause_a_false_verdict_and_power_remains():
    real = dict(coverage.pools(Path(os.environ["RANKGAUGE_TEST_DATA"])))
    for truth, name, populations, _ in coverage.failing_groups(real):
        draws = 1000 if len(populations) == 1 else 30
        for queries in (100, 400) if truth == "none" else (100,):
            rate = coverage.withheld(populations, queries, draws)[FAILING]
            error = 3 * np.sqrt(0.1 * 0.9 / (draws * len(populations)))
            if truth == "none":
                # The worst case: 2 / n of the queries lose everything, and none of them is in the sample.
                limit = np.exp(-FAILING) if "lose 1," in name else 0.1
                assert rate < limit + error, (name, queries)
            elif name != "real pairs, many differ":
                assert rate > 0.9 - error, (name, queries)
