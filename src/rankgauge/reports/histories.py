"""What a history holds, as text: a list, one entry, two compared, a measure over time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from rankgauge.core.escaping import for_json
from rankgauge.core.grammar import unknown
from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.history import HistoryComparison, HistoryEntry, Trend
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.tables import Cell, Form, Table, render

__all__ = ["report_change", "report_entries", "report_entry", "report_trend"]

_PRIMARY = "nDCG@10"
_SHORT = 8


def report_entries(
    entries: Sequence[HistoryEntry],
    form: str = "table",
    *,
    measures: Iterable[str | Measure] | None = None,
    last: int | None = None,
    color: bool = False,
) -> str:
    """Saved evaluations, one a line, in the order in which they were saved.

    Args:
        entries: From :meth:`History.entries`.
        form: ``table`` (for a terminal), ``markdown``, ``html``, ``csv`` or ``json``. The last two
            hold whole times, fingerprints and commits.
        measures: Whose means are shown; nDCG@10, or the first of the latest, if left out.
        last: Show the latest so many; all if left out.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.
        InputError: If no evaluation has one of the measures.
    """
    _check(form)
    names = _names(entries, measures)
    shown = entries if last is None else entries[-last:]
    plain = form in {"csv", "json"}
    rows = tuple((_raw_row if plain else _row)(entry, names) for entry in shown)
    ends = ("judgments", "run_fingerprint", "commit", "dirty") if plain else ("judgments", "commit")
    columns = ("id", "time" if plain else "date", "run", "label", "queries", *names, *ends)
    if not plain:
        columns, rows = _without_empty(columns, rows)
    return render(Table(columns, rows, notes=tuple(_list_notes(entries, shown))), form, color=color)


def report_entry(entry: HistoryEntry, form: str = "table", *, color: bool = False) -> str:
    """All that is known of a saved evaluation, without its values per query.

    Args:
        entry: From :meth:`History.entry`.
        form: ``table`` (for a terminal), ``markdown``, ``html``, ``csv`` or ``json``.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.
    """
    _check(form)
    rows = tuple((name, value) for name, value in _known(entry) if value)
    means = tuple((name, value) for name, value in entry.means.items())
    if form == "json":
        known = {**dict(rows), "means": _no_nan(entry.means)}
        return for_json(json.dumps(known, ensure_ascii=False)) + "\n"
    if form == "csv":
        return render(Table(("what", "value"), (*rows, *means)), form)
    tables = (
        Table(("what", "value"), rows, title=entry.name),
        Table(("measure", "mean"), means, notes=entry.notes),
    )
    return "\n".join(render(table, form, color=color) for table in tables)


def report_change(change: HistoryComparison, form: str = "table", *, color: bool = False) -> str:
    """Two saved evaluations compared, one line a measure.

    Args:
        change: Made by :meth:`History.compare`.
        form: ``table`` (for a terminal), ``markdown``, ``html``, ``csv`` or ``json``.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.
    """
    _check(form)
    return render(
        change.data_table() if form in {"csv", "json"} else change.table(), form, color=color
    )


def report_trend(
    trend: Trend, form: str = "table", *, last: int | None = None, color: bool = False
) -> str:
    """A measure over time, one line an evaluation, with a plot of its intervals.

    Args:
        trend: Made by :meth:`History.trend`.
        form: ``table`` (for a terminal), ``markdown``, ``html``, ``csv`` or ``json``. The last two
            hold every evaluation in plain numbers.
        last: Show the latest so many; all if left out. Warnings are about all.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.
    """
    _check(form)
    table = trend.data_table() if form in {"csv", "json"} else trend.table(last)
    return render(table, form, color=color)


def _check(form: str) -> None:
    if form not in get_args(Form):
        raise unknown("form", form, get_args(Form))


def _names(
    entries: Sequence[HistoryEntry], measures: Iterable[str | Measure] | None
) -> tuple[str, ...]:
    kept = dict.fromkeys(name for entry in entries for name in entry.means)
    if measures is None:
        return (_PRIMARY,) if _PRIMARY in kept else tuple(entries[-1].means)[:1] if entries else ()
    names = tuple(dict.fromkeys(str(parse(measure)) for measure in measures))
    for name in names:
        if entries and name not in kept:
            raise InputError(
                f"no evaluation that is kept has {name}",
                where="history",
                fix=f"kept are: {', '.join(kept)}",
            )
    return names


def _without_empty(
    columns: tuple[str, ...], rows: tuple[tuple[Cell, ...], ...]
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """Without the columns that say nothing: no label, no commit."""
    kept = [n for n in range(len(columns)) if not rows or any(row[n] != "" for row in rows)]
    return tuple(columns[n] for n in kept), tuple(tuple(row[n] for n in kept) for row in rows)


def _row(entry: HistoryEntry, names: Iterable[str]) -> tuple[Cell, ...]:
    return (
        entry.id,
        f"{entry.time:%Y-%m-%d %H:%M}",
        entry.run,
        entry.label,
        entry.queries,
        *(entry.means.get(name) for name in names),
        (entry.qrels or "")[:_SHORT],
        entry.made_at,
    )


def _raw_row(entry: HistoryEntry, names: Iterable[str]) -> tuple[Cell, ...]:
    return (
        entry.id,
        entry.time.isoformat(),
        entry.run,
        entry.label,
        entry.queries,
        *(entry.means.get(name) for name in names),
        entry.qrels,
        entry.ranking,
        entry.commit,
        entry.dirty,
    )


def _list_notes(entries: Sequence[HistoryEntry], shown: Sequence[HistoryEntry]) -> Iterable[str]:
    if not entries:
        yield "nothing is kept"
    if len(shown) < len(entries):
        yield f"the latest {len(shown)} of {many(len(entries), 'evaluation')}"
    judged = len({entry.qrels for entry in shown} - {None})
    if judged > 1:
        yield f"{judged} different judgments: numbers made with different ones are not comparable"
    if any(entry.dirty for entry in shown):
        yield "* files were changed since this commit"


def _known(entry: HistoryEntry) -> Iterable[tuple[str, str]]:
    yield "id", str(entry.id)
    yield "time", entry.time.isoformat(timespec="seconds")
    yield "run", entry.run
    yield "label", entry.label
    yield "queries", str(entry.queries)
    yield "policies", ", ".join(f"{name}={value}" for name, value in entry.policies.said().items())
    yield "settings", _json(entry.settings)
    yield "settings of the run", _json(entry.run_settings)
    yield "fingerprint of the judgments", entry.qrels or ""
    yield "fingerprint of the run", entry.ranking or ""
    yield "hash of the query ids", entry.query_set
    yield "commit", (entry.commit or "") + (" with changed files" if entry.dirty else "")
    yield "versions", ", ".join(f"{name} {version}" for name, version in entry.versions.items())


def _json(settings: Any) -> str:
    return json.dumps(dict(settings), ensure_ascii=False) if settings else ""


def _no_nan(means: Any) -> dict[str, float | None]:
    return {name: value if value == value else None for name, value in means.items()}  # noqa: PLR0124 - only NaN differs from itself
