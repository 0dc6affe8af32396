"""Adversarial judgments and runs in which tools differ, from a seed; and their comparison.

Ties, scores that are equal only in 32 bits, scores of 0 and below, queries on one side only,
queries without a relevant document, documents named like their query, relevant documents that were
not retrieved, negative grades, rankings of one document, ids of several lengths; unsorted rows.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping
from typing import NamedTuple

from rankgauge import Measure, evaluate

Judgments = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]

# "make test-profiles" takes more.
SEEDS = range(int(os.environ.get("SEEDS", "2")))
QUERIES = 30
# One is not judged, and two are not in the run.
JUDGED, BOTH = QUERIES - 1, QUERIES - 3


class Inputs(NamedTuple):
    """Judgments and a run as dictionaries, which every tool accepts in some form."""

    qrels: Judgments
    run: Scores

    def of_both(self) -> Inputs:
        """Return only queries that both have."""
        both = [query for query in self.qrels if query in self.run]
        return Inputs({q: self.qrels[q] for q in both}, {q: self.run[q] for q in both})


def made(
    seed: int,
    *,
    queries: int = QUERIES,
    deepest: int = 15,
    ties: bool = True,
    grades: tuple[int, ...] = (-1, 0, 0, 1, 1, 2, 3),
    shortest: int = 1,
) -> Inputs:
    """Return judgments and a run from a seed. Every query has its own properties."""
    rng = random.Random(seed)
    qrels: Judgments = {}
    run: Scores = {}
    for number in range(1, queries + 1):
        query = str(number)
        pool = [query, *(f"{'d' * rng.randint(1, 9)}{n}" for n in range(deepest + 8))]
        retrieved = rng.sample(pool, rng.randint(shortest, deepest))
        judged = rng.sample(pool, rng.randint(1, 12))
        only = rng.choice([grades, grades, (0,), (1,)])
        qrels[query] = {doc: rng.choice(only) for doc in judged}
        run[query] = dict(zip(retrieved, _scores(rng, len(retrieved), ties=ties), strict=True))
    for query in rng.sample(list(run), 2):
        del run[query]
    left = [query for query in qrels if query in run]
    del qrels[rng.choice(left)]
    return Inputs(qrels, run)


def _scores(rng: random.Random, count: int, *, ties: bool) -> list[float]:
    if not ties:
        # Distinct in 32 bits, too.
        return [(n - count // 2) / 8 for n in rng.sample(range(3 * count), count)]
    habit = rng.randrange(4)
    if habit == 0:
        return [float(rng.randint(-1, 2)) for _ in range(count)]
    if habit == 1:
        return [0.1234567 + rng.randint(0, 9) * 1e-10 for _ in range(count)]
    if habit == 2:
        return [1.0] * count
    return [rng.gauss(0, 1) for _ in range(count)]


def held(
    profile: str, inputs: Inputs, measure: str | Measure, theirs: Mapping[str, float], *, tolerance: float = 1e-12
) -> int:
    """Return the number of compared values: each query that counts in both.

    Raises:
        AssertionError: If a value or the counted queries differ.
    """
    # A name is parsed as in the tool.
    ev = evaluate(inputs.qrels, inputs.run, measure, profile=profile)
    values = ev.per_query[:, 0].tolist()
    ours = {
        query: 0.0 if math.isnan(value) else value
        for row, (query, value) in enumerate(zip(ev.query_ids, values, strict=True))
        if ev.left_out is None or not ev.left_out[row, 0]
        if ev.policies.undefined == "zero" or not math.isnan(value)
    }
    assert set(ours) == set(theirs), f"{profile} {measure}: other queries count"
    for query, value in theirs.items():
        where = f"{profile} {measure} query {query}: ours {ours[query]!r}, theirs {value!r}"
        assert abs(ours[query] - value) <= tolerance, where
    if theirs:
        mean = sum(theirs.values()) / len(theirs)
        if ev.measures[0].declaration.mean == "arithmetic":
            assert abs(ev.mean()[str(ev.measures[0])] - mean) <= max(tolerance, 1e-12)
    return len(theirs)
