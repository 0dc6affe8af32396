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
from rankgauge.rendering.tables import Table, by_column
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
    values = (
        (
            f"{name} (by judge)" if by_judge else name,
            (mean if name in entry.means else None for entry, mean in zip(shown, means, strict=True)),
        )
        for name, (means, by_judge) in zip(names, known, strict=True)
    )
    judged = (entry.qrels if plain else (entry.qrels or "")[:_SHORT] for entry in shown)
    return Table(
        *by_column(
            ("id", (entry.id for entry in shown)),
            ("time", (entry.time.isoformat() for entry in shown))
            if plain
            else ("date", (f"{entry.time:%Y-%m-%d %H:%M}" for entry in shown)),
            ("run", (entry.run for entry in shown)),
            _known_to(shown, "label", plain=plain) and ("label", (entry.label for entry in shown)),
            ("queries", (entry.queries for entry in shown)),
            *values,
            _known_to(shown, "qrels", plain=plain) and ("judgments", judged),
            plain and ("run_fingerprint", (entry.ranking for entry in shown)),
            _known_to(shown, "made_at", plain=plain)
            and ("commit", (entry.commit if plain else entry.made_at for entry in shown)),
            plain and ("dirty", (entry.dirty for entry in shown)),
        ),
        notes=tuple(_list_notes(entries, shown)),
    )


def _known_to(entries: Sequence[HistoryEntry], name: str, *, plain: bool) -> bool:
    """Return whether a column is shown: one that is empty for all entries only in data."""
    return plain or not entries or any(getattr(entry, name) for entry in entries)


def _entry(entry: HistoryEntry, options: Options) -> Iterator[Table]:
    """Yield means and provenance; on a terminal without fingerprints and most notes."""
    most = _HASH if options.on_terminal else None
    rows = tuple(
        (name, value[:most] if name in _HASHES and " " not in value else value)
        for name, value in _known(entry).items()
        if value and not (options.short and name in _HASHES)
    )
    yield Table(("what", "value"), rows, title=entry.name)
    measures = [parse(name) for name in entry.means]
    if not options.short or not is_grid(measures):
        yield Table(("measure", "mean"), tuple(entry.named_means().items()), notes=entry.notes)
        return
    *tables, last = grids("", measures, entry.means)
    yield from tables
    yield replace(last, notes=("notes, fingerprints: --full (full=True)",))


def _compared(found: HistoryComparison, options: Options) -> Iterator[Table]:
    """Yield all measures; on a terminal the tested one and some others at the same cut-off."""
    table = found.table()
    measures = [each.measure for each in found.differences]
    if options.short and len(measures) > FITTING:
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


def _known(entry: HistoryEntry) -> dict[str, str]:
    return {
        "id": str(entry.id),
        "time": entry.time.isoformat(timespec="seconds"),
        "run": entry.run,
        "label": entry.label,
        "queries": str(entry.queries),
        "policies": ", ".join(f"{name}={value}" for name, value in entry.policies.describe().items()),
        "settings": _settings(entry.settings),
        "settings of the run": _settings(entry.run_settings),
        "fingerprint of the judgments": entry.qrels or "",
        "fingerprint of the run": entry.ranking or "",
        "hash of the query ids": entry.query_set,
        "commit": (entry.commit or "") + (" with uncommitted changes" if entry.dirty else ""),
        "versions": ", ".join(f"{name} {version}" for name, version in entry.versions.items()),
    }


def _settings(settings: Any) -> str:
    return json.dumps(dict(settings), ensure_ascii=False) if settings else ""


def _json(entries: HistoryEntries, options: Options) -> str:
    shown = entries if options.last is None else entries[-options.last :]
    return dump_json({"entries": shown}) + "\n"


REPORTS = {
    HistoryEntries: Report(
        lambda entries, options: [_entries(entries, options, plain=False)],
        lambda entries, options: _entries(entries, options, plain=True),
        {"json": _json},
    ),
    HistoryComparison: Report(_compared),
    HistoryEntry: Report(_entry),
    Trend: Report(lambda trend, options: [trend.table(options.last)]),
}
