"""Evaluation measures, each declared once as a pure function of a judged run.

Importing this package registers all measures; :func:`~rankgauge.parse` finds a measure by name.
Every measure is also an attribute of the package: ``rankgauge.measures.BPM(goal=2) @ 10``.
"""

# Importing these modules registers their measures.
from rankgauge.measures import (
    answers as answers,
    binary as binary,
    diversity as diversity,
    graded as graded,
    incomplete as incomplete,
    preferences as preferences,
    user_models as user_models,
)
from rankgauge.measures.declaration import DECLARED, Declaration, register
from rankgauge.measures.measure import Measure, list_measures, parse

__all__ = [  # noqa: PLE0604 - all are text
    "Declaration",
    "Measure",
    "list_measures",
    "parse",
    "register",
    *DECLARED,
]


def __getattr__(name: str) -> Measure:
    if name in DECLARED:
        return Measure(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
