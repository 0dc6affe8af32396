"""Measures estimated from samples, compared with sample_eval.pl, slow loops, and full judgments."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import ranked

from rankgauge import InputError, Measure, Qrels, SampledQrels, evaluate, list_measures
from rankgauge.data import fingerprint, read_sampled_qrels
from rankgauge.data.join import join
from rankgauge.data.run import Run
from rankgauge.evaluation import read_judgments

NAMES = [bare.name for bare in list_measures() if bare.declaration.reads == "samples"]
ASKED = ["xinfAP", "xinfAP(rel=2)", "infNDCG", "infNDCG@1", "infNDCG@5", "infNDCG@20"]

Strata = Mapping[str, Mapping[str, float]]


def _sizes(strata: Strata) -> dict[str, Fraction]:
    """Return the number of documents in each stratum per judged document."""
    return {
        name: Fraction(len(docs), max(sum(grade >= 0 for grade in docs.values()), 1)) for name, docs in strata.items()
    }


def xinfAP(ranking: list[str], strata: Strata, *, rel: float = 1) -> float | None:
    """Yilmaz, Kanoulas, and Aslam (2008), section 4.1: the mean over strata of the expected
    precision at a relevant document of each, weighted by the estimated number of relevant
    documents in it. One of three pseudo-documents in each stratum is relevant.
    """
    sizes = _sizes(strata)
    relevant = {name: {d for d, g in docs.items() if g >= rel} for name, docs in strata.items()}
    estimated = {name: sizes[name] * len(docs) for name, docs in relevant.items()}
    whole = sum(estimated.values(), Fraction(0))
    if not whole:
        return None
    value = 0.0
    for name, docs in relevant.items():
        expected = 0.0
        for place in (ranking.index(doc) for doc in docs if doc in ranking):
            above = 0.0
            for others in strata.values():
                seen = [others[other] for other in ranking[:place] if other in others]
                good = sum(1 for grade in seen if grade >= rel)
                bad = sum(1 for grade in seen if 0 <= grade < rel)
                above += len(seen) * (good + 1e-5) / (good + bad + 3e-5)
            expected += (1 + above) / (place + 1)
        if docs:
            value += float(estimated[name] / whole) * expected / len(docs)
    return value


def infNDCG(ranking: list[str], strata: Strata, *, k: int | None = None) -> float | None:
    """Section 5 of the paper: the mean gain of the judged documents retrieved from a stratum, times
    the number retrieved from it; and an ideal ranking of whole documents.
    """
    gained = 0.0
    for docs in strata.values():
        places = [place for place, doc in enumerate(ranking[:k], start=1) if doc in docs]
        grades = {place: docs[ranking[place - 1]] for place in places}
        judged = {place: grade for place, grade in grades.items() if grade >= 0}
        if judged:
            gain = math.fsum(grade / math.log2(place + 1) for place, grade in judged.items())
            gained += len(places) * gain / len(judged)
    sizes = _sizes(strata)
    estimated: dict[float, Fraction] = {}
    for name, docs in strata.items():
        for grade in docs.values():
            estimated[grade] = estimated.get(grade, Fraction(0)) + sizes[name]
    ideal = [
        grade
        for grade in sorted((grade for grade in estimated if grade > 0), reverse=True)
        for _ in range(math.floor(estimated[grade] + Fraction(1, 2)))
    ]
    best = math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal[:k], start=1))
    return gained / best if best else None


LOOPS = {"xinfAP": xinfAP, "infNDCG": infNDCG}


def batch(seed: int, queries: int = 60) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    """Return random strata, some judged completely and some in part, and a run."""
    rng = random.Random(seed)
    judged: dict[str, Any] = {}
    run: dict[str, dict[str, float]] = {}
    for number in range(queries):
        query, left = f"q{number}", rng.sample(range(60), 40)
        judged[query] = {}
        for stratum in range(rng.randint(1, 4)):
            docs = [left.pop() for _ in range(rng.randint(1, 9))]
            rate = rng.choice((1.0, 0.6, 0.3))
            grades = [rng.choice((0, 0, 1, 2, 3)) if rng.random() < rate else -1 for _ in docs]
            own = {f"d{doc}": float(grade) for doc, grade in zip(docs, grades, strict=True)}
            judged[query][f"s{stratum}"] = own
        if number % 8:
            found = rng.sample(range(60), rng.randint(0, 50))
            run[query] = {f"d{doc}": float(rng.randint(0, rng.choice((5, 10**6)))) for doc in found}
    return judged, run


def test_every_measure_has_a_loop() -> None:
    assert set(NAMES) == set(LOOPS)


@pytest.mark.parametrize("name", ASKED)
def test_a_measure_agrees_with_its_loop(name: str) -> None:
    judged, run = batch(1)
    found = evaluate(judged_of(judged), run, name)
    compared = 0
    for query, ours in zip(found.query_ids, found.per_query[:, 0].tolist(), strict=True):
        measure = found.measures[0]
        theirs = LOOPS[measure.name](ranked(run.get(query, {})), judged[query], **dict(measure.params))
        assert math.isnan(ours) if theirs is None else ours == pytest.approx(theirs, rel=1e-12)
        compared += theirs is not None
    assert compared > 30


def judged_of(judged: Any) -> SampledQrels:
    return SampledQrels.of(judged)


def test_the_best_grade_of_each_query_is_its_level() -> None:
    judged, run = batch(6)
    found = evaluate(judged_of(judged), run, "xinfAP(rel=best)").per_query[:, 0]
    best = [max(g for docs in strata.values() for g in docs.values()) for strata in judged.values()]
    levels = evaluate(judged_of(judged), run, [f"xinfAP(rel={rel})" for rel in (1, 2, 3)])
    nothing = [place for place, grade in enumerate(best) if grade <= 0]
    assert np.isnan(found[nothing]).all()
    for row, grade in enumerate(best):
        if grade > 0:
            assert found[row] == levels.per_query[row, int(grade) - 1]
    assert len({*best} - {0.0, -1.0}) > 1


@pytest.mark.parametrize("ties", ["best", "worst", "mean"])
def test_where_grades_alone_would_decide_ties_it_is_refused(ties: Any) -> None:
    judged, run = batch(7, queries=4)
    with pytest.raises(InputError, match="not available for measures of samples"):
        evaluate(judged_of(judged), run, ["AP", "infNDCG"], ties=ties)


def test_where_all_was_judged_it_is_ndcg() -> None:
    judged, run = batch(2)
    whole = {q: {s: {d: abs(g) for d, g in docs.items()} for s, docs in strata.items()} for q, strata in judged.items()}
    found = evaluate(judged_of(whole), run, ["infNDCG", "nDCG", "infNDCG@5", "nDCG@5"]).per_query
    np.testing.assert_allclose(found[:, [0, 2]], found[:, [1, 3]], rtol=1e-13)


@pytest.mark.parametrize(("measure", "name"), [("infNDCG", "infNDCG"), ("xinfAP", "infAP")])
def test_values_are_those_of_sample_eval(data_folder: Path, measure: str, name: str) -> None:
    folder = data_folder / "sampled"
    theirs = json.loads((folder / "sample_eval.json").read_text())[name]
    found = evaluate(folder / "qrels.txt", folder / "run.txt", measure)
    assert len(found.query_ids) == 30
    for query, value in zip(found.query_ids, found.per_query[:, 0].tolist(), strict=True):
        assert value == pytest.approx(theirs[query], abs=5.1e-5)
    assert found.mean()[measure] == pytest.approx(theirs["all"], abs=5.1e-5)


def test_rates_of_the_gain_are_those_of_the_retrieved() -> None:
    """Both retrieved documents are judged, so a alone is the gain; the pool has four."""
    judged = judged_of({"1": {"1": {"a": 1, "b": 0, "c": -1, "d": -1}}})
    found = evaluate(judged, {"1": ["a", "b"]}, "infNDCG").mean()["infNDCG"]
    assert found == pytest.approx(0.6131, abs=5e-5)


def test_an_unjudged_document_is_relevant_with_one_third() -> None:
    judged = judged_of({"1": {"1": {"x": -1}, "2": {"a": 1}}})
    found = evaluate(judged, {"1": ["x", "a"]}, "xinfAP").mean()["xinfAP"]
    assert found == pytest.approx(2 / 3)


def test_values_agree_with_manual_calculations() -> None:
    """Two of four documents of "deep" were judged, so each relevant one counts as two."""
    judged = {"q": {"top": {"a": 1}, "deep": {"b": 1, "c": 0, "d": -1, "e": -1}}}
    mean = evaluate(judged_of(judged), {"q": ["a", "d", "b"]}, ["xinfAP", "infNDCG"]).mean()
    third = math.log2(3)
    # b at rank 3: itself, a (relevant), and d, which is unknown: one third.
    assert mean["xinfAP"] == pytest.approx((1 + 2 * (1 + 1 + 1 / 3) / 3) / 3, abs=1e-5)
    # One of two documents retrieved from "deep" is judged.
    assert mean["infNDCG"] == pytest.approx((1 + 2 * 0.5) / (1 + 1 / third + 1 / 2))


def test_the_estimate_is_right_in_the_mean() -> None:
    """The estimates of DCG and of the number of relevant documents are unbiased."""
    rng = random.Random(5)
    grades = {f"d{place}": float(rng.choice((0, 0, 0, 1, 2))) for place in range(60)}
    run = {"q": {doc: rng.random() for doc in grades}}
    truth = evaluate({"q": grades}, run, ["nDCG", "AP"]).mean()
    found: dict[str, list[float]] = {"infNDCG": [], "xinfAP": []}
    for _ in range(300):
        docs = list(grades)
        drawn = {*docs[:15], *rng.sample(docs[15:], 25)}
        judged = {
            "q": {
                "top": {d: grades[d] for d in docs[:15]},
                "deep": {d: grades[d] if d in drawn else -1 for d in docs[15:]},
            }
        }
        for name, value in evaluate(judged_of(judged), run, list(found)).mean().items():
            found[name].append(value)
    assert np.mean(found["infNDCG"]) == pytest.approx(truth["nDCG"], abs=0.02)
    assert np.mean(found["xinfAP"]) == pytest.approx(truth["AP"], abs=0.03)


def test_any_cut_into_blocks_and_any_order_gives_the_same_bits() -> None:
    judged, run = batch(4)
    wanted = evaluate(judged_of(judged), run, ASKED).per_query
    found = Run.of(run)
    whole = judged_of(judged)
    joined = join(whole.qrels, found, ties="trec")
    asked = evaluate(whole, run, ASKED).measures
    for cells in (1, 60, 10**9):
        for places, block in whole.blocks(joined, np.arange(len(whole)), cells=cells):
            for column, measure in enumerate(asked):
                rows = measure.values(block)
                assert np.array_equal(rows, wanted[places, column], equal_nan=True)
    rows = [(q, d, s, g) for q, strata in judged.items() for s, docs in strata.items() for d, g in docs.items()]
    random.Random(1).shuffle(rows)
    other = evaluate(judged_of(rows), run, ASKED)
    back = [other.query_ids.index(query) for query in judged]
    assert np.array_equal(other.per_query[back], wanted, equal_nan=True)


# ---- the judgments

LINES = "q1 0 d1 a 1\nq1 0 d2 b 0\nq1 0 d3 b -1\n"
JUDGED = {"q1": {"a": {"d1": 1.0}, "b": {"d2": 0.0, "d3": -1.0}}}


def test_files_and_mappings_give_the_same_values(tmp_path: Path) -> None:
    path = tmp_path / "prels"
    path.write_text(LINES, encoding="utf-8")
    found = read_sampled_qrels(path)
    assert {query: found[query] for query in found} == JUDGED
    assert found == judged_of(JUDGED)
    assert found.qrels == Qrels.of({"q1": {"d1": 1, "d2": 0, "d3": -1}})
    table = tmp_path / "a.csv"
    table.write_text("query_id,iteration,doc_id,stratum,relevance\n" + LINES.replace(" ", ","))
    assert read_judgments(table, "infNDCG") == found
    assert fingerprint(found) == fingerprint(judged_of(JUDGED)) != fingerprint(found.qrels)


def test_judgments_without_strata_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("q1 0 d1 1\n", encoding="utf-8")
    with pytest.raises(InputError, match="got 4 fields, expected 5: query iteration document str"):
        evaluate(path, {"q1": ["d1"]}, "infNDCG")
    with pytest.raises(InputError, match="these judgments have no strata"):
        evaluate(Qrels.of({"q1": {"d1"}}), {"q1": ["d1"]}, "infNDCG")
    with pytest.raises(InputError, match="got 1 for documents"):
        evaluate({"q1": {"d1": 1}}, {"q1": ["d1"]}, "infNDCG")
    with pytest.raises(InputError, match="duplicate document 'd' for query 'q'"):
        judged_of([("q", "d", "a", 1), ("q", "d", "b", 1)])
    with pytest.raises(InputError, match="reads subtopics and infNDCG reads samples"):
        evaluate(judged_of(JUDGED), {"q1": ["d1"]}, ["alpha_nDCG@5", "infNDCG"])


def test_ties_and_notes() -> None:
    judged = judged_of(JUDGED)
    assert evaluate(judged, {"q1": {"d2": 1.0, "d3": 1.0}}, "infNDCG").counts["tied"] == 1
    assert evaluate(judged, {"q1": {"d2": 1.0, "x": 0.5}}, "xinfAP").counts["tied"] == 0
    found = evaluate(judged, {"q1": ["d1"]}, ["infNDCG", "nDCG"])
    assert any("a sample was judged" in note for note in found.notes)
    assert found.mean() == {"infNDCG": 1.0, "nDCG": 1.0}


def test_without_a_relevant_document_a_value_is_undefined() -> None:
    found = evaluate({"q": {"s": {"d": 0, "e": -1}}}, {"q": ["d"]}, ["infNDCG", "xinfAP"])
    assert found.undefined.all()
    assert Measure("infNDCG").declaration.bounds[1] == math.inf
