"""`online_metrics`: metrics of a log with intervals, by day, segment, or arm."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from rankgauge import stats
from rankgauge.core.abstention import ABSTENTION_RE2, ABSTENTION_RULE, RULE_SENSITIVITY, RULE_SPECIFICITY, abstains
from rankgauge.core.arguments import known_name, number
from rankgauge.core.text import keep, some
from rankgauge.errors import InputError
from rankgauge.production.events import Parameters
from rankgauge.production.log import EventLog
from rankgauge.production.metrics import OnlineMetric, Threshold, bound_thumbs, metrics_of
from rankgauge.production.online_result import (
    PERIODS,
    MetricChange,
    OnlineMetrics,
    OnlineValue,
    WeekChange,
    check_threshold,
    figure,
)

_UNIT = """CASE WHEN user_id IS NOT NULL THEN 'users' WHEN session_id IS NOT NULL THEN 'sessions'
    ELSE 'single questions' END"""
_EVENTS = "events"
_GROUPS = {"day": "strftime(day, '%Y-%m-%d')", "week": "strftime(date_trunc('week', day), '%Y-%m-%d')", "arm": "arm"}
_GRID = 1000
_ALPHA = 0.05
_MOST_USERS = 1000  # users beyond this number share a row of daily sums, which keeps rows independent
_KNOWN = 0.9  # smallest share of questions with a user from which users count as known
_MOST_VALUES = 20  # largest number of values of an attribute that may explain a week


def online_metrics(
    log: EventLog | str,
    metrics: Iterable[str] | str | None = None,
    *,
    by: str | None = None,
    since: str | date | None = None,
    until: str | date | None = None,
    where: Mapping[str, str] | None = None,
    thresholds: Iterable[str] = (),
    minutes: float = 10,
    similarity: float = 0.5,
) -> OnlineMetrics:
    """Compute metrics of a log with 95% intervals.

    Intervals are clustered by user, or by session for unknown users:
    :func:`rankgauge.stats.clustered_proportion`, :func:`~rankgauge.stats.clustered_mean`, and
    Woodruff's method (1952) for quantiles. A metric whose events were not logged is undefined,
    never 0. If no abstentions were logged, a rule finds them in the text of answers.

    By day or week, rates and means are searched for shifts, for a linear trend, and for a week that
    differs from the others (:func:`rankgauge.stats.first_change`,
    :func:`~rankgauge.stats.linear_trend`, :func:`~rankgauge.stats.different_week`). The tests
    assume that users are independent, that disturbances shared by all users have a correlation of
    at most 0.6 between neighboring days, and that weeks vary independently. If less than 90% of
    the questions have a user, at least ten weeks are needed, and weeks are not compared.

    Args:
        log: The log, or its path.
        metrics: Names of metrics; default: all.
        by: The grouping: ``day``, ``week`` (from Monday), ``arm``, or an attribute of the events.
        since: The day or time (UTC) from which questions are used.
        until: The day or time (UTC) before which questions are used.
        where: The values of attributes, or of ``arm``, that select questions.
        thresholds: Thresholds such as ``"idk_rate > 0.2"``, which fail if the whole interval is
            beyond the limit.
        minutes: The time within which a similar question is a reformulation, and after which a
            search without any action is abandoned.
        similarity: The smallest cosine similarity of the words of similar questions, from 0 to 1.

    Raises:
        UnknownName: If a metric or an attribute is unknown.
        InputError: If the log does not exist, or a value is invalid.
        MissingExtra: If DuckDB is not installed.

    Example:
        >>> import duckdb, tempfile
        >>> path = tempfile.mkdtemp() + "/log.parquet"
        >>> _ = duckdb.execute(f'''COPY (SELECT 'e' || i AS event_id, time, 'q' || (i // 2)
        ...     AS question_id, 'u' || (i // 4) AS user_id,
        ...     ['answer', 'thumbs'][i % 2 + 1] AS kind, (i % 4 = 1)::INT * 2.0 - 1 AS value
        ...     FROM (SELECT i, TIMESTAMPTZ '2026-05-01 12:00+00' AS time FROM range(80) t(i)))
        ...     TO '{path}' ''')
        >>> metrics = online_metrics(path, ["thumbs_ratio", "search_ctr"])
        >>> [(value.value, value.reason) for value in metrics.overall][0]
        (0.5, '')
    """
    known = EventLog.of(log)
    limits = [Threshold.of(text) for text in thresholds]
    names = [*(metric.name for metric in metrics_of(metrics)), *(limit.metric for limit in limits)]
    asked = metrics_of(names)
    if "thumbs_ratio" in names and "feedback_rate" not in names:
        names.insert(names.index("thumbs_ratio") + 1, "feedback_rate")
    wanted = metrics_of(names)
    with known.connection() as connection:
        sql, reasons, parameters = expressions(connection, wanted, minutes=minutes, similarity=similarity)
        values_of = Parameters()
        conditions = [
            f"time {sign} {values_of.add(_time(time, name))}::TIMESTAMP"
            for name, sign, time in (("since", ">=", since), ("until", "<", until))
            if time is not None
        ]
        for name, value in (where or {}).items():
            conditions.append(f"{_group(connection, name, values_of)} = {values_of.add(value)}")
        group_sql = _group(connection, by, values_of)
        counted = _create_measured(connection, sql, group_sql, " AND ".join(conditions) or "true", values_of)
        sums = _sums_of(connection, list(sql), grouped=bool(group_sql))
        changes = _changes(connection, {n: m for n, m in enumerate(sql) if m in asked}) if by in PERIODS else ()
    groups = [None, *sorted({group for group, _ in sums if group is not None})]
    values = {group: _bounded([_value(m, group, sums, reasons[m]) for m in wanted]) for group in groups}
    overall = values[None]
    return OnlineMetrics(
        known.path,
        wanted,
        overall,
        by,
        tuple(value for group in groups[1:] for value in values[group]),
        *counted,
        tuple(check_threshold(limit, overall) for limit in limits),
        changes,
        parameters,
        _notes(overall, parameters["abstention"]),
    )


@dataclass(frozen=True)
class _Sums:
    """Sums of a metric from the database: moments and, for a quantile, values on a grid."""

    moments: stats.ClusterSums
    quantile: float = math.nan
    grid: Sequence[float] = ()


# The sums of each metric by group; None is the group of all questions.
_SumsOf: TypeAlias = dict[tuple[str | None, OnlineMetric], _Sums]


def _create_measured(  # noqa: PLR0917 - what a table is made of
    connection: Any, sql: Mapping[OnlineMetric, tuple[str, str]], group: str, condition: str, parameters: Parameters
) -> tuple[int, int, str, datetime | None, datetime | None]:
    """Create a table of the questions with numerators and denominators (y0, x0, y1, ...).

    The table computes the view of questions only once. Return the numbers of questions and
    clusters, the unit of clusters, and the period.
    """
    columns = "".join(f", {y} AS y{n}, {x} AS x{n}" for n, (y, x) in enumerate(sql.values()))
    name = f"coalesce({group}, '(unknown)')" if group else "NULL::VARCHAR"
    connection.execute(
        f'CREATE TEMP TABLE measured AS SELECT {name} AS "group", "cluster", '
        f"session_id AS session, {_UNIT} AS unit, time, "
        f"strftime(time, '%Y-%m-%d') AS day, arm, attributes{columns} FROM questions "
        f"WHERE {condition}",
        parameters,
    )
    [(questions, clusters, unit, *period)] = connection.execute(
        """SELECT count(*), count(DISTINCT "cluster"),
        string_agg(DISTINCT unit, ' or ' ORDER BY unit), min(time), max(time) FROM measured"""
    ).fetchall()
    first, last = (None if time is None else time.replace(tzinfo=UTC) for time in period)
    return questions, clusters, unit or "users", first, last


def _sums_of(connection: Any, metrics: Sequence[OnlineMetric], *, grouped: bool) -> _SumsOf:
    """Return the sums of each metric for all questions and, if grouped, for each group."""
    rates = {n: m for n, m in enumerate(metrics) if m.kind != "quantile" and not m.per_session}
    sessions = {n: m for n, m in enumerate(metrics) if m.per_session}
    columns = "".join(f", y{n}, x{n}" for n in range(len(metrics)))
    sums: _SumsOf = {}
    for group in ("NULL::VARCHAR", '"group"') if grouped else ("NULL::VARCHAR",):
        rows = f'(SELECT {group} AS "group", "cluster", session{columns} FROM measured)'
        sums |= _moments(connection, rows, rates)
        # In the total, a session with questions in several groups counts once.
        least = "".join(f", min(y{n}) AS y{n}, max(x{n}) AS x{n}" for n in sessions)
        of_sessions = (
            f'(SELECT "group", min("cluster") AS "cluster"{least} FROM {rows} AS r '
            'WHERE session IS NOT NULL GROUP BY "group", session)'
        )
        sums |= _moments(connection, of_sessions, sessions)
        for n, metric in enumerate(metrics):
            if metric.kind == "quantile":
                sums |= _quantile(connection, rows, n, metric)
    return sums


def _moments(connection: Any, rows: str, metrics: Mapping[int, OnlineMetric]) -> _SumsOf:
    if not metrics:
        return {}
    summed = ", ".join(
        f"coalesce(sum(y{n}), 0)::DOUBLE AS y{n}, coalesce(sum(x{n}), 0)::DOUBLE AS x{n}" for n in metrics
    )
    moments = ", ".join(
        f"count_if(x{n} > 0), sum(y{n}), sum(x{n}), sum(y{n} * y{n}), sum(x{n} * y{n}), sum(x{n} * x{n})"
        for n in metrics
    )
    sums: _SumsOf = {}
    for group, *cells in connection.execute(
        f'SELECT "group", {moments} FROM (SELECT "group", "cluster", {summed} FROM {rows} AS r '
        'GROUP BY "group", "cluster") GROUP BY "group"'
    ).fetchall():
        for place, metric in enumerate(metrics.values()):
            count, *rest = cells[6 * place : 6 * place + 6]
            sums[group, metric] = _Sums(stats.ClusterSums(int(count), *map(float, rest)))
    return sums


def _quantile(connection: Any, questions: str, n: int, metric: OnlineMetric) -> _SumsOf:
    """Return the quantile, values on a grid, and the moments of P(value <= quantile)."""
    grid = "[" + ", ".join(f"{step / _GRID}" for step in range(_GRID + 1)) + "]"
    rows = f'(SELECT "group", "cluster", y{n}::DOUBLE AS y FROM {questions} AS q WHERE x{n})'
    connection.execute(
        f'CREATE OR REPLACE TEMP TABLE quantiles AS SELECT "group", quantile_disc(y, '
        f'{metric.quantile}) AS edge, quantile_disc(y, {grid}) AS grid FROM {rows} GROUP BY "group"'
    )
    moments = {
        group: stats.ClusterSums(int(count), *map(float, sums))
        for group, count, *sums in connection.execute(
            'SELECT "group", count(*), sum(y), sum(x), sum(y * y), sum(x * y), sum(x * x) '
            'FROM (SELECT r."group", "cluster", count_if(y <= edge)::DOUBLE AS y, '
            f"count(*)::DOUBLE AS x FROM {rows} r "
            'JOIN (SELECT "group", edge FROM quantiles) q '
            'ON r."group" IS NOT DISTINCT FROM q."group" GROUP BY ALL) GROUP BY "group"'
        ).fetchall()
    }
    return {
        (group, metric): _Sums(moments[group], edge, values)
        for group, edge, values in connection.execute("FROM quantiles").fetchall()
    }


def expressions(
    connection: Any, metrics: Sequence[OnlineMetric], *, minutes: float = 10, similarity: float = 0.5
) -> tuple[dict[OnlineMetric, tuple[str, str]], dict[OnlineMetric, str], dict[str, Any]]:
    """Return numerator and denominator in SQL of each metric with logged events.

    Also return why each metric is undefined, and the parameters with the source of abstentions.

    Args:
        connection: A connection of an :class:`EventLog`.
        metrics: The metrics.
        minutes: As in :func:`online_metrics`.
        similarity: As in :func:`online_metrics`.
    """
    kinds = {kind for (kind,) in connection.execute("SELECT DISTINCT kind FROM events").fetchall()}
    source = _abstentions(connection, metrics, kinds)
    reasons = {metric: _missing(metric, kinds, source) for metric in metrics}
    parameters = {
        "minutes": number("minutes", minutes),
        "similarity": number("similarity", similarity, high=1),
        "abstention": source,
    }
    rule = "coalesce(answer_text IN (SELECT text FROM abstaining), false)"
    words = {**parameters, "abstains": rule if source == ABSTENTION_RULE else "abstained"}
    sql = {
        metric: (metric.y.format(**words), metric.x.format(**words)) for metric, reason in reasons.items() if not reason
    }
    return sql, reasons, parameters


def _value(metric: OnlineMetric, group: str | None, sums_of: _SumsOf, reason: str) -> OnlineValue:
    sums = sums_of.get((group, metric))
    if sums is None or not sums.moments.x:
        nan = math.nan
        return OnlineValue(metric, group, nan, nan, nan, nan, 0, 0, reason or f"no {metric.unit}")
    moments = sums.moments
    estimate = _estimate(metric, moments)
    value, low, high, numerator = estimate.value, estimate.low, estimate.high, moments.y
    if metric.kind == "quantile":
        low, high = _woodruff(sums, metric.quantile, low, high)
        value, numerator = sums.quantile, math.nan
    return OnlineValue(metric, group, value, low, high, numerator, moments.x, moments.clusters, estimate.reason)


def _estimate(metric: OnlineMetric, moments: stats.ClusterSums, level: float = 0.95) -> stats.Estimate:
    if metric.kind == "mean":
        return stats.clustered_mean(moments, level, metric.bounds)
    return stats.clustered_proportion(moments, level)


def _woodruff(sums: _Sums, quantile: float, low: float, high: float) -> tuple[float, float]:
    """Return the bounds of a quantile by Woodruff's method."""
    if math.isnan(low):
        return math.nan, math.nan
    count, shift = sums.moments.x, quantile - sums.moments.ratio
    low, high = max(0.0, low + shift), min(1.0, high + shift)
    # The upper bound is unknown if it is beyond the largest value.
    top = math.inf if math.ceil(high * count) >= count else sums.grid[math.ceil(high * _GRID)]
    return sums.grid[math.floor(low * _GRID)], top


