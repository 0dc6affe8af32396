"""How a number from somewhere else came about, as text: the ways that fit, and the explanation."""

from __future__ import annotations

from collections.abc import Iterator

from rankgauge.core.grammar import unknown
from rankgauge.explanation.reproduction import Reproduction
from rankgauge.rendering.tables import Cell, Table, render
from rankgauge.reports.explanations import middle_cut, notes_text
from rankgauge.reports.reconciliations import reconciliation_parts

__all__ = ["report_reproduction"]

_FORMS = ("table", "markdown", "html", "json")
_SHOWN, _WAY, _SAME = 4, 58, 3


def report_reproduction(found: Reproduction, form: str = "table", *, color: bool = False) -> str:
    """How a number from somewhere else came about, as text.

    Args:
        found: Made by :func:`reproduce`.
        form: ``table`` (for a terminal, 100 columns wide), ``markdown``, ``html`` or ``json``
            (everything, in one document).
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.

    Example:
        >>> from rankgauge.explanation.reproduction import reproduce
        >>> found = reproduce({"q1": {"a": 1, "b": 1}}, {"q1": ["a"]}, "nDCG@10", {"q1": 1.0})
        >>> print(report_reproduction(found))
        nDCG@10 = 1 of the values given (1 value)
        way                           reproduced     mean    off by
        ───────────────────────────────────────────────────────────
        ideal of what was retrieved       1 of 1   1.0000   +0.0000
        as rankgauge has it               0 of 1   0.6131   -0.3869
        ...
    """
    if form not in _FORMS:
        raise unknown("form", form, _FORMS)
    if form == "json":
        return found.to_json() + "\n"
    parts = [
        render(_ways(found), form, color=color),
        notes_text(tuple(_notes(found)), form),
        *reconciliation_parts(found.reconciliation, form, color=color),
    ]
    return "\n".join(filter(None, parts))


def _ways(found: Reproduction) -> Table:
    """The ways that fit best, and ours."""
    whole = bool(found.given.values)
    ours = next(fit for fit in found.fits if not fit.deviations or fit.ours)
    shown = list(found.fits[:_SHOWN])
    if ours not in shown:
        shown[-1] = ours
    digits = max(4, min(found.given.digits, 8))
    rows: list[tuple[Cell, ...]] = []
    for fit in shown:
        said = f"{fit.reproduced} of {fit.reproduced + fit.missed}"
        off = fit.mean - found.given.mean
        rows.append((
            middle_cut(fit.name, _WAY), *((said,) if whole else ()),
            f"{fit.mean:.{digits}f}", f"{off:+.{digits}f}",
        ))  # fmt: skip
    heads = ("way", *(("reproduced",) if whole else ()), "mean", "off by")
    return Table(
        heads, tuple(rows), title=found.title(), right=frozenset(range(1, len(heads))),
    )  # fmt: skip


def _notes(found: Reproduction) -> Iterator[str]:
    yield f"{found.sure}: {found.why}"
    if found.tied:
        yield (
            f"{found.tied} of the {found.best.missed} values that are missed lie within what some "
            "order of equal scores can make: a sort that keeps no rule (an unstable one) explains "
            "them"
        )
    yield from found.given.notes
    if found.sure != "not found":
        yield f"found: {found.best.name}"
        if found.best.same:
            more = len(found.best.same) - _SAME
            names = ", ".join(found.best.same[:_SAME]) + (f" and {more} more" if more > 0 else "")
            yield f"the same values here, so nothing tells them apart: {names}"
    yield f"{found.tried} ways were tried: other tools, and up to three known deviations at once"
