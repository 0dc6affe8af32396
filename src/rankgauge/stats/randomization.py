"""Randomization tests, which flip signs or permute systems within queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from rankgauge.core.threads import map_in_threads
from rankgauge.errors import InputError
from rankgauge.stats.arrays import (
    TIE,
    BoolArray,
    FloatArray,
    blocks,
    check_draws,
    slack,
    table_of,
    total,
    whole_numbers,
)

_T = TypeVar("_T")
_ENUMERATED = 16  # up to this many changed queries, all sign patterns are enumerated


@dataclass(frozen=True, eq=False)
class RandomizationTest:
    """Result of a randomization test of one or more comparisons.

    Attributes:
        name: Name of the test.
        p: Two-sided p-values: (M,), or (S, S) for all pairs of systems.
        exact: Whether all patterns were enumerated, in the shape of `p`.
        draws: Number of random patterns for p-values that are not exact.
        seed: Seed of the draws.
    """

    name: str
    p: FloatArray
    exact: BoolArray
    draws: int
    seed: int


def randomization_test(
    differences: npt.ArrayLike, draws: int = 10_000, seed: int = 0, *, jobs: int = 1
) -> RandomizationTest:
    """Test the mean difference by two-sided randomization with sign flips (Fisher 1935).

    Null hypothesis: A and B are exchangeable within each query. p is the share of sign patterns
    whose |sum| is at least the observed one. For columns with at most 16 nonzero differences, all
    patterns are enumerated (p >= 2 ** (1 - changed)); for others, p = (b + 1) / (draws + 1), where
    b of `draws` random patterns reach the observed |sum| (Phipson and Smyth 2010). All columns use
    the same patterns. Queries without a difference have no effect. Identical systems have p = 1.

    Args:
        differences: (Q,) or (Q, M), at least two queries.
        draws: Number of random patterns.
        seed: Seed of the draws; see :func:`seed_of`.
        jobs: Number of threads; p does not depend on it.

    Returns:
        The test, with `p` of shape (M,), or (1,) for (Q,) differences.

    Example:
        >>> randomization_test([0.2, 0.0, 0.4, 0.0, 0.1]).p.tolist()
        [0.25]
    """
    where = "randomization_test"
    table = table_of(differences, where)
    check_draws(draws, seed, where)
    exact = np.count_nonzero(table, axis=0) <= _ENUMERATED
    p = np.ones(table.shape[1])
    for column in np.flatnonzero(exact):
        p[column] = _enumerated(table[:, column])
    sampled = np.flatnonzero(~exact)
    if len(sampled):
        whole = whole_numbers(_changed(table[:, sampled]))[0]
        edge = np.abs(total(whole)) - slack(whole)

        def reaching_in(sums: FloatArray) -> npt.NDArray[np.intp]:
            return np.count_nonzero(np.abs(sums, out=sums) >= edge, axis=0)

        reaching = sum(_flipped(whole, draws, seed, reaching_in, jobs=jobs))
        p[sampled] = (reaching + 1) / (draws + 1)
    return RandomizationTest("randomization", p, exact, draws, seed)


def pairwise_test(values: npt.ArrayLike, draws: int = 10_000, seed: int = 0, *, jobs: int = 1) -> RandomizationTest:
    """Perform :func:`randomization_test` for all pairs of S systems.

    The flipped sum of a pair is the difference between the flipped sums of its systems, so the work
    grows with S, not with S * S. P-values are not corrected: see :func:`holm`, :func:`tukey_hsd`,
    and :func:`max_t`.

    Args:
        values: (Q, S) value of each system for each query.
        draws: Number of random patterns.
        seed: Seed of the draws.
        jobs: As in :func:`randomization_test`.

    Returns:
        The test, with `p` of shape (S, S), 1 on the diagonal.

    Example:
        >>> pairwise_test([[0.4, 0.2], [0.1, 0.1], [0.9, 0.5], [0.6, 0.5]]).p.tolist()
        [[1.0, 0.25], [0.25, 1.0]]
    """
    where = "pairwise_test"
    table = table_of(values, where)
    check_draws(draws, seed, where)
    systems = table.shape[1]
    p, exact = np.ones((systems, systems)), np.ones((systems, systems), dtype=bool)
    for one in range(systems):
        apart = table[:, [one]] - table[:, one + 1 :]
        few = np.count_nonzero(apart, axis=0) <= _ENUMERATED
        exact[one, one + 1 :] = exact[one + 1 :, one] = few
        for other in np.flatnonzero(few):
            p[one, one + 1 + other] = _enumerated(apart[:, other])
    if not exact.all():
        whole = whole_numbers(_changed(table, to_first=True), joint=True)[0]
        edges = [
            np.abs(total(apart)) - slack(apart)
            for apart in (whole[:, [one]] - whole[:, one + 1 :] for one in range(systems - 1))
        ]

        def reaching_in(sums: FloatArray) -> FloatArray:
            found = np.zeros((systems, systems))
            by_system = np.ascontiguousarray(sums.T)
            for one, edge in enumerate(edges):
                apart = np.abs(by_system[one] - by_system[one + 1 :])
                found[one, one + 1 :] = np.count_nonzero(apart >= edge[:, None], axis=1)
            return found

        reaching = sum(_flipped(whole, draws, seed, reaching_in, jobs=jobs))
        p = np.where(exact, p, (reaching + 1) / (draws + 1))
    p = np.triu(p, 1)
    return RandomizationTest("randomization", p + p.T + np.eye(systems), exact, draws, seed)


def max_t(differences: npt.ArrayLike, draws: int = 10_000, seed: int = 0, *, jobs: int = 1) -> RandomizationTest:
    """Test M comparisons with p-values corrected by single-step max-T (Westfall and Young 1993).

    Null hypothesis of the family: the systems do not differ in any comparison. The same signs are
    flipped in all columns; p of a column is the share of sign patterns whose largest |t| over all
    columns is at least the |t| of the column: exact if at most 16 queries differ in any column,
    else (b + 1) / (draws + 1). It uses the correlation of the columns, and is therefore more
    powerful than Holm's method.

    Args:
        differences: (Q, M) differences of M comparisons.
        draws: Number of random patterns.
        seed: Seed of the draws.
        jobs: As in :func:`randomization_test`.

    Returns:
        The test, with corrected `p` of shape (M,).

    Example:
        >>> table = [[0.2, 0.1], [0.1, 0.0], [0.4, -0.1], [0.3, 0.0], [0.1, 0.2]]
        >>> max_t(table).p.tolist()
        [0.0625, 0.875]
    """
    where = "max_t"
    table = table_of(differences, where)
    check_draws(draws, seed, where)
    rows = _changed(table)
    few = len(rows) <= _ENUMERATED
    exact = np.full(table.shape[1], few)
    if not len(rows):
        return RandomizationTest("max-T", np.ones(table.shape[1]), exact, draws, seed)
    whole = whole_numbers(rows)[0]
    # |t| grows with |sum| / norm: a flip of signs does not change the sum of squares.
    norm = np.sqrt(total(whole**2))
    norm[norm == 0] = 1.0
    observed = np.abs(total(whole)) / norm

    def largest_in(sums: FloatArray) -> FloatArray:
        largest: FloatArray = (np.abs(sums, out=sums) / norm).max(axis=1)
        return largest

    largest = np.concatenate(list(_flipped(whole, None if few else draws, seed, largest_in, jobs=jobs)))
    edge = observed - TIE * math.sqrt(len(whole))
    return RandomizationTest("max-T", _share(largest, edge, all_of_them=few), exact, draws, seed)


def tukey_hsd(values: npt.ArrayLike, draws: int = 10_000, seed: int = 0, *, jobs: int = 1) -> RandomizationTest:
    """Perform the randomized Tukey HSD test for all pairs of systems (Carterette, TOIS 2012).

    Null hypothesis: all S systems are exchangeable within each query. Each draw permutes the
    systems within every query and computes the largest mean minus the smallest. p of a pair is
    (b + 1) / (draws + 1), where b draws have a range of at least the pair's |difference of means|.

    Args:
        values: (Q, S) value of each system for each query.
        draws: Number of random permutations.
        seed: Seed of the draws.
        jobs: As in :func:`randomization_test`.

    Returns:
        The test, with corrected `p` of shape (S, S), 1 on the diagonal and for identical systems.

    Example:
        >>> tukey_hsd([[0.4, 0.2], [0.1, 0.1], [0.9, 0.9]], draws=99).p.tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    where = "tukey_hsd"
    table = table_of(values, where)
    check_draws(draws, seed, where)
    systems = table.shape[1]
    if systems < 2:
        raise InputError("one system", where=where, fix="pass (Q, S) values of two or more systems")
    exact = np.zeros((systems, systems), dtype=bool)
    rows = _changed(table, to_first=True)
    if not len(rows):
        return RandomizationTest("Tukey HSD", np.ones((systems, systems)), ~exact, draws, seed)
    whole = whole_numbers(rows, joint=True)[0]
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn = (
        rng.permuted(np.broadcast_to(whole, (count, *whole.shape)), axis=2) for _, count in blocks(draws, whole.size)
    )
    ranges = np.concatenate(list(map_in_threads(_ranges, drawn, jobs)))
    sums = total(whole)
    near = max(TIE * float(total(np.ptp(whole, axis=1))), len(whole))
    edge = np.abs(sums[:, None] - sums) - near
    p = _share(ranges, edge.ravel(), all_of_them=False).reshape(edge.shape)
    return RandomizationTest("Tukey HSD", p, exact, draws, seed)


