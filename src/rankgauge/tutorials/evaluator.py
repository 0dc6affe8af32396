"""An evaluator class with the methods used in tutorials, and records with static methods: thin wrappers."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, fields
from math import isnan
from typing import Any

import numpy as np

from rankgauge.core.arguments import of_kind
from rankgauge.core.ids import are_ids
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.context import DEFAULT_CUTOFFS
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.compiled import grades_of, measure_grades
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.tables import Table, to_markdown

# Values at a cut-off: attribute, name in keys, measure, and heading in reports.
_AT_K = (
    ("precision_at_k", "P", "P", "Precision"),
    ("recall_at_k", "R", "R", "Recall"),
    ("f1_at_k", "F1", "F1", "F1"),
    ("ndcg_at_k", "NDCG", "nDCG", "NDCG"),
    ("hit_rate_at_k", "Hit", "Success", "Hit rate"),
)
# Other names in keys, in lower case, without the cut-off.
_SYNONYMS = {
    "p": "P",
    "precision": "P",
    "r": "R",
    "recall": "R",
    "f1": "F1",
    "ndcg": "NDCG",
    "hit": "Hit",
    "hit_rate": "Hit",
    "hitrate": "Hit",
    "success": "Hit",
    "map": "MAP",
    "average_precision": "MAP",
    "ap": "MAP",
    "mrr": "MRR",
    "reciprocal_rank": "MRR",
    "rr": "MRR",
}
_WHOLE = ("AP", "RR", "SetP", "SetR", "SetF", "nDCG", "NumRet", "NumRel", "NumRelRet", "FirstRel")

_FIRST = parse("FirstRel")


@dataclass(frozen=True)
class MetricValues(Mapping[str, float]):
    """Values at each cut-off, for one query or as means over queries.

    Values are attributes (``metrics.recall_at_k[5]``) and items: ``metrics["R@5"]``,
    ``metrics["recall@5"]``, and ``metrics["recall_at_5"]`` are the same. The keys of the mapping
    are ``P@k``, ``R@k``, ``F1@k``, ``NDCG@k``, and ``Hit@k`` for each k, ``MAP``, and ``MRR``.

    `count` is the number of queries. For a single query, `map` is its average precision and `mrr`
    its reciprocal rank.

    Example:
        >>> metrics = RetrievalEvaluator([1, 3]).evaluate_single_query(["d2", "d1"], {"d1"})
        >>> metrics.mrr, metrics.recall_at_k[3], metrics["recall@3"]
        (0.5, 1.0, 1.0)
    """

    count: int
    precision_at_k: dict[int, float]
    recall_at_k: dict[int, float]
    f1_at_k: dict[int, float]
    ndcg_at_k: dict[int, float]
    hit_rate_at_k: dict[int, float]
    map: float
    mrr: float

    __hash__ = None  # type: ignore[assignment] # holds dictionaries

    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            f"{short}@{k}": getattr(self, attribute)[k] for k in self.precision_at_k for attribute, short, _, _ in _AT_K
        }
        return values | {"MAP": self.map, "MRR": self.mrr}

    def __getitem__(self, key: str) -> Any:
        values = self._values()
        return values[key if key in values else _canonical(str(key))]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())


@dataclass(frozen=True)
class QueryEvaluation(MetricValues):
    """Values of one query: at each cut-off, for the whole ranking, and counts.

    Values are attributes and items with the same names: ``result.precision``,
    ``result["precision"]``.

    Attributes:
        query_id: The identifier of the query.
        precision: Share of all retrieved documents that are relevant (a set measure).
        recall: Share of the relevant documents that were retrieved (a set measure).
        f1: Harmonic mean of `precision` and `recall`.
        reciprocal_rank: 1 / the rank of the first relevant document; 0.0 without one.
        average_precision: Average precision.
        ndcg: nDCG of the whole ranking; the ideal ranking has all judged documents.
        retrieved_count: Number of documents retrieved.
        relevant_count: Number of relevant documents, retrieved or not.
        relevant_retrieved: Number of relevant documents retrieved.
        first_relevant_position: Rank of the first relevant document, or None.

    Example:
        >>> evaluator = RetrievalEvaluator()
        >>> result = evaluator.evaluate_single("q1", ["d3", "d1"], {"d1", "d4"})
        >>> result.precision, result.recall, result.first_relevant_position
        (0.5, 0.5, 2)
    """

    query_id: Any
    precision: float
    recall: float
    f1: float
    reciprocal_rank: float
    average_precision: float
    ndcg: float
    retrieved_count: int
    relevant_count: int
    relevant_retrieved: int
    first_relevant_position: int | None

    __hash__ = None  # contains dictionaries

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _OF_QUERY} | super()._values()


_OF_QUERY = tuple(field.name for field in fields(QueryEvaluation)[len(fields(MetricValues)) :])


class RetrievalEvaluator:
    """Evaluator of rankings at several cut-offs, for one or several queries.

    Values are those of :func:`~rankgauge.evaluate`. Undefined values count as 0.0, even for a
    single query.

    A single query is given by its ranking (``retrieved_ids``, best first), its relevant documents
    (``relevant_ids``), and optionally, for nDCG, grades by document id (``relevance_scores``; by
    default, each relevant document has grade 1). Several queries are given as records,
    ``{"id": ..., "retrieved": [...], "relevant": [...], "relevance_scores": {...}}``, or as any
    other argument of :meth:`~rankgauge.Records.of`. All methods raise
    :class:`~rankgauge.InputError` for invalid input, with the record that has the error.

    Args:
        k_values: The cut-offs; if omitted, 1, 3, 5, 10, and 20.

    Attributes:
        k_values: The distinct cut-offs, in the order given.

    Raises:
        UnknownName: If a cut-off is not a whole number of at least 1.
        InputError: If there are no cut-offs.

    Example:
        >>> evaluator = RetrievalEvaluator(k_values=[1, 3])
        >>> queries = [
        ...     {"id": "q1", "retrieved": ["d3", "d1"], "relevant": ["d1"]},
        ...     {"id": "q2", "retrieved": ["d2", "d4"], "relevant": ["d2", "d5"]},
        ... ]
        >>> evaluator.evaluate_batch(queries)["mrr"]
        0.75
    """

    def __init__(self, k_values: Iterable[int] | None = None) -> None:
        cutoffs = (*DEFAULT_CUTOFFS, 20) if k_values is None else k_values
        of_kind("the cut-offs", cutoffs, Iterable, "write k_values=[1, 3, 5, 10]", where="k_values")
        self.k_values = tuple(dict.fromkeys(_cutoff(k) for k in cutoffs))
        if not self.k_values:
            raise InputError("there is no cut-off", where="k_values", fix="write k_values=[1, 3, 5, 10]")
        at_k = {attribute: [(k, parse(f"{measure}@{k}")) for k in self.k_values] for attribute, _, measure, _ in _AT_K}
        self._measures = (*(measure for pairs in at_k.values() for _, measure in pairs), *map(parse, _WHOLE))
        self._names = {attribute: [(k, str(measure)) for k, measure in pairs] for attribute, pairs in at_k.items()}

    def evaluate_single(
        self,
        query_id: Any,
        retrieved_ids: Iterable[Any],
        relevant_ids: Iterable[Any],
        relevance_scores: Mapping[Any, float] | None = None,
    ) -> QueryEvaluation:
        """Return the values of one query: at each cut-off, for the whole ranking, and counts."""
        plain = type(query_id) is str and are_ids(query_id, (query_id,)) and relevance_scores is None
        grades = None
        if plain and type(relevant_ids) is not dict:
            grades = grades_of(retrieved_ids, relevant_ids)
        if grades is None:  # it needs an evaluation
            record = {
                "id": query_id,
                "retrieved": retrieved_ids,
                "relevant": relevant_ids,
                "relevance_scores": relevance_scores,
            }
            done = self._evaluated([record])
            means, first = done.mean(), done.value(done.query_ids[0], "FirstRel")
        else:
            values = measure_grades(self._measures, *grades)
            first = values[self._measures.index(_FIRST)]
            means = {
                str(measure): 0.0 if isnan(value) else value
                for measure, value in zip(self._measures, values, strict=True)
            }
        return QueryEvaluation(
            **self._at_k(means, 1),
            query_id=query_id,
            precision=means["SetP"],
            recall=means["SetR"],
            f1=means["SetF"],
            reciprocal_rank=means["RR"],
            average_precision=means["AP"],
            ndcg=means["nDCG"],
            retrieved_count=int(means["NumRet"]),
            relevant_count=int(means["NumRel"]),
            relevant_retrieved=int(means["NumRelRet"]),
            first_relevant_position=None if isnan(first) else int(first),
        )

    def evaluate_single_query(
        self,
        retrieved_ids: Iterable[Any],
        relevant_ids: Iterable[Any],
        relevance_scores: Mapping[Any, float] | None = None,
    ) -> MetricValues:
        """Return the values of one query at each cut-off."""
        record = {"retrieved": retrieved_ids, "relevant": relevant_ids, "relevance_scores": relevance_scores}
        return self.evaluate_dataset([record])

    def evaluate_dataset(self, results: Any) -> MetricValues:
        """Return the means over several queries of each measure at each cut-off."""
        done = self._evaluated(results)
        return MetricValues(**self._at_k(done.mean(), len(done.query_ids)))

    def evaluate_batch(self, queries: Any) -> dict[str, float]:
        """Return the means over several queries in one flat dictionary.

        Returns:
            ``count``; ``mean_precision``, ``mean_recall``, and ``mean_f1`` of all retrieved
            documents (set measures; ``mean_f1`` is the mean of F1 over queries); ``mrr``;
            ``mean_ndcg`` of the whole rankings, with an ideal ranking of all judged documents;
            ``mean_p@k`` and ``mean_r@k`` for each k; ``success@1``; and ``hit_rate``, the share of
            queries with a relevant document retrieved. Without queries, an empty dictionary.

        Example:
            >>> queries = [{"id": "q1", "retrieved": ["d3", "d1"], "relevant": ["d1"]}]
            >>> batch = RetrievalEvaluator([1]).evaluate_batch(queries)
            >>> batch["count"], batch["mean_precision"], batch["mean_p@1"], batch["hit_rate"]
            (1, 0.5, 0.0, 1.0)
        """
        if isinstance(queries, Iterator):
            queries = list(queries)
        if isinstance(queries, Sized) and not isinstance(queries, str) and len(queries) == 0:
            return {}
        evaluation = self._evaluated(queries, "Success@1")
        means = evaluation.mean()
        relevant_retrieved = evaluation.column(parse("NumRelRet"))
        at_k = {f"mean_{name.lower()}@{k}": means[f"{name}@{k}"] for k in self.k_values for name in ("P", "R")}
        return {
            "count": len(evaluation.query_ids),
            "mean_precision": means["SetP"],
            "mean_recall": means["SetR"],
            "mean_f1": means["SetF"],
            "mrr": means["RR"],
            "mean_ndcg": means["nDCG"],
            **at_k,
            "success@1": means["Success@1"],
            "hit_rate": int(np.count_nonzero(relevant_retrieved)) / len(evaluation.query_ids),
        }

    def evaluate(self, results: Any, relevant: Any = None, relevance_scores: Any = None) -> dict[str, float]:
        """Return the means over several queries, with the names used in papers.

        Args:
            results: Records; or rankings by query id, if the judgments are given separately.
            relevant: Relevant documents by query id, for rankings by query id.
            relevance_scores: Grades, ``{document id: grade}``, by query id, for rankings by query
                id.

        Returns:
            ``P@k``, ``R@k``, ``F1@k``, ``NDCG@k``, and ``Hit@k`` for each k, ``MAP``, and ``MRR``.

        Example:
            >>> RetrievalEvaluator([1]).evaluate({"q1": ["d1", "d2"]}, {"q1": {"d1"}})["P@1"]
            1.0
        """
        if relevant is None and relevance_scores is None:
            return dict(self.evaluate_dataset(results))
        return dict(self.evaluate_dataset(_joined(results, relevant, relevance_scores)))

    def print_report(self, results: Any) -> None:
        """Print a report with a row for each k and a column for each measure; MAP and MRR below.

        `results` is the result of another method, or records, which are evaluated first.

        Example:
            >>> evaluator = RetrievalEvaluator([1, 3])
            >>> evaluator.print_report([{"retrieved": ["d2", "d1"], "relevant": ["d1"]}])
            Retrieval evaluation, 1 query
            <BLANKLINE>
              k  Precision     Recall         F1       NDCG   Hit rate
              1     0.0000     0.0000     0.0000     0.0000     0.0000
              3     0.3333     1.0000     0.5000     0.6309     1.0000
            <BLANKLINE>
            MAP  0.5000
            MRR  0.5000
        """
        values, count = self._values(results)
        lines = [_title(count), ""]
        cutoffs = _cutoffs(values)
        names = {_split(key)[0] for key in values if _split(key)[1] is not None}
        heads = [(short, head) for _, short, _, head in _AT_K if short in names]
        if cutoffs:
            lines.append("  k" + "".join(f"{head:>11}" for _, head in heads))
            for k in cutoffs:
                cells = (_shown(values.get(f"{short}@{k}")) for short, _ in heads)
                lines.append(f"{k:>3}" + "".join(f"{cell:>11}" for cell in cells))
            lines.append("")
        overall = _overall(values)
        width = max((len(name) for name in overall), default=0)
        lines += [f"{name:<{width}}  {_shown(value)}" for name, value in overall.items()]
        # This is the only place in the library that prints.
        sys.stdout.write("\n".join(lines).rstrip() + "\n")

    def generate_report(self, results: Any) -> str:
        """Return a report in Markdown: sections Precision, Recall, NDCG, and Overall, k ascending.

        `results` is as for :meth:`print_report`.

        Example:
            >>> evaluator = RetrievalEvaluator([10, 1])
            >>> report = evaluator.generate_report([(["d2", "d1"], ["d1"])])
            >>> [line for line in report.splitlines() if line.startswith("## ")]
            ['## Precision', '## Recall', '## NDCG', '## Overall']
        """
        values, count = self._values(results)
        parts = [f"# {_title(count)}\n"]
        for short, head in (("P", "Precision"), ("R", "Recall"), ("NDCG", "NDCG")):
            rows = [(k, values[f"{short}@{k}"]) for k in _cutoffs(values) if f"{short}@{k}" in values]
            if rows:
                parts.append(f"## {head}\n\n{to_markdown(Table(('k', head), tuple(rows)))}")
        overall = tuple(_overall(values).items())
        if overall:
            parts.append(f"## Overall\n\n{to_markdown(Table(('measure', 'value'), overall))}")
        return "\n".join(parts)

    def _evaluated(self, records: Any, *more: str) -> Evaluation:
        return evaluate(records, measures=[*self._measures, *more])

    def _at_k(self, means: Mapping[str, float], count: int) -> dict[str, Any]:
        at: dict[str, Any] = {
            attribute: {k: means[name] for k, name in names} for attribute, names in self._names.items()
        }
        return {**at, "count": count, "map": means["AP"], "mrr": means["RR"]}

    def _values(self, results: Any) -> tuple[dict[str, float], int | None]:
        """Return the means by name, and the number of queries if known."""
        if isinstance(results, MetricValues):
            return MetricValues._values(results), results.count  # noqa: SLF001 - one module
        if (
            isinstance(results, Mapping)
            and results
            and all(
                isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in results.values()
            )
        ):
            count = results.get("count")
            named = {_canonical(str(key)): float(value) for key, value in results.items()}
            named.pop("count", None)
            return named, None if count is None else int(count)
        done = self.evaluate_dataset(results)
        return dict(done), done.count


def _cutoff(k: Any) -> int:
    try:
        return int(parse("P@1")(k=k).k)  # type: ignore[arg-type] # the vocabulary makes it an int
    except (UnknownName, ValueError):
        raise UnknownName(f"k={k} is not valid", where="k_values", fix="a cut-off is a whole number >= 1") from None


def _joined(rankings: Any, relevant: Any, grades: Any) -> list[dict[str, Any]]:
    """Return records of rankings, relevant documents, and grades, for the judged queries."""
    for name, value in (("results", rankings), ("relevant", relevant), ("relevance_scores", grades)):
        if value is not None and not isinstance(value, Mapping):
            raise InputError(
                f"got {type(value).__name__}, expected a mapping by query id",
                where=name,
                fix=f"pass {name} as {{query id: ...}}, or records as the only argument",
            )
    judged = grades if relevant is None else relevant
    if not judged.keys() & rankings.keys():
        raise InputError("no query of the rankings is judged", fix="use the same query ids in both mappings")
    return [
        {
            "id": query,
            "retrieved": rankings.get(query, []),
            "relevant": None if relevant is None else relevant[query],
            "relevance_scores": None if grades is None else grades.get(query),
        }
        for query in judged
    ]


def _split(key: str) -> tuple[str, int | None]:
    """Return the name in `_AT_K` and the cut-off of a key: ``recall_at_5`` is ``("R", 5)``."""
    for joint in ("@", "_at_"):
        stem, separator, at = key.rpartition(joint)
        if separator and at.isdecimal():
            return _SYNONYMS.get(stem.lower(), stem), int(at)
    return _SYNONYMS.get(key.lower(), key), None


def _canonical(key: str) -> str:
    name, at = _split(key.removeprefix("mean_"))
    # Without a cut-off, `mean_precision` is a set measure, not P@k.
    if at is None:
        return name if name in {"MAP", "MRR"} else key
    return f"{name}@{at}"


def _title(count: int | None) -> str:
    if count is None:
        return "Retrieval evaluation"
    return f"Retrieval evaluation, {count} {'query' if count == 1 else 'queries'}"


def _cutoffs(values: Mapping[str, float]) -> list[int]:
    """Return all cut-offs in ascending order."""
    return sorted({at for key in values if (at := _split(key)[1]) is not None})


def _overall(values: Mapping[str, float]) -> dict[str, float]:
    return {key: value for key, value in values.items() if _split(key)[1] is None}


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


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
