"""Random orders of equal scores, and estimates of mean values over all orders.

Only used on request, for measures whose mean over all orders has no closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.core.policies import Policies
from rankgauge.data.judged_run import JudgedRun, Values
from rankgauge.measures.measure import Measure


def estimate(
    run: JudgedRun, queries: Sequence[bytes], measures: Sequence[Measure], policies: Policies
) -> tuple[Values, Values]:
    """Estimate the mean of each measure over all orders of equal scores, with standard errors."""
    means = np.full((len(run), len(measures)), np.nan)
    errors = np.zeros(means.shape)
    for row, query in enumerate(queries):
        orders = drawn_orders(run, row, generator_of(query, policies.seed), policies.draws)
        for column, measure in enumerate(measures):
            found = measure.values(orders).tolist()
            if any(map(math.isnan, found)):
                continue
            mean = math.fsum(found) / len(found)
            spread = math.fsum((value - mean) ** 2 for value in found) / (len(found) - 1)
            means[row, column] = mean
            errors[row, column] = math.sqrt(spread / len(found))
    return means, errors


def generator_of(query: bytes, seed: int) -> np.random.Generator:
    """Return the random generator of a query, independent of other queries and their order."""
    digest = blake2b(query, digest_size=16).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "big")])


def drawn_orders(run: JudgedRun, row: int, rng: np.random.Generator, number: int) -> JudgedRun:
    """Return a judged run with one row for each random order of a query."""
    rank = np.tile(run.rank[row], (number, 1))
    first, last = run.tie_first[row], run.tie_last[row]
    tied = run.in_qrels[row] & (last > first)
    for start in np.unique(first[tied]).tolist():
        columns = np.flatnonzero(tied & (first == start))
        size = int(last[columns[0]]) - start + 1
        rank[:, columns] = start + _places(rng, (number, len(columns)), size)
    order = np.argsort(rank, axis=1, kind="stable")
    ranked = np.take_along_axis(rank, order, axis=1)
    return JudgedRun(
        rank=ranked,
        grade=run.grade[row][order],
        in_qrels=run.in_qrels[row][order],
        judged=run.judged[row][order],
        tie_first=ranked,
        tie_last=ranked,
        retrieved=np.repeat(run.retrieved[row], number),
        ideal=np.repeat(run.ideal[row : row + 1], number, axis=0),
        n_judged=np.repeat(run.n_judged[row], number),
    )


def _places(rng: np.random.Generator, shape: tuple[int, int], size: int) -> IntArray:
    """Return random positions from 0 of the judged documents of a group of ties.

    All orders of the group are equally likely: each document gets a random number, and sorting by
    these numbers gives the order. For unjudged documents, only the number of them between two
    judged documents is drawn, so the cost does not depend on how many there are.
    """
    keys = rng.random(shape)
    order = np.argsort(keys, axis=1)
    sorted_keys = np.take_along_axis(keys, order, axis=1)
    left = np.full(shape[0], size - shape[1], dtype=np.int64)
    before = np.zeros(shape[0])
    above = np.zeros(shape[0], dtype=np.int64)
    places = np.empty(shape, dtype=np.int64)
    for column, key in enumerate(sorted_keys.T):
        between = rng.binomial(left, (key - before) / (1 - before))
        above += between
        left -= between
        before = key
        places[:, column] = above + column
    result = np.empty(shape, dtype=np.int64)
    np.put_along_axis(result, order, places, axis=1)
    return result
