"""A tuned fusion as text: what was chosen for which queries, and what came of it."""

from __future__ import annotations

from typing import get_args

from rankgauge.core.grammar import unknown
from rankgauge.fusion.tuning import TunedFusion
from rankgauge.rendering.tables import Form, render

__all__ = ["report_tuning"]


def report_tuning(tuned: TunedFusion, form: str = "table", *, color: bool = False) -> str:
    """A tuned fusion as text.

    Args:
        tuned: Made by :func:`tune_fusion`.
        form: ``table`` (for a terminal), ``markdown``, ``html``, ``csv`` or ``json``.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.

    Example:
        >>> from rankgauge.fusion.tuning import tune_fusion
        >>> qrels = {"q1": {"d"}, "q2": {"d"}}
        >>> runs = {"a": {"q1": ["d"], "q2": ["d"]}, "b": {"q1": ["x"], "q2": ["y"]}}
        >>> report_tuning(tune_fusion(qrels, runs, "RR", folds=2), "csv").splitlines()[0]
        'fold,chosen on,chosen,RR there,used for,there'
    """
    if form not in get_args(Form):
        raise unknown("form", form, get_args(Form))
    return render(tuned.table(), form, color=color)
