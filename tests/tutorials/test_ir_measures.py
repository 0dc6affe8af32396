"""The functions of ir_measures, compared with evaluate()."""

from __future__ import annotations

import ir_measures
import pytest
from strategies import batch, completed

import rankgauge
from rankgauge import evaluate, nDCG
from rankgauge.tutorials import ir_measures as ours
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


_LINES = (
    "nDCG @ 10",
    "nDCG(gains={1: 2, 2: 5}) @ 5",
    "nDCG(cutoff=3)",
    "NDCG",
    "P @ 1",
    "P(rel=2) @ 5",
    "Precision @ 3",
    "R @ 5",
    "Recall @ 10",
    "AP",
    "AP(rel=2) @ 10",
    "MAP",
    "RR",
    "MRR @ 10",
    "Rprec",
    "RPrec",
    "Bpref",
    "BPref",
    "infAP",
    "Success @ 1",
    "SetP",
    "SetR",
    "SetF",
    "Judged @ 5",
    "IPrec @ 0.5",
    "NumRet",
    "NumRel",
    "NumRet(rel=1)",
    "parse_measure('P(rel=2)@5')",
)
# NumRet with a level is the number of relevant documents retrieved.
_NAMED = {"NumRet(rel=1)": "NumRelRet"}


def _in(module: object, line: str) -> object:
    return eval(line, {name: getattr(module, name) for name in module.__all__})


@pytest.mark.parametrize("line", _LINES)
def test_a_measure_has_the_methods_of_ir_measures(line: str) -> None:
    made = batch(5, queries=30, missing=False)
    qrels = {q: {d: int(g) for d, g in grades.items()} for q, grades in made.qrels.items()}
    run = {q: {d: float(-n) for n, d in enumerate(docs)} for q, docs in made.run.items()}
    theirs, mine = _in(ir_measures, line), _in(ours, _NAMED.get(line, line))
    qrel_rows = [ir_measures.Qrel(q, d, g) for q in qrels for d, g in qrels[q].items()]
    run_rows = [ir_measures.ScoredDoc(q, d, s) for q in run for d, s in run[q].items()]
    for judgments, ranking in ((qrels, run), (qrel_rows, run_rows)):
        expected = theirs.calc(judgments, ranking)
        found = mine.calc(judgments, ranking)
        assert found._fields == expected._fields
        assert found.aggregated == pytest.approx(expected.aggregated, abs=1e-9)
        assert mine.calc_aggregate(judgments, ranking) == found.aggregated
        assert list(mine.iter_calc(judgments, ranking)) == found.per_query
        values = {metric.query_id: metric.value for metric in found.per_query}
        assert len(values) == len(expected.per_query) == len(qrels)
        for metric in expected.per_query:
            assert values[metric.query_id] == pytest.approx(metric.value, abs=1e-9)
        assert found.per_query[0]._fields == expected.per_query[0]._fields
        assert {metric.measure for metric in found.per_query} == {mine}
    means, rows = ours.calc([mine], qrels, run)
    assert (means, rows) == ({mine: found.aggregated}, found.per_query)


def test_every_measure_of_ir_measures_is_exported() -> None:
    named = {name for name in ir_measures.__all__ if isinstance(getattr(ir_measures, name), ir_measures.Measure)}
    assert named - set(ours.__all__) == {"NumQ", "α_DCG", "α_nDCG"}  # noqa: RUF001 - as there
    for name in named & set(ours.__all__):
        assert isinstance(getattr(ours, name), rankgauge.Measure)
    with pytest.raises(AttributeError, match="no attribute 'NumQ'"):
        ours.NumQ  # noqa: B018


def test_a_measure_with_methods_equals_the_measure() -> None:
    assert ours.nDCG @ 5 == nDCG @ 5
    assert nDCG @ 5 == ours.nDCG @ 5
    assert len({ours.P @ 5, rankgauge.P @ 5}) == 1
    assert ours.P @ 5 != ours.P @ 10
    assert ours.P @ 5 != "P@5"
    assert not hasattr(nDCG, "calc_aggregate")


def test_a_curve_or_a_missing_cutoff_names_the_fix() -> None:
    qrels, run = {"q": {"d"}}, {"q": ["d"]}
    with pytest.raises(rankgauge.UnknownName, match="a curve of 11 values"):
        ours.IPrec.calc_aggregate(qrels, run)
    with pytest.raises(rankgauge.UnknownName, match="write P@10"):
        list(ours.P.iter_calc(qrels, run))


def test_measures_of_ir_measures_are_accepted_wherever_names_are() -> None:
    made = batch(5, queries=30)
    qrels, run = made.qrels, made.run
    theirs = [ir_measures.nDCG @ 10, ir_measures.P(rel=2) @ 5, ir_measures.RBP(p=0.9), ir_measures.Accuracy @ 5]
    names = ["nDCG@10", "P(rel=2)@5", "RBP(p=0.9)", "PairAcc(among=retrieved)@5"]
    assert evaluate(qrels, run, theirs) == evaluate(qrels, run, names)
    assert evaluate(qrels, run, theirs[0]) == evaluate(qrels, run, names[0])
    assert rankgauge.parse(theirs[1]) == rankgauge.parse(names[1])
    with pytest.raises(rankgauge.UnknownName, match="is not supported"):
        evaluate(qrels, run, ir_measures.NumQ)
    with pytest.raises(rankgauge.InputError, match="got int, expected a measure"):
        evaluate(qrels, run, 7)


def test_a_measure_of_ours_is_one_of_ir_measures() -> None:
    made = batch(6, queries=40)
    judged = {query: {doc: int(grade) for doc, grade in grades.items()} for query, grades in made.qrels.items()}
    names = ["nDCG@0.5R", "P@5", "AP"]
    found = ir_measures.calc_aggregate([ours.define(name) for name in names], judged, made.run)
    means = evaluate(judged, made.run, names).mean()
    assert {str(measure): value for measure, value in found.items()} == pytest.approx(means, abs=1e-12)
    for name in ("GMAP", "NumRel", "FirstRel"):
        with pytest.raises(rankgauge.InputError, match="another mean"):
            ours.define(name)
