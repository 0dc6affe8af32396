"""How a number was computed: settings that reproduce it are found, and uncertainty is reported."""

import json
import math

import jsonschema
import pytest
import pytrec_eval
from schemas import strict
from strategies import batch

from rankgauge import InputError, MismatchError, UnknownName, evaluate, reproduce
from rankgauge.reports import render


@pytest.fixture(scope="module")
def data():
    drawn = batch(21, queries=120, grades=(0, 0, 1, 1, 2, 3), missing=False)
    return drawn.qrels, drawn.run


def values(evaluation, digits=None):
    column = evaluation.per_query[:, 0].tolist()
    pairs = zip(evaluation.query_ids, column, strict=True)
    shown = {query: 0.0 if math.isnan(value) else value for query, value in pairs}
    return {q: v if digits is None else round(v, digits) for q, v in shown.items()}


@pytest.mark.parametrize(
    ("asked", "made", "ties", "found"),
    [
        ("nDCG@10", "nDCG(ideal=retrieved)@10", "trec", "ideal of retrieved documents"),
        ("nDCG@10", "nDCG(ideal=topk)@10", "trec", "ideal of the first k"),
        ("nDCG@10", "nDCG(gain=exp)@10", "trec", "gain 2^grade - 1"),
        ("nDCG(gain=exp)@10", "nDCG@10", "trec", "gain = grade"),
        ("nDCG@10", "nDCG@9", "trec", "cut-off 9"),
        ("nDCG@10", "nDCG(judged_only=true)@10", "trec", "judged documents only"),
        ("nDCG@10", "nDCG@10", "input", "ties as given"),
        ("nDCG@10", "nDCG(ideal=retrieved)@10", "input", "ties as given + ideal of retrieved documents"),
        ("AP@10", "AP(norm='min(k,R)')@10", "trec", "divided by min(k, R)"),
        ("AP@10", "AP(norm=retrieved)@10", "trec", "divided by those found"),
        ("P@5", "P(rel=2)@5", "trec", "relevant from grade 2"),
        ("RR", "RR", "input", "ties as given"),
        ("ERR(top=4)@10", "ERR(top=3)@10", "trec", "top grade 3"),
    ],
    ids=str,
)
def test_the_source_of_the_values_is_found(asked, made, ties, found, data):
    there = evaluate(*data, made, ties=ties)
    result = reproduce(*data, asked, values(there, 4))
    assert result.best.name == found
    assert result.sure == "sure"
    assert result.best.missed == 0
    whole = result.reconciliation
    assert abs(whole.theirs - there.mean()[str(there.measures[0])]) <= 1e-4
    parts = [*(one.change for one in whole.contributions), whole.rest]
    assert abs(math.fsum(parts) - whole.difference) <= 1e-12


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda grade: min(grade, 1), "binary grades"),
        (lambda grade: 4 - grade if grade > 0 else grade, "grades reversed"),
    ],
    ids=["binary", "reversed"],
)
def test_judgments_read_in_another_way_are_found(change, found, data):
    qrels, run = data
    theirs = {q: {d: change(grade) for d, grade in docs.items()} for q, docs in qrels.items()}
    result = reproduce(qrels, run, "nDCG@10", values(evaluate(theirs, run, "nDCG@10"), 4))
    assert (result.best.name, result.sure) == (found, "sure")


def test_documents_by_ascending_id_and_upside_down_are_found(data):
    qrels, run = data
    up = {q: dict(sorted(docs.items(), key=lambda p: (-p[1], p[0].encode()))) for q, docs in run.items()}
    found = reproduce(qrels, run, "nDCG@10", values(evaluate(qrels, up, "nDCG@10", ties="input")))
    assert found.best.name == "ties by ascending id"
    down = {q: {d: -s for d, s in docs.items()} for q, docs in run.items()}
    found = reproduce(qrels, run, "nDCG@10", values(evaluate(qrels, down, "nDCG@10")))
    assert found.best.name == "lowest score first"


