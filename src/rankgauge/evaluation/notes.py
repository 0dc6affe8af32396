"""Findings of an evaluation: faults of its input, and notes on its interpretation.

They are computed when they are first read; most evaluations only need the means.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rankgauge.core.findings import Evidence, Finding, explaining
from rankgauge.core.ids import IntArray
from rankgauge.core.policies import Policies, Ties
from rankgauge.core.text import SHOWN, Ratio, keep, many
from rankgauge.data.joined_blocks import InputSummary
from rankgauge.data.judged_run import Values
from rankgauge.evaluation.context import JUDGED_AT, Context, Measured
from rankgauge.evaluation.input_checks import InputChecks
from rankgauge.formats.registry import description_of
from rankgauge.measures.measure import Measure

# With fewer queries, perfect values are plausible.
_FEW = 10
_ABOUT = ".about.json"
_ABOVE_ZERO = math.ulp(0.0)


def describe(
    measured: Measured, absent: IntArray, *, counts: Mapping[str, int], checks: InputChecks, context: Context
) -> tuple[dict[int, float], tuple[Finding, ...]]:
    """Return the mean share of judged documents at each depth, and the findings.

    Args:
        measured: Values of the averaged queries.
        absent: Numbers of the selected queries that are not in the run.
        counts: Counts of the evaluation.
        checks: Checks of the input.
        context: Judgments, measures, and policies.
    """
    # Empty if nothing was retrieved.
    judged = measured.rows[context.variant.layout.judged]
    empty = np.isnan(judged[0])
    columns = () if empty.all() else zip(context.plan.depths, judged[:, ~empty].tolist(), strict=True)
    coverage = {depth: math.fsum(column) / len(column) for depth, column in columns}
    faults = tuple(checks.mismatches(coverage.get(JUDGED_AT, 0.0), int(np.count_nonzero(context.selected)), absent))
    empty_rankings: tuple[Finding, ...] = ()
    if not explaining(faults):
        without = int(np.count_nonzero(empty))
        faults += checks.no_matches()
        empty_rankings = checks.empty_rankings(counts["queries"], without, counts["missing_from_run"])
    policies = context.judgments.policies
    return coverage, (
        *faults,
        *empty_rankings,
        _queries_note(counts, policies),
        ties_note(counts["tied"], policies.ties),
        *_value_notes(measured, coverage, context),
        *_undefined_notes(measured, context),
        *_relevance_notes(measured, context),
        *_input_notes(measured, checks.summary, context),
    )


def info(message: str, code: str = "") -> Finding:
    """Return a finding of severity ``info``."""
    return Finding(code, "info", message)


def _queries_note(counts: Mapping[str, int], policies: Policies) -> Finding:
    """Return a note on the averaged and excluded queries."""
    which = {
        "all": "all judged queries",
        "intersection": "judged queries that are in the run",
        "given": "the given list",
    }[policies.queries]
    missing, unjudged = counts["missing_from_run"], counts["without_judgments"]
    parts = keep(
        f"{many(counts['queries'], 'query')}: {which}",
        missing and f"{missing} of them not in the run, counted as empty rankings",
        unjudged and f"{many(unjudged, 'query')} of the run excluded: not judged",
    )
    return info("; ".join(parts))


def ties_note(touched: int, ties: Ties) -> Finding:
    """Return a note on the tie policy and the number of queries that ties affect."""
    how = {
        "trec": "broken by document id, descending (ties=trec)",
        "input": "broken by input order (ties=input)",
        "best": "broken with the higher grade first (ties=best)",
        "worst": "broken with the lower grade first (ties=worst)",
        "mean": "averaged over all orders (ties=mean)",
    }[ties]
    if ties == "mean":
        return info(f"ties {how}; orders differ for {many(touched, 'query')}")
    effect = f"could change {many(touched, 'query')}" if touched else "cannot change any query"
    return info(f"ties {how}; breaking ties differently {effect}")


def _value_notes(measured: Measured, coverage: Mapping[int, float], context: Context) -> Iterator[Finding]:
    """Yield notes on estimated values, the share of judged documents, and first relevant documents."""
    plan, policies = context.plan, context.judgments.policies
    _, firsts, estimated, layout, *_ = context.variant
    if estimated:
        errors = (math.sqrt(math.fsum((row**2).tolist())) / len(row) for row in measured.rows[layout.errors])
        names = (plan.measures[number] for number in estimated)
        text = ", ".join(f"{name} {error:.1g}" for name, error in zip(names, errors, strict=True))
        yield info(
            f"estimated from {policies.draws} orders drawn at random (seed {policies.seed}), with the "
            f"standard error of the mean: {text}"
        )
    if coverage:
        done, share = "count as not relevant", coverage[plan.deepest]
        if policies.unjudged == "removed":
            done = "are removed from the rankings (unjudged=removed)"
        text = f"documents without a judgment {done}; Judged@{plan.deepest} = {Ratio(share):.3f}"
        yield info(text, "P106" if share < 1 else "")
    for first, ranks in zip(firsts, measured.rows[layout.first_ranks], strict=True):
        yield _first_ranks_note(first, ranks)


def origin_notes(source: str) -> Iterator[Finding]:
    """Yield findings from the file NAME.about.json next to the judgments.

    The findings are its warnings, and the origin of the judgments: their guideline and criteria, or
    a source other than people.
    """
    name = description_of(source)
    if not name:
        return
    import json  # only if there is such a file

    try:
        with open(name, encoding="utf-8") as stream:  # noqa: PTH123
            about = json.load(stream)
    except (OSError, ValueError, RecursionError):
        return
    about = about if isinstance(about, dict) else {}
    base = os.path.basename(name)  # noqa: PTH119
    evidence = Evidence(source=base)
    for text in _texts(about.get("warnings")):
        yield Finding("", "warning", f"{text:.300}", fix=f"see {base}", evidence=evidence)
    # Version 0 is unknown: the judgments were imported.
    guidelines = ", ".join(version for version in _texts(about.get("guidelines"), "version") if version != "0")
    criteria = ", ".join(_texts(about.get("criteria"), "name"))
    known = [f"guideline version {guidelines:.80}"] if guidelines else []
    known += [f"criteria: {criteria:.160}"] if criteria else []
    origin = "".join(_texts([about.get("origin")]))
    if origin or known:
        text = f"judged by {origin:.80}, not by people" if origin else f"judgments: {'; '.join(known)}"
        yield Finding("", "info", f"{text} ({base})", evidence=evidence)


def _texts(raw: Any, key: str = "") -> list[str]:
    """Return the texts of a list, or the texts in a field of its objects."""
    rows = raw if isinstance(raw, list) else []
    values = [row.get(key) if isinstance(row, dict) else row for row in rows]
    return [value for value in values if isinstance(value, str) and value]


def origins_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings of :func:`origin_notes`."""
    return [finding for finding in findings if finding.evidence.source.endswith(_ABOUT)]


