"""The profile of ranx, compared with the library on adversarial data."""

import pytest

pytest.importorskip("ranx", reason="ranx is not installed: nothing was compared with it")

import ranx
from unkind import JUDGED, SEEDS, held, made

from rankgauge import evaluate

# Numba's warnings about ranx's code.
pytestmark = [pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaTypeSafetyWarning")]

OURS = {
    "precision@1": "P@1",
    "precision@5": "P@5",
    "precision": "SetP",
    "recall@1": "R@1",
    "recall@5": "R@5",
    "recall": "SetR",
    "f1@5": "F1@5",
    "f1": "SetF",
    "hit_rate@1": "Success@1",
    "hit_rate@5": "Success@5",
    "r-precision": "Rprec",
    "mrr": "RR",
    "mrr@3": "RR@3",
    "map": "AP",
    "map@5": "AP@5",
    "dcg@5": "DCG@5",
    "dcg_burges@5": "DCG(gain=exp)@5",
    "ndcg": "nDCG",
    "ndcg@5": "nDCG@5",
    "ndcg@10": "nDCG@10",
    "ndcg_burges@5": "nDCG(gain=exp)@5",
    "precision@5-l2": "P(rel=2)@5",
    "map-l2": "AP(rel=2)",
    "mrr-l3": "RR(rel=3)",
    "ndcg@5-l2": "nDCG(rel=2)@5",
}


def theirs(inputs, names):
    run = ranx.Run(inputs.run)
    ranx.evaluate(ranx.Qrels(inputs.qrels), run, list(names), make_comparable=True)
    return {name: dict(run.scores[name]) for name in names}


@pytest.mark.parametrize(("deepest", "ties"), [(15, True), (60, False)])
def test_measures_are_those_of_ranx(deepest, ties):
    compared = 0
    for seed in SEEDS:
        inputs = made(seed, deepest=deepest, ties=ties)
        found = theirs(inputs, OURS)
        for name, ours in OURS.items():
            compared += held("ranx", inputs, ours, found[name])
            # Also by its name there.
            assert held("ranx", inputs, name, found[name]) == JUDGED
    assert compared == JUDGED * len(SEEDS) * len(OURS)


def test_bpref_is_that_of_ranx_where_it_is_a_number():
    compared = 0
    for seed in SEEDS:
        inputs = made(seed)
        good = {
            query: grades
            for query, grades in inputs.qrels.items()
            if any(g >= 1 for g in grades.values()) and any(g < 1 for g in grades.values())
        }
        inputs = inputs._replace(qrels=good)
        compared += held("ranx", inputs, "Bpref", theirs(inputs, ["bpref"])["bpref"])
    assert compared > 10 * len(SEEDS)


def test_grades_are_cut_to_whole_numbers():
    qrels, run = {"q": {"a": 0.5, "b": 2.9, "c": 1.0}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    wanted = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), "ndcg@3")
    assert evaluate(qrels, run, "nDCG@3", profile="ranx").mean()["nDCG@3"] == pytest.approx(wanted)


def test_ties_in_long_rankings_are_those_of_an_unstable_sort():
    """Forty equal scores: the order depends on a quicksort, so no profile reproduces it."""
    ids = [f"d{n}" for n in range(40)]
    run = {"q": dict.fromkeys(ids, 1.0)}
    found = [ranx.evaluate(ranx.Qrels({"q": {doc: 1}}), ranx.Run(run), "mrr@40") for doc in ids]
    assert sorted(found) == pytest.approx(sorted(1 / rank for rank in range(1, 41)))
    assert found != pytest.approx([1 / rank for rank in range(1, 41)])
