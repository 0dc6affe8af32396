"""Bounds of a difference over all judgments of unjudged documents, against a slow loop over them."""

import itertools
import math
import random

import numpy as np
import pytest
from docs_scripts import docs_script

from rankgauge import InputError, evaluate, read_qrels, read_run, sample_path
from rankgauge.comparison import deciding_documents

stopping = docs_script("optional_stopping")
DOCUMENTS = [f"d{number}" for number in range(8)]
EXACT = ("P@2", "R@1", "R@3", "Success@2", "RR", "RR@2", "RBP(p=0.5)", "RBP(p=0.8)@2", "P(rel=2)@3", "RR(rel=2)@3")
OUTER = ("AP", "AP@2", "AP(rel=2)", "nDCG", "nDCG@1", "nDCG@3", "nDCG(gain=exp)@2", "nDCG(rel=2)@3")


def slow(name, ranking, grades):  # noqa: PLR0911 - one for each measure
    """Return the value of one query from its definition; 0 where undefined."""
    base, _, k = name.partition("@")
    base, _, parameter = base.rstrip(")").partition("(")
    k = int(k) if k else 99
    level = int(parameter[4:]) if parameter.startswith("rel=") else 1
    of = lambda document: grades.get(document, 0)  # noqa: E731
    hits = [of(document) >= level for document in ranking[:k]]
    relevant = sum(grade >= level for grade in grades.values())
    if base == "P":
        return sum(hits) / k
    if base == "Success":
        return float(any(hits))
    if base == "RBP":
        p = float(parameter[2:])
        return sum((1 - p) * p**place for place, hit in enumerate(hits) if hit)
    if base == "RR":
        return 1 / (hits.index(True) + 1) if any(hits) else 0.0
    if base == "nDCG":
        gain = lambda grade: (2**grade - 1 if parameter == "gain=exp" else grade) * (grade >= level)  # noqa: E731
        dcg = lambda grades: sum(gain(g) / math.log2(i + 2) for i, g in enumerate(grades[:k]))  # noqa: E731
        ideal = dcg(sorted((grade for grade in grades.values() if grade >= 0), reverse=True))
        return dcg([max(of(document), 0) for document in ranking]) / ideal if ideal else 0.0
    if not relevant:
        return 0.0
    if base == "R":
        return sum(hits) / relevant
    return sum(sum(hits[: place + 1]) / (place + 1) for place, hit in enumerate(hits) if hit) / relevant


def cases(seed, number):
    """Yield small random judgments (with ties, negative grades, absent queries) and two runs."""
    rng = random.Random(seed)
    while number:
        top = rng.choice([1, 1, 2, 3])
        queries = ["q1", "q2"][: rng.choice([1, 2])]
        qrels = {
            query: {
                document: rng.choice([-1, 0, 0, *range(top + 1)] if rng.random() < 0.7 else [0])
                for document in rng.sample(DOCUMENTS, rng.randint(1, 4))
            }
            for query in queries
        }
        runs = [
            {
                query: {document: rng.randint(1, 4) for document in rng.sample(DOCUMENTS, rng.randint(1, 5))}
                for query in queries
                if rng.random() < 0.9
            }
            for _ in range(2)
        ]
        judged = {(query, document) for query in qrels for document, grade in qrels[query].items() if grade >= 0}
        retrieved = {(query, document) for run in runs for query in run for document in run[query]}
        unjudged = sorted(retrieved - judged)
        grades = sorted({0, *(grade for own in qrels.values() for grade in own.values() if grade >= 0)})
        grades = grades if grades[-1] else [0, 1]
        if all(runs) and unjudged and len(grades) ** len(unjudged) <= 256:
            number -= 1
            yield qrels, runs, unjudged, grades


