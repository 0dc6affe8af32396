"""``deciding_documents()``: unjudged documents that could change a difference, and bounds of the difference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rankgauge.core.arguments import integer
from rankgauge.core.grammar import Value
from rankgauge.core.ids import Ids, IntArray, freeze
from rankgauge.core.pair_table import FloatArray, PairTable, distinct, heads_of
from rankgauge.core.policies import Order, order_of
from rankgauge.core.text import either, inflect, many
from rankgauge.data.join import Joined, join, ranked
from rankgauge.data.judged_run import UNRANKED, JudgedRun
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

# Measures with bounds, and the values of their parameters for which the bounds hold.
_SUPPORTED: dict[str, dict[str, Value]] = {name: {} for name in ("P", "R", "Success", "RR")}
_SUPPORTED |= {"RBP": {"residual": False}, "nDCG": {"ideal": "judged"}, "AP": {"norm": "R"}}
_SHOWN = 10  # documents in the table
_CELLS = 1 << 20  # queries times ranks per block
_FIRST = {"Success", "RR"}  # measures of the first relevant document
_STEP = 1e-14  # smallest improvement of an iteration
_SURE = 1e-9  # a bound this close to 0 may differ from it by rounding only


class DecidingDocument(NamedTuple):
    """An unjudged document that could change the difference of two runs.

    Attributes:
        query: Query id, as text.
        document: Document id, as text.
        baseline_rank: Rank in the baseline; None if not retrieved.
        run_rank: Rank in the run.
        potential: Upper bound of the change of the mean difference by the grade of this document,
            whichever grades the other documents have.
    """

    query: str
    document: str
    baseline_rank: int | None
    run_rank: int | None
    potential: float


@dataclass(frozen=True, eq=False, repr=False)
class DecidingDocuments(Result):
    """Bounds of a difference over all judgments of unjudged documents, and the documents that matter.

    Returned by :func:`deciding_documents`. The documents are those with a potential above 0, the
    highest potential first, equal ones by query and document id; their number is `len`.

    Attributes:
        baseline: Name of the baseline.
        run: Name of the run.
        measure: The measure.
        difference: Mean of the run minus mean of the baseline, unjudged documents not relevant.
        low: Lower bound of the difference over all assignments of `grades` to unjudged documents.
        high: Upper bound.
        queries: Number of queries.
        grades: Grades that a document may get: 0 and those of the judgments, at least up to 1.
        unjudged: Number of unjudged documents that either run retrieved, with their query.
        depth: Only documents down to this rank of either run are judged; None for all.
        undecided: Number of documents such that, if these first ones all get grade 0, no judgment
            of the others changes the sign; None if the difference is 0.
        notes: Notes on interpretation.
    """

    _attributes = "baseline run difference low high queries grades unjudged depth decided undecided notes"

    baseline: str
    run: str
    measure: Measure
    difference: float
    low: float
    high: float
    queries: int
    grades: tuple[float, ...]
    unjudged: int
    depth: int | None
    undecided: int | None
    notes: tuple[str, ...]
    _ids: tuple[Ids, Ids]
    _ranks: IntArray
    _potential: FloatArray

    def __post_init__(self) -> None:
        freeze(self._ranks, self._potential)

    def __len__(self) -> int:
        return len(self._potential)

    @property
    def decided(self) -> bool:
        """Whether it is proven that no judgment of these documents changes the sign of the difference."""
        return self.low > _SURE or self.high < -_SURE or not len(self)

    def top(self, n: int | None = None) -> tuple[DecidingDocument, ...]:
        """Return the first n documents; default: all."""
        queries, documents = (ids.take(slice(n)).shown() for ids in self._ids)
        ranks = ([None if rank == UNRANKED else rank for rank in column] for column in self._ranks[:n].T.tolist())
        rows = zip(queries, documents, *ranks, self._potential[:n].tolist(), strict=True)
        return tuple(map(DecidingDocument._make, rows))

    def queue(self, seed: int = 0) -> Run:
        """Return all documents in random order within each query, to judge blind to system and rank.

        The queue is a run, so it can be written (:func:`write_run`) and added to a judging project
        (:func:`rankgauge.judging.build_pool`, `judge pool --run`). Fix it before judging.
        """
        order = np.random.default_rng(seed).permutation(len(self))
        queries, documents = (ids.take(order) for ids in self._ids)
        table = PairTable.of_rows(queries, documents, np.arange(len(order), 0, -1, dtype=np.float64))
        return Run(replace(table, unique=True), name="queue")

    def table(self) -> Table:
        """Return the first documents, with the conclusion and the notes."""
        columns = ("query", "document", f"rank in {self.baseline}", f"rank in {self.run}", "potential")
        return Table(
            columns=columns if len(self) else (),
            rows=self.top(_SHOWN),
            title=self.title(),
            notes=(*self._conclusions(), *self.notes),
            digits=5,
            shortened=frozenset({0, 1}),
        )

    def data_table(self) -> Table:
        """Return all documents."""
        return Table(DecidingDocument._fields, self.top())

    def title(self) -> str:
        """Return the difference with its bounds."""
        return (
            f"{self.measure}: {self.run} − {self.baseline} is {self.difference:+.4f} as judged, "
            f"{self.low:+.4f} to {self.high:+.4f} over all judgments of {many(self.unjudged, 'unjudged document')}"
        )

    def summary(self) -> str:
        """Return the bounds and the conclusion."""
        return f"{self.title()}; {next(self._conclusions())}"

    def _conclusions(self) -> Iterator[str]:
        if self.decided:
            yield "no judgment of these documents changes the sign of the difference"
            return
        yield (
            f"at most {many(len(self), 'document')} {inflect(len(self), 'matters', 'matter')}: no judgment of the "
            f"other {self.unjudged - len(self)} changes the difference"
        )
        if self.undecided is not None and self.undecided < len(self):
            yield (
                f"if the {self.undecided} with the highest potential all get grade 0, no judgment of the others "
                "changes the sign"
            )
        yield (
            "until the whole queue is judged, every verdict is provisional: fix the queue first, judge all of it, "
            "then test once (stopping at a verdict makes false verdicts frequent)"
        )

    def _data(self) -> dict[str, Any]:
        return {**super()._data(), "measure": str(self.measure), "documents": self.data_table().records()}


def deciding_documents(
    qrels: Any,
    baseline: Any,
    run: Any,
    measure: str | Measure = "nDCG@10",
    *,
    depth: int | None = None,
    ties: Order = "trec",
) -> DecidingDocuments:
    """Find the unjudged documents that could change the difference of two runs, and its bounds.

    Every unjudged document that either run retrieved may get any of the grades. A document that is
    relevant counts in both runs, and in the divisor of R, AP, and nDCG even below the cut-off.

    The bounds are exact for P, R, Success, RR, and RBP, and for nDCG with two grades. They are outer
    bounds, never narrower than the truth, for AP, and for nDCG with more grades in queries in which
    one run is better whatever the grades.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts.
        baseline: The baseline: anything that :meth:`Run.of` accepts.
        run: The run to compare with it.
        measure: P, R, Success, RR, AP, nDCG, or RBP.
        depth: Judge only documents down to this rank of either run; all others remain unjudged.
        ties: Order of documents with equal scores: ``trec`` (document id descending) or ``input``
            (input order).

    Raises:
        InputError: If the measure has no bounds, or an input is invalid.

    Example:
        >>> judged = {"q1": {"d1": 1, "d2": 0}}
        >>> result = deciding_documents(judged, {"q1": ["d2", "d1"]}, {"q1": ["d1", "d3"]}, "P@2")
        >>> result.low, result.high, result.decided
        (0.0, 0.5, False)
        >>> result.top()
        (DecidingDocument(query='q1', document='d3', baseline_rank=None, run_rank=2, potential=0.5),)
    """
    measured, truth = _supported(measure), Qrels.of(qrels)
    runs = [ranked(Run.of(source), ties=order_of(ties)) for source in (baseline, run)]
    evaluations = [evaluate(truth, source, measured, ties="input") for source in runs]
    values = np.nan_to_num([evaluation.per_query[:, 0] for evaluation in evaluations])
    joined = [join(truth, source, ties="input") for source in runs]
    query, documents, ranks = _unjudged(runs, joined)
    if depth is not None:
        chosen = np.flatnonzero(ranks.min(axis=1) <= integer("depth", depth))
        query, documents, ranks = query[chosen], documents.take(chosen), ranks[chosen]
    problem = _Problem.of(measured, truth, (query, ranks), values)
    low, high = problem.bounds(joined)
    potential = problem.potentials(low, high) / len(truth)
    rows = np.flatnonzero(potential > 0)
    by_id = truth.table.queries.ascending()[query[rows]] * len(documents) + documents.take(rows).ascending()
    rows = rows[np.argsort(by_id)]
    rows = rows[np.argsort(-potential[rows], kind="stable")]
    difference = measured.mean(values[1] - values[0])
    rest = np.append(np.cumsum(potential[rows][::-1])[::-1], 0.0)
    return DecidingDocuments(
        baseline=runs[0].name,
        run=runs[1].name,
        measure=measured,
        difference=difference,
        low=measured.mean(low),
        high=measured.mean(high),
        queries=len(truth),
        grades=tuple(problem.grades.tolist()),
        unjudged=len(query),
        depth=depth,
        undecided=int(np.argmax(rest < abs(difference) - _SURE)) if abs(difference) > _SURE else None,
        notes=tuple(evaluations[0].notes[:1]),
        _ids=(truth.table.queries.take(query[rows]), documents.take(rows)),
        _ranks=ranks[rows],
        _potential=potential[rows],
    )


def _supported(measure: str | Measure) -> Measure:
    """Return the measure if there are bounds for it."""
    parsed = parse(measure)
    words = parsed.arguments
    wanted: dict[str, Value] = {**_SUPPORTED.get(parsed.name, {}), "judged_only": False}
    gain = words.get("gain")
    if (
        parsed.name not in _SUPPORTED
        or words.get("rel") == "best"
        or any(words.get(word, value) != value for word, value in wanted.items())
        or (isinstance(gain, tuple) and min(value for _, value in gain) < 0)
    ):
        raise InputError(
            f"there are no bounds of differences in {parsed} over judgments",
            where="measure",
            fix=f"use {either(list(_SUPPORTED))} with their default divisor, a numeric rel, and gains of 0 or more",
        )
    return parsed


def _unjudged(runs: list[Run], joined: list[Joined]) -> tuple[IntArray, Ids, IntArray]:
    """Return the query number, id, and both ranks of each unjudged document that a run retrieved."""
    tables, numbers = [], []
    for run, join_of_run in zip(runs, joined, strict=True):
        offsets = run.table.offsets
        of_query = np.full(len(run), -1)
        of_query[join_of_run.in_run] = join_of_run.numbers
        number = of_query[run.table.query_numbers()]
        starts = np.repeat(offsets[:-1][join_of_run.in_run], np.diff(join_of_run.offsets))
        judged = np.zeros(len(number), dtype=bool)
        judged[(starts + join_of_run.rank - 1)[join_of_run.grade >= 0]] = True
        rows = np.flatnonzero((number >= 0) & ~judged)
        rank = np.arange(len(number)) - np.repeat(offsets[:-1], np.diff(offsets)) + 1
        tables.append(replace(run.table, values=rank.astype(np.float64), unique=True).keep(rows))
        numbers.append(number[rows])
    first, second = tables
    # The first run serves as judgments, so that the join matches the documents of both.
    common = join(Qrels(first), Run(replace(second, values=-second.values)), ties="input")
    at = np.repeat(second.offsets[:-1][common.in_run], np.diff(common.offsets)) + common.rank - 1
    other = np.full(len(first), UNRANKED)
    other[common.rows] = second.values[at].astype(np.int64)
    alone = np.delete(np.arange(len(second)), at)
    both = np.stack([first.values.astype(np.int64), other], axis=1)
    only = np.stack([np.full(len(alone), UNRANKED), second.values[alone].astype(np.int64)], axis=1)
    return (
        np.concatenate([numbers[0], numbers[1][alone]]),
        Ids.joined([first.docs, second.docs.take(alone)]),
        np.concatenate([both, only]),
    )


class _Problem(NamedTuple):
    """Unjudged documents and what their grades change.

    The difference of a query is a sum over documents of gain times `weight` in the run minus that in
    the baseline, divided by `fixed` or by a sum over gain levels of `norm[number of documents with
    this gain]`. (The sum of discounts of an ideal ranking is such a sum, since a gain is the sum of
    the steps up to its level.)
    """

    measure: Measure
    grades: FloatArray  # that an unjudged document may get
    query: IntArray  # (n,) of each unjudged document
    weights: FloatArray  # (n, 2) value of the document if it is the only relevant one
    ranks: IntArray  # (n, 2)
    values: FloatArray  # (2, Q) of both runs as judged
    steps: FloatArray  # (T,) differences of successive gains
    pools: IntArray  # (T, Q) number of judged documents with at least this gain
    norm: FloatArray
    fixed: float
    level: float  # lowest grade with a gain

    @classmethod
    def of(cls, measure: Measure, truth: Qrels, unjudged: tuple[IntArray, IntArray], values: FloatArray) -> _Problem:
        """Return the problem for unjudged documents, given by query number and both ranks."""
        query, ranks = unjudged
        judged = np.flatnonzero(truth.table.values >= 0)
        number, judgments = truth.table.query_numbers()[judged], truth.table.values[judged]
        grades = distinct(np.append(judgments, 0.0))
        grades = grades if grades[-1] >= 1 else np.append(grades, 1.0)
        gain_of = np.array([_gain(measure, grade) for grade in grades.tolist()])
        gains = distinct(np.append(gain_of, 0.0))
        own = gain_of[np.searchsorted(grades, judgments)]
        pools = [np.bincount(number[own >= gain], minlength=len(truth)) for gain in gains[1:]]
        rank = np.where(ranks < UNRANKED, ranks, 0)
        most = truth.largest_pool + int(np.bincount(query, minlength=1).max()) + 1
        alone = _alone(measure, max(most, int(rank.max(initial=0))), float(grades[np.argmax(gain_of)]))
        fixed = float(measure.name in {"P", "RBP"})
        norm = np.cumsum(alone) if measure.name == "nDCG" else np.arange(len(alone), dtype=np.float64)
        return cls(
            measure=measure,
            grades=grades,
            query=query,
            weights=alone[rank],
            ranks=ranks,
            values=values,
            steps=np.diff(gains),
            pools=np.array(pools, dtype=np.int64).reshape(-1, len(truth)),
            norm=norm * (1 - fixed),
            fixed=fixed,
            level=float(grades[gain_of > 0].min(initial=math.inf)),
        )

    def swapped(self) -> _Problem:
        """Return the problem of the opposite difference."""
        return self._replace(weights=self.weights[:, ::-1], ranks=self.ranks[:, ::-1], values=self.values[::-1])

    def bounds(self, joined: list[Joined]) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper bound of the difference of each query, (Q,)."""
        return -self.swapped().highest(joined[::-1]), self.highest(joined)

    def highest(self, joined: list[Joined]) -> FloatArray:
        """Return the upper bound of the difference of each query, (Q,)."""
        best: FloatArray = self.values[1] - self.values[0]
        if len(self.steps) and self.measure.name == "AP":
            return _highest_precision(self, joined, best)
        if len(self.steps) and self.measure.name not in _FIRST:
            return _highest_ratio(self, best)
        # Only the first relevant document counts: one more relevant document attains the bound.
        baseline, run = np.maximum(self.values[:, self.query], self.weights.T * bool(len(self.steps)))
        np.maximum.at(best, self.query, run - baseline)
        return best

    def potentials(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return an upper bound of the change of its query's difference by each document, (n,)."""
        largest = np.maximum(np.abs(low), np.abs(high))
        most = np.zeros(len(self.query))
        if len(self.steps) and self.measure.name in _FIRST:
            most = (self.weights - self.values[:, self.query].T).max(axis=1, initial=0.0)
        elif len(self.steps) and self.measure.name == "AP":
            # The sum of precisions divided by R + 1 grows by at most 1 / rank, and R by 1.
            most = self.weights.max(axis=1) + (largest / (self.pools[0] + 1))[self.query]
        else:
            # With gain g, the difference D = N / W becomes (N + g * change) / (W + grown).
            change = np.abs(self.weights[:, 1] - self.weights[:, 0])
            whole = self.fixed + self.steps @ self.norm[self.pools]
            grown = np.zeros(len(whole))
            for gain, step, pool in zip(np.cumsum(self.steps), self.steps, self.pools, strict=True):
                grown = grown + step * (self.norm[pool + 1] - self.norm[pool])
                most = np.maximum(most, (change * gain + (largest * grown)[self.query]) / (whole + grown)[self.query])
        return np.minimum(most, (high - low)[self.query])


def _gain(measure: Measure, grade: float) -> float:
    """Return the gain of a grade: 0 or 1 for binary relevance."""
    if measure.name != "nDCG":
        return float(grade >= (1.0 if measure.level is None else measure.level))
    words = {word: value for word, value in measure.params if word in {"gain", "rel"}}
    return float(parse("DCG@1")(**words).values(JudgedRun.from_grades([grade]))[0])


def _alone(measure: Measure, deepest: int, grade: float) -> FloatArray:
    """Return the value of a single relevant document at rank 0 (none), 1, ..., `deepest`."""
    rank = np.arange(1, deepest + 1)[:, None]
    known, grades = np.ones(rank.shape, dtype=bool), np.full(rank.shape, grade)
    number = rank[:, 0]
    run = JudgedRun(rank, grades, known, known, rank, rank, number, grades, np.ones_like(number))
    return np.append(0.0, np.nan_to_num(measure.values(run)))


def _highest_ratio(problem: _Problem, own: FloatArray) -> FloatArray:
    """Return the highest ratio of summed gains to the divisor, (Q,).

    For a ratio x, the documents of each gain level that maximize gains minus x times divisor are
    those with the largest changes. Their ratio is the next x, until it no longer grows (Dinkelbach
    1967). Levels are chosen independently, which is an assignment of grades if x >= 0.
    """
    change = problem.weights[:, 1] - problem.weights[:, 0]
    moving, every = np.flatnonzero(change), np.arange(len(own))
    # Documents without a change only count in the divisor: all of them, or none, are best.
    others = np.bincount(problem.query[change == 0], minlength=len(own))
    query = np.concatenate([problem.query[moving], every])
    change = np.concatenate([change[moving], np.zeros(len(own))])
    size = np.concatenate([np.ones(len(moving), dtype=np.int64), others])
    order = np.argsort(-change)
    # Much faster than np.lexsort, because few bits are sorted.
    order = order[np.argsort(query[order].astype(np.min_scalar_type(len(own))), kind="stable")]
    query, heads = query[order], heads_of(query[order])
    gained, size = np.cumsum(change[order]), np.cumsum(size[order])
    gained -= np.append(0.0, gained[heads[1:] - 1])[query]
    size -= np.append(0, size[heads[1:] - 1])[query]
    divisors = [problem.norm[pool[query] + size] for pool in problem.pools]
    start = own * (problem.fixed + problem.steps @ problem.norm[problem.pools])
    best = own
    while True:
        total, whole = start, np.full(len(own), problem.fixed)
        for step, pool, divisor in zip(problem.steps, problem.pools, divisors, strict=True):
            score = gained - best[query] * divisor
            highest = np.maximum.reduceat(score, heads)
            rows = np.flatnonzero(score == highest[query])
            rows = rows[heads_of(query[rows])]
            some = highest > -best * problem.norm[pool]
            total = total + step * np.where(some, gained[rows], 0.0)
            whole = whole + step * np.where(some, divisor[rows], problem.norm[pool])
        ratio = np.where(whole > 0, total / np.where(whole > 0, whole, 1.0), 0.0)
        if not (ratio > best + _STEP).any():
            return best
        best = np.maximum(best, ratio)


def _highest_precision(problem: _Problem, joined: list[Joined], own: FloatArray) -> FloatArray:
    """Return an upper bound of the difference in AP, (Q,).

    With c(j) relevant documents in the first j ranks, the sum of precisions is that of
    (1/j - 1/(j+1)) * c(j) * (c(j) + 1) / 2 over j. For each number of relevant unjudged documents,
    every rank j gets those that are best for it.
    """
    missing, relevant = np.bincount(problem.query, minlength=len(own)), problem.pools[0]
    hits = []
    for source in joined:
        rows = np.flatnonzero(source.grade >= problem.level)
        hits.append((np.repeat(source.numbers, np.diff(source.offsets))[rows], source.rank[rows]))
    last, seen = problem.ranks.max(axis=1, initial=1), np.concatenate([problem.ranks.ravel(), hits[0][1], hits[1][1]])
    cutoff: Any = dict(problem.measure.params).get("k", UNRANKED)
    depth = min(int(seen[seen < UNRANKED].max(initial=1)), int(cutoff))
    weight = np.append(1 / np.arange(1, depth + 1), 0.0)
    weight = weight[:-1] - weight[1:]
    best = own.copy()
    for first in range(0, len(own), _CELLS // depth + 1):
        part = slice(first, first + _CELLS // depth + 1)
        size = len(own[part])

        def down_to(query: IntArray, rank: IntArray, first: int = first, size: int = size) -> IntArray:
            rows = np.flatnonzero((query >= first) & (query < first + size) & (rank <= depth))
            cells = np.bincount((query[rows] - first) * depth + rank[rows] - 1, minlength=size * depth)
            return np.cumsum(cells.reshape(size, depth), axis=1)

        baseline, run = (down_to(*hit) for hit in hits)
        both = down_to(problem.query, last)
        alone = down_to(problem.query, problem.ranks[:, 1]) - both
        number, before = 0, -1
        while before < missing[part].max():
            more = np.minimum(alone, number)
            shared = np.where(run + more > baseline, np.minimum(both, number - more), 0)
            above, below = run + more + shared, baseline + shared
            total = (above * (above + 1) - below * (below + 1)) @ weight / 2
            # Between `before` and `number` documents: the smallest divisor for gains, else the largest.
            fewest = relevant[part] + before + 1
            most = relevant[part] + np.minimum(number, missing[part])
            ratio = total / np.maximum(np.where(total > 0, fewest, most), 1)
            best[part] = np.where(before < missing[part], np.maximum(best[part], ratio), best[part])
            before, number = number, number + max(1, number // 4)
    return np.minimum(best, 1.0)
