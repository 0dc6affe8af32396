"""Cost of commands, its growth, and the gain from two jobs, as Markdown tables.

    python benchmarks/commands.py [--tiny] [--large] [--write PAGE]

Each command is timed as a whole process and follows an evaluation of the same file; the ratio
compares the two. The second run has the documents of the first in another order. The exponent of
growth is the slope of log CPU time over log lines, after subtracting the time for a file of a few
lines.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from page import number, put, table
from processes import Cost, median, process
from workloads import Work, files

DATA = Path(__file__).parent.parent / "build" / "benchmarks"
SMALL, LARGE, TINY = Work(700, 1000, 2), Work(7000, 1000, 2), Work(50, 20, 4)
FEW = Work(5, 20, 4)
STEPS = (Work(175, 1000, 2), Work(700, 1000, 2), Work(2800, 1000, 2))
# Command, number of evaluations in it, goals: CPU relative to these evaluations, and MiB.
COMMANDS: tuple[tuple[str, int, float, float], ...] = (
    ("compare {qrels} {a} {b}", 2, 2.5, 300),
    ("gate {qrels} {a} --rules {rules} --update-baseline --baseline {folder}/base.json", 1, 2.5, 300),
    ("gate {qrels} {a} --rules {rules} --baseline {folder}/base.json", 1, 2.5, 300),
    ("diff {qrels} {a} {b}", 2, 2.5, 300),
    ("check {qrels} {a}", 1, 2.5, 300),
    ("cut {a} -k 10 -o {folder}/cut.run", 1, 2.5, 300),
    ("explain {qrels} {a} nDCG@10", 1, 2.5, 300),
    ("diagnose {qrels} {a}", 1, 6, 500),
    ("reliability {qrels} {a} {b}", 1, 6, 500),
    ("fuse {a} {b} -o {folder}/fused.run", 1, 6, 500),
    ("convert {a} {folder}/run.csv", 1, 6, 500),
    ("convert {a} {folder}/run.parquet", 1, 6, 500),
    ("diagnose {qrels} {a} --also {b}", 1, math.inf, 500),
    ("explain {qrels} {a} nDCG@10 --against-mean 0.5", 1, math.inf, math.inf),
)
EVALUATE = "evaluate {qrels} {a}"
RULES = "[gate.measures]\nAP = { margin = 0.00001 }\n"


def second(run: Path, folder: Path) -> Path:
    """Write a run with the same documents, with each pair of neighbors swapped."""
    target = folder / "second.run"
    with run.open(encoding="ascii") as source, target.open("w", encoding="ascii") as sink:
        for line, other in zip(source, source, strict=True):
            one, two = line.split(), other.split()
            one[2], two[2] = two[2], one[2]
            sink.write(f"{' '.join(one)}\n{' '.join(two)}\n")
    return target


def four_times(file: Path, folder: Path) -> Path:
    """Write a file of a workload four times, each time with other queries."""
    target = folder / f"large{file.suffix}"
    text = b"\n" + file.read_bytes()
    with target.open("wb") as sink:
        for copy in range(1, 5):
            sink.write(text.replace(b"\n1", b"\n%d" % copy)[1:])
    return target


def _took(words: str) -> Cost:
    return process([sys.executable, "-m", "rankgauge", *words.split()])


@contextmanager
def prepared(work: Work, *, large: bool = False) -> Iterator[Callable[[str], Cost]]:
    """Yield a function that runs a command on the files of a workload; with `large`, also four times as large."""
    qrels, run = files(work, DATA)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rules = folder / "rules.toml"
        rules.write_text(RULES, encoding="utf-8")
        given = {"qrels": qrels, "a": run, "b": second(run, folder), "rules": rules}
        if large:
            given |= {f"large_{name}": four_times(file, folder) for name, file in (("qrels", qrels), ("a", run))}
        yield lambda command: _took(command.format(**given, folder=folder))


def _shown(command: str) -> str:
    shown = command.split(" -o ", maxsplit=1)[0].replace("{folder}/", "")
    for word in ("{", "}", " --rules rules", " --baseline base.json"):
        shown = shown.replace(word, "")
    return f"`{shown}`"


def rows(work: Work) -> Iterator[tuple[str, ...]]:
    """Yield a row for each command."""
    with prepared(work) as ran:
        for command, contains, goal, room in COMMANDS:
            one, took = ran(EVALUATE), ran(command)
            ratio = took.cpu / (contains * one.cpu)
            text = f"{ratio:.1f}" + ("" if ratio <= goal else f" (goal: {goal:g})")
            peak = f"{took.peak:.0f}" + ("" if took.peak <= room else f" (goal: {room:g})")
            yield _shown(command), str(contains), number(one.cpu), number(took.cpu), text, peak


def exponent(lines: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the least-squares slope of log seconds over log lines."""
    xs, ys = ([math.log(value) for value in values] for values in (lines, seconds))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def growth(works: Sequence[Work], turns: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each command: seconds by size, and the exponent."""
    took: dict[str, list[float]] = {command: [] for command in (EVALUATE, *(c for c, *_ in COMMANDS))}
    for work in (FEW, *works):
        with prepared(work) as ran:
            for command, seconds in took.items():
                # Other load on the machine only adds time.
                times = turns if work.docs * work.queries < _SHORT else 1
                seconds.append(min(ran(command).cpu for _ in range(times)))
    lines = [work.queries * work.docs for work in works]
    for command, (start, *seconds) in took.items():
        # Smaller differences are dominated by other load on the machine.
        beyond = {n: one - start for n, one in zip(lines, seconds, strict=True) if one - start >= _LEAST}
        shown = f"{exponent([*beyond], [*beyond.values()]):.2f}" if len(beyond) > 1 else "–"
        yield _shown(command), *(number(one) for one in (start, *seconds)), shown


# Commands that can run in parallel, and the number of runs of each.
SHARED = (
    "evaluate {qrels} {a}",
    "evaluate {qrels} {a} {b}",
    "evaluate {large_qrels} {large_a}",
    "compare {qrels} {a} {b}",
)
_TURNS = 3
_LEAST = 0.05  # seconds above start-up that a size needs to count for the exponent
_SHORT = 500_000  # files with fewer lines are timed several times


def shared(work: Work, turns: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each command: CPU and wall seconds with one job and with two."""
    with prepared(work, large=True) as ran:
        for command in SHARED:
            took = [[ran(f"{command} --jobs {jobs}") for jobs in (1, 2)] for _ in range(turns)]
            one, two = (median(some) for some in zip(*took, strict=True))
            cells = (number(value) for value in (one.cpu, one.wall, two.cpu, two.wall))
            yield _shown(command), *cells, f"{one.wall / two.wall:.2f}"


HEAD = ("command", "evaluations", "one evaluation s", "command s", "ratio", "peak MiB")


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args(words)
    work = TINY if given.tiny else LARGE if given.large else SMALL
    text = table((f"{work}: {HEAD[0]}", *HEAD[1:]), rows(work))
    print(text, flush=True)
    works, turns = ((TINY,), 1) if given.tiny else (STEPS, _TURNS)
    sizes = [f"{one.queries * one.docs / 1e6:g} M lines s" for one in works]
    grown = table(("command", "start s", *sizes, "exponent"), growth(works, turns))
    print(f"\n{grown}", flush=True)
    head = ("1 job, CPU s", "wall s", "2 jobs, CPU s", "wall s", "wall 1 / 2")
    jobs = table((HEAD[0], *head), shared(work, turns))
    print(f"\n{jobs}")
    if given.write:
        put(given.write, "commands", text)
        put(given.write, "command-growth", grown)
        put(given.write, "jobs", jobs)


if __name__ == "__main__":
    main()
