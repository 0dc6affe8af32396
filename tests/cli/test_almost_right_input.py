"""Folders that are almost right: what is there, what is accepted, or what is named with a fix that works."""

import json
import re
import subprocess

import command
import pytest

pytest.importorskip("bm25s")

PAGES = {
    "loans/renewing.md": "# Renewing\n\nYou can renew a loan twice on the web page.\n",
    "fees.md": "# Fees\n\nA late book costs ten cents per day.\n",
    "house/hours.md": "# Opening hours\n\nWe open at nine and close at five.\n",
}
QUESTIONS = {
    "How do I renew a loan?": "loans/renewing.md",
    "What does a late book cost?": "fees.md",
    "When do you open?": "house/hours.md",
}


def table(head, *, by=",", name=str):
    """The questions under these column names; columns other than the first two are empty."""
    rest = by * (head.count(by) - 1)
    lines = (f"{question}{by}{name(page)}{rest}" for question, page in QUESTIONS.items())
    return f"{head}\n" + "".join(f"{line}\n" for line in lines)


def notebook(*cells):
    return json.dumps({"cells": [{"cell_type": kind, "source": [text]} for kind, text in cells], "nbformat": 4})


# The files beside three pages of Markdown. Each is evaluated without a flag.
ACCEPTED = {
    "column answers": {"questions.csv": table("question,answers")},
    "column expected": {"questions.csv": table("question,expected")},
    "column doc": {"questions.csv": table("question,doc")},
    "column docs": {"questions.csv": table("question,docs")},
    "column gold": {"questions.csv": table("question,gold")},
    "column ground_truth": {"questions.csv": table("question,ground_truth")},
    "column source": {"questions.csv": table("question,source")},
    "column misspelled": {"questions.csv": table("question,relevent")},
    "columns in words": {"questions.csv": table("Question,Relevant documents")},
    "columns of ragas": {"questions.csv": table("user_input,reference")},
    "column prompt": {"questions.csv": table("prompt,relevant")},
    "own ids": {
        "questions.csv": "id,"
        + table("question,doc").replace("\n", "\n7,", 1).replace("\nW", "\n8,W", 1).replace("\nWhen", "\n9,When")
    },
    "another column of text": {"questions.csv": table("question,gold,comment")},
    "another file name": {"Questions.CSV": table("question,relevant")},
    "semicolons": {"questions.csv": table("question;relevant", by=";")},
    "semicolons and ids": {"questions.csv": '\ufeffid;question;relevant\r\n7;"Late book; cost?";fees.md\r\n'},
    "tabs": {"questions.tsv": table("question\trelevant", by="\t")},
    "JSON lines": {
        "questions.jsonl": "".join(
            json.dumps({"question": question, "gold": [page]}) + "\n" for question, page in QUESTIONS.items()
        )
    },
    "paths from the root": {"questions.csv": table("question,relevant", name=lambda page: f"/home/me/notes/{page}")},
    "paths with the folder": {"questions.csv": table("question,relevant", name=lambda page: f"notes/{page}")},
    "paths of Windows": {"questions.csv": table("question,relevant", name=lambda page: page.replace("/", "\\"))},
    "relative paths": {"questions.csv": table("question,answers", name=lambda page: f"./{page}")},
}


def folder_of(tmp_path, files, pages=PAGES):
    notes = tmp_path / "notes"
    for name, text in {**pages, **files}.items():
        path = notes / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return notes


