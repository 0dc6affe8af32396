"""Measures in the compiled core, which gives the same values as the kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from rankgauge.core import native
from rankgauge.core.grammar import Value
from rankgauge.core.ids import are_ids
from rankgauge.data.judged_run import JudgedRun, Values, discount_table
from rankgauge.measures.measure import Measure

# In the order of `native.c`. Beyond: whether more than k documents are relevant.
_FAMILIES = (
    *("P", "R", "F", "Success", "RR", "AP", "nDCG", "SetP", "SetR", "SetF", "NumRet", "NumRel", "NumRelRet"),
    *("FirstRel", "Judged", "Beyond", "DCG", "ERR", "nERR", "RBP", "Rprec", "IPrec", "Bpref", "infAP"),
)
# Measures with the values of another one; their means differ.
_SAME = {"GMAP": "AP", "GMBpref": "Bpref"}
COMPILED_MEASURES = {*_FAMILIES, *_SAME} - {"Beyond"}
# A further parameter that the compiled core reads, and its default.
_NUMBERS_OF: Mapping[str, tuple[str, Any]] = {
    **dict.fromkeys(("F", "SetF"), ("beta", 1)),
    **dict.fromkeys(("DCG", "nDCG"), ("gain", "linear")),
    **dict.fromkeys(("ERR", "nERR"), ("top", 4)),
    "RBP": ("p", 0.8),
    "IPrec": ("recall", None),
}
_GAINS = {"linear": 1, "exp": 2}
# Lists of grades do not separate grades below 0 (pooled, but not judged) from unjudged documents.
_OF_POOLS = {"Judged", "infAP"}
# Integers below this number are exact as floats.
_EXACT = 2.0**53
# Grade of an unjudged document: no hit and no gain.
UNJUDGED = -1.0
# Value of a measure that the core leaves to NumPy, which reports what is wrong with the grades.
DECLINED = -1.0

Step: TypeAlias = tuple[float, ...]


def step(family: str, k: Value | None = None, level: Value | None = 1, *others: Value | None) -> Step | None:
    """Return a row of a program, `Step` of `native.c`: number of the family, and its parameters.

    None if the compiled core does not support the level, such as ``best``.
    """
    numbers = (math.inf if k is None else k, level, *(others or (1, False)))
    if not all(isinstance(number, int | float) for number in numbers) or level <= 0:  # type: ignore[operator]
        return None
    return float(_FAMILIES.index(family)), *map(float, numbers)  # type: ignore[arg-type] # numbers


def step_of(measure: Measure) -> Step | None:
    """Return the row of a measure; None if the compiled core does not support it."""
    params = dict(measure.params)
    name, default = _NUMBERS_OF.get(measure.name, ("", 1))
    known = {"k", name, "judged_only", "" if measure.declaration.reads == "grades" else "rel"}
    if measure.name not in COMPILED_MEASURES or not params.keys() <= known:
        return None
    number = params.get(name, default)
    if name == "gain":
        number = _GAINS.get(number) if isinstance(number, str) else None
    family = _SAME.get(measure.name, measure.name)
    return step(family, params.get("k"), params.get("rel", 1), number, params.get("judged_only", False))


def program(steps: Iterable[Step | None]) -> Values | None:
    """Return the rows as an array; None if any row is None."""
    rows = list(steps)
    return None if None in rows else np.array(rows, dtype=np.float64)


def grades_of(retrieved: Any, relevant: Any) -> tuple[list[float], list[float]] | None:
    """Return the grades of a ranking and all grades of its query; None if the input needs checks.

    Ids must be all strings or all integers, without duplicates; grades must be finite numbers. A
    ranking without judged documents also gives None: its ids may be written differently.
    """
    if type(retrieved) not in _LISTS or type(relevant) not in _JUDGMENTS:
        return None
    docs = set(retrieved) if _are_plain(retrieved) and _are_plain(relevant) else set()
    if type(next(iter(docs), None)) is not type(next(iter(relevant), None)):
        return None
    grades = relevant if type(relevant) is dict else dict.fromkeys(relevant, 1.0)
    if len(docs) < len(retrieved) or len(grades) < len(relevant) or docs.isdisjoint(grades):
        return None
    pool = list(grades.values())
    if not all(type(grade) in _NUMBERS and -_EXACT < grade < _EXACT for grade in pool):
        return None
    return [grades.get(doc, UNJUDGED) for doc in retrieved], pool


_LISTS = (list, tuple)
_JUDGMENTS = (set, frozenset, list, tuple, dict)
_NUMBERS = (int, float)


def _are_plain(ids: Iterable[Any]) -> bool:
    """Return whether the ids are all integers or all valid strings."""
    kinds = set(map(type, ids))
    if kinds == {str}:
        return are_ids("\n".join(ids), ids)  # type: ignore[arg-type] # a collection
    return kinds == {int}


def measure_grades(measures: tuple[Measure, ...], grades: list[float], pool: list[float]) -> list[float]:
    """Return the values of the measures for one ranking, by the compiled core if possible.

    Args:
        measures: Measures that read grades or binary relevance.
        grades: Grades in rank order; below 0 for an unjudged document.
        pool: All grades of the query, in any order.
    """
    rows = None if native.core is None else _program_of(measures)
    if native.core is not None and rows is not None:
        ideal = sorted([grade for grade in pool if grade >= 0], reverse=True)
        discounts = discount_table(max(len(grades), len(ideal)))
        values: list[float] | None = native.core.measure_grades(grades, ideal, discounts, rows)
        if values is not None and DECLINED not in values:
            return values
    ranking = JudgedRun.from_grades(grades, pool)
    return [float(measure.values(ranking)[0]) for measure in measures]


@lru_cache(maxsize=256)
def _program_of(measures: tuple[Measure, ...]) -> Values | None:
    return program(None if measure.name in _OF_POOLS else step_of(measure) for measure in measures)
