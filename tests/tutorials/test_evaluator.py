"""The evaluator class: the interface of tutorials' classes, and the values of evaluate()."""

import copy
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from rankgauge.errors import InputError, RankgaugeError, UnknownName
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.tutorials.evaluator import MetricValues, QueryEvaluation, RetrievalEvaluator

QUERIES = [
    {"id": "q1", "retrieved": ["d1", "d2", "d3", "d4", "d5"], "relevant": {"d1", "d3", "d6"}},
    {"id": "q2", "retrieved": ["d7", "d8", "d9", "d10", "d11"], "relevant": {"d7", "d8"}},
    {"id": "q3", "retrieved": ["d2", "d4"], "relevant": ["d9"]},
]
DOCS = [f"d{number}" for number in range(8)]
records = st.fixed_dictionaries(
    {
        "retrieved": st.lists(st.sampled_from(DOCS), unique=True, max_size=8),
        "relevant": st.sets(st.sampled_from(DOCS), max_size=8),
        "relevance_scores": st.none()
        | st.dictionaries(st.sampled_from(DOCS), st.integers(0, 3), min_size=1, max_size=8),
    }
)


def test_one_query_has_the_attributes_of_tutorials():
    result = RetrievalEvaluator(k_values=[1, 3]).evaluate_single("q1", ["d3", "d1", "d2", "d5"], {"d1", "d2", "d4"})
    assert result.query_id == "q1"
    assert (result.precision, result.recall) == (2 / 4, 2 / 3)
    assert result.f1 == 2 * 2 / (4 + 3)
    assert result.reciprocal_rank == result.mrr == 1 / 2
    assert result.average_precision == result.map == pytest.approx((1 / 2 + 2 / 3) / 3)
    assert result.precision_at_k == {1: 0.0, 3: 2 / 3}
    assert result.recall_at_k == {1: 0.0, 3: 2 / 3}
    assert result.f1_at_k == {1: 0.0, 3: 2 / 3}
    assert result.hit_rate_at_k == {1: 0.0, 3: 1.0}
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert result.ndcg == pytest.approx((1 / math.log2(3) + 1 / math.log2(4)) / ideal)
    assert result.ndcg_at_k[3] == result.ndcg
    assert (result.retrieved_count, result.relevant_count, result.relevant_retrieved) == (4, 3, 2)
    assert result.first_relevant_position == 2
    assert result.count == 1


def test_one_query_with_grades_uses_them_for_ndcg_only():
    evaluator = RetrievalEvaluator([2])
    graded = evaluator.evaluate_single("q", ["a", "b"], {"a", "b"}, {"a": 1, "b": 3})
    assert graded.precision == graded.recall == 1.0
    assert graded.ndcg == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)))
    # Missing grades are not grades of 0.
    for none in (None, {}):
        assert evaluator.evaluate_single("q", ["a", "b"], {"a", "b"}, none).ndcg == 1.0


def test_ndcg_counts_what_was_not_retrieved():
    result = RetrievalEvaluator([5]).evaluate_single("q", ["a"], {"a", "b"})
    assert result.ndcg == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_one_query_can_be_passed_by_keyword_as_tutorials_do():
    evaluator = RetrievalEvaluator([1])
    one = evaluator.evaluate_single(query_id=7, retrieved_ids=(1, 2), relevant_ids=[2], relevance_scores={2: 3})
    other = evaluator.evaluate_single_query(retrieved_ids=(1, 2), relevant_ids=[2], relevance_scores={2: 3})
    assert one.query_id == 7
    assert type(other) is MetricValues
    assert {key: one[key] for key in other} == dict(other)


