"""Alerts of a log, and comparison of offline evaluations with user behavior over the same weeks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Literal, TypeAlias

import numpy as np

from rankgauge import stats
from rankgauge.core.arguments import number, of_kind
from rankgauge.core.text import Ratio, keep, many
from rankgauge.errors import InputError
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure, parse
from rankgauge.production.log import EventLog
from rankgauge.production.metrics import OnlineMetric, Threshold, ThresholdCheck
from rankgauge.production.online import online_metrics
from rankgauge.production.online_result import ASSUMPTION, MetricChange, OnlineMetrics, check_threshold, signed
from rankgauge.rendering import Result, Table
from rankgauge.rendering.tables import Cell, Detail

State: TypeAlias = Literal["worse", "better", "steady", "cannot tell"]
HealthVerdict: TypeAlias = Literal["REFRESH", "WORSE", "OFFLINE ONLY", "STEADY", "USERS ONLY", "CANNOT TELL"]

_ALPHA = 0.05
_ROWS = 12
_RECENT = timedelta(weeks=3)  # before the latest whole week: the period in which a shift is an alert
# Online metrics, with the sign of a change for the worse.
_SIGNS = {"thumbs_ratio": -1, "idk_rate": 1, "reformulation_rate": 1}
_SENTENCES: Mapping[HealthVerdict, str] = {
    "REFRESH": "metrics look good, but users complain: refresh the evaluation set",
    "WORSE": "metrics fall and users complain: find the change that caused it",
    "OFFLINE ONLY": "metrics fall, users show no change: check which queries lost, and whether "
    "users ask such questions",
    "STEADY": "metrics hold, and users complain no more than before",
    "USERS ONLY": "users complain, and there are too few queries or evaluations to tell whether "
    "metrics hold: evaluate again on more queries",
}


@dataclass(frozen=True)
class Signal:
    """The change of a measure or metric over time.

    Attributes:
        name: The measure or online metric.
        state: ``worse``, ``better``, ``steady`` (a loss of the margin or more is excluded), or
            ``cannot tell``.
        change: The change from the first to the last evaluation; online, the change of a straight
            line from the first to the last day.
        low: The lower bound of its 95% interval; NaN without an interval.
        high: The upper bound; NaN without an interval.
        p: Twice the smaller p-value of the largest shift of an online metric and of its line, with
            Holm's correction over metrics; NaN offline.
        reason: The reason for an undecided signal or a missing interval, or empty.
        week: A sentence on the week in which an online metric differs from other weeks, or empty.
    """

    name: str
    state: State
    change: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    reason: str = ""
    week: str = ""

    @property
    def sentence(self) -> str:
        """The signal as a sentence."""
        if math.isnan(self.change):
            return "; ".join(filter(None, (f"{self.name}: {self.state}: {self.reason}", self.week)))
        spread = f"95% interval {signed(self.low)} to {signed(self.high)}" if not math.isnan(self.low) else self.reason
        if self.change == self.low == self.high == 0:
            spread = "no value changed"
        p = "" if math.isnan(self.p) else f", p = {self.p:.3f}, Holm; {ASSUMPTION}"
        change = f"{self.name}: {self.state}: change {signed(self.change)} ({spread}{p})"
        return f"{change}; {self.week}" if self.week else change


@dataclass(frozen=True)
class HealthWeek:
    """Offline and online values of one week.

    Attributes:
        start: The Monday of the week.
        offline: The mean of the latest evaluation in the week; NaN without an evaluation.
        online: The value of each metric; NaN if undefined.
    """

    start: str
    offline: float
    online: Mapping[str, float]


@dataclass(frozen=True, repr=False)
class ProductionHealth(Result):
    """The comparison of evaluations with user behavior. Returned by :func:`production_health`.

    Attributes:
        measure: The measure of the evaluations.
        weeks: The values by week.
        offline: The signal of the measure.
        online: The signals of the online metrics.
        drift: Whether the questions of users differ from the evaluation set; None if unknown.
        verdict: ``REFRESH``, ``WORSE``, ``OFFLINE ONLY``, ``STEADY``, ``USERS ONLY``, or
            ``CANNOT TELL``.
        sentence: The verdict as a sentence.
        margin: The smallest relevant change of an online metric.
        offline_margin: The smallest relevant loss of the measure.
    """

    _attributes = "verdict sentence offline online drift rows=data_table.records notes=table.notes"

    measure: str
    weeks: tuple[HealthWeek, ...]
    offline: Signal
    online: tuple[Signal, ...]
    drift: bool | None
    verdict: HealthVerdict
    sentence: str
    margin: float
    offline_margin: float

    def table(self) -> Table:
        """Return one row per week, with the verdict above; weeks before the latest are details."""
        rows: list[tuple[Cell, ...]] = [
            (week.start, Ratio(week.offline), *map(Ratio, week.online.values())) for week in self.weeks
        ]
        older = [(Detail(week), *values) for week, *values in rows[:-_ROWS]]
        drift = f"drift of the questions: {'found' if self.drift else 'none found'}"
        return replace(
            self.data_table(),
            rows=(*older, *rows[-_ROWS:]),
            title=f"{self.verdict}: {self.sentence}",
            notes=keep(
                f"offline: {self.offline.sentence}",
                *(f"online: {signal.sentence}" for signal in self.online),
                "drift of the questions was not measured: run rankgauge logs drift" if self.drift is None else drift,
                f"changes for the worse below {self.offline_margin:g} (offline) or {self.margin:g} (online) count as "
                "steady",
            ),
            digits=3,
            unit="week",
        )

    def data_table(self) -> Table:
        """Return one row per week with unformatted numbers."""
        names = [signal.name for signal in self.online]
        return Table(
            ("week", self.measure, *names),
            tuple((w.start, w.offline, *(w.online[name] for name in names)) for w in self.weeks),
        )


def production_health(
    log: EventLog | str,
    evaluations: Sequence[tuple[datetime, Evaluation | float]],
    measure: str | Measure = "nDCG@10",
    *,
    drift: bool | None = None,
    margin: float = 0.05,
    offline_margin: float = 0.02,
    since: str | None = None,
    until: str | None = None,
) -> ProductionHealth:
    """Compare evaluations with user behavior in the same weeks.

    Offline, the last evaluation is compared with the first on the queries of both (paired t
    interval). Online, the thumbs ratio, abstention rate, and reformulation rate are searched for
    shifts and for a week that differs (:func:`online_metrics`); the interval of a straight line
    determines whether a change by the margin is excluded. A metric is worse after a shift or trend
    for the worse, unless a shift brought it back to within the margin of its first rate; or if the
    last week differs for the worse, unless its interval excludes a difference of the margin.

    Args:
        log: The log, or its path.
        evaluations: Pairs of a time and an evaluation or its mean.
        measure: The measure of the evaluations.
        drift: Whether drift of the questions was found; None if unknown.
        margin: The smallest relevant change of an online metric.
        offline_margin: The smallest relevant loss of the measure.
        since: The day or time (UTC) from which questions of the log are used.
        until: The day or time (UTC) before which questions are used.

    Raises:
        InputError: If there is no evaluation, or a time has no time zone.

    Example:
        >>> import duckdb, tempfile
        >>> from datetime import UTC, datetime
        >>> path = tempfile.mkdtemp() + "/log.parquet"
        >>> _ = duckdb.execute(f'''COPY (SELECT 'e' || i AS event_id, 'answer' AS kind,
        ...     TIMESTAMPTZ '2026-05-01 12:00+00' AS time, 'q' || i AS question_id
        ...     FROM range(40) t(i)) TO '{path}' ''')
        >>> times = [datetime(2026, 5, day, tzinfo=UTC) for day in (1, 8)]
        >>> production_health(path, [(times[0], 0.72), (times[1], 0.74)]).verdict
        'CANNOT TELL'
    """
    number("margin", margin, above=True)
    number("offline_margin", offline_margin, above=True)
    wanted = parse(measure)
    if not evaluations:
        raise InputError(
            "there is no evaluation", where="evaluations", fix="evaluate with --save, or pass [(time, evaluation), ...]"
        )
    for time, _ in evaluations:
        of_kind("time", time, datetime, "pass a datetime with a time zone", where="evaluations")
        if time.tzinfo is None:
            raise InputError(f"{time} has no time zone", where="evaluations", fix="add one, such as tzinfo=UTC")
    points = sorted(evaluations, key=lambda pair: pair[0])
    names = tuple(_SIGNS)
    weekly = online_metrics(log, names, by="week", since=since, until=until)
    changes = {change.metric.name: change for change in weekly.changes}
    online = tuple(
        online_signal(changes[name], margin)
        if name in changes
        else Signal(name, "cannot tell", reason=weekly.value(name).reason)
        for name in names
    )
    offline = offline_signal([value for _, value in points], wanted, offline_margin)
    verdict, sentence = verdict_of(
        offline.state, [signal.state for signal in online if signal.name in changes], drift=drift
    )
    means = {_monday(time): _mean(value, wanted) for time, value in points}
    weeks = tuple(
        HealthWeek(
            start,
            means.get(start, math.nan),
            {name: weekly.value(name, start).value if start in weekly.group_names else math.nan for name in names},
        )
        for start in sorted({*means, *weekly.group_names})
    )
    return ProductionHealth(str(wanted), weeks, offline, online, drift, verdict, sentence, margin, offline_margin)


def verdict_of(offline: State, online: Sequence[State], *, drift: bool | None) -> tuple[HealthVerdict, str]:
    """Return the verdict for the states of a measure and of online metrics, with its sentence."""
    holds = offline in {"steady", "better"}
    verdict: HealthVerdict
    if "worse" in online and holds:
        verdict = "REFRESH"
    elif "worse" in online:
        verdict = "WORSE" if offline == "worse" else "USERS ONLY"
    elif drift:
        return "REFRESH", "the questions of users differ from the evaluation set: refresh it"
    elif online and "cannot tell" not in online and offline != "cannot tell":
        verdict = "STEADY" if holds else "OFFLINE ONLY"
    elif offline == "worse":
        return "CANNOT TELL", "metrics fall; the log is too small to tell whether users notice"
    elif holds:
        return "CANNOT TELL", "metrics hold; the log is too small to tell whether users complain more"
    else:
        return "CANNOT TELL", "there are too few queries or evaluations to tell whether metrics hold"
    return verdict, _SENTENCES[verdict]


def offline_signal(values: Sequence[Evaluation | float], measure: Measure, margin: float) -> Signal:
    """Test whether the last value is worse than the first by the margin or more."""
    name = str(measure)
    if len(values) < 2:
        return Signal(name, "cannot tell", reason="there is only one evaluation")
    first, last = values[0], values[-1]
    if not (isinstance(first, Evaluation) and isinstance(last, Evaluation)):
        change = _mean(last, measure) - _mean(first, measure)
        gain = float(measure.improvements(np.array([change]))[0])
        state: State = "worse" if gain < -margin else "better" if gain > margin else "steady"
        return Signal(name, state, change, reason="no interval: means without queries")
    before, after = _values(first, measure), _values(last, measure)
    shared = sorted(before.keys() & after.keys())
    differences = measure.differences(
        np.array([after[query] for query in shared]),
        np.array([before[query] for query in shared]),
        skip_undefined="skip" in {first.policies.undefined, last.policies.undefined},
    )
    differences = differences[~np.isnan(differences)]
    if len(differences) < 2:
        return Signal(name, "cannot tell", reason="the first and the last evaluation share fewer than 2 queries")
    interval = stats.t_interval(differences)
    ends = measure.improvements(np.array([interval.low, interval.high]))
    low, high = float(ends.min()), float(ends.max())
    state = "cannot tell"
    if low >= -margin:
        state = "better" if low > 0 else "steady"
    elif high < 0:
        state = "worse"
    return Signal(
        name,
        state,
        interval.mean,
        interval.low,
        interval.high,
        reason="too few queries" if state == "cannot tell" else "",
    )


def online_signal(change: MetricChange, margin: float) -> Signal:
    """Tell whether a metric became worse from its change over the days."""
    name, trend, week = change.metric.name, change.trend, change.week
    sign = _SIGNS[name]
    last_week = 0.0
    if week and week.latest and sign * (week.value - week.others) > 0:
        last_week = float(np.nanmax(sign * (np.array([week.value, week.low, week.high]) - week.others)))
    if trend is None:
        state: State = "worse" if last_week >= margin else "cannot tell"
        return Signal(name, state, p=change.p, reason=change.withheld, week=change.week_sentence)
    worst = max(sign * trend.low, sign * trend.high)
    state = "steady" if worst < margin else "cannot tell"
    p = min(1.0, 2 * min(change.p, trend.p))  # Bonferroni over both tests
    if p <= _ALPHA:
        moves = [after - before for _, before, after in change.shifts] or [trend.change]
        shift = math.fsum(moves)
        # After shifts there and back, neither test is about the last rate.
        returned = min(moves) < 0 < max(moves) and abs(shift) < margin
        if sign * shift < 0 and not returned:
            state = "better"
        elif worst >= margin and not returned:
            state = "worse"
    if last_week >= margin:
        state = "worse"
    return Signal(name, state, trend.change, trend.low, trend.high, p, week=change.week_sentence)


def _values(evaluation: Evaluation, measure: Measure) -> dict[str, float]:
    return dict(zip(evaluation.query_ids, evaluation.column(measure).tolist(), strict=True))


def _mean(value: Evaluation | float, measure: Measure) -> float:
    return value[measure] if isinstance(value, Evaluation) else float(value)


def _monday(time: datetime) -> str:
    day = time.astimezone(UTC).date()
    return str(day - timedelta(days=day.weekday()))


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
        title = many(len(self.alerts), "alert") if self.alerts else "no alerts"
        return Table(("metric", "since", "until", "alert"), rows, title=title, notes=tuple(self.notes()))


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
