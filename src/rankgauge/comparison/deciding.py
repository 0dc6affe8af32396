"""``deciding_documents()``: unjudged documents that could change a difference, and bounds of the difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rankgauge.core.arguments import integer
from rankgauge.core.ids import IdRuns, Ids, IntArray
from rankgauge.core.pair_table import FloatArray, PairTable, distinct, heads_of
from rankgauge.core.policies import Order, order_of
from rankgauge.core.text import either, keep, many
from rankgauge.data.join import Joined, join
from rankgauge.data.judged_run import UNRANKED, JudgedRun
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

_FIRST = ("Success", "RR")  # measures of the first relevant document
_SUPPORTED = ("P", "R", *_FIRST, "AP", "nDCG", "RBP")
_FREE = frozenset({"k", "rel", "p", "b", "gain"})  # parameters for which the bounds hold
_SHOWN = 10  # documents in the table
_CELLS = 1 << 20  # queries times ranks per block
_STEP = 1e-14  # smallest improvement of an iteration
_SURE = 1e-9  # a bound this close to 0 may differ from it by rounding only


@dataclass(frozen=True, slots=True)
class DecidingDocument:
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

    Returned by :func:`deciding_documents`. The length is the number of documents with a potential
    above 0: no judgment of the others changes the difference.

    Attributes:
        baseline: Name of the baseline.
        run: Name of the run.
        measure: The measure.
        difference: Mean of the run minus mean of the baseline, unjudged documents not relevant.
        low: Lower bound of the difference over all assignments of grades to unjudged documents.
        high: Upper bound.
        unjudged: Number of unjudged documents that either run retrieved, with their query.
        undecided: Smallest number of documents such that, if these first ones all get grade 0, the
            potentials of the others are too small to change the sign; None if the difference is 0.
        notes: Notes on interpretation.
    """

    _attributes = "baseline run measure difference low high unjudged decided undecided documents notes"
    _columns = "documents query document baseline_rank run_rank potential"

    baseline: str
    run: str
    measure: Measure
    difference: float
    low: float
    high: float
    unjudged: int
    undecided: int | None
    notes: tuple[str, ...]
    _rows: tuple[Ids, Ids, IntArray, FloatArray]
    _bounds: _Bounds

    def __len__(self) -> int:
        return len(self._rows[0])

    @property
    def decided(self) -> bool:
        """Whether it is proven that no judgment of these documents changes the sign of the difference."""
        return self.low > _SURE or self.high < -_SURE or not len(self)

    @property
    def documents(self) -> tuple[DecidingDocument, ...]:
        """All documents that matter, by descending potential, then by query and document id."""
        return self.top(len(self))

    def top(self, n: int) -> tuple[DecidingDocument, ...]:
        """Return the first n documents."""
        queries, documents, ranks, potentials = self._rows
        known = ([None if rank == UNRANKED else rank for rank in column] for column in ranks[:n].T.tolist())
        names = (ids.take(slice(n)).shown() for ids in (queries, documents))
        return tuple(map(DecidingDocument, *names, *known, potentials[:n].tolist()))

    def queue(self, seed: int = 0) -> Run:
        """Return the documents that matter in random order, to judge them blind to system and rank.

        The queue is a run, so that it can be written (:func:`write_run`) and added to a judging
        project (:func:`rankgauge.judging.build_pool`, `judge pool --run`). Fix it before judging.
        """
        order = np.random.default_rng(seed).permutation(len(self))
        queries, documents = (ids.take(order) for ids in self._rows[:2])
        return Run(PairTable.of_rows(queries, documents, np.arange(len(order), 0, -1.0)), name="queue")

    def updated(self, part: DecidingDocuments) -> DecidingDocuments:
        """Return the result after the judgments of some queries changed: no bound of another query changes.

        Args:
            part: The result for these queries, with the same runs, arguments, and possible grades.
        """
        return _result(self.baseline, self.run, self.measure, self._bounds.updated(part._bounds))

    def table(self) -> Table:
        """Return the bounds with the conclusion as title, and the first documents."""
        columns = ("query", "document", f"rank in {self.baseline}", f"rank in {self.run}", "potential")
        matter = f"at most {many(len(self), 'document')} {'matters' if len(self) == 1 else 'matter'}"
        return Table(
            columns=columns if len(self) else (),
            rows=tuple(map(astuple, self.top(_SHOWN))),
            title=f"{self.measure}: {self.run} − {self.baseline} is {self.difference:+.4f} as judged, and from "
            f"{self.low:+.4f} to {self.high:+.4f} over all judgments of {many(self.unjudged, 'unjudged document')}: "
            f"{'no judgment of these documents changes the sign' if self.decided else matter}",
            notes=self.notes,
            digits=5,
            shortened=frozenset({0, 1}),
        )


