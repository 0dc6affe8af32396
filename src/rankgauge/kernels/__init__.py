"""The measures: each is declared once, as a pure function of a judged run.

Importing this package registers them; :func:`~rankgauge.kernels.measure.parse` finds them by name.
"""

from rankgauge.kernels import (
    binary,
    coverage,
    diversity,
    graded,
    inferred,
    orders,
    partial,
    preferring,
    readers,
)

__all__ = [
    "binary", "coverage", "diversity", "graded", "inferred", "orders", "partial", "preferring",
    "readers",
]  # fmt: skip
