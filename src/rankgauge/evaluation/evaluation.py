"""`evaluate()`, from its arguments to the `Evaluation`.

The steps are in the order in which they are done: check the arguments, read the judgments, measure
the run block by block (`partial.measure_block`), merge the blocks and finish (`partial.finish`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from rankgauge.core.arguments import memory_size
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, Unjudged
from rankgauge.data.qrels import Qrels, read_qrels
from rankgauge.data.run import Run, map_blocks
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.partial import (
    Context,
    Partial,
    add_weights,
    finish,
    make_context,
    measure_block,
    measure_file,
    merge,
)
from rankgauge.evaluation.plan import Plan
from rankgauge.evaluation.result import Evaluation
from rankgauge.formats.columns import RUN, columns_of
from rankgauge.formats.frames import is_frame
from rankgauge.formats.lines import Source
from rankgauge.formats.pieces import fits
from rankgauge.formats.readers import read_ids
from rankgauge.formats.registry import InFormat
from rankgauge.measures.measure import Measure, parse_all

if TYPE_CHECKING:
    # Loaded where a measure reads more than grades, or another tool's way is asked for.
    from rankgauge.data.special_qrels import SpecialQrels
    from rankgauge.data.stored_qrels import StoredQrels
    from rankgauge.profiles.deviations import Profile

_T = TypeVar("_T")
Queries: TypeAlias = Literal["all", "intersection"] | Iterable[Any] | os.PathLike[str]

# Bytes of a query in the results: its ids, numbers and counts; and of each of its values.
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
        qrels: The judgments: anything that :meth:`Qrels.of` takes, or, for measures that read more
            than grades, special judgments (:meth:`SubtopicQrels.of`). Without a run: records that
            have both, in memory or as the path of a file (see `Records`).
        run: The run: anything that :meth:`Run.of` takes, or an iterator of blocks of queries, each
            a mapping, a data frame or a run (a query is in one block only).
        measures: Names (``"nDCG@10"``) or measures. By default: P, R, F1, Success and nDCG at 1, 3,
            5, 10, RR and AP.
        ties: Order of documents with equal scores: ``trec`` (document id descending), ``input``
            (the order given), ``best`` (the higher grade first), ``worst`` (the lower grade first);
            or ``mean``, the mean of the values over all orders.
        queries: The queries to average: ``all`` judged ones (a query missing from the run has an
            empty ranking), ``intersection`` (judged and in the run), their ids, or the path of a
            file with one id per line.
        duplicates: Duplicate documents in a ranking are an ``error``; ``first`` or ``best`` keeps
            one.
        undefined: An undefined value counts as ``zero`` in the mean, or is excluded (``skip``).
        unjudged: Documents without a judgment count as ``not relevant``, or are ``removed`` from
            the rankings first (condensed lists).
        weights: Query id to weight, such as its traffic; every evaluated query needs one. Or the
            name of a field of `questions`.
        groups: Query id to group, such as its type or language; see :meth:`Evaluation.by_group`
            and :func:`rankgauge.evaluation.group_means`. Or the name of a field of `questions`.
        questions: Query id to fields, or the path of a file of queries: JSON lines or CSV. The
            field ``origin`` says which questions are ``generated``.
        mix_origins: Whether generated and other questions may share a mean; by default this is
            refused.
        draws: With ``ties="mean"``: number of random orders for a measure whose mean over all
            orders has no closed form; without it, such measures are refused.
        seed: Seed of the draws.
        profile: Compute values as another tool does: one of `PROFILES`, such as ``ranx``. It
            determines ties and queries; a measure that the tool defines differently is printed
            under its actual name.
        memory: A limit such as ``"512MB"``, for files that do not fit in memory: they are read in
            parts, with temporary files if the rows of a query are not adjacent. The values are the
            same, bit by bit. The values of all queries, and all documents of the largest query, are
            in memory at once.

    Returns:
        Values per query, means, policies and notes.

    Raises:
        UnknownName: For an unknown measure or choice.
        MismatchError: If judgments and run have no query in common.
        InputError: If an input is not valid; the message names the location. If some questions are
            generated and others are not.
        StorageError: If temporary files cannot be written.

    Example:
        >>> evaluate({"q1": {"d1", "d3"}}, {"q1": ["d1", "d2", "d3"]}, "P@2").mean()
        {'P@2': 0.5}
    """
    if questions is not None or isinstance(weights, str) or isinstance(groups, str):
        from rankgauge.evaluation.origins import add_origins, field_of, question_fields

        fields = question_fields(questions)
        weights, groups = field_of(fields, weights, "weight"), field_of(fields, groups, "group")
        made = evaluate(
            qrels, run, measures, ties=ties, queries=queries, duplicates=duplicates,
            undefined=undefined, unjudged=unjudged, weights=weights, groups=groups, draws=draws,
            seed=seed, profile=profile, memory=memory,
        )  # fmt: skip
        return add_origins(made, fields, mix_origins=mix_origins)
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
        return add_weights(made, judged, weights, groups)
    if run is None:
        context, run = _read_records(qrels, plan, policies, ids)
    else:
        context = _read_context(qrels, plan, policies, ids, limit)
    partial = merge(_measure_blocks(run, context, limit))
    return add_weights(finish(partial, context), context.qrels, weights, groups)


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
            fix='give names, such as ["nDCG@10", "AP"]',
        )  # fmt: skip
    for name in names:
        if not isinstance(name, str | Measure):
            parse_all(name)  # which refuses it
    return _cached_plan(names, dialect)


