"""Sections of a report (texts, tables, and plots), and the templates of pages."""

from __future__ import annotations

import base64
import functools
import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rankgauge.comparison.conclusions import difference_sentence, no_verdicts
from rankgauge.core.escaping import templates
from rankgauge.core.text import many
from rankgauge.rendering.plot_drawing import Plot
from rankgauge.rendering.tables import Cell, Table

if TYPE_CHECKING:
    from rankgauge.comparison import Trend, TrendPoint
    from rankgauge.comparison.comparison import Comparison
    from rankgauge.comparison.differences import Difference
    from rankgauge.diagnosis.diagnosis import Diagnosis

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

    title, tables = f"Diagnosis of {diagnosis.run_name}", diagnosis_tables(diagnosis)
    if diagnosis.withheld:
        return Section(title, tables)
    queries = len(diagnosis.worst)
    others, worst = tables[4 : len(tables) - queries], tables[len(tables) - queries :]
    folded = [Details(f"Causes in the worst {many(queries, 'query')}", worst)] if worst else []
    more = Details("Other cut-offs, thresholds, and groups of queries", others)
    return Section(title, (*tables[:2], *folded, *tables[2:4], more))


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
        return "; ".join(no_verdicts((run, replace(finding, code="", fix="")) for run, finding in comparison.withheld))
    first = comparison.sentences[0]
    deciding = deciding_difference(comparison)
    if deciding is None:
        return first
    sentence = difference_sentence(deciding)
    if deciding.corrected is not None and "p = " not in sentence:
        sentence += f"; {comparison.design.p_label} = {deciding.corrected:.4f}"
    # For two runs, the difference names the better run.
    return sentence if len(comparison.evaluations) == 2 else f"{first}; {sentence}"


def trend_section(trend: Trend, *, plots: bool = True) -> Section:
    """Return a trend as a section of a report.

    Args:
        trend: Returned by :func:`rankgauge.comparison.trend_of`.
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
    change, step = "", point.change
    if point.breaks and not point.breaks[0].startswith("another run"):
        change = f"not comparable: {', '.join(point.breaks)}"
    elif step is not None and not point.breaks:
        change = f"{step.difference:+.3f} ({step.low:+.3f} to {step.high:+.3f})"
    return (
        f"{point.entry.time:%Y-%m-%d %H:%M}",
        point.entry.run,
        point.entry.label or point.entry.made_at,
        point.mean,
        None if math.isnan(point.low) else f"{point.low:.3f} to {point.high:.3f}",
        change,
    )


def asset(name: str) -> str:
    """Return the text of a file from the templates folder."""
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def readable(value: Any) -> str:
    """Format a setting as text.

    Example:
        >>> readable({"name": "rules", "calibrated": [], "prompts": ["a", "b"]})
        'name: rules; prompts: a, b'
    """
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {readable(held)}" for name, held in value.items() if readable(held))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(readable, value))
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def page(template: str, *, script: str = "", **values: Any) -> str:
    """Render a template with its values, style, script, and version."""
    return str(
        environment()
        .get_template(template)
        .render(
            **values,
            version=metadata.version("rankgauge"),
            style=asset("theme.css") + asset("page.css"),
            script=script,
            # The content security policy allows only this script.
            script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def html_page(title: str, parts: Iterable[str]) -> str:
    """Return rendered results as one complete, self-contained HTML page.

    Args:
        title: The title of the page.
        parts: HTML elements, as `render` returns them.

    Example:
        >>> html_page("a & b", ["<p>1</p>"]).splitlines()[0]
        '<!DOCTYPE html>'
    """
    return page("output.html", title=title, results=parts, date="")


@functools.cache
def environment(*folders: Path) -> Any:
    """Return the Jinja environment of reports, or that of pages whose templates are in other folders, too.

    Example:
        >>> environment().from_string("{{ readable(x) }}").render(x=["<i>", True])
        '&lt;i&gt;, yes'
    """
    from jinja2 import FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def inlined(shown: Plot, name: str) -> Markup:
        return Markup(shown.inline(name))  # noqa: S704 - our own SVG, its texts escaped

    created = templates(
        loader=FileSystemLoader([*folders, Path(__file__).parent / "templates"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    created.globals |= {"inline": inlined, "readable": readable, "kind": lambda part: type(part).__name__}
    return created
