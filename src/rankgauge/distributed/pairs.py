"""Worker tasks of a comparison: sums over the differences in a partition of the queries.

Values are Arrow batches in which the rows of a query, one for each run, are adjacent. All sums are
exact, and therefore do not depend on the partitioning. The first of two passes computes means, the
second one the spread around them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rankgauge.core.exact_sum import TOLERANCE, as_float, as_integer
from rankgauge.core.pair_table import FloatArray
from rankgauge.distributed.partition import Sum, sum_of, whole_queries
from rankgauge.errors import InputError
from rankgauge.measures.measure import parse
from rankgauge.stats.poisson_bootstrap import query_keys, weighted_sums, whole_differences

# Rows in memory at a time, besides the rest of the last query.
_ROWS = 250_000
#: Run, baseline, and measure.
Key: TypeAlias = tuple[str, str, str]


class PairJob(NamedTuple):
    """Settings of a comparison.

    Attributes:
        measures: Names of measures.
        runs: Names of the runs, each with a row for every query.
        pairs: Run and baseline of each comparison.
        skip_undefined: Whether undefined values are excluded; otherwise they count as 0.
    """

    measures: tuple[str, ...]
    runs: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    skip_undefined: bool

    def each(self) -> list[Key]:
        """Return each pair with each measure."""
        return [(*pair, measure) for pair in self.pairs for measure in self.measures]


class PairSums(NamedTuple):
    """Sums over the differences of a pair by a measure, for a part of the queries.

    Attributes:
        whole: Sum of the differences times 2 ** 1074.
        queries: Number of differences.
        above: Number of differences above 0.
        below: Number of differences below 0.
        lowest: Smallest difference.
        highest: Largest difference.
        nearest_below: Largest difference below 0; -inf if there is none.
        nearest_above: Smallest difference above 0; inf if there is none.
    """

    whole: int = 0
    queries: int = 0
    above: int = 0
    below: int = 0
    lowest: float = math.inf
    highest: float = -math.inf
    nearest_below: float = -math.inf
    nearest_above: float = math.inf

    @classmethod
    def of(cls, differences: FloatArray) -> PairSums:
        """Return the sums over these differences."""
        above, below = differences[differences > 0], differences[differences < 0]
        return cls(
            as_integer(differences),
            len(differences),
            len(above),
            len(below),
            float(differences.min(initial=math.inf)),
            float(differences.max(initial=-math.inf)),
            float(below.max(initial=-math.inf)),
            float(above.min(initial=math.inf)),
        )

    def __add__(self, other: PairSums) -> PairSums:  # type: ignore[override] # sums are added
        return PairSums(
            self.whole + other.whole,
            self.queries + other.queries,
            self.above + other.above,
            self.below + other.below,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            max(self.nearest_below, other.nearest_below),
            min(self.nearest_above, other.nearest_above),
        )

    @property
    def extremes(self) -> FloatArray:
        """Smallest and largest difference, and those nearest to 0, sorted."""
        known = (self.lowest, self.nearest_below, self.nearest_above, self.highest)
        return np.array([each for each in known if math.isfinite(each)])

    @property
    def exponent(self) -> int:
        """Exponent of the power of two above all absolute differences."""
        return math.frexp(float(np.abs(self.extremes).max(initial=0.0)))[1]

    @property
    def center(self) -> float:
        """Mean times 2 ** -exponent, as in `stats.moments`."""
        return math.ldexp(as_float(self.whole), -self.exponent) / self.queries

    @property
    def spreads(self) -> bool:
        """Whether differences vary by more than rounding errors."""
        if self.queries < 2 or self.lowest == self.highest:
            return False
        top = float(np.abs(self.extremes).max())
        return self.highest - self.lowest > TOLERANCE * top


class SpreadJob(NamedTuple):
    """Settings of the second pass of a comparison.

    Attributes:
        pairs: Settings of the comparison.
        centers: Exponent and mean of each key whose differences vary.
        draws: Number of bootstrap draws; 0 for none.
        seed: Seed of the draws.
    """

    pairs: PairJob
    centers: Mapping[Key, tuple[int, float]]
    draws: int
    seed: int


class SpreadSums(NamedTuple):
    """Sums of powers of deviations from the mean, in units of 2 ** exponent, and bootstrap sums.

    Attributes:
        squares: Sum of the squares times 2 ** 1074.
        cubes: Sum of the cubes times 2 ** 1074.
        weights: Sum of the weights in each draw.
        sums: Weighted sum of the `whole_differences` in each draw.
    """

    squares: int
    cubes: int
    weights: tuple[int, ...]
    sums: tuple[int, ...]

    def __add__(self, other: SpreadSums) -> SpreadSums:  # type: ignore[override] # sums are added
        return SpreadSums(
            self.squares + other.squares,
            self.cubes + other.cubes,
            tuple(map(sum, zip(self.weights, other.weights, strict=True))),
            tuple(map(sum, zip(self.sums, other.sums, strict=True))),
        )


def sum_pairs(batches: Iterable[Any], job: PairJob) -> Iterator[Any]:
    """Yield one row of JSON with the sums of the values and the differences in a partition."""
    values: dict[tuple[str, str], Sum] = {}
    found: dict[Key, PairSums] = {}
    for _, tables in _values_of(batches, job):
        for run, columns in tables.items():
            for measure, column in columns.items():
                known = values.get((run, measure), Sum(0, 0, 0))
                values[run, measure] = known + sum_of(measure, column)
        for key in job.each():
            found[key] = found.get(key, PairSums()) + PairSums.of(_differences(tables, key, job)[1])
    yield from _json_batch([list(values.items()), list(found.items())])


def read_sums(texts: Iterable[str]) -> tuple[dict[tuple[str, str], Sum], dict[Key, PairSums]]:
    """Return the sums of the rows of `sum_pairs`, by run and measure, and by key."""
    values: dict[tuple[str, str], Sum] = {}
    found: dict[Key, PairSums] = {}
    for text in texts:
        of_runs, of_pairs = json.loads(text)
        for (run, measure), numbers in of_runs:
            values[run, measure] = values.get((run, measure), Sum(0, 0, 0)) + Sum(*numbers)
        for key, numbers in of_pairs:
            found[tuple(key)] = found.get(tuple(key), PairSums()) + PairSums(*numbers)
    return values, found


def sum_spreads(batches: Iterable[Any], job: SpreadJob) -> Iterator[Any]:
    """Yield one row of JSON with the sums of deviations and the bootstrap sums in a partition."""
    found: dict[Key, SpreadSums] = {}
    for ids, tables in _values_of(batches, job.pairs):
        named = map(str.encode, ids)
        keys = query_keys(named, job.seed) if job.draws else np.zeros(len(ids), dtype=np.uint64)
        for key, (exponent, center) in job.centers.items():
            known, differences = _differences(tables, key, job.pairs)
            scaled = np.ldexp(differences, -exponent).tolist()
            # Not NumPy's powers: their last bit may differ from that in `stats.moments`.
            part = SpreadSums(
                as_integer(np.array([(value - center) ** 2 for value in scaled])),
                as_integer(np.array([(value - center) ** 3 for value in scaled])),
                *_bootstrap(keys[known], whole_differences(differences, exponent), job.draws),
            )
            found[key] = found[key] + part if key in found else part
    yield from _json_batch(list(found.items()))


def read_spreads(texts: Iterable[str]) -> dict[Key, SpreadSums]:
    """Return the sums of the rows of `sum_spreads`."""
    found: dict[Key, SpreadSums] = {}
    for text in texts:
        for key, (squares, cubes, weights, sums) in json.loads(text):
            part = SpreadSums(squares, cubes, tuple(weights), tuple(sums))
            found[tuple(key)] = found[tuple(key)] + part if tuple(key) in found else part
    return found


def moments_of(sums: PairSums, spread: SpreadSums | None) -> tuple[float, float]:
    """Return the mean and standard deviation of all differences, equal to `stats.moments`."""
    if not sums.queries:
        return 0.0, 0.0
    if spread is None:
        same = sums.lowest == sums.highest
        return sums.lowest if same else math.ldexp(sums.center, sums.exponent), 0.0
    variance = as_float(spread.squares) / (sums.queries - 1)
    scaled = (sums.center, math.sqrt(variance))
    mean, sd = (math.ldexp(each, sums.exponent) for each in scaled)
    return mean, sd


def skewness_of(sums: PairSums, spread: SpreadSums | None) -> float:
    """Return the skewness of all differences; 0 if they do not vary."""
    if spread is None:
        return 0.0
    variance = as_float(spread.squares) / sums.queries
    return as_float(spread.cubes) / sums.queries / variance**1.5


def _bootstrap(keys: Any, whole: FloatArray, draws: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    sums = weighted_sums(keys, whole[:, None], draws)
    return tuple(sums[:, 0].tolist()), tuple(sums[:, 1].tolist())


def _differences(tables: Mapping[str, Mapping[str, FloatArray]], key: Key, job: PairJob) -> tuple[Any, FloatArray]:
    """Return which queries count, and their differences."""
    run, base, name = key
    differences = parse(name).differences(tables[run][name], tables[base][name], skip_undefined=job.skip_undefined)
    known = ~np.isnan(differences)
    return known, differences[known]


def _values_of(batches: Iterable[Any], job: PairJob) -> Iterator[tuple[list[str], dict[str, dict[str, FloatArray]]]]:
    """Yield query ids and the values of each run by each measure, NaN where undefined."""
    for table in whole_queries(batches, _ROWS):
        ids = table["query_id"].combine_chunks().dictionary_encode()
        queries, codes = ids.dictionary.to_pylist(), ids.indices.to_numpy()
        names = np.asarray(table["run"].to_pylist(), dtype=object)
        columns = {measure: table[measure].to_numpy() for measure in job.measures}
        found = {}
        for run in job.runs:
            rows = np.flatnonzero(names == run)
            counts = np.bincount(codes[rows], minlength=len(queries))
            _check_counts(counts, queries, run)
            order = rows[np.argsort(codes[rows], kind="stable")]
            found[run] = {measure: column[order] for measure, column in columns.items()}
        yield queries, found


def _check_counts(counts: Any, queries: list[str], run: str) -> None:
    """Raise InputError unless the run has one row for each query."""
    wrong = np.flatnonzero(counts != 1)
    if not len(wrong):
        return
    query, count = queries[wrong[0]], int(counts[wrong[0]])
    if count:
        raise InputError(
            f"run {run!r} has {count} rows for query {query!r}",
            where="values",
            fix="keep one row for each run and query: values.dropDuplicates(['run', 'query_id'])",
        )
    raise InputError(
        f"run {run!r} has no value for query {query!r}, which another run has",
        where="values",
        fix="evaluate all runs in one call, with queries='all'",
    )


def _json_batch(data: Any) -> Iterator[Any]:
    import pyarrow as pa

    yield pa.RecordBatch.from_pydict({"sums": [json.dumps(data)]})
