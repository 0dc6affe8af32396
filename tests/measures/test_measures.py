"""Every measure compared with independent implementations, and invariants of all measures."""

from __future__ import annotations

import ast
import inspect
import math
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles import ORACLES, Seen
from strategies import Batch, batch, batches, bound, by_loop, differs, few_scores, joined, many_scores, values

from rankgauge import Qrels, evaluate, list_measures, measures, parse
from rankgauge.core import native
from rankgauge.core.policies import Policies
from rankgauge.data.joined_blocks import Judgments, join_dicts
from rankgauge.measures.compiled import COMPILED_MEASURES, step_of
from rankgauge.measures.declaration import SPECIAL
from rankgauge.measures.measure import Measure

# Measures that read more than a grade have separate tests.
CATALOGUE = [bare for bare in list_measures() if bare.declaration.reads not in SPECIAL]
NAMES = [bare.name for bare in CATALOGUE]

# Values of each parameter, tested one at a time, with and without a cut-off.
_GRID: dict[str, tuple[Any, ...]] = {
    "among": ("retrieved",),
    "b": (2, 3.5, 10),
    "beta": (2, 0.5),
    "gain": ("exp", {1: 2, 2: 5, 3: 0.25}, {0: 1, 2: 0}),
    "goal": (0.5, 2, 3.5),
    "hit": (0.5,),
    "ideal": ("retrieved", "topk"),
    "judged_only": (True,),
    "k": (1, 2, 3, 5, 10, 20, 1000, "0.5R", "R", "1.7R"),
    "miss": (-2,),
    "mult": (0.05, *(fifth / 5 for fifth in range(1, 11)), 7),
    "noise": (-0.25,),
    "norm": ("min(k,R)", "k", "retrieved"),
    "normalize": (False,),
    "p": (0.5, 0.95),
    "points": ("nearest",),
    "recall": tuple(tenth / 10 for tenth in range(11)),
    "rel": (2, 3, 4, 5, "best"),
    "residual": (True,),
    "top": (5,),
}


def variants(bare: Measure) -> list[Measure]:
    """Return a measure with each value of each parameter."""
    base: dict[str, Any] = {word: {"k": 4, "mult": 0.5, "recall": 0.35}[word] for word in bare.declaration.required}
    found = [bare(**base)]
    for word in bare.declaration.words:
        for given_value in _GRID[word]:
            params = {**base, word: given_value}
            if given_value in {"k", "topk"} if isinstance(given_value, str) else False:
                params["k"] = 4
            found.append(bare(**params))
            if "k" in bare.declaration.words and word != "k":
                found.append(bare(**{**params, "k": 3}))
                found.append(bare(**{**params, "k": "0.5R"}))
            if "residual" in bare.declaration.words and word != "judged_only":
                residual = bare(residual=True)
                taken = {w: v for w, v in params.items() if w in residual.declaration.words}
                found.append(residual(**taken))
    return list(dict.fromkeys(found))


ALL_VARIANTS = [measure for bare in CATALOGUE for measure in variants(bare)]


class Case:
    """A joined batch, with every query in the form of the loops."""

    def __init__(self, made: Batch) -> None:
        self.made = made
        self.joined = joined(made.qrels, made.run)
        self.queries = self.joined.qrels.query_ids
        self.seen = [made.seen(query) for query in self.queries]

    def values(self, measure: Measure) -> list[float]:
        """Return the value of each query."""
        return values(self.joined, [measure])[:, 0].tolist()


@pytest.fixture(scope="module")
def whole_grades() -> Case:
    return Case(batch(20240229, queries=200, deepest=30))


@pytest.fixture(scope="module")
def float_grades() -> Case:
    return Case(batch(7, queries=120, grades=(-1, -2.5, 0, 0.5, 1, 1.5, 2, 2.25, 3.75, 4)))


@pytest.fixture(scope="module")
def few() -> Case:
    return Case(batch(99, queries=120, grades=(-1, 0, 0.5, 1, 2, 3, 4), deepest=25))


# ---- independent checks


def test_every_measure_has_a_loop_and_every_loop_a_measure() -> None:
    assert set(NAMES) == set(ORACLES)
    assert len(NAMES) >= 26


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["whole_grades", "float_grades"])
def test_a_measure_agrees_with_its_loop(name: str, kind: str, request: pytest.FixtureRequest) -> None:
    case: Case = request.getfixturevalue(kind)
    compared = 0
    for measure in variants(Measure(name)):
        for query, seen, ours in zip(case.queries, case.seen, case.values(measure), strict=True):
            theirs = by_loop(measure, seen)
            assert not differs(ours, theirs), f"{measure} of {query}: {ours!r}, loop {theirs!r}"
            compared += 1
    assert compared == len(variants(Measure(name))) * len(case.made.qrels) > 0


