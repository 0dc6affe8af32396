"""Cost of internal stages compared with the last release, to detect regressions.

    python benchmarks/stages.py [STAGE...]  # compare with the last release in history.csv
    python benchmarks/stages.py --record    # record the current version there

Since machines differ, times are also given in loads: multiples of the time for a fixed workload in
Python and NumPy, run in the same process just before and after. Compare loads; milliseconds are
for orientation. Memory is the peak of a call beyond the memory in use before, or the peak of a
whole process.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from clock import timed
from page import number, table
from processes import process
from workloads import MEASURES, Work, columns, files, mappings

HISTORY = Path(__file__).parent / "history.csv"
DATA = Path(__file__).parent.parent / "build" / "benchmarks"
FIELDS = ("version", "date", "python", "numpy", "cores", "stage", "cpu_ms", "loads", "peak_mib")

RUN, REAL = Work(700, 1000, 2), Work(700, 1000, 2, "real")
SMALL, DEEP, POOL = Work(100, 100, 9), Work(50, 1000, 168), Work(1000, 100, 100)
TINY = Work(3, 10, 4)
# Ratios to the last release above this are reported.
REPORTED = 1.25
# Differences of peaks below this many MiB are mostly noise.
NOISE = 4.0

Call = Callable[[], Any]


def _reading(work: Work, data: Path) -> Call:
    from rankgauge import read_run

    run = files(work, data)[1]
    return lambda: len(read_run(run))


def _judgments(work: Work, data: Path) -> Call:
    from rankgauge import read_qrels

    qrels = files(work, data)[0]
    return lambda: len(read_qrels(qrels))


def _indexing(work: Work, _: Path) -> Call:
    from rankgauge import Qrels, Run, evaluate

    qrels = mappings(work)[0]
    nothing = Run.of({next(iter(qrels)): ["none"]})
    return lambda: len(evaluate(Qrels.of(qrels), nothing, ["P@1"]).query_ids)


def _joining(work: Work, _: Path) -> Call:
    from rankgauge import Qrels, Run, evaluate

    qrels, run = mappings(work)
    truth, ready = Qrels.of(qrels), Run.of(run)
    return lambda: len(evaluate(truth, ready, ["P@1"]).query_ids)


def _kernels(work: Work, _: Path) -> Call:
    import numpy as np

    from rankgauge import Qrels, Run, parse
    from rankgauge.data.join import join

    qrels, run = mappings(work)
    truth, ready = Qrels.of(qrels), Run.of(run)
    joined = join(truth, ready, ties="trec")
    blocks = [block for _, block in joined.blocks(np.arange(len(truth)))]
    measures = [parse(name) for name in MEASURES]
    return lambda: len([measure.values(block) for measure in measures for block in blocks])


def _means(work: Work, _: Path) -> Call:
    from rankgauge import evaluate

    evaluation = evaluate(*mappings(work), MEASURES)
    return evaluation.mean


def _dicts(work: Work, _: Path) -> Call:
    from rankgauge import Qrels, evaluate

    qrels, run = mappings(work)
    truth = Qrels.of(qrels)
    return lambda: evaluate(truth, run, MEASURES).mean()


def _frames(library: str) -> Callable[[Work, Path], Call]:
    def prepared(work: Work, _: Path) -> Call:
        from rankgauge import Qrels, evaluate

        qrels, run = map(__import__(library).DataFrame, columns(work))
        truth = Qrels.of(qrels)
        return lambda: evaluate(truth, run, MEASURES).mean()

    return prepared


def _file(work: Work, data: Path) -> Call:
    from rankgauge import evaluate, read_qrels

    qrels, run = files(work, data)
    return lambda: evaluate(read_qrels(qrels), run, MEASURES).mean()


# Each function prepares its input and returns the timed call.
STAGES: dict[str, tuple[Callable[[Work, Path], Call], Work]] = {
    "read a run, 700 × 1,000": (_reading, RUN),
    "read a run, real shapes": (_reading, REAL),
    "read judgments, 1,000 × 100": (_judgments, POOL),
    "index judgments, 1,000 × 100": (_indexing, POOL),
    "join, 1,000 × 100": (_joining, POOL),
    "20 kernels, 1,000 × 100": (_kernels, POOL),
    "means, 1,000 queries": (_means, POOL),
    "dicts, 1 × 100": (_dicts, Work(1, 100, 9)),
    "dicts, 100 × 100": (_dicts, SMALL),
    "dicts, 50 × 1,000": (_dicts, DEEP),
    "pandas, 50 × 1,000": (_frames("pandas"), DEEP),
    "polars, 50 × 1,000": (_frames("polars"), DEEP),
    "file, 700 × 1,000": (_file, RUN),
}
STARTS = {
    "start: import": ["-c", "import rankgauge"],
    "start: --help": ["-m", "rankgauge", "--help"],
    "start: evaluate 50 × 100": ["-m", "rankgauge", "evaluate"],
}


def load() -> float:
    """Return the CPU seconds of a fixed workload: dicts and text in Python, arrays in NumPy."""
    import numpy as np

    start = time.process_time()
    places: dict[str, int] = {}
    for place in range(60_000):
        places[str(place * 7919 % 65_521)] = place
    numbers = np.arange(400_000, dtype=np.int64) * 7919 % 400_009
    for _ in range(3):
        order = np.argsort(numbers, kind="stable")
        numbers = np.cumsum(numbers[order] ^ order) % 400_009
    return time.process_time() - start


def in_process(name: str, data: Path, *, tiny: bool = False) -> dict[str, float]:
    """Measure one stage in this process."""
    prepare, work = STAGES[name]
    call = prepare(TINY if tiny else work, data)
    load()
    before = load()
    took = timed(call, 0.0) if tiny else timed(call)
    return {"cpu": took["cpu"], "peak": took["peak"], "load": (before + load()) / 2}


def _in_new_process(name: str, data: Path, *, tiny: bool) -> dict[str, float]:
    """Measure one stage in a fresh process; starts are whole processes."""
    if name in STARTS:
        words = [sys.executable, *STARTS[name]]
        if words[-1] == "evaluate":
            words += map(str, files(TINY if tiny else Work(50, 100, 20), data))
        one = min(load() for _ in range(3))
        took = process(words)
        return {"cpu": took.cpu, "peak": took.peak, "load": one}
    words = [sys.executable, __file__, "--stage", name, "--data", str(data), *["--tiny"] * tiny]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def available_stages() -> list[str]:
    """Return the stages whose libraries are installed."""
    missing = [library for library in ("pandas", "polars") if not find_spec(library)]
    return [name for name in (*STARTS, *STAGES) if name.partition(",")[0] not in missing]


def measure_stages(names: Sequence[str], data: Path, rounds: int, *, tiny: bool = False) -> list[dict[str, str]]:
    """Return rows of the history: medians of rounds, with stages in turn."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(_in_new_process(name, data, tiny=tiny))
    known = {
        "version": version("rankgauge"),
        "date": date.today().isoformat(),  # noqa: DTZ011 - a day for the eye
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "cores": str(os.cpu_count()),
    }
    rows = []
    for name, some in found.items():
        cpu = statistics.median(one["cpu"] for one in some)
        loads = statistics.median(one["cpu"] / one["load"] for one in some)
        peak = statistics.median(one["peak"] for one in some)
        numbers = {"cpu_ms": f"{cpu * 1000:.3f}", "loads": f"{loads:.4f}"}
        rows.append({**known, "stage": name, **numbers, "peak_mib": f"{peak:.1f}"})
    return rows


