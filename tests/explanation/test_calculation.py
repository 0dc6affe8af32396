"""Step-by-step calculations agree with the kernels and with manual examples."""

import math
from itertools import permutations

import pytest
from hypothesis import given, strategies as st
from strategies import batch, batches, bound, completed

from rankgauge import Policies, Qrels, Run, evaluate, explain, list_measures, parse
from rankgauge.evaluation.profile_deviations import Case
from rankgauge.explanation import binary, graded
from rankgauge.explanation.calculation import CALCULATIONS
from rankgauge.explanation.cases import ranked_query
from rankgauge.explanation.explanation import calculate, nearly_equal
from rankgauge.measures.measure import Measure
from rankgauge.reports import render

FAMILIES = (binary, graded)
RUN = {"q": ["d3", "d1", "d7", "d2", "d5", "d8", "d4"]}
# Measures that cover every branch of the calculations; a calculation without one gets its example.
_CHOSEN = (
    "P@5",
    "P(judged_only=true,rel=2)@3",
    "R@5",
    "F1@5",
    "F2@10",
    "Success@3",
    "RR",
    "RR(rel=2)@4",
    "FirstRel",
    "AP",
    "AP(rel=3)",
    "AP@5",
    "AP(norm=k)@5",
    "AP(norm='min(k,R)')@5",
    "AP(norm=retrieved)",
    "AP(judged_only=true)",
    "GMAP",
    "Rprec",
    "SetP",
    "SetR",
    "SetF(beta=2)",
    "SetAP",
    "IPrec@0.3",
    "IPrec@1",
    "IPrecAvg",
    "RBP(p=0.7)@20",
    "RBP(p=0.5)",
    "RBPres(p=0.5)@10",
    "Judged@10",
    "NumRet",
    "NumRel(rel=2)",
    "NumRelRet@5",
    "Bpref",
    "Bpref(rel=2)",
    "infAP",
    "DCG@10",
    "DCG(gain=exp)",
    "nDCG",
    "nDCG@5",
    "nDCG(gain=exp)@10",
    "nDCG(gain={1:2,2:7})@10",
    "nDCG(ideal=retrieved)@5",
    "nDCG(ideal=topk)@5",
    "nDCG(judged_only=true)@5",
    "nDCG(rel=2)@5",
    "nDCG(b=2)@5",
    "DCG(b=3,gain=exp,rel=1.5)",
    "ERR@10",
    "ERR(top=6)",
    "nERR(top=5)@10",
    "nERR",
    "NCG@10",
    "NCG(gain=exp,rel=2)@3",
    "binG",
    "RelP@5",
    "RelP(rel=2)@10",
    "SetRelP",
    "RprecMult@0.4",
    "RprecMult(rel=2)@1.4",
    "YAAP",
    "Unjudged@10",
    "NumNonrelRet@5",
    "Utility(hit=2,noise=-0.5,miss=-1)",
    "GMBpref",
    "PairAcc",
    "PairAcc@5",
    "PairAcc(among=retrieved)@20",
    "PairAcc(rel=best)",
    "Compat(p=0.9)",
    "Compat(p=0.5)@3",
    "Compat(p=0.8,normalize=false)@10",
    "INST(goal=2)",
    "INST(goal=1)@20",
    "INST(goal=3,top=4)",
    "INST(goal=2,top=4,rel=2)@30",
    "INSQ(goal=1)",
    "INSQ(goal=2.5,top=5)@10",
    "BPM(goal=2)@10",
    "BPM(goal=1.5,top=4)@20",
    "SDCG@10",
    "SDCG(top=4)@50",
    "NERR8@10",
    "NERR8(top=4)@10",
    "NERR9(top=5)@100",
    "NERR10(p=0.8)",
    "NERR10(p=0.9,top=4)@7",
    "NERR11(goal=2)",
    "NERR11(goal=1,top=8,judged_only=true)",
    "P(rel=2)@3",
    "PairAcc(rel=best)@4",
    "IPrec(points=nearest)@0.3",
    "IPrecAvg(points=nearest)",
    "nDCG(rel=best)@5",
)
_OTHERS = sorted({*CALCULATIONS} - {parse(name).name for name in _CHOSEN})
NAMES = (*_CHOSEN, *(str(completed(Measure(name))) for name in _OTHERS))


