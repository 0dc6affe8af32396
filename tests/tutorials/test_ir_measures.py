"""The functions of ir_measures, compared with evaluate()."""

from __future__ import annotations

from strategies import completed

import rankgauge
from rankgauge import evaluate, nDCG
from rankgauge.tutorials.ir_measures import calc_aggregate, iter_calc


def test_values_come_query_by_query() -> None:
    qrels, run = {"q1": {"a": 1}, "q2": {"b": 2}, "q3": {"c": 0}}, {"q1": ["a"], "q2": ["x", "b"]}
    found = list(iter_calc([nDCG @ 5, "FirstRel"], qrels, run))
    assert [metric.query_id for metric in found] == ["q1", "q2", "q3"] * 2
    assert found[0].measure == nDCG @ 5
    assert [metric.value for metric in found[3:]] == [1.0, 2.0, 0.0]


def test_the_mean_is_that_of_evaluate_for_every_measure() -> None:
    plain = {"q1": {"d1": 1, "d2": 0}, "q2": {"d9": 1}, "q3": {"d1": 0}}
    parts = {"q1": {"d1": {"a": 1}, "d2": {"a": 0}}, "q2": {"d9": ["a"]}, "q3": {"d1": {"a": 0}}}
    sample = {"q1": {"s": {"d1": 1, "d2": -1}}, "q2": {"s": {"d9": 1}}, "q3": {"s": {"d1": 0}}}
    special = {"subtopics": parts, "samples": sample}
    run = {"q1": ["d2", "d1"], "q2": ["x"], "q3": ["d1"]}
    assert {rankgauge.alpha_nDCG, rankgauge.measures.infNDCG} <= set(rankgauge.list_measures())
    for measure in rankgauge.list_measures():
        qrels = special.get(measure.declaration.reads, plain)
        asked = completed(measure)
        means = evaluate(qrels, run, asked).mean()
        assert calc_aggregate([asked], qrels, run) == {asked: means[str(asked)]}


def test_a_curve_is_calculated_point_by_point() -> None:
    found = calc_aggregate(["IPrec"], {"q": {"d"}}, {"q": ["x", "d"]})
    assert [str(measure) for measure in found][:2] == ["IPrec@0.0", "IPrec@0.1"]
