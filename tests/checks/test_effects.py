import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import batch

from rankgauge import Qrels, Run, parse
from rankgauge.checks.checked_run import means, reversed_rankings, unjudged_as, values_of
from rankgauge.data.join import join


def joined(qrels, run):
    made = Run.of(run)
    return join(Qrels.of(qrels), made, ties="trec")


SMALL = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-1, 3), min_size=1),
    min_size=1,
)


@given(SMALL, SMALL)
def test_ranks_reversed_rankings_are_those_of_the_negated_scores(qrels, run):
    run = {**run, "q1": run.get("q1", {"a": 0})}
    qrels = {**qrels, "q1": qrels.get("q1", {"a": 1})}
    one = reversed_rankings(joined(qrels, run))
    other = joined(qrels, {q: {d: -s for d, s in docs.items()} for q, docs in run.items()})
    for part in ("rank", "tie_first", "tie_last", "grade", "offsets", "numbers"):
        assert getattr(one, part).tolist() == getattr(other, part).tolist()
    assert one.qrels.table.values[one.rows].tolist() == one.grade.tolist()


@pytest.mark.parametrize("name", ["nDCG@5", "AP", "P@3", "RR", "ERR@5", "Bpref", "R@4"])
@given(SMALL, SMALL)
def test_no_order_of_equal_scores_is_outside_the_interval(name, qrels, run):
    run = {**run, "q1": run.get("q1", {"a": 0})}
    qrels = {**qrels, "q1": qrels.get("q1", {"a": 1})}
    found = joined(qrels, run)
    measure = parse(name)
    low, high = (np.nan_to_num(values_of(found.reordered(ties), measure)) for ties in ("worst", "best"))
    for shift in (found, joined(qrels, {q: dict(reversed(d.items())) for q, d in run.items()})):
        value = np.nan_to_num(values_of(shift, measure))
        assert (low <= value + 1e-12).all()
        assert (value <= high + 1e-12).all()


def test_with_all_of_the_first_k_judged_nothing_there_is_unjudged():
    made = batch(3)
    found, seen = joined(made.qrels, made.run), unjudged_as(10, 1)
    values = values_of(found, parse("Judged@10"), found.numbers, view=seen)
    assert set(values[~np.isnan(values)].tolist()) == {1.0}
    deeper = values_of(found, parse("Judged@20"), found.numbers, view=seen)
    assert np.nanmin(deeper) < 1


def test_retrieved_documents_are_part_of_the_ideal():
    found = joined({"q": {"a": 1, "low": 0}}, {"q": ["x", "low", "a", "y"]})
    seen = unjudged_as(2, 1)
    assert means(found, map(parse, ["P@2", "R@2", "R@4", "AP@2"]), view=seen) == [0.5, 0.5, 1, 0.5]


@pytest.mark.parametrize("ties", ["best", "worst"])
def test_reordered_ranks_are_those_of_a_join_by_that_policy(ties):
    made = batch(5, queries=200, deepest=25)
    run = Run.of(made.run)
    wanted = join(Qrels.of(made.qrels), run, ties=ties)
    for order in ("trec", "input"):
        found = join(Qrels.of(made.qrels), run, ties=order).reordered(ties)
        for part in ("rank", "tie_first", "tie_last", "grade", "offsets", "numbers"):
            assert getattr(found, part).tolist() == getattr(wanted, part).tolist(), part
        docs = found.qrels.table.values[found.rows]
        assert docs.tolist() == found.grade.tolist()