def test_a_result_reads_by_attribute_and_by_every_usual_key():
    result = RetrievalEvaluator([3]).evaluate_single("q", ["x", "a", "b"], {"a", "b"})
    for key in ("P@3", "precision@3", "Precision@3", "precision_at_3", "p@3"):
        assert result[key] == result.precision_at_k[3]
    for key in ("R@3", "recall@3", "Recall@3", "recall_at_3"):
        assert result[key] == result.recall_at_k[3]
    for key in ("NDCG@3", "nDCG@3", "ndcg@3", "ndcg_at_3"):
        assert result[key] == result.ndcg_at_k[3]
    for key in ("Hit@3", "hit@3", "hit_rate@3", "Success@3", "success_at_3"):
        assert result[key] == result.hit_rate_at_k[3]
    for key in ("F1@3", "f1@3", "f1_at_3"):
        assert result[key] == result.f1_at_k[3]
    for key in ("MRR", "mrr", "reciprocal_rank", "RR"):
        assert result[key] == 0.5
    assert result["MAP"] == result["map"] == result["average_precision"]
    assert result["precision"] == result.precision
    assert result["first_relevant_position"] == 2
    assert result.get("P@4") is None
    for key in ("P@4", "P", "MRR@3", "nonsense", ""):
        with pytest.raises(KeyError):
            result[key]


def test_a_result_is_a_mapping_that_lists_each_key_once():
    evaluator = RetrievalEvaluator([1, 3])
    single = evaluator.evaluate_single("q", ["a"], {"a"})
    many = evaluator.evaluate_dataset(QUERIES)
    for result in (single, many):
        assert len(result) == len(list(result)) == len(set(result)) == len(dict(result))
        assert [result[key] for key in result] == list(dict(result).values())
    assert list(many) == [
        "P@1",
        "R@1",
        "F1@1",
        "NDCG@1",
        "Hit@1",
        "P@3",
        "R@3",
        "F1@3",
        "NDCG@3",
        "Hit@3",
        "MAP",
        "MRR",
    ]


def test_results_compare_and_pickle():
    evaluator = RetrievalEvaluator([1])
    for made in (lambda: evaluator.evaluate_single("q", ["a"], {"a"}), lambda: evaluator.evaluate_dataset(QUERIES)):
        result = made()
        assert result == made() == pickle.loads(pickle.dumps(result)) == copy.deepcopy(result)
        with pytest.raises(AttributeError):
            result.mrr = 1.0
    assert isinstance(evaluator.evaluate_single("q", ["a"], {"a"}), QueryEvaluation)


def test_a_batch_has_the_keys_of_tutorials_and_the_means_of_the_single_results():
    evaluator = RetrievalEvaluator(k_values=[1, 3, 5])
    batch = evaluator.evaluate_batch(QUERIES)
    assert list(batch) == [
        "count",
        "mean_precision",
        "mean_recall",
        "mean_f1",
        "mrr",
        "mean_ndcg",
        "mean_p@1",
        "mean_r@1",
        "mean_p@3",
        "mean_r@3",
        "mean_p@5",
        "mean_r@5",
        "success@1",
        "hit_rate",
    ]
    single = [evaluator.evaluate_single(q["id"], q["retrieved"], q["relevant"]) for q in QUERIES]
    assert batch["count"] == 3
    assert type(batch["count"]) is int
    for key, attribute in {
        "mean_precision": "precision",
        "mean_recall": "recall",
        "mean_f1": "f1",
        "mrr": "reciprocal_rank",
        "mean_ndcg": "ndcg",
    }.items():
        assert batch[key] == math.fsum(getattr(s, attribute) for s in single) / 3
    for k in (1, 3, 5):
        assert batch[f"mean_p@{k}"] == math.fsum(s.precision_at_k[k] for s in single) / 3
        assert batch[f"mean_r@{k}"] == math.fsum(s.recall_at_k[k] for s in single) / 3
    assert batch["success@1"] == sum(s.first_relevant_position == 1 for s in single) / 3
    assert batch["hit_rate"] == sum(s.first_relevant_position is not None for s in single) / 3


