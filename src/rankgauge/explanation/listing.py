"""One query as a person would write it down: the ranking, and beside it the judgments.

Made by loops of its own, not by the join: what is worked out from it is a second opinion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rankgauge.core.ids import show_id
from rankgauge.data.model import Qrels, Run
from rankgauge.profiles.deviations import Case

__all__ = ["Listed", "Listing", "listing_of"]


class Listed(NamedTuple):
    """A document of a ranking.

    Attributes:
        rank: Where it stands, from 1.
        document: Its id, as text.
        score: Its score.
        grade: Its grade; None without a judgment.
        first: The first rank of the group of equal scores that it stands in; its rank if alone.
        last: The last one.
    """

    rank: int
    document: str
    score: float
    grade: float | None
    first: int
    last: int

    @property
    def tied(self) -> bool:
        """Whether another document has the same score."""
        return self.first < self.last

    @property
    def judged(self) -> bool:
        """Whether it has a grade of 0 or more; a negative one means that nobody judged it."""
        return self.grade is not None and self.grade >= 0

    def reaches(self, rel: float) -> bool:
        """Whether it is relevant at this level."""
        return self.grade is not None and self.grade >= rel


@dataclass(frozen=True)
class Listing:
    """A query: its ranking and its judgments.

    Attributes:
        query: Its id, as text.
        documents: The ranking, best first.
        judgments: (document, grade), the best grades first; also of documents not retrieved.
        in_run: Whether the run has the query.
    """

    query: str
    documents: tuple[Listed, ...]
    judgments: tuple[tuple[str, float], ...]
    in_run: bool

    def relevant(self, rel: float) -> int:
        """How many documents are relevant, retrieved or not."""
        return sum(grade >= rel for _, grade in self.judgments)

    def within(self, k: int | None) -> tuple[Listed, ...]:
        """The first k documents."""
        return self.documents[:k]

    def missed(self) -> tuple[tuple[str, float], ...]:
        """What has a grade above 0 and was not retrieved."""
        found = {listed.document for listed in self.documents}
        return tuple((name, g) for name, g in self.judgments if g > 0 and name not in found)

    def judged_only(self) -> Listing:
        """The same without the documents that have no grade, ranked anew."""
        kept = [listed for listed in self.documents if listed.judged]
        return replace(self, documents=_numbered(kept))


def listing_of(case: Case, query: bytes) -> Listing:
    """A query of a case; one that the run does not have has an empty ranking."""
    judgments = _rows(case.qrels, query)
    grades = dict(judgments)
    table = case.run.without_repeats(case.policies.duplicates)
    found = _rows(replace(case.run, table=table), query)
    in_run = query in case.run.query_index
    best = sorted(range(len(found)), key=lambda row: _place(case, found, grades, row))
    ranking = [found[row] for row in best]
    documents = [
        Listed(0, show_id(document), score, grades.get(document), 0, 0)
        for document, score in ranking
    ]
    shown = sorted(((show_id(d), grade) for d, grade in judgments), key=lambda pair: -pair[1])
    whole = Listing(show_id(query), _numbered(documents), tuple(shown), in_run)
    return whole.judged_only() if case.policies.unjudged == "removed" else whole


def _rows(pairs: Qrels | Run, query: bytes) -> list[tuple[bytes, float]]:
    number = pairs.query_index.get(query)
    if number is None:
        return []
    start, stop = pairs.table.offsets[number : number + 2].tolist()
    docs = pairs.table.docs.take(slice(start, stop)).tolist()
    return list(zip(docs, pairs.table.values[start:stop].tolist(), strict=True))


def _place(
    case: Case, found: Sequence[tuple[bytes, float]], grades: dict[bytes, float], row: int
) -> tuple[float, tuple[float, ...]]:
    """What a document is put in order by: its score, then the rule for equal scores."""
    document, score = found[row]
    match case.policies.ties:
        case "input":
            rule: tuple[float, ...] = (row,)
        case "best" | "worst" as side:
            # What nobody judged stands last by best, and first by worst.
            grade = grades.get(document, -math.inf)
            rule = (-grade if side == "best" else grade, *_descending(document))
        case _:
            rule = _descending(document)
    return -score, rule


def _descending(document: bytes) -> tuple[float, ...]:
    """What puts ids in descending order when it ascends; of two that begin alike the longer."""
    return (*(-byte - 1 for byte in document), 0)


def _numbered(documents: Sequence[Listed]) -> tuple[Listed, ...]:
    """The documents with their ranks, and the ranks that each group of equal scores spans."""
    spans: dict[float, list[int]] = {}
    for rank, listed in enumerate(documents, start=1):
        spans.setdefault(listed.score + 0.0, []).append(rank)
    return tuple(
        listed._replace(
            rank=rank, first=spans[listed.score + 0.0][0], last=spans[listed.score + 0.0][-1]
        )
        for rank, listed in enumerate(documents, start=1)
    )
