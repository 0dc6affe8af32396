"""Compare our numbers for BM25, dense, and hybrid on Cranfield with those of other tools.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/cranfield.py

The tables are printed in Markdown. The folder contains ``cranfield/trec/qrels.txt``,
``cranfield/runs/*.run.gz``, and the values of the other tools, in
``cranfield/oracle/<run>.<tool>.json.gz``.
"""

import gzip
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import rankgauge

Values: TypeAlias = Mapping[str, float]

RUNS = {"BM25": "bm25-lucene-k0.9-b0.4-stem", "dense": "minilm-l6-v2-cosine", "hybrid": "rrf-bm25-minilm-k60"}
TREC_MEASURES = (
    "AP",
    "AP@100",
    "Rprec",
    "RR",
    "P@5",
    "P@10",
    "R@10",
    "R@100",
    "Success@1",
    "Success@10",
    "nDCG",
    "nDCG@5",
    "nDCG@10",
    "Bpref",
    "infAP",
    "IPrec@0.1",
    "IPrec@0.5",
    "IPrecAvg",
    "SetP",
    "SetR",
    "SetF",
    "SetAP",
)
TREC_HEADS = ("measure", "rankgauge", "trec_eval 9.0.8", "difference", "in 32 bits", "to 10.0-rc3", "to pytrec_eval")
# Our measure, the provider of ir_measures, and its name there.
OTHER_MEASURES = (
    ("ERR(top=4)@10", "gdeval", "ERR@10"),
    ("nDCG(gain=exp)@10", "gdeval", "nDCG(dcg='exp-log2')@10"),
    ("RR@10", "msmarco", "RR@10"),
    ("RBP(p=0.8)", "cwl_eval", "RBP(rel=1)"),
    ("RBP(p=0.95)", "cwl_eval", "RBP(rel=1,p=0.95)"),
    ("Judged@10", "judged", "Judged@10"),
)


def folder() -> Path:
    """Return the folder with the data."""
    named = os.environ.get("RANKGAUGE_TEST_DATA")
    if not named:
        sys.exit("set RANKGAUGE_TEST_DATA to the folder that contains cranfield/")
    return Path(named, "cranfield")


def oracle(run: str, tool: str) -> Any:
    """Return the values that a tool computed for a run."""
    return json.loads(gzip.decompress((folder() / "oracle" / f"{run}.{tool}.json.gz").read_bytes()))


def max_difference(ours: Values, theirs: Values) -> float:
    """Return the largest difference between values of a query; queries must be equal."""
    if ours.keys() != theirs.keys() or not ours:
        raise ValueError("the queries differ")
    return max(abs(value - theirs[query]) for query, value in ours.items())


def by_query(evaluation: rankgauge.Evaluation, name: str) -> Values:
    """Return values by query; undefined values are 0, as in the other tools."""
    place = list(map(str, evaluation.measures)).index(name)
    values = evaluation.per_query[:, place].tolist()
    pairs = zip(evaluation.query_ids, values, strict=True)
    return {query: 0.0 if value != value else value for query, value in pairs}  # noqa: PLR0124 - NaN


def shown(difference: float) -> str:
    """Format a difference; the tools' values have 12 decimals, so smaller ones are invisible."""
    return "0" if difference < 1e-12 else f"{difference:.0e}"


def table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """Return a Markdown table with right-aligned numbers."""
    rules = ["---", *("--:" for _ in heads[1:])]
    return "".join(f"| {' | '.join(row)} |\n" for row in (heads, rules, *rows))


def means(evaluations: Mapping[str, rankgauge.Evaluation]) -> Iterator[Sequence[str]]:
    """Yield a row for each run."""
    for title, evaluation in evaluations.items():
        yield title, *(f"{value:.4f}" for value in evaluation.mean().values())


def trec_rows(run: str, ours: rankgauge.Evaluation, single: rankgauge.Evaluation) -> Iterator[Sequence[str]]:
    """Yield a row for each measure: our mean, trec_eval's, and the largest difference."""
    old = oracle(run, "trec_eval-9.0.8")["variants"]["default"]
    new = oracle(run, "trec_eval-10.0-rc3")["variants"]["default"]
    bound = oracle(run, "pytrec_eval")["per_query"]
    for name in TREC_MEASURES:
        trec = rankgauge.parse(name).trec_name()
        mine = by_query(ours, name)
        yield (
            f"`{name}`",
            f"{ours.mean()[name]:.7f}",
            f"{old['all_c'][trec]:.7f}",
            shown(max_difference(mine, old["per_query"][trec])),
            shown(max_difference(by_query(single, name), old["per_query"][trec])),
            shown(max_difference(mine, new["per_query"][trec])),
            shown(max_difference(mine, {query: values[trec] for query, values in bound.items()})),
        )


def in_32_bits(run: rankgauge.Run) -> rankgauge.Run:
    """Return the run with scores rounded as in trec_eval 9 and pytrec_eval."""
    rows = [(query, doc, score) for query, docs in run.items() for doc, score in docs.items()]
    queries, docs, scores = zip(*rows, strict=True)
    return rankgauge.Run.from_columns(queries, docs, np.array(scores, dtype=np.float32))


def other_rows(run: str, ours: rankgauge.Evaluation) -> Iterator[Sequence[str]]:
    """Yield a row for each measure that trec_eval 9 does not have."""
    providers = oracle(run, "ir_measures")["providers"]
    for name, provider, theirs in OTHER_MEASURES:
        values = providers.get(provider, {}).get(theirs)
        if values is None:  # not every tool was run on every run
            continue
        mine = by_query(ours, name)
        yield (
            f"`{name}`",
            f"{ours.mean()[name]:.6f}",
            f"{values['mean']:.6f}",
            shown(max_difference(mine, values["per_query"])),
            provider,
        )


def main() -> None:
    """Print the tables of the page."""
    qrels = rankgauge.read_qrels(folder() / "trec" / "qrels.txt")
    names = (*TREC_MEASURES, *(name for name, _, _ in OTHER_MEASURES))
    found = {title: rankgauge.read_run(folder() / "runs" / f"{run}.run.gz") for title, run in RUNS.items()}
    chosen = ("nDCG@10", "AP", "RR", "P@10", "R@100", "Judged@10")
    short = {title: rankgauge.evaluate(qrels, run, chosen) for title, run in found.items()}
    write = sys.stdout.write
    write(table(("run", *chosen), means(short)))
    for title, run in RUNS.items():
        ours = rankgauge.evaluate(qrels, found[title], names)
        write(f"\n## {title}\n\n")
        write("".join(f"- {note}\n" for note in ours.notes) + "\n")
        single = rankgauge.evaluate(qrels, in_32_bits(found[title]), TREC_MEASURES)
        write(table(TREC_HEADS, trec_rows(run, ours, single)) + "\n")
        heads = ("measure", "rankgauge", "ir_measures 0.4.3", "difference", "from")
        write(table(heads, other_rows(run, ours)))


if __name__ == "__main__":
    main()
