"""What measures need, worked out once for all runs that are evaluated by them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rankgauge.data.judged_run import Values
from rankgauge.errors import InputError
from rankgauge.measures.compiled import program, step, step_of
from rankgauge.measures.declaration import SPECIAL
from rankgauge.measures.measure import Measure, parse

# Depth of the judged share in notes, without a deeper cut-off.
JUDGED_AT = 10
# Of these a perfect value needs every relevant document in its best place.
_WHOLE = {"AP", "nDCG", "Rprec"}


class Plan:
    """What measures need, worked out once for all runs that are evaluated by them.

    Attributes:
        measures: The measures.
        columns: Their numbers, except for the special ones.
        special: The numbers of those that read special judgments.
        reads: Their input, such as ``subtopics``; empty without any.
        of_grades: The numbers of those that read how relevant a document is.
        of_judgments: Those of the others.
        depths: Their cut-offs and 10, ascending: where it is said how much was judged.
        deepest: The deepest of their cut-offs, 10 without one.
        first_ranks: FirstRel for each relevance level that a reciprocal rank has: its mean hides
            where the first relevant documents stand; the notes say it.
        separate_judged: Whether any tells documents judged not relevant from those not judged.
        deepest_asked: The deepest of their cut-offs, 0 without one.
        level: The lowest relevance level, if it is not above 1: who asks for more means it.
        recalls: Those that are recall at a cut-off.
        whole: The numbers of those that are 1 only where nothing could be better at any rank.
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
        self.deepest_asked = depths[-1] if depths else 0
        levels = [rel for m in measures if (rel := _level(m)) is not None]
        self.level = min(levels, default=0.0)
        if self.level > 1:
            self.level = 0.0
        self.recalls = [m for m in measures if m.name == "R" and not dict(m.params).get("norm")]
        self.whole = [n for n in self.columns if measures[n].name in _WHOLE]

    @cached_property
    def open(self) -> tuple[int, ...]:
        """The numbers of those without a closed form for the mean over all orders of ties."""
        return tuple(n for n in self.columns if not self.measures[n].has_tie_mean)

    @cached_property
    def compiled(self) -> tuple[int, ...]:
        """The numbers of the measures that the compiled core computes."""
        return tuple(n for n in self.columns if step_of(self.measures[n]) is not None)

    @cached_property
    def program(self) -> Values | None:
        """Work of the compiled core: its measures, and what the notes tell besides.

        The columns of `Measured`, one after the other; None if it does not know one of the notes.
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
        """Refuse measures of special judgments under policies that order by grade."""
        if self.special:
            known = {"best": "best order", "worst": "worst order"}
            raise InputError(
                f"{', '.join(str(self.measures[n]) for n in self.special)}: the "
                f"{known.get(ties, 'mean over all orders')} of equal scores is not available "
                f"for measures of {self.reads}",
                where=f"ties={ties}",
                fix="omit it, or use ties='trec' or ties='input'",
            )

    def refuse_open(self, draws: int) -> None:
        """Refuse measures whose mean over all orders of equal scores is not known."""
        if self.open and not draws:
            raise InputError(
                f"{', '.join(str(self.measures[n]) for n in self.open)}: no closed form for the "
                "mean over all orders of equal scores",
                where="ties=mean",
                fix="omit it, or estimate it from random orders: evaluate(..., draws=1000) "
                "(--draws 1000)",
            )

    @cached_property
    def condensed(self) -> tuple[Measure, ...]:
        """The measures without documents that have no judgment, where they take that."""
        return tuple(m(judged_only=True) if _condenses(m) else m for m in self.measures)

    @cached_property
    def all_condensed(self) -> bool:
        """Whether none of the measures reads unjudged documents then."""
        return all(map(_condenses, self.measures))


def _sole(special: Sequence[Measure]) -> str:
    """Return the kind of special judgments that these measures read; empty without any."""
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
    """Return whether it can do without the documents that have no judgment."""
    return "judged_only" in measure.declaration.words


def _reads_judged(measure: Measure) -> bool:
    """Return whether it distinguishes documents judged not relevant from unjudged ones."""
    gain = dict(measure.params).get("gain")
    gains_for_nothing = isinstance(gain, tuple) and dict(gain).get(0.0, 0.0) > 0
    return measure.declaration.reads == "judged" or gains_for_nothing
