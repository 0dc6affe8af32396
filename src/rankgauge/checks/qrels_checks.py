"""Checks of judgments: repeats, grades, and queries without relevant documents."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rankgauge.checks.checked_run import (
    SHOWN,
    CheckedRun,
    least_rel,
    locations_of,
    means,
    relevant_counts,
    without_repeats,
)
from rankgauge.core.findings import NO_RELEVANT_DOCUMENT, Effect, Finding, FindingKind, Location
from rankgauge.core.ids import IntArray, show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import Ratio, inflect, keep, many
from rankgauge.data.join import Joined
from rankgauge.data.qrels import Qrels
from rankgauge.errors import InputError
from rankgauge.measures.measure import Measure, parse

_POOLED = -2.0
# A grade so many times the next lower one is considered a mistake.
_FAR = 10.0
_RARE = 50
# Recall is not reported if its mean can reach this value.
_NEARLY = 0.99

JUDGED_TWICE = FindingKind(
    "J101",
    "judged-twice",
    "error",
    "a document is judged more than once for one query, each time with the same grade",
    "an evaluation rejects the judgments; other tools count it once or twice",
    "keep one of the lines",
    "safe",
)

JUDGED_TWICE_DIFFERENTLY = FindingKind(
    "J102",
    "judged-twice-differently",
    "error",
    "a document is judged more than once for one query, with different grades",
    "values depend on which of the grades a tool keeps",
    "decide which grade is right (the last, the highest, the majority), and keep only that one",
)

GRADE_BELOW_REL = FindingKind(
    "J104",
    "grade-below-rel",
    "warning",
    "grades above 0 that do not reach the relevance level of the measures",
    "P, R, AP, RR, and others count such documents as not relevant; nDCG gives them a small gain",
    "set the level, as in AP(rel=0.5), or use integer grades",
)

GRADE_OUT_OF_SCALE = FindingKind(
    "J105",
    "grade-out-of-scale",
    "warning",
    "grades outside the scale",
    "one grade far above the others dominates nDCG; one below -2 is usually a typo",
    "check these judgments",
)

GRADE_ABOVE_TOP = FindingKind(
    "J106",
    "grade-above-top",
    "warning",
    "grades above the top grade of ERR",
    "ERR rejects them; its values depend on the top grade",
    "set the top of the scale, as in ERR(top=5)@20",
)

RECALL_OUT_OF_REACH = FindingKind(
    "J107",
    "recall-out-of-reach",
    "warning",
    "queries have more relevant documents than the cut-off of R",
    "R@k cannot reach 1 for them, so its mean understates the ranking",
    "use a larger cut-off, Rprec, or nDCG, which can reach 1",
)

ONLY_RELEVANT = FindingKind(
    "J108",
    "only-relevant",
    "info",
    "the judgments list only relevant documents",
    "unjudged documents may be relevant: a new retriever that finds other good documents gets no credit",
    "keep documents that were judged not relevant, with grade 0",
)

SINGLE_MEASURE = FindingKind(
    "M101",
    "single-measure",
    "info",
    "only one measure is reported",
    "it hides other aspects: nDCG@10 does not show what was missed",
    "report precision, recall, and order: P@10, R@100, nDCG@10",
)


@dataclass(frozen=True)
class Scale:
    """Lowest and highest possible grade."""

    low: float
    high: float

    @classmethod
    def of(cls, text: str) -> Scale:
        """Parse a scale such as ``0..3``."""
        match = re.fullmatch(r"\s*(-?[0-9.]+?)\s*\.\.\s*(-?[0-9.]+)\s*", text)
        try:
            low, high = (float(part) for part in match.groups()) if match else (1.0, 0.0)
        except ValueError:
            low, high = 1.0, 0.0
        if low > high:
            raise InputError(
                f"got {text!r} for the scale", where="scale", fix="write the lowest and the highest grade: 0..3"
            )
        return cls(low, high)

    def outside(self, grades: np.ndarray) -> IntArray:
        """Return the rows with grades outside the scale; -1 and -2 mean not judged."""
        off = (grades < self.low) | (grades > self.high)
        if self.low.is_integer() and self.high.is_integer():
            off |= grades != np.rint(grades)
        off &= ~((grades < 0) & (grades >= _POOLED) & (grades == np.rint(grades)))
        return np.flatnonzero(off)


@dataclass(frozen=True, eq=False)
class _Checked:
    """Judgments without repeats, and the runs on which effects are measured."""

    qrels: Qrels
    source: str
    runs: Sequence[CheckedRun]

    @property
    def table(self) -> PairTable:
        return self.qrels.table

    def effects(self, then: Callable[[CheckedRun], Joined | Sequence[float]], by: str) -> list[Effect]:
        """Return the effects on the means of each run."""
        return [effect for run in self.runs for effect in run.effects(then(run), by)]

    def judgments(
        self, kind: FindingKind, message: str, rows: IntArray, effects: Sequence[Effect], *, fix: str = ""
    ) -> Finding:
        """Return a finding about these judgments."""
        return kind.finding(
            message,
            self.source,
            len(rows),
            len(self.table),
            "judgment",
            locations=locations_of(self.table, rows, self.source),
            effects=tuple(effects),
            fix=fix,
        )

    def queries(self, kind: FindingKind, message: str, numbers: IntArray, effects: Sequence[Effect]) -> Finding:
        """Return a finding about these queries."""
        names = [show_id(self.table.queries[number]) for number in numbers[:SHOWN].tolist()]
        return kind.finding(
            message,
            self.source,
            len(numbers),
            len(self.qrels),
            "query",
            locations=tuple(Location(self.source, query=name) for name in names),
            effects=tuple(effects),
        )


def check_qrels(
    table: PairTable,
    source: str,
    runs: Sequence[CheckedRun],
    measures: tuple[Measure, ...] | None,
    *,
    scale: Scale | None,
) -> Iterator[Finding]:
    """Check judgments, and measure the effects on each run."""
    qrels = _Checked(Qrels(without_repeats(table, "first")), source, runs)
    rel = 1.0 if measures is None else least_rel(measures)
    yield from keep(
        *_repeats(table, source, runs),
        *_no_relevant(qrels, rel),
        *_below_rel(qrels, rel),
        *_out_of_scale(qrels, scale),
        *_above_top(qrels, measures or ()),
        *_out_of_reach(qrels, measures or (parse("R@10"),)),
        *_only_relevant(qrels, rel),
        measures is not None
        and len(measures) == 1
        and SINGLE_MEASURE.finding(f"{measures[0]} is the only measure", "measures", 1, 1),
    )


def _repeats(table: PairTable, source: str, runs: Sequence[CheckedRun]) -> Iterator[Finding]:
    same: list[int] = []
    other: list[int] = []
    for group in table.repeats():
        alike = len(set(table.values[group].tolist())) == 1
        (same if alike else other).append(group[1])
    if same:
        yield JUDGED_TWICE.finding(
            f"{many(len(same), 'document')} judged again for the same query, with the same grade",
            source,
            len(same),
            len(table),
            "judgment",
            locations=locations_of(table, same, source),
            effects=tuple(e for run in runs for e in run.effects_if_read("each judgment once")),
        )
    if other:
        lowest, highest = Qrels(without_repeats(table, "lowest")), Qrels(without_repeats(table, "best"))
        effects: list[Effect] = []
        for qrels, word in ((lowest, "lowest"), (highest, "highest")):
            for run in runs:
                refused = [math.nan] * len(run.measures)
                effects += run.effects(run.rejoined(qrels=qrels), f"the {word} of the grades", now=refused)
        yield JUDGED_TWICE_DIFFERENTLY.finding(
            f"{many(len(other), 'document')} judged again for the same query, with another grade",
            source,
            len(other),
            len(table),
            "judgment",
            locations=locations_of(table, other, source),
            effects=tuple(effects),
        )


def _no_relevant(judged: _Checked, rel: float) -> Iterator[Finding]:
    counts = relevant_counts(judged.qrels, rel)
    without, rest = np.flatnonzero(counts == 0), np.flatnonzero(counts > 0)
    if len(without):
        yield judged.queries(
            NO_RELEVANT_DOCUMENT,
            f"{len(without)} of {many(len(counts), 'judged query')} "
            f"{inflect(len(without), 'has', 'have')} no document of grade {rel:g} or more",
            without,
            judged.effects(lambda run: means(run.joined, run.measures, rest), "only queries with a relevant document"),
        )


def _below_rel(judged: _Checked, rel: float) -> Iterator[Finding]:
    values, most = judged.table.values, min(rel, 1.0)
    rows = np.flatnonzero((values > 0) & (values < most))
    if not len(rows):
        return
    lowest = float(values[rows].min())
    effects: list[Effect] = []
    for run in judged.runs:
        own = [m for m in run.measures if m.level is not None] or [parse("AP")]
        lower = means(run.joined, [measure(rel=lowest) for measure in own])
        effects += run.effects(lower, f"rel={lowest:g}", measures=own)
    yield judged.judgments(
        GRADE_BELOW_REL,
        f"{many(len(rows), 'judgment')} with a grade between 0 and {most:g}, such as {lowest:g}: never relevant",
        rows,
        effects,
        fix=f"set the level, as in AP(rel={lowest:g}), or use integer grades",
    )


def _out_of_scale(judged: _Checked, scale: Scale | None) -> Iterator[Finding]:
    values = judged.table.values
    rows = _outliers(values) if scale is None else scale.outside(values)
    if not len(rows):
        return
    shown = ", ".join(f"{grade:g}" for grade in sorted(set(values[rows].tolist()))[:SHOWN])
    qrels = Qrels(judged.table.keep(np.delete(np.arange(len(values)), rows)))
    which = "the others" if scale is None else f"the scale {scale.low:g}..{scale.high:g}"
    yield judged.judgments(
        GRADE_OUT_OF_SCALE,
        f"{many(len(rows), 'grade')} outside {which}: {shown}",
        rows,
        judged.effects(lambda run: run.rejoined(qrels=qrels), "without these judgments"),
    )


def _outliers(grades: np.ndarray) -> IntArray:
    """Return grades below -2, rare decimals among whole numbers, and rare very high grades."""
    few = max(1, len(grades) // _RARE)
    outliers = grades < _POOLED
    broken = grades != np.rint(grades)
    if 0 < broken.sum() <= few < (grades > 0).sum():
        outliers |= broken
    levels = sorted(set(grades[grades > 0].tolist()))
    for below, level in itertools.pairwise(levels):
        far = grades >= level
        if level >= _FAR * max(below, 1.0) and far.sum() <= few:
            outliers |= far
    return np.flatnonzero(outliers)


def _above_top(judged: _Checked, measures: Sequence[Measure]) -> Iterator[Finding]:
    values = judged.table.values
    highest = float(values.max(initial=0.0))
    own = [m for m in measures if m.name == "ERR" and highest > float(m.top)]  # type: ignore[arg-type] # a number
    if not own:
        return
    top = min(float(m.top) for m in own)  # type: ignore[arg-type] # a number
    rows = np.flatnonzero(values > top)
    higher = [measure(top=highest) for measure in own]
    yield judged.judgments(
        GRADE_ABOVE_TOP,
        f"{many(len(rows), 'grade')} above {top:g}, the top grade of {own[0]}; the highest is {highest:g}",
        rows,
        [
            e
            for run in judged.runs
            for e in run.effects(means(run.joined, higher), f"top={highest:g}", measures=own, now=[math.nan] * len(own))
        ],
        fix=f"write {higher[0]}",
    )


def _out_of_reach(judged: _Checked, measures: Sequence[Measure]) -> Iterator[Finding]:
    for measure in measures:
        if measure.name != "R" or not isinstance(measure.k, int):
            continue
        counts = relevant_counts(judged.qrels, least_rel([measure]))
        over = np.flatnonzero(counts > measure.k)
        known = np.where(counts > 0, np.minimum(counts, measure.k) / np.maximum(counts, 1), np.nan)
        if not len(over) or (reach := measure.mean(known)) >= _NEARLY:
            continue
        yield judged.queries(
            RECALL_OUT_OF_REACH,
            f"{len(over)} of {many(len(counts), 'judged query')} "
            f"{inflect(len(over), 'has', 'have')} more than {measure.k} relevant documents: "
            f"{measure} can be at most {reach:.4f}",
            over,
            [e for run in judged.runs for e in run.effects([reach], "the maximum possible", measures=[measure])],
        )


def _only_relevant(judged: _Checked, rel: float) -> Iterator[Finding]:
    values = judged.table.values
    relevant = int((values >= rel).sum())
    if not relevant or ((values >= 0) & (values < rel)).any():
        return
    known = [(run.name, means(run.joined, [parse("Judged@10")])[0]) for run in judged.runs]
    shares = ", ".join(f"{name} {Ratio(share):.3f}" for name, share in known)
    yield ONLY_RELEVANT.finding(
        f"{many(relevant, 'judgment')}, all of relevant documents{shares and '; Judged@10: '}{shares}",
        judged.source,
        relevant,
        len(values),
        "judgment",
    )
