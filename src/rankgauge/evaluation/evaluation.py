"""`evaluate()`: evaluate a run against judgments.

The steps, in order: check the arguments, read the judgments (`context.py`), join and measure the
run block by block, merge the blocks, and build the `Evaluation` (`blocks.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from rankgauge.core.arguments import memory_size
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, Unjudged
from rankgauge.core.threads import check_jobs
from rankgauge.data.joined_blocks import map_blocks
from rankgauge.data.run import Run
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.blocks import build_evaluation, measure_block, measure_run, merge_blocks
from rankgauge.evaluation.context import make_plan, read_context, read_records
from rankgauge.evaluation.result import Evaluation
from rankgauge.formats.readers import read_ids
from rankgauge.measures.measure import Measure

if TYPE_CHECKING:
    # Only needed for profiles.
    from rankgauge.evaluation.profile_deviations import Profile

_T = TypeVar("_T")
Queries: TypeAlias = Literal["all", "intersection"] | Iterable[Any] | os.PathLike[str]


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
    jobs: int = 1,
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
        jobs: Number of threads that read and measure a text file of at least 50 MiB, unless it is
            compressed or `memory` is set; the values are identical.

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
    check_jobs(jobs)
    fields = None
    if questions is not None or weights is not None or groups is not None:
        from rankgauge.evaluation.questions import QueryFields

        fields = QueryFields.of(questions, weights, groups)
    plan = make_plan(measures, profile if isinstance(profile, str) else None)
    policy, ids = read_queries(queries)
    choices = (ties, policy, duplicates, undefined, unjudged, draws, seed)
    try:
        policies = _cached_policies(*choices)
    except TypeError:  # not hashable, and thus no policy
        policies = Policies(*choices)
    limit = None if memory is None else memory_size(memory)
    if limit is not None and (profile is not None or run is None):
        raise InputError(
            f"got memory={memory!r:.60} {'for records' if profile is None else 'with a profile'}, which is read whole",
            where="memory",
            fix="leave it out, or pass judgments and a run without a profile",
        )
    if profile is not None:
        from rankgauge.evaluation.profile_evaluation import evaluate_profile

        evaluation = evaluate_profile(
            qrels, run, profile, plan.measures, policies=policies, queries=ids, usual=measures is None
        )
    else:
        if run is None:
            context, run = read_records(qrels, plan, policies, ids)
        else:
            context = read_context(qrels, plan, policies, ids, limit)
        evaluation = build_evaluation(measure_run(run, context, limit, jobs), context)
    return evaluation if fields is None else fields.add_to(evaluation, mix_origins=mix_origins)


# Typed, since 1.0 is not a valid number of draws.
_cached_policies = lru_cache(maxsize=64, typed=True)(Policies)


def read_queries(queries: Queries) -> tuple[Literal["all", "intersection", "given"], list[Any] | None]:
    """Return the policy for the argument ``queries`` of :func:`evaluate`, and the ids if given."""
    if isinstance(queries, str):
        if queries == "all":
            return "all", None
        if queries == "intersection":
            return "intersection", None
        raise UnknownName(f"queries={queries!r} is not valid", fix="choose all, intersection, or a list of ids")
    if isinstance(queries, os.PathLike):
        return "given", list(read_ids(queries))
    if not isinstance(queries, Iterable):
        raise InputError(
            f"got {queries!r:.60} for the queries", where="queries", fix="choose all, intersection, or a list of ids"
        )
    return "given", list(queries)


def evaluate_blocks(
    judged: Any,
    run: Any,
    measures: Sequence[Measure],
    look: Callable[[Run], _T],
    *,
    name: str | None = None,
    policies: Policies = Policies(),  # noqa: B008 - cannot be changed
) -> tuple[Evaluation, list[_T]]:
    """Evaluate a run and apply `look` to each of its blocks, reading a file only once."""
    context = read_context(judged, make_plan(measures), policies, None)
    pairs = map_blocks(run, lambda block: (measure_block(block, context), look(block)), name)
    result = merge_blocks(result for result, _ in pairs)
    return build_evaluation(result, context), [seen for _, seen in pairs]
