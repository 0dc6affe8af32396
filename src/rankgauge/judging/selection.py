"""The choice of the next task: which documents to show, and in which order."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

__all__ = ["QuestionState", "is_resolved", "next_documents"]


@dataclass(frozen=True, slots=True)
class QuestionState:
    """What is known of one question when the next task is chosen.

    Attributes:
        documents: The pool.
        judgments: Of each counted judgment the documents shown, and those chosen, the best first
            (empty: none of them).
        pending: The sets of documents that are reserved for judges now.
        seen: The sets that were shown to the judge who asks.
    """

    documents: tuple[str, ...]
    judgments: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    pending: tuple[frozenset[str], ...] = ()
    seen: frozenset[frozenset[str]] = frozenset()


def next_documents(
    state: QuestionState, shown: int, *, views: int, at_random: bool, rng: random.Random
) -> tuple[str, ...] | None:
    """Return the documents of the next task, in any order; None if no set is left.

    Args:
        state: What is known of the question.
        shown: How many documents a task shows.
        views: How often each document is shown before tasks are chosen by what they would tell.
        at_random: Whether to draw the documents at random.
        rng: The source of all random draws.
    """
    shown = min(shown, len(state.documents))
    count = Counter(each for documents, _ in state.judgments for each in documents)
    count.update(each for items in state.pending for each in items)
    for _ in range(60):
        order = rng.sample(state.documents, len(state.documents))
        if not at_random and min(count[each] for each in order) < views:
            order.sort(key=lambda each: count[each])
        found = order[:shown]
        if found and frozenset(found) not in state.seen:
            return tuple(found)
    return None


def is_resolved(state: QuestionState) -> bool:
    """Whether each document is known to be relevant or not, so that no task is needed."""
    return len(state.documents) == 0