def test_values_of_pytrec_eval_are_found_where_32_bits_make_ties():
    drawn = batch(5, queries=40, grades=(0, 1, 2), missing=False)
    qrels = {q: {d: int(g) for d, g in docs.items()} for q, docs in drawn.qrels.items()}
    run = {q: {d: 0.5 + n % 7 * 1e-9 for n, d in enumerate(docs)} for q, docs in drawn.run.items()}
    del run["q1"]
    said = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
    found = reproduce(qrels, run, "nDCG@10", said)
    assert found.best.missed == 0
    # Here no tool based on trec_eval 9 gives other values.
    assert "pytrec_eval" in {found.best.name, *found.best.same}
    assert found.best.profile
    assert found.reconciliation.queries == (40, 39)
    assert abs(found.reconciliation.rest) < 1e-12


def test_which_queries_were_averaged_is_found():
    drawn = batch(8, queries=80)
    there = evaluate(drawn.qrels, drawn.run, "AP", queries="intersection")
    found = reproduce(drawn.qrels, drawn.run, "AP", values(there))
    assert found.best.name == "only queries of the run"
    assert found.best.missed == 0


def test_equal_numbers_say_that_there_is_nothing_to_explain(data):
    found = reproduce(*data, "nDCG@10", values(evaluate(*data, "nDCG@10"), 4))
    assert found.best.ours
    assert found.best.name == "as in rankgauge"
    assert found.reconciliation.contributions == ()
    assert found.reconciliation.left_over() == "rounding"


def test_deviations_that_no_query_distinguishes_are_undecided():
    qrels, run = {"q1": {"a": 1, "b": 0}}, {"q1": ["a", "b"]}
    found = reproduce(qrels, run, "nDCG@10", {"q1": 1.0})
    assert found.sure in {"likely", "undecided"}
    assert "1 value" in found.title()


def test_a_rival_that_reproduces_everything_too_makes_it_undecided_and_is_named():
    # 2 / (3 + 2/log2(3) + 1/log2(4)) = .42, and .36 without a discount at rank 2: both are .4.
    qrels, run = {"q1": {"a": 2, "b": 3, "c": 1}}, {"q1": ["a"]}
    found = reproduce(qrels, run, "nDCG@10", {"q1": 0.4})
    assert (found.best.ours, found.sure) == (True, "undecided")
    assert "but also by 'no discount at rank 2'" in found.why
    assert "no query distinguishes them to 1 digit" in found.why


def test_of_two_equal_explanations_neither_is_certain():
    qrels = {"q1": {"a": 1, "b": 1, "c": 1}, "q2": {"a": 1}}
    run = {"q1": ["a", "b", "x"], "q2": ["a"]}
    found = reproduce(qrels, run, "nDCG@3", {"q1": 1.0, "q2": 1.0})
    assert found.sure == "likely"
    assert "1 query distinguishes this variant from the next best" in found.why


def test_an_unstable_sort_is_distinguished_from_impossible_tie_orders(data):
    qrels, run = data
    given = values(evaluate(qrels, run, "nDCG@10"))
    high = values(evaluate(qrels, run, "nDCG@10", ties="best"))
    low = values(evaluate(qrels, run, "nDCG@10", ties="worst"))
    wide = [query for query in given if high[query] - low[query] > 0.01][:5]
    for query in wide:
        given[query] = low[query] + 0.3 * (high[query] - low[query])
    first = next(query for query in given if query not in wide and high[query] == low[query] > 0)
    given[first] = 0.987654321
    found = reproduce(qrels, run, "nDCG@10", given)
    assert (found.best.ours, found.best.missed, found.tied) == (True, 6, 5)
    assert "5 of the 6 values that are missed are within" in " ".join(render(found).split())


def test_numbers_of_something_else_are_not_found_and_all_is_left_over(data):
    wrong = dict.fromkeys(data[0], 0.123)
    found = reproduce(*data, "nDCG@10", wrong)
    assert found.sure == "not found"
    assert found.reconciliation.contributions == ()
    assert found.reconciliation.rest == pytest.approx(found.reconciliation.difference)
    text = render(found)
    assert "unexplained" in text
    assert "found:" not in text.replace("not found:", "")


