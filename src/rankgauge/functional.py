"""Plain functions: one ranking, what is relevant, one number.

``precision_at_k(["d2", "d1"], {"d1"}, 2)`` is what most people write first, so it is here. Every
function calls the same kernel as :func:`~rankgauge.evaluation.evaluate`, so the numbers are the
same; for many queries, several measures or anything that is kept, use that.

All of them take

- ``retrieved``: the document ids of a ranking, best first: a list, a tuple or an array;
- ``relevant``: the relevant documents: a set or list (grade 1), or a mapping of document id to
  grade. Measures that ask only "relevant or not" count a grade of at least ``rel``;
- ``k``: the cut-off, at least 1. A ranking shorter than k is no error.

They return one float, so what is undefined (nothing is relevant) is 0.0 here. ``evaluate()`` keeps
the two apart: its value per query is NaN, and it says for how many.

Document ids are text, whole numbers or bytes, one kind in a ranking. A document that stands twice
is an error: many scripts count it twice, and recall and nDCG can pass 1.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

import numpy as np

from rankgauge.errors import InputError
from rankgauge.evaluation import evaluate
from rankgauge.formats.layout import JUDGMENTS, numbers_of
from rankgauge.ids import Blame, Ids, show_id
from rankgauge.judged import JudgedRun
from rankgauge.kernels.measure import Measure

__all__ = [
    "average_precision",
    "dcg",
    "dcg_at_k",
    "expected_reciprocal_rank",
    "f1_at_k",
    "hit_rate_at_k",
    "mean_hit_rate",
    "mean_reciprocal_rank",
    "ndcg",
    "ndcg_at_k",
    "precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "success_at_k",
]

Ranking: TypeAlias = Iterable[Any]
Judgments: TypeAlias = Mapping[Any, float] | Iterable[Any]

# An unjudged document: no hit and no gain, whatever the gains are.
_UNJUDGED = -1.0


def precision_at_k(retrieved: Ranking, relevant: Judgments, k: int, *, rel: float = 1) -> float:
    """Precision: the share of the first k ranks that hold a relevant document.

    Formula: ``|relevant in the first k| / k``. A shorter ranking is divided by k all the same.
    Range: 0 to 1; with R relevant documents it cannot pass R / k.

    Args:
        retrieved: The ranking, best first.
        relevant: The relevant documents, or document id to grade.
        k: The cut-off.
        rel: The grade from which a document counts as relevant.

    Raises:
        InputError: If the ranking has no order, a document stands twice, or an id is no id.
        UnknownName: If k is not a whole number of at least 1.

    Example:
        >>> precision_at_k(["d1", "d5", "d3"], {"d1", "d3", "d6"}, 2)
        0.5
    """
    return _value(Measure("P")(k=k, rel=rel), retrieved, relevant)


def recall_at_k(retrieved: Ranking, relevant: Judgments, k: int, *, rel: float = 1) -> float:
    """Recall: the share of the relevant documents that stand in the first k ranks.

    Formula: ``|relevant in the first k| / |relevant|``. 0.0 if nothing is relevant.
    Range: 0 to 1; it cannot reach 1 where k is smaller than the number of relevant documents.

    Args:
        retrieved: The ranking, best first.
        relevant: The relevant documents, or document id to grade.
        k: The cut-off.
        rel: The grade from which a document counts as relevant.

    Raises:
        InputError: If the ranking has no order, a document stands twice, or an id is no id.
        UnknownName: If k is not a whole number of at least 1.

    Example:
        >>> recall_at_k([3, 1, 7, 2, 5, 8, 4], {1, 2, 4, 6}, 3)
        0.25
    """
    return _value(Measure("R")(k=k, rel=rel), retrieved, relevant)


def f1_at_k(
    retrieved: Ranking, relevant: Judgments, k: int, *, beta: float = 1, rel: float = 1
) -> float:
    """F1: the harmonic mean of precision and recall at k.

    Formula: ``2 P R / (P + R)``; with beta, ``(1 + beta²) P R / (beta² P + R)``.
    0.0 if nothing is relevant. Range: 0 to 1.

    Args:
        retrieved: The ranking, best first.
        relevant: The relevant documents, or document id to grade.
        k: The cut-off.
        beta: The weight of recall.
        rel: The grade from which a document counts as relevant.

    Raises:
        InputError: If the ranking has no order, a document stands twice, or an id is no id.
        UnknownName: If k is not a whole number of at least 1.

    Example:
        >>> round(f1_at_k([1, 2, 3, 4, 5], {1, 3, 6, 7}, 5), 4)
        0.4444
    """
    return _value(Measure("F")(k=k, beta=beta, rel=rel), retrieved, relevant)


def hit_rate_at_k(retrieved: Ranking, relevant: Judgments, k: int, *, rel: float = 1) -> float:
    """Hit rate of one query: 1.0 if a relevant document stands in the first k ranks, else 0.0.

    The rate over queries is :func:`mean_hit_rate`. Range: 0 or 1.

    Args:
        retrieved: The ranking, best first.
        relevant: The relevant documents, or document id to grade.
        k: The cut-off.
        rel: The grade from which a document counts as relevant.

    Raises:
        InputError: If the ranking has no order, a document stands twice, or an id is no id.
        UnknownName: If k is not a whole number of at least 1.

    Example:
        >>> hit_rate_at_k(["d4", "d1"], {"d1"}, 1), hit_rate_at_k(["d4", "d1"], {"d1"}, 2)
        (0.0, 1.0)
    """
    return _value(Measure("Success")(k=k, rel=rel), retrieved, relevant)


def success_at_k(retrieved: Any, relevant: Any, k: int | None = None, *, rel: float = 1) -> float:
    """Success: the other name of :func:`hit_rate_at_k`; over many queries, their mean.

    ``success_at_k(retrieved, relevant, k)`` is one query; ``success_at_k(records, k)`` is the
    share of the records with a hit, as in :func:`mean_hit_rate`. Range: 0 to 1.

    Args:
        retrieved: The ranking, best first; or records.
        relevant: The relevant documents; or, after records, the cut-off.
        k: The cut-off.
        rel: The grade from which a document counts as relevant.

    Raises:
        InputError: If the input cannot be worked with; the message says where.
        UnknownName: If k is not a whole number of at least 1.

    Example:
        >>> success_at_k(["d4", "d1"], {"d1"}, 2)
        1.0
        >>> success_at_k([{"retrieved": ["a", "b"], "relevant": ["b"]}], 1)
        0.0
    """
    if k is None:
        return mean_hit_rate(retrieved, relevant, rel=rel)
    return hit_rate_at_k(retrieved, relevant, k, rel=rel)


def reciprocal_rank(
    retrieved: Ranking, relevant: Judgments, k: int | None = None, *, rel: float = 1
) -> float:
    """Reciprocal rank: 1 / the rank of the first relevant document.

    0.0 if none is in the first k (in the ranking, without k), or nothing is relevant.
    Range: 0 to 1.

    Args:
        retrieved: The ranking, best first.
        relevant: The relevant documents, or document id to grade.
        k: The cut-off; the whole ranking if left out.
        rel: The grade from which a document counts as relevant.

    Raises:
        InputError: If the ranking has no order, a document stands twice, or an id is no id.
        UnknownName: If k is not a whole number of at least 1.

    Example:
        >>> reciprocal_rank(["d3", "d1", "d2"], {"d1", "d2"})
        0.5
    """
    return _value(Measure("RR")(k=k, rel=rel), retrieved, relevant)


def average_precision(
    retrieved: Ranking,
    relevant: Judgments,
    k: int | None = None,
    *,
    norm: str = "R",
    rel: float = 1,
) -> float:
    """Average precision: the mean of the precisions at the ranks of the relevant documents.

    Formula: the sum of ``precision_at_k`` at those ranks, divided by R, the number of all relevant
    documents. Other tools divide by something else and call it the same: see `norm`.
    0.0 if nothing is relevant. Range: 0 to 1.

    Args:
        retrieved: The ranking, best first.
        relevant: The relevant documents, or document id to grade.
        k: The cut-off; the whole ranking if left out.
        norm: What the sum is divided by: ``R``, ``min(k,R)``, ``k``, or ``retrieved`` (the relevant
            documents found).
        rel: The grade from which a document counts as relevant.

    Raises:
        InputError: If the ranking has no order, a document stands twice, or an id is no id.
        UnknownName: If k is not a whole number of at least 1, or norm is none of these.

    Example:
        >>> round(average_precision([1, 3, 5, 2, 7], {1, 2, 4}), 4)
        0.5
        >>> round(average_precision([1, 3, 5, 2, 7], {1, 2, 4}, norm="retrieved"), 4)
        0.75
    """
    return _value(Measure("AP")(k=k, norm=norm, rel=rel), retrieved, relevant)


def dcg_at_k(
    retrieved: Ranking, relevant: Judgments, k: int | None = None, *, gain: Any = "linear"
) -> float:
    """Discounted cumulative gain of the first k ranks.

    Formula: the sum of ``gain / log2(rank + 1)``; the gain is the grade (``linear``) or
    ``2^grade - 1`` (``exp``). Range: 0 upwards, without a bound.

    Args:
        retrieved: The ranking, best first.
        relevant: Document id to grade; a set or list means grade 1.
        k: The cut-off; the whole ranking if left out.
        gain: ``linear``, ``exp``, or a mapping of grade to gain.

    Raises:
        InputError: If the ranking has no order, a document stands twice, or a grade is no number.
        UnknownName: If k is not a whole number of at least 1, or the gain is none of these.

    Example:
        >>> round(dcg_at_k(list("cadbe"), {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}, 5), 2)
        4.14
    """
    return _value(Measure("DCG")(k=k, gain=gain), retrieved, relevant)


def ndcg_at_k(
    retrieved: Ranking,
    relevant: Judgments,
    k: int | None = None,
    *,
    gain: Any = "linear",
    ideal: str = "judged",
) -> float:
    """Normalised DCG: DCG divided by that of the best possible ranking.

    The best ranking is made of all judged documents, retrieved or not. Many scripts take only what
    was retrieved, which inflates the value: `ideal` reproduces them.
    0.0 if no gain is possible. Range: 0 to 1.

    Args:
        retrieved: The ranking, best first.
        relevant: Document id to grade; a set or list means grade 1.
        k: The cut-off; the whole ranking if left out.
        gain: ``linear``, ``exp``, or a mapping of grade to gain.
        ideal: ``judged``; to reproduce other code ``retrieved`` (of the whole ranking) or ``topk``
            (of the first k).

    Raises:
        InputError: If the ranking has no order, a document stands twice, or a grade is no number.
        UnknownName: If k is not a whole number of at least 1, or a choice is none of these.

    Example:
        >>> grades = {"a": 1, "b": 0, "c": 3, "d": 2, "e": 0, "f": 3}
        >>> round(ndcg_at_k(list("abcde"), grades, 5), 4)
        0.5316
        >>> round(ndcg_at_k(list("abcde"), grades, 5, ideal="retrieved"), 4)
        0.7059
    """
    return _value(Measure("nDCG")(k=k, gain=gain, ideal=ideal), retrieved, relevant)


def expected_reciprocal_rank(
    retrieved: Ranking, grades: Judgments, k: int | None = None, *, top: float = 4
) -> float:
    """Expected reciprocal rank: where a reader stops who stops at a good document.

    Formula: the sum over ranks of ``stops(rank) / rank``, where a reader who comes to a document
    stops with the chance ``(2^grade - 1) / 2^top``. Range: 0 to below 1.

    Args:
        retrieved: The ranking, best first.
        grades: Document id to grade; a set or list means grade 1.
        k: The cut-off; the whole ranking if left out.
        top: The highest grade of the scale. Values depend on it, so state it.

    Raises:
        InputError: If a grade is above `top`, the ranking has no order, or a document stands twice.
        UnknownName: If k is not a whole number of at least 1, or top is not possible.

    Example:
        >>> grades = {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}
        >>> round(expected_reciprocal_rank(list("cadbe"), grades, top=3), 4)
        0.5198
    """
    return _value(Measure("ERR")(k=k, top=top), retrieved, grades)


def dcg(grades: Iterable[float], k: int | None = None, *, gain: Any = "linear") -> float:
    """Discounted cumulative gain of a bare list of grades, in rank order.

    Formula and range: see :func:`dcg_at_k`.

    Args:
        grades: The grade at each rank, from rank 1 on; 0 where a document is not relevant.
        k: The cut-off; all ranks if left out.
        gain: ``linear``, ``exp``, or a mapping of grade to gain.

    Raises:
        InputError: If a grade is no finite number.
        UnknownName: If k is not a whole number of at least 1, or the gain is none of these.

    Example:
        >>> round(dcg([2, 0, 2, 1]), 4)
        3.4307
    """
    run = JudgedRun.from_grades(_grades(grades, "grades"))
    return _number(Measure("DCG")(k=k, gain=gain), run)


def ndcg(
    grades: Iterable[float],
    k: int | None = None,
    ideal: Iterable[float] | None = None,
    *,
    gain: Any = "linear",
) -> float:
    """Normalised DCG of a bare list of grades, in rank order.

    Give the grades of all judged documents as `ideal`. A bare list does not show what was not
    retrieved: without `ideal` the best ranking is made of the same grades, and the value is too
    high wherever a relevant document was missed. 0.0 if no gain is possible. Range: 0 to 1.

    Args:
        grades: The grade at each rank, from rank 1 on; 0 where a document is not relevant.
        k: The cut-off; all ranks if left out.
        ideal: The grades of all judged documents, in any order.
        gain: ``linear``, ``exp``, or a mapping of grade to gain.

    Raises:
        InputError: If a grade is no finite number.
        UnknownName: If k is not a whole number of at least 1, or the gain is none of these.

    Example:
        >>> round(ndcg([1, 3, 0, 2, 1], 5, ideal=[3, 2, 1, 1, 0]), 3)
        0.797
        >>> round(ndcg([3, 2, 3, 0, 1]), 3)
        0.972
    """
    pool = None if ideal is None else _grades(ideal, "ideal")
    run = JudgedRun.from_grades(_grades(grades, "grades"), pool)
    return _number(Measure("nDCG")(k=k, gain=gain), run)


def mean_reciprocal_rank(
    retrieved: Any, relevant: Any = None, k: int | None = None, *, rel: float = 1
) -> float:
    """MRR: the mean over queries of the reciprocal rank of the first relevant document.

    A query with nothing relevant counts 0. Range: 0 to 1.

    Args:
        retrieved: A ranking for each query: a list of lists, or query id to ranking. Without
            `relevant`: records that hold both, such as ``(retrieved, relevant)`` pairs.
        relevant: The relevant documents of each query, in the same order or by the same ids. A
            query that is missing from `retrieved` counts 0.
        k: The cut-off; the whole rankings if left out.
        rel: The grade from which a document counts as relevant.

    Raises:
        InputError: If there is no query (a mean of nothing is no number), the two are not of equal
            length, or an input cannot be worked with; the message says where.
        UnknownName: If k is not a whole number of at least 1.

    Example:
        >>> mean_reciprocal_rank([["d3", "d1"], ["d1", "d2"]], [{"d1"}, {"d1", "d2"}])
        0.75
        >>> mean_reciprocal_rank([(["d3", "d1"], {"d1"}), (["d1", "d2"], {"d1", "d2"})])
        0.75
    """
    return _mean(Measure("RR")(k=k, rel=rel), retrieved, relevant)


def mean_hit_rate(
    retrieved: Any, relevant: Any = None, k: int | None = None, *, rel: float = 1
) -> float:
    """Hit rate: the share of the queries with a relevant document in the first k ranks.

    Range: 0 to 1.

    Args:
        retrieved: A ranking for each query: a list of lists, or query id to ranking; or records
            that hold both, such as ``(retrieved, relevant)`` pairs: then the cut-off follows.
        relevant: The relevant documents of each query, in the same order or by the same ids. A
            query that is missing from `retrieved` counts 0.
        k: The cut-off.
        rel: The grade from which a document counts as relevant.

    Raises:
        InputError: If there is no query (a mean of nothing is no number), the two are not of equal
            length, or an input cannot be worked with; the message says where.
        UnknownName: If k is not a whole number of at least 1.

    Example:
        >>> mean_hit_rate([["d3", "d1"], ["d1", "d2"]], [{"d1"}, {"d1", "d2"}], 1)
        0.5
        >>> mean_hit_rate([(["d3", "d1"], {"d1"}), (["d1", "d2"], {"d1", "d2"})], 2)
        1.0
    """
    if k is None:
        if not isinstance(relevant, numbers.Integral):
            raise InputError(
                "there is no cut-off",
                where="k",
                fix="write mean_hit_rate(retrieved, relevant, 10) or mean_hit_rate(records, 10)",
            )
        # After records the cut-off stands second.
        k, relevant = int(relevant), None
    return _mean(Measure("Success")(k=k, rel=rel), retrieved, relevant)


def _value(measure: Measure, retrieved: Ranking, relevant: Judgments) -> float:
    """The value of one query."""
    grades = _judgments(relevant)
    ranking = [grades.get(doc, _UNJUDGED) for doc in _ranking(retrieved)]
    return _number(measure, JudgedRun.from_grades(ranking, list(grades.values())))


def _number(measure: Measure, run: JudgedRun) -> float:
    value = float(measure.complete().values(run)[0])
    return 0.0 if math.isnan(value) else value


def _ranking(retrieved: Ranking) -> list[bytes]:
    if isinstance(retrieved, str | bytes) or not isinstance(retrieved, Iterable):
        raise InputError(
            f"got {retrieved!r:.60} where a ranking was wanted",
            where="retrieved",
            fix='give a list of document ids, best first: ["d2", "d1"]',
        )
    if isinstance(retrieved, AbstractSet | Mapping):
        raise InputError(
            f"a {type(retrieved).__name__} has no order of its own, so it is no ranking",
            where="retrieved",
            fix="give a list of document ids, best first",
        )
    docs = _ids(retrieved, "retrieved")
    if len(set(docs)) < len(docs):
        raise _repeated(docs, "retrieved", "list(dict.fromkeys(retrieved)) keeps the first of each")
    return docs


def _judgments(relevant: Judgments) -> dict[bytes, float]:
    if isinstance(relevant, Mapping):
        values = _grades(relevant.values(), "relevant")
        return dict(zip(_ids(relevant, "relevant"), values, strict=True))
    if isinstance(relevant, str | bytes) or not isinstance(relevant, Iterable):
        raise InputError(
            f"got {relevant!r:.60} where the relevant documents were wanted",
            where="relevant",
            fix='give a set or list of document ids, {"d1"}, or grades, {"d1": 3}',
        )
    docs = _ids(relevant, "relevant")
    if len(set(docs)) < len(docs):
        raise _repeated(docs, "relevant", "set(relevant) keeps one of each")
    return dict.fromkeys(docs, 1.0)


def _ids(docs: Iterable[Any], where: str) -> list[bytes]:
    # Text and whole numbers of an array become those of Python.
    values = docs.tolist() if isinstance(docs, np.ndarray) else list(docs)
    return Ids.of(values, "document id", _blame(where)).tolist()


def _grades(grades: Iterable[Any], where: str) -> list[float]:
    if isinstance(grades, str | bytes | Mapping | AbstractSet) or not isinstance(grades, Iterable):
        raise InputError(
            f"got {grades!r:.60} where a list of grades was wanted",
            where=where,
            fix="give the grades in rank order: [3, 0, 2]",
        )
    values: list[float] = numbers_of(list(grades), JUDGMENTS, _blame(where)).tolist()
    for row, value in enumerate(values):
        if not math.isfinite(value):
            shown = "NaN" if math.isnan(value) else str(value)
            raise _blame(where)(
                row,
                f"grade {shown} is not a finite number",
                "give 0 to what is not relevant, and leave out what was not judged",
            )
    return values


def _blame(where: str) -> Blame:
    """Errors for an entry of an argument."""

    def error(row: int, what: str, fix: str) -> InputError:
        return InputError(what, where=f"{where}, entry {row + 1}", fix=fix)

    return error


def _repeated(docs: list[bytes], where: str, fix: str) -> InputError:
    twice = next(doc for place, doc in enumerate(docs) if doc in docs[:place])
    count = docs.count(twice)
    many = "twice" if count == 2 else f"{count} times"
    return InputError(f"document {show_id(twice)!r} stands {many}", where=where, fix=fix)


def _mean(measure: Measure, retrieved: Any, relevant: Any) -> float:
    if relevant is None:
        return evaluate(retrieved, measures=measure).mean()[str(measure)]
    if isinstance(retrieved, Mapping) and isinstance(relevant, Mapping):
        return evaluate(relevant, retrieved, measure).mean()[str(measure)]
    if isinstance(retrieved, Mapping) or isinstance(relevant, Mapping):
        raise InputError(
            "one of retrieved and relevant is by query id, the other is not",
            fix="give both as mappings by query id, or both as lists in the same order",
        )
    columns = {"retrieved": retrieved, "relevant": relevant}
    return evaluate(columns, measures=measure).mean()[str(measure)]
