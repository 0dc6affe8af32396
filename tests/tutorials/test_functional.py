"""The plain functions: compared with slow loops and evaluate(), and edge cases."""

import functools
import math
import subprocess
import sys

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, strategies as st
from peers import ir_measure

from rankgauge import functional as fn
from rankgauge.errors import InputError, RankgaugeError, UnknownName
from rankgauge.evaluation.evaluation import evaluate

# ---------------------------------------------------------------- slow loops, from the definitions


def slow_precision(retrieved, relevant, k):
    hits = 0
    for doc in retrieved[:k]:
        if doc in relevant:
            hits += 1
    return hits / k


def slow_recall(retrieved, relevant, k):
    if not relevant:
        return 0.0
    return len([doc for doc in retrieved[:k] if doc in relevant]) / len(relevant)


def slow_f1(retrieved, relevant, k):
    p, r = slow_precision(retrieved, relevant, k), slow_recall(retrieved, relevant, k)
    return 2 * p * r / (p + r) if p + r else 0.0


def slow_hit(retrieved, relevant, k):
    for doc in retrieved[:k]:
        if doc in relevant:
            return 1.0
    return 0.0


def slow_reciprocal_rank(retrieved, relevant, k=None):
    for rank, doc in enumerate(retrieved[:k], start=1):
        if doc in relevant:
            return 1 / rank
    return 0.0


def slow_average_precision(retrieved, relevant, k=None):
    if not relevant:
        return 0.0
    total = 0.0
    for rank in range(1, len(retrieved[:k]) + 1):
        if retrieved[rank - 1] in relevant:
            total += slow_precision(retrieved, relevant, rank)
    return total / len(relevant)


def slow_gain(grade, gain):
    grade = max(grade, 0)
    return 2**grade - 1 if gain == "exp" else grade


def slow_dcg(grades, k=None, gain="linear"):
    total = 0.0
    for rank, grade in enumerate(grades[:k], start=1):
        total += slow_gain(grade, gain) / (math.log(rank + 1) / math.log(2))
    return total


def slow_ndcg(retrieved, grades, k=None, gain="linear", ideal="judged"):
    found = [grades.get(doc, 0) for doc in retrieved]
    pool = {"judged": list(grades.values()), "retrieved": found, "topk": found[:k]}[ideal]
    best = slow_dcg(sorted(pool, reverse=True), k, gain)
    return slow_dcg(found, k, gain) / best if best else 0.0


def slow_err(retrieved, grades, k=None, top=4):
    value, goes_on = 0.0, 1.0
    for rank, doc in enumerate(retrieved[:k], start=1):
        stops = (2 ** max(grades.get(doc, 0), 0) - 1) / 2**top
        value += goes_on * stops / rank
        goes_on *= 1 - stops
    return value


# ---------------------------------------------------------------- any ranking, any judgments

DOCS = [f"d{number}" for number in range(12)]
rankings = st.lists(st.sampled_from(DOCS), unique=True, max_size=12)
whole_grades = st.dictionaries(st.sampled_from(DOCS), st.integers(-1, 4), max_size=12)
any_grades = st.dictionaries(st.sampled_from(DOCS), st.integers(-1, 4) | st.sampled_from([0.5, 1.5, 2.25]), max_size=12)
cutoffs = st.integers(1, 15)
maybe_cutoffs = st.none() | cutoffs


@given(rankings, st.sets(st.sampled_from(DOCS)), cutoffs)
def test_binary_functions_agree_with_slow_loops(retrieved, relevant, k):
    assert fn.precision_at_k(retrieved, relevant, k) == slow_precision(retrieved, relevant, k)
    assert fn.recall_at_k(retrieved, relevant, k) == slow_recall(retrieved, relevant, k)
    assert fn.f1_at_k(retrieved, relevant, k) == pytest.approx(slow_f1(retrieved, relevant, k))
    assert fn.hit_rate_at_k(retrieved, relevant, k) == slow_hit(retrieved, relevant, k)
    assert fn.success_at_k(retrieved, relevant, k) == slow_hit(retrieved, relevant, k)