@lru_cache(maxsize=256)
def _cached_plan(names: tuple[str | Measure, ...], dialect: str | None) -> Plan:
    """The plan of these measures: kept, since a loop over runs asks for the same each time."""
    # Each once: a column has one name.
    found = dict.fromkeys(measure for name in names for measure in parse_all(name, dialect))
    if not found:
        raise InputError(
            "no measure was given", where="measures", fix='name one, such as "nDCG@10"'
        )
    return Plan(tuple(found))


def queries_policy(queries: Queries) -> Literal["all", "intersection", "given"]:
    """Which queries are averaged, as a policy."""
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
    # Anything but text is refused by the policies themselves.
    known = all(isinstance(word, str) for word in words)
    policies = _cached_policies(*words) if known else Policies(*words)
    return replace(policies, draws=draws, seed=seed) if (draws, seed) != (0, 0) else policies


_cached_policies = lru_cache(maxsize=64)(Policies)


def _memory_limit(memory: str | int, run: Any, profile: object) -> int:
    """Return the bytes of memory that files may take."""
    limit = memory_size(memory)
    if profile is not None or run is None:
        what = "with a profile" if run is not None else "for records"
        raise InputError(
            f"got memory={memory!r:.60} {what}, which is read whole", where="memory",
            fix="leave it out" if run is not None else "give judgments and a run",
        )  # fmt: skip
    return limit


def _read_context(  # noqa: PLR0917 - what an evaluation is of
    source: Any,
    plan: Plan,
    policies: Policies,
    queries: list[Any] | None,
    memory: int | None = None,
) -> Context:
    """Read the judgments as the measures need them."""
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
    """Refuse more values than fit: those of all queries are in memory at once."""
    plan, queries = context.plan, len(context.qrels)
    columns = len(plan.measures) + len(plan.depths) + len(context.first_ranks)
    wanted = queries * (_QUERY_BYTES + _VALUE_BYTES * columns)
    if wanted > memory:
        raise InputError(
            f"the values of {queries:,} queries take about {wanted // 10**6:,} MB of memory",
            where="memory",
            fix=f'give memory="{wanted // 10**9 + 1}GB", or fewer measures',
        )


def _judgments(source: Any, reads: str) -> Qrels | SpecialQrels:
    if not reads:
        return Qrels.of(source)
    return _special_qrels(reads).of(source)


