"""The measures: each is declared once, as a pure function of a judged run.

Importing this package registers them; :func:`~rankgauge.parse` finds them by name. Each is an
attribute of the package: ``rankgauge.measures.BPM(goal=2) @ 10``.
"""

from rankgauge.measures import (
    binary,
    counts,
    diversity,
    graded,
    incomplete,
    preferences,
    user_models,
)
from rankgauge.measures.declaration import DECLARED
from rankgauge.measures.measure import Measure

__all__ = [
    "binary",
    "counts",
    "diversity",
    "graded",
    "incomplete",
    "preferences",
    "user_models",
]


def __getattr__(name: str) -> Measure:
    if name in DECLARED:
        return Measure(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
