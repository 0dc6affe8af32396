"""Selection of the documents of the next task."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rankgauge.stats import NONE, PlackettLuce, fit_plackett_luce, ranking_stages

# Number of random sets of documents from which the most informative is selected.
_SETS = 60
# A document is resolved if it was shown this often and its probability of relevance is outside
# these bounds.
_UNSURE, _VIEWS = (0.05, 0.95), 2


@dataclass(frozen=True, slots=True)
class QuestionState:
    """State of a question, from which the next task is selected.

    Attributes:
        documents: The pool.
        judgments: For each counted judgment, the documents shown and those chosen, best first
            (empty: none was chosen; None: all were graded).
        pending: The sets of documents currently reserved for judges.
        seen: The sets already shown to the requesting judge.
    """

    documents: tuple[str, ...]
    judgments: tuple[tuple[tuple[str, ...], tuple[str, ...] | None], ...] = ()
    pending: tuple[frozenset[str], ...] = ()
    seen: frozenset[frozenset[str]] = frozenset()

    @property
    def shown(self) -> Counter[str]:
        """The number of times each document was shown."""
        return Counter(each for documents, _ in self.judgments for each in documents)


def fit_question(state: QuestionState, *, prior_sd: float = 3.0) -> tuple[tuple[str, ...], PlackettLuce]:
    """Fit a Plackett-Luce model to the choices of a question.

    Args:
        state: The pool and the judgments.
        prior_sd: As in ``rankgauge.stats.fit_plackett_luce``.

    Returns:
        The documents of the pool, followed by others that were shown; and the model of these
        documents, in this order.

    Example:
        >>> names, fit = fit_question(QuestionState(("a", "b"), ((("a", "b"), ("b",)),)))
        >>> names, fit.relevance.round(2).tolist()
        (('a', 'b'), [0.35, 0.86])
    """
    names = tuple(dict.fromkeys([*state.documents, *state.shown]))
    index = {name: at for at, name in enumerate(names)}
    offered: list[list[int]] = []
    chosen: list[int] = []
    for documents, best in state.judgments:
        if best is not None:
            sets, picks = ranking_stages([index[each] for each in documents], [index[each] for each in best] or [NONE])
            offered += sets
            chosen += picks
    width = max(map(len, offered), default=0)
    padded = [row + [NONE] * (width - len(row)) for row in offered]
    sets_array = np.array(padded, dtype=np.int64).reshape(len(offered), width)
    return names, fit_plackett_luce(len(names), sets_array, chosen, prior_sd=prior_sd)


def next_documents(
    state: QuestionState, shown: int, *, views: int, at_random: bool, rng: random.Random
) -> tuple[str, ...] | None:
    """Return the documents of the next task, in arbitrary order, or None if no set is left.

    Until each document was shown `views` times, the least shown documents are selected. After that,
    the D-optimal set of 60 random sets is selected: the set with the largest log det(I + F S),
    where F is the expected information of the choice and S the posterior covariance of the
    utilities. Pending choices are included with their expected information. A set is never shown
    to the same judge twice.

    Args:
        state: The state of the question.
        shown: Number of documents in a task.
        views: Presentations of each document before sets are chosen by expected information.
        at_random: Whether to draw the documents at random, for overlap and audits of the model.
        rng: The random generator.

    Example:
        >>> import random
        >>> state = QuestionState(("a", "b", "c"), ((("a", "b"), ("b",)),))
        >>> sorted(next_documents(state, 2, views=1, at_random=False, rng=random.Random(0)))
        ['a', 'c']
    """
    shown = min(shown, len(state.documents))
    sets = _draw_sets(state, shown, rng)
    if not sets or at_random:
        return sets[0] if sets else None
    count = state.shown
    count.update(each for items in state.pending for each in items)
    fewest = min(count[each] for each in state.documents)
    if fewest < views or not any(best is not None for _, best in state.judgments):
        for _ in range(_SETS):
            order = rng.sample(state.documents, len(state.documents))
            least = tuple(sorted(order, key=lambda each: count[each])[:shown])
            if frozenset(least) not in state.seen:
                return least
        return min(sets, key=lambda each: sum(count[name] for name in each))
    names, fit = fit_question(state)
    index = {name: at for at, name in enumerate(names)}
    expected = fit.expecting([[index[each] for each in items] for items in state.pending])
    gain = expected.information([[index[each] for each in items] for items in sets])
    # Rounded, so that sets tie on every machine or on none.
    return sets[int(gain.round(9).argmax())]


def is_resolved(state: QuestionState) -> bool:
    """Return whether the relevance of each document is known, so that no more tasks are needed.

    The relevance of a document is known if it was shown at least twice and its posterior
    probability of a relevance above 0.5 is below 0.05 or above 0.95.

    Example:
        >>> is_resolved(QuestionState(("a",), ((("a",), ("a",)),) * 9))
        True
    """
    count = state.shown
    if min((count[each] for each in state.documents), default=_VIEWS) < _VIEWS:
        return False
    above = fit_question(state)[1].probability_above()[: len(state.documents)]
    low, high = _UNSURE
    return bool(((above < low) | (above > high)).all())


def _draw_sets(state: QuestionState, shown: int, rng: random.Random) -> list[tuple[str, ...]]:
    """Return at most 60 random sets that this judge has not seen."""
    if not shown:
        return []
    if math.comb(len(state.documents), shown) <= _SETS:
        sets = list(combinations(state.documents, shown))
        rng.shuffle(sets)
    else:
        sets = [tuple(rng.sample(state.documents, shown)) for _ in range(_SETS)]
    return [each for each in sets if frozenset(each) not in state.seen]
