"""Trend of a measure over saved evaluations: intervals, breaks, and declines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rankgauge import stats
from rankgauge.comparison.conclusions import withholding
from rankgauge.comparison.differences import Difference, describe_difference, select
from rankgauge.core.grouping import group_values
from rankgauge.core.text import keep, some
from rankgauge.errors import InputError
from rankgauge.evaluation.answer_judge import about_judge
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Cell, Table
from rankgauge.store.entries import HistoryEntry, means_of, obstacles
from rankgauge.store.history import History

if TYPE_CHECKING:
    from rankgauge.rendering.plot_drawing import Plot

_ALPHA = 0.05
_PLOT = 20
_OTHER_RUN = "another run"


@dataclass(frozen=True)
class TrendPoint:
    """An evaluation in a trend.

    Attributes:
        entry: The evaluation.
        mean: Mean of the measure.
        low: Lower bound of its 95% interval over queries; NaN for a single query, weights, a mean
            that is neither arithmetic nor a sum, or one by a judge that is not corrected for its
            errors.
        high: Upper bound.
        change: Difference from the previous evaluation of the same run; None for the first
            evaluation and after a break.
        breaks: Reasons why it is not comparable with the previous evaluation; empty if it is.
    """

    entry: HistoryEntry
    mean: float
    low: float
    high: float
    change: Difference | None
    breaks: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Trend(Result):
    """A measure over time. Returned by :func:`trend_of`.

    Attributes:
        measure: Measure.
        points: Evaluations with the measure, by run, in the order of addition.
        warnings: Warnings about a decline of the latest evaluation.
        notes: Notes on interpretation.
    """

    measure: Measure
    points: tuple[TrendPoint, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def dates(self) -> tuple[datetime, ...]:
        """Time of each evaluation."""
        return tuple(point.entry.time for point in self.points)

    @property
    def means(self) -> tuple[float, ...]:
        """Mean of each evaluation."""
        return tuple(point.mean for point in self.points)

    @property
    def breaks(self) -> tuple[int, ...]:
        """Positions of points that are not comparable with the previous point."""
        return tuple(place for place, point in enumerate(self.points) if point.breaks)

    def table(self, last: int | None = None) -> Table:
        """Return one row for each evaluation, with a text plot of the intervals.

        Args:
            last: Number of latest evaluations to show; default: all. The notes always refer to all.
        """
        shown = self.points if last is None else self.points[-last:]
        scale = _Scale.of(shown)
        days = len({point.entry.time.date() for point in shown})
        form = "%Y-%m-%d" if days == len(shown) else "%Y-%m-%d %H:%M"
        rows: list[tuple[Cell, ...]] = []
        for place, point in enumerate(shown):
            entry = point.entry
            if point.breaks and place:
                why = "; ".join(text.partition(" (")[0] for text in point.breaks)
                message = "" if why == _OTHER_RUN else " not comparable "
                # "" keeps the column numeric.
                rows.append(("", "", "", "", "", message.center(_PLOT, "─"), why))
            rows.append(
                (
                    entry.id,
                    entry.time.strftime(form),
                    entry.run,
                    entry.label or entry.made_at,
                    point.mean,
                    scale.drawn(point),
                    _change_text(point.change),
                )
            )
        table = Table(
            columns=("id", "date", "run", "label", str(self.measure), scale.head, "change (95% interval)"),
            rows=tuple(rows),
            notes=keep(
                *(f"WARNING: {text}" for text in self.warnings),
                *self.notes,
                len(shown) < len(self.points) and f"the latest {len(shown)} of {len(self.points)} are shown",
            ),
            fixed=frozenset({5}),
        )
        runs = len({point.entry.run for point in self.points}) > 1
        labels = any(point.entry.label or point.entry.made_at for point in shown)
        return table.part(columns=[0, 1, *[2] * runs, *[3] * labels, 4, 5, 6])

    def plot(self, last: int | None = None) -> Plot:
        """Plot the means and their intervals over time, with gaps at breaks.

        Points are spaced by date if dates ascend, otherwise evenly.

        Args:
            last: Number of latest evaluations to show; default: all.
        """
        from rankgauge.rendering.plots import plot_history

        shown = self.points if last is None else self.points[-last:]
        dates = [str(point.entry.time.date()) for point in shown]
        if any(later <= earlier for earlier, later in pairwise(dates)):
            # Points spaced by date would overlap or be out of order: space them evenly.
            dates = [f"{point.entry.id}: {date[5:]}" for point, date in zip(shown, dates, strict=True)]
        known = any(math.isfinite(point.low) for point in shown)
        return plot_history(
            dates,
            [point.mean for point in shown],
            [point.low for point in shown] if known else (),
            [point.high for point in shown] if known else (),
            measure=str(self.measure),
            breaks=[place for place, point in enumerate(shown) if point.breaks],
        )

    def data_table(self) -> Table:
        """Return one row for each evaluation with unformatted numbers."""
        return Table(
            columns=(
                "id",
                "time",
                "run",
                "label",
                "commit",
                "measure",
                "queries",
                "mean",
                "low",
                "high",
                "change",
                "change_low",
                "change_high",
                "break",
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
                        if point.change is None
                        else (point.change.difference, point.change.low, point.change.high)
                    ),
                    "; ".join(point.breaks),
                )
                for point in self.points
            ),
        )

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        if self.warnings:
            return self.warnings[0]
        if not self.points:
            return f"no saved evaluation has {self.measure}"
        latest = {point.entry.run: point for point in self.points}.values()
        means = (f"{point.entry.name}: {point.mean:.4f}" for point in latest)
        return f"{self.measure} of {', '.join(means)}"


@dataclass(frozen=True)
class _Scale:
    """Horizontal scale of a text plot."""

    low: float
    high: float

    @classmethod
    def of(cls, points: Sequence[TrendPoint]) -> _Scale:
        ends = [value for point in points for value in (point.low, point.mean, point.high)]
        known = [value for value in ends if math.isfinite(value)]
        return cls(min(known, default=0.0), max(known, default=0.0))

    @property
    def head(self) -> str:
        left, right = f"{self.low:.3g}", f"{self.high:.3g}"
        return left + right.rjust(max(_PLOT - len(left), len(right) + 1))

    def drawn(self, point: TrendPoint) -> str:
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


def _change_text(change: Difference | None) -> str:
    if change is None:
        return ""
    if not change.wins + change.losses:
        return "identical"
    return f"{change.difference:+.3f} ({change.interval_text()})"


def trend_of(history: History, measure: str | Measure, *, run: str | None = None) -> Trend:
    """Track a measure over time in the order of addition.

    A break is a change of judgments, policies, or queries: nothing is compared across it. The
    latest evaluation is compared query by query with the first and the best since the last break
    (paired t interval), so that a decline in many small steps is also detected. Each run is tracked
    separately: a difference between runs is not a change over time.

    Args:
        history: The store.
        measure: The measure.
        run: Name of the run; if None, all runs.

    Raises:
        InputError: If no evaluation has the measure.
    """
    measure = parse(measure)
    entries = history.entries(run=run)
    chosen = [entry for entry in entries if str(measure) in entry.means]
    if run is not None and not entries:
        names = dict.fromkeys(entry.run for entry in history.entries())
        raise InputError(
            f"there is no saved evaluation of a run {run!r}",
            where=history.where,
            fix=f"runs are: {', '.join(names) or 'none'}",
        )
    if not chosen:
        names = dict.fromkeys(name for entry in entries for name in entry.means)
        raise InputError(
            f"no saved evaluation has {measure}",
            where=history.where,
            fix=f"saved measures: {', '.join(names) or 'none'}",
        )
    saved = [
        (replace(entry, means={str(measure): entry.means[str(measure)]}), history.load(entry, measure))
        for entry in chosen
    ]
    runs = group_values((entry.run, (entry, evaluation)) for entry, evaluation in saved)
    points: list[TrendPoint] = []
    warnings: list[str] = []
    by_judge = means_of([entry for entry, _ in saved], measure)[1]
    for name, own in runs.items():
        followed = _points(measure, own, by_judge=by_judge)
        warnings += _decline(followed, own)
        if points:
            followed[0] = replace(followed[0], breaks=(f"{_OTHER_RUN} ({name})",))
        points += followed
    return Trend(measure, tuple(points), tuple(warnings), _notes(points, measure, by_judge=by_judge))


def _points(measure: Measure, saved: Sequence[tuple[HistoryEntry, Evaluation]], *, by_judge: bool) -> list[TrendPoint]:
    """Return the evaluations of one run, each compared with the previous one."""
    points: list[TrendPoint] = []
    for place, (entry, evaluation) in enumerate(saved):
        breaks: tuple[str, ...] = ()
        change = None
        if place:
            before, earlier = saved[place - 1]
            breaks = tuple(obstacles(before, entry))
            if earlier.query_ids != evaluation.query_ids and set(earlier.query_ids) != set(evaluation.query_ids):
                breaks += (f"different queries ({before.queries} in {before.id}, {entry.queries} in {entry.id})",)
            change = None if breaks else _difference(earlier, evaluation, measure, 1 - _ALPHA)
        mean, (low, high) = entry.means[str(measure)], _interval(entry, evaluation, measure)
        if by_judge:
            low = high = math.nan
        elif "corrected" in (about := about_judge(entry.run_settings, measure)):
            mean, low, high = about["corrected"]
        points.append(TrendPoint(entry, mean, low, high, change, breaks))
    return points


def _difference(old: Evaluation, new: Evaluation, measure: Measure, level: float) -> Difference | None:
    """Return the untested difference (new minus old) by one measure on the queries of both, without weights.

    None if fewer than two shared queries have a value, or the judge of answers is not usable.
    """
    places = {new.query_ids[row]: row for row in _counted(new, measure)}
    rows = [(row, places[query]) for row in _counted(old, measure) if (query := old.query_ids[row]) in places]
    # Every query counts the same in a difference.
    before, after = (
        replace(
            select(whole, [measure], [pair[side] for pair in rows]),
            run_name=name,
            weights=None,
            groups=None,
            left_out=None,
        )
        for side, (whole, name) in enumerate(((old, "before"), (new, "after")))
    )
    if any(withholding(mine, measure, theirs) for mine, theirs in ((before, after), (after, before))):
        return None
    difference = describe_difference(after, before, measure, level)
    return None if difference.queries < 2 else difference


def _counted(whole: Evaluation, measure: Measure) -> Sequence[int]:
    """Return the rows of the queries that count in the mean of a measure."""
    if whole.left_out is None:
        return range(len(whole.query_ids))
    rows: list[int] = np.flatnonzero(~whole.left_out[:, whole.measures.index(measure)]).tolist()
    return rows


def _interval(entry: HistoryEntry, evaluation: Evaluation, measure: Measure) -> tuple[float, float]:
    """Return the confidence interval of the mean over queries, or of the sum."""
    values = evaluation.counted(measure)
    values = values[~np.isnan(values)]
    how = measure.declaration.mean
    if len(values) < 2 or entry.weighted or how not in {"arithmetic", "sum"}:
        return math.nan, math.nan
    if how == "sum":
        interval = stats.t_interval(values)
        return interval.low * len(values), interval.high * len(values)
    return measure.mean_interval(values)


def _decline(points: Sequence[TrendPoint], saved: Sequence[tuple[HistoryEntry, Evaluation]]) -> Iterator[str]:
    """Yield a warning if the latest evaluation is worse than the first or the best since a break.

    The two tests share the level of 5%. The first evaluation is chosen in advance and gets one
    half. The best is selected from the data; its half is divided by the number of candidates
    (Bonferroni).
    """
    begin = max((place for place, point in enumerate(points) if point.breaks), default=0)
    measure = next(iter(saved))[1].measures[0] if saved else None
    if measure is None or measure.declaration.better == "neither" or len(points) - begin < 2:
        return
    stretch = saved[begin:]
    latest = stretch[-1][1]
    sign = -1.0 if measure.declaration.better == "lower" else 1.0
    means = [np.nan_to_num(sign * point.mean, nan=-math.inf) for point in points[begin:-1]]
    best = int(np.argmax(means))
    choices = len({evaluation.per_query.tobytes() for _, evaluation in stretch[:-1]})
    # If the best is also the first, it was chosen in advance.
    levels = {0: 1 - _ALPHA / 2, **({best: 1 - _ALPHA / 2 / choices} if best else {})}
    for place in sorted(levels, reverse=True):
        fall = _difference(stretch[place][1], latest, measure, levels[place])
        if fall is not None and fall.is_worse:
            since, now = stretch[place][0], stretch[-1][0]
            text = (
                f"{now.name} is worse than {since.name} by {measure}: {fall.difference:+.3f} "
                f"({100 * levels[place]:.4g}% interval {fall.low:+.3f} to {fall.high:+.3f})"
            )
            yield _decline_text(text, stretch[place:], points[begin + place :])
            return


def _decline_text(text: str, stretch: Sequence[tuple[HistoryEntry, Evaluation]], points: Sequence[TrendPoint]) -> str:
    """Describe a decline, and say whether any single step shows it."""
    since, latest = stretch[0][0], stretch[-1][0]
    between = len(stretch) - 1
    if between == 1:
        return text + _commits(since, latest)
    measure, level = stretch[0][1].measures[0], 1 - _ALPHA / between
    parts = []
    for (entry, old), (after, new), point in zip(stretch, stretch[1:], points[1:], strict=False):
        step = point.change and _difference(old, new, measure, level)
        if step and step.is_worse:
            parts.append(f"from {entry.id} to {after.id} ({step.difference:+.3f}{_commits(entry, after)})")
    if parts:
        return f"{text}; it fell {', '.join(parts)}"
    return f"slow decline: {text}; none of the {between} steps is significant by itself" + _commits(since, latest)


def _commits(before: HistoryEntry, after: HistoryEntry) -> str:
    if before.commit is None or after.commit is None or before.commit == after.commit:
        return ""
    return f", commits {before.commit[:8]}..{after.commit[:8]}"


def _notes(points: Sequence[TrendPoint], measure: Measure, *, by_judge: bool) -> tuple[str, ...]:
    runs = list(dict.fromkeys(point.entry.run for point in points))
    changed = sum(bool(point.breaks) and _OTHER_RUN not in point.breaks[0] for point in points)
    return keep(
        by_judge and f"{measure} is by the labels of the judge, not corrected for its errors, and has no interval",
        len(runs) > 1 and f"{len(runs)} runs, each tracked separately ({some(runs)}); choose one with --run",
        any(math.isfinite(point.low) for point in points)
        and "the line through each mean (o) is its 95% interval over queries; changes are "
        "tested query by query, so they can be significant even if intervals overlap",
        any(math.isnan(point.low) for point in points)
        and not by_judge
        and "no interval: a single query, weighted means, or a geometric mean",
        changed and f"{len(runs) + changed} segments that are not comparable with each other",
    )