@pytest.mark.parametrize("files", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_unambiguous_is_accepted(tmp_path, files):
    folder_of(tmp_path, files)
    done = command.run("bench", "notes", "--only", "bm25", "-m", "R@1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"bm25 +1\.0000", done.stdout)


PRINTF = (
    r"""printf 'question,relevant\nQUESTION 1,"%s"\nQUESTION 2,"%s"\n' fees.md house/hours.md > notes/questions.csv"""
)
LOOKED_FOR = "looked for questions.csv, .tsv, or .jsonl, queries.*, and topics.*"
# The files, what is named, and the fix. A fix after a $ is a command, which is run; then bench finds questions.
REFUSED = {
    "no questions": ({}, f"notes: there are no questions: {LOOKED_FOR}", f"$ {PRINTF}"),
    "empty": ({"questions.csv": ""}, "found questions.csv", f"$ {PRINTF}"),
    "only a header": ({"questions.csv": "question,relevant\n"}, "found questions.csv", f"$ {PRINTF}"),
    "another table": ({"test set.csv": table("question,relevant")}, "found test set.csv", "$ rankgauge init notes"),
    "another table of tabs": ({"qa.tsv": table("question\tdoc_id", by="\t")}, "found qa.tsv", "$ rankgauge init notes"),
    "spreadsheet": (
        {"questions.xlsx": b"PK\3\4"},
        "found questions.xlsx",
        "convert it: libreoffice --headless --convert-to csv notes/questions.xlsx --outdir notes",
    ),
    "answers in words": (
        {"questions.csv": "question,answers\nHow do I renew?,On the web page.\n"},
        "1 question, none with judgments; its columns 'answers' are not read as ids of documents",
        "add a column relevant with ids of documents, such as 'fees.md'",
    ),
    "two columns of words": (
        {"questions.csv": "question,answer,topic\nHow do I renew?,On the web page.,loans\n"},
        "its columns 'answer', 'topic' are not read as ids of documents",
        "or judge some documents: rankgauge init notes",
    ),
    "two columns of documents": (
        {"questions.csv": table("question,first,second").replace(".md,", ".md,fees.md")},
        "its columns 'first', 'second'",
        "add a column relevant",
    ),
    "results of a search": (
        {"questions.csv": table("question,retrieved documents")},
        "its columns 'retrieved_documents' are not read as ids of documents",
        "add a column relevant",
    ),
    "documents that are not relevant": (
        {"questions.csv": table("question,not relevant")},
        "its columns 'not_relevant' are not read as ids of documents",
        "add a column relevant",
    ),
    "misspelled column": (
        {"questions.csv": "question,relevent\nHow do I renew?,the first\n"},
        "unknown column 'relevent'",
        "did you mean 'relevant'?",
    ),
    "no column for the question": (
        {"questions.csv": table("ask,relevant")},
        "no column for the question: the columns are 'ask', 'relevant'",
        "name it question",
    ),
    "no ending": (
        {"questions.csv": table("question,relevant", name=lambda page: page.removesuffix(".md"))},
        "line 2: there is no document 'loans/renewing'",
        "did you mean 'loans/renewing.md'?",
    ),
    "another case": (
        {"questions.csv": table("question,relevant", name=str.upper)},
        "there is no document 'LOANS/RENEWING.MD'",
        "did you mean 'loans/renewing.md'?",
    ),
    "documents separated by commas": (
        {"questions.csv": 'question,relevant\nHow?,"fees.md, house/hours.md"\n'},
        "there is no document 'fees.md, house/hours.md'",
        "separate documents with ';'",
    ),
    "not a notebook": ({"a.ipynb": "{"}, "a.ipynb: this is not a Jupyter notebook", "move it out of the folder"),
}


def fix_of(done):
    return done.stderr.partition("\nfix: ")[2].strip()


@pytest.mark.parametrize(("files", "named", "fix"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_names_what_was_found_and_a_fix(tmp_path, files, named, fix):
    folder_of(tmp_path, files)
    done = command.run("bench", "notes", cwd=tmp_path)
    assert done.returncode == 2
    assert named in done.stderr
    assert "JSON" not in done.stderr
    assert "_id" not in done.stderr
    shown = fix_of(done)
    if not fix.startswith("$ "):
        assert fix in shown
        return
    assert shown.partition(": ")[2] == fix[2:]
    if fix.startswith("$ rankgauge "):
        ran = command.run(*fix.split()[2:], cwd=tmp_path)
    else:
        ran = subprocess.run(fix[2:], shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    again = command.run("bench", "notes", "--only", "bm25", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


CONVERTED = {
    "guide.pdf": "pdftotext notes/guide.pdf",
    "guide.docx": "pandoc notes/guide.docx -o notes/guide.md",
    "my talk.pptx": "markitdown 'notes/my talk'.pptx -o 'notes/my talk'.md",
    "table.xlsx": "libreoffice --headless --convert-to csv notes/table.xlsx --outdir notes",
}


@pytest.mark.parametrize(("name", "fix"), CONVERTED.items())
def test_files_that_are_not_text_name_their_converter(tmp_path, name, fix):
    folder_of(tmp_path, {name: b"\0"}, pages={})
    for asked in ("bench", "init"):
        done = command.run(asked, "notes", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.endswith(f": {fix}\n")
    folder_of(tmp_path, {"questions.csv": table("question,relevant")})
    done = command.run("bench", "notes", "--only", "bm25", cwd=tmp_path)
    assert done.returncode == 0
    assert f"skipped: .{name.rpartition('.')[2]}; convert them: {fix}" in " ".join(done.stderr.split())


def test_an_empty_page_is_named(tmp_path):
    folder_of(tmp_path, {"questions.csv": table("question,relevant"), "house/empty.md": ""})
    done = command.run("bench", "notes", "--only", "bm25", cwd=tmp_path)
    assert "WARNING: 1 empty document: 'house/empty.md'" in done.stderr


def test_the_first_line_says_how_many_questions_have_judgments(tmp_path):
    text = table("question,relevant") + "".join(f"Is this question {n} judged?,\n" for n in range(4))
    folder_of(tmp_path, {"questions.csv": text})
    done = command.run("bench", "notes", cwd=tmp_path)
    assert done.stdout.splitlines()[0] == "3 of 7 queries have judgments, 3 documents, k = 100"


def test_a_project_without_questions_says_what_was_looked_for(tmp_path):
    folder_of(tmp_path, {})
    assert command.run("init", "notes", cwd=tmp_path).returncode == 0
    done = command.run("bench", "notes", cwd=tmp_path)
    assert done.returncode == 2
    assert LOOKED_FOR in done.stderr
    ran = subprocess.run(fix_of(done).partition(": ")[2], shell=True, cwd=tmp_path, check=False)
    assert ran.returncode == 0
    assert command.run("bench", "notes", "--only", "bm25", cwd=tmp_path).returncode == 0