def _bounded(values: Sequence[OnlineValue]) -> tuple[OnlineValue, ...]:
    """Return the values, with bounds for unrated answers added to a thumbs ratio."""
    by_name = {value.metric.name: value for value in values}
    feedback, thumbs = by_name.get("feedback_rate"), by_name.get("thumbs_ratio")
    if feedback is None or thumbs is None or not (feedback.defined and thumbs.defined):
        return tuple(values)
    unrated = feedback.denominator - feedback.numerator
    worst, best = bound_thumbs(thumbs.numerator, thumbs.denominator, unrated)
    bounded = replace(thumbs, worst=worst, best=best)
    return tuple(bounded if value is thumbs else value for value in values)


def _changes(connection: Any, metrics: Mapping[int, OnlineMetric]) -> tuple[MetricChange, ...]:
    """Return the changes of the metrics that are ratios of sums, and what explains weeks that differ."""
    ratios = {n: metric for n, metric in metrics.items() if metric.kind != "quantile"}
    connection.execute(
        "CREATE TEMP TABLE numbered AS SELECT *, "
        f"CASE WHEN (SELECT avg((unit = 'users')::INT) >= {_KNOWN} FROM measured) "
        f'THEN (dense_rank() OVER (ORDER BY "cluster") - 1) % {_MOST_USERS} ELSE 0 END AS number FROM measured'
    )
    numbers = {metric: n for n, metric in ratios.items()}
    changes = find_changes({metric: _daily(connection, n, metric) for n, metric in ratios.items()})
    return tuple(
        replace(change, week=change.week and _explained(connection, numbers[change.metric], change.metric, change.week))
        for change in changes
    )


