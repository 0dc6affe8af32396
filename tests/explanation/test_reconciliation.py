"""Why two means differ: the contributions of all deviations add up to the difference."""

import json
import math
import re
from dataclasses import replace
from decimal import Decimal

import jsonschema
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, strategies as st
from schemas import strict
from strategies import batch, batches

from rankgauge import Qrels, Run, UnknownName, evaluate, reconcile
from rankgauge.evaluation import Case, Deviation, Profile
from rankgauge.reports import Options, render

QRELS = {"q1": {"a": 2, "b": 1, "c": 1}, "q2": {"a": 1, "x": 3}, "q3": {"a": 1}}
RUN = {"q1": {"a": 0.5, "b": 0.5, "d": 0.25}, "q2": {"d": 3.0, "a": 2.0}}


def policy(name, **choice):
    def change(case):
        return case._replace(policies=replace(case.policies, **choice))

    return Deviation(name, f"{name}.", "policy", change)


def measure(name, **words):
    def change(case):
        return case._replace(measure=case.measure(**words))

    return Deviation(name, f"{name}.", "measure", change)


def scores(name, of_values):
    def change(case: Case):
        table = replace(case.run.table, values=of_values(case.run.table.values))
        return case._replace(run=replace(case.run, table=table))

    return Deviation(name, f"{name}.", "run", change)


def binary(case):
    table = case.qrels.table
    return case._replace(qrels=Qrels(replace(table, values=np.minimum(table.values, 1.0))))


DEVIATIONS = (
    policy("ties as given", ties="input"),
    policy("only queries of the run", queries="intersection"),
    policy("undefined excluded", undefined="skip"),
    measure("ideal retrieved", ideal="retrieved"),
    measure("gain exp", gain="exp"),
    measure("cut-off off by one", k=4),
    scores("rounded", np.rint),
    scores("reversed", np.negative),
    Deviation("binary grades", "binary grades.", "judgments", binary),
)


def profile(*deviations):
    return Profile("theirs", "a tool of the tests", lambda _: deviations)


def summed(found):
    return math.fsum([*(one.change for one in found.contributions), found.rest])


@given(batches(), st.lists(st.sampled_from(DEVIATIONS), max_size=6))
def test_contributions_of_deviations_sum_to_the_difference(drawn, deviations):
    found = reconcile(drawn.qrels, drawn.run, "nDCG@5", profile(*deviations))
    assert math.isnan(found.difference) or abs(summed(found) - found.difference) <= 1e-12
    for one in found.moved:
        if not math.isnan(one.change) and not any(math.isnan(change) for _, change in one.by):
            assert abs(math.fsum(change for _, change in one.by) - one.change) <= 1e-12


@pytest.mark.parametrize("seed", [1, 2])
def test_many_queries_agree_and_the_other_side_equals_evaluate(seed):
    drawn = batch(seed, queries=150)
    steps = (DEVIATIONS[0], DEVIATIONS[3], DEVIATIONS[1])
    found = reconcile(drawn.qrels, drawn.run, "nDCG@5", profile(*steps))
    assert abs(summed(found) - found.difference) <= 1e-12
    there = evaluate(drawn.qrels, drawn.run, "nDCG(ideal=retrieved)@5", ties="input", queries="intersection")
    assert found.ours == evaluate(drawn.qrels, drawn.run, "nDCG@5").mean()["nDCG@5"]
    assert found.theirs == there.mean()["nDCG(ideal=retrieved)@5"]
    assert found.queries == (len(drawn.qrels), len(there.query_ids))
    for one in found.moved[:20]:
        if one.theirs is not None:
            assert one.theirs == pytest.approx(np.nan_to_num(there.value(one.query, "nDCG(ideal=retrieved)@5")))


def test_the_other_side_of_pytrec_eval_is_what_it_says_itself():
    rng = np.random.default_rng(7)
    qrels = {f"q{n}": {f"d{d}": int(rng.integers(0, 3)) for d in range(12)} for n in range(40)}
    run = {f"q{n}": {f"d{d}": 0.5 + float(rng.integers(0, 9)) * 1e-9 for d in range(20)} for n in range(35)}
    found = reconcile(qrels, run, "nDCG@10", "pytrec_eval")
    said = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
    values = {query: value["ndcg_cut_10"] for query, value in said.items()}
    assert found.theirs == pytest.approx(sum(values.values()) / len(values), abs=1e-12)
    assert found.contributions[0].touched > 20
    assert found.contributions[1].left == 5
    for one in found.moved:
        assert one.theirs == (None if one.theirs is None else pytest.approx(values[one.query]))


