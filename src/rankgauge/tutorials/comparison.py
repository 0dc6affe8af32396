"""Comparison of retrievers from their rankings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankgauge.errors import InputError
from rankgauge.rendering.tables import Cell, Table, to_markdown
from rankgauge.tutorials.evaluator import RetrievalEvaluator

_SHOWN = (("recall", "Recall"), ("precision", "Precision"), ("ndcg", "NDCG"), ("hit_rate", "Hit rate"))


@dataclass(frozen=True)
class RetrieverValues:
    """Means over queries of one retriever.

    Attributes:
        retriever_name: The name of the retriever.
        recall: Recall by k.
        precision: Precision by k.
        mrr: Mean reciprocal rank.
        ndcg: nDCG by k.
        hit_rate: Hit rate by k.
    """

    retriever_name: str
    recall: dict[int, float]
    precision: dict[int, float]
    mrr: float
    ndcg: dict[int, float]
    hit_rate: dict[int, float]

    __hash__ = None  # type: ignore[assignment] # holds dictionaries


class RetrieverComparison:
    """Comparison of retrievers by their means; `rankgauge.compare` also tests the differences.

    Args:
        k_values: The cut-offs; if omitted, 1, 3, 5, 10, and 20.

    Example:
        >>> comparison = RetrieverComparison(k_values=[1, 3])
        >>> a = comparison.evaluate_retriever("A", [{"retrieved": ["d1"], "relevant": ["d1"]}])
        >>> b = comparison.evaluate_retriever("B", [{"retrieved": ["x", "d1"], "relevant": ["d1"]}])
        >>> print(comparison.compare([a, b]))
        # Retriever Comparison
        <BLANKLINE>
        | Metric      |      A |      B |
        | ----------- | -----: | -----: |
        | MRR         | 1.0000 | 0.5000 |
        | Recall@1    | 1.0000 | 0.0000 |
        | Precision@1 | 1.0000 | 0.0000 |
        | NDCG@1      | 1.0000 | 0.0000 |
        | Hit rate@1  | 1.0000 | 0.0000 |
        | Recall@3    | 1.0000 | 1.0000 |
        | Precision@3 | 0.3333 | 0.3333 |
        | NDCG@3      | 1.0000 | 0.6309 |
        | Hit rate@3  | 1.0000 | 1.0000 |
        <BLANKLINE>
    """

    def __init__(self, k_values: Iterable[int] | None = None) -> None:
        self._evaluator = RetrievalEvaluator(k_values)
        self.k_values = self._evaluator.k_values

    def evaluate_retriever(self, name: str, queries: Iterable[Any]) -> RetrieverValues:
        """Return the means over records.

        Records have the form of :meth:`RetrievalEvaluator.evaluate_dataset`. In mappings,
        ``scores`` by document id mean ``relevance_scores``.
        """
        found = self._evaluator.evaluate_dataset([_with_grades(query) for query in queries])
        return RetrieverValues(
            name, found.recall_at_k, found.precision_at_k, found.mrr, found.ndcg_at_k, found.hit_rate_at_k
        )

    def compare(self, results: Sequence[RetrieverValues]) -> str:
        """Return a Markdown table with a row for each measure and a column for each retriever.

        Raises:
            InputError: If there are no results, or a result lacks a cut-off of this comparison.
        """
        if not results:
            raise InputError("there are no results", where="compare", fix="evaluate a retriever first")
        for result in results:
            if lacking := {*self.k_values} - result.recall.keys():
                raise InputError(
                    f"{result.retriever_name!r} was not evaluated at k = {min(lacking)}",
                    where="compare",
                    fix="evaluate all retrievers with one RetrieverComparison",
                )
        rows: list[tuple[Cell, ...]] = [("MRR", *(result.mrr for result in results))]
        rows += [
            (f"{head}@{k}", *(getattr(result, attribute)[k] for result in results))
            for k in self.k_values
            for attribute, head in _SHOWN
        ]
        columns = ("Metric", *(result.retriever_name for result in results))
        return f"# Retriever Comparison\n\n{to_markdown(Table(columns, tuple(rows)))}"


def _with_grades(record: Any) -> Any:
    """Return the record with ``scores`` renamed to ``relevance_scores`` if they are grades."""
    if isinstance(record, Mapping) and isinstance(record.get("scores"), Mapping):
        return {"relevance_scores" if key == "scores" else key: record[key] for key in record}
    return record
