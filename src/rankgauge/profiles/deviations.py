"""Deviations of another tool's computation from ours, with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Literal, NamedTuple, TypeAlias

from rankgauge.core.policies import Policies
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import UnknownName
from rankgauge.measures.measure import Measure


class Case(NamedTuple):
    """The inputs of an evaluation with one measure.

    Attributes:
        qrels: The judgments.
        run: The run.
        measure: The measure.
        policies: The policies.
    """

    qrels: Qrels
    run: Run
    measure: Measure
    policies: Policies


Change: TypeAlias = Callable[[Case], Case]


@dataclass(frozen=True)
class Deviation:
    """A deviation of another tool.

    Attributes:
        name: A short name: ``32-bit scores``.
        why: What the tool does, in one sentence.
        of: What it changes: the ``run``, the ``order`` of equal scores (rows of the run and the tie
            policy), the ``judgments``, a ``policy``, or the ``measure``.
        change: Function that applies the deviation to a case. It changes only the part named by
            `of`.
    """

    name: str
    why: str
    of: Literal["run", "order", "judgments", "policy", "measure"]
    change: Change


def apply_all(case: Case, deviations: Iterable[Deviation]) -> Case:
    """Apply the deviations in order."""
    return reduce(lambda changed, deviation: deviation.change(changed), deviations, case)


class Offer(NamedTuple):
    """The measures of a tool."""

    tool: str  # name of the tool
    # For each measure (by our name), the parameters that the tool supports; required ones end in
    # `!`.
    words: Mapping[str, str]
    # What to use instead of unsupported measures, by name.
    near: Mapping[str, str] = {}
    beyond: Mapping[str, str] = {}  # why other measures of the tool cannot be reproduced, by name

    def check(self, measure: Measure) -> None:
        """Refuse a measure that the tool does not have, or that cannot be reproduced."""
        name = measure.name
        if name in self.beyond:
            raise UnknownName(
                f"{measure} of {self.tool} cannot be reproduced: {self.beyond[name]}",
                fix="omit it, or evaluate it without the profile",
            )
        if name not in self.words:
            has = f"it has {', '.join(map(self._shown, self.words))}"
            raise UnknownName(f"{self.tool} has no {measure}", fix=self.near.get(name) or has)
        words, bound = self.words[name].split(), dict(measure.params)
        allowed = [word.rstrip("!") for word in words]
        faults = [f"takes no {word}" for word in bound if word not in allowed]
        faults += [f"needs {w[:-1]}" for w in words if w[-1] == "!" and w[:-1] not in bound]
        if faults:
            raise UnknownName(
                f"{self.tool} has no {measure}: {name} {faults[0]} there",
                fix=self.near.get(name) or f"use {self._shown(name)}",
            )

    def _shown(self, name: str) -> str:
        """Return the name as the user must write it: with ``@k`` if a cutoff is required."""
        return f"{name}@k" if "k!" in self.words[name].split() else name


@dataclass(frozen=True)
class Profile:
    """How another tool computes its numbers.

    Attributes:
        name: Name of the profile, such as ``pytrec_eval``.
        tool: The tool, and the versions it was verified against.
        steps: Function that returns the deviations for a measure, in the order of application.
        offer: The measures of the tool.
        digits: Number of decimals to which means are rounded; None if they are not.
        unrounded: Measures whose means are nevertheless not rounded.
        beware: Numbers that cannot be reproduced, or their requirements; empty if there are none.

    Example:
        >>> from rankgauge import parse
        >>> from rankgauge.profiles import PROFILES
        >>> [deviation.name for deviation in PROFILES["pytrec_eval"].deviations(parse("nDCG@10"))]
        ['32-bit scores', 'only queries of the run']
    """

    name: str
    tool: str
    steps: Callable[[Measure], tuple[Deviation, ...]]
    offer: Offer | None = None
    digits: int | None = None
    unrounded: tuple[str, ...] = ()
    beware: str = ""

    def deviations(self, measure: Measure) -> tuple[Deviation, ...]:
        """Return the deviations of the tool from our defaults for a measure; empty if they agree.

        Raises:
            UnknownName: If the tool does not have the measure, or it cannot be reproduced.
        """
        if self.offer is not None:
            self.offer.check(measure)
        return self.steps(measure)

    def case(self, case: Case) -> Case:
        """Apply all deviations of the tool to a case."""
        return apply_all(case, self.deviations(case.measure))

    def decimals(self, measure: Measure) -> int | None:
        """Return the number of decimals to which means of a measure are rounded, or None."""
        return None if measure.name in self.unrounded else self.digits
