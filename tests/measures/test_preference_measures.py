"""Preference measures compared with every value distributed with trec_eval, and slow loops."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import preferred
import pytest
from oracles import ranked

from rankgauge import PreferenceQrels, Qrels, evaluate, list_measures, parse, read_run
from rankgauge.data.join import join
from rankgauge.data.run import Run

# By their names in trec_eval, which the loops use, too.
NAMES = [name for bare in list_measures() if bare.declaration.reads == "preferences" for name in bare.declaration.trec]
SHARES = [name for name in NAMES if "num" not in name]


# ---- trec_eval


def _expected(path: Path) -> dict[str, dict[str, float]]:
    """Return its output by measure and query."""
    found: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, query, value = line.split()
        if name.startswith("prefs"):
            found.setdefault(name, {})[query] = float(value)
    return found


def _other_way_round(path: Path) -> dict[str, list[str]]:
    """Return the rankings of a run with ties by ascending id, the order of trec_eval only here."""
    run = read_run(path)
    return {q: sorted(run[q], key=lambda d, own=run[q]: (-own[d], d)) for q in run}


FILES = [
    pytest.param("prefs.test", "prefs.results.test", "out.test.prefs", 24, id="prefs"),
    pytest.param("prefs.test", "prefs.results.test", "v9.0.8/out.test.prefs", 24, id="prefs-9.0.8"),
    pytest.param("qrels.test", "results.test", "out.test.qrels_prefs", 3, id="qrels"),
    pytest.param("qrels.test", "results.test", "v9.0.8/out.test.qrels_prefs", 3, id="qrels-9.0.8"),
]


@pytest.mark.parametrize(("judgments", "run", "output", "queries"), FILES)
def test_every_number_that_comes_with_trec_eval(
    judgments: str, run: str, output: str, queries: int, data_folder: Path
) -> None:
    folder = data_folder / "trec-eval-sample"
    expected = _expected(folder / output)
    assert set(expected) == set(NAMES)
    found = evaluate(folder / judgments, _other_way_round(folder / run), list(expected), queries="intersection")
    assert len(found.query_ids) == queries
    for column, name in enumerate(expected):
        ours = dict(zip(found.query_ids, found.per_query[:, column].tolist(), strict=True))
        ours["all"] = found.mean()[str(parse(name))]
        for query, theirs in expected[name].items():
            # It prints 0 for undefined values.
            value = 0.0 if math.isnan(ours[query]) else ours[query]
            assert value == pytest.approx(theirs, abs=5.1e-5), (name, query)


def test_ties_are_ordered_as_by_other_measures_with_a_note(data_folder: Path) -> None:
    """The one exception: trec_eval orders ids ascending in these measures, descending in others."""
    folder = data_folder / "trec-eval-sample"
    asked = ["prefs_num_prefs_ful_ret", "prefs_simp"]
    found = evaluate(folder / "qrels.test", folder / "results.test", asked, queries="intersection")
    assert found.per_query[:, 0].tolist() == [7340, 9031, 1494]
    assert found.counts["tied"] == 1


# ---- the loops


@pytest.mark.parametrize("name", NAMES)
def test_a_measure_agrees_with_its_loop(name: str) -> None:
    judged, run = preferred.batch(1, queries=150)
    found = evaluate(PreferenceQrels.of(judged), run, name)
    compared = 0
    for query, ours in zip(found.query_ids, found.per_query[:, 0].tolist(), strict=True):
        theirs = preferred.value(name, ranked(run.get(query, {})), judged[query])
        assert math.isnan(ours) if theirs is None else ours == pytest.approx(theirs, rel=1e-12)
        compared += theirs is not None
    assert compared > 40


@pytest.mark.parametrize("name", NAMES)
def test_ordinary_judgments_agree_with_the_loop(name: str) -> None:
    rng = random.Random(2)
    judged = {f"q{n}": {f"d{d}": rng.choice((-1, 0, 0, 1, 2)) for d in range(9)} for n in range(40)}
    run = {q: {f"d{d}": rng.randint(0, 4) for d in rng.sample(range(14), 8)} for q in judged}
    found = evaluate(judged, run, name).per_query[:, 0].tolist()
    for query, ours in zip(judged, found, strict=True):
        theirs = preferred.value(name, ranked(run[query]), {"0": {"0": judged[query]}})
        assert math.isnan(ours) if theirs is None else ours == pytest.approx(theirs, rel=1e-12)


# ---- invariants


def test_any_cut_into_blocks_and_any_order_gives_the_same_bits() -> None:
    judged, run = preferred.batch(3)
    whole, found = PreferenceQrels.of(judged), Run.of(run)
    wanted = evaluate(whole, run, NAMES)
    joined = join(whole.qrels, found, ties="trec")
    for cells in (1, 60, 10**9):
        for places, block in whole.blocks(joined, np.arange(len(whole)), cells=cells):
            for column, measure in enumerate(wanted.measures):
                rows = measure.values(block)
                assert np.array_equal(rows, wanted.per_query[places, column], equal_nan=True)
    rows_of = [
        (q, g, s, d, grade)
        for q, groups in judged.items()
        for g, own in groups.items()
        for s, docs in own.items()
        for d, grade in docs.items()
    ]
    random.Random(1).shuffle(rows_of)
    other = evaluate(PreferenceQrels.of(rows_of), run, NAMES)
    back = [other.query_ids.index(query) for query in judged]
    assert np.array_equal(other.per_query[back], wanted.per_query, equal_nan=True)


def test_a_name_of_trec_eval_is_read_and_written() -> None:
    assert len(NAMES) == 14
    for name in NAMES:
        measure = parse(name)
        assert measure.trec_name() == name
        assert parse(str(measure)) == measure
    assert parse("prefs_pair_imp") == parse("Prefs(count=pairs,scope=any)")


def test_a_count_that_trec_eval_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="has no scope=any"):
        evaluate({"q": {"a": 1, "b": 0}}, {"q": ["a"]}, "Prefs(count=balanced,scope=any)")


def test_only_the_order_of_grades_matters_and_whether_they_are_0() -> None:
    judged, run = preferred.batch(4)
    other = {
        q: {
            g: {s: {d: grade**3 * 7 for d, grade in docs.items()} for s, docs in own.items()}
            for g, own in groups.items()
        }
        for q, groups in judged.items()
    }
    found = [evaluate(PreferenceQrels.of(one), run, NAMES).per_query for one in (judged, other)]
    assert np.array_equal(*found, equal_nan=True)


def test_values_stay_in_their_bounds_and_a_perfect_ranking_keeps_all() -> None:
    judged, run = preferred.batch(5)
    found = evaluate(PreferenceQrels.of(judged), run, SHARES).per_query
    assert (np.isnan(found) | ((found >= 0) & (found <= 1))).all()
    grades = {"q": {"a": 3, "b": 2, "c": 1, "d": 0}}
    mean = evaluate(grades, {"q": ["a", "b", "x", "c", "d"]}, SHARES).mean()
    assert set(mean.values()) == {1.0}
    turned = evaluate(grades, {"q": ["d", "c", "b", "a"]}, ["prefs_simp", "prefs_pair"]).mean()
    assert set(turned.values()) == {0.0}


def test_values_agree_with_manual_calculations() -> None:
    """Ann: a over b, a over c; Bob: b over a. The run has b, then a; c is missing."""
    judged: Mapping[str, Any] = {"q": {"ann": {"a": 1, "b": 0, "c": 0}, "bob": {"b": 2, "a": 1}}}
    values = evaluate(PreferenceQrels.of(judged), {"q": ["b", "a"]}, NAMES).per_query[0]
    found = dict(zip(NAMES, values.tolist(), strict=True))
    assert found["prefs_num_prefs_poss"] == 3
    assert found["prefs_num_prefs_ful"] == 2
    assert found["prefs_num_prefs_ful_ret"] == 1
    assert found["prefs_simp"] == found["prefs_simp_imp"] == pytest.approx(2 / 3)
    assert found["prefs_simp_ret"] == 1 / 2
    # One of the two preferences on a and b is satisfied, and the only one on a and c.
    assert found["prefs_pair"] == 3 / 4
    assert found["prefs_pair_ret"] == 1 / 2
    assert found["prefs_avgjg"] == (1 / 2 + 1) / 2


def test_a_preference_implied_by_two_sub_groups_counts() -> None:
    judged = {"q": {"g": {"1": {"a": 2, "b": 1}, "2": {"b": 9, "c": 3}}}}
    asked = ["prefs_num_prefs_poss", "prefs_simp"]
    assert evaluate(PreferenceQrels.of(judged), {"q": ["a", "c", "b"]}, asked).mean() == {
        "NumPrefs": 3,
        "Prefs": pytest.approx(2 / 3),
    }


def test_a_tie_counts_where_it_could_change_a_value() -> None:
    judged = PreferenceQrels.of({"q": {"g": {"a": 1, "b": 1, "c": 0, "n": -1}}})
    for docs, tied in (("ab", 0), ("ac", 1), ("an", 0), ("ax", 0), ("acx", 1), ("cx", 0)):
        run = {"q": dict.fromkeys(docs, 1.0)}
        assert evaluate(judged, run, "prefs_simp").counts["tied"] == tied


def test_ordinary_measures_can_be_combined_with_them() -> None:
    judged = {"q": {"ann": {"a": 1, "b": 0}, "bob": {"b": 2, "c": 1}}}
    found = evaluate(PreferenceQrels.of(judged), {"q": ["a", "c"]}, ["prefs_simp", "AP", "nDCG@2"])
    alone = evaluate(Qrels.of({"q": {"a": 1, "b": 2, "c": 1}}), {"q": ["a", "c"]}, ["AP", "nDCG@2"])
    assert found.per_query[:, 1:].tolist() == alone.per_query.tolist()
    assert any("judged by preference" in note for note in found.notes)
