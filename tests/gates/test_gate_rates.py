"""Error rates of the gate, and how often it decides, as stated on the page."""

import math

import numpy as np
import pytest
from docs_scripts import docs_script

from rankgauge.gates.non_inferiority import decide

rates = docs_script("gate_rates")


def above(rate: float, draws: int) -> float:
    """Return a rate that draws with this rate exceed once in a thousand times."""
    return rate + 3.1 * math.sqrt(rate * (1 - rate) / draws)


@pytest.mark.parametrize("share", [1.0, 0.2, 0.05])
def test_the_quick_verdict_of_the_script_is_that_of_the_gate(share):
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(24):
        queries = int(rng.choice([25, 60, 180, 400]))
        changed = rng.random(queries) < share
        spread = rng.choice([0.01, 0.1])
        gains = np.where(changed, rng.normal(rng.choice([-0.1, 0.0]), spread, queries), 0.0)
        found = decide([gains], [0.02], [(-1.0, 1.0)])[0]
        assert rates.VERDICTS[rates.verdicts(gains[None])[0]] == found.verdict
        assert rates.p_worse(gains[None])[0] == pytest.approx(found.p_worse, rel=1e-6)
        seen.add(found.verdict)
    assert len(seen) >= (4 if share == 1 else 2)


@pytest.mark.slow
def test_rare_collapses_and_rare_gains_hardly_cause_a_wrong_verdict():
    """Fast version of the tables: limits are twice the nominal rates."""
    for mean, wrong, limit in ((-rates.MARGIN, 0, 0.1), (0.0, 3, 0.02)):
        for name, population in rates.synthetic(mean):
            for queries in rates.QUERIES:
                found = rates.rates([population], queries, draws=100)
                assert found[0, wrong] <= above(limit, 1000), (name, queries)


@pytest.mark.slow
def test_real_pairs_keep_the_error_rates_and_are_decided_with_400_queries(data_folder):
    real = dict(rates.pools(data_folder))
    dense = "real pairs, many differ, nDCG@10 and AP"
    for mean, wrong, limit in ((-rates.MARGIN, 0, 0.1), (0.0, 3, 0.02)):
        for name, populations in rates.groups(real, mean, grid=False).items():
            for queries in (25, 400):
                found = rates.rates(populations, queries, draws=30)
                count = 30 * len(populations)
                assert found[:, wrong].mean() <= above(limit, count), (name, queries)
                # Without collapses, the assumption of the verdict is true.
                if mean and name != "real pairs, skewed":
                    assert found[:, :2].sum(axis=1).mean() <= above(limit, count), (name, queries)
    passed, failed = (
        rates.rates(rates.groups(real, mean, grid=False)[dense], 400, draws=30).mean(axis=0)
        for mean in (0.0, -2 * rates.MARGIN)
    )
    assert passed[0] >= 0.5
    assert failed[3] >= 0.85


def test_the_stated_number_of_queries_mostly_leads_to_a_decision():
    pool = np.clip(np.random.default_rng(4).standard_t(4, 1000) * 0.06, -1, 1)
    rows = rates.needed({"x: a to b, nDCG@10": pool}, pilots=4).rows
    assert len(rows) == 6
    assert np.mean([float(row[4].rstrip("%")) for row in rows]) >= 70
