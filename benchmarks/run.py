"""How fast rankgauge is beside its peers: prints a table in Markdown.

    python benchmarks/run.py [--large]

Each engine runs in a process of its own, one after the other, so that none warms the caches of
another; times are the CPU seconds of that process (user and system), medians of several rounds. A
ratio above 1 says that rankgauge is quicker. All engines compute the same 18 measures; before a
time counts, the means are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from workloads import MEASURES, TREC_MEASURES, Judgments, Rankings, made

ENGINES = ("rankgauge", "pytrec_eval", "ir_measures")
SMALL = ((1, 100, 9), (100, 100, 9), (50, 1000, 168))
LARGE = ((7000, 1000, 2), (100_000, 100, 5))


def _prepared(engine: str, qrels: Judgments) -> Callable[[Rankings], dict[str, float]]:
    """Judgments prepared once; what is timed is the call on a run."""
    if engine == "rankgauge":
        import rankgauge

        truth = rankgauge.Qrels.of(qrels)
        return lambda run: rankgauge.evaluate(truth, run, MEASURES).mean()
    if engine == "pytrec_eval":
        import pytrec_eval

        names = {m: _trec(m) for m in MEASURES}
        evaluator = pytrec_eval.RelevanceEvaluator(qrels, TREC_MEASURES)

        def means(run: Rankings) -> dict[str, float]:
            rows = evaluator.evaluate(run).values()
            return {m: sum(row[n] for row in rows) / len(qrels) for m, n in names.items()}

        return means
    import ir_measures

    wanted = [ir_measures.parse_measure(name) for name in MEASURES]
    evaluator = ir_measures.evaluator(wanted, qrels)
    return lambda run: {str(m): v for m, v in evaluator.calc_aggregate(run).items()}


def _trec(name: str) -> str:
    stem, _, cut = name.partition("@")
    stems = {"nDCG": "ndcg_cut", "R": "recall", "Success": "success", "P": "P"}
    return f"{stems[stem]}_{cut}" if cut else {"AP": "map", "RR": "recip_rank"}[stem]


def timed(engine: str, queries: int, docs: int, judged: int) -> None:
    """Inside the process of one engine: print seconds and means as JSON."""
    qrels, run = made(queries, docs, judged)
    evaluate = _prepared(engine, qrels)
    means = evaluate(run)
    seconds = []
    rounds = 3 if queries * docs > 1_000_000 else 15
    for _ in range(rounds):
        started = time.process_time()
        evaluate(run)
        seconds.append(time.process_time() - started)
    print(json.dumps({"seconds": statistics.median(seconds), "means": means}))


def _asked(*words: str) -> str:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=True
    ).stdout


def _in_memory(sizes: tuple[tuple[int, int, int], ...]) -> None:
    print("| dicts, queries × documents | " + " | ".join(f"{e} ms" for e in ENGINES), end=" | ")
    print(" | ".join(f"{e} / rankgauge" for e in ENGINES[1:]) + " |")
    print("| --- " + "| ---: " * (2 * len(ENGINES) - 1) + "|")
    for size in sizes:
        found = {e: json.loads(_asked(__file__, "--engine", e, *map(str, size))) for e in ENGINES}
        ours = found["rankgauge"]
        for engine in ENGINES[1:]:
            for name, value in found[engine]["means"].items():
                if abs(value - ours["means"][name]) > 1e-6:
                    sys.exit(f"{engine} {name}: {value} against {ours['means'][name]}")
        cells = [f"{found[e]['seconds'] * 1000:.2f}" for e in ENGINES]
        ratios = [_ratio(found[e]["seconds"] / ours["seconds"]) for e in ENGINES[1:]]
        print(f"| {size[0]:,} × {size[1]:,} | " + " | ".join(cells + ratios) + " |")


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _cpu(*words: str) -> float:
    """Median CPU seconds of a whole process."""
    found = []
    for _ in range(9):
        before = _spent_by_children()
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        found.append(_spent_by_children() - before)
    return statistics.median(found)


def _spent_by_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _start_up() -> None:
    bare = _cpu("-c", "pass")
    print("\n| start-up, whole process | CPU ms | over bare Python |\n| --- | ---: | ---: |")
    rows = {
        "python -c pass": ("-c", "pass"),
        "import rankgauge": ("-c", "import rankgauge"),
        "import numpy": ("-c", "import numpy"),
        "import pytrec_eval": ("-c", "import pytrec_eval"),
        "import ir_measures": ("-c", "import ir_measures"),
    }
    with tempfile.TemporaryDirectory() as folder:
        qrels, run = made(50, 100, 20)
        for name, data in (("qrels.json", qrels), ("run.json", run)):
            Path(folder, name).write_text(json.dumps(data), encoding="utf-8")
        files = (str(Path(folder, "qrels.json")), str(Path(folder, "run.json")))
        rows["rankgauge evaluate, 50 × 100"] = ("-m", "rankgauge", "evaluate", *files)
        for name, words in rows.items():
            spent = _cpu(*words)
            print(f"| {name} | {spent * 1000:.0f} | {(spent - bare) * 1000:.0f} |")


def main() -> None:
    """Run the whole benchmark, or one engine of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="millions of rows, minutes")
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("size", nargs="*", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.engine:
        timed(given.engine, *given.size)
        return
    versions = [f"{name} {metadata.version(name)}" for name in ("numpy", "pytrec-eval-terrier")]
    print(f"Python {platform.python_version()}, {', '.join(versions)}, {os.cpu_count()} cores\n")
    _in_memory(SMALL + (LARGE if given.large else ()))
    _start_up()


if __name__ == "__main__":
    main()
