"""Every measure with a counterpart in trec_eval, compared with pytrec_eval."""

from __future__ import annotations

import math

import numpy as np
import pytest
import pytrec_eval
from strategies import batch, differs, joined, values

from rankgauge import UnknownName, list_measures, parse
from rankgauge.measures.declaration import SPECIAL
from rankgauge.measures.measure import Measure

CATALOGUE = [bare for bare in list_measures() if bare.declaration.reads not in SPECIAL]

_TREC_CUTOFFS = (1, 2, 3, 5, 10, 20, 100, 1000)
_TREC_LEVELS = (1, 2, 3, 4, 5)
_RECALLS = tuple(tenth / 10 for tenth in range(11))
# Measures of version 10, which pytrec_eval lacks: test_oracle_files.py compares trec_eval itself.
_OF_TREC_EVAL_ONLY = {"Unjudged", "YAAP"}
TWINS = [bare.name for bare in CATALOGUE if bare.declaration.trec and bare.name not in _OF_TREC_EVAL_ONLY]
# The relevance level of trec_eval does not affect gains.
LEVELLED = {bare.name for bare in CATALOGUE if bare.declaration.defaults.get("rel") == 1}

Answers = dict[str, dict[str, float]]


def _twins(bare: Measure) -> dict[str, Measure]:
    """Return our measures by their names in trec_eval, without a relevance level."""
    declared = bare.declaration
    points = {"k": _TREC_CUTOFFS, "mult": declared.curve, "recall": _RECALLS}[declared.at]
    found = [bare @ point for point in points if declared.at in declared.words]
    if not declared.required:
        found.append(bare())
    return {name: measure for measure in found if (name := measure.trec_name())}


def _asked() -> set[str]:
    """Return the counterparts in the format of pytrec_eval: one name with all of its cut-offs."""
    whole, cut = set(), dict[str, list[str]]()
    for name in TWINS:
        for twin in _twins(Measure(name)):
            stem, _, point = twin.rpartition("_")
            if point.replace(".", "").isdigit():
                cut.setdefault(stem, []).append(point)
            else:
                whole.add(twin)
    return whole | {f"{stem}.{','.join(points)}" for stem, points in cut.items()}


class Twin:
    """A batch that pytrec_eval accepts, and its values for one set of options."""

    def __init__(self) -> None:
        made = batch(31, queries=1200, grades=(-2, -1, -1, 0, 0, 1, 1, 2, 3, 4), deepest=60)
        for grades in made.qrels.values():
            # It aborts on a query whose grades are all -2.
            if max(grades.values()) < -1:
                grades["never-but-judged"] = 0
        self.made = made
        self.joined = joined(made.qrels, made.run)
        self.whole = {query: {doc: int(grade) for doc, grade in grades.items()} for query, grades in made.qrels.items()}
        self._known: dict[tuple[int, bool], Answers] = {}

    def answers(self, rel: int, *, judged_only: bool = False) -> Answers:
        key = (rel, judged_only)
        if key not in self._known:
            evaluator = pytrec_eval.RelevanceEvaluator(
                self.whole, _asked(), relevance_level=rel, judged_docs_only_flag=judged_only
            )
            self._known[key] = evaluator.evaluate(self.made.run)
        return self._known[key]


@pytest.fixture(scope="module")
def twin() -> Twin:
    return Twin()


def _compared_with_pytrec_eval(case: Twin, name: str, measure: Measure, answers: Answers) -> int:
    compared = 0
    found = values(case.joined, [measure])[:, 0].tolist()
    for query, ours in zip(case.joined.qrels.query_ids, found, strict=True):
        if query not in case.made.run:
            assert query not in answers
            continue
        theirs = answers[query][name]
        # It has no undefined values and returns 0.
        counted = 0.0 if math.isnan(ours) else ours
        if name in {"gm_map", "gm_bpref"}:
            # It returns the logarithm, including the lower bound.
            counted = math.log(max(counted, 1e-5))
        if math.isnan(theirs):
            # Named exception: with an empty ranking (-J) it computes 0 / 0.
            assert measure.name in {"IPrec", "IPrecAvg"}
            assert not case.made.seen(query).judged_only().ranking
            theirs = 0.0
        assert not differs(counted, theirs), f"{measure} of {query}: {ours!r}, pytrec_eval {theirs!r}"
        compared += 1
    return compared


