"""Evaluate small inputs with every tool, for the tables of docs/explain/other-tools.md.

    .venv-tools/bin/python docs/_scripts/other_tools.py [--write]

Without ``--write``, only check that the page agrees with the tools. The page keeps the values of
tools that are not installed.
"""

from __future__ import annotations

import copy
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import rankgauge

PAGE = Path(__file__).parents[1] / "explain" / "other-tools.md"
START, END = "<!-- tables: start -->", "<!-- tables: end -->"
UNKNOWN = "?"

Judgments = Mapping[str, Mapping[str, int]]
Scores = Mapping[str, Mapping[str, float]]
# The profile of the tool, its name for the measure, and ours.
MeasureNames = tuple[str, str, str]


class Case(NamedTuple):
    """A case in which tools disagree.

    Attributes:
        title: The subject.
        qrels: The judgments.
        run: The run.
        measures: The measures for each tool.
        why: Why they disagree, for readers.
        threads: Issues and pull requests that discuss it.
    """

    title: str
    qrels: Judgments
    run: Scores
    measures: tuple[MeasureNames, ...]
    why: str
    threads: tuple[str, ...] = ()


# ---- the tools


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _by_pytrec_eval(name: str, qrels: Any, run: Any) -> float:
    import pytrec_eval

    found = pytrec_eval.RelevanceEvaluator(qrels, {name}).evaluate(run)
    return _mean([values[name] for values in found.values()])


def _by_ir_measures(name: str, qrels: Any, run: Any) -> float:
    import ir_measures

    measure = ir_measures.parse_measure(name)
    return float(ir_measures.calc_aggregate([measure], qrels, run)[measure])


def _by_ranx(name: str, qrels: Any, run: Any) -> float:
    import ranx

    found = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), name, make_comparable=True)
    return float(found)


def _by_beir(name: str, qrels: Any, run: Any) -> float:
    from beir.retrieval.evaluation import EvaluateRetrieval

    results, cuts = copy.deepcopy(run), [int(name.partition("@")[2])]
    parts = EvaluateRetrieval.evaluate(qrels, results, cuts)
    said = {key: value for part in parts for key, value in part.items()}
    if name not in said:
        said = EvaluateRetrieval.evaluate_custom(qrels, results, cuts, name.partition("@")[0])
    return float(said[name])


def _by_mteb(name: str, qrels: Any, run: Any, **options: bool) -> float:
    from mteb._evaluators.retrieval_evaluator import RetrievalEvaluator

    kind, _, k = name.partition("@")
    # The constructor needs a model and a task, which evaluate() does not use.
    evaluator = RetrievalEvaluator.__new__(RetrievalEvaluator)
    found = evaluator.evaluate(qrels, copy.deepcopy(run), [int(k)], **options)
    return float(getattr(found, kind.lower())[f"{kind.upper()}@{k}"])


def _by_sentence_transformers(name: str, qrels: Any, run: Any) -> float:
    from sentence_transformers.sentence_transformer import evaluation

    kind, _, k = name.partition("@")
    relevant = {q: {d for d, g in docs.items() if g > 0} for q, docs in qrels.items()}
    corpus = {doc: doc for scores in run.values() for doc in scores}
    words = ("mrr_at_k", "ndcg_at_k", "accuracy_at_k", "precision_recall_at_k", "map_at_k")
    made = evaluation.InformationRetrievalEvaluator(
        {query: query for query in qrels}, corpus, relevant, write_csv=False, **{word: [int(k)] for word in words}
    )
    hits = [
        [{"corpus_id": doc, "score": score} for doc, score in run.get(query, {}).items()] for query in made.queries_ids
    ]
    return float(made.compute_metrics(hits)[f"{kind}@k"][int(k)])


def _side_by_side(qrels: Any, run: Any) -> Iterator[tuple[list[float], list[int]]]:
    for query, scores in run.items():
        if query in qrels:
            yield list(scores.values()), [qrels[query].get(doc, 0) for doc in scores]


def _by_torchmetrics(name: str, qrels: Any, run: Any) -> float:
    import torch
    from torchmetrics.functional import retrieval

    kind, _, k = name.partition("@")
    function = getattr(retrieval, kind)
    values = []
    for scores, grades in _side_by_side(qrels, run):
        target = grades if "dcg" in kind else [int(grade > 0) for grade in grades]
        more = {"top_k": int(k)} if k else {}
        values.append(float(function(torch.tensor(scores), torch.tensor(target), **more)))
    return _mean(values)


