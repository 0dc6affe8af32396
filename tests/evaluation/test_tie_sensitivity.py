"""The effect of ties: manual counts, intervals over every order, and constant scores."""

from __future__ import annotations

import itertools
import json
import math
import random
from typing import Any

import jsonschema
import pytest
from oracles import Seen
from schemas import strict
from strategies import Batch, by_loop

import rankgauge
from rankgauge import InputError, Run, evaluate, list_measures, parse, tie_report
from rankgauge.measures.declaration import SPECIAL

QRELS = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"a": 1}, "q3": {"a": 1}, "none": {"n": 1}}
RUN = {
    "q1": {"a": 0.5, "b": 0.5, "c": 0.5, "x": 0.25, "y": 0.25},
    "q2": {"x": 1.0, "y": 1.0, "a": 0.5},
    "q3": {"a": 1.0, "b": 0.5},
    "unjudged": dict.fromkeys("abcdefgh", 1.0),
}
ASKED = ["nDCG@2", "RR", "P@1", "FirstRel", "ERR@2"]
FOUND = tie_report(QRELS, RUN, ASKED)


def orders(scores: dict[str, float]) -> Any:
    groups = [[doc for doc in scores if scores[doc] == level] for level in sorted(set(scores.values()), reverse=True)]
    for order in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield list(itertools.chain.from_iterable(order))


def test_ties_are_counted_only_in_evaluated_queries() -> None:
    assert dict(FOUND.counts) == {
        "queries": 4,
        "tied": 2,
        "deciding": 1,
        "documents": 10,
        "tied_documents": 7,
        "deciding_documents": 3,
        "groups": 3,
        "deciding_groups": 1,
        "largest": 3,
    }
    assert dict(FOUND.sizes) == {2: 2, 3: 1}
    part = tie_report(QRELS, RUN, ASKED, queries=["q2"]).counts
    assert (part["queries"], part["tied"], part["deciding"], part["groups"]) == (1, 1, 0, 1)


@pytest.mark.parametrize("name", ["nDCG@2", "RR", "P@1", "ERR@2"])
def test_the_interval_is_that_of_all_orders_one_by_one(name: str) -> None:
    measure = parse(name)
    found = [[by_loop(measure, Seen(order, QRELS["q1"])) or 0.0 for order in orders(RUN["q1"])]][0]
    span = tie_report({"q1": QRELS["q1"]}, {"q1": RUN["q1"]}, name).span(name)
    assert (span.worst, span.best) == pytest.approx((min(found), max(found)), abs=1e-15)
    assert span.whole
    if span.mean is not None:
        assert span.mean == pytest.approx(math.fsum(found) / len(found), abs=1e-15)


def test_of_a_measure_that_is_better_low_the_best_is_the_lowest() -> None:
    span = FOUND.span("FirstRel")
    assert span.worst > span.best
    assert span.best < (span.mean or 0) < span.worst


def test_a_measure_without_a_closed_form_has_ends_and_no_mean() -> None:
    span = FOUND.span("ERR@2")
    assert span.mean is None
    assert span.worst < span.best
    assert "no closed form for the mean over all orders: ERR(top=4)@2" in FOUND.notes
    with pytest.raises(InputError, match="AP was not evaluated"):
        FOUND.span("AP")


def test_documents_that_grades_do_not_order_are_noted() -> None:
    found = tie_report(QRELS, RUN, ["infAP", "AP", "AP(norm=retrieved)@2", "nDCG(ideal=topk)@2"])
    assert [span.whole for span in found.spans] == [False, True, False, False]
    assert any(note.startswith("some orders may give values outside") for note in found.notes)


def test_without_ties_there_is_one_note() -> None:
    found = tie_report({"q": {"a": 1}}, {"q": ["b", "a"]}, "RR")
    assert found.notes == ("1 query: no two documents of a ranking have equal scores",)
    assert found.span("RR").queries == 0
    assert found.table(per_query=True).rows == ()