def test_mean_precision_is_over_everything_retrieved_not_over_the_largest_k():
    batch = RetrievalEvaluator([10]).evaluate_batch([{"retrieved": ["a"], "relevant": ["a"]}])
    assert (batch["mean_precision"], batch["mean_p@10"]) == (1.0, 0.1)


def test_evaluate_names_measures_as_papers_do():
    found = RetrievalEvaluator([1, 3]).evaluate(QUERIES)
    assert type(found) is dict
    means = evaluate(
        QUERIES,
        measures=["P@1", "R@1", "F1@1", "nDCG@1", "Success@1", "P@3", "R@3", "F1@3", "nDCG@3", "Success@3", "AP", "RR"],
    ).mean()
    assert list(found.values()) == list(means.values())


def test_evaluate_takes_rankings_and_judgments_by_query_id():
    evaluator = RetrievalEvaluator(k_values=[1, 3, 5])
    rankings = {"q1": [101, 102, 105, 108, 110], "q2": [201, 202, 203, 204, 205], "q9": [1]}
    relevant = {"q1": [102, 109], "q2": [201]}
    grades = {"q1": {102: 2.0, 109: 1.0, 101: 0.0}, "q2": {201: 2.0, 202: 0.0}}
    found = evaluator.evaluate(rankings, relevant, grades)
    qrels = {"q1": {102: 2, 109: 1, 101: 0}, "q2": {201: 2, 202: 0}}
    assert found["NDCG@5"] == evaluate(qrels, rankings, "nDCG@5").mean()["nDCG@5"]
    assert found["MRR"] == 0.75
    # A judged query without a ranking counts 0, as in evaluate().
    assert evaluator.evaluate({"q1": [102]}, relevant)["P@1"] == 0.5
    assert evaluator.evaluate(rankings, relevance_scores=grades)["MRR"] == 0.75


@given(st.lists(records, min_size=1, max_size=4))
def test_every_method_gives_what_evaluate_gives(data):
    evaluator = RetrievalEvaluator([1, 2, 5])
    names = ["P@2", "R@2", "F1@2", "nDCG@2", "Success@2", "AP", "RR", "SetP", "SetR", "SetF", "nDCG"]
    means = dict(zip(names, evaluate(data, measures=names).mean().values(), strict=True))
    dataset, batch = evaluator.evaluate_dataset(data), evaluator.evaluate_batch(data)
    assert dict(dataset) == evaluator.evaluate(data)
    for key, name in {
        "P@2": "P@2",
        "R@2": "R@2",
        "F1@2": "F1@2",
        "NDCG@2": "nDCG@2",
        "Hit@2": "Success@2",
        "MAP": "AP",
        "MRR": "RR",
    }.items():
        assert dataset[key] == means[name]
    for key, name in {
        "mean_precision": "SetP",
        "mean_recall": "SetR",
        "mean_f1": "SetF",
        "mean_ndcg": "nDCG",
        "mrr": "RR",
        "mean_p@2": "P@2",
        "mean_r@2": "R@2",
    }.items():
        assert batch[key] == means[name]
    one = data[0]
    single = evaluator.evaluate_single("q", one["retrieved"], one["relevant"], one["relevance_scores"])
    values = evaluate([one], measures=names).per_query[0]
    expected = dict(zip(names, np.nan_to_num(values, nan=0.0).tolist(), strict=True))
    assert (single.precision, single.recall, single.f1) == tuple(expected[name] for name in ("SetP", "SetR", "SetF"))
    assert (single.ndcg, single.ndcg_at_k[2]) == (expected["nDCG"], expected["nDCG@2"])
    found = [doc for doc in one["retrieved"] if doc in one["relevant"]]
    assert single.relevant_retrieved == len(found)
    assert single.first_relevant_position == (one["retrieved"].index(found[0]) + 1 if found else None)


