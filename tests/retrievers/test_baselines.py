"""The random and oracle retrievers, the lower and upper baselines."""

from __future__ import annotations

import itertools
import json

import pytest

from rankgauge import Document, Qrels, Query, evaluate
from rankgauge.data.run import Run, write_run
from rankgauge.errors import InputError, UnknownName
from rankgauge.retrievers import Oracle, Random, SavedRun
from rankgauge.retrievers.protocol import search
from rankgauge.sample import sample_path

DOCUMENTS = [Document(f"d{n}") for n in range(1, 8)]
QUERIES = [Query("q1"), Query("q2"), Query("q3")]


def asked(retriever, queries=QUERIES, k=10, documents=DOCUMENTS):
    retriever.index(documents)
    found = retriever.search(queries, k)
    for ranking in found:
        scores = [score for _, score in ranking]
        assert scores == sorted(scores, reverse=True)
    return [[name for name, _ in ranking] for ranking in found]


def test_chance_ranks_every_document_once():
    for ranking in asked(Random()):
        assert sorted(ranking) == [document.id for document in DOCUMENTS]


def test_chance_depends_on_seed_and_query_alone():
    whole = asked(Random(1))
    assert asked(Random(1), documents=DOCUMENTS[::-1]) == whole
    assert asked(Random(1), QUERIES[::-1]) == whole[::-1]
    assert asked(Random(1), k=3) == [ranking[:3] for ranking in whole]
    assert asked(Random(2)) != whole
    assert len({tuple(ranking) for ranking in whole}) == 3


def test_chance_is_the_same_everywhere():
    # Stored values: every machine, Python, and NumPy must agree.
    assert asked(Random(7), [Query("q1")]) == [["d4", "d1", "d6", "d7", "d5", "d2", "d3"]]


def test_chance_is_fair():
    queries = [Query(str(n)) for n in range(6000)]
    rankings = asked(Random(), queries, documents=DOCUMENTS[:3])
    for order in itertools.permutations(["d1", "d2", "d3"]):
        # 1000 expected, sd 29.
        assert 870 < sum(ranking == list(order) for ranking in rankings) < 1130


def test_the_oracle_ranks_what_is_relevant_by_grade_and_id():
    qrels = {"q1": {"d3": 1, "d2": 2, "d1": 1, "d4": 0, "d5": -1, "gone": 3}, "q2": {"d1": 0}}
    assert asked(Oracle(qrels)) == [["d2", "d1", "d3"], [], []]
    assert asked(Oracle(qrels), k=2) == [["d2", "d1"], [], []]
    assert asked(Oracle(qrels, rel=2)) == [["d2"], [], []]


def test_the_oracle_fills_up_when_told():
    qrels = {"q1": {"d6": 1, "d2": 2, "d5": -1, "d4": 0}, "q2": {"d3": 0}}
    assert asked(Oracle(qrels, fill=True), QUERIES[:2], k=6) == [
        ["d2", "d6", "d4", "d5", "d1", "d3"],
        ["d3", "d1", "d2", "d4", "d5", "d6"],
    ]
    assert asked(Oracle(qrels, fill=True), k=2)[0] == ["d2", "d6"]


@pytest.mark.parametrize("fill", [True, False])
def test_no_ranking_is_better_than_the_oracle(fill):
    qrels = Qrels.of(sample_path("qrels.txt"))
    names = sorted({name for query in qrels for name in qrels[query]})
    queries = [Query(name) for name in qrels]
    oracle = Oracle(sample_path("qrels.txt"), fill=fill)
    oracle.index([Document(name) for name in names])
    found = oracle.search(queries, 100)
    run = {q.id: ranking for q, ranking in zip(queries, found, strict=True) if ranking}
    means = evaluate(qrels, run, ["nDCG@10", "AP", "RR"]).mean()
    solvable = sum(any(grade >= 1 for grade in qrels[q].values()) for q in qrels) / len(qrels)
    assert list(means.values()) == pytest.approx([solvable] * 3)


def test_settings_distinguish_judgments():
    one, same, other = Oracle({"q": {"d": 1}}), Oracle({"q": {"d": 1.0}}), Oracle({"q": {"d": 2}})
    assert one.settings == same.settings != other.settings
    assert json.loads(json.dumps(one.settings)) == one.settings
    assert Random(1).settings != Random(2).settings


@pytest.mark.parametrize("retriever", [Random(), Oracle({"q1": {"d1": 1}})], ids=["random", "oracle"])
def test_both_need_indexing_and_accept_empty_collections(retriever):
    with pytest.raises(InputError, match="no documents yet"):
        retriever.search(QUERIES, 1)
    assert asked(retriever, documents=[]) == [[], [], []]


@pytest.mark.parametrize("seed", [-1, 1.5, True, "x"])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InputError, match="seed="):
        Random(seed)


RUN = {"q1": {"d1": 0.5, "d2": 0.75, "d3": 0.5}, "q2": {"d1": 1.0}}


def test_it_answers_by_query_id_best_first():
    saved = SavedRun(RUN)
    saved.index([])
    found = saved.search([Query("q2"), Query("q1", "late fees")], 2)
    assert found == [[("d1", 1.0)], [("d2", 0.75), ("d3", 0.5)]]


def test_a_file_answers_as_what_it_was_written_from(tmp_path):
    write_run(Run.of(RUN), tmp_path / "a.run")
    saved = SavedRun(str(tmp_path / "a.run"))
    assert [hits.ids for hits in search(saved, [Query("q1")], 10)] == [["d2", "d3", "d1"]]
    assert saved.settings == SavedRun(RUN).settings
    assert saved.settings != SavedRun({"q1": {"d1": 1.0}}).settings


def test_a_query_that_is_not_in_it_is_an_error_or_empty():
    with pytest.raises(InputError, match="no query 'q9'") as caught:
        SavedRun(RUN).search([Query("q1"), Query("q9")], 10)
    assert 'missing="empty"' in caught.value.fix
    assert SavedRun(RUN, missing="empty").search([Query("q9")], 10) == [[]]
    with pytest.raises(UnknownName):
        SavedRun(RUN, missing="ignore")


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError):
        SavedRun(tmp_path / "gone.run")
    with pytest.raises(InputError, match="twice"):
        SavedRun({"q1": [("d1", 1.0), ("d1", 2.0)]})
