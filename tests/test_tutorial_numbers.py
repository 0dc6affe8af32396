"""Example outputs of tutorials and the values of their own formulas, to the printed digits."""

import pandas as pd
import pytest
from peers import ir_measure

from rankgauge import functional as fn
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.tutorials import RetrievalBenchmark, RetrievalEvaluator, RetrieverComparison

# One ranking each: the call, and the true value to the digits of the example.
ONE_RANKING = [
    # The tutorial prints 0.50.
    (fn.recall_at_k, ([3, 1, 7, 2, 5, 8, 4], {1, 2, 4, 6}, 3), {}, "0.25"),
    # The tutorial prints 0.76.
    (fn.ndcg, ([1, 3, 0, 2, 1], 5, [3, 2, 1, 1, 0]), {}, "0.797"),
    (fn.ndcg_at_k, (list("cadbe"), {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}, 5), {}, "0.797"),
    # The tutorial prints ~0.95 and ~0.63, with the ideal from the same list.
    (fn.ndcg, ([3, 2, 3, 0, 1],), {}, "0.972"),
    (fn.ndcg, ([0, 1, 0, 3, 2],), {}, "0.566"),
    (fn.precision_at_k, ([1, 2, 3, 4, 5], {1, 3, 6, 7}, 5), {}, "0.40"),
    (fn.recall_at_k, ([1, 2, 3, 4, 5], {1, 3, 6, 7}, 5), {}, "0.50"),
    (fn.f1_at_k, ([1, 2, 3, 4, 5], {1, 3, 6, 7}, 5), {}, "0.4444"),
    (fn.precision_at_k, ([1, 5, 3, 2, 4], {1, 3, 6}, 1), {}, "1.0000"),
    (fn.precision_at_k, ([1, 5, 3, 2, 4], {1, 3, 6}, 3), {}, "0.6667"),
    (fn.precision_at_k, ([1, 5, 3, 2, 4], {1, 3, 6}, 5), {}, "0.40"),
    (fn.recall_at_k, ([1, 5, 3, 2, 4], {1, 3, 6}, 1), {}, "0.3333"),
    (fn.recall_at_k, ([1, 5, 3, 2, 4], {1, 3, 6}, 3), {}, "0.6667"),
    (fn.recall_at_k, ([1, 5, 3, 2, 4], {1, 3, 6}, 5), {}, "0.6667"),
    (fn.precision_at_k, ([1, 3, 2, 7, 5], {1, 2, 4}, 1), {}, "1.0000"),
    (fn.precision_at_k, ([1, 3, 2, 7, 5], {1, 2, 4}, 3), {}, "0.6667"),
    (fn.precision_at_k, ([1, 3, 2, 7, 5], {1, 2, 4}, 5), {}, "0.40"),
    (fn.ndcg_at_k, (list("abcde"), {"a": 1, "b": 0, "c": 3, "d": 2, "e": 0, "f": 3}, 5), {}, "0.5316"),
    (fn.dcg, ([2, 0, 2, 1], 4), {}, "3.4307"),
    (fn.dcg, ([2, 2, 1, 0], 4), {}, "3.7619"),
    (fn.ndcg, ([2, 0, 2, 1],), {}, "0.9120"),
    (fn.dcg_at_k, (list("cadbe"), {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}, 5), {}, "4.14"),
    (fn.ndcg_at_k, (list("cadbe"), {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}, 5), {"gain": "exp"}, "0.7223"),
    (fn.expected_reciprocal_rank, (list("cadbe"), {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}), {"top": 3}, "0.5198"),
    # The two ideals that other code takes from the retrieved documents.
    (fn.ndcg_at_k, (list("vwxyz"), {"w": 1, "y": 3, "z": 2}, 3), {"ideal": "retrieved"}, "0.132"),
    (fn.ndcg_at_k, (list("vwxyz"), {"w": 1, "y": 3, "z": 2}, 3), {"ideal": "topk"}, "0.631"),
]