def _rows(n: int, metric: OnlineMetric) -> str:
    """Return the SQL of the questions, or of the sessions by day, with day, number, y, and x."""
    columns = f"y{n}::DOUBLE AS y, x{n}::DOUBLE AS x"
    if not metric.per_session:
        return f"(SELECT day, number, arm, attributes, {columns} FROM numbered WHERE x{n} > 0)"
    return (
        f"(SELECT day, min(number) AS number, min(arm) AS arm, any_value(attributes) AS attributes, "
        f"min(y) AS y, max(x) AS x FROM (SELECT *, {columns} FROM numbered WHERE session IS NOT NULL) AS r "
        "GROUP BY day, session)"
    )


def _daily(connection: Any, n: int, metric: OnlineMetric) -> stats.DailySums:
    """Return the sums of a metric by user and day."""
    cells = connection.execute(
        f"SELECT day, number, sum(y) AS y, sum(x) AS x FROM {_rows(n, metric)} AS r GROUP BY day, number"
    ).fetchall()
    dates, numbers, over, under = zip(*cells, strict=True) if cells else ([], [], [], [])
    days, columns = np.unique([date.fromisoformat(day).toordinal() - 1 for day in dates], return_inverse=True)
    users, rows = np.unique(numbers, return_inverse=True)
    y, x = np.zeros((2, len(users), len(days)))
    y[rows, columns], x[rows, columns] = over, under
    return stats.DailySums.of(y, x, days)


