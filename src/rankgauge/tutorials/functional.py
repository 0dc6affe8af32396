"""Plain functions: measures computed from a ranking and the relevant documents.

Every function calls the same kernel as :func:`~rankgauge.evaluate`, so the values are the same. Use
``evaluate()`` for many queries, several measures, or results to keep. The reference pages of the
measures P, R, F, Success, RR, AP, DCG, nDCG, and ERR have their formulas, ranges, and sources.

The arguments are

- ``retrieved``: the document ids of a ranking, best first: a list, a tuple, or an array;
- ``relevant`` (``grades`` for measures that need grades): the relevant documents: a set or list
  (grade 1), or a mapping from document id to grade;
- ``k``: the cut-off, at least 1. If it is optional and omitted, the whole ranking counts; a
  ranking may be shorter than k;
- ``rel``: for binary measures, the grade from which a document counts as relevant;
- ``gain``, for graded measures: ``linear``, ``exp`` (``2^grade - 1``), or a mapping from grade to
  gain.

The first two arguments also have the names ``retrieved_ids`` and ``relevant_ids`` (or
``relevance_scores``), and ``top`` has the name ``max_grade``.

Functions of several queries take two lists (rankings and their relevant documents), two mappings
by query id, or, without ``relevant``, records with both, such as ``(retrieved, relevant)`` pairs.
A query without a ranking counts as 0; an input without queries is an error.

The functions return a single float, so undefined values (no document is relevant) are 0.0. In
``evaluate()``, such values are NaN and their number is reported.

Document ids are text, whole numbers, or bytes, of one type per ranking. A duplicate document is an
error: counted twice, it could push recall and nDCG above 1.

All functions raise :class:`~rankgauge.InputError` if a ranking has no order or has a duplicate
document, an id is invalid, or a grade is not a finite number; its subclass
:class:`~rankgauge.MismatchError` if no document matches because the ids of both sides are spelled
differently; and :class:`~rankgauge.UnknownName` if k is not a whole number of at least 1, or
another argument has an unknown value.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set as AbstractSet
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from rankgauge.core.ids import Blame, Ids, near_match, show_id
from rankgauge.errors import InputError, MismatchError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.formats.columns import JUDGMENTS, finite_numbers
from rankgauge.formats.frames import listed, short
from rankgauge.formats.mappings import is_list, labelled
from rankgauge.measures.compiled import UNJUDGED, grades_of, measure_grades
from rankgauge.measures.measure import Measure, parse

if TYPE_CHECKING:
    from rankgauge.tutorials.evaluator import QueryEvaluation

__all__ = [
    "average_precision",
    "calculate_ndcg_at_k",
    "calculate_precision_recall",
    "dcg",
    "dcg_at_k",
    "evaluate_retrieval",
    "expected_reciprocal_rank",
    "f1_at_k",
    "hit_rate",
    "hit_rate_at_k",
    "mean_hit_rate",
    "mean_reciprocal_rank",
    "mrr",
    "ndcg",
    "ndcg_at_k",
    "precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "success_at_k",
]

Ranking: TypeAlias = Iterable[Any]
Judgments: TypeAlias = Mapping[Any, float] | Iterable[Any]

_P = ParamSpec("_P")
_T = TypeVar("_T")

# A cut-off larger than any ranking.
_LONGEST = 1_000_000_000


def _accept_aliases(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let a function accept the argument names that tutorials use."""
    first, second, *_ = inspect.signature(function).parameters
    names = {"retrieved_ids": first, "relevant_ids": second, "relevance_scores": second, "max_grade": "top"}

    @functools.wraps(function)
    def renamed(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if names.keys().isdisjoint(kwargs):
            return function(*args, **kwargs)
        arguments = {names.get(name, name): value for name, value in kwargs.items()}
        if len(arguments) < len(kwargs):
            raise TypeError(f"{function.__name__}() got the same argument by two names: {[*kwargs]}")
        return function(*args, **arguments)  # type: ignore[arg-type] # the names are those of _P

    return renamed


@_accept_aliases
def precision_at_k(retrieved: Ranking, relevant: Judgments, k: int, *, rel: float = 1) -> float:
    """Return the share of the first k ranks with a relevant document.

    The divisor is k even if the ranking is shorter.

    Example:
        >>> precision_at_k(["d1", "d5", "d3"], {"d1", "d3", "d6"}, 2)
        0.5
    """
    return _value(_measure("P", k=k, rel=rel), retrieved, relevant)


@_accept_aliases
def recall_at_k(retrieved: Ranking, relevant: Judgments, k: int, *, rel: float = 1) -> float:
    """Return the share of the relevant documents that are in the first k ranks.

    Example:
        >>> recall_at_k([3, 1, 7, 2, 5, 8, 4], {1, 2, 4, 6}, 3)
        0.25
    """
    return _value(_measure("R", k=k, rel=rel), retrieved, relevant)


@_accept_aliases
def f1_at_k(retrieved: Ranking, relevant: Judgments, k: int, *, beta: float = 1, rel: float = 1) -> float:
    """Return the harmonic mean of precision and recall at k; `beta` is the weight of recall.

    Example:
        >>> round(f1_at_k([1, 2, 3, 4, 5], {1, 3, 6, 7}, 5), 4)
        0.4444
    """
    return _value(_measure("F", k=k, beta=beta, rel=rel), retrieved, relevant)


@_accept_aliases
def hit_rate_at_k(retrieved: Ranking, relevant: Judgments, k: int, *, rel: float = 1) -> float:
    """Return 1.0 if a relevant document is in the first k ranks, else 0.0.

    Example:
        >>> hit_rate_at_k(["d4", "d1"], {"d1"}, 1), hit_rate_at_k(["d4", "d1"], {"d1"}, 2)
        (0.0, 1.0)
    """
    return _value(_measure("Success", k=k, rel=rel), retrieved, relevant)


@_accept_aliases
def success_at_k(retrieved: Any, relevant: Any, k: int | None = None, *, rel: float = 1) -> float:
    """Return :func:`hit_rate_at_k` for one query, or :func:`mean_hit_rate` for records.

    Call ``success_at_k(retrieved, relevant, k)`` for one query, ``success_at_k(records, k)`` for
    several.

    Example:
        >>> success_at_k(["d4", "d1"], {"d1"}, 2)
        1.0
        >>> success_at_k([{"retrieved": ["a", "b"], "relevant": ["b"]}], 1)
        0.0
    """
    if k is None:
        return mean_hit_rate(retrieved, relevant, rel=rel)
    return hit_rate_at_k(retrieved, relevant, k, rel=rel)


@_accept_aliases
def reciprocal_rank(retrieved: Ranking, relevant: Judgments, k: int | None = None, *, rel: float = 1) -> float:
    """Return 1 / the rank of the first relevant document, or 0.0 if none is in the first k.

    Example:
        >>> reciprocal_rank(["d3", "d1", "d2"], {"d1", "d2"})
        0.5
    """
    return _value(_measure("RR", k=k, rel=rel), retrieved, relevant)


@_accept_aliases
def average_precision(
    retrieved: Ranking, relevant: Judgments, k: int | None = None, *, norm: str = "R", rel: float = 1
) -> float:
    """Return the mean of the precisions at the ranks of the relevant documents.

    The sum of the precisions is divided by `norm`: R, the number of relevant documents, or, as in
    other tools, ``min(k,R)``, ``k``, or ``retrieved`` (the number of relevant documents retrieved).

    Example:
        >>> round(average_precision([1, 3, 5, 2, 7], {1, 2, 4}), 4)
        0.5
        >>> round(average_precision([1, 3, 5, 2, 7], {1, 2, 4}, norm="retrieved"), 4)
        0.75
    """
    return _value(_measure("AP", k=k, norm=norm, rel=rel), retrieved, relevant)


@_accept_aliases
def dcg_at_k(retrieved: Ranking, relevant: Judgments, k: int | None = None, *, gain: Any = "linear") -> float:
    """Return the discounted cumulative gain: the sum of ``gain / log2(rank + 1)``.

    Example:
        >>> round(dcg_at_k(list("cadbe"), {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}, 5), 2)
        4.14
    """
    return _value(_measure("DCG", k=k, gain=gain), retrieved, relevant)


@_accept_aliases
def ndcg_at_k(
    retrieved: Ranking, relevant: Judgments, k: int | None = None, *, gain: Any = "linear", ideal: str = "judged"
) -> float:
    """Return DCG divided by the DCG of the ideal ranking.

    The ideal ranking contains all judged documents, retrieved or not (`ideal` is ``judged``). Many
    scripts use only the retrieved documents, which inflates the value; to reproduce them, use
    ``retrieved`` (of the whole ranking) or ``topk`` (of the first k).

    Example:
        >>> grades = {"a": 1, "b": 0, "c": 3, "d": 2, "e": 0, "f": 3}
        >>> round(ndcg_at_k(list("abcde"), grades, 5), 4)
        0.5316
        >>> round(ndcg_at_k(list("abcde"), grades, 5, ideal="retrieved"), 4)
        0.7059
    """
    return _value(_measure("nDCG", k=k, gain=gain, ideal=ideal), retrieved, relevant)


@_accept_aliases
def expected_reciprocal_rank(retrieved: Ranking, grades: Judgments, k: int | None = None, *, top: float = 4) -> float:
    """Return the expected reciprocal rank of the document at which a reader stops.

    `top` is the highest grade of the scale; a higher grade is an error. Values depend on `top`, so
    report it.

    Example:
        >>> grades = {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}
        >>> round(expected_reciprocal_rank(list("cadbe"), grades, top=3), 4)
        0.5198
    """
    return _value(_measure("ERR", k=k, top=top), retrieved, grades)


def dcg(grades: Iterable[float], k: int | None = None, *, gain: Any = "linear") -> float:
    """Return the discounted cumulative gain of a list of grades, in rank order.

    Example:
        >>> round(dcg([2, 0, 2, 1]), 4)
        3.4307
    """
    retrieved = _grades(grades, "grades")
    return _number(_measure("DCG", k=k, gain=gain), retrieved, retrieved)


def ndcg(
    grades: Iterable[float], k: int | None = None, ideal: Iterable[float] | None = None, *, gain: Any = "linear"
) -> float:
    """Return the normalized DCG of a list of grades, in rank order.

    `ideal` has the grades of all judged documents, in any order; a retrieved grade that it lacks is
    an error. Without `ideal`, the ideal ranking has only the retrieved grades, and the value is too
    high if a relevant document was missed.

    Example:
        >>> round(ndcg([1, 3, 0, 2, 1], 5, ideal=[3, 2, 1, 1, 0]), 3)
        0.797
        >>> round(ndcg([3, 2, 3, 0, 1]), 3)
        0.972
    """
    retrieved = _grades(grades, "grades")
    pool = retrieved if ideal is None else _grades(ideal, "ideal")
    # Without a retrieved grade in the ideal, values could exceed 1.
    there = Counter(pool)
    for grade, count in Counter(grade for grade in retrieved if grade > 0).items():
        if count > there[grade]:
            often = f" {count} times (it has {there[grade]})" if there[grade] else ""
            raise InputError(
                f"the ideal lacks grade {grade:g}, which was retrieved{often}",
                fix="pass the grades of all judged documents",
            )
    return _number(_measure("nDCG", k=k, gain=gain), retrieved, pool)


@_accept_aliases
def mean_reciprocal_rank(retrieved: Any, relevant: Any = None, k: int | None = None, *, rel: float = 1) -> float:
    """Return the mean of :func:`reciprocal_rank` over several queries.

    Example:
        >>> mean_reciprocal_rank([["d3", "d1"], ["d1", "d2"]], [{"d1"}, {"d1", "d2"}])
        0.75
        >>> mean_reciprocal_rank([(["d3", "d1"], {"d1"}), (["d1", "d2"], {"d1", "d2"})])
        0.75
    """
    return _mean(_measure("RR", k=k, rel=rel), retrieved, relevant)


@_accept_aliases
def mean_hit_rate(retrieved: Any, relevant: Any = None, k: int | None = None, *, rel: float = 1) -> float:
    """Return the share of queries with a relevant document in the first k ranks.

    With records, the cut-off is the second argument: ``mean_hit_rate(records, k)``.

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
        # With records, the cut-off is the second argument.
        k, relevant = int(relevant), None
    return _mean(_measure("Success", k=k, rel=rel), retrieved, relevant)


@_accept_aliases
def hit_rate(retrieved: Any, relevant: Any = None, k: int | None = None, *, rel: float = 1) -> float:
    """Return 1.0 if a relevant document was retrieved, else 0.0; for several queries, the mean.

    Example:
        >>> hit_rate(["d4", "d1"], {"d1"}), hit_rate(["d4", "d1"], {"d1"}, k=1)
        (1.0, 0.0)
        >>> hit_rate([["d4", "d1"], ["d2"]], [{"d1"}, {"d1"}])
        0.5
    """
    return _one_or_mean(_measure("Success", k=_LONGEST if k is None else k, rel=rel), retrieved, relevant)


@_accept_aliases
def mrr(retrieved: Any, relevant: Any = None, k: int | None = None, *, rel: float = 1) -> float:
    """Return :func:`reciprocal_rank` for one query, or :func:`mean_reciprocal_rank` for several.

    Example:
        >>> mrr(["d3", "d1"], {"d1"}), mrr([["d3", "d1"], ["d1"]], [{"d1"}, {"d1"}])
        (0.5, 0.75)
    """
    return _one_or_mean(_measure("RR", k=k, rel=rel), retrieved, relevant)


calculate_ndcg_at_k = ndcg_at_k


@_accept_aliases
def calculate_precision_recall(retrieved: Ranking, relevant: Judgments) -> QueryEvaluation:
    """Return precision, recall, F1, and counts of the retrieved documents.

    The attributes ``precision``, ``recall``, ``f1``, ``retrieved_count``, ``relevant_count``, and
    ``relevant_retrieved`` are also items: ``result["f1"]``.

    Example:
        >>> result = calculate_precision_recall([1, 2, 3, 4, 5], [1, 3, 6, 7])
        >>> result.precision, result.recall, round(result.f1, 4)
        (0.4, 0.5, 0.4444)
    """
    # Imported here, so that the other functions do not load the evaluator.
    from rankgauge.tutorials.evaluator import RetrievalEvaluator

    return RetrievalEvaluator().evaluate_single("1", retrieved, relevant)


def evaluate_retrieval(
    queries: Iterable[Any], retrieved: Iterable[Any], relevant: Iterable[Any], k: int = 5
) -> dict[str, float]:
    """Return the means over queries of precision and recall at k, hit rate at k, and MRR.

    Args:
        queries: The queries; only their number is used.
        retrieved: The ranking of each query, in the same order.
        relevant: The relevant documents of each query, in the same order.
        k: The cut-off; MRR uses the whole rankings.

    Returns:
        ``precision``, ``recall``, ``hit_rate``, and ``mrr``.

    Raises:
        InputError: If the arguments have different lengths.

    Example:
        >>> evaluate_retrieval(["late fees"], [["d2", "d1"]], [{"d1"}], k=2)
        {'precision': 0.5, 'recall': 1.0, 'hit_rate': 1.0, 'mrr': 0.5}
    """
    columns = [*map(list, (queries, retrieved, relevant))]
    lengths = [*map(len, columns)]
    if len({*lengths}) > 1:
        raise InputError(
            "got {} queries, {} rankings, and {} sets of relevant documents".format(*lengths),
            fix="pass one ranking and one set of relevant documents for each query",
        )
    names = {"precision": f"P@{k}", "recall": f"R@{k}", "hit_rate": f"Success@{k}", "mrr": "RR"}
    measures = {key: parse(name) for key, name in names.items()}
    means = evaluate({"retrieved": columns[1], "relevant": columns[2]}, measures=[*measures.values()]).mean()
    return {key: means[str(measure)] for key, measure in measures.items()}


def _one_or_mean(measure: Measure, retrieved: Any, relevant: Any) -> float:
    """Return the value of one ranking, or the mean over several."""
    if relevant is None or isinstance(retrieved, Mapping):
        return _mean(measure, retrieved, relevant)
    docs = listed(retrieved) if is_list(retrieved) else retrieved
    if is_list(docs) and len(docs) and is_list(docs[0]):
        return _mean(measure, docs, relevant)
    return _value(measure, docs, relevant)


def _measure(name: str, **params: Any) -> Measure:
    """Return a measure, cached for plain parameters because loops request the same measure."""
    if all(type(value) in _PLAIN for value in params.values()):
        return _cached_measure(name, **params)
    return Measure(name)(**params).complete()


_PLAIN = (int, float, str, type(None))


@functools.lru_cache(maxsize=256, typed=True)
def _cached_measure(name: str, **params: Any) -> Measure:
    return Measure(name)(**params).complete()


def _value(measure: Measure, retrieved: Ranking, relevant: Judgments) -> float:
    """Return the value of one query."""
    plain = grades_of(retrieved, relevant)
    if plain is not None:
        return _number(measure, *plain)
    grades, docs = _judgments(relevant), _ranking(retrieved)
    if grades.keys().isdisjoint(docs):
        near = near_match(docs, grades)
        if near is not None:
            ours, theirs = map(show_id, near)
            raise MismatchError(
                f"retrieved {ours!r} and relevant {theirs!r} differ only in leading zeros, spaces, or case",
                fix="use the same ids in both",
            )
    return _number(measure, [grades.get(doc, UNJUDGED) for doc in docs], list(grades.values()))


def _number(measure: Measure, grades: list[float], pool: list[float]) -> float:
    """Return the value of a ranking with these grades; `pool` has all grades of the query."""
    (value,) = measure_grades((measure,), grades, pool)
    return 0.0 if math.isnan(value) else value


def _ranking(retrieved: Ranking) -> list[bytes]:
    if isinstance(retrieved, AbstractSet | Mapping) or labelled(retrieved, "retrieved") is not None:
        raise InputError(
            f"a {type(retrieved).__name__} has no order, so it is not a ranking",
            where="retrieved",
            fix="pass a list of document ids, best first",
        )
    if not is_list(retrieved):
        raise InputError(
            f"got {short(retrieved)}, expected a ranking",
            where="retrieved",
            fix='pass a list of document ids, best first: ["d2", "d1"]',
        )
    return _ids(retrieved, "retrieved", "list(dict.fromkeys(retrieved)) keeps the first of each")


def _judgments(relevant: Judgments) -> dict[bytes, float]:
    pairs = labelled(relevant, "relevant")
    if isinstance(relevant, Mapping):
        pairs = list(relevant), list(relevant.values())
    if pairs is not None:
        docs = _ids(pairs[0], "relevant", "give every document one grade")
        return dict(zip(docs, _grades(pairs[1], "relevant"), strict=True))
    if not is_list(relevant):
        raise InputError(
            f"got {short(relevant)}, expected the relevant documents",
            where="relevant",
            fix='pass a set or list of document ids, {"d1"}, or grades, {"d1": 3}',
        )
    return dict.fromkeys(_ids(relevant, "relevant", "set(relevant) keeps one of each"), 1.0)


def _ids(ids: Iterable[Any], where: str, fix: str) -> list[bytes]:
    """Return distinct document ids; reject duplicates."""
    docs = Ids.of(listed(ids), "document id", _entry_error(where)).tolist()
    if len(set(docs)) < len(docs):
        twice, count = next((doc, n) for doc, n in Counter(docs).items() if n > 1)
        many = "twice" if count == 2 else f"{count} times"
        raise InputError(f"document {show_id(twice)!r} occurs {many}", where=where, fix=fix)
    return docs


def _grades(grades: Iterable[Any], where: str) -> list[float]:
    if not is_list(grades) or isinstance(grades, AbstractSet):
        raise InputError(
            f"got {short(grades)}, expected a list of grades",
            where=where,
            fix="pass the grades in rank order: [3, 0, 2]",
        )
    values: list[float] = finite_numbers(listed(grades), JUDGMENTS, _entry_error(where)).tolist()
    return values


def _entry_error(where: str) -> Blame:
    """Return a function that creates the error for an entry of an argument."""

    def error(row: int, what: str, fix: str) -> InputError:
        return InputError(what, where=f"{where}, entry {row + 1}", fix=fix)

    return error


def _mean(measure: Measure, retrieved: Any, relevant: Any) -> float:
    if relevant is None:
        return evaluate(retrieved, measures=measure).mean()[str(measure)]
    if isinstance(retrieved, Mapping) and isinstance(relevant, Mapping):
        return evaluate(relevant, retrieved, measure).mean()[str(measure)]
    if isinstance(retrieved, Mapping) or isinstance(relevant, Mapping):
        raise InputError(
            "one of retrieved and relevant is by query id, the other is not",
            fix="pass both as mappings by query id, or both as lists in the same order",
        )
    return evaluate({"retrieved": retrieved, "relevant": relevant}, measures=measure).mean()[str(measure)]