def differences(name, qrels, runs, unjudged, grades):
    """Return the mean difference for each assignment of grades, one axis per unjudged document."""
    rankings = [
        {query: sorted(sorted(run[query], reverse=True), key=run[query].get, reverse=True) for query in run}
        for run in runs
    ]
    found = []
    for assigned in itertools.product(grades, repeat=len(unjudged)):
        full = {query: dict(own) for query, own in qrels.items()}
        for (query, document), grade in zip(unjudged, assigned, strict=True):
            full[query][document] = grade
        baseline, run = (
            sum(slow(name, ranking.get(query, []), own) for query, own in full.items()) / len(full)
            for ranking in rankings
        )
        found.append(run - baseline)
    return np.array(found).reshape((len(grades),) * len(unjudged))


@pytest.mark.parametrize("name", EXACT + OUTER)
def test_bounds_and_potentials_hold_for_every_assignment(name):
    for qrels, runs, unjudged, grades in cases(name, 25):
        result = deciding_documents(qrels, *runs, name)
        truth = differences(name, qrels, runs, unjudged, grades)
        assert result.difference == pytest.approx(truth.flat[0], abs=1e-12)
        assert (result.low <= truth.min() + 1e-12, result.high >= truth.max() - 1e-12) == (True, True)
        if name in EXACT or (len(grades) == 2 and name.startswith("nDCG")):
            assert (result.low, result.high) == pytest.approx((truth.min(), truth.max()), abs=1e-12)
        potentials = {(own.query, own.document): own.potential for own in result.documents}
        for axis, pair in enumerate(unjudged):
            assert potentials.get(pair, 0.0) >= np.ptp(truth, axis=axis).max() - 1e-12
        # The statements of the report.
        if result.decided and len(result):
            assert truth.min() > 0 or truth.max() < 0
        if result.undecided is not None:
            first = {(own.query, own.document) for own in result.top(result.undecided)}
            others = truth[tuple(0 if pair in first else slice(None) for pair in unjudged)]
            assert np.all(np.sign(others) == np.sign(truth.flat[0]))


@pytest.mark.parametrize(
    "name", ["ERR@10", "GMAP", "AP(norm=retrieved)", "nDCG(ideal=topk)@5", "RR(rel=best)", "P(judged_only=true)@5"]
)
def test_a_measure_without_bounds_is_refused(name):
    with pytest.raises(InputError, match="no bounds of differences") as raised:
        deciding_documents({"q1": {"d1": 1}}, {"q1": ["d1"]}, {"q1": ["d2"]}, name)
    assert "use P, R, Success, RR, AP, nDCG, or RBP" in str(raised.value)


def test_a_relevant_document_below_the_cutoff_changes_the_divisor():
    qrels, baseline = {"q1": {"d1": 1}}, {"q1": ["d9", "d8"]}
    result = deciding_documents(qrels, baseline, {"q1": ["d1", "d2"]}, "R@1")
    assert {own.document: (own.baseline_rank, own.run_rank) for own in result.documents} == {
        "d9": (1, None),
        "d8": (2, None),
        "d2": (None, 2),
    }
    assert (result.low, result.high) == (0.0, 1.0)


def test_documents_are_ordered_by_potential_then_by_id():
    runs = {"q2": ["b", "a"], "q1": ["y", "x"]}, {"q2": ["c", "d"], "q1": ["z"]}
    result = deciding_documents({"q2": {"r": 1}, "q1": {"r": 1}}, *runs, "P@2")
    assert [(own.query, own.document) for own in result.documents] == [
        *(("q1", name) for name in "xyz"),
        *(("q2", name) for name in "abcd"),
    ]


@pytest.mark.parametrize("name", ["nDCG@3", "AP", "P@2"])
def test_judging_one_query_updates_the_result_like_computing_it_again(name):
    """The possible grades are those of all judgments: q3 has the highest."""
    judged = {"q1": {"d1": 1}, "q2": {"d2": 2, "d3": 1}, "q3": {"d9": 2}}
    runs = [
        {"q1": ["d2", "d1"], "q2": ["d5", "d2", "d6"], "q3": ["d9", "d8"]},
        {"q1": ["d1", "d4"], "q2": ["d3", "d6"], "q3": ["d7", "d9"]},
    ]
    before = deciding_documents(judged, *runs, name)
    more = judged | {"q2": judged["q2"] | {"d5": 0, "d6": 2}}
    again = deciding_documents(more, *runs, name)
    part = deciding_documents({"q2": more["q2"]}, *runs, name)
    updated = before.updated(part)
    assert updated.documents == again.documents != before.documents
    assert (updated.difference, updated.low, updated.high) == pytest.approx((again.difference, again.low, again.high))
    assert (updated.unjudged, updated.undecided) == (again.unjudged, again.undecided)


