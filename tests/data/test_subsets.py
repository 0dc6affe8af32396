"""The top of rankings, and samples of queries."""

import hashlib

import pytest
from hypothesis import given, strategies as st
from strategies import batches

from rankgauge import InputError, MismatchError, Qrels, Run, UnknownName, cut, keep_queries, sample_queries

RUN = Run.of({f"q{n}": {"d1": 1.0, "d2": 2.0, "d3": 1.0} for n in range(20)}, name="bm25")


def top(scores, k):
    by_rank = sorted(scores, key=lambda doc: (scores[doc], doc.encode()), reverse=True)
    return by_rank[:k]


@given(batches(ids=st.text("abcé", min_size=1, max_size=4)), st.integers(1, 14))
def test_cut_keeps_the_first_k_of_each_query(made, k):
    found = cut(made.run, k)
    assert {q: list(docs) for q, docs in found.items()} == {q: top(scores, k) for q, scores in made.run.items()}
    assert all(found[q][doc] == made.run[q][doc] for q in found for doc in found[q])


def test_cut_follows_the_tie_policy_and_keeps_name_and_settings():
    run = Run.of({"q": {"a": 1.0, "b": 1.0}}, name="x", settings={"k1": 0.9})
    assert list(cut(run, 1)["q"]) == ["b"]
    found = cut(run, 1, ties="input")
    assert (list(found["q"]), found.name, dict(found.settings)) == (["a"], "x", {"k1": 0.9})


def test_cutting_twice_is_cutting_once():
    assert cut(cut(RUN, 2), 2) == cut(RUN, 2)
    assert cut(cut(RUN, 3), 1) == cut(RUN, 1)


@pytest.mark.parametrize("k", [0, -1, 1.5, "x", None, True])
def test_k_is_a_whole_number_from_1(k):
    with pytest.raises(InputError, match=r"k=.* is not valid"):
        cut(RUN, k)


def test_a_run_with_a_duplicate_document_is_not_cut():
    with pytest.raises(InputError, match="occurs twice"):
        cut([("q", "d", 1.0), ("q", "d", 0.5)], 1)


@pytest.mark.parametrize(("policy", "wanted"), [("first", {"a": 2.0, "b": 1.0}), ("best", {"b": 3.0, "a": 2.0})])
def test_one_of_two_is_kept_before_ranks_are_counted(policy, wanted):
    rows = [("q", "b", 1.0), ("q", "a", 2.0), ("q", "b", 3.0), ("q", "c", 0.5)]
    assert list(cut(rows, 2, duplicates=policy)["q"].items()) == list(wanted.items())


def test_the_policy_for_duplicates_is_one_of_three_words():
    with pytest.raises(UnknownName, match="duplicates='last'"):
        cut(RUN, 2, duplicates="last")


def test_the_draw_is_by_sha_256_of_seed_and_id():
    lots = sorted(RUN, key=lambda q: hashlib.sha256(f"7:{q}".encode()).hexdigest())
    assert sample_queries(RUN, 5, seed=7) == tuple(sorted(lots[:5]))


def test_the_same_queries_are_drawn_from_files_in_any_order():
    qrels = Qrels.of({f"q{n}": {"d1"} for n in reversed(range(5, 40))})
    found = sample_queries([qrels, RUN], 6, seed=3)
    assert found == sample_queries([RUN, qrels], 6, seed=3)
    assert set(found) <= set(RUN) & set(qrels)
    assert found != sample_queries([qrels, RUN], 6, seed=4)


def test_a_larger_sample_holds_the_smaller():
    for seed in range(5):
        for n in range(1, 20):
            assert set(sample_queries(RUN, n, seed=seed)) < set(sample_queries(RUN, n + 1, seed=seed))


def test_every_query_is_drawn_about_as_often_as_another():
    times = dict.fromkeys(RUN, 0)
    for seed in range(2000):
        for query in sample_queries(RUN, 5, seed=seed):
            times[query] += 1
    # 500 expected, standard deviation 19.4.
    assert max(abs(count - 500) for count in times.values()) < 78


def test_queries_that_only_some_have_are_drawn_on_request():
    other = Run.of({"q1": ["d"], "x": ["d"]})
    assert sample_queries([RUN, other], 1) == ("q1",)
    assert "x" in sample_queries([RUN, other], 21, among="union")


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        ({"n": 21}, InputError, "21 queries were requested, but there are only 20"),
        ({"n": 0}, InputError, "n=0 is not valid"),
        ({"n": 1.0}, InputError, "n=1.0 is not valid"),
        ({"n": 1, "seed": "a"}, InputError, "seed='a' is not valid"),
        ({"n": 1, "among": "all"}, UnknownName, "among='all'"),
    ],
)
def test_an_impossible_sample_is_refused(words, error, said):
    with pytest.raises(error, match=said):
        sample_queries(RUN, **words)


def test_files_without_a_common_query_have_no_sample():
    with pytest.raises(InputError, match="there are only 0 in common"):
        sample_queries([RUN, Run.of({"x": ["d"]})], 1)
    for nothing in ([], ["a.run"]):
        with pytest.raises(InputError, match="drawn from judgments and runs"):
            sample_queries(nothing, 1)


def test_queries_are_kept_in_the_order_they_had():
    found = keep_queries(RUN, ["q9", "q3", "never"])
    assert {q: dict(docs) for q, docs in found.items()} == {q: dict(RUN[q]) for q in ("q3", "q9")}
    assert (list(found), found.name) == (["q3", "q9"], "bm25")
    qrels = Qrels.of({7: {"d": 1}, 8: {"d": 0}})
    assert dict(keep_queries(qrels, [8])) == {"8": {"d": 0.0}}


def test_queries_can_be_read_from_a_file(tmp_path):
    (tmp_path / "ids.txt").write_text("q2\nq4\n", encoding="utf-8")
    assert list(keep_queries(RUN, tmp_path / "ids.txt")) == ["q2", "q4"]


@given(batches(), st.data())
def test_kept_rows_are_unchanged(made, data):
    qrels, run = Qrels.of(made.qrels), Run.of(made.run)
    some = data.draw(st.lists(st.sampled_from(sorted(made.run)), min_size=1))
    assert keep_queries(run, some) == Run.of({q: made.run[q] for q in made.run if q in some})
    assert keep_queries(qrels, some) == Qrels.of({q: made.qrels[q] for q in some if q in qrels})


def test_no_query_at_all_is_an_error():
    with pytest.raises(MismatchError, match=r"requested: 'x'"):
        keep_queries(RUN, ["x"])
    with pytest.raises(MismatchError, match="requested: none"):
        keep_queries(RUN, [])
    with pytest.raises(InputError, match="for source"):
        keep_queries({"q1": ["d"]}, ["q1"])
    for wrong in ("q1", 7):
        with pytest.raises(InputError, match="for the queries"):
            keep_queries(RUN, wrong)
