"""A query as the slow loops take it: plain Python data, and nothing of rankgauge."""

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
        """The same without the documents that nobody judged."""
        return Seen([doc for doc in self.ranking if self.grades.get(doc, -1) >= 0], self.grades)


def ranked(scores: Mapping[str, float]) -> list[str]:
    """Score descending, then document id descending by its UTF-8 bytes: the order of trec_eval."""
    by_id = sorted(scores, key=lambda doc: doc.encode(), reverse=True)
    return sorted(by_id, key=lambda doc: -scores[doc])
