"""Worker tasks of an evaluation and a comparison: values of the queries in a partition, and exact sums.

Rows are Arrow batches in which all rows of a query are adjacent. Results do not depend on the
engine, on partitions and batches, on time, or on random numbers, so a repeated task gives the same
rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from rankgauge.core.exact_sum import TOLERANCE, as_float, as_integer
from rankgauge.core.pair_table import FloatArray
from rankgauge.core.policies import Policies
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.evaluation.blocks import add_absent, measure_block
from rankgauge.evaluation.context import make_context, make_plan
from rankgauge.measures.measure import parse
from rankgauge.stats.resampling import query_keys, weighted_sums, whole_differences

# Rows in memory at a time, besides the rest of the last query.
CHUNK_ROWS, _PAIR_ROWS = 500_000, 250_000
#: Run, baseline, and measure.
Key: TypeAlias = tuple[str, str, str]
Sums = TypeVar("Sums", "Sum", "PairSums", "SpreadSums")
# Floor of values in a geometric mean.
_SMALLEST = 1e-5


class Job(NamedTuple):
    """Settings of an evaluation.

    Attributes:
        measures: Names of measures.
        runs: Names of all runs; a run without rows in a partition has empty rankings there.
        policies: Policies of the evaluation.
    """

    measures: tuple[str, ...]
    runs: tuple[str, ...]
    policies: Policies


def measure_batches(batches: Iterable[Any], job: Job) -> Iterator[Any]:
    """Measure the queries of a partition.

    Args:
        batches: Record batches with the columns query_id, doc_id, value (a grade if judged,
            otherwise a score), run, and judged, sorted by query_id.
        job: Settings of the evaluation.

    Yields:
        Record batches with the columns run, query_id, and one column for each measure.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    plan = make_plan(job.measures)
    for table in whole_queries(batches, CHUNK_ROWS):
        judgments = table.filter(table["judged"])
        if not judgments.num_rows:
            continue
        rows = table.filter(pc.invert(table["judged"]))
        if rows["run"].null_count:
            raise InputError("a row has no run name", where="run", fix="filter out rows without one")
        # Not `Qrels.of`: it needs narwhals, which workers may lack.
        try:
            qrels = Qrels.from_columns(*_columns(judgments))
        except RankgaugeError as error:
            raise InputError(error.what, where="judgments", fix=error.fix) from None
        context = make_context(qrels, plan, job.policies, None)
        for name in job.runs:
            own = rows.filter(pc.equal(rows["run"], name))
            try:
                run = Run.from_columns(*_columns(own), name=name) if own.num_rows else Run.of({})
                measured = measure_block(run, context).measured
            except RankgaugeError as error:
                raise InputError(error.what, where=f"run {name}", fix=error.fix) from None
            measured = add_absent(measured, np.setdiff1d(np.arange(len(qrels)), measured.numbers), context)
            if not len(measured.numbers):
                continue
            columns = [
                pa.array([name] * len(measured.numbers), pa.string()),
                pa.array([qrels.query_ids[number] for number in measured.numbers.tolist()], pa.string()),
                *(pa.array(row, mask=np.isnan(row)) for row in measured.rows[context.variant.layout.values]),
            ]
            yield pa.RecordBatch.from_arrays(columns, ["run", "query_id", *job.measures])


