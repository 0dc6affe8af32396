"""`find_alerts`: metrics beyond their thresholds, and recent changes for the worse."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, timedelta

from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.production.metrics import OnlineMetric, Threshold, ThresholdCheck
from rankgauge.production.online_result import MetricChange, OnlineMetrics, check_threshold
from rankgauge.rendering import Result, Table

_RECENT = timedelta(weeks=3)  # before the latest whole week: the period in which a shift is an alert


@dataclass(frozen=True)
class Alert:
    """A metric that is beyond its threshold, has shifted, or differs in the latest week.

    Attributes:
        metric: The name of the metric.
        kind: ``threshold``, ``shift``, or ``week``.
        sentence: The alert with its numbers and assumptions.
        value: The value in the period.
        low: The lower bound of the 95% interval; NaN for a shift.
        high: The upper bound.
        since: The first day of the period: the Monday of the week, or the day of the shift.
        until: Its last day.
        threshold: The threshold as text, or empty.
        p: The p-value of a shift or week; NaN for a threshold.
        explanation: The attribute value or arm that explains a week, or empty. Unlike the other
            attributes, it contains text of the log.
    """

    metric: str
    kind: str
    sentence: str
    value: float
    low: float
    high: float
    since: str
    until: str
    threshold: str = ""
    p: float = math.nan
    explanation: str = ""

    @property
    def text(self) -> str:
        """The sentence with the explanation."""
        return f"{self.sentence}; {self.explanation}" if self.explanation else self.sentence


@dataclass(frozen=True, repr=False)
class Alerts(Result):
    """Alerts of a log. Returned by :func:`find_alerts`.

    Attributes:
        week: The Monday of the latest whole week, to which thresholds apply; empty without one.
        alerts: The alerts.
        undecided: The thresholds that may be exceeded, or whose metric is not defined.
    """

    _attributes = "week alerts=data_table.records undecided=notes"
    _columns = "alerts metric kind sentence value low high since until threshold p explanation"

    week: str
    alerts: tuple[Alert, ...]
    undecided: tuple[ThresholdCheck, ...]

    def exit_code(self) -> int:
        """Return 1 if there is an alert, 4 if the metric of a threshold is not defined, else 0."""
        return 1 if self.alerts else 4 * any(check.verdict == "NOT DEFINED" for check in self.undecided)

    def notes(self) -> list[str]:
        """Return the undecided thresholds as sentences."""
        return [f"{check.verdict}: {check.sentence}" for check in self.undecided]

    def table(self) -> Table:
        """Return one row per alert."""
        rows = tuple((alert.metric, alert.since, alert.until, alert.text) for alert in self.alerts)
        return Table(("metric", "since", "until", "alert"), rows, title=self.summary(), notes=tuple(self.notes()))

    def summary(self) -> str:
        """Return the number of alerts."""
        return many(len(self.alerts), "alert") if self.alerts else "no alerts"


def find_alerts(metrics: OnlineMetrics, thresholds: Iterable[Threshold] = ()) -> Alerts:
    """Return the alerts of a log.

    A metric is beyond a threshold if the whole 95% interval of the latest whole week (UTC, from
    Monday) is beyond it, so the result does not depend on how often you look in a week. A shift in
    the last four weeks and a latest week that differs from the others are also alerts, unless the
    metric became better. Their tests are valid for one look (:func:`online_metrics`).

    Args:
        metrics: The metrics of a log by week.
        thresholds: The thresholds.

    Raises:
        InputError: If the metrics are not by week.
    """
    if metrics.by != "week":
        raise InputError("alerts need metrics by week", where="metrics", fix='pass by="week"')
    if metrics.last is None:
        return Alerts("", (), tuple(check_threshold(threshold, metrics.overall) for threshold in thresholds))
    end = metrics.last.astimezone(UTC).date()
    whole = [week for week in metrics.group_names if date.fromisoformat(week) + timedelta(days=6) <= end]
    week = [*metrics.group_names[:1], *whole][-1]
    until = min(end, date.fromisoformat(week) + timedelta(days=6)).isoformat()
    values = {value.metric.name: value for value in metrics.groups if value.group == week}
    alerts, undecided = [], []
    for threshold in thresholds:
        check, value = check_threshold(threshold, values.values()), values[threshold.metric]
        if check.verdict == "FAIL":
            sentence = f"{check.sentence}, {week} to {until}; assumes that {metrics.unit} are independent"
            numbers = value.value, value.low, value.high
            alerts.append(
                Alert(threshold.metric, "threshold", sentence, *numbers, week, until, threshold=str(threshold))
            )
        elif check.verdict != "PASS":
            undecided.append(check)
    changes = (alert for change in metrics.changes for alert in _recent(change, date.fromisoformat(week), end))
    return Alerts(week, (*alerts, *changes), tuple(undecided))


def _recent(change: MetricChange, week: date, end: date) -> Iterator[Alert]:
    """Yield the latest shift and the week that differs, if they are recent and not for the better."""
    name, nan = change.metric.name, math.nan
    for day, before, after in change.shifts[-1:]:
        if date.fromisoformat(day) >= week - _RECENT and not _improved(change.metric, before, after):
            yield Alert(name, "shift", change.shift_sentence, after, nan, nan, day, str(end), p=change.p)
    found = change.week
    if found and date.fromisoformat(found.start) >= week and not _improved(change.metric, found.others, found.value):
        until = min(end, date.fromisoformat(found.start) + timedelta(days=6))
        sentence = replace(change, week=replace(found, explanation="")).week_sentence
        numbers = found.value, found.low, found.high
        yield Alert(name, "week", sentence, *numbers, found.start, str(until), p=found.p, explanation=found.explanation)


def _improved(metric: OnlineMetric, before: float, after: float) -> bool:
    return metric.better == ("higher" if after > before else "lower")
