"""Each run without its own judgments, compared with plain loops and manual examples."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles import Seen, ranked
from scipy import stats
from strategies import by_loop

from rankgauge import InputError, Qrels, RankgaugeError, Run, parse, reliability, write_run
from rankgauge.data import joined_blocks
from rankgauge.data.join import join
from rankgauge.evaluation.sensitivity import kendall_tau
from rankgauge.formats import fast_trec
from rankgauge.reports import render

MEASURES = [parse("AP"), parse("nDCG@5"), parse("FirstRel")]
QUERIES = [f"q{n}" for n in range(12)]


def _collection(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return runs of the same documents in different orders; judged are the first six of any."""
    rng = random.Random(seed)
    docs = [f"d{n}" for n in range(30)]
    runs = {
        name: {q: {doc: rng.choice((0.5, rng.random())) for doc in rng.sample(docs, 12)} for q in QUERIES}
        for name in ("a", "b", "c", "d")
    }
    qrels = {}
    for q in QUERIES:
        pool = {doc for run in runs.values() for doc in ranked(run[q])[:6]}
        qrels[q] = {doc: rng.choice((0, 0, 1, 2)) for doc in sorted(pool)}
    return qrels, runs


def _mean(measure: Any, qrels: dict[str, Any], run: dict[str, Any]) -> float:
    values = [by_loop(measure, Seen(ranked(run[q]), qrels[q])) for q in QUERIES]
    if measure.declaration.undefined == "skip":
        values = [value for value in values if value is not None]
    return sum(value or 0.0 for value in values) / len(values)


@pytest.mark.parametrize("depth", [6, 3, None], ids=str)
@pytest.mark.parametrize("groups", [None, {"a": "x", "b": "x", "c": "y", "d": "z"}], ids=str)
def test_a_run_is_measured_without_what_only_it_brought(depth: Any, groups: Any) -> None:
    qrels, runs = _collection(3)
    group_of = groups or {name: name for name in runs}
    found = reliability(qrels, runs, MEASURES, k=depth, groups=groups)
    assert [run.run for run in found.runs] == list(runs)
    seen = 0
    for one in found.runs:
        mine = [r for n, r in runs.items() if group_of[n] == group_of[one.run]]
        others = [r for n, r in runs.items() if group_of[n] != group_of[one.run]]
        reduced, gone = {}, []
        for q in QUERIES:
            top = {doc for run in mine for doc in ranked(run[q])[:depth]}
            rest = {doc for run in others for doc in ranked(run[q])[:depth]}
            gone += [grade for doc, grade in qrels[q].items() if doc in top - rest]
            reduced[q] = {d: grade for d, grade in qrels[q].items() if d not in top - rest}
        assert (one.judgments, one.relevant) == (len(gone), sum(grade >= 1 for grade in gone))
        seen += one.judgments
        for column, measure in enumerate(MEASURES):
            assert one.values[column] == pytest.approx(_mean(measure, qrels, runs[one.run]))
            assert one.without[column] == pytest.approx(_mean(measure, reduced, runs[one.run]))
            sign = -1 if measure.name == "FirstRel" else 1
            for judged, place in ((qrels, one.ranks), (reduced, one.ranks_without)):
                mean = _mean(measure, judged, runs[one.run])
                above = sum(sign * (_mean(measure, judged, r) - mean) > 1e-12 for r in runs.values())
                assert place[column] == 1 + above
    assert seen or depth is None


def test_tau_and_the_largest_change_describe_the_order_of_the_runs() -> None:
    qrels, runs = _collection(4)
    found = reliability(qrels, runs, MEASURES, k=6)
    for column, measure in enumerate(MEASURES):
        one, other = ([getattr(r, part)[column] for r in found.runs] for part in ("values", "without"))
        assert found.tau[measure] == pytest.approx(stats.kendalltau(one, other).statistic)
        name, change = found.largest_change(measure)
        changes = {r.run: r.without[column] - r.values[column] for r in found.runs}
        assert abs(change) == max(map(abs, changes.values()))
        assert changes[name] == change
    assert sum("Kendall's tau" in note for note in found.table().notes) == len(MEASURES)
    assert len(found.table().rows) == len(MEASURES) * len(runs)
    assert "own judgments" in render(found, "markdown")


def test_runs_that_change_places_are_named_and_tau_is_not_rounded_to_1() -> None:
    queries = [f"q{n:03}" for n in range(100)]
    judged = {query: {"d": 1, "own": 1} for query in queries}
    runs = {f"r{n:03}": {query: ["d"] for query in queries[:n]} for n in range(1, 101)}
    runs["r099"][queries[99]] = ["x", "d"]
    # Run 50 is better than run 51 (0.515 > 0.51) only by judgments that it contributed.
    runs["r050"] |= {query: ["x", "own"] for query in queries[60:63]}
    found = reliability(judged, runs, "RR")
    (tau,) = found.tau.values()
    one, other = zip(*((run.values[0], run.without[0]) for run in found.runs), strict=True)
    assert tau == pytest.approx(stats.kendalltau(one, other).statistic)
    assert f"{tau:.3f}" == "1.000"
    (note,) = (note for note in found.notes if "tau" in note)
    assert "tau >0.999 between" in note
    assert "order changes: r050 and r051; rank changes: r050 (50 → 51)" in note