def _by_sklearn(name: str, qrels: Any, run: Any) -> float:
    import numpy as np
    from sklearn.metrics import ndcg_score

    k = name.partition("@")[2]
    pairs = _side_by_side(qrels, run)
    return _mean(
        [float(ndcg_score(np.array([grades]), np.array([scores]), k=int(k) if k else None)) for scores, grades in pairs]
    )


def _by_llama_index(name: str, qrels: Any, run: Any) -> float:
    from llama_index.core.evaluation.retrieval import metrics

    metric = getattr(metrics, name)()
    values = []
    for query, scores in run.items():
        expected = [doc for doc, grade in qrels.get(query, {}).items() if grade > 0]
        if expected:
            found = metric.compute(expected_ids=expected, retrieved_ids=list(scores))
            values.append(float(found.score))
    return _mean(values)


def _by_haystack(name: str, qrels: Any, run: Any) -> float:
    from haystack import Document
    from haystack.components import evaluators

    made = getattr(evaluators, name)(document_comparison_field="id")
    truth = [
        [Document(id=doc, content=doc, score=float(g)) for doc, g in docs.items() if g > 0] for docs in qrels.values()
    ]
    given = [[Document(id=doc, content=doc) for doc in run.get(query, {})] for query in qrels]
    return float(made.run(ground_truth_documents=truth, retrieved_documents=given)["score"])


TOOLS: Mapping[str, tuple[str, Callable[[str, Any, Any], float]]] = {
    "pytrec_eval": ("pytrec-eval-terrier", _by_pytrec_eval),
    "ir_measures": ("ir-measures", _by_ir_measures),
    "ranx": ("ranx", _by_ranx),
    "beir": ("beir", _by_beir),
    "mteb": ("mteb", _by_mteb),
    "mteb-ignore-identical-ids": ("mteb", partial(_by_mteb, ignore_identical_ids=True)),
    "mteb-skip-first-result": ("mteb", partial(_by_mteb, skip_first_result=True)),
    "sentence-transformers": ("sentence-transformers", _by_sentence_transformers),
    "torchmetrics": ("torchmetrics", _by_torchmetrics),
    "sklearn": ("scikit-learn", _by_sklearn),
    "llama-index": ("llama-index-core", _by_llama_index),
    "haystack": ("haystack-ai", _by_haystack),
}

# ---- the cases

_RANKS: tuple[MeasureNames, ...] = (
    ("pytrec_eval", "recip_rank", "RR"),
    ("ir_measures", "RR", "RR"),
    ("ir_measures", "RR@10", "RR@10"),
    ("ranx", "mrr", "RR"),
    ("beir", "MRR@10", "RR@10"),
    ("mteb", "MRR@10", "RR@10"),
    ("sentence-transformers", "mrr@10", "RR@10"),
    ("llama-index", "MRR", "RR"),
    ("haystack", "DocumentMRREvaluator", "RR"),
)
_GAINS: tuple[MeasureNames, ...] = (
    ("pytrec_eval", "ndcg_cut_10", "nDCG@10"),
    ("ranx", "ndcg@10", "nDCG@10"),
    ("beir", "NDCG@10", "nDCG@10"),
    ("sentence-transformers", "ndcg@10", "nDCG@10"),
    ("torchmetrics", "retrieval_normalized_dcg@10", "nDCG@10"),
    ("sklearn", "ndcg_score@10", "nDCG@10"),
    ("llama-index", "NDCG", "nDCG"),
    ("haystack", "DocumentNDCGEvaluator", "nDCG"),
)
_BOTH = (*_RANKS, *_GAINS)
_OPTIONS: tuple[MeasureNames, ...] = (
    ("mteb-ignore-identical-ids", "MRR@10", "RR@10"),
    ("mteb-ignore-identical-ids", "NDCG@10", "nDCG@10"),
    ("mteb-skip-first-result", "MRR@10", "RR@10"),
    ("mteb-skip-first-result", "NDCG@10", "nDCG@10"),
)

