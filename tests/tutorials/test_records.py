"""Measures of one record: the values of evaluate() and of the plain functions."""

import inspect

import pytest
from hypothesis import given, strategies as st

from rankgauge import functional as fn
from rankgauge.errors import InputError
from rankgauge.tutorials import (
    GradedRetrievalMetrics,
    GradedRetrievalResult,
    RetrievalEvaluator,
    RetrievalMetrics,
    RetrievalResult,
)

DOCS = [f"d{number}" for number in range(8)]
rankings = st.lists(st.sampled_from(DOCS), unique=True, max_size=8)


@given(rankings, st.sets(st.sampled_from(DOCS)), st.integers(1, 9))
def test_a_record_has_the_values_of_the_functions(retrieved, relevant, k):
    result = RetrievalResult("q1", retrieved, relevant, [-float(n) for n in range(len(retrieved))])
    for name in ("precision_at_k", "recall_at_k", "f1_at_k", "ndcg_at_k", "hit_rate_at_k"):
        value = getattr(RetrievalMetrics, name)(result, k)
        assert value == getattr(fn, name)(retrieved, relevant, k)
    for name in ("average_precision", "reciprocal_rank"):
        assert getattr(RetrievalMetrics, name)(result) == getattr(fn, name)(retrieved, relevant)


@given(rankings, st.dictionaries(st.sampled_from(DOCS), st.integers(0, 3), min_size=1), st.integers(1, 9))
def test_a_graded_record_has_the_values_of_the_functions(retrieved, grades, k):
    result = GradedRetrievalResult("q1", retrieved, grades)
    ndcg = GradedRetrievalMetrics.graded_ndcg_at_k(result, k)
    assert ndcg == fn.ndcg_at_k(retrieved, grades, k, gain="exp")
    err = GradedRetrievalMetrics.expected_reciprocal_rank(result)
    assert err == fn.expected_reciprocal_rank(retrieved, grades)


def test_the_methods_are_static_and_work_on_an_object_too():
    result = RetrievalResult("q1", ["d1", "d2"], {"d2"}, [0.9, 0.8])
    assert RetrievalMetrics().recall_at_k(result, 2) == 1.0
    assert not inspect.signature(RetrievalResult).parameters["retrieval_scores"].default
    graded = GradedRetrievalResult("q1", ["d1"], {"d1": 3})
    assert GradedRetrievalMetrics().expected_reciprocal_rank(graded, max_grade=3) == 7 / 8


def test_the_ideal_ranking_has_the_documents_that_were_missed():
    """With an ideal ranking of only retrieved documents, as in tutorials, it would be 1."""
    result = RetrievalResult("q1", ["d1", "d3"], {"d1", "d2"})
    assert RetrievalMetrics.ndcg_at_k(result, 2) == pytest.approx(0.6131, abs=5e-5)


def test_the_evaluator_takes_them():
    results = [
        RetrievalResult("q1", ["d1", "d3", "d5", "d2", "d7"], {"d1", "d2", "d4"}),
        RetrievalResult("q2", ["d6", "d8", "d1", "d9", "d2"], {"d1", "d2"}),
    ]
    found = RetrievalEvaluator([1, 3, 5]).evaluate(results)
    assert f"{found['MAP']:.4f} {found['MRR']:.4f}" == "0.4333 0.6667"


def test_a_document_twice_is_an_error():
    with pytest.raises(InputError, match="d1"):
        RetrievalMetrics.precision_at_k(RetrievalResult("q", ["d1", "d1"], {"d1"}), 1)
