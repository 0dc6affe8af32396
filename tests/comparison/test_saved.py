"""Two saved evaluations: differences, and when they are not comparable."""

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankgauge import History, InputError, MismatchError, compare, evaluate
from rankgauge.comparison import compare_saved

QRELS = {f"q{n:02}": {"d1": 1} for n in range(12)}


def at(ranks: list[int]) -> dict[str, list[str]]:
    """Return a run with the relevant document at these ranks; 0 means not retrieved."""
    return {
        query: [f"x{i}" for i in range(rank - 1)] + ["d1"] if rank else ["x"]
        for query, rank in zip(QRELS, ranks, strict=True)
    }


BEFORE = [1, 1, 2, 3, 1, 0, 2, 4, 1, 1, 5, 2]
AFTER = [1, 2, 2, 4, 2, 0, 1, 4, 2, 3, 5, 2]


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "history.db") as opened:
        yield opened


def keep(history, run, measures=("RR", "P@1"), qrels=None, **choices):
    judged = QRELS if qrels is None else qrels
    return history.add(evaluate(judged, run, list(measures), **choices), judged)


def rr(ranks: list[int]) -> list[float]:
    return [1 / rank if rank else 0.0 for rank in ranks]


def flips(moved: list[float]) -> float:
    """Return the p-value of the exact paired randomization test, by enumerating sign patterns."""
    moved = [value for value in moved if value]
    seen = abs(math.fsum(moved))
    sums = [
        abs(math.fsum(sign * value for sign, value in zip(signs, moved, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(moved))
    ]
    return sum(each >= seen - 1e-9 for each in sums) / len(sums)


def test_the_numbers_of_a_change_are_those_of_scipy_and_of_a_slow_loop(history):
    change = compare_saved(history, keep(history, at(BEFORE)), keep(history, at(AFTER)), "RR")
    step = change.differences[0]
    one, other = rr(BEFORE), rr(AFTER)
    moved = [b - a for a, b in zip(one, other, strict=True)]
    assert step.no_interval == "only 6 queries differ"
    assert step.baseline_mean == pytest.approx(sum(one) / 12, abs=1e-15)
    assert step.mean == pytest.approx(sum(other) / 12, abs=1e-15)
    assert step.difference == pytest.approx(sum(moved) / 12, abs=1e-15)
    assert step.p == pytest.approx(flips(moved), abs=1e-12)
    assert (step.wins, step.ties, step.losses) == (1, 6, 5)
    assert step.queries == 12


def test_the_first_measure_is_tested_and_the_others_are_described(history):
    change = compare_saved(history, keep(history, at(BEFORE)), keep(history, at(AFTER)))
    assert [str(step.measure) for step in change.differences] == ["RR", "P@1"]
    assert [step.p is None for step in change.differences] == [False, True]
    assert [step.verdict is None for step in change.differences] == [False, True]


def test_ndcg_at_10_comes_first_if_both_have_it(history):
    ids = [keep(history, at(r), ("RR", "nDCG@10")) for r in (BEFORE, AFTER)]
    assert str(compare_saved(history, *ids).differences[0].measure) == "nDCG@10"


@pytest.mark.slow
@given(st.lists(st.integers(0, 5), min_size=12, max_size=12), st.permutations(range(12)))
def test_swapping_the_evaluations_flips_the_sign(tmp_path_factory, to, order):
    with History(tmp_path_factory.mktemp("h") / "h.db") as history:
        one, other = keep(history, at(BEFORE)), keep(history, at(to))
        names = list(QRELS)
        mixed = {names[n]: QRELS[names[n]] for n in order}
        third = keep(history, at(to), qrels=mixed)
        there, back = (
            compare_saved(history, one, other).differences[0],
            compare_saved(history, other, one).differences[0],
        )
        assert back.difference == pytest.approx(-there.difference, abs=1e-15)
        assert (back.wins, back.losses) == (there.losses, there.wins)
        assert back.low == pytest.approx(-there.high, abs=1e-12, nan_ok=True)
        again = compare_saved(history, one, third).differences[0]
        assert again.difference == pytest.approx(there.difference, abs=1e-15)
        assert again.p == pytest.approx(there.p, abs=1e-12)


def test_an_evaluation_is_identical_with_itself(history):
    entry = keep(history, at(BEFORE))
    change = compare_saved(history, entry, entry)
    assert (change.differences[0].difference, change.differences[0].p) == (0, 1)
    assert change.differences[0].verdict == "identical"
    assert "identical in every query" in change.sentence


@pytest.mark.parametrize(
    ("to", "verdict"), [([2] * 12, "worse"), ([1] * 11 + [0], "cannot tell"), ([1] * 12, "identical")]
)
def test_verdicts_need_agreement_of_interval_and_test(to, verdict, history):
    change = compare_saved(history, keep(history, at([1] * 12)), keep(history, at(to)))
    assert change.differences[0].verdict == verdict
    assert verdict in change.sentence


def test_where_lower_is_better_more_is_worse(history):
    measures = ("FirstRel",)
    lower = [2, 3, 4, 3, 2, 3, 4, 3, 2, 3, 4, 1]
    ids = [keep(history, at(ranks), measures) for ranks in ([1] * 12, lower)]
    step = compare_saved(history, *ids).differences[0]
    assert step.difference > 0
    assert step.verdict == "worse"
    assert (step.wins, step.ties, step.losses) == (0, 1, 11)


def test_undefined_values_count_as_in_the_mean(history):
    qrels = QRELS | {"empty": {"d1": 0}}
    run = at(BEFORE) | {"empty": ["d1"]}
    zero = [keep(history, run, qrels=qrels) for _ in range(2)]
    skip = [keep(history, run, qrels=qrels, undefined="skip") for _ in range(2)]
    assert compare_saved(history, *zero).differences[0].queries == 13
    assert compare_saved(history, *skip).differences[0].queries == 12
    assert compare_saved(history, *skip).differences[0].baseline_mean == skip[0].means["RR"]


def test_the_numbers_are_those_of_compare(history):
    rng = np.random.default_rng(3)
    qrels = {f"q{n}": {"d1": 1, "d2": 2} for n in range(40)}
    runs = {
        name: {q: rng.permutation(["d1", "d2", *(f"x{i}" for i in range(8))]).tolist() for q in qrels}
        for name in ("old", "new")
    }
    measures = ("RR", "nDCG@10", "FirstRel", "NumRet")
    for run in runs.values():
        keep(history, run, measures, qrels=qrels)
    for tested in ("nDCG@10", "FirstRel"):
        shown = [tested, *(m for m in measures if m != tested)]
        change = compare_saved(history, 1, 2, shown)
        compared = compare(
            [replace(history.load(n), run_name=name) for n, name in ((1, "old"), (2, "new"))], tested=tested
        )
        assert 0 < change.differences[0].p < 1
        assert compared.design.describe().replace("old", "before") == change.notes[-1]
        for step in change.differences:
            found = compared.difference("new", step.measure)
            assert (step.baseline_mean, step.mean) == (found.baseline_mean, found.mean)
            ends = (step.low, step.high)
            assert ends == pytest.approx((found.low, found.high), abs=0, nan_ok=True)
            for name in ("difference", "p", "queries", "wins", "ties", "losses", "verdict"):
                assert getattr(step, name) == getattr(found, name)
    same = compare(qrels, runs, measures, tested=["nDCG@10"])
    assert compare_saved(history, 1, 2).differences[0].p == same.difference("new").p


def test_a_neutral_measure_is_higher_or_lower(history):
    one, other = ({q: ["d1", *"abc"[:n]] for q in QRELS} for n in (1, 3))
    ids = [keep(history, run, ("NumRet",)) for run in (one, other)]
    change = compare_saved(history, *ids)
    assert change.differences[0].verdict == "higher"
    assert ": higher, difference +2.000" in change.sentence
    assert "NumRet: means are sums, differences are per query" in change.notes


def test_queries_without_a_value_in_both_are_left_out_with_a_note(history):
    ids = [keep(history, at(ranks), ("FirstRel",)) for ranks in (BEFORE, [*AFTER[:-1], 0])]
    change = compare_saved(history, *ids)
    assert change.differences[0].queries == 10
    assert any("queries compared: FirstRel 10" in note for note in change.notes)


def test_equal_names_with_different_definitions_are_compared_separately(history):
    graded = {query: {"d1": 3, "d2": 1} for query in QRELS}
    one = keep(history, at(BEFORE), ("nDCG@10",), qrels=graded)
    other = keep(history, at(AFTER), ("nDCG@10", "nDCG(gain=exp)@10"), qrels=graded)
    change = compare_saved(history, one, other, ["nDCG@10", "nDCG(gain=exp)@10"], force=True)
    assert [step.mean for step in change.differences] == [other.means["nDCG@10"], other.means["nDCG(gain=exp)@10"]]


# ---- incomparable evaluations


def refused(history, *which, **choices) -> str:
    with pytest.raises(MismatchError) as caught:
        compare_saved(history, *which, **choices)
    assert "--force (force=True)" in str(caught.value)
    return str(caught.value)


def test_different_judgments_are_refused_or_compared_with_a_warning(history):
    more = {query: {**docs, "d2": 1} for query, docs in QRELS.items()}
    one, other = keep(history, at(BEFORE)), keep(history, at(BEFORE), qrels=more)
    said = refused(history, one, other)
    assert f"different judgments ({one.qrels[:8]} in 1, {other.qrels[:8]} in 2)" in said
    change = compare_saved(history, one, other, force=True)
    assert change.differs == (f"different judgments ({one.qrels[:8]} in 1, {other.qrels[:8]} in 2)",)
    assert change.table().notes[0].startswith("WARNING: not comparable: different judgments")
    assert change.data_table().rows[0][-1].startswith("different judgments")


def test_one_grade_is_enough_to_make_other_judgments(history):
    mended = {**QRELS, "q03": {"d1": 2}}
    refused(history, keep(history, at(BEFORE)), keep(history, at(BEFORE), qrels=mended))


def test_the_same_judgments_in_another_order_are_the_same(history):
    turned = dict(reversed(QRELS.items()))
    one, other = keep(history, at(BEFORE)), keep(history, at(AFTER), qrels=turned)
    assert compare_saved(history, one, other).differs == ()


def test_other_policies_are_refused(history):
    one, other = keep(history, at(BEFORE)), keep(history, at(BEFORE), ties="input")
    assert "different policies (ties=trec in 1, ties=input in 2)" in refused(history, one, other)
    third = keep(history, at(BEFORE), undefined="skip")
    assert "undefined=zero in 1, undefined=skip in 3" in refused(history, one, third)


def test_weights_are_left_out_with_a_note(history):
    weights = {query: n + 1.0 for n, query in enumerate(QRELS)}
    one, other = (keep(history, at(r), weights=weights) for r in (BEFORE, AFTER))
    change = compare_saved(history, one, other)
    assert "weights of queries are ignored: every query counts the same here" in change.notes
    assert change.differences[0].baseline_mean == pytest.approx(sum(rr(BEFORE)) / 12)
    assert "weighted by query" in refused(history, keep(history, at(BEFORE)), one)


def test_another_definition_of_a_measure_is_refused(history):
    one = keep(history, at(BEFORE), ("nDCG@10",))
    other = keep(history, at(BEFORE), ("nDCG(gain=exp)@10",))
    said = refused(history, one, other, "nDCG@10")
    assert "different definitions (nDCG@10 in 1, nDCG(gain=exp)@10 in 2)" in said
    assert compare_saved(history, one, other, "nDCG@10", force=True).differs
    with pytest.raises(InputError, match="have no measure in common"):
        compare_saved(history, one, other)


def test_a_measure_that_one_of_them_lacks_is_reported(history):
    one, other = keep(history, at(BEFORE)), keep(history, at(AFTER), ("RR",))
    with pytest.raises(InputError, match=r"P@1 was not evaluated in 2\nfix: evaluated: RR"):
        compare_saved(history, one, other, ["RR", "P@1"])
    with pytest.raises(InputError, match="no measure was given"):
        compare_saved(history, one, other, [])


def test_only_shared_queries_are_compared_with_a_note(history):
    ids = list(QRELS)
    one = keep(history, at(BEFORE), queries=ids[:8])
    other = keep(history, at(AFTER), queries=ids[3:])
    change = compare_saved(history, one, other)
    moved = [b - a for a, b in zip(rr(BEFORE)[3:8], rr(AFTER)[3:8], strict=True)]
    assert change.differences[0].queries == 5
    assert change.differences[0].difference == pytest.approx(np.mean(moved))
    assert change.differs == ()
    assert "5 queries in common, of 8 in 1 and 9 in 2: only these are compared" in change.notes


@pytest.mark.parametrize("shared", [0, 1])
def test_fewer_than_two_shared_queries_are_refused(shared, history):
    ids = list(QRELS)
    one = keep(history, at(BEFORE), queries=ids[:4])
    other = keep(history, at(AFTER), queries=ids[4 - shared :])
    with pytest.raises(InputError, match=r"share (0 queries|1 query) with a value of RR"):
        compare_saved(history, one, other)


def test_two_evaluations_of_one_ranking_are_reported_as_such(history):
    evaluation = evaluate(QRELS, at(BEFORE), "RR")
    ids = [history.add(evaluation, QRELS, run=at(BEFORE)) for _ in range(2)]
    assert "both are evaluations of the same ranking" in compare_saved(history, *ids).notes


def test_its_notebook_table_escapes_every_text(history):
    for label in ("<b>", "&"):
        history.add(evaluate(QRELS, at(BEFORE), "RR"), QRELS, label=label)
    page = compare_saved(history, 1, 2)._repr_html_()
    assert "<b>" not in page
    assert re.search(r"&lt;b&gt;", page)
