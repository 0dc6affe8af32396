"""Means over all orders of ties, compared with enumeration and with random orders."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles import Seen
from strategies import Batch, batches, bound, by_loop, few_scores, joined

from rankgauge import evaluate, list_measures, parse
from rankgauge.measures.declaration import SPECIAL
from rankgauge.measures.measure import Measure

CATALOGUE = [bare for bare in list_measures() if bare.declaration.reads not in SPECIAL]
# Largest number of orders to enumerate; above that a batch would take minutes.
_MOST = 800


def _closed(measure: Measure) -> bool:
    return measure.has_tie_mean


def orders(scores: dict[str, float]) -> Iterator[list[str]]:
    """Yield every order of a ranking: all permutations within groups of equal scores."""
    groups = [[doc for doc in scores if scores[doc] == score] for score in sorted(set(scores.values()), reverse=True)]
    for chosen in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield list(itertools.chain.from_iterable(chosen))


def how_many(scores: dict[str, float]) -> int:
    """Return the number of orders."""
    found = list(scores.values())
    return math.prod(math.factorial(found.count(score)) for score in set(found))


def by_hand(measure: Measure, scores: dict[str, float], grades: dict[str, float]) -> float:
    """Return the mean of the loop over all orders, NaN if undefined."""
    found = [by_loop(measure, Seen(order, grades)) for order in orders(scores)]
    known = [value for value in found if value is not None]
    # The order of equal scores never determines whether a value is defined.
    assert len(known) in {0, len(found)}
    return math.fsum(known) / len(known) if known else math.nan


def means(made: Batch, chosen: list[Measure]) -> np.ndarray:
    """Return (Q, M) means over all orders."""
    found = evaluate(made.qrels, made.run, chosen, ties="mean")
    return found.per_query


def tied(seed: int, queries: int = 30, deepest: int = 9, judged: float = 0.7) -> Batch:
    """Return queries of few documents with one to three scores, and not too many orders."""
    rng = random.Random(seed)
    qrels: dict[str, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    while len(qrels) < queries:
        query = f"q{len(qrels)}"
        docs = [f"d{number}" for number in range(rng.randint(1, deepest))]
        levels = rng.choice((1, 2, 3, 4))
        scores = {doc: float(rng.randrange(levels)) for doc in docs}
        if how_many(scores) > _MOST:
            continue
        grades = {doc: float(rng.choice((-1, 0, 0, 1, 1, 2, 3))) for doc in docs if rng.random() < judged}
        grades.update({f"never{n}": 1.0 for n in range(rng.choice((0, 0, 1, 2)))})
        qrels[query] = grades or {"never": 1.0}
        run[query] = scores
    return Batch(qrels, run)


def variants(bare: Measure) -> list[Measure]:
    """Return a measure with relevant parameters, except those without a closed form."""
    grid: dict[str, tuple[Any, ...]] = {
        "k": (None, 1, 2, 3, 5, 20, "0.7R"),
        "rel": (1, 2),
        "gain": ("linear", "exp", {0: 1, 1: 5, 2: 0.5}),
        "ideal": ("judged", "retrieved", "topk"),
        "norm": ("R", "min(k,R)", "k", "retrieved"),
        "p": (0.5, 0.95),
        "judged_only": (False, True),
        "beta": (1, 2),
        "mult": (0.4, 1, 1.6),
        "goal": (0.4, 2),
        "top": (3, 5),
        "residual": (False, True),
    }
    declared = bare.declaration
    words = [word for word in grid if word in declared.words]
    found = []
    for chosen in itertools.product(*(grid[word] for word in words)):
        params = dict(zip(words, chosen, strict=True))
        if params.get("k", 1) is None:
            del params["k"]
        needs = params.get("norm") in {"k", "min(k,R)"} or params.get("ideal") == "topk"
        if ("k" in declared.required or needs) and "k" not in params:
            continue
        taken = declared.variant(params).words
        found.append(bare(**{word: value for word, value in params.items() if word in taken}))
    return [measure for measure in dict.fromkeys(found) if _closed(measure)]


CLOSED = [bare.name for bare in CATALOGUE if bare.has_tie_mean]
BATCH = tied(20080330, queries=14)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLOSED)
def test_the_mean_over_all_orders_is_that_of_every_order_one_by_one(name: str) -> None:
    chosen = variants(Measure(name))
    found = means(BATCH, chosen)
    compared = 0
    for row, query in enumerate(BATCH.qrels):
        for column, measure in enumerate(chosen):
            wanted = by_hand(measure, BATCH.run[query], BATCH.qrels[query])
            ours = float(found[row, column])
            assert (math.isnan(ours) and math.isnan(wanted)) or abs(ours - wanted) < 1e-12, (
                f"{measure} of {query}: {ours!r}, one by one {wanted!r}"
            )
            compared += 1
    assert compared == len(chosen) * len(BATCH.qrels) > 0


def test_common_measures_have_a_closed_form() -> None:
    assert set(CLOSED) >= {
        "AP",
        "Bpref",
        "DCG",
        "F",
        "FirstRel",
        "GMAP",
        "Judged",
        "NumRel",
        "NumRelRet",
        "NumRet",
        "P",
        "R",
        "RBP",
        "RR",
        "Rprec",
        "SetAP",
        "SetF",
        "SetP",
        "SetR",
        "Success",
        "nDCG",
    }


@given(batches(scores=few_scores), st.tuples(*map(bound, CATALOGUE)))
def test_where_nothing_is_tied_the_mean_is_the_value_to_the_last_bit(made: Batch, chosen: tuple[Measure, ...]) -> None:
    apart = Batch(
        made.qrels, {query: {doc: -float(place) for place, doc in enumerate(docs)} for query, docs in made.run.items()}
    )
    closed = [measure for measure in chosen if _closed(measure)]
    found = joined(apart.qrels, apart.run, "mean")
    for _, block in found.blocks(np.arange(len(found.qrels))):
        for measure in closed:
            ours, plain = measure.tie_mean(block), measure.values(block)
            assert np.array_equal(ours, plain, equal_nan=True), measure


def test_a_mean_does_not_depend_on_how_many_other_queries_there_are() -> None:
    """Few untied queries are computed with the tied ones, many separately."""
    chosen = [measure for bare in CATALOGUE for measure in variants(bare)[:6]]
    alone = means(BATCH, chosen)
    others = {f"more{number}": {f"d{place}": 1.0 for place in range(3)} for number in range(400)}
    many = Batch({**BATCH.qrels, **others}, {**BATCH.run, **{query: {"d9": 0.75, "d1": 0.5} for query in others}})
    assert np.array_equal(means(many, chosen)[: len(alone)], alone, equal_nan=True)


def _drawn(made: Batch, measure: Measure, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of the loop over random orders, and its standard error."""
    rng = random.Random(1)
    rows = []
    for query, grades in made.qrels.items():
        scores = made.run[query]
        docs = list(scores)
        found = []
        for _ in range(draws):
            rng.shuffle(docs)
            value = by_loop(measure, Seen(sorted(docs, key=lambda doc: -scores[doc]), grades))
            found.append(math.nan if value is None else value)
        rows.append(found)
    drawn = np.array(rows)
    return drawn.mean(axis=1), drawn.std(axis=1) / math.sqrt(draws)


