"""Problems of judgments: repeats, grades, queries with nothing to find."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankgauge.checks.effects import Look, least_rel, means, values_of
from rankgauge.checks.problems import Problem
from rankgauge.checks.survey import SHOWN, each_once, locations_of, rejoined
from rankgauge.core.findings import FINDING_KINDS, Effect, Location
from rankgauge.core.ids import IntArray, show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import many
from rankgauge.data.model import Qrels
from rankgauge.errors import InputError
from rankgauge.measures.measure import Measure, parse

__all__ = ["Scale", "judgment_problems", "one_each"]

_POOLED = -2.0
# A grade so many times the next one below it is taken for a mistake.
_FAR = 10.0
_RARE = 50
# A mean of R that can reach as much as this is not held back.
_NEARLY = 0.99


@dataclass(frozen=True)
class Scale:
    """The grades that are possible.

    Attributes:
        low: The lowest.
        high: The highest.
    """

    low: float
    high: float

    @classmethod
    def of(cls, text: str) -> Scale:
        """A scale from text such as ``0..3``.

        Raises:
            InputError: If it is none.
        """
        found = re.fullmatch(r"\s*(-?[0-9.]+?)\s*\.\.\s*(-?[0-9.]+)\s*", text)
        try:
            low, high = (float(part) for part in found.groups()) if found else (1.0, 0.0)
        except ValueError:
            low, high = 1.0, 0.0
        if low > high:
            raise InputError(
                f"got {text!r} for a scale", where="scale",
                fix="write the lowest and the highest grade: 0..3",
            )  # fmt: skip
        return cls(low, high)

    def outside(self, grades: np.ndarray) -> IntArray:
        """The rows of grades that are not on the scale; -1 and -2 mean not judged."""
        whole = self.low.is_integer() and self.high.is_integer()
        off = (grades < self.low) | (grades > self.high)
        if whole:
            off |= grades != np.rint(grades)
        off &= ~((grades < 0) & (grades >= _POOLED) & (grades == np.rint(grades)))
        return np.flatnonzero(off)


def one_each(table: PairTable, which: str = "first") -> PairTable:
    """Judgments with one grade of each pair.

    Args:
        table: The judgments.
        which: ``first`` of its grades, ``highest`` or ``lowest``.
    """
    repeats = table.repeats()
    if not repeats:
        return table
    keep = np.ones(len(table), dtype=bool)
    for group in repeats:
        keep[group] = False
        grades = table.values[group]
        at = {"first": 0, "highest": int(np.argmax(grades)), "lowest": int(np.argmin(grades))}
        keep[group[at[which]]] = True
    return table.keep(np.flatnonzero(keep))


def judgment_problems(
    table: PairTable, source: str, looks: Sequence[Look], measures: tuple[Measure, ...],
    *, scale: Scale | None, asked: bool,
) -> Iterator[Problem]:  # fmt: skip
    """What is wrong with judgments, and what it does to each run.

    Args:
        table: The judgments as they are.
        source: Where they stand.
        looks: The runs beside them, each pair judged once.
        measures: The measures.
        scale: The scale of the grades, if it is known.
        asked: Whether the measures were asked for.
    """
    yield from _repeats(table, source, looks)
    once = one_each(table)
    rel = least_rel(measures)
    yield from _nothing_to_find(once, source, looks, rel)
    yield from _below_rel(once, source, looks, rel)
    yield from _out_of_scale(once, source, looks, scale)
    yield from _above_top(once, source, looks, measures)
    yield from _out_of_reach(once, source, looks, measures if asked else (parse("R@10"),))
    yield from _only_relevant(once, source, looks, rel)


def _repeats(table: PairTable, source: str, looks: Sequence[Look]) -> Iterator[Problem]:
    alike: list[int] = []
    apart: list[int] = []
    for group in table.repeats():
        same = len(set(table.values[group].tolist())) == 1
        (alike if same else apart).append(group[1])
    if alike:
        yield Problem(
            FINDING_KINDS["J101"], source,
            f"{many(len(alike), 'document')} judged again for the same query, with the same grade",
            len(alike), len(table), "judgment", locations_of(table, alike, source),
            tuple(e for look in looks for e in look.refused("each judgment once")),
            FINDING_KINDS["J101"].fix,
        )  # fmt: skip
    if apart:
        found: list[Effect] = []
        for which in ("lowest", "highest"):
            qrels = Qrels(one_each(table, which))
            for look in looks:
                then = means(rejoined(look.survey.given, qrels, each_once), look.measures)
                found += [
                    replace(effect, now=math.nan)
                    for effect in look.effects(then, f"the {which} of the grades")
                ]
        yield Problem(
            FINDING_KINDS["J102"], source,
            f"{many(len(apart), 'document')} judged again for the same query, with another grade",
            len(apart), len(table), "judgment", locations_of(table, apart, source), tuple(found),
            FINDING_KINDS["J102"].fix,
        )  # fmt: skip


def _relevant(table: PairTable, rel: float) -> IntArray:
    """How many relevant documents each query has."""
    counts = np.concatenate([[0], np.cumsum(table.values >= rel)])
    found: IntArray = counts[table.offsets[1:]] - counts[table.offsets[:-1]]
    return found


def _locations(table: PairTable, numbers: IntArray, source: str) -> tuple[Location, ...]:
    names = [show_id(table.queries[number]) for number in numbers[:SHOWN].tolist()]
    return tuple(Location(source, query=name) for name in names)


def _nothing_to_find(
    table: PairTable, source: str, looks: Sequence[Look], rel: float
) -> Iterator[Problem]:
    counts = _relevant(table, rel)
    without = np.flatnonzero(counts == 0)
    if not len(without):
        return
    found: list[Effect] = []
    rest = np.flatnonzero(counts > 0)
    for look in looks:
        then = means(look.survey.joined, look.measures, rest)
        found += look.effects(then, "only queries with a relevant document")
    yield Problem(
        FINDING_KINDS["J103"], source,
        f"{len(without)} of {many(len(counts), 'judged query')} have no document of grade {rel:g} "
        "or more",
        len(without), len(counts), "query", _locations(table, without, source), tuple(found),
        FINDING_KINDS["J103"].fix,
    )  # fmt: skip


def _below_rel(
    table: PairTable, source: str, looks: Sequence[Look], rel: float
) -> Iterator[Problem]:
    rows = np.flatnonzero((table.values > 0) & (table.values < min(rel, 1.0)))
    if not len(rows):
        return
    lowest = float(table.values[rows].min())
    found: list[Effect] = []
    for look in looks:
        own = [m for m in look.measures if m.level is not None] or [parse("AP")]
        lower = [measure(rel=lowest) for measure in own]
        joined = look.survey.joined
        found += [
            Effect(look.name, str(measure), now, then, f"rel={lowest:g}")
            for measure, now, then in zip(
                own, means(joined, own), means(joined, lower), strict=True
            )
        ]
    yield Problem(
        FINDING_KINDS["J104"], source,
        f"{many(len(rows), 'judgment')} with a grade between 0 and {min(rel, 1.0):g}, such as "
        f"{lowest:g}: never relevant",
        len(rows), len(table), "judgment", locations_of(table, rows, source), tuple(found),
        f"name the level, as in AP(rel={lowest:g}), or write the grades as whole numbers",
    )  # fmt: skip


def _out_of_scale(
    table: PairTable, source: str, looks: Sequence[Look], scale: Scale | None
) -> Iterator[Problem]:
    rows = _strange(table.values) if scale is None else scale.outside(table.values)
    if not len(rows):
        return
    grades = sorted(set(table.values[rows].tolist()))
    shown = ", ".join(f"{grade:g}" for grade in grades[:SHOWN])
    kept = np.ones(len(table), dtype=bool)
    kept[rows] = False
    qrels = Qrels(table.keep(np.flatnonzero(kept)))
    found: list[Effect] = []
    for look in looks:
        then = means(rejoined(look.survey.given, qrels, each_once), look.measures)
        found += look.effects(then, "without these judgments")
    which = "the others" if scale is None else f"the scale {scale.low:g}..{scale.high:g}"
    yield Problem(
        FINDING_KINDS["J105"], source,
        f"{many(len(rows), 'grade')} apart from {which}: {shown}",
        len(rows), len(table), "judgment", locations_of(table, rows, source), tuple(found),
        FINDING_KINDS["J105"].fix,
    )  # fmt: skip


def _strange(grades: np.ndarray) -> IntArray:
    """Grades below -2, few decimals among whole numbers, and few that are far above the others."""
    few = max(1, len(grades) // _RARE)
    strange = grades < _POOLED
    broken = grades != np.rint(grades)
    if 0 < broken.sum() <= few < (grades > 0).sum():
        strange |= broken
    levels = sorted(set(grades[grades > 0].tolist()))
    for below, level in itertools.pairwise(levels):
        far = grades >= level
        if level >= _FAR * max(below, 1.0) and far.sum() <= few:
            strange |= far
    return np.flatnonzero(strange)


def _above_top(
    table: PairTable, source: str, looks: Sequence[Look], measures: Sequence[Measure]
) -> Iterator[Problem]:
    highest = float(table.values.max(initial=0.0))
    own = [m for m in measures if m.name == "ERR" and highest > float(m.top)]  # type: ignore[arg-type] # a number
    if not own:
        return
    top = min(float(m.top) for m in own)  # type: ignore[arg-type] # a number
    rows = np.flatnonzero(table.values > top)
    found: list[Effect] = []
    for look in looks:
        for measure in own:
            then = means(look.survey.joined, [measure(top=highest)])[0]
            found.append(Effect(look.name, str(measure), math.nan, then, f"top={highest:g}"))
    yield Problem(
        FINDING_KINDS["J106"], source,
        f"{many(len(rows), 'grade')} above {top:g}, the top grade of {own[0]}; the highest is "
        f"{highest:g}",
        len(rows), len(table), "judgment", locations_of(table, rows, source), tuple(found),
        f"write {own[0](top=highest)}",
    )  # fmt: skip


def _out_of_reach(
    table: PairTable, source: str, looks: Sequence[Look], measures: Sequence[Measure]
) -> Iterator[Problem]:
    for measure in measures:
        if measure.name != "R" or not isinstance(measure.k, int):
            continue
        rel = least_rel([measure])
        counts = _relevant(table, rel)
        over = np.flatnonzero(counts > measure.k)
        if not len(over):
            continue
        known = np.where(counts > 0, np.minimum(counts, measure.k) / np.maximum(counts, 1), np.nan)
        reach = measure.mean(known)
        if reach >= _NEARLY:
            continue
        found = []
        for look in looks:
            values = values_of(look.survey.joined, measure)
            now = math.nan if values is None else measure.mean(values)
            by = "the highest it can be"
            found.append(Effect(look.name, str(measure), now, reach, by))
        yield Problem(
            FINDING_KINDS["J107"], source,
            f"{len(over)} of {many(len(counts), 'judged query')} have more than {measure.k} "
            f"relevant documents: {measure} can reach {reach:.4f} at most",
            len(over), len(counts), "query", _locations(table, over, source), tuple(found),
            FINDING_KINDS["J107"].fix,
        )  # fmt: skip


def _only_relevant(
    table: PairTable, source: str, looks: Sequence[Look], rel: float
) -> Iterator[Problem]:
    relevant = int((table.values >= rel).sum())
    if not relevant or bool(((table.values >= 0) & (table.values < rel)).any()):
        return
    known = [means(look.survey.joined, [parse("Judged@10")])[0] for look in looks]
    shares = ", ".join(f"{look.name} {share:.3f}" for look, share in zip(looks, known, strict=True))
    yield Problem(
        FINDING_KINDS["J108"], source,
        f"{many(relevant, 'judgment')}, each of a relevant document"
        f"{shares and '; Judged@10: '}{shares}",
        relevant, len(table), "judgment", (), (), FINDING_KINDS["J108"].fix,
    )  # fmt: skip
