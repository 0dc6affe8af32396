"""How far judgments can be trusted for a run that had no part in making them."""

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
from rankgauge.core.text import many
from rankgauge.data.join import join
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run, named_sources
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import (
    Queries,
    evaluate_blocks,
    evaluate_each,
    make_plan,
    queries_policy,
    selected_ids,
)
from rankgauge.measures.measure import Measure
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

_Means = dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class LeftOut:
    """One run without the judgments that only it contributed.

    Attributes:
        run: Its name.
        judgments: Number of judgments that only it (or its group) contributed.
        relevant: How many of them are relevant (grade 1 or more).
        values: Its mean by each measure, with all judgments.
        without: The same without its own judgments.
        ranks: Its rank among the runs, from 1, with all judgments.
        ranks_without: Its rank if no run is evaluated with these judgments.
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
        runs: Each run, in the order given.
        tau: For each measure, Kendall's tau between the orders of the runs with all judgments, and
            with each run without its own judgments.
        k: The depth to which a run contributed documents; None for all of it.
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
        (wanted,) = make_plan(measure).measures
        if wanted not in self.measures:
            raise InputError(
                f"{wanted} was not evaluated",
                fix=f"evaluated are {', '.join(map(str, self.measures))}",
            )
        column = self.measures.index(wanted)
        one = max(self.runs, key=lambda run: abs(run.without[column] - run.values[column]))
        return one.run, one.without[column] - one.values[column]

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        run, change = self.largest_change(self.measures[0])
        return (
            f"without the judgments that only it contributed, {run} changes most: "
            f"{self.measures[0]} {change:+.4f}"
        )

    def table(self) -> Table:
        """Return a line for each run and measure."""
        data = self.data_table()
        rows = tuple((*row[:-2], f"{row[-2]} → {row[-1]}") for row in data.rows)
        return Table(
            columns=(
                "run", "own", "relevant", "measure", "all", "without own", "change", "rank",
            ),
            rows=rows,
            title="each run without the judgments that only it contributed (own)",
            notes=self.notes,
        )  # fmt: skip

    def data_table(self) -> Table:
        """Return a line for each run and measure, with both ranks as numbers."""
        return Table(
            (
                "run", "own judgments", "relevant", "measure", "all", "without own", "change",
                "rank", "rank without own",
            ),
            tuple(
                (
                    run.run, run.judgments, run.relevant, str(measure), run.values[column],
                    run.without[column], run.without[column] - run.values[column],
                    run.ranks[column], run.ranks_without[column],
                )
                for column, measure in enumerate(self.measures)
                for run in self.runs
            ),
        )  # fmt: skip


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
    """Test whether judgments are fair to runs that did not contribute to them, by leaving runs out.

    Judgments are usually made for documents that some runs retrieved, the pool. The value of a new
    run, which finds other documents, may be too low. To estimate by how much, each run of the pool
    is evaluated again without the judgments that only it contributed (Zobel 1998). Runs of one
    system find the same documents, so a whole group is left out (Buckley, Dimmick, Soboroff and
    Voorhees 2007).

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` takes.
        runs: Name to run, or runs: those of which the pool was made, at least two.
        measures: Names or measures.
        k: The depth to which each run contributed documents to the pool; default: all of it.
        groups: Run name to group: judgments that only one group contributed are left out for its
            runs. By default, each run is a group.
        ties: Order of documents with equal scores: ``trec`` or ``input``.
        queries: As for :func:`evaluate`.
        duplicates: As for :func:`evaluate`.

    Raises:
        InputError: If there are fewer than two runs or groups, or an input cannot be worked with.

    Example:
        >>> runs = {"a": {"q": ["d1", "d2"]}, "b": {"q": ["d2", "d3"]}}
        >>> found = reliability({"q": {"d1": 1, "d2": 1}}, runs, "P@2")
        >>> [(run.run, run.judgments, run.values, run.without) for run in found.runs]
        [('a', 1, (1.0,), (0.5,)), ('b', 0, (0.5,), (0.5,))]
    """
    truth, given = Qrels.of(qrels), named_sources(runs)
    named = dict(given)
    if len(named) < len(given):
        raise InputError(
            "two runs have the same name", where="runs", fix='name them: {"first": run_a, ...}'
        )
    group_of = _grouped(named, groups)
    asked = make_plan(measures).measures
    order = order_of(ties)
    policies = Policies(ties=ties, queries=queries_policy(queries), duplicates=duplicates)
    ids = selected_ids(queries)
    if k is not None:
        VOCABULARY["k"].check(k, "reliability(k=...)")

    def top(run: Run) -> IntArray:
        joined = join(truth, run, ties=order, table=run.without_repeats(duplicates))
        return joined.rows if k is None else joined.rows[joined.rank <= k]

    # (judgments,) for each group: what it brought.
    brought = {group: np.zeros(len(truth.table), dtype=bool) for group in group_of.values()}
    whole: _Means = {}
    for name, source in named.items():
        made, tops = evaluate_blocks(
            truth, source, asked, top, name=name, policies=policies, queries=ids
        )
        whole[name] = tuple(made.mean().values())
        brought[group_of[name]][np.concatenate(tops)] = True
    groups_of = np.sum([*brought.values()], axis=0)
    owned = {group: rows & (groups_of == 1) for group, rows in brought.items()}
    # Without judgments of its own every value stays. A query may be left without any.
    less = {
        group: Qrels(truth.table.keep(np.flatnonzero(~own)))
        for group, own in owned.items()
        if own.any()
    }
    without: dict[str, _Means] = {group: {} for group in less}
    for name, source in named.items() if less else ():
        found = evaluate_each(
            [*less.values()], source, asked, name=name, policies=policies, queries=ids
        )
        for means, made in zip(without.values(), found, strict=True):
            means[name] = tuple(made.mean().values())
    left = []
    for name, group in group_of.items():
        own, part = owned[group], without.get(group, whole)
        judgments = int(np.count_nonzero(own))
        relevant = int(np.count_nonzero(truth.table.values[own] >= 1))
        ranks, ranks_without = (_ranks(asked, values, name) for values in (whole, part))
        left.append(
            LeftOut(name, judgments, relevant, whole[name], part[name], ranks, ranks_without)
        )
    tau = {
        measure: kendall_tau([run.values[c] for run in left], [run.without[c] for run in left])
        for c, measure in enumerate(asked)
    }
    result = Reliability(asked, tuple(left), tau, k, ())
    return replace(result, notes=tuple(_notes(result, groups_of, len(brought))))


def _grouped(named: Mapping[str, Any], groups: Mapping[str, str] | None) -> dict[str, str]:
    if groups is not None:
        lacking = [name for name in named if name not in groups]
        if lacking:
            raise InputError(
                f"run {lacking[0]!r} has no group", where="groups", fix="give one to every run"
            )
    group_of = {name: name if groups is None else str(groups[name]) for name in named}
    if len(set(group_of.values())) < 2:
        what = "run" if groups is None else "group"
        raise InputError(
            f"got fewer than two {what}s", where="runs",
            fix=f"give the {what}s from which the pool was built",
        )  # fmt: skip
    return group_of


def _ranks(measures: Sequence[Measure], values: _Means, name: str) -> tuple[int, ...]:
    """Return the place of a run by each measure: 1 and how many are better."""
    return tuple(
        1 + sum(
            measure.improvements(np.array([one[column] - values[name][column]])).item() > TOLERANCE
            for one in values.values()
        )
        for column, measure in enumerate(measures)
    )  # fmt: skip


def kendall_tau(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's tau-b between two lists of values of the same things; NaN if one has no order."""
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
    """The orders, the largest changes, and how much of the judgments no run brought."""
    whose = "run" if groups == len(found.runs) else "group"
    where = "" if found.k is None else f" in its first {many(found.k, 'rank')}"
    yield f"own judgments: of documents that no other {whose} has{where}"
    nowhere = int(np.count_nonzero(groups_of == 0))
    if nowhere:
        yield f"{many(nowhere, 'judgment')} of {len(groups_of)} come from none of these runs"
    for measure in found.measures:
        name, change = found.largest_change(measure)
        yield (
            f"{measure}: Kendall's tau {found.tau[measure]:.3f} between the orders of the runs "
            "by all judgments and without the own judgments of each; largest change "
            f"{change:+.4f} ({name})"
        )
