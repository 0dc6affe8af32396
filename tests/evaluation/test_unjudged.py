"""Unjudged documents: removed, all relevant, or random; compared with loops and manual examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from oracles import Seen
from strategies import Batch, batch, batches, by_loop

from rankgauge import (
    Evaluation,
    InputError,
    Policies,
    UnknownName,
    compare,
    evaluate,
    list_measures,
    parse,
    unjudged_report,
)
from rankgauge.evaluation import Drawing, UnjudgedReport
from rankgauge.evaluation.unjudged import Prior
from rankgauge.measures.declaration import SPECIAL
from rankgauge.measures.measure import Measure
from rankgauge.reports.catalogue import example

ALL = [example(bare) for bare in list_measures() if bare.declaration.reads not in SPECIAL]


@pytest.fixture(scope="module")
def made() -> Batch:
    return batch(41, queries=30)


def column(found: Evaluation, measure: Measure) -> dict[str, float]:
    values = found.per_query[:, found.measures.index(measure)]
    return dict(zip(found.query_ids, values.tolist(), strict=True))


@pytest.fixture(scope="module")
def removed(made: Batch) -> Evaluation:
    return evaluate(made.qrels, made.run, ALL, unjudged="removed")


@pytest.fixture(scope="module")
def report(made: Batch) -> UnjudgedReport:
    return unjudged_report(made.qrels, made.run, ALL)


def same(value: float | None, other: float) -> bool:
    if value is None:
        return math.isnan(other)
    return other == pytest.approx(value, abs=1e-12)


# ---- removed


@pytest.mark.parametrize("measure", ALL, ids=str)
def test_removed_is_the_condensed_list_of_each_query(made: Batch, removed: Evaluation, measure: Measure) -> None:
    values = column(removed, measure)
    condensed = "judged_only" in measure.declaration.words
    changed = 0
    for query in made.qrels:
        whole = made.seen(query)
        seen = whole.judged_only() if condensed else whole
        assert same(by_loop(measure, seen), values[query]), query
        changed += len(seen.ranking) < len(whole.ranking)
    assert bool(changed) == condensed


def test_removed_is_a_policy_that_is_noted_and_saved(made: Batch) -> None:
    found = evaluate(made.qrels, made.run, ["RR", "P@5"], unjudged="removed")
    assert found.policies == Policies(unjudged="removed")
    assert Evaluation.from_json(found.to_json()) == found
    assert any("are removed from the rankings (unjudged=removed)" in n for n in found.notes)
    assert list(found.mean()) == ["RR", "P@5"]
    # The first ranks are those of the same lists.
    firsts = column(evaluate(made.qrels, made.run, "FirstRel", unjudged="removed"), parse("FirstRel"))
    at_1 = sum(rank == 1 for rank in firsts.values())
    assert any(f"first hit: rank 1 in {at_1} quer" in note for note in found.notes)


def test_different_policies_of_unjudged_documents_are_not_compared(made: Batch) -> None:
    one = evaluate(made.qrels, made.run, "AP")
    other = evaluate(made.qrels, made.run, "AP", unjudged="removed")
    with pytest.raises(InputError, match="policies"):
        compare([one, replace(other, run_name="other")])


@pytest.mark.parametrize("word", ["drop", "", "condensed"])
def test_an_unknown_treatment_is_refused(word: Any) -> None:
    with pytest.raises(UnknownName, match="not relevant, removed"):
        evaluate({"q": {"d": 1}}, {"q": ["d"]}, "RR", unjudged=word)


@given(batches())
def test_only_ties_between_judged_documents_could_change_a_condensed_list(made: Batch) -> None:
    def tied(query: str) -> bool:
        scores, grades = made.run.get(query, {}), made.qrels[query]
        worths: dict[float, set[float]] = {}
        for doc, score in scores.items():
            if grades.get(doc, -1) >= 0:
                worths.setdefault(score, set()).add(grades[doc])
        return any(len(group) > 1 for group in worths.values())

    if not any(query in made.qrels for query in made.run):
        return
    found = evaluate(made.qrels, made.run, "AP", unjudged="removed")
    assert found.counts["tied"] == sum(map(tied, made.qrels))


# ---- all relevant, condensed lists, judged shares


def _all_relevant(seen: Seen, measure: Measure, top: float) -> Seen:
    """Return the query with the top grade for each unjudged document above the cut-off."""
    k = dict(measure.params).get("k")
    new = {doc: top for doc in seen.ranking[:k] if seen.grades.get(doc, -1) < 0}
    return Seen(seen.ranking, {**seen.grades, **new})


@pytest.mark.parametrize("measure", ALL, ids=str)
def test_all_relevant_agrees_with_loops_using_the_top_grade(
    made: Batch, report: UnjudgedReport, measure: Measure
) -> None:
    assert report.top == 4
    found = report.all_relevant[:, report.none_relevant.measures.index(measure)]
    values = dict(zip(report.none_relevant.query_ids, found.tolist(), strict=True))
    for query in made.qrels:
        wanted = by_loop(measure, _all_relevant(made.seen(query), measure, 4.0))
        assert same(wanted, values[query]), query


def test_the_report_holds_what_evaluations_say(made: Batch) -> None:
    names = ["nDCG@5", "AP", "P@5", "RR@3"]
    found = unjudged_report(made.qrels, made.run, names, drawing=Drawing(draws=20))
    assert found.none_relevant == evaluate(made.qrels, made.run, names)
    assert found.condensed == evaluate(made.qrels, made.run, names, unjudged="removed")
    rows = {row[0]: row for row in found.table().rows}
    judged = evaluate(made.qrels, made.run, ["Judged@5", "Judged"], undefined="skip").mean()
    assert rows["P@5"][6] == judged["Judged@5"]
    assert rows["AP"][6] == judged["Judged"]
    assert rows["AP"][1] == found.none_relevant.mean()["AP"]
    assert rows["AP"][4] is None
    assert isinstance(rows["nDCG@5"][4], float)


def test_a_value_that_falls_when_all_are_relevant_is_noted() -> None:
    found = unjudged_report({"q": {"a": 1}}, {"q": ["a", "x", "y"]}, ["AP", "P@3"])
    assert found.all_relevant.tolist() == [[1.0, 1.0]]
    found = unjudged_report({"q": {"a": 1, "b": 0}}, {"q": ["a", "b", "x"]}, ["AP", "P@3"])
    assert found.all_relevant[0, 0] == pytest.approx((1 + 2 / 3) / 2)
    notes = [note for note in found.table().notes if "below 'none relevant'" in note]
    assert notes == ["AP: below 'none relevant' for 1 query: its denominator grows"]


def test_only_queries_that_are_asked_for_are_reported(made: Batch) -> None:
    some = list(made.qrels)[3:9]
    found = unjudged_report(made.qrels, made.run, "P@5", queries=iter(some))
    assert list(found.none_relevant.query_ids) == some
    whole = unjudged_report(made.qrels, made.run, "P@5")
    at = [whole.none_relevant.query_ids.index(query) for query in some]
    assert np.array_equal(found.all_relevant, whole.all_relevant[at], equal_nan=True)


def test_ties_that_need_grades_are_refused() -> None:
    with pytest.raises(UnknownName, match="choose one of: trec, input"):
        unjudged_report({"q": {"a": 1}}, {"q": ["a"]}, "AP", ties="mean")


# ---- random grades

SMALL = {"q1": {"a": 3, "b": 0, "c": 1, "away": 2}}
RANKING = {"q1": ["x", "a", "y", "b", "c"]}


def _expected(prior: Sequence[tuple[float, float]], k: int) -> float:
    """Return the expected nDCG@k over all grades of x and y."""
    total = 0.0
    places = [doc for doc in RANKING["q1"][:k] if doc not in SMALL["q1"]]
    for drawn in product(prior, repeat=len(places)):
        grades = {**SMALL["q1"], **{d: g for d, (g, _) in zip(places, drawn, strict=True)}}
        chance = math.prod(share for _, share in drawn)
        total += chance * (by_loop(parse(f"nDCG@{k}"), Seen(RANKING["q1"], grades)) or 0.0)
    return total


@pytest.mark.parametrize(
    ("prior", "chances"),
    [
        ("pool", {3: 1 / 4, 0: 1 / 4, 1: 1 / 4, 2: 1 / 4}),
        # Down to rank 4 the run has a and b.
        ("run", {3: 1 / 2, 0: 1 / 2}),
        ("run and pool", {3: 3 / 8, 0: 3 / 8, 1: 1 / 8, 2: 1 / 8}),
    ],
    ids=["pool", "run", "run and pool"],
)
def test_drawn_grades_have_the_mean_that_all_ways_to_draw_have(prior: Prior, chances: dict[float, float]) -> None:
    how = Drawing(draws=20_000, seed=5, prior=prior)
    found = unjudged_report(SMALL, RANKING, "nDCG@4", drawing=how).bootstrapped[parse("nDCG@4")]
    assert found.mean == pytest.approx(_expected(list(chances.items()), 4), abs=0.004)
    assert found.low < found.mean < found.high <= 1


def test_without_unjudged_documents_nothing_is_left_open() -> None:
    run = {"q1": ["b", "a", "c"]}
    found = unjudged_report(SMALL, run, "nDCG@3")
    value = found.none_relevant.mean()["nDCG@3"]
    assert found.bootstrapped[parse("nDCG@3")] == pytest.approx((value, value, value))
    assert found.all_relevant.tolist() == [[value]]
    assert found.condensed.mean()["nDCG@3"] == value


def test_queries_are_drawn_independently_so_that_intervals_narrow_with_their_number() -> None:
    def width(queries: int) -> float:
        names = [f"q{number}" for number in range(queries)]
        found = unjudged_report(
            dict.fromkeys(names, SMALL["q1"]), dict.fromkeys(names, RANKING["q1"]), "nDCG@4", drawing=Drawing(400)
        )
        (drawn,) = found.bootstrapped.values()
        return drawn.high - drawn.low

    assert width(64) == pytest.approx(width(4) / 4, rel=0.25)


def test_judgments_that_are_nearly_all_relevant_are_no_fair_prior() -> None:
    def warned(grades: dict[str, float]) -> bool:
        found = unjudged_report({"q": grades}, {"q": ["x", "a"]}, "nDCG@2", drawing=Drawing(9))
        return any("of the judgments are relevant" in note for note in found.table().notes)

    assert warned({"a": 1, "b": 2})
    assert not warned({"a": 1, "b": 0})


def test_draws_of_a_query_do_not_depend_on_other_queries(made: Batch) -> None:
    how = Drawing(draws=50, seed=3)
    some = list(made.qrels)[:40]
    qrels = {query: made.qrels[query] for query in some}
    run = {query: made.run.get(query, {}) for query in some}
    one = unjudged_report(qrels, run, "nDCG@5", drawing=how).bootstrapped
    turned = {query: qrels[query] for query in reversed(some)}
    other = unjudged_report(turned, run, "nDCG@5", drawing=how).bootstrapped
    assert one == other
    assert one != unjudged_report(qrels, run, "nDCG@5", drawing=Drawing(50, seed=4)).bootstrapped


@pytest.mark.parametrize(
    "words", [{"draws": 0}, {"draws": 10**9}, {"seed": -1}, {"level": 1.5}, {"prior": "all"}], ids=str
)
def test_a_drawing_that_is_not_possible_is_refused(words: dict[str, Any]) -> None:
    with pytest.raises((InputError, UnknownName)):
        Drawing(**words)


@given(batches())
def test_values_stay_in_their_bounds_however_documents_are_judged(made: Batch) -> None:
    if not any(query in made.qrels for query in made.run):
        return
    found = unjudged_report(made.qrels, made.run, ["nDCG@3", "AP", "RR"], drawing=Drawing(5))
    known = found.all_relevant[~np.isnan(found.all_relevant)]
    assert ((known >= 0) & (known <= 1 + 1e-12)).all()
    drawn = found.bootstrapped[parse("nDCG@3")]
    assert 0 <= drawn.low <= drawn.high <= 1 + 1e-12
