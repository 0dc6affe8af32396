"""A/B tests: comparison of two arms of a log, valid at any time."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from rankgauge import stats
from rankgauge.core.arguments import known_name
from rankgauge.core.text import Ratio, keep, many, span
from rankgauge.errors import InputError
from rankgauge.production.log import EventLog
from rankgauge.production.metrics import OnlineMetric, bound_thumbs, metrics_of
from rankgauge.rendering import Panel, Plot, Result, Series, Table
from rankgauge.rendering.tables import Detail

ALPHA = 0.05
# A mismatch with a smaller p-value indicates a fault in the assignment or the log.
MISMATCH = 0.001
# Number of questions at which the confidence sequence is narrowest.
PLANNED = 5000
_OVERLAP = 0.01
_NORMAL = NormalDist()


@dataclass(frozen=True)
class DayDifference:
    """The cumulative difference of the primary metric up to a day.

    Attributes:
        day: The day in UTC, ``2026-05-31``.
        difference: The difference, new arm minus baseline.
        low: The lower bound of the confidence sequence; -inf with too few data.
        high: The upper bound; inf with too few data.
        p: The always-valid p-value: the smallest up to this day.
    """

    day: str
    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class ArmDifference:
    """The difference of a metric between two arms.

    Attributes:
        metric: The metric.
        baseline: The value in the baseline arm; NaN if undefined.
        new: The value in the new arm.
        difference: new - baseline.
        low: The lower bound of the 95% interval: a confidence sequence for the primary metric, a
            fixed-sample interval clustered by user for others; NaN if unavailable.
        high: The upper bound of the interval.
        p: The p-value: always-valid for the primary metric, from a z test clustered by user for
            others; NaN if unavailable.
        corrected: `p` with Holm's correction over the secondary metrics.
        denominators: The denominators in the baseline and in the new arm.
        verdict: ``better`` or ``worse``; ``higher`` or ``lower`` for a metric without a direction;
            ``cannot tell``; ``withheld`` if the arms are not comparable; or ``not defined``.
        needed: The approximate number of further questions needed to detect this difference with
            80% power; None if it is detected or the number is unknown.
        worst: The smallest possible difference of a thumbs ratio if all answers had been rated.
        best: The largest possible difference of a thumbs ratio.
    """

    metric: OnlineMetric
    baseline: float
    new: float
    difference: float
    low: float
    high: float
    p: float
    corrected: float
    denominators: tuple[float, float]
    verdict: str
    needed: int | None = None
    worst: float = math.nan
    best: float = math.nan


@dataclass(frozen=True, eq=False)
class ExperimentResult(Result):
    """The comparison of two arms of an experiment. Returned by :func:`compare_arms`.

    Attributes:
        where: The log.
        arms: The baseline and the new arm.
        users: The number of users (else sessions, else questions) of each arm.
        questions: The number of questions of each arm.
        ratio: The intended ratio of users, baseline to new arm.
        mismatch: The p-value of the chi-square test of the intended ratio.
        in_both: The number of users in both arms.
        differences: The differences of the metrics, primary metric first.
        days: The cumulative primary difference by day.
        mixing: The mixing standard deviation tau of the confidence sequence.
    """

    _attributes = "where arms users questions ratio mismatch mismatched in_both mixing days notes=_notes"

    where: str
    arms: tuple[str, str]
    users: tuple[int, int]
    questions: tuple[int, int]
    ratio: tuple[float, float]
    mismatch: float
    in_both: int
    differences: tuple[ArmDifference, ...]
    days: tuple[DayDifference, ...]
    mixing: float

    @property
    def primary(self) -> ArmDifference:
        """Difference of the primary metric."""
        return self.differences[0]

    @property
    def mismatched(self) -> bool:
        """Whether the arm sizes contradict the intended ratio, so that verdicts are withheld."""
        return self.mismatch < MISMATCH

    def table(self) -> Table:
        """Return one row for each metric, primary metric first; the definitions of the metrics are details."""
        metrics = [difference.metric for difference in self.differences]
        return Table(
            ("metric", *self.arms, "Δ", "95% CI", "p", "verdict"),
            tuple(
                (
                    difference.metric.name,
                    difference.baseline,
                    difference.new,
                    _signed(difference.difference),
                    span((difference.low, difference.high), "+.4f"),
                    _p(difference.p if difference is self.primary else difference.corrected),
                    difference.verdict,
                )
                for difference in self.differences
            ),
            title=self.summary(),
            notes=(
                *self._notes(),
                *(Detail(f"{metric.name}: {metric.definition} ({metric.unit})") for metric in metrics),
            ),
            digits=3,
            right=frozenset({3, 4, 5}),
            shortened=frozenset({1, 2}),
        )

    def tables(self) -> tuple[Table, ...]:
        """Return the metrics, and as a detail the confidence sequence of the primary metric, one row per day."""
        by_day = Table(
            ("until", "Δ", "95% CI", "p"),
            tuple(
                (day.day, _signed(day.difference), span((day.low, day.high), "+.4f"), _p(day.p)) for day in self.days
            ),
            right=frozenset({1, 2, 3}),
            title=Detail(f"{self.primary.metric.name} by day: confidence sequence, valid at every look"),
        )
        return (self.table(), by_day) if self.days else (self.table(),)

    def summary(self) -> str:
        """Return the verdict on the primary metric, or the reason for its absence."""
        (base, new), first = self.arms, self.primary
        if self.mismatched:
            return (
                f"no verdict: {self.users[0]:,} and {self.users[1]:,} users contradict the "
                f"intended ratio {self.ratio[0]:g}:{self.ratio[1]:g} (sample ratio mismatch, "
                f"p = {self.mismatch:.2g}); check the assignment of users and the logging"
            )
        numbers = f"difference {_signed(first.difference)} ({span((first.low, first.high), '+.4f') or '–'})"
        if first.verdict not in {"not defined", "cannot tell"}:
            return f"{new} is {first.verdict} than {base} by {first.metric.name}: {numbers}"
        unknown = f"{new} and {base} by {first.metric.name}: {first.verdict}"
        return unknown if first.verdict == "not defined" else f"{unknown}, {numbers}"

    def plot(self) -> Plot:
        """Plot the primary difference by day with its confidence sequence."""
        known = [day for day in self.days if math.isfinite(day.low)]
        if not known:
            raise InputError("no day has an interval yet", where=self.where, fix="collect more events")
        places = tuple(float(n) for n in range(len(known)))
        columns = ("difference", "low", "high")
        series = [Series(name, tuple(getattr(day, name) for day in known), places) for name in columns]
        series.append(Series("no difference", (0.0,) * len(known), places))
        step = max(1, len(known) // 8)
        return Plot(
            "experiment",
            f"{self.arms[1]} minus {self.arms[0]}: {self.primary.metric.name}",
            f"Lines by day. {self.summary()}",
            (
                Panel(
                    "lines",
                    tuple(series),
                    across="until",
                    down="difference",
                    ticks=tuple(day.day for day in known[::step]),
                    at=places[::step],
                ),
            ),
            "95% confidence sequence: the true difference is between low and high on all days.",
        )

    def _data(self) -> dict[str, Any]:
        rows = [vars(difference) | {"metric": difference.metric.name} for difference in self.differences]
        return super()._data() | {"differences": rows}

    def _notes(self) -> tuple[str, ...]:
        (base, new), first, trusted = self.arms, self.primary, not self.mismatched
        share = self.in_both / (sum(self.users) - self.in_both)
        much = "; too many for independent arms" if share > _OVERLAP else ""
        decided = trusted and next((day.day for day in self.days if day.p <= ALPHA), None)
        undone = first.low <= 0 <= first.high
        return keep(
            f"{base}: {many(self.users[0], 'user')}, {many(self.questions[0], 'question')}; "
            f"{new}: {many(self.users[1], 'user')}, {many(self.questions[1], 'question')}; "
            f"sample ratio p = {self.mismatch:.3g}",
            self.in_both and f"{many(self.in_both, 'user')} seen in both arms ({Ratio(share):.1%}){much}",
            trusted
            and first.needed is not None
            and f"a true difference of {_signed(first.difference)} would need about "
            f"{first.needed:,} more questions (80% power)",
            trusted
            and first.verdict == "cannot tell"
            and math.isinf(first.low)
            and f"{first.metric.name}: fewer than 10 users with hits or misses in an arm",
            decided
            and undone
            and f"a difference was found on {decided}, but the interval now includes 0: the effect may have changed",
            decided and not undone and f"first found on {decided}",
            *(
                f"{difference.metric.name}: with all answers rated, the difference could be "
                f"{_signed(difference.worst)} to {_signed(difference.best)}"
                for difference in self.differences
                if not math.isnan(difference.worst)
            ),
            len(self.differences) > 1
            and f"{first.metric.name} decides; its interval is valid at every look. Other "
            "intervals and p-values (Holm) are valid for one look, at a size fixed in advance",
        )


def compare_arms(
    log: EventLog | str | os.PathLike[str],
    metrics: Iterable[str] | str | None = None,
    *,
    primary: str,
    arms: tuple[str, str] | None = None,
    ratio: tuple[float, float] = (1, 1),
    planned: int = PLANNED,
) -> ExperimentResult:
    """Compare two arms of an experiment.

    Users must have been assigned to arms at random. The primary metric is tested with a confidence
    sequence over days (:func:`rankgauge.stats.confidence_sequence`), which is valid for any number
    of looks. The other metrics have fixed-sample intervals and p-values with Holm's correction.
    Both use the variance of a ratio of sums over users (:class:`rankgauge.stats.ClusterSums`).

    A chi-square test compares users per arm with the intended ratio; below p = 0.001 all verdicts
    are withheld.

    Args:
        log: The log.
        metrics: Names of secondary metrics; quantiles are not compared.
        primary: The decisive metric. Choose it before the experiment.
        arms: The baseline and the new arm. If None, the log must have two arms, and the first in
            alphabetical order is the baseline.
        ratio: Intended ratio of users, baseline to new arm.
        planned: The number of questions at which the confidence sequence is narrowest. Choose it
            before the experiment.

    Raises:
        UnknownName: If a metric or an arm is unknown.
        InputError: If the log does not have two arms, or a metric is a quantile.
        MissingExtra: If DuckDB is not installed.
    """
    from rankgauge.production.online import expressions

    if not (min(ratio) > 0 and planned > 0):
        raise InputError(
            f"ratio={ratio} with planned={planned} is not valid",
            where="compare_arms",
            fix="pass a ratio such as (1, 1) and planned above 0",
        )
    wanted = metrics_of([primary, *([metrics] if isinstance(metrics, str) else metrics or ())])
    for metric in wanted:
        if metric.kind == "quantile":
            raise InputError(
                f"{metric.name} is a quantile, which is not compared between arms",
                where="metrics",
                fix="choose a rate or a mean, such as thumbs_ratio",
            )
    log = EventLog.of(log)
    names = [metric.name for metric in wanted]
    measured = metrics_of([*names, "feedback_rate"]) if "thumbs_ratio" in names else wanted
    with log.connection() as connection:
        pair = _arms(connection, arms, log.path)
        sql, _, _ = expressions(connection, measured)
        columns = "".join(
            f', ({y})::DOUBLE AS "y {metric.name}", ({x})::DOUBLE AS "x {metric.name}"'
            for metric, (y, x) in sql.items()
        )
        connection.execute(
            f'CREATE TEMP TABLE measured AS SELECT arm, "cluster", session_id, day{columns} '
            "FROM questions WHERE arm IN ($base, $new)",
            {"base": pair[0], "new": pair[1]},
        )
        [(base_users, base_questions), (new_users, new_questions)] = connection.execute(
            'SELECT count(DISTINCT "cluster"), count(*) FROM measured GROUP BY arm ORDER BY arm <> $base',
            {"base": pair[0]},
        ).fetchall()
        [(in_both,)] = connection.execute(
            'SELECT count(*) FROM (SELECT "cluster" FROM measured GROUP BY "cluster" HAVING count(DISTINCT arm) > 1)'
        ).fetchall()
        looks_of = {metric: _looks(connection, metric, pair) for metric in sql}
    users, questions = (base_users, new_users), base_questions + new_questions
    expected = [sum(users) * share / sum(ratio) for share in ratio]
    square = sum((n - e) ** 2 / e for n, e in zip(users, expected, strict=True))
    mismatch = math.erfc(math.sqrt(square / 2))
    last = {metric: looks[-1][1:] for metric, looks in looks_of.items() if looks}
    feedback = next((sums for metric, sums in last.items() if metric.name == "feedback_rate"), None)
    first, days, mixing = _primary(wanted[0], looks_of.get(wanted[0], []), questions, planned)
    rest = _corrected([_fixed(metric, last.get(metric), questions) for metric in wanted[1:]])
    differences = [
        _bounded(difference, last[difference.metric], feedback)
        if difference.metric.name == "thumbs_ratio" and feedback is not None and difference.metric in last
        else difference
        for difference in (first, *rest)
    ]
    if mismatch < MISMATCH:
        differences = [replace(difference, verdict="withheld", needed=None) for difference in differences]
    return ExperimentResult(
        log.path,
        pair,
        users,
        (base_questions, new_questions),
        (ratio[0], ratio[1]),
        mismatch,
        in_both,
        tuple(differences),
        days,
        mixing,
    )


# Day, and the cumulative sums of the baseline and of the new arm.
_Look = tuple[str, stats.ClusterSums, stats.ClusterSums]


def _arms(connection: Any, arms: tuple[str, str] | None, where: str) -> tuple[str, str]:
    known = [
        arm
        for (arm,) in connection.execute(
            "SELECT DISTINCT arm FROM questions WHERE arm IS NOT NULL ORDER BY arm"
        ).fetchall()
    ]
    if arms is None and len(known) == 2:
        return known[0], known[1]
    if arms is None:
        text = f"{len(known)} arms: {', '.join(known[:10])}" if known else "no arms"
        raise InputError(
            f"the log has {text}",
            where=where,
            fix="choose two: arms=('control', 'new') (--arms control new)"
            if known
            else "log the arm of the experiment with each question",
        )
    for arm in arms:
        known_name("arm", arm, known)
    if arms[0] == arms[1]:
        raise InputError(f"both arms are {arms[0]!r}", where="arms", fix="pass two arms")
    return arms


def _looks(connection: Any, metric: OnlineMetric, arms: tuple[str, str]) -> list[_Look]:
    """Return the cumulative sums of both arms by day."""
    y, x = f'"y {metric.name}"', f'"x {metric.name}"'
    rows = f'SELECT arm, "cluster", day, {y} AS y, {x} AS x FROM measured'
    if metric.per_session:
        rows = (
            f'SELECT arm, min("cluster") AS "cluster", min(day) AS day, min({y}) AS y, '
            f"max({x}) AS x FROM measured WHERE session_id IS NOT NULL GROUP BY arm, session_id"
        )
    # Daily increments of the sums, and of the squares and products of each user's running sums.
    steps = {
        (day, arm): sums
        for day, arm, *sums in connection.execute(
            'WITH daily AS (SELECT arm, "cluster", day, sum(y) AS y, sum(x) AS x '
            f"FROM ({rows}) GROUP BY ALL HAVING sum(x) > 0), "
            "running AS (SELECT *, sum(y) OVER past AS cy, sum(x) OVER past AS cx, "
            "row_number() OVER past AS n FROM daily "
            'WINDOW past AS (PARTITION BY arm, "cluster" ORDER BY day)) '
            "SELECT strftime(day, '%Y-%m-%d'), arm, count_if(n = 1), sum(y), sum(x), "
            "sum(cy * cy - (cy - y) * (cy - y)), sum(cx * cy - (cx - x) * (cy - y)), "
            "sum(cx * cx - (cx - x) * (cx - x)) FROM running GROUP BY day, arm"
        ).fetchall()
    }
    total = {arm: [0.0] * 6 for arm in arms}
    looks: list[_Look] = []
    for day in sorted({day for day, _ in steps}):
        for arm in arms:
            added = steps.get((day, arm), [0.0] * 6)
            total[arm] = [value + increment for value, increment in zip(total[arm], added, strict=True)]
        base, new = (stats.ClusterSums(int(total[arm][0]), *total[arm][1:]) for arm in arms)
        looks.append((day, base, new))
    return looks


def _primary(
    metric: OnlineMetric, looks: Sequence[_Look], questions: int, planned: int
) -> tuple[ArmDifference, tuple[DayDifference, ...], float]:
    """Return the primary difference, its confidence sequence by day, and tau."""
    if not looks or not all(sums.x for sums in looks[-1][1:]):
        return _undefined(metric), (), math.nan
    pairs = [stats.difference_variance(new, base) for _, base, new in looks]
    _, base, new = looks[-1]
    difference, variance = pairs[-1]
    start = next((n for n, (_, v) in enumerate(pairs) if math.isfinite(v)), None)
    if start is None:
        return _of(metric, base, new, (-math.inf, math.inf), 1.0), (), math.nan
    items = looks[start][1].x + looks[start][2].x
    mixing = stats.mixing_sd(pairs[start][1] * items / planned)
    sequence = stats.confidence_sequence(*zip(*pairs, strict=True), mixing=mixing)
    columns = (sequence.difference, sequence.low, sequence.high, sequence.p)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    days = tuple(DayDifference(look[0], *row) for look, row in zip(looks, rows, strict=True))
    primary = _of(metric, base, new, (days[-1].low, days[-1].high), days[-1].p)
    if primary.verdict == "cannot tell" and difference and math.isfinite(variance):
        enough = stats.variance_needed(difference, mixing=mixing)
        primary = replace(primary, needed=_more(questions, variance, enough))
    return primary, days, mixing


def _fixed(metric: OnlineMetric, sums: tuple[stats.ClusterSums, ...] | None, questions: int) -> ArmDifference:
    """Return the difference of a secondary metric with a fixed-sample interval."""
    if sums is None or not all(arm_sums.x for arm_sums in sums):
        return _undefined(metric)
    base, new = sums
    difference, variance = stats.difference_variance(new, base)
    if math.isnan(variance):
        return _of(metric, base, new, (math.nan, math.nan), math.nan)
    error = math.sqrt(variance)
    half = _NORMAL.inv_cdf(1 - ALPHA / 2) * error
    p = math.erfc(abs(difference) / error / math.sqrt(2))
    secondary = _of(metric, base, new, (difference - half, difference + half), p)
    if secondary.verdict == "cannot tell" and difference:
        reach = _NORMAL.inv_cdf(1 - ALPHA / 2) + _NORMAL.inv_cdf(0.8)
        secondary = replace(secondary, needed=_more(questions, variance, (difference / reach) ** 2))
    return secondary


def _more(questions: int, variance: float, enough: float) -> int | None:
    """Return the number of further questions that reduce the variance to `enough`, or None."""
    more = questions * (variance / enough - 1)
    return None if more > 1e9 else max(0, math.ceil(more))


def _corrected(differences: Sequence[ArmDifference]) -> list[ArmDifference]:
    """Apply Holm's correction to the secondary differences."""
    corrected = list(differences)
    defined = [place for place, difference in enumerate(differences) if not math.isnan(difference.p)]
    if defined:
        for place, p in zip(defined, stats.holm([differences[n].p for n in defined]).tolist(), strict=True):
            verdict = differences[place].verdict if p <= ALPHA else "cannot tell"
            corrected[place] = replace(differences[place], corrected=p, verdict=verdict)
    return corrected