def differing(qrels, run, names, policies):
    """Return the queries and measures where the two differ."""
    truth, found = Qrels.of(qrels), Run.of(run)
    evaluation = evaluate(truth, found, names, ties=policies.ties)
    wrong, looked_at = [], 0
    for column, measure in enumerate(evaluation.measures):
        case = Case(truth, found, measure, policies)
        for row, query in enumerate(truth.table.queries.tolist()):
            kernel = float(evaluation.per_query[row, column])
            worked = calculate(measure, ranked_query(case, query))
            assert worked is not None
            looked_at += 1
            if not nearly_equal(worked.value, kernel):
                wrong.append((str(measure), query, worked.value, kernel))
    assert looked_at
    return wrong


DRAWN, FEW = ((drawn.qrels, drawn.run) for drawn in (batch(11, queries=20), batch(11, queries=8)))


@pytest.mark.parametrize("ties", ["trec", "input", "best", "worst"])
def test_a_step_by_step_value_is_that_of_the_kernel(ties):
    # The order of ties changes the ranking alone, so fewer queries are enough for the others.
    drawn = DRAWN if ties == "trec" else FEW
    assert differing(*drawn, NAMES, Policies(ties=ties)) == []


AVERAGED = (
    "P@3",
    "P(rel=2)@5",
    "R@3",
    "RelP@4",
    "RBP(p=0.5)",
    "RBP(p=0.8)@3",
    "DCG",
    "DCG(b=2)@3",
    "DCG(gain=exp,rel=2)@4",
    "nDCG@3",
    "nDCG",
    "nDCG(ideal=retrieved)@4",
    "nDCG(judged_only=true)",
)


@pytest.mark.parametrize("name", AVERAGED)
def test_a_mean_over_all_orders_of_ties_is_shown_as_one_ranking(name):
    drawn = batch(14, queries=12)
    truth, found = Qrels.of(drawn.qrels), Run.of(drawn.run)
    evaluation = evaluate(truth, found, name, ties="mean")
    for query in list(drawn.qrels):
        worked = explain(truth, found, name, query, ties="mean")
        assert worked.step_by_step, query
        assert nearly_equal(worked.value, evaluation.value(query, name)), query


@pytest.mark.parametrize("name", AVERAGED)
def test_it_is_the_mean_of_the_calculations_of_all_orders(name):
    qrels = {"q": {"a": 2, "b": 1, "c": 3, "e": 1, "g": 0}}
    first, second = "abc", "def"
    run = {"q": {**dict.fromkeys(first, 2.0), **dict.fromkeys(second, 1.0)}}
    values = [
        explain(qrels, {"q": [*one, *other]}, name, "q").value
        for one in permutations(first)
        for other in permutations(second)
    ]
    worked = explain(qrels, run, name, "q", ties="mean")
    assert nearly_equal(worked.value, math.fsum(values) / len(values))
    orders = 6 if "judged_only" in name else 36
    assert f"the mean over all {orders} orders of tied documents" in worked.notes[0]


def test_means_over_orders_without_an_equivalent_ranking_are_noted():
    run = {"q": {f"d{n}": 1.0 for n in range(20)}}
    found = explain({"q": {"d1": 1, "d2": 1}}, run, "AP", "q", ties="mean")
    assert not found.step_by_step
    assert "the mean over all about 10^18 orders of tied documents, not of one" in found.notes[0]
    same = explain({"q": {"d1": 1, "d2": 1}}, run, "SetP", "q", ties="mean")
    assert (same.step_by_step, same.notes) == (True, ())


@given(batches(), st.sampled_from([m for m in list_measures() if m.name in CALCULATIONS]).flatmap(bound))
def test_with_any_parameters_too(drawn, measure):
    assert differing(drawn.qrels, drawn.run, [measure], Policies()) == []


@pytest.mark.parametrize("name", ["nDCG@5", "AP", "RBP(p=0.5)", "P@3", "RR"])
def test_unjudged_documents_that_are_removed_first_are_so_by_hand_too(name):
    drawn = batch(12, queries=60)
    truth, found = Qrels.of(drawn.qrels), Run.of(drawn.run)
    evaluation = evaluate(truth, found, name, unjudged="removed")
    for query in list(drawn.qrels)[:20]:
        worked = explain(truth, found, name, query, unjudged="removed")
        assert nearly_equal(worked.value, worked.evaluated), query
        assert nearly_equal(worked.value, evaluation.value(query, name))


