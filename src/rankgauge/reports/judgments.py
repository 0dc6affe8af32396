"""What judgments leave open as text: unjudged documents, and runs without their own judgments."""

from __future__ import annotations

from typing import get_args

from rankgauge.core.grammar import unknown
from rankgauge.rendering.tables import Form, render
from rankgauge.sensitivity.pool_reliability import Reliability
from rankgauge.sensitivity.unjudged import UnjudgedReport

__all__ = ["report_reliability", "report_unjudged"]


def report_unjudged(found: UnjudgedReport, form: str = "table", *, color: bool = False) -> str:
    """What unjudged documents leave open, as text.

    Args:
        found: Made by :func:`unjudged_report`.
        form: ``table`` (for a terminal), ``markdown``, ``latex``, ``html``, ``csv`` or ``json``.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.

    Example:
        >>> from rankgauge.sensitivity.unjudged import unjudged_report
        >>> found = unjudged_report({"q1": {"d1": 1}}, {"q1": ["d2", "d1"]}, "RR")
        >>> report_unjudged(found, "csv").splitlines()[1]
        'RR,0.5,1.0,1.0,,,0.5'
    """
    if form not in get_args(Form):
        raise unknown("form", form, get_args(Form))
    return render(found.table(), form, color=color)


def report_reliability(found: Reliability, form: str = "table", *, color: bool = False) -> str:
    """Each run without its own judgments, as text.

    Args:
        found: Made by :func:`reliability`.
        form: ``table`` (for a terminal), ``markdown``, ``latex``, ``html``, ``csv`` or ``json``.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.

    Example:
        >>> from rankgauge.sensitivity.pool_reliability import reliability
        >>> runs = {"a": {"q": ["d1", "d2"]}, "b": {"q": ["d2"]}}
        >>> found = reliability({"q": {"d1": 1, "d2": 1}}, runs, "P@1")
        >>> report_reliability(found, "csv").splitlines()[1]
        'a,1,1,P@1,1.0,0.0,-1.0,1,2'
    """
    if form not in get_args(Form):
        raise unknown("form", form, get_args(Form))
    return render(found.table(), form, color=color)
