"""What a reader of the numbers has to know, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from rankgauge.judged import BoolArray, Values
from rankgauge.kernels.measure import Measure
from rankgauge.model import Policies

__all__ = [
    "SHOWN",
    "first_ranks_note",
    "many",
    "queries_note",
    "some",
    "ties_note",
    "undefined_notes",
]

SHOWN = 3


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
    }[policies.ties]
    touched = counts["tied"]
    could = f"{many(touched, 'query')} could change" if touched else "no query could change"
    return f"equal scores stand {how}; by another order {could}"


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
    measures: Sequence[Measure], undefined: BoolArray, policies: Policies
) -> Iterator[str]:
    """One sentence for all measures that share a number of undefined values and its treatment."""
    if not undefined.any():
        return
    grouped: dict[tuple[int, bool], list[str]] = {}
    for column, measure in enumerate(measures):
        number = int(np.count_nonzero(undefined[:, column]))
        skipped = policies.undefined == "skip" or measure.declaration.undefined == "skip"
        if number:
            grouped.setdefault((number, skipped), []).append(str(measure))
    for (number, skipped), names in grouped.items():
        done = "left out of the mean" if skipped else "counted 0 in the mean"
        shown = ", ".join(names) if len(names) <= 2 * SHOWN else f"{len(names)} measures"
        yield f"{shown}: undefined for {many(number, 'query')}, {done}"


def some(ids: Iterable[str]) -> str:
    """The first few ids, for a message."""
    shown = [repr(str(value)) for _, value in zip(range(SHOWN), ids, strict=False)]
    return ", ".join(shown) + ", ..." if len(shown) == SHOWN else ", ".join(shown) or "none"


def many(number: int, noun: str) -> str:
    """A number with its noun in singular or plural."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"
