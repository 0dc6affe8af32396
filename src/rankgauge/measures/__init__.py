"""The measures: each is declared once, as a pure function of a judged run.

Importing this package registers them; :func:`~rankgauge.parse` finds them by name.
"""

from rankgauge.measures import (
    binary,
    coverage,
    diversity,
    graded,
    incomplete,
    order,
    preference,
    sampled,
    user_models,
)

__all__ = [
    "binary",
    "coverage",
    "diversity",
    "graded",
    "incomplete",
    "order",
    "preference",
    "sampled",
    "user_models",
]
