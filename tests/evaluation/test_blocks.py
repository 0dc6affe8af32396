"""Evaluation in blocks: the result does not depend on the split or the order of blocks."""

import pickle
import random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankgauge import (
    Baseline,
    Evaluation,
    History,
    InputError,
    Policies,
    Qrels,
    Run,
    UnknownName,
    compare,
    evaluate,
    gate,
)
from rankgauge.evaluation.blocks import build_evaluation, measure_block, merge_blocks
from rankgauge.evaluation.context import make_context, make_plan

MEASURES = ("nDCG@5", "AP", "RR", "R@2", "P@3", "Bpref", "FirstRel")
DOCS = [f"d{number}" for number in range(12)]


@st.composite
def inputs(draw):
    """Judgments and a run, in which queries may be missing, empty, or unjudged."""
    judged = draw(st.integers(1, 12))
    grades = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([-1, 0, 0.5, 1, 2]), min_size=1)
    qrels = {f"q{number}": draw(grades) for number in range(judged)}
    names = draw(st.permutations([*qrels, "other", "another"]))
    kind = draw(st.sampled_from(["any", "rising", "equal", "prefixed"]))
    run = {}
    for name in names[: draw(st.integers(1, len(names)))]:
        docs = draw(st.permutations(DOCS))[: draw(st.integers(0, len(DOCS)))]
        scores = draw(st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0]), min_size=12, max_size=12))
        if kind == "rising":
            scores = sorted(range(12))
        elif kind == "equal":
            scores = [1.0] * 12
        prefix = "x/" if kind == "prefixed" else ""
        run[name] = {prefix + doc: float(score) for doc, score in zip(docs, scores, strict=False)}
    return qrels, run


def split(run, rng):
    """Return the run in blocks of whole queries, in any order."""
    queries = list(run)
    rng.shuffle(queries)
    blocks = []
    while queries:
        size = rng.randint(1, len(queries))
        blocks.append({query: run[query] for query in queries[:size]})
        del queries[:size]
    return blocks


def evaluated(qrels, blocks, policies, measures=MEASURES):
    context = make_context(Qrels.of(qrels), make_plan(measures), policies, None)
    try:
        results = [measure_block(block, context) for block in blocks]
        return build_evaluation(merge_blocks(results), context)
    except InputError as error:
        return str(error)


@given(
    given=inputs(),
    ties=st.sampled_from(["trec", "input", "best", "worst", "mean"]),
    unjudged=st.sampled_from(["not relevant", "removed"]),
    queries=st.sampled_from(["all", "intersection"]),
    tables=st.booleans(),
    rng=st.randoms(use_true_random=False),
)
def test_no_split_and_no_order_of_blocks_changes_anything(given, ties, unjudged, queries, tables, rng):
    qrels, run = given
    policies = Policies(ties=ties, unjudged=unjudged, queries=queries)
    whole, blocks = [run], split(run, rng)
    if tables:
        whole, blocks = [Run.of(run)], [Run.of(block) for block in blocks]
    one, other = (evaluated(qrels, parts, policies) for parts in (whole, blocks))
    assert one == other
    if isinstance(one, Evaluation):
        assert one.to_json() == other.to_json()


def test_merging_is_associative():
    rng = random.Random(5)
    qrels = {f"q{n}": {doc: rng.randint(0, 2) for doc in DOCS[:6]} for n in range(30)}
    run = {f"q{n}": {doc: rng.random() for doc in rng.sample(DOCS, 8)} for n in range(5, 35)}
    context = make_context(Qrels.of(qrels), make_plan(MEASURES), Policies(), None)
    parts = [measure_block({query: run[query]}, context) for query in run]
    flat = build_evaluation(merge_blocks(parts), context)
    tail = merge_blocks([merge_blocks(parts[9:]), *parts[7:9]])
    nested = merge_blocks([merge_blocks(parts[:7]), tail])
    assert build_evaluation(nested, context) == flat
    assert build_evaluation(measure_block(run, context), context) == flat
    assert evaluate(qrels, run, MEASURES) == flat


