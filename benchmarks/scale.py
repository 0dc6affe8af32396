"""Large runs: rankgauge in memory, in parts, and on Spark, compared with other engines.

    python benchmarks/scale.py [--queries N] [--rounds N] [--write PAGE]          # one machine
    python benchmarks/scale.py --spark [--queries N] [--rounds N] [--write PAGE]  # needs pyspark

Makes a run of N x 100 rows and judgments of N x 10 rows as Parquet, in query order and shuffled.
Engines take turns, each in a separate process that first evaluates a few rows, so that start and
imports do not count. CPU seconds include child processes; memory is the peak beyond that at the
start. Every engine computes the values of each query, and its means must equal ours.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from clock import memory_now, memory_peak
from page import number, put, table

FIVE = ("nDCG@10", "RR@10", "P@10", "R@100", "AP")
TWENTY_FIVE = (
    *FIVE,
    *(f"nDCG@{k}" for k in (1, 3, 5, 20, 100)),
    *(f"P@{k}" for k in (1, 3, 5, 20, 100)),
    *(f"R@{k}" for k in (5, 10, 20, 50)),
    "RR",
    "AP@100",
    "Success@1",
    "Success@5",
    "Rprec",
    "nDCG",
)
LIMIT = "512MB"
DOCS, JUDGED, GROUP = 100, 10, 10_000
HEAD = ("engine", "rows", "CPU s", "CPU s per million rows", "ratio", "memory (MiB)", "goal")


class Engine(NamedTuple):
    """A way to evaluate the files.

    Attributes:
        name: The name in the table.
        call: Returns the means of the five measures for a folder and an order of rows.
        orders: The orders of rows to measure.
        goals: The accepted ratio to the first engine, for each of these orders.
    """

    name: str
    call: Callable[[Path, str], list[float]]
    orders: tuple[str, ...] = ("sorted", "shuffled")
    goals: tuple[str, ...] = ("", "")


def paths(files: Path, order: str) -> tuple[str, str]:
    """Return the files of judgments and run."""
    return str(files / f"qrels-{order}.parquet"), str(files / f"run-{order}.parquet")


def ours(measures: tuple[str, ...], limit: str | None) -> Callable[[Path, str], list[float]]:
    """Return rankgauge's evaluation, with or without a memory limit."""

    def call(files: Path, order: str) -> list[float]:
        from rankgauge import evaluate

        means = evaluate(*paths(files, order), measures, memory=limit).mean()
        return [means[name] for name in FIVE]

    return call


def of_duckdb(files: Path, order: str) -> list[float]:
    """Run the query of `rankgauge sql` with the same limit and two threads."""
    import duckdb

    from rankgauge.distributed import sql_query

    db = duckdb.connect()
    db.execute(f"SET memory_limit='{LIMIT}'; SET threads=2; SET temp_directory='{files}/duckdb'")
    for name, path in zip(("qrels", "run"), paths(files, order), strict=True):
        db.read_parquet(path).create_view(name)
    return of_values(db.sql(sql_query(FIVE, dialect="duckdb", per_query=True)).to_arrow_table())


def of_polars(files: Path, order: str) -> list[float]:
    """Run expressions in Polars' streaming engine, which has no memory limit."""
    import polars as pl

    judged, run = (pl.scan_parquet(path) for path in paths(files, order))
    rank, grade, top = pl.col("rank"), pl.col("grade"), pl.col("rank") <= 10
    ranked = run.with_columns(rank=pl.struct("score", "doc_id").rank("ordinal", descending=True).over("query_id"))
    found = (
        ranked.join(judged.filter(grade > 0), on=["query_id", "doc_id"])
        .group_by("query_id")
        .agg(
            gain=(grade / (rank + 1).log(2)).filter(top).sum(),
            rr=(1 / rank).filter(top).max(),
            p=top.sum() / 10,
            r=(rank <= 100).sum(),
            ap=(pl.int_range(1, pl.len() + 1) / rank.sort()).sum(),
        )
    )
    best = grade.sort(descending=True).head(10)
    ideal = judged.group_by("query_id").agg(
        relevant=(grade > 0).sum(), best=(best / pl.int_range(2, best.len() + 2).log(2)).sum()
    )
    values = ideal.join(found, on="query_id", how="left").select(
        "query_id",
        pl.col("gain") / pl.col("best"),
        "rr",
        "p",
        pl.col("r") / pl.col("relevant"),
        pl.col("ap") / pl.col("relevant"),
    )
    return of_values(values.collect(engine="streaming").to_arrow())