def read_history(history: Path) -> list[dict[str, str]]:
    """Return all rows of the history, oldest release first."""
    if not history.exists():
        return []
    with history.open(encoding="utf-8", newline="") as stream:
        return [*csv.DictReader(stream)]


def record(history: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Add rows to the history, replacing those of the same version."""
    rows = [*rows]
    new = {row["version"] for row in rows}
    old = [row for row in read_history(history) if row["version"] not in new]
    with history.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*old, *rows])


def compare(rows: Iterable[Mapping[str, str]], before: Iterable[Mapping[str, str]]) -> str:
    """Compare the rows with the last release and list the stages that need more."""
    last = {row["stage"]: row for row in before}  # later rows replace earlier ones
    lines, larger = [], []
    for row in rows:
        old = last.get(row["stage"])
        cells = [row["stage"], number(float(row["cpu_ms"])), number(float(row["peak_mib"]))]
        cells += [number(float(row["loads"])), *_changes(row, old)]
        lines.append(cells)
        larger += [f"{row['stage']} ({cell})" for cell in cells[-2:] if cell.startswith("**")]
    head = ("stage", "CPU ms", "MiB", "CPU in loads", "ratio to the last release", "MiB ratio")
    against = next(iter(last.values()), None)
    text = "No release is recorded yet."
    if against is not None:
        who = "{version} of {date}, Python {python}, NumPy {numpy}, {cores} cores".format(**against)
        text = f"Last release: {who}. Ratios above {REPORTED}: {', '.join(larger) or 'none'}."
    return f"{table(head, lines)}\n\n{text}"


def _changes(row: Mapping[str, str], old: Mapping[str, str] | None) -> list[str]:
    if old is None:
        return ["new", "new"]
    peaks = [max(float(one["peak_mib"]), NOISE) for one in (row, old)]
    ratios = (float(row["loads"]) / float(old["loads"]), peaks[0] / peaks[1])
    return [f"**{ratio:.2f}**" if ratio > REPORTED else f"{ratio:.2f}" for ratio in ratios]


def main() -> None:
    """Measure and compare, record, or measure one stage."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("stages", nargs="*", help="such as 'start: --help'; default: all")
    parser.add_argument("--record", action="store_true", help="record the result in the history")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--history", type=Path, default=HISTORY)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the generated files")
    parser.add_argument("--tiny", action="store_true", help="only a few rows, as a test of the script")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stage:
        print(json.dumps(in_process(given.stage, given.data, tiny=given.tiny)))
        return
    if unknown := {*given.stages} - {*available_stages()}:
        parser.error(f"no stage {'; '.join(sorted(unknown))}")
    rows = measure_stages(given.stages or available_stages(), given.data, given.rounds, tiny=given.tiny)
    print(compare(rows, read_history(given.history)))
    if given.record:
        record(given.history, rows)


if __name__ == "__main__":
    main()