@given(rankings, st.sets(st.sampled_from(DOCS)), maybe_cutoffs)
def test_functions_that_need_no_cutoff_agree_with_slow_loops(retrieved, relevant, k):
    expected = slow_reciprocal_rank(retrieved, relevant, k)
    assert fn.reciprocal_rank(retrieved, relevant, k) == expected
    assert fn.average_precision(retrieved, relevant, k) == pytest.approx(
        slow_average_precision(retrieved, relevant, k), abs=1e-12
    )


@given(
    rankings, any_grades, maybe_cutoffs, st.sampled_from(["linear", "exp"]), st.sampled_from(["judged", "retrieved"])
)
def test_graded_functions_agree_with_slow_loops(retrieved, grades, k, gain, ideal):
    ranked = [grades.get(doc, 0) for doc in retrieved]
    assert fn.dcg_at_k(retrieved, grades, k, gain=gain) == pytest.approx(slow_dcg(ranked, k, gain), abs=1e-12)
    assert fn.ndcg_at_k(retrieved, grades, k, gain=gain, ideal=ideal) == pytest.approx(
        slow_ndcg(retrieved, grades, k, gain, ideal), abs=1e-12
    )
    assert fn.dcg(ranked, k, gain=gain) == pytest.approx(slow_dcg(ranked, k, gain), abs=1e-12)
    assert fn.ndcg(ranked, k, list(grades.values()), gain=gain) == pytest.approx(
        slow_ndcg(retrieved, grades, k, gain), abs=1e-12
    )
    assert fn.ndcg(ranked, k, gain=gain) == pytest.approx(slow_ndcg(retrieved, grades, k, gain, "retrieved"), abs=1e-12)


@given(rankings, whole_grades, cutoffs)
def test_ndcg_with_the_ideal_of_the_first_k_agrees_with_a_slow_loop(retrieved, grades, k):
    assert fn.ndcg_at_k(retrieved, grades, k, ideal="topk") == pytest.approx(
        slow_ndcg(retrieved, grades, k, ideal="topk"), abs=1e-12
    )


@given(rankings, whole_grades, maybe_cutoffs, st.integers(4, 6))
def test_expected_reciprocal_rank_agrees_with_a_slow_loop(retrieved, grades, k, top):
    assert fn.expected_reciprocal_rank(retrieved, grades, k, top=top) == pytest.approx(
        slow_err(retrieved, grades, k, top), abs=1e-12
    )


@given(rankings, any_grades, cutoffs, st.sampled_from([1, 2, 0.5]))
def test_every_function_gives_bit_for_bit_what_evaluate_gives(retrieved, grades, k, rel):
    calls = {
        f"P(rel={rel})@{k}": fn.precision_at_k(retrieved, grades, k, rel=rel),
        f"R(rel={rel})@{k}": fn.recall_at_k(retrieved, grades, k, rel=rel),
        f"F(rel={rel})@{k}": fn.f1_at_k(retrieved, grades, k, rel=rel),
        f"F(rel={rel},beta=2)@{k}": fn.f1_at_k(retrieved, grades, k, beta=2, rel=rel),
        f"Success(rel={rel})@{k}": fn.hit_rate_at_k(retrieved, grades, k, rel=rel),
        f"RR(rel={rel})": fn.reciprocal_rank(retrieved, grades, rel=rel),
        f"RR(rel={rel})@{k}": fn.reciprocal_rank(retrieved, grades, k, rel=rel),
        f"AP(rel={rel})@{k}": fn.average_precision(retrieved, grades, k, rel=rel),
        f"AP(norm=k)@{k}": fn.average_precision(retrieved, grades, k, norm="k"),
        "AP(norm=retrieved)": fn.average_precision(retrieved, grades, norm="retrieved"),
        "DCG": fn.dcg_at_k(retrieved, grades),
        f"DCG(gain=exp)@{k}": fn.dcg_at_k(retrieved, grades, k, gain="exp"),
        f"nDCG@{k}": fn.ndcg_at_k(retrieved, grades, k),
        f"nDCG(ideal=topk)@{k}": fn.ndcg_at_k(retrieved, grades, k, ideal="topk"),
        f"nDCG(gain={{0:1,1:3}})@{k}": fn.ndcg_at_k(retrieved, grades, k, gain={0: 1, 1: 3}),
        f"ERR(top=5)@{k}": fn.expected_reciprocal_rank(retrieved, grades, k, top=5),
    }
    values = evaluate({"q": grades}, {"q": retrieved}, list(calls)).per_query[0]
    assert dict(zip(calls, np.nan_to_num(values, nan=0.0).tolist(), strict=True)) == calls


