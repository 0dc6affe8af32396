"""Production pages: metrics of a log, drift of the project's questions, and new questions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from rankgauge.errors import InputError
from rankgauge.judging import questions_of
from rankgauge.production import (
    DriftReport,
    EvaluationQuestion,
    EventLog,
    OnlineMetrics,
    QuestionSample,
    measure_drift,
    online_metrics,
    sample_questions,
)
from rankgauge.reports import drift_page
from rankgauge.web.pages import LEADS, Results, Visit, see_other, visited

_T = TypeVar("_T")
_PERIODS = ("week", "day")
_SAMPLING = ("frequency", "strata", "uniform")
_MOST = 100  # largest number of questions per draw, each with a checkbox in the form
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 720, 220, 72, 28
_POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]+)"')


class ProductionLog:
    """Production log of a server; results are kept until its files change."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self._results = Results()

    def computed(self, key: tuple[Any, ...], compute: Callable[[], _T]) -> _T:
        """Return a result for these arguments and this state of the log."""
        return self._results.get((*key, self.log.fingerprint()), compute)


# ---- metrics


def _metrics(visit: Visit) -> Response:
    by = visit.request.query_params.get("by", "")
    by = by if by in _PERIODS else _PERIODS[0]
    log: ProductionLog = visit.request.app.state.log
    metrics = log.computed(("metrics", by), lambda: online_metrics(log.log, by=by))
    names = [value.metric.name for value in metrics.overall if value.defined]
    shown = visit.request.query_params.get("metric", "")
    shown = shown if shown in names else next(iter(names), "")
    return visit.render(
        "production.html",
        found=metrics,
        by=by,
        periods=_PERIODS,
        shown=shown,
        names=names,
        chart=_chart(metrics, shown),
        changes=metrics.change_notes(),
    )


def _chart(metrics: OnlineMetrics, name: str) -> dict[str, Any] | None:
    """Return the chart of a metric over days or weeks, or None for fewer than two.

    Points, the line, and the band of intervals are in coordinates of the picture.
    """
    values = [point for point in metrics.groups if point.metric.name == name and point.defined]
    if len(values) < 2:
        return None
    # Missing or infinite bounds of an interval are replaced by the value.
    ends = [
        (
            point.value if math.isnan(point.low) else point.low,
            point.high if math.isfinite(point.high) else point.value,
        )
        for point in values
    ]
    low, high = min(0.0, *(bounds[0] for bounds in ends)), max(bounds[1] for bounds in ends)
    high = high if high > low else low + 1.0
    step = (_WIDTH - _LEFT - 12) / (len(values) - 1)

    def place(value: float) -> float:
        return round(8 + (high - value) / (high - low) * (_HEIGHT - _BOTTOM - 8), 1)

    xs = [round(_LEFT + step * number, 1) for number in range(len(values))]
    band = [f"{x},{place(bounds[1])}" for x, bounds in zip(xs, ends, strict=True)]
    band += [f"{x},{place(bounds[0])}" for x, bounds in reversed([*zip(xs, ends, strict=True)])]
    return {
        "name": name,
        "line": " ".join(f"{x},{place(point.value)}" for x, point in zip(xs, values, strict=True)),
        "band": " ".join(band),
        "points": [
            (x, place(point.value), f"{point.group}: {point.value:.3g} ({point.interval_text()})")
            for x, point in zip(xs, values, strict=True)
        ],
        "ends": (values[0].group or "", values[-1].group or ""),  # first and last day or week
        "ticks": [(place(value), f"{value:.3g}") for value in (low, (low + high) / 2, high)],
    }


# ---- drift


def _drift_of(visit: Visit) -> DriftReport:
    log: ProductionLog = visit.request.app.state.log
    texts = tuple(question.text for question in visit.project.questions.values() if not question.withdrawn)
    return log.computed(("drift", texts), lambda: measure_drift(list(texts), log.log))


def _drift(visit: Visit) -> Response:
    report = _drift_of(visit)
    *texts, limitation = report.sentences()
    return visit.render(
        "production_drift.html",
        found=report,
        sentences=texts,
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


def _sample_of(visit: Visit, values: Any) -> QuestionSample:
    """Return the sample of questions requested in a form or URL."""
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
    log: ProductionLog = visit.request.app.state.log
    known = tuple(EvaluationQuestion(question.id, question.text) for question in visit.project.questions.values())
    return log.computed(
        ("sample", n, by, seed, known), lambda: sample_questions(log.log, n, by=by, seed=seed, exclude=known)
    )


def _sample(visit: Visit) -> Response:
    values = visit.request.query_params
    return visit.render(
        "production_sample.html",
        found=_sample_of(visit, values) if values.get("n") else None,
        methods=_SAMPLING,
        most=_MOST,
        given={name: values.get(name, start) for name, start in (("n", "30"), ("by", _SAMPLING[0]), ("seed", "0"))},
    )


def _add(visit: Visit) -> Response:
    """Add the selected questions."""
    chosen = [question for question in _sample_of(visit, visit.form).questions if f"add-{question.id}" in visit.form]
    if not chosen:
        raise InputError("no question was selected", where="production", fix="select the questions to add")
    known = visit.project.questions
    visit.project.add_questions(questions_of(question for question in chosen if question.id not in known))
    return see_other("/questions")


routes = [
    Route("/production", visited(_metrics, roles=LEADS)),
    Route("/production/drift", visited(_drift, roles=LEADS, share=False)),
    Route("/production/drift/picture", visited(_picture, roles=LEADS, share=False)),
    Route("/production/sample", visited(_sample, roles=LEADS)),
    Route("/production/questions", visited(_add, roles=LEADS), methods=["POST"]),
]
