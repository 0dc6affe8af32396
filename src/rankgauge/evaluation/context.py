"""The judgments, measures, and policies of an evaluation, which all blocks of a run share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgauge.core import native
from rankgauge.core.arguments import memory_size
from rankgauge.core.policies import BY_GRADE, Policies
from rankgauge.data.joined_blocks import Judgments
from rankgauge.data.judged_run import BoolArray
from rankgauge.data.qrels import Qrels, judged_number, read_qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.evaluation.plan import Plan, make_plan
from rankgauge.formats.lines import Source
from rankgauge.formats.pieces import fits
from rankgauge.formats.registry import InFormat
from rankgauge.measures.measure import Measure

if TYPE_CHECKING:
    # Only needed for measures that read more than grades.
    from rankgauge.data.special_qrels import SpecialQrels

    # Only needed for judgments that do not fit in memory.
    from rankgauge.data.stored_qrels import StoredQrels

# Approximate memory in bytes: per query (ids, numbers, counts) and per value.
_QUERY_BYTES, _VALUE_BYTES = 250, 17


class Context(NamedTuple):
    """Data shared by all blocks of an evaluation."""

    judgments: Judgments  # judgments, and the policies
    special: SpecialQrels | None  # special judgments, if a measure reads them
    plan: Plan  # the measures and their inputs
    # The measures to compute: without unjudged documents if the policies remove them.
    measures: Sequence[Measure]
    # `Plan.first_ranks`, with the same treatment of unjudged documents
    first_ranks: Sequence[Measure]
    # Numbers of the measures that are estimated from random orders of ties.
    estimated: Sequence[int]
    selected: BoolArray  # (Q,) whether each judged query is evaluated
    notes: tuple[str, ...]  # notes of the reader of the judgments


def make_context(
    qrels: Qrels,
    plan: Plan,
    policies: Policies,
    queries: Iterable[Any] | None,
    *,
    graded: Qrels | None = None,
    special: SpecialQrels | None = None,
    notes: tuple[str, ...] = (),
    stored: StoredQrels | None = None,
) -> Context:
    """Return the data shared by all blocks; raise an error if judgments or policies do not fit."""
    native.warn_if_missing()
    if not len(qrels):
        raise InputError("the judgments have no queries", where="judgments", fix="pass at least one")
    if policies.ties in BY_GRADE:
        plan.refuse_special(policies.ties)
    if policies.ties == "mean":
        plan.refuse_open(policies.draws)
    selected = np.ones(len(qrels), dtype=bool)
    if queries is not None:
        numbers = [judged_number(qrels, query) for query in queries]
        if not numbers:
            raise InputError("the list of queries is empty", where="queries", fix="pass at least one")
        selected[:] = False
        selected[numbers] = True
    condensed, averaged = policies.unjudged == "removed", policies.ties == "mean"
    # The mean rank over all orders of ties is not the rank of a document.
    firsts = () if averaged else plan.first_ranks
    compiled = policies.ties not in BY_GRADE and not condensed and selected.all()
    return Context(
        Judgments(qrels, graded or qrels, policies, plan.program if compiled else None, stored),
        special,
        plan,
        measures=plan.condensed if condensed else plan.measures,
        first_ranks=[first(judged_only=True) for first in firsts] if condensed else firsts,
        estimated=plan.open if averaged else (),
        selected=selected,
        notes=(*qrels.table.notes, *notes),
    )


def read_context(  # noqa: PLR0917 - what an evaluation is of
    source: Any, plan: Plan, policies: Policies, queries: list[Any] | None, memory: int | None = None
) -> Context:
    """Read the judgments in the form that the measures need."""
    judged = _judgments(source, plan.reads, memory)
    if isinstance(judged, Qrels):
        context = make_context(judged, plan, policies, queries)
    else:
        from rankgauge.data.special_qrels import SpecialQrels

        if isinstance(judged, SpecialQrels):
            context = make_context(judged.qrels, plan, policies, queries, special=judged)
        else:
            context = make_context(judged.outline(), plan, policies, queries, stored=judged)
    if memory is not None:
        _refuse_many_values(context, memory)
    return context


def _refuse_many_values(context: Context, memory: int) -> None:
    """Raise an error if the values of all queries, which stay in memory, exceed the limit."""
    plan, queries = context.plan, len(context.judgments.qrels)
    columns = len(plan.measures) + len(plan.depths) + len(context.first_ranks)
    wanted = queries * (_QUERY_BYTES + _VALUE_BYTES * columns)
    if wanted > memory:
        raise InputError(
            f"the values of {queries:,} queries take about {wanted // 10**6:,} MB of memory",
            where="memory",
            fix=f'pass memory="{wanted // 10**9 + 1}GB", or fewer measures',
        )


def _judgments(source: Any, reads: str, memory: int | None = None) -> Qrels | SpecialQrels | StoredQrels:
    """Return judgments in memory; on disk if they need more than `memory` bytes."""
    if reads:
        return _special_qrels(reads).of(source)
    if memory is not None:
        from rankgauge.data.stored_qrels import StoredQrels

        if isinstance(source, StoredQrels):
            return source
        if isinstance(source, str | os.PathLike) and not fits(source, memory):
            return StoredQrels(source, memory)
    return Qrels.of(source)


def _special_qrels(reads: str) -> type[SpecialQrels]:
    """Return the class of special judgments with this input, importing it on demand."""
    from rankgauge.data import PreferenceQrels, SampledQrels, SubtopicQrels

    kinds: tuple[type[SpecialQrels], ...] = (PreferenceQrels, SampledQrels, SubtopicQrels)
    return next(kind for kind in kinds if kind.reads == reads)


def read_records(source: Any, plan: Plan, policies: Policies, queries: list[Any] | None) -> tuple[Context, Run]:
    """Read records with both judgments and a run."""
    from rankgauge.data.records import Records

    records = Records.of(source)
    if plan.reads:
        raise InputError(
            f"{plan.measures[plan.special[0]]} reads {plan.reads}, which records do not have",
            where="measures",
            fix="pass judgments and a run: evaluate(judgments, run, ...)",
        )
    context = make_context(records.qrels, plan, policies, queries, graded=records.graded, notes=records.notes)
    return context, records.run


def prepare_judgments(source: Any, measures: str | Measure | Iterable[str | Measure] | None) -> Qrels | SpecialQrels:
    """Read judgments once, in the form that these measures need, to evaluate many runs."""
    reads = make_plan(measures).reads
    return _special_qrels(reads).of(source) if reads else Qrels.of(source)


def read_judgments(
    path: Source,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    format: str | None = None,
    memory: str | int | None = None,
) -> Qrels | SpecialQrels | StoredQrels:
    """Read judgments in the form that these measures need, such as subtopic judgments.

    Args:
        path: A file, or anything else that :func:`read_qrels` or the reader of the special
            judgments accepts.
        measures: Names (``"alpha_nDCG@10"``) or measures.
        format: The format, if the file name and first line are ambiguous.
        memory: A limit such as ``"512MB"``: judgments that do not fit stay on disk and can be used
            to evaluate any number of runs with the same `memory`.

    Returns:
        `Qrels`; `SubtopicQrels`, `SampledQrels`, or `PreferenceQrels` if one of the measures reads
        more than grades; `StoredQrels` if the judgments do not fit in memory.

    Raises:
        InputError: If the file cannot be read as judgments of this kind.
        UnknownName: For an unknown measure.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> read_judgments(sample_path("qrels.txt"), "AP")
        <Qrels: 30 queries, 289 judgments>
    """
    reads = make_plan(measures).reads
    if not reads and memory is not None:
        source = path if format is None else InFormat(path, format)
        return _judgments(source, "", memory_size(memory))
    if not reads:
        return read_qrels(path, format=format)
    return _special_qrels(reads).read(path, format)
