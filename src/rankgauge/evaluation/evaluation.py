"""`evaluate()`: evaluate a run against judgments.

The steps, in order: check the arguments, read the judgments, measure the run block by block
XX.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from rankgauge.core.arguments import memory_size
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, Unjudged
from rankgauge.data.qrels import Qrels, read_qrels
from rankgauge.data.run import Run, map_blocks
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.blocks import (
    BlockResult,
    Context,
    add_weights,
    build_evaluation,
    evaluate_run,
    make_context,
    measure_block,
    merge_blocks,
)
from rankgauge.evaluation.plan import Plan
from rankgauge.evaluation.result import Evaluation
from rankgauge.formats.lines import Source
from rankgauge.formats.pieces import fits
from rankgauge.formats.readers import read_ids
from rankgauge.formats.registry import InFormat
from rankgauge.measures.measure import Measure, parse_all

if TYPE_CHECKING:
    # Only needed for measures that read more than grades, and for profiles.
    from rankgauge.data.special_qrels import SpecialQrels
    from rankgauge.data.stored_qrels import StoredQrels
    from rankgauge.profiles.deviations import Profile

_T = TypeVar("_T")
Queries: TypeAlias = Literal["all", "intersection"] | Iterable[Any] | os.PathLike[str]

# Approximate memory in bytes: per query (ids, numbers, counts) and per value.
_QUERY_BYTES, _VALUE_BYTES = 250, 17

DEFAULT_CUTOFFS = (1, 3, 5, 10)
DEFAULT_MEASURES = (
    *(f"{name}@{k}" for k in DEFAULT_CUTOFFS for name in ("P", "R", "F", "Success", "nDCG")),
    "RR",
    "AP",
)


def evaluate(  # noqa: PLR0913 - one parameter a choice
    qrels: Any,
    run: Any = None,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    ties: Ties = "trec",
    queries: Queries = "all",
    duplicates: Duplicates = "error",
    undefined: Undefined = "zero",
    unjudged: Unjudged = "not relevant",
    weights: Any = None,
    groups: Any = None,
    questions: Any = None,
    mix_origins: bool = False,
    draws: int = 0,
    seed: int = 0,
    profile: str | Profile | None = None,
    memory: str | int | None = None,
) -> Evaluation:
    """Evaluate a run: the value of each measure for each judged query.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts, or, for measures that read
            more than grades, special judgments (:meth:`SubtopicQrels.of`). Without `run`: records
            with both judgments and results, in memory or as the path of a file (see `Records`).
        run: The run: anything that :meth:`Run.of` accepts, or an iterator of blocks of queries,
            each a mapping, a data frame, or a run (all documents of a query must be in the same
            block).
        measures: Names (``"nDCG@10"``) or measures. Default: P, R, F1, Success, and nDCG at 1, 3,
            5, and 10; RR; AP.
        ties: Order of documents with equal scores: ``trec`` (document id, descending), ``input``
            (input order), ``best`` (higher grades first), or ``worst`` (lower grades first);
            ``mean`` averages the values over all orders.
        queries: The queries to average: ``all`` judged queries (a query missing from the run has an
            empty ranking), ``intersection`` (judged queries that are in the run), a list of ids, or
            the path of a file with one id per line.
        duplicates: Treatment of duplicate documents in a ranking: ``error`` raises an error;
            ``first`` keeps the first and ``best`` the one with the highest score.
        undefined: Treatment of undefined values: ``zero`` counts them as 0 in the mean; ``skip``
            excludes them.
        unjudged: Treatment of unjudged documents: ``not relevant``, or ``removed`` from the
            rankings (condensed lists).
        weights: Mapping of query id to weight, such as its traffic, with every evaluated query; or
            the name of a field of `questions`.
        groups: Mapping of query id to group, such as its type or language; or the name of a field
            of `questions`. See :meth:`Evaluation.by_group` and
            :func:`rankgauge.evaluation.group_means`.
        questions: Mapping of query id to fields, or the path of a file of queries (JSON lines or
            CSV). Questions whose field ``origin`` is ``generated`` are generated questions.
        mix_origins: Whether to average generated questions together with others; an error by
            default.
        draws: With ``ties="mean"``: number of random orders for measures whose mean over all orders
            has no closed form. If 0, such measures raise an error.
        seed: Seed of the draws.
        profile: Compute values as another tool does: one of `PROFILES`, such as ``ranx``. The
            profile determines `ties` and `queries`; a measure that the tool defines differently is
            printed under its actual name.
        memory: A limit such as ``"512MB"`` for files that do not fit in memory: they are read in
            parts, with temporary files if the rows of a query are not adjacent. The values are
            identical, bit by bit. The values of all queries, and all documents of the largest
            query, must fit in memory.

    Returns:
        Values per query, means, policies, and notes.

    Raises:
        UnknownName: For an unknown measure or policy.
        MismatchError: If judgments and run have no query in common.
        InputError: If an input is not valid; the message names the location. Also if only some
            questions are generated and `mix_origins` is not set.
        StorageError: If temporary files cannot be written.

    Example:
        >>> evaluate({"q1": {"d1", "d3"}}, {"q1": ["d1", "d2", "d3"]}, "P@2").mean()
        {'P@2': 0.5}
    """
    fields: Mapping[str, Mapping[str, Any]] | None = None
    if questions is not None or isinstance(weights, str) or isinstance(groups, str):
        from rankgauge.evaluation.origins import field_of, question_fields

        fields = known = question_fields(questions)
        weights, groups = field_of(known, weights, "weight"), field_of(known, groups, "group")
    plan = make_plan(measures, profile if isinstance(profile, str) else None)
    words = (ties, queries_policy(queries), duplicates, undefined, unjudged)
    policies = _make_policies(words, draws, seed)
    ids = selected_ids(queries)
    limit = None if memory is None else _memory_limit(memory, run, profile)
    if profile is not None:
        from rankgauge.evaluation.profile_evaluation import evaluate_profile

        made, judged = evaluate_profile(
            profile, plan.measures, (qrels, run), policies, queries=ids, usual=measures is None
        )
    else:
        if run is None:
            context, run = _read_records(qrels, plan, policies, ids)
        else:
            context = _read_context(qrels, plan, policies, ids, limit)
        made, judged = evaluate_run(run, context, limit), context.qrels
    made = add_weights(made, judged, weights, groups)
    if fields is None:
        return made
    from rankgauge.evaluation.origins import add_origins

    return add_origins(made, fields, mix_origins=mix_origins)


def make_plan(
    measures: str | Measure | Iterable[str | Measure] | None, dialect: str | None = None
) -> Plan:
    """Parse measures and determine their inputs."""
    names: tuple[Any, ...]
    if measures is None:
        names, dialect = DEFAULT_MEASURES, None
    elif isinstance(measures, str | Measure):
        names = (measures,)
    elif isinstance(measures, Iterable):
        names = tuple(measures)
    else:
        raise InputError(
            f"got {measures!r:.60} for the measures", where="measures",
            fix='pass names, such as ["nDCG@10", "AP"]',
        )  # fmt: skip
    for name in names:
        if not isinstance(name, str | Measure):
            parse_all(name)  # raises the error
    return _cached_plan(names, dialect)


@lru_cache(maxsize=256)
def _cached_plan(names: tuple[str | Measure, ...], dialect: str | None) -> Plan:
    """Return the plan of these measures; cached for loops over runs."""
    # Drop repeated measures: column names are unique.
    found = dict.fromkeys(measure for name in names for measure in parse_all(name, dialect))
    if not found:
        raise InputError(
            "no measure was given", where="measures", fix='name one, such as "nDCG@10"'
        )
    return Plan(tuple(found))


def queries_policy(queries: Queries) -> Literal["all", "intersection", "given"]:
    """Return the policy for the argument ``queries`` of :func:`evaluate`."""
    if isinstance(queries, str):
        if queries == "all":
            return "all"
        if queries == "intersection":
            return "intersection"
        raise UnknownName(
            f"queries={queries!r} is not valid", fix="choose all, intersection, or a list of ids"
        )
    if not isinstance(queries, Iterable | os.PathLike):
        raise InputError(
            f"got {queries!r:.60} for the queries", where="queries",
            fix="choose all, intersection, or a list of ids",
        )  # fmt: skip
    return "given"


def selected_ids(queries: Queries) -> list[Any] | None:
    """Return the ids of the queries to average; None if a policy decides."""
    if isinstance(queries, os.PathLike):
        return list(read_ids(queries))
    return None if isinstance(queries, str) else list(queries)


def _make_policies(words: tuple[Any, ...], draws: int, seed: int) -> Policies:
    # Policies reports values that are not text (and may not be hashable).
    known = all(isinstance(word, str) for word in words)
    policies = _cached_policies(*words) if known else Policies(*words)
    return replace(policies, draws=draws, seed=seed) if (draws, seed) != (0, 0) else policies


_cached_policies = lru_cache(maxsize=64)(Policies)


def _memory_limit(memory: str | int, run: Any, profile: object) -> int:
    """Return the memory limit in bytes; raise an error for inputs that are read whole."""
    limit = memory_size(memory)
    if profile is not None or run is None:
        what = "with a profile" if run is not None else "for records"
        raise InputError(
            f"got memory={memory!r:.60} {what}, which is read whole", where="memory",
            fix="leave it out" if run is not None else "pass judgments and a run",
        )  # fmt: skip
    return limit


def _read_context(  # noqa: PLR0917 - what an evaluation is of
    source: Any,
    plan: Plan,
    policies: Policies,
    queries: list[Any] | None,
    memory: int | None = None,
) -> Context:
    """Read the judgments in the form that the measures need."""
    judged = (
        _judgments(source, plan.reads)
        if memory is None
        else _fitting_judgments(source, plan.reads, memory)
    )
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
    plan, queries = context.plan, len(context.qrels)
    columns = len(plan.measures) + len(plan.depths) + len(context.first_ranks)
    wanted = queries * (_QUERY_BYTES + _VALUE_BYTES * columns)
    if wanted > memory:
        raise InputError(
            f"the values of {queries:,} queries take about {wanted // 10**6:,} MB of memory",
            where="memory",
            fix=f'pass memory="{wanted // 10**9 + 1}GB", or fewer measures',
        )


def _judgments(source: Any, reads: str) -> Qrels | SpecialQrels:
    if not reads:
        return Qrels.of(source)
    return _special_qrels(reads).of(source)


def _special_qrels(reads: str) -> type[SpecialQrels]:
    """Return the class of special judgments with this input, importing it on demand."""
    from rankgauge.data import PreferenceQrels, SampledQrels, SubtopicQrels

    kinds: tuple[type[SpecialQrels], ...] = (PreferenceQrels, SampledQrels, SubtopicQrels)
    return next(kind for kind in kinds if kind.reads == reads)


def _fitting_judgments(source: Any, reads: str, memory: int) -> Qrels | SpecialQrels | StoredQrels:
    """Return judgments in memory, or on disk if they need more than `memory` bytes."""
    if reads:
        return _judgments(source, reads)
    from rankgauge.data.stored_qrels import StoredQrels

    if isinstance(source, StoredQrels):
        return source
    if isinstance(source, str | os.PathLike) and not fits(source, memory):
        return StoredQrels(source, memory)
    return Qrels.of(source)


def _read_records(
    source: Any, plan: Plan, policies: Policies, queries: list[Any] | None
) -> tuple[Context, Run]:
    """Read records with both judgments and a run."""
    from rankgauge.data.records import Records

    records = Records.of(source)
    if plan.reads:
        raise InputError(
            f"{plan.measures[plan.special[0]]} reads {plan.reads}, which records do not have",
            where="measures",
            fix="pass judgments and a run: evaluate(judgments, run, ...)",
        )
    context = make_context(
        records.qrels, plan, policies, queries, graded=records.graded, notes=records.notes
    )
    return context, records.run


def evaluate_blocks(
    judged: Qrels | SpecialQrels,
    run: Any,
    measures: Sequence[Measure],
    look: Callable[[Run], _T],
    *,
    name: str | None = None,
    policies: Policies = Policies(),  # noqa: B008 - cannot be changed
    queries: list[Any] | None = None,
) -> tuple[Evaluation, list[_T]]:
    """Evaluate a run and apply `look` to each of its blocks, reading a file only once."""
    context = _read_context(judged, make_plan(measures), policies, queries)

    def each(block: Run) -> tuple[BlockResult, _T]:
        return measure_block(block, context), look(block)

    pairs = map_blocks(run, each, name)
    result = merge_blocks(result for result, _ in pairs)
    return build_evaluation(result, context), [seen for _, seen in pairs]


def evaluate_each(
    judgments: Sequence[Qrels],
    run: Any,
    measures: Sequence[Measure],
    *,
    name: str | None = None,
    policies: Policies = Policies(),  # noqa: B008 - cannot be changed
    queries: list[Any] | None = None,
) -> list[Evaluation]:
    """Evaluate a run with several sets of judgments, reading a file only once."""
    plan = make_plan(measures)
    contexts = [_read_context(judged, plan, policies, queries) for judged in judgments]
    blocks = map_blocks(run, lambda block: [measure_block(block, one) for one in contexts], name)
    results = map(merge_blocks, zip(*blocks, strict=True))
    return [build_evaluation(*each) for each in zip(results, contexts, strict=True)]


def prepare_judgments(
    source: Any, measures: str | Measure | Iterable[str | Measure] | None
) -> Qrels | SpecialQrels:
    """Read judgments once, in the form that these measures need, to evaluate many runs."""
    return _judgments(source, make_plan(measures).reads)


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
        return _fitting_judgments(source, "", memory_size(memory))
    if not reads:
        return read_qrels(path, format=format)
    return _special_qrels(reads).read(path, format)