def test_the_sign_is_decided_only_by_a_bound():
    qrels = {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 1}}
    certain = deciding_documents(qrels, {"q1": ["d2"], "q2": ["d1"]}, {"q1": ["d1", "d9"], "q2": ["d1"]}, "RR")
    assert certain.decided
    assert "no judgment of these documents changes the sign" in certain.summary()
    open_ = deciding_documents(qrels, {"q1": ["d9"], "q2": ["d1"]}, {"q1": ["d1"], "q2": ["d1"]}, "RR")
    assert not open_.decided
    assert "at most 1 document matters" in open_.summary()
    assert "every verdict is provisional" in str(open_)


def test_only_documents_down_to_the_depth_are_judged():
    runs = {"q1": ["d1", "d2", "d3"]}, {"q1": ["d4", "d5", "d1"]}
    result = deciding_documents({"q1": {"d1": 1}}, *runs, "R@1", depth=2)
    assert {own.document for own in result.documents} == {"d2", "d4", "d5"}
    assert result.unjudged == 3


def test_the_queue_is_blind_and_reproducible():
    folder = sample_path("qrels.txt").parent
    result = deciding_documents(folder / "qrels.txt", folder / "runs/keyword.run", folder / "runs/bm25.run", depth=10)
    queue = result.queue(seed=3)
    assert {(query, name) for query in queue for name in queue[query]} == {
        (own.query, own.document) for own in result.documents
    }
    assert queue == result.queue(seed=3) != result.queue(seed=4)
    judged = read_qrels(folder / "qrels.txt")
    assert not any(name in judged[query] for query in queue for name in queue[query])
    # The order does not follow the ranks in either run.
    for own in (read_run(folder / "runs/keyword.run"), read_run(folder / "runs/bm25.run")):
        places = [
            (list(own[query]).index(name), place)
            for query in queue
            for place, name in enumerate(queue[query])
            if name in own.get(query, {})
        ]
        assert abs(np.corrcoef(np.array(places).T)[0, 1]) < 0.35


@pytest.mark.slow
def test_results_are_those_of_evaluate_on_real_runs(data_folder):
    folder = data_folder / "cranfield"
    runs = [folder / f"runs/{name}.run.gz" for name in ("minilm-l6-v2-cosine", "bm25-lucene-k0.9-b0.4-stem")]
    qrels = folder / "trec/qrels.txt"
    for name in ("nDCG@10", "AP", "R@20", "RBP"):
        result = deciding_documents(qrels, *runs, name)
        baseline, run = (next(iter(evaluate(qrels, path, name).mean().values())) for path in runs)
        assert result.difference == pytest.approx(run - baseline, abs=1e-12)
        assert result.low <= result.difference <= result.high
        assert result.to_dict()["documents"][0]["potential"] == result.top(1)[0].potential


def test_the_simulated_queue_ends_with_all_judgments():
    queries = [((["a", "b"], ["c", "a"]), {"a": 2.0, "c": 1.0}), ((["a"], ["b"]), {"b": 1.0})]
    size, times, states = stopping.judging(queries, 30, np.random.default_rng(2))
    full = {round(stopping.ndcg(top_b, grades) - stopping.ndcg(top_a, grades), 9) for (top_a, top_b), grades in queries}
    assert set(np.abs(states[-1]).round(9)) == {abs(value) for value in full}
    assert times == sorted(set(times))
    assert times[-1] <= size
    assert (np.count_nonzero(states[1:] != states[:-1], axis=1) <= 1).all()
