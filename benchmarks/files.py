"""From files, cold: rankgauge beside its peers; prints a table in Markdown.

    python benchmarks/files.py [--large] [--rounds 3]

Each engine reads judgments and a run in a process of its own, calculates the same 18 measures and
prints their means, which must agree before a time counts. Times are CPU seconds of the whole
process (user and system, interpreter and imports included), medians; a ratio above 1 says that
rankgauge is quicker. Engines take turns, so that a busy moment of the machine falls on all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from workloads import MEASURES, TREC_MEASURES

ENGINES = ("rankgauge", "pytrec_eval", "ir_measures")


@dataclass(frozen=True)
class Work:
    """A run in a file."""

    name: str
    queries: int
    docs: int
    judged: int
    shape: str = "simple"


SMALL = (Work("50 × 1,000", 50, 1000, 168), Work("700 × 1,000", 700, 1000, 2))
LARGE = (
    Work("7,000 × 1,000", 7000, 1000, 1),
    Work("7,000 × 1,000, real shapes", 7000, 1000, 1, "real"),
    Work("7,000 × 1,000, lines in random order", 7000, 1000, 1, "mixed"),
    Work("100,000 × 100", 100_000, 100, 5),
)


def write(work: Work, folder: Path) -> tuple[Path, Path]:
    """The judgments and the run, the same each time.

    Real shapes are ids of 36 characters, tabs, and signed scores of 17 digits.
    """
    rng = random.Random(f"{work.queries} {work.docs} {work.judged}")  # noqa: S311 - data
    qrels, run = folder / "qrels.txt", folder / "a.run"
    apart = "\t" if work.shape == "real" else " "
    with qrels.open("w") as judgments, run.open("w") as ranking:
        rows: list[str] = []
        for query in range(1_000_000, 1_000_000 + work.queries):
            docs = [_id(n, work.shape) for n in rng.sample(range(8_800_000), work.docs)]
            scores = sorted((rng.uniform(-4, 30) for _ in docs), reverse=True)
            for rank, (doc, score) in enumerate(zip(docs, scores, strict=True), 1):
                shown = repr(score) if work.shape == "real" else f"{score:.6f}"
                rows.append(apart.join((str(query), "Q0", doc, str(rank), shown, "run")) + "\n")
            for doc in rng.sample(docs, max(1, work.judged // 2)):
                judgments.write(f"{query} 0 {doc} {rng.randint(0, 3)}\n")
            for number in range(work.judged - work.judged // 2):
                judgments.write(f"{query} 0 {_id(9_000_000 + number, work.shape)} 1\n")
            if work.shape != "mixed":
                ranking.writelines(rows)
                rows.clear()
        rng.shuffle(rows)
        ranking.writelines(rows)
    return qrels, run


def _id(number: int, shape: str) -> str:
    if shape != "real":
        return str(number)
    return f"{number:08x}-{number % 65521:04x}-4{number % 4093:03x}-a000-{number * 7919:012x}"


def means_of(engine: str, qrels: str, run: str) -> dict[str, float]:
    """What an engine says, by measure."""
    if engine == "rankgauge":
        import rankgauge

        return rankgauge.evaluate(rankgauge.read_qrels(qrels), run, MEASURES).mean()
    if engine == "pytrec_eval":
        import pytrec_eval

        with open(qrels) as stream:  # noqa: PTH123 - as its own pages show it
            judgments = pytrec_eval.parse_qrel(stream)
        with open(run) as stream:  # noqa: PTH123 - the same
            rankings = pytrec_eval.parse_run(stream)
        rows = pytrec_eval.RelevanceEvaluator(judgments, TREC_MEASURES).evaluate(rankings).values()
        return {m: sum(row[_trec(m)] for row in rows) / len(judgments) for m in MEASURES}
    import ir_measures

    wanted = [ir_measures.parse_measure(name) for name in MEASURES]
    found = ir_measures.calc_aggregate(
        wanted, ir_measures.read_trec_qrels(qrels), ir_measures.read_trec_run(run)
    )
    return {str(measure): value for measure, value in found.items()}


def _trec(name: str) -> str:
    stem, _, cut = name.partition("@")
    stems = {"nDCG": "ndcg_cut", "R": "recall", "Success": "success", "P": "P"}
    return f"{stems[stem]}_{cut}" if cut else {"AP": "map", "RR": "recip_rank"}[stem]


def _once(engine: str, qrels: Path, run: Path) -> tuple[float, float, dict[str, float]]:
    """CPU seconds and peak MiB of a process, and its means."""
    words = [sys.executable, __file__, "--engine", engine, str(qrels), str(run)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    return said["cpu"], said["peak"], said["means"]


def _rows(works: tuple[Work, ...], rounds: int) -> Iterator[str]:
    for work in works:
        with tempfile.TemporaryDirectory() as folder:
            qrels, run = write(work, Path(folder))
            found = {engine: [] for engine in ENGINES}
            for _ in range(rounds):
                for engine in ENGINES:
                    found[engine].append(_once(engine, qrels, run))
        _agree({engine: some[0][2] for engine, some in found.items()})
        cpu = {e: statistics.median(one[0] for one in some) for e, some in found.items()}
        peak = statistics.median(one[1] for one in found["rankgauge"])
        ours = cpu["rankgauge"]
        cells = [f"{cpu[e]:.2f}" for e in ENGINES] + [f"{cpu[e] / ours:.1f}" for e in ENGINES[1:]]
        yield f"| {work.name} | {' | '.join(cells)} | {peak:.0f} |"


def _agree(means: dict[str, dict[str, float]]) -> None:
    for engine in ENGINES[1:]:
        for name, value in means[engine].items():
            if abs(value - means["rankgauge"][name]) > 1e-4:
                sys.exit(f"{engine} {name}: {value} against {means['rankgauge'][name]}")


def main() -> None:
    """Print the table, or be one engine of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="millions of lines, minutes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.engine:
        means = means_of(given.engine, *given.paths)
        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = used.ru_utime + used.ru_stime
        print(json.dumps({"cpu": spent, "peak": used.ru_maxrss / 1024, "means": means}))
        return
    versions = [
        f"{n} {metadata.version(n)}" for n in ("numpy", "pytrec-eval-terrier", "ir-measures")
    ]
    print(f"Python {platform.python_version()}, {', '.join(versions)}, {os.cpu_count()} cores\n")
    heads = [f"{e} s" for e in ENGINES] + [f"{e} / rankgauge" for e in ENGINES[1:]]
    print(f"| files, queries × documents | {' | '.join(heads)} | peak of rankgauge, MiB |")
    print("| --- " + "| ---: " * (len(heads) + 1) + "|")
    for row in _rows(SMALL + (LARGE if given.large else ()), given.rounds):
        print(row, flush=True)


if __name__ == "__main__":
    main()
