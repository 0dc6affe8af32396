"""Reader models and their residuals compared with cwl_eval.

cwl_eval takes a ranking as gains from 0 to 1 (NaN if unjudged) and uses 1,000 ranks.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from rankgauge import evaluate, parse

ruler = pytest.importorskip("cwl.ruler.cwl_ruler")

_MODELS = {
    "INST(goal=1,top=4)": (ruler.INSTCWLMetric, (1.0,)),
    "INST(goal=3,top=4)": (ruler.INSTCWLMetric, (3.0,)),
    "INSQ(goal=2,top=4)": (ruler.INSQCWLMetric, (2.0,)),
    "BPM(goal=2,top=4)@10": (ruler.BPMCWLMetric, (2.0, 10)),
    "BPM(goal=1,top=4)@50": (ruler.BPMCWLMetric, (1.0, 50)),
    "SDCG(top=4)@20": (ruler.NDCGCWLMetric, (20,)),
    "NERR8(top=4)@10": (ruler.NERReq8CWLMetric, (10,)),
    "NERR9(top=4)@10": (ruler.NERReq9CWLMetric, (10,)),
    "NERR10(p=0.9,top=4)": (ruler.NERReq10CWLMetric, (0.9,)),
    "NERR11(goal=2,top=4)": (ruler.NERReq11CWLMetric, (2.0,)),
}
_WITH_RESIDUAL = [name for name in _MODELS if "residual" in parse(name).declaration.words]


def _rankings() -> dict[str, list[float | None]]:
    """Return grades in rank order, None if unjudged; some exceed the depth of cwl_eval."""
    rng = random.Random(3)
    found: dict[str, list[float | None]] = {}
    for number in range(24):
        share = rng.choice((0.1, 0.5, 1))
        length = rng.choice((1, 3, 30, 200, 1200))
        found[f"q{number}"] = [rng.choice((0, 0, 1, 2, 3, 4)) if rng.random() < share else None for _ in range(length)]
    return found


@pytest.mark.parametrize("name", _MODELS)
def test_a_model_of_a_reader_agrees_with_cwl_eval(name: str) -> None:
    rankings = _rankings()
    qrels = {
        query: {f"d{i}": grade for i, grade in enumerate(grades) if grade is not None}
        for query, grades in rankings.items()
    }
    # cwl_eval skips queries without judgments.
    qrels = {query: grades for query, grades in qrels.items() if grades}
    run = {query: [f"d{i}" for i in range(len(rankings[query]))] for query in qrels}
    asked = [parse(name)]
    if name in _WITH_RESIDUAL:
        asked.append(asked[0](residual=True))
    ours = evaluate(qrels, run, asked).per_query
    model, arguments = _MODELS[name]
    theirs = model(*arguments)
    theirs.residuals = True
    for row, query in enumerate(qrels):
        gains = [np.nan if grade is None else grade / 4 for grade in rankings[query]]
        ranking = ruler.Ranking(query, np.array(gains), np.ones(len(gains)))
        assert ours[row, 0] == pytest.approx(theirs.measure(ranking), abs=1e-12), query
        if name in _WITH_RESIDUAL:
            residual = theirs.residual_expected_utility
            assert ours[row, -1] == pytest.approx(residual, abs=1e-12), query
    assert len(qrels) == 20
    assert len(_WITH_RESIDUAL) == 6


@pytest.mark.parametrize("name", ["INST", "INSQ", "NERR10", "NERR11"])
def test_a_user_model_reads_1000_ranks_by_default(name: str) -> None:
    found = evaluate({"q": {"d": 1}}, {"q": ["d"]}, [name, f"{name}@2000"])
    usual, deeper = found.per_query[0]
    assert deeper == pytest.approx(usual, rel=2e-2)
    assert str(parse(f"{name}@1000")) == str(parse(name))


def test_a_goal_with_probabilities_above_1_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"goal=0\.25: some continuation probabilities would be "
        r"above 1",
    ):
        evaluate({"q": {"d": 1}}, {"q": ["d"]}, "INST(goal=0.25)")


def test_a_grade_above_the_top_is_refused() -> None:
    with pytest.raises(ValueError, match="grade 5 is above the top grade 4"):
        evaluate({"q": {"d": 5}}, {"q": ["d"]}, "INST(top=4)")


@pytest.mark.parametrize("name", ["SDCG@1000001", "NERR9@1000001"])
def test_sums_over_more_than_a_million_ranks_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="sums over 1,000,001 ranks"):
        evaluate({"q": {"d": 1}}, {"q": ["d"]}, name)
