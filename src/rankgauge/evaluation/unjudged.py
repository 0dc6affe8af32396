"""Values of a run under different assumptions about its unjudged documents."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import FloatArray
from rankgauge.core.policies import Duplicates, Ties, order_of
from rankgauge.core.text import Ratio, keep, many
from rankgauge.data.join import join
from rankgauge.data.judged_run import UNRANKED, JudgedRun, Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.evaluation import Queries, evaluate
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Cell, Table
from rankgauge.stats.arrays import check_draws, check_share

Prior: TypeAlias = Literal["run", "pool", "run and pool"]

# Cells per batch: queries (or draws) times ranks.
_CELLS = 1 << 18
# If more of the judgments are relevant, they are not representative of retrieved documents.
_NEARLY_ALL = 0.9
# All drawn values are kept in memory.
_MOST_DRAWS = 100_000


@dataclass(frozen=True)
class Drawing:
    """Settings for drawing the grades of unjudged documents.

    Attributes:
        draws: Number of draws.
        seed: Seed of the draws.
        level: Share of the drawn means within the interval.
        prior: Grades to draw from: those of judged documents in the ``run`` down to the cut-off,
            those of the whole ``pool``, or ``run and pool``, either with probability one half.

    Example:
        >>> Drawing(draws=200).level
        0.95
    """

    draws: int = 1000
    seed: int = 0
    level: float = 0.95
    prior: Prior = "run and pool"

    def __post_init__(self) -> None:
        check_draws(self.draws, self.seed)
        check_share(self.level, "level")
        if self.draws > _MOST_DRAWS:
            raise InputError(
                f"draws={self.draws} is more than {_MOST_DRAWS}",
                where="drawing",
                fix="use 1,000 draws, which give an interval with two significant digits",
            )
        if self.prior not in get_args(Prior):
            raise UnknownName.of("prior", str(self.prior), get_args(Prior))


class Bootstrapped(NamedTuple):
    """Mean estimated from drawn grades.

    Attributes:
        mean: Mean over all draws.
        low: Lower bound of the interval.
        high: Upper bound.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class UnjudgedReport(Result):
    """The values of a run under several assumptions about its unjudged documents.

    Returned by :func:`unjudged_report`. Notebooks display it as a table.

    Attributes:
        none_relevant: Evaluation with no unjudged document relevant, as usual.
        all_relevant: (Q, M) values if each unjudged document above the cut-off has the grade `top`.
        condensed: Evaluation with unjudged documents removed from the rankings.
        judged: For each measure, the mean share of judged documents down to its cut-off.
        bootstrapped: Estimates of the nDCG measures from grades drawn at random.
        drawing: Settings of the draws.
        top: Highest grade of the judgments, at least 1.
        relevant_share: Share of judgments with a grade above 0.
    """

    none_relevant: Evaluation
    all_relevant: Values
    condensed: Evaluation
    judged: tuple[float, ...]
    bootstrapped: Mapping[Measure, Bootstrapped]
    drawing: Drawing
    top: float
    relevant_share: float

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures."""
        return self.none_relevant.measures

    def table(self) -> Table:
        """Return a table with a row for each measure, and the notes."""
        interval = f"{self.drawing.level * 100:g}% interval"
        return Table(
            columns=("measure", "none relevant", "all relevant", "condensed", "bootstrapped", interval, "judged"),
            rows=tuple(self._rows()),
            title=self.none_relevant.run_name,
            notes=self._notes(),
        )

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        measure, low, high, *_ = next(self._rows())
        return (
            f"{self.none_relevant.run_name}: {measure} is {low:.4f} if no unjudged document is "
            f"relevant, {high:.4f} if all are"
        )

    def _rows(self) -> Iterator[tuple[Cell, ...]]:
        plain, condensed = self.none_relevant.mean(), self.condensed.mean()
        for column, measure in enumerate(self.measures):
            drawn = self.bootstrapped.get(measure)
            yield (
                str(measure),
                plain[str(measure)],
                measure.mean(self.all_relevant[:, column]),
                condensed[str(measure)],
                None if drawn is None else drawn.mean,
                None if drawn is None else f"{drawn.low:.4f} to {drawn.high:.4f}",
                self.judged[column],
            )

    def _notes(self) -> tuple[str, ...]:
        drawing, plain = self.drawing, self.none_relevant.per_query
        lower = np.count_nonzero(self.all_relevant < plain - TOLERANCE, axis=0).tolist()
        return keep(
            *self.none_relevant.notes[:2],
            f"all relevant: unjudged documents above the cut-off get grade {self.top:g}, the "
            "highest of the judgments, and count among the relevant documents of the query",
            *(
                f"{measure}: below 'none relevant' for {many(count, 'query')}: its denominator grows"
                for measure, count in zip(self.measures, lower, strict=True)
                if count and measure.declaration.better == "higher"
            ),
            "condensed: unjudged documents are removed from the rankings (unjudged=removed)",
            self.bootstrapped
            and f"bootstrapped: grades drawn from those judged in the {drawing.prior} of the query "
            f"({drawing.draws} draws, seed {drawing.seed}); the interval is that of the mean "
            "over queries",
            self.bootstrapped
            and self.relevant_share > _NEARLY_ALL
            and f"WARNING: {Ratio(self.relevant_share):.0%} of the judgments are relevant, so "
            "nearly all drawn grades are, too: unjudged documents are mostly worse",
        )


def unjudged_report(
    qrels: Any,
    run: Any,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    ties: Ties = "trec",
    queries: Queries = "all",
    duplicates: Duplicates = "error",
    drawing: Drawing | None = None,
) -> UnjudgedReport:
    """Report the sensitivity of measures to the unjudged documents of a run.

    Each measure is computed with no unjudged document relevant (as usual), with all of them
    relevant, and with condensed lists (Sakai 2007). nDCG is also estimated, with an interval, from
    grades drawn at random from those of the query (Fröbe, Gienapp, Potthast, and Hagen 2023). The
    report includes the share of judged documents.

    If all are relevant, every unjudged document down to the cut-off of the measure (without a
    cut-off, every unjudged document retrieved) has the highest grade of the judgments. It counts
    among the relevant documents of its query, so the divisor of recall, AP, and nDCG increases, and
    a value can be lower than with none relevant.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts.
        run: The run: anything that :meth:`Run.of` accepts.
        measures: Names or measures; by default, those of :func:`evaluate`.
        ties: Order of documents with equal scores: ``trec`` or ``input``.
        queries: As in :func:`evaluate`.
        duplicates: As in :func:`evaluate`.
        drawing: Settings of the draws; by default, 1,000 draws from run and pool.

    Raises:
        InputError: If an input is invalid.

    Example:
        >>> report = unjudged_report({"q1": {"d1": 1}}, {"q1": ["d2", "d1"]}, ["RR", "P@2"])
        >>> for row in report.table().rows:
        ...     print(*row[:4])
        RR 0.5 1.0 1.0
        P@2 0.5 1.0 0.5
    """
    order_of(ties)  # raises an error for policies that depend on judgments
    truth, parsed_run = Qrels.of(qrels), Run.of(run)
    chosen = queries if isinstance(queries, str | os.PathLike) else list(queries)
    plain, condensed = (
        evaluate(truth, parsed_run, measures, ties=ties, queries=chosen, duplicates=duplicates, unjudged=how)
        for how in ("not relevant", "removed")
    )
    blocks = _blocks(truth, parsed_run, plain)
    top = max([1.0, *truth.table.values.tolist()])
    everything = np.full(plain.per_query.shape, np.nan)
    for column, measure in enumerate(plain.measures):
        for places, block, _ in blocks:
            depth = block.depth(measure.cutoff)
            fill = np.full((len(block), int(depth.max(initial=0))), top)
            everything[places, column] = measure.values(filled(block, depth, fill))
    how, (grades, _) = drawing or Drawing(), truth.ideal
    judged_at = [parse("Judged")(k=measure.cutoff) for measure in plain.measures]
    shares = evaluate(truth, parsed_run, dict.fromkeys(judged_at), ties=ties, queries=chosen, duplicates=duplicates)
    columns = zip(shares.measures, shares.per_query.T, strict=True)
    means = {measure: measure.mean(column, skip_undefined=True) for measure, column in columns}
    return UnjudgedReport(
        none_relevant=plain,
        all_relevant=everything,
        condensed=condensed,
        judged=tuple(means[measure] for measure in judged_at),
        bootstrapped={m: _bootstrap(m, blocks, how) for m in plain.measures if m.name == "nDCG"},
        drawing=how,
        top=top,
        relevant_share=float(np.count_nonzero(grades > 0)) / max(len(grades), 1),
    )


def _blocks(truth: Qrels, run: Run, evaluated: Evaluation) -> list[tuple[IntArray, JudgedRun, list[bytes]]]:
    """Return the judged runs of the evaluated queries, with their row numbers and ids."""
    policies = evaluated.policies
    joined = join(truth, run.without_repeats(policies.duplicates), ties=policies.ties)
    numbers = {query: number for number, query in enumerate(truth.query_ids)}
    rows = np.array([numbers[query] for query in evaluated.query_ids], dtype=np.int64)
    return [
        (part[places], block, truth.table.queries.take(rows[part[places]]).tolist())
        for part in np.array_split(np.arange(len(rows)), max(1, len(rows) // 256))
        for places, block in joined.blocks(rows[part])
    ]


def _bootstrap(
    measure: Measure, blocks: Sequence[tuple[IntArray, JudgedRun, list[bytes]]], how: Drawing
) -> Bootstrapped:
    """Return the mean over draws with its interval."""
    from hashlib import blake2b

    drawn = np.full((how.draws, sum(len(places) for places, *_ in blocks)), np.nan)
    for places, block, queries in blocks:
        for row, (place, query) in enumerate(zip(places.tolist(), queries, strict=True)):
            # A generator for each query, which does not depend on other queries.
            key = int.from_bytes(blake2b(query, digest_size=8).digest(), "big")
            rng = np.random.Generator(np.random.PCG64([how.seed, key]))
            drawn[:, place] = _drawn(_row(block, row), measure, how, rng)
    means = [measure.mean(values) for values in drawn]
    low, high = np.quantile(means, [(1 - how.level) / 2, (1 + how.level) / 2]).tolist()
    return Bootstrapped(math.fsum(means) / len(means), low, high)


def _row(block: JudgedRun, row: int) -> JudgedRun:
    """Return one query of a block, without padding."""
    width = int(np.count_nonzero(block.in_qrels[row])) or 1
    pool = int(np.count_nonzero(block.ideal[row] >= 0)) or 1
    own = {name: part[row : row + 1] for name, part in block.__getstate__().items()}
    for name, part in own.items():
        if part.ndim > 1:
            own[name] = part[:, : pool if name == "ideal" else width]
    return JudgedRun(**own)


def _drawn(block: JudgedRun, measure: Measure, how: Drawing, rng: np.random.Generator) -> Values:
    """Return the values of one query with drawn grades for unjudged documents, (draws,)."""
    depth = block.depth(measure.cutoff)
    upto = int(depth[0])
    missing = upto - int(np.count_nonzero(block.judged & (block.rank <= upto)))
    of_pool = block.ideal[block.ideal >= 0]
    if not missing or not len(of_pool):
        return np.repeat(measure.values(block), how.draws)
    of_run = block.grade[block.judged & (block.rank <= upto)]
    values = np.empty(how.draws)
    step = max(1, _CELLS // (upto + block.ideal.shape[1]))
    for start in range(0, how.draws, step):
        count = min(step, how.draws - start)
        fill = _grades(rng, (count, upto), (of_run, of_pool), how.prior)
        repeated = JudgedRun(**{name: np.repeat(part, count, axis=0) for name, part in block.__getstate__().items()})
        values[start : start + count] = measure.values(filled(repeated, np.repeat(depth, count), fill))
    return values


def _grades(
    rng: np.random.Generator, shape: tuple[int, int], known: tuple[FloatArray, FloatArray], prior: Prior
) -> FloatArray:
    """Draw grades from those of the run, of the pool, or of either."""
    of_run, of_pool = known
    from_pool = rng.choice(of_pool, size=shape)
    if prior == "pool" or not len(of_run):
        return from_pool
    from_run = rng.choice(of_run, size=shape)
    return from_run if prior == "run" else np.where(rng.random(shape) < 0.5, from_run, from_pool)


def filled(block: JudgedRun, depth: IntArray, fill: FloatArray) -> JudgedRun:
    """Return a judged run with grades `fill` for unjudged documents down to a depth."""
    ranks = np.arange(1, fill.shape[1] + 1)
    inside = ranks <= depth[:, None]
    rows, columns = np.nonzero(block.judged & (block.rank <= depth[:, None]))
    grades, unjudged = fill.copy(), inside.copy()
    grades[rows, block.rank[rows, columns] - 1] = block.grade[rows, columns]
    unjudged[rows, block.rank[rows, columns] - 1] = False
    below = block.in_qrels & (block.rank > depth[:, None])
    rank = np.concatenate([np.where(inside, ranks, UNRANKED), np.where(below, block.rank, UNRANKED)], axis=1)
    grade = np.concatenate([np.where(inside, grades, 0.0), np.where(below, block.grade, 0.0)], axis=1)
    longest = int(np.count_nonzero(rank < UNRANKED, axis=1).max(initial=1))
    order = np.argsort(rank, axis=1, kind="stable")[:, :longest]
    rank, grade = (np.take_along_axis(part, order, axis=1) for part in (rank, grade))
    known = rank < UNRANKED
    ideal = np.concatenate([block.ideal, np.where(unjudged, fill, -1.0)], axis=1)
    return replace(
        block,
        rank=rank,
        grade=grade,
        in_qrels=known,
        judged=known & (grade >= 0),
        tie_first=rank,
        tie_last=rank,
        ideal=-np.sort(-ideal, axis=1),
        n_judged=block.n_judged + unjudged.sum(axis=1),
    )
