"""Tuning: no query is fused with parameters chosen on it, and the best parameters are chosen."""

import hashlib
import itertools
import math
import pickle

import numpy as np
import pytest

from rankgauge import (
    InputError,
    MismatchError,
    Run,
    UnknownName,
    evaluate,
    fuse,
    read_qrels,
    read_run,
    sample_path,
    tune_fusion,
)
from rankgauge.retrievers import FUSION_NORMS, weight_grid

QRELS = read_qrels(sample_path("qrels.txt"))
BM25, KEYWORD = (read_run(sample_path(f"runs/{name}.run")) for name in ("bm25", "keyword"))
RUNS = [BM25, KEYWORD]
FOUND = tune_fusion(QRELS, RUNS, method="wsum")


def value(run, query, measure="nDCG@10"):
    return evaluate(QRELS, run, measure).value(query, measure)


def chosen_by_loop(grid, train, fuse_with, measure="nDCG@10"):
    """Return the first candidate with the highest mean over the training queries."""
    best, highest = None, -math.inf
    for candidate in grid:
        evaluation = evaluate(QRELS, fuse_with(candidate), measure)
        mean = math.fsum(evaluation.value(query, measure) for query in train) / len(train)
        if mean > highest:
            best, highest = candidate, mean
    return best, highest


def test_the_folds_are_every_fifth_query_by_sha_256():
    lots = sorted(QRELS, key=lambda q: hashlib.sha256(f"0:{q}".encode()).digest())
    assert [fold.test for fold in FOUND.folds] == [tuple(lots[fold::5]) for fold in range(5)]
    for fold in FOUND.folds:
        assert set(fold.train) == set(QRELS) - set(fold.test)


def test_each_fold_has_what_is_best_on_the_others():
    grid = weight_grid(2)
    for fold in FOUND.folds:
        best, mean = chosen_by_loop(grid, fold.train, lambda weights: fuse(RUNS, "wsum", weights=weights))
        assert fold.chosen.weights == best
        assert fold.train_value == pytest.approx(mean, abs=1e-12)


def test_each_query_is_fused_with_what_was_chosen_for_its_fold():
    for fold in FOUND.folds:
        whole = fuse(RUNS, "wsum", weights=fold.chosen.weights)
        for query in fold.test:
            assert list(FOUND.run[query].items()) == list(whole[query].items())
        mean = math.fsum(value(whole, query) for query in fold.test) / len(fold.test)
        assert fold.test_value == pytest.approx(mean, abs=1e-12)


def test_judgments_of_a_query_never_touch_its_own_fusion():
    """Reversing the judgments of one fold does not change the fusion of its queries."""
    fold = FOUND.folds[0]
    turned = {
        query: {doc: 3 - grade for doc, grade in docs.items()} if query in fold.test else dict(docs)
        for query, docs in QRELS.items()
    }
    again = tune_fusion(turned, RUNS, method="wsum")
    assert again.folds[0].chosen == fold.chosen
    for query in fold.test:
        assert again.run[query] == FOUND.run[query]


def test_a_query_may_be_tuned_alone():
    found = tune_fusion(QRELS, RUNS, folds=len(QRELS))
    assert all(len(fold.test) == 1 for fold in found.folds)
    assert set(found.run) == set(fuse(RUNS))


def test_the_values_are_those_of_evaluate():
    assert FOUND.evaluation.mean() == evaluate(QRELS, FOUND.run, "nDCG@10").mean()
    assert FOUND.others["bm25"] == evaluate(QRELS, BM25, "nDCG@10").mean()["nDCG@10"]
    untuned = evaluate(QRELS, fuse(RUNS, "wsum", weights=(1, 1)), "nDCG@10").mean()["nDCG@10"]
    assert FOUND.others["untuned wsum(norm=min-max, weights=0.5/0.5)"] == untuned


def test_it_describes_how_the_parameters_were_chosen():
    message = "\n".join(FOUND.sentences)
    assert "11 choices for wsum: norm min-max; weights 0.5/0.5, 0.6/0.4" in message
    assert "5 folds of the 30 judged queries, seed 0" in message
    assert "no query was fused with parameters chosen on it" in message
    assert f"over 30 queries not used to choose it: {FOUND.evaluation.mean()['nDCG@10']:.4f}" in message