@pytest.mark.parametrize("name", TWINS)
def test_a_measure_agrees_with_pytrec_eval(name: str, twin: Twin) -> None:
    bare = Measure(name)
    words = bare.declaration.words
    levels = _TREC_LEVELS if name in LEVELLED else (1,)
    both = len(twin.made.qrels.keys() & twin.made.run.keys())
    compared, pairs = 0, _twins(bare)
    assert pairs, "a measure that names a twin must have one to compare with"
    for trec, measure in pairs.items():
        for rel in levels:
            leveled = measure(rel=rel) if name in LEVELLED else measure
            compared += _compared_with_pytrec_eval(twin, trec, leveled, twin.answers(rel))
    assert compared == both * len(pairs) * len(levels)
    if "judged_only" not in words:
        return
    for trec, measure in pairs.items():
        only = measure(judged_only=True)
        answers = twin.answers(1, judged_only=True)
        assert _compared_with_pytrec_eval(twin, trec, only, answers) == both


def test_the_batch_for_pytrec_eval_contains_the_difficult_cases(twin: Twin) -> None:
    """Otherwise the comparison would prove little."""
    found = twin.joined
    assert 0 < len(found.numbers) < len(found.qrels)
    assert len(found.unknown_queries) > 10
    assert len(found.tied()) > 300
    assert (found.grade < 0).sum() > 500
    assert both_sides(values(found, [parse("NumRel")])[:, 0] > 0)
    assert both_sides(values(found, [parse("NumRet")])[:, 0] > 500)


def both_sides(flags: np.ndarray) -> bool:
    return bool(flags.any()) and not flags.all()


@pytest.mark.parametrize("name", TWINS)
def test_the_name_of_the_twin_is_read_as_the_measure(name: str) -> None:
    for trec, measure in _twins(Measure(name)).items():
        assert parse(trec) == measure


@pytest.mark.parametrize("mult", ["0.05", "0.2", "0.5", "", "1.4", "2"])
@pytest.mark.parametrize("name", ["P", "R", "nDCG", "AP", "Success", "RelP"])
def test_a_cut_off_relative_to_r_agrees_with_the_cut_off_of_each_query(name: str, mult: str, twin: Twin) -> None:
    found = values(twin.joined, [parse(f"{name}@{mult}R")])[:, 0].tolist()
    numbered = {query: sum(grade >= 1 for grade in grades.values()) for query, grades in twin.whole.items()}
    depths = {query: max(1, int(float(mult or 1) * number + 0.9)) for query, number in numbered.items()}
    stem = parse(f"{name}@10").trec_name().removesuffix("_10")
    asked = {f"{stem}.{','.join(map(str, sorted(set(depths.values()))))}"}
    theirs = pytrec_eval.RelevanceEvaluator(twin.whole, asked).evaluate(twin.made.run)
    for query, ours in zip(twin.joined.qrels.query_ids, found, strict=True):
        assert math.isnan(ours) == (not numbered[query])
        if numbered[query] and query in theirs:
            assert not differs(ours, theirs[query][f"{stem}_{depths[query]}"])
    if name == "P":
        assert np.array_equal(found, values(twin.joined, [parse(f"RprecMult@{mult or 1}")])[:, 0], equal_nan=True)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("P@2R", "P@2R"), ("p@r", "P@R"), ("P@1.0R", "P@R"), ("nDCG(rel=2)@.50R", "nDCG(rel=2)@0.5R")],
)
def test_the_name_of_a_relative_cut_off(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical
    assert parse(canonical) == parse(text) == parse(text.partition("@")[0] + "@10") @ canonical.partition("@")[2]
    assert parse(text).cutoff is None


@pytest.mark.parametrize(
    "text", ["P@0R", "P@-1R", "P@xR", "P@RR", "P@2Rx", "alpha_nDCG@R", "StRecall@2R", "RprecMult@2R"]
)
def test_a_relative_cut_off_that_is_not_valid(text: str) -> None:
    with pytest.raises(UnknownName):
        parse(text)