def find_changes(sums: Mapping[OnlineMetric, stats.DailySums]) -> tuple[MetricChange, ...]:
    """Return the changes of each metric with questions.

    P-values have Holm's correction: over the shifts and the weeks of all metrics, and over trends.
    """
    tested = {metric: daily for metric, daily in sums.items() if len(daily.days)}
    weeks = [stats.different_week(daily) for daily in tested.values()]
    trends = [stats.linear_trend(daily, bounds=metric.bounds) for metric, daily in tested.items()]
    p = _holm([*map(stats.first_change, tested.values()), *(week.p if week else math.nan for week in weeks)])
    changes = []
    for (metric, daily), week, trend, of_shift, of_week, of_trend in zip(
        tested.items(),
        weeks,
        trends,
        p[: len(tested)],
        p[len(tested) :],
        _holm([trend.p if trend else math.nan for trend in trends]),
        strict=True,
    ):
        shifts = stats.find_change_points(daily) if of_shift <= _ALPHA else ()
        dated = tuple((_date(daily.days[shift.index]), shift.before, shift.after) for shift in shifts)
        changes.append(
            MetricChange(
                metric,
                trend and replace(trend, p=of_trend),
                of_shift,
                dated,
                _week_change(metric, daily, week, of_week) if week and of_week <= _ALPHA else None,
                of_week,
                daily.withheld,
            )
        )
    return tuple(changes)


