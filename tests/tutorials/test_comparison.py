"""Retrievers in one table, with the values of evaluate()."""

import pytest

from rankgauge import evaluate
from rankgauge.errors import InputError, UnknownName
from rankgauge.tutorials import RetrieverComparison

GRADED = [
    {"retrieved": ["d1", "d3", "d2"], "relevant": ["d1", "d2"], "scores": {"d1": 1, "d2": 3}},
    {"retrieved": ["d4", "d5"], "relevant": ["d5"], "scores": {"d5": 2}},
]


def test_scores_by_document_id_are_grades():
    found = RetrieverComparison([2]).evaluate_retriever("A", GRADED)
    grades = {"1": {"d1": 1, "d2": 3}, "2": {"d5": 2}}
    run = {"1": ["d1", "d3", "d2"], "2": ["d4", "d5"]}
    true = evaluate(grades, run, ["R@2", "P@2", "RR", "nDCG@2", "Success@2"]).mean()
    assert found.retriever_name == "A"
    assert [found.recall[2], found.precision[2], found.mrr, found.ndcg[2], found.hit_rate[2]] == [*true.values()]


def test_records_of_any_shape_are_taken():
    comparison = RetrieverComparison(k_values=[1])
    assert comparison.k_values == (1,)
    assert comparison.evaluate_retriever("A", [(["d1"], {"d1"})]).mrr == 1.0
    scored = [{"retrieved": ["d1", "d2"], "relevant": ["d2"], "scores": [0.9, 0.8]}]
    assert comparison.evaluate_retriever("B", scored).mrr == 0.5


def test_names_are_escaped():
    comparison = RetrieverComparison([1])
    found = comparison.evaluate_retriever("a|b", [(["d1"], {"d1"})])
    assert r"a\|b" in comparison.compare([found])


def test_incomparable_results_are_an_error():
    found = RetrieverComparison([1]).evaluate_retriever("A", GRADED)
    with pytest.raises(InputError, match="'A' was not evaluated at k = 3"):
        RetrieverComparison([1, 3]).compare([found])
    with pytest.raises(InputError, match="no result"):
        RetrieverComparison().compare([])
    with pytest.raises(InputError, match="no record"):
        RetrieverComparison().evaluate_retriever("A", [])
    with pytest.raises(UnknownName):
        RetrieverComparison([0])
