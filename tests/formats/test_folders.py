"""A folder of Markdown or text files, with questions."""

from __future__ import annotations

import json

import pytest

from rankgauge import Collection, Document, FormatError, InputError, describe_collection, html_report


@pytest.fixture
def pages(tmp_path):
    folder = tmp_path / "docs"
    (folder / "orders").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "refunds.md").write_text("# Refunds #\n\nWithin a week.\n", encoding="utf-8")
    (folder / "orders" / "late-order.txt").write_text("Ask us.\r\n", encoding="utf-8", newline="")
    (folder / "front.md").write_text("---\ntitle: 'In front'\n---\nText\n# Later\n", encoding="utf-8")
    (folder / "code.md").write_text("Intro\n```\n# no heading\n```\n## Real one\n", encoding="utf-8")
    (folder / ".hidden.md").write_text("# no", encoding="utf-8")
    (folder / ".git" / "x.md").write_text("# no", encoding="utf-8")
    (folder / "logo.png").write_bytes(b"\x89PNG")
    return folder


def asked(folder, text, name="questions.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_each_file_of_text_is_a_document_named_by_its_path(pages):
    (pages / "report.html").write_text(html_report({"q": {"a": 1}}, [{"q": {"a": 1.0}}]), encoding="utf-8")
    (pages / "__pycache__").mkdir()
    (pages / "__pycache__/retriever.cpython-311.pyc").touch()
    found = Collection.load(pages)
    assert list(found.documents.values()) == [
        Document("code.md", "Real one", "Intro\n```\n# no heading\n```\n## Real one\n"),
        Document("front.md", "In front", "Text\n# Later\n"),
        Document("orders/late-order.txt", "late order", "Ask us.\n"),
        Document("refunds.md", "Refunds", "\nWithin a week.\n"),
    ]
    assert found.notes == ("1 non-text file skipped: .png",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.csv", "question,relevant\nlong?,refunds.md; orders/late-order.txt\nwho,code.md\n"),
        ("q.csv", "Query,doc_id\nlong?,refunds.md\nlong?,./orders/late-order.txt\nwho,code.md\n"),
        ("q.tsv", "question\tsource\nlong?\trefunds.md;orders\\late-order.txt\nwho\tcode.md\n"),
        (
            "q.jsonl",
            """{"query": "long?", "expected": ["refunds.md", "orders/late-order.txt"]}

{"query": "who", "expected": "code.md"}
""",
        ),
    ],
)
def test_questions_name_their_documents(pages, tmp_path, name, text):
    found = Collection.load(pages, queries=asked(tmp_path, text, name))
    assert {key: query.text for key, query in found.queries.items()} == {"q1": "long?", "q2": "who"}
    assert found.qrels["q1"] == {"refunds.md": 1.0, "orders/late-order.txt": 1.0}
    assert found.qrels["q2"] == {"code.md": 1.0}


def test_questions_may_have_ids_grades_and_fields(pages):
    asked(pages, "id,question,relevant,grade,kind\n7,who,code.md,2,how-to\n7,who,refunds.md,1,\n8,x,,,\n")
    found = Collection.load(pages)
    assert found.queries["7"].fields == {"kind": "how-to"}
    assert found.qrels["7"] == {"code.md": 2.0, "refunds.md": 1.0}
    assert (list(found.queries), list(found.qrels)) == (["7", "8"], ["7"])
    graded = asked(pages, json.dumps({"query": "x", "relevant": {"code.md": 3}}), "questions.jsonl")
    assert Collection.load(pages, queries=graded).qrels["q1"] == {"code.md": 3.0}


@pytest.mark.parametrize(
    ("text", "line", "said", "fix"),
    [
        ("question,relevant\nwho,code\n", 2, "no document 'code'", "did you mean 'code.md'"),
        ("question,relevant\nwho,zzz\n", 2, "no document 'zzz'", "its path"),
        ("question,relevant\nwho,Code.md\n", 2, "no document 'Code.md'", "did you mean 'code.md'"),
        ("question,relevant\nwho,code.md refunds.md\n", 2, "no document 'code", "with ';'"),
        ('question,relevant\nwho,"code.md, refunds.md"\n', 2, "no document 'code", "with ';'"),
        ("question,relevant\n,code.md\n", 2, "no question", "question,relevant"),
        ("id,question,relevant\n1,a,code.md\n1,b,code.md\n", 3, "with another text", "a unique id"),
        ("question,relevant,grade\na,code.md,much\n", 2, "got 'much', expected a grade", "a number"),
        ("question,relevant,grade\na,code.md,nan\n", 2, "got 'nan', expected a grade", "a number"),
    ],
)
def test_questions_that_do_not_fit_are_refused_with_their_line(pages, text, line, said, fix):
    asked(pages, text)
    with pytest.raises(FormatError, match=said) as caught:
        Collection.load(pages)
    assert caught.value.line == line
    assert fix in caught.value.fix
    assert Collection.load(pages, invalid="skip").faults.count == 1


