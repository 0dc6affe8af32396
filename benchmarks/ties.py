"""Cost of policies and weights compared with the default, as a Markdown table.

    python benchmarks/ties.py [--tiny] [--large] [--rounds 5] [--write PAGE]

One process, one run of dicts, judgments prepared; policies alternate, round by round; numbers are
medians of CPU time. The measures are those of the other tables without ERR, whose mean over tie
orders has no closed form.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from page import number, put, table
from workloads import MEASURES, Rankings, Work, mappings

from rankgauge import Qrels, evaluate, parse

SMALL = (Work(100, 100, 10), Work(50, 1000, 10), Work(700, 1000, 10))
LARGE = (Work(7000, 1000, 10),)
TINY = (Work(20, 20, 4),)
POLICIES: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "best": {"ties": "best"},
    "mean": {"ties": "mean"},
    "removed": {"unjudged": "removed"},
    "weights": {},
}
OTHERS = list(POLICIES)[1:]
HEAD = ("queries × documents", "scores", "queries tied", "default ms", *(f"{name} / default" for name in OTHERS))
GOAL = 1.5


def scored(run: Rankings, habit: str) -> Rankings:
    """Return the run with fewer distinct scores, and so more ties."""
    if habit == "original":
        return run
    if habit == "all equal":
        return {query: dict.fromkeys(docs, 1.0) for query, docs in run.items()}
    return {query: {doc: round(score) + 0.0 for doc, score in docs.items()} for query, docs in run.items()}


def took(qrels: Qrels, run: Rankings, rounds: int) -> tuple[Mapping[str, float], int]:
    """Return milliseconds of each policy, and the number of queries that ties could change."""
    measures = [name for name in MEASURES if parse(name).has_tie_mean]
    times: dict[str, list[float]] = {name: [] for name in POLICIES}
    weights = {query: 1.0 + number for number, query in enumerate(qrels)}
    touched = 0
    for _ in range(rounds + 1):
        for name, policies in POLICIES.items():
            given = weights if name == "weights" else None
            start = time.process_time()
            found = evaluate(qrels, run, measures, weights=given, **policies)  # type: ignore[arg-type] # policies
            times[name].append(1000 * (time.process_time() - start))
            touched = max(touched, found.counts["tied"])
    # The first call of each policy is a warm-up.
    return {name: statistics.median(seen[1:]) for name, seen in times.items()}, touched


def rows(works: Iterable[Work], rounds: int) -> Iterable[tuple[str, ...]]:
    """Yield a row for each workload and kind of scores."""
    for work in works:
        judgments, run = mappings(work)
        qrels = Qrels.of(judgments)
        for habit in ("original", "rounded", "all equal"):
            spent, touched = took(qrels, scored(run, habit), rounds)
            times = [spent[name] / spent["default"] for name in OTHERS]
            texts = [f"{each:.2f}" + ("" if each <= GOAL else f" (goal: {GOAL})") for each in times]
            yield str(work), habit, f"{touched:,}", number(spent["default"]), *texts


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    works = TINY if given.tiny else (*SMALL, *LARGE) if given.large else SMALL
    text = table(HEAD, rows(works, given.rounds), words=2)
    print(text)
    if given.write:
        put(given.write, "ties", text)


if __name__ == "__main__":
    main()