@pytest.mark.parametrize(
    ("name", "ranking", "grades", "value"),
    [
        # Manual calculations, and examples of papers.
        ("R@3", "3 1 7 2 5 8 4", {"1": 1, "2": 1, "4": 1, "6": 1}, 0.25),
        ("F1@5", "1 2 3 4 5", {"1": 1, "3": 1, "6": 1, "7": 1}, 4 / 9),
        ("nDCG@5", "a b c d e", {"a": 1, "b": 3, "c": 0, "d": 2, "e": 1}, 0.7975),
        ("nDCG@5", "a b c d e", {"a": 1, "b": 0, "c": 3, "d": 2, "e": 0, "f": 3}, 0.5316),
        ("DCG@4", "a b c d", {"a": 2, "b": 0, "c": 2, "d": 1}, 3.4307),
        ("DCG@5", "c a d b e", {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}, 4.1410),
        ("nDCG(gain=exp)@5", "c a d b e", {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}, 0.7223),
        ("ERR(top=3)", "c a d b e", {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}, 0.5198),
        ("nDCG(ideal=retrieved)@3", "a b c d e", {"a": 0, "b": 1, "c": 0, "d": 3, "e": 2}, 0.1325),
        ("nDCG(ideal=topk)@3", "a b c d e", {"a": 0, "b": 1, "c": 0, "d": 3, "e": 2}, 0.6309),
        ("P@5", "1 2 3 4 5", {"1": 1, "3": 1, "6": 1, "7": 1}, 0.40),
        ("R@5", "1 2 3 4 5", {"1": 1, "3": 1, "6": 1, "7": 1}, 0.50),
        ("P@3", "1 5 3 2 4", {"1": 1, "3": 1, "6": 1}, 0.6667),
        ("R@1", "1 5 3 2 4", {"1": 1, "3": 1, "6": 1}, 0.3333),
        ("nDCG@4", "a b c d", {"a": 2, "b": 0, "c": 2, "d": 1}, 0.9120),
        ("DCG@4", "a c d b", {"a": 2, "b": 0, "c": 2, "d": 1}, 3.7619),
        ("nDCG(ideal=retrieved)@5", "a b c d e", {"a": 3, "b": 2, "c": 3, "d": 0, "e": 1}, 0.972),
        ("nDCG(ideal=retrieved)@5", "a b c d e", {"a": 0, "b": 1, "c": 0, "d": 3, "e": 2}, 0.566),
        ("Success@3", "9 8 1", {"1": 1}, 1.0),
        # Two queries of a tutorial, one by one; their means are the stated values.
        ("nDCG@3", "1 3 5 2 7", {"1": 1, "2": 1, "4": 1}, 0.4693),
        ("nDCG@3", "6 8 1 9 2", {"1": 1, "2": 1}, 0.3066),
        ("AP", "6 8 1 9 2", {"1": 1, "2": 1}, (1 / 3 + 2 / 5) / 2),
        ("RelP@3", "1 3 5 2 7", {"1": 1, "2": 1, "4": 1}, 1 / 3),
        ("NCG@3", "c a d b e", {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}, 4 / 6),
        ("PairAcc", "c a d b e", {"a": 1, "b": 1, "c": 0, "d": 0, "e": 0}, 3 / 6),
        ("INSQ(goal=1)@2", "x a", {"a": 1}, (1 / 9) / (1 / 4 + 1 / 9)),
        ("BPM(goal=1)@5", "x a b", {"a": 1, "b": 1}, 1 / 2),
        ("AP", "1 3 5 2 7", {"1": 1, "2": 1, "4": 1}, (1 + 2 / 4) / 3),
        ("RR", "6 8 1 9 2", {"1": 1, "2": 1}, 1 / 3),
        ("RBP(p=0.5)", "1 3 5 2 7", {"1": 1, "2": 1}, 0.5 * (1 + 0.125)),
    ],
    ids=str,
)
def test_the_calculation_agrees_with_a_manual_one(name, ranking, grades, value):
    found = explain({"q": grades}, {"q": ranking.split()}, name, "q")
    assert found.value == pytest.approx(value, abs=5e-4 if value in {0.972, 0.566} else 5.1e-5)
    assert nearly_equal(found.value, found.evaluated)