def test_records_may_be_objects_and_tuples():
    evaluator = RetrievalEvaluator([1])
    as_dict = [{"retrieved": ["a", "b"], "relevant": ["b"]}]
    as_object = [SimpleNamespace(retrieved_ids=["a", "b"], relevant_ids=["b"])]
    as_tuple = [(["a", "b"], ["b"])]
    expected = evaluator.evaluate_batch(as_dict)
    assert evaluator.evaluate_batch(as_object) == evaluator.evaluate_batch(as_tuple) == expected


def test_nothing_retrieved_and_nothing_relevant_are_zero():
    evaluator = RetrievalEvaluator([1])
    for retrieved, relevant in (([], {"a"}), (["a"], set()), ([], set())):
        result = evaluator.evaluate_single("q", retrieved, relevant)
        assert result.first_relevant_position is None
        assert {
            v
            for key, v in result.items()
            if key not in {"query_id", "retrieved_count", "relevant_count", "first_relevant_position"}
        } == {0.0}


def test_the_report_has_k_down_and_measures_across(capsys):
    evaluator = RetrievalEvaluator([10, 1, 9])
    metrics = evaluator.evaluate_dataset(QUERIES)
    assert evaluator.print_report(metrics) is None
    printed = capsys.readouterr().out
    assert printed == (
        "Retrieval evaluation, 3 queries\n"
        "\n"
        "  k  Precision     Recall         F1       NDCG   Hit rate\n"
        "  1     0.6667     0.2778     0.3889     0.6667     0.6667\n"
        "  9     0.1481     0.5556     0.2323     0.5680     0.6667\n"
        " 10     0.1333     0.5556     0.2137     0.5680     0.6667\n"
        "\n"
        "MAP  0.5185\n"
        "MRR  0.6667\n"
    )
    # Results of any method, and records themselves, give the same report.
    for other in (QUERIES, evaluator.evaluate(QUERIES)):
        evaluator.print_report(other)
        assert capsys.readouterr().out.splitlines()[1:] == printed.splitlines()[1:]


def test_the_report_of_a_batch_shows_what_it_has(capsys):
    evaluator = RetrievalEvaluator([1, 3])
    evaluator.print_report(evaluator.evaluate_batch(QUERIES))
    assert capsys.readouterr().out == (
        "Retrieval evaluation, 3 queries\n"
        "\n"
        "  k  Precision     Recall   Hit rate\n"
        "  1     0.6667     0.2778     0.6667\n"
        "  3     0.4444     0.5556          –\n"
        "\n"
        "mean_precision  0.2667\n"
        "mean_recall     0.5556\n"
        "mean_f1         0.3571\n"
        "MRR             0.6667\n"
        "mean_ndcg       0.5680\n"
        "hit_rate        0.6667\n"
    )


def test_the_written_report_has_its_sections_and_k_in_order_of_number():
    evaluator = RetrievalEvaluator([10, 9, 100, 1])
    for given_as in (QUERIES, evaluator.evaluate(QUERIES), evaluator.evaluate_dataset(QUERIES)):
        report = evaluator.generate_report(given_as)
        heads = [line for line in report.splitlines() if line.startswith("## ")]
        assert heads == ["## Precision", "## Recall", "## NDCG", "## Overall"]
        section = report.partition("## Recall")[2].partition("## NDCG")[0]
        rows = [row.split("|")[1].strip() for row in section.splitlines() if row.startswith("|")]
        assert rows[2:] == ["1", "9", "10", "100"]
        overall = report.partition("## Overall")[2]
        assert "| MAP     | 0.5185 |" in overall
        assert "| MRR     | 0.6667 |" in overall


def test_cutoffs_are_kept_once_in_the_order_given():
    assert RetrievalEvaluator().k_values == (1, 3, 5, 10, 20)
    assert RetrievalEvaluator(None).k_values == (1, 3, 5, 10, 20)
    assert RetrievalEvaluator([5, 1, 5]).k_values == (5, 1)
    assert RetrievalEvaluator(k for k in (1, 2)).k_values == (1, 2)
    assert RetrievalEvaluator(np.array([1, 2])).k_values == (1, 2)
    assert all(type(k) is int for k in RetrievalEvaluator(np.array([1, 2])).k_values)


