"""Evaluation in blocks: measure a block of queries, merge the results, build the evaluation.

A block is a part of a run with all documents of its queries, and a `BlockResult` is its
contribution to an evaluation. Merging is associative and commutative, so no value, note, or finding
depends on the number, size, or order of the blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rankgauge.core.ids import IntArray, show_id
from rankgauge.core.pair_table import distinct
from rankgauge.core.policies import Policies
from rankgauge.core.text import SHOWN, some
from rankgauge.data.join import Joined
from rankgauge.data.joined_blocks import InputSummary, JoinedBlock, join_block, map_joined, merge_summaries
from rankgauge.data.judged_run import BoolArray, JudgedRun, Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError, MismatchError
from rankgauge.evaluation.context import Context, Measured
from rankgauge.evaluation.input_checks import SAMPLE, InputChecks
from rankgauge.evaluation.notes import describe
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.binary import judged_shares
from rankgauge.measures.compiled import DECLINED

_NONE = np.zeros(0, dtype=np.int64)
# With ties=mean, up to this many queries without ties are measured together with those with ties.
_FEW = 300
# Number of queries missing from the run that are measured at once with judgments on disk.
_MISSING = 10_000


class BlockResult(NamedTuple):
    """The evaluation of one block of queries. Immutable; can be pickled."""

    measured: Measured  # values of the queries
    tied: int  # number of queries that a different order of ties could change
    summary: InputSummary  # data for the checks of the input
    name: str = Run.name  # name of the run
    settings: Mapping[str, Any] = {}  # settings of the retriever


def measure_run(run: Any, context: Context, memory: int | None = None, jobs: int = 1) -> BlockResult:
    """Measure a run from any source; `memory` limits the memory of a file, in bytes, and `jobs` threads read it."""
    return merge_blocks(
        map_joined(run, context.judgments, lambda block: measure_joined(block, context), memory=memory, jobs=jobs)
    )


def measure_block(block: Any, context: Context) -> BlockResult:
    """Join a block of a run with the judgments and measure its queries."""
    return measure_joined(join_block(block, context.judgments), context)


def measure_joined(block: JoinedBlock, context: Context) -> BlockResult:
    """Measure the evaluated queries of a block."""
    summary, settings = block.summary, dict(block.settings)
    if block.cells is not None:
        measured = _measure_compiled(block, block.cells, context)
        return BlockResult(measured, block.tied, summary, block.name, settings)
    joined = block.joined()
    graded, selected = block.graded or joined, context.selected
    if block.numbers is not None:
        selected = selected[block.numbers]
    numbers = joined.numbers[selected[joined.numbers]]
    tied = int(selected[_tied(joined, graded, context)].sum())
    measured = _measure(joined, graded, numbers, context)
    if block.numbers is not None:
        measured = measured._replace(numbers=block.numbers[measured.numbers])
        summary = summary.renumbered(block.numbers)
    return BlockResult(measured, tied, summary, block.name, settings)


def _measure_compiled(block: JoinedBlock, cells: Values, context: Context) -> Measured:
    """Return the values of the compiled core; NumPy computes measures that it does not support."""
    plan, layout, numbers = context.plan, context.variant.layout, block.summary.numbers
    if not block.declined and len(cells) == layout.errors.stop:
        return Measured(numbers, cells)
    rows = zip(plan.compiled, cells, strict=False)
    done = {number for number, row in rows if DECLINED not in row}
    measured = Measured(numbers, np.zeros((layout.errors.stop, len(numbers))))
    compiled = [*plan.compiled, *range(layout.judged.start, layout.errors.start)]
    measured.rows[compiled] = cells
    _fill(block.joined(), [number for number in plan.columns if number not in done], measured, context)
    return measured


def _tied(joined: Joined, graded: Joined, context: Context) -> IntArray:
    """Return the queries that a different order of ties could change."""
    plan, unjudged = context.plan, context.judgments.unjudged
    # Ties between different grades matter only if a measure reads grades.
    tied = joined.tied(unjudged) if plan.columns else joined.numbers[:0]
    if graded is not joined:
        tied = distinct(np.append(tied, graded.tied(unjudged)))
    if context.special is not None:
        tied = distinct(np.append(tied, context.special.tied(joined)))
    return tied


def _measure(joined: Joined, graded: Joined, numbers: IntArray, context: Context) -> Measured:
    """Measure queries; queries missing from the run have an empty ranking."""
    plan, layout = context.plan, context.variant.layout
    measured = Measured(numbers, np.full((layout.errors.stop, len(numbers)), np.nan))
    measured.rows[layout.errors] = 0
    _fill(joined, plan.columns if graded is joined else plan.of_judgments, measured, context, describe=True)
    if graded is not joined:
        _fill(graded, plan.of_grades, measured, context)
    if context.special is not None:
        for places, special in context.special.blocks(joined, numbers):
            for number in plan.special:
                measured.rows[number, places] = context.variant.measures[number].values(special)
    return measured


def _fill(
    joined: Joined, numbers: Sequence[int], measured: Measured, context: Context, *, describe: bool = False
) -> None:
    """Fill in the values of the measures with these numbers, and the data for the notes."""
    plan, policies, rows = context.plan, context.judgments.policies, measured.rows
    measures, firsts, every, layout, *_ = context.variant
    estimated = [number for number in numbers if number in every]
    for places, block, tied in _blocks(joined, measured.numbers, policies):
        for number in numbers:
            if not tied:
                rows[number, places] = measures[number].values(block)
            elif number not in estimated:
                rows[number, places] = measures[number].tie_mean(block)
        if tied and estimated:
            from rankgauge.measures.tie_means import estimate

            queries = joined.qrels.table.queries.take(measured.numbers[places]).tolist()
            means, errors = estimate(block, queries, [measures[number] for number in estimated], policies)
            for place, number in enumerate(estimated):
                rows[number, places] = means[:, place]
                rows[layout.errors][every.index(number), places] = errors[:, place]
        if not describe:
            continue
        rows[layout.judged, places] = judged_shares(block.averaged() if tied else block, plan.depths).T
        # No first ranks are measured if ties are averaged, and relevant documents have no order.
        for row, first in zip(rows[layout.first_ranks], firsts, strict=True):
            row[places] = first.values(block)
        for row, recall in zip(rows[layout.beyond], plan.recalls, strict=True):
            relevant = block.relevant(recall.rel)  # type: ignore[arg-type] # a level
            row[places] = relevant > recall.k  # type: ignore[operator] # a number


def _blocks(joined: Joined, numbers: IntArray, policies: Policies) -> Iterator[tuple[IntArray, JudgedRun, bool]]:
    """Yield judged runs of these queries with their row positions and whether to average ties.

    Both ways give identical bits for a query without ties, so a few of those are measured together
    with the others, which is faster.
    """
    if policies.ties != "mean":
        yield from ((places, block, False) for places, block in joined.blocks(numbers))
        return
    tied = joined.touched(numbers)
    if tied.any() and np.count_nonzero(~tied) < _FEW:
        tied[:] = True
    for flag in (True, False):
        rows = np.flatnonzero(tied == flag)
        for places, block in joined.blocks(numbers[rows]):
            yield rows[places], block, flag


def merge_blocks(results: Iterable[BlockResult]) -> BlockResult:
    """Merge the results of blocks with different queries, in any order."""
    parts = list(results)
    if len(parts) == 1:
        return parts[0]
    first = min(parts, key=lambda part: (part.name, repr(sorted(part.settings.items()))))
    name, settings, tied = first.name, first.settings, sum(part.tied for part in parts)
    measured, summaries = [part.measured for part in parts], [part.summary for part in parts]
    # Free the parts: for many queries, memory cannot hold both them and the whole.
    del results, parts, first
    return BlockResult(merge_measured(measured), tied, merge_summaries(summaries), name, settings)


def merge_measured(parts: list[Measured]) -> Measured:
    """Concatenate the values of different queries, sorted by number; `parts` is emptied."""
    numbers = np.concatenate([part.numbers for part in parts])
    rows = np.concatenate([part.rows for part in parts], axis=1)
    parts.clear()
    order = np.argsort(numbers, kind="stable")
    for row in rows:
        row[:] = row[order]
    return Measured(numbers[order], rows)


def add_absent(measured: Measured, numbers: IntArray, context: Context) -> Measured:
    """Add queries that are missing from the run, each with an empty ranking, if they are averaged."""
    if not len(numbers) or context.judgments.policies.queries == "intersection":
        return measured
    batches = [measured]
    most = len(numbers) if context.judgments.stored is None else _MISSING
    for start in range(0, len(numbers), most):
        batch = own = numbers[start : start + most]
        judgments = context.judgments
        if judgments.stored is not None:
            judgments, own = judgments.part(batch), np.arange(len(batch))
        joined = graded = Joined.empty(judgments.qrels)
        if judgments.graded is not judgments.qrels:
            graded = Joined.empty(judgments.graded)
        batches.append(_measure(joined, graded, own, context)._replace(numbers=batch))
    return merge_measured(batches)


def build_evaluation(result: BlockResult, context: Context) -> Evaluation:
    """Build the evaluation of a whole run: add missing queries, counts, notes, and findings."""
    qrels, policies, summary = context.judgments.qrels, context.judgments.policies, result.summary
    if context.judgments.stored is not None:
        qrels = context.judgments.stored.outline(summary.rankings, SAMPLE)
    numbers = summary.numbers
    if len(numbers) > 1 and (numbers[1:] == numbers[:-1]).any():
        repeated = numbers[1:][numbers[1:] == numbers[:-1]]
        raise InputError(
            f"query {qrels.query_ids[int(repeated[0])]!r} occurs in two blocks of the run",
            where="run",
            fix="yield all documents of a query in one block",
        )
    if not len(result.measured.numbers):
        raise _no_common_query(qrels, context.selected, summary)
    checks = InputChecks(qrels, summary)
    checks.refuse_near_misses()
    measured, absent = result.measured, _NONE
    if len(numbers) < len(context.selected):
        seen = np.zeros(len(context.selected), dtype=bool)
        seen[numbers] = True
        absent = np.flatnonzero(context.selected > seen)
        measured = add_absent(measured, absent, context)
    missing = len(measured.numbers) - len(result.measured.numbers)
    query_ids = qrels.query_ids
    if len(measured.numbers) < len(context.selected):
        query_ids = tuple(map(query_ids.__getitem__, measured.numbers.tolist()))
    counts = {
        "queries": len(query_ids),
        "missing_from_run": missing,
        "without_judgments": summary.without_judgments,
        "tied": result.tied,
        "documents": summary.tally.documents,
        "duplicates_removed": summary.tally.removed,
    }
    values = {
        "run_name": result.name,
        "query_ids": query_ids,
        "measures": context.plan.measures,
        "per_query": measured.rows[context.variant.layout.values].T,
        "policies": policies,
        "counts": counts,
        "settings": result.settings,
    }
    return Evaluation.described_later(
        values, partial(describe, measured, absent, counts=counts, checks=checks, context=context)
    )


def _no_common_query(qrels: Qrels, selected: BoolArray, summary: InputSummary) -> MismatchError:
    theirs = [
        *(qrels.query_ids[number] for number in summary.numbers[:SHOWN].tolist()),
        *map(show_id, summary.unknown[:SHOWN]),
    ]
    if not theirs:
        return MismatchError("the run has no queries", where="run", fix="pass at least one ranking")
    mine = [qrels.query_ids[number] for number in np.flatnonzero(selected).tolist()]
    known, have = ("judged", "the judgments have")
    if len(mine) < len(qrels):
        known, have = ("requested", "requested were")
    return MismatchError(
        f"no query of the run is {known}: the run has {some(theirs[:SHOWN])}, {have} {some(mine)}",
        fix="use the same query ids in both (check the columns, prefixes, leading zeros)",
    )
