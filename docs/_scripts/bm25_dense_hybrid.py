"""BM25, dense, and hybrid on Cranfield and CISI: comparisons and diagnoses, in Markdown.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/bm25_dense_hybrid.py

The folder contains ``cranfield`` and ``cisi``, each with ``corpus.jsonl``, ``queries.jsonl``,
``trec/qrels.txt`` and ``runs/*.run.gz``.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import rankgauge

COLLECTIONS = {"Cranfield": "cranfield", "CISI": "cisi"}
RUNS = {"BM25": "bm25-lucene-k0.9-b0.4-stem", "dense": "minilm-l6-v2-cosine", "hybrid": "rrf-bm25-minilm-k60"}
MEASURES = ("nDCG@10", "AP", "RR", "P@10", "R@10", "R@100", "Success@10")


def folder() -> Path:
    """Return the folder with the data."""
    named = os.environ.get("RANKGAUGE_TEST_DATA")
    if not named:
        sys.exit("set RANKGAUGE_TEST_DATA to the folder that contains cranfield/ and cisi/")
    return Path(named)


def causes(found: Mapping[str, rankgauge.diagnosis.Diagnosis]) -> Iterator[str]:
    """Yield the lines of a table: the number of queries with each cause, by run."""
    yield f"| cause | {' | '.join(found)} | what to do |\n"
    yield f"| --- |{' --: |' * len(found)} --- |\n"
    rows = zip(*(diagnosis.totals for diagnosis in found.values()), strict=True)
    for row in rows:
        counts = " | ".join(str(total.queries) for total in row)
        yield f"| {row[0].cause.name} | {counts} | {row[0].cause.fix} |\n"
    counts = " | ".join(f"{one.failing} of {one.queries}" for one in found.values())
    yield f"| *queries that miss something* | {counts} | |\n"


def main() -> None:
    """Print the tables of the page."""
    write = sys.stdout.write
    for title, name in COLLECTIONS.items():
        path = folder() / name
        qrels = rankgauge.read_qrels(path / "trec" / "qrels.txt")
        texts = rankgauge.Collection.read(path)
        runs = {short: rankgauge.read_run(path / "runs" / f"{run}.run.gz", name=short) for short, run in RUNS.items()}
        comparison = rankgauge.compare(qrels, runs, MEASURES, pairs="all")
        write(f"## {title}\n\n")
        write(rankgauge.reports.render(comparison, "markdown"))
        write("\n### Likely causes\n\n")
        found = {short: rankgauge.diagnose(qrels, run, texts) for short, run in runs.items()}
        write("".join(causes(found)))
        for short, diagnosis in found.items():
            write(f"\n{short}:\n\n")
            write("".join(f"- {sentence}\n" for sentence in diagnosis.precision_recall.sentences))
        write("\n")


if __name__ == "__main__":
    main()
