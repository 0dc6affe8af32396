"""Saved evaluations in their order: a measure with its interval, breaks, and a decline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rankgauge import stats
from rankgauge.core.text import many, some
from rankgauge.evaluation.result import Evaluation
from rankgauge.history.changes import Step, obstacles, step_between
from rankgauge.history.entries import Entry
from rankgauge.measures.measure import Measure
from rankgauge.rendering.tables import Cell, Table, to_html

if TYPE_CHECKING:
    from rankgauge.rendering.plotting import Plot

__all__ = ["Point", "Trend", "trend_of"]

_ALPHA = 0.05
_PLOT = 20


@dataclass(frozen=True)
class Point:
    """One evaluation in a trend.

    Attributes:
        entry: The evaluation.
        mean: The mean of the measure.
        low: Lower end of its 95 % interval over queries (t); NaN where there is none: a single
            query, weights, or a mean that is neither arithmetic nor a sum.
        high: Upper end.
        step: The change since the evaluation before; None for the first, and across a break.
        breaks: Why it cannot be compared with the evaluation before; empty where it can.
    """

    entry: Entry
    mean: float
    low: float
    high: float
    step: Step | None
    breaks: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Trend:
    """A measure over time. Made by :meth:`History.trend`.

    Attributes:
        measure: The measure.
        points: The evaluations that have it, in the order in which they were saved.
        warnings: A decline of the latest evaluation, in sentences.
        notes: What else a reader has to know.
    """

    measure: Measure
    points: tuple[Point, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def dates(self) -> tuple[datetime, ...]:
        """When each evaluation was made."""
        return tuple(point.entry.time for point in self.points)

    @property
    def means(self) -> tuple[float, ...]:
        """The mean of each."""
        return tuple(point.mean for point in self.points)

    @property
    def lows(self) -> tuple[float, ...]:
        """The lower end of each interval; NaN where there is none."""
        return tuple(point.low for point in self.points)

    @property
    def highs(self) -> tuple[float, ...]:
        """The upper end of each interval; NaN where there is none."""
        return tuple(point.high for point in self.points)

    @property
    def breaks(self) -> tuple[int, ...]:
        """The places of points that cannot be compared with the one before."""
        return tuple(place for place, point in enumerate(self.points) if point.breaks)

    def table(self, last: int | None = None) -> Table:
        """One line an evaluation, with a plot of the intervals, time going down.

        Args:
            last: Show the latest so many; all if left out. What is said below is said of all.
        """
        shown = self.points if last is None else self.points[-last:]
        scale = _Scale.of(shown)
        days = len({point.entry.time.date() for point in shown})
        form = "%Y-%m-%d" if days == len(shown) else "%Y-%m-%d %H:%M"
        runs = len({point.entry.run for point in self.points}) > 1
        labels = any(point.entry.label or point.entry.made_at for point in shown)
        middle = (("run",) if runs else ()) + (("label",) if labels else ())
        rows: list[tuple[Cell, ...]] = []
        for place, point in enumerate(shown):
            if point.breaks and place:
                rows.append(self._break_row(point, len(middle)))
            entry = point.entry
            rows.append(
                (
                    entry.id,
                    entry.time.strftime(form),
                    *((entry.run,) if runs else ()),
                    *((entry.label or entry.made_at,) if labels else ()),
                    point.mean,
                    scale.drawn(point),
                    _said(point.step),
                )
            )
        left_out = len(self.points) - len(shown)
        more = (f"the latest {len(shown)} of {len(self.points)} are shown",) if left_out else ()
        return Table(
            columns=(
                "id",
                "date",
                *middle,
                str(self.measure),
                scale.head,
                "change (95 % interval)",
            ),
            rows=tuple(rows),
            notes=(*(f"WARNING: {text}" for text in self.warnings), *self.notes, *more),
        )

    def plot(self, last: int | None = None) -> Plot:
        """The means and their intervals over time; the line is broken where the trend is.

        Spaced by date where each date is later than the one before, otherwise evenly.

        Args:
            last: Show the latest so many; all if left out.
        """
        from rankgauge.rendering.charts import plot_history

        shown = self.points if last is None else self.points[-last:]
        dates = [str(point.entry.time.date()) for point in shown]
        if any(later <= earlier for earlier, later in pairwise(dates)):
            # By date they would overlap, or not be in order: these are spaced evenly.
            dates = [
                f"{point.entry.id}: {date[5:]}" for point, date in zip(shown, dates, strict=True)
            ]
        known = any(math.isfinite(point.low) for point in shown)
        return plot_history(
            dates,
            [point.mean for point in shown],
            [point.low for point in shown] if known else (),
            [point.high for point in shown] if known else (),
            measure=str(self.measure),
            breaks=[place for place, point in enumerate(shown) if point.breaks],
        )

    @staticmethod
    def _break_row(point: Point, between: int) -> tuple[Cell, ...]:
        # "" in the column of numbers keeps it a column of numbers.
        empty = ("",) * between
        why = "; ".join(text.partition(" (")[0] for text in point.breaks)
        return ("", "", *empty, "", " not comparable ".center(_PLOT, "─"), why)

    def data_table(self) -> Table:
        """One line an evaluation, in plain numbers, for programs."""
        return Table(
            columns=(
                "id", "time", "run", "label", "commit", "measure", "queries", "mean", "low", "high",
                "change", "change_low", "change_high", "break",
            ),
            rows=tuple(
                (
                    point.entry.id,
                    point.entry.time.isoformat(),
                    point.entry.run,
                    point.entry.label,
                    point.entry.commit,
                    str(self.measure),
                    point.entry.queries,
                    point.mean,
                    point.low,
                    point.high,
                    *(
                        (None, None, None)
                        if point.step is None
                        else (point.step.difference, point.step.low, point.step.high)
                    ),
                    "; ".join(point.breaks),
                )
                for point in self.points
            ),
        )  # fmt: skip

    def _repr_html_(self) -> str:
        return to_html(self.table())

    def __repr__(self) -> str:
        return f"<Trend of {self.measure}: {many(len(self.points), 'evaluation')}>"


@dataclass(frozen=True)
class _Scale:
    """From values to the columns of a plot made of characters."""

    low: float
    high: float

    @classmethod
    def of(cls, points: Sequence[Point]) -> _Scale:
        ends = [value for point in points for value in (point.low, point.mean, point.high)]
        known = [value for value in ends if math.isfinite(value)]
        return cls(min(known, default=0.0), max(known, default=0.0))

    @property
    def head(self) -> str:
        left, right = f"{self.low:.3g}", f"{self.high:.3g}"
        return left + right.rjust(max(_PLOT - len(left), len(right) + 1))

    def drawn(self, point: Point) -> str:
        if not math.isfinite(point.mean):
            return ""
        cells = [" "] * _PLOT
        if math.isfinite(point.low):
            left, right = self._place(point.low), self._place(point.high)
            cells[left : right + 1] = "─" * (right + 1 - left)
            cells[left] = cells[right] = "|"
        cells[self._place(point.mean)] = "o"
        return "".join(cells).rstrip()

    def _place(self, value: float) -> int:
        if self.high == self.low:
            return _PLOT // 2
        return round((value - self.low) / (self.high - self.low) * (_PLOT - 1))


def _said(step: Step | None) -> str:
    if step is None:
        return ""
    if not step.wins + step.losses:
        return "identical"
    return f"{step.difference:+.3f} ({step.low:+.3f} to {step.high:+.3f})"


def trend_of(measure: Measure, found: Sequence[tuple[Entry, Evaluation]]) -> Trend:
    """A trend from evaluations in the order of saving, of which each has the measure."""
    points: list[Point] = []
    for place, (entry, evaluation) in enumerate(found):
        breaks: tuple[str, ...] = ()
        step = None
        if place:
            before, one = found[place - 1]
            breaks = tuple(_breaks(before, one, entry, evaluation))
            step = None if breaks else step_between(one, evaluation, measure, 1 - _ALPHA)
        low, high = _interval(entry, evaluation, measure)
        points.append(Point(entry, entry.means[str(measure)], low, high, step, breaks))
    return Trend(measure, tuple(points), tuple(_decline(points, found)), tuple(_notes(points)))


def _breaks(before: Entry, one: Evaluation, after: Entry, other: Evaluation) -> Iterator[str]:
    yield from obstacles(before, after)
    if one.query_ids != other.query_ids and set(one.query_ids) != set(other.query_ids):
        yield f"other queries ({before.queries} in {before.id}, {after.queries} in {after.id})"


def _interval(entry: Entry, evaluation: Evaluation, measure: Measure) -> tuple[float, float]:
    """Of the mean over queries; of a sum, that of the mean times the number of queries."""
    values = measure.counted(
        evaluation.per_query[:, evaluation.measures.index(measure)],
        skip_undefined=evaluation.policies.undefined == "skip",
    )
    if evaluation.left_out is not None:
        values = values[~evaluation.left_out[:, evaluation.measures.index(measure)]]
    values = values[~np.isnan(values)]
    how = measure.declaration.mean
    if len(values) < 2 or entry.weighted or how not in {"arithmetic", "sum"}:
        return math.nan, math.nan
    found = stats.t_interval(values)
    times = len(values) if how == "sum" else 1
    return found.low * times, found.high * times


def _decline(points: Sequence[Point], found: Sequence[tuple[Entry, Evaluation]]) -> Iterator[str]:
    """Whether the latest evaluation is worse than the first or the best it can be compared with.

    Two questions share 5 %: against the first, chosen beforehand, one half; against the best, which
    the data chose, the other half, divided by how many there were to choose from (Bonferroni).
    """
    begin = max((place for place, point in enumerate(points) if point.breaks), default=0)
    measure = next(iter(found))[1].measures[0] if found else None
    if measure is None or measure.declaration.better == "neither" or len(points) - begin < 2:
        return
    stretch = found[begin:]
    latest = stretch[-1][1]
    sign = -1.0 if measure.declaration.better == "lower" else 1.0
    means = [np.nan_to_num(sign * point.mean, nan=-math.inf) for point in points[begin:-1]]
    best = int(np.argmax(means))
    choices = len({evaluation.per_query.tobytes() for _, evaluation in stretch[:-1]})
    # The best that is also the first was chosen beforehand.
    looks = {0: 1 - _ALPHA / 2, **({best: 1 - _ALPHA / 2 / choices} if best else {})}
    for place in sorted(looks, reverse=True):
        step = step_between(stretch[place][1], latest, measure, looks[place])
        if step is not None and step.is_worse:
            yield _told(step, stretch, points[begin:], place)
            return


def _told(
    step: Step, stretch: Sequence[tuple[Entry, Evaluation]], points: Sequence[Point], place: int
) -> str:
    """A decline in words: by how much, and whether any single step between shows it."""
    since, latest = stretch[place][0], stretch[-1][0]
    between = len(stretch) - 1 - place
    text = (
        f"{latest.name} is worse than {since.name} by {step.measure}: {step.difference:+.3f} "
        f"({100 * step.level:.4g} % interval {step.low:+.3f} to {step.high:+.3f})"
    )
    if between == 1:
        return text + _commits(since, latest)
    sure: list[tuple[int, Step]] = []
    for number in range(place + 1, len(stretch)):
        if points[number].step is None:
            continue
        one = step_between(
            stretch[number - 1][1], stretch[number][1], step.measure, 1 - _ALPHA / between
        )
        if one is not None and one.is_worse:
            sure.append((number, one))
    if not sure:
        return (
            f"slow decline: {text}; none of the {between} steps between shows it by itself"
            + _commits(since, latest)
        )
    parts = [
        f"from {stretch[n - 1][0].id} to {stretch[n][0].id} ({one.difference:+.3f}"
        f"{_commits(stretch[n - 1][0], stretch[n][0])})"
        for n, one in sure
    ]
    return f"{text}; it fell {', '.join(parts)}"


def _commits(before: Entry, after: Entry) -> str:
    if before.commit is None or after.commit is None or before.commit == after.commit:
        return ""
    return f", commits {before.commit[:8]}..{after.commit[:8]}"


def _notes(points: Sequence[Point]) -> Iterator[str]:
    runs = list(dict.fromkeys(point.entry.run for point in points))
    if len(runs) > 1:
        yield f"{len(runs)} runs in one line of time ({some(runs)}); choose one with --run"
    if any(math.isfinite(point.low) for point in points):
        yield (
            "the line through each mean (o) is its 95 % interval over queries (t); changes are "
            "judged query by query, so they may be sure where intervals overlap"
        )
    if any(math.isnan(point.low) for point in points):
        yield "no interval: of a single query, of weighted means, of a geometric mean"
    stretches = 1 + sum(1 for point in points if point.breaks)
    if stretches > 1:
        yield f"{stretches} stretches that are not comparable with each other"