def on_spark(measures: tuple[str, ...], ship: str | None) -> Callable[[Path, str], list[float]]:
    """Run Spark on two cores with `mapInArrow`, or with `rankgauge sql` if ship is None."""

    def call(files: Path, order: str) -> list[float]:
        from pyspark.sql import SparkSession

        from rankgauge.distributed import spark, sql_query

        # Spark's default, python3, may be another version.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings = {"ui.enabled": "false", "driver.memory": "4g", "sql.shuffle.partitions": "32"}
        builder = SparkSession.builder.master("local[2]")
        for name, value in settings.items():
            builder = builder.config(f"spark.{name}", value)
        session = builder.getOrCreate()
        judged, run = (session.read.parquet(path) for path in paths(files, order))
        if ship:
            values = spark.evaluate(run, judged, measures, ship=ship)  # type: ignore[arg-type]
            columns = [f"`{name}`" for name in FIVE]
        else:
            run.createOrReplaceTempView("run")
            judged.createOrReplaceTempView("qrels")
            values = session.sql(sql_query(measures, dialect="spark", per_query=True))
            columns = values.columns[1:]
        folder = str(files / "values")
        values.write.mode("overwrite").parquet(folder)
        return of_values(session.read.parquet(folder).select("query_id", *columns).toArrow())

    return call


def of_values(values: Any) -> list[float]:
    """Return the means of per-query values; undefined values are null or NaN."""
    columns = [column.to_numpy() for column in values.columns[1:]]
    return [float(np.nan_to_num(column.astype(float)).mean()) for column in columns]


LOCAL = (
    Engine(f'stream, `memory="{LIMIT}"`', ours(FIVE, LIMIT)),
    Engine("the same, 25 measures", ours(TWENTY_FIVE, LIMIT), ("sorted",), ("≤ 1.3",)),
    Engine("without a limit", ours(FIVE, None)),
    Engine("DuckDB, `rankgauge sql`", of_duckdb, goals=("≥ 2", "")),
    Engine("Polars, streaming", of_polars, goals=("≥ 2.5", "≥ 1")),
)
SPARK = (
    Engine("Spark SQL, `rankgauge sql`", on_spark(FIVE, None), ("sorted",)),
    Engine("`spark.evaluate`", on_spark(FIVE, "value"), ("sorted",), ("≤ 1.1",)),
    Engine("the same, installed", on_spark(FIVE, "installed"), ("sorted",), ("≤ 1.1",)),
    Engine("the same, 25 measures", on_spark(TWENTY_FIVE, "installed"), ("sorted",)),
)


