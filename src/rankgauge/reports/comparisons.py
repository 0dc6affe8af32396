"""Reports on comparisons, diffs of two runs, and saved evaluations."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING

from rankgauge.core.text import keep, many
from rankgauge.errors import InputError
from rankgauge.measures.measure import Measure, parse, parse_all
from rankgauge.rendering.tables import Cell, Detail, Signed, Table, by_column
from rankgauge.reports.evaluations import grids, is_grid
from rankgauge.reports.registry import Options, Report

if TYPE_CHECKING:
    from rankgauge.comparison.comparison import PairedComparison
    from rankgauge.comparison.run_diff import DocumentDiff, QueryDiff, RunDiff
    from rankgauge.store import HistoryEntries, HistoryEntry


def comparison_tables(comparison: PairedComparison, options: Options) -> Iterator[Table]:
    """Yield the means, the differences, and their notes.

    On a terminal, the differences are one table for a single measure, else one for each pair of runs.
    """
    yield comparison.table(transposed=options.transposed)
    table = comparison.differences_table()
    heads = table.columns.index("measure")  # number of columns that name the runs
    measures = {row[heads] for row in table.rows if not options.short or not isinstance(row[heads], Detail)}
    if not options.on_terminal:
        yield replace(table, notes=())
    elif len(measures) == 1:
        columns = [n for n in range(len(table.columns)) if n != heads]
        rows = [n for n, row in enumerate(table.rows) if row[heads] in measures]
        between = ", " if heads > 1 else " "  # all pairs, or compared with the baseline
        title = f"{measures.pop()}{between}{table.title}"
        yield replace(table.part(rows=rows, columns=columns), title=title, notes=())
    else:
        for names, places in groupby(range(len(table.rows)), key=lambda place: table.rows[place][:heads]):
            run, against = (*names, comparison.baseline)[:2]
            part = table.part(rows=[*places], columns=range(heads, len(table.columns)))
            yield replace(part, title=f"{run} compared with {against}", notes=())
    yield Table((), (), notes=table.notes)


# ---- diffs

# Beyond this number of queries, rankings are details.
_RANKINGS = 2
_UNJUDGED = "·"
_ARROWS = {"up": "↑", "down": "↓"}
_LEGEND = (
    f"grade {_UNJUDGED}: not judged; now, was: the rank in the other run (= the same, gone or new: not retrieved there)"
)


def _diff_blocks(diff: RunDiff, _options: Options) -> Iterator[Table]:
    """Yield the queries, one per row, then both rankings of each."""
    shown = diff.shown
    faults = [f"WARNING: {run}: {finding}" for run, finding in diff.findings if finding.severity == "error"]
    folded, texts = len(shown) > _RANKINGS, any(query.text for query in shown)
    unchanged = "no query to show" if diff.wins + diff.losses else f"no query changed its {diff.measure}"
    yield Table(
        *by_column(
            ("query", (query.query for query in shown)),
            (diff.run_a, (query.value_a for query in shown)),
            (diff.run_b, (query.value_b for query in shown)),
            ("change", (Signed(query.change) for query in shown)),
            ("RBO", (query.rbo for query in shown)),
            ("first rel.", map(_firsts, shown)),
            texts and ("query text", (query.text for query in shown)),
        ),
        title="; ".join(faults) or diff.title(),
        subtitle=diff.title() if faults else "",
        notes=keep(
            *(note for note in diff.notes if note not in faults),
            not shown and unchanged,
            folded and "--query ID shows both rankings of a query",
            shown and (Detail(_LEGEND) if folded else _LEGEND),
        ),
        shortened=frozenset({1, 2, 6} if texts else {1, 2}),
    )
    for query in shown:
        title = f"{query.query}: {query.text}" if query.text else query.query
        yield _side_by_side(diff, query, Detail(title) if folded else title)


def _side_by_side(diff: RunDiff, query: QueryDiff, title: str) -> Table:
    """Return both rankings of a query side by side."""
    rows: list[tuple[Cell, ...]] = []
    best: set[tuple[int, int]] = set()
    for rank, (left, right) in enumerate(zip_longest(query.ranking_a, query.ranking_b), start=1):
        best |= {
            (len(rows), column)
            for column, at in ((2, left), (5, right))
            if at is not None and at.grade is not None and at.grade >= diff.level
        }
        rows.append((rank, *_cells(left), *_cells(right)))
        text_a, text_b = ("" if at is None else at.text for at in (left, right))
        if text_a or text_b:
            rows.append(("", text_a, "", "", text_b, "", ""))
    values = " → ".join("–" if math.isnan(value) else f"{value:.4f}" for value in (query.value_a, query.value_b))
    overlap = "–" if math.isnan(query.rbo) else f"{query.rbo:.4f}"
    facts = f"{diff.measure} {values} ({query.change:+.4f}), first relevant {_firsts(query)}, RBO {overlap}"
    return Table(
        columns=("rank", diff.run_a, "grade", "now", diff.run_b, "grade", "was"),
        rows=tuple(rows),
        title=title,
        notes=(facts, *_notes(diff, query)),
        best=frozenset(best),
        shortened=frozenset({1, 4}),
    )


def _cells(at: DocumentDiff | None) -> tuple[str, str, str]:
    if at is None:
        return "", "", ""
    moved = f"{_ARROWS[at.move]} {at.other_rank}" if at.move in _ARROWS else at.move
    return at.document, _grade(at), "=" if at.move == "same" else moved


def _notes(diff: RunDiff, query: QueryDiff) -> tuple[str, ...]:
    """Return notes on missing queries, and on relevant documents gained and lost."""
    runs = ((diff.run_a, query.retrieved_a), (diff.run_b, query.retrieved_b))
    return keep(
        *(
            f"{run} retrieved nothing" if retrieved == 0 else f"the query is not in {run}: an empty ranking"
            for run, retrieved in runs
            if not retrieved
        ),
        query.lost and f"relevant, left the top {diff.k}: {_listed(query.lost, 'now')}",
        query.gained and f"relevant, entered the top {diff.k}: {_listed(query.gained, 'was')}",
    )


def _listed(places: Iterable[DocumentDiff], word: str) -> str:
    return ", ".join(
        f"{at.document} (grade {_grade(at)}, {at.move if at.other_rank is None else f'{word} {at.other_rank}'})"
        for at in places
    )


def _grade(at: DocumentDiff) -> str:
    return _UNJUDGED if at.grade is None else f"{at.grade:g}"


def _firsts(query: QueryDiff) -> str:
    ranks = ("–" if rank is None else str(rank) for rank in (query.first_a, query.first_b))
    return " → ".join(ranks)


# ---- histories: list, entry, comparison of two entries, and trend

_PRIMARY = "nDCG@10"
_SHORT, _HASH = 8, 40


def _entries(entries: HistoryEntries, options: Options, *, plain: bool = False) -> Table:
    """Return one row for each evaluation; `plain` has full times, fingerprints, and commits, and empty columns."""
    from rankgauge.store.entries import means_of

    shown = entries if options.last is None else entries[-options.last :]
    names = _names(shown, options.measures)
    known = [means_of(shown, parse(name)) for name in names]
    values = (
        (
            f"{name} (by judge)" if by_judge else name,
            (mean if name in entry.means else None for entry, mean in zip(shown, means, strict=True)),
        )
        for name, (means, by_judge) in zip(names, known, strict=True)
    )
    judged = [entry.qrels if plain else (entry.qrels or "")[:_SHORT] for entry in shown]
    labels = [entry.label for entry in shown]
    judgments = len({entry.qrels for entry in shown} - {None})
    commits = [entry.commit if plain else entry.made_at for entry in shown]
    every = plain or not entries
    return Table(
        *by_column(
            ("id", (entry.id for entry in shown)),
            ("time", (entry.time.isoformat() for entry in shown))
            if plain
            else ("date", (f"{entry.time:%Y-%m-%d %H:%M}" for entry in shown)),
            ("run", (entry.run for entry in shown)),
            (every or any(labels)) and ("label", labels),
            ("queries", (entry.queries for entry in shown)),
            *values,
            (every or any(judged)) and ("judgments", judged),
            plain and ("run_fingerprint", (entry.ranking for entry in shown)),
            (every or any(commits)) and ("commit", commits),
            plain and ("dirty", (entry.dirty for entry in shown)),
        ),
        notes=keep(
            not entries and "no evaluation is saved",
            len(shown) < len(entries)
            and f"the latest {len(shown)} of {many(len(entries), 'evaluation')}: --last N or --full",
            judgments > 1 and f"{judgments} different judgments: values from different judgments are not comparable",
            any(entry.dirty for entry in shown) and "* * uncommitted changes",
        ),
    )


def _entry(entry: HistoryEntry, options: Options) -> list[Table]:
    """Yield provenance and means; fingerprints and notes are details."""
    most = _HASH if options.on_terminal else None  # characters of a hash
    settings, run_settings = (
        json.dumps(dict(settings), ensure_ascii=False) if settings else ""
        for settings in (entry.settings, entry.run_settings)
    )
    facts = {
        "id": str(entry.id),
        "time": entry.time.isoformat(timespec="seconds"),
        "run": entry.run,
        "label": entry.label,
        "queries": str(entry.queries),
        "policies": ", ".join(f"{name}={value}" for name, value in entry.policies.describe().items()),
        "settings": settings,
        "settings of the run": run_settings,
        Detail("fingerprint of the judgments"): (entry.qrels or "")[:most],
        Detail("fingerprint of the run"): (entry.ranking or "")[:most],
        Detail("hash of the query ids"): entry.query_set[:most],
        "commit": (entry.commit or "") + (" with uncommitted changes" if entry.dirty else ""),
        Detail("versions"): ", ".join(f"{name} {version}" for name, version in entry.versions.items()),
    }
    rows = tuple((name, value) for name, value in facts.items() if value)
    measures = [parse(name) for name in entry.means]
    means = [Table(("measure", "mean"), tuple(entry.named_means().items()))]
    return [
        Table(("what", "value"), rows, title=entry.name, unit="fact"),
        *(grids("", measures, entry.means) if is_grid(measures) else means),
        Table((), (), notes=tuple(map(Detail, entry.notes))),
    ]


def _names(entries: Sequence[HistoryEntry], measures: Sequence[str | Measure]) -> tuple[str, ...]:
    kept = dict.fromkeys(name for entry in entries for name in entry.means)
    if not measures:
        return (_PRIMARY,) if _PRIMARY in kept else tuple(entries[-1].means)[:1] if entries else ()
    names = tuple(dict.fromkeys(str(measure) for name in measures for measure in parse_all(name)))
    for name in names:
        if entries and name not in kept:
            raise InputError(
                f"no saved evaluation has {name}", where="history", fix=f"saved measures: {', '.join(kept)}"
            )
    return names


def _json(entries: HistoryEntries, options: Options) -> str:
    from rankgauge.store import HistoryEntries

    shown = entries if options.last is None else entries[-options.last :]
    return HistoryEntries(shown).to_json() + "\n"


REPORTS = {
    "Comparison": Report(comparison_tables),
    "DistributedComparison": Report(comparison_tables),
    "RunDiff": Report(_diff_blocks),
    "TieReport": Report(
        lambda ties, options: [ties.table(per_query=options.per_query)],
        lambda ties, options: ties.table(per_query=options.per_query),
    ),
    "HistoryEntries": Report(
        lambda entries, options: [_entries(entries, options)],
        lambda entries, options: _entries(entries, options, plain=True),
        {"json": _json},
    ),
    "HistoryEntry": Report(_entry),
    "Trend": Report(lambda trend, options: [trend.table(options.last)]),
}