def test_equal_fused_scores_are_ordered_by_id():
    qrels = {f"q{n}": {"b"} for n in range(4)}
    runs = [dict.fromkeys(qrels, docs) for docs in (["a", "b"], ["b", "a"])]
    for ties in ("trec", "input"):
        found = tune_fusion(qrels, runs, "RR", folds=2, ties=ties)
        assert [(fold.train_value, fold.test_value) for fold in found.folds] == [(1.0, 1.0)] * 2
        assert found.evaluation.mean() == {"RR": found.others["untuned rrf(k=60)"]} == {"RR": 1.0}


def test_input_runs_are_measured_by_the_tie_policy():
    qrels = {f"q{n}": {"a"} for n in range(4)}
    runs = [Run.of({q: {"a": 1.0, "b": 1.0} for q in qrels}, name=name) for name in ("one", "two")]
    for ties, value in (("trec", 0.5), ("input", 1.0)):
        found = tune_fusion(qrels, runs, "RR", folds=2, ties=ties)
        assert (found.others["one"], found.others["two"]) == (value, value)


def test_a_fixed_list_is_trained_on_and_left_out(tmp_path):
    train = list(QRELS)[:12]
    found = tune_fusion(QRELS, RUNS, "AP", method="combsum", train=train)
    (fold,) = found.folds
    norms = [norm for norm in FUSION_NORMS if norm != "none"]
    best, _ = chosen_by_loop(norms, train, lambda norm: fuse(RUNS, "combsum", norm=norm), "AP")
    assert fold.chosen.norm == best
    assert set(found.run) == set(fuse(RUNS)) - set(train)
    assert set(found.evaluation.query_ids) == set(QRELS) - set(train)
    assert (found.seed, len(fold.train), len(fold.test)) == (None, 12, 18)
    assert "12 queries are few" in found.warnings[0]
    listed = tmp_path / "train.txt"
    listed.write_text("\n".join(train), encoding="utf-8")
    assert tune_fusion(QRELS, RUNS, "AP", method="combsum", train=listed) == found


def test_queries_without_judgments_are_fused_with_what_is_best_on_all():
    more = [Run.of({**run, "zz": ["d1", "d2"]}, name=run.name) for run in RUNS]
    found = tune_fusion(QRELS, more, method="wsum")
    best, _ = chosen_by_loop(weight_grid(2), list(QRELS), lambda w: fuse(RUNS, "wsum", weights=w))
    wanted = fuse([{"zz": ["d1", "d2"]}] * 2, "wsum", weights=best)
    assert found.run["zz"] == wanted["zz"]
    assert any("1 query without judgments fused by wsum" in said for said in found.sentences)


def test_a_run_without_judged_queries_may_still_be_fused():
    other = Run.of({"zz": ["d1"]}, name="other")
    found = tune_fusion(QRELS, [BM25, other], method="wsum", folds=3)
    assert set(found.others) == {"untuned wsum(norm=min-max, weights=0.5/0.5)", "bm25"}
    assert found.run["zz"] == fuse([BM25, other], "wsum", weights=(0.5, 0.5))["zz"]


def test_two_runs_with_the_same_name_are_distinguished():
    found = tune_fusion(QRELS, [BM25, Run.of(KEYWORD, name="bm25")])
    assert list(found.others) == ["untuned rrf(k=60)", "bm25 (1)", "bm25 (2)"]


def test_a_lower_value_can_be_the_better_one():
    qrels = {f"q{n}": {"d"} for n in range(8)}
    early = {f"q{n}": {"d": 3.0, "x": 2.0, "y": 1.0} for n in range(8)}
    late = {f"q{n}": {"d": 1.0, "x": 2.0, "y": 3.0} for n in range(8)}
    found = tune_fusion(qrels, [early, late], "FirstRel", method="wsum", folds=2)
    assert all(fold.chosen.weights[0] > 0.5 for fold in found.folds)
    assert found.evaluation.mean() == {"FirstRel": 1.0}


def test_of_equal_candidates_the_first_is_chosen():
    same = tune_fusion(QRELS, [BM25, Run.of(BM25, name="again")], grid={"k": [7, 60, 1]})
    assert {fold.chosen.k for fold in same.folds} == {7.0}


def test_a_grid_is_tried_in_every_combination():
    found = tune_fusion(QRELS, RUNS, method="WSUM", grid={"norm": ["sum", "zmuv"], "weights": [(1, 1), (3, 1)]})
    assert [str(how) for how in found.candidates] == [
        "wsum(norm=sum, weights=1/1)",
        "wsum(norm=z-score, weights=1/1)",
        "wsum(norm=sum, weights=3/1)",
        "wsum(norm=z-score, weights=3/1)",
    ]


