"""The inputs and special cases of a set of measures, determined once for any number of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any

from rankgauge.data.judged_run import Values
from rankgauge.errors import InputError
from rankgauge.measures.compiled import program, step, step_of
from rankgauge.measures.declaration import SPECIAL
from rankgauge.measures.measure import Measure, parse, parse_all

# Depth of the judged share in notes if no measure has a deeper cut-off.
JUDGED_AT = 10
# Measures whose perfect value requires every relevant document at its ideal rank.
_WHOLE = {"AP", "nDCG", "Rprec"}
DEFAULT_CUTOFFS = (1, 3, 5, 10)
DEFAULT_MEASURES = (
    *(f"{name}@{k}" for k in DEFAULT_CUTOFFS for name in ("P", "R", "F", "Success", "nDCG")),
    "RR",
    "AP",
)


class Plan:
    """The inputs and special cases of a set of measures, determined once for any number of runs.

    Attributes:
        measures: The measures.
        columns: The indices of measures that do not read special judgments.
        special: The indices of measures that read special judgments.
        reads: The kind of special judgments, such as ``subtopics``; empty without special measures.
        of_grades: The indices of measures that read grades.
        of_judgments: The indices of the other measures in `columns`.
        depths: The cut-offs of the measures and 10, ascending: depths of the judged share.
        deepest: The deepest cut-off; 10 without a cut-off.
        first_ranks: FirstRel for each relevance level of a reciprocal rank, for the note on the
            ranks of the first relevant documents, which the mean hides.
        separate_judged: Whether a measure distinguishes documents judged not relevant from unjudged
            ones.
        max_cutoff: The deepest cut-off; 0 without a cut-off.
        level: The lowest relevance level; 0 if it is above 1, which is a deliberate choice.
        recalls: The measures that are recall at a cut-off.
        whole: The indices of measures that are 1 only for an ideal ranking.
    """

    def __init__(self, measures: tuple[Measure, ...]) -> None:
        self.measures = measures
        every = range(len(measures))
        self.special = [n for n in every if measures[n].declaration.reads in SPECIAL]
        self.reads = _sole([measures[n] for n in self.special])
        self.columns = [n for n in every if n not in self.special]
        self.of_grades = [n for n in self.columns if measures[n].declaration.reads == "grades"]
        self.of_judgments = [n for n in self.columns if n not in self.of_grades]
        cutoffs = {value for m in measures for word, value in m.params if word == "k"}
        depths = sorted(map(int, cutoffs))  # type: ignore[arg-type] # k is an int
        self.deepest = depths[-1] if depths else JUDGED_AT
        self.depths = sorted({*depths, JUDGED_AT})
        firsts = (parse("FirstRel")(rel=m.rel) for m in measures if m.name == "RR")
        self.first_ranks = list(dict.fromkeys(firsts))
        self.separate_judged = any(_reads_judged(measure) for measure in measures)
        self.max_cutoff = depths[-1] if depths else 0
        levels = [rel for m in measures if (rel := _level(m)) is not None]
        self.level = min(levels, default=0.0)
        if self.level > 1:
            self.level = 0.0
        self.recalls = [m for m in measures if m.name == "R" and not dict(m.params).get("norm")]
        self.whole = [n for n in self.columns if measures[n].name in _WHOLE]

    @cached_property
    def open(self) -> tuple[int, ...]:
        """Indices of the measures without a closed form for the mean over all orders of ties."""
        return tuple(n for n in self.columns if not self.measures[n].has_tie_mean)

    @cached_property
    def compiled(self) -> tuple[int, ...]:
        """Indices of the measures that the compiled core computes."""
        return tuple(n for n in self.columns if step_of(self.measures[n]) is not None)

    @cached_property
    def program(self) -> Values | None:
        """Instructions for the compiled core: its measures and the data for the notes.

        One instruction for each column of `Measured`; None if the core does not support one of the
        notes.
        """
        if self.special:
            return None
        return program(
            [
                *(step_of(self.measures[n]) for n in self.compiled),
                *(step("Judged", depth) for depth in self.depths),
                *(step("FirstRel", level=first.level) for first in self.first_ranks),
                *(step("Beyond", recall.k, recall.level) for recall in self.recalls),
            ]
        )

    def refuse_special(self, ties: str) -> None:
        """Raise an error for measures of special judgments with a tie policy based on grades."""
        if self.special:
            known = {"best": "best order", "worst": "worst order"}
            raise InputError(
                f"{', '.join(str(self.measures[n]) for n in self.special)}: the "
                f"{known.get(ties, 'mean over all orders')} of equal scores is not available "
                f"for measures of {self.reads}",
                where=f"ties={ties}",
                fix="use ties='trec' (the default) or ties='input'",
            )

    def refuse_open(self, draws: int) -> None:
        """Raise an error for measures with no closed form for the mean over all orders of ties."""
        if self.open and not draws:
            raise InputError(
                f"{', '.join(str(self.measures[n]) for n in self.open)}: no closed form for the "
                "mean over all orders of equal scores",
                where="ties=mean",
                fix="omit ties=mean, or estimate the mean from random orders: evaluate(..., draws=1000) (--draws 1000)",
            )

    @cached_property
    def condensed(self) -> tuple[Measure, ...]:
        """The measures, ignoring unjudged documents where they support it."""
        return tuple(m(judged_only=True) if _condenses(m) else m for m in self.measures)

    @cached_property
    def all_condensed(self) -> bool:
        """Whether all measures can ignore unjudged documents."""
        return all(map(_condenses, self.measures))


def _sole(special: Sequence[Measure]) -> str:
    """Return the kind of special judgments that these measures read; empty without measures."""
    kinds: dict[str, Measure] = {}
    for measure in special:
        kinds.setdefault(measure.declaration.reads, measure)
    if len(kinds) > 1:
        (one, first), (other, second), *_ = kinds.items()
        raise InputError(
            f"{first} reads {one} and {second} reads {other}: no judgments have both",
            where="measures",
            fix="evaluate each separately with the judgments it reads",
        )
    return next(iter(kinds), "")


def _level(measure: Measure) -> float | None:
    """Return the relevance level of a binary measure."""
    return measure.level if measure.declaration.reads in {"binary", *SPECIAL} else None


def _condenses(measure: Measure) -> bool:
    """Return whether a measure can ignore unjudged documents."""
    return "judged_only" in measure.declaration.words


def _reads_judged(measure: Measure) -> bool:
    """Return whether a measure distinguishes documents judged not relevant from unjudged ones."""
    gain = dict(measure.params).get("gain")
    gains_for_nothing = isinstance(gain, tuple) and dict(gain).get(0.0, 0.0) > 0
    return measure.declaration.reads == "judged" or gains_for_nothing


def make_plan(measures: str | Measure | Iterable[str | Measure] | None, dialect: str | None = None) -> Plan:
    """Parse measures and determine their inputs."""
    names: tuple[Any, ...]
    if measures is None:
        names, dialect = DEFAULT_MEASURES, None
    elif isinstance(measures, str | Measure):
        names = (measures,)
    elif isinstance(measures, Iterable):
        names = tuple(measures)
    else:
        raise InputError(
            f"got {measures!r:.60} for the measures", where="measures", fix='pass names, such as ["nDCG@10", "AP"]'
        )
    for name in names:
        if not isinstance(name, str | Measure):
            parse_all(name)  # raises the error
    return _cached_plan(names, dialect)


@lru_cache(maxsize=256)
def _cached_plan(names: tuple[str | Measure, ...], dialect: str | None) -> Plan:
    """Return the plan of these measures; cached for loops over runs."""
    # Drop repeated measures: column names are unique.
    found = dict.fromkeys(measure for name in names for measure in parse_all(name, dialect))
    if not found:
        raise InputError("no measure was given", where="measures", fix='name one, such as "nDCG@10"')
    return Plan(tuple(found))