def test_faults_are_found_whatever_the_blocks_are():
    rng = random.Random(7)
    qrels = {f"q{n}": {f"{n}{place}": place % 3 for place in range(20)} for n in range(80)}
    faulty = {
        "ids": {q: {f"doc_{doc}": rng.random() for doc in judged} for q, judged in qrels.items()},
        "distances": {q: {doc: -grade + rng.random() for doc, grade in judged.items()} for q, judged in qrels.items()},
    }
    for run, code in zip(faulty.values(), ("P103", "R104"), strict=True):
        whole = evaluated(qrels, [run], Policies(), ("nDCG@10",))
        assert whole.findings[0].code == code
        for _ in range(5):
            assert evaluated(qrels, split(run, rng), Policies(), ("nDCG@10",)) == whole


def test_the_result_of_a_block_can_be_pickled():
    qrels, run = {"q1": {"d1": 1}, "q2": {"d2": 2}}, {"q1": ["d1"], "q2": ["d1", "d2"]}
    context = make_context(Qrels.of(qrels), make_plan(MEASURES), Policies(), None)
    parts = [measure_block({query: run[query]}, context) for query in run]
    sent = [pickle.loads(pickle.dumps(part)) for part in parts]
    assert build_evaluation(merge_blocks(sent), context) == evaluate(qrels, run, MEASURES)


def test_a_query_in_two_blocks_is_refused():
    context = make_context(Qrels.of({"q": {"d": 1}}), make_plan("RR"), Policies(), None)
    parts = [measure_block({"q": {"d": 1.0}}, context)] * 2
    with pytest.raises(InputError, match="query 'q'"):
        build_evaluation(merge_blocks(parts), context)


# ---- values computed elsewhere


def test_values_computed_elsewhere_are_an_evaluation():
    made = Evaluation.from_values("judge", ["q1", 2], {"RR": [1.0, 0.5], "FirstRel": [1, float("nan")]})
    assert made.mean() == {"RR": 0.75, "FirstRel": 1.0}
    assert made.query_ids == ("q1", "2")
    assert made.undefined.tolist() == [[False, False], [False, True]]
    assert Evaluation.from_json(made.to_json()) == made
    assert made.value("2", "RR") == 0.5
    (note,) = made.notes
    assert note.startswith("2 queries: values computed elsewhere")


@pytest.mark.parametrize(
    ("ids", "values", "error"),
    [
        ([], {"RR": []}, InputError),
        (["q", "q"], {"RR": [1, 1]}, InputError),
        (["q"], {"RR": [1, 2]}, InputError),
        (["q"], {"RR": ["x"]}, InputError),
        (["q"], {"RR": [float("inf")]}, InputError),
        (["q"], {}, InputError),
        (["q"], {"RR": [1], "MRR": [1]}, InputError),
        (["q"], {"no such measure": [1]}, UnknownName),
    ],
)
def test_values_that_fit_no_queries_are_refused(ids, values, error):
    with pytest.raises(error):
        Evaluation.from_values("judge", ids, values)


def test_values_computed_elsewhere_are_compared():
    rng = np.random.default_rng(3)
    ids = [f"q{number}" for number in range(40)]
    worse = rng.random(40) / 2
    found = compare(
        [Evaluation.from_values("old", ids, {"RR": worse}), Evaluation.from_values("new", ids, {"RR": worse + 0.4})]
    )
    assert found.difference("new").verdict == "better"


def test_values_computed_elsewhere_are_gated_and_saved(tmp_path):
    made = Evaluation.from_values("judge", ["q1", "q2", "q3"], {"RR": [1.0, 0.5, 0.25]})
    rules = {"measures": {"RR": {"floor": 0.3}}}
    assert gate(made, None, rules, baseline=Baseline.from_evaluation(made)).exit_code() == 0
    history = History(tmp_path / "h.db")
    assert history.load(history.add(made).id) == made
