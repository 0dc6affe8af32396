"""Descriptions of collections: correct counts, and findings that affect numbers."""

import json
import re

import numpy as np
import pytest

from rankgauge import Collection, FormatError, InputError, Qrels, Run, describe_collection, sample_path
from rankgauge.checks import FINDING_KINDS
from rankgauge.core.findings import FindingKind
from rankgauge.corpus import description
from rankgauge.reports import render

DOCUMENTS = {
    "d1": {"title": "Fees", "text": "What does a late book cost? Ask us."},
    "d2": "  ",
    "d3": "late\n BOOK",
    "d4": {"title": "Late", "text": "book"},
    "d5": "Late book",
    "q4": "else",
}
QUERIES = {"q1": "what DOES a late-book cost", "q2": "late book", "q3": " Late  Book", "q4": "", "q5": "x y z"}
JUDGED = {"q1": {"d1": 2, "d2": 1, "d9": 1}, "q2": {"d3": 0, "d1": -1}, "q9": {"d1": 1}}


def plain_words(text):
    return " " + " ".join(re.findall(r"[^_\W]+", text.lower())) + " "


def remarks(info):
    return {
        found.message: (found.evidence.count, found.evidence.of, found.evidence.examples) for found in info.findings
    }


def test_all_faults_that_change_numbers_are_found():
    info = describe_collection(Collection.of(DOCUMENTS, QUERIES), JUDGED)
    assert remarks(info) == {
        "documents without any text": (1, 6, ("d2",)),
        "documents with the same text as another": (1, 6, ("d5 = d3",)),
        "queries without any text": (1, 5, ("q4",)),
        "queries with the same text as another": (1, 5, ("q3 = q2",)),
        "queries whose text occurs in a document": (1, 5, ("q1 in d1",)),
        "queries with the id of a document": (1, 5, ("q4",)),
        "queries without judgments": (3, 5, ("q3", "q4", "q5")),
        "judged queries not in the collection": (1, 3, ("q9",)),
        "judged queries without a relevant document": (1, 3, ("q2",)),
        "judged documents not in the collection": (1, 4, ("d9",)),
        "relevant documents without any text": (1, 4, ("d2",)),
    }
    assert all(found.effect for found in info.findings)


def test_counts_and_spreads_are_those_of_the_texts():
    info = describe_collection(Collection.of(DOCUMENTS, QUERIES), JUDGED)
    assert (info.documents, info.queries, info.judgments) == (6, 5, 6)
    assert info.grades == {-1.0: 1, 0.0: 1, 1.0: 3, 2.0: 1}
    assert (info.judged_documents, info.judged_share) == (3, 0.5)
    words = [9, 0, 2, 2, 2, 1]
    spread = info.spreads["words of a document"]
    assert (spread.least, spread.median, spread.most) == (0, 2.0, 9)
    assert (spread.mean, spread.p95) == (np.mean(words), np.quantile(words, 0.95))
    assert info.spreads["characters of a document"].most == len("Fees. " + DOCUMENTS["d1"]["text"])
    assert info.spreads["relevant documents of a query"].mean == pytest.approx(4 / 3)
    assert info.spreads["words of a query"].most == 5


def test_missing_judgments_give_no_findings():
    info = describe_collection(Collection.of({"d": "a"}, {"q": "b"}))
    assert (info.judgments, info.grades, info.findings) == (None, {}, ())
    empty = describe_collection(Collection())
    assert (empty.documents, empty.spreads, empty.judged_share) == (0, {}, 0.0)


def test_runs_are_compared_with_the_documents():
    run = Run.of({"q1": ["d1", "gone"], "q2": ["gone", "d3"]}, name="bm25")
    info = describe_collection(Collection.of(DOCUMENTS, QUERIES), runs=[run])
    assert remarks(info)["documents of the run bm25 that are not in the collection"] == (1, 4, ("gone",))


def test_queries_that_are_in_two_splits_are_named(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "x"}')
    (tmp_path / "queries.jsonl").write_text('{"_id": "a", "text": "x"}\n{"_id": "b", "text": "y"}')
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\na\td\t1\nb\td\t1\n")
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nb\td\t1\n")
    found = remarks(describe_collection(tmp_path))
    assert found["queries that are also judged in the split dev"] == (1, 2, ("b",))


