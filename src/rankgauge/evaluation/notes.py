"""What a reader of the numbers has to know, in sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rankgauge.core.policies import Policies
from rankgauge.core.text import SHOWN, many
from rankgauge.data.judged_run import BoolArray, Values
from rankgauge.measures.measure import Measure

__all__ = [
    "Seen",
    "alone_note",
    "draws_note",
    "finding_notes",
    "first_ranks_note",
    "queries_note",
    "ties_note",
    "undefined_notes",
]

# With fewer queries it is no wonder if all are answered as well as can be.
_WONDER = 10
_ABOVE_ZERO = math.ulp(0.0)


class Seen(NamedTuple):
    """What was seen on the way to the values, for findings that cost nothing.

    Attributes:
        queries: How many were evaluated.
        depth: The documents of the longest ranking.
        deepest: The deepest cut-off that was asked for, 0 without one.
        level: The relevance level that grades below it are held against, 0 if none is.
        between: How many grades lie between 0 and it.
        beyond: For each recall at k how many queries have more than k relevant documents.
        perfect: The measures that are 1 for every query.
        constant: Whether no ranking has two different scores.
    """

    queries: int
    depth: int
    deepest: int
    level: float
    between: int
    beyond: Mapping[str, int]
    perfect: Sequence[str]
    constant: bool


def queries_note(counts: Mapping[str, int], policies: Policies) -> str:
    """Which queries were averaged, and what happened to the others."""
    which = {
        "all": "all that are judged",
        "intersection": "those both judged and in the run",
        "given": "those given",
    }[policies.queries]
    text = f"{many(counts['queries'], 'query')}: {which}"
    if counts["missing_from_run"]:
        text += f"; {counts['missing_from_run']} of them not in the run, counted as empty rankings"
    if counts["without_judgments"]:
        text += f"; {many(counts['without_judgments'], 'query')} of the run left out, not judged"
    return text


def ties_note(counts: Mapping[str, int], policies: Policies) -> str:
    """How equal scores were put in order, and how many queries that decides."""
    how = {
        "trec": "by document id, descending (ties=trec)",
        "input": "in the order given (ties=input)",
        "best": "the higher grade first (ties=best)",
        "worst": "the lower grade first (ties=worst)",
        "mean": "in every order at once: values are means over all orders (ties=mean)",
    }[policies.ties]
    touched = counts["tied"]
    if policies.ties == "mean":
        return f"equal scores stand {how}, which differ for {many(touched, 'query')}"
    could = f"{many(touched, 'query')} could change" if touched else "no query could change"
    return f"equal scores stand {how}; by another order {could}"


def draws_note(errors: Mapping[str, float], policies: Policies) -> str:
    """What was estimated, and how good the estimates are.

    Args:
        errors: The standard error of the mean of each measure.
        policies: How many orders were drawn.
    """
    said = ", ".join(f"{name} {error:.1g}" for name, error in errors.items())
    return (
        f"estimated from {policies.draws} orders drawn at random (seed {policies.seed}), with the "
        f"standard error of the mean: {said}"
    )


def first_ranks_note(first: Measure, ranks: Values) -> str:
    """Where the first relevant documents stand: what a mean of RR does not say."""
    names = ("at rank 1", "at 2-3", "at 4-10", "below 10")
    # What is nowhere (NaN) comes behind all others.
    places = np.searchsorted((1.0, 3.0, 10.0, math.inf), ranks)
    *numbers, nowhere = np.bincount(places, minlength=len(names) + 1).tolist()
    parts = [f"{name} for {number}" for name, number in zip(names, numbers, strict=True)]
    level = "" if first.rel == 1 else f" (rel={first.rel})"
    return (
        f"first relevant document{level}: {', '.join(parts)}, nowhere for {many(nowhere, 'query')}"
    )


def undefined_notes(
    measures: Sequence[Measure],
    undefined: BoolArray,
    policies: Policies,
    *,
    lacking: Callable[[float], BoolArray],
) -> Iterator[str]:
    """One sentence for all measures that share a number of undefined values and its treatment.

    Args:
        measures: The measures.
        undefined: (Q, M) where a value is undefined.
        policies: What is done then.
        lacking: (Q,) the queries without a grade of this level or more.
    """
    if not undefined.any():
        return
    grouped: dict[tuple[int, bool, str], list[str]] = {}
    for column, measure in enumerate(measures):
        number = int(np.count_nonzero(undefined[:, column]))
        skipped = policies.undefined == "skip" or measure.declaration.undefined == "skip"
        if number:
            level = _least(measure)
            known = level is not None and lacking(level)[undefined[:, column]].all()
            code = " (J103)" if known else ""
            grouped.setdefault((number, skipped, code), []).append(str(measure))
    for (number, skipped, code), names in grouped.items():
        done = "left out of the mean" if skipped else "counted 0 in the mean"
        shown = ", ".join(names) if len(names) <= 2 * SHOWN else f"{len(names)} measures"
        yield f"{shown}: undefined for {many(number, 'query')}, {done}{code}"


def _least(measure: Measure) -> float | None:
    """The least grade that is worth anything to a measure; None where it reads no grades."""
    if measure.level is None and measure.declaration.reads == "grades":
        return _ABOVE_ZERO
    return measure.level


def finding_notes(seen: Seen) -> Iterator[str]:
    """What `rankgauge check` finds, too, and every evaluation sees on its way; with the codes."""
    if seen.between:
        yield f"grades between 0 and {seen.level:g} never count as relevant: {seen.between} (J104)"
    if seen.beyond:
        said = ", ".join(
            f"{name} in {many(number, 'query')}" if place == 0 else f"{name} in {number}"
            for place, (name, number) in enumerate(seen.beyond.items())
        )
        yield f"recall cannot reach 1 with more relevant documents than k: {said} (J107)"
    if 0 < seen.depth < seen.deepest:
        yield f"no ranking is longer than {seen.depth}, cut-offs go to {seen.deepest} (R105)"
    if seen.constant:
        yield (
            "WARNING: all documents of a query have the same score: the tie policy alone makes "
            "the order (R106)"
        )
    if seen.perfect and seen.queries >= _WONDER:
        yield (
            f"WARNING: {', '.join(seen.perfect[:SHOWN])} is 1 for every query: was the run made of "
            "the judgments? (P107)"
        )


def alone_note(measures: Sequence[Measure]) -> str:
    """What there is to say of a single measure; empty for several."""
    if len(measures) != 1:
        return ""
    (measure,) = measures
    k = dict(measure.params).get("k", 10)
    other = f"nDCG@{k}" if measure.name in {"R", "SetR"} else f"R@{k}"
    return f"{measure} stands alone: {other} beside it would show what it hides (M101)"
