"""Pools: the union of the tops of rankings, with their sources, compared with slow loops."""

from __future__ import annotations

import statistics
import uuid
from collections import Counter

import pytest
from growth import assert_linear

import rankgauge
from rankgauge.judging import (
    Candidate,
    Document,
    JudgingProject,
    Question,
    Source,
    build_pool,
    load_questions,
    pool_warning,
)
from rankgauge.retrievers import BM25

SAMPLE = rankgauge.sample_path("qrels.txt").parent
BM25_RUN = rankgauge.sample_path("runs/bm25.run")
KEYWORD_RUN = rankgauge.sample_path("runs/keyword.run")


@pytest.fixture
def project(tmp_path):
    with JudgingProject.create(tmp_path / "judging.db") as made:
        made.add_questions(load_questions(rankgauge.sample_path("queries.jsonl")))
        yield made


@pytest.fixture
def small(tmp_path):
    """Two questions; documents d0 to d19."""
    with JudgingProject.create(tmp_path / "small.db") as made:
        made.add_questions([Question("q1", "late fees"), Question("q2", "opening hours")])
        yield made


DOCUMENTS = rankgauge.Collection.of({f"d{number}": f"text {number}" for number in range(20)})


def stored(project):
    with project.reading() as transaction:
        return {(each.question, each.document): each for each in transaction.candidates()}


def top_of_file(path, k):
    """Return the first k of each query by score, then by id descending, reading line by line."""
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        query, _, document, _, score, _ = line.split()
        rows.setdefault(query, []).append((float(score), document))
    return {query: [d for _, d in sorted(found, reverse=True)[:k]] for query, found in rows.items()}


def test_the_pool_is_the_union_of_the_top_of_all_runs(project):
    k = 7
    report = build_pool(project, SAMPLE, [BM25_RUN, KEYWORD_RUN], k=k)
    tops = {path.stem: top_of_file(path, k) for path in (BM25_RUN, KEYWORD_RUN)}
    sources = {}
    for name, top in tops.items():
        for query, documents in top.items():
            for rank, document in enumerate(documents, 1):
                sources.setdefault((query, document), {})[name] = rank
    found = stored(project)
    assert {pair: {source.name: source.rank for source in each.sources} for pair, each in found.items()} == sources
    assert report.documents == report.new == len(sources)
    sizes = sorted(Counter(query for query, _ in sources).values())
    assert report.per_question == (sizes[0], (sizes[14] + sizes[15]) / 2, sizes[-1])
    for each in report.sources:
        mine = [names for names in sources.values() if each.name in names]
        assert (each.total, each.unique, each.new) == (len(mine), sum(len(names) == 1 for names in mine), len(mine))
        assert (each.kind, each.questions) == ("run", 30)


def test_a_pool_is_the_same_in_both_databases(where):
    with JudgingProject.create(where) as made:
        made.add_questions([Question("q1", "late fees"), Question("q2", "opening hours")])
        report = build_pool(made, DOCUMENTS, [{"q1": ["d1", "d2"], "q2": ["d2"]}], random=2)
        assert (report.new, report.documents) == (7, 7)
        assert build_pool(made, DOCUMENTS, [{"q1": ["d2", "d1"]}], random=2).new == 0
        assert stored(made)["q1", "d2"].sources[0] == Source("run", "run", rank=2, score=1.0)


def test_the_same_run_again_adds_nothing_and_another_says_what_is_new(project):
    build_pool(project, SAMPLE, {"a": BM25_RUN}, k=5)
    before = stored(project)
    again = build_pool(project, SAMPLE, {"a": BM25_RUN}, k=5)
    assert (again.new, stored(project)) == (0, before)
    more = build_pool(project, SAMPLE, {"b": KEYWORD_RUN}, k=5)
    pairs = {(q, d) for q, documents in top_of_file(KEYWORD_RUN, 5).items() for d in documents}
    assert more.new == len(pairs - set(before))
    assert str(more).startswith(f"{more.new} new documents to judge")
    told = {each.name: each.new for each in more.sources}
    assert told == {"a": 0, "b": more.new}


def test_texts_of_candidates_are_copied_with_their_fields(small):
    texts = rankgauge.Collection.of(
        {"d1": rankgauge.Document("d1", "Fees", "Late fees", {"url": "/f", "tags": ["a"], "x": ""})}
    )
    build_pool(small, texts, [{"q1": ["d1"]}])
    expected = {"title": "Fees", "text": "Late fees", "url": "/f", "tags": '["a"]'}
    assert dict(small.documents(["d1"])["d1"].fields) == expected


def test_a_text_that_was_judged_is_not_replaced(small):
    small.add_candidates([Candidate("q1", "d1", (Source("a"),))], [Document("d1", {"text": "old"})])
    build_pool(small, DOCUMENTS, [{"q1": ["d1", "d2"]}])
    texts = small.documents(["d1", "d2"])
    assert [texts[name].fields["text"] for name in ("d1", "d2")] == ["old", "text 2"]


