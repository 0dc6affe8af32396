"""Sections of a report: texts, tables, and plots."""

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
    """Collapsed part of a report.

    Attributes:
        title: Visible title.
        parts: Content.
    """

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Section:
    """Section of a report.

    Attributes:
        title: Heading.
        parts: Content: texts (each is a paragraph, and is escaped), tables (as returned by
            `table()` of a result), plots, and :class:`Details`.

    Example:
        >>> Section("What was tried", ("The new index, with stemming.",)).title
        'What was tried'
    """

    title: str
    parts: tuple[Part, ...]


def diagnosis_section(diagnosis: Diagnosis) -> Section:
    """Return a diagnosis as a section of a report: quality, causes, potential gains, and fixes.

    The worst queries with their causes, and the distribution over queries, are collapsed.

    Args:
        diagnosis: Returned by :func:`diagnose`.

    Example:
        >>> from rankgauge import diagnose
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
    """Return the difference that decides a comparison by the primary measure.

    It is the largest tested difference of the best run, or of any run if the best run was not
    tested. None if nothing was tested.
    """
    tested = [
        d for d in comparison.differences if d.measure == comparison.primary and d.verdict not in {None, "withheld"}
    ]
    means = [row[str(comparison.primary)] for row in comparison.means().values()]
    best = {comparison.evaluations[place].run_name for place in comparison.primary.best(means)}
    of_best = [d for d in tested if d.run in best or d.baseline in best]
    return max(of_best or tested, key=lambda d: abs(d.difference), default=None)


def comparison_result(comparison: Comparison) -> str:
    """Return the conclusion in one sentence, or why there is no verdict."""
    if comparison.withheld:
        return "; ".join(no_verdicts((run, replace(one, code="", fix="")) for run, one in comparison.withheld))
    first = comparison.sentences[0]
    found = deciding_difference(comparison)
    if found is None:
        return first
    sentence = difference_sentence(found)
    if found.corrected is not None and "p = " not in sentence:
        sentence += f"; {comparison.design.p_label} = {found.corrected:.4f}"
    # For two runs, the difference names the better run.
    return sentence if len(comparison.evaluations) == 2 else f"{first}; {sentence}"


def trend_section(trend: Trend, *, plots: bool = True) -> Section:
    """Return a trend as a section of a report.

    Args:
        trend: Returned by :meth:`History.trend`.
        plots: Whether to include a plot, which needs ``rankgauge[plots]``.
    """
    warnings = tuple(f"Warning: {text}" for text in trend.warnings)
    rows = tuple(map(_trend_row, trend.points))
    table = Table(
        ("date", "run", "label", str(trend.measure), "95% interval", "change since the previous one"),
        rows,
        title=f"{trend.measure} of all saved evaluations",
        notes=trend.notes,
    )
    drawn = tuple(point for point in trend.points if not math.isnan(point.mean))
    shown = (replace(trend, points=drawn).plot(),) if plots and drawn else ()
    return Section(f"{trend.measure} over time", (*warnings, *shown, table))


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