@given(st.lists(st.tuples(rankings, st.sets(st.sampled_from(DOCS))), min_size=1, max_size=5), cutoffs)
def test_means_are_those_of_the_single_values_however_the_queries_are_given(pairs, k):
    retrieved, relevant = [r for r, _ in pairs], [j for _, j in pairs]
    rr = math.fsum(slow_reciprocal_rank(r, j) for r, j in pairs) / len(pairs)
    hits = math.fsum(slow_hit(r, j, k) for r, j in pairs) / len(pairs)
    records = [{"retrieved": r, "relevant": j} for r, j in pairs]
    by_id = [dict(enumerate(column)) for column in (retrieved, relevant)]
    for given_as in ((retrieved, relevant), (pairs,), (records,), tuple(by_id)):
        assert fn.mean_reciprocal_rank(*given_as) == rr
        assert fn.mean_hit_rate(*given_as, k) == hits
    assert fn.success_at_k(pairs, k) == hits


def test_a_query_that_is_missing_from_the_rankings_counts_zero():
    assert fn.mean_reciprocal_rank({"q1": ["d1"]}, {"q1": {"d1"}, "q2": {"d1"}}) == 0.5
    assert fn.mean_hit_rate({"q1": ["d1"]}, {"q1": {"d1"}, "q2": {"d1"}}, 3) == 0.5


@pytest.mark.parametrize("ids", [("a", "b", "c"), (1, 2, 3), (b"a", b"b", b"\xff"), ("ä", "雪", " x y")])
def test_ids_are_text_whole_numbers_or_bytes(ids):
    first, second, third = ids
    assert fn.reciprocal_rank([first, second], {second, third}) == 0.5


def test_a_ranking_is_a_list_a_tuple_an_array_or_an_iterator():
    docs = [3, 1, 2]
    for ranking in (docs, tuple(docs), np.array(docs), iter(docs), np.array(docs, dtype=np.int32)):
        assert fn.reciprocal_rank(ranking, {1}) == 0.5
    assert fn.reciprocal_rank(np.array(["d3", "d1"]), np.array(["d1"])) == 0.5


def test_relevant_documents_are_a_set_a_list_or_grades():
    for relevant in ({"d1"}, ["d1"], ("d1",), frozenset({"d1"}), {"d1": 1}, {"d1": 3, "d2": 0}):
        assert fn.precision_at_k(["d1", "d2"], relevant, 2) == 0.5


def test_a_grade_below_the_relevance_level_is_not_relevant():
    assert fn.precision_at_k(["d1"], {"d1": 0.5}, 1) == 0.0
    assert fn.precision_at_k(["d1"], {"d1": 0.5}, 1, rel=0.5) == 1.0
    assert fn.precision_at_k(["d1"], {"d1": -1}, 1) == 0.0


# ---------------------------------------------------------------- names in tutorials