def test_a_query_that_leaves_the_mean_is_no_query_that_moved():
    found = reconcile(QRELS, RUN, "RR", profile(DEVIATIONS[1]))
    (one,) = found.contributions
    assert (one.touched, one.left, one.entered) == (0, 1, 0)
    assert (found.ours, found.theirs) == (0.5, 0.75)
    assert [(m.query, m.ours, m.theirs) for m in found.moved] == [("q3", 0.0, None)]
    assert found.sides is None
    assert "(-1 +0)" in render(found)


def test_the_query_that_changed_most_is_shown_on_both_sides():
    found = reconcile(QRELS, RUN, "nDCG@3", profile(DEVIATIONS[3]))
    ours, theirs = found.sides
    assert ours.query == theirs.query == found.moved[0].query == "q2"
    assert (ours.value, theirs.value) == (found.moved[0].ours, found.moved[0].theirs)
    assert "largest changes: q2" in render(found)
    text = render(found, "table", Options(full=True))
    assert "the same ranking; the ideal rankings differ from rank 1" in text
    assert "here nDCG@3, there nDCG(ideal=retrieved)@3" in " ".join(text.split())


def test_the_first_different_rank_is_reported_with_its_ties():
    found = reconcile(QRELS, RUN, "nDCG@3", profile(DEVIATIONS[0]), query="q1")
    text = render(found, "table", Options(full=True))
    assert "the rankings differ from rank 1: different documents (a tie here)" in text
    lines = [line for line in text.splitlines() if line.endswith("<")]
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("deviations", "said"),
    [
        ((measure("level", rel=2),), "contributions differ"),
        ((Deviation("binary grades", "", "judgments", binary),), "grade 2 here, 1 there"),
    ],
    ids=["level", "grades"],
)
def test_differences_in_gain_or_grades_are_reported(deviations, said):
    name = "RR" if deviations[0].of == "measure" else "nDCG@3"
    qrels = {"q": {"a": 1, "b": 2}} if deviations[0].of == "measure" else {"q": {"a": 2, "b": 1}}
    found = reconcile(qrels, {"q": ["a", "b"]}, name, profile(*deviations), query="q")
    assert said in render(found, "table", Options(full=True))


def test_printed_changes_add_up_as_printed():
    drawn = batch(3, queries=60)
    found = reconcile(drawn.qrels, drawn.run, "nDCG@5", profile(*DEVIATIONS[:5]))
    lines = render(found).splitlines()[3:10]
    rows = [re.split(r"\s{2,}", line) for line in lines]
    means = [Decimal(row[1]) for row in rows]
    changes = [Decimal(row[2]) for row in rows[1:]]
    assert sum(changes[:-1]) == changes[-1] == means[-1] - means[0]


def test_without_deviations_nothing_differs():
    found = reconcile(QRELS, RUN, "AP", profile())
    assert (found.difference, found.moved, found.sides) == (0.0, (), None)
    assert "all have the same value there" in render(found)


def test_json_is_by_the_published_schema():
    for steps in ((), DEVIATIONS[:4]):
        found = reconcile(QRELS, RUN, "nDCG@5", profile(*steps))
        jsonschema.validate(json.loads(render(found, "json")), strict("reconciliation-1"))


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_every_form_has_the_same_content(form):
    text = render(reconcile(QRELS, RUN, "nDCG@5", profile(*DEVIATIONS)), form)
    for one in DEVIATIONS:
        assert one.name in text


def test_an_unknown_profile_or_form_is_refused():
    with pytest.raises(UnknownName, match="pytrec_eval"):
        reconcile(QRELS, RUN, "AP", "pytrek_eval")
    with pytest.raises(UnknownName, match="unknown format 'text'"):
        render(reconcile(QRELS, Run.of(RUN), "AP", profile()), "text")


def test_caveats_of_a_tool_are_reported_and_its_rounding_is_a_step():
    qrels, run = {"q1": {"a": 1, "b": 2, "c": 1}}, {"q1": ["c", "x", "a"]}
    found = reconcile(qrels, run, "nDCG@10", "beir")
    assert found.theirs == round(found.ours, 5) != found.ours
    assert found.left_over() == "rounding"
    text = render(found)
    assert "\nrounding " in text
    assert "caution with beir: MRR and Accuracy are computed after evaluate()" in text
    unrounded = reconcile(qrels, {"q1": ["x", "y", "a"]}, "RR@10", "mteb")
    assert unrounded.theirs == unrounded.ours == 1 / 3
    assert not any("rounds means" in note for note in unrounded.notes)
