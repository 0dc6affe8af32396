"""Sensitivity of values to the order of ties, and to the judgments that each run contributed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from types import MappingProxyType
from typing import Any

import numpy as np

from rankgauge.core.arguments import integer
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.ids import IntArray, show_id
from rankgauge.core.pair_table import distinct
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, order_of
from rankgauge.core.text import SHOWN, Ratio, inflect, keep, many
from rankgauge.data.join import Joined, join, query_of, tie_groups
from rankgauge.data.joined_blocks import map_joined
from rankgauge.data.judged_run import BoolArray, Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.records import Records
from rankgauge.data.run import Run, named_sources
from rankgauge.errors import InputError
from rankgauge.evaluation.blocks import build_evaluation, measure_joined, merge_blocks
from rankgauge.evaluation.context import make_plan, read_context
from rankgauge.evaluation.evaluation import Queries, evaluate, read_queries
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure, one_of
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Cell, Table


@dataclass(frozen=True)
class TieSpan:
    """Range of one measure over orders of tied documents.

    Attributes:
        measure: The measure.
        value: Mean over queries, as evaluated.
        worst: Mean over queries with the lower grades first in every group of equal scores.
        best: Mean over queries with the higher grades first.
        mean: Mean over queries and all orders; None without a closed form.
        queries: Number of queries whose values in the best and the worst order differ.
        whole: Whether all orders give values between worst and best. It may be false if a higher
            grade at a higher rank can lower a value: with gains that do not increase with the
            grade, or a divisor that depends on the order.
    """

    measure: Measure
    value: float
    worst: float
    best: float
    mean: float | None
    queries: int
    whole: bool


@dataclass(frozen=True, eq=False, repr=False)
class TieReport(Result):
    """Effect of ties in a run: the range of each measure over orders of tied documents.

    Returned by :func:`tie_report`. Notebooks display it as a table.

    Attributes:
        run_name: Name of the run.
        ties: Tie policy of the values as evaluated.
        spans: Value and range of each measure.
        evaluations: The evaluations ``value``, ``worst``, ``best``, and ``mean``. The last has only
            measures with a closed form, and is missing if there are none.
        counts: ``queries`` evaluated, those ``tied`` (with equal scores) and those ``deciding``
            (with documents of different grades in a group of equal scores); ``documents`` retrieved
            for these queries, ``tied_documents``, and ``deciding_documents``; ``groups`` of equal
            scores, ``deciding_groups``, and the size of the ``largest`` group.
        sizes: Number of groups of equal scores for each group size, ascending.
        notes: Notes on interpretation, one sentence each.

    Example:
        >>> report = tie_report({"q1": {"a": 1}}, {"q1": {"a": 0.5, "b": 0.5}}, "RR")
        >>> span = report.span("RR")
        >>> span.worst, span.value, span.mean, span.best
        (0.5, 0.5, 0.75, 1.0)
    """

    _schema = "rankgauge/ties/1"

    run_name: str
    ties: Ties
    spans: tuple[TieSpan, ...]
    evaluations: Mapping[str, Evaluation]
    counts: Mapping[str, int]
    sizes: Mapping[int, int]
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("evaluations", "counts", "sizes"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def span(self, measure: str | Measure) -> TieSpan:
        """Return the range of one of the measures.

        Raises:
            InputError: If the measure was not evaluated.
        """
        chosen = one_of(measure, (span.measure for span in self.spans))
        return next(span for span in self.spans if span.measure == chosen)

    def table(self, *, per_query: bool = False) -> Table:
        """Return a row for each measure, or for each query and measure that ties could change."""
        columns = ("measure", f"as evaluated ({self.ties})", "worst", "mean", "best", "queries affected")
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (str(s.measure), s.value, s.worst, s.mean, s.best, s.queries) for s in self.spans
        )
        if per_query:
            columns = ("query", *columns[:-1])
            rows = tuple(self._query_rows())
        return Table(
            columns=columns,
            rows=rows,
            title=f"{self.run_name}: ties",
            notes=self.notes,
            right=frozenset((2, 3, 4, 5) if per_query else (1, 2, 3, 4)),
        )

    def _query_rows(self) -> Iterator[tuple[Cell, ...]]:
        values = self._values
        for place, query in enumerate(self.evaluations["value"].query_ids):
            for column, span in enumerate(self.spans):
                shown = {name: float(table[place, column]) for name, table in values.items()}
                if not math.isnan(shown["worst"]) and shown["worst"] != shown["best"]:
                    yield query, str(span.measure), *shown.values()

    @property
    def _values(self) -> dict[str, Values]:
        """Values of each evaluation, (Q, M); NaN if there is none."""
        values = {name: self.evaluations[name].per_query for name in ("value", "worst")}
        values["mean"] = np.full(values["value"].shape, np.nan)
        if "mean" in self.evaluations:
            closed = [span.mean is not None for span in self.spans]
            values["mean"][:, closed] = self.evaluations["mean"].per_query
        return {**values, "best": self.evaluations["best"].per_query}

    def _data(self) -> dict[str, Any]:
        values = self._values
        return {
            "run": self.run_name,
            "ties": self.ties,
            "counts": self.counts,
            "sizes": list(self.sizes.items()),
            "measures": [
                {("name" if key == "measure" else key): value for key, value in vars(span).items()}
                for span in self.spans
            ],
            "query_ids": self.evaluations["value"].query_ids,
            "values": [
                [dict(zip(values, cells, strict=True)) for cells in row]
                for row in np.stack(list(values.values()), axis=2).tolist()
            ],
            "notes": self.notes,
        }

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        c = self.counts
        return f"{self.run_name}: breaking ties differently could change {c['deciding']} of {c['queries']} queries"


def tie_report(
    qrels: Any,
    run: Any = None,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    ties: Ties = "trec",
    queries: Queries = "all",
    duplicates: Duplicates = "error",
    undefined: Undefined = "zero",
) -> TieReport:
    """Report how ties affect a run: the range of each measure over orders of tied documents.

    Args:
        qrels: The judgments, as in :func:`evaluate`, or records with run and judgments.
        run: The run: anything that :meth:`Run.of` accepts; omitted with records.
        measures: As in :func:`evaluate`.
        ties: Tie policy of the values as evaluated.
        queries: As in :func:`evaluate`.
        duplicates: As in :func:`evaluate`.
        undefined: As in :func:`evaluate`.

    Returns:
        The range of each measure, its mean over all orders if that has a closed form, and the
        number of ties.

    Raises:
        UnknownName: If a measure or an option is unknown.
        InputError: If an input is invalid, or ``ties="mean"`` is used with a measure that has no
            closed form.

    Example:
        >>> judged = {"q1": {"a": 1}, "q2": {"a": 1}}
        >>> run = {"q1": {"a": 0.5, "b": 0.5, "c": 0.5}, "q2": {"a": 0.75, "b": 0.5}}
        >>> tie_report(judged, run, "P@1").counts["deciding"]
        1
    """
    source = Records.of_inputs(qrels, run)
    judged, ranked = (source, None) if run is None else (source.qrels, source.run)
    plan = make_plan(measures)
    closed = [measure for measure in plan.measures if measure.has_tie_mean]
    orders: dict[str, tuple[Ties, Sequence[Measure]]] = {
        "value": (ties, plan.measures),
        "worst": ("worst", plan.measures),
        "best": ("best", plan.measures),
        "mean": ("mean", closed),
    }
    evaluations = {
        name: evaluate(judged, ranked, own, ties=order, queries=queries, duplicates=duplicates, undefined=undefined)
        for name, (order, own) in orders.items()
        if own
    }
    value = evaluations["value"]
    means = {name: evaluation.mean() for name, evaluation in evaluations.items()}
    worst, best = evaluations["worst"].per_query, evaluations["best"].per_query
    apart = ~np.isclose(worst, best, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    spans = tuple(
        TieSpan(
            measure=measure,
            value=means["value"][str(measure)],
            worst=means["worst"][str(measure)],
            best=means["best"][str(measure)],
            mean=means["mean"][str(measure)] if measure.has_tie_mean else None,
            queries=int(np.count_nonzero(apart[:, column])),
            whole=measure.monotone,
        )
        for column, measure in enumerate(plan.measures)
    )
    once = source.run.without_repeats(duplicates)
    deciding = join(source.qrels, once, ties="best").deciding(plan.unjudged)
    counts, sizes = _tie_counts(source.qrels, once, value, deciding)
    return TieReport(
        run_name=value.run_name,
        ties=ties,
        spans=spans,
        evaluations=evaluations,
        counts=counts,
        sizes=sizes,
        notes=_tie_notes(counts, sizes, spans, value),
    )


def _tie_counts(
    truth: Qrels, run: Run, value: Evaluation, groups: tuple[IntArray, IntArray]
) -> tuple[dict[str, int], dict[int, int]]:
    """Return counts of ties in the evaluated queries, and the number of groups of each size."""
    table, (number, deciding) = run.table, groups
    evaluated = set(value.query_ids)
    chosen = np.array([show_id(query) in evaluated for query in run.query_index], dtype=bool)
    query, size = tie_groups(table)
    query, size = query[chosen[query]], size[chosen[query]]
    judged = np.array([query in evaluated for query in truth.query_ids], dtype=bool)
    number, deciding = number[judged[number]], deciding[judged[number]]
    sizes, having = np.unique(size, return_counts=True)
    counts = {
        "queries": len(value.query_ids),
        "tied": len(distinct(query)),
        "deciding": len(distinct(number)),
        "documents": int(np.diff(table.offsets)[chosen].sum()),
        "tied_documents": int(size.sum()),
        "deciding_documents": int(deciding.sum()),
        "groups": len(size),
        "deciding_groups": len(deciding),
        "largest": int(size.max(initial=0)),
    }
    return counts, dict(zip(sizes.tolist(), having.tolist(), strict=True))


def _tie_notes(
    counts: Mapping[str, int], sizes: Mapping[int, int], spans: Iterable[TieSpan], value: Evaluation
) -> tuple[str, ...]:
    queries = many(counts["queries"], "query")
    if not counts["groups"]:
        return (f"{queries}: no two documents of a ranking have equal scores",)
    middle = median([size for size, number in sizes.items() for _ in range(number)])
    unknown = ", ".join(str(span.measure) for span in spans if span.mean is None)
    outside = ", ".join(str(span.measure) for span in spans if not span.whole)
    return keep(
        f"{queries}: {counts['tied']} with equal scores, "
        f"{counts['deciding']} of them with tied documents of different grades",
        f"{many(counts['documents'], 'document')}: {counts['tied_documents']:,} in "
        f"{many(counts['groups'], 'group')} of equal scores (median {middle:g}, largest "
        f"{counts['largest']})",
        f"{many(counts['deciding_documents'], 'document')} in "
        f"{many(counts['deciding_groups'], 'group')} of different grades: only these can change "
        "a value",
        unknown and f"no closed form for the mean over all orders: {unknown}",
        outside and f"some orders may give values outside worst to best: {outside}",
        *(note for note in value.notes if "WARNING" in note),
    )


_Means = dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class LeftOut:
    """Results of one run with and without the judgments that only it contributed.

    Attributes:
        run: Name of the run.
        judgments: Number of judgments that only this run (or its group) contributed.
        relevant: Number of these judgments that are relevant (grade 1 or more).
        values: Mean of each measure with all judgments.
        without: Mean of each measure without these judgments.
        ranks: Rank among the runs by each measure, from 1, with all judgments.
        ranks_without: Rank if all runs are evaluated without these judgments.
    """

    run: str
    judgments: int
    relevant: int
    values: tuple[float, ...]
    without: tuple[float, ...]
    ranks: tuple[int, ...]
    ranks_without: tuple[int, ...]


@dataclass(frozen=True)
class Reliability(Result):
    """Effect of leaving out the judgments that only one run contributed.

    Returned by :func:`reliability`. Notebooks display it as a table.

    Attributes:
        measures: The measures.
        runs: Results of each run, in the order of the input.
        tau: For each measure, Kendall's tau between the orders of the runs with all judgments and
            with each run evaluated without its own judgments.
        k: Depth to which each run contributed documents; None for all retrieved documents.
        notes: Notes on interpretation.
    """

    measures: tuple[Measure, ...]
    runs: tuple[LeftOut, ...]
    tau: Mapping[Measure, float]
    k: int | None
    notes: tuple[str, ...]

    def largest_change(self, measure: str | Measure) -> tuple[str, float]:
        """Return the run whose value changes most without its own judgments, and its change.

        Example:
            >>> runs = {"a": {"q": ["d1", "d2"]}, "b": {"q": ["d2"]}}
            >>> reliability({"q": {"d1": 1, "d2": 1}}, runs, "P@1").largest_change("P@1")
            ('a', -1.0)
        """
        column = self.measures.index(one_of(measure, self.measures))
        left_out = max(self.runs, key=lambda run: abs(run.without[column] - run.values[column]))
        return left_out.run, left_out.without[column] - left_out.values[column]

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        run, change = self.largest_change(self.measures[0])
        return f"without the judgments that only it contributed, {run} changes most: {self.measures[0]} {change:+.4f}"

    def table(self) -> Table:
        """Return a table with a row for each run and measure."""
        return Table(
            columns=("run", "own", "relevant", "measure", "all", "without own", "change", "rank"),
            rows=tuple((*row[:-2], f"{row[-2]} → {row[-1]}") for row in self.data_table().rows),
            title="each run without the judgments that only it contributed (own)",
            notes=self.notes,
        )

    def data_table(self) -> Table:
        """Return a table with a row for each run and measure, and both ranks as numbers."""
        return Table(
            ("run", "own judgments", "relevant", "measure", "all", "without own", "change", "rank", "rank without own"),
            tuple(
                (
                    run.run,
                    run.judgments,
                    run.relevant,
                    str(measure),
                    run.values[column],
                    run.without[column],
                    run.without[column] - run.values[column],
                    run.ranks[column],
                    run.ranks_without[column],
                )
                for column, measure in enumerate(self.measures)
                for run in self.runs
            ),
        )


def reliability(
    qrels: Any,
    runs: Mapping[str, Any] | Iterable[Any],
    measures: str | Measure | Iterable[str | Measure] = ("AP", "nDCG@10"),
    *,
    k: int | None = None,
    groups: Mapping[str, str] | None = None,
    ties: Ties = "trec",
    queries: Queries = "all",
    duplicates: Duplicates = "error",
) -> Reliability:
    """Estimate whether judgments are fair to runs that did not contribute to the pool.

    Judges usually assess only documents that some runs retrieved, the pool. The value of a new run
    that retrieves other documents may therefore be too low. To estimate by how much, each run of
    the pool is also evaluated without the judgments that only it contributed (Zobel 1998). Runs of
    the same system retrieve the same documents; if they form a group, each is evaluated without the
    judgments that only the group contributed (Buckley, Dimmick, Soboroff, and Voorhees 2007).

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts.
        runs: The runs from which the pool was built, at least two: name to run, or runs.
        measures: Names or measures.
        k: Depth to which each run contributed documents to the pool; by default, all retrieved
            documents.
        groups: Run name to group. By default, each run is a group.
        ties: Order of documents with equal scores: ``trec`` or ``input``.
        queries: As in :func:`evaluate`.
        duplicates: As in :func:`evaluate`.

    Raises:
        InputError: If there are fewer than two runs or groups, or an input is invalid.

    Example:
        >>> runs = {"a": {"q": ["d1", "d2"]}, "b": {"q": ["d2", "d3"]}}
        >>> report = reliability({"q": {"d1": 1, "d2": 1}}, runs, "P@2")
        >>> [(run.run, run.judgments, run.values, run.without) for run in report.runs]
        [('a', 1, (1.0,), (0.5,)), ('b', 0, (0.5,), (0.5,))]
    """
    truth, sources = Qrels.of(qrels), named_sources(runs)
    named = dict(sources)
    if len(named) < len(sources):
        raise InputError("two runs have the same name", where="runs", fix='name them: {"first": run_a, ...}')
    group_of = _grouped(named, groups)
    chosen = make_plan(measures).measures
    order_of(ties)
    policy, ids = read_queries(queries)
    policies = Policies(ties=ties, queries=policy, duplicates=duplicates)
    deepest = math.inf if k is None else integer("k", k)
    context = read_context(truth, make_plan(chosen), policies, ids)
    # For each group: (judgments,) whether it contributed each judgment.
    contributed = {group: np.zeros(len(truth.table), dtype=bool) for group in group_of.values()}
    evaluations: dict[str, Evaluation] = {}
    joins: dict[str, Sequence[Joined]] = {}
    for name, source in named.items():
        blocks = map_joined(source, context.judgments, lambda block: (measure_joined(block, context), block.joined()))
        results, joins[name] = zip(*blocks, strict=True)
        evaluations[name] = build_evaluation(merge_blocks(results), context)
        for joined in joins[name]:
            contributed[group_of[name]][joined.rows[joined.rank <= deepest]] = True
    whole = {name: tuple(evaluation.mean().values()) for name, evaluation in evaluations.items()}
    groups_of = np.sum([*contributed.values()], axis=0)
    owned = {group: rows & (groups_of == 1) for group, rows in contributed.items()}
    # Groups without own judgments change no value. Some queries may have no judgments left.
    without: dict[str, _Means] = {}
    for group, own in owned.items():
        if own.any():
            fewer = Qrels(truth.table.keep(np.flatnonzero(~own)))
            without[group] = {
                name: _means_without(own, fewer, evaluation, joins[name]) for name, evaluation in evaluations.items()
            }
    left = []
    for name, group in group_of.items():
        own, part = owned[group], without.get(group, whole)
        judgments = int(np.count_nonzero(own))
        relevant = int(np.count_nonzero(truth.table.values[own] >= 1))
        ranks, ranks_without = (_ranks(chosen, values, name) for values in (whole, part))
        left.append(LeftOut(name, judgments, relevant, whole[name], part[name], ranks, ranks_without))
    tau = {
        measure: kendall_tau([run.values[c] for run in left], [run.without[c] for run in left])
        for c, measure in enumerate(chosen)
    }
    report = Reliability(chosen, tuple(left), tau, k, ())
    return replace(report, notes=tuple(_pool_notes(report, groups_of, len(contributed))))


def _means_without(own: BoolArray, fewer: Qrels, evaluation: Evaluation, joins: Sequence[Joined]) -> tuple[float, ...]:
    """Return the means without the own judgments of a group; only queries that have some are measured again."""
    row = {query: place for place, query in enumerate(evaluation.query_ids)}
    rows = np.array([row.get(query, -1) for query in fewer.query_ids], dtype=np.int64)
    changed = distinct(query_of(joins[0].qrels.table, np.flatnonzero(own)))
    changed = changed[rows[changed] >= 0]
    values = evaluation.per_query.copy(order="F")
    for number, joined in enumerate(joins):
        # Queries that are missing from the run have an empty ranking in the first block.
        numbers = np.intersect1d(changed, joined.numbers) if number else changed
        for places, block in joined.of_judgments(fewer, ~own).blocks(numbers):
            for column, measure in zip(values.T, evaluation.measures, strict=True):
                column[rows[numbers[places]]] = measure.values(block)
    pairs = zip(evaluation.measures, values.T.tolist(), strict=True)
    return tuple(measure.mean(column, None, skip_undefined=False) for measure, column in pairs)


def _grouped(named: Mapping[str, Any], groups: Mapping[str, str] | None) -> dict[str, str]:
    if groups is not None:
        lacking = [name for name in named if name not in groups]
        if lacking:
            raise InputError(f"run {lacking[0]!r} has no group", where="groups", fix="pass one for every run")
    group_of = {name: name if groups is None else str(groups[name]) for name in named}
    if len(set(group_of.values())) < 2:
        what = "run" if groups is None else "group"
        raise InputError(
            f"got fewer than two {what}s", where="runs", fix=f"pass the {what}s from which the pool was built"
        )
    return group_of


def _ranks(measures: Sequence[Measure], values: _Means, name: str) -> tuple[int, ...]:
    """Return the rank of a run by each measure: 1 + the number of better runs."""
    ranks = []
    for column, measure in enumerate(measures):
        differences = np.array([other[column] - values[name][column] for other in values.values()])
        ranks.append(1 + int(np.count_nonzero(measure.improvements(differences) > TOLERANCE)))
    return tuple(ranks)


def kendall_tau(values: Sequence[float], other: Sequence[float]) -> float:
    """Return Kendall's tau-b between two lists of values; NaN if all values of a list are equal."""
    first, second = (_sign(np.subtract.outer(column, column)) for column in (values, other))
    pairs = int(np.count_nonzero(first)) * int(np.count_nonzero(second))
    return float((first * second).sum()) / pairs**0.5 if pairs else math.nan


