"""A query in the form of the slow loops: plain Python data, nothing from rankgauge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = float | None


@dataclass(frozen=True)
class Seen:
    """One query: the ranking, best document first, and its judgments."""

    ranking: list[str]
    grades: dict[str, float]

    def judged_only(self) -> Seen:
        """Return the query without unjudged documents."""
        return Seen([doc for doc in self.ranking if self.grades.get(doc, -1) >= 0], self.grades)


def ranked(scores: Mapping[str, float]) -> list[str]:
    """Rank by score descending, then id descending by UTF-8 bytes, the order of trec_eval."""
    by_id = sorted(scores, key=lambda doc: doc.encode(), reverse=True)
    return sorted(by_id, key=lambda doc: -scores[doc])