def _of(  # noqa: PLR0917 - what a row has
    metric: OnlineMetric,
    base: stats.ClusterSums,
    new: stats.ClusterSums,
    interval: tuple[float, float],
    p: float,
) -> ArmDifference:
    difference = new.ratio - base.ratio
    shown = p <= ALPHA and (interval[0] > 0 or interval[1] < 0)
    verdict = "cannot tell"
    if shown and metric.better:
        verdict = "better" if (difference > 0) == (metric.better == "higher") else "worse"
    elif shown:
        verdict = "higher" if difference > 0 else "lower"
    return ArmDifference(metric, base.ratio, new.ratio, difference, *interval, p, p, (base.x, new.x), verdict)


def _undefined(metric: OnlineMetric) -> ArmDifference:
    nan = math.nan
    return ArmDifference(metric, nan, nan, nan, nan, nan, nan, nan, (0, 0), "not defined")


def _bounded(
    difference: ArmDifference, thumbs: tuple[stats.ClusterSums, ...], feedback: tuple[stats.ClusterSums, ...]
) -> ArmDifference:
    """Add the bounds that the difference would have if all answers had been rated."""
    (base_low, base_high), (new_low, new_high) = (
        bound_thumbs(own.y, own.x, rated.x - rated.y) for own, rated in zip(thumbs, feedback, strict=True)
    )
    return replace(difference, worst=new_low - base_high, best=new_high - base_low)


def _signed(number: float) -> str:
    return "–" if math.isnan(number) else f"{number:+.4f}"


def _p(p: float) -> str:
    if math.isnan(p):
        return "–"
    return "<.001" if p < 0.001 else f"{p:.3f}"
