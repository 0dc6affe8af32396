"""Reports on production data, and the page of a drift report with its map."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rankgauge.core.text import Ratio, keep
from rankgauge.production import DriftReport, QuestionPoint
from rankgauge.reports.sections import Details, Section, asset, page

_WIDTH, _HEIGHT, _MARGIN = 1000, 640, 24
_MOST = 1500  # maximum number of points per set
_LONGEST = 300


def drift_page(report: DriftReport) -> str:
    """Return drift as one HTML file: conclusion, map, clusters, and questions to add.

    The page is self-contained. The pointer and the arrow keys show the text of a question. For sets
    of more than 1,500 questions, an even selection is plotted.

    Args:
        report: Result of `measure_drift`.

    Example:
        >>> from rankgauge.production import measure_drift
        >>> questions = [f"question {number}" for number in range(24)]
        >>> page = drift_page(measure_drift(questions[:12], questions[12:], permutations=19))
        >>> page.splitlines()[0], page.count("<circle class")
        ('<!DOCTYPE html>', 12)
    """
    script = asset("drift.js")
    drawn = _drawn(report.points)
    ours, theirs = report.evaluation, report.log
    names = []  # numbers of the clusters, at the median positions of their points
    for number in sorted({point.cluster for point in drawn}):
        members = [point for point in drawn if point.cluster == number]
        x, y = (statistics.median(getattr(point, axis) for point in members) for axis in "xy")
        names.append((x, y, number))
    caption = (
        f"First two principal components of {report.encoder}: near points are similar questions. "
        "The test uses more dimensions than this map."
    )
    if len(drawn) < len(report.points):
        caption += f" The map shows {len(drawn):,} of {len(report.points):,} questions."
    return page(
        "drift.html",
        script=script,
        title="Drift of the evaluation set",
        facts=(
            f"{ours.questions:,} evaluation questions",
            f"{theirs.questions:,} distinct questions of users, asked {theirs.asked:,} times",
            report.encoder,
        ),
        date="",
        bottom_line=tuple(_bottom_line(report)),
        warnings=(),
        points=drawn,
        names=names,
        width=_WIDTH,
        height=_HEIGHT,
        alt=f"Evaluation and log questions as points on a plane. {report.summary()}",
        caption=caption,
        sections=tuple(_sections(report)),
    )


def _bottom_line(report: DriftReport) -> tuple[tuple[str, str], ...]:
    *texts, limitation = report.sentences()
    sure = f"AUC {Ratio(report.strongest.area):.2f}, p = {report.p:.3f}"
    fix = report.finding.fix
    return keep(
        ("Result", f"{report.verdict.capitalize()}: {' '.join(texts)} ({sure})"),
        ("Limitation", limitation),
        fix and ("Next step", f"{fix[0].upper()}{fix[1:]}."),
    )


def _sections(report: DriftReport) -> Iterator[Section]:
    table, additions, outliers = report.table(), report.additions_table(), report.outliers_table()
    *statistics, simultaneous, asked = table.notes
    shares = replace(table.part(columns=range(8)), title="", notes=(simultaneous, asked))
    typical = replace(table.part(columns=(0, 9, 10)), title="", notes=())
    yield from keep(
        Section("Clusters", (shares, Details("Typical questions of each cluster", (typical,)))),
        additions.rows and Section("Questions to add", (replace(additions, title=""),)),
        outliers.rows and Section("Outliers", (outliers,)),
        Section("Test", (Details("Statistics", tuple(statistics[1:])), report.power_table())),
    )


def _drawn(points: Sequence[QuestionPoint]) -> list[QuestionPoint]:
    """Scale an even selection of each set; evaluation questions come last, to be drawn on top."""
    chosen: list[QuestionPoint] = []
    for evaluation in (False, True):
        some = sorted(
            (point for point in points if point.evaluation is evaluation),
            key=lambda point: (point.cluster, point.x, point.y),
        )
        chosen += some[:: -(-len(some) // _MOST)] if some else []
    spans = []
    for values, size in (([point.x for point in chosen], _WIDTH), ([-point.y for point in chosen], _HEIGHT)):
        low, high = min(values), max(values)
        scale = (size - 2 * _MARGIN) / (high - low) if high > low else 0.0
        spans.append([round(_MARGIN + (value - low) * scale, 1) for value in values])
    return [
        replace(
            point,
            text=f"{'evaluation' if point.evaluation else 'log'}, cluster {point.cluster}: {point.text[:_LONGEST]}",
            x=x,
            y=y,
        )
        for point, x, y in zip(chosen, *spans, strict=True)
    ]
