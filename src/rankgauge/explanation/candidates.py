"""Candidate explanations of a number: known deviations and their combinations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from rankgauge.core.grammar import Value
from rankgauge.core.pair_table import FloatArray
from rankgauge.errors import UnknownName
from rankgauge.evaluation.profile_deviations import (
    AS_GIVEN,
    ASCENDING_IDS,
    BINARY_GRADES,
    INPUT_TIES,
    RUN_QUERIES_ONLY,
    SINGLE_PRECISION,
    Case,
    Deviation,
    apply_all,
    of_grades,
    of_policy,
    of_run,
)
from rankgauge.evaluation.profiles import PROFILES
from rankgauge.measures.measure import Measure

# Combinations of more deviations could explain any number.
_MOST = 3
_LEVELS = (1, 2, 3)
_TOPS = (1, 2, 3, 4, 5)


class Combination(NamedTuple):
    """Deviations that are applied together."""

    name: str
    deviations: tuple[Deviation, ...]
    profile: bool = False


class _Choice(NamedTuple):
    """A deviation of a group; a combination has at most one of each group."""

    group: str
    deviation: Deviation


# ---- deviations of judgments, run, or order


def _once(deviation: Deviation) -> Deviation:
    """Return a deviation that removes duplicate documents before it changes the order."""

    def changed(case: Case) -> Case:
        return deviation.change(case._replace(run=case.run.without_repeats(case.policies.duplicates)))

    return replace(deviation, change=changed)


def _reversed(values: FloatArray) -> FloatArray:
    top = values.max(initial=0.0)
    return np.where(values > 0, top + 1 - values, values)


# The deviation of scores comes first: the others sort by score.
_DATA = (
    _Choice("precision", SINGLE_PRECISION),
    _Choice("order", _once(INPUT_TIES)),
    _Choice("order", _once(ASCENDING_IDS)),
    _Choice("order", _once(AS_GIVEN)),
    _Choice(
        "order",
        of_run(
            "lowest score first",
            "the ranking is reversed, as with distances",
            lambda table: replace(table, values=-table.values),
        ),
    ),
    _Choice("grades", BINARY_GRADES),
    _Choice("grades", of_grades("grades reversed", "the best grade counts as the worst", _reversed)),
    _Choice(
        "grades",
        of_grades(
            "grade 0 counts",
            "documents judged not relevant count as relevant",
            lambda values: np.where(values == 0, 1.0, values),
        ),
    ),
)


ORDERS = frozenset(choice.deviation.name for choice in _DATA if choice.group == "order")
"""Names of the deviations that change the order of documents."""


# ---- deviations of the measure


# Parameter, name of the deviation, reason, and the other value of the parameter.
_WORDS: tuple[tuple[str, str, str, Value], ...] = (
    ("gain", "gain 2^grade - 1", "the gain is exponential", "exp"),
    ("gain", "gain = grade", "the gain is the grade itself", "linear"),
    ("ideal", "ideal of retrieved documents", "the ideal ranking has only retrieved documents", "retrieved"),
    ("ideal", "ideal of all judged documents", "the ideal ranking has all judged documents", "judged"),
    ("ideal", "ideal of the first k", "the ideal ranking has only the first k documents", "topk"),
    ("b", "no discount at rank 2", "ranks 1 and 2 have the same weight, as first published", 2),
    *(
        ("norm", f"divided by {label}", f"the sum is divided by {what}", norm)
        for norm, label, what in (
            ("R", "R", "all relevant documents, found or not"),
            ("min(k,R)", "min(k, R)", "k or the number of relevant documents, the smaller one"),
            ("k", "k", "k, for any number of relevant documents"),
            ("retrieved", "those found", "the relevant documents found, so misses cost nothing"),
        )
    ),
    *(
        ("rel", f"relevant from grade {level}", f"a document is relevant from grade {level}", level)
        for level in _LEVELS
    ),
    ("judged_only", "judged documents only", "unjudged documents are removed first", True),
    *(("top", f"top grade {top}", f"the scale ends at grade {top}", top) for top in _TOPS),
)


def _of_words(measure: Measure) -> Iterator[_Choice]:
    """Yield variants of a measure with other parameters; impossible ones are dropped later."""
    has = measure.declaration.words
    graded = measure.declaration.reads == "grades"
    for word, name, why, value in _WORDS:
        # Grade 1 is already the lowest grade with a gain.
        if word in has and not (graded and word == "rel" and value == 1):
            yield _worded(word, name, why, value)
    k = dict(measure.params).get("k")
    if isinstance(k, int):
        for other in (k - 1, k + 1):
            yield _worded("k", f"cut-off {other}", f"{other} ranks are evaluated", other)
        yield _worded("k", "no cut-off", "the whole ranking is evaluated", None)


def _worded(word: str, name: str, why: str, value: Value) -> _Choice:
    def change(case: Case) -> Case:
        return case._replace(measure=case.measure(**{word: value}).complete())

    return _Choice(word, Deviation(name, why, "measure", change))


# ---- combinations


def of_data(most: int) -> Iterator[Combination]:
    """Yield combinations of at most `most` deviations of the data, the empty one first."""
    yield from (_combination(found) for found in _combined(_DATA, most))


def of_measure(measure: Measure) -> Iterator[tuple[Combination, Measure]]:
    """Yield the distinct variants of a measure, the measure itself first."""
    seen: set[Measure] = set()
    for found in _combined(tuple(_of_words(measure)), _MOST):
        variant = _combination(found)
        try:
            # Deviations of the measure only read the measure of a case.
            changed = apply_all(Case(None, None, measure, None), variant.deviations).measure  # type: ignore[arg-type]
        except UnknownName:
            continue
        if changed not in seen:
            seen.add(changed)
            yield variant, changed


AVERAGED = (
    RUN_QUERIES_ONLY,
    of_policy("undefined excluded", "queries without a relevant document are excluded from the mean", undefined="skip"),
)
"""Deviations of the averaged queries."""


def of_profiles(measure: Measure) -> Iterator[Combination]:
    """Yield the profiles of other tools that have the measure."""
    for profile in PROFILES.values():
        try:
            deviations = profile.deviations(measure)
        except UnknownName:
            continue
        if deviations:
            yield Combination(profile.name, deviations, profile=True)


def _combined(choices: Sequence[_Choice], most: int) -> Iterator[tuple[_Choice, ...]]:
    for size in range(most + 1):
        for found in combinations(choices, size):
            if len({choice.group for choice in found}) == size:
                yield found


def _combination(found: Sequence[_Choice]) -> Combination:
    deviations = tuple(choice.deviation for choice in found)
    return Combination(" + ".join(deviation.name for deviation in deviations), deviations)
