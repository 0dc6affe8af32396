"""The profiles of torchmetrics, scikit-learn and sentence-transformers, compared with them."""

import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing was compared")
pytest.importorskip("torchmetrics", reason="torchmetrics is not installed: nothing was compared")
pytest.importorskip("sklearn", reason="scikit-learn is not installed: nothing was compared")

import torch
from sklearn.metrics import dcg_score, ndcg_score
from torchmetrics import retrieval
from torchmetrics.functional import retrieval as functional
from unkind import BOTH, SEEDS, held, made

from rankgauge import evaluate

SINGLE = 2e-6
TM = {
    "P@1": (functional.retrieval_precision, 1),
    "P@5": (functional.retrieval_precision, 5),
    "P@20": (functional.retrieval_precision, 20),
    "SetP": (functional.retrieval_precision, None),
    "R@1": (functional.retrieval_recall, 1),
    "R@5": (functional.retrieval_recall, 5),
    "Success@1": (functional.retrieval_hit_rate, 1),
    "Success@5": (functional.retrieval_hit_rate, 5),
    "RR": (functional.retrieval_reciprocal_rank, None),
    "RR@3": (functional.retrieval_reciprocal_rank, 3),
    "AP": (functional.retrieval_average_precision, None),
    "AP@5": (functional.retrieval_average_precision, 5),
    "Rprec": (functional.retrieval_r_precision, None),
    "nDCG": (functional.retrieval_normalized_dcg, None),
    "nDCG@5": (functional.retrieval_normalized_dcg, 5),
}
# A stable sort, up to 16 documents, or no defined order.
OF_TIES = ("SetP", "R@1", "R@5", "Success@1", "Success@5", "Rprec", "nDCG", "nDCG@5")


def by_torchmetrics(inputs, name):
    function, k = TM[name]
    found = {}
    for query, scores in inputs.of_both().run.items():
        grades = [max(inputs.qrels[query].get(doc, 0), 0) for doc in scores]
        if not name.startswith("nDCG"):
            grades = [int(grade > 0) for grade in grades]
        given = torch.tensor(list(scores.values())), torch.tensor(grades)
        found[query] = float(function(*given, **({} if k is None else {"top_k": k})))
    return found


@pytest.mark.parametrize("name", TM)
def test_a_measure_is_that_of_torchmetrics(name):
    compared = 0
    for seed in SEEDS:
        inputs = made(seed, deepest=40, ties=False)
        wanted = by_torchmetrics(inputs, name)
        compared += held("torchmetrics", inputs, name, wanted, tolerance=SINGLE)
    assert compared == BOTH * len(SEEDS)


@pytest.mark.parametrize("name", OF_TIES)
def test_a_measure_is_that_of_torchmetrics_with_equal_scores(name):
    compared = 0
    for seed in SEEDS:
        inputs = made(seed, deepest=15)
        wanted = by_torchmetrics(inputs, name)
        compared += held("torchmetrics", inputs, name, wanted, tolerance=SINGLE)
    assert compared == BOTH * len(SEEDS)


def test_the_mean_is_that_of_a_metric_of_torchmetrics():
    inputs = made(4, ties=False).of_both()
    metric = retrieval.RetrievalMAP(top_k=5)
    for number, (query, scores) in enumerate(inputs.run.items()):
        target = torch.tensor([inputs.qrels[query].get(doc, 0) > 0 for doc in scores])
        indexes = torch.full((len(scores),), number)
        metric.update(torch.tensor(list(scores.values())), target, indexes=indexes)
    ev = evaluate(inputs.qrels, inputs.run, "AP@5", profile="torchmetrics")
    assert list(ev.mean().values()) == pytest.approx([float(metric.compute())], abs=SINGLE)


@pytest.mark.parametrize("k", [None, 1, 3, 10])
def test_gains_are_those_of_scikit_learn(k):
    compared = 0
    for seed in SEEDS:
        inputs = made(seed, shortest=2, grades=(0, 0, 1, 2, 3))
        found = {"DCG": {}, "nDCG": {}}
        for query, scores in inputs.of_both().run.items():
            truth = np.array([[inputs.qrels[query].get(doc, 0) for doc in scores]])
            given = truth, np.array([list(scores.values())])
            found["DCG"][query] = dcg_score(*given, k=k)
            found["nDCG"][query] = ndcg_score(*given, k=k)
        for name, wanted in found.items():
            asked = name if k is None else f"{name}@{k}"
            compared += held("sklearn", inputs, asked, wanted, tolerance=1e-11)
    assert compared == 2 * BOTH * len(SEEDS)


