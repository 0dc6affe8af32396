"""What a tool can compute at all, and what to ask for instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rankgauge.errors import UnknownName
from rankgauge.measures.measure import Measure

__all__ = ["Offer"]


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
