"""Time of diversity measures compared with ordinary measures, as a Markdown table.

    python benchmarks/diversity.py [--tiny] [--rounds 3] [--write PAGE]

Judgments and runs are random with a fixed seed. Every retrieved document is judged for every
subtopic, the worst case at this depth. Each row is a separate process; numbers are medians.
Judgments are prepared before timing, as in an evaluation of many runs; the last column is the time
for reading them from a file.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from page import number, put, table

SIZES = ((50, 100, 10), (200, 1000, 10), (200, 1000, 2))
TINY = ((4, 10, 3),)
GOAL = 1.0
ORDINARY = ("nDCG@10", "nDCG@20", "AP", "P@20")
DIVERSE = (
    "alpha_nDCG@10",
    "alpha_nDCG@20",
    "ERR_IA@20",
    "nERR_IA@20",
    "NRBP",
    "nNRBP",
    "AP_IA",
    "P_IA@20",
    "StRecall@20",
)


def lines(queries: int, documents: int, subtopics: int) -> Iterator[str]:
    """Yield judgments; one in eight grades is 1, the others are 0."""
    rng = random.Random(20261122)  # noqa: S311 - no secret
    for query in range(queries):
        for document in range(documents):
            for subtopic in range(subtopics):
                yield f"{query} {subtopic + 1} d{document} {int(rng.random() < 1 / 8)}\n"


def took(queries: int, documents: int, subtopics: int) -> tuple[float, float, float]:
    """Return seconds for ordinary measures, with diversity measures as well, and for reading."""
    import rankgauge

    rng = random.Random(7)  # noqa: S311 - no secret
    run = {str(query): {f"d{document}": rng.random() for document in range(documents)} for query in range(queries)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "qrels.div")
        path.write_text("".join(lines(queries, documents, subtopics)), encoding="ascii")
        start = time.process_time()
        judged = rankgauge.data.read_subtopic_qrels(path)
        read = time.process_time() - start
    spent = []
    for measures in (ORDINARY, (*ORDINARY, *DIVERSE)):
        # Prepared judgments are cached in the judgments.
        rankgauge.evaluate(judged, {"0": {"d0": 1.0}}, measures)
        start = time.process_time()
        rankgauge.evaluate(judged, run, measures)
        spent.append(time.process_time() - start)
    return spent[0], spent[1], read


def _apart(size: tuple[int, int, int]) -> tuple[float, float, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--task", *map(str, size)], capture_output=True, text=True, check=True
    )
    plain, diverse, read = json.loads(done.stdout)
    return plain, diverse, read


def row(size: tuple[int, int, int], rounds: int) -> tuple[str, ...]:
    """Return the medians for one size."""
    taken = zip(*(_apart(size) for _ in range(rounds)), strict=True)
    plain, diverse, read = map(statistics.median, taken)
    text = number(diverse) + ("" if diverse < GOAL else f" (goal: under {GOAL:g})")
    name = "{:,} queries, {:,} documents, {} subtopics".format(*size)
    return name, number(plain), text, number(read)


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", nargs=3, type=int)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    if given.task:
        queries, documents, subtopics = given.task
        print(json.dumps(took(queries, documents, subtopics)))
        return
    head = (
        "judgments and run",
        f"{len(ORDINARY)} measures s",
        f"with {len(DIVERSE)} diversity measures s",
        "reading judgments s",
    )
    text = table(head, [row(size, given.rounds) for size in (TINY if given.tiny else SIZES)])
    print(text)
    if given.write:
        put(given.write, "diversity", text)


if __name__ == "__main__":
    main()