# ---- sentence-transformers

CUTS = [1, 3, 5, 10]
ST = {"accuracy@k": "Success", "precision@k": "P", "recall@k": "R", "ndcg@k": "nDCG", "mrr@k": "RR", "map@k": "AP"}


def evaluator(inputs, **more):
    """Return its evaluator over the queries of the run."""
    module = pytest.importorskip(
        "sentence_transformers.sentence_transformer.evaluation",
        reason="sentence-transformers 6 is not installed: nothing was compared with it",
    )
    relevant = {q: {d for d, g in docs.items() if g > 0} for q, docs in inputs.qrels.items()}
    corpus = sorted({doc for scores in inputs.run.values() for doc in scores})
    return module.InformationRetrievalEvaluator(
        {query: query for query in inputs.run},
        {doc: doc for doc in corpus},
        relevant,
        mrr_at_k=CUTS,
        ndcg_at_k=CUTS,
        accuracy_at_k=CUTS,
        precision_recall_at_k=CUTS,
        map_at_k=CUTS,
        write_csv=False,
        **more,
    )


def hits(scores):
    return [{"corpus_id": doc, "score": score} for doc, score in scores.items()]


def test_measures_are_those_of_sentence_transformers():
    compared = 0
    for seed in SEEDS:
        inputs = made(seed, deepest=40).of_both()
        found = {f"{ours}@{k}": {} for ours in ST.values() for k in CUTS}
        whole = evaluator(inputs)
        for query in whole.queries_ids:
            one = inputs._replace(qrels={query: inputs.qrels[query]}, run={query: inputs.run[query]})
            said = evaluator(one).compute_metrics([hits(inputs.run[query])])
            for theirs, ours in ST.items():
                for k in CUTS:
                    found[f"{ours}@{k}"][query] = float(said[theirs][k])
        for name, wanted in found.items():
            compared += held("sentence-transformers", inputs, name, wanted)
        means = whole.compute_metrics([hits(inputs.run[query]) for query in whole.queries_ids])
        for theirs, ours in ST.items():
            ev = evaluate(inputs.qrels, inputs.run, f"{ours}@5", profile="sentence-transformers")
            assert list(ev.mean().values()) == pytest.approx([means[theirs][5]], abs=1e-12)
    assert compared > 10 * len(SEEDS) * len(CUTS) * len(ST)


class QueryDetails:
    """A model whose embeddings encode the scores."""

    def __init__(self, places):
        self.places = places

    def encode_query(self, texts, **_):
        return torch.tensor([[self.places[text]] for text in texts])

    encode_document = encode_query


def test_a_search_of_sentence_transformers_is_evaluated_alike():
    """From embeddings to means, in chunks of the corpus, with equal or few distinct scores."""
    for seed in SEEDS:
        inputs = made(seed)
        queries = [query for query in inputs.qrels if max(inputs.qrels[query].values()) > 0]
        corpus = sorted({doc for docs in inputs.qrels.values() for doc in docs})
        rng = np.random.default_rng(seed)
        table = torch.tensor(rng.integers(0, 3, (len(queries), len(corpus))).astype(np.float32))
        run = {query: dict(zip(corpus, row, strict=True)) for query, row in zip(queries, table.tolist(), strict=True)}
        asked = inputs._replace(run=run)
        made_of = evaluator(
            asked, corpus_chunk_size=7, score_functions={"given": lambda q, d, t=table: t[q[:, 0]][:, d[:, 0]]}
        )
        places = {doc: n for n, doc in enumerate(corpus)}
        queried = {query: n for n, query in enumerate(queries)}
        said = made_of.compute_all_metrics(QueryDetails(queried), QueryDetails(places))["given"]
        for theirs, ours in ST.items():
            ev = evaluate(inputs.qrels, run, f"{ours}@5", profile="sentence-transformers")
            mean = next(iter(ev.mean().values()))
            assert math.isclose(mean, said[theirs][5], abs_tol=1e-12), (seed, ours)
