"""Conclusions of a comparison in sentences, and findings that limit them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rankgauge import stats
from rankgauge.comparison.differences import (
    ALPHA,
    FAILING,
    FEW_CHANGES,
    SURE,
    Computation,
    Design,
    Difference,
    corrected_differences,
)
from rankgauge.core.findings import COMPARISON_KINDS, Finding, explaining
from rankgauge.core.grouping import group_values
from rankgauge.core.ids import IntArray
from rankgauge.core.text import Ratio, inflect, keep, many
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.evaluation.answer_judge import calibration_finding, valued_queries
from rankgauge.evaluation.blocks import BlockResult
from rankgauge.evaluation.notes import origins_of
from rankgauge.evaluation.result import Evaluation, of_answers
from rankgauge.measures.measure import Measure

_FEW_QUERIES = 25
_HOLES = 0.05
_MOSTLY_ONE = 0.5
_MANY_TIES = 0.1
# Share of rankings of the same length from which a run counts as cut off.
_NEARLY_ALL = 0.75
_NAMED = 5
# Cochran's rule: tests of means need at least 25 * skewness^2 queries.
_QUERIES_PER_SKEWNESS = 25
_CUT = 10
# Maximum number of sentences; the table has all differences.
_SENTENCES = 20


def withholding(evaluation: Evaluation, measure: Measure, other: Evaluation | None = None) -> tuple[Finding, ...]:
    """Return the findings about the input or the judge that forbid a verdict on a run.

    Args:
        evaluation: The run.
        measure: The measure.
        other: The run that it is compared with, if any.
    """
    explained = explaining(evaluation.findings)
    if measure.declaration.reads != "verdicts":
        return explained
    queries, settings = valued_queries(evaluation, measure), None
    if other is not None:
        queries, settings = queries & valued_queries(other, measure), other.settings
    judge = calibration_finding(evaluation.settings, measure, queries, settings)
    return (*explained, *([] if judge is None else [judge]))


def withhold_verdict(d: Difference, run: Evaluation, baseline: Evaluation) -> Difference:
    """Withhold the verdict if one of the two runs has a finding that forbids it."""
    withheld = withholding(run, d.measure, baseline) or withholding(baseline, d.measure, run)
    return replace(d, verdict="withheld") if withheld and d.verdict is not None else d


def withheld_runs(
    evaluations: Sequence[Evaluation], measure: Measure, differences: Iterable[Difference]
) -> list[tuple[str, Finding]]:
    """Return the runs without a verdict in a comparison with another run, with the reasons."""
    named = {e.run_name: e for e in evaluations}
    pairs = [(d.run, d.baseline) for d in differences if d.measure == measure]
    reasons = {
        (run, finding): None
        for pair in pairs
        for run, other in (pair, pair[::-1])
        for finding in withholding(named[run], measure, named[other])
    }
    names = list(named)
    return sorted(reasons, key=lambda reason: names.index(reason[0]))


def no_verdicts(withheld: Iterable[tuple[str, Finding]]) -> list[str]:
    """Return one sentence for each reason to withhold verdicts, with the runs it applies to."""
    runs = group_values((finding, run) for run, finding in withheld)
    return [f"{_listed(names)} cannot be compared: {finding}" for finding, names in runs.items()]


def sentences(work: Computation, differences: Sequence[Difference]) -> Iterator[str]:
    """Yield the conclusion on the best run, then one sentence for each tested difference.

    If a verdict is withheld for any run, or a mean is not corrected for the errors of the judge, no
    run is called best.
    """
    primary, (means, by_judge) = work.design.tested[0], work.means
    if str(primary) not in by_judge and not withheld_runs(work.evaluations, primary, differences):
        by_primary = {run: row[str(primary)] for run, row in means.items()}
        yield best_sentence(by_primary, work.design, differences, work.indistinct_runs)
    yield from difference_sentences(differences)


def difference_sentences(differences: Sequence[Difference]) -> Iterator[str]:
    """Yield the result of each tested difference; beyond the first 20, only counts by verdict."""
    tested = [d for d in differences if d.verdict not in {None, "withheld"}]
    for d in tested[:_SENTENCES]:
        yield difference_sentence(d)
    if len(tested) > _SENTENCES:
        verdicts = Counter(d.verdict for d in tested[_SENTENCES:])
        text = ", ".join(f"{verdict} {number}" for verdict, number in verdicts.items())
        yield f"{len(tested) - _SENTENCES} more comparisons were tested: {text}"


def best_sentence(
    means: Mapping[str, float],
    design: Design,
    differences: Sequence[Difference],
    indistinct: Callable[[str], Iterable[str]] | None,
) -> str:
    """Return which run is best, and the runs that are not distinguishable from it.

    Args:
        means: Mean of the primary measure by run.
        design: Design of the comparison.
        differences: The differences between runs.
        indistinct: Function that returns the runs that a test over all runs does not distinguish
            from a run. None without that test: then only runs compared with the best run are named.
    """
    primary = design.tested[0]
    names = list(means)
    best = [names[place] for place in primary.best(list(means.values()))]
    if not best:
        undefined = all(map(math.isnan, means.values()))
        why = "is undefined for every run" if undefined else "has no better direction"
        return f"{primary} {why}: no run is ranked first"
    word = "lowest" if primary.declaration.better == "lower" else "highest"
    text = f"{_listed(best)} {inflect(len(best), 'has', 'have')} the {word} {primary} ({means[best[0]]:.4f})"
    rest = [name for name in names if name not in best]
    verdicts = {frozenset((d.run, d.baseline)): d.verdict for d in differences if d.measure == primary}
    near = {name for name in rest if verdicts.get(frozenset((best[0], name))) not in SURE}
    untested = {name for name in near if frozenset((best[0], name)) not in verdicts}
    how = ""
    if untested and indistinct is not None:
        # The best run was selected from the data, so only a test over all runs is valid for it.
        untested = untested.difference(indistinct(best[0]))
        how = " (other pairs: max-T over all pairs of runs)"
    listed = [name for name in rest if name in near - untested]
    return f"{text}; not distinguishable from {_listed(listed)}{how}" if listed else text


def _listed(names: Sequence[str]) -> str:
    if len(names) > _NAMED + 1:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def difference_sentence(d: Difference) -> str:
    """Return the result of one tested difference: better, worse, or not distinguishable."""
    spread = f"difference {d.difference_text()}"
    if d.verdict == "identical":
        return f"{d.run} and {d.baseline}: identical by {d.measure} in every query"
    if d.verdict in SURE:
        text = f"{d.run} is {d.verdict} than {d.baseline} by {d.measure}: {spread}"
        if d.reversed_by != FAILING + 1:
            return text
        # One failing query more than allowed would reverse the verdict. Of n queries, none is among
        # those that fail with a probability of (1 - share)^n.
        failing = abs(d.difference) / d.largest
        return (
            f"{text}, unless the better run fails completely for {failing * d.scale:.1%} of all queries or more: up to "
            f"{math.exp(-failing * d.queries):.0%} of samples contain none of them"
        )
    text = f"{d.run} and {d.baseline} by {d.measure}: {_unclear_verdict(d)}, {spread}"
    if _reversible(d):
        return text
    parts = keep(
        text,
        d.detectable is not None
        and f"with {many(d.queries, 'query')}, differences of {d.detectable:.{d.digits}f} or more are "
        "detectable with about 80% power",
        d.queries_needed is not None
        and f"a difference of {abs(d.difference):.{d.digits}f} would need about {d.queries_needed:,} queries",
    )
    return "; ".join(parts)


def _unclear_verdict(d: Difference) -> str:
    """Return why a difference is not significant; p-value and interval may disagree."""
    if d.p is None or d.corrected is None or d.wins + d.losses < FEW_CHANGES:
        return "cannot tell"
    if _reversible(d):
        more = many(d.reversed_by or 0, "more query")
        return f"cannot tell: the better run would lose its lead by failing completely for {more}"
    if d.corrected < ALPHA:
        return f"cannot tell (p = {d.corrected:.4f}, but the interval includes 0)"
    if d.p < ALPHA or not (d.no_interval or d.low <= 0 <= d.high):
        how = "not significant after correction" if d.corrected > d.p else "not significant"
        return f"{how} (p = {d.corrected:.4f})"
    return "cannot tell"


def _reversible(d: Difference) -> bool:
    """Return whether only queries that are not in the sample prevent a verdict."""
    sure = d.corrected is not None and d.corrected < ALPHA and d.wins + d.losses >= FEW_CHANGES
    return sure and d.reversed_by is not None and d.reversed_by <= FAILING and not d.low <= 0 <= d.high


def units(measures: Sequence[Measure]) -> Iterator[str]:
    """Yield notes on differences whose unit differs from the unit of the means."""
    by_mean = {
        "geometric": "differences are natural logarithms of ratios",
        "sum": "means are sums, differences are per query",
    }
    for mean, text in by_mean.items():
        names = [str(measure) for measure in measures if measure.declaration.mean == mean]
        if names:
            yield f"{_listed(names)}: {text}"


def findings_of_evaluations(
    evaluations: Sequence[Evaluation], design: Design, differences: Sequence[Difference]
) -> Iterator[Finding]:
    """Yield findings about the values that limit the comparison."""
    origins = list(dict.fromkeys(finding for e in evaluations for finding in origins_of(e.findings)))
    yield from sorted(origins, key=lambda finding: finding.severity == "info")
    queries, unit = len(evaluations[0].query_ids), "question" if of_answers(evaluations[0]) else "query"
    tied = {e.run_name: e.counts.get("tied", 0) for e in evaluations}
    loose = ", ".join(f"{name}: {n} of {queries}" for name, n in tied.items() if n > _MANY_TIES * queries)
    absent = {e.run_name: e.counts.get("missing_from_run", 0) for e in evaluations}
    gone = ", ".join(f"{name} {number}" for name, number in absent.items() if number)
    few = f"only {many(queries, unit)}: intervals are wide, and a single {unit} can change the mean"
    yield from keep(
        queries < _FEW_QUERIES and _finding("C101", few),
        loose and _finding("C102", f"breaking ties differently could change the values of many queries ({loose})"),
        gone and _finding("C103", f"queries missing from a run count as empty rankings ({gone})"),
        any(e.weights is not None for e in evaluations) and _finding("C104", "means are weighted, differences are not"),
    )
    for e in evaluations:
        explains = explaining(e.findings)
        for finding in e.input_findings:
            if finding not in explains and finding not in origins:
                yield replace(finding, message=f"{e.run_name}: {finding.message}")
    named = {e.run_name: e for e in evaluations}
    primary = [d for d in differences if d.measure == design.tested[0] and d.verdict != "withheld"]
    for d in primary[:_SENTENCES]:
        yield from _findings_of_pair(named[d.run], named[d.baseline], d)


def _finding(code: str, message: str, fix: str = "") -> Finding:
    return Finding(code, COMPARISON_KINDS[code].severity, message, fix=fix)


def _findings_of_pair(run: Evaluation, baseline: Evaluation, d: Difference) -> Iterator[Finding]:
    correction = corrected_differences(run, baseline, d.measure)
    moved, apart = (column[~np.isnan(column)] for column in (correction.values, np.abs(correction.counted)))
    changed = int(np.count_nonzero(apart))
    whole = len(apart) == len(run.query_ids)
    most = changed >= FEW_CHANGES and apart.max() > _MOSTLY_ONE * math.fsum(apart.tolist())
    if most and whole:
        query = f"query {run.query_ids[int(apart.argmax())]!r}"
        yield _finding("C106", f"{d.run} against {d.baseline}: {query} alone accounts for most of the difference")
    yield from findings_of_difference(d, stats.skewness(moved) if changed else 0.0)


def findings_of_difference(d: Difference, skewness: float) -> Iterator[Finding]:
    """Yield why the test of a difference may be unreliable: few changes or skewed differences."""
    changed = d.wins + d.losses
    pair = f"{d.run} against {d.baseline}"
    if 0 < changed < FEW_CHANGES:
        few = f"{pair}: only {many(changed, 'query')} {inflect(changed, 'differs', 'differ')} by {d.measure}; too few"
        yield _finding("C105", f"{few} for a test", "inspect these queries: rankgauge diff")
    elif d.p is not None and d.p < ALPHA and d.queries < _QUERIES_PER_SKEWNESS * skewness**2:
        message = (
            f"{pair}: differences by {d.measure} are too skewed ({skewness:+.1f}) for "
            f"{many(d.queries, 'query')}; the p-value may be too small"
        )
        yield _finding("C111", message, "rely on the interval, or judge more queries")


class Outline(NamedTuple):
    """Properties of a run without its documents."""

    name: str
    settings: Mapping[str, Any]  # configuration of the retriever
    queries: Sequence[bytes]  # query ids
    sizes: IntArray  # number of documents per query

    @classmethod
    def of(cls, run: Run) -> Outline:
        """Return the outline of a run or of a part of it."""
        return cls(run.name, dict(run.settings), run.table.queries.tolist(), np.diff(run.table.offsets))

    @classmethod
    def measured(cls, result: BlockResult, truth: Qrels) -> Outline:
        """Return the outline of the judged queries of a run that was measured."""
        summary, queries = result.summary, truth.table.queries.tolist()
        return cls(result.name, result.settings, [queries[n] for n in summary.numbers], summary.ends[:, 0].astype(int))

    @classmethod
    def joined(cls, parts: Sequence[Outline]) -> Outline:
        """Combine the outlines of the parts of a run."""
        queries = [query for part in parts for query in part.queries]
        return parts[0]._replace(queries=queries, sizes=np.concatenate([part.sizes for part in parts]))


def findings_of_inputs(
    truth: Qrels, runs: Sequence[Outline], evaluations: Sequence[Evaluation], primary: Measure
) -> Iterator[Finding]:
    """Yield findings about unjudged documents and ranking depth that limit the comparison."""
    cut = primary.cutoff
    grades = truth.table.values
    if not ((grades >= 0) & (grades < 1)).any():
        # Judged@k would equal P@k.
        yield _finding("C107", f"{COMPARISON_KINDS['C107'].description}: {COMPARISON_KINDS['C107'].effect}")
    else:
        k = cut or _CUT
        shares = {e.run_name: e.coverage[k] for e in evaluations if k in e.coverage}
        if shares and max(shares.values()) - min(shares.values()) > _HOLES:
            text = _listed([f"{name} {Ratio(share):.2f}" for name, share in shares.items()])
            effect = "unjudged documents count as not relevant, which penalizes the run that has more"
            yield _finding("C108", f"Judged@{k} differs ({text}): {effect} of them")
    sizes = {run.name: run.sizes for run in runs}
    depth = {name: int(of_run.max(initial=0)) for name, of_run in sizes.items()}
    deepest = max(depth.values())
    # A run is cut off if most rankings have its maximum length. If all runs requested the same
    # number of documents, the shallower run simply found no more.
    cut_short = any(
        depth[name] < deepest and np.mean(of_run == depth[name]) >= _NEARLY_ALL for name, of_run in sizes.items()
    )
    asked = {run.settings.get("k") for run in runs}
    if cut_short and (len(asked) > 1 or None in asked):
        text = _listed([f"{name} {most}" for name, most in depth.items()])
        yield _finding("C109", f"different depths ({text}): {COMPARISON_KINDS['C109'].effect}")
    shallow = [name for name, most in depth.items() if cut and most < cut]
    if shallow:
        yield _finding("C110", f"{_listed(shallow)}: no ranking reaches rank {cut}, the cut-off of {primary}")