def _holm(p: Sequence[float]) -> list[float]:
    """Return corrected p-values; NaN, of tests that were withheld, is not counted."""
    corrected = iter(stats.holm([value for value in p if not math.isnan(value)] or [1.0]).tolist())
    return [value if math.isnan(value) else next(corrected) for value in p]


def _week_change(metric: OnlineMetric, daily: stats.DailySums, week: stats.DifferentWeek, p: float) -> WeekChange:
    estimate = _estimate(metric, week.sums, 1 - _ALPHA / week.weeks)
    latest = week.week == daily.days[-1] // 7
    monday = _date(week.week * 7)
    return WeekChange(monday, estimate.value, estimate.low, estimate.high, week.others, week.weeks, p, bool(latest))


def _date(day: float) -> str:
    return str(date.fromordinal(int(day) + 1))


def _explained(connection: Any, n: int, metric: OnlineMetric, week: WeekChange) -> WeekChange:
    """Return a week with the attribute value that explains its difference, if there is one.

    Nearly all questions of the week and nearly none of the other weeks have the value; or its
    questions differ from the rest of the week (clustered by user, Bonferroni over values), and
    the rest differs from the other weeks by less than a third of the difference of the week.
    """
    sunday = date.fromisoformat(week.start) + timedelta(days=6)
    cells = connection.execute(
        f"""WITH inside_or_not AS (
          SELECT *, day BETWEEN ? AND ? AS inside FROM {_rows(n, metric)} AS r
        ), keys AS (
          SELECT number, inside, y, x, attributes, unnest(map_keys(attributes)) AS key FROM inside_or_not
        ), entries AS (
          SELECT number, inside, y, x, key, map_extract(attributes, key)[1] AS value FROM keys
          UNION ALL SELECT number, inside, y, x, 'arm', arm FROM inside_or_not WHERE arm IS NOT NULL
        ), few AS (
          SELECT key FROM entries GROUP BY key HAVING count(DISTINCT value) <= {_MOST_VALUES}
        ), everything AS (
          SELECT number, inside, sum(y) AS y, sum(x) AS x FROM inside_or_not GROUP BY number, inside
        ), cells AS (
          SELECT key, value, number, inside, sum(y) AS y, sum(x) AS x
          FROM entries WHERE value IS NOT NULL AND key IN (SELECT key FROM few) GROUP BY key, value, number, inside
        )
        SELECT key || '=' || value AS name, inside, list(coalesce(cells.y, 0)), list(coalesce(cells.x, 0)),
          list(everything.y - coalesce(cells.y, 0)), list(everything.x - coalesce(cells.x, 0))
        FROM (SELECT DISTINCT key, value FROM cells) AS pairs CROSS JOIN everything
        LEFT JOIN cells USING (key, value, number, inside)
        GROUP BY key, value, inside ORDER BY name""",
        [week.start, str(sunday)],
    ).fetchall()
    of = {
        (name, inside): (stats.ClusterSums.of(y, x), stats.ClusterSums.of(v, w)) for name, inside, y, x, v, w in cells
    }
    names = list(dict.fromkeys(name for name, _ in of))
    needed = NormalDist().inv_cdf(1 - _ALPHA / 2 / len(names)) if names else math.nan
    explained = []
    for name in names:
        (with_it, rest), (others_with_it, others) = of[name, True], of[name, False]
        if rest.x <= 0.05 * with_it.x and others_with_it.x <= 0.05 * others.x:
            explained.append((0.0, f"nearly all of its {metric.unit} have {name}, and few in other weeks"))
        difference = with_it.ratio - rest.ratio
        left = abs(rest.ratio - others.ratio) / abs(week.value - week.others)
        if abs(difference) > needed * math.sqrt(with_it.variance + rest.variance) and left < 1 / 3:
            figures = (figure(metric, value) for value in (with_it.ratio, rest.ratio))
            explained.append((left, "with {} it is {}, without {}".format(name, *figures)))
    return replace(week, explanation=min(explained)[1]) if explained else week


