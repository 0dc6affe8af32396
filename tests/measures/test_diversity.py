"""Diversity measures compared with loops, ndeval, and papers, and their invariants."""

from __future__ import annotations

import math
import random
from typing import Any

import diverse
import numpy as np
import pytest
from diverse import Judgments, Scores
from hypothesis import given, strategies as st
from oracles import ranked

from rankgauge import Measure, SubtopicQrels, evaluate, list_measures
from rankgauge.data.join import join
from rankgauge.data.run import Run

CATALOGUE = [bare for bare in list_measures() if bare.declaration.reads == "subtopics"]
NAMES = [bare.name for bare in CATALOGUE]
_GRID: dict[str, tuple[Any, ...]] = {
    "alpha": (0, 0.1, 0.9, 1),
    "judged_only": (True,),
    "k": (1, 2, 3, 5, 10, 20, 60),
    "p": (0.2, 0.9),
    "rel": (2, 0.5),
}


def variants(bare: Measure) -> list[Measure]:
    """Return a measure with each value of each parameter."""
    base = dict.fromkeys(bare.declaration.required, 5)
    words = bare.declaration.words
    others = (bare(**{**base, word: value}) for word in words for value in _GRID[word])
    return list(dict.fromkeys([bare(**base), *others]))


ALL = [measure for bare in CATALOGUE for measure in variants(bare)]


def values(judged: Judgments, run: Scores, asked: list[Measure]) -> np.ndarray:
    return evaluate(SubtopicQrels.of(judged), run, asked).per_query


def by_loop(measure: Measure, scores: dict[str, float], judged: Any) -> float | None:
    words = measure.arguments
    return diverse.value(measure.name, words, ranked(scores), judged)


def differs(ours: float, theirs: float | None) -> bool:
    return not math.isnan(ours) if theirs is None else not abs(ours - theirs) <= 1e-12


# ---- independent checks


