"""Reports on collections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, replace

from rankgauge.core.text import Ratio
from rankgauge.corpus.description import PARTS, CollectionInfo
from rankgauge.rendering.tables import Cell, Table
from rankgauge.reports.registry import Options, Report

_GRADES, _CHARACTERS = "judgments of grade", "characters"  # rows that only a full report shows
_EFFECTS = 2


def _blocks(info: CollectionInfo, format: str, options: Options) -> Iterator[Table]:
    """Yield counts, lengths, and quality problems; short on a terminal."""
    short = format == "table" and not options.full
    notes = list(info.notes)
    if info.judgments is None:
        notes.append("no judgments were given: checks that need them were skipped")
    elif info.documents:
        notes.append(f"{Ratio(info.judged_share):.1%} of the documents are judged for some query")
    if not info.documents:
        notes.append("no documents were given: checks that need them were skipped")
    if not info.findings:
        notes.append("no quality problems found: checked for empty and duplicate texts, missing ids, leaks")
    counts = [row for row in info.counts().items() if not (short and row[0].startswith(_GRADES))]
    lengths: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *astuple(spread))
        for name, spread in info.spreads.items()
        if not (short and name.startswith(_CHARACTERS))
    )
    found: tuple[tuple[Cell, ...], ...] = tuple(
        (one.message, one.evidence.count, one.evidence.of, ", ".join(one.evidence.examples)) for one in info.findings
    )
    effects = [f"{one.message}: {one.effect} ({one.code})" for one in info.findings]
    notes = [*effects[: _EFFECTS if short else None], *notes]
    if short and len(effects) > _EFFECTS:
        notes.append(f"{len(effects) - _EFFECTS} more effects: --full (full=True)")
    if short:
        notes.append("judgments by grade, characters: --full (full=True)")
    heads = ("length", *PARTS)
    *tables, last = (
        table
        for table in (
            Table(("what", "number"), tuple(counts), title=info.name),
            Table(heads, lengths, title="" if short else "lengths", digits=1),
            Table(("what", "number", "of", "such as"), found, title="quality problems", shortened=frozenset({3})),
        )
        if table.rows
    )
    yield from tables
    yield replace(last, notes=tuple(notes))


REPORTS = {CollectionInfo: Report(_blocks)}
