"""Judgments, runs, and policies are immutable and safe to share."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from rankgauge.core.policies import Policies
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.evaluation import evaluate

JUDGED = {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d1": 1.0}}
RANKED = {"q1": {"d2": 0.5, "d1": 0.25}, "q2": {"d9": 1.0}}
NOUNS = [Qrels.of(JUDGED), Run.of(RANKED, name="bm25", settings={"k1": 0.9}), Policies(ties="input")]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
@pytest.mark.parametrize("travel", [lambda noun: pickle.loads(pickle.dumps(noun)), copy.deepcopy])
def test_data_classes_are_equal_after_pickling(noun: Any, travel: Any) -> None:
    if not isinstance(noun, Policies):
        _ = noun.query_index, noun.query_ids  # caches are not pickled
    again = travel(noun)
    assert again == noun
    assert repr(again) == repr(noun)


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
def test_data_classes_are_immutable(noun: Any) -> None:
    name = "ties" if isinstance(noun, Policies) else "table"
    with pytest.raises(AttributeError):
        setattr(noun, name, None)


def test_arrays_are_read_only_also_after_a_pickle_and_in_what_is_prepared() -> None:
    for qrels in (Qrels.of(JUDGED), pickle.loads(pickle.dumps(Qrels.of(JUDGED)))):
        for array in (qrels.table.values, qrels.table.offsets, *qrels.ideal):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


def test_settings_of_a_run_cannot_be_changed() -> None:
    source = {"k1": {"value": 0.9}}
    run = Run.of(RANKED, settings=source)
    source["k1"]["value"] = 2
    assert run.settings == {"k1": {"value": 0.9}}
    with pytest.raises(TypeError):
        run.settings["k1"] = 2  # type: ignore[index]


def test_changing_the_source_changes_nothing() -> None:
    source = copy.deepcopy(RANKED)
    run = Run.of(source)
    source["q1"]["d2"] = 9.0
    del source["q2"]
    assert run == Run.of(RANKED)
    scores = np.array([1.0, 2.0])
    run = Run.from_columns(["q", "q"], ["a", "b"], scores)
    scores[0] = 7.0
    assert scores.flags.writeable
    assert run["q"] == {"a": 1.0, "b": 2.0}


def test_equality_is_of_contents_and_for_runs_of_order_and_name() -> None:
    assert Qrels.of(JUDGED) == Qrels.of({q: dict(reversed(d.items())) for q, d in JUDGED.items()})
    assert Qrels.of(JUDGED) != Qrels.of({"q1": JUDGED["q1"]})
    assert Run.of(RANKED) == Run.of(dict(reversed(RANKED.items())))
    assert Run.of(RANKED) != Run.of({q: dict(reversed(d.items())) for q, d in RANKED.items()})
    assert Run.of(RANKED) != Run.of(RANKED, name="other")
    assert Run.of(RANKED) != RANKED


def test_judgments_and_runs_are_mappings() -> None:
    run = Run.of(RANKED)
    assert {query: run[query] for query in run} == RANKED
    assert len(run) == 2
    assert "q1" in run
    assert b"q1" in run
    assert "q3" not in run
    assert None not in run
    assert run.get(3.5) is None  # type: ignore[call-overload]
    with pytest.raises(KeyError, match="q3"):
        run["q3"]


def test_an_id_that_is_shown_escaped_is_found_by_what_is_shown() -> None:
    run = Run.of({b"q\xff": [b"d\xfe"]})
    assert list(run) == ["q\\xff"]
    assert run["q\\xff"] == run[b"q\xff"] == {"d\\xfe": 1.0}


def test_numbers_and_text_of_the_same_digits_are_the_same_id_across_inputs() -> None:
    expected = evaluate({"1": {"7": 1}}, {"1": ["7"]}, "AP").mean()
    for qrels in ({1: {7: 1}}, {b"1": {b"7": 1}}, {"1": {np.int64(7): 1}}):
        assert evaluate(qrels, {"1": ["7"]}, "AP").mean() == expected == {"AP": 1.0}


def test_ordered_ground_truth_becomes_grades() -> None:
    made = Qrels.from_rankings({"q1": ["d2", "d1", "d3"], "q2": []})
    assert made == Qrels.of({"q1": {"d2": 3, "d1": 2, "d3": 1}, "q2": {}})


def test_an_instance_is_returned_unchanged() -> None:
    qrels, run = Qrels.of(JUDGED), Run.of(RANKED)
    assert Qrels.of(qrels) is qrels
    assert Run.of(run) is run
    assert Run.of(run, name="new").name == "new"


def test_repeated_documents_are_kept_until_a_policy_decides() -> None:
    run = Run.from_columns(["q"] * 3, ["a", "b", "a"], [1.0, 2.0, 3.0])
    assert run.without_repeats("first").table.values.tolist() == [1.0, 2.0]
    assert run.without_repeats("best").table.values.tolist() == [2.0, 3.0]
    with pytest.raises(InputError, match="document 'a' occurs twice for query 'q'"):
        run.without_repeats("error")


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(
        UnknownName, match="ties='heap' is not valid\nfix: choose one of: trec, input, best, worst, mean"
    ):
        Policies(ties="heap")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"draws": -1}, "draws=-1 is not valid"),
        ({"draws": 2.5}, "draws=2.5 is not valid"),
        ({"draws": True}, "draws=True is not valid"),
        ({"ties": "mean", "draws": 1}, "draws=1 gives no standard error"),
        ({"draws": 100}, "draws=100 with ties=trec: only ties=mean draws orders"),
        ({"ties": "mean", "draws": 10, "seed": -3}, "seed=-3 is not valid"),
        ({"ties": "mean", "seed": 3}, "seed=3 without draws has no effect"),
    ],
    ids=["negative", "part", "flag", "one", "no mean", "seed", "no draws"],
)
def test_draws_are_refused_for_policies_without_sampling(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Policies(**given)


def test_eight_threads_share_one_set_of_judgments() -> None:
    rng = np.random.default_rng(0)
    grades = {f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in range(60)} for q in range(40)}
    runs = [
        {f"q{q}": {f"d{d}": float(rng.integers(0, 9)) for d in rng.permutation(90)[:50]} for q in range(40)}
        for _ in range(16)
    ]
    expected = [evaluate(grades, run, ["nDCG@10", "AP", "Bpref"]).mean() for run in runs]
    for _ in range(5):
        shared = Qrels.of(grades)  # nothing is cached yet, so the threads compute it concurrently
        with ThreadPoolExecutor(8) as pool:
            got = list(
                pool.map(lambda run: evaluate(shared, run, ["nDCG@10", "AP", "Bpref"]).mean(), runs)  # noqa: B023
            )
        assert got == expected


def test_constructors_take_what_holds_judgments_or_a_run(tmp_path):
    grades, scores = {"q1": {"d1": 2, "d2": 0}}, {"q1": {"d1": 0.5, "d2": 0.25}}
    assert Qrels(grades) == Qrels.of(grades)
    assert Run(scores) == Run.of(scores)
    run = Run(scores, name="a", settings={"k1": 0.9})
    assert (run.name, dict(run.settings)) == ("a", {"k1": 0.9})
    assert Run(run).settings == run.settings
    with pytest.raises(InputError):
        Qrels(7)
    with pytest.raises(InputError):
        Run(grades and Qrels(grades))