CASES = (
    Case(
        "Equal scores",
        {"q": {"b": 1}},
        {"q": {"a": 1.0, "b": 1.0}},
        _BOTH,
        "Two documents have the same score, and the second one is relevant. Some tools put the "
        "higher document id first, some the lower one, some keep the input order, and two "
        "average over both orders. ir_measures and BEIR break ties differently for different "
        "measures of the same report.",
        (
            "usnistgov/trec_eval#22",
            "terrierteam/ir_measures#18",
            "embeddings-benchmark/mteb#5092",
            "embeddings-benchmark/mteb#5136",
            "huggingface/sentence-transformers#3989",
        ),
    ),
    Case(
        "Scores that differ beyond 32 bits",
        {"q": {"a": 1}},
        {"q": {"a": 0.1234567892, "z": 0.1234567891}},
        _BOTH,
        "The relevant document has the higher score, but only beyond the precision of 32-bit "
        "floats. pytrec_eval uses 32 bits, so this is a tie in pytrec_eval and in the tools that "
        "call it.",
        ("usnistgov/trec_eval#34",),
    ),
    Case(
        "A judged query that is missing from the run",
        {"q1": {"a": 1}, "q2": {"a": 1}},
        {"q1": {"a": 1.0, "b": 0.5}},
        _BOTH,
        "One of two queries is missing from the run. Tools drop it from the mean or count it as "
        "0. BEIR drops it for nDCG and counts it for MRR.",
        ("beir-cellar/beir#102",),
    ),
    Case(
        "A query without a relevant document",
        {"q1": {"a": 1}, "q2": {"a": 0}},
        {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 2.0, "b": 1.0}},
        _BOTH,
        "Most tools count such a query as 0. Two drop it, so their mean is higher.",
        ("embeddings-benchmark/mteb#3030",),
    ),
    Case(
        "The denominator of AP",
        {"q": {"a": 1, "b": 1, "c": 1, "d": 1}},
        {"q": {"a": 2.0, "x": 1.0}},
        (
            ("pytrec_eval", "map_cut_2", "AP@2"),
            ("ranx", "map@2", "AP@2"),
            ("beir", "MAP@2", "AP@2"),
            ("sentence-transformers", "map@2", "AP@2"),
            ("torchmetrics", "retrieval_average_precision@2", "AP@2"),
            ("llama-index", "AveragePrecision", "AP"),
            ("haystack", "DocumentMAPEvaluator", "AP"),
        ),
        "Four documents are relevant, and one of them was retrieved, at rank 1 of 2. The sum of "
        "precisions, 1, is divided by the number of relevant documents (4), by the smaller of "
        "this number and the cut-off (2), or by the number of relevant documents retrieved (1).",
        ("Lightning-AI/torchmetrics#2611",),
    ),
    Case(
        "Relevant documents that were not retrieved",
        {"q": {"a": 1, "b": 1, "c": 1}},
        {"q": {"x": 3.0, "a": 2.0}},
        _GAINS,
        "Some tools get only scores with targets, not the documents that were missed. Their "
        "ideal ranking does not contain these, so their value is higher.",
        ("Lightning-AI/torchmetrics#2611",),
    ),
    Case(
        "Grades",
        {"q": {"a": 1, "b": 3}},
        {"q": {"a": 2.0, "b": 1.0}},
        _GAINS,
        "The better document is at rank 2. With binary relevance, the ranking is perfect.",
    ),
    Case(
        "Scores of 0 or less",
        {"q": {"a": 1}},
        {"q": {"a": -1.0, "b": -2.0}},
        (
            ("pytrec_eval", "P_1", "P@1"),
            ("ranx", "precision@1", "P@1"),
            ("torchmetrics", "retrieval_precision@1", "P@1"),
            ("torchmetrics", "retrieval_reciprocal_rank", "RR"),
            ("torchmetrics", "retrieval_normalized_dcg@1", "nDCG@1"),
        ),
        "Log probabilities and inner products can be negative. In some measures, torchmetrics "
        "treats documents with scores of 0 or less as not retrieved.",
        ("Lightning-AI/torchmetrics#3104",),
    ),
    Case(
        "A document that is its own query",
        {"q": {"a": 1}},
        {"q": {"q": 2.0, "a": 1.0}},
        (*_BOTH, *_OPTIONS),
        "In collections whose queries are documents, each query retrieves itself first. BEIR "
        "removes this result. MTEB does so if the task asks for it, either by id or by dropping "
        "the first result.",
        ("beir-cellar/beir#70", "beir-cellar/beir#187"),
    ),
    Case(
        "A ranking shorter than the cut-off",
        {"q": {"a": 1}},
        {"q": {"a": 1.0}},
        (
            ("pytrec_eval", "P_5", "P@5"),
            ("ranx", "precision@5", "P@5"),
            ("beir", "P@5", "P@5"),
            ("sentence-transformers", "precision@5", "P@5"),
            ("torchmetrics", "retrieval_precision@5", "P@5"),
            ("llama-index", "Precision", "SetP"),
        ),
        "One document was requested and retrieved. Precision at 5 is still 1/5, except in the "
        "tool that has no cut-offs and divides by the number of retrieved documents.",
    ),
)

