"""`explain()`: step-by-step explanation of the value of one query."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.ids import Id
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, Unjudged
from rankgauge.core.text import many
from rankgauge.data.qrels import judged_number
from rankgauge.data.run import read_part, readable_again
from rankgauge.data.subsets import only
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import Queries
from rankgauge.evaluation.profile_deviations import Case
from rankgauge.evaluation.result import Evaluation
from rankgauge.explanation import binary, graded
from rankgauge.explanation.calculation import (
    CALCULATIONS,
    Calculation,
    MeasuredQuery,
    RankedQuery,
    Step,
    number,
    summed,
)
from rankgauge.explanation.graded import MODELS, MOST_RANKS, describe_gain, relevant_gain
from rankgauge.explanation.inputs import (
    ANY_GRADE,
    counted_by_query,
    evaluate_case,
    level_of,
    make_case,
    parameters_of,
    ranked_query,
)
from rankgauge.explanation.tables import tables_of
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

# Modules that register calculations.
_FAMILIES = (binary, graded)
# Measures that are calculated rank by rank down to the cut-off.
_RANK_BY_RANK = {"Compat", *MODELS}
_EXAMPLE_RELEVANT = (2, 5)
# Larger numbers of orders are shown as powers of ten.
_MOST_DIGITS = 9


@dataclass(frozen=True)
class RelatedQuery:
    """Another query of interest.

    Attributes:
        what: ``lowest``, ``median``, or ``highest`` value.
        query: The query id, as text.
        value: The value of the query.
    """

    what: str
    query: str
    value: float


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Result):
    """The step-by-step calculation of the value of a query.

    Returned by :func:`explain`. Prints as a table.

    Attributes:
        run_name: The name of the run.
        measure: The measure.
        query: The query, as text.
        why: Why this query was chosen; empty if it was requested.
        evaluated: The value from `evaluate`; NaN if undefined. A note reports a different result of
            the step-by-step calculation.
        mean: The mean over the queries.
        queries: The number of queries.
        step_by_step: Whether there is a step-by-step calculation; otherwise the value is that of
            `evaluate`.
        calculation: The contributions of the documents, the ideal ranking, and the formula with
            numbers.
        ranking: The whole ranking and all judgments of the query.
        policies: The policies used.
        others: Other queries of interest.
        notes: Further notes, one sentence each.

    Example:
        >>> found = explain({"q1": {"d1": 3, "d2": 1}}, {"q1": ["d2", "d1"]}, "nDCG@10")
        >>> found.value
        0.7967075809905066
        >>> print(found.steps[-1])
        nDCG@10 = DCG / IDCG = 2.8928 / 3.6309 = 0.7967
    """

    _schema = "rankgauge/explanation/1"

    run_name: str
    measure: Measure
    query: str
    why: str
    evaluated: float
    mean: float
    queries: int
    step_by_step: bool
    calculation: Calculation
    ranking: RankedQuery
    policies: Policies
    others: tuple[RelatedQuery, ...]
    notes: tuple[str, ...]

    @property
    def value(self) -> float:
        """Result of the step-by-step calculation; NaN if undefined."""
        return self.calculation.value

    @property
    def rows(self) -> tuple[Step, ...]:
        """Documents that the measure uses, best first."""
        return self.calculation.rows

    @property
    def steps(self) -> tuple[str, ...]:
        """Formula with the numbers inserted, one line per step."""
        return self.calculation.steps

    def agrees(self) -> bool:
        """Return whether the calculation and `evaluate` agree up to rounding."""
        return nearly_equal(self.value, self.evaluated)

    def table(self) -> Table:
        """Return the ranking with the contribution of each document."""
        return self.tables()[0]

    def tables(self, *, full: bool = True) -> tuple[Table, ...]:
        """Return tables of the ranking with the contributions, and of the ideal ranking.

        Args:
            full: Whether to show the first ranks even if they contribute nothing.
        """
        title = f"{self.measure} = {number(self.value)} for query {self.query} in {self.run_name}"
        return tables_of(self.measure, self.calculation, self.ranking, title=title, full=full)

    def _data(self) -> dict[str, Any]:
        return {
            "run": self.run_name,
            "measure": str(self.measure),
            "policies": self.policies.describe(),
            "query": self.query,
            "why": self.why,
            "value": self.value,
            "evaluated": self.evaluated,
            "mean": self.mean,
            "queries": self.queries,
            "step_by_step": self.step_by_step,
            "retrieved": len(self.ranking.documents),
            **self.calculation.to_dict(),
            "missed": [{"document": name, "grade": g} for name, g in self.ranking.missed()],
            "others": self.others,
            "notes": self.notes,
        }

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        return (
            f"{self.measure} = {number(self.value)} for query {self.query} in {self.run_name}; "
            f"mean over {many(self.queries, 'query')}: {number(self.mean)}"
        )


def explain(
    qrels: Any,
    run: Any,
    measure: str | Measure,
    query: Id | None = None,
    *,
    ties: Ties = "trec",
    queries: Queries = "all",
    duplicates: Duplicates = "error",
    undefined: Undefined = "zero",
    unjudged: Unjudged = "not relevant",
) -> Explanation:
    """Explain the value of a query step by step: the contribution of each document and the sum.

    The calculation is an independent implementation of the measure; its result is compared with
    that of `evaluate`.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts.
        run: The run: anything that :meth:`Run.of` accepts.
        measure: The measure.
        query: The query. Default: a query that shows how the measure works, with two to five
            relevant documents above the cut-off and a value near the mean.
        ties: As for :func:`evaluate`, like the other policies.
        queries: The queries to average.
        duplicates: Treatment of duplicate documents in a ranking.
        undefined: Treatment of undefined values in the mean.
        unjudged: Treatment of unjudged documents.

    Raises:
        UnknownName: For an unknown measure or policy.
        InputError: If the query is not judged, or an input is not valid.

    Example:
        >>> print(*explain({"q1": {"d2"}}, {"q1": ["d1", "d2"]}, "RR").steps, sep="; ")
        the first relevant document is at rank 2; RR = 1 / 2 = 0.5000
    """
    case = make_case(
        qrels,
        {},
        measure,
        queries=queries,
        policies=Policies(ties=ties, duplicates=duplicates, undefined=undefined, unjudged=unjudged),
    )
    return explain_case(case, query, readable_again(run))


def explain_case(case: Case, query: Id | None = None, source: Any = None) -> Explanation:
    """Explain a query of a case; with `source`, only the ranking of the query is kept in memory."""
    source = case.run if source is None else source
    evaluation, hits = _evaluated(case, source, count=query is None)
    if not evaluation.query_ids:
        raise InputError("there is no query to explain", fix="evaluate more queries, as with --queries all")
    why = ""
    if query is None:
        query, why = _example_query(evaluation, hits)
    wanted = case.qrels.table.queries[judged_number(case.qrels, query)]
    case = case._replace(run=read_part(source, lambda block: only(block, [wanted])))
    ranking = ranked_query(case, wanted)
    if ranking.query not in evaluation.query_ids:
        raise InputError(
            f"query {ranking.query!r} is excluded: it is not in the run",
            fix="average all judged queries (queries='all')",
        )
    kernel = evaluation.value(ranking.query, case.measure)
    found = calculate(case.measure, ranking, orders=_is_tie_mean(case, ranking))
    return Explanation(
        run_name=evaluation.run_name,
        measure=case.measure,
        query=ranking.query,
        why=why,
        evaluated=kernel,
        mean=evaluation.mean()[str(case.measure)],
        queries=len(evaluation.query_ids),
        step_by_step=found is not None,
        calculation=found or _value_only(case.measure, ranking, kernel),
        ranking=documents_read(case.measure, ranking),
        policies=case.policies,
        others=tuple(_others(evaluation, ranking.query)),
        notes=tuple(_notes(case, ranking, found, kernel)),
    )


def documents_read(measure: Measure, ranking: RankedQuery) -> RankedQuery:
    """Return the documents of a query that the measure uses: all, or only the judged ones."""
    return ranking.judged_only() if dict(measure.params).get("judged_only") else ranking


def calculate(measure: Measure, query: RankedQuery, *, orders: bool = False) -> Calculation | None:
    """Return the step-by-step calculation of a query, or None if there is none."""
    seen = documents_read(measure, query)
    words = parameters_of(measure, seen)
    measured = MeasuredQuery.of(seen, str(measure), words)
    deep = measure.name in _RANK_BY_RANK and words["k"] > MOST_RANKS
    only_value = words.get("residual") and measure.name != "RBP"
    if measure.name not in CALCULATIONS or deep or only_value:
        return None
    if orders:
        return tie_mean(measure.name, measured)
    return CALCULATIONS[measure.name](measured)


def nearly_equal(value: float, other: float) -> bool:
    """Return whether two values are equal up to rounding, or both undefined."""
    if math.isnan(value) or math.isnan(other):
        return math.isnan(value) and math.isnan(other)
    return abs(value - other) <= TOLERANCE * max(1.0, abs(value), abs(other))


def _value_only(measure: Measure, ranking: RankedQuery, kernel: float) -> Calculation:
    k = dict(measure.params).get("k")
    level = level_of(measure, ranking)
    rows = tuple(
        Step(one, (), one.reaches(level))
        for one in documents_read(measure, ranking).within(k if isinstance(k, int) else None)
    )
    summary = measure.declaration.doc.split("\n\n", 1)[0].replace("\n", " ")
    return Calculation((), rows, (summary, f"{measure} = {number(kernel)}"), kernel)


def _is_tie_mean(case: Case, ranking: RankedQuery) -> bool:
    """Return whether the value is a mean over several orders, which no single ranking can show."""
    if case.policies.ties != "mean" or case.measure.declaration.tie_mean == "same":
        return False
    return any(x.tied for x in ranking.documents)


def _evaluated(case: Case, source: Any, *, count: bool) -> tuple[Evaluation, dict[str, float]]:
    """Return the values and, with `count`, the number of relevant documents found per query."""
    if not count:
        return evaluate_case(case, source=source), {}
    k = dict(case.measure.params).get("k")
    level = case.measure.arguments.get("rel")
    # The best grade depends on the query; any grade is good enough for selecting a query.
    hits = parse("NumRelRet")(rel=level if isinstance(level, int | float) else ANY_GRADE, k=k)
    # Any order of ties is good enough: the number is only used to select a query.
    any_order = case._replace(policies=replace(case.policies, ties="trec", draws=0, seed=0))
    if any_order.policies != case.policies:
        found = evaluate_case(any_order, [hits], source)
        return evaluate_case(case, source=source), counted_by_query(found)
    measures = tuple(dict.fromkeys([case.measure, hits]))
    evaluation = evaluate_case(case, measures, source)
    return evaluation, counted_by_query(evaluation, measures.index(hits))


def _example_query(evaluation: Evaluation, hits: Mapping[str, float]) -> tuple[str, str]:
    """Return a query that shows how the measure works, and the reason for its selection."""
    measure = evaluation.measures[0]
    mean = evaluation.mean()[str(measure)]
    low, high = measure.declaration.bounds
    values = evaluation.per_query[:, 0].tolist()
    pairs = zip(evaluation.query_ids, values, strict=True)
    rows = [(query, value, int(hits.get(query, 0))) for query, value in pairs]
    inside = [row for row in rows if low < row[1] < high]
    k = dict(measure.params).get("k")
    where = "found" if k is None else f"in the first {k}"
    few = [row for row in inside if _EXAMPLE_RELEVANT[0] <= row[2] <= _EXAMPLE_RELEVANT[1]]
    known = [row for row in rows if not math.isnan(row[1])]
    for kept, text in (
        (few, f"with two to five relevant documents {where}"),
        (inside, "with a value that is neither the lowest nor the highest"),
        (known, "with a value"),
        (rows, "evaluated"),
    ):
        if kept:
            chosen = min(kept, key=lambda row: abs(row[1] - mean))
            near = "" if math.isnan(mean) else f", the nearest to the mean ({number(mean)})"
            one = "the only query" if len(kept) == 1 else f"the {many(len(kept), 'query')}"
            return chosen[0], f"of {one} {text}{near}"
    raise InputError("there is no query to explain", fix="evaluate more queries, as with --queries all")


def _others(evaluation: Evaluation, shown: str) -> Iterator[RelatedQuery]:
    """Yield the queries with the lowest, median, and highest value, except the one shown."""
    values = zip(evaluation.per_query[:, 0].tolist(), evaluation.query_ids, strict=True)
    known = sorted(((value, query) for value, query in values if not math.isnan(value)), key=lambda x: x[0])
    if not known:
        return
    seen = {shown}
    places = (("lowest", 0), ("median", (len(known) - 1) // 2), ("highest", len(known) - 1))
    for what, place in places:
        value, query = known[place]
        if query not in seen:
            seen.add(query)
            yield RelatedQuery(what, query, value)


def _notes(case: Case, ranking: RankedQuery, found: Calculation | None, kernel: float) -> Iterator[str]:
    value = kernel if found is None else found.value
    if not nearly_equal(value, kernel):
        yield (
            f"WARNING: the steps give {value!r}, evaluate gives {kernel!r}: this is a bug in "
            "rankgauge, please report it"
        )
    if not ranking.in_run:
        yield "this query is not in the run: an empty ranking"
    elif not ranking.documents:
        yield "the run retrieved nothing for this query"
    if _is_tie_mean(case, ranking):
        seen = documents_read(case.measure, ranking)
        plural = f"the mean over all {orders_of(seen)} orders of tied documents"
        yield f"ties=mean: the value is {plural}" + (", not of one ranking" * (found is None))
    elif found is None:
        yield f"{case.measure.name} has no step-by-step calculation: the value is from evaluate"
    if dict(case.measure.params).get("judged_only"):
        removed = sum(not one.judged for one in ranking.documents)
        yield f"judged_only: {many(removed, 'document')} without a judgment removed first"
    if math.isnan(kernel):
        skipped = "skip" in {case.policies.undefined, case.measure.declaration.undefined}
        yield f"undefined: {'excluded from' if skipped else 'counted 0 in'} the mean"


# ---- means over all orders of equal scores


# The weight of a rank, from the rank and the parameters of the measure.
_Weight: TypeAlias = Callable[[int, Any], float]


def _within(rank: int, words: Any) -> float:
    return float(rank <= words["k"])


def _patience(rank: int, words: Any) -> float:
    within = words["k"] is None or rank <= words["k"]
    return words["p"] ** (rank - 1) if within else 0.0


def _discount(rank: int, words: Any) -> float:
    if words["k"] is not None and rank > words["k"]:
        return 0.0
    base = words["b"]
    if base is None:
        return 1 / math.log2(rank + 1)
    return 1.0 if rank <= base else math.log(base) / math.log(rank)


WEIGHTS: dict[str, tuple[str, _Weight]] = {
    "P": ("chance", _within),
    "R": ("chance", _within),
    "RelP": ("chance", _within),
    "RBP": ("weight", _patience),
    "DCG": ("discount", _discount),
    "nDCG": ("discount", _discount),
}
_DESCRIPTIONS = {
    "chance": "chance: the probability of being in the first k; in a tie, the share of its ranks there",
    "weight": "weight: in a tie, the mean weight of its ranks, p^(i - 1)",
    "discount": "discount: in a tie, the mean discount of its ranks",
}


def tie_mean(name: str, query: MeasuredQuery) -> Calculation | None:
    """Return the mean of a measure over all orders of equal scores, or None if not supported.

    Supported for measures that are sums of rank weights. Each document of a group of equal scores is
    equally likely at each rank of the group, so its weight is the mean weight of these ranks.
    """
    words = query.words
    if name not in WEIGHTS or words.get("residual") or (words.get("ideal") == "topk" and words["k"] is not None):
        return None
    head, weight = WEIGHTS[name]
    total, rows, terms = 0.0, [], []
    for one in query.documents:
        if words["k"] is not None and one.first > words["k"]:
            break
        gain = relevant_gain(one.grade, words) if "gain" in words else float(one.reaches(words["rel"]))
        ranks = range(one.first, one.last + 1)
        mean = math.fsum(weight(rank, words) for rank in ranks) / len(ranks)
        counts = gain > 0
        total += gain * mean
        terms += [number(mean) if gain == 1 else f"{number(gain)}·{number(mean)}"] if counts else []
        added = gain * mean if counts else None
        rows.append(Step(one, (gain if counts else None, mean, added, total), counts))
    # The ideal ranking, and whether the value is defined, do not depend on the order.
    plain = CALCULATIONS[name](query)
    value, text = _divided(name, plain, query, total)
    steps = (
        *((describe_gain(words),) if "gain" in words else ()),
        _DESCRIPTIONS[head],
        f"sum = {summed(terms)}{f' = {number(total)}' if len(terms) > 1 else ''}",
        f"{query.name} = {text} = {number(value)}",
    )
    heads = ("gain", head, "contribution", "sum")
    return Calculation(heads, tuple(rows), steps, value, plain.ideal)


def _divided(name: str, plain: Calculation, query: MeasuredQuery, total: float) -> tuple[float, str]:
    """Return the value of the measure from the weighted sum, and its formula as text."""
    if name == "DCG":
        return total, "sum"
    if name == "RBP":
        rest = 1 - query.words["p"]
        return rest * total, f"{number(rest)} · {number(total)}"
    if name == "nDCG":
        whole = float(plain.ideal[-1].terms[3] or 0) if plain.ideal else 0.0
        text = f"sum / IDCG = {number(total)} / {number(whole)}"
    else:
        whole = {"P": query.k, "R": query.count, "RelP": min(query.k, query.count)}[name]
        text = f"{number(total)} / {number(whole)}"
    if math.isnan(plain.value):
        return math.nan, text
    return total / whole if whole else 0.0, text


def orders_of(query: RankedQuery) -> str:
    """Return the number of orders of equal scores, as text."""
    sizes = {one.first: one.last - one.first + 1 for one in query.documents}
    logarithm = math.fsum(math.lgamma(size + 1) for size in sizes.values()) / math.log(10)
    if logarithm > _MOST_DIGITS:
        return f"about 10^{round(logarithm)}"
    return f"{math.prod(math.factorial(size) for size in sizes.values()):,}"
