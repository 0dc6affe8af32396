"""The result of `online_metrics`: values with intervals, tables, plot, and thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rankgauge import stats
from rankgauge.core.text import Ratio
from rankgauge.errors import InputError, UnknownName
from rankgauge.production.metrics import OnlineMetric, Threshold, ThresholdCheck, ThresholdVerdict, metrics_of
from rankgauge.rendering import Plot, Result
from rankgauge.rendering.tables import Detail, Table

PERIODS = ("day", "week")
ASSUMPTION = f"assumes that neighboring days correlate by at most {stats.CORRELATION:g}"
_FEW = 2  # number of undefined metrics that a note explains
_ROWS = 10  # number of groups shown as rows
_COLUMNS = 4  # number of metrics shown as columns


@dataclass(frozen=True)
class OnlineValue:
    """The value of a metric for all questions of a log or a group of them.

    Attributes:
        metric: The metric.
        group: The day, segment, or arm; None for all questions.
        value: The value; NaN if undefined.
        low: The lower bound of the 95% interval, clustered by user (else session, else question);
            NaN if unavailable.
        high: The upper bound; infinite if a quantile has none.
        numerator: The numerator; NaN for a quantile.
        denominator: The denominator.
        clusters: The number of users (else sessions, else questions) with a denominator.
        reason: The reason for a missing value or interval, or empty.
        worst: For a thumbs ratio, the value if all unrated answers were rated down.
        best: For a thumbs ratio, the value if all unrated answers were rated up.
    """

    metric: OnlineMetric
    group: str | None
    value: float
    low: float
    high: float
    numerator: float
    denominator: float
    clusters: int
    reason: str = ""
    worst: float = math.nan
    best: float = math.nan

    @property
    def defined(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)

    def value_text(self) -> str:
        """Return the value as text, or a dash."""
        return figure(self.metric, self.value)

    def interval_text(self) -> str:
        """Return the interval as text, or a dash."""
        if math.isnan(self.low):
            return "–"
        high = "no limit" if math.isinf(self.high) else figure(self.metric, self.high)
        return f"{figure(self.metric, self.low)} to {high}"

    def basis(self) -> str:
        """Return numerator, denominator, and unit as text, or the reason for a missing value."""
        if not self.defined:
            return f"not defined: {self.reason}"
        below = f"{self.denominator:,.0f} {self.metric.unit}"
        if self.metric.kind == "quantile":
            return below
        above = f"{self.numerator:,.1f}" if self.numerator % 1 else f"{self.numerator:,.0f}"
        return f"{above} / {below}"


@dataclass(frozen=True)
class WeekChange:
    """A week that differs from the other weeks.

    Attributes:
        start: The Monday of the week.
        value: The value of the metric in the week.
        low: The lower bound of its interval, corrected for the number of weeks.
        high: The upper bound.
        others: The value in all other weeks.
        weeks: The number of weeks.
        p: The p-value (:func:`rankgauge.stats.different_week`), with Holm's correction.
        latest: Whether it is the last week.
        explanation: The attribute value or arm that explains the difference, as text; empty if there
            is none.
    """

    start: str
    value: float
    low: float
    high: float
    others: float
    weeks: int
    p: float
    latest: bool
    explanation: str = ""


@dataclass(frozen=True)
class MetricChange:
    """The change of a metric over the days and weeks of a log.

    Attributes:
        metric: The metric.
        trend: The straight line fitted to the daily values, its p-value with Holm's correction over
            the trends of all metrics; None if withheld.
        p: The p-value of the largest shift (:func:`rankgauge.stats.first_change`), with Holm's
            correction over the shifts and weeks of all metrics; NaN if withheld.
        shifts: If p is at most 0.05, the first day of each new rate, with the previous and the new
            rate.
        week: The week that differs from the others, if its p-value is at most 0.05.
        week_p: The p-value of the week that differs most, with the same correction; NaN if weeks
            were not compared, since users are unknown or there are fewer than five weeks.
        withheld: Why shift and trend are withheld, or empty.
    """

    metric: OnlineMetric
    trend: stats.LinearTrend | None
    p: float
    shifts: tuple[tuple[str, float, float], ...]
    week: WeekChange | None = None
    week_p: float = math.nan
    withheld: str = ""

    @property
    def sentence(self) -> str:
        """Shifts and the week that differs as text, or empty."""
        return "; ".join(filter(None, (self.shift_sentence, self.week_sentence)))

    @property
    def shift_sentence(self) -> str:
        """The shifts as text, or empty."""
        if not self.shifts:
            return ""
        parts = (
            f"from {figure(self.metric, before)} to {figure(self.metric, after)} on {group}"
            for group, before, after in self.shifts
        )
        return f"{self.metric.name} changed {', '.join(parts)} (p = {self.p:.3f}, Holm; {ASSUMPTION})"

    @property
    def week_sentence(self) -> str:
        """The week that differs as text, or empty."""
        if self.week is None:
            return ""
        week, values = self.week, (self.week.value, self.week.low, self.week.high, self.week.others)
        value, low, high, others = (figure(self.metric, number) for number in values)
        spread = "" if math.isnan(week.low) else f"95% interval {low} to {high}, corrected for {week.weeks} weeks; "
        return (
            f"{self.metric.name} differs in the week of {week.start}: {value} ({spread}p = {week.p:.3f}, Holm; "
            f"assumes that weeks vary independently), other weeks {others}"
        ) + (week.explanation and f"; {week.explanation}")


@dataclass(frozen=True, repr=False)
class OnlineMetrics(Result):
    """Metrics of a log. Returned by :func:`online_metrics`.

    Attributes:
        where: The log.
        metrics: The metrics, in the order of the tables.
        overall: The value of each metric for all questions.
        by: The grouping: ``day``, ``week``, ``arm``, an attribute, or None.
        groups: The value of each metric in each group, sorted by group.
        questions: The number of questions.
        clusters: The number of users (else sessions, else questions).
        unit: The unit of `clusters`: ``users``, ``sessions``, ``single questions``, or several of
            these.
        first: The time of the first question, or None.
        last: The time of the last question, or None.
        checks: The result of each threshold.
        changes: By day or week, the change over days and weeks of each metric with questions that
            is not a quantile; empty for other groupings.
        parameters: Minutes and similarity of reformulations, and the source of abstentions.
        notes: Notes on interpretation.
    """

    _attributes = "where questions clusters first last by parameters rows=data_table.records notes=table.notes"

    where: str
    metrics: tuple[OnlineMetric, ...]
    overall: tuple[OnlineValue, ...]
    by: str | None
    groups: tuple[OnlineValue, ...]
    questions: int
    clusters: int
    unit: str
    first: datetime | None
    last: datetime | None
    checks: tuple[ThresholdCheck, ...]
    changes: tuple[MetricChange, ...]
    parameters: Mapping[str, Any]
    notes: tuple[str, ...]

    def value(self, name: str, group: str | None = None) -> OnlineValue:
        """Return the value of a metric for all questions or for a group.

        Raises:
            UnknownName: If the metric or group is unknown.
        """
        (metric,) = metrics_of([name])
        values = {
            value.group: value for value in (self.overall if group is None else self.groups) if value.metric == metric
        }
        if not values:
            raise UnknownName.of("online metric", name, [known.name for known in self.metrics])
        if group not in values:
            raise UnknownName.of(str(self.by), str(group), [str(known) for known in values])
        return values[group]

    @property
    def group_names(self) -> tuple[str, ...]:
        """Days, segments, or arms, in order."""
        return tuple(dict.fromkeys(str(value.group) for value in self.groups))

    def exit_code(self, *, strict: bool = False) -> int:
        """Return the exit code, as for a gate.

        1 if a threshold failed, 4 if a metric is undefined, 3 if `strict` and inconclusive, else 0.
        """
        codes = {"FAIL": 1, "NOT DEFINED": 4, "INCONCLUSIVE": 3 if strict else 0}
        verdicts = {check.verdict for check in self.checks}
        return next((code for verdict, code in codes.items() if verdict in verdicts), 0)

    def table(self) -> Table:
        """Return one row per metric; with groups, one row per group.

        Undefined metrics, and with groups most groups and metrics, are details.
        """
        if self.by:
            return self._by_group()
        rows = (
            (
                value.metric.name if value.defined else Detail(value.metric.name),
                value.value_text(),
                value.interval_text(),
                value.basis(),
            )
            for value in self.overall
        )
        return Table(
            ("metric", "value", "95% interval", "numerator / denominator"),
            tuple(rows),
            title=self._title(),
            notes=tuple(self._notes()),
            right=frozenset({1}),
            unit="metric",
        )

    def _by_group(self) -> Table:
        defined = [value.metric for value in self.overall if value.defined]
        main = self.group_names[-_ROWS:] if self.by in PERIODS else self.group_names[:_ROWS]
        names = [(name, name if name in main else Detail(name)) for name in self.group_names]
        values = {(value.metric.name, value.group): value for value in (*self.groups, *self.overall)}
        columns: tuple[str, ...] = tuple(metric.name for metric in defined)
        rows = [
            (shown, *(values[metric.name, group].value_text() for metric in defined))
            for group, shown in (*names, (None, "all"))
        ]
        if len(defined) == 1:
            several = [values[columns[0], group] for group in (*self.group_names, None)]
            rows = [(*row, value.interval_text(), value.basis()) for row, value in zip(rows, several, strict=True)]
            columns = (*columns, "95% interval", "numerator / denominator")
        elif defined:
            columns = (*columns[:_COLUMNS], *map(Detail, columns[_COLUMNS:]))
        return Table(
            (str(self.by), *columns),
            tuple(rows),
            title=self._title(),
            notes=tuple(self._notes()),
            right=frozenset({1} if len(defined) == 1 else range(1, len(columns) + 1)),
            unit="group",
        )

    def data_table(self) -> Table:
        """Return one row for each metric and group with unformatted numbers."""
        return Table(
            (
                "group",
                "metric",
                "value",
                "low",
                "high",
                "numerator",
                "denominator",
                "clusters",
                "worst",
                "best",
                "unit",
                "definition",
                "reason",
            ),
            tuple(
                (
                    value.group,
                    value.metric.name,
                    value.value,
                    value.low,
                    value.high,
                    value.numerator,
                    value.denominator,
                    value.clusters,
                    value.worst,
                    value.best,
                    value.metric.unit,
                    self.definition(value.metric),
                    value.reason,
                )
                for value in (*self.overall, *self.groups)
            ),
        )

    def _data(self) -> dict[str, Any]:
        return super()._data() | {
            "thresholds": [
                {"threshold": c.threshold, "verdict": c.verdict, "sentence": c.sentence} for c in self.checks
            ],
            "changes": [
                {
                    "metric": change.metric.name,
                    "change": change.trend.change if change.trend else None,
                    "low": change.trend.low if change.trend else None,
                    "high": change.trend.high if change.trend else None,
                    "p": change.p,
                    "shifts": change.shifts,
                    "week": asdict(change.week) if change.week else None,
                    "week_p": change.week_p,
                    "withheld": change.withheld,
                    "sentence": change.sentence,
                }
                for change in self.changes
            ],
        }

    def summary(self) -> str:
        """Return the failed thresholds, or else the size of the log."""
        failed = [check.sentence for check in self.checks if check.verdict == "FAIL"]
        return "; ".join(failed) if failed else self._title()

    def change_notes(self) -> list[str]:
        """Return the changes as sentences, or what was not found, and what was not tested and why."""
        notes = [change.sentence for change in self.changes if change.sentence]
        trends = [(change.metric.name, change.trend) for change in self.changes if change.trend]
        compared = any(not math.isnan(change.week_p) for change in self.changes)
        if not notes and trends:
            widest = ", ".join(f"{name} {signed(line.low)} to {signed(line.high)}" for name, line in trends[:_FEW])
            notes.append(
                f"no shift{' or week that differs' * compared} found; linear trend from first to last day "
                f"(95% interval; {ASSUMPTION}): {widest}"
            )
        withheld = list(dict.fromkeys(change.withheld for change in self.changes if change.withheld))
        notes += [f"changes were not tested: {why}" for why in withheld]
        if not compared:
            notes.append(f"weeks were not compared: this requires user_id and at least {stats.FEWEST_WEEKS} weeks")
        return notes

    def plot(self, name: str | None = None) -> Plot:
        """Plot a metric by day or week with its intervals.

        Args:
            name: The metric; default: the first defined metric.

        Raises:
            InputError: If the metrics are not by day or week, or the metric is undefined.
        """
        from rankgauge.rendering.plots import plot_history

        if self.by not in PERIODS:
            raise InputError("metrics over time need days or weeks", where="plot", fix='pass by="day"')
        defined = (value.metric for value in self.overall if value.defined)
        chosen = next(defined, None) if name is None else metrics_of([name])[0]
        points = [value for value in self.groups if value.metric == chosen and value.defined]
        if chosen is None or not points:
            raise InputError(
                f"{name or 'no metric'} is not defined on any {self.by}",
                where="plot",
                fix="choose a metric that has values in the table",
            )
        ends = [(p.value, p.value) if math.isnan(p.low) or math.isinf(p.high) else (p.low, p.high) for p in points]
        return plot_history(
            [str(p.group) for p in points],
            [p.value for p in points],
            [low for low, _ in ends],
            [high for _, high in ends],
            measure=chosen.name,
        )

    def definition(self, metric: OnlineMetric) -> str:
        """Return the definition of a metric with the parameters of this result."""
        return metric.definition.format(**self.parameters)

    def _title(self) -> str:
        if self.first is None or self.last is None:
            return f"{self.where}: no questions"
        return (
            f"{self.questions:,} questions of {self.clusters:,} {self.unit}, "
            f"{self.first:%Y-%m-%d} to {self.last:%Y-%m-%d} (UTC)"
        )

    def _notes(self) -> Iterator[str]:
        yield from (f"{check.verdict}: {check.sentence}" for check in self.checks)
        if self.by in PERIODS:
            yield from self.change_notes()
        yield from self.notes
        missing: dict[str, list[str]] = {}
        for value in self.overall:
            if not value.defined:
                missing.setdefault(value.reason, []).append(value.metric.name)
        undefined = [name for names in missing.values() for name in names]
        notes = [f"not defined: {', '.join(names)} ({why})" for why, names in missing.items()]
        yield from notes if len(undefined) <= _FEW else map(Detail, notes)
        yield from (
            Detail(f"{m.name}: {self.definition(m)}") for m in self.metrics if not self.by or m.name not in undefined
        )


def signed(number: float) -> str:
    """Return a change with three decimals, or with one significant digit if it is smaller."""
    return f"{number:+.3f}" if abs(number) >= 0.0005 else f"{number:+.1g}" if number else "0"


def figure(metric: OnlineMetric, value: float) -> str:
    """Return a value with the number of digits for its unit."""
    if math.isnan(value):
        return "–"
    if metric.kind == "quantile":
        return f"{value:,.0f}"
    return f"{Ratio(value):.3f}" if metric.bounds == (0.0, 1.0) else f"{value:.2f}"


def check_threshold(threshold: Threshold, values: Iterable[OnlineValue]) -> ThresholdCheck:
    """Test whether the interval of a metric is beyond a threshold."""
    value = next(value for value in values if value.metric.name == threshold.metric)
    if not value.defined:
        return ThresholdCheck(threshold, "NOT DEFINED", f"{threshold}: {value.reason}")
    side = "above" if threshold.above else "below"
    low, high = value.low, value.high
    if not threshold.above:  # mirror values so that failing ones are above the limit
        low, high = -high, -low
    limit = threshold.number if threshold.above else -threshold.number
    verdict: ThresholdVerdict = "INCONCLUSIVE"
    message = f"may be {side} {threshold.number:g}"
    if low > limit:
        verdict, message = "FAIL", f"is {side} {threshold.number:g}"
    elif high <= limit:
        verdict, message = "PASS", f"is not {side} {threshold.number:g}"
    spread = f"95% interval {value.interval_text()}" if not math.isnan(low) else f"no interval: {value.reason}"
    return ThresholdCheck(threshold, verdict, f"{threshold.metric} {message}: {value.value_text()} ({spread})")
