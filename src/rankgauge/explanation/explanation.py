"""`explain()`: step-by-step explanation of the value of one query, and its tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.ids import Id
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, Unjudged
from rankgauge.core.text import keep, many
from rankgauge.data.joined_blocks import read_part
from rankgauge.data.qrels import judged_number
from rankgauge.data.run import readable_again
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
    RankedDocument,
    RankedQuery,
    Step,
    Term,
    number,
)
from rankgauge.explanation.cases import (
    ANY_GRADE,
    counted_by_query,
    evaluate_case,
    level_of,
    make_case,
    parameters_of,
    ranked_query,
)
from rankgauge.explanation.graded import MODELS, MOST_RANKS, orders_of, tie_mean
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Detail, Table, by_column

# Modules that register calculations.
_FAMILIES = (binary, graded)
# Measures that are calculated rank by rank down to the cut-off.
_RANK_BY_RANK = {"Compat", *MODELS}
_EXAMPLE_RELEVANT = (2, 5)


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
        >>> explanation = explain({"q1": {"d1": 3, "d2": 1}}, {"q1": ["d2", "d1"]}, "nDCG@10")
        >>> explanation.value
        0.7967075809905066
        >>> print(explanation.steps[-1])
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

    def table(self) -> Table:
        """Return the ranking with the contribution of each document."""
        return self.tables()[0]

    def tables(self) -> tuple[Table, ...]:
        """Return tables of the ranking with the contributions, and of the ideal ranking if any.

        Documents that contribute nothing, scores, and the ideal ranking are details.
        """
        ranking = _ranking(self.measure, self.calculation, self.ranking)
        title = f"{self.measure} = {number(self.value)} for query {self.query} in {self.run_name}"
        return replace(ranking, title=title), *([_ideal(self.calculation)] if self.calculation.ideal else [])

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
    calculation = calculate(case.measure, ranking, orders=_is_tie_mean(case, ranking))
    return Explanation(
        run_name=evaluation.run_name,
        measure=case.measure,
        query=ranking.query,
        why=why,
        evaluated=kernel,
        mean=evaluation.mean()[str(case.measure)],
        queries=len(evaluation.query_ids),
        step_by_step=calculation is not None,
        calculation=calculation or _value_only(case.measure, ranking, kernel),
        ranking=documents_read(case.measure, ranking),
        policies=case.policies,
        others=tuple(_others(evaluation, ranking.query)),
        notes=_notes(case, ranking, calculation, kernel),
    )


def documents_read(measure: Measure, ranking: RankedQuery) -> RankedQuery:
    """Return the documents of a query that the measure uses: all, or only the judged ones."""
    return ranking.judged_only() if dict(measure.params).get("judged_only") else ranking


def calculate(measure: Measure, query: RankedQuery, *, orders: bool = False) -> Calculation | None:
    """Return the step-by-step calculation of a query, or None if there is none."""
    seen = documents_read(measure, query)
    words = parameters_of(measure, seen)
    measured = MeasuredQuery(seen.query, seen.documents, seen.judgments, seen.in_run, str(measure), words)
    deep = measure.name in _RANK_BY_RANK and words["k"] > MOST_RANKS
    only_value = words.get("residual") and measure.name != "RBP"
    relative, relevant = measure.arguments.get("k"), seen.relevant(words.get("rel") or 1)
    if isinstance(relative, str) and not relevant:
        return Calculation((), (), (f"{relative} with R = 0: undefined",), math.nan)
    if measure.name not in CALCULATIONS or deep or only_value:
        return None
    shown = tie_mean(measure.name, measured) if orders else CALCULATIONS[measure.name](measured)
    if shown is None or not isinstance(relative, str):
        return shown
    return replace(shown, steps=(f"{relative} with R = {relevant}: {many(words['k'], 'rank')}", *shown.steps))


def nearly_equal(value: float, other: float) -> bool:
    """Return whether two values are equal up to rounding, or both undefined."""
    if math.isnan(value) or math.isnan(other):
        return math.isnan(value) and math.isnan(other)
    return abs(value - other) <= TOLERANCE * max(1.0, abs(value), abs(other))


def _value_only(measure: Measure, ranking: RankedQuery, kernel: float) -> Calculation:
    level = level_of(measure, ranking)
    rows = tuple(Step(doc, (), doc.reaches(level)) for doc in documents_read(measure, ranking).within(measure.cutoff))
    summary = measure.declaration.doc.split("\n\n", 1)[0].replace("\n", " ")
    return Calculation((), rows, (summary, f"{measure} = {number(kernel)}"), kernel)


def _is_tie_mean(case: Case, ranking: RankedQuery) -> bool:
    """Return whether the value is a mean over several orders, which no single ranking can show."""
    averaged = case.policies.ties == "mean" and case.measure.declaration.tie_mean != "same"
    return averaged and any(doc.tied for doc in ranking.documents)


def _evaluated(case: Case, source: Any, *, count: bool) -> tuple[Evaluation, dict[str, float]]:
    """Return the values and, with `count`, the number of relevant documents found per query."""
    if not count:
        return evaluate_case(case, source=source), {}
    # The best grade depends on the query; any grade is good enough for selecting a query.
    hits = parse("NumRelRet")(
        rel=ANY_GRADE if case.measure.level is None else case.measure.level, k=case.measure.cutoff
    )
    # Any order of ties is good enough: the number is only used to select a query.
    any_order = case._replace(policies=replace(case.policies, ties="trec", draws=0, seed=0))
    if any_order.policies != case.policies:
        hit_counts = evaluate_case(any_order, [hits], source)
        return evaluate_case(case, source=source), counted_by_query(hit_counts)
    measures = tuple(dict.fromkeys([case.measure, hits]))
    evaluation = evaluate_case(case, measures, source)
    return evaluation, counted_by_query(evaluation, measures.index(hits))


def _example_query(evaluation: Evaluation, hits: Mapping[str, float]) -> tuple[str, str]:
    """Return a query that shows how the measure works, and the reason for its selection."""
    measure = evaluation.measures[0]
    mean = evaluation.mean()[str(measure)]
    low, high = measure.declaration.bounds
    pairs = zip(evaluation.query_ids, evaluation.per_query[:, 0].tolist(), strict=True)
    rows = [(query, value, int(hits.get(query, 0))) for query, value in pairs]
    inside = [row for row in rows if low < row[1] < high]
    where = "found" if measure.cutoff is None else f"in the first {measure.cutoff}"
    few = [row for row in inside if _EXAMPLE_RELEVANT[0] <= row[2] <= _EXAMPLE_RELEVANT[1]]
    choices = (
        (few, f"with two to five relevant documents {where}"),
        (inside, "with a value that is neither the lowest nor the highest"),
        ([row for row in rows if not math.isnan(row[1])], "with a value"),
        (rows, "evaluated"),
    )
    kept, text = next(choice for choice in choices if choice[0])
    chosen = min(kept, key=lambda row: abs(row[1] - mean))
    near = "" if math.isnan(mean) else f", the nearest to the mean ({number(mean)})"
    queries = "the only query" if len(kept) == 1 else f"the {many(len(kept), 'query')}"
    return chosen[0], f"of {queries} {text}{near}"


def _others(evaluation: Evaluation, shown: str) -> Iterator[RelatedQuery]:
    """Yield the queries with the lowest, median, and highest value, except the one shown."""
    values = zip(evaluation.per_query[:, 0].tolist(), evaluation.query_ids, strict=True)
    known = sorted(((value, query) for value, query in values if not math.isnan(value)), key=lambda x: x[0])
    seen = {shown}
    places = (("lowest", 0), ("median", (len(known) - 1) // 2), ("highest", len(known) - 1))
    for what, place in places if known else ():
        value, query = known[place]
        if query not in seen:
            seen.add(query)
            yield RelatedQuery(what, query, value)


def _notes(case: Case, ranking: RankedQuery, calculation: Calculation | None, kernel: float) -> tuple[str, ...]:
    value, name = kernel if calculation is None else calculation.value, case.measure.name
    orders = orders_of(documents_read(case.measure, ranking)) if _is_tie_mean(case, ranking) else 0
    unjudged = many(sum(not doc.judged for doc in ranking.documents), "document")
    skipped = "skip" in {case.policies.undefined, case.measure.declaration.undefined}
    return keep(
        not nearly_equal(value, kernel)
        and f"WARNING: the steps give {value!r}, evaluate gives {kernel!r}: this is a bug in "
        "rankgauge, please report it",
        not ranking.in_run and "this query is not in the run: an empty ranking",
        ranking.in_run and not ranking.documents and "the run retrieved nothing for this query",
        orders
        and f"ties=mean: the value is the mean over all {orders} orders of tied documents"
        + (", not of one ranking" if calculation is None else ""),
        not orders and calculation is None and f"{name} has no step-by-step calculation: the value is from evaluate",
        dict(case.measure.params).get("judged_only") and f"judged_only: {unjudged} without a judgment removed first",
        math.isnan(kernel) and f"undefined: {'excluded from' if skipped else 'counted 0 in'} the mean",
    )


# ---- tables: the rows that count, with notes on omitted ranks

UNJUDGED = "·"
# The first ranks are always shown; below them, only rows that count, up to a limit.
_HEAD, _MOST = 10, 25
_WORDS = {"document", "relevant", "tie"}


def shown_rows(calculation: Calculation) -> list[Step]:
    """Return the first rows, and below them the rows that count."""
    return [row for place, row in enumerate(calculation.rows) if place < _HEAD or row.counts][:_MOST]


def _ranking(measure: Measure, calculation: Calculation, ranking: RankedQuery) -> Table:
    level, shown = level_of(measure, ranking), shown_rows(calculation)
    binary = measure.declaration.reads == "binary" and "rel" in measure.declaration.words
    counted = [row for row in shown if row.counts][:_HEAD]
    ranks = [row.ranked for row in shown]
    terms = terms_of([row.terms for row in shown])
    columns, rows = by_column(
        ("rank", (str(row.ranked.rank) if row in counted else Detail(row.ranked.rank) for row in shown)),
        ("document", (listed.document for listed in ranks)),
        # Enough digits to distinguish a score from its neighbors.
        (Detail("score"), (f"{listed.score:.10g}" for listed in ranks)),
        any(listed.tied for listed in ranks)
        and (
            "tie" if any(row.ranked.tied for row in counted) else Detail("tie"),
            (f"{listed.first}-{listed.last}" if listed.tied else "" for listed in ranks),
        ),
        ("grade", (grade_of(listed.grade) for listed in ranks)),
        binary and (Detail("relevant"), ("yes" if listed.reaches(level) else "" for listed in ranks)),
        *((name, [cells[place] for cells in terms]) for place, name in enumerate(calculation.columns)),
    )
    places = [0, *(listed.rank for listed in ranks), len(ranking.documents) + 1]
    gaps = (ranking.documents[above : below - 1] for above, below in pairwise(places) if below > above + 1)
    return Table(
        columns,
        rows,
        best=frozenset((place, 1) for place, row in enumerate(shown) if row.counts),
        right=_right(columns),
        notes=tuple(_omitted(documents, level, measure.cutoff) for documents in gaps),
        shortened=frozenset({1}),
        unit="document",
    )


def _right(heads: Sequence[str]) -> frozenset[int]:
    """Return the right-aligned columns: all except documents and text."""
    return frozenset(place for place, head in enumerate(heads) if head not in _WORDS)


def _omitted(documents: Sequence[RankedDocument], level: float, k: int | None) -> str:
    """Return a note on omitted rows."""
    first, last = documents[0].rank, documents[-1].rank
    cut = math.inf if k is None else k
    hits = [doc.rank for doc in documents if doc.reaches(level)]
    text = "none relevant"
    if hits:
        where = " below the cut-off" if hits[0] > cut >= first else ""
        shown = ", ".join(map(str, hits[:3])) + (", ..." if len(hits) > 3 else "")
        text = f"{len(hits)} relevant{where}, at {shown}"
    where = " (below the cut-off)" if first > cut else ""
    return f"not listed: {f'rank {first}' if first == last else f'ranks {first} to {last}'}{where}, {text}"


def _ideal(calculation: Calculation) -> Table:
    ideal = calculation.ideal
    heads = ("rank", "document", "grade", *calculation.columns)
    rows = (
        (str(row.rank), row.document, grade_of(row.grade), *written)
        for row, written in zip(ideal[:_HEAD], terms_of([row.terms for row in ideal]), strict=False)
    )
    more = many(len(ideal) - _HEAD, "more document")
    notes = (f"{more}, sum {number(ideal[-1].terms[-1] or 0.0)}",) if len(ideal) > _HEAD else ()
    return Table(heads, tuple(rows), title=Detail("the ideal ranking"), right=_right(heads), notes=notes)


def terms_of(rows: Sequence[tuple[Term, ...]]) -> list[tuple[str, ...]]:
    """Format terms uniformly within a column: integers without decimals, others with four."""
    written: list[list[str]] = []
    for column in zip(*rows, strict=True):
        whole = all(float(term).is_integer() for term in column if isinstance(term, int | float))
        written.append([_term_text(term, whole=whole) for term in column])
    return list(zip(*written, strict=True)) if written else [()] * len(rows)


def _term_text(term: Term, *, whole: bool) -> str:
    if term is None or isinstance(term, str):
        return term or ""
    if whole:
        return number(term)
    return f"{term:.4f}" if term == 0 or abs(term) >= 0.00095 else f"{term:.3g}"


def grade_of(grade: float | None) -> str:
    """Format a grade, or the mark of an unjudged document."""
    return UNJUDGED if grade is None else number(grade)
