"""Parts of a report: sections of texts, tables and plots, and sections of results."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from rankgauge.comparison.conclusions import difference_sentence, no_verdicts
from rankgauge.core.text import many
from rankgauge.rendering.tables import Cell, Table

if TYPE_CHECKING:
    from rankgauge.comparison.comparison import Comparison
    from rankgauge.comparison.differences import Difference
    from rankgauge.diagnosis.diagnosis import Diagnosis
    from rankgauge.history import Trend, TrendPoint
    from rankgauge.rendering.plot_drawing import Plot

Part: TypeAlias = "str | Table | Plot | Details"


@dataclass(frozen=True)
class Details:
    """A collapsed part of a report.

    Attributes:
        title: Its visible title.
        parts: Its content.
    """

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: Its heading.
        parts: What is below it: texts (a paragraph each, escaped), tables (as `table()` of an
            evaluation gives them), plots, and a :class:`Details` of them.

    Example:
        >>> Section("What was tried", ("The new index, with stemming.",)).title
        'What was tried'
    """

    title: str
    parts: tuple[Part, ...]


def diagnosis_section(diagnosis: Diagnosis) -> Section:
    """Return a diagnosis as a section of a report: bands, causes, potential gains, suggested fixes.

    The worst queries with their causes, and the distribution over queries, are collapsed.

    Args:
        diagnosis: Returned by :func:`diagnose`.

    Example:
        >>> from rankgauge.diagnosis.diagnosis import diagnose
        >>> found = diagnose({"q1": {"d1": 1}}, {"q1": ["x", "d1"]}, k=1)
        >>> section = diagnosis_section(found)
        >>> section.title, section.parts[0].title
        ('Diagnosis of run', 'Diagnosis of run: quality')
    """
    from rankgauge.reports.diagnoses import diagnosis_tables

    tables = diagnosis_tables(diagnosis)
    if diagnosis.withheld:
        return Section(f"Diagnosis of {diagnosis.run_name}", tuple(tables))
    how_good, causes = islice(tables, 2)
    worst = tuple(islice(tables, len(diagnosis.worst)))
    fixes, gains = islice(tables, 2)
    folded = [Details(f"Causes in the worst {many(len(worst), 'query')}", worst)] if worst else []
    return Section(
        f"Diagnosis of {diagnosis.run_name}",
        (
            how_good,
            causes,
            *folded,
            gains,
            fixes,
            Details("Other cut-offs, thresholds, and groups of queries", tuple(tables)),
        ),
    )


def deciding_difference(comparison: Comparison) -> Difference | None:
    """Return the difference that a bottom line reports, by the primary measure.

    That of the best run from the baseline; if the best run is the baseline, from the run that is
    farthest from it. None where nothing was tested.
    """
    tested = [
        d
        for d in comparison.differences
        if d.measure == comparison.primary and d.verdict not in {None, "withheld"}
    ]
    means = [e.mean()[str(comparison.primary)] for e in comparison.evaluations]
    best = {comparison.evaluations[place].run_name for place in comparison.primary.best(means)}
    of_best = [d for d in tested if d.run in best or d.baseline in best]
    return max(of_best or tested, key=lambda d: abs(d.difference), default=None)


def comparison_result(comparison: Comparison) -> str:
    """Return which run is better, by how much and how surely; or why there is no verdict."""
    if comparison.withheld:
        return "; ".join(
            no_verdicts((run, replace(one, code="", fix="")) for run, one in comparison.withheld)
        )
    first = comparison.sentences[0]
    found = deciding_difference(comparison)
    if found is None:
        return first
    sentence = difference_sentence(found)
    if found.corrected is not None and "p = " not in sentence:
        # The column of the p-value, second to last, names the correction.
        sentence += f"; {comparison.differences_table().columns[-2]} = {found.corrected:.4f}"
    # Of two runs the difference says which one is better.
    return sentence if len(comparison.evaluations) == 2 else f"{first}; {sentence}"


def trend_section(trend: Trend, *, plots: bool = True) -> Section:
    """Return a measure over time as a section of a report.

    Args:
        trend: Returned by :meth:`History.trend`.
        plots: Whether there is a plot, which needs ``rankgauge[plots]`` when the report is made.
    """
    warnings = tuple(f"Warning: {text}" for text in trend.warnings)
    rows = tuple(map(_trend_row, trend.points))
    table = Table(
        (
            "date",
            "run",
            "label",
            str(trend.measure),
            "95% interval",
            "change since the previous one",
        ),
        rows,
        title=f"{trend.measure} of all saved evaluations",
        notes=trend.notes,
    )
    drawn = [point for point in trend.points if not math.isnan(point.mean)]
    shown = (_trend_plot(trend, drawn),) if plots and drawn else ()
    return Section(f"{trend.measure} over time", (*warnings, *shown, table))


def _trend_plot(trend: Trend, drawn: list[TrendPoint]) -> Plot:
    days = len({point.entry.time.date() for point in drawn}) == len(drawn)
    from rankgauge.rendering.plots import plot_history

    return plot_history(
        [f"{p.entry.time:%Y-%m-%d}" if days else f"{p.entry.time:%Y-%m-%d %H:%M}" for p in drawn],
        [point.mean for point in drawn],
        [point.low for point in drawn],
        [point.high for point in drawn],
        measure=str(trend.measure),
        breaks=[place for place, point in enumerate(drawn) if point.breaks],
    )


def _trend_row(point: TrendPoint) -> tuple[Cell, ...]:
    return (
        f"{point.entry.time:%Y-%m-%d %H:%M}",
        point.entry.run,
        point.entry.label or point.entry.made_at,
        point.mean,
        None if math.isnan(point.low) else f"{point.low:.3f} to {point.high:.3f}",
        _change(point),
    )


def _change(point: TrendPoint) -> str:
    if point.breaks and point.breaks[0].startswith("another run"):
        return ""
    if point.breaks:
        return f"not comparable: {', '.join(point.breaks)}"
    if point.change is None:
        return ""
    step = point.change
    return f"{step.difference:+.3f} ({step.low:+.3f} to {step.high:+.3f})"
