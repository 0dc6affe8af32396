"""Reliability of judgments for runs that did not contribute to the pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.grammar import VOCABULARY
from rankgauge.core.ids import IntArray
from rankgauge.core.policies import Duplicates, Policies, Ties, order_of
from rankgauge.core.text import SHOWN, Ratio, inflect, many
from rankgauge.data.join import join
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run, named_sources
from rankgauge.errors import InputError
from rankgauge.evaluation.context import make_plan
from rankgauge.evaluation.evaluation import Queries, evaluate_blocks, evaluate_each, queries_policy, selected_ids
from rankgauge.measures.measure import Measure
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

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
        (chosen,) = make_plan(measure).measures
        if chosen not in self.measures:
            raise InputError(f"{chosen} was not evaluated", fix=f"evaluated: {', '.join(map(str, self.measures))}")
        column = self.measures.index(chosen)
        one = max(self.runs, key=lambda run: abs(run.without[column] - run.values[column]))
        return one.run, one.without[column] - one.values[column]

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        run, change = self.largest_change(self.measures[0])
        return f"without the judgments that only it contributed, {run} changes most: {self.measures[0]} {change:+.4f}"

    def table(self) -> Table:
        """Return a table with a row for each run and measure."""
        data = self.data_table()
        rows = tuple((*row[:-2], f"{row[-2]} → {row[-1]}") for row in data.rows)
        return Table(
            columns=("run", "own", "relevant", "measure", "all", "without own", "change", "rank"),
            rows=rows,
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
        >>> found = reliability({"q": {"d1": 1, "d2": 1}}, runs, "P@2")
        >>> [(run.run, run.judgments, run.values, run.without) for run in found.runs]
        [('a', 1, (1.0,), (0.5,)), ('b', 0, (0.5,), (0.5,))]
    """
    truth, given = Qrels.of(qrels), named_sources(runs)
    named = dict(given)
    if len(named) < len(given):
        raise InputError("two runs have the same name", where="runs", fix='name them: {"first": run_a, ...}')
    group_of = _grouped(named, groups)
    chosen = make_plan(measures).measures
    order = order_of(ties)
    policies = Policies(ties=ties, queries=queries_policy(queries), duplicates=duplicates)
    ids = selected_ids(queries)
    if k is not None:
        VOCABULARY["k"].check(k, "reliability(k=...)")

    def top(run: Run) -> IntArray:
        joined = join(truth, run.without_repeats(duplicates), ties=order)
        return joined.rows if k is None else joined.rows[joined.rank <= k]

    # For each group: (judgments,) whether it contributed each judgment.
    contributed = {group: np.zeros(len(truth.table), dtype=bool) for group in group_of.values()}
    whole: _Means = {}
    for name, source in named.items():
        evaluation, tops = evaluate_blocks(truth, source, chosen, top, name=name, policies=policies, queries=ids)
        whole[name] = tuple(evaluation.mean().values())
        contributed[group_of[name]][np.concatenate(tops)] = True
    groups_of = np.sum([*contributed.values()], axis=0)
    owned = {group: rows & (groups_of == 1) for group, rows in contributed.items()}
    # Groups without own judgments change no value. Some queries may have no judgments left.
    less = {group: Qrels(truth.table.keep(np.flatnonzero(~own))) for group, own in owned.items() if own.any()}
    without: dict[str, _Means] = {group: {} for group in less}
    for name, source in named.items() if less else ():
        found = evaluate_each([*less.values()], source, chosen, name=name, policies=policies, queries=ids)
        for means, evaluation in zip(without.values(), found, strict=True):
            means[name] = tuple(evaluation.mean().values())
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
    result = Reliability(chosen, tuple(left), tau, k, ())
    return replace(result, notes=tuple(_notes(result, groups_of, len(contributed))))


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
    return tuple(
        1
        + sum(
            measure.improvements(np.array([one[column] - values[name][column]])).item() > TOLERANCE
            for one in values.values()
        )
        for column, measure in enumerate(measures)
    )


def kendall_tau(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Kendall's tau-b between two lists of values; NaN if all values of a list are equal."""
    agree = untied = untied_other = 0
    for a, b in combinations(range(len(one)), 2):
        first, second = _sign(one[a] - one[b]), _sign(other[a] - other[b])
        agree += first * second
        untied += first != 0
        untied_other += second != 0
    pairs = untied * untied_other
    return agree / pairs**0.5 if pairs else float("nan")


def _sign(difference: float) -> int:
    return 0 if abs(difference) <= TOLERANCE else 1 if difference > 0 else -1


def _notes(found: Reliability, groups_of: IntArray, groups: int) -> Iterator[str]:
    """Yield notes on own judgments, judgments from no run, orders, and the largest changes."""
    whose = "run" if groups == len(found.runs) else "group"
    where = "" if found.k is None else f" in its first {many(found.k, 'rank')}"
    yield f"own judgments: judgments of documents that no other {whose} retrieved{where}"
    nowhere = int(np.count_nonzero(groups_of == 0))
    if nowhere:
        come = inflect(nowhere, "comes", "come")
        yield f"{nowhere} of {many(len(groups_of), 'judgment')} {come} from none of these runs"
    for column, measure in enumerate(found.measures):
        name, change = found.largest_change(measure)
        yield (
            f"{measure}: Kendall's tau {Ratio(found.tau[measure]):.3f} between the orders of the "
            "runs with all judgments and without the own judgments of each; largest change "
            f"{change:+.4f} ({name}){''.join(_reordered(found.runs, column))}"
        )


def _reordered(runs: Sequence[LeftOut], column: int) -> Iterator[str]:
    """Yield the pairs of runs whose order changes, and the runs whose rank changes."""
    pairs = [
        f"{one.run} and {other.run}"
        for one, other in combinations(runs, 2)
        if _sign(one.values[column] - other.values[column]) != _sign(one.without[column] - other.without[column])
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