MISS, FIRST, SECOND, THIRD = ["x", "y", "z"], ["r", "x", "y"], ["x", "r", "y"], ["x", "y", "r"]
# Several queries, "r" being relevant in each: the function, the rankings, k, the true mean.
MEANS = [
    (fn.mean_reciprocal_rank, (SECOND, FIRST, MISS), None, "0.500"),
    (fn.mean_reciprocal_rank, (SECOND, FIRST, THIRD), None, "0.6111"),
    (fn.success_at_k, (FIRST, MISS, THIRD), 1, "0.3333"),
    (fn.success_at_k, (FIRST, MISS, THIRD), 3, "0.6667"),
    (fn.mean_hit_rate, (SECOND, MISS, FIRST, THIRD), 1, "0.25"),
    (fn.mean_hit_rate, (SECOND, MISS, FIRST, THIRD), 3, "0.75"),
    (fn.mean_hit_rate, (SECOND, MISS, FIRST, THIRD), 5, "0.75"),
]

THREE_QUERIES = [
    {
        "retrieved": ["d1", "d3", "d5", "d2", "d7", "d8", "d4", "d9", "d10", "d6"],
        "relevant": {"d1", "d2", "d4", "d6"},
        "relevance_scores": {"d1": 3, "d2": 2, "d4": 1, "d6": 2},
    },
    {
        "retrieved": ["d3", "d1", "d7", "d2", "d5", "d4", "d8", "d9", "d10", "d6"],
        "relevant": {"d1", "d2"},
        "relevance_scores": {"d1": 3, "d2": 2},
    },
    {
        "retrieved": ["d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10"],
        "relevant": {"d1", "d3", "d5"},
        "relevance_scores": {"d1": 3, "d3": 2, "d5": 1},
    },
]
COMPARED_RELEVANT = [["d1", "d2", "d4"], ["d1", "d3"], ["d1", "d2", "d3"]]
COMPARED_A = [["d1", "d3", "d2", "d5", "d4"], ["d2", "d1", "d4", "d3", "d5"], ["d3", "d5", "d1", "d2", "d4"]]
COMPARED_B = [["d3", "d5", "d1", "d2", "d4"], ["d4", "d3", "d1", "d5", "d2"], ["d5", "d4", "d3", "d2", "d1"]]
TOPIC_RELEVANT = [["ml_1", "ml_2"], ["py_1", "py_3"], ["rag_1"]]
TOPIC_A = [["ml_1", "other", "ml_2", "py_1", "rag_1"]] * 3
TOPIC_B = [["other", "ml_1", "rag_1", "py_1", "ml_2"]] * 3
TWO_RETRIEVED = [[1, 3, 5, 2, 7], [6, 8, 1, 9, 2]]
TWO_RELEVANT = [{1, 2, 4}, {1, 2}]


def shown(value, example):
    """Return the value with as many decimals as the example."""
    return f"{value:.{len(example.partition('.')[2])}f}"


def means(retrieved, relevant, measures):
    done = evaluate({"retrieved": retrieved, "relevant": relevant}, measures=list(measures))
    return dict(zip(measures, done.mean().values(), strict=True))


@pytest.mark.parametrize(("function", "given", "options", "true"), ONE_RANKING)
def test_a_function_gives_the_true_number_of_an_example(function, given, options, true):
    assert shown(function(*given, **options), true) == true


@pytest.mark.parametrize(("function", "rankings", "k", "true"), MEANS)
def test_a_mean_gives_the_true_number_of_an_example(function, rankings, k, true):
    pairs = [(ranking, {"r"}) for ranking in rankings]
    value = function(pairs) if k is None else function(pairs, k)
    assert shown(value, true) == true


