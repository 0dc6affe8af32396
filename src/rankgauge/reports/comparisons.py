"""A comparison as text: means side by side, then differences and what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from rankgauge.comparison.comparison import Comparison
from rankgauge.core.grammar import unknown
from rankgauge.rendering.tables import BEST, Form, render

__all__ = ["report_comparison"]


def report_comparison(
    comparison: Comparison,
    form: str = "table",
    *,
    described: bool = True,
    transposed: bool = False,
    color: bool = False,
) -> str:
    """A comparison as text.

    Args:
        comparison: Made by :func:`compare`.
        form: ``table`` (for a terminal), ``markdown``, ``latex``, ``html``, ``csv`` (the
            differences only, in plain numbers) or ``json`` (all of it, see
            :meth:`Comparison.to_json`).
        described: Whether differences that are not tested are shown too.
        transposed: Runs down and measures across in the table of means.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.

    Example:
        >>> from rankgauge.comparison.comparison import compare
        >>> qrels, runs = {"q1": {"d"}, "q2": {"d"}}, {"a": {"q1": ["d"]}, "b": {"q1": ["x", "d"]}}
        >>> report_comparison(compare(qrels, runs, "RR"), "csv").splitlines()[0][:69] + "..."
        'run,baseline,measure,mean,baseline_mean,difference,low,high,effect,...'
    """
    if form not in get_args(Form):
        raise unknown("form", form, get_args(Form))
    if form == "json":
        return comparison.to_json() + "\n"
    if form == "csv":
        return render(comparison.data_table(described=described), form)
    means = comparison.table(transposed=transposed)
    if form == "table" and means.best:
        means = replace(means, notes=(BEST, *means.notes))
    tables = (means, comparison.differences_table(described=described))
    return "\n".join(render(table, form, color=color) for table in tables)
