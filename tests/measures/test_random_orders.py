"""Random orders of ties: equally likely, and independent of what else is evaluated."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from oracles import Seen
from strategies import by_loop, joined

from rankgauge import Run, evaluate, parse
from rankgauge.measures.tie_means import drawn_orders, generator_of

JUDGED = {"q1": {"a": 2, "b": 1, "c": 0, "z": 1}, "q2": {"a": 1, "c": 0}, "q3": {"a": 3}}
RUN = {
    "q1": dict.fromkeys("abcxyz", 0.5),
    "q2": {"a": 1.0, "b": 0.5, "c": 0.5, "d": 0.5, "e": 0.25},
    "q3": {"b": 1.0, "a": 0.5},
}
OPEN = ["ERR@3", "IPrec@0.5", "infAP", "nDCG(ideal=topk)@3", "ERR(judged_only=true)@2"]


def _one_by_one(name: str, query: str) -> float:
    """Return the mean of the loop over every order."""
    measure, scores = parse(name), RUN[query]
    levels = sorted(set(scores.values()), reverse=True)
    groups = [[doc for doc in scores if scores[doc] == level] for level in levels]
    found = [
        by_loop(measure, Seen([*itertools.chain.from_iterable(order)], JUDGED[query]))
        for order in itertools.product(*(itertools.permutations(group) for group in groups))
    ]
    return math.fsum(value or 0.0 for value in found) / len(found)


@pytest.mark.parametrize("name", OPEN)
def test_an_estimate_is_near_the_mean_over_all_orders(name: str) -> None:
    found = evaluate(JUDGED, RUN, [name], ties="mean", draws=4000)
    for query in JUDGED:
        assert found.value(query, name) == pytest.approx(_one_by_one(name, query), abs=0.02)
    # There are no ties, so nothing is drawn.
    assert found.value("q3", name) == evaluate(JUDGED, RUN, [name]).value("q3", name)


def test_the_standard_error_of_the_estimate_is_reported() -> None:
    found = evaluate(JUDGED, RUN, ["ERR@3", "RR"], ties="mean", draws=400, seed=3)
    (note,) = (note for note in found.notes if note.startswith("estimated"))
    text = "estimated from 400 orders drawn at random (seed 3), with the standard error of the mean"
    assert note.startswith(f"{text}: ERR(top=4)@3 0.00")
    assert "RR" not in note.removeprefix(text).replace("ERR", "")
    spread = [evaluate(JUDGED, RUN, "ERR@3", ties="mean", draws=400, seed=seed).mean() for seed in range(30)]
    seen = float(np.std([mean["ERR(top=4)@3"] for mean in spread]))
    assert float(note.split()[-1]) == pytest.approx(seen, rel=0.5)


def test_every_order_is_equally_likely() -> None:
    """Three judged and two other documents: 60 arrangements of the three."""
    scores = dict.fromkeys("abcde", 0.5)
    found = joined({"q": {"a": 1, "b": 2, "c": 3}}, {"q": scores}, "mean")
    ((_, block),) = found.blocks(np.array([0]))
    draws = 30_000
    orders = drawn_orders(block, 0, np.random.default_rng(0), draws)
    places = np.take_along_axis(orders.rank, np.argsort(orders.grade, axis=1), axis=1)
    seen = Counter(map(tuple, places.tolist()))
    assert set(seen) == set(itertools.permutations(range(1, 6), 3))
    expected = draws / 60
    chi = sum((number - expected) ** 2 / expected for number in seen.values())
    # 59 degrees of freedom: above 100 with probability 0.0007.
    assert chi < 100
    assert (np.diff(orders.rank, axis=1) > 0).all()


def test_draws_of_a_query_do_not_depend_on_other_queries() -> None:
    measures = ["ERR@3", "infAP"]
    whole = evaluate(JUDGED, RUN, measures, ties="mean", draws=50)
    for query, grades in JUDGED.items():
        alone = evaluate({query: grades}, {query: RUN[query]}, measures, ties="mean", draws=50)
        assert (alone.per_query[0] == whole.per_query[whole.query_ids.index(query)]).all()
    turned = {query: RUN[query] for query in reversed(RUN)}
    assert evaluate(JUDGED, turned, measures, ties="mean", draws=50) == whole
    assert evaluate(JUDGED, Run.of(RUN), measures, ties="mean", draws=50) == whole
    blocks = iter([{query: RUN[query]} for query in ("q2", "q1", "q3")])
    assert evaluate(JUDGED, blocks, measures, ties="mean", draws=50).mean() == whole.mean()


def test_another_seed_draws_other_orders() -> None:
    one = evaluate(JUDGED, RUN, "ERR@3", ties="mean", draws=50)
    other = evaluate(JUDGED, RUN, "ERR@3", ties="mean", draws=50, seed=1)
    assert one.mean() != other.mean()
    assert generator_of(b"q", 5).random() != generator_of(b"p", 5).random()


def test_closed_forms_are_not_drawn() -> None:
    exact = evaluate(JUDGED, RUN, ["RR", "AP"], ties="mean")
    drawn = evaluate(JUDGED, RUN, ["RR", "AP"], ties="mean", draws=10)
    assert (exact.per_query == drawn.per_query).all()
    assert not any(note.startswith("estimated") for note in drawn.notes)