def _first_ranks_note(first: Measure, ranks: Values) -> Finding:
    """Return a note on the ranks of the first relevant documents, which the mean of RR hides."""
    # Queries without a relevant document in the ranking (NaN) come last.
    places = np.searchsorted((1.0, 3.0, 10.0, math.inf), ranks)
    one, three, ten, more, nowhere = np.bincount(places, minlength=5).tolist()
    level = "" if first.rel == 1 else f" (rel={first.rel})"
    return info(
        f"first hit{level}: rank 1 in {many(one, 'query')}, 2-3 in {three}, 4-10 in {ten}, after 10 in {more}, "
        f"not retrieved in {nowhere}"
    )


def _undefined_notes(measured: Measured, context: Context) -> Iterator[Finding]:
    """Yield one note for all measures with the same number and treatment of undefined values."""
    qrels, policies = context.judgments.qrels, context.judgments.policies
    grouped: dict[tuple[int, bool, str], list[str]] = {}
    for measure, values in zip(context.plan.measures, measured.rows, strict=False):
        numbers = measured.numbers[np.isnan(values)]
        skipped = policies.undefined == "skip" or measure.declaration.undefined == "skip"
        if len(numbers):
            level = measure.level
            if level is None and measure.declaration.reads == "grades":
                level = _ABOVE_ZERO
            code = "J103" if level is not None and qrels.lacking(level)[numbers].all() else ""
            grouped.setdefault((len(numbers), skipped, code), []).append(str(measure))
    for (number, skipped, code), names in grouped.items():
        done = "excluded from the mean" if skipped else "counted 0 in the mean"
        shown = ", ".join(names) if len(names) <= 2 * SHOWN else f"{len(names)} measures"
        yield info(f"{shown}: undefined for {many(number, 'query')}, {done}", code)


