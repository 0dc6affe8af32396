"""Cost of importing production logs and computing metrics, compared with a plain aggregate.

    python benchmarks/production.py [--events 10000000] [--folder FOLDER]

Makes a seeded UBI log and measures, in separate processes, the CPU time, wall time, and peak memory
of the import, of one pass over `questions`, of all online metrics, and of a plain DuckDB aggregate
of the same files. Every process has two threads.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

_PARTS = 20
_SHOWN = 5  # results shown per question
_RATED, _UP = 0.7, 0.6  # share of questions that are rated, and share of these rated up


def make_log(path: Path, events: int, seed: int = 0) -> None:
    """Write a UBI log of about `events` lines: queries, five impressions each, clicks, feedback."""
    rng = np.random.default_rng(seed)
    questions = events // 7
    words = np.array([f"word{i}" for i in range(5000)])
    with path.open("w", encoding="utf-8") as stream:
        for part in np.array_split(np.arange(questions), _PARTS):
            users = rng.integers(0, max(questions // 8, 1), len(part))
            chosen = words[rng.zipf(1.3, (len(part), 3)) % len(words)]
            documents = rng.integers(0, 100_000, (len(part), _SHOWN))
            clicks = rng.random((len(part), _SHOWN)) < np.array([0.12, 0.06, 0.04, 0.02, 0.01])
            rated = rng.random(len(part))
            for i, number in enumerate(part):
                drawn = (users[i], chosen[i], documents[i], clicks[i], rated[i])
                stream.writelines(_lines(int(number), drawn))


def _lines(number: int, drawn: tuple[Any, ...]) -> list[str]:
    """Return the lines of one question."""
    user, words, documents, clicks, rated = drawn
    start = f"2026-05-{1 + number % 28:02}T{number % 24:02}:{number % 60:02}"
    milliseconds = f"{number % 1000:03}Z"
    base = {"application": "shop", "query_id": f"q{number:09}", "client_id": f"u{user:07}"}
    query = base | {
        "user_query": " ".join(words),
        "timestamp": f"{start}:00.{milliseconds}",
        "query_response_hit_ids": [f"d{each}" for each in documents],
        "query_attributes": {"arm": "AB"[user % 2], "device": "phone" if user % 3 else "pc"},
    }
    base |= {"session_id": f"s{user:07}-{number % 28:02}"}
    rows: list[dict[str, Any]] = [query]
    for rank, document in enumerate(documents):
        target = {"object": {"object_id": f"d{document}"}, "position": {"ordinal": rank}}
        for action, seconds in (("impression", 1), ("click", 9 + rank)):
            if action == "impression" or clicks[rank]:
                time = f"{start}:{seconds:02}.{milliseconds}"
                rows.append(base | {"action_name": action, "timestamp": time, "event_attributes": target})
    if rated < _RATED:
        value = {"value": "up" if rated < _UP else "down"}
        time = f"{start}:40.{milliseconds}"
        rows.append(base | {"action_name": "feedback", "timestamp": time, "event_attributes": value})
    return [json.dumps(row) + "\n" for row in rows]


_STEPS = {
    "import": """
from rankgauge.production import import_log
report = import_log(source, log)
found = {"events": sum(report.events.values()), "refused": len(report.refused)}
""",
    "questions": """
from rankgauge.production import EventLog
with EventLog(log).connection() as connection:
    found = connection.execute('''SELECT arm, count(*), sum((clicks > 0)::INT), avg(click_rr),
        sum(thumbs_up), sum(thumbs_down), quantile_cont(next_question_seconds, 0.5)
        FROM questions GROUP BY arm ORDER BY arm''').fetchall()
""",
    "metrics": """
from rankgauge.production import online_metrics
found = {each.metric.name: each.value for each in online_metrics(log).overall if each.defined}
""",
    "metrics by day": """
