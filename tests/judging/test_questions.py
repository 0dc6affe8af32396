"""Questions from files."""

import pytest

import rankgauge
from rankgauge.judging import (
    Candidate,
    Document,
    GoldTask,
    JudgingProject,
    Question,
    Settings,
    Source,
    load_gold,
    load_questions,
)


def test_questions_carry_need_author_and_answering_documents(tmp_path):
    file = tmp_path / "questions.csv"
    file.write_text(
        "question,relevant,need,author\nhow late,d1;d2,opening hours on Sundays,Bo\nhow much,,,\n", encoding="utf-8"
    )
    first, second = load_questions(file, author="Ann")
    assert (first.id, first.text, first.need) == ("q1", "how late", "opening hours on Sundays")
    assert (first.author, first.answers, first.origin) == ("Bo", ("d1", "d2"), "file")
    assert (second.author, second.answers, second.need) == ("Ann", (), "")


def test_generated_questions_of_a_file_remain_generated(tmp_path):
    file = tmp_path / "questions.jsonl"
    file.write_text(
        '{"id": "q1", "text": "how late", "origin": "generated"}\n{"id": "q2", "text": "how much", "origin": "log"}\n',
        encoding="utf-8",
    )
    assert [each.origin for each in load_questions(file)] == ["generated", "log"]


def test_an_answering_document_must_be_in_the_collection(tmp_path):
    file = tmp_path / "questions.csv"
    file.write_text("question,relevant\nhow late,opening-hour\n", encoding="utf-8")
    documents = rankgauge.Collection.of({"opening-hours": "We open at nine."})
    with pytest.raises(rankgauge.FormatError, match=r"line 2|:2"):
        load_questions(file, documents)


def test_a_collection_gives_its_queries():
    folder = rankgauge.sample_path("qrels.txt").parent
    questions = load_questions(folder)
    assert [each.id for each in questions][:2] == ["q01", "q02"]
    assert not any(each.answers for each in questions)


def test_a_collection_without_queries_is_refused(tmp_path):
    tmp_path.joinpath("page.md").write_text("# Opening hours\n\nNine to five.", encoding="utf-8")
    with pytest.raises(rankgauge.InputError, match="there are no questions"):
        load_questions(tmp_path)


# ---- hidden tests


@pytest.fixture
def project(tmp_path):
    with JudgingProject.create(tmp_path / "judging.db", Settings(gold=1.0)) as made:
        made.add_questions([Question("q1", "late fees")])
        documents = [Document(name) for name in ("a", "b", "c")]
        pool = [Candidate("q1", each.id, (Source("x"),)) for each in documents]
        made.add_candidates(pool, documents)
        yield made


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gold.csv", "question,documents,accepted\nq1,a;b;c,b\nq1,a;b,\n"),
        (
            "gold.jsonl",
            (
                '{"question": "q1", "documents": ["a", "b", "c"], "accepted": ["b"]}\n'
                '{"question": "q1", "documents": ["a", "b"]}\n'
            ),
        ),
    ],
)
def test_hidden_tests_are_read_and_given_to_judges(project, tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    tests = load_gold(file, project)
    assert tests == [GoldTask("q1", ("a", "b", "c"), ("b",)), GoldTask("q1", ("a", "b"))]
    project.add_gold(tests)
    ann = project.add_judge("Ann")[0]
    assert project.next_task(ann.id).presentation.purpose == "gold"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("q9,a;b,a", "no question 'q9'"),
        ("q1,a;z,a", "no document 'z'"),
        ("q1,,", "the documents are"),
        ("q1,a;a,a", "the documents are"),
        ("q1,a;b,c", "are not all shown"),
    ],
)
def test_a_hidden_test_that_does_not_fit_is_an_error_with_its_line(project, tmp_path, row, message):
    file = tmp_path / "gold.csv"
    file.write_text(f"question,documents,accepted\nq1,a;b,a\n{row}\n", encoding="utf-8")
    with pytest.raises(rankgauge.FormatError, match=message) as error:
        load_gold(file, project)
    assert error.value.line == 3
