"""Evaluation with the profile of another tool: measures with equal deviations are grouped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rankgauge.core.findings import Finding
from rankgauge.core.grouping import group_values
from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import distinct
from rankgauge.core.policies import Policies
from rankgauge.core.text import SHOWN, keep
from rankgauge.data.judged_run import BoolArray, Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.records import Records
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


class _Column(NamedTuple):
    """A requested measure with the deviations of the tool."""

    case: Case  # the inputs, and the measure as requested
    deviations: tuple[Deviation, ...]  # all deviations, in the order of application
    shared: tuple[Deviation, ...]  # those of the inputs and policies
    measure: Measure  # the measure that is computed

    @property
    def part(self) -> tuple[int, tuple[Deviation, ...]]:
        """Key of the measures that are evaluated together."""
        return id(self.case.qrels), self.shared


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
    """Evaluate a run as another tool does; `usual` skips measures that it does not have."""
    tool = profile_of(profile)
    if isinstance(run, Iterator):
        raise InputError(
            "profiles do not accept a run in blocks",
            where="run",
            fix="pass the whole run: a path, a mapping, or a data frame",
        )
    source = Records.of_inputs(qrels, run)
    clean = source.run.without_repeats(policies.duplicates)
    columns = []
    for measure in measures:
        try:
            deviations = tool.deviations(measure)
        except UnknownName:
            if usual:
                continue
            raise
        judged = source.graded if measure.declaration.reads == "grades" else source.qrels
        case = Case(judged, clean, measure, policies)
        computed = apply_all(case, (step for step in deviations if step.of == "measure")).measure
        shared = tuple(step for step in deviations if step.of != "measure")
        columns.append(_Column(case, deviations, shared, computed))
    _refuse_contradictions(tool, policies, columns)
    parts = group_values((column.part, column) for column in columns)
    evaluations = {key: _evaluate_part(part, source.qrels, queries) for key, part in parts.items()}
    evaluation = _merge(tool, columns, evaluations, source)
    removed = len(source.run.table) - len(clean.table)
    return replace(evaluation, counts={**evaluation.counts, "duplicates_removed": removed})


def _refuse_contradictions(tool: Profile, policies: Policies, columns: Sequence[_Column]) -> None:
    """Raise an error for a non-default policy that contradicts the profile."""
    usual = Policies()
    chosen = [name for name in _DECIDED if getattr(policies, name) not in {getattr(usual, name), "given"}]
    for column in columns if chosen else ():
        of_tool = usual
        for step in column.shared:
            if step.of in {"order", "policy"}:
                of_tool = step.change(column.case._replace(policies=of_tool)).policies
        for name in chosen:
            wanted, does = getattr(policies, name), getattr(of_tool, name)
            if wanted != does:
                raise InputError(
                    f"{name}={wanted} contradicts the profile {tool.name}: "
                    f"it uses {name}={does} for {column.case.measure}",
                    fix=f"omit {name} or the profile",
                )


def _evaluate_part(columns: Sequence[_Column], truth: Qrels, queries: Sequence[Any] | None) -> Evaluation:
    """Evaluate measures that have the same deviations in everything but the measure itself."""
    case = apply_all(columns[0].case, columns[0].shared)
    plan = Plan(tuple(dict.fromkeys(column.measure for column in columns)))
    if queries is not None:
        # Documents that the tool drops were judged, so do not warn about them.
        queries = [query for query in queries if query in case.qrels or query not in truth]
    context = make_context(case.qrels, plan, case.policies, queries)
    return build_evaluation(measure_run(case.run, context), context)


def _merge(
    tool: Profile, columns: Sequence[_Column], evaluation_of: Mapping[Any, Evaluation], source: Records
) -> Evaluation:
    """Combine the evaluations of all parts into one."""
    # Measures that the tool defines identically share a column.
    kept = {measure: own[0] for measure, own in group_values((c.measure, c) for c in columns).items()}
    evaluations = list(evaluation_of.values())
    numbers, values, left_out = _cells(
        [(measure, evaluation_of[column.part]) for measure, column in kept.items()], evaluations, source.qrels
    )
    applied = AppliedProfile(
        tool.name,
        tool.tool,
        tuple(str(column.case.measure) for column in kept.values()),
        tuple(tuple(step.name for step in column.deviations) for column in kept.values()),
    )
    measures_of = {key: [str(c.measure) for c in columns if c.part == key] for key in evaluation_of}
    notes = _notes([(measures_of[key], evaluation.findings) for key, evaluation in evaluation_of.items()])
    findings = [
        *(finding for e in evaluations for finding in e.input_findings),
        *map(info, source.notes),
        *findings_of_notes(notes, [finding for e in evaluations for finding in e.findings]),
        *single_measure_note(tuple(kept)),
        *map(info, _profile_notes(tool, tuple(kept), applied)),
    ]
    # Policies that all parts share, with the defaults for the others.
    policies = {
        name: getattr(evaluations[0].policies, name)
        for name in Policies.__dataclass_fields__
        if len({getattr(e.policies, name) for e in evaluations}) == 1
    }
    return replace(
        evaluations[0],
        query_ids=tuple(source.qrels.query_ids[number] for number in numbers.tolist()),
        measures=tuple(kept),
        per_query=values,
        policies=Policies(**policies),
        # The parts count the same events; use the largest count.
        counts={name: max(e.counts[name] for e in evaluations) for name in evaluations[0].counts}
        | {"queries": len(numbers)},
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
        values[at, column] = own = part.column(measure)
        counted[at, column] = ~np.isnan(own) if mixed and part.policies.undefined == "skip" else True
    return numbers, values, None if counted.all() else ~counted


def _notes(parts: Sequence[tuple[Sequence[str], Sequence[Finding]]]) -> Iterator[str]:
    """Yield the distinct notes of all parts, given the measures and findings of each.

    A note of some of the parts names its measures. A note that already names its measures gets no
    prefix, and notes that differ only in these measures are combined. Of notes that differ only in
    numbers, the first is used.
    """
    measures_of: dict[str, list[str]] = {}
    other: dict[str, list[str]] = {}
    named: dict[str, list[str]] = {}
    shapes: dict[str, str] = {}
    for own, findings in parts:
        # Input problems, and that there is one measure, are reported once for all parts.
        for note in (finding.note for finding in findings if not finding.fix and finding.code != "M101"):
            names, _, rest = note.partition(": ")
            if rest and set(names.split(", ")) <= set(own):
                named.setdefault(rest, []).extend(names.split(", "))
                continue
            first = shapes.setdefault(_NUMBER.sub("0", note), note)
            (measures_of if first == note else other).setdefault(first, []).extend(own)
    every = sum(len(own) for own, _ in parts)
    for note, of in measures_of.items():
        if note in other:
            yield f"{note}; different values for {_shortened(other[note])}"
        elif len(of) == every or set(of) & set(re.split("[ ,]+", note)):
            yield note
        else:
            yield f"{_shortened(of)}: {note}"
    for rest, of in named.items():
        yield f"{_shortened(of)}: {rest}"


def _shortened(names: Sequence[str]) -> str:
    """Return the names, or the first few and the number of names."""
    if len(names) <= 2 * SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:SHOWN])}, ... ({len(names)} measures)"


def _profile_notes(tool: Profile, measures: Sequence[Measure], applied: AppliedProfile) -> Iterator[str]:
    """Yield notes that describe the applied profile."""
    grouped = group_values(zip(applied.deviations, map(str, measures), strict=True))
    shared = [name for name in next(iter(grouped)) if all(name in names for names in grouped)]
    subject = f"as {tool.tool} (profile {tool.name})"
    if shared and len(grouped) > 1:
        yield f"{subject}, all measures: {'; '.join(shared)}"
        subject = "in addition"
        grouped = {tuple(name for name in names if name not in shared): of for names, of in grouped.items()}
        grouped.pop((), None)
    for names, of in grouped.items():
        yield f"{subject}: {_shortened(of)}: {'; '.join(names) or 'as rankgauge'}"
    yield from keep(
        *(
            f"{name} of {tool.name} is {measure} here"
            for measure, name in zip(measures, applied.asked, strict=True)
            if str(measure) != name
        ),
        any(tool.decimals(measure) is not None for measure in measures)
        and f"{tool.name} rounds means to {tool.digits} decimals; these are not rounded",
        tool.beware and f"{tool.name}: {tool.beware}",
    )