def test_a_mean_alone_finds_a_unique_explanation_with_its_chance(data):
    there = evaluate(*data, "nDCG(ideal=retrieved)@10").mean()["nDCG(ideal=retrieved)@10"]
    found = reproduce(*data, "nDCG@10", f"{there:.8f}")
    assert (found.best.name, found.sure) == ("ideal of retrieved documents", "sure")
    vague = reproduce(*data, "nDCG@10", f"{there:.1f}")
    assert vague.sure == "undecided"
    assert "pass the values of each query" in vague.why
    strange = reproduce(*data, "nDCG@10", "0.999999")
    assert strange.sure == "not found"
    assert strange.fits[0].mean == max(fit.mean for fit in strange.fits)


def test_it_is_the_same_each_time(data):
    given = values(evaluate(*data, "nDCG(gain=exp,ideal=topk)@10", ties="input"), 3)
    first, again = (reproduce(*data, "nDCG@10", given) for _ in range(2))
    assert first.to_json() == again.to_json()
    assert len(first.reconciliation.contributions) == 3


def test_values_of_half_of_the_queries_are_compared_with_these_queries(data):
    whole = values(evaluate(*data, "nDCG(gain=exp)@10"), 4)
    half = dict(list(whole.items())[: len(whole) // 2])
    found = reproduce(*data, "nDCG@10", half)
    assert (found.best.name, found.best.missed, found.sure) == ("gain 2^grade - 1", 0, "sure")
    assert "has values of 60 of the 120 judged queries: only these" in found.given.notes[0]
    assert found.reconciliation.queries == (60, 60)
    assert abs(found.reconciliation.rest) <= 1e-4


@pytest.mark.parametrize("given", ["1.7", {"q1": 0.5, "q2": 61.2}], ids=["mean", "values"])
def test_impossible_values_of_the_measure_are_reported(given, data):
    found = reproduce(*data, "nDCG@10", given)
    assert "outside the range of nDCG@10 (0 to 1)" in found.given.notes[0]
    assert found.sure == "not found"


def test_a_mean_that_three_deviations_explain_is_not_certain(data):
    made = evaluate(*data, "nDCG(gain=exp,ideal=topk)@10", ties="input").mean()
    found = reproduce(*data, "nDCG@10", f"{next(iter(made.values())):.8f}")
    assert found.sure in {"likely", "undecided"}


def test_scores_of_32_bits_in_a_stable_sort_are_found():
    rows = [("b", 0.1234567891), ("a", 0.1234567892), ("c", 0.1)]
    qrels = {f"q{n}": {"a": 1, "c": 2} for n in range(6)}
    run = {query: dict(rows) for query in qrels}
    as_single = {query: ["b", "a", "c"] for query in qrels}
    found = reproduce(qrels, run, "RR", values(evaluate(qrels, as_single, "RR")))
    assert found.best.missed == 0
    ways = {found.best.name, *found.best.same}
    assert ways & {"32-bit scores", "32-bit scores + ties as given"}


def test_values_of_other_queries_are_refused(data):
    with pytest.raises(MismatchError, match="nobody"):
        reproduce(*data, "AP", {"nobody": 0.5})


def test_an_impossible_deviation_is_skipped():
    qrels = {"q1": {"a": 1000, "b": 2}, "q2": {"b": 5}}
    found = reproduce(qrels, {"q1": ["b", "a"], "q2": ["b"]}, "nDCG@10", {"q1": 1.0, "q2": 1.0})
    assert found.tried > 10
    with pytest.raises(InputError):
        evaluate(qrels, {"q1": ["b", "a"]}, "nDCG(gain=exp)@10")


def test_every_form_and_the_published_schema(data):
    for given in (dict.fromkeys(data[0], 0.5), "0.5", values(evaluate(*data, "P@10"))):
        found = reproduce(*data, "nDCG@10", given)
        written = json.loads(render(found, "json"))
        jsonschema.validate(written, strict("reproduction-1"))
        head = {"schema": "rankgauge/reconciliation/1", "rankgauge": written["rankgauge"]}
        jsonschema.validate(head | written["reconciliation"], strict("reconciliation-1"))
        for form in ("table", "markdown", "html"):
            assert found.why[:20] in " ".join(render(found, form).split())
    with pytest.raises(UnknownName):
        render(found, "text")
