"""The profiles of LlamaIndex and Haystack, compared with their evaluators."""

import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
pytest.importorskip("haystack", reason="haystack-ai is not installed")

from haystack import Document
from haystack.components import evaluators
from llama_index.core.evaluation.retrieval import metrics
from unkind import JUDGED, SEEDS, held, made

LLAMA = {
    "hit_rate": (metrics.HitRate(), "Success@1000"),
    "granular hit_rate": (metrics.HitRate(use_granular_hit_rate=True), "SetR"),
    "mrr": (metrics.MRR(), "RR"),
    "precision": (metrics.Precision(), "SetP"),
    "recall": (metrics.Recall(), "SetR"),
    "ap": (metrics.AveragePrecision(), "AP"),
    "ndcg": (metrics.NDCG(), "nDCG"),
}
CUT = {
    "Success@3": metrics.HitRate(),
    "R@3": metrics.Recall(),
    "RR@3": metrics.MRR(),
    "AP@3": metrics.AveragePrecision(),
}


def by_llama_index(inputs, metric, k=None):
    found = {}
    for query, scores in inputs.of_both().run.items():
        expected = [doc for doc, grade in inputs.qrels[query].items() if grade > 0]
        if expected:
            retrieved = list(scores)[:k]
            found[query] = metric.compute(expected_ids=expected, retrieved_ids=retrieved).score
    return found


@pytest.mark.parametrize("name", LLAMA)
def test_a_measure_is_that_of_llama_index(name):
    metric, ours = LLAMA[name]
    compared = 0
    for seed in SEEDS:
        inputs = made(seed)
        compared += held("llama-index", inputs, ours, by_llama_index(inputs, metric))
    assert compared > 10 * len(SEEDS)


@pytest.mark.parametrize("ours", CUT)
def test_a_measure_is_that_of_llama_index_for_a_retriever_of_three(ours):
    compared = 0
    for seed in SEEDS:
        inputs = made(seed)
        compared += held("llama-index", inputs, ours, by_llama_index(inputs, CUT[ours], 3))
    assert compared > 10 * len(SEEDS)


BY_ID = {"document_comparison_field": "id"}
HAYSTACK = {
    "single hit": (evaluators.DocumentRecallEvaluator("single_hit", **BY_ID), "Success@1000"),
    "multi hit": (evaluators.DocumentRecallEvaluator("multi_hit", **BY_ID), "SetR"),
    "MRR": (evaluators.DocumentMRREvaluator(**BY_ID), "RR"),
    "MAP": (evaluators.DocumentMAPEvaluator(**BY_ID), "AP"),
    "NDCG": (evaluators.DocumentNDCGEvaluator(**BY_ID), "nDCG"),
}


def by_haystack(inputs, evaluator, k=None):
    truth = [
        [Document(id=doc, content=doc, score=float(g)) for doc, g in docs.items() if g > 0]
        for docs in inputs.qrels.values()
    ]
    retrieved = [
        [Document(id=doc, content=doc) for doc in list(inputs.run.get(query, {}))[:k]] for query in inputs.qrels
    ]
    said = evaluator.run(ground_truth_documents=truth, retrieved_documents=retrieved)
    return dict(zip(inputs.qrels, said["individual_scores"], strict=True))


@pytest.mark.parametrize("name", HAYSTACK)
def test_a_measure_is_that_of_haystack(name):
    evaluator, ours = HAYSTACK[name]
    compared = 0
    for seed in SEEDS:
        inputs = made(seed)
        compared += held("haystack", inputs, ours, by_haystack(inputs, evaluator))
    assert compared == JUDGED * len(SEEDS)


@pytest.mark.parametrize(
    ("ours", "name"), [("Success@3", "single hit"), ("R@3", "multi hit"), ("RR@3", "MRR"), ("AP@3", "MAP")]
)
def test_a_measure_is_that_of_haystack_for_a_retriever_of_three(ours, name):
    compared = 0
    for seed in SEEDS:
        inputs = made(seed)
        compared += held("haystack", inputs, ours, by_haystack(inputs, HAYSTACK[name][0], 3))
    assert compared == JUDGED * len(SEEDS)
