"""The measures compared with ir_measures, provider by provider.

Names are the same in both libraries, so a name with another meaning would be detected here.
Named exceptions: the providers msmarco, judged, and cwl_eval order ties differently from trec_eval,
so they get a run without ties; gdeval prints five decimals and needs Perl, numeric query ids, and
grades up to 4.
"""

from __future__ import annotations

import importlib.util
import shutil

import ir_measures
import numpy as np
import pytest
from peers import ir_measure
from strategies import Batch, Judgments, batch, joined, values

from rankgauge import evaluate, parse
from rankgauge.measures.compiled import step_of

_NAMES = {
    "pytrec_eval": (
        "P@5",
        "P(rel=2)@10",
        "P(judged_only=True)@5",
        "R@10",
        "R(rel=2)@3",
        "RR",
        "RR(rel=3)",
        "AP",
        "AP@5",
        "AP(rel=2)",
        "Rprec",
        "Rprec(rel=2)",
        "Bpref",
        "Bpref(rel=2)",
        "infAP",
        "nDCG",
        "nDCG@5",
        "nDCG(gains={1:2,2:5,3:9})@10",
        "Success@1",
        "Success(rel=2)@5",
        "SetP",
        "SetR",
        "SetF",
        "SetAP",
        "IPrec@0.1",
        "IPrec@0.5",
        "NumRet",
        "NumRel",
        "NumRet(rel=1)",
    ),
    "judged": ("Judged@1", "Judged@5", "Judged@10"),
    "msmarco": ("RR", "RR@1", "RR@5", "RR(rel=2)@10"),
    "gdeval": ("ERR@5", "ERR@10", "nDCG(dcg='exp-log2')@5", "nDCG(dcg='exp-log2')@20"),
    "cwl_eval": ("RBP(rel=1,p=0.8)", "RBP(rel=2,p=0.5)", "RBP(rel=1,p=0.95)", "P@5", "RR"),
}
# NumRet with a level counts relevant documents.
_OURS = {"NumRet(rel=1)": "NumRelRet"}
_QUERIES = 300


def _without_ties(made: Batch) -> Batch:
    """Return a batch that every provider accepts: numeric query ids, whole grades, no ties."""
    numbers = {query: str(number) for number, query in enumerate(made.qrels, start=1)}
    qrels: Judgments = {
        numbers[query]: {doc: int(grade) for doc, grade in grades.items()} for query, grades in made.qrels.items()
    }
    run = {numbers[query]: {doc: float(-place) for place, doc in enumerate(made.run[query])} for query in made.qrels}
    return Batch(qrels, run)


@pytest.mark.parametrize("provider", _NAMES)
def test_a_measure_agrees_with_ir_measures(provider: str) -> None:
    if provider == "gdeval" and shutil.which("perl") is None:
        pytest.skip("Perl is not installed: nothing was compared with gdeval")
    if provider == "cwl_eval" and importlib.util.find_spec("cwl") is None:
        pytest.skip("cwl-eval is not installed: nothing was compared with it")
    grades = (0, 0, 1, 1, 2, 3) if provider == "gdeval" else (-1, 0, 0, 1, 1, 2, 3)
    made = _without_ties(batch(77, queries=_QUERIES, grades=grades, missing=False))
    names = _NAMES[provider]
    theirs = [ir_measure(name) for name in names]
    ours = [parse(_OURS.get(name, name)) for name in names]
    found = joined(made.qrels, made.run)
    mine = dict(zip(found.qrels.query_ids, np.nan_to_num(values(found, ours)), strict=True))
    # Dicts are measured by the compiled core, if it has all of the measures.
    compiled = [measure for measure in ours if step_of(measure)]
    of_core = evaluate(made.qrels, made.run, compiled)
    tolerance = 1.01e-5 if provider == "gdeval" else 1e-9
    compared = 0
    asked = ir_measures.providers.registry[provider]
    for metric in asked.iter_calc(theirs, made.qrels, made.run):
        value = mine[metric.query_id][theirs.index(metric.measure)]
        assert abs(value - metric.value) <= tolerance, f"{metric}: ours {value!r}"
        measure = ours[theirs.index(metric.measure)]
        if measure in compiled:
            core = np.nan_to_num(of_core.value(metric.query_id, measure))
            assert abs(core - metric.value) <= tolerance, f"{metric}: the core {core!r}"
        compared += 1
    assert compared == _QUERIES * len(names)
