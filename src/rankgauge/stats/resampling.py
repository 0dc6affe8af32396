"""Randomization tests, and the bootstrap with Poisson weights.

Randomization tests flip signs or permute systems within queries. The sign of a query in a draw, and
its weight in a draw of the bootstrap, depend only on the seed, the number of the draw, and the id
of the query, not on how queries are ordered or partitioned. Weights have a Poisson distribution
with mean 1 (Hanley and MacGibbon 2006; Chamandy et al. 2012). Sums are sums of integers, exact in
any order.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.ids import id_bytes
from rankgauge.errors import InputError
from rankgauge.stats.arrays import (
    TIE,
    BoolArray,
    FloatArray,
    blocks,
    check_draws,
    check_share,
    moments,
    one_column,
    slack,
    table_of,
    total,
    whole_numbers,
)
from rankgauge.stats.intervals import Interval

_ENUMERATED = 16  # up to this many changed queries, all sign patterns are enumerated
_TILE = 1024  # queries: their signs in a block of draws fit the cache
_BLOCK = 64  # draws
# Signs of eight draws, by the byte that has their bits.
_SIGNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
# A group, a column, and the column of the group to subtract, if any.
_Place: TypeAlias = tuple[int, int, int | None]


@dataclass(frozen=True, eq=False)
class RandomizationTest:
    """Result of a randomization test of one or more comparisons.

    Attributes:
        p: Two-sided p-values: (M,), or (S, S) for all pairs of systems.
        exact: Whether all patterns were enumerated, in the shape of `p`.
    """

    p: FloatArray
    exact: BoolArray


@dataclass(frozen=True, eq=False)
class SignFlips:
    """Sums of differences under random signs, from which tests by sign flips are computed.

    All columns have the same signs. If few queries change, only these are summed again.

    Attributes:
        whole: (G, K, Q) differences in G groups of K columns, as integers.
        unit: (G, 1, 1) exponents of the integers; columns of the same group can be subtracted.
        keys: (Q,) keys of the queries, see `query_keys`.
        sums: (G, K, draws) sums over queries.
    """

    whole: FloatArray
    unit: npt.NDArray[np.intc]
    keys: npt.NDArray[np.uint64]
    sums: FloatArray

    @classmethod
    def of(cls, table: FloatArray, keys: npt.NDArray[np.uint64], draws: int) -> SignFlips:
        """Return the sums of (G, K, Q) differences, which are 0 where a query does not count."""
        whole, unit = whole_numbers(table, joint=True)
        return cls(whole, unit, keys, _flipped_sums(whole, keys, draws))

    def updated(self, table: FloatArray) -> SignFlips:
        """Return the sums of other differences of the same queries, equal to those by `of`."""
        whole, unit = whole_numbers(table, joint=True)
        draws = self.sums.shape[-1]
        if (unit != self.unit).any():
            return self.of(table, self.keys, draws)
        changed = (whole != self.whole).any(axis=(0, 1))
        added = _flipped_sums((whole - self.whole)[..., changed], self.keys[changed], draws)
        return replace(self, whole=whole, sums=self.sums + added)

    def p(self, place: _Place) -> float:
        """Return the p-value of a column, or of the difference of two, as `randomization_test` does."""
        whole = _column(self.whole, place)
        changed = whole[whole != 0]
        exact = len(changed) <= _ENUMERATED
        sums = _all_sums(changed) if exact else _column(self.sums, place)
        return float(_share(np.abs(sums), [abs(total(whole)) - slack(whole)], exact=exact)[0])

    def max_t(self, places: Sequence[_Place]) -> FloatArray:
        """Return the p-values of several columns, corrected as by `max_t`."""
        changed = np.zeros(len(self.keys), dtype=bool)
        for place in places:
            changed |= _column(self.whole, place) != 0
        exact = int(changed.sum()) <= _ENUMERATED
        largest, observed = np.zeros(1), []
        for place in places:
            whole = _column(self.whole, place)[changed]
            # |t| grows with |sum| / norm: a flip of signs does not change the sum of squares.
            norm = math.sqrt(total(whole**2)) or 1.0
            sums = _all_sums(whole) if exact else _column(self.sums, place)
            largest = np.maximum(largest, np.abs(sums) / norm)
            observed.append(abs(total(whole)) / norm - TIE * math.sqrt(len(whole)))
        return _share(largest, observed, exact=exact)


def _column(parts: FloatArray, place: _Place) -> FloatArray:
    group, column, other = place
    return parts[group, column] if other is None else parts[group, column] - parts[group, other]


def _flipped_sums(whole: FloatArray, keys: npt.NDArray[np.uint64], draws: int) -> FloatArray:
    """Return the (G, K, draws) sums of (G, K, Q) integers with random signs."""
    columns = np.ascontiguousarray(whole.reshape(math.prod(whole.shape[:2]), len(keys)))
    sums = np.zeros((len(columns), -(-draws // _BLOCK), _BLOCK))
    if native.core is not None:
        native.core.flip_signs(columns, keys, 0, sums)
    else:
        for block, start in product(range(sums.shape[1]), range(0, len(keys), _TILE)):
            part = slice(start, start + _TILE)
            octets = _random_words(keys[part], np.array([block])).astype("<u8").view(np.uint8)
            sums[:, block] += columns[:, part] @ _SIGNS.take(octets.ravel(), axis=0).reshape(-1, _BLOCK)
    return sums.reshape(len(columns), -1)[:, :draws].reshape(*whole.shape[:2], draws)


def _all_sums(column: FloatArray) -> FloatArray:
    """Return the sums of a column with all sign patterns; by symmetry, the first sign is fixed."""
    sums = column[:1] if len(column) else np.zeros(1)
    for step in column[1:]:
        sums = np.concatenate([sums + step, sums - step])
    return sums


def randomization_test(differences: npt.ArrayLike, draws: int = 10_000, seed: int = 0) -> RandomizationTest:
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

    Returns:
        The test, with `p` of shape (M,), or (1,) for (Q,) differences.

    Example:
        >>> randomization_test([0.2, 0.0, 0.4, 0.0, 0.1]).p.tolist()
        [0.25]
    """
    table = table_of(differences)
    flips = _sign_flips(table.T[:, None], draws, seed)
    p = np.array([flips.p((column, 0, None)) for column in range(table.shape[1])])
    return RandomizationTest(p, np.count_nonzero(table, axis=0) <= _ENUMERATED)


