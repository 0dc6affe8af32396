"""Evaluation with the profile of another tool: measures with equal deviations are grouped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from rankgauge.core.findings import Finding
from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import distinct
from rankgauge.core.policies import Policies
from rankgauge.core.text import SHOWN
from rankgauge.data.judged_run import BoolArray, Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.records import Records
from rankgauge.data.run import Run
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.blocks import build_evaluation, measure_run
from rankgauge.evaluation.context import Plan, make_context
from rankgauge.evaluation.notes import info, single_measure_note
from rankgauge.evaluation.profile_deviations import Case, Deviation, Profile, apply_all
from rankgauge.evaluation.profiles import profile_of
from rankgauge.evaluation.result import AppliedProfile, Evaluation, findings_of_notes
from rankgauge.measures.measure import Measure

_NUMBER = re.compile(r"\d+(\.\d+)?")
# Policies that a profile may decide; the others are applied to the inputs first.
_DECIDED = ("ties", "queries", "undefined", "unjudged")


class _Part(NamedTuple):
    """Values of measures with equal deviations, evaluated together."""

    # For each place among the requested measures: the measure that is computed, and the deviations
    measures: Mapping[int, tuple[Measure, tuple[str, ...]]]
    evaluation: Evaluation


def evaluate_profile(
    qrels: Any,
    run: Any,
    profile: str | Profile,
    measures: Sequence[Measure],
    *,
    policies: Policies,
    queries: Sequence[Any] | None = None,
    usual: bool = False,
) -> Evaluation:
    """Evaluate a run as another tool does."""
    found = profile_of(profile)
    if usual:
        measures = [measure for measure in measures if _has(found, measure)]
    deviations = [found.deviations(measure) for measure in measures]
    source = _source(qrels, run)
    clean = source.run.without_repeats(policies.duplicates)
    cases = [
        Case(source.graded if measure.declaration.reads == "grades" else source.qrels, clean, measure, policies)
        for measure in measures
    ]
    _refuse_contradictions(found, cases, deviations)
    parts = [
        _part([(n, cases[n], deviations[n]) for n in places], source.qrels, queries)
        for places in _groups(cases, deviations)
    ]
    evaluation = _merge(found, measures, parts, source)
    removed = len(source.run.table) - len(clean.table)
    return replace(evaluation, counts={**evaluation.counts, "duplicates_removed": removed})


def _has(found: Profile, measure: Measure) -> bool:
    try:
        found.deviations(measure)
    except UnknownName:
        return False
    return True


def _source(qrels: Any, run: Any) -> Records:
    if run is None:
        return Records.of(qrels)
    if isinstance(run, Iterator):
        raise InputError(
            "profiles do not accept a run in blocks",
            where="run",
            fix="pass the whole run: a path, a mapping, or a data frame",
        )
    truth = Qrels.of(qrels)
    return Records(truth, truth, Run.of(run))


def _refuse_contradictions(found: Profile, cases: Sequence[Case], deviations: Sequence[tuple[Deviation, ...]]) -> None:
    """Raise an error for a non-default policy that contradicts the profile."""
    usual = Policies()
    given = cases[0].policies
    chosen = [name for name in _DECIDED if getattr(given, name) not in {getattr(usual, name), "given"}]
    for case, steps in zip(cases, deviations, strict=True) if chosen else ():
        of_tool = usual
        for step in steps:
            if step.of in {"order", "policy"}:
                of_tool = step.change(case._replace(policies=of_tool)).policies
        for name in chosen:
            wanted, does = getattr(given, name), getattr(of_tool, name)
            if wanted != does:
                raise InputError(
                    f"{name}={wanted} contradicts the profile {found.name}: it uses {name}={does} for {case.measure}",
                    fix=f"omit {name} or the profile",
                )


def _groups(cases: Sequence[Case], deviations: Sequence[tuple[Deviation, ...]]) -> Iterable[tuple[int, ...]]:
    """Return the indices of measures that can be evaluated together."""
    found: dict[Any, list[int]] = {}
    for place, (case, steps) in enumerate(zip(cases, deviations, strict=True)):
        shared = tuple(step for step in steps if step.of != "measure")
        found.setdefault((id(case.qrels), shared), []).append(place)
    return [tuple(places) for places in found.values()]


def _part(
    members: Sequence[tuple[int, Case, tuple[Deviation, ...]]], truth: Qrels, chosen: Sequence[Any] | None
) -> _Part:
    """Evaluate measures that have the same deviations in everything but the measure itself."""
    _, case, steps = members[0]
    case = apply_all(case, (step for step in steps if step.of != "measure"))
    measures = {}
    for place, own, deviations in members:
        computed = apply_all(own, (step for step in deviations if step.of == "measure")).measure
        measures[place] = computed, tuple(step.name for step in deviations)
    plan = Plan(tuple(dict.fromkeys(measure for measure, _ in measures.values())))
    if chosen is not None:
        # Documents that the tool drops were judged, so do not warn about them.
        chosen = [query for query in chosen if query in case.qrels or query not in truth]
    context = make_context(case.qrels, plan, case.policies, chosen)
    return _Part(measures, build_evaluation(measure_run(case.run, context), context))


def _merge(found: Profile, asked: Sequence[Measure], parts: Sequence[_Part], source: Records) -> Evaluation:
    """Combine all parts into one evaluation."""
    computed = {place: (measure, names, part) for part in parts for place, (measure, names) in part.measures.items()}
    # Measures that the tool defines identically share a column.
    kept: dict[Measure, int] = {}
    for place in range(len(asked)):
        kept.setdefault(computed[place][0], place)
    evaluations = [part.evaluation for part in parts]
    columns = [(measure, computed[place][2].evaluation) for measure, place in kept.items()]
    numbers, values, left_out = _cells(columns, evaluations, source.qrels)
    measures, places = tuple(kept), kept.values()
    applied = AppliedProfile(
        found.name, found.tool, tuple(str(asked[place]) for place in places), tuple(computed[n][1] for n in places)
    )
    # The parts count the same events; use the largest count.
    counts = {name: max(e.counts[name] for e in evaluations) for name in evaluations[0].counts}
    findings = [
        *(one for e in evaluations for one in e.input_findings),
        *map(info, source.notes),
        *findings_of_notes(_notes(parts), [one for e in evaluations for one in e.findings]),
        *single_measure_note(measures),
        *map(info, _profile_notes(found, measures, applied)),
    ]
    return replace(
        evaluations[0],
        query_ids=tuple(source.qrels.query_ids[number] for number in numbers.tolist()),
        measures=measures,
        per_query=values,
        undefined=np.isnan(values),
        policies=_shared([e.policies for e in evaluations]),
        counts=counts | {"queries": len(numbers)},
        coverage={k: v for e in evaluations[::-1] for k, v in e.coverage.items()},
        findings=tuple(dict.fromkeys(findings)),
        profile=applied,
        left_out=left_out,
    )


def _cells(
    columns: Sequence[tuple[Measure, Evaluation]], parts: Sequence[Evaluation], qrels: Qrels
) -> tuple[IntArray, Values, BoolArray | None]:
    """Return the numbers of the queries, their (Q, M) values, and which are left out of the mean."""
    index = {query: number for number, query in enumerate(qrels.query_ids)}
    numbers = distinct(np.concatenate([[index[query] for query in part.query_ids] for part in parts]))
    values = np.full((len(numbers), len(columns)), np.nan)
    counted = np.zeros(values.shape, dtype=bool)
    mixed = len({part.policies.undefined for part in parts}) > 1
    for column, (measure, part) in enumerate(columns):
        at = np.searchsorted(numbers, [index[query] for query in part.query_ids])
        values[at, column] = own = part.per_query[:, part.measures.index(measure)]
        counted[at, column] = ~np.isnan(own) if mixed and part.policies.undefined == "skip" else True
    return numbers, values, None if counted.all() else ~counted


def _shared(found: Sequence[Policies]) -> Policies:
    """Return the policies that all parts share, with the defaults for the others."""
    alike = {
        part.name: getattr(found[0], part.name)
        for part in fields(Policies)
        if len({getattr(policies, part.name) for policies in found}) == 1
    }
    return Policies(**alike)


def _notes(parts: Sequence[_Part]) -> Iterator[str]:
    """Yield the distinct notes of all parts; a note of some of the parts names its measures.

    A note that already names its measures gets no prefix, and notes that differ only in these
    measures are combined. Of notes that differ only in numbers, the first is used.
    """
    measures_of: dict[str, list[str]] = {}
    other: dict[str, list[str]] = {}
    named: dict[str, list[str]] = {}
    shapes: dict[str, str] = {}
    for part in parts:
        own = [str(measure) for measure, _ in part.measures.values()]
        # Input problems are reported once for all parts.
        for note in (one.note for one in part.evaluation.findings if not _of_all(one)):
            names, _, rest = note.partition(": ")
            if rest and set(names.split(", ")) <= set(own):
                named.setdefault(rest, []).extend(names.split(", "))
                continue
            first = shapes.setdefault(_NUMBER.sub("0", note), note)
            (measures_of if first == note else other).setdefault(first, []).extend(own)
    every = sum(len(part.measures) for part in parts)
    for note, of in measures_of.items():
        if note in other:
            yield f"{note}; different values for {_shortened(other[note])}"
        elif len(of) == every or set(of) & set(re.split("[ ,]+", note)):
            yield note
        else:
            yield f"{_shortened(of)}: {note}"
    for rest, of in named.items():
        yield f"{_shortened(of)}: {rest}"


def _of_all(found: Finding) -> bool:
    return bool(found.fix) or found.code == "M101"


def _shortened(names: Sequence[str]) -> str:
    """Return the names, or the first few and the number of names."""
    if len(names) <= 2 * SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:SHOWN])}, ... ({len(names)} measures)"


def _profile_notes(found: Profile, measures: Sequence[Measure], applied: AppliedProfile) -> Iterator[str]:
    """Yield notes that describe the applied profile."""
    grouped: dict[tuple[str, ...], list[str]] = {}
    for measure, names in zip(measures, applied.deviations, strict=True):
        grouped.setdefault(names, []).append(str(measure))
    shared = [name for name in next(iter(grouped)) if all(name in names for names in grouped)]
    tool = f"as {found.tool} (profile {found.name})"
    if shared and len(grouped) > 1:
        yield f"{tool}, all measures: {'; '.join(shared)}"
        tool = "in addition"
        grouped = {tuple(name for name in names if name not in shared): of for names, of in grouped.items()}
        grouped.pop((), None)
    for names, of in grouped.items():
        yield f"{tool}: {_shortened(of)}: {'; '.join(names) or 'as rankgauge'}"
    for measure, name in zip(measures, applied.asked, strict=True):
        if str(measure) != name:
            yield f"{name} of {found.name} is {measure} here"
    if any(found.decimals(measure) is not None for measure in measures):
        yield f"{found.name} rounds means to {found.digits} decimals; these are not rounded"
    if found.beware:
        yield f"{found.name}: {found.beware}"
