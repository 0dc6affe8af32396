"""Error rates of the gate, as stated on the page."""

import math

import numpy as np
import pytest
from docs_scripts import DOCS, docs_script

import rankgauge
from rankgauge.gates.non_inferiority import decide
from rankgauge.rendering.tables import to_markdown

rates = docs_script("gate_rates")


def above(rate: float, draws: int) -> float:
    """Return a bound that a count with this rate exceeds once in a thousand times."""
    return draws * rate + 3.1 * math.sqrt(draws * rate * (1 - rate))


@pytest.mark.slow
@pytest.mark.parametrize("queries", [30, 100])
def test_on_the_sample_an_unchanged_system_hardly_fails_and_a_loss_hardly_passes(queries):
    sample = rankgauge.sample_path("qrels.txt").parent
    runs = [sample / "runs" / f"{run}.run" for run in ("bm25", "keyword")]
    pool = rates.pool("sample", sample / "qrels.txt", runs, ["nDCG@10"])
    assert abs(pool.differences.mean()) < 1e-15
    same = rates.verdicts(pool, queries, 0.0, draws=1000, seed=1)
    assert same["gate"]["FAIL"] <= above(0.01, 1000)
    assert same["any drop"]["FAIL"] > 400
    worse = rates.verdicts(pool, queries, 2 * rates.MARGIN, draws=1000, seed=2)
    assert worse["gate"]["PASS"] <= above(0.02, 1000)


@pytest.mark.slow
def test_the_rows_on_the_page_are_what_the_script_gives(data_folder):
    pools = list(rates.pools(data_folder))
    page = (DOCS / "explain" / "gate-rates.md").read_text(encoding="utf-8")
    for loss in (0.0, 2 * rates.MARGIN):
        found = rates.rates(pools, loss, [100])
        row = [cell.strip() for cell in to_markdown(found).splitlines()[2].split("|")]
        rows = [[cell.strip() for cell in line.split("|")] for line in page.splitlines()]
        assert row in rows
        share = float(found.rows[0][3 if not loss else 1].removesuffix("%")) / 100
        draws = rates.DRAWS * len(pools)
        assert share * draws <= above(0.01 if not loss else 0.02, draws)


@pytest.mark.parametrize("share", [1.0, 0.2, 0.05])
def test_the_quick_verdict_of_the_script_is_that_of_the_gate(share):
    rng = np.random.default_rng(3)
    for _ in range(40):
        queries = int(rng.integers(20, 200))
        changed = rng.random(queries) < share
        gains = np.where(changed, rng.normal(rng.choice([-0.1, 0.0, 0.05]), 0.1, queries), 0.0)
        assert rates.verdict(gains, 0.02)[0] == decide([gains], [0.02], [-1.0])[0].verdict


@pytest.mark.slow
@pytest.mark.parametrize("queries", [25, 200])
def test_a_loss_of_the_margin_passes_in_at_most_5_percent(queries):
    losses = -np.clip(np.random.default_rng(7).lognormal(-3, 1, 20_000), 0, 1)
    for name, values, share in (
        ("dense", losses, 1.0),
        ("sparse", np.array([-1.0, 1.0]), 0.1),
        ("rare", np.array([-1.0, 1.0]), 0.05),
    ):
        row = rates.cells((name, values, share), queries, 0.02, 1000)
        by_t, passed = (float(cell.removesuffix("%")) / 100 for cell in row[3:5])
        assert passed * 1000 <= above(0.055, 1000)
        assert passed <= by_t
