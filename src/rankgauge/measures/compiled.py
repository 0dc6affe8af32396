"""The measures that the compiled core computes; the kernels are its oracle."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from rankgauge.core.grammar import Value
from rankgauge.data.judged_run import Values
from rankgauge.measures.measure import Measure

# The number of a family is its place, as in `native.c`; Beyond is whether more than k documents
# are relevant.
_FAMILIES = (
    "P", "R", "F", "Success", "RR", "AP", "nDCG", "SetP", "SetR", "SetF", "NumRet", "NumRel",
    "NumRelRet", "FirstRel", "Judged", "Beyond",
)  # fmt: skip
# Those that are measures here: Judged tells documents judged not relevant from those not judged.
_MEASURES = {*_FAMILIES} - {"Judged", "Beyond"}

Step: TypeAlias = tuple[float, float, float, float]


def step(
    family: str, k: Value | None = None, level: Value | None = 1, beta: Value | None = 1
) -> Step | None:
    """Return a row of a program: the number of a family, a cut-off, a relevance level, beta.

    None for a level that the compiled core does not know, such as that of the best document.
    """
    numbers = (math.inf if k is None else k, level, beta)
    if not all(isinstance(number, int | float) for number in numbers) or level <= 0:  # type: ignore[operator]
        return None
    cutoff, *others = map(float, numbers)  # type: ignore[arg-type] # numbers
    return float(_FAMILIES.index(family)), cutoff, others[0], others[1]


def step_of(measure: Measure) -> Step | None:
    """Return the row of a measure; None if the compiled core does not know it."""
    params = dict(measure.params)
    known = {"k"} if measure.name == "nDCG" else {"k", "rel", "beta"}
    if measure.name not in _MEASURES or not params.keys() <= known:
        return None
    return step(measure.name, params.get("k"), params.get("rel", 1), params.get("beta", 1))


def program(steps: Iterable[Step | None]) -> Values | None:
    """Return the rows as an array; None if one is."""
    rows = list(steps)
    return None if None in rows else np.array(rows, dtype=np.float64)