def test_the_order_of_everything_changes_nothing():
    turned = {query: dict(reversed(docs.items())) for query, docs in [*QRELS.items()][::-1]}
    runs = [Run.of({q: dict(reversed(d.items())) for q, d in [*run.items()][::-1]}, name=run.name) for run in RUNS]
    again = tune_fusion(turned, runs, method="wsum")
    assert again.run == FOUND.run
    assert [fold.chosen for fold in again.folds] == [fold.chosen for fold in FOUND.folds]


def test_two_calls_give_equal_results_that_can_be_pickled():
    assert tune_fusion(QRELS, RUNS, method="wsum") == FOUND
    assert pickle.loads(pickle.dumps(FOUND)) == FOUND


def test_another_seed_makes_other_folds():
    assert tune_fusion(QRELS, RUNS, seed=1).folds != tune_fusion(QRELS, RUNS, seed=2).folds


def test_a_better_single_run_is_a_warning():
    found = tune_fusion(QRELS, RUNS)
    assert "bm25 has the higher nDCG@10 on the same queries" in found.warnings


@pytest.mark.parametrize("runs", [2, 3, 4])
@pytest.mark.parametrize("step", [0.5, 0.25, 0.1])
def test_weight_grids_are_complete(runs, step):
    grid = weight_grid(runs, step)
    parts = round(1 / step)
    assert len(grid) == len(set(grid)) == math.comb(parts + runs - 1, runs - 1)
    assert all(math.isclose(sum(weights), 1) and min(weights) >= 0 for weights in grid)
    spread = [max(abs(np.array(weights) - 1 / runs)) for weights in grid]
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(spread))


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        ({"method": "isr"}, InputError, "isr has nothing to tune"),
        ({"method": "borda"}, InputError, "pass a grid of weights"),
        ({"method": "rff"}, UnknownName, "did you mean rrf"),
        ({"grid": {"kk": [1]}}, UnknownName, "unknown parameter of a fusion 'kk'"),
        ({"grid": {"k": 1}}, InputError, "got 1 for k"),
        ({"grid": {"k": []}}, InputError, "the grid has 0 points"),
        ({"grid": {"norm": ["sum"]}}, InputError, "rrf has no parameter norm"),
        ({"grid": {"k": range(3000)}}, InputError, "the grid has 3,000 points"),
        ({"grid": [1]}, InputError, "for the grid"),
        ({"folds": 1}, InputError, "cannot be split into 1 fold"),
        ({"folds": 31}, InputError, "choose from 2 to 30 folds"),
        ({"folds": 2.5}, InputError, "folds=2.5 is not valid"),
        ({"seed": "x"}, InputError, "seed='x' is not valid"),
        ({"train": ["never"]}, InputError, "none of the training queries is judged"),
        ({"train": list(QRELS)}, InputError, "no query is left to fuse"),
        ({"train": 7}, InputError, "got 7 for the queries"),
        ({"measure": "nDGC@10"}, UnknownName, "did you mean"),
        ({"measure": "NumRel"}, InputError, "no better direction"),
    ],
)
def test_impossible_tuning_is_refused(words, error, said):
    with pytest.raises(error, match=said):
        tune_fusion(QRELS, RUNS, **words)


def test_too_many_runs_for_a_grid_of_weights():
    with pytest.raises(InputError, match="are too many"):
        weight_grid(6)
    for wrong in (0, -0.1, 0.3, 2, math.nan):
        with pytest.raises(InputError, match="no grid of weights"):
            weight_grid(2, wrong)
    with pytest.raises(InputError, match="no grid of weights for 1 run "):
        weight_grid(1)


def test_one_judged_query_or_none_in_common_is_refused():
    with pytest.raises(InputError, match="judge more queries"):
        tune_fusion({"q01": {"d"}}, RUNS)
    with pytest.raises(MismatchError, match="no query in common"):
        tune_fusion({"x": {"d"}, "y": {"d"}}, RUNS)


def test_queries_without_judgments_get_the_best_of_the_grid_and_not_its_first():
    qrels = {f"q{n}": {"d1"} for n in range(6)}
    asked = [*qrels, "new"]
    good, bad = {q: ["d1", "x"] for q in asked}, {q: ["x", "d1"] for q in asked}
    grid = {"weights": [(0, 1), (1, 0)], "norm": ["rank"]}
    found = tune_fusion(qrels, {"g": good, "b": bad}, "RR", method="wsum", folds=2, grid=grid)
    assert list(found.run["new"]) == ["d1", "x"]
    assert any("1 query without judgments fused by wsum" in text for text in found.sentences)