def test_the_table_of_queries_shows_those_that_could_change() -> None:
    rows = FOUND.table(per_query=True).rows
    assert {row[0] for row in rows} == {"q1"}
    assert [row[1] for row in rows] == ["nDCG@2", "RR", "P@1", "FirstRel", "ERR(top=4)@2"]


def test_json_is_by_the_published_schema() -> None:
    for found in (FOUND, tie_report({"q": {"a": 1}}, {"q": ["a"]})):
        jsonschema.validate(json.loads(found.to_json(), parse_constant=pytest.fail), strict("ties-1"))
    data = json.loads(FOUND.to_json())
    assert data["values"][3] == [
        {"value": 0.0, "worst": 0.0, "best": 0.0, "mean": 0.0},
        {"value": 0.0, "worst": 0.0, "best": 0.0, "mean": 0.0},
        {"value": 0.0, "worst": 0.0, "best": 0.0, "mean": 0.0},
        {"value": None, "worst": None, "best": None, "mean": None},
        {"value": 0.0, "worst": 0.0, "best": 0.0, "mean": None},
    ]


def test_records_are_taken_as_by_evaluate() -> None:
    records = [{"id": "q1", "retrieved": ["a", "b"], "relevant": ["b"]}]
    assert tie_report(records, measures="RR").span("RR").value == 0.5


def test_it_has_a_short_repr_and_a_table() -> None:
    assert repr(FOUND) == "<TieReport: run: breaking ties differently could change 1 of 4 queries>"
    assert "<table" in FOUND._repr_html_()


# ---- invariants


MORE = [
    "INST(goal=2,top=3)",
    "INSQ(goal=2,top=3)",
    "BPM(goal=2,top=3)@4",
    "NERR8(top=3)@4",
    "NERR11(goal=2,top=3)",
    "INSTres(goal=2,top=3)",
    "BPMres(goal=2,top=3)@4",
]


def short(seed: int, queries: int = 1500) -> Batch:
    """Return rankings of few documents with one or two scores, so that orders matter most."""
    rng = random.Random(seed)
    qrels: dict[str, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    for query in (f"q{number}" for number in range(queries)):
        docs = [f"d{number}" for number in range(rng.choice((2, 3, 3, 4, 4, 5, 6, 8)))]
        rng.shuffle(docs)
        known = {doc: rng.choice((None, -1, 0, 0, 1, 1, 2, 3)) for doc in docs}
        known |= {f"n{number}": rng.choice((0, 1, 2, 3)) for number in range(rng.choice((0, 1, 3)))}
        judged = {doc: float(grade) for doc, grade in known.items() if grade is not None}
        qrels[query] = judged or {"never": 1.0}
        levels = rng.choice((1, 2))
        run[query] = {doc: float(rng.randrange(levels)) for doc in docs}
    return Batch(qrels, run)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12])
def test_no_order_leads_out_of_worst_to_best(seed: int) -> None:
    """For every measure whose value never falls if a better document moves up."""
    made = short(seed)
    asked = [
        *dict.fromkeys(
            [
                bare(**params)
                for bare in list_measures()
                if bare.declaration.reads not in SPECIAL
                for params in _params(bare)
            ]
        )
    ]
    asked += map(parse, MORE)
    by = {
        ties: evaluate(made.qrels, made.run, asked, ties=ties).per_query for ties in ("worst", "trec", "input", "best")
    }
    closed = [measure for measure in asked if measure.has_tie_mean]
    mean = evaluate(made.qrels, made.run, closed, ties="mean").per_query
    outside, moved = set(), 0
    for column, measure in enumerate(asked):
        low, high = by["worst"][:, column], by["best"][:, column]
        moved += int((low != high).sum())
        if measure.declaration.better == "lower":
            low, high = high, low
        middle = [by["trec"][:, column], by["input"][:, column]]
        if measure.has_tie_mean:
            middle.append(mean[:, closed.index(measure)])
        for values in middle:
            inside = (values >= low - 1e-12) & (values <= high + 1e-12)
            if not (inside | (values != values)).all():  # noqa: PLR0124 - NaN
                outside.add(measure)
    assert moved > 1000
    assert [str(measure) for measure in outside if measure.monotone] == []
    # Changes are detected, unless gains or divisors hide them.
    assert {"NumNonrelRet", "G", "infAP"} <= {m.name for m in outside}
    assert {"INST", "BPM"} <= {m.name for m in outside if m.arguments.get("residual")}