@given(rankings, st.sets(st.sampled_from(DOCS)), maybe_cutoffs)
def test_one_query_has_a_hit_and_a_reciprocal_rank(retrieved, relevant, k):
    assert fn.hit_rate(retrieved, relevant, k) == slow_hit(retrieved, relevant, k)
    assert fn.mrr(retrieved, relevant, k) == slow_reciprocal_rank(retrieved, relevant, k)
    found = fn.calculate_precision_recall(retrieved, relevant)
    hits = len({*retrieved} & relevant)
    assert found.precision == (hits / len(retrieved) if retrieved else 0.0)
    assert found.recall == slow_recall(retrieved, relevant, None)
    assert found.f1 == pytest.approx(2 * hits / max(len(retrieved) + len(relevant), 1))
    counts = (found.retrieved_count, found.relevant_count, found.relevant_retrieved)
    assert counts == (len(retrieved), len(relevant), hits)


@pytest.mark.parametrize(
    "given_as",
    [
        ([["d2", "d1"], ["d3"]], [{"d1"}, {"d1"}]),
        ({"q1": ["d2", "d1"], "q2": ["d3"]}, {"q1": {"d1"}, "q2": {"d1"}}),
        ([(["d2", "d1"], {"d1"}), (["d3"], {"d1"})],),
        (np.array([["d2", "d1"], ["d3", "d4"]]), [["d1"], ["d1"]]),
    ],
)
def test_several_queries_have_means(given_as):
    assert fn.mrr(*given_as) == 0.25
    assert fn.hit_rate(*given_as) == 0.5
    assert fn.hit_rate(*given_as, k=1) == 0.0


def test_an_empty_ranking_and_an_iterator_are_one_query():
    assert fn.hit_rate([], {"d1"}) == fn.mrr([], {"d1"}) == 0.0
    assert fn.mrr(iter(["d2", "d1"]), {"d1"}) == 0.5


@pytest.mark.parametrize(
    "name",
    [
        "precision_at_k",
        "recall_at_k",
        "f1_at_k",
        "hit_rate_at_k",
        "success_at_k",
        "reciprocal_rank",
        "average_precision",
        "dcg_at_k",
        "ndcg_at_k",
        "calculate_ndcg_at_k",
        "expected_reciprocal_rank",
        "hit_rate",
        "mrr",
    ],
)
def test_functions_take_the_keywords_of_tutorials(name):
    function = getattr(fn, name)
    ranking, grades = ["d2", "d1"], {"d1": 1}
    value = function(ranking, grades, 2)
    assert function(retrieved_ids=ranking, relevant_ids=grades, k=2) == value > 0
    assert function(ranking, relevance_scores=grades, k=2) == value
    with pytest.raises(TypeError, match="by two names"):
        function(ranking, relevant_ids=grades, relevance_scores=grades, k=2)
    with pytest.raises(TypeError, match="multiple values"):
        function(ranking, grades, relevant_ids=grades, k=2)


def test_other_functions_take_the_keywords_of_tutorials():
    found = fn.calculate_precision_recall(retrieved_ids=["d1"], relevant_ids=["d1", "d2"])
    assert (found["precision"], found["recall"]) == (1.0, 0.5)
    err = functools.partial(fn.expected_reciprocal_rank, ["d1"], {"d1": 3})
    assert err(max_grade=3) == err(top=3) == 7 / 8


@given(st.lists(st.tuples(rankings, st.sets(st.sampled_from(DOCS))), min_size=1, max_size=5), cutoffs)
def test_evaluate_retrieval_has_the_means_of_slow_loops(pairs, k):
    queries = [f"text {number}" for number in range(len(pairs))]
    found = fn.evaluate_retrieval(queries, [r for r, _ in pairs], [j for _, j in pairs], k=k)
    for key, loop in {
        "precision": slow_precision,
        "recall": slow_recall,
        "hit_rate": slow_hit,
        "mrr": lambda retrieved, relevant, _: slow_reciprocal_rank(retrieved, relevant),
    }.items():
        assert found[key] == pytest.approx(sum(loop(r, j, k) for r, j in pairs) / len(pairs))