@pytest.mark.parametrize("empty", [[], (), {}, iter(()), pd.DataFrame({"retrieved": []})])
def test_a_batch_without_queries_is_empty(empty):
    assert RetrievalEvaluator().evaluate_batch(empty) == {}


def test_a_batch_may_be_an_iterator():
    assert RetrievalEvaluator().evaluate_batch(iter(QUERIES))["count"] == len(QUERIES)


BAD = {
    "k = 0": (lambda: RetrievalEvaluator([1, 0]), "k_values: k=0 is not valid\nfix: a cut-off is a whole number >= 1"),
    "no cut-off": (lambda: RetrievalEvaluator([]), "k_values: there is no cut-off\nfix: write k_values=[1, 3, 5, 10]"),
    "a number": (lambda: RetrievalEvaluator(5), "k_values: got 5 for the cut-offs\nfix: write k_values=[1, 3, 5, 10]"),
    "no query": (
        lambda: RetrievalEvaluator().evaluate([]),
        (
            'records: there are no records\nfix: pass at least one: {"id": "q1", '
            '"retrieved": ["d2", "d1"], "relevant": ["d1"]}'
        ),
    ),
    "a set": (
        lambda: RetrievalEvaluator().evaluate_single("q", {"a", "b"}, {"a"}),
        (
            "record 1: 'retrieved' is a set, which has no order, so it is not a ranking\n"
            "fix: pass 'retrieved' as a list, best first"
        ),
    ),
    "other queries": (
        lambda: RetrievalEvaluator().evaluate({"q1": ["a"]}, {"q2": ["a"]}),
        "no query of the rankings is judged\nfix: use the same query ids in both mappings",
    ),
    "half by id": (
        lambda: RetrievalEvaluator().evaluate([["a"]], {"q2": ["a"]}),
        (
            "results: got list, expected a mapping by query id\n"
            "fix: pass results as {query id: ...}, or records as the only argument"
        ),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_input_is_an_error_with_place_and_fix(name):
    call, message = BAD[name]
    with pytest.raises(RankgaugeError) as caught:
        call()
    assert str(caught.value) == message


def test_a_document_twice_is_an_error_that_names_it():
    with pytest.raises(InputError, match="document 'a' occurs twice for query 'q'"):
        RetrievalEvaluator().evaluate_single("q", ["a", "b", "a"], {"a"})


@pytest.mark.parametrize("k", [1.5, "x", True, math.nan])
def test_a_cutoff_is_a_whole_number(k):
    with pytest.raises(UnknownName, match="k_values: k="):
        RetrievalEvaluator([k])


def test_no_grade_means_the_same_in_every_function():
    evaluator = RetrievalEvaluator([1])
    record = {"id": "q", "retrieved": ["a"], "relevant": ["a"], "relevance_scores": {}}
    assert evaluator.evaluate_single("q", ["a"], ["a"], {}).ndcg == 1.0
    assert evaluator.evaluate_single_query(["a"], ["a"], {})["NDCG@1"] == 1.0
    assert evaluator.evaluate_dataset([record])["NDCG@1"] == 1.0
    assert evaluator.evaluate_batch([record])["mean_ndcg"] == 1.0
    assert evaluator.evaluate({"q": ["a"]}, {"q": ["a"]}, {"q": {}})["NDCG@1"] == 1.0


def test_grades_may_be_a_series():
    pd = pytest.importorskip("pandas")
    evaluator, grades = RetrievalEvaluator([1]), pd.Series({"a": 1, "b": 3})
    asked = (["a", "b"], {"a", "b"})
    assert evaluator.evaluate_single("q", *asked, grades) == evaluator.evaluate_single("q", *asked, grades.to_dict())
    joined = evaluator.evaluate({"q": asked[0]}, {"q": asked[1]}, {"q": grades})
    assert joined == dict(evaluator.evaluate_single_query(*asked, grades))
