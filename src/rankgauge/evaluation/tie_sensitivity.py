"""Report of the effect of ties on the values of measures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Any

import numpy as np

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.ids import IntArray, show_id
from rankgauge.core.pair_table import distinct
from rankgauge.core.policies import Duplicates, Ties, Undefined
from rankgauge.core.text import many
from rankgauge.data.join import join
from rankgauge.data.judged_run import Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.ranking import tie_groups
from rankgauge.data.records import Records
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.evaluation.context import make_plan
from rankgauge.evaluation.evaluation import Queries, evaluate
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Cell, Table

_SCHEMA = "rankgauge/ties/1"


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
        >>> found = tie_report({"q1": {"a": 1}}, {"q1": {"a": 0.5, "b": 0.5}}, "RR")
        >>> span = found.span("RR")
        >>> span.worst, span.value, span.mean, span.best
        (0.5, 0.5, 0.75, 1.0)
    """

    _schema = _SCHEMA

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
        chosen = parse(measure)
        for span in self.spans:
            if span.measure == chosen:
                return span
        raise InputError(
            f"{chosen} was not evaluated", fix=f"evaluated: {', '.join(str(span.measure) for span in self.spans)}"
        )

    def table(self, *, per_query: bool = False) -> Table:
        """Return a row for each measure, or for each query and measure that ties could change."""
        ours = f"as evaluated ({self.ties})"
        columns = ("measure", ours, "worst", "mean", "best", "queries affected")
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
                shown = {name: float(found[place, column]) for name, found in values.items()}
                if not math.isnan(shown["worst"]) and shown["worst"] != shown["best"]:
                    yield query, str(span.measure), *shown.values()

    @property
    def _values(self) -> dict[str, Values]:
        """Values of each evaluation, (Q, M); NaN if there is none."""
        found = {name: self.evaluations[name].per_query for name in ("value", "worst")}
        found["mean"] = np.full(found["value"].shape, np.nan)
        if "mean" in self.evaluations:
            closed = [span.mean is not None for span in self.spans]
            found["mean"][:, closed] = self.evaluations["mean"].per_query
        return {**found, "best": self.evaluations["best"].per_query}

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
    records = Records.of(qrels) if run is None else None
    truth = Qrels.of(qrels) if records is None else records.qrels
    found = Run.of(run) if records is None else records.run
    plan = make_plan(measures)

    def by(policy: Ties, chosen: Iterable[Measure]) -> Evaluation:
        return evaluate(
            truth if records is None else records,
            None if records else found,
            list(chosen),
            ties=policy,
            queries=queries,
            duplicates=duplicates,
            undefined=undefined,
        )

    evaluations = {
        "value": by(ties, plan.measures),
        "worst": by("worst", plan.measures),
        "best": by("best", plan.measures),
    }
    closed = [measure for measure in plan.measures if measure.has_tie_mean]
    if closed:
        evaluations["mean"] = by("mean", closed)
    value = evaluations["value"]
    spans = tuple(_spans(evaluations))
    once = found.without_repeats(duplicates)
    deciding = join(truth, once, ties="best").deciding(separate_judged=plan.separate_judged)
    counts, sizes = _tie_counts(truth, once, value, deciding)
    return TieReport(
        run_name=value.run_name,
        ties=ties,
        spans=spans,
        evaluations=evaluations,
        counts=counts,
        sizes=sizes,
        notes=tuple(_notes(counts, sizes, spans, value)),
    )


def _spans(evaluations: Mapping[str, Evaluation]) -> Iterator[TieSpan]:
    value, worst, best = (evaluations[name] for name in ("value", "worst", "best"))
    means = {name: evaluation.mean() for name, evaluation in evaluations.items()}
    apart = ~np.isclose(worst.per_query, best.per_query, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    for column, measure in enumerate(value.measures):
        name = str(measure)
        yield TieSpan(
            measure=measure,
            value=means["value"][name],
            worst=means["worst"][name],
            best=means["best"][name],
            mean=means["mean"][name] if measure.has_tie_mean else None,
            queries=int(np.count_nonzero(apart[:, column])),
            whole=measure.monotone,
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


def _notes(
    counts: Mapping[str, int], sizes: Mapping[int, int], spans: Iterable[TieSpan], value: Evaluation
) -> Iterator[str]:
    if not counts["groups"]:
        yield f"{many(counts['queries'], 'query')}: no two documents of a ranking have equal scores"
        return
    yield (
        f"{many(counts['queries'], 'query')}: {counts['tied']} with equal scores, "
        f"{counts['deciding']} of them with tied documents of different grades"
    )
    middle = median([size for size, number in sizes.items() for _ in range(number)])
    yield (
        f"{many(counts['documents'], 'document')}: {counts['tied_documents']} in "
        f"{many(counts['groups'], 'group')} of equal scores (median {middle:g}, largest "
        f"{counts['largest']})"
    )
    yield (
        f"{many(counts['deciding_documents'], 'document')} in "
        f"{many(counts['deciding_groups'], 'group')} of different grades: only these can change "
        "a value"
    )
    open_ones = [str(span.measure) for span in spans if span.mean is None]
    if open_ones:
        yield f"no closed form for the mean over all orders: {', '.join(open_ones)}"
    outside = [str(span.measure) for span in spans if not span.whole]
    if outside:
        yield f"some orders may give values outside worst to best: {', '.join(outside)}"
    yield from (note for note in value.notes if "WARNING" in note)
