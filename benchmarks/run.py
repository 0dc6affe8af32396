"""How fast rankgauge is beside every peer that is installed: prints tables in Markdown.

    python benchmarks/run.py [files dicts frames calls growth start] [--large] [--write PAGE]

Every engine runs in fresh processes, in turn with the others, round after round; numbers are the
medians. CPU is user and system time. A ratio above 1 says that rankgauge needs less of it; a ratio
that misses its goal is said so. What an engine does not compute is not asked of it, and a time
counts only where its means agree with ours. Inputs are made from a seed, under build/benchmarks.

--large adds millions of rows: about twenty minutes with every peer, and 2 GB of files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

from engines import OURS, PEERS, Engine
from page import number, put, table
from processes import Answers, Question, Took, ask_all, median, process
from workloads import MORE, SHARED, Work, files

DATA = Path(__file__).parent.parent / "build" / "benchmarks"

S, M = Work(50, 1000, 168), Work(700, 1000, 2)
LARGE = Work(7000, 1000, 1, large=True)
REAL = Work(7000, 1000, 1, "real", large=True)
MIXED = Work(7000, 1000, 1, "mixed", large=True)
MANY = Work(100_000, 100, 5, large=True)
TINY = Work(3, 10, 4)


def asked(*some: tuple[Work, str]) -> tuple[Question, ...]:
    """Questions with the measures that all have."""
    return tuple(Question(work, form, SHARED) for work, form in some)


FILES = (
    *asked((S, "Python"), (S, "CLI"), (M, "Python"), (M, "CLI")),
    Question(Work(700, 1000, 2, gz=True), "Python", SHARED),
    Question(M, "CLI", SHARED, pipe=True),
    *asked((LARGE, "Python"), (LARGE, "CLI"), (REAL, "Python"), (MIXED, "Python"), (MIXED, "CLI")),
    *asked((MANY, "Python"), (MANY, "CLI")),
)
DICTS = asked(
    (Work(1, 100, 9), "dicts"),
    (Work(100, 100, 9), "dicts"),
    (S, "dicts"),
    (Work(50, 1000, 168, "mixed"), "dicts"),
    (LARGE, "dicts"),
    (MANY, "dicts"),
)
FRAMES = asked((S, "pandas"), (S, "polars"), (LARGE, "pandas"), (LARGE, "polars"))

# At least so many times as much CPU as ours, by workload, form and peer.
GOALS = {
    (LARGE, "Python"): {"pytrec_eval": 15, "ir_measures": 20, "ranx": 20},
    (LARGE, "CLI"): {"trec_eval": 6},
    (MANY, "Python"): {"pytrec_eval": 5},
    (MANY, "CLI"): {"trec_eval": 50},
    (MIXED, "Python"): {"pytrec_eval": 5},
    (MIXED, "CLI"): {"trec_eval": 2},
    (REAL, "Python"): {"pytrec_eval": 8},
    (S, "Python"): {"ir_measures": 2},
    (S, "CLI"): {"ir_measures": 1.2},
    (Work(100, 100, 9), "dicts"): {"pytrec_eval": 5, "ir_measures": 20, "ranx": 25},
    (S, "dicts"): {"pytrec_eval": 4},
    (LARGE, "dicts"): {"pytrec_eval": 6},
    (MANY, "dicts"): {"pytrec_eval": 3},
    (S, "pandas"): {"ir_measures": 20},
    (S, "polars"): {"ir_measures": 20},
    (LARGE, "pandas"): {"ir_measures": 50},
    (LARGE, "polars"): {"ir_measures": 50},
}
# At most so many MiB of ours.
ROOM = {(LARGE, "Python"): 350, (REAL, "Python"): 350, (MIXED, "Python"): 800}
# At most so many microseconds, with the compiled core.
CALLS = {
    "`evaluate`, 18 measures": 100, "`functional.ndcg_at_k`": 25,
    "`RetrievalEvaluator.evaluate_single`": 200,
}  # fmt: skip
# At most so many times what ten measures less cost.
TEN_MORE = 1.1


@dataclass(frozen=True)
class Growth:
    """What grows: a heading, and what is asked, each with what is in its first cell."""

    head: str
    steps: tuple[tuple[str, Question], ...]


def growing_measures(work: Work, form: str) -> Growth:
    """The same with more and more measures."""
    some = (*SHARED, *MORE)
    steps = ((str(n), Question(work, form, some[:n])) for n in (1, 8, 18, 28))
    shown = "dicts" if form == "dicts" else "files"
    return Growth(f"measures, {shown}, {work}", tuple(steps))


GROWTHS = (
    Growth(
        "queries, dicts, × 100 documents",
        tuple(
            (f"{queries:,}", Question(Work(queries, 100, 9), "dicts", SHARED))
            for queries in (100, 1000, 10_000)
        ),
    ),
    Growth(
        "documents, dicts, 100 queries ×",
        tuple(
            (f"{docs:,}", Question(Work(100, docs, 9), "dicts", SHARED)) for docs in (10, 100, 1000)
        ),
    ),
    growing_measures(S, "dicts"),
    growing_measures(M, "Python"),
    growing_measures(LARGE, "Python"),
)


@dataclass(frozen=True)
class Plan:
    """What is run: peers, sizes, and how often."""

    peers: tuple[Engine, ...]
    data: Path
    rounds: int
    large_rounds: int = 1
    large: bool = False
    tiny: bool = False

    def ask(self, question: Question) -> Answers | None:
        """Ask all of them, or nobody if it is too large."""
        work = question.work
        if work.large and not self.large:
            return None
        if self.tiny:
            return _tiny(replace(question, work=replace(TINY, gz=work.gz)), self.peers, self.data)
        print(f"  {question.form}, {work}, {len(question.measures)} measures", file=sys.stderr)
        rounds = self.large_rounds if work.large else self.rounds
        return ask_all(question, self.peers, rounds, self.data)


@cache
def _tiny(question: Question, peers: tuple[Engine, ...], data: Path) -> Answers:
    """One answer for all questions that differ in size only."""
    return ask_all(question, peers, 1, data)


def beside(plan: Plan, questions: Sequence[Question], unit: str) -> str:
    """A table of questions: a row for each engine."""
    many = {"s": 1.0, "ms": 1000.0}[unit]
    left_out: dict[str, list[str]] = {}
    rows, used = [], set()
    for question in questions:
        if (answers := plan.ask(question)) is None:
            continue
        rows += [*_rows(question, answers, many)]
        used |= answers.took.keys()
        for name, why in answers.left_out.items():
            left_out.setdefault(f"{name} {why}", []).append(_what(question))
    head = ("queries × documents", "engine (measures)", f"CPU {unit}", f"wall {unit}", "MiB")
    whole = table((*head, "CPU / ours", "goal"), rows, words=2)
    notes = [f"- {', '.join(places)}: {what}." for what, places in left_out.items()]
    return "\n\n".join(filter(None, (whole, "\n".join([*_agreement(plan, used), *notes]))))


def _what(question: Question) -> str:
    form = "" if question.form == "dicts" else f", {question.form}"
    return f"{question.work}{form}{', through a pipe' if question.pipe else ''}"


def _rows(question: Question, answers: Answers, many: float) -> Iterator[Sequence[str]]:
    key = (question.work, question.form)
    ours = answers.took[OURS.name]
    for name, took in answers.took.items():
        engine = next(e for e in (OURS, *PEERS) if e.name == name)
        shown = f"{name} ({len(engine.computes(question.measures))}){'*' * bool(engine.other)}"
        numbers = (number(took.cpu * many), number(took.wall * many), number(took.peak))
        if engine is OURS:
            room = None if question.pipe else ROOM.get(key)
            held = "" if not room else _held(took.peak <= room, f"≤ {room} MiB")
            yield (_what(question), shown, *numbers, "", held)
            continue
        goal = None if question.pipe else GOALS.get(key, {}).get(name)
        ratio = took.cpu / ours.cpu
        held = "" if goal is None else _held(ratio >= goal, f"≥ {goal}")
        yield ("", shown, *numbers, number(ratio), held)


def _held(good: bool, goal: str) -> str:  # noqa: FBT001 - what is said of a goal
    return goal if good else f"{goal} **missed**"


def _agreement(plan: Plan, used: set[str]) -> Iterator[str]:
    for engine in plan.peers:
        if engine.name not in used:
            continue
        if engine.other:
            yield f"- \\* A reference of speed only, its means are other ones: {engine.other}."
        elif engine.ties:
            yield f"- Means of {engine.name} agree to within {engine.tolerance:g}: {engine.ties}."


def files_table(plan: Plan) -> str:
    """Whole processes that read judgments and a run from files."""
    return beside(plan, FILES, "s")


def dicts_table(plan: Plan) -> str:
    """Calls on mappings in memory, judgments prepared."""
    return beside(plan, DICTS, "ms")


def frames_table(plan: Plan) -> str:
    """Calls on data frames in memory, judgments prepared."""
    return beside(plan, FRAMES, "ms")


def calls_table(plan: Plan) -> str:
    """Calls for one query, with the compiled core and without."""
    took: dict[str, list[dict[str, float]]] = {"1": [], "0": []}
    words = [sys.executable, str(Path(__file__).parent / "calls.py"), *["--tiny"] * plan.tiny]
    for _ in range(1 if plan.tiny else plan.rounds):
        for core, found in took.items():
            found.append(
                process(words, said=json.loads, environment={"RANKGAUGE_NATIVE": core}).means
            )
    compiled, plain = (
        {name: statistics.median(one[name] for one in found) for name in found[0]}
        for found in took.values()
    )
    rows = []
    for name, micros in compiled.items():
        goal = CALLS.get(name)
        held = "" if goal is None or plan.tiny else _held(micros <= goal, f"≤ {goal} us")
        other = "–" if name.startswith("pytrec_eval") else number(plain[name])
        rows.append((name, number(micros), other, held))
    return table(("call", "CPU us", "NumPy only", "goal"), rows)


def growth_table(plan: Plan) -> str:
    """How cost grows with queries, documents and measures, one table each."""
    peers = [engine for engine in plan.peers if "dicts" in engine.forms and not engine.heavy]
    names = [OURS.name, *(engine.name for engine in peers)]
    found = []
    for growth in GROWTHS:
        rows, before = [], dict[str, Took]()
        for step, question in growth.steps[: 2 if plan.tiny else None]:
            if (answers := plan.ask(question)) is None:
                continue
            cells = [_grown(answers.took.get(name), before.get(name)) for name in names]
            if growth.head.startswith("measures"):
                cells.append(_ten_more(answers, before))
            rows.append((step, *cells))
            before = answers.took
        if rows:
            head = (growth.head, *(f"{name} CPU ms (times the last)" for name in names))
            goal = ("goal",) if growth.head.startswith("measures") else ()
            found.append(table((*head, *goal), rows))
    return "\n\n".join(found)


def _grown(took: Took | None, before: Took | None) -> str:
    if took is None:
        return "–"
    shown = number(took.cpu * 1000)
    return shown if before is None else f"{shown} ({took.cpu / before.cpu:.2f})"


def _ten_more(answers: Answers, before: dict[str, Took]) -> str:
    if not before or len(answers.question.measures) == 8:
        return ""
    times = answers.took[OURS.name].cpu / before[OURS.name].cpu
    return _held(times <= TEN_MORE, f"≤ {TEN_MORE:.2f}")


def start_table(plan: Plan) -> str:
    """What it takes to start."""
    python = sys.executable
    imports = [("numpy", "numpy")] + [
        (engine.name, "sklearn.metrics" if engine.name == "sklearn" else engine.name)
        for engine in (OURS, *plan.peers)
        if "dicts" in engine.forms and not engine.environment
    ]
    commands = {"python -c pass": [python, "-c", "pass"]}
    commands |= {f"import {module}": [python, "-c", f"import {module}"] for _, module in imports}
    commands["rankgauge --help"] = [python, "-m", "rankgauge", "--help"]
    qrels, run = files(TINY if plan.tiny else Work(50, 100, 20), plan.data)
    for engine in (OURS, *plan.peers):
        if "CLI" in engine.forms:
            words = engine.command(str(qrels), str(run), engine.computes(SHARED))
            commands[f"{engine.name} in a shell, 50 × 100"] = words
    took: dict[str, list[Took]] = {name: [] for name in commands}
    for _ in range(1 if plan.tiny else 3 * plan.rounds):
        for name, words in commands.items():
            took[name].append(process(words))
    middle = {name: median(some) for name, some in took.items()}
    bare = middle["python -c pass"].cpu
    rows = [
        (f"`{name}`" if "," not in name else name, *_milliseconds(one, bare))
        for name, one in middle.items()
    ]
    return table(("start-up, whole process", "CPU ms", "over bare Python", "wall ms", "MiB"), rows)


def _milliseconds(took: Took, bare: float) -> tuple[str, ...]:
    over = number((took.cpu - bare) * 1000) if took.cpu > bare else "–"
    return number(took.cpu * 1000), over, number(took.wall * 1000), number(took.peak)


TABLES: dict[str, Callable[[Plan], str]] = {
    "files": files_table,
    "dicts": dicts_table,
    "frames": frames_table,
    "calls": calls_table,
    "growth": growth_table,
    "start": start_table,
}


def conditions(plan: Plan, missing: Sequence[str]) -> str:
    """On what it was measured, how often, and who could not take part."""
    others = (engine for engine in plan.peers if not engine.environment)
    engines = ", ".join(engine.version() for engine in (OURS, *others))
    with_them = f"Python {platform.python_version()}, NumPy {version('numpy')}, {engines}"
    large = f"{plan.large_rounds} of large workloads" if plan.large else "without large workloads"
    busy = " The machine was shared." if _is_shared() else ""
    lines = [f"{os.cpu_count()} cores, {with_them}. Rounds: {plan.rounds}, {large}.{busy}"]
    return "\n\n".join([*lines, *([f"Left out: {'; '.join(missing)}."] if missing else [])])


def _is_shared() -> bool:
    # Windows has no load average.
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > 1


def main() -> None:
    """Measure, print, and write into the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", help=f"{', '.join(TABLES)}; without: all")
    parser.add_argument("--large", action="store_true", help="millions of rows, too")
    parser.add_argument("--tiny", action="store_true", help="a few rows: shows that it runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large-rounds", type=int, default=1)
    parser.add_argument("--data", type=Path, default=DATA, help="where files are made, and stay")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables there")
    given = parser.parse_args()
    if unknown := {*given.tables} - {*TABLES}:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    missing = [why for engine in PEERS if (why := engine.missing())]
    peers = tuple(engine for engine in PEERS if not engine.missing())
    plan = Plan(peers, given.data, given.rounds, given.large_rounds, given.large, given.tiny)
    said = {"conditions": conditions(plan, missing)}
    print(said["conditions"], flush=True)
    for name in given.tables or TABLES:
        said[name] = TABLES[name](plan)
        print(f"\n{said[name]}", flush=True)
        for key in ("conditions", name) if given.write else ():
            put(given.write, key, said[key])


if __name__ == "__main__":
    main()