def _special_qrels(reads: str) -> type[SpecialQrels]:
    """Return the class of judgments that measures read, loaded only where one asks for them."""
    from rankgauge.data import PreferenceQrels, SampledQrels, SubtopicQrels

    kinds: tuple[type[SpecialQrels], ...] = (PreferenceQrels, SampledQrels, SubtopicQrels)
    return next(kind for kind in kinds if kind.reads == reads)


def _fitting_judgments(source: Any, reads: str, memory: int) -> Qrels | SpecialQrels | StoredQrels:
    """Judgments in so many bytes of memory: on disk, where they do not fit."""
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
            fix="give judgments and a run: evaluate(judgments, run, ...)",
        )
    context = make_context(
        records.qrels, plan, policies, queries, graded=records.graded, notes=records.notes
    )
    return context, records.run


def _measure_blocks(run: Any, context: Context, memory: int | None = None) -> list[Partial]:
    """Measure a run in blocks, if it is a file or an iterator of blocks."""
    if isinstance(run, str | os.PathLike):
        found = measure_file(run, context, memory)
        return found or map_blocks(run, lambda block: measure_block(block, context), memory=memory)
    return [measure_block(block, context) for block in _blocks_of(run)]


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
    """Evaluate a run, and inspect its blocks on the way: a file is read once."""
    context = _read_context(judged, make_plan(measures), policies, queries)

    def each(block: Run) -> tuple[Partial, _T]:
        return measure_block(block, context), look(block)

    pairs = map_blocks(run, each, name)
    return finish(merge(partial for partial, _ in pairs), context), [seen for _, seen in pairs]


def evaluate_each(
    judgments: Sequence[Qrels],
    run: Any,
    measures: Sequence[Measure],
    *,
    name: str | None = None,
    policies: Policies = Policies(),  # noqa: B008 - cannot be changed
    queries: list[Any] | None = None,
) -> list[Evaluation]:
    """Evaluate a run by several judgments: a file is read once."""
    plan = make_plan(measures)
    contexts = [_read_context(judged, plan, policies, queries) for judged in judgments]
    blocks = map_blocks(run, lambda block: [measure_block(block, one) for one in contexts], name)
    partials = zip(*blocks, strict=True)
    return [finish(merge(one), context) for one, context in zip(partials, contexts, strict=True)]


def _blocks_of(run: Any) -> Iterator[Any]:
    """The run, or its blocks if it is an iterator of them."""
    if not isinstance(run, Iterator):
        yield run
        return
    first = next(run, None)
    if first is None:
        raise InputError(
            "the iterator is empty", where="run", fix="yield at least one block of queries"
        )
    if not _is_block(first):
        yield chain([first], run)
        return
    yield first
    yield from run


def _is_block(item: Any) -> bool:
    """Return whether it is a run of some queries; otherwise it is one row of a run."""
    if isinstance(item, Run):
        return True
    if isinstance(item, Mapping):
        columns = columns_of(item, RUN)
        return columns is None or not isinstance(item[columns.query], str | int | bytes)
    return is_frame(item)


def prepare_judgments(
    source: Any, measures: str | Measure | Iterable[str | Measure] | None
) -> Qrels | SpecialQrels:
    """Read judgments once, as these measures need them, to evaluate many runs."""
    return _judgments(source, make_plan(measures).reads)


def read_judgments(
    path: Source,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    format: str | None = None,
    memory: str | int | None = None,
) -> Qrels | SpecialQrels | StoredQrels:
    """Read judgments as these measures need them, such as by subtopic.

    Args:
        path: A file, or what else :func:`read_qrels` or the reader of such judgments takes.
        measures: Names (``"alpha_nDCG@10"``) or measures.
        format: The format, if name and first line are ambiguous.
        memory: A limit such as ``"512MB"``: judgments that do not fit stay on disk, and evaluate
            any number of runs with the same `memory`.

    Returns:
        `Qrels`; or, if one of the measures reads more than grades, `SubtopicQrels`, `SampledQrels`
        or `PreferenceQrels`; or `StoredQrels`, if they do not fit.

    Raises:
        InputError: If the file cannot be read as such.
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
