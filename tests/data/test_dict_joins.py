"""Runs of plain dicts evaluate like their tables; unusual ones are converted to tables."""

from __future__ import annotations

import random
from collections import OrderedDict, defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import example, given, strategies as st

from rankgauge import InputError, Qrels, RankgaugeError, Run, evaluate, parse
from rankgauge.core import native
from rankgauge.core.ids import Ids
from rankgauge.core.policies import Policies
from rankgauge.data.joined_blocks import Judgments, join_dicts
from rankgauge.measures.compiled import program, step_of


def judgments_of(source: Any) -> Judgments:
    qrels = Qrels.of(source)
    return Judgments(qrels, qrels, Policies())


MEASURES = [
    "nDCG@3",
    "nDCG(gain=exp)",
    "AP",
    "RR",
    "RR(rel=2)",
    "P@2",
    "R@5",
    "Success@1",
    "Success@20",
    "infAP(rel=2)",
    "Bpref",
    "ERR@3",
    "nERR(top=9)",
    "RBP(p=0.5)@4",
    "Rprec",
    "IPrec@0.4",
    "GMAP",
    "DCG(gain=exp)@3",
    "Judged@3",
    "NumRet",
    "FirstRel",
    "IPrecAvg",
    "P(judged_only=True)@2",
]