def test_evaluate_retrieval_needs_as_many_of_each():
    with pytest.raises(InputError, match="got 2 queries, 1 rankings, and 1 sets of relevant"):
        fn.evaluate_retrieval(["a", "b"], [["d1"]], [{"d1"}])
    with pytest.raises(InputError, match="no record"):
        fn.evaluate_retrieval([], [], [])


# ---------------------------------------------------------------- edge cases

RELEVANT, TWO = {"d1"}, ["d2", "d1"]
AT_FIVE = [fn.precision_at_k, fn.recall_at_k, fn.f1_at_k, fn.hit_rate_at_k, fn.success_at_k]
PER_QUERY = [
    *(functools.partial(function, k=5) for function in AT_FIVE),
    fn.reciprocal_rank,
    fn.average_precision,
    fn.dcg_at_k,
    fn.ndcg_at_k,
    fn.expected_reciprocal_rank,
]
PEERS = {
    "P_5": "P@5",
    "recall_5": "R@5",
    "recip_rank": "RR",
    "map": "AP",
    "ndcg_cut_5": "nDCG@5",
    "success_5": "Success@5",
}


def peers(qrels, run):
    """Return the values of pytrec_eval for the query q, and of ir_measures, by our names."""
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(PEERS)).evaluate(run).get("q", {})
    asked = [ir_measure(name) for name in PEERS.values()]
    other = ir_measures.calc_aggregate(asked, qrels, run)
    return (
        {PEERS[name]: value for name, value in theirs.items()},
        {str(measure): value for measure, value in other.items()},
    )


@pytest.mark.parametrize("function", PER_QUERY, ids=range(len(PER_QUERY)))
def test_nothing_relevant_is_zero_here_and_undefined_in_evaluate(function):
    assert function(TWO, set()) == 0.0
    assert function(TWO, {"d1": 0}) == 0.0


def test_nothing_relevant_is_zero_for_the_peers_or_the_query_is_gone():
    zeros = dict.fromkeys(PEERS.values(), 0.0)
    run = {"q": {"d1": 1.0}}
    assert peers({"q": {"d1": 0}}, run) == (zeros, zeros)
    # Judgments with the query and no document: one library drops it, the other counts 0.
    assert peers({"q": {}}, run) == ({}, zeros)
    ours = evaluate({"q": {"d1": 0}}, run, list(PEERS.values()))
    undefined = {"R@5", "RR", "AP", "nDCG@5"}
    assert {str(m) for m, no in zip(ours.measures, ours.undefined[0], strict=True) if no} == undefined
    assert ours.mean() == zeros


@pytest.mark.parametrize("function", PER_QUERY, ids=range(len(PER_QUERY)))
def test_nothing_retrieved_is_zero(function):
    assert function([], RELEVANT) == 0.0


def test_nothing_retrieved_is_zero_for_the_peers_too():
    zeros = dict.fromkeys(PEERS.values(), 0.0)
    assert peers({"q": {"d1": 1}}, {"q": {}}) == (zeros, zeros)


def test_a_cutoff_beyond_the_ranking_counts_the_missing_ranks_as_not_relevant():
    run, qrels = {"q": {"d1": 1.0}}, {"q": {"d1": 1, "d2": 1}}
    ours = {
        "P@5": fn.precision_at_k(["d1"], ["d1", "d2"], 5),
        "R@5": fn.recall_at_k(["d1"], ["d1", "d2"], 5),
        "RR": fn.reciprocal_rank(["d1"], ["d1", "d2"]),
        "AP": fn.average_precision(["d1"], ["d1", "d2"]),
        "nDCG@5": fn.ndcg_at_k(["d1"], ["d1", "d2"], 5),
        "Success@5": fn.hit_rate_at_k(["d1"], ["d1", "d2"], 5),
    }
    assert (ours["P@5"], ours["R@5"], ours["AP"]) == (0.2, 0.5, 0.5)
    for theirs in peers(qrels, run):
        assert theirs == pytest.approx(ours, abs=1e-15)


