"""The next task: coverage, information, and chance; and when a question is resolved."""

import math
import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from rankgauge.judging import QuestionState, fit_question, is_resolved, next_documents
from rankgauge.stats import fit_plackett_luce

POOL = tuple("abcdefgh")


def play(tasks, *, pool=POOL, good="a", seed=0, at_random=False, views=2):
    """Return judgments of a judge who always chooses a good document, else none."""
    rng = random.Random(seed)
    judgments = ()
    for _ in range(tasks):
        state = QuestionState(pool, judgments)
        found = next_documents(state, 3, views=views, at_random=at_random, rng=rng)
        best = tuple(each for each in found if each in good)[:1]
        judgments += ((found, best),)
    return judgments


def test_each_document_is_shown_before_any_is_shown_again():
    counts = Counter(each for shown, _ in play(3) for each in shown)
    assert set(counts) == set(POOL)
    counts = Counter(each for shown, _ in play(6) for each in shown)
    assert min(counts.values()) >= 2


def test_sets_that_are_with_judges_count_as_shown():
    state = QuestionState(("a", "b", "c", "d"), pending=(frozenset("ab"),))
    rng = random.Random(1)
    found = next_documents(state, 2, views=1, at_random=False, rng=rng)
    assert set(found) == {"c", "d"}


def test_no_judge_sees_a_set_twice():
    pool, rng = ("a", "b", "c", "d"), random.Random(2)
    seen = set()
    for _ in range(math.comb(4, 2)):
        state = QuestionState(pool, seen=frozenset(seen))
        found = next_documents(state, 2, views=1, at_random=len(seen) % 2 == 0, rng=rng)
        assert frozenset(found) not in seen
        seen.add(frozenset(found))
    state = QuestionState(pool, seen=frozenset(seen))
    assert next_documents(state, 2, views=1, at_random=False, rng=rng) is None
    assert next_documents(QuestionState(()), 3, views=1, at_random=False, rng=rng) is None


def test_the_most_informative_set_is_chosen_after_coverage():
    """By definition: the decrease of the posterior's log-volume, over all possible sets."""
    judgments = (*play(6, pool=tuple("abcdef")), (("a", "b"), ("b",)))
    state = QuestionState(tuple("abcdef"), judgments)
    found = next_documents(state, 3, views=2, at_random=False, rng=random.Random(3))
    names, fit = fit_question(state)

    def gain(members):
        at = [names.index(each) for each in members]
        p = np.exp(fit.utilities[at]) / (1 + np.exp(fit.utilities[at]).sum())
        added = np.zeros((6, 6))
        added[np.ix_(at, at)] = np.diag(p) - np.outer(p, p)
        return np.linalg.slogdet(np.eye(6) + added @ fit.covariance)[1]

    best = max(gain(each) for each in combinations("abcdef", 3))
    assert gain(found) == pytest.approx(best)


def test_two_judges_at_once_get_different_sets():
    state = QuestionState(POOL, play(8))
    first = next_documents(state, 3, views=2, at_random=False, rng=random.Random(4))
    waiting = QuestionState(POOL, state.judgments, pending=(frozenset(first),) * 3)
    second = next_documents(waiting, 3, views=2, at_random=False, rng=random.Random(4))
    assert set(first) != set(second)


def test_random_sets_ignore_what_is_known():
    judgments = play(600, at_random=True, seed=5)
    counts = Counter(each for shown, _ in judgments for each in shown)
    assert all(abs(count - 600 * 3 / 8) < 4 * math.sqrt(600 * 15 / 64) for count in counts.values())


def test_equal_seeds_give_equal_tasks():
    assert play(12, seed=6) == play(12, seed=6)
    assert play(12, seed=6) != play(12, seed=7)


def test_graded_documents_are_shown_evenly():
    judgments = tuple(((each,), None) for each in "aabbcd")
    state = QuestionState(("a", "b", "c", "d"), judgments)
    assert not is_resolved(state)
    found = next_documents(state, 1, views=1, at_random=False, rng=random.Random(0))
    assert found[0] in {"c", "d"}


def test_the_fit_is_that_of_the_choices():
    names, fit = fit_question(QuestionState(("a", "b"), ((("a", "b"), ("b",)), (("b", "x"), ("x", "b")), (("a",), ()))))
    assert names == ("a", "b", "x")
    wanted = fit_plackett_luce(3, [[0, 1], [1, 2], [1, -1], [0, -1]], [1, 2, 1, -1])
    np.testing.assert_allclose(fit.utilities, wanted.utilities)


def test_a_question_is_resolved_when_each_document_is_clear():
    clear = ((("a", "b"), ("a",)), (("b",), ())) * 8
    assert is_resolved(QuestionState(("a", "b"), clear))
    assert not is_resolved(QuestionState(("a", "b"), clear[:2]))
    assert not is_resolved(QuestionState(("a", "b", "c"), clear))
    # One view, however clear, is not enough.
    assert not is_resolved(QuestionState(("a", "b", "c"), (*clear, (("a", "c"), ("a",)))))
    assert is_resolved(QuestionState(()))
