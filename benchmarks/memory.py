"""Files larger than memory: rankgauge with a limit, and DuckDB's SQL over the same Parquet files.

    python benchmarks/memory.py [QUERIES] [RUNS]

Makes a run of QUERIES x 100 rows and judgments of QUERIES x 10, in the order of their queries and
shuffled, and evaluates them by turns, each in a process of its own: CPU seconds of the process, and
its peak beyond a process that evaluated a few rows. DuckDB has two threads and the same limit. Its
means must be ours.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from clock import memory_now, memory_peak

MEASURES = ("nDCG@10", "RR@10", "P@10", "R@100", "AP")
LIMIT = "512MB"
DOCS, JUDGED, GROUP = 100, 10, 10_000
SQL = """
WITH ranked AS (
  SELECT query_id, doc_id, row_number() OVER w AS rank FROM read_parquet('{run}')
  WINDOW w AS (PARTITION BY query_id ORDER BY score DESC, doc_id DESC)
), ideal AS (
  SELECT query_id, relevance,
    row_number() OVER (PARTITION BY query_id ORDER BY relevance DESC) AS rank
  FROM read_parquet('{qrels}')
), best AS (
  SELECT query_id, sum((relevance > 0)::INT) AS relevant,
    sum(CASE WHEN rank <= 10 THEN relevance / log2(rank + 1) ELSE 0 END) AS gain
  FROM ideal GROUP BY query_id
), hits AS (
  SELECT r.query_id, r.rank, q.relevance,
    row_number() OVER (PARTITION BY r.query_id ORDER BY r.rank) AS found
  FROM ranked r JOIN read_parquet('{qrels}') q USING (query_id, doc_id) WHERE q.relevance > 0
), of_query AS (
  SELECT query_id,
    sum(CASE WHEN rank <= 10 THEN relevance / log2(rank + 1) ELSE 0 END) AS gain,
    coalesce(max(CASE WHEN rank <= 10 THEN 1.0::DOUBLE / rank END), 0) AS rr,
    sum((rank <= 10)::INT) / 10 AS p, sum((rank <= 100)::INT) AS r,
    sum(found::DOUBLE / rank) AS ap
  FROM hits GROUP BY query_id
)
SELECT avg(coalesce(h.gain / nullif(b.gain, 0), 0)), avg(coalesce(h.rr, 0)),
  avg(coalesce(h.p, 0)), avg(coalesce(h.r / nullif(b.relevant, 0), 0)),
  avg(coalesce(h.ap / nullif(b.relevant, 0), 0))
FROM best b LEFT JOIN of_query h USING (query_id)
"""


def main(queries: int, runs: int) -> None:
    """Print a table of both."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder)
        make(files, queries)
        rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for _ in range(runs):
            for order in ("sorted", "shuffled"):
                for engine in ("rankgauge", "duckdb"):
                    found = measured(engine, files, order)
                    rows.setdefault((order, engine), []).append(found)
    print(f"{queries * DOCS:,} rows, {queries * JUDGED:,} judgments, a limit of {LIMIT}")
    for (order, engine), found in rows.items():
        cpu = statistics.median(one["cpu"] for one in found)
        peak = max(one["peak"] for one in found)
        print(f"{order:9} {engine:10} {cpu:7.1f} CPU s {peak:8.0f} MiB")
        ours = rows[order, "rankgauge"][0]["means"]
        apart = max(abs(a - b) for a, b in zip(ours, found[0]["means"], strict=True))
        if apart > 1e-9:
            sys.exit(f"{engine} has other means ({apart:g} apart): {found[0]['means']}")


def measured(engine: str, files: Path, order: str) -> dict[str, Any]:
    """What one evaluation takes in a process of its own."""
    command = [sys.executable, __file__, engine, str(files), order]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    result: dict[str, Any] = json.loads(said)
    return result


def evaluate(engine: str, files: Path, order: str) -> None:
    """Evaluate a few rows, then all of them, and print what that takes."""
    call = of_rankgauge if engine == "rankgauge" else of_duckdb
    call(files, "few")
    before, used = memory_now(), time.process_time()
    means = call(files, order)
    took = {"cpu": time.process_time() - used, "peak": memory_peak() - before, "means": means}
    print(json.dumps(took))


def of_rankgauge(files: Path, order: str) -> list[float]:
    """The means of rankgauge."""
    from rankgauge import evaluate as with_limit

    qrels, run = files / f"qrels-{order}.parquet", files / f"run-{order}.parquet"
    return list(with_limit(qrels, run, MEASURES, memory=LIMIT).mean().values())


def of_duckdb(files: Path, order: str) -> list[float]:
    """The means of DuckDB."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET memory_limit='{LIMIT}'; SET threads=2")
    connection.execute(f"SET temp_directory='{files / 'duckdb'}'")
    qrels, run = files / f"qrels-{order}.parquet", files / f"run-{order}.parquet"
    row = connection.execute(SQL.format(run=run, qrels=qrels)).fetchall()[0]
    return list(map(float, row))


def make(files: Path, queries: int) -> None:
    """Write a run and judgments, sorted, shuffled, and a few of each."""
    rng = np.random.default_rng(1)
    orders = {"sorted": np.arange(queries), "few": np.arange(min(queries, 10))}
    for order, numbers in orders.items():
        write(files / f"run-{order}.parquet", run_rows(numbers, DOCS), "score")
        write(files / f"qrels-{order}.parquet", judged_rows(numbers), "relevance")
    for name, number in (("run", "score"), ("qrels", "relevance")):
        rows = list(
            run_rows(orders["sorted"], DOCS) if name == "run" else judged_rows(orders["sorted"])
        )
        columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
        places = rng.permutation(len(columns[0]))
        steps = range(0, len(places), GROUP * DOCS)
        parts = ([column[places[at : at + GROUP * DOCS]] for column in columns] for at in steps)
        write(files / f"{name}-shuffled.parquet", parts, number)


def run_rows(numbers: Any, docs: int) -> Iterator[list[Any]]:
    """Queries, documents and scores as numbers, some queries at a time."""
    for start in range(0, len(numbers), GROUP):
        query = np.repeat(numbers[start : start + GROUP], docs)
        place = np.tile(np.arange(docs), len(query) // docs)
        doc = (query * 7919 + place * 104_729) % 9_000_011
        yield [query.astype(np.int32), doc.astype(np.int32), 1.0 - place / docs]


def judged_rows(numbers: Any) -> Iterator[list[Any]]:
    """Judgments of every ninth document of a ranking, and of one that is not retrieved."""
    for start in range(0, len(numbers), GROUP):
        query = np.repeat(numbers[start : start + GROUP], JUDGED)
        place = np.tile(np.arange(JUDGED) * 9 + 20, len(query) // JUDGED) - query % 20
        doc = (query * 7919 + place * 104_729) % 9_000_011
        yield [query.astype(np.int32), doc.astype(np.int32), (query + place) % 4]


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


if __name__ == "__main__":
    if sys.argv[1:2] in (["rankgauge"], ["duckdb"]):
        evaluate(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
    else:
        main(*map(int, (sys.argv[1:] + ["100000", "3"][len(sys.argv) - 1 :])))