def test_no_query_has_no_mean_where_the_peers_say_nothing_or_nan():
    for empty in (
        lambda: fn.mean_reciprocal_rank([], []),
        lambda: fn.mean_reciprocal_rank([]),
        lambda: fn.mean_hit_rate([], 5),
        lambda: fn.success_at_k([], 5),
    ):
        with pytest.raises(InputError, match="there are no records"):
            empty()
    theirs, other = peers({}, {})
    assert theirs == {}
    assert all(math.isnan(value) for value in other.values())


@pytest.mark.parametrize("k", [0, -1, 1.5, None, "x", True, math.nan, math.inf])
def test_a_cutoff_is_a_whole_number_of_at_least_one(k):
    with pytest.raises(UnknownName, match="is not valid"):
        fn.precision_at_k(TWO, RELEVANT, k)


@pytest.mark.parametrize(
    "call",
    [
        ("import pytrec_eval as p; p.RelevanceEvaluator({'q': {'d': 1}}, {'P_0'}).evaluate({'q': {'d': 1.0}})"),
        "import ir_measures as m; m.calc_aggregate([m.P @ 0], {'q': {'d': 1}}, {'q': {'d': 1.0}})",
    ],
)
@pytest.mark.slow
def test_a_cutoff_of_zero_ends_the_process_of_the_peers(call):
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, check=False)
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("function", PER_QUERY, ids=range(len(PER_QUERY)))
def test_a_document_twice_in_the_ranking_is_an_error_that_names_it(function):
    with pytest.raises(InputError, match="'d7' occurs twice"):
        function(["d1", "d7", "d7"], RELEVANT)


def test_a_document_twice_in_the_ranking_is_kept_at_its_last_score_by_a_peer():
    docs = [ir_measures.ScoredDoc("q", doc, score) for doc, score in (("d2", 3.0), ("d1", 2.0), ("d2", 1.0))]
    found = ir_measures.calc_aggregate([ir_measures.RR], [ir_measures.Qrel("q", "d1", 1)], docs)
    assert found == {ir_measures.RR: 1.0}
    # If the first one counts, d1 is second.
    once = evaluate({"q": {"d1"}}, [("q", "d2", 3), ("q", "d1", 2), ("q", "d2", 1)], "RR", duplicates="first")
    assert once.mean() == {"RR": 0.5}


def test_counting_a_document_twice_would_push_recall_above_one():
    retrieved, relevant = ["d1", "d1", "d1"], ["d1", "d2"]
    # As in many scripts.
    assert sum(1 for doc in retrieved[:3] if doc in relevant) / len(relevant) == 1.5
    with pytest.raises(InputError, match="occurs 3 times"):
        fn.recall_at_k(retrieved, relevant, 3)


