"""What the compiled core saves, by use: prints a table in Markdown.

    python benchmarks/compiled.py [--tiny] [--large] [--rounds 3] [--write PAGE]

rankgauge with the compiled core, without it (RANKGAUGE_NATIVE=0), pytrec_eval and ir_measures take
turns in fresh processes; numbers are medians of CPU time, of 7,000 queries one time. Asked are the
18 measures that all have.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engines import ENGINES, OURS
from page import number, put, table
from processes import Question, Refused, process
from workloads import MEASURES, Work

DATA = Path(__file__).resolve().parent.parent / "build" / "benchmarks"
WITHOUT = "without the core"
PEERS = ("pytrec_eval", "ir_measures")
HEAD = ("use", "with the core ms", "without ms", *(f"{peer} ms" for peer in PEERS),
        "pytrec_eval / ours", "goal")  # fmt: skip
ASKED = tuple(name for name in MEASURES if name not in {"RR@10", "ERR@20"})
# Form, workload, and the least ratio of pytrec_eval to ours that we want.
SMALL = (
    ("dicts", Work(1, 10, 6), 0.0), ("dicts", Work(100, 100, 9), 5.0),
    ("dicts", Work(50, 1000, 168), 4.0), ("Python", Work(50, 1000, 168), 0.0),
    ("CLI", Work(50, 1000, 168), 0.0), ("Python", Work(700, 1000, 2), 0.0),
    ("Python", Work(700, 1000, 2, "mixed"), 0.0),
)  # fmt: skip
LARGE = (
    ("dicts", Work(7000, 1000, 2), 6.0), ("Python", Work(7000, 1000, 2), 15.0),
    ("Python", Work(7000, 1000, 2, "real"), 8.0),
    ("Python", Work(7000, 1000, 2, "mixed"), 5.0),
)  # fmt: skip
TINY = (("dicts", Work(2, 5, 2), 0.0),)
FORMS = {"dicts": "dicts", "Python": "files, from Python", "CLI": "files, in a shell"}
_CALLS = 200
_MANY = 7000  # queries that are asked for once


def calls() -> dict[str, float]:
    """Milliseconds of small calls in this process, by what is called."""
    from rankgauge import functional
    from rankgauge.tutorials import RetrievalEvaluator

    docs = [f"d{place}" for place in range(10)]
    grades = {f"d{place}": place % 3 for place in range(0, 20, 3)}
    evaluator = RetrievalEvaluator()
    asked: dict[str, Callable[[], Any]] = {
        "`functional.ndcg_at_k`, 10 documents": lambda: functional.ndcg_at_k(docs, grades, 10),
        "`evaluate_single`, 10 documents": lambda: evaluator.evaluate_single("q", docs, [*grades]),
    }
    return {
        name: 1000 * min(timeit.repeat(call, number=_CALLS, repeat=5)) / _CALLS
        for name, call in asked.items()
    }


def _with_core(active: bool) -> None:  # noqa: FBT001 - of one script
    """Let the processes that follow use the core, or not."""
    os.environ["RANKGAUGE_NATIVE"] = "1" if active else "0"


def took(question: Question, rounds: int, data: Path) -> Mapping[str, float]:
    """Milliseconds by engine; one that refuses is left out."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name in (OURS.name, WITHOUT, *PEERS):
            engine = ENGINES.get(name, OURS)
            if question.form not in engine.forms:
                continue
            _with_core(name != WITHOUT)
            try:
                spent = question.ask(engine, data)
            except Refused:
                continue
            found.setdefault(name, []).append(1000 * spent.cpu)
    return {name: statistics.median(times) for name, times in found.items()}


def rows(
    works: tuple[tuple[str, Work, float], ...], rounds: int, data: Path
) -> Iterator[tuple[str, ...]]:
    """A line for each use."""
    for form, work, goal in works:
        turns = 1 if work.queries >= _MANY else rounds
        spent = took(Question(work, form, ASKED), turns, data)
        ours, peer = spent[OURS.name], spent.get(PEERS[0])
        cells = [number(spent[n]) if n in spent else "–" for n in (OURS.name, WITHOUT, *PEERS)]
        ratio = "–" if peer is None else f"{peer / ours:.1f}"
        missed = " **missed**" if peer is not None and peer < goal * ours else ""
        yield f"{FORMS[form]}, {work}", *cells, ratio, f"≥ {goal:g}{missed}" if goal else ""
    times: list[dict[str, float]] = []
    for active in (True, False):
        _with_core(active)
        words = [sys.executable, __file__, "--calls"]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        times.append(json.loads(said))
    for said in times[0]:
        yield said, *(f"{of[said]:.3f}" for of in times), "–", "–", "–", ""
    _with_core(active=True)
    for words in (["-c", "import rankgauge"], ["-m", "rankgauge", "--help"]):
        spent = [process([sys.executable, *words]).cpu for _ in range(2 * rounds + 1)]
        milliseconds = number(1000 * statistics.median(spent))
        yield f"`python {' '.join(words)}`", milliseconds, "–", "–", "–", "–", ""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--calls", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    if given.calls:
        print(json.dumps(calls()))
        return
    works = TINY if given.tiny else (*SMALL, *LARGE) if given.large else SMALL
    said = table(HEAD, rows(works, given.rounds, given.data))
    print(said)
    if given.write:
        put(given.write, "compiled", said)


if __name__ == "__main__":
    main()
