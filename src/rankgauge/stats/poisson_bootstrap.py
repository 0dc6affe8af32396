"""Poisson bootstrap whose result does not depend on how queries are partitioned.

The weight of a query in a draw has a Poisson distribution with mean 1 (Hanley and MacGibbon 2006;
Chamandy et al. 2012), and depends only on the seed, the number of the draw, and the id of the
query. Sums are sums of integers, exact in any order.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import id_bytes
from rankgauge.errors import InputError
from rankgauge.stats.arrays import FloatArray, check_draws, check_share, moments, one_column
from rankgauge.stats.intervals import Interval

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
        >>> found = poisson_bootstrap_interval([0.0, 0.2] * 50, map(str, range(100)))
        >>> round(found.low, 2), round(found.high, 2)
        (0.08, 0.12)
    """
    where = "poisson_bootstrap_interval"
    column = one_column(differences, where)
    ids = [id_bytes(query, "query id") for query in query_ids]
    check_share(level, "level", where)
    check_draws(draws, seed, where)
    if len(ids) != len(column):
        raise InputError(
            f"{len(column)} differences and {len(ids)} query ids", where=where, fix="pass the id of each query"
        )
    if len(set(ids)) < len(ids):
        raise InputError(
            f"{len(ids)} query ids, of which {len(set(ids))} differ",
            where=where,
            fix="pass one difference for each query",
        )
    mean, sd = moments(column)
    if not sd:
        return Interval(mean, mean, mean, level, "poisson")
    exponent = math.frexp(float(np.abs(column).max()))[1]
    whole = whole_differences(column, exponent)[:, None]
    sums = weighted_sums(query_keys(ids, seed), whole, draws)
    low, high = interval_of_sums(sums[:, 0], sums[:, 1], exponent, level)
    return Interval(mean, low, high, level, "poisson")


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


def poisson_weights(keys: npt.NDArray[np.uint64], draws: range) -> npt.NDArray[np.uint8]:
    """Return (D, Q) weights of the queries in these draws, which start at a multiple of 4."""
    blocks = np.arange(draws.start // _PER_WORD + 1, -(-draws.stop // _PER_WORD) + 1)
    mixed = keys + blocks.astype(np.uint64)[:, None] * _STEP
    for shift, factor in _MIX:
        mixed ^= mixed >> np.uint64(shift)
        mixed *= factor
    mixed ^= mixed >> np.uint64(31)
    parts = [(mixed >> np.uint64(16 * n)).astype(np.uint16) for n in range(_PER_WORD)]
    return _table()[np.stack(parts, axis=1)].reshape(-1, len(keys))[: len(draws)]


def whole_differences(differences: FloatArray, exponent: int) -> FloatArray:
    """Return differences below 2 ** exponent as integer multiples of 2 ** (exponent - 28)."""
    return np.rint(np.ldexp(differences, _BITS - exponent))


def weighted_sums(keys: npt.NDArray[np.uint64], whole: FloatArray, draws: int) -> npt.NDArray[np.int64]:
    """Return (draws, 1 + M) exact sums of the weights and of (Q, M) weighted integers."""
    found = np.zeros((draws, 1 + whole.shape[1]), dtype=np.int64)
    for start in range(0, len(keys), _ROWS):
        part = slice(start, start + _ROWS)
        columns = np.column_stack([np.ones(len(keys[part])), whole[part]])
        for first in range(0, draws, _DRAWS):
            chosen = range(first, min(first + _DRAWS, draws))
            weights = poisson_weights(keys[part], chosen).astype(np.float64)
            found[first : chosen.stop] += (weights @ columns).astype(np.int64)
    return found


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