def _params(bare: Any) -> list[dict[str, Any]]:
    needed = {"k": 4, "recall": 0.35, "mult": 0.4}
    base = {word: needed[word] for word in bare.declaration.required}
    words = bare.declaration.words
    more = {
        "k": 3,
        "rel": 2,
        "gain": "exp",
        "judged_only": True,
        "norm": "min(k,R)",
        "top": 4,
        "goal": 2.5,
        "mult": 1.6,
        "p": 0.3,
        "among": "retrieved",
        "normalize": False,
        "b": 2,
        "recall": 1.0,
    }
    found = [base, *({**base, word: value} for word, value in more.items() if word in words)]
    if "residual" in words:
        found += [{**p, "residual": True} for p in found if "judged_only" not in p]
    return [{"k": 4, **params} if params.get("norm") else params for params in found]


def _grade_order(grades: dict[str, float]) -> list[str]:
    """Return a ranking by descending grade, with unjudged documents last."""
    return sorted("abcde", key=lambda doc: -grades.get(doc, -9.0))


def test_no_order_of_few_documents_is_better_than_by_grade_or_worse_than_the_reverse() -> None:
    """The same by enumerating every order, and the measures that violate it for few documents."""
    rng = random.Random(5)
    asked = [
        *dict.fromkeys(
            [
                bare(**params)
                for bare in list_measures()
                if bare.declaration.better != "neither" and bare.declaration.reads not in SPECIAL
                for params in _params(bare)
            ]
        )
    ]
    broken: set[str] = set()
    for _ in range(30):
        grades = {doc: rng.choice((-1, 0, 0, 0.5, 1, 1, 2, 2.5, 3, 4)) for doc in "abcdefg" if rng.random() < 0.8} or {
            "a": 1
        }
        best = _grade_order(grades)
        ranked = [best, best[::-1], *map(list, itertools.permutations("abcde"))]
        run = {f"q{number:03}": docs for number, docs in enumerate(ranked)}
        values = evaluate(dict.fromkeys(run, grades), run, asked).per_query
        for column, measure in enumerate(asked):
            high, low, *others = values[:, column].tolist()
            if measure.declaration.better == "lower":
                high, low = low, high
            outside = [value for value in others if not low - 1e-12 <= value <= high + 1e-12]
            if outside and not math.isnan(high + low):
                assert not measure.monotone, (measure, grades)
                broken.add(measure.name + " residual" * bool(measure.arguments.get("residual")))
    assert {"BPM residual", "G", "INST residual", "NumNonrelRet", "infAP"} <= broken


@pytest.mark.parametrize(
    ("name", "monotone"),
    [
        ("infAP", False),
        ("AP", True),
        ("AP(norm=retrieved)@3", False),
        ("AP@3", True),
        ("nDCG@3", True),
        ("nDCG(ideal=topk)@3", False),
        ("nDCG(ideal=retrieved)@3", True),
        ("nDCG(gain=exp)", True),
        ("nDCG(gain={1:2,2:5,3:0.25})", False),
        ("nDCG(gain={1:2,2:5,3:9})", False),
        ("nDCG(gain={1:1,2:3,3:4})", True),
        ("DCG(gain={0:1,2:0})", False),
        ("DCG(gain={0:1})", True),
        ("Bpref", True),
        ("BPM@3", False),
        ("PairAcc@3", True),
        ("PairAcc(among=retrieved)@3", False),
        ("NumNonrelRet", False),
    ],
)
def test_measures_whose_best_order_is_not_by_grade_are_known(name: str, monotone: bool) -> None:  # noqa: FBT001
    assert parse(name).monotone is monotone


