"""Evaluation in blocks: measure a block of queries, merge the results, build the evaluation.

A block is a part of a run with all documents of its queries, and a `BlockResult` is its
contribution to an evaluation. Merging is associative and commutative, so no value, note, or finding
depends on the number, size, or order of the blocks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgauge.core.findings import Finding, explaining
from rankgauge.core.ids import IntArray, id_bytes, show_id
from rankgauge.core.pair_table import distinct
from rankgauge.core.text import SHOWN, many, some
from rankgauge.data.join import Joined, join
from rankgauge.data.judged_run import BoolArray, JudgedRun, Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run, map_blocks, run_name
from rankgauge.data.run_summary import InputSummary, JoinedBlock, first_ids, join_block, merge_summaries
from rankgauge.data.source_joins import JoinedDicts, join_dicts, join_file
from rankgauge.errors import InputError, MismatchError
from rankgauge.evaluation import notes
from rankgauge.evaluation.context import Context, part_of
from rankgauge.evaluation.input_checks import SAMPLE, InputChecks
from rankgauge.evaluation.plan import JUDGED_AT, Plan
from rankgauge.evaluation.result import Evaluation, describe_later
from rankgauge.formats.columns import RUN, columns_of
from rankgauge.formats.frames import is_frame
from rankgauge.measures.counts import judged_shares

if TYPE_CHECKING:
    # Only needed for judgments that do not fit in memory.
    from rankgauge.data.stored_qrels import StoredQrels

# The largest weight; sums of weights up to here do not overflow.
_MOST_WEIGHT = 1e100
# Tie policies that do not depend on grades.
_PLAIN_TIES = ("trec", "input")
# With ties=mean, up to this many queries without ties are measured together with those with ties.
_FEW = 300
# Number of queries missing from the run that are measured at once with judgments on disk.
_MISSING = 10_000


class Measured(NamedTuple):
    """Values of queries, one row per query."""

    numbers: IntArray  # (n,) numbers of the queries in the judgments, ascending
    values: Values  # (n, M) the value of each measure, NaN where undefined
    judged: Values  # (n, D) the share of judged documents at each depth, NaN without results
    first_ranks: Values  # (n, F) the rank of the first relevant document, NaN without one
    errors: Values  # (n, E) the standard error of each estimated value
    beyond: BoolArray  # (n, R) whether more than k documents are relevant, for each recall at k


class BlockResult(NamedTuple):
    """The evaluation of one block of queries. Immutable; can be pickled."""

    measured: Measured  # values of the queries
    tied: int  # number of queries that a different order of ties could change
    summary: InputSummary  # data for the checks of the input
    name: str = Run.name  # name of the run
    settings: Mapping[str, Any] = {}  # settings of the retriever


def evaluate_run(run: Any, context: Context, memory: int | None = None) -> Evaluation:
    """Evaluate a run from any source; `memory` limits the memory of a file, in bytes."""
    return build_evaluation(merge_blocks(_measured(run, context, memory)), context)


def _measured(run: Any, context: Context, memory: int | None) -> list[BlockResult]:
    """Measure a run in blocks, if it is a file or an iterator of blocks.

    This function and `measure_block` choose how a source is read and joined.
    """
    if not isinstance(run, str | os.PathLike):
        return [measure_block(block, context) for block in _blocks_of(run)]
    found = None
    if context.stored is None and context.graded is context.qrels:
        name = run_name(run)
        # The other reader reports an error with its line number.
        with suppress(InputError):
            found = join_file(
                context.qrels,
                run,
                lambda part: measure_part(part, context, name),
                ties=context.policies.ties,
                memory=memory,
            )
    return found or map_blocks(run, lambda block: measure_block(block, context), memory=memory)


def measure_block(block: Any, context: Context) -> BlockResult:
    """Join a block of a run with the judgments and measure its queries."""
    if context.stored is not None:
        return _measure_stored(Run.of(block), context, context.stored)
    policies, program, found = context.policies, _program(context), None
    if context.graded is context.qrels:
        found = join_dicts(context.qrels, block, program, ties=policies.ties)
    if found is not None:
        if program is not None:
            return _measure_compiled(found, context)
        return measure_part(found.block(), context, Run.name)
    run = Run.of(block)
    part = join_block(context.qrels, run, ties=policies.ties, duplicates=policies.duplicates)
    return measure_part(part, context, run.name, run)


def measure_part(part: JoinedBlock, context: Context, name: str, run: Run | None = None) -> BlockResult:
    """Measure a joined block; joined again if other judgments have the grades."""
    graded, settings = part.joined, {} if run is None else dict(run.settings)
    if run is not None and context.graded is not context.qrels:
        table = run.without_repeats(context.policies.duplicates)
        graded = join(context.graded, run, ties=context.policies.ties, table=table)
    return BlockResult(*_measure_joined(part.joined, graded, context), part.summary, name, settings)


def _blocks_of(run: Any) -> Iterator[Any]:
    """Yield the blocks of an iterator of blocks; yield any other run whole."""
    if not isinstance(run, Iterator):
        yield run
        return
    first = next(run, None)
    if first is None:
        raise InputError("the iterator is empty", where="run", fix="yield at least one block of queries")
    if not _is_block(first):
        yield chain([first], run)
        return
    yield first
    yield from run


def _is_block(item: Any) -> bool:
    """Return whether an item of an iterator is a block of queries, not a row of a run."""
    if isinstance(item, Run):
        return True
    if isinstance(item, Mapping):
        if all(isinstance(ranking, Mapping) for ranking in item.values()):
            return True  # no need to read all names as those of columns
        columns = columns_of(item, RUN)
        return columns is None or not isinstance(item[columns.query], str | int | bytes)
    return is_frame(item)


def _measure_stored(run: Run, context: Context, stored: StoredQrels) -> BlockResult:
    """Measure a block with judgments on disk, reading only those of its queries."""
    numbers = stored.numbers_of(run.table.queries)
    known = np.sort(numbers[numbers >= 0])
    result = measure_block(run, part_of(context, stored, known))
    measured, summary = result.measured, result.summary
    rankings = {int(known[number]): docs for number, docs in summary.rankings.items()}
    return result._replace(
        measured=measured._replace(numbers=known[measured.numbers]),
        summary=summary._replace(numbers=known[summary.numbers], rankings=rankings),
    )


def _program(context: Context) -> Values | None:
    """Return the instructions for the compiled core; None if it cannot apply the policies."""
    policies = context.policies
    plain = policies.ties in _PLAIN_TIES and policies.unjudged != "removed"
    return context.plan.program if plain and context.selected.all() else None


def _measure_compiled(found: JoinedDicts, context: Context) -> BlockResult:
    """Return the values of the compiled core; NumPy computes measures that it does not support."""
    plan, rows = context.plan, found.cells
    # One row for each column of `Measured`.
    judged = len(plan.compiled)
    firsts = judged + len(plan.depths)
    beyond = firsts + len(plan.first_ranks)
    others = [column for column in plan.columns if column not in plan.compiled]
    values, tied = rows[:judged].T, found.tied
    if others:
        values = np.empty((len(found.numbers), len(plan.measures)), order="F")
        values[:, plan.compiled] = rows[:judged].T
        joined = found.joined()
        for places, judged_run in joined.blocks(found.numbers):
            for column in others:
                values[places, column] = plan.measures[column].values(judged_run)
        tied = len(joined.tied(separate_judged=plan.separate_judged))
    measured = Measured(
        found.numbers,
        values=values,
        judged=rows[judged:firsts].T,
        first_ranks=rows[firsts:beyond].T,
        errors=np.zeros((len(found.numbers), 0)),
        beyond=rows[beyond:].T != 0,
    )
    summary = InputSummary(found.numbers, found.ends, found.tally, first_ids(found.unknown), found.rankings)
    return BlockResult(measured, tied, summary)


def _measure_joined(joined: Joined, graded: Joined, context: Context) -> tuple[Measured, int]:
    """Return the values of the evaluated queries, and how many of them ties could change."""
    plan = context.plan
    condensed = context.policies.unjudged == "removed" and plan.all_condensed
    tied = joined.numbers[:0]
    # Ties between different grades matter only if a measure reads grades.
    if plan.columns:
        tied = joined.tied(separate_judged=plan.separate_judged, condensed=condensed)
    if graded is not joined:
        more = graded.tied(separate_judged=plan.separate_judged, condensed=condensed)
        tied = distinct(np.append(tied, more))
    if context.special is not None:
        tied = distinct(np.append(tied, context.special.tied(joined)))
    numbers = joined.numbers[context.selected[joined.numbers]]
    return _measure(joined, graded, numbers, context), int(context.selected[tied].sum())


def _measure(joined: Joined, graded: Joined, numbers: IntArray, context: Context) -> Measured:
    """Measure queries; queries missing from the run have an empty ranking."""
    plan, queries = context.plan, len(numbers)
    # Column-major: columns are written and averaged one by one.
    found = Measured(
        numbers,
        values=np.full((queries, len(plan.measures)), np.nan, order="F"),
        judged=np.full((queries, len(plan.depths)), np.nan, order="F"),
        first_ranks=np.full((queries, len(context.first_ranks)), np.nan, order="F"),
        errors=np.zeros((queries, len(context.estimated)), order="F"),
        beyond=np.zeros((queries, len(plan.recalls)), dtype=bool, order="F"),
    )
    if graded is joined:
        _measure_columns(joined, plan.columns, found, context)
    else:
        _measure_columns(joined, plan.of_judgments, found, context)
        _measure_columns(graded, plan.of_grades, found, context)
    if context.special is not None:
        for rows, special in context.special.blocks(joined, numbers):
            for column in plan.special:
                found.values[:, column][rows] = context.measures[column].values(special)
    return found


def _measure_columns(joined: Joined, columns: Sequence[int], found: Measured, context: Context) -> None:
    """Fill in the values of these measures and the data for the notes."""
    estimated = [column for column in columns if column in context.estimated]
    for rows, block, tied in _blocks(joined, found.numbers, context):
        for column in columns:
            measure = context.measures[column]
            if not tied:
                found.values[:, column][rows] = measure.values(block)
            elif column not in estimated:
                found.values[:, column][rows] = measure.tie_mean(block)
        if tied and estimated:
            from rankgauge.evaluation.tie_draws import estimate

            queries = context.qrels.table.queries.take(found.numbers[rows]).tolist()
            measures = [context.measures[column] for column in estimated]
            means, errors = estimate(block, queries, measures, context.policies)
            for place, column in enumerate(estimated):
                found.values[:, column][rows] = means[:, place]
                found.errors[:, context.estimated.index(column)][rows] = errors[:, place]
        if joined.qrels is context.qrels:
            _describe(block.averaged() if tied else block, rows, found, context)


def _describe(block: JudgedRun, rows: IntArray, found: Measured, context: Context) -> None:
    found.judged[rows] = judged_shares(block, context.plan.depths)
    for place, first in enumerate(context.first_ranks):
        found.first_ranks[:, place][rows] = first.values(block)
    for place, recall in enumerate(context.plan.recalls):
        relevant = block.relevant(recall.rel)  # type: ignore[arg-type] # a level
        found.beyond[:, place][rows] = relevant > recall.k  # type: ignore[operator] # a number


def _blocks(joined: Joined, numbers: IntArray, context: Context) -> Iterator[tuple[IntArray, JudgedRun, bool]]:
    """Yield judged runs of these queries with their row positions and whether to average ties.

    Both ways give identical bits for a query without ties, so a few of those are measured together
    with the others, which is faster.
    """
    if context.policies.ties != "mean":
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
    columns = [[*column] for column in zip(*parts, strict=True)]
    parts.clear()
    order = np.argsort(np.concatenate(columns[0]), kind="stable")
    merged = []
    while columns:
        column = np.concatenate(columns.pop(0))
        merged.append(np.asfortranarray(column[order]))
    return Measured(*merged)


def measure_absent(numbers: IntArray, context: Context) -> Measured:
    """Measure queries that are missing from the run: each has an empty ranking."""
    nothing = graded = Joined.empty(context.qrels)
    if context.graded is not context.qrels:
        graded = Joined.empty(context.graded)
    return _measure(nothing, graded, numbers, context)


def build_evaluation(result: BlockResult, context: Context) -> Evaluation:
    """Build the evaluation of a whole run: add missing queries, counts, notes, and findings."""
    if context.stored is not None:
        outline = context.stored.outline(result.summary.rankings, SAMPLE)
        context = context._replace(qrels=outline, graded=outline)
    qrels, policies, summary = context.qrels, context.policies, result.summary
    seen = np.zeros(len(qrels), dtype=bool)
    seen[summary.numbers] = True
    if len(summary.numbers) > np.count_nonzero(seen):
        raise _repeated_query(summary, qrels)
    if not len(result.measured.numbers):
        raise _no_common_query(context, summary)
    checks = InputChecks(qrels, summary)
    checks.refuse_near_misses()
    measured, absent = result.measured, np.flatnonzero(context.selected & ~seen)
    missing = absent[:0] if policies.queries == "intersection" else absent
    if len(missing):
        measured = merge_measured([measured, *_measure_missing(missing, context)])
    query_ids = qrels.query_ids
    if len(measured.numbers) < len(qrels):
        query_ids = tuple(map(query_ids.__getitem__, measured.numbers.tolist()))
    counts = {
        "queries": len(query_ids),
        "missing_from_run": len(missing),
        "without_judgments": summary.without_judgments,
        "tied": result.tied,
        "documents": summary.tally.documents,
        "duplicates_removed": summary.tally.removed,
    }
    made = Evaluation(
        run_name=result.name,
        query_ids=query_ids,
        measures=context.plan.measures,
        per_query=measured.values,
        undefined=np.isnan(measured.values),
        policies=policies,
        counts=counts,
        settings=result.settings,
    )

    def describe() -> tuple[dict[int, float], tuple[Finding, ...]]:
        coverage = _coverage(measured, context.plan)
        selected = int(np.count_nonzero(context.selected))
        faults = tuple(checks.mismatches(coverage.get(JUDGED_AT, 0.0), selected, absent))
        empty_rankings: tuple[Finding, ...] = ()
        if not explaining(faults):
            without = int(np.count_nonzero(np.isnan(measured.judged[:, 0])))
            faults += checks.no_matches()
            empty_rankings = checks.empty_rankings(len(query_ids), without, len(missing))
        return coverage, (
            *faults,
            *empty_rankings,
            notes.queries_note(counts, policies),
            notes.ties_note(counts["tied"], policies.ties),
            *_notes(measured, coverage, result, context),
        )

    return describe_later(made, describe)


def _measure_missing(missing: IntArray, context: Context) -> Iterator[Measured]:
    """Measure queries missing from the run, in batches if the judgments are on disk."""
    if context.stored is None:
        yield measure_absent(missing, context)
        return
    for start in range(0, len(missing), _MISSING):
        numbers = missing[start : start + _MISSING]
        part = part_of(context, context.stored, numbers)
        found = measure_absent(np.arange(len(numbers)), part)
        yield found._replace(numbers=numbers)


def _notes(
    measured: Measured, coverage: Mapping[int, float], result: BlockResult, context: Context
) -> Iterator[Finding]:
    """Yield notes on the values and on the inputs."""
    plan, policies, qrels = context.plan, context.policies, context.qrels
    tally, undefined = result.summary.tally, np.isnan(measured.values)
    condensed = policies.unjudged == "removed"
    if context.estimated:
        names = [str(plan.measures[column]) for column in context.estimated]
        yield notes.estimates_note(names, measured.errors, policies)
    if coverage:
        yield notes.judged_note(plan.deepest, coverage[plan.deepest], condensed=condensed)
    for first, ranks in zip(plan.first_ranks, measured.first_ranks.T, strict=False):
        yield notes.first_ranks_note(first, ranks)
    if undefined.any():
        judged = (qrels, measured.numbers)
        yield from notes.undefined_notes(plan.measures, undefined, policies, judged)
    yield from notes.grades_note(qrels, plan.level)
    yield from notes.origin_notes(qrels.table.source)
    yield from notes.recall_note(plan.recalls, measured.beyond)
    deepest = int(result.summary.ends[:, 0].max())
    constant = tally.longer > 0 and not tally.uneven
    yield from notes.ranking_notes(deepest, plan.max_cutoff, constant=constant)
    yield from notes.perfect_note(plan, measured.values)
    yield from notes.single_measure_note(plan.measures)
    yield from notes.input_notes(qrels, tally.removed, policies)
    ordered = sorted(result.summary.notes, key=lambda note: (result.summary.notes[note], note))
    yield from (notes.info(note) for note in dict.fromkeys((*context.notes, *ordered)))


def _coverage(measured: Measured, plan: Plan) -> dict[int, float]:
    """Return the mean share of judged documents at each depth; empty if nothing was retrieved."""
    known = measured.judged
    nothing = np.isnan(known[:, 0])
    if nothing.all():
        return {}
    if nothing.any():
        known = known[~nothing]
    columns = zip(plan.depths, known.T.tolist(), strict=True)
    return {depth: math.fsum(column) / len(column) for depth, column in columns}


def _repeated_query(summary: InputSummary, qrels: Qrels) -> InputError:
    again = summary.numbers[1:][summary.numbers[1:] == summary.numbers[:-1]]
    return InputError(
        f"query {qrels.query_ids[int(again[0])]!r} occurs in two blocks of the run",
        where="run",
        fix="yield all documents of a query in one block",
    )


def _no_common_query(context: Context, summary: InputSummary) -> MismatchError:
    theirs = [
        *(context.qrels.query_ids[number] for number in summary.numbers[:SHOWN].tolist()),
        *map(show_id, summary.unknown[:SHOWN]),
    ]
    if not theirs:
        return MismatchError("the run has no queries", where="run", fix="pass at least one ranking")
    mine = [context.qrels.query_ids[number] for number in np.flatnonzero(context.selected).tolist()]
    known, have = ("judged", "the judgments have")
    if len(mine) < len(context.qrels):
        known, have = ("requested", "requested were")
    return MismatchError(
        f"no query of the run is {known}: the run has {some(theirs[:SHOWN])}, {have} {some(mine)}",
        fix="use the same query ids in both (check the columns, prefixes, leading zeros)",
    )


def add_weights(evaluation: Evaluation, qrels: Qrels, weights: Any, groups: Any) -> Evaluation:
    """Return an evaluation with a weight or a group for each query."""
    number = dict(zip(qrels.query_ids, qrels.table.queries.tolist(), strict=True))
    ids = [number[query] for query in evaluation.query_ids]
    found, shares = evaluation.findings, None
    if weights is not None:
        from rankgauge.stats.intervals import effective_size

        shares = _weights(weights, ids)
        found += (
            notes.info("means are weighted by query"),
            notes.info(
                f"effective sample size of the weights (Kish): {effective_size(shares):.1f} of "
                f"{many(len(ids), 'query')}"
            ),
        )
    return replace(evaluation, findings=found, weights=shares, groups=None if groups is None else _groups(groups, ids))


def _per_query(given: Any, query_ids: Sequence[bytes], what: str) -> list[Any]:
    """Return the values of a mapping in the order of the evaluated queries."""
    # A pandas series also has items.
    if not hasattr(given, "items"):
        raise InputError(
            f"got {type(given).__name__} for the {what}s, expected a mapping",
            where=f"{what}s",
            fix=f"pass {what}s as {{query id: {what}}}",
        )
    try:
        known = {id_bytes(query, "query id"): value for query, value in given.items()}
    except InputError as error:
        raise InputError(error.what, where=f"{what}s", fix=error.fix) from None
    found = [known.get(query) for query in query_ids]
    for query, value in zip(query_ids, found, strict=True):
        if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
            raise InputError(
                f"query {show_id(query)!r} has no {what}",
                where=f"{what}s",
                fix=f"pass one for every evaluated query ({len(query_ids)} of them)",
            )
    return found


def _groups(given: Any, query_ids: Sequence[bytes]) -> tuple[str, ...]:
    """Return the group of each query, with lone surrogates escaped so that files can store them."""
    groups = _per_query(given, query_ids, "group")
    return tuple(str(group).encode("utf-8", "backslashreplace").decode() for group in groups)


def _weights(given: Any, query_ids: Sequence[bytes]) -> tuple[float, ...]:
    """Return the weight of each query."""
    weights = []
    for query, weight in zip(query_ids, _per_query(given, query_ids, "weight"), strict=True):
        try:
            number = float(weight)
        except (TypeError, ValueError):
            number = math.nan
        if not 0 <= number <= _MOST_WEIGHT:
            raise InputError(
                f"weight {weight!r} of query {show_id(query)!r} is not valid",
                where="weights",
                fix=f"a weight is a number from 0 to {_MOST_WEIGHT:g}",
            )
        weights.append(number)
    if not any(weights):
        raise InputError("all weights are 0", where="weights", fix="give one query a weight above 0")
    return tuple(weights)
