import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import batch

from rankgauge import Qrels, Run, parse
from rankgauge.checking.measuring import reordered, turned_round, unjudged_found, values_of
from rankgauge.join import join


def joined(qrels, run):
    made = Run.of(run)
    return join(Qrels.of(qrels), made, ties="trec", table=made.table)


SMALL = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-1, 3), min_size=1),
    min_size=1,
)


@settings(max_examples=20)
@given(SMALL, SMALL)
def test_ranks_turned_round_are_those_of_the_negated_scores(qrels, run):
    run = {**run, "q1": run.get("q1", {"a": 0})}
    qrels = {**qrels, "q1": qrels.get("q1", {"a": 1})}
    one = turned_round(joined(qrels, run))
    other = joined(qrels, {q: {d: -s for d, s in docs.items()} for q, docs in run.items()})
    for part in ("rank", "tie_first", "tie_last", "grade", "offsets", "numbers"):
        assert getattr(one, part).tolist() == getattr(other, part).tolist()


@pytest.mark.parametrize("name", ["nDCG@5", "AP", "P@3", "RR", "ERR@5", "Bpref", "R@4"])
@settings(max_examples=20)
@given(SMALL, SMALL)
def test_no_order_of_equal_scores_is_outside_the_interval(name, qrels, run):
    run = {**run, "q1": run.get("q1", {"a": 0})}
    qrels = {**qrels, "q1": qrels.get("q1", {"a": 1})}
    found = joined(qrels, run)
    measure = parse(name)
    low, high = (
        np.nan_to_num(values_of(reordered(found, best=best), measure)) for best in (False, True)
    )
    for shift in (found, joined(qrels, {q: dict(reversed(d.items())) for q, d in run.items()})):
        value = np.nan_to_num(values_of(shift, measure))
        assert (low <= value + 1e-12).all()
        assert (value <= high + 1e-12).all()


def test_with_all_of_the_first_k_judged_nothing_there_is_unjudged():
    made = batch(3)
    found = unjudged_found(joined(made.qrels, made.run), 10, 1)
    values = values_of(found, parse("Judged@10"), found.numbers)
    assert set(values[~np.isnan(values)].tolist()) == {1.0}