# ---- the page


class Row(NamedTuple):
    """A row of a table."""

    title: str
    tool: str
    name: str
    says: str
    profile: str
    ours: str


def shown(value: float) -> str:
    """Format with four decimals; smaller differences have other causes."""
    return "NaN" if math.isnan(value) else f"{value:.4f}"


def tool_value(tool: str, name: str, case: Case) -> str:
    """Return the value of a tool; `UNKNOWN` if it is not installed."""
    package, function = TOOLS[tool]
    if installed(package) is None:
        return UNKNOWN
    qrels = {query: dict(docs) for query, docs in case.qrels.items()}
    run = {query: dict(docs) for query, docs in case.run.items()}
    return shown(function(name, qrels, run))


def installed(package: str) -> str | None:
    """Return the version of a package, or None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def rows(case: Case) -> Iterator[Row]:
    """Yield the rows of a case: the values of each tool and of our profile."""
    for tool, name, measure in case.measures:
        ev = rankgauge.evaluate(case.qrels, case.run, rankgauge.parse(measure), profile=tool)
        (ours,) = ev.mean().values()
        (plain,) = rankgauge.evaluate(case.qrels, case.run, measure).mean().values()
        yield Row(case.title, tool, name, tool_value(tool, name, case), shown(ours), shown(plain))


def table(case: Case, known: Mapping[tuple[str, str, str], str]) -> str:
    """Return a case in Markdown; tools that are not installed keep their values."""
    lines = [
        f"## {case.title}",
        "",
        case.why,
        "",
        "| judgments | run |",
        "|---|---|",
        f"| {_inline(case.qrels)} | {_inline(case.run)} |",
        "",
        "| tool | measure | its value | our profile | our default |",
        "|---|---|---|---|---|",
    ]
    for row in rows(case):
        says = known.get(row[:3], UNKNOWN) if row.says == UNKNOWN else row.says
        lines.append(f"| {row.tool} | `{row.name}` | {says} | {row.profile} | {row.ours} |")
    if case.threads:
        links = (f"[{thread}](https://github.com/{thread.replace('#', '/issues/')})" for thread in case.threads)
        lines += ["", f"Discussed in {', '.join(links)}."]
    return "\n".join([*lines, ""])


def _inline(pairs: Mapping[str, Mapping[str, float]]) -> str:
    return "; ".join(
        f"{query}: {', '.join(f'{doc} {value:.10g}' for doc, value in docs.items())}" for query, docs in pairs.items()
    )


def known_of(page: str) -> dict[tuple[str, str, str], str]:
    """Return the values in the page by title, tool, and measure."""
    found, title = {}, ""
    for line in page.splitlines():
        if line.startswith("## "):
            title = line[3:]
        match = re.fullmatch(r"\| ([\w-]+) \| `(.+?)` \| (\S+) \| \S+ \| \S+ \|", line)
        if match:
            found[title, match[1], match[2]] = match[3]
    return found


def versions(page: str) -> str:
    """Return the table of versions: those installed, else those in the page."""
    before = dict(re.findall(r"(?m)^\| ([\w-]+) \| ([\w.+]+) \|$", page))
    lines = ["## Versions", "", "| package | version |", "|---|---|"]
    packages = dict.fromkeys(package for package, _ in TOOLS.values())
    lines += [f"| {name} | {installed(name) or before.get(name, UNKNOWN)} |" for name in packages]
    return "\n".join([*lines, ""])


def run_again(page: str) -> str:
    """Return the page with new tables."""
    head, _, rest = page.partition(START)
    _, _, tail = rest.partition(END)
    known = known_of(page)
    made = "\n".join([*(table(case, known) for case in CASES), versions(page)])
    return f"{head}{START}\n\n{made}\n{END}{tail}"


def main() -> None:
    """Write the tables, or check that the page agrees with them."""
    before = PAGE.read_text(encoding="utf-8")
    after = run_again(before)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(after, encoding="utf-8")
    elif after != before:
        sys.exit(f"{PAGE} is out of date: run this script with --write")


if __name__ == "__main__":
    main()
