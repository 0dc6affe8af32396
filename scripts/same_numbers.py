"""Compare every number that two versions of the source print as JSON, bit for bit.

    python scripts/same_numbers.py OLD NEW/src [--data FOLDER] [--write FILE]

OLD is a source folder, or a file written by an earlier run with --write. Each command is run on the
bundled sample and on the collections in FOLDER (or RANKGAUGE_TEST_DATA), once with each source.
Keys that were renamed on purpose are listed in ``RENAMED``.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# New key: old key.
RENAMED: dict[str, str] = {
    "Prefs": "prefs_simp",
    "Prefs(count=groups,scope=both)": "prefs_avgjg_ret",
    "diagnoses": "problems",
    "findings": "problems",
    "fixes": "cures",
    "gains": "potentials",
    "locations": "spots",
}
_NAMES = ("nDCG", "AP", "RR", "P@5", "R@100", "RBP(p=0.8)", "Rprec", "NCG@5")
MEASURES = [word for name in _NAMES for word in ("-m", name)]
_SKIPPED = {"rankgauge", "versions", "created", "commit", "python", "numpy", "date"}
# Judgments with more than grades, and the runs distributed with trec_eval.
_TREC = "trec-eval-sample/"
_SPECIAL = (
    ("sampled/qrels.txt", "sampled/run.txt", "xinfAP", "infNDCG"),
    (_TREC + "qrels.test", _TREC + "results.test", "map", "ndcg", "bpref", "iprec_at_recall_0.10"),
    (_TREC + "qrels.rel_level", _TREC + "results.test", "AP(rel=2)", "nDCG@10", "ERR(top=4)@10"),
    (_TREC + "prefs.test", _TREC + "prefs.results.test", "prefs_simp", "prefs_avgjg_ret"),
)
_COLLECTIONS = ("cranfield", "cisi", "npl", "dl20-doc")


def commands(data: Path | None, sample: Path) -> Iterator[list[str]]:
    """Yield the commands whose numbers are compared."""
    yield from _of_runs(sample / "qrels.txt", sorted((sample / "runs").glob("*.run")), sample)
    for name in _COLLECTIONS if data else ():
        folder = data / name
        runs = sorted(folder.glob("runs/*.gz"))
        texts = folder if list(folder.glob("corpus.jsonl*")) else None
        yield from _of_runs(next(folder.glob("**/qrels*.txt*")), runs, texts)
    for expected in sorted(data.glob("*/expected/*.json.gz")) if data else ():
        yield _with_oracle(expected)
    for qrels, run, *measures in _SPECIAL if data else ():
        words = [word for measure in measures for word in ("-m", measure)]
        yield ["evaluate", str(data / qrels), str(data / run), *words]


def _with_oracle(expected: Path) -> list[str]:
    """Return the evaluation of a run by all measures for which other tools printed values."""
    folder, name = expected.parents[1], expected.name.removesuffix(".json.gz")
    run, qrels = folder / "runs" / f"{name}.run.gz", folder / "trec" / "qrels.txt"
    run = run if run.exists() else folder / name
    qrels = next(path for path in (qrels, folder / "qrels.txt", folder / "qrels.test") if path.exists())
    names = json.loads(gzip.decompress(expected.read_bytes()))
    words = [word for measure in names for word in ("-m", measure)]
    return ["evaluate", str(qrels), str(run), *words]


def _of_runs(qrels: Path, runs: list[Path], texts: Path | None) -> Iterator[list[str]]:
    collection = ["--collection", str(texts)] if texts else []
    yield ["compare", str(qrels), *map(str, runs)]
    for run in runs:
        yield ["evaluate", str(qrels), str(run)]
        yield ["evaluate", str(qrels), str(run), "--ties", "mean", *MEASURES]
        yield ["check", str(qrels), str(run)]
        yield ["diagnose", str(qrels), str(run), *collection]
        yield ["gate", str(qrels), str(run), str(runs[0])]
    yield ["explain", str(qrels), str(runs[0]), "nDCG@10"]
    yield ["explain", str(qrels), str(runs[0]), "AP"]


def printed(source: Path, words: list[str]) -> object:
    """Return the JSON output of a command with this source, or its stderr if it is not JSON."""
    if words[0] == "gate":
        return _run_gate(source, *words[1:])
    done = _run(source, [*words, "--as", "json"])
    try:
        return json.loads(done.stdout)
    except ValueError:
        return done.stderr


def _run_gate(source: Path, qrels: str, run: str, baseline: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        kept, result = f"{folder}/baseline.json", f"{folder}/gate.json"
        done = _run(source, ["gate", qrels, baseline, "--baseline", kept, "--update-baseline"])
        if done.returncode == 0:
            done = _run(source, ["gate", qrels, run, "--baseline", kept, "--json", result])
        return json.loads(Path(result).read_text()) if Path(result).exists() else done.stderr


def _run(source: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rankgauge", *words],
        env={**os.environ, "PYTHONPATH": str(source.resolve()), "PYTHONUTF8": "1"},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )


def numbers(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each numeric leaf of a JSON document with its path; floats with all digits."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _SKIPPED:
                yield from numbers(inner, f"{path}/{RENAMED.get(key, key)}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from numbers(inner, f"{path}/{place}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, repr(value)


def main() -> int:
    """Compare both versions; print the differences and the number of equal values."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--data", type=Path, default=os.environ.get("RANKGAUGE_TEST_DATA"))
    parser.add_argument("--write", type=Path, help="keep what NEW printed, to be OLD later")
    given = parser.parse_args()
    every = list(commands(given.data, given.new / "rankgauge" / "sample"))
    equal = different = 0
    known = [] if given.old.is_dir() else json.loads(given.old.read_text())
    kept = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        olds = known or pool.map(lambda words: printed(given.old, words), every)
        news = pool.map(lambda words: printed(given.new, words), every)
        for words, old, new in zip(every, olds, news, strict=True):
            kept.append(new)
            before, after = dict(numbers(old)), dict(numbers(new))
            wrong = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
            equal += len(before) - len(wrong)
            different += len(wrong)
            if not before:
                sys.stdout.write(f"{' '.join(words)}: no numbers: {str(old)[:200]}\n")
            for key in wrong[:3]:
                sys.stdout.write(f"{' '.join(words)}: {key}: {before.get(key)} {after.get(key)}\n")
    if given.write:
        given.write.write_text(json.dumps(kept))
    sys.stdout.write(f"{len(every)} commands: {equal} numbers equal, {different} different\n")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