@given(batches(), st.tuples(*map(bound, CATALOGUE)))
def test_any_small_case_agrees_with_the_loops(made: Batch, chosen: tuple[Measure, ...]) -> None:
    found = values(joined(made.qrels, made.run), chosen)
    for row, query in enumerate(made.qrels):
        for column, measure in enumerate(chosen):
            ours, theirs = float(found[row, column]), by_loop(measure, made.seen(query))
            assert not differs(ours, theirs), f"{measure} of {query}: {ours!r}, loop {theirs!r}"


def reordered(made: Batch, query: str, ties: str) -> Seen:
    """Return a query with equal scores in descending order of grade, unjudged documents last; if worst, reversed."""
    sign, grades = (-1 if ties == "best" else 1), made.qrels[query]

    def key(doc: str) -> tuple[float, float]:
        return -made.run[query][doc], sign * grades.get(doc, -math.inf)

    return Seen(sorted(made.run[query], key=key), grades)


@pytest.mark.skipif(native.core is None, reason="the compiled core was not built")
@pytest.mark.parametrize("ties", ["trec", "best", "worst"])
@pytest.mark.parametrize("grades", [(-1, 0, 0, 1, 1, 2, 3, 4), (-2.5, -1, 0, 0.5, 1, 1.5, 2, 2.25, 3.75, 4)], ids=str)
def test_the_compiled_core_agrees_with_the_loops(grades: tuple[float, ...], ties: str) -> None:
    made = batch(5, queries=20, grades=grades, deepest=20)
    asked = [measure for measure in ALL_VARIANTS if step_of(measure)]
    assert {measure.name for measure in asked} == COMPILED_MEASURES
    qrels = Qrels.of(made.qrels)
    assert join_dicts(made.run, Judgments(qrels, qrels, Policies(ties=ties))) is not None
    found = evaluate(made.qrels, made.run, asked, ties=ties)
    for query in made.run.keys() & made.qrels.keys():
        seen = made.seen(query) if ties == "trec" else reordered(made, query, ties)
        for measure in asked:
            ours, theirs = found.value(query, measure), by_loop(measure, seen)
            assert not differs(ours, theirs), f"{measure} of {query}: {ours!r}, loop {theirs!r}"


# ---- invariants


@given(batches(), st.tuples(*map(bound, CATALOGUE)))
def test_values_stay_within_the_declared_bounds(made: Batch, chosen: tuple[Measure, ...]) -> None:
    found = values(joined(made.qrels, made.run), chosen)
    for column, measure in enumerate(chosen):
        if measure.name == "nDCG" and measure.ideal == "topk":
            continue  # its ideal ranking depends on the ranking, see the next test
        low, high = measure.declaration.bounds
        known = found[:, column][~np.isnan(found[:, column])]
        # One ulp above 1 can result from adding the same numbers in another order.
        assert (known >= low).all()
        assert (known <= high * (1 + 1e-12)).all()


@given(batches(), bound(Measure("nDCG")))
def test_an_ideal_of_what_was_retrieved_never_lowers_the_value(made: Batch, chosen: Measure) -> None:
    chosen = chosen(k=5)
    found = joined(made.qrels, made.run)
    honest, retrieved, topk = values(found, [chosen(ideal=ideal) for ideal in ("judged", "retrieved", "topk")]).T
    known = ~np.isnan(honest)
    assert (np.isnan(retrieved) == ~known).all()
    assert (np.isnan(topk) == ~known).all()
    assert (honest[known] <= retrieved[known] + 1e-12).all()
    assert (retrieved[known] <= topk[known] + 1e-12).all()
    assert (topk[known] <= 1 + 1e-12).all()


