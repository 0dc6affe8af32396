"""Time of a check compared with an evaluation of the same files, as Markdown tables.

    python benchmarks/checking.py [--tiny] [--large] [--rounds 3] [--write PAGE]

Checks and evaluations run in separate processes, alternating; numbers are medians. Both read the
same files and use the default measures. Findings cost more, since measuring their effect takes
another evaluation: the second table has faulty versions of the first file.
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


def _negated(fields: list[str]) -> list[str]:
    return [*fields[:4], repr(-float(fields[4])), fields[5]]


def _padded(fields: list[str]) -> list[str]:
    # If all ids differed in this way, the evaluation would be rejected.
    return [*fields[:2], fields[2].zfill(12 * (int(fields[2]) % 2)), *fields[3:]]


FAULTS: dict[str, Callable[[list[str]], list[str]]] = {
    "scores with reversed signs": _negated,
    "every other document id with leading zeros": _padded,
}


def took(what: str, qrels: Path, run: Path) -> tuple[float, float]:
    """Return CPU seconds and peak MiB of one call in this process."""
    import rankgauge

    call = rankgauge.check if what == "check" else rankgauge.evaluate
    start = time.process_time()
    call(str(qrels), str(run))
    spent = time.process_time() - start
    return spent, _peak()


def _peak() -> float:
    """Return the peak of this process in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage also counts the memory of the parent process at the fork.
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 2**10
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _apart(what: str, qrels: Path, run: Path) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--task", what, str(qrels), str(run)], capture_output=True, text=True, check=True
    )
    spent, peak = json.loads(done.stdout)
    return spent, peak


def row(name: str, pair: tuple[Path, Path], rounds: int, goal: float) -> tuple[str, ...]:
    """Return the costs of evaluation and check, and their ratio."""
    qrels, run = pair
    pairs = [[_apart(what, qrels, run) for what in ("evaluate", "check")] for _ in range(rounds)]
    first, second = (
        [statistics.median(values) for values in zip(*taken, strict=True)] for taken in zip(*pairs, strict=True)
    )
    times = second[0] / first[0]
    text = f"{times:.1f}" + ("" if times < goal else f" (goal: under {goal})")
    return name, number(first[0]), number(second[0]), text, f"{first[1]:.0f}", f"{second[1]:.0f}"


HEAD = ("run", "evaluate s", "check s", "check / evaluate", "evaluate MiB", "check MiB")


def faulty(work: Work, fault: str) -> tuple[Path, Path]:
    """Return the files of a workload with a fault in each line of the run."""
    qrels, run = files(work, DATA)
    target = run.with_name(f"{work.key}-{fault.replace(' ', '-')}.run")
    change = FAULTS[fault]
    with run.open(encoding="ascii") as source, target.open("w", encoding="ascii") as sink:
        sink.writelines(f"{' '.join(change(line.split()))}\n" for line in source)
    return qrels, target


def tables(works: Sequence[Work], rounds: int) -> str:
    """Return both tables."""
    rows = [row(str(work), files(work, DATA), rounds, GOAL) for work in works]
    found = [row(fault, faulty(works[0], fault), rounds, math.inf) for fault in FAULTS]
    head = (f"{works[0]}, with a fault", *HEAD[1:])
    return f"{table(HEAD, rows)}\n\n{table(head, found)}"


def main() -> None:
    """Measure, print, and write the tables."""
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
    text = tables(works, given.rounds)
    print(text)
    if given.write:
        put(given.write, "checking", text)


if __name__ == "__main__":
    main()
