"""How long a check takes beside an evaluation of the same files: prints a table in Markdown.

    python benchmarks/checking.py [--tiny] [--large] [--rounds 3] [--write PAGE]

Each is a process of its own, in turn with the other, round after round; numbers are the medians.
Both read the same files, and both take what a new user takes: the measures that are there without
being named. What is found costs more, since its effect is measured by evaluating once more: the
second table has the faults, put into the file of the first row.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from page import number, put, table
from workloads import Work, files

DATA = Path(__file__).parent.parent / "build" / "benchmarks"
SMALL = (Work(700, 1000, 10), Work(700, 1000, 10, "real"), Work(700, 1000, 10, "mixed"))
LARGE = (Work(7000, 1000, 10), Work(7000, 1000, 10, "real"))
TINY = (Work(50, 20, 4),)
GOAL = 3


def _turned(fields: list[str]) -> list[str]:
    return [*fields[:4], repr(-float(fields[4])), fields[5]]


def _padded(fields: list[str]) -> list[str]:
    # An evaluation refuses a run all of whose ids differ like that.
    return [*fields[:2], fields[2].zfill(12 * (int(fields[2]) % 2)), *fields[3:]]


FAULTS: dict[str, Callable[[list[str]], list[str]]] = {
    "scores with the other sign": _turned,
    "every other document id with leading zeros": _padded,
}


def took(what: str, qrels: Path, run: Path) -> tuple[float, float]:
    """Seconds of the processor and MiB at the peak of one call, in this process."""
    import rankgauge

    call = rankgauge.check if what == "check" else rankgauge.evaluate
    start = time.process_time()
    call(str(qrels), str(run))
    spent = time.process_time() - start
    return spent, _peak()


def _peak() -> float:
    """MiB at the peak of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        # What getrusage says holds the memory of the process that started this one, too.
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 2**10
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _apart(what: str, qrels: Path, run: Path) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--task", what, str(qrels), str(run)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    spent, peak = json.loads(done.stdout)
    return spent, peak


def row(name: str, pair: tuple[Path, Path], rounds: int, goal: float) -> tuple[str, ...]:
    """What both take, and how many times as long a check is."""
    qrels, run = pair
    pairs = [[_apart(what, qrels, run) for what in ("evaluate", "check")] for _ in range(rounds)]
    first, second = (
        [statistics.median(values) for values in zip(*taken, strict=True)]
        for taken in zip(*pairs, strict=True)
    )
    times = second[0] / first[0]
    text = f"{times:.1f}" + ("" if times < goal else f" (goal: under {goal})")
    return name, number(first[0]), number(second[0]), text, f"{first[1]:.0f}", f"{second[1]:.0f}"


HEAD = ("run", "evaluate s", "check s", "check / evaluate", "evaluate MiB", "check MiB")


def faulty(work: Work, fault: str) -> tuple[Path, Path]:
    """The files of a workload with a fault in each line of the run."""
    qrels, run = files(work, DATA)
    target = run.with_name(f"{work.key}-{fault.replace(' ', '-')}.run")
    change = FAULTS[fault]
    with run.open(encoding="ascii") as source, target.open("w", encoding="ascii") as sink:
        sink.writelines(f"{' '.join(change(line.split()))}\n" for line in source)
    return qrels, target


def tables(works: Sequence[Work], rounds: int) -> str:
    """Both tables."""
    rows = [row(str(work), files(work, DATA), rounds, GOAL) for work in works]
    found = [row(fault, faulty(works[0], fault), rounds, math.inf) for fault in FAULTS]
    head = (f"{works[0]}, with a fault", *HEAD[1:])
    return f"{table(HEAD, rows)}\n\n{table(head, found)}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", nargs=3)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    if given.task:
        what, qrels, run = given.task
        print(json.dumps(took(what, Path(qrels), Path(run))))
        return
    works = TINY if given.tiny else (*SMALL, *LARGE) if given.large else SMALL
    said = tables(works, given.rounds)
    print(said)
    if given.write:
        put(given.write, "checking", said)


if __name__ == "__main__":
    main()