def _ranges(permuted: FloatArray) -> FloatArray:
    """Return the largest sum of each draw minus the smallest."""
    sums = permuted.sum(axis=1)
    ranges: FloatArray = sums.max(axis=1) - sums.min(axis=1)
    return ranges


def _share(drawn: FloatArray, edges: FloatArray, *, all_of_them: bool) -> FloatArray:
    """Return the p-value of each edge: the share of drawn statistics that reach it."""
    reached = len(drawn) - np.searchsorted(np.sort(drawn), edges, side="left")
    return reached / len(drawn) if all_of_them else (reached + 1) / (len(drawn) + 1)


def _enumerated(column: FloatArray) -> float:
    """Return the p-value over all sign patterns; by symmetry, the first sign is fixed."""
    kept = column[column != 0]
    if not len(kept):
        return 1.0
    whole = whole_numbers(kept)[0]
    sums = whole[:1]
    for step in whole[1:]:
        sums = np.concatenate([sums + step, sums - step])
    edge = abs(float(total(whole))) - float(slack(whole))
    return float(np.count_nonzero(np.abs(sums) >= edge) / len(sums))


def _flipped(
    whole: FloatArray, draws: int | None, seed: int, look: Callable[[FloatArray], _T], *, jobs: int
) -> Iterator[_T]:
    """Yield `look` of the column sums (block, M) for random sign patterns, or all if draws is None.

    Patterns are drawn in the calling thread, so that they do not depend on the number of jobs.
    """
    queries, columns = whole.shape
    all_plus = total(whole)
    bits_of = np.random.PCG64(seed)
    words = -(-queries // 64)

    def patterns() -> Iterator[npt.NDArray[np.uint64]]:
        for start, count in blocks(draws or 1 << queries, max(queries, columns)):
            if draws is None:
                raw = np.arange(start, start + count, dtype="<u8")
            else:
                raw = bits_of.random_raw(count * words).astype("<u8", copy=False)
            yield raw.reshape(count, -1)

    def summed(pattern: npt.NDArray[np.uint64]) -> _T:
        octets = pattern.view(np.uint8)
        bits = np.unpackbits(octets, axis=1, count=queries, bitorder="little")
        sums = bits.astype(np.float64) @ whole
        sums *= 2
        sums -= all_plus
        return look(sums)

    return map_in_threads(summed, patterns(), jobs)


def _changed(table: FloatArray, *, to_first: bool = False) -> FloatArray:
    """Return the queries in which a column is not 0 (with `to_first`: differs from the first)."""
    return table[(table != (table[:, :1] if to_first else 0.0)).any(axis=1)]
