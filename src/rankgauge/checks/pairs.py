"""Problems between judgments and a run: ids that do not meet, holes, and what is too good."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rankgauge.checks.effects import (
    Look,
    all_found,
    cutoff_of,
    least_rel,
    means,
    precision,
    values_of,
)
from rankgauge.checks.problems import Problem
from rankgauge.checks.survey import SHOWN, each_once, rejoined
from rankgauge.core.findings import FINDING_KINDS, Location
from rankgauge.core.ids import Ids, IntArray, renumbered, show_id
from rankgauge.core.pair_table import PairTable, offsets_of
from rankgauge.core.text import many, some
from rankgauge.data.id_spelling import Spelling, renamed, spelled, way_of
from rankgauge.data.join import Joined
from rankgauge.data.model import Qrels
from rankgauge.evaluation.input_checks import document_way
from rankgauge.measures.measure import parse

__all__ = ["Respelled", "pair_problems", "respelled"]

_HOLES = 0.1
_LOW, _HIGH, _QUERIES, _TURNS = 0.1, 0.9, 10, 5
_SAME = 0.9
_LOOKED_AT = 100
_BETTER = 1.5


@dataclass(frozen=True)
class Respelled:
    """The ids of a run as the judgments write them.

    Attributes:
        queries: Its queries, if they are written differently.
        docs: Its documents.
    """

    queries: Spelling | None
    docs: Spelling | None

    def of(self, table: PairTable) -> PairTable:
        """A table of the run with the ids of the judgments, each document once."""
        return each_once(renamed(table, self.queries, self.docs))


def respelled(look: Look) -> Respelled | None:
    """How a run writes ids differently; None if it does not."""
    survey, qrels = look.survey, look.qrels
    judged_queries = qrels.table.queries.tolist()
    way = way_of(survey.queries, judged_queries)
    queries = None if way is None else spelled(way, [Ids.of(survey.queries)], judged_queries)
    # What is retrieved for judged queries is what can meet a judgment.
    judged_docs = set(qrels.table.docs.tolist())
    written = document_way(survey.sample, qrels)
    way = way_of({doc for _, doc in survey.sample}, judged_docs) if written is None else written[0]
    docs = None
    if way is not None:
        docs = spelled(way, (table.docs for table in survey.given.blocks()), judged_docs)
    if queries is None and docs is None:
        return None
    return Respelled(queries, docs)


def pair_problems(look: Look, *, turned: bool = False) -> Iterator[Problem]:
    """What is wrong between the judgments and a run, and what it does to its numbers.

    Args:
        look: The run beside its judgments.
        turned: Whether its scores are known to be distances.
    """
    found = respelled(look)
    # One reason is enough for what does not meet.
    reasons = [] if found is None else list(_respelled(look, found))
    reasons = reasons or list(_off_by_one(look))
    yield from reasons
    joined = look.survey.joined
    if not len(joined.numbers):
        if not reasons:
            yield _no_common_query(look)
        return
    yield from _missing(look)
    yield from _unknown(look)
    if not len(joined.rank):
        if not reasons:
            yield _no_common_document(look)
        return
    if not reasons and not turned:
        yield from _unrelated(look)
    yield from _unjudged(look)
    yield from _perfect(look)


def _respelled(look: Look, found: Respelled) -> Iterator[Problem]:
    joined = rejoined(look.survey.given, look.qrels, found.of)
    before = look.survey.joined
    # What makes no judged document be found is chance.
    if len(joined.rank) <= len(before.rank) and len(joined.numbers) <= len(before.numbers):
        return
    for spelling, unit in ((found.queries, "query"), (found.docs, "document")):
        if spelling is None:
            continue
        of = len(look.qrels) if unit == "query" else len(set(look.qrels.table.docs.tolist()))
        ours, theirs = next(iter(spelling.names.items()))
        sure = "" if spelling.one_to_one else "; several ids would become one"
        yield Problem(
            FINDING_KINDS["P103"], look.source,
            f"{len(spelling.names)} {unit} ids of the run are ids of the judgments "
            f"{spelling.by}: '{show_id(ours)}' and '{show_id(theirs)}'{sure}",
            len(spelling.names), of, unit, _locations(look, list(spelling.names)[:SHOWN], unit),
            look.if_joined(joined, f"{_both(found)} {spelling.by}"),
            FINDING_KINDS["P103"].fix if spelling.one_to_one else
            "find out which of the ids that would become one is meant",
        )  # fmt: skip


def _both(found: Respelled) -> str:
    if found.queries is not None and found.docs is not None:
        return "query and document ids"
    return "query ids" if found.docs is None else "document ids"


def _locations(look: Look, ids: list[bytes], unit: str) -> tuple[Location, ...]:
    if unit == "query":
        return tuple(Location(look.source, query=show_id(value)) for value in ids)
    return tuple(Location(look.source, document=show_id(value)) for value in ids)


def _no_common_query(look: Look) -> Problem:
    survey = look.survey
    return Problem(
        FINDING_KINDS["P101"], look.source,
        f"the run has {some(map(show_id, survey.queries))}, the judgments have "
        f"{some(look.qrels.query_ids)}",
        len(survey.queries), len(survey.queries), "query",
        _locations(look, survey.queries[:1], "query"),
        mend=FINDING_KINDS["P101"].fix,
    )  # fmt: skip


def _no_common_document(look: Look) -> Problem:
    survey, docs = look.survey, look.qrels.table.docs
    ours = [doc for _, doc in survey.sample[:3]]
    theirs = docs.take(np.arange(min(3, len(docs)))).shown()
    return Problem(
        FINDING_KINDS["P102"], look.source,
        f"the run has {some(map(show_id, ours))}, the judgments have {some(theirs)}",
        survey.documents, survey.documents, "document", _locations(look, ours[:1], "document"),
        mend=FINDING_KINDS["P102"].fix,
    )  # fmt: skip


def _missing(look: Look) -> Iterator[Problem]:
    missing = look.survey.missing
    if not len(missing):
        return
    joined = look.survey.joined
    names = [look.qrels.table.queries[number] for number in missing[:SHOWN].tolist()]
    then = means(joined, look.measures, joined.numbers)
    yield Problem(
        FINDING_KINDS["P104"], look.source,
        f"{len(missing)} of {many(len(look.qrels), 'judged query')} are not in the run: "
        f"{some(map(show_id, names))}",
        len(missing), len(look.qrels), "query", _locations(look, names, "query"),
        look.effects(then, "queries=intersection"), FINDING_KINDS["P104"].fix,
    )  # fmt: skip


def _unknown(look: Look) -> Iterator[Problem]:
    unknown = look.survey.unknown
    if unknown:
        yield Problem(
            FINDING_KINDS["P105"], look.source,
            f"{len(unknown)} of {many(len(look.survey.queries), 'query')} of the run have no "
            f"judgments: {some(map(show_id, unknown))}",
            len(unknown), len(look.survey.queries), "query",
            _locations(look, unknown[:SHOWN], "query"), mend=FINDING_KINDS["P105"].fix,
        )  # fmt: skip


def _unjudged(look: Look) -> Iterator[Problem]:
    """Holes in the first k; nothing is said where only relevant documents were written down."""
    joined, rel = look.survey.joined, least_rel(look.measures)
    grades = look.qrels.table.values
    if not ((grades >= 0) & (grades < rel)).any():
        return
    k = cutoff_of(look.measures)
    shown = int(np.minimum(joined.retrieved, k).sum())
    # A negative grade says that it was pooled, and not judged.
    holes = shown - int(((joined.rank <= k) & (joined.grade >= 0)).sum())
    if holes <= _HOLES * shown:
        return
    measures = (*look.measures, *(m for m in (precision(k, rel),) if m not in look.measures))
    whole = Look(look.survey, look.qrels, measures, tuple(means(joined, measures)))
    filled = means(joined, measures, seen=all_found(k, rel))
    yield Problem(
        FINDING_KINDS["P106"], look.source,
        f"{holes} of {shown} documents in the first {k} of the rankings have no judgment "
        f"({holes / shown:.0%})",
        holes, shown, "document", (),
        (
            *whole.effects(whole.now, "no unjudged document is relevant"),
            *whole.effects(filled, f"every unjudged document has grade {rel:g}"),
        ),
        FINDING_KINDS["P106"].fix,
    )  # fmt: skip


def _perfect(look: Look) -> Iterator[Problem]:
    joined, rel = look.survey.joined, least_rel(look.measures)
    if len(joined.numbers) < 2:
        return
    said = [*_all_ones(look), *_made_of(joined, rel)]
    if said or means(joined, [parse("nDCG")], joined.numbers)[0] >= _HIGH:
        said += _scores_are_grades(look)
    if said:
        yield Problem(
            FINDING_KINDS["P107"], look.source, "; ".join(said), len(joined.numbers),
            len(joined.numbers), "query", mend=FINDING_KINDS["P107"].fix,
        )  # fmt: skip


def _all_ones(look: Look) -> Iterator[str]:
    """Measures of the whole order that are 1 for every query."""
    joined = look.survey.joined
    for measure in look.measures:
        if measure.name not in {"nDCG", "AP"}:
            continue
        values = values_of(joined, measure, joined.numbers)
        known = np.zeros(0) if values is None else values[~np.isnan(values)]
        if len(known) > 1 and bool((known >= 1).all()):
            yield f"{measure} is 1 for all {len(known)} queries"


def _made_of(joined: Joined, rel: float) -> Iterator[str]:
    """Signs that a run was made from the judgments."""
    sizes = np.diff(joined.offsets)
    starts = joined.offsets[:-1]
    relevant = np.concatenate([[0], np.cumsum(joined.grade >= rel)])
    good = relevant[joined.offsets[1:]] - relevant[starts]
    only = (sizes == joined.retrieved) & (good == sizes) & (sizes > 0)
    pools = np.bincount(
        joined.qrels.table.query_numbers()[joined.qrels.table.values >= rel],
        minlength=len(joined.qrels),
    )[joined.numbers]
    # One relevant document, and it alone retrieved, may be a good retriever cut at rank 1.
    several = only & (pools > 1) & (pools == sizes)
    if several.sum() >= 2 and only.sum() >= _SAME * len(sizes):
        yield (
            f"{int(only.sum())} of {len(sizes)} rankings hold the relevant documents and nothing "
            "else"
        )


def _scores_are_grades(look: Look) -> Iterator[str]:
    """Whether the judged documents of the first queries have their grades for scores."""
    table = next(look.survey.given.blocks())
    same, grades = 0, set[float]()
    for number, query in enumerate(table.queries.tolist()[:_LOOKED_AT]):
        known = look.qrels.query_index.get(query)
        if known is None:
            continue
        rows = np.arange(table.offsets[number], table.offsets[number + 1])
        judged = look.qrels[show_id(query)]
        scores = dict(zip(table.docs.take(rows).shown(), table.values[rows].tolist(), strict=True))
        both = judged.keys() & scores.keys()
        if any(judged[doc] != scores[doc] for doc in both):
            return
        same += len(both)
        grades.update(judged[doc] for doc in both)
    if same > 1 and len(grades) > 1:
        yield "the scores are the grades"


def _unrelated(look: Look) -> Iterator[Problem]:
    """Rankings that fit the judgments of other queries as well as their own.

    Asked only where the values are low. The judgments are dealt to other queries five times; if
    one of these is as good as the right one, the right one is chance.
    """
    joined, measure = look.survey.joined, parse("nDCG@10")
    own = means(joined, [measure])[0]
    if len(joined.numbers) < _QUERIES or not own < _LOW * len(joined.numbers) / len(look.qrels):
        return
    if not _by_chance(look):
        return
    others = []
    for turn in range(1, _TURNS + 1):
        dealt = _dealt(look.qrels, joined.numbers, turn)
        others.append(means(rejoined(look.survey.given, dealt, each_once), [measure])[0])
    if own > 1.25 * max(others):
        return
    yield Problem(
        FINDING_KINDS["P108"], look.source,
        f"{measure} is {own:.4f}, and up to {max(others):.4f} with the judgments of other queries",
        len(joined.numbers), len(joined.numbers), "query", mend=FINDING_KINDS["P108"].fix,
    )  # fmt: skip


def _by_chance(look: Look) -> bool:
    """Whether the first documents of each query are relevant for other queries as often.

    A quick look at a few; what it says is measured then.
    """
    numbers = look.survey.joined.numbers
    relevant = _relevant(look.qrels.table, least_rel(look.measures))
    queries = look.qrels.table.queries.take(numbers).tolist()
    pairs = look.survey.sample
    now = sum(pair in relevant for pair in pairs)
    dealt = 0
    for turn in range(1, _TURNS + 1):
        other = dict(zip(queries, [*queries[turn:], *queries[:turn]], strict=True))
        dealt += sum((other.get(query, b""), doc) in relevant for query, doc in pairs)
    # Twice what such a count varies by.
    return now - dealt / _TURNS <= 2 * math.sqrt(now)


def _relevant(table: PairTable, rel: float) -> set[tuple[bytes, bytes]]:
    """The pairs of query and document that are judged relevant."""
    good = np.flatnonzero(table.values >= rel)
    named = table.queries.take(table.query_numbers()[good]).tolist()
    return set(zip(named, table.docs.take(good).tolist(), strict=True))


def _dealt(qrels: Qrels, numbers: IntArray, turn: int) -> Qrels:
    """Judgments with those of other queries: of these numbers each gets those of a later one."""
    order = np.arange(len(qrels))
    order[numbers] = np.roll(numbers, turn)
    table = qrels.table
    sizes = np.diff(table.offsets)[order]
    starts = table.offsets[:-1][order]
    offsets = offsets_of(sizes)
    rows = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    return Qrels(
        replace(
            table, offsets=offsets, docs=table.docs.take(rows), values=table.values[rows],
            lines=None, unique=True,
        )
    )  # fmt: skip


def _off_by_one(look: Look) -> Iterator[Problem]:
    """Numbers that count from 0 on one side and from 1 on the other.

    The first documents of each query are looked up with ids one higher and one lower. As many more
    as chance hardly brings must be relevant then, and the value must be better by half.
    """
    table, rel = look.qrels.table, least_rel(look.measures)
    relevant = _relevant(table, rel)
    pairs = look.survey.sample
    now = sum(pair in relevant for pair in pairs)
    best, most, by = (0, 0), now, ""
    for unit, place in (("document", 1), ("query", 0)):
        if not all(pair[place].isdigit() for pair in (*pairs[:_LOOKED_AT], *relevant)):
            continue
        for step in (1, -1):
            moved = sum(_moved(pair, place, step) in relevant for pair in pairs)
            if moved > most and moved - now > 3 * math.sqrt(moved + now):
                best, most = (place, step), moved
                by = f"{unit} ids of the run one {'higher' if step > 0 else 'lower'}"
    if not by:
        return

    def change(part: PairTable) -> PairTable:
        ids = part.docs if best[0] else part.queries
        ids = Ids.of([renumbered(value, best[1]) for value in ids.tolist()], "id")
        return each_once(replace(part, docs=ids) if best[0] else replace(part, queries=ids))

    found = look.if_joined(rejoined(look.survey.given, look.qrels, change), by)
    if not any(effect.then >= _BETTER * effect.now for effect in found):
        return
    yield Problem(
        FINDING_KINDS["P109"], look.source,
        f"with the {by}, {most} instead of {now} of the first documents are relevant",
        len(pairs), len(pairs), "document", (), found, FINDING_KINDS["P109"].fix,
    )  # fmt: skip


def _moved(pair: tuple[bytes, bytes], place: int, step: int) -> tuple[bytes, bytes]:
    query, doc = pair
    return (query, renumbered(doc, step)) if place else (renumbered(query, step), doc)
