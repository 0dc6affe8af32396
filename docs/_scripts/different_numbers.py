"""Differing numbers of three tools, reproduced and explained: why-is-my-number-different.md.

    export RANKGAUGE_TEST_DATA=/path/to/data
    python docs/_scripts/different_numbers.py           print the sessions
    python docs/_scripts/different_numbers.py --write   write them into the page
    python docs/_scripts/different_numbers.py --ranx    compute the values of ranx again

The folder contains ``cranfield/trec/qrels.txt`` and ``cranfield/runs/bm25-coarse-scores.run.gz``.
The values of pytrec_eval and of the tutorial's loop below are computed each time. Those of ranx are
stored in ``given/`` under its version; ``--ranx`` writes them in an environment with ranx. Each
session in the page follows a comment with its name; a test compares the page with the output.
"""

import gzip
import json
import math
import os
import sys
import tempfile
from pathlib import Path

from consoles import printed
from page_tables import fill_sessions

Grades = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "howto" / "why-is-my-number-different.md"
OF_RANX = HERE / "given" / "ranx-0.3.21.json"

WHY = "rankgauge explain qrels.txt tied.run nDCG@10"
SESSIONS = {
    "ours": ("rankgauge evaluate qrels.txt tied.run -m nDCG@10",),
    "steps": (f"{WHY} --query 118",),
    "tutorial": (f"{WHY} --against-values tutorial.csv",),
    "tutorial-mean": (f"{WHY} --against-mean {{tutorial}} | head -n 14",),
    "pytrec_eval": (
        f"{WHY} --against-values pytrec_eval.json | head -n 12",
        "rankgauge explain qrels.txt fine.run nDCG@10 --against-values fine.json",
    ),
    "ranx": (f"{WHY} --against-values ranx.json",),
}


def data() -> Path:
    """Return the folder with the data."""
    named = os.environ.get("RANKGAUGE_TEST_DATA")
    if not named:
        sys.exit("set RANKGAUGE_TEST_DATA to the folder that contains cranfield/")
    return Path(named) / "cranfield"


def read() -> tuple[Grades, Scores, list[str]]:
    """Return the judgments, the tied run, and the lines of the run."""
    qrels: Grades = {}
    for line in (data() / "trec" / "qrels.txt").read_text(encoding="utf-8").splitlines():
        query, _, document, grade = line.split()
        qrels.setdefault(query, {})[document] = int(grade)
    run: Scores = {}
    packed = (data() / "runs" / "bm25-coarse-scores.run.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    for line in lines:
        query, _, document, _, score, _ = line.split()
        run.setdefault(query, {})[document] = float(score)
    return qrels, run, lines


def of_tutorial(qrels: Grades, run: Scores, k: int = 10) -> dict[str, float]:
    """Return nDCG@k as in many tutorials: the ideal ranking contains only retrieved documents."""
    found = {}
    for query, scores in run.items():
        grades = qrels.get(query, {})
        ranking = sorted(scores, key=scores.__getitem__, reverse=True)
        gains = [max(grades.get(document, 0), 0) for document in ranking]
        dcg, best = (
            sum(gain / math.log2(rank + 1) for rank, gain in enumerate(order[:k], start=1))
            for order in (gains, sorted(gains, reverse=True))
        )
        found[query] = dcg / best if best else 0.0
    return found


def of_pytrec_eval(qrels: Grades, run: Scores) -> dict[str, dict[str, float]]:
    """Return the values of pytrec_eval."""
    import pytrec_eval

    values: dict[str, dict[str, float]]
    values = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
    return values


def write_ranx() -> None:
    """Compute the values of ranx and store them."""
    from importlib.metadata import version

    import ranx

    qrels, run, _ = read()
    found = ranx.Run(run)
    ranx.evaluate(ranx.Qrels(qrels), found, "ndcg@10")
    values = {query: float(value) for query, value in found.scores["ndcg@10"].items()}
    target = OF_RANX.with_name(f"ranx-{version('ranx')}.json")
    target.write_text(json.dumps({"ndcg@10": values}, indent=0) + "\n", encoding="utf-8")


def finer(lines: list[str]) -> list[str]:
    """Return the run with scores that encode the old order beyond 32-bit precision."""
    rows = [line.split() for line in lines]
    return [" ".join([*row[:4], repr(float(row[4]) + 1 - int(row[3]) * 1e-9), row[5]]) for row in rows]


def make(folder: Path) -> dict[str, str]:
    """Write the files of all sessions; return the placeholders of the commands."""
    qrels, run, lines = read()
    text = (data() / "trec" / "qrels.txt").read_text(encoding="utf-8")
    fine = finer(lines)
    scores: Scores = {}
    for line in fine:
        query, _, document, _, score, _ = line.split()
        scores.setdefault(query, {})[document] = float(score)
    tutorial = of_tutorial(qrels, run)
    rows = "".join(f"{query},{value:.4f}\n" for query, value in tutorial.items())
    for name, content in {
        "qrels.txt": text,
        "tied.run": "\n".join(lines) + "\n",
        "fine.run": "\n".join(fine) + "\n",
        "tutorial.csv": f"query_id,nDCG@10\n{rows}",
        "pytrec_eval.json": json.dumps(of_pytrec_eval(qrels, run)),
        "fine.json": json.dumps(of_pytrec_eval(qrels, scores)),
        "ranx.json": OF_RANX.read_text(encoding="utf-8"),
    }.items():
        (folder / name).write_text(content, encoding="utf-8")
    return {"tutorial": f"{math.fsum(tutorial.values()) / len(qrels):.4f}"}


def sessions() -> dict[str, str]:
    """Return each session by name, as a block of Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        words = make(Path(folder))
        found = {}
        for name, commands in SESSIONS.items():
            filled_in = [command.format(**words) for command in commands]
            lines = [f"$ {command}\n{printed(command, folder)}" for command in filled_in]
            found[name] = f"<!-- session: {name} -->\n```shell-session\n{''.join(lines)}```"
        return found


def main() -> None:
    """Print the sessions, write them into the page, or run ranx."""
    if "--ranx" in sys.argv:
        write_ranx()
    elif "--write" in sys.argv:
        PAGE.write_text(fill_sessions(PAGE.read_text(encoding="utf-8"), sessions()), encoding="utf-8")
    else:
        sys.stdout.write("\n\n".join(sessions().values()) + "\n")


if __name__ == "__main__":
    main()
