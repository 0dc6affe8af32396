"""`evaluate()`: read, join, measure."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, Unjudged
from rankgauge.data.model import run_blocks
from rankgauge.errors import InputError
from rankgauge.evaluation.arguments import (
    DEFAULT_CUTOFFS,
    DEFAULT_MEASURES,
    Queries,
    blocks_of,
    groups_of,
    planned,
    policies_of,
    selected,
    truth_of,
    weights_of,
    which,
)
from rankgauge.evaluation.blocks import Gathered, Gathering, Truth
from rankgauge.evaluation.plan import Plan
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure

if TYPE_CHECKING:
    from rankgauge.profiles.deviations import Profile

__all__ = ["DEFAULT_CUTOFFS", "DEFAULT_MEASURES", "evaluate"]


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
    draws: int = 0,
    seed: int = 0,
    profile: str | Profile | None = None,
) -> Evaluation:
    """Evaluate a run: the value of each measure for each judged query.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` takes, or, for measures that read more
            than grades, what their noun takes (:meth:`SubtopicQrels.of`). Without a run: records
            that hold both, in memory or as the path of a file (see `Records`).
        run: The run: anything that :meth:`Run.of` takes, or an iterator of blocks of queries, each
            a mapping, a data frame or a run (a query stands in one block only).
        measures: Names (``"nDCG@10"``) or measures. If left out: P, R, F1, Success and nDCG at 1,
            3, 5, 10, RR and AP.
        ties: Order of documents with equal scores: ``trec`` (document id descending), ``input``
            (the order given), ``best`` (the higher grade first), ``worst`` (the lower grade first);
            or ``mean``, the mean of the values over all orders.
        queries: Which queries are averaged: ``all`` that are judged (one that is missing from the
            run has an empty ranking), ``intersection`` (judged and in the run), their ids, or
            the path of a file with one id a line.
        duplicates: A document twice in a ranking is an ``error``; ``first`` or ``best`` keeps one.
        undefined: An undefined value counts ``zero`` in the mean, or is left out (``skip``).
        unjudged: Documents without a judgment count as ``not relevant``, or are ``removed`` from
            the rankings first (condensed lists).
        weights: Query id to weight, such as its traffic; every evaluated query needs one.
        groups: Query id to group, such as its type or language; see :meth:`Evaluation.by_group`.
        draws: With ``ties="mean"``: how many orders are drawn for a measure whose mean over all of
            them has no closed form; without, such a measure is refused.
        seed: Where the draws begin.
        profile: As another tool would do it: one of `PROFILES`, such as ``ranx``. It decides about
            ties and queries, and a measure that means something else there is named as what it is.

    Returns:
        Values per query, means, policies and notes.

    Raises:
        UnknownName: For a measure or a choice nobody knows.
        MismatchError: If judgments and run have no query in common.
        InputError: If an input cannot be worked with; the message names the place.

    Example:
        >>> evaluate({"q1": {"d1", "d3"}}, {"q1": ["d1", "d2", "d3"]}, "P@2").mean()
        {'P@2': 0.5}
    """
    plan = planned(measures, profile if isinstance(profile, str) else None)
    policies = policies_of((ties, which(queries), duplicates, undefined, unjudged), draws, seed)
    chosen = selected(queries)
    measured, more = plan.measures, dict[str, Any]()
    if profile is None:
        gathered = _gathered((qrels, run), plan, policies, chosen)
    else:
        from rankgauge.evaluation.profiled import profiled

        found = profiled(
            profile, measured, (qrels, run), policies, chosen=chosen, usual=measures is None
        )
        gathered, measured, policies = found.gathered, found.measures, found.policies
        more = {"profile": found.applied, "left_out": found.left_out}
    shares = None if weights is None else weights_of(weights, gathered.ids.tolist())
    return Evaluation(
        run_name=gathered.run_name,
        query_ids=gathered.query_ids,
        measures=measured,
        per_query=gathered.values,
        undefined=gathered.undefined,
        policies=policies,
        counts=gathered.counts,
        coverage=gathered.coverage,
        notes=gathered.notes + (("means are weighted by query",) if shares else ()),
        weights=shares,
        groups=None if groups is None else groups_of(groups, gathered.ids.tolist()),
        settings=gathered.settings,
        findings=gathered.findings,
        **more,
    )


def _gathered(
    inputs: tuple[Any, Any], plan: Plan, policies: Policies, chosen: Iterable[Any] | None
) -> Gathered:
    qrels, run = inputs
    if run is None:
        from rankgauge.data.records import Records

        records = Records.of(qrels)
        if plan.reads:
            raise InputError(
                f"{plan.measures[plan.special[0]]} reads {plan.reads}, which records do not have",
                where="measures",
                fix="give judgments and a run: evaluate(judgments, run, ...)",
            )
        truth = Truth(records.qrels, records.graded)
        gathering = _gathering(truth, plan, policies, chosen)
        gathering.notes.extend(records.notes)
        gathering.add(records.run)
    else:
        truth = truth_of(qrels, plan)
        gathering = _gathering(truth, plan, policies, chosen)
        if _is_path(run) and not _streamed(gathering, run):
            gathering = _gathering(truth, plan, policies, chosen)
            gathering.add(run)
        elif not _is_path(run):
            for block in blocks_of(run):
                gathering.add(block)
    return gathering.finished()


def _gathering(
    truth: Truth,
    plan: Plan,
    policies: Policies,
    chosen: Iterable[Any] | None,
) -> Gathering:
    gathering = Gathering(truth, plan, policies)
    if chosen is not None:
        gathering.select(chosen)
    return gathering


def _is_path(run: Any) -> bool:
    return isinstance(run, str | os.PathLike)


def _streamed(gathering: Gathering, path: Any) -> bool:
    """Gather a file block by block; False, with the gathering spoilt, where that cannot be done.

    Whatever is wrong with the file, reading all of it says: then the first line at fault is named.
    """
    try:
        for block in run_blocks(path):
            if block is None:
                return False
            gathering.add(block)
    except InputError:
        return False
    return True
