"""Checks of runs: repeats, scores, ranks, and depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from rankgauge.checks.checked_run import (
    SHOWN,
    CheckedRun,
    best_rankings,
    cutoff_of,
    means,
    negated,
    ranks_as_scores,
    reversed_rankings,
    values_of,
    without_repeats,
    without_self_retrieved,
)
from rankgauge.checks.readers import CheckInput, fault_locations
from rankgauge.core.findings import ASCENDING_SCORES, Effect, Finding, FindingKind, Location
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import inflect, keep, many
from rankgauge.data.join import ranked
from rankgauge.data.run import Run
from rankgauge.measures.measure import parse

_MOST = 0.9
_ENOUGH = 3
_COLLAPSED = 0.01
_OWN = 0.5
# Smaller differences are not visible in three digits.
_VISIBLE = 0.0005
_UNLIMITED = {"Rprec", "NumRel", "NumRet"}

UNREADABLE_LINE = FindingKind(
    "F101",
    "unreadable-line",
    "error",
    "lines that cannot be read as judgments or as a run",
    "an evaluation rejects the file; tools without this check misread the line",
    "fix these lines, or write a copy without them",
    "on request",
)

IDS_NOT_UTF8 = FindingKind(
    "F102",
    "ids-not-utf8",
    "info",
    "ids that are not text in UTF-8",
    "ids are compared byte by byte; the same id in another encoding does not match",
    "write both files in UTF-8",
)

DOCUMENT_TWICE = FindingKind(
    "R101",
    "document-twice",
    "error",
    "a document occurs more than once in a ranking",
    "an evaluation rejects it; tools without this check count it each time, and push others down",
    "keep its best rank (for chunks of one document: the best chunk)",
    "on request",
)

SCORE_NOT_FINITE = FindingKind(
    "R102",
    "score-not-finite",
    "error",
    "scores that are NaN or infinite",
    "an evaluation rejects them; in other tools their rank depends on the order of the lines",
    "remove such documents, or give them a finite score",
    "on request",
)

RANK_CONTRADICTS_SCORE = FindingKind(
    "R103",
    "rank-contradicts-score",
    "warning",
    "the rank column contradicts the scores",
    "evaluations use the scores and ignore the ranks; tools that read the ranks see another order",
    "decide which is right, and write scores that decrease with the rank",
    "on request",
)

CUT_BELOW_K = FindingKind(
    "R105",
    "cut-below-k",
    "warning",
    "rankings are shorter than the cut-off of a measure",
    "documents below the cut count as not retrieved, so a deeper run looks better",
    "retrieve at least as many documents as the largest cut-off, the same number for every run",
)

CONSTANT_SCORES = FindingKind(
    "R106",
    "constant-scores",
    "error",
    "all scores of a ranking are equal",
    "documents are ranked by id, not by the retriever",
    "write scores that decrease with the rank, or evaluate with ties=input",
)

SCORES_COLLAPSE = FindingKind(
    "R107",
    "scores-collapse-in-32-bits",
    "warning",
    "scores differ by less than the precision of 32-bit floats",
    "trec_eval 9, pytrec_eval, and tools based on them see equal scores",
    "subtract a constant from all scores, or write the negative rank as the score",
)

SELF_RETRIEVED = FindingKind(
    "R108",
    "self-retrieved",
    "warning",
    "a query retrieves itself: a document has the id of the query",
    "it takes rank 1, and is rarely judged",
    "remove the query's own document from its ranking",
    "on request",
)

TIES_DECIDE = FindingKind(
    "R109",
    "ties-decide",
    "warning",
    "documents of different grades have equal scores",
    "the value depends on the order of equal scores, which differs between tools",
    "write scores with all their digits, or break ties by a second criterion",
)

SAME_AS_ANOTHER_RUN = FindingKind(
    "R110",
    "same-as-another-run",
    "warning",
    "two runs have identical documents and scores",
    "comparing them is meaningless",
    "check whether a run was written under two names, or a setting had no effect",
)


def check_lines(check_input: CheckInput, effects: Sequence[Effect], *, graded: bool = False) -> Iterator[Finding]:
    """Check the lines of judgments (`graded`) or of a run."""
    faults = check_input.faults
    if faults is None:
        return
    # Judgments have no separate code for a grade that is not a number.
    lines, firsts = faults.lines, faults.first_lines
    if graded:
        lines, firsts = lines + faults.numbers, [*firsts, *faults.first_numbers]
    if lines:
        yield UNREADABLE_LINE.finding(
            f"{many(lines, 'line')} not readable: {firsts[0].error.what}",
            check_input.source,
            lines,
            lines + len(check_input.whole),
            "line",
            locations=fault_locations(firsts, check_input.source),
            effects=tuple(effects),
        )


def check_run(run: CheckedRun) -> Iterator[Finding]:
    """Check a run, and measure the effects on its means."""
    faults, ascending = run.check_input.faults, tuple(_ascending(run))
    yield from keep(
        run.not_text
        and IDS_NOT_UTF8.finding(f"{many(len(run.not_text), 'id')} not in UTF-8", run.source, len(run.not_text)),
        faults is not None
        and faults.numbers
        and SCORE_NOT_FINITE.finding(
            f"{many(faults.numbers, 'score')} not finite: {faults.first_numbers[0].error.what}",
            run.source,
            faults.numbers,
            run.documents + faults.numbers,
            "document",
            locations=fault_locations(faults.first_numbers, run.source),
            effects=run.effects_if_read("without these documents"),
        ),
        *_repeated(run),
        *ascending,
        not ascending
        and run.contradicted.count
        and RANK_CONTRADICTS_SCORE.finding(
            f"the order by rank is not the order by score in {run.contradicted.count} of {many(run.ranked, 'query')}",
            run.source,
            run.contradicted.count,
            run.ranked,
            "query",
            locations=run.contradicted.locations,
            effects=run.effects(
                run.rejoined(lambda table: without_repeats(ranks_as_scores(table))),
                "documents in the order of their ranks",
            ),
        ),
        *_cut(run),
        *_tied(run),
        *_collapsed(run),
        *_own(run),
    )


def run_notes(run: CheckedRun) -> Iterator[str]:
    """Yield notes on skipped checks, with reasons."""
    if run.ranked and run.lowest_rank == run.highest_rank:
        yield f"{run.source}: the rank is {run.lowest_rank:g} on every line, which carries no order"
    elif run.ranked and run.lowest_rank == 0:
        yield f"{run.source}: ranks count from 0; trec_eval counts from 1, and ignores the column"


def _repeated(run: CheckedRun) -> Iterator[Finding]:
    if not run.repeated.count:
        return
    now = means(run.rejoined(lambda table: table), run.measures)
    best = run.effects(run.now, "duplicates=best", now=now)
    first = run.rejoined(lambda table: without_repeats(table, "first"))
    same = "each time with the same score" if run.alike else "with different scores"
    yield DOCUMENT_TWICE.finding(
        f"{many(run.repeated.count, 'document')} repeated in the same ranking, {same}",
        run.source,
        run.repeated.count,
        run.documents,
        "document",
        locations=run.repeated.locations,
        effects=best + run.effects(first, "duplicates=first", now=now),
        fix="keep its best rank, or evaluate with duplicates=best (--duplicates best)",
    )


def _ascending(run: CheckedRun) -> Iterator[Finding]:
    """Report distances given as scores.

    The order of lines alone is no evidence, because lines may be in any order. Three observations
    are, in this order: judged documents rank clearly better in the reversed order, for at least
    three queries and four times as many queries as the opposite; ranks ascend with the scores,
    unless judged documents rank better in the given order; or lines are in ascending order of
    scores and judged documents rank somewhat better in the reversed order. Negative scores (log
    likelihoods), small scores (cosines), and bad runs are thus not mistaken for distances.
    """
    measure = parse("AP")
    now = values_of(run.joined, measure) if run.varied else None
    then = values_of(reversed_rankings(run.joined), measure) if run.varied else None
    if now is None or then is None:
        return
    now, then = np.nan_to_num(now), np.nan_to_num(then)
    better, worse = int((then > now).sum()), int((then < now).sum())
    gain = float(then.sum()) / max(float(now.sum()), 1e-12)
    by_ranks = run.ranked > 0 and run.turned >= _MOST * run.ranked
    by_lines = run.rising >= _MOST * run.varied
    judged = f"with reversed rankings, judged documents rank higher for {better} of {many(better + worse, 'query')}"
    if better >= _ENOUGH and better >= 4 * worse and gain >= 2:
        evidence = judged
    elif by_ranks and worse <= better:
        evidence = f"the ranks increase with the scores in {run.turned} of {many(run.ranked, 'query')}"
    elif by_lines and better >= _ENOUGH and better > 2 * worse and gain >= 1.5:
        evidence = f"scores increase from line to line, and {judged}"
    else:
        return
    fixed = run.rejoined(lambda table: without_repeats(negated(table)))
    yield ASCENDING_SCORES.finding(
        f"the lowest scores seem to be the best: {evidence}",
        run.source,
        max(better, run.turned if by_ranks else 0),
        len(run.queries),
        "query",
        effects=run.effects(fixed, "scores negated"),
    )


def _cut(run: CheckedRun) -> Iterator[Finding]:
    k = cutoff_of(run.measures)
    deepest = int(run.sizes.max(initial=0))
    full = int((run.sizes == deepest).sum())
    # Rankings of varying lengths end where nothing more was found.
    if not 0 < deepest < k or len(run.sizes) < 2 or full < _MOST * len(run.sizes):
        return
    deep = [m for m in run.measures if isinstance(cut := m.arguments.get("k"), int) and cut > deepest]
    if not deep:
        return
    shallow = [measure @ deepest for measure in deep]
    now = means(run.joined, deep)
    effects = tuple(
        effect
        for measure, other, mean, then in zip(deep, shallow, now, means(run.joined, shallow), strict=True)
        for effect in run.effects([then], f"{other}, which the run reaches", now=[mean], measures=[measure])
        # Measures that only count retrieved documents, such as R, are equal at both depths.
        if effect.changes()
    )
    best = best_rankings(run.joined, deepest)
    effects += run.effects(best, f"the maximum for rankings of {many(deepest, 'document')}", now=now, measures=deep)
    yield CUT_BELOW_K.finding(
        f"the rankings of {full} of {many(len(run.sizes), 'query')} end at rank {deepest}; "
        f"{', '.join(map(str, deep))} {inflect(len(deep), 'needs', 'need')} rank {k}",
        run.source,
        full,
        len(run.sizes),
        "query",
        effects=effects,
        fix=f"retrieve {k} documents for each query, or measure at {deepest}",
    )


def _tied(run: CheckedRun) -> Iterator[Finding]:
    """Report rankings whose scores are all equal, or else equal scores that decide the values."""
    constant, tied = run.constant.count * 2 > run.several, run.joined.tied()
    if not (constant or len(tied)):
        return
    low, high = (
        run.effects(run.joined.reordered(ties), f"the {ties} order of equal scores") for ties in ("worst", "best")
    )
    if constant:
        yield CONSTANT_SCORES.finding(
            f"all scores are equal in {run.constant.count} of {many(run.several, 'ranking')} of two or more documents",
            run.source,
            run.constant.count,
            run.several,
            "query",
            locations=run.constant.locations,
            effects=run.effects(run.rejoined(ties="input"), "documents in the order given (ties=input)") + low + high,
        )
    elif any(abs(b.after - a.after) >= _VISIBLE for a, b in zip(low, high, strict=True)):
        yield TIES_DECIDE.finding(
            f"equal scores could change a value of {len(tied)} of {many(len(run.joined.numbers), 'judged query')}",
            run.source,
            len(tied),
            len(run.joined.numbers),
            "query",
            locations=tuple(Location(run.source, query=run.qrels.query_ids[n]) for n in tied[:SHOWN].tolist()),
            effects=low + high,
        )


def _collapsed(run: CheckedRun) -> Iterator[Finding]:
    count = run.collapsed.count
    if not count:
        return
    effects = run.effects(run.in_32_bits, "scores in 32 bits")
    if count >= _COLLAPSED * run.documents or any(effect.changes() for effect in effects):
        yield SCORES_COLLAPSE.finding(
            f"{many(count, 'score')} equal to the next one above in 32 bits only",
            run.source,
            count,
            run.documents,
            "document",
            locations=run.collapsed.locations,
            effects=effects,
        )


def _own(run: CheckedRun) -> Iterator[Finding]:
    """Report documents that have the id of the query.

    Numeric ids often coincide by chance: then only runs with such documents at rank 1 of most
    queries are reported.
    """
    numbered = all(query.isdigit() for query in run.queries)
    if not run.own.count or (numbered and run.own_first < max(2, _OWN * len(run.queries))):
        return
    fixed = run.rejoined(lambda table: without_repeats(without_self_retrieved(table)))
    yield SELF_RETRIEVED.finding(
        f"{run.own.count} of {many(len(run.queries), 'query')} with a document of the same id "
        f"in the ranking, {run.own_first} of them first",
        run.source,
        run.own.count,
        len(run.queries),
        "query",
        locations=run.own.locations,
        effects=run.effects(fixed, "without the query's own document"),
    )


def check_runs(runs: Sequence[CheckedRun]) -> Iterator[Finding]:
    """Compare runs with each other: identical runs, and runs of different depths."""
    for place, run in enumerate(runs):
        same = [other for other in runs[:place] if run.digest and run.digest == other.digest]
        if same:
            yield SAME_AS_ANOTHER_RUN.finding(
                f"the same documents with the same scores as {same[0].name}",
                run.source,
                run.documents,
                run.documents,
                "document",
            )
    depths = [_common_depth(run) for run in runs]
    deepest = max(depths, default=0)
    for run, depth in zip(runs, depths, strict=True):
        # Another finding covers rankings that are shorter than the cut-off of a measure.
        whole = [m for m in run.measures if m.cutoff is None and m.name not in _UNLIMITED]
        if not whole or not depth or depth * 2 > deepest:
            continue
        effects: list[Effect] = []
        for other, its_depth in zip(runs, depths, strict=True):
            if its_depth == deepest:
                cut = other.rejoined(partial(_top, depth=depth))
                effects += other.effects(cut, f"cut at {depth} as {run.name} is", measures=whole)
        yield CUT_BELOW_K.finding(
            f"the rankings end at rank {depth}, those of other runs at {deepest}; "
            f"{', '.join(map(str, whole))} {inflect(len(whole), 'needs', 'need')} all ranks",
            run.source,
            len(run.sizes),
            len(run.sizes),
            "query",
            effects=tuple(effects),
            fix=f"retrieve {deepest} documents for each query, or cut all runs at {depth}",
        )


def _common_depth(run: CheckedRun) -> int:
    """Return the depth at which nearly all rankings end; 0 if there is none."""
    if len(run.sizes) < 2:
        return 0
    depth, times = Counter(run.sizes.tolist()).most_common(1)[0]
    return depth if times >= _MOST * len(run.sizes) else 0


def _top(table: PairTable, depth: int) -> PairTable:
    """Return the best documents of each query, without repeats."""
    return ranked(Run(without_repeats(table)), ties="input", depth=depth).table