def deciding_documents(
    qrels: Any,
    baseline: Any,
    run: Any,
    measure: str | Measure = "nDCG@10",
    *,
    depth: int | None = None,
    ties: Order = "trec",
    grades: Iterable[float] = (),
) -> DecidingDocuments:
    """Find the unjudged documents that could change the difference of two runs, and its bounds.

    Every unjudged document that either run retrieved may get any grade that occurs in the judgments.
    A relevant document counts in both runs, and in the divisor of R, AP, and nDCG even below the
    cut-off.

    The bounds are exact for P, R, Success, RR, and RBP, and for nDCG with two grades. They are outer
    bounds, never narrower than the truth, for AP, and for nDCG with more grades in queries in which
    one run is better whatever the grades.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts.
        baseline: The baseline: anything that :meth:`Run.of` accepts.
        run: The run to compare with it.
        measure: P, R, Success, RR, AP, nDCG, or RBP.
        depth: Judge only documents down to this rank of either run; the others remain unjudged.
        ties: Order of documents with equal scores: ``trec`` (document id descending) or ``input``
            (input order).
        grades: Possible grades, in addition to those of the judgments.

    Raises:
        InputError: If the measure has no bounds, or an input is invalid.

    Example:
        >>> judged = {"q1": {"d1": 1, "d2": 0}}
        >>> result = deciding_documents(judged, {"q1": ["d2", "d1"]}, {"q1": ["d1", "d3"]}, "P@2")
        >>> result.low, result.high, result.decided
        (0.0, 0.5, False)
        >>> result.documents
        (DecidingDocument(query='q1', document='d3', baseline_rank=None, run_rank=2, potential=0.5),)
    """
    measured, truth, runs = parse(measure), Qrels.of(qrels), (Run.of(baseline), Run.of(run))
    if measured.name not in _SUPPORTED or not all(
        word in _FREE and value != "best" and not isinstance(value, tuple) for word, value in measured.params
    ):
        raise InputError(
            f"there are no bounds of differences in {measured} over judgments",
            where="measure",
            fix=f"use {either(_SUPPORTED)}, with their usual divisors and gains, and a number for rel",
        )
    evaluations = [evaluate(truth, source, measured, ties=order_of(ties)) for source in runs]
    query, documents, ranks = _unjudged(truth, runs, ties)
    within = np.flatnonzero(ranks.min(axis=1) <= (UNRANKED if depth is None else integer("depth", depth)))
    query, documents, ranks = query[within], documents.take(within), ranks[within]
    values = np.nan_to_num([evaluation.per_query[:, 0] for evaluation in evaluations])
    possible = distinct(np.concatenate([[0.0], truth.table.values, [*grades]]))
    possible = possible[possible >= 0]
    possible = possible if possible[-1] >= 1 else np.append(possible, 1.0)
    problem = _problem(measured, truth, (query, ranks), values, grades=possible)
    swapped = problem._replace(weights=problem.weights[:, ::-1], ranks=ranks[:, ::-1], values=values[::-1])
    hits = [join(truth, source, ties=ties) for source in runs if measured.name == "AP"]
    low, high = -swapped.highest(hits[::-1]), problem.highest(hits)
    notes = (
        f"possible grades: those of the judgments, 0 to {possible[-1]:g}",
        *evaluations[0].notes[:1],
        *(f"documents below rank {depth} of both runs remain unjudged" for _ in range(depth is not None)),
    )
    bounds = np.array([values[1] - values[0], low, high])
    rows = query, documents, ranks, problem.potentials(low, high)
    return _result(runs[0].name, runs[1].name, measured, _Bounds(truth.table.queries, bounds, *rows, notes))