class Doc(str):
    """A string with a custom hash."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return self is other


A, B = Doc("d1"), Doc("d2")
QUERIES = st.sampled_from(["q1", "q2", "q3", "é", "Q1"])
DOCS = st.sampled_from(["d1", "d2", "d3", "d10", "D1", " d1", "é", "dé", "\uffff", "\U0001f600", "a\nb", "\x7f"])
SCORES = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 0.25, 1, True, 2, 1e308, -1e308, 1.7e308, 1e-320]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([np.float32(0.1), np.float64(0.1), np.int64(2), np.float16(0.5), 0.1]),
    st.sampled_from([2**53, 2**53 + 2, float(2**53), -(2**53) - 2, int(1e300)]),
)
JUDGMENTS = st.dictionaries(QUERIES, st.dictionaries(DOCS, st.integers(-1, 3), max_size=8), min_size=1, max_size=4)
RUNS = st.dictionaries(QUERIES, st.dictionaries(DOCS, SCORES, max_size=12), max_size=5)


def outcome(qrels: Any, run: Any, measures: Any = MEASURES, **options: Any) -> Any:
    """Return an evaluation with the bits of its values, or the text of its error."""
    asked = [name for name in measures if options.get("ties") != "mean" or parse(name).has_tie_mean]
    try:
        found = evaluate(qrels, run() if callable(run) else run, asked, **options)
    except RankgaugeError as error:
        return type(error), str(error)
    means = {name: mean.hex() for name, mean in found.mean().items()}
    return found, found.notes, found.per_query.tobytes("C"), means, found.to_json()


def same(qrels: Any, run: Any, **options: Any) -> Any:
    """Return the outcome of a run of dicts after checking that its table gives the same."""
    found = outcome(qrels, run, **options)
    assert found == outcome(qrels, lambda: Run.of(run), **options)
    return found


@given(
    JUDGMENTS,
    RUNS,
    st.sampled_from(["trec", "input", "best", "worst", "mean"]),
    st.sampled_from(["error", "first", "best"]),
    st.sampled_from(["zero", "skip"]),
    st.sampled_from(["all", "intersection", ["q1"], ["é", "q2"]]),
    st.sampled_from([None, dict.fromkeys(["q1", "q2", "q3", "é", "Q1"], 0.3)]),
    st.sampled_from(["not relevant", "removed"]),
)
def test_a_run_of_dicts_evaluates_as_its_table_does(
    qrels: Any, run: Any, ties: Any, duplicates: Any, undefined: Any, queries: Any, weights: Any, unjudged: Any
) -> None:
    policies = {"ties": ties, "duplicates": duplicates, "undefined": undefined, "unjudged": unjudged}
    same(qrels, run, queries=queries, weights=weights, **policies)


LISTS = st.dictionaries(
    st.sampled_from(["q1", "q2", "é", "query_id", "doc_id", "score"]),
    st.lists(st.sampled_from(["d1", "d2", "d3", "é", "", "\0", "\ud800", 1, 2.5, None, ("d1", 1.0), ["d1"]])),
    min_size=1,
)
PLAIN = st.dictionaries(QUERIES, st.lists(DOCS, unique=True), min_size=1)


@given(JUDGMENTS, st.one_of(LISTS, PLAIN), st.sampled_from(["trec", "input", "best", "mean"]))
def test_a_run_of_lists_evaluates_as_its_table_does(qrels: Any, run: Any, ties: Any) -> None:
    same(qrels, run, ties=ties)


@given(
    st.randoms(use_true_random=False),
    st.sampled_from(["trec", "input", "best", "worst", "mean"]),
    st.sampled_from(["not relevant", "removed"]),
)
def test_ties_of_many_documents_are_ordered_as_in_the_table(rng: random.Random, ties: Any, unjudged: Any) -> None:
    docs = [f"d{number}" for number in range(60)]
    judged = {doc: rng.randint(-1, 3) for doc in rng.sample(docs, 30)}
    ranking = {doc: rng.choice([0.5, 0.25, 1.0, -0.0, 0.0]) for doc in rng.sample(docs, 50)}
    same({"q": judged}, {"q": ranking}, ties=ties, unjudged=unjudged)
    of_judged = [name for name in MEASURES if "judged_only" in parse(name).declaration.words]
    same({"q": judged}, {"q": ranking}, measures=of_judged, ties=ties, unjudged=unjudged)


@pytest.mark.skipif(native.core is None, reason="the compiled core was not built")
@pytest.mark.parametrize(
    ("grades", "tied", "separated"),
    [
        ({"a": -1, "b": 0}, 0, 1),
        ({"a": -1}, 0, 1),
        ({"a": 0}, 0, 1),
        ({"a": 0, "b": 0}, 0, 0),
        ({"a": 1}, 1, 1),
        ({"a": 1, "b": 1}, 0, 0),
        ({"a": 1, "b": 2}, 1, 1),
        ({"a": 1, "b": 1, "c": 0}, 0, 0),
    ],
)
def test_ties_count_if_another_order_could_change_a_value(grades: Any, tied: int, separated: int) -> None:
    qrels = Qrels.of({"q": grades})
    for separate, wanted in ((False, tied), (True, separated)):
        judgments = Judgments(qrels, qrels, Policies(), program([step_of(parse("P@1"))]), separate)
        block = join_dicts({"q": {"a": 0.5, "b": 0.5, "c": 0.25}}, judgments)
        assert block is not None
        assert block.tied == wanted


UNUSUAL: list[Any] = [
    {"": 1.0},
    {"a": 1.0, "": 0.5},
    {"a\0": 1.0},
    {"\ud800": 1.0, "b": 0.5},
    {1: 0.5},
    {"a": 1.0, 1: 0.5},
    {b"a": 0.5},
    {None: 0.5},
    {("a",): 0.5},
    {A: 0.5},
    {"a": 0.75, B: 0.5},
    {A: 1.0, "d1": 0.5},
    {np.str_("d1"): 0.5},
    {"a": float("nan")},
    {"a": 0.5, "b": float("nan"), "c": 0.25},
    {"a": float("inf")},
    {"a": float("inf"), "b": float("-inf")},
    {"a": None},
    {"a": 0.5, "b": None},
    {"a": "0.5"},
    {"a": 0.5, "b": "x"},
    {"a": 1j},
    {"a": 0.5, "b": np.complex64(1)},
    {"a": 10**400},
    {"a": 10**400, "b": -(10**400)},
    {"a": 0.5, "b": 10**400},
    {"a": [0.5]},
    {"a": np.array(0.5)},
    {"a": 0.5, "b": np.array([0.5, 1])},
    {"a": np.array(1, bool)[()]},
    {"a": np.datetime64("2020-01-01")},
    {"a": Fraction(1, 3)},
    {"d1": Fraction(1, 3), "d2": 0.0},
    {"d1": 1.0, "d2": Fraction(1, 2)},
    {"a": 2**53 + 1},
    {"a": 2**53, "b": 2**53 + 1, "c": 0.5},
    {"a": 10**300, "b": 1e300},
    ["d2", "d1"],
    [("d2", 0.5), ("d1", 0.75)],
    {"d1", "d2"},
    None,
    3,
    "d1",
]


@pytest.mark.parametrize("ranking", UNUSUAL, ids=map(str, range(len(UNUSUAL))))
@pytest.mark.parametrize("known", [True, False], ids=["judged", "not judged"])
def test_unusual_dicts_are_left_to_the_table(ranking: Any, known: bool) -> None:  # noqa: FBT001
    qrels = {"q1": {"d1": 1, "d2": 2, "b": 0}, "q2": {"d1": 1}}
    run = {"q2": {"d1": 0.5, "x": 0.75}, ("q1" if known else "u"): ranking}
    assert join_dicts(run, judgments_of(qrels)) is None
    same(qrels, run)


UNUSUAL_RUNS: list[Any] = [
    {"": {"d1": 1.0}},
    {"q1": {"d1": 1.0}, "": {}},
    {"q1\0": {"d1": 0.5}},
    {"\udc80": {"d1": 0.5}},
    {1: {"d1": 0.5}},
    {"q1": {"d1": 0.5}, 2: {}},
    {b"q1": {"d1": 0.5}},
    {A: {"d1": 0.5}},
]


@pytest.mark.parametrize("run", UNUSUAL_RUNS, ids=map(str, range(len(UNUSUAL_RUNS))))
def test_unusual_queries_are_left_to_the_table(run: Any) -> None:
    assert join_dicts(run, judgments_of({"q1": {"d1": 1}})) is None
    same({"q1": {"d1": 1}}, run)


@pytest.mark.parametrize(
    "scores",
    [
        (3.0, 2.0, 1.0),
        (3, 2, 1),
        (True, 0.5, 0),
        (np.float32(0.3), np.float32(0.2), 0.1),
        (1e308, 1.7e308, 1e308),
        (2**53 + 2, 2**53, 2**53 - 1),
        (float(2**53), 2**53 + 2, 0.0),
        (np.float64(0.5), 0.5, np.int8(1)),
        (-0.0, 0.0, 0),
        (1e17, 2**53 + 2, float(2**53), 0.5),
    ],
    ids=repr,
)
def test_numbers_of_any_kind_need_no_table(scores: Any) -> None:
    run = {"q1": dict(zip(("d1", "d2", "d3", "d4"), scores, strict=False)), "q2": {}}
    qrels = {"q1": {"d1": 1, "d3": 2}, "q2": {"d1": 1}}
    same(qrels, run)
    same(qrels, run, ties="input")


@pytest.mark.parametrize("kind", [dict, OrderedDict, lambda pairs: defaultdict(dict, pairs)])
def test_dicts_of_the_standard_library_are_dicts(kind: Any) -> None:
    run = kind([("q2", kind([("d1", 0.5), ("d2", 0.75)])), ("u", kind([("x", 1.0)]))])
    same({"q1": {"d1": 1}, "q2": {"d1": 1}}, run)


@pytest.mark.parametrize("ids", [(7, 8), (b"7", b"8"), (b"\xff7", b"7")], ids=repr)
def test_judgments_of_any_kind_of_ids_meet_text(ids: Any) -> None:
    first, second = ids
    qrels = Qrels.of({first: {first: 1, second: 2}, second: {second: 1}})
    run = {"8": {"8": 0.5, "7": 0.75}, "7": {"\ufffd7": 1.0, "7": 0.5}, "\ufffd7": {"7": 1.0}}
    same(qrels, run)


@pytest.mark.parametrize(
    ("measure", "grade", "said"),
    [
        ("nDCG(gain=exp)", 900, None),
        ("DCG(gain=exp)@1", 901, "grade 901 is too high for the gain"),
        ("ERR", 4, None),
        ("ERR", 4.5, "grade 4.5 is above the top grade 4"),
        ("nERR(top=5)@1", 6, "grade 6 is above the top grade 5"),
    ],
)
def test_grades_above_the_scale_are_refused_as_by_the_table(measure: str, grade: float, said: str | None) -> None:
    qrels, run = {"q1": {"d1": grade, "d2": 1}}, {"q1": {"d3": 1.0, "d1": 0.5}}
    for given_run in (run, Run.of(run)):
        if said is None:
            assert evaluate(qrels, given_run, measure).value("q1", measure) > 0
            continue
        with pytest.raises(InputError, match=said):
            evaluate(qrels, given_run, measure)


ODD_IDS = st.one_of(
    DOCS,
    st.sampled_from(["q1", " q1", "e\u0301", "\ufeffq1", "1", 1, 1.0, True, b"q1", b"\xff", Doc("q1"), "\ud800", ""]),
)


@example({"q1": {}, "q2": {"d1": 1}})
@example({1: {"d1": 1}})
@example({b"\xff": {"d1": 1}})
@example({"q1": {1: 1}})
@example({"q1": {b"\xff": 1}})
@example({"query_id": {"0": "q1"}, "doc_id": {"0": "d1"}, "relevance": {"0": 1}})
@given(st.dictionaries(ODD_IDS, st.dictionaries(ODD_IDS, st.integers(-1, 3), max_size=3), max_size=3))
def test_texts_of_judgments_are_those_of_their_table(source: Any) -> None:
    try:
        found = Qrels.of(source)
    except RankgaugeError:
        return
    assert found.table.docs.texts == Ids(*found.table.docs.columns()).texts


def test_mismatched_judgments_are_reported_as_by_the_table() -> None:
    same({"q1": {"d1": 1}}, {"Q1": {"d1": 0.5}, "q2": {"d1": 0.5}})
    same({"q1": {"D1": 1}}, {"q1": {"d1": 0.5, "d2": 0.25}})
    same({"q1": {"e1": 1}}, {"q1": {"d1": 0.5, "d2": 0.25}})
    same({"q1": {"d1": 1}}, {"q1": {}})


def test_blocks_of_dicts_are_blocks() -> None:
    qrels = {f"q{number}": {"d1": 1, "d2": 2} for number in range(4)}
    run = {f"q{number}": {"d1": 0.5, "d3": 0.25 * number, "d2": 0.25} for number in range(5)}
    blocks = [{query: ranking} for query, ranking in run.items()]
    found = evaluate(qrels, iter(blocks), MEASURES)
    assert found == evaluate(qrels, run, MEASURES)
    assert found == evaluate(qrels, iter([blocks[0], Run.of(blocks[1]), *blocks[2:]]), MEASURES)
    assert outcome(qrels, lambda: iter([run, blocks[1]])) == outcome(
        qrels, lambda: iter([Run.of(run), Run.of(blocks[1])])
    )


def test_many_queries_are_joined_alike() -> None:
    rng = random.Random(4)
    docs = [f"d{number}" for number in range(30)]
    qrels = {f"q{n}": {doc: rng.randint(-1, 2) for doc in rng.sample(docs, 9)} for n in range(50)}
    run = {
        f"q{n}": {doc: round(rng.uniform(0, 1), 1) for doc in rng.sample(docs, n % 20)}
        for n in rng.sample(range(60), 45)
    }
    same(qrels, run)


@pytest.mark.parametrize("size", [1, 5, 6, 100, 3000])
def test_a_key_with_a_hash_of_its_own_is_seen_among_many(size: int) -> None:
    run = {"q1": {**{f"x{number}": 1.0 for number in range(size)}, A: 2.0}}
    same({"q1": {"d1": 1}}, run)
    assert join_dicts(run, judgments_of({"q1": {"d1": 1}})) is None
    del run["q1"][A]


@given(st.randoms(use_true_random=False))
def test_pytrec_eval_finds_the_same_ranks(rng: random.Random) -> None:
    docs = [f"d{number}" for number in range(40)]
    qrels = {f"q{n}": {doc: rng.randint(0, 2) for doc in rng.sample(docs, 12)} for n in range(4)}
    # Halves and quarters are exact in the 32 bits that pytrec_eval uses.
    run = {query: {doc: rng.randint(0, 12) / 4 for doc in rng.sample(docs, 25)} for query in qrels}
    names = {"map": "AP", "recip_rank": "RR", "ndcg_cut_10": "nDCG@10", "P_5": "P@5"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", "recip_rank", "ndcg_cut", "P"})
    found = evaluate(qrels, run, list(names.values()))
    for query, row in theirs.evaluate(run).items():
        for name, ours in names.items():
            value = found.value(query, ours)
            assert row[name] == pytest.approx(0.0 if np.isnan(value) else value, abs=1e-12)


@pytest.mark.parametrize("ties", ["trec", "input"])
@pytest.mark.parametrize("groups", [3, 16, 17, 400])
def test_many_groups_of_equal_scores_rank_as_in_a_table(groups: int, ties: str) -> None:
    rng = random.Random(groups)
    docs = [f"d{number}" for number in range(5 * groups)]
    rng.shuffle(docs)
    run = {"q": {doc: float(place % groups) for place, doc in enumerate(docs)}}
    qrels = {"q": {doc: rng.choice((0, 1, 2)) for doc in rng.sample(docs, 3 * groups)}}
    same(qrels, run, ties=ties)
