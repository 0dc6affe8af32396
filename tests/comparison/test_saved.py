"""Comparisons of saved evaluations, and when they are not comparable."""

from dataclasses import replace

import numpy as np
import pytest

from rankgauge import History, InputError, MismatchError, compare, evaluate

QRELS = {f"q{n:02}": {"d1": 1} for n in range(12)}
BEFORE = [1, 1, 2, 3, 1, 0, 2, 4, 1, 1, 5, 2]
AFTER = [1, 2, 2, 4, 2, 0, 1, 4, 2, 3, 5, 2]


def at(ranks: list[int]) -> dict[str, list[str]]:
    """Return a run with the relevant document at these ranks; 0 means not retrieved."""
    return {
        query: [f"x{i}" for i in range(rank - 1)] + ["d1"] if rank else ["x"]
        for query, rank in zip(QRELS, ranks, strict=True)
    }


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "store.db") as opened:
        yield opened


def keep(history, run, measures=("RR", "P@1"), qrels=None, **choices):
    judged = QRELS if qrels is None else qrels
    return history.add(evaluate(judged, run, list(measures), **choices), judged)


def test_the_numbers_are_those_of_the_runs(history):
    for ranks in (BEFORE, AFTER):
        keep(history, at(ranks))
    saved = compare(history.comparable(["#1", 2]))
    of_runs = compare(QRELS, {"run#1": at(BEFORE), "run#2": at(AFTER)}, ["RR", "P@1"])
    assert repr(saved.differences) == repr(of_runs.differences)  # NaN in both
    assert saved.difference("run#2").difference < 0


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"qrels": {**QRELS, "q03": {"d1": 2}}}, "different judgments"),
        ({"ties": "input"}, "different policies (ties=trec in run#1, ties=input in run#2)"),
        ({"undefined": "skip"}, "undefined=zero in run#1, undefined=skip in run#2"),
        ({"profile": "ranx"}, "different profiles (ours in run#1, ranx in run#2)"),
        ({"weights": dict.fromkeys(QRELS, 2.0)}, "means of run#2 are weighted by query, those of run#1 are not"),
    ],
)
def test_what_makes_evaluations_incomparable_is_refused(choices, message, history):
    keep(history, at(BEFORE))
    keep(history, at(BEFORE), **choices)
    with pytest.raises(MismatchError) as refusal:
        history.comparable([1, 2])
    assert message in str(refusal.value)
    assert "fix: evaluate both on the same judgments" in str(refusal.value)


def test_the_same_judgments_in_another_order_are_the_same(history):
    keep(history, at(BEFORE))
    keep(history, at(AFTER), qrels=dict(reversed(QRELS.items())))
    difference = compare(history.comparable([1, 2]), queries="intersection").differences[0]
    expected = compare(QRELS, {"a": at(BEFORE), "b": at(AFTER)}, "RR").differences[0]
    assert (difference.wins, difference.losses) == (expected.wins, expected.losses)
    assert difference.difference == pytest.approx(expected.difference)


def test_only_shared_measures_are_compared_unless_they_are_named(history):
    keep(history, at(BEFORE), ("P@1", "RR"))
    keep(history, at(AFTER), ("RR", "AP"))
    pair = history.comparable([1, 2])
    assert [str(step.measure) for step in compare(pair).differences] == ["RR"]
    with pytest.raises(InputError, match=r"run 'run#2': P@1 was not evaluated\n?.*"):
        compare(pair, None, ["RR", "P@1"])
    others = [replace(pair[0], run_name="a"), evaluate(QRELS, at(AFTER), "AP")]
    with pytest.raises(InputError, match="have no measure in common"):
        compare(others)


def test_shared_queries_are_compared_if_asked(history):
    ids = list(QRELS)
    keep(history, at(BEFORE), queries=ids[:8])
    keep(history, at(AFTER), queries=ids[3:][::-1])
    pair = history.comparable([1, 2])
    with pytest.raises(InputError, match="differ in their query ids\nfix: compare their common queries"):
        compare(pair)
    difference = compare(pair, queries="intersection").differences[0]
    of_both = compare(QRELS, {"a": at(BEFORE), "b": at(AFTER)}, "RR", queries=ids[3:8])
    assert difference.queries == 5
    assert difference.difference == pytest.approx(of_both.differences[0].difference)
    assert np.isclose(difference.baseline_mean, of_both.differences[0].baseline_mean)
    with pytest.raises(InputError, match="one query is too few"):
        compare([pair[0], evaluate(QRELS, at(AFTER), ["RR"], queries=ids[7:])], queries="intersection")