def _relevance_notes(measured: Measured, context: Context) -> tuple[Finding, ...]:
    """Return notes on grades that never count as relevant, the origin of grades, and the limits of recall."""
    qrels, plan = context.judgments.qrels, context.plan
    between = np.count_nonzero((qrels.low_grades > 0) & (qrels.low_grades < plan.level))
    counts = zip(plan.recalls, measured.rows[context.variant.layout.beyond].sum(axis=1).tolist(), strict=True)
    parts = [(recall, int(number)) for recall, number in counts if number]
    beyond = [
        f"{recall} in {number if place else many(number, 'query')}" for place, (recall, number) in enumerate(parts)
    ]
    return keep(
        between and info(f"grades between 0 and {plan.level:g} never count as relevant: {between}", "J104"),
        *origin_notes(qrels.table.source),
        beyond and info(f"recall cannot reach 1 with more than k relevant documents: {', '.join(beyond)}", "J107"),
    )


def _input_notes(measured: Measured, summary: InputSummary, context: Context) -> tuple[Finding, ...]:
    """Return notes on rankings, perfect values, a single measure, and inputs that are not counted."""
    qrels, plan, tally = context.judgments.qrels, context.plan, summary.tally
    longest = int(summary.ends[:, 0].max())
    perfect = [
        str(plan.measures[column])
        for column in plan.whole
        # For most runs, the value of the first query decides.
        if measured.rows[column, 0] == 1 and (measured.rows[column] == 1).all()
    ]
    pooled = int(np.count_nonzero(qrels.low_grades < 0))
    of_readers = sorted(summary.notes, key=lambda note: (summary.notes[note], note))
    return keep(
        0 < longest < plan.max_cutoff
        and info(f"rankings have at most {longest} documents, cut-offs go to {plan.max_cutoff}", "R105"),
        tally.longer > 0
        and not tally.uneven
        and Finding("R106", "warning", "all documents of a query have the same score: only the tie policy orders them"),
        perfect
        and len(measured.numbers) >= _FEW
        and Finding(
            "P107",
            "warning",
            f"{', '.join(perfect[:SHOWN])} is 1 for every query: was the run made from the judgments?",
        ),
        *single_measure_note(plan.measures),
        pooled and info(f"{many(pooled, 'judgment')} with a negative grade: pooled but not judged"),
        tally.removed
        and info(
            f"{many(tally.removed, 'repeated document')} removed from the rankings "
            f"(duplicates={context.judgments.policies.duplicates})"
        ),
        *map(info, dict.fromkeys((*context.notes, *of_readers))),
    )


def single_measure_note(measures: Sequence[Measure]) -> Iterator[Finding]:
    """Yield a note on the limitation of using a single measure."""
    if len(measures) == 1:
        (measure,) = measures
        k = measure.cutoff or 10
        other = f"nDCG@{k}" if measure.name in {"R", "SetR"} else f"R@{k}"
        yield info(f"{measure} is the only measure: {other} would show other aspects", "M101")
