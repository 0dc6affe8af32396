"""Time of choice models and agreement, as a Markdown table.

    python benchmarks/judging.py [--tiny] [--rounds 3] [--write PAGE]

Simulated choices: questions with 8 to 20 documents and 16 to 40 choices among three documents or
none. One process; numbers are medians of CPU time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from page import number, put, table

from rankgauge.stats import fit_plackett_luce, krippendorff_alpha

HEAD = ("task", "questions", "seconds")
GOAL = 2
SHOWN = 3


def questions(count: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the number of documents, the sets shown, and simulated choices (-1 for none)."""
    rng = np.random.default_rng(18)
    for _ in range(count):
        documents, judgments = int(rng.integers(8, 21)), int(rng.integers(16, 41))
        utilities = rng.normal(-2, 1, documents)
        utilities[: documents // 3] += 4
        sets = np.array([rng.permutation(documents)[:SHOWN] for _ in range(judgments)])
        # The maximum of utilities with Gumbel noise is a Plackett-Luce choice.
        noisy = np.pad(utilities[sets], ((0, 0), (0, 1))) + rng.gumbel(size=(judgments, SHOWN + 1))
        extended = np.pad(sets, ((0, 0), (0, 1)), constant_values=-1)
        yield documents, sets, extended[np.arange(judgments), noisy.argmax(axis=1)]


def seconds(call: Callable[[], object], rounds: int) -> float:
    """Return the median CPU time after a first call."""
    call()
    took = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        took.append(time.process_time() - start)
    return statistics.median(took)


def rows(count: int, rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each computation."""
    drawn = list(questions(count))
    took = seconds(lambda: [fit_plackett_luce(*question) for question in drawn], rounds)
    text = number(took) + ("" if took < GOAL else f" (goal: under {GOAL})")
    yield "Plackett-Luce fits", f"{count:,}", text
    codes = np.random.default_rng(18).integers(0, 4, (30 * count, 2)).astype(float)
    took = seconds(lambda: krippendorff_alpha(codes), rounds)
    yield "Krippendorff's alpha, 1,000 resamples of 30 tasks each", f"{count:,}", number(took)


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    text = table(HEAD, rows(5 if given.tiny else 500, given.rounds))
    print(text)
    if given.write:
        put(given.write, "judging", text)


if __name__ == "__main__":
    main()
