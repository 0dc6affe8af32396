"""One query at a time: its ranking, its judgments, and what is missed at a cut-off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rankgauge.data.model import Qrels, Run
from rankgauge.data.ranking import ranked
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.measures.measure import Measure

__all__ = ["View", "best_first", "ideal", "means", "views"]


@dataclass(frozen=True)
class View:
    """What a run did for one query.

    Attributes:
        query_id: The query.
        docs: Its documents, best rank first.
        scores: Their scores.
        grades: The grade of each judged document (>= 0), retrieved or not.
        rel: The grade from which a document is relevant.
    """

    query_id: str
    docs: tuple[str, ...]
    scores: tuple[float, ...]
    grades: Mapping[str, float]
    rel: float

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """The rank of each retrieved document, from 1."""
        return {doc: rank for rank, doc in enumerate(self.docs, start=1)}

    @cached_property
    def relevant(self) -> tuple[str, ...]:
        """The relevant documents: highest grade first, then best rank."""
        found = [doc for doc, grade in self.grades.items() if grade >= self.rel]
        nowhere = len(self.docs) + 1
        return tuple(sorted(found, key=lambda d: (-self.grades[d], self.ranks.get(d, nowhere), d)))

    def worth(self, doc: str) -> float:
        """The grade of a document; 0 without one."""
        return self.grades.get(doc, 0.0)

    def within(self, doc: str, k: int) -> bool:
        """Whether a document stands in the first k ranks."""
        return self.ranks.get(doc, k + 1) <= k

    def hits(self, k: int) -> int:
        """Relevant documents in the first k ranks."""
        return sum(self.within(doc, k) for doc in self.relevant)

    def missed(self, k: int) -> tuple[str, ...]:
        """Relevant documents below rank k or not retrieved, though a place is ill spent there.

        A place is ill spent if it holds a document of a lower grade (0 without a judgment), or
        none. So with five good documents in the first five, the sixth is not missed.
        """
        top = self.docs[:k]
        least = min(map(self.worth, top)) if len(top) == k else float("-inf")
        return tuple(
            doc for doc in self.relevant
            if not self.within(doc, k) and self.grades[doc] > least
        )  # fmt: skip

    def unjudged(self, k: int) -> tuple[str, ...]:
        """Documents in the first k ranks without a grade >= 0."""
        return tuple(doc for doc in self.docs[:k] if doc not in self.grades)


def views(qrels: Qrels, run: Run, rel: float) -> tuple[View, ...]:
    """One view for each judged query, in the order of the judgments."""
    return tuple(_views(qrels, ranked(run), rel))


def _views(qrels: Qrels, run: Run, rel: float) -> Iterator[View]:
    for query in qrels.query_ids:
        found = run.get(query, {})
        grades = {doc: grade for doc, grade in qrels[query].items() if grade >= 0}
        yield View(query, tuple(found), tuple(found.values()), grades, rel)


def best_first(view: View, docs: Iterable[str]) -> list[str]:
    """Documents by grade, highest first; those of one grade stay in their order."""
    return sorted(docs, key=view.worth, reverse=True)


def ideal(view: View) -> list[str]:
    """The best ranking that the judgments allow: all of some worth, highest grade first."""
    return sorted((d for d in view.grades if view.grades[d] > 0), key=lambda d: (-view.worth(d), d))


def means(
    qrels: Qrels, rankings: Mapping[str, Sequence[str]], measures: Iterable[Measure]
) -> dict[str, float]:
    """The mean of each measure for these rankings, evaluated as a run like any other."""
    return evaluate(qrels, Run.of(rankings), measures).mean()
