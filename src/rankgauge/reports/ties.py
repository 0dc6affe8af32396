"""What ties touch, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from rankgauge.core.grammar import unknown
from rankgauge.errors import InputError
from rankgauge.rendering.tables import Form, render
from rankgauge.sensitivity.ties import TieReport

__all__ = ["report_ties"]


def report_ties(
    found: TieReport | Sequence[TieReport],
    form: str = "table",
    *,
    per_query: bool = False,
    color: bool = False,
) -> str:
    """What equal scores touch, and what each measure could be by another order of them, as text.

    Args:
        found: Made by :func:`tie_report`; one, or one for each run.
        form: ``table`` (for a terminal), ``markdown``, ``latex``, ``html``, ``csv`` or ``json``
            (everything; one document a run, each on a line of its own).
        per_query: Whether to show each query and measure that ties could change, not the means.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.

    Example:
        >>> from rankgauge.sensitivity.ties import tie_report
        >>> found = tie_report({"q1": {"a": 1}}, {"q1": {"a": 0.5, "b": 0.5}}, "RR")
        >>> print(report_ties(found, "csv"), end="")
        measure,as evaluated (trec),worst,mean,best,queries affected
        RR,0.5,0.5,0.75,1.0,1
    """
    many = [found] if isinstance(found, TieReport) else list(found)
    if not many:
        raise InputError("there is no report of ties", fix="give at least one")
    if form not in get_args(Form):
        raise unknown("form", form, get_args(Form))
    if form == "json":
        return "".join(one.to_json() + "\n" for one in many)
    return "\n".join(render(one.table(per_query=per_query), form, color=color) for one in many)
