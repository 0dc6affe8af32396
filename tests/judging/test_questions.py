"""Questions read from files."""

import pytest

import rankgauge
from rankgauge.judging import load_questions


def test_questions_carry_need_author_and_answering_documents(tmp_path):
    file = tmp_path / "questions.csv"
    file.write_text(
        "question,relevant,need,author\nhow late,d1;d2,opening hours on Sundays,Bo\nhow much,,,\n",
        encoding="utf-8",
    )
    first, second = load_questions(file, author="Ann")
    assert (first.id, first.text, first.need) == ("q1", "how late", "opening hours on Sundays")
    assert (first.author, first.answers, first.origin) == ("Bo", ("d1", "d2"), "file")
    assert (second.author, second.answers, second.need) == ("Ann", (), "")


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