def _abstentions(connection: Any, metrics: Iterable[OnlineMetric], kinds: set[str]) -> str:
    """Return the source of abstentions; for the rule, create a table of abstaining texts."""
    if "abstention" in kinds:
        return _EVENTS
    if not any("{abstains}" in metric.x + metric.y for metric in metrics):
        return ""
    texts = connection.execute(
        "SELECT DISTINCT text FROM events WHERE kind = 'answer' AND text IS NOT NULL "
        "AND (regexp_matches(text, $pattern) OR NOT regexp_matches(text, '\\pL'))",
        {"pattern": ABSTENTION_RE2},
    ).fetchall()
    connection.execute("CREATE TEMP TABLE abstaining (text VARCHAR)")
    abstaining = [row for row in texts if abstains(row[0])]
    if abstaining:
        connection.executemany("INSERT INTO abstaining VALUES (?)", abstaining)
    [(known,)] = connection.execute("SELECT count(text) > 0 FROM events WHERE kind = 'answer'").fetchall()
    return ABSTENTION_RULE if known else ""


def _missing(metric: OnlineMetric, kinds: set[str], source: str) -> str:
    """Return why a metric is undefined for the whole log, or an empty string."""
    if "{abstains}" in metric.y and not source:
        return "no abstentions were logged, and answers have no text"
    return metric.missing(kinds)


def _time(value: str | date, name: str) -> str:
    """Return a time in UTC in the format of DuckDB."""
    try:
        time = datetime.fromisoformat(value if isinstance(value, str) else value.isoformat())
    except ValueError:
        raise InputError(f"{name}={value!r:.60} is not a date", where=name, fix="write 2026-05-31, in UTC") from None
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return f"{time:%Y-%m-%d %H:%M:%S.%f}"


def _group(connection: Any, name: str | None, parameters: Parameters) -> str:
    """Return the SQL expression of the day, week, arm, or attribute of a question."""
    if name is None:
        return ""
    if name in _GROUPS:
        return _GROUPS[name]
    known = {
        key for (key,) in connection.execute("SELECT DISTINCT unnest(map_keys(attributes)) FROM events").fetchall()
    }
    known_name("segment", name, [*_GROUPS, *sorted(known)])
    return f"map_extract(attributes, {parameters.add(name)})[1]"


def _notes(values: Sequence[OnlineValue], source: str) -> tuple[str, ...]:
    single = [value.metric.name for value in values if value.clusters == 1]
    (hits, abstentions), (right, answers) = RULE_SENSITIVITY, RULE_SPECIFICITY
    return keep(
        *(
            f"thumbs_ratio covers the {value.denominator:,.0f} rated answers only; with all "
            f"others rated down or up it would be {value.worst:.3f} or {value.best:.3f}"
            for value in values
            if not math.isnan(value.worst)
        ),
        single and f"{some(single)}: no interval: all events are from one user",
        source == ABSTENTION_RULE
        and f"abstentions found by the rule {ABSTENTION_RULE} (English): on labeled answers of "
        f"MTRAG it finds {hits} of {abstentions}, with {answers - right} false alarms in "
        f"{answers} answers",
    )