def test_each_query_is_independent_of_the_others(whole_grades: Case) -> None:
    """Neighbors and padding change nothing, not even the last bit."""
    together = values(whole_grades.joined, ALL_VARIANTS)
    made = whole_grades.made
    for row in range(3, len(whole_grades.queries), 50):
        query = whole_grades.queries[row]
        run = {query: made.run.get(query, {}), "other": {"d": 1.0}}
        alone = values(joined({query: made.qrels[query]}, run), ALL_VARIANTS)
        assert np.array_equal(alone[0], together[row], equal_nan=True), query


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "cells"), [("few", 1), ("few", 7), ("few", 50), ("whole_grades", 900), ("whole_grades", 10**9)]
)
def test_any_cut_into_blocks_gives_the_same_bits(kind: str, cells: int, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue(kind).joined
    wanted = values(found, ALL_VARIANTS)
    assert np.array_equal(values(found, ALL_VARIANTS, cells=cells), wanted, equal_nan=True)


@pytest.mark.slow
@given(batches(), st.tuples(*map(bound, CATALOGUE)), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(made: Batch, chosen: tuple[Measure, ...], rng: random.Random) -> None:
    wanted = values(joined(made.qrels, made.run), chosen)
    rows = list(made.qrels)
    rng.shuffle(rows)
    qrels = {query: _shuffled(made.qrels[query], rng) for query in rows}
    run = {query: _shuffled(scores, rng) for query, scores in _shuffled(made.run, rng).items()}
    found = values(joined(qrels, run), chosen)
    back = [rows.index(query) for query in made.qrels]
    assert np.array_equal(found[back], wanted, equal_nan=True)


def _shuffled(given_dict: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    items = list(given_dict.items())
    rng.shuffle(items)
    return dict(items)


@pytest.mark.slow
@given(batches(scores=many_scores), st.tuples(*map(bound, CATALOGUE)))
def test_other_ids_change_nothing_where_there_is_no_tie(made: Batch, chosen: tuple[Measure, ...]) -> None:
    # Without ties, whatever the scores were.
    run = {
        query: {doc: scores[doc] + place for place, doc in enumerate(sorted(scores, key=scores.__getitem__))}
        for query, scores in made.run.items()
    }
    names: dict[str, str] = {}
    for pairs in (*made.qrels.values(), *run.values()):
        for doc in pairs:
            names.setdefault(doc, f"{hash_like(doc)}-{len(names)}")
    other_qrels = _renamed(made.qrels, names)
    other_run = _renamed(run, names)
    wanted = values(joined(made.qrels, run), chosen)
    found = values(joined(other_qrels, other_run), chosen)
    assert np.array_equal(found, wanted, equal_nan=True)


def hash_like(doc: str) -> int:
    """Return a number that orders ids differently."""
    return sum((place + 1) * byte for place, byte in enumerate(doc.encode())) * 7919 % 1009


def _renamed(given_pairs: dict[str, dict[str, float]], names: dict[str, str]) -> dict[str, dict[str, float]]:
    return {query: {names[doc]: number for doc, number in pairs.items()} for query, pairs in given_pairs.items()}


@pytest.mark.slow
@given(
    batches(scores=few_scores),
    st.tuples(*map(bound, CATALOGUE)),
    st.sampled_from((-1024.0, -3.0, 0.5, 2.0**30)),
    st.sampled_from((0.5, 1.0, 4.0)),
)
def test_exact_shifts_and_scales_of_the_scores_change_nothing(
    made: Batch, chosen: tuple[Measure, ...], shift: float, scale: float
) -> None:
    run = {query: {doc: score * scale + shift for doc, score in scores.items()} for query, scores in made.run.items()}
    wanted = values(joined(made.qrels, made.run), chosen)
    assert np.array_equal(values(joined(made.qrels, run), chosen), wanted, equal_nan=True)


@given(batches(), st.integers(1, 8))
def test_a_longer_look_never_finds_less(made: Batch, k: int) -> None:
    found = joined(made.qrels, made.run)
    for name in ("R", "Success", "NumRelRet", "DCG", "ERR", "RBP", "RR", "AP"):
        bare = Measure(name)
        less, more = values(found, [bare @ k, bare @ (k + 1)]).T
        # >= is False for NaN: both values are undefined, or neither is.
        assert ((more >= less) | (np.isnan(less) & np.isnan(more))).all(), name


@pytest.mark.slow
@given(batches(), st.tuples(*map(bound, CATALOGUE)))
def test_judged_only_is_to_remove_the_documents_beforehand(made: Batch, chosen: tuple[Measure, ...]) -> None:
    only = [measure(judged_only=True) for measure in chosen if "judged_only" in measure.declaration.words]
    assert len(only) > 15
    run = {
        query: {doc: score for doc, score in scores.items() if made.qrels.get(query, {}).get(doc, -1) >= 0}
        for query, scores in made.run.items()
    }
    wanted = values(joined(made.qrels, run), [measure(judged_only=False) for measure in only])
    found = values(joined(made.qrels, made.run), only)
    assert np.array_equal(found, wanted, equal_nan=True)


@given(batches(), st.sampled_from((0.2, 0.8, 0.95)), st.integers(1, 9))
def test_rbp_and_its_residual_bound_what_is_not_known(made: Batch, p: float, k: int) -> None:
    """The residual is the increase of the value if all unjudged documents are relevant."""
    found = joined(made.qrels, made.run)
    low, residual = values(found, [Measure("RBP")(p=p, k=k), parse("RBPres")(p=p, k=k)]).T
    hopeful = {
        query: {
            **dict.fromkeys(made.run.get(query, {}), 1),
            **{doc: grade for doc, grade in grades.items() if grade >= 0},
        }
        for query, grades in made.qrels.items()
    }
    high = values(joined(hopeful, made.run), [Measure("RBP")(p=p, k=k)])[:, 0]
    looked_at = values(found, [Measure("NumRet")()])[:, 0]
    below = p ** np.minimum(looked_at, k)
    assert np.allclose(low + residual, high + below, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_a_name_is_read_back_as_the_same_measure(name: str, data: st.DataObject) -> None:
    measure = data.draw(bound(Measure(name)))
    assert parse(str(measure)) == measure
    assert hash(parse(str(measure))) == hash(measure)
    assert parse(str(measure)).params == measure.params


# ---- undefined values


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_says_whether_a_value_may_be_undefined(name: str, few: Case) -> None:
    doc = inspect.getdoc(Measure(name).declaration.kernel) or ""
    # A cut-off relative to R is undefined without a relevant document, as the description of `k` says.
    absolute = [m for m in variants(Measure(name)) if not isinstance(m.arguments.get("k"), str)]
    undefined = [math.isnan(ours) for m in absolute for ours in few.values(m)]
    assert any(undefined) == ("ndefined" in doc)


def test_an_empty_ranking_counts_as_0_or_is_undefined_but_never_more() -> None:
    found = joined({"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}, {"q2": {"d1": 1.0}})
    for measure in ALL_VARIANTS:
        missing = float(values(found, [measure])[0, 0])
        if measure.name == "NumRel":
            assert missing == (1 if measure.rel == "best" or float(str(measure.rel)) <= 2 else 0)
        elif measure.arguments.get("residual"):
            assert missing == pytest.approx(1, abs=1e-12)
        elif measure.name == "YAAP":
            assert missing < 0 or math.isnan(missing)
        elif measure.name == "Utility":
            # Missed documents have a cost, too.
            assert missing <= 0
        else:
            assert missing == 0 or math.isnan(missing), measure


# ---- means


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_mean_is_arithmetic_geometric_or_a_sum_as_declared(given_values: list[float]) -> None:
    for bare in CATALOGUE:
        found = bare.mean(given_values)
        if bare.declaration.mean == "arithmetic":
            wanted = math.fsum(given_values) / len(given_values)
        elif bare.declaration.mean == "sum":
            wanted = math.fsum(given_values)
        else:
            product = math.fsum(math.log(max(value, 0.00001)) for value in given_values)
            wanted = math.exp(product / len(given_values))
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-15)
    assert {bare.name for bare in CATALOGUE if bare.declaration.mean == "geometric"} == {"GMAP", "GMBpref"}
    assert {bare.name for bare in CATALOGUE if bare.declaration.mean == "sum"} == {
        "NumNonrelRet",
        "NumRel",
        "NumRelRet",
        "NumRet",
    }


# ---- summation in kernels


def _kernels() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(Path(inspect.getfile(measures)).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path.name, node


def test_kernels_add_floats_only_from_left_to_right() -> None:
    """Other sums of NumPy add in an order that depends on the padding: see JudgedRun.total."""
    banned = {
        "average",
        "convolve",
        "correlate",
        "dot",
        "einsum",
        "inner",
        "matmul",
        "mean",
        "nanmean",
        "nansum",
        "outer",
        "reduce",
        "reduceat",
        "std",
        "sum",
        "tensordot",
        "trace",
        "trapezoid",
        "var",
        "vdot",
        "vecdot",
    }
    files = set()
    for name, node in _kernels():
        files.add(name)
        # measure.py declares and averages: `Measure.mean` uses fsum, and `measure @ k` is an
        # operator.
        declares = name == "measure.py"
        if isinstance(node, ast.BinOp | ast.AugAssign):
            assert declares or not isinstance(node.op, ast.MatMult), f"{name}:{node.lineno}: @"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            own = declares and called == "mean"
            assert own or called not in banned, f"{name}:{node.lineno}: {called}()"
    assert files >= {"binary.py", "graded.py", "measure.py", "incomplete.py"}


def test_the_discount_of_g_between_whole_numbers_is_that_of_the_definition() -> None:
    """Gains that are not whole numbers give costs between ranks, outside the table of discounts."""
    found = joined({"q": {"a": 2, "b": 1}}, {"q": {"b": 2.0, "a": 1.0}})
    ours = float(values(found, [parse("G(gain={1:0.5})")])[0, 0])
    wanted = (0.5 / math.log2(2 + 1.5) + 2 / math.log2(2 + 0.5)) / 2.5
    assert ours == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("name", ["nDCG@10", "RR(rel=2)", "alpha_nDCG@20"])
def test_a_measure_is_one_object(name):
    measure = parse(name)
    assert pickle.loads(pickle.dumps(measure)) is measure
    assert Measure(measure.name, measure.params) is measure is parse(f" {name} ")