def test_questions_without_their_column_are_refused(pages):
    asked(pages, "what,ever\nx,y\n")
    with pytest.raises(FormatError, match="no column for the question") as caught:
        Collection.load(pages)
    assert "name it question" in caught.value.fix


def test_a_file_that_is_not_utf8_is_named_and_can_be_passed_over(pages):
    (pages / "old.txt").write_bytes(b"a\nb\xe4")
    with pytest.raises(FormatError, match="byte 0xe4 is not UTF-8") as caught:
        Collection.load(pages)
    assert (caught.value.line, caught.value.path) == (2, str(pages / "old.txt"))
    found = Collection.load(pages, invalid="skip")
    assert (len(found.documents), found.faults.count) == (4, 1)
    assert describe_collection(pages).findings[0].evidence.count == 1


def test_a_folder_without_text_is_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(InputError, match="neither documents nor queries"):
        Collection.load(tmp_path)


def test_fields_of_queries_with_ids_are_not_taken_for_documents(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "x"}')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "y", "source": "web"}')
    found = Collection.load(tmp_path)
    assert (found.qrels, found.queries["q"].fields) == (None, {"source": "web"})


def test_an_id_can_contain_the_separator_of_ids(tmp_path):
    documents = tmp_path / "documents.csv"
    documents.write_text("id,text\na;b,one\na,two\nb,three\n")
    path = tmp_path / "questions.csv"
    path.write_text('question,relevant\nwhich,a;b\nboth,"a; b"\n')
    found = Collection.load(documents, queries=path)
    assert {query: set(found.qrels[query]) for query in found.qrels} == {"q1": {"a;b"}, "q2": {"a", "b"}}


HTML = (
    "<!doctype html><html><head><title> Late\n fees </title><style>p {}</style></head><body><h1>Fees</h1>"
    "<p>Ten <b>cents</b> &amp; more<br>a day<script>x()</script></p></body></html>"
)


@pytest.mark.parametrize(
    ("name", "text", "title", "body"),
    [
        ("a.html", HTML, "Late fees",
         "Fees\nTen cents & more\na day"),
        ("no-title.htm", "Ten cents", "no title", "Ten cents"),
        ("a.rst", "Late fees\n=========\n\nTen cents.\n", "Late fees", "\nTen cents.\n"),
        ("b.rst", "=====\n Fees\n=====\nTen.\n", "Fees", "Ten.\n"),
        ("plain.rst", "Ten cents.\n\nMore.\n", "plain", "Ten cents.\n\nMore.\n"),
        ("a.adoc", "= Late fees\n\nTen cents.\n", "Late fees", "\nTen cents.\n"),
        ("a.org", "#+TITLE: Late fees\nTen cents.\n", "Late fees", "Ten cents.\n"),
        ("toml.md", '+++\ntitle = "Late fees"\ntags = ["a"]\n+++\nTen cents.\n', "Late fees", "Ten cents.\n"),
        ("untitled.md", "---\ntags: [a]\n---\nTen cents.\n", "untitled", "Ten cents.\n"),
        ("a.ipynb", json.dumps({"cells": [
            {"cell_type": "markdown", "source": ["# Late fees\n", "Ten cents."]},
            {"cell_type": "code", "source": "1 + 1", "outputs": [{"text": "2"}]},
        ]}), "Late fees", "Ten cents.\n\n1 + 1"),
        ("empty.ipynb", "", "empty", ""),
    ],
)  # fmt: skip
def test_the_title_and_the_text_of_each_kind_of_page(tmp_path, name, text, title, body):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert list(Collection.load(tmp_path).documents.values()) == [Document(name, title, body)]