from rankgauge.production import online_metrics
found = online_metrics(log, by="day").questions
""",
    # The values that the metrics of this log need from each question, in SQL.
    "plain, all needed": """
import duckdb
connection = duckdb.connect(config={"threads": 2})
connection.execute("SET enable_progress_bar = false")
found = connection.execute('''SELECT count(*), sum((clicks > 0)::INT), sum(impressions), sum(rr),
    sum(distinct_clicks), sum((thumbs > 0)::INT), sum((retrieved > 0)::INT), sum((gap < 600)::INT)
    FROM (SELECT *, epoch(lead(time) OVER (PARTITION BY session_id ORDER BY time)) - epoch(time)
    AS gap FROM (SELECT question_id, min(session_id) AS session_id, min(user_id) AS user_id,
    min(time) AS time, min(text) FILTER (kind = 'question') AS text,
    max(len(documents)) FILTER (kind = 'retrieval') AS retrieved,
    sum(len(documents)) FILTER (kind = 'impression') AS impressions,
    count(*) FILTER (kind = 'click') AS clicks, max(1 / ranks[1]) FILTER (kind = 'click') AS rr,
    len(list_distinct(list(documents[1]) FILTER (kind = 'click'))) AS distinct_clicks,
    arg_min(ranks[1], time) FILTER (kind = 'click') AS first_rank,
    arg_max(value, time) FILTER (kind = 'thumbs') AS thumbs,
    bool_or(kind = 'answer') AS answered FROM read_parquet(?) GROUP BY question_id))''',
    [log + "/*.parquet"]).fetchall()
""",
    "plain aggregate": """
import duckdb
connection = duckdb.connect(config={"threads": 2})
connection.execute("SET enable_progress_bar = false")
found = connection.execute('''SELECT arm, count(*), sum((clicks > 0)::INT) FROM (
    SELECT question_id, min(arm) AS arm, count(*) FILTER (kind = 'click') AS clicks,
    count(*) FILTER (kind = 'impression') AS impressions, min(time) AS time,
    sum(value) AS thumbs FROM read_parquet(?) GROUP BY question_id) GROUP BY arm ORDER BY arm''',
    [log + "/*.parquet"]).fetchall()
""",
    "plain reading": """
import duckdb
connection = duckdb.connect(config={"threads": 2})
connection.execute("SET enable_progress_bar = false")
found = connection.execute('''SELECT action_name, count(*), count(DISTINCT query_id)
    FROM read_json(?, format='newline_delimited') GROUP BY ALL ORDER BY ALL''', [source]).fetchall()
""",
}
_AROUND = """
import json, resource, sys, time
source, log = sys.argv[1:]
began = time.perf_counter()
{step}
wall = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({{"wall": wall, "cpu": used.ru_utime + used.ru_stime,
    "peak_mb": used.ru_maxrss / 1024, "found": found}}, default=str))
"""


def measure(step: str, source: Path, log: Path) -> dict[str, Any]:
    """Run a step in a separate process."""
    done = subprocess.run(
        [sys.executable, "-c", _AROUND.format(step=_STEPS[step]), str(source), str(log)],
        check=True,
        capture_output=True,
        text=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    """Make the log, measure each step, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    source, log = folder / "ubi.jsonl", folder / "log"
    if not source.exists():
        began = time.perf_counter()
        make_log(source, chosen.events)
        print(f"made {source.stat().st_size / 1e9:.2f} GB in {time.perf_counter() - began:.0f} s")
    steps = list(_STEPS) if not log.exists() else [name for name in _STEPS if name != "import"]
    for step in steps:
        done = measure(step, source, log)
        print(
            f"{step:16} {done['cpu']:7.1f} s CPU {done['wall']:7.1f} s {done['peak_mb']:6.0f} MB  "
            f"{str(done['found'])[:120]}",
            flush=True,
        )
    print(f"log: {sum(each.stat().st_size for each in log.glob('*.parquet')) / 1e9:.2f} GB")
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
