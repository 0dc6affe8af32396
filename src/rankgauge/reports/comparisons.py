"""Reports on comparisons, diffs of two runs, and saved evaluations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from rankgauge.comparison.comparison import Comparison, PairedComparison
from rankgauge.comparison.run_diff import DocumentDiff, QueryDiff, RunDiff
from rankgauge.core.escaping import dump_json
from rankgauge.core.text import many
from rankgauge.distributed import DistributedComparison
from rankgauge.errors import InputError
from rankgauge.evaluation.sensitivity import TieReport
from rankgauge.history import HistoryComparison, HistoryEntries, HistoryEntry, Trend
from rankgauge.history.entries import means_of
from rankgauge.measures.measure import Measure, parse, parse_all
from rankgauge.rendering.tables import BEST, Cell, Table, by_column, shorten
from rankgauge.reports.evaluations import grids, is_grid
from rankgauge.reports.registry import Options, Report

# Number of measures in a short report, if there are more than fit on a screen.
_MOST, _FITTING = 6, 9


def comparison_tables(found: PairedComparison, options: Options) -> Iterator[Table]:
    """Yield the means, and the differences with conclusions."""
    means = found.table(transposed=options.transposed)
    marks = (BEST,) if options.on_terminal and means.best else ()
    notes = (*marks, *means.notes)
    left = []
    if not options.full and len(means.rows) > _FITTING and not options.transposed:
        places = overview(found.measures, found.tested)
        left = [many(len(means.rows) - len(places), "more measure")]
        means = means.part(rows=places)
    more = () if options.on_terminal else (f"{text}: --full (full=True)" for text in left)
    yield replace(means, notes=(*notes, *more))
    table = found.differences_table(described=options.full)
    if options.short:
        warnings = len(found.warnings) - 1
        left += [many(warnings, "more warning")] if warnings > 0 else []
        rest = f"{', '.join(left)}, test, and seed" if left else "test and seed"
        table = replace(table, notes=(*conclusions(found), f"{rest}: --full (full=True)"))
    yield from _by_run(found, table) if options.on_terminal else (table,)


def conclusions(found: PairedComparison) -> Iterator[str]:
    """Yield the conclusion about the runs and the first warning."""
    said = found.sentences[len(found.withheld_sentences) :]
    # For two runs, the second sentence names the better run and the difference.
    yield from said[1:2] if len(found.means()) == 2 and len(said) > 1 else said[:1]
    for text in found.warnings[:1]:
        yield f"WARNING: {text}"


def overview(measures: Sequence[Measure], tested: Sequence[Measure]) -> list[int]:
    """Return the positions of the tested measures and of some with the same or no cut-off."""
    cut = dict(tested[0].params).get("k")
    own = [m for m in measures if m in tested]
    near = [m for m in measures if m not in own and dict(m.params).get("k") in {cut, None}]
    chosen = [*own, *near[: max(0, _MOST - len(own))]]
    return [place for place, measure in enumerate(measures) if measure in chosen]


def _by_run(found: PairedComparison, table: Table) -> Iterator[Table]:
    """Yield the differences for a terminal: one table for a single measure, else one per pair."""
    heads = table.columns.index("measure")  # number of columns that name the runs
    measures = {row[heads] for row in table.rows}
    if len(measures) == 1:
        columns = [n for n in range(len(table.columns)) if n != heads]
        between = ", " if heads > 1 else " "  # all pairs, or compared with the baseline
        title = f"{measures.pop()}{between}{table.title}"
        yield replace(table.part(columns=columns), title=title)
        return
    places: dict[tuple[Cell, ...], list[int]] = {}
    for place, row in enumerate(table.rows):
        places.setdefault(row[:heads], []).append(place)
    for number, (names, rows) in enumerate(places.items(), start=1):
        run, against = (*names, found.baseline)[:2]
        yield replace(
            table.part(rows=rows, columns=range(heads, len(table.columns))),
            title=f"{run} compared with {against}",
            notes=table.notes if number == len(places) else (),
        )


def _ties(found: TieReport, options: Options) -> Table:
    return found.table(per_query=options.per_query)


# ---- diffs

# Beyond this number of queries, a short report has no rankings.
_RANKINGS = 2
_NEXT = "rankings side by side: --query ID for one query, --full (full=True) for all"
# Width of a document on either side, next to ranks, grades, and moves.
_DOCUMENT = 19
# If less width remains next to the id, the title is on a separate line.
_TITLE = 12
# Maximum length of a run name above a column of values.
_NAME = 11
_GAP = 3
_UNJUDGED = "·"
_ARROWS = {"up": "↑", "down": "↓"}
_LEGEND = (
    f"grade {_UNJUDGED}: not judged; now, was: the rank in the other run (= the same, gone or new: not retrieved there)"
)


def _diff_blocks(diff: RunDiff, options: Options) -> Iterator[Table]:
    """Yield the queries, then both rankings of each; short on a terminal, with truncated texts."""
    narrow = options.on_terminal
    queries = _overview(diff, narrow=narrow)
    if options.short and len(diff.shown) > _RANKINGS:
        # The last note explains the rankings, which are omitted.
        yield replace(queries, notes=(*queries.notes[:-1], _NEXT))
        return
    yield queries
    for query in diff.shown:
        yield _side_by_side(diff, query, narrow=narrow)


def _overview(diff: RunDiff, *, narrow: bool) -> Table:
    """Return the shown queries, one per row."""
    rows: list[tuple[Cell, ...]] = [
        (query.query, query.value_a, query.value_b, f"{query.change:+.4f}", query.rbo, _firsts(query))
        for query in diff.shown
    ]
    names = [shorten(name, _NAME, is_name=True) if narrow else name for name in (diff.run_a, diff.run_b)]
    heads = ("query", *names, "change", "RBO", "first rel.")
    with_text = any(query.text for query in diff.shown)
    if with_text:
        heads = (*heads, "query text")
        rows = [(*row, query.text) for row, query in zip(rows, diff.shown, strict=True)]
    nothing = "no query to show" if diff.wins + diff.losses else f"no query changed its {diff.measure}"
    first = [f"WARNING: {run}: {one}" for run, one in diff.findings if one.severity == "error"]
    notes = [note for note in diff.notes if note not in first]
    notes.append(_LEGEND if diff.shown else nothing)
    return Table(
        columns=heads,
        rows=tuple(rows),
        title="; ".join(first) or diff.title(),
        subtitle=diff.title() if first else "",
        notes=tuple(notes),
        shortened=frozenset({6}) if with_text else frozenset(),
    )


def _side_by_side(diff: RunDiff, query: QueryDiff, *, narrow: bool) -> Table:
    """Return both rankings of a query side by side."""
    cells_a, cells_b = (_documents(ranking, narrow=narrow) for ranking in (query.ranking_a, query.ranking_b))
    rows: list[tuple[Cell, ...]] = []
    best: set[tuple[int, int]] = set()
    places = zip_longest(query.ranking_a, query.ranking_b)
    texts = zip_longest(cells_a, cells_b, fillvalue=("", ""))
    for rank, ((a, b), (text_a, text_b)) in enumerate(zip(places, texts, strict=True), start=1):
        best |= {(len(rows), column) for column, at in ((2, a), (5, b)) if _relevant(diff, at)}
        rows.append((rank, text_a[0], _grade(a), _moved(a), text_b[0], _grade(b), _moved(b)))
        if text_a[1] or text_b[1]:
            rows.append(("", text_a[1], "", "", text_b[1], "", ""))
    title = f"{query.query}: {query.text}" if query.text else query.query
    facts, notes = _facts(diff, query), tuple(_notes(diff, query))
    names = (diff.run_a, diff.run_b)
    head_a, head_b = (shorten(name, _DOCUMENT, is_name=True) if narrow else name for name in names)
    return Table(
        columns=("rank", head_a, "grade", "now", head_b, "grade", "was"),
        rows=tuple(rows),
        title=title,
        subtitle=facts if narrow else "",
        notes=notes if narrow else (facts, *notes),
        best=frozenset(best),
    )


def _facts(diff: RunDiff, query: QueryDiff) -> str:
    values = " → ".join(_value(value) for value in (query.value_a, query.value_b))
    return f"{diff.measure} {values} ({query.change:+.4f}), first relevant {_firsts(query)}, RBO {_value(query.rbo)}"


def _notes(diff: RunDiff, query: QueryDiff) -> Iterator[str]:
    """Yield notes on missing queries, and on relevant documents gained and lost."""
    for run, retrieved in ((diff.run_a, query.retrieved_a), (diff.run_b, query.retrieved_b)):
        if retrieved is None:
            yield f"the query is not in {run}: an empty ranking"
        elif retrieved == 0:
            yield f"{run} retrieved nothing"
    if query.lost:
        yield f"relevant, left the top {diff.k}: {_listed(query.lost, 'now')}"
    if query.gained:
        yield f"relevant, entered the top {diff.k}: {_listed(query.gained, 'was')}"


def _listed(places: Iterable[DocumentDiff], word: str) -> str:
    return ", ".join(
        f"{at.document} (grade {_grade(at)}, {at.move if at.other_rank is None else f'{word} {at.other_rank}'})"
        for at in places
    )


def _relevant(diff: RunDiff, at: DocumentDiff | None) -> bool:
    return at is not None and at.grade is not None and at.grade >= diff.level


def _documents(ranking: Sequence[DocumentDiff], *, narrow: bool) -> list[tuple[str, str]]:
    """Return ids with titles: on one line if they fit, otherwise on two."""
    if not narrow:
        return [(f"{at.document}: {at.text}" if at.text else at.document, "") for at in ranking]
    longest = max((len(at.document) for at in ranking), default=0)
    beside = longest <= _DOCUMENT - _TITLE
    cells = []
    for at in ranking:
        if beside:
            cells.append((shorten(f"{at.document:<{longest}} {at.text}".rstrip(), _DOCUMENT), ""))
        else:
            name = shorten(at.document, _DOCUMENT)
            cells.append((name, f"  {shorten(at.text, _DOCUMENT - 2)}" if at.text else ""))
    return cells


def _grade(at: DocumentDiff | None) -> str:
    if at is None:
        return ""
    return _UNJUDGED if at.grade is None else f"{at.grade:g}"


def _moved(at: DocumentDiff | None) -> str:
    """Format the rank in the other ranking, with an arrow from A to B."""
    if at is None:
        return ""
    if at.move == "same":
        return "="
    return f"{_ARROWS[at.move]} {at.other_rank}" if at.move in _ARROWS else at.move


def _firsts(query: QueryDiff) -> str:
    ranks = ("–" if rank is None else str(rank) for rank in (query.first_a, query.first_b))
    return " → ".join(ranks)


def _value(value: float) -> str:
    return "–" if value != value else f"{value:.4f}"  # noqa: PLR0124 - only NaN differs from itself


# ---- histories: list, entry, comparison of two entries, and trend

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
    if options.short and len(measures) > _FITTING:
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
    Comparison: Report(comparison_tables),
    DistributedComparison: Report(comparison_tables),
    RunDiff: Report(_diff_blocks),
    TieReport: Report(lambda found, options: (_ties(found, options),), _ties),
    HistoryEntries: Report(
        lambda entries, options: [_entries(entries, options, plain=False)],
        lambda entries, options: _entries(entries, options, plain=True),
        {"json": _json},
    ),
    HistoryComparison: Report(_compared),
    HistoryEntry: Report(_entry),
    Trend: Report(lambda trend, options: [trend.table(options.last)]),
}
