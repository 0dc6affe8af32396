"""Records of one query, and their measures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankgauge.evaluation.evaluation import evaluate
from rankgauge.measures.measure import Measure


@dataclass(frozen=True)
class RetrievalResult:
    """Retrieved and relevant documents of a query.

    Attributes:
        query_id: The identifier of the query.
        retrieved_doc_ids: The ranking, best first.
        relevant_doc_ids: The relevant documents.
        retrieval_scores: The retriever's score of each retrieved document. If scores and order of
            the list disagree, the scores determine the ranking.
    """

    query_id: Any
    retrieved_doc_ids: Sequence[Any]
    relevant_doc_ids: Collection[Any]
    retrieval_scores: Sequence[float] | None = None


@dataclass(frozen=True)
class GradedRetrievalResult:
    """Retrieved documents of a query, and the grades of its judged documents.

    Attributes:
        query_id: The identifier of the query.
        retrieved_doc_ids: The ranking, best first.
        relevance_grades: Grades by document id.
    """

    query_id: Any
    retrieved_doc_ids: Sequence[Any]
    relevance_grades: Mapping[Any, float]


class RetrievalMetrics:
    """Measures of a :class:`RetrievalResult`; undefined values (no relevant documents) are 0.0.

    The ideal ranking of nDCG has all relevant documents, retrieved or not.

    Example:
        >>> result = RetrievalResult("q1", ["d1", "d3", "d5", "d2", "d7"], {"d1", "d2", "d4"})
        >>> RetrievalMetrics.precision_at_k(result, 5), RetrievalMetrics.average_precision(result)
        (0.4, 0.5)
        >>> round(RetrievalMetrics.ndcg_at_k(result, 3), 4)
        0.4693
    """

    @staticmethod
    def precision_at_k(result: RetrievalResult, k: int) -> float:
        """Return the share of the first k ranks with a relevant document."""
        return _value(Measure("P")(k=k), result)

    @staticmethod
    def recall_at_k(result: RetrievalResult, k: int) -> float:
        """Return the share of the relevant documents that are in the first k ranks."""
        return _value(Measure("R")(k=k), result)

    @staticmethod
    def f1_at_k(result: RetrievalResult, k: int) -> float:
        """Return the harmonic mean of precision and recall at k."""
        return _value(Measure("F")(k=k), result)

    @staticmethod
    def average_precision(result: RetrievalResult) -> float:
        """Return the average precision."""
        return _value(Measure("AP"), result)

    @staticmethod
    def reciprocal_rank(result: RetrievalResult) -> float:
        """Return 1 / the rank of the first relevant document."""
        return _value(Measure("RR"), result)

    @staticmethod
    def ndcg_at_k(result: RetrievalResult, k: int) -> float:
        """Return nDCG at k; each relevant document has grade 1."""
        return _value(Measure("nDCG")(k=k), result)

    @staticmethod
    def hit_rate_at_k(result: RetrievalResult, k: int) -> float:
        """Return 1.0 if a relevant document is in the first k ranks, else 0.0."""
        return _value(Measure("Success")(k=k), result)


class GradedRetrievalMetrics:
    """Measures of a :class:`GradedRetrievalResult`; undefined values are 0.0.

    Example:
        >>> grades = {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}
        >>> result = GradedRetrievalResult("q1", ["c", "a", "d", "b", "e"], grades)
        >>> round(GradedRetrievalMetrics.graded_ndcg_at_k(result, 5), 4)
        0.7223
        >>> round(GradedRetrievalMetrics.expected_reciprocal_rank(result, max_grade=3), 4)
        0.5198
    """

    @staticmethod
    def graded_ndcg_at_k(result: GradedRetrievalResult, k: int) -> float:
        """Return nDCG at k with the gain 2^grade - 1."""
        return _value(Measure("nDCG")(k=k, gain="exp"), result)

    @staticmethod
    def expected_reciprocal_rank(result: GradedRetrievalResult, max_grade: float = 4) -> float:
        """Return the expected reciprocal rank; `max_grade` is the highest grade of the scale."""
        return _value(Measure("ERR")(top=max_grade), result)


def _value(measure: Measure, result: RetrievalResult | GradedRetrievalResult) -> float:
    return evaluate([result], measures=measure).mean()[str(measure)]