def measured(number: int, files: Path, order: str, *, spark: bool) -> dict[str, Any]:
    """Return the cost of one evaluation in a separate process."""
    words = [*(["--spark"] if spark else []), "--one", str(number), order, str(files)]
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def evaluate(engine: Engine, files: Path, order: str) -> None:
    """Evaluate a few rows, then all, and print the cost of the latter."""
    engine.call(files, "few")
    before, used = memory_now(), cpu_seconds()
    means = engine.call(files, order)
    took = {"cpu": cpu_seconds() - used, "peak": memory_peak() - before, "means": means}
    sys.stdout.write(f"{json.dumps(took)}\n")


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its descendants."""
    if not Path("/proc/self/stat").exists():
        return time.process_time()
    ticks, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # the process has just ended
        number = int(path.parent.name)
        parents[number], ticks[number] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {os.getpid()}
    while new := {one for one, parent in parents.items() if parent in family} - family:
        family |= new
    return sum(ticks[one] for one in family) / os.sysconf("SC_CLK_TCK")


def make(files: Path, queries: int) -> None:
    """Write runs and judgments: sorted, shuffled, and a few rows of each."""
    rng = np.random.default_rng(1)
    orders = {"sorted": np.arange(queries), "few": np.arange(min(queries, 10))}
    for order, numbers in orders.items():
        write(files / f"run-{order}.parquet", run_rows(numbers, DOCS), "score")
        write(files / f"qrels-{order}.parquet", judged_rows(numbers), "grade")
    for name, value in (("run", "score"), ("qrels", "grade")):
        rows = list(run_rows(orders["sorted"], DOCS) if name == "run" else judged_rows(orders["sorted"]))
        columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
        places = rng.permutation(len(columns[0]))
        steps = range(0, len(places), GROUP * DOCS)
        parts = ([column[places[at : at + GROUP * DOCS]] for column in columns] for at in steps)
        write(files / f"{name}-shuffled.parquet", parts, value)


def run_rows(numbers: Any, docs: int) -> Iterator[list[Any]]:
    """Yield blocks of queries, documents, and scores as numbers."""
    for start in range(0, len(numbers), GROUP):
        query = np.repeat(numbers[start : start + GROUP], docs)
        place = np.tile(np.arange(docs), len(query) // docs)
        doc = (query * 7919 + place * 104_729) % 9_000_011
        yield [query.astype(np.int32), doc.astype(np.int32), 1.0 - place / docs]


def judged_rows(numbers: Any) -> Iterator[list[Any]]:
    """Yield judgments of every ninth ranked document and of some that are not retrieved."""
    for start in range(0, len(numbers), GROUP):
        query = np.repeat(numbers[start : start + GROUP], JUDGED)
        which = np.tile(np.arange(JUDGED), len(query) // JUDGED)
        place = which * 9 + 20 - query % 20
        doc = (query * 7919 + place * 104_729) % 9_000_011
        yield [query.astype(np.int32), doc.astype(np.int32), (query // 3 + which) % 4]


def write(path: Path, parts: Any, number: str) -> None:
    """Write rows with ids as text."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    kind = pa.float64() if number == "score" else pa.int64()
    schema = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), (number, kind)])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for query, doc, value in parts:
            ids = [
                pc.binary_join_element_wise(letter, pa.array(column).cast(pa.string()), "")
                for letter, column in (("q", query), ("d", doc))
            ]
            writer.write_table(pa.table([*ids, pa.array(value).cast(kind)], schema=schema))


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    engines = SPARK if given.spark else LOCAL
    if given.one:
        place, order, folder = given.one
        evaluate(engines[int(place)], Path(folder), order)
        return
    asked = [(place, order) for place, one in enumerate(engines) for order in one.orders]
    took: dict[tuple[int, str], list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), given.queries)
        for _ in range(given.rounds):
            for place, order in asked:
                one = measured(place, Path(folder), order, spark=given.spark)
                took.setdefault((place, order), []).append(one)
    lines = [HEAD, *rows(engines, took, given.queries * DOCS / 1e6)]
    if given.spark:
        # Spark shuffles the rows in any case, and its memory is a setting.
        lines = [(name, *numbers[1:4], numbers[5]) for name, *numbers in lines]
    text = table(lines[0], lines[1:], words=1 if given.spark else 2)
    sys.stdout.write(f"{text}\n")
    if given.write:
        put(given.write, "spark" if given.spark else "one machine", text)


def rows(
    engines: tuple[Engine, ...], took: dict[tuple[int, str], list[dict[str, Any]]], millions: float
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each engine and order; ratios are medians of rounds, since load varies."""
    exact = took[0, "sorted"][0]["means"]
    for (place, order), found in took.items():
        apart = max(abs(a - b) for a, b in zip(exact, found[0]["means"], strict=True))
        if apart > 1e-9:
            sys.exit(f"means of {engines[place].name} differ by {apart:g}")
        cpu = statistics.median(one["cpu"] for one in found)
        pairs = zip(found, took[0, order], strict=True)
        ratio = statistics.median(one["cpu"] / base["cpu"] for one, base in pairs)
        peak = max(one["peak"] for one in found)
        yield (
            engines[place].name,
            order,
            number(cpu),
            number(cpu / millions),
            number(ratio),
            number(peak),
            dict(zip(engines[place].orders, engines[place].goals, strict=False))[order],
        )


if __name__ == "__main__":
    main()