BAD = [
    (
        lambda: fn.precision_at_k({"d1", "d2"}, RELEVANT, 1),
        ("retrieved: a set has no order, so it is not a ranking\nfix: pass a list of document ids, best first"),
    ),
    (
        lambda: fn.precision_at_k("d1", RELEVANT, 1),
        ('retrieved: got \'d1\', expected a ranking\nfix: pass a list of document ids, best first: ["d2", "d1"]'),
    ),
    (
        lambda: fn.precision_at_k(None, RELEVANT, 1),
        ('retrieved: got None, expected a ranking\nfix: pass a list of document ids, best first: ["d2", "d1"]'),
    ),
    (
        lambda: fn.precision_at_k(np.array("d1"), RELEVANT, 1),
        (
            "retrieved: got array('d1', dtype='<U2'), expected a ranking\n"
            'fix: pass a list of document ids, best first: ["d2", "d1"]'
        ),
    ),
    (
        lambda: fn.precision_at_k(TWO, "d1", 1),
        (
            "relevant: got 'd1', expected the relevant documents\n"
            'fix: pass a set or list of document ids, {"d1"}, or grades, {"d1": 3}'
        ),
    ),
    (
        lambda: fn.precision_at_k(["d1", "d1"], RELEVANT, 1),
        ("retrieved: document 'd1' occurs twice\nfix: list(dict.fromkeys(retrieved)) keeps the first of each"),
    ),
    (
        lambda: fn.recall_at_k(TWO, ["d1", "d1"], 1),
        "relevant: document 'd1' occurs twice\nfix: set(relevant) keeps one of each",
    ),
    (
        lambda: fn.dcg([1, math.nan]),
        (
            "grades, entry 2: grade NaN is not a finite number\n"
            "fix: remove unjudged documents, or give them a grade (-1: pooled but not judged)"
        ),
    ),
    (
        lambda: fn.ndcg({"d1": 1}),
        ("grades: got {'d1': 1}, expected a list of grades\nfix: pass the grades in rank order: [3, 0, 2]"),
    ),
    (
        lambda: fn.ndcg([3, 3], ideal=[1]),
        ("the ideal lacks grade 3, which was retrieved\nfix: pass the grades of all judged documents"),
    ),
    (
        lambda: fn.ndcg([3, 0, 3], ideal=[1, 3]),
        (
            "the ideal lacks grade 3, which was retrieved 2 times (it has 1)\n"
            "fix: pass the grades of all judged documents"
        ),
    ),
    (
        lambda: fn.precision_at_k(["001", "002"], [1, 2], 2),
        (
            "retrieved '001' and relevant '1' differ only in leading zeros, spaces, or case\n"
            "fix: use the same ids in both"
        ),
    ),
    (
        lambda: fn.ndcg_at_k([" D1"], {"d1": 3}),
        (
            "retrieved ' D1' and relevant 'd1' differ only in leading zeros, spaces, or case\n"
            "fix: use the same ids in both"
        ),
    ),
    (
        lambda: fn.mean_hit_rate([TWO], [RELEVANT]),
        ("k: there is no cut-off\nfix: write mean_hit_rate(retrieved, relevant, 10) or mean_hit_rate(records, 10)"),
    ),
    (
        lambda: fn.mean_reciprocal_rank([TWO, TWO], [RELEVANT]),
        (
            "records: the columns have different lengths: 'retrieved' has 2, 'relevant' has 1\n"
            "fix: give every column one entry for each record"
        ),
    ),
    (
        lambda: fn.mean_reciprocal_rank({"q1": TWO}, [RELEVANT]),
        (
            "one of retrieved and relevant is by query id, the other is not\n"
            "fix: pass both as mappings by query id, or both as lists in the same order"
        ),
    ),
    (
        lambda: fn.expected_reciprocal_rank(TWO, {"d1": 5}),
        ("grade 5 is above the top grade 4 of ERR\nfix: set the top of your scale, top=5 or more, in every comparison"),
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=range(len(BAD)))
def test_wrong_input_is_an_error_with_place_and_fix(call, message):
    with pytest.raises(RankgaugeError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "call",
    [
        lambda: fn.precision_at_k(["d1", 2], RELEVANT, 1),
        lambda: fn.precision_at_k(["d1", None], RELEVANT, 1),
        lambda: fn.precision_at_k(["d1", ""], RELEVANT, 1),
        lambda: fn.precision_at_k(["d\0"], RELEVANT, 1),
        lambda: fn.precision_at_k(["\ud800"], RELEVANT, 1),
        lambda: fn.precision_at_k([1.5], RELEVANT, 1),
        lambda: fn.ndcg_at_k(TWO, {"d1": "3"}, 1),
        lambda: fn.ndcg_at_k(TWO, {"d1": None}, 1),
    ],
    ids=range(8),
)
def test_an_id_or_grade_that_is_none_is_an_error_that_names_argument_and_entry(call):
    with pytest.raises(InputError, match=r"(?s)^(retrieved|relevant), entry \d+: .*\nfix: "):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: fn.ndcg_at_k(TWO, RELEVANT, 5, ideal="best"),
        lambda: fn.ndcg_at_k(TWO, RELEVANT, ideal="topk"),
        lambda: fn.dcg_at_k(TWO, RELEVANT, gain="square"),
        lambda: fn.average_precision(TWO, RELEVANT, norm="k"),
        lambda: fn.average_precision(TWO, RELEVANT, norm="N"),
        lambda: fn.expected_reciprocal_rank(TWO, RELEVANT, top=0),
        lambda: fn.recall_at_k(TWO, RELEVANT, 1, rel=0),
    ],
    ids=range(7),
)
def test_a_choice_that_is_not_possible_is_an_error_with_a_fix(call):
    with pytest.raises(UnknownName, match="fix: "):
        call()


