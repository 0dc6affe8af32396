"""The judgments, measures, and policies of an evaluation, which all blocks of a run share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgauge.core import native
from rankgauge.core.arguments import memory_size
from rankgauge.core.ids import IntArray, freeze
from rankgauge.core.policies import BY_GRADE, Policies
from rankgauge.data.joined_blocks import Judgments
from rankgauge.data.judged_run import BoolArray, Values
from rankgauge.data.qrels import Qrels, judged_number, read_qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.formats.columns import JUDGMENTS
from rankgauge.formats.lines import Source
from rankgauge.formats.pieces import PairFile
from rankgauge.formats.registry import InFormat
from rankgauge.measures.compiled import program, step, step_of
from rankgauge.measures.declaration import SPECIAL
from rankgauge.measures.measure import Measure, parse, parse_all

if TYPE_CHECKING:
    # Only needed for measures that read more than grades.
    from rankgauge.data.special_qrels import SpecialQrels

    # Only needed for judgments that do not fit in memory.
    from rankgauge.data.storage import StoredQrels

# Depth of the judged share in notes if no measure has a deeper cut-off.
JUDGED_AT = 10
# Measures whose perfect value requires every relevant document at its ideal rank.
_WHOLE = {"AP", "nDCG", "Rprec"}
DEFAULT_CUTOFFS = (1, 3, 5, 10)
DEFAULT_MEASURES = (
    *(f"{name}@{k}" for k in DEFAULT_CUTOFFS for name in ("P", "R", "F", "Success", "nDCG")),
    "RR",
    "AP",
)


class Plan:
    """The inputs and special cases of a set of measures, determined once for any number of runs.

    Attributes:
        measures: The measures.
        columns: The indices of measures that do not read special judgments.
        special: The indices of measures that read special judgments.
        reads: The kind of special judgments, such as ``subtopics``; empty without special measures.
        of_grades: The indices of measures that read grades.
        of_judgments: The indices of the other measures in `columns`.
        depths: The cut-offs of the measures and 10, ascending: depths of the judged share.
        deepest: The deepest cut-off; 10 without a cut-off.
        first_ranks: FirstRel for each relevance level of a reciprocal rank, for the note on the
            ranks of the first relevant documents, which the mean hides.
        unjudged: 1 if a measure distinguishes documents judged not relevant from unjudged ones, else 0.
        max_cutoff: The deepest cut-off; 0 without a cut-off.
        level: The lowest relevance level; 0 if it is above 1, which is a deliberate choice.
        recalls: The measures that are recall at a cut-off.
        whole: The indices of measures that are 1 only for an ideal ranking.
    """

    def __init__(self, measures: tuple[Measure, ...]) -> None:
        self.measures = measures
        every = range(len(measures))
        self.special = [n for n in every if measures[n].declaration.reads in SPECIAL]
        self.reads = _sole([measures[n] for n in self.special])
        self.columns = [n for n in every if n not in self.special]
        self.of_grades = [n for n in self.columns if measures[n].declaration.reads == "grades"]
        self.of_judgments = [n for n in self.columns if n not in self.of_grades]
        depths = sorted({m.cutoff for m in measures if m.cutoff is not None})
        self.deepest = depths[-1] if depths else JUDGED_AT
        self.depths = sorted({*depths, JUDGED_AT})
        firsts = (parse("FirstRel")(rel=m.rel) for m in measures if m.name == "RR")
        self.first_ranks = list(dict.fromkeys(firsts))
        self.unjudged = int(any(_reads_judged(measure) for measure in measures))
        self.max_cutoff = depths[-1] if depths else 0
        binary = (m.level for m in measures if m.declaration.reads in {"binary", *SPECIAL})
        lowest = min((level for level in binary if level is not None), default=0.0)
        self.level = lowest if lowest <= 1 else 0.0
        self.recalls = [m for m in measures if m.name == "R" and m.cutoff is not None]
        self.whole = [n for n in self.columns if measures[n].name in _WHOLE]

    @cached_property
    def open(self) -> tuple[int, ...]:
        """Indices of the measures without a closed form for the mean over all orders of ties."""
        return tuple(n for n in self.columns if not self.measures[n].has_tie_mean)

    @cached_property
    def compiled(self) -> tuple[int, ...]:
        """Indices of the measures that the compiled core computes."""
        return tuple(n for n in self.columns if step_of(self.measures[n]) is not None)

    def check_ties(self, ties: str, draws: int) -> None:
        """Raise an error for measures that do not support a tie policy based on grades.

        These are measures of special judgments, and those with no closed form for the mean over all
        orders, unless orders are drawn.
        """
        if self.special:
            known = {"best": "best order", "worst": "worst order"}
            raise InputError(
                f"{', '.join(str(self.measures[n]) for n in self.special)}: the "
                f"{known.get(ties, 'mean over all orders')} of equal scores is not available "
                f"for measures of {self.reads}",
                where=f"ties={ties}",
                fix="use ties='trec' (the default) or ties='input'",
            )
        if ties == "mean" and self.open and not draws:
            raise InputError(
                f"{', '.join(str(self.measures[n]) for n in self.open)}: no closed form for the "
                "mean over all orders of equal scores",
                where="ties=mean",
                fix="omit ties=mean, or estimate the mean from random orders: evaluate(..., draws=1000) "
                "(draws = 1000 in [evaluation] of rankgauge.toml)",
            )


class Layout(NamedTuple):
    """The rows of `Measured`."""

    values: slice  # the value of each measure, NaN where undefined
    judged: slice  # the share of judged documents at each depth, NaN without results
    first_ranks: slice  # the rank of the first relevant document, NaN without one
    beyond: slice  # 1 if more than k documents are relevant, else 0, for each recall at k
    errors: slice  # the standard error of each estimated value


class Variant(NamedTuple):
    """The measures of a plan with the same treatment of ties and unjudged documents."""

    measures: Sequence[Measure]  # without unjudged documents where the measures support it
    first_ranks: Sequence[Measure]  # `Plan.first_ranks`, treated in the same way
    estimated: Sequence[int]  # numbers of the measures that are estimated from random orders of ties
    layout: Layout  # the rows of `Measured`
    # Instructions for the compiled core, for its measures and the rows of the notes; None if it does
    # not support one of the notes.
    program: Values | None
    unjudged: int  # see `Joined.tied`


@lru_cache(maxsize=256)
def _variant(plan: Plan, unjudged: str, ties: str) -> Variant:
    """Return the measures of a plan under these policies; cached as the plan is."""
    condensed = [unjudged == "removed" and "judged_only" in m.declaration.words for m in plan.measures]
    measures = [m(judged_only=True) if ignores else m for m, ignores in zip(plan.measures, condensed, strict=True)]
    # The mean rank over all orders of ties is not the rank of a document.
    firsts = [] if ties == "mean" else [first(judged_only=unjudged == "removed") for first in plan.first_ranks]
    estimated = plan.open if ties == "mean" else ()
    sizes = [len(measures), len(plan.depths), len(firsts), len(plan.recalls), len(estimated)]
    layout = Layout(*(slice(start, stop) for start, stop in pairwise(accumulate(sizes, initial=0))))
    rows = [
        *(step_of(measures[n]) for n in plan.compiled),
        *(step("Judged", depth) for depth in plan.depths),
        *map(step_of, firsts),
        *(step("Beyond", recall.k, recall.level) for recall in plan.recalls),
    ]
    instructions = None if plan.special else program(rows)
    return Variant(measures, firsts, estimated, layout, instructions, 2 if all(condensed) else plan.unjudged)


def _sole(special: Sequence[Measure]) -> str:
    """Return the kind of special judgments that these measures read; empty without measures."""
    kinds: dict[str, Measure] = {}
    for measure in special:
        kinds.setdefault(measure.declaration.reads, measure)
    if len(kinds) > 1:
        (kind, first), (other, second), *_ = kinds.items()
        raise InputError(
            f"{first} reads {kind} and {second} reads {other}: no judgments have both",
            where="measures",
            fix="evaluate each separately with the judgments it reads",
        )
    return next(iter(kinds), "")


def _reads_judged(measure: Measure) -> bool:
    """Return whether a measure distinguishes documents judged not relevant from unjudged ones."""
    gain = dict(measure.params).get("gain")
    gains_for_nothing = isinstance(gain, tuple) and dict(gain).get(0.0, 0.0) > 0
    return measure.declaration.reads == "judged" or gains_for_nothing


def make_plan(measures: str | Measure | Iterable[str | Measure] | None, dialect: str | None = None) -> Plan:
    """Parse measures and determine their inputs."""
    names: tuple[Any, ...]
    if measures is None:
        names, dialect = DEFAULT_MEASURES, None
    elif isinstance(measures, str) or not isinstance(measures, Iterable):
        names = (measures,)
    else:
        names = tuple(measures)
    try:
        return _cached_plan(names, dialect)
    except TypeError:  # not hashable, and thus no measure
        return _cached_plan.__wrapped__(names, dialect)


@lru_cache(maxsize=256)
def _cached_plan(names: tuple[str | Measure, ...], dialect: str | None) -> Plan:
    """Return the plan of these measures; cached for loops over runs."""
    # Drop repeated measures: column names are unique.
    measures = dict.fromkeys(measure for name in names for measure in parse_all(name, dialect))
    if not measures:
        raise InputError("no measure was given", where="measures", fix='name one, such as "nDCG@10"')
    return Plan(tuple(measures))


class Measured(NamedTuple):
    """Values of queries."""

    numbers: IntArray  # (n,) numbers of the queries in the judgments, ascending
    rows: Values  # (C, n) the values of each query, in the order of `Layout`


# Approximate memory in bytes: per query (ids, numbers, counts) and per value.
_QUERY_BYTES, _VALUE_BYTES = 250, 17


class Context(NamedTuple):
    """Data shared by all blocks of an evaluation."""

    judgments: Judgments  # judgments, and the policies
    special: SpecialQrels | None  # special judgments, if a measure reads them
    plan: Plan  # the measures and their inputs
    variant: Variant  # the measures to compute
    selected: BoolArray  # (Q,) whether each judged query is evaluated
    notes: tuple[str, ...]  # notes of the reader of the judgments


@lru_cache(maxsize=1)
def _all_of(queries: int) -> BoolArray:
    """Return True for each of these queries; cached for loops over runs."""
    selected = np.ones(queries, dtype=bool)
    freeze(selected)
    return selected


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
    selected = _all_of(len(qrels))
    if not len(selected):
        raise InputError("the judgments have no queries", where="judgments", fix="pass at least one")
    if policies.ties in BY_GRADE:
        plan.check_ties(policies.ties, policies.draws)
    if queries is not None:
        numbers = [judged_number(qrels, query) for query in queries]
        if not numbers:
            raise InputError("the list of queries is empty", where="queries", fix="pass at least one")
        selected = np.zeros(len(qrels), dtype=bool)
        selected[numbers] = True
    variant = _variant(plan, policies.unjudged, policies.ties)
    return Context(
        Judgments(
            qrels,
            graded or qrels,
            policies,
            variant.program if queries is None or selected.all() else None,
            variant.unjudged,
            stored,
        ),
        special,
        plan,
        variant,
        selected,
        (*qrels.table.notes, *notes),
    )


def read_context(  # noqa: PLR0917 - what an evaluation is of
    source: Any, plan: Plan, policies: Policies, queries: list[Any] | None, memory: int | None = None
) -> Context:
    """Read the judgments in the form that the measures need."""
    judged = prepare_judgments(source, plan.reads, memory)
    if isinstance(judged, Qrels):
        context = make_context(judged, plan, policies, queries)
    else:
        from rankgauge.data.special_qrels import SpecialQrels

        if isinstance(judged, SpecialQrels):
            context = make_context(judged.qrels, plan, policies, queries, special=judged)
        else:
            context = make_context(judged.outline(), plan, policies, queries, stored=judged)
    if memory is None:
        return context
    # The values of all queries stay in memory.
    columns = context.variant.layout.errors.stop
    wanted = len(context.selected) * (_QUERY_BYTES + _VALUE_BYTES * columns)
    if wanted > memory:
        raise InputError(
            f"the values of {len(context.selected):,} queries take about {wanted // 10**6:,} MB of memory",
            where="memory",
            fix=f'pass memory="{wanted // 10**9 + 1}GB", or fewer measures',
        )
    return context


def prepare_judgments(source: Any, reads: str, memory: int | None = None) -> Qrels | SpecialQrels | StoredQrels:
    """Return judgments of this kind, read once to evaluate many runs; on disk if they exceed `memory` bytes."""
    if reads:
        return special_qrels(reads).of(source)
    if memory is not None:
        from rankgauge.data.storage import StoredQrels

        if isinstance(source, StoredQrels):
            return source
        if isinstance(source, str | os.PathLike) and not PairFile(source, JUDGMENTS).fits(memory):
            return StoredQrels(source, memory)
    return Qrels.of(source)


def special_qrels(reads: str) -> type[SpecialQrels]:
    """Return the class of special judgments with this input, importing it on demand."""
    from rankgauge.data import PreferenceQrels, SampledQrels, SubtopicQrels

    return next(kind for kind in (PreferenceQrels, SampledQrels, SubtopicQrels) if kind.reads == reads)


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
        return prepare_judgments(path if format is None else InFormat(path, format), "", memory_size(memory))
    if not reads:
        return read_qrels(path, format=format)
    return special_qrels(reads).read(path, format)
