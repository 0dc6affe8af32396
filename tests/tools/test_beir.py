"""The profiles of BEIR and MTEB, compared with these tools on adversarial data."""

import copy
import math

import pytest

pytest.importorskip("beir", reason="beir is not installed: nothing was compared with it")

from beir.retrieval.evaluation import EvaluateRetrieval
from unkind import BOTH, QUERIES, SEEDS, held, made

from rankgauge import evaluate

CUTS = [1, 3, 5, 10]
# BEIR's five decimals.
HALF = 5.0001e-6
EVALUATED = {"NDCG": "nDCG", "MAP": "AP", "Recall": "R", "P": "P"}
CUSTOM = {"mrr": ("MRR", "RR"), "acc": ("Accuracy", "Success"), "r_cap": ("R_cap", "RelP")}


def judged(seed):
    """Return only queries with a relevant document, since BEIR's own loops fail on others."""
    inputs = made(seed)
    qrels = {q: docs for q, docs in inputs.qrels.items() if max(docs.values()) > 0}
    return inputs._replace(qrels=qrels, run={q: r for q, r in inputs.run.items() if q in qrels})


def reported(inputs):
    """Return the whole report: the values of evaluate(), and those of BEIR's own loops."""
    results = copy.deepcopy(inputs.run)
    found = {}
    for part in EvaluateRetrieval.evaluate(inputs.qrels, results, CUTS):
        found |= part
    for metric in CUSTOM:
        found |= EvaluateRetrieval.evaluate_custom(inputs.qrels, results, CUTS, metric)
    return found


def names():
    for theirs, ours in [*EVALUATED.items(), *CUSTOM.values()]:
        for k in CUTS:
            yield f"{theirs}@{k}", f"{ours}@{k}"


def test_the_whole_report_is_that_of_beir():
    compared = mixed = 0
    for seed in SEEDS:
        inputs = judged(seed)
        wanted = reported(inputs)
        ev = evaluate(inputs.qrels, inputs.run, [ours for _, ours in names()], profile="beir")
        means = ev.mean()
        mixed += ev.left_out is not None
        for theirs, ours in names():
            assert abs(means[ours] - wanted[theirs]) <= HALF, (seed, theirs)
            compared += 1
    assert compared == len(SEEDS) * len(CUTS) * 7
    assert mixed == len(SEEDS)  # each lacks queries


def test_a_query_alone_is_that_of_beir():
    compared = 0
    for seed in SEEDS:
        inputs = judged(seed)
        ev = evaluate(inputs.qrels, inputs.run, [ours for _, ours in names()], profile="beir")
        for query in inputs.run:
            one = inputs._replace(qrels={query: inputs.qrels[query]}, run={query: inputs.run[query]})
            wanted = reported(one)
            for theirs, ours in names():
                value = ev.value(query, ours)
                value = 0.0 if math.isnan(value) else value
                assert abs(value - wanted[theirs]) <= HALF, (seed, query, theirs)
                compared += 1
    assert compared > len(SEEDS) * 10 * len(CUTS) * 7


def test_queries_without_a_relevant_document_count_zero():
    inputs = made(2)
    results = copy.deepcopy(inputs.run)
    ndcg, _, recall, _ = EvaluateRetrieval.evaluate(inputs.qrels, results, CUTS)
    means = evaluate(inputs.qrels, inputs.run, ["nDCG@10", "R@5"], profile="beir").mean()
    assert abs(means["nDCG@10"] - ndcg["NDCG@10"]) <= HALF
    assert abs(means["R@5"] - recall["Recall@5"]) <= HALF


OPTIONS = {
    "mteb": {},
    "mteb-ignore-identical-ids": {"ignore_identical_ids": True},
    "mteb-skip-first-result": {"skip_first_result": True},
}


@pytest.mark.parametrize("profile", OPTIONS)
def test_measures_are_those_of_mteb(profile):
    reason = "mteb is not installed: nothing was compared with it"
    retrieval = pytest.importorskip("mteb._evaluators.retrieval_metrics", reason=reason)
    evaluators = pytest.importorskip("mteb._evaluators.retrieval_evaluator", reason=reason)
    evaluator = evaluators.RetrievalEvaluator.__new__(evaluators.RetrievalEvaluator)
    columns = {"ndcg_cut": "nDCG", "map_cut": "AP", "recall": "R", "P": "P", "success": "Success"}
    compared = 0
    for seed in SEEDS:
        inputs = made(seed, shortest=2)
        inputs = inputs._replace(run={q: r for q, r in inputs.run.items() if q in inputs.qrels})
        results = copy.deepcopy(inputs.run)
        found = evaluator.evaluate(inputs.qrels, results, CUTS, **OPTIONS[profile])
        # Tasks compute R_cap from the results of evaluate().
        capped = retrieval.recall_cap(inputs.qrels, results, CUTS)
        for k in CUTS:
            for theirs, ours in columns.items():
                wanted = {q: values[f"{theirs}_{k}"] for q, values in found.all_scores.items()}
                compared += held(profile, inputs, f"{ours}@{k}", wanted)
            means = evaluate(inputs.qrels, inputs.run, [f"nDCG@{k}", f"RR@{k}"], profile=profile)
            assert abs(means.mean()[f"nDCG@{k}"] - found.ndcg[f"NDCG@{k}"]) <= HALF
            assert means.mean()[f"RR@{k}"] == pytest.approx(found.mrr[f"MRR@{k}"], abs=1e-12)
            wanted = dict(zip(inputs.run, capped[f"R_cap_at_{k}"], strict=True))
            wanted = {query: value for query, value in wanted.items() if value is not None}
            assert held(profile, inputs, f"RelP@{k}", wanted) > 10
    assert compared == len(SEEDS) * len(CUTS) * 5 * BOTH
    assert BOTH < QUERIES


def test_reciprocal_ranks_are_those_of_mteb():
    retrieval = pytest.importorskip("mteb._evaluators.retrieval_metrics", reason="mteb is missing")
    compared = 0
    for seed in SEEDS:
        inputs = made(seed)
        inputs = inputs._replace(run={q: r for q, r in inputs.run.items() if q in inputs.qrels})
        ranks = retrieval.mrr(inputs.qrels, inputs.run, CUTS)
        for k in CUTS:
            wanted = dict(zip(inputs.run, ranks[f"MRR@{k}"], strict=True))
            compared += held("mteb", inputs, f"RR@{k}", wanted)
    assert compared == len(SEEDS) * len(CUTS) * BOTH