# ---- constant scores


def constant(queries: int = 20, size: int = 100) -> tuple[Any, Any]:
    """Return a relevant document for each query, first or last by id; all scores are 1."""
    qrels = {f"q{number}": {f"a{number}": 1} for number in range(queries)}
    run = {
        query: dict.fromkeys([*relevant, *(f"d{number}" for number in range(size - 1))], 1.0)
        for query, relevant in qrels.items()
    }
    return qrels, run


def test_a_constant_scorer_is_detected() -> None:
    """Such a scorer was perfect in a task of a public leaderboard that kept the input order."""
    qrels, run = constant()
    said = {
        ties: evaluate(qrels, run, ["nDCG@10", "RR", "P@1"], ties=ties).mean()
        for ties in ("trec", "input", "best", "worst", "mean")
    }
    perfect = {"nDCG@10": 1.0, "RR": 1.0, "P@1": 1.0}
    assert said["input"] == said["best"] == perfect
    assert said["worst"] == said["trec"] == {"nDCG@10": 0.0, "RR": 0.01, "P@1": 0.0}
    fair = {
        "nDCG@10": math.fsum(1 / math.log2(rank + 1) for rank in range(1, 11)) / 100,
        "RR": math.fsum(1 / rank for rank in range(1, 101)) / 100,
        "P@1": 0.01,
    }
    assert said["mean"] == pytest.approx(fair, abs=1e-15)
    found = tie_report(qrels, run, ["nDCG@10", "RR", "P@1"])
    assert [(s.worst, s.best, s.queries) for s in found.spans] == [(0.0, 1.0, 20), (0.01, 1.0, 20), (0.0, 1.0, 20)]
    (warning,) = (note for note in found.notes if "R106" in note)
    assert warning.startswith("WARNING: all documents of a query have the same score")
    assert found.counts["tied_documents"] == found.counts["documents"] == 2000


def test_a_comparison_of_evaluations_by_two_policies_of_ties_is_refused() -> None:
    qrels, run = constant()
    one, other = (evaluate(qrels, Run.of(run, name=ties), "RR", ties=ties) for ties in ("trec", "mean"))
    with pytest.raises(InputError, match="differ in their policies"):
        rankgauge.compare([one, other])
    found = rankgauge.compare(qrels, {"a": run, "b": dict(run)}, "RR", ties="mean")
    assert found.evaluations[0].policies.ties == "mean"


@pytest.mark.parametrize("ties", ["best", "worst", "mean"])
def test_functions_without_judgments_refuse_ties_by_grade(ties: Any) -> None:
    run = {"q": {"a": 0.5, "b": 0.5}}
    for act in (
        lambda: rankgauge.cut(run, 1, ties=ties),
        lambda: rankgauge.data.ranked(Run.of(run), ties=ties),
        lambda: rankgauge.fuse([Run.of(run, name="a"), Run.of(run, name="b")], ties=ties),
        lambda: rankgauge.rbo(run, run, ties=ties),
    ):
        with pytest.raises(rankgauge.UnknownName, match=f"ties='{ties}' is not valid here"):
            act()


@pytest.mark.parametrize("ties", ["best", "worst", "mean"])
def test_an_evaluation_by_any_policy_of_ties_survives_its_json(ties: Any) -> None:
    drawn = {"draws": 20, "seed": 4} if ties == "mean" else {}
    ev = evaluate(QRELS, RUN, ["AP", "RR"], ties=ties, **drawn)
    assert json.loads(ev.to_json())["policies"].get("seed") == drawn.get("seed")
    jsonschema.validate(json.loads(ev.to_json()), strict("evaluation-1"))
    assert rankgauge.Evaluation.from_json(ev.to_json()) == ev