def whole_queries(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Yield tables of whole queries, of about `rows` rows each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    held: list[Any] = []
    size, limit = 0, rows
    last = ""
    for batch in batches:
        if not batch.num_rows:
            continue
        _check_order(batch, last)
        last = batch["query_id"][-1].as_py()
        held.append(batch)
        size += batch.num_rows
        if size < limit:
            continue
        table = pa.Table.from_batches(held).combine_chunks()
        # Start of the last query, which may continue in the next batch.
        start = int(pc.index(table["query_id"], last).as_py())
        if start:
            yield table.slice(0, start)
        rest = table.slice(start)
        held, size = rest.to_batches(), rest.num_rows
        # A query larger than a chunk is not combined again for each of its batches.
        limit = max(rows, 2 * size)
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _check_order(batch: Any, last: str) -> None:
    """Raise InputError if a query id is missing, or rows are not sorted by query."""
    import pyarrow.compute as pc

    ids = batch["query_id"]
    if ids.null_count:
        place = "values"
        if "judged" in batch.schema.names:
            judged = batch["judged"][pc.index(ids.is_null(), True).as_py()].as_py()
            place = "judgments" if judged else "run"
        raise InputError(
            f"a query id is missing in the {place}", where="query_id", fix="filter out rows without a query id"
        )
    if ids[0].as_py() < last or pc.any(pc.less(ids[1:], ids[:-1])).as_py():
        raise InputError(
            "the rows of a partition are not sorted by query",
            where="query_id",
            fix="sort each partition by query_id, byte by byte",
        )


def _columns(rows: Any) -> tuple[Any, Any, Any]:
    return rows["query_id"], rows["doc_id"], rows["value"].to_numpy()


def sum_batches(batches: Iterable[Any], measures: Sequence[str]) -> Iterator[Any]:
    """Yield one row of JSON with the sums of the values in a partition, by run and measure."""
    import pyarrow as pa

    sums: dict[tuple[str, str], Sum] = {}
    for batch in batches:
        runs = np.asarray(batch["run"].to_pylist(), dtype=object)
        for run in dict.fromkeys(runs.tolist()):
            chosen = batch.filter(pa.array(runs == run))
            for measure in measures:
                _add(sums, (run, measure), sum_of(measure, chosen[measure].to_numpy(zero_copy_only=False)))
    yield _json_batch(sums=sums)


def read_sums(texts: Iterable[str], kind: Callable[..., Sums]) -> dict[Any, Sums]:
    """Return the sums of this kind in the rows of a task, by key."""
    sums: dict[Any, Sums] = {}
    for text in texts:
        for key, numbers in json.loads(text):
            _add(sums, tuple(key), kind(*numbers))
    return sums


def _json_batch(**columns: Mapping[Any, Any]) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({name: [json.dumps(list(sums.items()))] for name, sums in columns.items()})


def _add(sums: dict[Any, Any], key: Any, part: Any) -> None:
    sums[key] = sums[key] + part if key in sums else part


class Sum(NamedTuple):
    """Exact sum of the values of a measure, for a part of the queries.

    Attributes:
        whole: Sum of the defined values (of their logarithms for a geometric mean) times 2 ** 1074.
        defined: Number of defined values.
        queries: Number of queries.
    """

    whole: int
    defined: int
    queries: int

    def __add__(self, other: Sum) -> Sum:  # type: ignore[override] # sums are added, not joined
        return Sum(*map(sum, zip(self, other, strict=True)))


def sum_of(measure: str, values: Sequence[float] | np.ndarray) -> Sum:
    """Return the sum of the values of a measure, which are NaN where undefined."""
    numbers = np.asarray(values, dtype=np.float64)
    known = numbers[~np.isnan(numbers)]
    if parse(measure).declaration.mean == "geometric":
        # Not np.log: its last bit may depend on the memory address of a number.
        known = np.array([math.log(value) for value in np.maximum(known, _SMALLEST).tolist()])
    return Sum(as_integer(known), len(known), len(numbers))


def mean_of(measure: str, total: Sum, *, skip_undefined: bool = False) -> float:
    """Return the mean of a measure from the sum over all queries, equal to `Evaluation.mean`."""
    declared = parse(measure).declaration
    how = declared.mean
    whole, count = total.whole, total.defined
    if not (skip_undefined or declared.undefined == "skip"):
        count = total.queries
        if how == "geometric":
            least = as_integer(np.array([math.log(_SMALLEST)]))
            whole += least * (total.queries - total.defined)
    if how == "sum":
        return as_float(whole)
    if not count:
        return math.nan
    mean = as_float(whole) / count
    return math.exp(mean) if how == "geometric" else mean


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
        return np.array([difference for difference in known if math.isfinite(difference)])

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
        return self.highest - self.lowest > TOLERANCE * float(np.abs(self.extremes).max())


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
    weights: Sequence[int]
    sums: Sequence[int]

    def __add__(self, other: SpreadSums) -> SpreadSums:  # type: ignore[override] # sums are added
        return SpreadSums(
            self.squares + other.squares,
            self.cubes + other.cubes,
            tuple(map(sum, zip(self.weights, other.weights, strict=True))),
            tuple(map(sum, zip(self.sums, other.sums, strict=True))),
        )


def sum_pairs(batches: Iterable[Any], job: PairJob) -> Iterator[Any]:
    """Yield one row of JSON with the sums of the values and of the differences in a partition."""
    values: dict[tuple[str, str], Sum] = {}
    pairs: dict[Key, PairSums] = {}
    for _, tables in _values_of(batches, job):
        for run, columns in tables.items():
            for measure, column in columns.items():
                _add(values, (run, measure), sum_of(measure, column))
        for key in job.each():
            _add(pairs, key, PairSums.of(_differences(tables, key, job)[1]))
    yield _json_batch(sums=values, pairs=pairs)


def sum_spreads(batches: Iterable[Any], job: SpreadJob) -> Iterator[Any]:
    """Yield one row of JSON with the sums of deviations and the bootstrap sums in a partition."""
    spreads: dict[Key, SpreadSums] = {}
    for ids, tables in _values_of(batches, job.pairs):
        keys = query_keys(map(str.encode, ids), job.seed) if job.draws else np.zeros(len(ids), dtype=np.uint64)
        for key, (exponent, center) in job.centers.items():
            known, differences = _differences(tables, key, job.pairs)
            deviations = np.ldexp(differences, -exponent) - center
            weights = weighted_sums(keys[known], whole_differences(differences, exponent)[:, None], job.draws)
            part = SpreadSums(
                as_integer(deviations**2),
                as_integer(deviations**3),
                tuple(weights[:, 0].tolist()),
                tuple(weights[:, 1].tolist()),
            )
            _add(spreads, key, part)
    yield _json_batch(sums=spreads)


def moments_of(sums: PairSums, spread: SpreadSums | None) -> tuple[float, float]:
    """Return the mean and standard deviation of all differences, equal to `stats.moments`."""
    if not sums.queries:
        return 0.0, 0.0
    if spread is None:
        same = sums.lowest == sums.highest
        return sums.lowest if same else math.ldexp(sums.center, sums.exponent), 0.0
    variance = as_float(spread.squares) / (sums.queries - 1)
    return math.ldexp(sums.center, sums.exponent), math.ldexp(math.sqrt(variance), sums.exponent)


def skewness_of(sums: PairSums, spread: SpreadSums | None) -> float:
    """Return the skewness of all differences; 0 if they do not vary."""
    if spread is None:
        return 0.0
    variance = as_float(spread.squares) / sums.queries
    return as_float(spread.cubes) / sums.queries / variance**1.5


def _differences(tables: Mapping[str, Mapping[str, FloatArray]], key: Key, job: PairJob) -> tuple[Any, FloatArray]:
    """Return which queries count, and their differences."""
    run, base, name = key
    differences = parse(name).differences(tables[run][name], tables[base][name], skip_undefined=job.skip_undefined)
    known = ~np.isnan(differences)
    return known, differences[known]


def _values_of(batches: Iterable[Any], job: PairJob) -> Iterator[tuple[list[str], dict[str, dict[str, FloatArray]]]]:
    """Yield query ids and the values of each run by each measure, NaN where undefined."""
    for table in whole_queries(batches, _PAIR_ROWS):
        ids = table["query_id"].combine_chunks().dictionary_encode()
        queries, codes = ids.dictionary.to_pylist(), ids.indices.to_numpy()
        names = np.asarray(table["run"].to_pylist(), dtype=object)
        columns = {measure: table[measure].to_numpy() for measure in job.measures}
        values = {}
        for run in job.runs:
            rows = np.flatnonzero(names == run)
            counts = np.bincount(codes[rows], minlength=len(queries))
            wrong = np.flatnonzero(counts != 1)
            if len(wrong):
                raise _wrong_count(queries[wrong[0]], counts[wrong[0]], run)
            order = rows[np.argsort(codes[rows], kind="stable")]
            values[run] = {measure: column[order] for measure, column in columns.items()}
        yield queries, values


def _wrong_count(query: str, count: int, run: str) -> InputError:
    """Return the error for a query of which a run has no row, or several."""
    if count:
        return InputError(
            f"run {run!r} has {count} rows for query {query!r}",
            where="values",
            fix="keep one row for each run and query: values.dropDuplicates(['run', 'query_id'])",
        )
    return InputError(
        f"run {run!r} has no value for query {query!r}, which another run has",
        where="values",
        fix="evaluate all runs in one call, with queries='all'",
    )
