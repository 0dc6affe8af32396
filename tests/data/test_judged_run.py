"""A run with judgments: padding, sums, discounts, and the list of judged documents."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import Batch, batches, few_scores, joined

from rankgauge.data.judged_run import UNRANKED, JudgedRun, discounts
from rankgauge.measures.measure import parse


def _only_block(made: Batch) -> JudgedRun:
    """Return all queries in one block, in order."""
    found = joined(made.qrels, made.run)
    ((places, block),) = found.blocks(np.arange(len(found.qrels)), cells=10**6)
    order = np.argsort(places)
    return JudgedRun(**{name: array[order] for name, array in block.__getstate__().items()})


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(st.floats(-1e6, 1e6), min_size=width, max_size=width), min_size=1, max_size=5)
    ),
    st.integers(0, 40),
)
def test_a_total_is_added_from_left_to_right_whatever_the_padding(rows: list[list[float]], padding: int) -> None:
    padded = np.pad(np.array(rows), ((0, 0), (0, padding)))
    for row, total in zip(rows, JudgedRun.total(padded).tolist(), strict=True):
        wanted = 0.0
        for number in row:
            wanted += number
        assert total == wanted


def test_a_total_of_flags_is_a_count() -> None:
    assert JudgedRun.total(np.array([[True, True, False]])).tolist() == [2.0]


def test_a_total_is_no_pairwise_sum() -> None:
    """1 and many halves of its last bit: each is lost if added one by one."""
    row = np.array([[1.0, *[2.0**-53] * 4096]])
    assert JudgedRun.total(row).tolist() == [1.0]
    assert row.sum() != 1.0


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=20))
def test_discounts_are_those_of_the_formula_and_0_for_padding(ranks: list[int]) -> None:
    found = discounts(np.array([[*ranks, UNRANKED]]))[0].tolist()
    assert found == [*(1 / math.log2(rank + 1) for rank in ranks), 0.0]


def test_discounts_are_the_same_from_many_threads() -> None:
    wanted = [1 / math.log2(rank + 1) for rank in range(1, 200_001)]
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda top: discounts(np.arange(1, top + 1)), [10, 70_000, 200_000] * 8)
        for array in found:
            assert array.tolist() == wanted[: len(array)]


@given(batches())
def test_the_judged_list_is_the_run_without_the_rest(made: Batch) -> None:
    run = {
        query: {doc: score for doc, score in scores.items() if made.qrels.get(query, {}).get(doc, -1) >= 0}
        for query, scores in made.run.items()
    }
    only, wanted = _only_block(made).judged_only(), _only_block(Batch(made.qrels, run))
    width = wanted.rank.shape[1]
    for part in ("rank", "grade", "in_qrels", "judged", "tie_first", "tie_last"):
        narrow = getattr(only, part)
        assert np.array_equal(narrow[:, :width], getattr(wanted, part)), part
        # The remaining cells are padding.
        pad = {"grade": 0, "in_qrels": False, "judged": False}.get(part, UNRANKED)
        assert (narrow[:, width:] == pad).all(), part
    for part in ("retrieved", "ideal", "n_judged"):
        assert np.array_equal(getattr(only, part), getattr(wanted, part)), part


def test_a_pooled_document_does_not_lengthen_a_tie_of_judged_ones() -> None:
    equal = dict.fromkeys(("a", "b", "c", "d"), 1.0)
    block = _only_block(Batch({"q": {"a": -1, "b": 1, "c": 0}}, {"q": equal})).judged_only()
    assert block.rank.tolist() == [[1, 2, UNRANKED]]
    assert block.tie_first.tolist() == [[1, 1, UNRANKED]]
    assert block.tie_last.tolist() == [[2, 2, UNRANKED]]


@given(batches(scores=few_scores), st.sampled_from((0.5, 1, 2, 3, 9)), st.integers(1, 9))
def test_counts_of_relevant_documents_come_from_the_judgments(made: Batch, rel: float, k: int) -> None:
    block = _only_block(made)
    grades = [list(pairs.values()) for pairs in made.qrels.values()]
    depths = [len(made.run.get(query, {})) for query in made.qrels]
    assert block.relevant(rel).tolist() == [sum(g >= rel for g in row) for row in grades]
    assert block.non_relevant(rel).tolist() == [sum(0 <= g < rel for g in row) for row in grades]
    assert block.n_judged.tolist() == [sum(g >= 0 for g in row) for row in grades]
    assert block.depth(None).tolist() == depths
    assert block.depth(k).tolist() == [min(k, depth) for depth in depths]
    assert block.hits(rel, k).tolist() == (block.hits(rel) & (block.rank <= k)).tolist()


def test_a_list_of_grades_is_a_run_with_everything_judged() -> None:
    run = JudgedRun.from_grades([0, 3, -1, 2], ideal=[3, 3, 2, 0])
    assert run.rank.tolist() == [[1, 2, 3, 4]]
    assert run.judged.tolist() == [[True, True, False, True]]
    assert run.ideal.tolist() == [[3, 3, 2, 0]]
    assert run.retrieved.tolist() == [4]


@pytest.mark.parametrize("grades", [[], [-1.0]])
def test_a_list_without_a_grade_is_a_run_too(grades: list[float]) -> None:
    run = JudgedRun.from_grades(grades)
    assert run.retrieved.tolist() == [len(grades)]
    assert run.n_judged.tolist() == [0]
    assert not run.hits(1).any()


def test_equal_runs_are_equal_and_travel_by_pickle() -> None:
    run = JudgedRun.from_grades([0, 3, 2])
    assert pickle.loads(pickle.dumps(run)) == run
    assert run != JudgedRun.from_grades([0, 3, 1])
    assert run != "a run"


@given(batches())
def test_cached_arrays_of_a_measure_change_no_value_of_another(made: Batch) -> None:
    run = _only_block(made)
    names = (
        "nDCG",
        "nDCG(gain=exp)",
        "nDCG(gain={1:5,2:1})@2",
        "DCG@3",
        "DCG(gain=exp)@3",
        "P@2",
        "P(rel=2)@2",
        "P@5",
        "R@2",
        "R(rel=2)@5",
        "RR",
        "RR(rel=2)@2",
        "AP",
        "AP(rel=2)@3",
        "P(judged_only=True)@2",
        "IPrec(rel=2)@0.5",
        "Judged@2",
        "Success(rel=2)@5",
    )
    for name in (*names, *reversed(names)):
        fresh = JudgedRun(**run.__getstate__())
        wanted = parse(name).values(fresh)
        assert np.array_equal(parse(name).values(run), wanted, equal_nan=True), name
