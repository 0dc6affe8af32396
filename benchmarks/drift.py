"""How long drift of an evaluation set takes: prints a table in Markdown.

    RANKGAUGE_TEST_DATA=/path/to/data python benchmarks/drift.py [--tiny] [--write PAGE]

1,000 evaluation questions and 10,000 of a log: MS MARCO and a web log of 2005. One process.
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

HEAD = ("of drift", "evaluation", "log", "seconds")
GOAL = 60
FILES = (
    "no-drift-msmarco-halves/eval.jsonl", "no-drift-msmarco-halves/production.jsonl",
    "adhoc-topics-vs-web-log/production.jsonl",
)  # fmt: skip


def questions() -> list[str]:
    """Distinct questions, in random order."""
    found: dict[str, None] = {}
    for name in FILES:
        path = Path(os.environ["RANKGAUGE_TEST_DATA"], "drift", name)
        lines = path.read_text(encoding="utf-8").splitlines()
        found |= dict.fromkeys(json.loads(line)["text"] for line in lines)
    texts = list(found)
    return [texts[n] for n in np.random.default_rng(20).permutation(len(texts))]


def rows(ours: int, theirs: int) -> Iterator[tuple[str, ...]]:
    """A line for the vectors, and one for the whole."""
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
    yield "all, by TF-IDF with and without frequent words", *sizes, text


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    said = table(HEAD, rows(50, 200) if given.tiny else rows(1000, 10_000))
    print(said)
    if given.write:
        put(given.write, "drift", said)


if __name__ == "__main__":
    main()
