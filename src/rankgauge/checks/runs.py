"""Problems of runs: repeats, scores, ranks, depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from rankgauge.checks.effects import (
    Look,
    best_of,
    cutoff_of,
    means,
    turned_round,
    values_of,
)
from rankgauge.checks.problems import Problem
from rankgauge.checks.survey import (
    Survey,
    by_rank,
    each_once,
    rejoined,
    turned,
    without_selves,
)
from rankgauge.core.findings import FINDING_KINDS, Effect, Location
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import many
from rankgauge.measures.measure import parse

__all__ = ["run_notes", "run_problems", "same_runs"]

_MOST = 0.9
_ENOUGH = 3
_COLLAPSED = 0.01
_SELVES = 0.5
# What is less is not seen in three digits.
_VISIBLE = 0.0005


def run_problems(look: Look) -> Iterator[Problem]:
    """What is wrong with one run, and what it does to its numbers."""
    yield from _unreadable(look)
    yield from _twice(look)
    ascending = list(_ascending(look))
    yield from ascending
    if not ascending:
        yield from _contradicted(look)
    yield from _cut(look)
    constant = list(_constant(look))
    yield from constant
    if not constant:
        yield from _tied(look)
    yield from _collapsed(look)
    yield from _selves(look)


def run_notes(survey: Survey) -> Iterator[str]:
    """What was not looked at, and why."""
    source = survey.given.source
    if survey.ranked and survey.lowest_rank == survey.highest_rank:
        yield f"{source}: the rank is {survey.lowest_rank:g} on every line, which says nothing"
    elif survey.ranked and survey.lowest_rank == 0:
        yield f"{source}: ranks count from 0; trec_eval counts from 1, and ignores the column"


def _unreadable(look: Look) -> Iterator[Problem]:
    faults, survey = look.survey.given.faults, look.survey
    if faults is not None and faults.numbers:
        yield Problem(
            FINDING_KINDS["R102"], look.source,
            f"{many(faults.numbers, 'score')} not finite: {faults.first_numbers[0].what}",
            faults.numbers, survey.documents + faults.numbers, "document",
            faults.number_locations(look.source), look.refused("without these documents"),
            FINDING_KINDS["R102"].fix,
        )  # fmt: skip


def _counted(table: PairTable) -> PairTable:
    return table


def _twice(look: Look) -> Iterator[Problem]:
    survey = look.survey
    if not survey.repeated.count:
        return
    given, qrels = survey.given, look.qrels
    now = means(rejoined(given, qrels, _counted), look.measures)
    found: list[Effect] = []
    for policy in ("best", "first"):
        then = means(
            rejoined(given, qrels, lambda table, how=policy: each_once(table, how)), look.measures
        )
        found += [
            Effect(look.name, str(measure), before, after, f"duplicates={policy}")
            for measure, before, after in zip(look.measures, now, then, strict=True)
        ]
    same = "each time with the same score" if survey.alike else "with other scores"
    yield Problem(
        FINDING_KINDS["R101"], look.source,
        f"{many(survey.repeated.count, 'document')} again in the same ranking, {same}",
        survey.repeated.count, survey.documents, "document", survey.repeated.locations,
        tuple(found),
        "keep its best place, or evaluate with duplicates=best (--duplicates best)",
    )  # fmt: skip


def _ascending(look: Look) -> Iterator[Problem]:
    """Distances given as scores.

    Scores that descend in a file say nothing: any order of lines is a run. Three things do, in this
    order: judged documents that stand clearly better the other way round, for at least three
    queries and four times as many as not; ranks that ascend with the scores, unless the judged
    documents stand better as it is; and lines in ascending order of scores together with judged
    documents that stand somewhat better the other way round. So neither negative scores (log
    likelihoods) nor small ones (cosines) are taken for distances, nor a bad run, whose judged
    documents stand nowhere in particular.
    """
    survey = look.survey
    if not survey.varied:
        return
    measure = parse("AP")
    now = values_of(survey.joined, measure)
    then = values_of(turned_round(survey.joined), measure)
    if now is None or then is None:
        return
    now, then = np.nan_to_num(now), np.nan_to_num(then)
    better, worse = int((then > now).sum()), int((then < now).sum())
    gain = float(then.sum()) / max(float(now.sum()), 1e-12)
    by_ranks = survey.ranked and survey.turned >= _MOST * survey.ranked
    by_lines = survey.rising >= _MOST * survey.varied
    if better >= _ENOUGH and better >= 4 * worse and gain >= 2:
        said = f"judged documents stand better the other way round for {better} of "
        said += many(better + worse, "query")
    elif by_ranks and worse <= better:
        said = f"the ranks ascend with the scores in {survey.turned} of "
        said += many(survey.ranked, "query")
    elif by_lines and better >= _ENOUGH and better > 2 * worse and gain >= 1.5:
        said = "scores ascend from line to line, and judged documents stand better the other way "
        said += f"round for {better} of {many(better + worse, 'query')}"
    else:
        return
    mended = rejoined(survey.given, look.qrels, lambda table: each_once(turned(table)))
    yield Problem(
        FINDING_KINDS["R104"], look.source, f"the lowest scores seem to be the best: {said}",
        max(better, survey.turned if by_ranks else 0), len(survey.queries), "query", (),
        look.if_joined(mended, "scores negated"), FINDING_KINDS["R104"].fix,
    )  # fmt: skip


def _contradicted(look: Look) -> Iterator[Problem]:
    survey = look.survey
    if not survey.contradicted.count:
        return
    ranked = rejoined(
        survey.given, look.qrels, lambda table: each_once(by_rank(table)), ties="input"
    )
    yield Problem(
        FINDING_KINDS["R103"], look.source,
        f"the order by rank is not the order by score in {survey.contradicted.count} of "
        f"{many(survey.ranked, 'query')}",
        survey.contradicted.count, survey.ranked, "query", survey.contradicted.locations,
        look.if_joined(ranked, "documents in the order of their ranks"), FINDING_KINDS["R103"].fix,
    )  # fmt: skip


def _cut(look: Look) -> Iterator[Problem]:
    survey, k = look.survey, cutoff_of(look.measures)
    deepest = int(survey.sizes.max(initial=0))
    full = int((survey.sizes == deepest).sum())
    # Rankings of many lengths end where nothing more was found.
    if not 0 < deepest < k or len(survey.sizes) < 2 or full < _MOST * len(survey.sizes):
        return
    cut = [m for m in look.measures if isinstance(dict(m.params).get("k"), int)]
    deep = [m for m in cut if m.k > deepest]  # type: ignore[operator] # a whole number
    shallow = [measure @ deepest for measure in deep]
    then = means(survey.joined, shallow)
    now = means(survey.joined, deep)
    most = means(best_of(survey.joined, deepest), deep)
    by = f"the most that rankings of {many(deepest, 'document')} can reach"
    found = tuple(
        Effect(look.name, str(measure), before, after, f"{other}, which the run can fill")
        for measure, other, before, after in zip(deep, shallow, now, then, strict=True)
    )
    # What only counts what was found, as R does, is the same at both depths.
    found = (
        *(effect for effect in found if effect.changes()),
        *(
            Effect(look.name, str(measure), before, after, by)
            for measure, before, after in zip(deep, now, most, strict=True)
        ),
    )
    yield Problem(
        FINDING_KINDS["R105"], look.source,
        f"the rankings of {full} of {many(len(survey.sizes), 'query')} end at rank {deepest}; "
        f"{', '.join(map(str, deep))} would look down to rank {k}",
        full, len(survey.sizes), "query", (), found,
        f"retrieve {k} documents for each query, or measure at {deepest}",
    )  # fmt: skip


def _interval(look: Look) -> tuple[Effect, ...]:
    joined = look.survey.joined
    return (
        *look.if_joined(joined.reordered("worst"), "the worst order of equal scores"),
        *look.if_joined(joined.reordered("best"), "the best order of equal scores"),
    )


def _constant(look: Look) -> Iterator[Problem]:
    survey = look.survey
    if not survey.constant.count or survey.constant.count * 2 <= survey.several:
        return
    as_given = rejoined(survey.given, look.qrels, each_once, ties="input")
    yield Problem(
        FINDING_KINDS["R106"], look.source,
        f"all scores are equal in {survey.constant.count} of {many(survey.several, 'ranking')} of "
        "two or more documents",
        survey.constant.count, survey.several, "query", survey.constant.locations,
        (*look.if_joined(as_given, "documents in the order given (ties=input)"), *_interval(look)),
        FINDING_KINDS["R106"].fix,
    )  # fmt: skip


def _tied(look: Look) -> Iterator[Problem]:
    joined = look.survey.joined
    tied = joined.tied()
    if not len(tied):
        return
    found = _interval(look)
    low, high = found[: len(look.measures)], found[len(look.measures) :]
    if not any(abs(b.then - a.then) >= _VISIBLE for a, b in zip(low, high, strict=True)):
        return
    names = [look.qrels.query_ids[number] for number in tied[:5].tolist()]
    yield Problem(
        FINDING_KINDS["R109"], look.source,
        f"equal scores could change a value of {len(tied)} of "
        f"{many(len(joined.numbers), 'judged query')}",
        len(tied), len(joined.numbers), "query",
        tuple(Location(look.source, query=name) for name in names), found,
        FINDING_KINDS["R109"].fix,
    )  # fmt: skip


def _collapsed(look: Look) -> Iterator[Problem]:
    survey = look.survey
    if not survey.collapsed.count:
        return
    narrow = survey.joined if survey.narrow is None else survey.narrow
    found = look.if_joined(narrow, "scores in 32 bits")
    changed = any(effect.changes() for effect in found)
    if not changed and survey.collapsed.count < _COLLAPSED * survey.documents:
        return
    yield Problem(
        FINDING_KINDS["R107"], look.source,
        f"{many(survey.collapsed.count, 'score')} equal to the next one above in 32 bits only",
        survey.collapsed.count, survey.documents, "document", survey.collapsed.locations, found,
        FINDING_KINDS["R107"].fix,
    )  # fmt: skip


def _selves(look: Look) -> Iterator[Problem]:
    """Documents with the id of the query.

    Where ids are plain numbers a query and a document often share one by chance: then only a run
    that has them on the first rank of most queries is meant.
    """
    survey = look.survey
    if not survey.selves.count:
        return
    numbered = all(query.isdigit() for query in survey.queries)
    if numbered and survey.selves_first < max(2, _SELVES * len(survey.queries)):
        return
    mended = rejoined(survey.given, look.qrels, lambda table: each_once(without_selves(table)))
    yield Problem(
        FINDING_KINDS["R108"], look.source,
        f"{survey.selves.count} of {many(len(survey.queries), 'query')} with the document of their "
        f"own id in the ranking, {survey.selves_first} of them first",
        survey.selves.count, len(survey.queries), "query", survey.selves.locations,
        look.if_joined(mended, "without the query's own document"), FINDING_KINDS["R108"].fix,
    )  # fmt: skip


def same_runs(looks: Sequence[Look]) -> Iterator[Problem]:
    """Runs that are another one again, and runs that are cut where others go on."""
    for place, look in enumerate(looks):
        for other in looks[:place]:
            if look.survey.digest and look.survey.digest == other.survey.digest:
                yield Problem(
                    FINDING_KINDS["R110"], look.source,
                    f"the same documents with the same scores as {other.name}",
                    look.survey.documents, look.survey.documents, "document",
                    mend=FINDING_KINDS["R110"].fix,
                )  # fmt: skip
                break
    yield from _unequal(looks)


def _unequal(looks: Sequence[Look]) -> Iterator[Problem]:
    """Runs of another depth, where a measure looks below the shallower."""
    depths = {look.name: _common(look.survey) for look in looks}
    deepest = max((depth for depth in depths.values() if depth), default=0)
    for look in looks:
        depth = depths[look.name]
        # What is cut above the cut-off of a measure has been said.
        open_ = [m for m in look.measures if dict(m.params).get("k") is None and _is_deep(m.name)]
        if not open_ or not depth or depth * 2 > deepest:
            continue
        found = []
        for other in looks:
            if depths[other.name] != deepest:
                continue
            now = means(other.survey.joined, open_)
            cut = rejoined(
                other.survey.given, other.qrels, lambda table, d=depth: _top(each_once(table), d)
            )
            found += [
                Effect(other.name, str(m), before, after, f"cut at {depth} as {look.name} is")
                for m, before, after in zip(open_, now, means(cut, open_), strict=True)
            ]
        yield Problem(
            FINDING_KINDS["R105"], look.source,
            f"the rankings end at rank {depth}, those of other runs at {deepest}; "
            f"{', '.join(map(str, open_))} would look at all ranks",
            len(look.survey.sizes), len(look.survey.sizes), "query", (), tuple(found),
            f"retrieve {deepest} documents for each query, or cut all runs at {depth}",
        )  # fmt: skip


def _is_deep(name: str) -> bool:
    """Whether a measure without a cut-off looks at all of a ranking."""
    return name not in {"Rprec", "NumRel", "NumRet"}


def _common(survey: Survey) -> int:
    """The depth at which nearly all rankings end; 0 where there is none."""
    if len(survey.sizes) < 2:
        return 0
    depth, times = Counter(survey.sizes.tolist()).most_common(1)[0]
    return depth if times >= _MOST * len(survey.sizes) else 0


def _top(table: PairTable, depth: int) -> PairTable:
    """The best documents of each query."""
    order = np.lexsort((-table.values, table.query_numbers()))
    place = np.empty(len(order), dtype=np.int64)
    starts = np.repeat(table.offsets[:-1], np.diff(table.offsets))
    place[order] = np.arange(len(order)) - starts
    return table.keep(np.flatnonzero(place < depth))
