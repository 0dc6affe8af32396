"""Another tool's way to a number, as steps away from ours: what is changed, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from rankgauge.core.policies import Policies
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import UnknownName
from rankgauge.measures.measure import Measure

__all__ = ["Case", "Change", "Deviation", "Offer", "Profile"]


class Case(NamedTuple):
    """What a number is made of.

    Attributes:
        qrels: The judgments.
        run: The run.
        measure: The measure.
        policies: What is done where its definition is silent.
    """

    qrels: Qrels
    run: Run
    measure: Measure
    policies: Policies


Change: TypeAlias = Callable[[Case], Case]


@dataclass(frozen=True)
class Deviation:
    """One thing that another tool does otherwise.

    Attributes:
        name: A few words: ``32-bit scores``.
        why: What the tool does, in one sentence.
        of: What it changes: the ``run``, the ``order`` of equal scores (rows of the run and the
            policy for ties), the ``judgments``, a ``policy`` or the ``measure``.
        change: Makes the case that the tool works with of the one before. It never changes what
            `of` does not name.
    """

    name: str
    why: str
    of: Literal["run", "order", "judgments", "policy", "measure"]
    change: Change


class Offer(NamedTuple):
    """The measures of a tool.

    Attributes:
        tool: What it is called.
        words: For each measure (by our name) the parameters that it may have there; one that it
            must have ends in ``!``.
        near: What to ask for instead of measures that it does not have, by name.
        beyond: Why measures that it has cannot be reproduced, by name.
    """

    tool: str
    words: Mapping[str, str]
    near: Mapping[str, str] = {}
    beyond: Mapping[str, str] = {}

    def check(self, measure: Measure) -> None:
        """Nothing, if the tool has the measure, and it can be reproduced.

        Raises:
            UnknownName: Saying what it has, or why not.
        """
        why = self.beyond.get(measure.name)
        if why is not None:
            raise UnknownName(
                f"{measure} of {self.tool} cannot be reproduced: {why}",
                fix="leave it out, or evaluate it without the profile",
            )
        known = self.words.get(measure.name)
        if known is None:
            instead = (
                self.near.get(measure.name) or f"it has {', '.join(map(self._shown, self.words))}"
            )
            raise UnknownName(f"{self.tool} has no {measure}", fix=instead)
        bound = dict(measure.params)
        allowed = [word.rstrip("!") for word in known.split()]
        strange = [word for word in bound if word not in allowed]
        lacking = [
            word[:-1] for word in known.split() if word[-1] == "!" and word[:-1] not in bound
        ]
        if strange or lacking:
            what = f"takes no {strange[0]}" if strange else f"needs {lacking[0]}"
            raise UnknownName(
                f"{self.tool} has no {measure}: {measure.name} {what} there",
                fix=self.near.get(measure.name) or f"ask for {self._shown(measure.name)}",
            )

    def _shown(self, name: str) -> str:
        """Its name as it may be asked for: with ``@k`` where it must have a cut-off."""
        return f"{name}@k" if "k!" in self.words[name].split() else name


@dataclass(frozen=True)
class Profile:
    """How another tool comes to its numbers.

    Attributes:
        name: What it is asked for by: ``pytrec_eval``.
        tool: The tool, and the versions that it was held against.
        deviations: The steps from our number of a measure to the tool's, in the order in which the
            tool takes them; an empty tuple where they agree. It raises `UnknownName` for a measure
            that the tool does not have.
        digits: The decimals that its means are rounded to; None where they are not. Ours never are.
        unrounded: The measures whose means it does not round all the same.
        beware: What of its numbers cannot be reproduced, or what it takes to get them; empty where
            there is nothing to say.

    Example:
        >>> from rankgauge import parse
        >>> from rankgauge.profiles import PROFILES
        >>> [deviation.name for deviation in PROFILES["pytrec_eval"].deviations(parse("nDCG@10"))]
        ['32-bit scores', 'only queries of the run']
    """

    name: str
    tool: str
    deviations: Callable[[Measure], tuple[Deviation, ...]]
    digits: int | None = None
    unrounded: tuple[str, ...] = ()
    beware: str = ""

    def case(self, case: Case) -> Case:
        """The case as the tool works with it: every deviation taken."""
        for deviation in self.deviations(case.measure):
            case = deviation.change(case)
        return case

    def decimals(self, measure: Measure) -> int | None:
        """The decimals that the mean of a measure is rounded to; None where it is not."""
        return None if measure.name in self.unrounded else self.digits
