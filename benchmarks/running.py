"""Overhead of the benchmark runner per retriever call, as a Markdown table.

    python benchmarks/running.py [--queries 20000] [--large] [--write PAGE]

The retriever only returns ten prepared hits, so the time is that of the runner: calling, checking,
writing the journal, and counting. Each kind of retriever is measured in a separate process, with
the journal on a local disk. An endpoint of 50 milliseconds simulates a remote one. --large runs a
million queries and compares the memory with that of a tenth.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from page import put, table

from rankgauge.benchmark.latency import measure_resources

WAYS = (
    "sync",
    "sync, with scores",
    "async",
    "async, with a time limit",
    "a thread with a time limit",
    "four threads with a time limit",
)
BUDGETS = {"sync": 50, "async": 120, "a thread with a time limit": 120}
HITS = 10
FAR, AT_ONCE, ASKED = 0.05, 32, 1000


def bench(queries: int) -> Any:
    """Return a benchmark of this many queries without documents."""
    import rankgauge

    made = rankgauge.Benchmark(
        rankgauge.Collection.of(None, {f"q{n}": f"question {n}" for n in range(queries)}),
        {f"q{n}": {f"doc{n % HITS}": 1} for n in range(queries)},
        k=HITS,
        progress=False,
    )
    len(made.queries)  # join before timing
    return made


def retriever(way: str) -> tuple[Callable[..., Any], Any]:
    """Return a retriever and its limits."""
    import rankgauge

    ids = [f"doc{n}" for n in range(HITS)]
    scored = [(name, 1 - n / 20) for n, name in enumerate(ids)]

    async def waited(_: str) -> list[str]:
        return ids

    limits = {
        "async, with a time limit": rankgauge.Limits(timeout=30),
        "a thread with a time limit": rankgauge.Limits(timeout=30),
        "four threads with a time limit": rankgauge.Limits(timeout=30, concurrency=4),
    }
    if way.startswith("async"):
        return waited, limits.get(way)
    return (lambda _: scored if "scores" in way else ids), limits.get(way)


def overhead(way: str, queries: int) -> dict[str, float]:
    """Return wall and CPU microseconds per query."""
    made = bench(queries)
    call, limits = retriever(way)
    made.run("warm", retriever("sync")[0], timed=0, rerun="all")
    start, used = time.perf_counter(), time.process_time()
    made.run(way, call, limits=limits, timed=0)
    return {"wall": (time.perf_counter() - start) / queries * 1e6, "cpu": (time.process_time() - used) / queries * 1e6}


def far_away() -> dict[str, float]:
    """Return the seconds for an endpoint of 50 ms, and the lower bound."""
    import rankgauge

    async def endpoint(_: str) -> list[str]:
        await asyncio.sleep(FAR)
        return ["doc1"]

    made = bench(ASKED)
    start = time.perf_counter()
    made.run("far", endpoint, limits=rankgauge.Limits(concurrency=AT_ONCE), timed=0)
    return {"seconds": time.perf_counter() - start, "least": -(-ASKED // AT_ONCE) * FAR}


def memory(queries: int) -> dict[str, float]:
    """Return peaks of memory in MiB, beyond the queries: running, and evaluating in blocks."""
    made = bench(queries)
    gc.collect()
    with measure_resources() as running:
        run = made.run("many", retriever("sync")[0], timed=0)
    with measure_resources() as evaluating:
        run.evaluate("RR")
    return {"running": (running.peak or 0) / 2**20, "evaluating": (evaluating.peak or 0) / 2**20}


def apart(task: str, *words: str) -> dict[str, float]:
    """Run a task in a separate process."""
    done = subprocess.run(
        [sys.executable, __file__, "--task", task, *words], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def ways(queries: int, rounds: int) -> str:
    """Return the table of all kinds of retrievers."""
    rows = []
    for way in WAYS:
        some = [apart("overhead", way, str(queries)) for _ in range(rounds)]
        wall, cpu = (statistics.median(one[key] for one in some) for key in ("wall", "cpu"))
        rows.append((way, f"{wall:.0f}", f"{cpu:.0f}", str(BUDGETS.get(way, "–"))))
    head = ("retriever", "wall microseconds per query", "CPU microseconds per query", "goal")
    return table(head, rows)


def others(*, large: bool) -> str:
    """Describe a remote endpoint and, if large, the memory for many queries."""
    far = apart("far")
    text = (
        f"{ASKED:,} queries to an endpoint that replies after {FAR * 1000:.0f} ms, {AT_ONCE} in parallel: "
        f"{far['seconds']:.2f} s, {far['seconds'] / far['least']:.2f} times the minimum "
        f"({far['least']:.2f} s)."
    )
    if not large:
        return text
    rows = []
    for count in (100_000, 1_000_000):
        found = apart("memory", str(count))
        rows.append((f"{count:,}", f"{found['running']:.0f}", f"{found['evaluating']:.0f}"))
    return f"{text}\n\n{table(('queries', 'MiB for running', 'for evaluating'), rows)}"


def main() -> None:
    """Print the tables, or run one task."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="also run a million queries")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the tables into this page")
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.task:
        text = f"{ways(given.queries, given.rounds)}\n\n{others(large=given.large)}"
        print(text)
        if given.write:
            put(given.write, "running", text)
        return
    name, *words = given.task
    tasks: dict[str, Callable[[], dict[str, float]]] = {
        "overhead": lambda: overhead(words[0], int(words[1])),
        "far": far_away,
        "memory": lambda: memory(int(words[0])),
    }
    print(json.dumps(tasks[name]()))


if __name__ == "__main__":
    main()