def test_searches_are_sources_beside_runs(project):
    report = build_pool(project, SAMPLE, {"bm25": BM25_RUN}, retrievers={"bm25": BM25()}, k=3)
    assert {(each.name, each.kind) for each in report.sources} == {("bm25", "run"), ("bm25", "search")}
    collection = rankgauge.Collection.read(SAMPLE)
    bm25 = BM25()
    bm25.index(collection.documents.values())
    query = collection.queries["q05"]
    expected = [document for document, _ in bm25.search([query], 3)[0]]
    ranks = {
        source.rank: document
        for (question, document), each in stored(project).items()
        for source in each.sources
        if question == "q05" and source.kind == "search"
    }
    assert [ranks[rank] for rank in sorted(ranks)] == expected


def test_answering_documents_are_candidates_and_must_exist(small):
    small.add_questions([Question("q1", "late fees", answers=("d3",))])
    build_pool(small, DOCUMENTS, [{"q2": ["d1"]}])
    assert stored(small)["q1", "d3"].sources == (Source("author", "author"),)
    small.add_questions([Question("q2", "opening hours", answers=("d99",))])
    with pytest.raises(rankgauge.InputError, match="'d99', which is not in the collection"):
        build_pool(small, DOCUMENTS, [{"q2": ["d1"]}])


def test_documents_that_the_collection_lacks_are_left_out_and_reported(small):
    report = build_pool(small, DOCUMENTS, [{"q1": ["d1", "gone", "d2"]}], k=3)
    assert report.missing == ("gone",)
    assert set(stored(small)) == {("q1", "d1"), ("q1", "d2")}
    assert "1 document skipped because the collection lacks them" in str(report)
    # The rank is the one in the run.
    assert stored(small)["q1", "d2"].sources[0].rank == 3


def test_questions_without_candidates_are_reported(small):
    report = build_pool(small, DOCUMENTS, [{"q1": ["d1"]}])
    assert report.empty == ("q2",)
    assert "1 question without candidates: 'q2'" in str(report)


def test_a_run_of_other_question_ids_is_refused_with_the_way_to_write_them(small):
    with pytest.raises(rankgauge.MismatchError, match="run other has no question") as error:
        build_pool(small, DOCUMENTS, {"other": {"Q1": ["d1"], "Q2": ["d1"]}})
    assert "'Q1' is 'q1' in the same case" in error.value.fix
    assert not stored(small)


def test_a_run_of_other_document_ids_is_refused_with_the_way_to_write_them(small):
    with pytest.raises(rankgauge.MismatchError, match="run other has no document") as error:
        build_pool(small, DOCUMENTS, {"other": {"q1": ["D1", "D2"]}})
    assert "in the same case" in error.value.fix


def test_without_questions_or_sources_there_is_no_pool(tmp_path, small):
    with pytest.raises(rankgauge.InputError, match="no runs or searches to take candidates from"):
        build_pool(small, DOCUMENTS)
    empty = JudgingProject.create(tmp_path / "empty.db")
    with empty, pytest.raises(rankgauge.InputError, match="there are no questions"):
        build_pool(empty, DOCUMENTS, [{"q1": ["d1"]}])


def test_a_document_twice_in_a_ranking_counts_once(small):
    rows = [("q1", "d1", 3.0), ("q1", "d1", 2.0), ("q1", "d2", 1.0)]
    report = build_pool(small, DOCUMENTS, [rankgauge.Run.of(rows)], k=2)
    assert report.documents == 2


# ---- random documents


def test_random_documents_are_drawn_from_outside_the_pool_with_their_probability(small):
    run = {"q1": [f"d{number}" for number in range(5)], "q2": ["d0"]}
    report = build_pool(small, DOCUMENTS, [run], random=3)
    drawn = {
        pair: each.sources
        for pair, each in stored(small).items()
        if any(source.kind == "random" for source in each.sources)
    }
    assert Counter(question for question, _ in drawn) == {"q1": 3, "q2": 3}
    for (question, document), sources in drawn.items():
        assert document not in run[question]
        outside = 20 - len(run[question])
        assert sources == (Source("random", "random", probability=3 / outside),)
    assert report.new == 6 + 6


def test_random_documents_are_drawn_once_for_each_question(small):
    build_pool(small, DOCUMENTS, [{"q1": ["d1"]}], random=2, seed=1)
    before = stored(small)
    report = build_pool(small, DOCUMENTS, random=4, seed=2)
    assert (report.new, report.drawn, stored(small)) == (0, 2, before)
    assert "no more were drawn" in str(report)
    small.add_questions([Question("q3", "cards")])
    report = build_pool(small, DOCUMENTS, random=4, seed=2)
    assert (report.new, report.drawn) == (4, 2)


