"""Comparison of retrievers from their rankings, and a small benchmark that runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankgauge.benchmark.benchmark import Benchmark
from rankgauge.benchmark.run import BenchmarkRun
from rankgauge.comparison.comparison import compare
from rankgauge.core.escaping import for_markdown
from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.measures.measure import parse
from rankgauge.rendering.tables import Cell, Table, to_markdown
from rankgauge.retrievers.protocol import takes_k
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
        means = self._evaluator.evaluate_dataset([_with_grades(query) for query in queries])
        return RetrieverValues(
            name, means.recall_at_k, means.precision_at_k, means.mrr, means.ndcg_at_k, means.hit_rate_at_k
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


# The largest number of documents kept from a retriever without a parameter `k`.
_ALL = 1_000_000


class RetrievalBenchmark:
    """Comparison of retrievers on the same queries.

    Values are those of :func:`evaluate`. Use :class:`Benchmark` for intervals, latency, files, and
    resumption.

    Example:
        >>> bench = RetrievalBenchmark()
        >>> bench.add_query("q1", "late fees", ["fees"])
        >>> bench.add_query("q2", "opening hours", ["hours"])
        >>> result = bench.run_evaluation("lookup", lambda text: ["fees", "hours"], k=1)
        >>> result["mrr"], result["p@1"], result["hit_rate"]
        (0.75, 0.5, 1.0)
        >>> print(bench.compare_retrievers())
        # Retriever Comparison
        <BLANKLINE>
        | Retriever |    MRR |    P@1 |    R@1 | Hit rate | nDCG@1 |
        | --------- | -----: | -----: | -----: | -------: | -----: |
        | lookup    | 0.7500 | 0.5000 | 0.5000 |   1.0000 | 0.5000 |
        <BLANKLINE>
        **Winner: lookup** by MRR (0.7500), the only one.
    """

    def __init__(self) -> None:
        self._queries = Benchmark()
        self._runs: dict[str, _RetrieverRun] = {}

    @property
    def queries(self) -> list[dict[str, Any]]:
        """The queries, with the keys ``id``, ``text``, and ``relevant`` (grades by document)."""
        return [
            {"id": query.id, "text": query.text, "relevant": dict(self._queries.qrels[query.id])}
            for query in self._queries.queries.values()
        ]

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """The last result of :meth:`run_evaluation` by retriever name."""
        return {name: {"retriever": name, **retriever.values} for name, retriever in self._runs.items()}

    def add_query(self, query_id: str, query_text: str, relevant_docs: Iterable[Any]) -> None:
        """Add a query.

        `relevant_docs` are the ids of the relevant documents, or a mapping from document id to
        grade. A second query with the same id raises :class:`~rankgauge.InputError`.
        """
        self._queries.add_query(query_id, query_text, relevant_docs)

    def run_evaluation(self, retriever_name: str, retriever_fn: Any, k: int = 5) -> dict[str, Any]:
        """Run a retriever on every query and return the means of its values.

        Args:
            retriever_name: The name of the retriever; results with the same name are replaced.
            retriever_fn: Any retriever that :meth:`Benchmark.run` accepts, usually a function from
                the text of a query to document ids, best first. If it has a parameter `k`, k
                documents are requested.
            k: The cut-off of precision, recall, and nDCG.

        Returns:
            ``retriever``, ``mrr``, ``p@5``, ``r@5``, ``hit_rate``, and ``ndcg`` (for k = 5).
            ``mrr`` and ``hit_rate`` use all returned documents; ``ndcg`` is nDCG@k.

        Raises:
            InputError: If there are no queries, or the retriever fails for a query.
        """
        measures = [parse(name) for name in ("RR", f"P@{k}", f"R@{k}", f"Success@{_ALL}", f"nDCG@{k}")]
        bench = Benchmark(qrels=None, k=k if takes_k(retriever_fn) else _ALL)
        for query in self.queries:
            bench.add_query(*query.values())
        run = bench.run(retriever_name, retriever_fn, timed=0)
        means = run.evaluate(measures).mean()
        keys = ("mrr", f"p@{k}", f"r@{k}", "hit_rate", "ndcg")
        values = {key: means[str(measure)] for key, measure in zip(keys, measures, strict=True)}
        self._runs[retriever_name] = _RetrieverRun(k, values, run)
        return self.results[retriever_name]

    def compare_retrievers(self) -> str:
        """Return a comparison of the retrievers as Markdown, highest MRR first.

        It names the winner, with a note if the difference from the second is not significant
        (paired randomization test).

        Raises:
            InputError: If queries were added after a retriever was run.
        """
        if not self._runs:
            return "No results to compare."
        for name, retriever in self._runs.items():
            if retriever.run.queries.keys() != self._queries.queries.keys():
                raise InputError(
                    f"queries were added after {name!r} was run",
                    where="compare_retrievers",
                    fix=f"run it again: run_evaluation({name!r}, ...)",
                )
        ordered = sorted(self._runs.values(), key=lambda retriever: -retriever.values["mrr"])
        cutoffs = {retriever.k for retriever in ordered}
        same = len(cutoffs) == 1
        at = cutoffs.pop() if same else "k"
        table = Table(
            columns=("Retriever", "MRR", f"P@{at}", f"R@{at}", "Hit rate", f"nDCG@{at}"),
            rows=tuple(
                (
                    retriever.run.name if same else f"{retriever.run.name} (k = {retriever.k})",
                    *retriever.values.values(),
                )
                for retriever in ordered
            ),
        )
        return f"# Retriever Comparison\n\n{to_markdown(table)}\n{_winner(ordered)}"


@dataclass(frozen=True)
class _RetrieverRun:
    """Run of a retriever and the means of its values."""

    k: int
    values: dict[str, float]
    run: BenchmarkRun


def _winner(ordered: list[_RetrieverRun]) -> str:
    best, *others = ordered
    first, mrr = for_markdown(best.run.name), best.values["mrr"]
    text = f"**Winner: {first}** by MRR ({mrr:.4f})"
    if not others:
        return f"{text}, the only one."
    second = others[0]
    name = for_markdown(second.run.name)
    if mrr == second.values["mrr"]:
        return f"**No winner**: {first} and {name} have the same MRR."
    text += f", before {name} ({second.values['mrr']:.4f})."
    queries = len(best.run.queries)
    if queries < 2:
        return f"{text}\n\nNote: a single query cannot distinguish a difference from noise."
    compared = compare([best.run.evaluate("RR"), second.run.evaluate("RR")], baseline=best.run.name)
    difference = compared.difference(second.run.name)
    if difference.verdict == "worse":
        return text
    p = "" if difference.p is None else f" (p = {difference.p:.2f})"
    return (
        f"{text}\n\nNote: with {many(queries, 'query')} this difference is not distinguishable "
        f"from noise{p}; add queries before you decide."
    )