def _sign(differences: Any) -> Any:
    return np.sign(np.where(np.abs(differences) <= TOLERANCE, 0.0, differences))


def _pool_notes(report: Reliability, groups_of: IntArray, groups: int) -> tuple[str, ...]:
    """Yield notes on own judgments, judgments from no run, orders, and the largest changes."""
    whose = "run" if groups == len(report.runs) else "group"
    where = "" if report.k is None else f" in its first {many(report.k, 'rank')}"
    nowhere = int(np.count_nonzero(groups_of == 0))
    changes = [report.largest_change(measure) for measure in report.measures]
    return keep(
        f"own judgments: judgments of documents that no other {whose} retrieved{where}",
        nowhere
        and f"{nowhere} of {many(len(groups_of), 'judgment')} {inflect(nowhere, 'comes', 'come')} from none of these "
        "runs",
        *(
            f"{measure}: Kendall's tau {Ratio(report.tau[measure]):.3f} between the orders of the "
            "runs with all judgments and without the own judgments of each; largest change "
            f"{change:+.4f} ({name}){''.join(_reordered(report.runs, column))}"
            for column, (measure, (name, change)) in enumerate(zip(report.measures, changes, strict=True))
        ),
    )


def _reordered(runs: Sequence[LeftOut], column: int) -> Iterator[str]:
    """Yield the pairs of runs whose order changes, and the runs whose rank changes."""
    pairs = [
        f"{run.run} and {other.run}"
        for run, other in combinations(runs, 2)
        if _sign(run.values[column] - other.values[column]) != _sign(run.without[column] - other.without[column])
    ]
    ranks = [
        f"{run.run} ({run.ranks[column]} → {run.ranks_without[column]})"
        for run in runs
        if run.ranks[column] != run.ranks_without[column]
    ]
    for what, names in (("order changes", pairs), ("rank changes", ranks)):
        more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        if names:
            yield f"; {what}: {', '.join(names[:SHOWN])}{more}"