def test_more_random_documents_than_there_are_draws_all_with_probability_one(small):
    run = {"q1": [f"d{number}" for number in range(18)]}
    build_pool(small, DOCUMENTS, [run], k=18, random=30)
    tail = [
        each.sources[0].probability
        for (question, _), each in stored(small).items()
        if question == "q1" and each.sources[0].kind == "random"
    ]
    assert tail == [1.0, 1.0]


def test_the_draw_has_the_recorded_probability_for_every_document(tmp_path):
    """1,500 questions with the same pool of 4 of 12 documents: each is drawn with 3 / 8."""
    questions = 1500
    documents = rankgauge.Collection.of({f"d{number}": "x" for number in range(12)})
    with JudgingProject.create(tmp_path / "many.db") as made:
        made.add_questions([Question(f"q{number}", "x") for number in range(questions)])
        pool = {f"q{number}": ["d0", "d1", "d2", "d3"] for number in range(questions)}
        build_pool(made, documents, [pool], random=3, seed=7)
        drawn = Counter(document for (_, document), each in stored(made).items() if each.sources[0].kind == "random")
    p = 3 / 8
    deviation = (questions * p * (1 - p)) ** 0.5
    assert set(drawn) == {f"d{number}" for number in range(4, 12)}
    assert all(abs(count - questions * p) < 4 * deviation for count in drawn.values())


def test_the_tail_estimates_how_many_relevant_documents_the_pool_misses(tmp_path):
    """Horvitz-Thompson: the mean of sum(relevant / probability) is the number that is missed."""
    relevant = {f"d{number}" for number in range(9, 15)}
    questions = [f"q{number}" for number in range(600)]
    with JudgingProject.create(tmp_path / "many.db") as made:
        made.add_questions([Question(name, "x") for name in questions])
        build_pool(made, DOCUMENTS, [{name: ["d0", "d9"] for name in questions}], random=4, seed=5)
        estimates = dict.fromkeys(questions, 0.0)
        for (question, document), each in stored(made).items():
            if each.sources[0].kind == "random" and document in relevant:
                estimates[question] += 1 / each.sources[0].probability
    mean = statistics.mean(estimates.values())
    # d9 is in the pool, the other five are not.
    assert abs(mean - 5) < 4 * statistics.stdev(estimates.values()) / len(questions) ** 0.5


# ---- reports


def test_every_pool_that_a_model_took_part_in_has_the_warning(small):
    assert pool_warning(["run", "search"]) == ""
    assert "a document that looks relevant need not be relevant or correct" in pool_warning(["run", "model"])
    small.add_candidates([Candidate("q1", "d7", (Source("gpt", "model", rank=1),))], [Document("d7")])
    report = build_pool(small, DOCUMENTS, [{"q1": ["d1"]}])
    for text in (str(report), report.to_markdown(), report.to_html()):
        assert "a document that looks relevant need not be relevant or correct" in " ".join(text.split())


def test_few_questions_are_called_enough_for_a_first_look(project, small):
    assert "20 are enough for a first look; aim for 100" in str(build_pool(small, DOCUMENTS, [{"q1": ["d1"]}]))
    assert "30 questions: enough for a first look" in str(build_pool(project, SAMPLE, [BM25_RUN]))


@pytest.mark.slow
def test_a_pool_of_long_runs_takes_linear_time(tmp_path):
    """Only the top k of 300 documents is looked up and stored."""
    depth = 300
    ids = [f"d{number}" for number in range(20_000)]
    texts = rankgauge.Collection.of(dict.fromkeys(ids, "text"))

    def make(queries):
        columns = (
            [f"q{query}" for query in range(queries) for _ in range(depth)],
            [ids[(query * 37 + rank) % len(ids)] for query in range(queries) for rank in range(depth)],
            [float(depth - rank) for _ in range(queries) for rank in range(depth)],
        )
        made = JudgingProject.create(tmp_path / f"{uuid.uuid4()}.db")
        made.add_questions([Question(f"q{query}", "x") for query in range(queries)])
        return made, rankgauge.Run.from_columns(*columns, name="long"), queries

    def pool(given):
        made, run, queries = given
        with made:
            assert build_pool(made, texts, [run], random=1).documents == queries * 11

    assert_linear(make, pool, 600)


def test_an_empty_pool_names_its_reason(small, tmp_path):
    with pytest.raises(rankgauge.InputError, match="no runs or searches") as error:
        build_pool(small, rankgauge.Collection())
    assert error.value.fix.startswith("add documents")
    unrelated = rankgauge.Collection.of({"d1": "unrelated"})
    with pytest.raises(rankgauge.InputError, match="no run or search found a document"):
        build_pool(small, unrelated, retrievers={"bm25": BM25()})
