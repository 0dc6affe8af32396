"""Time of measuring the drift of an evaluation set, as a Markdown table.

    RANKGAUGE_TEST_DATA=/path/to/data python benchmarks/drift.py [--tiny] [--write PAGE]

1,000 evaluation questions of MS MARCO and 10,000 questions of a 2005 web log, in one process.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from page import number, put, table

from rankgauge.production import distinct_questions, measure_drift

HEAD = ("task", "evaluation", "log", "seconds")
GOAL = 60
FILES = (
    "no-drift-msmarco-halves/eval.jsonl",
    "no-drift-msmarco-halves/production.jsonl",
    "adhoc-topics-vs-web-log/production.jsonl",
)


def questions() -> list[str]:
    """Return distinct questions in random order."""
    found: dict[str, None] = {}
    for name in FILES:
        path = Path(os.environ["RANKGAUGE_TEST_DATA"], "drift", name)
        lines = path.read_text(encoding="utf-8").splitlines()
        found |= dict.fromkeys(json.loads(line)["text"] for line in lines)
    texts = list(found)
    return [texts[n] for n in np.random.default_rng(20).permutation(len(texts))]


def rows(ours: int, theirs: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for the vectors and one for the whole measurement."""
    texts = questions()[: ours + theirs]
    sizes = f"{ours:,}", f"{theirs:,}"
    start = time.process_time()
    distinct_questions.embed(texts, None, 0)
    took = time.process_time() - start
    yield "TF-IDF of the questions", *sizes, number(took)
    start = time.process_time()
    measure_drift(texts[:ours], texts[ours:])
    took = time.process_time() - start
    text = number(took) + ("" if took < GOAL else f" (goal: {GOAL})")
    yield "whole comparison, TF-IDF with and without frequent words", *sizes, text


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    if "RANKGAUGE_TEST_DATA" not in os.environ:
        print("not measured: set RANKGAUGE_TEST_DATA to the folder of the test data")
        return
    text = table(HEAD, rows(50, 200) if given.tiny else rows(1000, 10_000))
    print(text)
    if given.write:
        put(given.write, "drift", text)


if __name__ == "__main__":
    main()