class _Bounds(NamedTuple):
    """Bounds of each query, and its unjudged documents."""

    queries: Ids
    bounds: FloatArray  # (3, Q) difference, and its lower and upper bound
    query: IntArray  # (n,) query number of each unjudged document
    documents: Ids
    ranks: IntArray  # (n, 2) its rank in the baseline and in the run
    potential: FloatArray  # (n,) of the difference of its query
    notes: tuple[str, ...]

    def updated(self, part: _Bounds) -> _Bounds:
        """Return the bounds with those of some queries replaced."""
        place = {query: number for number, query in enumerate(self.queries.shown())}
        changed = np.array([place[query] for query in part.queries.shown()])
        bounds = self.bounds.copy()
        bounds[:, changed] = part.bounds
        rows = np.flatnonzero(~np.isin(self.query, changed))
        return self._replace(
            bounds=bounds,
            query=np.append(self.query[rows], changed[part.query]),
            documents=Ids.joined([self.documents.take(rows), part.documents]),
            ranks=np.concatenate([self.ranks[rows], part.ranks]),
            potential=np.append(self.potential[rows], part.potential),
        )


def _result(baseline: str, run: str, measure: Measure, found: _Bounds) -> DecidingDocuments:
    """Return means over queries, and the documents that matter in order."""
    potential = found.potential / len(found.queries)
    rows = np.flatnonzero(potential)
    documents, query = found.documents.take(rows), found.query[rows]
    by_id = found.queries.ascending()[query] * len(found.documents) + documents.ascending()
    order = np.argsort(by_id)
    order = order[np.argsort(-potential[rows][order], kind="stable")]
    rows = rows[order]
    difference, low, high = map(measure.mean, found.bounds)
    rest = np.append(np.cumsum(potential[rows][::-1])[::-1], 0.0)
    result = DecidingDocuments(
        baseline=baseline,
        run=run,
        measure=measure,
        difference=difference,
        low=low,
        high=high,
        unjudged=len(found.query),
        undecided=int(np.argmax(rest < abs(difference) - _SURE)) if abs(difference) > _SURE else None,
        notes=found.notes,
        _rows=(found.queries.take(query[order]), documents.take(order), found.ranks[rows], potential[rows]),
        _bounds=found,
    )
    if result.decided:
        return result
    cautions = keep(
        "every verdict is provisional until the whole queue is judged: fix the queue first, judge all of it, then test "
        "once (stopping at the first verdict makes false ones about three times as frequent)",
        result.undecided is not None
        and result.undecided < len(result) / 2
        and f"if the {result.undecided} documents with the highest potential all get grade 0, no judgment of the "
        "others changes the sign",
    )
    return replace(result, notes=(*cautions, *result.notes))


def _unjudged(truth: Qrels, runs: tuple[Run, Run], ties: Order) -> tuple[IntArray, Ids, IntArray]:
    """Return the query number, id, and both ranks of each unjudged document that a run retrieved."""
    first, second = (replace(run.table, values=np.zeros(len(run.table)), unique=True) for run in runs)
    common = join(Qrels(second), runs[0], ties=ties).rows
    second = second.keep(np.delete(np.arange(len(second)), common))
    queries = Ids.joined([first.queries, second.queries])
    counts = np.concatenate([np.diff(first.offsets), np.diff(second.offsets)])
    docs = Ids.joined([first.docs, second.docs])
    both = Qrels(replace(PairTable.of_rows(IdRuns(queries, counts), docs, np.zeros(len(docs))), unique=True))
    ranks = np.full((len(docs), 2), UNRANKED)
    for column, run in zip(ranks.T, runs, strict=True):
        joined = join(both, run, ties=ties)
        column[joined.rows] = joined.rank
    number = np.array([truth.query_index.get(query, -1) for query in both.query_index], dtype=np.int64)
    number = number[both.table.query_numbers()]
    judged = truth.table.keep(np.flatnonzero(truth.table.values >= 0))
    number[join(both, Run(judged), ties="input").rows] = -1
    rows = np.flatnonzero(number >= 0)
    return number[rows], both.table.docs.take(rows), ranks[rows]


