"""Worker tasks of an evaluation: values of the queries in a partition, and their exact sums.

Rows are Arrow batches in which all rows of a query are adjacent. Results do not depend on the
engine, on partitions and batches, on time, or on random numbers, so a repeated task gives the same
rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankgauge.core.exact_sum import as_integer
from rankgauge.core.policies import Policies
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.evaluation.blocks import Measured, measure_absent, measure_block, merge_measured
from rankgauge.evaluation.context import make_context
from rankgauge.evaluation.plan import make_plan
from rankgauge.measures.measure import parse

# Rows in memory at a time, besides the rest of the last query.
CHUNK_ROWS = 500_000
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
    for table in whole_queries(batches, CHUNK_ROWS):
        yield from _measure_table(table, job)


def whole_queries(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Yield tables of whole queries, of about `rows` rows each."""
    import pyarrow as pa

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
        ids = table["query_id"]
        # Start of the last query, which may continue in the next batch.
        start = _first_of(ids, last)
        if start:
            yield table.slice(0, start)
        rest = table.slice(start)
        held, size = rest.to_batches(), rest.num_rows
        # A query larger than a chunk is not combined again for each of its batches.
        limit = max(rows, 2 * size)
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _first_of(ids: Any, query: str) -> int:
    import pyarrow.compute as pc

    return int(pc.index(ids, query).as_py())


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


def _measure_table(table: Any, job: Job) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    judgments = table.filter(table["judged"])
    if not judgments.num_rows:
        return
    rows = table.filter(pc.invert(table["judged"]))
    if rows["run"].null_count:
        raise InputError("a row has no run name", where="run", fix="filter out rows without one")
    plan = make_plan(job.measures)
    # Not `Qrels.of`: it needs narwhals, which workers may lack.
    try:
        qrels = Qrels.from_columns(*_columns(judgments))
    except RankgaugeError as error:
        raise InputError(error.what, where="judgments", fix=error.fix) from None
    context = make_context(qrels, plan, job.policies, None)
    for name in job.runs:
        measured = _measure_run(rows.filter(pc.equal(rows["run"], name)), name, context)
        if measured is None:
            continue
        columns = [
            pa.array([name] * len(measured.numbers), pa.string()),
            pa.array([qrels.query_ids[number] for number in measured.numbers.tolist()], pa.string()),
            *(pa.array(np.ascontiguousarray(column), mask=np.isnan(column)) for column in measured.values.T),
        ]
        yield pa.RecordBatch.from_arrays(columns, ["run", "query_id", *job.measures])


def _columns(rows: Any) -> tuple[Any, Any, Any]:
    return rows["query_id"], rows["doc_id"], rows["value"].to_numpy()


def _measure_run(rows: Any, name: str, context: Any) -> Measured | None:
    """Return the values of a run; None if it has no judged query, with queries='intersection'."""
    parts = []
    seen = np.zeros(len(context.judgments.qrels), dtype=bool)
    if rows.num_rows:
        try:
            block = Run.from_columns(*_columns(rows), name=name)
            result = measure_block(block, context)
        except RankgaugeError as error:
            raise InputError(error.what, where=f"run {name}", fix=error.fix) from None
        if len(result.measured.numbers):
            parts.append(result.measured)
        seen[result.measured.numbers] = True
    absent = np.flatnonzero(~seen)
    if len(absent) and context.judgments.policies.queries != "intersection":
        parts.append(measure_absent(absent, context))
    return merge_measured(parts) if parts else None


def sum_batches(batches: Iterable[Any], measures: Sequence[str]) -> Iterator[Any]:
    """Yield the sums of the values in a partition, by run and measure."""
    import pyarrow as pa

    sums: dict[tuple[str, str], Sum] = {}
    for batch in batches:
        runs = np.asarray(batch["run"].to_pylist(), dtype=object)
        for run in dict.fromkeys(runs.tolist()):
            chosen = batch.filter(pa.array(runs == run))
            for measure in measures:
                values = chosen[measure].to_numpy(zero_copy_only=False)
                added = sums.get((run, measure), Sum(0, 0, 0)) + sum_of(measure, values)
                sums[run, measure] = added
    rows = [
        {"run": run, "measure": measure, "whole": format(s.whole, "x"), "defined": s.defined, "queries": s.queries}
        for (run, measure), s in sums.items()
    ]
    if rows:
        yield pa.RecordBatch.from_pylist(rows)


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
    given = np.asarray(values, dtype=np.float64)
    known = given[~np.isnan(given)]
    if parse(measure).declaration.mean == "geometric":
        # Not np.log: its last bit may depend on the memory address of a number.
        known = np.array([math.log(value) for value in np.maximum(known, _SMALLEST).tolist()])
    return Sum(as_integer(known), len(known), len(given))


def mean_of(measure: str, total: Sum, *, skip_undefined: bool = False) -> float:
    """Return the mean of a measure from the sum over all queries, equal to `Evaluation.mean`."""
    from rankgauge.core.exact_sum import as_float

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