def test_every_measure_has_a_loop_and_every_loop_a_measure() -> None:
    assert set(NAMES) == set(diverse.LOOPS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_measure_agrees_with_its_loop(name: str, seed: int) -> None:
    judged, run = diverse.batch(seed)
    asked = variants(Measure(name))
    found = values(judged, run, asked)
    for row, query in enumerate(judged):
        for column, measure in enumerate(asked):
            theirs = by_loop(measure, run.get(query, {}), judged[query])
            ours = float(found[row, column])
            assert not differs(ours, theirs), f"{measure} of {query}: {ours!r}, loop {theirs!r}"
    assert 0 < np.isnan(found).sum() < found.size / 2


def test_the_batch_contains_the_difficult_cases() -> None:
    """Otherwise the comparison would prove little."""
    judged, run = diverse.batch(1)
    assert 0 < len(judged.keys() & run.keys()) < len(judged)
    tied = evaluate(SubtopicQrels.of(judged), run, "alpha_nDCG@5").counts["tied"]
    assert 5 < tied < len(judged)
    grades = [g for docs in judged.values() for own in docs.values() for g in own.values()]
    assert min(grades) < 0
    assert max(grades) > 1


_NDEVAL = {
    "alpha_DCG": "alpha-DCG",
    "alpha_nDCG": "alpha-nDCG",
    "ERR_IA": "ERR-IA",
    "nERR_IA": "nERR-IA",
    "P_IA": "P-IA",
    "StRecall": "strec",
    "NRBP": "NRBP",
    "nNRBP": "nNRBP",
    "AP_IA": "MAP-IA",
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("alpha", [0.5, 0.25])
def test_a_measure_agrees_with_ndeval(name: str, alpha: float) -> None:
    """Alphas with exact powers; with others, ndeval's ideal ranking depends on rounding."""
    pyndeval = pytest.importorskip("pyndeval")
    judged, run = diverse.batch(5, queries=150)
    whole = {
        query: {doc: {s: math.floor(g) for s, g in own.items()} for doc, own in docs.items()}
        for query, docs in judged.items()
    }
    rows = [(q, s, doc, g) for q, docs in whole.items() for doc, own in docs.items() for s, g in own.items()]
    # ndeval orders ties differently, so it gets ranks.
    lines = [(q, d, -i) for q, own in run.items() for i, d in enumerate(ranked(own))]
    bare, compared = Measure(name), 0
    given_words = {"alpha": alpha, "p": 0.7}
    words = {word: v for word, v in given_words.items() if word in bare.declaration.words}
    for rel in (1, 2):
        for k in (2, 5, 20) if bare.declaration.required else (None,):
            measure = bare(**words, rel=rel, **({} if k is None else {"k": k}))
            theirs = _NDEVAL[name] + ("" if k is None else f"@{k}")
            answers = pyndeval.RelevanceEvaluator(rows, [theirs], relevance_level=rel, alpha=alpha, beta=0.7).evaluate(
                lines
            )
            found = evaluate(SubtopicQrels.of(whole), run, measure)
            for query, ours in zip(found.query_ids, found.per_query[:, 0].tolist(), strict=True):
                if query in answers:
                    # ndeval has no undefined values: it prints 0, or 0 / 0 for nNRBP.
                    said = answers[query][theirs]
                    assert abs(np.nan_to_num(ours) - np.nan_to_num(said)) < 1e-12, (measure, query)
                    compared += 1
    assert compared > 200


def test_ndeval_does_not_divide_at_the_first_rank() -> None:
    """Named exception: its alpha-DCG@1 and ERR-IA@1 are not divided; those at 2 and above are."""
    pyndeval = pytest.importorskip("pyndeval")
    rows = [("1", "1", "d", 1), ("1", "2", "d", 1), ("1", "3", "e", 1)]
    answers = pyndeval.ndeval(rows, [("1", "d", 1.0)], ["alpha-DCG@1", "ERR-IA@1"])
    judged = {"1": {"d": ["1", "2"], "e": ["3"]}}
    found = evaluate(SubtopicQrels.of(judged), {"1": ["d"]}, ["alpha_DCG@1", "ERR_IA@1"])
    assert found.per_query[0].tolist() == [2 / 3, 2 / 3]
    assert list(answers["1"].values()) == [2.0, 2.0]


# ---- manual calculations

# Clarke et al. (2008), section 3.3: documents a to j and the nuggets of each.
_PAPER = {
    "a": ["2", "5"],
    "b": ["2", "5", "6"],
    "c": ["2"],
    "d": [],
    "e": ["1", "6"],
    "f": ["1"],
    "g": ["1", "3", "4"],
    "h": [],
    "i": [],
    "j": [],
}


def test_values_agree_with_manual_calculations() -> None:
    """Gains of b a g e: 3, 1/2 + 1/2, 3, 1/2 + 1/2; of the ideal g b e a: 3, 3, 1/2 + 1/2, 1."""
    judged = {"q": {doc: own for doc, own in _PAPER.items() if own}}
    asked = [
        "alpha_nDCG@2",
        "alpha_DCG@2",
        "P_IA@4",
        "StRecall@2",
        "StRecall@3",
        "ERR_IA@2",
        "nERR_IA@4",
        "NRBP",
        "AP_IA",
    ]
    mean = evaluate(SubtopicQrels.of(judged), {"q": ["b", "a", "g", "e"]}, asked).mean()
    second = 1 / math.log2(3)
    assert mean == pytest.approx(
        {
            "alpha_nDCG@2": (3 + second) / (3 + 3 * second),
            "alpha_DCG@2": (3 + second) / (6 + 3 * second),
            # Relevant in the first four: 1, 2, 5, and 6 twice; 3 and 4 once.
            "P_IA@4": 10 / 24,
            "StRecall@2": 3 / 6,
            "StRecall@3": 1.0,
            "ERR_IA@2": (3 + 1 / 2) / (6 + 3 / 2),
            "nERR_IA@4": (3 + 1 / 2 + 3 / 3 + 1 / 4) / (3 + 3 / 2 + 1 / 3 + 1 / 4),
            "NRBP": (3 + 1 / 2 + 3 / 4 + 1 / 8) * 0.75 / 6,
            # Subtopic 1: g e f; 2: a b c; 3, 4: g; 5: a b; 6: b e.
            "AP_IA": ((1 / 3 + 2 / 4) / 3 + (1 + 1) / 3 + 1 / 3 + 1 / 3 + 1 + (1 + 2 / 4) / 2) / 6,
        }
    )


def test_the_ideal_ranking_of_the_paper_is_worth_1() -> None:
    judged = {"q": {doc: own for doc, own in _PAPER.items() if own}}
    found = evaluate(
        SubtopicQrels.of(judged), {"q": ["g", "b", "e", "a", "f", "c"]}, ["alpha_nDCG@10", "nERR_IA@10", "nNRBP"]
    )
    assert found.per_query.tolist() == [[1.0, 1.0, 1.0]]


def test_a_ranking_may_beat_the_ideal_one_and_no_more_than_the_bound_says() -> None:
    """The greedy ideal starts with x, which has most at once; y and z together cover more."""
    judged = {"q": {"x": ["1", "2", "3", "4"], "y": ["1", "2", "5"], "z": ["3", "4", "6"]}}
    mean = evaluate(SubtopicQrels.of(judged), {"q": ["y", "z"]}, "alpha_nDCG(alpha=1)@2").mean()
    second = 1 / math.log2(3)
    assert list(mean.values()) == [pytest.approx((3 + 3 * second) / (4 + second))]
    assert 1 < next(iter(mean.values())) < Measure("alpha_nDCG").declaration.bounds[1]


@pytest.mark.parametrize(("seed", "alpha"), [(21, 0.7), (19, 0.9)])
def test_the_ideal_ranking_does_not_depend_on_rounding(seed: int, alpha: float) -> None:
    """Gains that are equal as fractions are equal, whatever their float sums are."""
    judged, run = diverse.batch(seed, queries=80)
    measure = Measure("alpha_nDCG")(alpha=alpha, k=10)
    found = values(judged, run, [measure])[:, 0].tolist()
    for query, ours in zip(judged, found, strict=True):
        assert not differs(ours, by_loop(measure, run.get(query, {}), judged[query])), query


# ---- invariants


def test_values_stay_within_the_declared_bounds() -> None:
    for seed in range(10, 20):
        judged, run = diverse.batch(seed)
        for measure, column in zip(ALL, values(judged, run, ALL).T, strict=True):
            low, high = measure.declaration.bounds
            known = column[~np.isnan(column)]
            assert (known >= low).all(), measure
            assert (known <= high * (1 + 1e-12)).all(), measure


def test_any_cut_into_blocks_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    judged, run = diverse.batch(3)
    wanted = values(judged, run, ALL)
    for query in list(judged)[::7]:
        alone = values({query: judged[query]}, {query: run.get(query, {})}, ALL)
        assert np.array_equal(alone[0], wanted[list(judged).index(query)], equal_nan=True)
    found = Run.of(run)
    whole = SubtopicQrels.of(judged)
    joined = join(whole.qrels, found, ties="trec")
    for cells in (1, 50, 10**9):
        for places, block in whole.blocks(joined, np.arange(len(whole)), cells=cells):
            for column, measure in enumerate(ALL):
                rows = measure.values(block)
                assert np.array_equal(rows, wanted[places, column], equal_nan=True), measure


@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_the_order_of_the_input_and_the_names_of_subtopics_change_nothing(seed: int, rng: random.Random) -> None:
    judged, run = diverse.batch(seed, queries=4)
    asked = [bare(**dict.fromkeys(bare.declaration.required, 5)) for bare in CATALOGUE]
    wanted = values(judged, run, asked)
    others = [f"s{place}" for place in range(12)]
    rng.shuffle(others)
    names = dict(zip(map(str, range(12)), others, strict=True))
    rows = [(q, names[s], doc, g) for q, docs in judged.items() for doc, own in docs.items() for s, g in own.items()]
    rng.shuffle(rows)
    other = evaluate(SubtopicQrels.of(rows), run, asked)
    back = [other.query_ids.index(query) for query in judged]
    # The gains of a document's subtopics are added in another order.
    np.testing.assert_allclose(other.per_query[back], wanted, rtol=1e-12, atol=0)


@given(st.integers(0, 1000), st.sampled_from((-3.0, 2.0**20)), st.sampled_from((0.5, 4.0)))
def test_exact_shifts_and_scales_of_the_scores_change_nothing(seed: int, shift: float, scale: float) -> None:
    judged, run = diverse.batch(seed, queries=4)
    asked = [bare(**dict.fromkeys(bare.declaration.required, 5)) for bare in CATALOGUE]
    moved = {q: {d: s * scale + shift for d, s in own.items()} for q, own in run.items()}
    assert np.array_equal(values(judged, moved, asked), values(judged, run, asked), equal_nan=True)


def test_with_one_subtopic_they_are_the_ordinary_measures() -> None:
    judged, run = diverse.batch(8)
    one = {q: {doc: {"1": max(own.values())} for doc, own in docs.items()} for q, docs in judged.items()}
    found = evaluate(
        SubtopicQrels.of(one),
        run,
        ["P_IA@5", "AP_IA", "StRecall@3", "NRBP(alpha=0,p=0.8)", "P@5", "AP", "Success@3", "RBP(p=0.8)"],
    ).per_query
    known = ~np.isnan(found[:, 0])
    np.testing.assert_allclose(found[known, :4], found[known, 4:], rtol=1e-14)
    assert 0 < known.sum() < len(known)


def test_a_cut_off_without_an_end_is_added_up_as_far_as_it_counts() -> None:
    judged = {"q": {"d": ["1"]}}
    asked = "alpha_DCG@1000000000"
    assert evaluate(SubtopicQrels.of(judged), {"q": ["d"]}, asked).mean()[asked] > 0.5
    with pytest.raises(ValueError, match="alpha=0 needs a sum over 1,000,000,000 ranks"):
        evaluate(SubtopicQrels.of(judged), {"q": ["d"]}, "alpha_DCG(alpha=0)@1000000000")


def test_the_best_grade_of_each_query_is_its_level() -> None:
    judged, run = diverse.batch(31)
    asked = [
        "alpha_nDCG({})@5",
        "ERR_IA({})@5",
        "NRBP({})",
        "AP_IA({})",
        "P_IA({})@5",
        "StRecall({})@5",
        "alpha_DCG({})@5",
        "nERR_IA({})@5",
        "nNRBP({})",
    ]
    names = [name.format("rel=best") for name in asked]
    found = evaluate(SubtopicQrels.of(judged), run, names).per_query
    best = [max(g for own in docs.values() for g in own.values()) for docs in judged.values()]
    levels = {grade for grade in best if grade > 0}
    assert len(levels) > 2
    for level in levels:
        plain = [name.format(f"rel={level:g}") for name in asked]
        whole = evaluate(SubtopicQrels.of(judged), run, plain).per_query
        rows = [row for row, grade in enumerate(best) if grade == level]
        assert found[rows].tolist() == whole[rows].tolist()
    assert np.isnan(found[[row for row, grade in enumerate(best) if grade <= 0]]).all()