class _Problem(NamedTuple):
    """Unjudged documents, and how their grades change the difference of each query.

    The difference is a sum over documents of gain times (weight in the run - weight in the baseline),
    divided by the sum over gain levels of step times `norm[number of documents with this gain]`. The
    sum of discounts of an ideal ranking has this form, since a gain is the sum of the steps up to its
    level. For AP, Success, and RR, only the weights are used.
    """

    measure: Measure
    query: IntArray  # (n,) query number of each unjudged document
    ranks: IntArray  # (n, 2) its rank in the baseline and in the run
    weights: FloatArray  # (n, 2) value of the run if it is the only relevant document
    values: FloatArray  # (2, Q) values of both runs as judged
    steps: FloatArray  # (T,) differences of successive gains
    pools: IntArray  # (T, Q) number of judged documents with at least this gain
    norm: FloatArray

    def highest(self, joined: Sequence[Joined]) -> FloatArray:
        """Return an upper bound of the difference of each query, (Q,)."""
        best: FloatArray = self.values[1] - self.values[0]
        if self.measure.name == "AP":
            return _highest_precision(self, joined, best)
        if self.measure.name not in _FIRST:
            return _highest_ratio(self, best)
        # A single additional relevant document attains the bound: others would only raise the baseline.
        baseline, run = np.maximum(self.values[:, self.query], self.weights.T)
        np.maximum.at(best, self.query, run - baseline)
        return best

    def potentials(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return an upper bound of the change of its query's difference by each document, (n,)."""
        largest, most = np.maximum(np.abs(low), np.abs(high)), np.zeros(len(self.query))
        if self.measure.name in _FIRST:
            most = (self.weights - self.values[:, self.query].T).max(axis=1, initial=0.0)
        elif self.measure.name == "AP":
            # The sum of precisions divided by R + 1 grows by at most 1 / rank, and R by 1.
            most = self.weights.max(axis=1) + (largest / (self.pools.sum(axis=0) + 1))[self.query]
        else:
            # With gain g, a difference D = N / W becomes (N + g * change) / (W + grown).
            change = np.abs(self.weights[:, 1] - self.weights[:, 0])
            whole = self.steps @ self.norm[self.pools]
            grown = np.zeros(len(whole))
            for gain, step, pool in zip(np.cumsum(self.steps), self.steps, self.pools, strict=True):
                grown = grown + step * (self.norm[pool + 1] - self.norm[pool])
                most = np.maximum(most, (change * gain + (largest * grown)[self.query]) / (whole + grown)[self.query])
        return np.minimum(most, (high - low)[self.query])


def _problem(
    measure: Measure,
    truth: Qrels,
    unjudged: tuple[IntArray, IntArray],
    values: FloatArray,
    *,
    grades: FloatArray,
) -> _Problem:
    """Return the problem for unjudged documents, given by query number and both ranks, with possible grades."""
    query, ranks = unjudged
    judged = np.flatnonzero(truth.table.values >= 0)
    number, judgments = truth.table.query_numbers()[judged], truth.table.values[judged]
    words = {word: value for word, value in measure.params if word in {"gain", "rel"}}
    unit = parse("DCG@1" if measure.name == "nDCG" else "P@1")(**words)
    gain_of = _alone(unit, np.ones(len(grades), dtype=np.int64), grades)
    own, gains = gain_of[np.searchsorted(grades, judgments)], distinct(gain_of)
    pools = [np.bincount(number[own >= gain], minlength=len(truth)) for gain in gains[1:]]
    rank = np.where(ranks < UNRANKED, ranks, 0)
    most = truth.largest_pool + int(np.bincount(query, minlength=1).max()) + 1
    every = np.arange(max(most, int(rank.max(initial=0))) + 1)
    alone = _alone(measure, every, np.full(len(every), grades[-1]))
    norms = {"nDCG": np.cumsum(alone), "R": every.astype(np.float64), "AP": alone}
    pooled = np.array(pools, dtype=np.int64).reshape(-1, len(truth))
    norm = norms.get(measure.name, np.ones(len(every)))
    return _Problem(measure, query, ranks, alone[rank], values, np.diff(gains), pooled, norm)


def _alone(measure: Measure, ranks: IntArray, grades: FloatArray) -> FloatArray:
    """Return the values of runs with a single judged document at these ranks (0: not retrieved)."""
    rank, grade, known = np.where(ranks > 0, ranks, UNRANKED)[:, None], grades[:, None], (ranks > 0)[:, None]
    one = np.ones_like(ranks)
    return np.nan_to_num(measure.values(JudgedRun(rank, grade, known, known, rank, rank, ranks, grade, one)))


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
    start = own * (problem.steps @ problem.norm[problem.pools])
    best = own
    while True:
        total, whole = start, np.zeros(len(own))
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


def _highest_precision(problem: _Problem, joined: Sequence[Joined], own: FloatArray) -> FloatArray:
    """Return an upper bound of the difference in AP, (Q,).

    With c(j) relevant documents in the first j ranks, the sum of precisions is that of
    (1/j - 1/(j+1)) * c(j) * (c(j) + 1) / 2 over j. For each number of relevant unjudged documents,
    every rank j gets those that are best for it.
    """
    missing, relevant = np.bincount(problem.query, minlength=len(own)), problem.pools.sum(axis=0)
    hits = []
    for run in joined:
        rows = np.flatnonzero(run.grade >= (problem.measure.level or 0))
        hits.append((np.repeat(run.numbers, np.diff(run.offsets))[rows], run.rank[rows]))
    last, seen = problem.ranks.max(axis=1, initial=1), np.concatenate([problem.ranks.ravel(), hits[0][1], hits[1][1]])
    # Below the cut-off, the precision of a single document is 0.
    depth = max(1, min(int(seen[seen < UNRANKED].max(initial=1)), int(np.count_nonzero(problem.norm))))
    weight = problem.norm[1 : depth + 1] - np.append(problem.norm[2 : depth + 1], 0.0)
    best = own.copy()
    for first in range(0, len(own), _CELLS // depth + 1):
        part = slice(first, first + _CELLS // depth + 1)
        size = len(own[part])

        def down_to(query: IntArray, rank: IntArray, first: int = first, size: int = size) -> IntArray:
            rows = np.flatnonzero((query >= first) & (query < first + size) & (rank <= depth))
            cells = np.bincount((query[rows] - first) * depth + rank[rows] - 1, minlength=size * depth)
            return np.cumsum(cells.reshape(size, depth), axis=1)

        lower, upper = (down_to(*hit) for hit in hits)
        both = down_to(problem.query, last)
        alone = down_to(problem.query, problem.ranks[:, 1]) - both
        number, before = 0, -1
        while before < missing[part].max():
            more = np.minimum(alone, number)
            shared = np.where(upper + more > lower, np.minimum(both, number - more), 0)
            above, below = upper + more + shared, lower + shared
            total = (above * (above + 1) - below * (below + 1)) @ weight / 2
            # Between `before` and `number` documents: the smallest divisor for gains, else the largest.
            fewest = relevant[part] + before + 1
            most = relevant[part] + np.minimum(number, missing[part])
            ratio = total / np.maximum(np.where(total > 0, fewest, most), 1)
            best[part] = np.where(before < missing[part], np.maximum(best[part], ratio), best[part])
            before, number = number, number + max(1, number // 4)
    return np.minimum(best, 1.0)
