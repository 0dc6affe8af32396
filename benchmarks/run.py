"""Speed of rankgauge compared with all installed peers, as Markdown tables.

    python benchmarks/run.py [files dicts frames calls growth start] [--large] [--write PAGE]

Every engine runs in fresh processes, in turn with the others, round by round; numbers are medians.
CPU is user and system time. A ratio above 1 means that rankgauge needs less; ratios that miss their
goal are marked. Engines run only the measures they have, and a time counts only if the means agree
with ours. Inputs are made from a seed, under build/benchmarks.

--large adds millions of rows: about forty minutes with all peers, and 2 GB of files.
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
from processes import IDLE, Cost, Results, Task, measure_all, median, process
from workloads import MORE, SHARED, Work, files

DATA = Path(__file__).parent.parent / "build" / "benchmarks"

S, M = Work(50, 1000, 168), Work(700, 1000, 2)
LARGE = Work(7000, 1000, 1, large=True)
REAL = Work(7000, 1000, 1, "real", large=True)
MIXED = Work(7000, 1000, 1, "mixed", large=True)
MANY = Work(100_000, 100, 5, large=True)
TINY = Work(3, 10, 4)


def shared_tasks(*some: tuple[Work, str]) -> tuple[Task, ...]:
    """Return tasks with the measures that all engines have."""
    return tuple(Task(work, form, SHARED) for work, form in some)


FILES = (
    *shared_tasks((S, "Python"), (S, "CLI"), (M, "Python"), (M, "CLI")),
    Task(Work(700, 1000, 2, gz=True), "Python", SHARED),
    Task(M, "CLI", SHARED, pipe=True),
    *shared_tasks((LARGE, "Python"), (LARGE, "CLI"), (REAL, "Python"), (MIXED, "Python"), (MIXED, "CLI")),
    *shared_tasks((MANY, "Python"), (MANY, "CLI")),
)
NOT_PREPARED = "dicts, not prepared"
DICTS = (
    *shared_tasks(
        (Work(1, 100, 9), "dicts"),
        (Work(100, 100, 9), "dicts"),
        (Work(100, 100, 9), NOT_PREPARED),
        (S, "dicts"),
        (S, NOT_PREPARED),
        (Work(50, 1000, 168, "mixed"), "dicts"),
        (LARGE, "dicts"),
        (MANY, "dicts"),
    ),
    # With a measure that only some engines have.
    *(Task(work, "dicts", (*SHARED, "ERR@20")) for work in (Work(100, 100, 9), S)),
)
FRAMES = shared_tasks((S, "pandas"), (S, "polars"), (LARGE, "pandas"), (LARGE, "polars"))

# Lowest accepted ratio of the peer's CPU time to ours, by workload, input, and peer.
GOALS = {
    (LARGE, "Python"): {"pytrec_eval": 17, "ir_measures": 20, "ranx": 20},
    (LARGE, "CLI"): {"trec_eval": 6},
    (MANY, "Python"): {"pytrec_eval": 5},
    (MANY, "CLI"): {"trec_eval": 50},
    (MIXED, "Python"): {"pytrec_eval": 5},
    (MIXED, "CLI"): {"trec_eval": 2},
    (REAL, "Python"): {"pytrec_eval": 14},
    (S, "Python"): {"ir_measures": 2},
    (S, "CLI"): {"ir_measures": 1.2},
    (Work(100, 100, 9), "dicts"): {"pytrec_eval": 6, "ir_measures": 20, "ranx": 25},
    (Work(100, 100, 9), NOT_PREPARED): {"pytrec_eval": 4},
    (S, "dicts"): {"pytrec_eval": 7},
    (S, NOT_PREPARED): {"pytrec_eval": 4},
    (LARGE, "dicts"): {"pytrec_eval": 6},
    (MANY, "dicts"): {"pytrec_eval": 3},
    (S, "pandas"): {"ir_measures": 20},
    (S, "polars"): {"ir_measures": 20},
    (LARGE, "pandas"): {"ir_measures": 50},
    (LARGE, "polars"): {"ir_measures": 50},
}
# Highest accepted peak of rankgauge in MiB.
PEAKS = {(LARGE, "Python"): 350, (REAL, "Python"): 350, (MIXED, "Python"): 800}
# Highest accepted microseconds with the compiled core.
CALLS = {"`evaluate`, 18 measures": 100, "`functional.ndcg_at_k`": 25, "`RetrievalEvaluator.evaluate_single`": 200}
# Highest accepted ratio of the cost with ten more measures.
TEN_MORE = 1.1


@dataclass(frozen=True)
class Growth:
    """Tasks of growing size: a heading, and for each task its first cell."""

    head: str
    steps: tuple[tuple[str, Task], ...]


def growing_measures(work: Work, form: str) -> Growth:
    """Return the same workload with more and more measures."""
    some = (*SHARED, *MORE)
    steps = ((str(n), Task(work, form, some[:n])) for n in (1, 8, 18, 28))
    shown = "dicts" if form == "dicts" else "files"
    return Growth(f"measures, {shown}, {work}", tuple(steps))


GROWTHS = (
    Growth(
        "queries, dicts, × 100 documents",
        tuple((f"{queries:,}", Task(Work(queries, 100, 9), "dicts", SHARED)) for queries in (100, 1000, 10_000)),
    ),
    Growth(
        "documents, dicts, 100 queries ×",
        tuple((f"{docs:,}", Task(Work(100, docs, 9), "dicts", SHARED)) for docs in (10, 100, 1000)),
    ),
    growing_measures(S, "dicts"),
    growing_measures(M, "Python"),
    growing_measures(LARGE, "Python"),
)


@dataclass(frozen=True)
class Plan:
    """Peers, sizes, and rounds of a benchmark."""

    peers: tuple[Engine, ...]
    data: Path
    rounds: int
    large_rounds: int = 3
    large: bool = False
    tiny: bool = False

    def measure(self, task: Task) -> Results | None:
        """Run all engines, or return None if the workload is too large."""
        work = task.work
        if work.large and not self.large:
            return None
        if self.tiny:
            return _tiny(replace(task, work=replace(TINY, gz=work.gz)), self.peers, self.data)
        print(f"  {task.form}, {work}, {len(task.measures)} measures", file=sys.stderr)
        rounds = self.large_rounds if work.large else self.rounds
        return measure_all(task, self.peers, rounds, self.data)


@cache
def _tiny(task: Task, peers: tuple[Engine, ...], data: Path) -> Results:
    """Run once for all tasks that differ only in size."""
    return measure_all(task, peers, 1, data)


def engine_table(plan: Plan, tasks: Sequence[Task], unit: str) -> str:
    """Return the table of tasks, with a row for each engine."""
    many = {"s": 1.0, "ms": 1000.0}[unit]
    left_out: dict[str, list[str]] = {}
    rows, used = [], set()
    for task in tasks:
        if (results := plan.measure(task)) is None:
            continue
        rows += [*_rows(task, results, many)]
        used |= results.took.keys()
        for name, why in results.left_out.items():
            left_out.setdefault(f"{name} {why}", []).append(_what(task))
    head = ("queries × documents", "engine (measures)", f"CPU {unit}", f"wall {unit}", "MiB")
    whole = table((*head, "CPU / ours", "goal"), rows, words=2)
    notes = [f"- {', '.join(places)}: {what}." for what, places in left_out.items()]
    return "\n\n".join(filter(None, (whole, "\n".join([*_agreement(plan, used), *notes]))))


def _what(task: Task) -> str:
    form = "" if task.form == "dicts" else f", {task.form.removeprefix('dicts, ')}"
    more = ", with ERR@20" if "ERR@20" in task.measures else ""
    return f"{task.work}{form}{more}{', through a pipe' if task.pipe else ''}"


def _rows(task: Task, results: Results, many: float) -> Iterator[Sequence[str]]:
    key = (task.work, task.form)
    ours = results.took[OURS.name]
    for name, took in results.took.items():
        engine = next(e for e in (OURS, *PEERS) if e.name == name)
        shown = f"{name} ({len(engine.computes(task.measures))}){'*' * bool(engine.other)}"
        numbers = (number(took.cpu * many), number(took.wall * many), number(took.peak))
        if engine is OURS:
            room = None if task.pipe else PEAKS.get(key)
            held = "" if not room else _goal(took.peak <= room, f"≤ {room} MiB")
            yield (_what(task), shown, *numbers, "", held)
            continue
        goal = None if task.pipe else GOALS.get(key, {}).get(name)
        ratio = took.cpu / ours.cpu
        held = "" if goal is None else _goal(ratio >= goal, f"≥ {goal}")
        yield ("", shown, *numbers, number(ratio), held)


def _goal(good: bool, goal: str) -> str:  # noqa: FBT001 - a private helper
    return goal if good else f"{goal} **missed**"


def _agreement(plan: Plan, used: set[str]) -> Iterator[str]:
    for engine in plan.peers:
        if engine.name not in used:
            continue
        if engine.other:
            yield f"- \\* {engine.name}: a reference for speed only; its means differ: {engine.other}."
        elif engine.ties:
            yield f"- Means of {engine.name} agree to within {engine.tolerance:g}: {engine.ties}."


def files_table(plan: Plan) -> str:
    """Return the table of whole processes that read judgments and a run from files."""
    return engine_table(plan, FILES, "s")


def dicts_table(plan: Plan) -> str:
    """Return the table of calls with dicts in memory, judgments prepared unless a row says otherwise."""
    return engine_table(plan, DICTS, "ms")


def frames_table(plan: Plan) -> str:
    """Return the table of calls with data frames in memory, judgments prepared."""
    return engine_table(plan, FRAMES, "ms")


def calls_table(plan: Plan) -> str:
    """Return the table of calls for one query, with and without the compiled core."""
    took: dict[str, list[dict[str, float]]] = {"1": [], "0": []}
    words = [sys.executable, str(Path(__file__).parent / "calls.py"), *["--tiny"] * plan.tiny]
    for _ in range(1 if plan.tiny else plan.rounds):
        for core, found in took.items():
            found.append(process(words, parse=json.loads, environment={**IDLE, "RANKGAUGE_NATIVE": core}).means)
    compiled, plain = (
        {name: statistics.median(one[name] for one in found) for name in found[0]} for found in took.values()
    )
    rows = []
    for name, micros in compiled.items():
        goal = CALLS.get(name)
        held = "" if goal is None or plan.tiny else _goal(micros <= goal, f"≤ {goal}")
        other = "–" if name.startswith("pytrec_eval") else number(plain[name])
        rows.append((name, number(micros), other, held))
    return table(("call", "CPU microseconds", "NumPy only", "goal"), rows)


def growth_table(plan: Plan) -> str:
    """Return tables of the growth of cost with queries, documents, and measures."""
    peers = [engine for engine in plan.peers if "dicts" in engine.forms and not engine.heavy]
    names = [OURS.name, *(engine.name for engine in peers)]
    found = []
    for growth in GROWTHS:
        rows, before = [], dict[str, Cost]()
        for step, task in growth.steps[: 2 if plan.tiny else None]:
            if (results := plan.measure(task)) is None:
                continue
            cells = [_grown(results.took.get(name), before.get(name)) for name in names]
            if growth.head.startswith("measures"):
                cells.append(_ten_more(results, before))
            rows.append((step, *cells))
            before = results.took
        if rows:
            head = (growth.head, *(f"{name} CPU ms (ratio to the previous row)" for name in names))
            goal = ("goal",) if growth.head.startswith("measures") else ()
            found.append(table((*head, *goal), rows))
    return "\n\n".join(found)


def _grown(took: Cost | None, before: Cost | None) -> str:
    if took is None:
        return "–"
    shown = number(took.cpu * 1000)
    return shown if before is None else f"{shown} ({took.cpu / before.cpu:.2f})"


def _ten_more(results: Results, before: dict[str, Cost]) -> str:
    if not before or len(results.task.measures) == 8:
        return ""
    times = results.took[OURS.name].cpu / before[OURS.name].cpu
    return _goal(times <= TEN_MORE, f"≤ {TEN_MORE:.2f}")


def start_table(plan: Plan) -> str:
    """Return the table of start-up times."""
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
    took: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(1 if plan.tiny else 3 * plan.rounds):
        for name, words in commands.items():
            environment = IDLE if name.startswith("import") else None
            took[name].append(process(words, environment=environment))
    middle = {name: median(some) for name, some in took.items()}
    bare = middle["python -c pass"].cpu
    rows = [(f"`{name}`" if "," not in name else name, *_milliseconds(one, bare)) for name, one in middle.items()]
    return table(("start-up, whole process", "CPU ms", "above bare Python", "wall ms", "MiB"), rows)


def _milliseconds(took: Cost, bare: float) -> tuple[str, ...]:
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
    """Describe the machine, the versions, the rounds, and the missing engines."""
    others = (engine for engine in plan.peers if not engine.environment)
    engines = ", ".join(engine.version() for engine in (OURS, *others))
    with_them = f"Python {platform.python_version()}, NumPy {version('numpy')}, {engines}"
    large = f"{plan.large_rounds} with large workloads" if plan.large else "without large workloads"
    busy = " The machine was shared." if _is_shared() else ""
    lines = [f"{os.cpu_count()} cores, {with_them}. {plan.rounds} rounds, {large}.{busy}"]
    return "\n\n".join([*lines, *([f"Not measured: {'; '.join(missing)}."] if missing else [])])


def _is_shared() -> bool:
    # Windows has no load average.
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > 1


def main() -> None:
    """Measure, print, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", help=f"{', '.join(TABLES)}; default: all")
    parser.add_argument("--large", action="store_true", help="also measure millions of rows")
    parser.add_argument("--tiny", action="store_true", help="only a few rows, as a test of the script")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large-rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the generated files")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the tables into this page")
    given = parser.parse_args()
    if unknown := {*given.tables} - {*TABLES}:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    missing = [why for engine in PEERS if (why := engine.missing())]
    peers = tuple(engine for engine in PEERS if not engine.missing())
    plan = Plan(peers, given.data, given.rounds, given.large_rounds, given.large, given.tiny)
    sections = {"conditions": conditions(plan, missing)}
    print(sections["conditions"], flush=True)
    for name in given.tables or TABLES:
        sections[name] = TABLES[name](plan)
        print(f"\n{sections[name]}", flush=True)
        for key in ("conditions", name) if given.write else ():
            put(given.write, key, sections[key])


if __name__ == "__main__":
    main()
