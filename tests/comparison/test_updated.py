"""Changes of a few queries of a comparison, compared with a new comparison of all values."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankgauge import Evaluation, InputError, UnknownName, compare
from rankgauge.comparison.differences import select

IDS = [f"q{n}" for n in range(30)]
RUNS = ("a", "b", "c")
MEASURES = ("nDCG@10", "GMAP", "FirstRel")
VALUES = st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.5, 0.9, 1.0, float("nan")])
KINDS = st.fixed_dictionaries(
    {},
    optional={
        "pairs": st.just("all"),
        "test": st.sampled_from(["t", "wilcoxon", "tukey-hsd"]),
        "interval": st.sampled_from(["t", "percentile", "bca"]),
    },
)


def evaluation_of(name, ids, values, undefined="zero"):
    """Return an evaluation of (Q, M) values."""
    columns = dict(zip(MEASURES, np.transpose(values).tolist(), strict=True))
    made = Evaluation.from_values(name, ids, columns)
    return replace(made, policies=replace(made.policies, undefined=undefined))


def same(updated, fresh):
    """Assert that two comparisons have the same numbers, verdicts, and sentences."""
    for one, other in zip(updated.differences, fresh.differences, strict=True):
        assert repr(one) == repr(other)  # not ==, because NaN differs from itself
    assert repr(updated.means()) == repr(fresh.means())
    assert (updated.sentences, updated.findings) == (fresh.sentences, fresh.findings)


@given(undefined=st.sampled_from(["zero", "skip"]), weighted=st.booleans(), data=st.data())
def test_changed_queries_have_the_numbers_of_a_new_comparison(undefined, weighted, data):
    seed = data.draw(st.integers(0, 5))
    rng = np.random.default_rng(seed)
    values = {name: rng.choice([0, 0.2, 0.5, 1, np.nan], (30, 3), p=[0.2, 0.3, 0.2, 0.2, 0.1]) for name in RUNS}
    weights = tuple(rng.integers(1, 4, 30).tolist()) if weighted else None
    kept = list(range(30)) if data.draw(st.booleans()) else list(range(0, 30, 2))  # a slice

    def all_of(changed):
        whole = [replace(evaluation_of(n, IDS, changed[n], undefined), weights=weights) for n in RUNS]
        return [select(evaluation, evaluation.measures, kept) for evaluation in whole]

    options = {"tested": MEASURES[:2], "draws": 100} | data.draw(KINDS)
    comparison = compare(all_of(values), **options)
    for _ in range(2):
        parts = []
        for name in data.draw(st.sets(st.sampled_from(RUNS), min_size=1)):
            rows = data.draw(st.lists(st.sampled_from(kept), min_size=1, max_size=2, unique=True))
            new = [data.draw(st.tuples(VALUES, VALUES, VALUES)) for _ in rows]
            values[name] = values[name].copy()
            values[name][rows] = new
            parts.append(evaluation_of(name, [IDS[row] for row in rows], new, undefined))
        comparison = comparison.updated(parts)
        same(comparison, compare(all_of(values), **options))


def test_a_change_corrected_by_max_t_has_the_numbers_of_a_new_comparison():
    values = np.random.default_rng(1).random((3, 30, 3))
    evaluations = [evaluation_of(name, IDS, own) for name, own in zip(RUNS, values, strict=True)]
    options = {"tested": MEASURES, "correction": "max-t", "draws": 300}
    changed = evaluation_of("b", ["q3"], [[0.0, 1.0, 0.25]])
    values[1, 3] = changed.per_query
    fresh = compare([evaluation_of(name, IDS, own) for name, own in zip(RUNS, values, strict=True)], **options)
    same(compare(evaluations, **options).updated([changed]), fresh)


def test_a_difference_larger_than_all_before_is_added_exactly():
    """The unit of the integers that are summed changes."""
    values = np.random.default_rng(2).random((2, 30, 3)) / 8
    evaluations = [evaluation_of(name, IDS, own) for name, own in zip(RUNS, values, strict=False)]
    changed = evaluation_of("b", ["q7"], [[1.0, 1.0, 1.0]])
    values[1, 7] = 1.0
    fresh = compare([evaluation_of(name, IDS, own) for name, own in zip(RUNS, values, strict=False)])
    same(compare(evaluations).updated([changed]), fresh)


def test_new_values_are_of_runs_queries_measures_and_policies_of_the_comparison():
    values = np.random.default_rng(3).random((2, 30, 3))
    comparison = compare([evaluation_of(name, IDS, own) for name, own in zip(RUNS, values, strict=False)])
    part = evaluation_of("b", ["q0"], values[:1, 0])
    with pytest.raises(UnknownName, match="unknown run 'z'"):
        comparison.updated([replace(part, run_name="z")])
    with pytest.raises(InputError, match="unknown queries 'q99'"):
        comparison.updated([replace(part, query_ids=("q99",))])
    with pytest.raises(InputError, match="other policies"):
        comparison.updated([replace(part, policies=replace(part.policies, undefined="skip"))])
    with pytest.raises(InputError, match="run 'b': FirstRel was not evaluated"):
        comparison.updated([Evaluation.from_values("b", ["q0"], {"nDCG@10": [1.0], "GMAP": [1.0]})])