def test_judgments_that_no_run_brought_stay_and_are_counted() -> None:
    qrels = {"q": {"d1": 1, "away": 1}}
    found = reliability(qrels, {"a": {"q": ["d1"]}, "b": {"q": ["d2"]}}, "R@5")
    assert [(run.values, run.without) for run in found.runs] == [((0.5,), (0.0,)), ((0.0,), (0.0,))]
    assert "1 of 2 judgments comes from none of these runs" in found.notes


def test_documents_found_by_all_runs_do_not_change_values() -> None:
    run = {"q": ["d1", "d2"]}
    found = reliability({"q": {"d1": 1, "d2": 2}}, {"a": run, "b": run}, "nDCG")
    assert all(one.judgments == 0 and one.values == one.without for one in found.runs)
    # Two runs with equal values have no order.
    assert np.isnan(found.tau[parse("nDCG")])


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ({"a": {"q": ["d"]}}, {}),
        ({}, {}),
        ({"a": {"q": ["d"]}, "b": {"q": ["d"]}}, {"groups": {"a": "x", "b": "x"}}),
        ({"a": {"q": ["d"]}, "b": {"q": ["d"]}}, {"groups": {"a": "x"}}),
        ([{"q": ["d"]}, {"q": ["d"]}], {}),
        ({"a": {"q": ["d"]}, "b": {"q": ["d"]}}, {"k": 0}),
    ],
    ids=["one run", "none", "one group", "no group", "one name", "k 0"],
)
def test_impossible_reliability_is_refused(runs: Any, words: dict[str, Any]) -> None:
    with pytest.raises(RankgaugeError):
        reliability({"q": {"d": 1}}, runs, "P@1", **words)


def test_the_largest_change_of_another_measure_is_refused() -> None:
    found = reliability({"q": {"d": 1}}, {"a": {"q": ["d"]}, "b": {"q": ["d"]}}, "P@1")
    with pytest.raises(InputError, match="was not evaluated"):
        found.largest_change("AP")


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_tau_is_that_of_scipy(pairs: list[tuple[int, int]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    tau = kendall_tau(one, other)
    if len(set(one)) < 2 or len(set(other)) < 2:
        assert np.isnan(tau)
    else:
        assert tau == pytest.approx(stats.kendalltau(one, other).statistic)


@pytest.mark.parametrize("queries", ["all", "intersection", QUERIES[1:]], ids=str)
@pytest.mark.parametrize("groups", [None, {"a": "x", "b": "x", "c": "y", "d": "z"}])
def test_runs_in_files_are_left_out_as_runs_in_memory(groups, queries, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(fast_trec, "_BLOCK", 1500)
    monkeypatch.setattr(fast_trec, "_PIECE", 300)
    monkeypatch.setattr(joined_blocks, "_AT_ONCE", 8)
    qrels, runs = _collection(3)
    runs["b"] = {query: runs["b"][query] for query in QUERIES[2:]}
    paths = {name: tmp_path / f"{name}.run" for name in runs}
    for name, run in runs.items():
        write_run(Run.of(run, name=name), paths[name])
    measures = [*MEASURES, "NumRel"]
    found = reliability(qrels, paths, measures, k=4, groups=groups, queries=queries).to_dict()
    assert found == reliability(qrels, runs, measures, k=4, groups=groups, queries=queries).to_dict()
    if queries == "all":
        empty = {name: {query: run.get(query, {}) for query in QUERIES} for name, run in runs.items()}
        assert found == reliability(qrels, empty, measures, k=4, groups=groups).to_dict()


def test_queries_without_results_have_fewer_relevant_documents_too() -> None:
    qrels = {"q1": {"d1": 1, "d2": 1, "d3": 1}, "q2": {"d1": 1, "d3": 1}}
    whole = {"q1": ["d1", "d3"], "q2": ["d1", "d3"]}
    runs = {"a": whole, "b": {"q1": ["d1", "d2"]}, "c": {"q1": ["d3"], "q2": ["d3"]}}
    found = reliability(qrels, runs, ["RR", "NumRel"], groups={"a": "x", "b": "x", "c": "y"})
    first, second, _ = found.runs
    assert (first.values, first.without) == ((1.0, 5.0), (0.5, 2.0))
    assert (second.values, second.without) == ((0.5, 5.0), (0.0, 2.0))


def test_a_join_with_fewer_judgments_is_that_of_these_judgments() -> None:
    qrels, runs = _collection(3)
    truth, run = Qrels.of(qrels), Run.of(runs["a"])
    kept = np.arange(len(truth.table)) % 3 > 0
    fewer = Qrels(truth.table.keep(np.flatnonzero(kept)))
    found, expected = join(truth, run, ties="trec").of_judgments(fewer, kept), join(fewer, run, ties="trec")
    assert found.qrels is fewer
    for name in ("numbers", "offsets", "rank", "tie_first", "tie_last", "grade", "retrieved", "rows"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