@pytest.mark.parametrize(
    "name",
    [
        "P@10",
        "R@30",
        "F@10",
        "Success@3",
        "RR",
        "RR@7",
        "AP",
        "AP@20",
        "AP(norm=retrieved)@20",
        "nDCG@10",
        "nDCG(gain=exp)@5",
        "RBP",
        "Bpref",
        "FirstRel",
        "Rprec",
        "RR(judged_only=true)",
    ],
)
def test_groups_of_many_documents_agree_with_orders_drawn_at_random(name: str) -> None:
    made = tied_deep()
    measure = parse(name)
    wanted, error = _drawn(made, measure, 60)
    ours = means(made, [measure])[:, 0]
    assert (np.isnan(ours) == np.isnan(wanted)).all()
    known = ~np.isnan(ours)
    assert known.sum() >= 6
    assert (np.abs(ours - wanted)[known] <= 5 * error[known] + 1e-12).all()


def tied_deep() -> Batch:
    """A few queries with groups of up to 120 documents."""
    rng = random.Random(5)
    qrels, run = {}, {}
    for number in range(8):
        docs = [f"d{place}" for place in range(rng.randint(30, 120))]
        run[f"q{number}"] = {doc: float(rng.randrange(1 + number // 2)) for doc in docs}
        judged = rng.sample(docs, 20)
        qrels[f"q{number}"] = {doc: float(rng.choice((0, 0, 1, 1, 2, 3))) for doc in judged}
    return Batch(qrels, run)


def test_a_group_of_a_million_documents_keeps_its_digits() -> None:
    """One relevant document anywhere among a million, or at one of two low ranks."""
    size = 1_000_000
    docs = [f"d{number}" for number in range(size)]
    found = evaluate(
        {"q": {"d7": 1}},
        {"q": dict.fromkeys(docs, 0.5)},
        ["RR", "AP", "RR@10", "Success@10", "P@10", "FirstRel", "AP(norm=retrieved)@10"],
        ties="mean",
    ).per_query[0]
    harmonic = math.fsum(1 / rank for rank in range(1, size + 1)) / size
    first_ten = math.fsum(1 / rank for rank in range(1, 11)) / size
    wanted = [harmonic, harmonic, first_ten, 10 / size, 1 / size, (size + 1) / 2, first_ten]
    assert found == pytest.approx(wanted, rel=1e-10)
    two = dict(zip(docs, map(float, range(size, 0, -1)), strict=True))
    two[docs[-2]] = two[docs[-1]]
    deep = evaluate({"q": {docs[-1]: 1, docs[-2]: 1}}, {"q": two}, ["AP"], ties="mean")
    low = (1 / (size - 1) + 2 / size) / 2
    assert deep.per_query[0, 0] == pytest.approx(low, rel=1e-9)


def test_with_half_of_a_great_group_relevant_nothing_underflows() -> None:
    docs = [f"d{number}" for number in range(20_000)]
    made = {"q": dict.fromkeys(docs[::2], 1.0)}, {"q": dict.fromkeys(docs, 1.0)}
    found = evaluate(*made, ["AP(norm=retrieved)@10000", "Success@10000", "RR"], ties="mean")
    half, hit, reciprocal = found.per_query[0]
    assert half == pytest.approx(0.5, abs=0.001)
    assert hit == 1
    assert reciprocal == pytest.approx(math.log(2), abs=0.001)
