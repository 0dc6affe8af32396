"""Power of the differences that `compare` calls detectable, as stated on the page."""

import numpy as np
import pytest
from docs_scripts import docs_script

from rankgauge import Evaluation, compare

detectable = docs_script("detectable_differences")
RNG = np.random.default_rng(4)
# Few large differences among many small ones, as of nDCG between two real runs.
HEAVY = np.clip(RNG.standard_t(4, 5000) * 0.06, -1, 1)
SPARSE = np.where(RNG.random(5000) < 0.2, RNG.choice([-1.0, -0.5, 0.5, 1.0], 5000), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("pool", [HEAVY, SPARSE], ids=["heavy tails", "few differ"])
def test_stated_differences_have_their_power_by_the_allowance_only(pool):
    (found,) = detectable.stated("x", pool[:1000], [25])
    assert found.power[0] < 0.76
    assert 0.77 <= found.power[6] <= 0.95
    assert 0.95 <= found.ratio[6] <= 1.45


@pytest.mark.slow
@pytest.mark.parametrize(("pool", "least"), [(HEAVY, 0.72), (SPARSE, 0.62)], ids=["heavy tails", "few differ"])
def test_stated_numbers_of_queries_have_about_their_power(pool, least):
    found = list(detectable.needed("x, nDCG@10", pool[:1000], [50, 100]))
    assert len(found) >= 10
    assert least < np.mean([one.share for one in found]) < 0.95


@pytest.mark.parametrize("pool", [HEAVY, SPARSE], ids=["heavy tails", "few differ"])
def test_the_verdicts_and_differences_of_the_script_are_those_of_compare(pool):
    drawn = RNG.choice(pool, (8, 40)) + np.linspace(0, 0.1, 8)[:, None] * (pool is HEAVY)
    quick = detectable.judged(drawn, np.random.default_rng(1))
    same = 0
    for row, moved in enumerate(drawn):
        names = [f"q{n}" for n in range(len(moved))]
        columns = {"old": np.zeros(len(moved)), "new": moved}
        found = compare(
            [Evaluation.from_values(name, names, {"nDCG@10": column.tolist()}) for name, column in columns.items()]
        ).differences[0]
        same += (found.verdict in {"better", "worse"}) == quick.verdict[row]
        if found.detectable is not None:
            share, level = quick.changed[row] / 40, quick.level[row]
            stated = detectable.stats.detectable_difference(
                detectable.stats.planning_sd(quick.sd[row], 40), 40, alpha=level, changed=share
            )
            few = 2 / 40 + 0.8416 * detectable.stats.planning_sd(quick.sd[row], 40) / 40**0.5
            assert found.detectable == pytest.approx(max(stated, few), rel=0.1)
            assert found.power(found.detectable) == pytest.approx(0.8, abs=1e-4)
    assert same == 8


def test_populations_are_moved_to_the_mean_and_queries_that_do_not_differ_stay():
    for pool in (HEAVY, SPARSE):
        values, weights = detectable.moved_to(pool, 0.1)
        assert values @ weights == pytest.approx(0.1)
    assert weights[values == 0].sum() > 0.7