def test_the_evaluator_gives_the_true_numbers_of_the_three_query_report():
    report = RetrievalEvaluator([1, 3, 5, 10]).evaluate_dataset(THREE_QUERIES)
    assert f"{report.mrr:.4f}" == "0.8333"
    true = {
        "R@1": "0.1944",
        "R@3": "0.4722",
        "R@5": "0.8333",
        "R@10": "1.0000",
        "P@1": "0.6667",
        "P@3": "0.4444",
        "P@5": "0.4667",
        "P@10": "0.3000",
        "NDCG@1": "0.6667",
        "NDCG@3": "0.6181",
        "NDCG@5": "0.7486",
        "NDCG@10": "0.8020",
        "Hit@1": "0.6667",
        "Hit@3": "1.0000",
        "Hit@5": "1.0000",
        "Hit@10": "1.0000",
    }
    assert true == {key: f"{report[key]:.4f}" for key in true}


@pytest.mark.parametrize(
    ("rankings", "true"),
    [
        (
            COMPARED_A,
            {
                "RR": "0.8333",
                "R@1": "0.2222",
                "P@1": "0.6667",
                "nDCG@1": "0.6667",
                "R@3": "0.6111",
                "P@3": "0.5556",
                "nDCG@3": "0.5982",
                "R@5": "1.0000",
                "P@5": "0.5333",
                "nDCG@5": "0.8141",
            },
        ),
        (
            COMPARED_B,
            {
                "RR": "0.3889",
                "R@1": "0.0000",
                "P@1": "0.0000",
                "nDCG@1": "0.0000",
                "R@3": "0.5556",
                "P@3": "0.4444",
                "nDCG@3": "0.3876",
                "R@5": "1.0000",
                "P@5": "0.5333",
                "nDCG@5": "0.6433",
            },
        ),
    ],
)
def test_the_comparison_of_two_retrievers_has_its_true_numbers(rankings, true):
    found = means(rankings, COMPARED_RELEVANT, true)
    assert true == {name: f"{value:.4f}" for name, value in found.items()}


def test_the_comparison_class_has_these_numbers_too():
    comparison = RetrieverComparison([1, 3, 5])
    results = [
        comparison.evaluate_retriever(
            name, [{"retrieved": r, "relevant": j} for r, j in zip(found, COMPARED_RELEVANT, strict=True)]
        )
        for name, found in {"A": COMPARED_A, "B": COMPARED_B}.items()
    ]
    rows = [line.strip("|").split("|") for line in comparison.compare(results).splitlines()[4:]]
    found = {row[0].strip(): "/".join(cell.strip() for cell in row[1:]) for row in rows}
    assert found == {
        "MRR": "0.8333/0.3889",
        "Recall@1": "0.2222/0.0000",
        "Precision@1": "0.6667/0.0000",
        "NDCG@1": "0.6667/0.0000",
        "Recall@3": "0.6111/0.5556",
        "Precision@3": "0.5556/0.4444",
        "NDCG@3": "0.5982/0.3876",
        "Recall@5": "1.0000/1.0000",
        "Precision@5": "0.5333/0.5333",
        "NDCG@5": "0.8141/0.6433",
        "Hit rate@1": "0.6667/0.0000",
        "Hit rate@3": "1.0000/1.0000",
        "Hit rate@5": "1.0000/1.0000",
    }


def test_three_of_five_relevant_twice_is_a_precision_of_point_six_and_full_recall():
    queries = [{"id": q, "retrieved": list("abcde"), "relevant": list("ace")} for q in ("1", "2")]
    batch = RetrievalEvaluator([5]).evaluate_batch(queries)
    assert (f"{batch['mean_p@5']:.3f}", f"{batch['mean_r@5']:.3f}") == ("0.600", "1.000")
    columns = [[query[part] for query in queries] for part in ("id", "retrieved", "relevant")]
    assert fn.evaluate_retrieval(*columns, k=5) == {"precision": 0.6, "recall": 1.0, "hit_rate": 1.0, "mrr": 1.0}


