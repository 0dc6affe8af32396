"""Judgments of old collections and of learning to rank; texts in SMART markup."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankgauge.corpus.collection import read_documents, read_queries
from rankgauge.data.qrels import Qrels, read_qrels
from rankgauge.errors import FormatError

SMART = "     1     28\t0\t0.000000\n     1     35\t0\t0.000000\n\n     2     28\t0\t0.000000\n"
NPL = "1\n 28  35\n   /\n2\n 28\n   /\n"
PAIRS = Qrels.of({"1": ["28", "35"], "2": ["28"]})
LETOR = {
    "of Quepid": "3 qid:1 # d1 red dress\n0 qid:1 # d2 red dress\n1 qid:2 # d1 jeans\n",
    "of LETOR": (
        "3 qid:1 1:0.03 2:0.66 #docid = d1 inc = 1 prob = 0.08\n"
        "0 qid:1 1:0.10 2:0.00 #docid = d2 inc = 1 prob = 0.03\n"
        "1 qid:2 1:0.00 2:1.00 #docid = d1 inc = 0.1 prob = 0.5\n"
    ),
    "of a plugin": "# grades\n3\tqid:1\t#\td1\tred dress\n0 qid:1 # d2\n1 qid:2 # d1\n",
}


@pytest.mark.parametrize(("form", "text"), [("smart", SMART), ("npl", NPL)])
def test_a_pair_that_is_there_is_relevant(form: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "rels.txt"
    path.write_text(text)
    assert read_qrels(path) == read_qrels(path, format=form) == PAIRS
    (said,) = read_qrels(path).table.notes
    assert "relevant (grade 1)" in said


@pytest.mark.parametrize("text", LETOR.values(), ids=LETOR)
def test_the_document_of_a_letor_line_is_in_its_comment(text: str, tmp_path: Path) -> None:
    path = tmp_path / "ratings.txt"
    path.write_text(text)
    expected = Qrels.of({"1": {"d1": 3, "d2": 0}, "2": {"d1": 1}})
    assert read_qrels(path, format="letor") == expected
    if not text.startswith("#"):
        assert read_qrels(path) == expected


def test_judgments_of_trec_stay_judgments_of_trec(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    for text, grade in [("1 0 0 0\n", 0.0), ("1 0 0 1.000000\n", 1.0), ("1 28 0 0.5\n", 0.5)]:
        path.write_text(text)
        assert read_qrels(path)["1"] == {"0": grade}
    path.write_text("1 28 0 0.000000\n")
    assert read_qrels(path, format="trec")["1"] == {"0": 0.0}


def test_texts_of_smart_have_sections(tmp_path: Path) -> None:
    path = tmp_path / "docs.all"
    path.write_text(".I 1\n.T\nA title\n.A\nSome One\n.W\nFirst line\nsecond .W line\n.X\n1\t5\t1\n.I 002\n.W\nmore\n")
    found = read_documents(path)
    assert list(found) == ["1", "002"]
    assert found["1"].title == "A title"
    assert found["1"].text == "First line second .W line"
    assert found["002"].text == "more"
    assert read_queries(path)["002"].text == "more"


@pytest.mark.parametrize(("text", "message"), [(".I 1\n.T\n.W\n", "no text"), (".I \n.W\nmore\n", "no id")])
def test_a_smart_text_without_id_or_text_is_reported(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.qry"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        read_queries(path)


def test_a_smart_text_that_is_not_utf8_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.qry"
    path.write_bytes(b".I 1\n.W\nok\n.I 2\n.W\ncaf\xe9\n")
    with pytest.raises(FormatError, match="line 6: byte 4 of the line, 0xe9, is not UTF-8"):
        read_queries(path)
