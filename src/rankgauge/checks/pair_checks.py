"""Checks of judgments and a run together: mismatched ids, gaps, and chance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rankgauge.checks.checked_run import (
    SHOWN,
    CheckedRun,
    cutoff_of,
    least_rel,
    means,
    relevant_counts,
    unjudged_as,
    values_of,
    without_repeats,
)
from rankgauge.core.findings import (
    IDS_OFF_BY_ONE,
    IDS_WRITTEN_DIFFERENTLY,
    NO_COMMON_DOCUMENT,
    QUERY_MISSING,
    Finding,
    FindingKind,
    Location,
)
from rankgauge.core.ids import Ids, IntArray, renumbered, show_id
from rankgauge.core.pair_table import PairTable, offsets_of, ranges_of
from rankgauge.core.text import Ratio, inflect, many, some
from rankgauge.data.id_spelling import Spelling, renamed, spelled, way_of
from rankgauge.data.qrels import Qrels
from rankgauge.evaluation.input_checks import Pair, document_way, shifted_matches
from rankgauge.measures.measure import Measure, parse

_UNJUDGED = 0.1
_LOW, _HIGH, _QUERIES, _TURNS = 0.1, 0.9, 10, 5
_SAME = 0.9
_LOOKED_AT = 100
_BETTER = 1.5

NO_COMMON_QUERY = FindingKind(
    "P101",
    "no-common-query",
    "error",
    "judgments and run have no query in common",
    "there is nothing to evaluate",
    "use the query ids of the judgments in the run; check that the files belong together",
)

QUERY_WITHOUT_JUDGMENTS = FindingKind(
    "P105",
    "query-without-judgments",
    "info",
    "queries of the run have no judgments",
    "they are ignored",
    "none if the judgments are meant to cover only some queries",
)

UNJUDGED_AT_K = FindingKind(
    "P106",
    "unjudged-at-k",
    "warning",
    "documents in the top k have no judgment",
    "they count as not relevant; if some are relevant, the value is too low",
    "judge them, compare only runs with similar judged shares, or use Bpref or nDCG(judged_only)",
)

SUSPICIOUSLY_PERFECT = FindingKind(
    "P107",
    "suspiciously-perfect",
    "warning",
    "the run may have been made from the judgments",
    "if judgments and run are derived from each other, the value is meaningless",
    "check where the run and the judgments come from",
)

UNRELATED_JUDGMENTS = FindingKind(
    "P108",
    "unrelated-judgments",
    "error",
    "the rankings fit the judgments of other queries as well as their own",
    "ids match by chance: the values are random",
    "check whether these judgments belong to this collection, and whether its ids were renumbered",
)


def check_pair(run: CheckedRun, *, ascending: bool) -> Iterator[Finding]:
    """Check the judgments and a run together; `ascending` means that scores are distances."""
    # Report only one reason for mismatched ids.
    reasons = list(_written_differently(run)) or list(_off_by_one(run))
    yield from reasons
    if not len(run.joined.numbers):
        if not reasons:
            yield NO_COMMON_QUERY.finding(
                f"the run has {some(map(show_id, run.queries))}, the judgments have {some(run.qrels.query_ids)}",
                run.source,
                len(run.queries),
                len(run.queries),
                "query",
                locations=_locations(run, run.queries[:1], "query"),
            )
        return
    yield from _missing(run)
    if run.unknown:
        yield QUERY_WITHOUT_JUDGMENTS.finding(
            f"{len(run.unknown)} of {many(len(run.queries), 'query')} of the run "
            f"{inflect(len(run.unknown), 'has', 'have')} no judgments: "
            f"{some(map(show_id, run.unknown))}",
            run.source,
            len(run.unknown),
            len(run.queries),
            "query",
            locations=_locations(run, run.unknown, "query"),
        )
    if not len(run.joined.rank):
        if not reasons:
            docs = [doc for _, doc in run.sample[:3]]
            judged = run.qrels.table.docs.take(slice(0, 3))
            yield NO_COMMON_DOCUMENT.finding(
                f"the run has {some(map(show_id, docs))}, the judgments have {some(judged.shown())}",
                run.source,
                run.documents,
                run.documents,
                "document",
                locations=_locations(run, docs[:1], "document"),
            )
        return
    if not reasons and not ascending:
        yield from _unrelated(run)
    yield from _unjudged(run)
    yield from _perfect(run)


def _locations(run: CheckedRun, ids: list[bytes], unit: str) -> tuple[Location, ...]:
    return tuple(Location(run.source, **{unit: show_id(value)}) for value in ids[:SHOWN])  # type: ignore[arg-type] # two fields of text


def _written_differently(run: CheckedRun) -> Iterator[Finding]:
    judged_queries = run.qrels.table.queries.tolist()
    judged_docs = set(run.qrels.table.docs.tolist())
    spellings: dict[str, Spelling | None] = {"query": None, "document": None}
    way = way_of(run.queries, judged_queries)
    if way is not None:
        spellings["query"] = spelled(way, [Ids.of(run.queries)], judged_queries)
    # Only documents retrieved for judged queries can match a judgment.
    written = document_way(run.sample, run.qrels)
    way = way_of({doc for _, doc in run.sample}, judged_docs) if written is None else written[0]
    if way is not None:
        spellings["document"] = spelled(way, (table.docs for table in run.check_input.blocks()), judged_docs)
    matched = {unit: spelling for unit, spelling in spellings.items() if spelling is not None}
    if not matched:
        return
    joined = run.rejoined(lambda table: without_repeats(renamed(table, spellings["query"], spellings["document"])))
    # If this finds no more judged documents, the match is accidental.
    if len(joined.rank) <= len(run.joined.rank) and len(joined.numbers) <= len(run.joined.numbers):
        return
    of = {"query": len(run.qrels), "document": len(judged_docs)}
    for unit, spelling in matched.items():
        ours, theirs = next(iter(spelling.names.items()))
        ambiguous = "" if spelling.one_to_one else "; several ids would become equal"
        yield IDS_WRITTEN_DIFFERENTLY.finding(
            f"{len(spelling.names)} {unit} ids of the run are ids of the judgments "
            f"{spelling.by}: '{show_id(ours)}' and '{show_id(theirs)}'{ambiguous}",
            run.source,
            len(spelling.names),
            of[unit],
            unit,
            locations=_locations(run, list(spelling.names), unit),
            effects=run.effects(joined, f"{' and '.join(matched)} ids {spelling.by}"),
            fix="" if spelling.one_to_one else "decide which of the ids that would become equal is correct",
        )


def _missing(run: CheckedRun) -> Iterator[Finding]:
    asked = run.joined.numbers
    missing = np.delete(np.arange(len(run.qrels)), asked)
    if len(missing):
        names = [run.qrels.table.queries[number] for number in missing[:SHOWN].tolist()]
        yield QUERY_MISSING.finding(
            f"{len(missing)} of {many(len(run.qrels), 'judged query')} "
            f"{inflect(len(missing), 'is', 'are')} not in the run: {some(map(show_id, names))}",
            run.source,
            len(missing),
            len(run.qrels),
            "query",
            locations=_locations(run, names, "query"),
            effects=run.effects(means(run.joined, run.measures, asked), "queries=intersection"),
        )


def _unjudged(run: CheckedRun) -> Iterator[Finding]:
    """Report unjudged documents in the first k if any document is judged not relevant."""
    joined, rel = run.joined, least_rel(run.measures)
    grades = run.qrels.table.values
    if not ((grades >= 0) & (grades < rel)).any():
        return
    k = cutoff_of(run.measures)
    shown = int(np.minimum(joined.retrieved, k).sum())
    # A negative grade means pooled but not judged.
    unjudged = shown - int(((joined.rank <= k) & (joined.grade >= 0)).sum())
    if unjudged <= _UNJUDGED * shown:
        return
    measures = tuple(dict.fromkeys((*run.measures, Measure("P")(k=k, rel=rel))))
    now = means(joined, measures)
    filled = means(joined, measures, view=unjudged_as(k, rel))
    every = f"every unjudged document has grade {rel:g}"
    yield UNJUDGED_AT_K.finding(
        f"{unjudged} of {shown} documents in the first {k} of the rankings have no judgment "
        f"({Ratio(unjudged / shown):.0%})",
        run.source,
        unjudged,
        shown,
        "document",
        effects=run.effects(now, "no unjudged document is relevant", now=now, measures=measures)
        + run.effects(filled, every, now=now, measures=measures),
    )


def _perfect(run: CheckedRun) -> Iterator[Finding]:
    queries = run.joined.numbers
    if len(queries) < 2:
        return
    reasons = [*_all_ones(run), *_made_of_judgments(run)]
    if reasons or means(run.joined, [parse("nDCG")], queries)[0] >= _HIGH:
        reasons += _scores_are_grades(run)
    if reasons:
        yield SUSPICIOUSLY_PERFECT.finding("; ".join(reasons), run.source, len(queries), len(queries), "query")


def _all_ones(run: CheckedRun) -> Iterator[str]:
    """Yield order-sensitive measures that are 1 for every query."""
    for measure in run.measures:
        if measure.name not in {"nDCG", "AP"}:
            continue
        values = values_of(run.joined, measure, run.joined.numbers)
        known = np.zeros(0) if values is None else values[~np.isnan(values)]
        if len(known) > 1 and bool((known >= 1).all()):
            yield f"{measure} is 1 for all {len(known)} queries"


def _made_of_judgments(run: CheckedRun) -> Iterator[str]:
    """Yield evidence that a run was made from the judgments."""
    joined, rel = run.joined, least_rel(run.measures)
    sizes = np.diff(joined.offsets)
    relevant = np.concatenate([[0], np.cumsum(joined.grade >= rel)])
    good = relevant[joined.offsets[1:]] - relevant[joined.offsets[:-1]]
    only = (sizes == joined.retrieved) & (good == sizes) & (sizes > 0)
    pools = relevant_counts(joined.qrels, rel)[joined.numbers]
    # A single relevant document as the only result may come from a good retriever cut at rank 1.
    several = only & (pools > 1) & (pools == sizes)
    if several.sum() >= 2 and only.sum() >= _SAME * len(sizes):
        yield (f"{int(only.sum())} of {len(sizes)} rankings contain exactly the relevant documents")


def _scores_are_grades(run: CheckedRun) -> Iterator[str]:
    """Yield a reason if the judged documents of the first queries have their grades as scores."""
    table = next(run.check_input.blocks())
    same, grades = 0, set[float]()
    for number, query in enumerate(table.queries.tolist()[:_LOOKED_AT]):
        if query not in run.qrels.query_index:
            continue
        rows = np.arange(table.offsets[number], table.offsets[number + 1])
        judged = run.qrels[show_id(query)]
        scores = dict(zip(table.docs.take(rows).shown(), table.values[rows].tolist(), strict=True))
        both = judged.keys() & scores.keys()
        if any(judged[doc] != scores[doc] for doc in both):
            return
        same += len(both)
        grades.update(judged[doc] for doc in both)
    if same > 1 and len(grades) > 1:
        yield "the scores are the grades"


def _unrelated(run: CheckedRun) -> Iterator[Finding]:
    """Report rankings that fit the judgments of other queries as well as their own.

    Checked only if values are low. Judgments are assigned to other queries five times; if one
    assignment is as good as the correct one, the correct one fits by chance.
    """
    queries, measure = run.joined.numbers, parse("nDCG@10")
    own = means(run.joined, [measure])[0]
    low = len(queries) >= _QUERIES and own < _LOW * len(queries) / len(run.qrels)
    if not low or not _by_chance(run):
        return
    rotated = (_rotated_judgments(run.qrels, queries, turn) for turn in range(1, _TURNS + 1))
    most = max(means(run.rejoined(qrels=qrels), [measure])[0] for qrels in rotated)
    if own <= 1.25 * most:
        yield UNRELATED_JUDGMENTS.finding(
            f"{measure} is {own:.4f}, but up to {most:.4f} with the judgments of other queries",
            run.source,
            len(queries),
            len(queries),
            "query",
        )


def _by_chance(run: CheckedRun) -> bool:
    """Return whether the first documents of queries are as often relevant for other queries."""
    relevant = _relevant(run)
    queries = run.qrels.table.queries.take(run.joined.numbers).tolist()
    now = sum(pair in relevant for pair in run.sample)
    rotated = 0
    for turn in range(1, _TURNS + 1):
        other = dict(zip(queries, [*queries[turn:], *queries[:turn]], strict=True))
        rotated += sum((other.get(query, b""), doc) in relevant for query, doc in run.sample)
    # Twice the standard deviation of such a count.
    return now - rotated / _TURNS <= 2 * math.sqrt(now)


def _relevant(run: CheckedRun) -> set[Pair]:
    """Return the (query, document) pairs that are judged relevant."""
    table = run.qrels.table
    good = np.flatnonzero(table.values >= least_rel(run.measures))
    queries = table.queries.take(table.query_numbers()[good]).tolist()
    return set(zip(queries, table.docs.take(good).tolist(), strict=True))


def _rotated_judgments(qrels: Qrels, numbers: IntArray, turn: int) -> Qrels:
    """Return judgments in which each of these queries has the judgments of a later one."""
    order = np.arange(len(qrels))
    order[numbers] = np.roll(numbers, turn)
    table = qrels.table
    sizes = np.diff(table.offsets)[order]
    offsets, rows = offsets_of(sizes), ranges_of(table.offsets[:-1][order], sizes)
    docs, values = table.docs.take(rows), table.values[rows]
    return Qrels(replace(table, offsets=offsets, docs=docs, values=values, lines=None, unique=True))


def _off_by_one(run: CheckedRun) -> Iterator[Finding]:
    """Report ids that are numbered from 0 on one side and from 1 on the other.

    The first documents of each query are looked up with ids one higher and one lower. A finding
    requires many more relevant documents than expected by chance, and a value that is at least 50%
    higher.
    """
    relevant, pairs = _relevant(run), run.sample
    now = most = sum(pair in relevant for pair in pairs)
    best: tuple[str, str] | None = None
    for moved, unit, word in shifted_matches(pairs, relevant.__contains__):
        if moved > most and moved - now > 3 * math.sqrt(moved + now):
            best, most = (unit, word), moved
    if best is None:
        return
    unit, word = best

    def change(part: PairTable) -> PairTable:
        ids = part.docs if unit == "document" else part.queries
        step = 1 if word == "higher" else -1
        ids = Ids.of([renumbered(value, step) for value in ids.tolist()], "id")
        return without_repeats(replace(part, docs=ids) if unit == "document" else replace(part, queries=ids))

    by = f"{unit} ids of the run one {word}"
    effects = run.effects(run.rejoined(change), by)
    if any(effect.after >= _BETTER * effect.before for effect in effects):
        yield IDS_OFF_BY_ONE.finding(
            f"with the {by}, {most} instead of {now} of the first documents are relevant",
            run.source,
            len(pairs),
            len(pairs),
            "document",
            effects=effects,
        )