def test_two_queries_have_their_true_numbers():
    true = {
        "P@1": "0.5000",
        "P@3": "0.3333",
        "P@5": "0.4000",
        "R@1": "0.1667",
        "R@3": "0.4167",
        "R@5": "0.8333",
        "F1@1": "0.2500",
        "F1@3": "0.3667",
        "F1@5": "0.5357",
        "MAP": "0.4333",
        "MRR": "0.6667",
        "nDCG@3": "0.3879",
        "nDCG@5": "0.6076",
        # Implementations with the ideal from the retrieved documents (the first k, or all).
        "nDCG(ideal=topk)@3": "0.7500",
        "nDCG(ideal=topk)@5": "0.7105",
        "nDCG(ideal=retrieved)@5": "0.7105",
    }
    found = means(TWO_RETRIEVED, TWO_RELEVANT, true)
    assert true == {name: f"{value:.4f}" for name, value in found.items()}


@pytest.mark.parametrize(
    ("rankings", "rr", "ndcg", "inflated"),
    [(TOPIC_A, "0.4833", "0.524", "0.579"), (TOPIC_B, "0.3611", "0.463", "0.518")],
)
def test_two_retrievers_on_three_topics_have_their_true_numbers(rankings, rr, ndcg, inflated):
    names = ["RR", "P@5", "R@5", "Success@5", "nDCG@5", "nDCG(ideal=retrieved)@5"]
    found = means(rankings, TOPIC_RELEVANT, names)
    assert [f"{found[name]:.4f}" for name in names[:4]] == [rr, "0.2667", "0.8333", "1.0000"]
    assert [f"{found[name]:.3f}" for name in names[4:]] == [ndcg, inflated]


def test_the_benchmark_class_has_these_numbers_too():
    bench = RetrievalBenchmark()
    for number, docs in enumerate(TOPIC_RELEVANT):
        bench.add_query(f"q{number}", f"text {number}", docs)
    for rankings, mrr, ndcg in ((TOPIC_A, "0.4833", "0.524"), (TOPIC_B, "0.3611", "0.463")):
        result = bench.run_evaluation("A", lambda _, ranking=rankings[0]: ranking)
        found = [f"{result[key]:.4f}" for key in ("mrr", "p@5", "r@5", "hit_rate")]
        assert found == [mrr, "0.2667", "0.8333", "1.0000"]
        assert f"{result['ndcg']:.3f}" == ndcg


def test_tied_scores_are_ordered_by_document_id_for_every_measure():
    ir_measures = pytest.importorskip("ir_measures")
    run = {"q": {"D0": 1.0, "D1": 0.4, "D2": 1.0}}
    assert evaluate({"q": {"D2": 1}}, run, ["RR@1", "RR@2", "nDCG@1"]).mean() == {
        "RR@1": 1.0,
        "RR@2": 1.0,
        "nDCG@1": 1.0,
    }
    # The other tool breaks this tie in different ways for nDCG and RR@k in one call.
    names = ("RR@1", "RR@2", "nDCG@1")
    asked = [ir_measure(name) for name in names]
    theirs = ir_measures.calc_aggregate(asked, {"q": {"D2": 1}}, run)
    assert [theirs[measure] for measure in asked] == [0.0, 0.5, 1.0]


def test_data_frames_with_ties_have_their_true_ndcg():
    rows = [("Q0", "D0"), ("Q0", "D1"), ("Q0", "D2"), ("Q1", "D0"), ("Q1", "D1"), ("Q1", "D2")]
    ids = {"query_id": [q for q, _ in rows], "doc_id": [d for _, d in rows]}
    qrels = pd.DataFrame({**ids, "relevance": [0, 0, 1, 2, 1, 0]})
    run = pd.DataFrame({**ids, "score": [0.0, 1.0, 1.0, 2.0, 0.0, 0.0]})
    values = evaluate(qrels, run, "nDCG@5").per_query[:, 0]
    assert [f"{value:.5f}" for value in values] == ["1.00000", "0.95023"]
