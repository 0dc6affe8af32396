"""Combined policies (ties, unjudged documents, random orders), compared with loops."""

from __future__ import annotations

import functools
import itertools
import json
import math
import random
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from oracles import Seen
from schemas import strict
from strategies import Batch, by_loop

import rankgauge
from rankgauge import Evaluation, History, InputError, Policies, Run, evaluate, parse

CLOSED = [
    "nDCG@3",
    "AP",
    "RR",
    "P@2",
    "R@3",
    "Bpref",
    "RBP(p=0.8)",
    "Success@2",
    "FirstRel",
    "AP(rel=2)",
    "AP@3",
    "GMAP",
    "GMBpref",
    "F1@3",
    "Rprec",
    "DCG",
    "Judged@3",
    "NumRet",
    "SetP",
]
OPEN = ["ERR(top=3)@3", "IPrec@0.5", "infAP"]
TOGETHER = [
    {"ties": ties, "unjudged": unjudged, **drawn}
    for ties, unjudged in itertools.product(("trec", "input", "best", "worst", "mean"), ("not relevant", "removed"))
    for drawn in ({}, {"draws": 40, "seed": 5})
    if ties == "mean" or not drawn
]


def tied(seed: int = 3, queries: int = 15) -> Batch:
    """Rankings of up to six documents with at most two scores and some unjudged documents."""
    rng = random.Random(seed)
    qrels: dict[str, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    for query in (f"q{number}" for number in range(queries)):
        docs = [f"d{number}" for number in range(rng.randint(1, 6))]
        levels = rng.choice((1, 2))
        run[query] = {doc: float(rng.randrange(levels)) for doc in docs}
        known = {doc: rng.choice((None, None, -1, 0, 0, 1, 2, 3)) for doc in [*docs, "never"]}
        qrels[query] = {doc: float(grade) for doc, grade in known.items() if grade is not None}
        qrels[query].setdefault("none", 0.0)
    return Batch(qrels, run)


MADE = tied()


@functools.cache
def by_hand(name: str, query: str, *, removed: bool) -> float:
    """Return the mean of the loop over all orders of the documents that remain."""
    measure, scores, grades = parse(name), MADE.run[query], MADE.qrels[query]
    levels = sorted(set(scores.values()), reverse=True)
    groups = [[doc for doc in scores if scores[doc] == level] for level in levels]
    found = []
    for parts in itertools.product(*(itertools.permutations(group) for group in groups)):
        order = [*itertools.chain.from_iterable(parts)]
        if removed and "judged_only" in measure.declaration.words:
            order = [doc for doc in order if grades.get(doc, -1) >= 0]
        found.append(by_loop(measure, Seen(order, grades)))
    known = [value for value in found if value is not None]
    assert len(known) in {0, len(found)}
    return math.fsum(known) / len(known) if known else math.nan


def same(one: float, other: float, slack: float = 1e-12) -> bool:
    return (math.isnan(one) and math.isnan(other)) or abs(one - other) <= slack


def blocks() -> Any:
    """Yield the run in blocks of a few queries."""
    whole = list(MADE.run.items())
    return (dict(whole[start : start + 7]) for start in range(0, len(whole), 7))


def written(folder: Any) -> Any:
    path = folder / "a.run"
    path.write_text(
        "".join(
            f"{query} Q0 {doc} {rank} {score} t\n"
            for query, docs in MADE.run.items()
            for rank, (doc, score) in enumerate(sorted(docs.items(), key=lambda d: -d[1]), 1)
        )
    )
    return path


@pytest.mark.parametrize("unjudged", ["not relevant", "removed"])
@pytest.mark.parametrize("given", ["dicts", "a run", "blocks", "a file"])
def test_the_mean_over_orders_of_what_stays_is_that_of_each_one(unjudged: Any, given: str, tmp_path: Any) -> None:
    run: Any = {
        "dicts": lambda: MADE.run,
        "a run": lambda: Run.of(MADE.run),
        "blocks": blocks,
        "a file": lambda: written(tmp_path),
    }[given]()
    found = evaluate(MADE.qrels, run, CLOSED, ties="mean", unjudged=unjudged)
    for query in found.query_ids:
        for name in CLOSED:
            wanted = by_hand(name, query, removed=unjudged == "removed")
            assert same(found.value(query, name), wanted), (query, name, wanted)


def test_what_is_removed_changes_means_over_orders() -> None:
    one, other = (
        evaluate(MADE.qrels, MADE.run, CLOSED, ties="mean", unjudged=how).mean() for how in ("not relevant", "removed")
    )
    changed = {name for name in one if abs(one[name] - other[name]) > 1e-6}
    assert changed >= {"nDCG@3", "AP", "RR", "P@2", "FirstRel"}
    assert not changed & {"Bpref", "GMBpref", "Judged@3", "NumRet"}


@pytest.mark.parametrize("unjudged", ["not relevant", "removed"])
def test_orders_drawn_of_what_stays_are_near_the_mean_over_all(unjudged: Any) -> None:
    found = evaluate(MADE.qrels, MADE.run, OPEN, ties="mean", unjudged=unjudged, draws=2500)
    for query in found.query_ids:
        for name in OPEN:
            wanted = by_hand(name, query, removed=unjudged == "removed")
            assert same(found.value(query, name), wanted, 0.05), (query, name, wanted)


@pytest.mark.parametrize("ties", ["best", "worst"])
@pytest.mark.parametrize("name", ["nDCG@3", "AP", "RR", "ERR(top=3)@3", "P@2"])
def test_the_ends_of_what_stays_are_those_of_all_its_orders(ties: Any, name: str) -> None:
    measure = parse(name)
    found = evaluate(MADE.qrels, MADE.run, name, ties=ties, unjudged="removed")
    for query, scores in MADE.run.items():
        grades = MADE.qrels[query]
        levels = sorted(set(scores.values()), reverse=True)
        groups = [[doc for doc in scores if scores[doc] == level] for level in levels]
        values = [
            by_loop(measure, Seen([doc for part in parts for doc in part if grades.get(doc, -1) >= 0], grades))
            for parts in itertools.product(*(itertools.permutations(group) for group in groups))
        ]
        known = [value for value in values if value is not None]
        wanted = (max if ties == "best" else min)(known) if known else math.nan
        assert same(found.value(query, name), wanted), query


@pytest.mark.parametrize("choice", TOGETHER, ids=lambda choice: "-".join(map(str, choice.values())))
def test_policies_are_kept_in_json_and_history_and_reported(choice: Any, tmp_path: Any) -> None:
    asked = [*CLOSED, *(OPEN if choice.get("draws") or choice["ties"] != "mean" else ())]
    found = evaluate(MADE.qrels, Run.of(MADE.run, name="a"), asked, **choice)
    jsonschema.validate(json.loads(found.to_json()), strict("evaluation-1"))
    assert Evaluation.from_json(found.to_json()) == found
    with History(tmp_path / "kept.db") as history:
        kept = history.add(found, MADE.qrels)
        assert history.load(kept.id) == found
    assert any(f"ties={choice['ties']}" in note for note in found.notes)
    removed = any("(unjudged=removed)" in note for note in found.notes)
    assert removed == (choice["unjudged"] == "removed")
    estimated = [note for note in found.notes if note.startswith("estimated from 40 orders")]
    assert len(estimated) == bool(choice.get("draws"))
    # Only equal policies are compared.
    rankgauge.compare([found, replace(found, run_name="b")])
    for other in TOGETHER:
        if other != choice and not other.get("draws") and other["ties"] != "mean":
            unlike = replace(found, run_name="b", policies=Policies(**other))
            with pytest.raises(InputError, match="differ in their policies"):
                rankgauge.compare([found, unlike])