def test_lines_that_do_not_fit_are_counted_and_do_not_stop_it(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"_id": "d", "text": "x"}\nno\n{"_id": "d", "text": "y"}\n')
    count, of, examples = remarks(describe_collection(path))["lines or files that were skipped"]
    assert (count, of) == (2, 3)
    assert "line 2: not valid JSON" in examples[0]
    assert "line 3: id 'd' is also in line 1" in examples[1]
    with pytest.raises(FormatError):
        Collection.load(path)
    with pytest.raises(InputError):
        describe_collection(tmp_path / "gone")


def test_a_query_is_found_as_whole_words_in_sequence():
    texts = {"d": "first , one two-three  FOUR, last", "e": "one two threefour none two three fours"}
    for asked, count in {
        "one two three four": 1,
        "two three four last": 1,
        "ne two three four": 0,
        "one two three fou": 0,
        "first one two three": 1,
    }.items():
        found = remarks(describe_collection(Collection.of(texts, {"q": asked})))
        assert found.get("queries whose text occurs in a document", (0,))[0] == count


@pytest.mark.slow
def test_a_document_of_100_megabytes_is_checked(tmp_path):
    path = tmp_path / "a.jsonl"
    text = "some words " * ((100 << 20) // 11)
    path.write_text(json.dumps({"_id": "d", "text": text + " where is the needle"}) + "\nno\n")
    questions = tmp_path / "q.csv"
    questions.write_text("question,relevant\nwhere is the needle,d\n")
    info = describe_collection(path, queries=questions)
    assert info.spreads["words of a document"].most == 2 * ((100 << 20) // 11) + 4
    assert remarks(info)["queries whose text occurs in a document"][2] == ("q1 in d",)
    assert remarks(info)["lines or files that were skipped"][0] == 1


@pytest.mark.slow
def test_real_collections_are_counted_as_a_plain_script_counts_them(data_folder):
    for name in ("cranfield", "cisi"):
        folder = data_folder / name
        docs = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
        asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
        rows = [line.split("\t") for line in (folder / "qrels/test.tsv").read_text().splitlines()[1:]]
        info = describe_collection(folder)
        whole = [d["text"] if d["text"].startswith(d["title"]) else f"{d['title']} {d['text']}" for d in docs]
        lengths = [len(text.split()) for text in whole]
        assert info.spreads["words of a document"].mean == pytest.approx(np.mean(lengths))
        assert info.judgments == len(rows)
        assert info.judged_documents == len({row[1] for row in rows} & {d["_id"] for d in docs})
        plain = [plain_words(text) for text in whole]
        leaks = sum(any(plain_words(q["text"]) in text for text in plain) for q in asked)
        assert remarks(info).get("queries whose text occurs in a document", (0,))[0] == leaks
        same = [" ".join(text.lower().split()) for text in whole if text.strip()]
        repeats = len(same) - len(set(same))
        assert remarks(info).get("documents with the same text as another", (0,))[0] == repeats


def test_it_takes_judgments_of_its_own():
    folder = sample_path("qrels.txt").parent
    info = describe_collection(folder, Qrels.of({"q01": {"fees-overdue": 1}}))
    assert info.judgments == 1
    assert describe_collection(folder).judgments == len(Qrels.of(folder / "qrels.txt").table)


def test_an_empty_document_that_is_judged_not_relevant_is_not_missed():
    texts = Collection.of({"d": "", "e": "a"}, {"q": "b"})
    found = remarks(describe_collection(texts, {"q": {"d": 0, "e": 1}}))
    assert list(found) == ["documents without any text"]


def test_faults_are_placed_below_the_collection(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "x"}\nno\n')
    _, _, (example,) = remarks(describe_collection(tmp_path))["lines or files that were skipped"]
    assert example.startswith("corpus.jsonl, line 2: ")


def test_missing_documents_are_not_counted(tmp_path):
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "x"}\n')
    (tmp_path / "qrels.txt").write_text("q 0 d1 1\n")
    said = render(describe_collection(tmp_path))
    assert "no documents were given" in said
    assert "judged documents" not in said
    assert "%" not in said


def test_every_finding_has_a_code_that_can_be_explained():
    kinds = [value for value in vars(description).values() if isinstance(value, FindingKind)]
    assert len({kind.code for kind in kinds}) == len(kinds) > 6
    assert all(FINDING_KINDS[kind.code] is kind for kind in kinds)
