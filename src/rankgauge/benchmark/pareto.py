"""The Pareto front of quality and latency: the runs that no other beats in both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.rendering.plot_drawing import Panel, Plot, Series

_LOG = 20


@dataclass(frozen=True)
class ParetoPoint:
    """How good something is, and how long it takes."""

    name: str  # what it is
    quality: float  # the mean of a measure
    latency: float  # seconds a query


def pareto_front(points: Iterable[ParetoPoint], *, lower: bool = False) -> tuple[ParetoPoint, ...]:
    """The points that no other is at least as good as in both and better than in one.

    Example:
        >>> rows = [("a", 0.5, 0.1), ("b", 0.6, 0.2), ("c", 0.5, 0.3)]
        >>> [point.name for point in pareto_front(ParetoPoint(*row) for row in rows)]
        ['a', 'b']
    """
    sign = -1 if lower else 1
    known = [p for p in points if not (math.isnan(p.quality) or math.isnan(p.latency))]
    front: list[ParetoPoint] = []
    # Fastest first, of equally fast ones the best: one is on it if it beats all that are faster.
    for point in sorted(known, key=lambda p: (p.latency, -sign * p.quality)):
        last = front[-1] if front else None
        same = last and (last.latency, last.quality) == (point.latency, point.quality)
        if last is None or same or sign * point.quality > sign * last.quality:
            front.append(point)
    return tuple(front)


def plot_pareto(points: Sequence[ParetoPoint], measure: str, *, lower: bool = False) -> Plot:
    """Quality over latency, the front joined by a line (needs ``rankgauge[plots]`` to be shown)."""
    front = pareto_front(points, lower=lower)
    if not front:
        raise InputError(
            "no configuration has a quality and a latency", where="plot of the Pareto front",
            fix="measure the latency of each query",
        )  # fmt: skip
    fast = min(p.latency for p in front)
    known = [p for p in points if not (math.isnan(p.quality) or math.isnan(p.latency))]
    others = [p for p in known if p not in front]
    series = [_series("on the front", front)]
    if others:
        series.append(_series("others", others))
    panel = Panel(
        "points",
        tuple(series),
        across="milliseconds per query",
        down=measure,
        log=fast > 0 and max(p.latency for p in known) / fast > _LOG,
    )
    text = "; ".join(f"{p.name}: {p.quality:.3f} in {p.latency * 1000:.3g} ms" for p in front)
    return Plot(
        "pareto",
        f"{measure} and latency of {many(len(known), 'configuration')}",
        f"Points. On the front, fastest first: {text}.",
        (panel,),
        "On the front: no other configuration is at least as good in both, and better in one.",
    )


def _series(name: str, points: Sequence[ParetoPoint]) -> Series:
    return Series(
        name,
        tuple(p.quality for p in points),
        tuple(p.latency * 1000 for p in points),
        texts=tuple(p.name for p in points),
    )