def test_ids_that_never_meet_are_a_true_zero_unless_they_come_near():
    assert fn.precision_at_k(["d2"], {"d1"}, 1) == 0.0
    # One shared id shows that both sides use the same ids.
    assert fn.precision_at_k(["D1", "d2"], {"d1", "d2"}, 2) == 0.5


def test_a_grade_of_nothing_may_be_missing_in_the_ideal():
    assert fn.ndcg([3, 0, -1], ideal=[3]) == 1.0
    assert fn.ndcg([2, 3], ideal=[3, 2, 2]) < 1.0


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_is_no_ranking_and_no_list_of_documents(library):
    frame = pytest.importorskip(library).DataFrame({"doc_id": ["d1"], "grade": [1]})
    for call in (
        lambda: fn.precision_at_k(frame, RELEVANT, 1),
        lambda: fn.precision_at_k(TWO, frame, 1),
        lambda: fn.dcg(frame),
    ):
        with pytest.raises(InputError, match=r"got DataFrame, expected .*\nfix: "):
            call()


def test_a_series_with_documents_as_labels_holds_their_grades():
    pd = pytest.importorskip("pandas")
    grades = pd.Series({"d1": 2, "d2": 1})
    assert fn.ndcg_at_k(TWO, grades) == fn.ndcg_at_k(TWO, {"d1": 2, "d2": 1})
    with pytest.raises(InputError, match="'d1' occurs twice"):
        fn.recall_at_k(TWO, pd.Series([1, 2], index=["d1", "d1"]), 1)
    with pytest.raises(InputError, match="a Series has no order"):
        fn.recall_at_k(grades, RELEVANT, 1)


def test_a_series_without_labels_is_the_list_of_its_values():
    pd = pytest.importorskip("pandas")
    column = pd.Series(["d2", "x", "d1"])
    assert fn.reciprocal_rank(column, pd.Series(["d1"])) == 1 / 3
    # A slice of a frame keeps its row numbers.
    assert fn.reciprocal_rank(column[column != "x"], column[2:]) == 0.5
    assert fn.recall_at_k(column[column == "none"], RELEVANT, 1) == 0.0
    assert fn.dcg(pd.Series([1.0, 3.0], index=["d1", "d2"])) == fn.dcg([1, 3])


def test_a_series_whose_labels_and_values_could_both_be_the_ids_is_refused():
    pd = pytest.importorskip("pandas")
    column = pd.Series([7, 8, 9])[1:]
    with pytest.raises(InputError, match=r"^relevant: .* whole numbers .*\nfix: pass .to_dict"):
        fn.recall_at_k([8], column, 1)


@pytest.mark.parametrize("size", [100_000])
def test_a_repeat_at_the_end_of_a_long_ranking_is_found_at_once(size):
    docs = [*range(size), size - 1]
    with pytest.raises(InputError, match=f"'{size - 1}' occurs twice"):
        fn.recall_at_k(docs, {1}, 1)
