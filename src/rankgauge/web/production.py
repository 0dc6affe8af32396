"""Production pages: metrics of a log, drift of the project's questions, and new questions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from rankgauge.errors import InputError
from rankgauge.judging import questions_of
from rankgauge.production import (
    METRICS,
    PERIODS,
    DriftReport,
    EvaluationQuestion,
    EventLog,
    MetricChange,
    OnlineMetrics,
    OnlineValue,
    QuestionSample,
    Threshold,
    find_alerts,
    measure_drift,
    online_metrics,
    sample_questions,
)
from rankgauge.project import alert_thresholds
from rankgauge.reports import drift_page
from rankgauge.web.pages import LEADS, PageError, Results, Visit, see_other, visited

_SAMPLING = ("frequency", "strata", "uniform")
_MOST = 100  # largest number of questions per draw, each with a checkbox in the form
_SMALL, _LARGE = (340, 150), (600, 210)  # width and height of a chart
_RIGHT, _TOP, _BOTTOM = 12, 10, 26  # its margins
_POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]+)"')


class ProductionLog(Results):
    """Production log of a server; results are kept until its files change."""

    def __init__(self, log: EventLog) -> None:
        super().__init__()
        self.log = log

    def key(self, *parts: object) -> tuple[object, ...]:
        """Return the key of a result for these arguments and this state of the log."""
        return (*parts, self.log.fingerprint())


def _log(visit: Visit) -> ProductionLog:
    log: ProductionLog = visit.request.app.state.log
    return log


def _waits(visit: Visit) -> bool:
    """Return whether to wait for a result; otherwise, the script of the page requests it again and waits."""
    return "wait" in visit.request.query_params


def _render(visit: Visit, template: str, **values: Any) -> Response:
    """Render a page, with the address of the same page after waiting for its result."""
    url = visit.request.url.include_query_params(wait=1)
    return visit.render(template, complete=f"{url.path}?{url.query}", **values)


# ---- metrics


def _online(visit: Visit, by: str) -> OnlineMetrics:
    log = _log(visit)
    return log.get(log.key("metrics", by), lambda: online_metrics(log.log, by=by))


def _thresholds(visit: Visit) -> tuple[Threshold, ...]:
    workbench = visit.request.app.state.workbench
    return () if workbench is None else alert_thresholds(workbench.project.file)


def _alerts(visit: Visit) -> Response:
    """Show the alerts, a part of the overview."""
    return visit.render("production_alerts.html", alerts=find_alerts(_online(visit, "week"), _thresholds(visit)))


def _metrics(visit: Visit) -> Response:
    """Show alerts, changes, and a small chart of each metric; or one metric."""
    name = visit.request.path_params.get("metric", "")
    if name not in {"", *METRICS}:
        raise PageError(404, f"There is no metric {name:.60}.", where="production", fix="Choose one from the list.")
    by = visit.request.query_params.get("by", "")
    by = by if by in PERIODS else "week"
    template = "production_metric.html" if name else "production.html"
    thresholds, log, known = _thresholds(visit), _log(visit), {"name": name, "by": by, "periods": PERIODS}
    if not (_waits(visit) or all(log.key("metrics", period) in log for period in {"week", by})):
        return _render(visit, template, found=None, **known)
    found, alerts = _online(visit, by), find_alerts(_online(visit, "week"), thresholds)
    shown = [value for value in found.overall if name in {"", value.metric.name}]
    changes = {change.metric.name: change for change in found.changes}
    told = {(alert.metric, alert.kind) for alert in alerts.alerts}
    return _render(
        visit,
        template,
        found=found,
        shown=shown,
        charts=[
            _chart(
                [point for point in found.groups if point.metric == value.metric and point.defined],
                [limit.number for limit in thresholds if limit.metric == value.metric.name],
                changes.get(value.metric.name),
                _LARGE if name else _SMALL,
            )
            for value in shown
            if value.defined
        ],
        alerts=replace(
            alerts,
            alerts=tuple(alert for alert in alerts.alerts if name in {"", alert.metric}),
            undecided=tuple(check for check in alerts.undecided if name in {"", check.threshold.metric}),
        ),
        change=changes.get(name),
        others=[
            (key, sentence)
            for key, change in changes.items()
            for kind, sentence in (("shift", change.shift_sentence), ("week", change.week_sentence))
            if sentence and name in {"", key} and (key, kind) not in told
        ],
        notes=found.change_notes()[sum(bool(change.sentence) for change in found.changes) :],
        **known,
    )


def _chart(
    points: Sequence[OnlineValue], limits: Sequence[float], change: MetricChange | None, size: tuple[int, int]
) -> dict[str, Any]:
    """Return the chart of a metric over days or weeks; empty for fewer than two.

    The line, the band of intervals, thresholds, shifts, and the week that differs are in coordinates of the picture.
    """
    if len(points) < 2:
        return {}
    (width, height), left = size, 14 + size[0] // 12
    # Missing or infinite bounds of an interval are replaced by the value.
    ends = [
        (
            point.value if math.isnan(point.low) else point.low,
            point.high if math.isfinite(point.high) else point.value,
        )
        for point in points
    ]
    half = max(*(high for _, high in ends), *limits) / 2 or 0.5
    power = 10.0 ** math.floor(math.log10(half))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power > half * 0.999)
    days = [_day(str(point.group)) for point in points]

    def across(day: int) -> float:
        share = (day - days[0]) / (days[-1] - days[0])
        return round(left + min(share, 1.0) * (width - left - _RIGHT), 1)

    def down(value: float) -> float:
        return round(_TOP + (1 - value / (2 * step)) * (height - _TOP - _BOTTOM), 1)

    xs = [across(day) for day in days]
    band = [f"{x},{down(high)}" for x, (_, high) in zip(xs, ends, strict=True)]
    band += [f"{x},{down(low)}" for x, (low, _) in reversed([*zip(xs, ends, strict=True)])]
    week = change.week.start if change and change.week else ""
    return {
        "size": size,
        "left": left,
        "line": " ".join(f"{x},{down(point.value)}" for x, point in zip(xs, points, strict=True)),
        "band": " ".join(band),
        "points": [
            (
                x,
                down(point.value),
                f"{point.group}: {point.value_text()} ({point.interval_text()})",
                point.group == week,
            )
            for x, point in zip(xs, points, strict=True)
        ],
        "latest": points[-1],
        "ends": (points[0].group, points[-1].group),  # first and last day or week
        "ticks": [(down(value), f"{value:,.6g}") for value in (0.0, step, 2 * step)],
        "limits": [down(limit) for limit in limits],
        "shifts": [across(_day(day)) for day, _, _ in (change.shifts if change else ())],
    }


def _day(text: str) -> int:
    return date.fromisoformat(text).toordinal()


# ---- drift


def _texts(visit: Visit) -> tuple[str, ...]:
    """Return the questions that are judged, or those of the latest evaluation."""
    asked = tuple(question.text for question in visit.project.questions.values() if not question.withdrawn)
    workbench = visit.request.app.state.workbench
    latest = [] if asked or workbench is None else workbench.history.entries()[-1:]
    return asked or tuple(text for entry in latest for text in workbench.queries(entry).values())


def _drift_of(visit: Visit) -> DriftReport:
    log, texts = _log(visit), _texts(visit)
    return log.get(log.key("drift", texts), lambda: measure_drift(list(texts), log.log))


def _drift(visit: Visit) -> Response:
    log, texts = _log(visit), _texts(visit)
    if not texts or not (_waits(visit) or log.key("drift", texts) in log):
        return _render(visit, "production_drift.html", found=None, empty=not texts)
    report = _drift_of(visit)
    *sentences, limitation = report.sentences()
    return _render(
        visit,
        "production_drift.html",
        empty=False,
        found=report,
        sentences=sentences,
        limitation=limitation,
        marks=[report.mark(cluster) for cluster in report.clusters],
    )


def _picture(visit: Visit) -> Response:
    """Return the page with the plot, which allows only its own script and style."""
    page = drift_page(_drift_of(visit))
    policy = _POLICY.search(page)
    if policy is None:
        raise InputError("the drift page has no content security policy", where="drift")
    allowed = policy[1].replace("&#39;", "'")
    return HTMLResponse(page, headers={"Content-Security-Policy": f"{allowed}; frame-ancestors 'none'"})


# ---- new questions


def _sample_of(visit: Visit, values: Any) -> QuestionSample | None:
    """Return the sample of questions requested in a form or URL; None if it takes long and the page does not wait."""
    try:
        n, seed = (int(values.get(name, default)) for name, default in (("n", "30"), ("seed", "0")))
    except ValueError:
        n = seed = -1
    by = values.get("by", _SAMPLING[0])
    if not (1 <= n <= _MOST and 0 <= seed < 2**31 and by in _SAMPLING):
        raise InputError(
            "these questions cannot be drawn",
            where="production",
            fix=f"draw 1 to {_MOST} questions by {', '.join(_SAMPLING)}, with a seed of at least 0",
        )
    log = _log(visit)
    known = tuple(EvaluationQuestion(question.id, question.text) for question in visit.project.questions.values())
    key = log.key("sample", n, by, seed, known)
    if not (_waits(visit) or visit.form or key in log):
        return None
    return log.get(key, lambda: sample_questions(log.log, n, by=by, seed=seed, exclude=known))


def _sample(visit: Visit) -> Response:
    values = visit.request.query_params
    return _render(
        visit,
        "production_sample.html",
        found=_sample_of(visit, values) if values.get("n") else None,
        wanted=bool(values.get("n")),
        methods=_SAMPLING,
        most=_MOST,
        given={name: values.get(name, start) for name, start in (("n", "30"), ("by", _SAMPLING[0]), ("seed", "0"))},
    )


def _add(visit: Visit) -> Response:
    """Add the selected questions."""
    sample = _sample_of(visit, visit.form)
    chosen = [question for question in sample.questions if f"add-{question.id}" in visit.form] if sample else []
    if not chosen:
        raise InputError("no question was selected", where="production", fix="select the questions to add")
    known = visit.project.questions
    visit.project.add_questions(questions_of(question for question in chosen if question.id not in known))
    return see_other("/questions")


routes = [
    Route("/production", visited(_metrics, roles=LEADS, share=False)),
    Route("/production/alerts", visited(_alerts, roles=LEADS, share=False)),
    Route("/production/metrics/{metric}", visited(_metrics, roles=LEADS, share=False)),
    Route("/production/drift", visited(_drift, roles=LEADS, share=False)),
    Route("/production/drift/picture", visited(_picture, roles=LEADS, share=False)),
    Route("/production/sample", visited(_sample, roles=LEADS, share=False)),
    Route("/production/questions", visited(_add, roles=LEADS), methods=["POST"]),
]