def max_t(differences: npt.ArrayLike, draws: int = 10_000, seed: int = 0) -> RandomizationTest:
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

    Returns:
        The test, with corrected `p` of shape (M,).

    Example:
        >>> table = [[0.2, 0.1], [0.1, 0.0], [0.4, -0.1], [0.3, 0.0], [0.1, 0.2]]
        >>> max_t(table).p.tolist()
        [0.0625, 0.875]
    """
    table = table_of(differences)
    flips = _sign_flips(table.T[:, None], draws, seed)
    p = flips.max_t([(column, 0, None) for column in range(table.shape[1])])
    return RandomizationTest(p, np.full(len(p), len(flips.keys) <= _ENUMERATED))


def _sign_flips(table: FloatArray, draws: int, seed: int) -> SignFlips:
    """Draw the signs of queries that are known by their numbers, without those that do not differ."""
    check_draws(draws, seed)
    table = table[..., table.any(axis=(0, 1))]
    return SignFlips.of(table, query_keys((b"%d" % n for n in range(table.shape[-1])), seed), draws)


def tukey_hsd(values: npt.ArrayLike, draws: int = 10_000, seed: int = 0) -> RandomizationTest:
    """Perform the randomized Tukey HSD test for all pairs of systems (Carterette, TOIS 2012).

    Null hypothesis: all S systems are exchangeable within each query. Each draw permutes the
    systems within every query and computes the largest mean minus the smallest. p of a pair is
    (b + 1) / (draws + 1), where b draws have a range of at least the pair's |difference of means|.

    Args:
        values: (Q, S) value of each system for each query.
        draws: Number of random permutations.
        seed: Seed of the draws.

    Returns:
        The test, with corrected `p` of shape (S, S), 1 on the diagonal and for identical systems.

    Example:
        >>> tukey_hsd([[0.4, 0.2], [0.1, 0.1], [0.9, 0.9]], draws=99).p.tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    table = table_of(values)
    check_draws(draws, seed)
    systems = table.shape[1]
    if systems < 2:
        raise InputError("one system", where="tukey_hsd", fix="pass (Q, S) values of two or more systems")
    rows = table[(table != table[:, :1]).any(axis=1)]
    exact = np.full((systems, systems), not len(rows))
    if exact.all():
        return RandomizationTest(np.ones((systems, systems)), exact)
    whole = np.ascontiguousarray(whole_numbers(rows.T, joint=True)[0].T)
    rng = np.random.Generator(np.random.PCG64(seed))
    ranges = np.empty(draws)
    for start, count in blocks(draws, 64 * whole.size):  # in the cache
        permuted = rng.permuted(np.broadcast_to(whole, (count, *whole.shape)), axis=2)
        ranges[start : start + count] = np.ptp(np.einsum("ijk->ik", permuted), axis=1)
    sums = total(whole)
    near = max(TIE * float(total(np.ptp(whole, axis=1))), len(whole))
    edge = np.abs(sums[:, None] - sums) - near
    return RandomizationTest(_share(ranges, edge.ravel(), exact=False).reshape(edge.shape), exact)


