"""Independent checks of findings: pytrec_eval on manually fixed data, and slow counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytrec_eval

from rankgauge import Finding
from rankgauge.checks import CheckResult

Judgments = Mapping[str, Mapping[str, int]]
Scores = Mapping[str, Mapping[str, float]]


def opinion(qrels: Judgments, run: Scores, name: str = "ndcg_cut_10") -> float:
    """Return the mean by pytrec_eval over all judged queries; those it omits count as 0."""
    plain = {query: dict(docs) for query, docs in qrels.items()}
    stem = name.rpartition("_")
    wanted = f"{stem[0]}.{stem[2]}" if stem[2].isdigit() else name
    evaluator = pytrec_eval.RelevanceEvaluator(plain, {wanted})
    found = evaluator.evaluate({query: dict(docs) for query, docs in run.items()})
    return math.fsum(values[name] for values in found.values()) / len(qrels)


def only(found: CheckResult, code: str) -> Finding:
    """Return the only finding, which must have this code."""
    (problem,) = found.of(code)
    return problem


def effect(problem: Finding, by: str, measure: str = "nDCG@10") -> Any:
    """Return the only effect with this action and measure."""
    (chosen,) = [e for e in problem.evidence.effects if by in e.condition and e.measure == measure]
    return chosen


def good(queries: int = 12, depth: int = 12) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return judgments and a run without faults: relevant documents mostly high, some unjudged."""
    qrels: dict[str, Any] = {}
    run: dict[str, Any] = {}
    for q in range(queries):
        docs = [f"d{7 * q + 3 * place}x{q}" for place in range(depth)]
        run[f"q{q}"] = {doc: 20 - place - 0.25 * (q % 3) for place, doc in enumerate(docs)}
        qrels[f"q{q}"] = {
            doc: (3 if place == q % 2 else 1 if place in {2, 4} else 0) for place, doc in enumerate(docs[:11])
        }
        qrels[f"q{q}"][f"missed{q}"] = 1
    return qrels, run
