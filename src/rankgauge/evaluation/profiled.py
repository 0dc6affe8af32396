"""A run evaluated as another tool would do it: measures with equal deviations together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.core.policies import Policies
from rankgauge.core.text import SHOWN
from rankgauge.data.judged_run import BoolArray, Values
from rankgauge.data.model import Qrels, Run
from rankgauge.data.records import Records
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.blocks import Gathered, Gathering, Truth
from rankgauge.evaluation.notes import alone_note
from rankgauge.evaluation.plan import Plan
from rankgauge.evaluation.result import AppliedProfile
from rankgauge.measures.measure import Measure
from rankgauge.profiles.deviations import Case, Deviation, Profile
from rankgauge.profiles.registry import profile_of

__all__ = ["Profiled", "profiled"]

_NUMBER = re.compile(r"\d+(\.\d+)?")
# What a profile decides about; what else is given is done to the inputs before.
_DECIDED = ("ties", "queries", "undefined", "unjudged")


@dataclass(frozen=True)
class Profiled:
    """What came of a run, measured as another tool would do it.

    Attributes:
        gathered: The values of all measures, over every query that counts for one of them.
        measures: The measures as they were computed.
        policies: What all of them share; where they differ, what was asked for.
        applied: What deviates.
        left_out: (Q, M) where a query does not count for a measure; None where all do.
    """

    gathered: Gathered
    measures: tuple[Measure, ...]
    policies: Policies
    applied: AppliedProfile
    left_out: BoolArray | None


@dataclass(frozen=True)
class _Part:
    """Measures with equal deviations, evaluated together.

    Attributes:
        columns: Their places among all measures.
        measures: They themselves, as the tool means them.
        steps: For each the names of its deviations.
        policies: What is done where definitions are silent.
        gathered: What came of it.
    """

    columns: tuple[int, ...]
    measures: tuple[Measure, ...]
    steps: tuple[tuple[str, ...], ...]
    policies: Policies
    gathered: Gathered


def profiled(
    profile: str | Profile,
    measures: Sequence[Measure],
    inputs: tuple[Any, Any],
    policies: Policies,
    *,
    chosen: Iterable[Any] | None = None,
    usual: bool = False,
) -> Profiled:
    """Evaluate a run as another tool would do it.

    Args:
        profile: The tool's way.
        measures: What is asked for.
        inputs: Judgments and run, or records and None.
        policies: What is decided besides; it must not contradict the profile.
        chosen: The queries that are averaged at most; all if None.
        usual: Whether nobody asked for these measures: what the tool lacks of them is left out.

    Raises:
        UnknownName: For a measure that the tool does not have.
        InputError: If the policies contradict the profile, or inputs are none for the tool.
    """
    found = profile_of(profile)
    if usual:
        measures = [measure for measure in measures if _has(found, measure)]
    taken = [found.deviations(measure) for measure in measures]
    source = _source(inputs)
    clean = replace(source.run, table=source.run.without_repeats(policies.duplicates))
    cases = [
        Case(source.graded if _reads_grades(m) else source.qrels, clean, m, policies)
        for m in measures
    ]
    _refuse_contradictions(found, cases, taken)
    queries = None if chosen is None else list(chosen)
    parts = [
        _part([(n, cases[n], taken[n]) for n in columns], source.qrels, queries)
        for columns in _alike(cases, taken)
    ]
    removed = len(source.run.table) - len(clean.table)
    return _together(found, measures, parts, source=source, removed=removed)


def _has(found: Profile, measure: Measure) -> bool:
    try:
        found.deviations(measure)
    except UnknownName:
        return False
    return True


def _source(inputs: tuple[Any, Any]) -> Records:
    qrels, run = inputs
    if run is None:
        return Records.of(qrels)
    if isinstance(run, Iterator):
        raise InputError(
            "got blocks of a run with a profile", where="run",
            fix="give the run in one piece: a path, a mapping or a data frame",
        )  # fmt: skip
    truth = Qrels.of(qrels)
    return Records(truth, truth, Run.of(run))


def _reads_grades(measure: Measure) -> bool:
    return measure.declaration.reads == "grades"


def _refuse_contradictions(
    found: Profile, cases: Sequence[Case], taken: Sequence[tuple[Deviation, ...]]
) -> None:
    """What was chosen otherwise than by default has to be what the profile does."""
    usual = Policies()
    given = cases[0].policies
    chosen = [
        name for name in _DECIDED if getattr(given, name) not in {getattr(usual, name), "given"}
    ]
    for case, steps in zip(cases, taken, strict=True) if chosen else ():
        of_tool = usual
        for step in steps:
            if step.of in {"order", "policy"}:
                of_tool = step.change(case._replace(policies=of_tool)).policies
        for name in chosen:
            wanted, does = getattr(given, name), getattr(of_tool, name)
            if wanted != does:
                raise InputError(
                    f"{name}={wanted} contradicts the profile {found.name}: for {case.measure} "
                    f"it is {name}={does} there",
                    fix=f"leave out one of the two: {name}, or the profile",
                )


def _alike(
    cases: Sequence[Case], taken: Sequence[tuple[Deviation, ...]]
) -> Iterable[tuple[int, ...]]:
    """The places of measures that can be evaluated together."""
    found: dict[Any, list[int]] = {}
    for place, (case, steps) in enumerate(zip(cases, taken, strict=True)):
        shared = tuple(step for step in steps if step.of != "measure")
        found.setdefault((id(case.qrels), shared), []).append(place)
    return [tuple(places) for places in found.values()]


def _part(
    members: Sequence[tuple[int, Case, tuple[Deviation, ...]]],
    truth: Qrels,
    chosen: Sequence[Any] | None,
) -> _Part:
    """Evaluate measures whose deviations differ in nothing but the measure."""
    _, case, steps = members[0]
    for step in steps:
        if step.of != "measure":
            case = step.change(case)
    measures = []
    for _, own, deviations in members:
        for step in deviations:
            if step.of == "measure":
                own = step.change(own)  # noqa: PLW2901 - one step after the other
        measures.append(own.measure)
    plan = Plan(tuple(dict.fromkeys(measures)))
    plan.alone = ""
    gathering = Gathering(Truth(case.qrels, case.qrels), plan, case.policies)
    if chosen is not None:
        # What the tool leaves out was judged all the same: no fault of who chose it.
        gathering.select([q for q in chosen if q in case.qrels or q not in truth])
    gathering.add(case.run)
    return _Part(
        tuple(place for place, _, _ in members),
        tuple(measures),
        tuple(tuple(step.name for step in deviations) for _, _, deviations in members),
        case.policies,
        gathering.finished(),
    )


def _together(
    found: Profile,
    asked: Sequence[Measure],
    parts: Sequence[_Part],
    *,
    source: Records,
    removed: int,
) -> Profiled:
    """One table of all parts."""
    index = source.qrels.query_index
    places = [np.array([index[q] for q in part.gathered.ids.tolist()]) for part in parts]
    anywhere = np.zeros(len(source.qrels), dtype=bool)
    for rows in places:
        anywhere[rows] = True
    numbers = np.flatnonzero(anywhere)
    columns, kept = _columns(asked, parts)
    values, left_out = _cells(parts, places, numbers, kept)
    applied = AppliedProfile(
        found.name,
        found.tool,
        tuple(str(asked[place]) for place in kept),
        tuple(columns[place][1] for place in kept),
    )
    measures = tuple(columns[place][0] for place in kept)
    first = parts[0].gathered
    query_ids = source.qrels.query_ids
    gathered = Gathered(
        run_name=first.run_name,
        settings=first.settings,
        query_ids=tuple(query_ids[number] for number in numbers.tolist()),
        ids=source.qrels.table.queries.take(numbers),
        values=values,
        undefined=np.isnan(values),
        counts=_counts(parts, len(numbers), removed),
        coverage={k: v for part in parts[::-1] for k, v in part.gathered.coverage.items()},
        notes=(
            *source.notes,
            *_notes(parts),
            *filter(None, [alone_note(measures)]),
            *_told(found, measures, applied),
        ),
        findings=tuple(dict.fromkeys(one for part in parts for one in part.gathered.findings)),
    )
    return Profiled(
        gathered, measures, _shared([part.policies for part in parts]), applied, left_out
    )


def _columns(
    asked: Sequence[Measure], parts: Sequence[_Part]
) -> tuple[dict[int, tuple[Measure, tuple[str, ...]]], list[int]]:
    """Each measure as it was computed, with its deviations; and which have a column.

    Two that mean the same there have one.
    """
    columns = {
        place: (measure, steps)
        for part in parts
        for place, measure, steps in zip(part.columns, part.measures, part.steps, strict=True)
    }
    first: dict[Measure, int] = {}
    for place in range(len(asked)):
        first.setdefault(columns[place][0], place)
    return columns, list(first.values())


def _cells(
    parts: Sequence[_Part], places: Sequence[IntArray], numbers: IntArray, kept: Sequence[int]
) -> tuple[Values, BoolArray | None]:
    """(Q, M) the values, and where one does not count."""
    values = np.full((len(numbers), len(kept)), np.nan)
    counted = np.zeros(values.shape, dtype=bool)
    mixed = len({part.policies.undefined for part in parts}) > 1
    for part, own in zip(parts, places, strict=True):
        rows = np.searchsorted(numbers, own)
        order = {measure: n for n, measure in enumerate(dict.fromkeys(part.measures))}
        for place, measure in zip(part.columns, part.measures, strict=True):
            if place not in kept:
                continue
            column, found = kept.index(place), part.gathered.values[:, order[measure]]
            values[rows, column] = found
            skipped = mixed and part.policies.undefined == "skip"
            counted[rows, column] = ~np.isnan(found) if skipped else True
    return values, None if counted.all() else ~counted


def _counts(parts: Sequence[_Part], queries: int, removed: int) -> dict[str, int]:
    """What happened to how many: of several parts the one where it happened to most."""
    counts = {
        name: max(part.gathered.counts[name] for part in parts) for name in parts[0].gathered.counts
    }
    return counts | {"queries": queries, "duplicates_removed": removed}


def _shared(found: Sequence[Policies]) -> Policies:
    """What all of them share; our own where they differ."""
    alike = {
        part.name: getattr(found[0], part.name)
        for part in fields(Policies)
        if len({getattr(policies, part.name) for policies in found}) == 1
    }
    return Policies(**alike)


def _notes(parts: Sequence[_Part]) -> Iterator[str]:
    """What there is to say of all parts, each once; of one part alone with its measures.

    A sentence that names its measures needs no others before it, and such sentences that say the
    same of several measures are one. Where only the numbers differ, the first stands for all.
    """
    said: dict[str, list[str]] = {}
    other: dict[str, list[str]] = {}
    named: dict[str, list[str]] = {}
    shapes: dict[str, str] = {}
    for part in parts:
        own = [str(measure) for measure in part.measures]
        for note in part.gathered.notes:
            names, _, rest = note.partition(": ")
            if rest and set(names.split(", ")) <= set(own):
                named.setdefault(rest, []).extend(names.split(", "))
                continue
            first = shapes.setdefault(_NUMBER.sub("0", note), note)
            (said if first == note else other).setdefault(first, []).extend(own)
    every = sum(len(part.measures) for part in parts)
    for note, of in said.items():
        if note in other:
            yield f"{note}; other numbers for {_listed(other[note])}"
        elif len(of) == every or set(of) & set(re.split("[ ,]+", note)):
            yield note
        else:
            yield f"{_listed(of)}: {note}"
    for rest, of in named.items():
        yield f"{_listed(of)}: {rest}"


def _listed(names: Sequence[str]) -> str:
    """The names, of many the first few and how many there are."""
    if len(names) <= 2 * SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:SHOWN])}, ... ({len(names)} measures)"


def _told(found: Profile, measures: Sequence[Measure], applied: AppliedProfile) -> Iterator[str]:
    """The profile in words."""
    grouped: dict[tuple[str, ...], list[str]] = {}
    for measure, names in zip(measures, applied.deviations, strict=True):
        grouped.setdefault(names, []).append(str(measure))
    shared = [name for name in next(iter(grouped)) if all(name in names for names in grouped)]
    tool = f"as {found.tool} (profile {found.name})"
    if shared and len(grouped) > 1:
        yield f"{tool}, all measures: {'; '.join(shared)}"
        tool = "besides"
        grouped = {
            tuple(name for name in names if name not in shared): of for names, of in grouped.items()
        }
        grouped.pop((), None)
    for names, of in grouped.items():
        yield f"{tool}: {_listed(of)}: {'; '.join(names) or 'as we do'}"
    for measure, name in zip(measures, applied.asked, strict=True):
        if str(measure) != name:
            yield f"{name} of {found.name} is {measure} here"
    if any(found.decimals(measure) is not None for measure in measures):
        yield f"{found.name} rounds means to {found.digits} decimals; here they are not"
    if found.beware:
        yield f"{found.name}: {found.beware}"