def _share(drawn: FloatArray, edges: Iterable[float], *, exact: bool) -> FloatArray:
    """Return the p-value of each edge: the share of drawn statistics that reach it."""
    reached = np.array([np.count_nonzero(drawn >= edge) for edge in edges])
    return reached / len(drawn) if exact else (reached + 1) / (len(drawn) + 1)


_BITS = 28  # of a difference: 2 ** 20 weighted differences can be added exactly
_ROWS = 1 << 14
_STEP = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64 (Steele, Lea, and Flood 2014)
_MIX = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))
_PER_WORD = 4  # draws in 64 bits
_DRAWS = 16 * _PER_WORD  # per block


@lru_cache(maxsize=1)
def _table() -> npt.NDArray[np.uint8]:
    """Return the Poisson weight of each 16-bit number; probabilities are multiples of 2 ** -16."""
    edges = [round(65536 * math.exp(-1) * sum(1 / math.factorial(k) for k in range(n + 1))) for n in range(10)]
    return np.searchsorted(edges, np.arange(65536), side="right").astype(np.uint8)


def poisson_bootstrap_interval(  # noqa: PLR0917 - as bootstrap_interval, and the ids
    differences: npt.ArrayLike, query_ids: Iterable[Any], level: float = 0.95, draws: int = 1000, seed: int = 0
) -> Interval:
    """Return a percentile interval of the mean difference, by a bootstrap with Poisson weights.

    In each draw, query q has the weight w(seed, draw, q), Poisson with mean 1, and the mean is
    sum(w d) / sum(w); the bounds are quantiles of these means. The number of queries in a draw is
    random, so for few queries the interval differs from :func:`bootstrap_interval`; for hundreds of
    queries or more, it is the same. It does not depend on the order of the queries. The bounds are
    NaN if no draw has a query.

    Args:
        differences: (Q,) one per query, at least two.
        query_ids: (Q,) id of each query: text, whole numbers, or bytes.
        level: Confidence level of the interval, between 0 and 1.
        draws: Number of draws.
        seed: Seed of the draws.

    Raises:
        InputError: If the numbers of ids and of differences are not equal, or an id occurs twice.

    Example:
        >>> interval = poisson_bootstrap_interval([0.0, 0.2] * 50, map(str, range(100)))
        >>> round(interval.low, 2), round(interval.high, 2)
        (0.08, 0.12)
    """
    column = one_column(differences)
    ids = [id_bytes(query, "query id") for query in query_ids]
    check_share(level, "level")
    check_draws(draws, seed)
    if len(ids) != len(column):
        raise InputError(
            f"{len(column)} differences and {len(ids)} query ids",
            where="poisson_bootstrap_interval",
            fix="pass the id of each query",
        )
    if len(set(ids)) < len(ids):
        raise InputError(
            f"{len(ids)} query ids, of which {len(set(ids))} differ",
            where="poisson_bootstrap_interval",
            fix="pass one difference for each query",
        )
    mean, sd = moments(column)
    if not sd:
        return Interval(mean, mean, mean)
    exponent = math.frexp(float(np.abs(column).max()))[1]
    whole = whole_differences(column, exponent)[:, None]
    sums = weighted_sums(query_keys(ids, seed), whole, draws)
    low, high = interval_of_sums(sums[:, 0], sums[:, 1], exponent, level)
    return Interval(mean, low, high)


