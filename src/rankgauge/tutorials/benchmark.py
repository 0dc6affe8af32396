"""The benchmark class that many people know from a tutorial, thin over :class:`Benchmark`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rankgauge.benchmark.benchmark import Benchmark
from rankgauge.benchmark.run import BenchmarkRun
from rankgauge.comparison.comparison import compare
from rankgauge.core.escaping import for_markdown
from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.measures.measure import parse
from rankgauge.rendering.tables import Table, to_markdown

__all__ = ["BenchmarkResult", "RetrievalBenchmark"]

_SHOWN = (
    ("mrr", "MRR"),
    ("p@k", "P@k"),
    ("r@k", "R@k"),
    ("hit_rate", "Hit rate"),
    ("ndcg", "nDCG"),
)


class BenchmarkResult(dict[str, Any]):
    """The values of one retriever: its name, ``mrr``, ``p@k``, ``r@k``, ``hit_rate``, ``ndcg``.

    With k = 5, ``result["p@5"]`` is ``result["p@k"]``.

    Attributes:
        k: The cut-off of all of them.
    """

    def __init__(self, k: int, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.k = k

    def __missing__(self, key: str) -> Any:
        name, _, cutoff = str(key).partition("@")
        if cutoff == str(self.k) and f"{name}@k" in self:
            return self[f"{name}@k"]
        raise KeyError(key)


class RetrievalBenchmark:
    """Compare retrievers on the same queries: the class of the tutorial, with right numbers.

    Every number is what :func:`evaluate` says; for intervals, latency, files and resuming use
    :class:`Benchmark`.

    Example:
        >>> bench = RetrievalBenchmark()
        >>> bench.add_query("q1", "late fees", ["fees"])
        >>> bench.add_query("q2", "opening hours", ["hours"])
        >>> result = bench.run_evaluation("lookup", lambda text: ["fees", "hours"], k=2)
        >>> result["mrr"], result["p@k"], result["hit_rate"]
        (0.75, 0.5, 1.0)
        >>> print(bench.compare_retrievers())
        # Retriever Comparison
        <BLANKLINE>
        | Retriever |    MRR |    P@2 |    R@2 | Hit rate@2 | nDCG@2 |
        | --------- | -----: | -----: | -----: | ---------: | -----: |
        | lookup    | 0.7500 | 0.5000 | 1.0000 |     1.0000 | 0.8155 |
        <BLANKLINE>
        **Winner: lookup** by MRR (0.7500), the only one.
    """

    def __init__(self) -> None:
        self._queries = Benchmark()
        self._made: dict[str, tuple[BenchmarkResult, BenchmarkRun]] = {}

    def add_query(self, query_id: str, query_text: str, relevant_docs: Iterable[Any]) -> None:
        """Add a query.

        `relevant_docs` has the ids of the relevant documents, or is a mapping of document id to
        grade. An id that is there already is an :class:`~rankgauge.InputError`.
        """
        self._queries.add_query(query_id, query_text, relevant_docs)

    def run_evaluation(self, retriever_name: str, retriever_fn: Any, k: int = 5) -> dict[str, Any]:
        """Ask a retriever every query and measure what it returns.

        Args:
            retriever_name: What it is called; one that is there already is replaced.
            retriever_fn: Anything that :meth:`Benchmark.run` takes: most often a function from the
                text of a query to document ids, best first.
            k: How many documents count.

        Returns:
            ``retriever``, ``mrr``, ``p@k``, ``r@k``, ``hit_rate`` and ``ndcg``, the means over all
            queries, each at the cut-off k.

        Raises:
            InputError: If there are no queries, or the retriever failed for one.
        """
        bench = Benchmark(qrels=None, k=k)
        for query in self._queries.queries.values():
            bench.add_query(query.id, query.text, dict(self._queries.qrels[query.id]))
        run = bench.run(retriever_name, retriever_fn, timed=0)
        names = {
            "mrr": f"RR@{k}", "p@k": f"P@{k}", "r@k": f"R@{k}", "hit_rate": f"Success@{k}",
            "ndcg": f"nDCG@{k}",
        }  # fmt: skip
        means = run.evaluate(list(names.values())).mean()
        values = {key: means[str(parse(name))] for key, name in names.items()}
        result = BenchmarkResult(k, {"retriever": retriever_name, **values})
        self._made[retriever_name] = (result, run)
        return result

    def compare_retrievers(self) -> str:
        """The retrievers side by side as Markdown, the highest MRR first.

        It names the winner and the measure, and says so where its lead over the next one cannot be
        told from noise (paired randomization test).

        Raises:
            InputError: If queries were added after a retriever was run.
        """
        if not self._made:
            return "No results to compare."
        for name, (_, run) in self._made.items():
            if run.queries.keys() != self._queries.queries.keys():
                raise InputError(
                    f"queries were added after {name!r} was run", where="compare_retrievers",
                    fix=f"run it again: run_evaluation({name!r}, ...)",
                )  # fmt: skip
        ordered = sorted(self._made.values(), key=lambda made: -made[0]["mrr"])
        results = [result for result, _ in ordered]
        cutoffs = {result.k for result in results}
        at = str(cutoffs.pop()) if len(cutoffs) == 1 else "k"
        heads = [head.replace("@k", "") + f"@{at}" for _, head in _SHOWN[1:]]
        table = Table(
            columns=("Retriever", "MRR", *heads),
            rows=tuple(
                (
                    name if at != "k" else f"{name} (k = {result.k})",
                    *(result[key] for key, _ in _SHOWN),
                )
                for result in results
                for name in [result["retriever"]]
            ),
        )
        return f"# Retriever Comparison\n\n{to_markdown(table)}\n{_winner(ordered)}"


def _winner(ordered: list[tuple[BenchmarkResult, BenchmarkRun]]) -> str:
    (best, run), *others = ordered
    said = f"**Winner: {for_markdown(best['retriever'])}** by MRR ({best['mrr']:.4f})"
    if not others:
        return f"{said}, the only one."
    (next_best, next_run) = others[0]
    name = for_markdown(next_best["retriever"])
    if best["mrr"] == next_best["mrr"]:
        return f"**No winner**: {for_markdown(best['retriever'])} and {name} have the same MRR."
    said += f", before {name} ({next_best['mrr']:.4f})."
    # RR of all that was returned, under one name, so that runs of different k can be compared.
    evaluations = [run.evaluate("RR"), next_run.evaluate("RR")]
    asked = len(run.queries)
    if asked < 2:
        return f"{said}\n\nNote: one query cannot tell a difference from noise."
    compared = compare(evaluations, baseline=best["retriever"])
    found = compared.difference(next_best["retriever"])
    if found.verdict == "worse":
        return said
    sure = "" if found.p is None else f" (p = {found.p:.2f})"
    return (
        f"{said}\n\nNote: with {many(asked, 'query')} this difference cannot be told from noise"
        f"{sure}; add queries before you decide."
    )