def test_a_measure_without_a_calculation_is_described_without_an_unreadable_formula():
    found = explain({"q": {"a": 2, "b": 1}}, {"q": ["a", "u", "b"]}, "RnDCG", "q")
    assert not found.step_by_step
    assert found.steps[0].startswith("nDCG averaged over the ranks at which the gain of the ideal")
    assert "\\" not in "".join(found.steps)


def test_too_many_ranks_to_be_gone_through_one_by_one_are_not():
    found = explain({"q": {"a": 1}}, {"q": ["a"]}, "INST(goal=1)@10000000", "q")
    assert not found.step_by_step
    assert nearly_equal(found.value, found.evaluated)


def test_the_best_grade_is_that_of_the_query_and_of_none_above_0_none():
    qrels = {"q": {"a": 1, "b": 3}, "p": {"a": 0}}
    found = explain(qrels, {"q": ["a", "b"], "p": ["a"]}, "PairAcc(rel=best)", "q")
    assert [row.counts for row in found.rows] == [False, True]
    text = render(found)
    assert "(grade 3 or more)" in text
    none = explain(qrels, {"q": ["a", "b"], "p": ["a"]}, "PairAcc(rel=best)", "p")
    assert "the best grade, but none is above 0" in render(none)


def test_ranks_below_the_ranking_have_no_gain():
    found = explain({"q": {"a": 1}}, {"q": ["u", "a"]}, "SDCG@3", "q")
    assert found.steps[3:] == (
        "below the ranking: rank 3 is empty and has weight 0.2346 of it",
        "SDCG@3 = 0.2961·1 = 0.2961",
    )


def test_the_formula_has_the_numbers_put_in():
    found = explain({"q": {"a": 2, "b": 3, "x": 1}}, {"q": ["a", "u", "b"]}, "nDCG@10", "q")
    assert found.steps == (
        "gain of a document: its grade",
        "ideal: the best order of all judged documents, found or not",
        "DCG@10  = 2/log2(2) + 3/log2(4)",
        "        = 2 + 1.5000 = 3.5000",
        "IDCG@10 = 3/log2(2) + 2/log2(3) + 1/log2(4)",
        "        = 3 + 1.2619 + 0.5000 = 4.7619",
        "nDCG@10 = DCG / IDCG = 3.5000 / 4.7619 = 0.7350",
    )
    assert [row.document for row in found.calculation.ideal] == ["b", "a", "x"]


def test_average_precision_is_written_as_the_fractions_it_is_made_of():
    found = explain({"q": {"d1": 1, "d2": 1, "d9": 1}}, RUN, "AP", "q")
    assert found.steps[1:] == ("AP = (1/2 + 2/4) / 3", "   = 1 / 3 = 0.3333")


def test_a_long_sum_is_cut_short_with_its_last_term():
    ranking = [f"d{n}" for n in range(30)]
    found = explain({"q": set(ranking)}, {"q": ranking}, "RBP(p=0.5)", "q")
    assert "... (23 more terms) ... + 0.5000^29" in found.steps[1]


def test_ties_and_unjudged_documents_are_marked():
    run = {"q": {"a": 1.0, "b": 1.0, "c": 0.5}}
    found = explain({"q": {"a": 1, "c": -1}}, run, "P@2", "q")
    first, second = (row.ranked for row in found.rows)
    assert (first.document, first.tied, first.first, first.last, first.grade) == ("b", True, 1, 2, None)
    assert (second.document, second.judged) == ("a", True)
    assert not found.ranking.documents[2].judged


@pytest.mark.parametrize(("ties", "order"), [("trec", "b10 b1 a"), ("input", "b1 a b10")])
def test_ties_are_ordered_by_the_policy(ties, order):
    run = {"q": {"b1": 1.0, "a": 1.0, "b10": 1.0}}
    found = explain({"q": {"a": 1}}, run, "RR", "q", ties=ties)
    assert [listed.document for listed in found.ranking.documents] == order.split()


def test_an_undefined_value_has_a_reason():
    found = explain({"q": {"a": 0}, "p": {"a": 1}}, {"q": ["a"], "p": ["a"]}, "AP", "q")
    assert math.isnan(found.value)
    assert nearly_equal(found.value, found.evaluated)
    assert any("undefined: counted 0" in note for note in found.notes)