def query_keys(query_ids: Iterable[bytes], seed: int) -> npt.NDArray[np.uint64]:
    """Return a 64-bit key for each id, (Q,): BLAKE2b, keyed with the seed."""
    number = int(seed)
    key = number.to_bytes(max(1, -(-number.bit_length() // 8)), "little")
    if len(key) > hashlib.blake2b.MAX_KEY_SIZE:
        key = hashlib.blake2b(key).digest()
    keyed = hashlib.blake2b(key=key, digest_size=8)

    def digest(query_id: bytes) -> bytes:
        own = keyed.copy()
        own.update(query_id)
        return own.digest()

    return np.frombuffer(b"".join(map(digest, query_ids)), dtype="<u8").astype(np.uint64)


def _random_words(keys: npt.NDArray[np.uint64], blocks: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
    """Return (B, Q) random numbers of the queries, one for each block of draws."""
    mixed = keys + (blocks + 1).astype(np.uint64)[:, None] * _STEP
    for shift, factor in _MIX:
        mixed ^= mixed >> np.uint64(shift)
        mixed *= factor
    mixed ^= mixed >> np.uint64(31)
    return mixed


def poisson_weights(keys: npt.NDArray[np.uint64], draws: range) -> npt.NDArray[np.uint8]:
    """Return (D, Q) weights of the queries in these draws, which start at a multiple of 4."""
    mixed = _random_words(keys, np.arange(draws.start // _PER_WORD, -(-draws.stop // _PER_WORD)))
    parts = [(mixed >> np.uint64(16 * n)).astype(np.uint16) for n in range(_PER_WORD)]
    return _table()[np.stack(parts, axis=1)].reshape(-1, len(keys))[: len(draws)]


def whole_differences(differences: FloatArray, exponent: int) -> FloatArray:
    """Return differences below 2 ** exponent as integer multiples of 2 ** (exponent - 28)."""
    return np.rint(np.ldexp(differences, _BITS - exponent))


def weighted_sums(keys: npt.NDArray[np.uint64], whole: FloatArray, draws: int) -> npt.NDArray[np.int64]:
    """Return (draws, 1 + M) exact sums of the weights and of (Q, M) weighted integers."""
    sums = np.zeros((draws, 1 + whole.shape[1]), dtype=np.int64)
    for start in range(0, len(keys), _ROWS):
        part = slice(start, start + _ROWS)
        columns = np.column_stack([np.ones(len(keys[part])), whole[part]])
        for first in range(0, draws, _DRAWS):
            chosen = range(first, min(first + _DRAWS, draws))
            weights = poisson_weights(keys[part], chosen).astype(np.float64)
            sums[first : chosen.stop] += (weights @ columns).astype(np.int64)
    return sums


def interval_of_sums(
    weights: Sequence[int] | npt.NDArray[np.int64],
    sums: Sequence[int] | npt.NDArray[np.int64],
    exponent: int,
    level: float,
) -> tuple[float, float]:
    """Return the quantiles of the mean over draws, from the sums over all queries."""
    pairs = [(int(above), int(below)) for above, below in zip(sums, weights, strict=True)]
    # A draw without queries has no mean. Negated differences must have the negated bounds.
    means = np.array([above / below for above, below in pairs if below])
    if not len(means):
        return math.nan, math.nan
    if sum(above for above, _ in pairs) < 0:
        low, high = np.quantile(-means, [(1 - level) / 2, (1 + level) / 2])
        low, high = -high, -low
    else:
        low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return tuple(float(np.ldexp(bound, exponent - _BITS)) for bound in (low, high))  # type: ignore[return-value] # two
