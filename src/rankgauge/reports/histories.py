"""Reports on histories: list, entry, comparison of two entries, and trend."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from rankgauge.core.json_text import dump_json
from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.history import HistoryComparison, HistoryEntries, HistoryEntry, Trend
from rankgauge.history.entries import means_of
from rankgauge.measures.measure import Measure, parse, parse_all
from rankgauge.rendering.tables import Cell, Table
from rankgauge.reports.comparisons import FITTING, overview
from rankgauge.reports.evaluations import grids, is_grid
from rankgauge.reports.registry import Options, Report

_PRIMARY = "nDCG@10"
_SHORT, _HASH = 8, 40
_HASHES = {"fingerprint of the judgments", "fingerprint of the run", "hash of the query ids", "versions"}


def _entries(entries: HistoryEntries, options: Options, *, plain: bool) -> Table:
    """Return one row for each evaluation; `plain` has full times, fingerprints, and commits."""
    names = _names(entries, options.measures)
    shown = entries if options.last is None else entries[-options.last :]
    known = [means_of(shown, parse(name)) for name in names]
    rows = tuple(
        _row(entry, [v if n in entry.means else None for n, v in zip(names, own, strict=True)], plain=plain)
        for entry, *own in zip(shown, *(means for means, _ in known), strict=True)
    )
    names = tuple(f"{name} (by judge)" if by_judge else name for name, (_, by_judge) in zip(names, known, strict=True))
    ends = ("judgments", "run_fingerprint", "commit", "dirty") if plain else ("judgments", "commit")
    columns = ("id", "time" if plain else "date", "run", "label", "queries", *names, *ends)
    if not plain:
        columns, rows = _without_empty(columns, rows)
    return Table(columns, rows, notes=tuple(_list_notes(entries, shown)))


def _entry(entry: HistoryEntry, format: str, options: Options) -> Iterator[Table]:
    """Yield means and provenance; on a terminal without fingerprints and most notes."""
    short = format == "table" and not options.full
    most = _HASH if format == "table" else None
    rows = tuple(
        (name, value[:most] if name in _HASHES and " " not in value else value)
        for name, value in _known(entry)
        if value and not (short and name in _HASHES)
    )
    yield Table(("what", "value"), rows, title=entry.name)
    measures = [parse(name) for name in entry.means]
    if not short or not is_grid(measures):
        yield Table(("measure", "mean"), tuple(entry.named_means().items()), notes=entry.notes)
        return
    *tables, last = grids("", measures, entry.means)
    yield from tables
    yield replace(last, notes=("notes, fingerprints: --full (full=True)",))


def _compared(found: HistoryComparison, format: str, options: Options) -> Iterator[Table]:
    """Yield all measures; on a terminal the tested one and some others at the same cut-off."""
    table = found.table()
    measures = [each.measure for each in found.differences]
    if format == "table" and not options.full and len(measures) > FITTING:
        places = overview(measures, measures[:1])
        rest = many(len(measures) - len(places), "more measure")
        more = f"{rest}, test, and seed: --full (full=True)"
        table = replace(table.part(rows=places), notes=(*table.notes[: -len(found.notes)], more))
    yield table


def _names(entries: Sequence[HistoryEntry], measures: Sequence[str | Measure]) -> tuple[str, ...]:
    kept = dict.fromkeys(name for entry in entries for name in entry.means)
    if not measures:
        return (_PRIMARY,) if _PRIMARY in kept else tuple(entries[-1].means)[:1] if entries else ()
    names = tuple(dict.fromkeys(str(found) for name in measures for found in parse_all(name)))
    for name in names:
        if entries and name not in kept:
            raise InputError(
                f"no saved evaluation has {name}", where="history", fix=f"saved measures: {', '.join(kept)}"
            )
    return names


def _without_empty(
    columns: tuple[str, ...], rows: tuple[tuple[Cell, ...], ...]
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """Return columns and rows without empty columns, such as label or commit."""
    kept = [n for n in range(len(columns)) if not rows or any(row[n] != "" for row in rows)]
    return tuple(columns[n] for n in kept), tuple(tuple(row[n] for n in kept) for row in rows)


def _row(entry: HistoryEntry, means: Iterable[float | None], *, plain: bool) -> tuple[Cell, ...]:
    time = entry.time.isoformat() if plain else f"{entry.time:%Y-%m-%d %H:%M}"
    made: tuple[Cell, ...] = (entry.qrels or "")[:_SHORT], entry.made_at
    if plain:
        made = entry.qrels, entry.ranking, entry.commit, entry.dirty
    return entry.id, time, entry.run, entry.label, entry.queries, *means, *made


def _list_notes(entries: Sequence[HistoryEntry], shown: Sequence[HistoryEntry]) -> Iterable[str]:
    if not entries:
        yield "no evaluation is saved"
    if len(shown) < len(entries):
        yield f"the latest {len(shown)} of {many(len(entries), 'evaluation')}"
    judged = len({entry.qrels for entry in shown} - {None})
    if judged > 1:
        yield f"{judged} different judgments: values from different judgments are not comparable"
    if any(entry.dirty for entry in shown):
        yield "* * uncommitted changes"


def _known(entry: HistoryEntry) -> Iterable[tuple[str, str]]:
    yield "id", str(entry.id)
    yield "time", entry.time.isoformat(timespec="seconds")
    yield "run", entry.run
    yield "label", entry.label
    yield "queries", str(entry.queries)
    yield ("policies", ", ".join(f"{name}={value}" for name, value in entry.policies.describe().items()))
    yield "settings", _settings(entry.settings)
    yield "settings of the run", _settings(entry.run_settings)
    yield "fingerprint of the judgments", entry.qrels or ""
    yield "fingerprint of the run", entry.ranking or ""
    yield "hash of the query ids", entry.query_set
    yield "commit", (entry.commit or "") + (" with uncommitted changes" if entry.dirty else "")
    yield "versions", ", ".join(f"{name} {version}" for name, version in entry.versions.items())


def _settings(settings: Any) -> str:
    return json.dumps(dict(settings), ensure_ascii=False) if settings else ""


def _json(entries: HistoryEntries, options: Options) -> str:
    shown = entries if options.last is None else entries[-options.last :]
    return dump_json({"entries": shown}) + "\n"


REPORTS = {
    HistoryEntries: Report(
        lambda entries, _format, options: [_entries(entries, options, plain=False)],
        lambda entries, options: _entries(entries, options, plain=True),
        {"json": _json},
    ),
    HistoryComparison: Report(_compared),
    HistoryEntry: Report(_entry),
    Trend: Report(lambda trend, _format, options: [trend.table(options.last)]),
}
