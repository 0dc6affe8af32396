"""Invalid input: every case raises the right class of error, with a location and a fix.

Classes and locations are listed in ``bad_input.tsv`` by the name of the case. Nothing here may
crash, hang, or silently count as zero.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankgauge as rg

QRELS = {"q1": {"d1": 1, "d2": 0}}
RUN = {"q1": {"d1": 2.0, "d2": 1.0}}
LINE = b"q1 Q0 d1 1 2.5 bm25\n"


def wrote(name: str, data: bytes | str) -> str:
    """Write a file in the folder of the test."""
    Path(name).write_bytes(data.encode() if isinstance(data, str) else data)
    return name


def frame(**columns: Any) -> Any:
    return pytest.importorskip("polars").DataFrame(columns, strict=False)


def run_of(scores: Any) -> rg.Evaluation:
    return rg.evaluate(QRELS, scores, "AP")


def judged(grades: Any) -> rg.Evaluation:
    return rg.evaluate(grades, RUN, "AP")


def run_file(data: bytes | str, name: str = "a.run") -> rg.Run:
    return rg.read_run(wrote(name, data))


def qrels_file(data: bytes | str, name: str = "qrels.txt") -> rg.Qrels:
    return rg.read_qrels(wrote(name, data))


def cut_off() -> bytes:
    lines = b"".join(b"q%d Q0 d%d 1 2.5 bm25\n" % (n, n * 7919 % 1000) for n in range(3000))
    return gzip.compress(lines, mtime=0)[:6000]


Case = tuple[str, Callable[[], object]]

MEASURES: list[Case] = [
    ("a cut-off of 0", lambda: rg.parse("P@0")),
    ("a negative cut-off", lambda: rg.parse("nDCG@-1")),
    ("a cut-off that is no number", lambda: rg.parse("P@ten")),
    ("an unknown measure", lambda: rg.parse("nDGC@10")),
    ("an unclosed parenthesis", lambda: rg.parse("RR(rel=2@10")),
    ("an empty name", lambda: rg.parse("")),
    ("a name that means two things", lambda: rg.parse("Accuracy@5")),
    ("no measures", lambda: rg.evaluate(QRELS, RUN, [])),
    ("a measure that is a number", lambda: rg.evaluate(QRELS, RUN, [10])),
    ("an unknown tie policy", lambda: rg.evaluate(QRELS, RUN, "AP", ties="random")),
    ("an unknown duplicates policy", lambda: rg.evaluate(QRELS, RUN, "AP", duplicates="last")),
    ("an unknown set of queries", lambda: rg.evaluate(QRELS, RUN, "AP", queries="some")),
    ("an unknown treatment of undefined", lambda: rg.evaluate(QRELS, RUN, "AP", undefined="nan")),
    ("an empty list of queries", lambda: rg.evaluate(QRELS, RUN, "AP", queries=[])),
    ("a query that is not judged", lambda: rg.evaluate(QRELS, RUN, "AP", queries=["q9"])),
    ("a negative weight", lambda: rg.evaluate(QRELS, RUN, "AP", weights={"q1": -1})),
    ("a weight that is missing", lambda: rg.evaluate(QRELS, RUN, "AP", weights={"q2": 1})),
    ("a weight that is text", lambda: rg.evaluate(QRELS, RUN, "AP", weights={"q1": "many"})),
    ("weights as a list", lambda: rg.evaluate(QRELS, RUN, "AP", weights=[1])),
    ("weights of 0", lambda: rg.evaluate(QRELS, RUN, "AP", weights={"q1": 0})),
    ("a group that is missing", lambda: rg.evaluate(QRELS, RUN, "AP", groups={})),
]

NUMBERS: list[Case] = [
    ("a grade that is NaN", lambda: judged({"q1": {"d1": float("nan")}})),
    ("a grade that is infinite", lambda: judged({"q1": {"d1": float("inf")}})),
    ("a grade that is None", lambda: judged({"q1": {"d1": None}})),
    ("a grade in words", lambda: judged({"q1": {"d1": "high"}})),
    ("a score that is NaN", lambda: run_of({"q1": {"d1": 1.0, "d2": float("nan")}})),
    ("a score that is infinite", lambda: run_of({"q1": {"d2": -np.inf}})),
    ("a score that is None", lambda: run_of({"q1": {"d1": None}})),
    ("a score that is text", lambda: run_of({"q1": {"d1": "2.5"}})),
    ("a score that is a list", lambda: run_of({"q1": {"d1": [2.5]}})),
    ("a score that is an array", lambda: run_of({"q1": {"d1": np.array([2.5])}})),
    ("a complex score", lambda: run_of({"q1": {"d1": 1j}})),
    ("a score too large for a float", lambda: run_of({"q1": {"d1": 10**400}})),
    ("a signalling NaN", lambda: run_of({"q1": {"d1": Decimal("sNaN")}})),
    ("a NaN in a pair", lambda: run_of({"q1": [("d1", float("nan"))]})),
    ("a NaN in a column of NumPy", lambda: rg.Run.from_columns(["q1"], ["d1"], np.array([np.nan]))),
    ("a number missing in a frame", lambda: run_of(frame(query_id=["q1"], doc_id=["d1"], score=[None]))),
]

IDS: list[Case] = [
    ("a query id that is a bool", lambda: run_of({True: {"d1": 1.0}})),
    ("a document id that is a float", lambda: run_of({"q1": {1.0: 1.0}})),
    ("a document id that is None", lambda: run_of({"q1": [None]})),
    ("a document id that is NaN", lambda: run_of({"q1": ["d1", float("nan")]})),
    ("document ids of two kinds", lambda: run_of({"q1": ["d1"], "q2": [2]})),
    ("a lone surrogate", lambda: run_of({"q1": ["d\ud800"]})),
    ("a NUL", lambda: run_of({"q1": ["d1", "d\0"]})),
    ("an empty document id", lambda: judged({"q1": {"": 1}})),
    ("an empty query id", lambda: judged({"": {"d1": 1}})),
    ("a column of floats as ids", lambda: run_of(frame(query_id=["q1"], doc_id=[1.5], score=[1.0]))),
    ("an id missing in a frame", lambda: run_of(frame(query_id=["q1", None], doc_id=["d1", "d2"], score=[1, 2]))),
    ("a table of ids", lambda: rg.Run.from_columns(np.ones((2, 2), int), [1, 2], [1, 2])),
    ("query ids that meet nowhere", lambda: rg.evaluate({"q1": {"d1"}}, {"1": ["d1"]}, "AP")),
]

SHAPES: list[Case] = [
    ("judgments of nothing", lambda: judged({})),
    ("a run of nothing", lambda: run_of({})),
    ("an empty frame", lambda: run_of(frame(query_id=[], doc_id=[], score=[]))),
    ("an iterator of nothing", lambda: run_of(iter(()))),
    ("None as judgments", lambda: judged(None)),
    ("a number as a run", lambda: run_of(3)),
    ("a string where a list is wanted", lambda: run_of({"q1": "d1"})),
    ("a number where a list is wanted", lambda: judged({"q1": 1})),
    ("a set as a ranking", lambda: run_of({"q1": {"d1"}})),
    ("a set as ordered ground truth", lambda: rg.Qrels.from_rankings({"q1": {"d1"}})),
    ("a string as ordered ground truth", lambda: rg.Qrels.from_rankings({"q1": "d1"})),
    ("a list as ordered ground truth", lambda: rg.Qrels.from_rankings(["d1"])),
    ("a document twice in ordered ground truth", lambda: rg.Qrels.from_rankings({"q1": ["d1", "d1"]})),
    ("pairs among ids", lambda: run_of({"q1": [("d1", 2.0), "d2"]})),
    ("a list of names", lambda: run_of(["q1", "q2"])),
    ("rows of two", lambda: judged([("q1", "d1")])),
    ("rows of four", lambda: judged([("q1", 0, "d1", 1)])),
    ("a set of rows", lambda: run_of({("q1", "d1", 1.0)})),
    ("a frame without a score", lambda: run_of(frame(query_id=["q1"], doc_id=["d1"], value=[1]))),
    ("columns of unequal length", lambda: rg.Run.from_columns(["q1", "q1"], ["d1"], [1.0])),
    ("a column that is text", lambda: rg.Run.from_columns("q1", ["d1"], [1.0])),
    ("a document twice in a list", lambda: run_of({"q1": ["d1", "d2", "d1"]})),
    ("a document twice in a frame", lambda: run_of(frame(query_id=["q1", "q1"], doc_id=["d1", "d1"], score=[2, 1]))),
    ("a document judged twice", lambda: judged([("q1", "d1", 1), ("q1", "d1", 0)])),
    ("a run as judgments", lambda: judged(rg.Run.of(RUN))),
    ("judgments as a run", lambda: run_of(rg.Qrels.of(QRELS))),
    ("a query in two blocks", lambda: run_of(iter([RUN, RUN]))),
]

FILES: list[Case] = [
    ("a file that is not there", lambda: rg.read_run("gone.run")),
    ("a folder as a file", lambda: rg.read_run(".")),
    ("the text of a file as its path", lambda: rg.Run.of(2 * LINE.decode())),
    ("an empty file", lambda: run_file(b"")),
    ("a file of comments only", lambda: qrels_file("# nothing\n\n")),
    ("an empty table", lambda: run_file("query_id,doc_id,score\n", "a.csv")),
    ("a table without a header", lambda: run_file("q1,d1,2.5\n", "a.csv")),
    ("an empty CSV", lambda: run_file("", "a.csv")),
    ("an empty JSON", lambda: run_file(" ", "a.json")),
    ("an unknown format", lambda: rg.read_run("a.run", format="xml")),
    ("a truncated gz", lambda: run_file(cut_off(), "a.run.gz")),
    ("a gz of two bytes", lambda: run_file(b"\x1f\x8b", "a.run.gz")),
    ("a gz that is broken", lambda: run_file(cut_off()[:200] + b"\0" * 50, "a.run.gz")),
    ("UTF-16", lambda: run_file(LINE.decode().encode("utf-16"))),
    ("UTF-16 without a mark", lambda: run_file(LINE.decode().encode("utf-16-le"))),
    ("a zip archive", lambda: qrels_file(b"PK\x03\x04rest", "beir.zip")),
    ("a broken line in the middle", lambda: run_file(LINE + b"q1 Q0 d2 2 1.5\n" + LINE)),
    ("a run of three columns", lambda: run_file("q1\td1\t0.5\n", "a.tsv")),
    ("a run of two columns", lambda: run_file("q1 d1\n")),
    ("a run of five columns without Q0", lambda: run_file("q1 d1 1 0.5 tag\n")),
    ("six columns in the format of three", lambda: rg.read_run(wrote("a.run", LINE), format="msmarco")),
    ("judgments in the format of runs", lambda: rg.read_qrels("a", format="msmarco")),
    ("output of trec_eval", lambda: qrels_file("num_ret               \t301\t500\n")),
    ("output of trec_eval, as a run", lambda: run_file("runid                 \tall\tx\n")),
    ("deviations for trec_eval", lambda: qrels_file("301 map 0.1212 0.1545\n")),
    ("preferences as judgments", lambda: qrels_file("q1 a b d1 1\n")),
    ("topics as judgments", lambda: qrels_file("<top>\n<num> 1 <title> a\n</top>\n")),
    ("queries of SMART as a run", lambda: run_file(".I 1\n.W\nwords\n")),
    ("ids and texts as a run", lambda: run_file("q1\twhat is it\n", "a.tsv")),
    ("SMART with another line", lambda: qrels_file("1 28 0 0.000000\n1 28 0 2\n")),
    ("rlv-ass that is not closed", lambda: qrels_file("1\n 12 13\n")),
    ("rlv-ass without a query", lambda: qrels_file("1\n 12\n/\n 14 15\n")),
    ("LETOR without a document", lambda: qrels_file("2 qid:1 1:0.5\n")),
    ("LETOR without a number", lambda: qrels_file("x qid:1 1:0.5 # d1\n")),
    ("columns of one name", lambda: run_file("qid,docno,score,Score\nq1,d1,1,2\n", "a.csv")),
    ("distances", lambda: run_file("qid,docno,distance\nq1,d1,1\n", "a.csv")),
    ("a click log", lambda: qrels_file('{"query_id": "q1", "action_name": "click"}\n', "a.jsonl")),
    ("a request of _rank_eval as a run", lambda: run_file('{"requests": [{"id": "q1", "ratings": []}]}', "a.json")),
    (
        "a document of two indices",
        lambda: qrels_file(
            '{"requests": [{"id": "q1", "ratings": [{"_index": "a", "_id": "1", "rating": 1}, '
            '{"_index": "b", "_id": "1", "rating": 0}]}]}',
            "a.json",
        ),
    ),
    (
        "a rating without an id",
        lambda: qrels_file('{"requests": [{"id": "q1", "ratings": [{"rating": 1}]}]}', "a.json"),
    ),
    (
        "a rating that is no number",
        lambda: qrels_file(
            '{"judgmentRatings": [{"query": "q1", "ratings": [{"docId": "1", "rating": "good"}]}]}', "a.json"
        ),
    ),
    ("ratings that are no list", lambda: qrels_file('{"requests": [{"id": "q1", "ratings": 3}]}', "a.json")),
    (
        "two judgment lists",
        lambda: qrels_file(
            '{"hits": {"hits": [{"_source": {"judgmentRatings": []}}, {"_source": {"judgmentRatings": []}}]}}', "a.json"
        ),
    ),
    ("a response of _search", lambda: run_file('{"hits": {"hits": []}}', "a.json")),
    ("a response of _msearch", lambda: run_file('{"responses": [{"hits": {}}]}', "a.json")),
    ("a run of seven columns", lambda: run_file("q1 Q0 d 1 1 2.5 bm25\n")),
    ("judgments of two columns", lambda: qrels_file("q1 d1\n")),
    ("judgments that change width", lambda: qrels_file("q1 0 d1 1\nq1 d2 1\n")),
    ("a run as a file of judgments", lambda: qrels_file(LINE)),
    ("a file of judgments as a run", lambda: run_file("q1 0 d1 1\n")),
    ("a score with an underscore", lambda: run_file("q1 Q0 d1 1 1_0 t\n")),
    ("a score in hexadecimal", lambda: run_file("q1 Q0 d1 1 0x10 t\n")),
    ("a score of nan in a file", lambda: run_file(LINE + b"q1 Q0 d2 2 nan t\n")),
    ("a score of 1e999", lambda: run_file("q1 Q0 d1 1 1e999 t\n")),
    ("a document twice in a file", lambda: run_of(wrote("a.run", LINE + LINE))),
    ("a document judged twice in a file", lambda: qrels_file("q1 0 d1 1\nq1 0 d1 0\n")),
    ("a NUL in a file", lambda: run_file(LINE + b"q1 Q0 d\x002 1 2.5 t\n")),
    ("a cell that is empty", lambda: qrels_file("query-id\tcorpus-id\tscore\nq1\td1\t\n", "a.tsv")),
    ("a grade that is text in a table", lambda: qrels_file("qid,docno,label\nq1,d1,high\n", "a.csv")),
    ("a score of inf in a table", lambda: run_file("qid,docno,score\nq1,d1,inf\n", "a.csv")),
    ("an empty id in a table", lambda: run_file("qid,docno,score\nq1,,1\n", "a.csv")),
    ("a short row in a table", lambda: run_file("qid,docno,score\nq1,d1\n", "a.csv")),
    ("a quote left open", lambda: run_file('qid,docno,score\nq1,"d1,1\n', "a.csv")),
    ("a column twice in a table", lambda: run_file("qid,qid,docno,score\nq,q,d,1\n", "a.csv")),
    ("Latin-1 in a table", lambda: run_file(b"qid,docno,score\nq1,d\xe9,1\n", "a.csv")),
    ("JSON with a repeated key", lambda: run_file('{"q1": {"d1": 1, "d1": 2}}', "a.json")),
    ("JSON with a list at the top", lambda: run_file('[{"q1": 1}]', "a.json")),
    ("JSON that is cut off", lambda: run_file('{"q1": {"d1": 1}', "a.json")),
    ("JSON lines named JSON", lambda: run_file('{"qid": "q1"}\n{"qid": "q2"}\n', "a.json")),
    ("JSON with a NaN", lambda: run_file('{"q1": {"d1": NaN}}', "a.json")),
    ("JSON with a text as score", lambda: run_file('{"q1": {"d1": "1.5"}}', "a.json")),
    ("JSON nested too deeply", lambda: run_file("[" * 100_000, "a.json")),
    ("JSON lines with a broken line", lambda: run_file('{"qid": "q", "docno": "d", "score": 1}\n{"qid"\n', "a.jsonl")),
    (
        "JSON lines with a key left out",
        lambda: run_file('{"qid": "q", "docno": "d", "score": 1}\n{"qid": "q"}\n', "a.jsonl"),
    ),
    ("JSON lines with a list", lambda: run_file("[1]\n", "a.jsonl")),
    (
        "JSON lines with ids of two kinds",
        lambda: run_file('{"qid": "q", "docno": "d", "score": 1}\n{"qid": "q", "docno": 1, "score": 1}\n', "a.jsonl"),
    ),
    ("a path with a NUL", lambda: rg.read_run("a\0b")),
]

WRITING: list[Case] = [
    ("an id with a blank in TREC format", lambda: rg.write_run({"q1": ["d 1"]}, "a.run")),
    ("a query that reads as a comment", lambda: rg.write_run({"#1": ["d1"]}, "a.run")),
    ("a query that reads as gzip", lambda: rg.write_run({b"\x1f\x8b": [b"d1"]}, "a.run")),
    ("a document twice in JSON", lambda: rg.write_run({"q1": ["d1", "d1"]}, "a.json")),
    ("bytes in a table", lambda: rg.write_run({b"q1": [b"d\xff"]}, "a.csv")),
    ("a query without judgments in TREC format", lambda: rg.write_qrels({"q1": {"d1": 1}, "q2": {}}, "q.txt")),
    ("a folder that is not there", lambda: rg.write_run(RUN, "gone/a.run")),
    ("a folder as a target", lambda: rg.write_run(RUN, ".")),
]


CASES = [*MEASURES, *NUMBERS, *IDS, *SHAPES, *FILES, *WRITING]


def expected() -> dict[str, tuple[str, str]]:
    """Return the class of the error and its location, by the name of the case."""
    with Path(__file__).with_name("bad_input.tsv").open(encoding="utf-8", newline="") as stream:
        return {name: (kind, where) for name, kind, where in csv.reader(stream, dialect="excel-tab")}


@pytest.mark.parametrize(("name", "act"), CASES, ids=[name for name, _ in CASES])
def test_bad_input_is_an_error_with_a_place_and_a_fix(
    name: str, act: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rg.RankgaugeError) as caught:
        act()
    assert (type(caught.value).__name__, caught.value.where) == expected()[name]
    assert caught.value.what
    assert caught.value.fix


def test_every_case_is_expected() -> None:
    assert [name for name, _ in CASES] == list(expected())


def test_nothing_is_left_behind_by_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _, act in WRITING:
        with pytest.raises(rg.RankgaugeError):
            act()
    assert list(tmp_path.iterdir()) == []


def test_standard_input_is_named_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINE + b"q1 Q0\n")))
    with pytest.raises(rg.FormatError, match=r"^<stdin>, line 2: got 2 fields, expected 6 as in the lines before"):
        rg.read_run("-")


def test_closed_standard_input_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(rg.InputError, match=r"^<stdin>: there is no standard input"):
        rg.read_run("-")


def test_a_negative_grade_is_no_error_but_a_note() -> None:
    evaluation = rg.evaluate({"q1": {"d1": -2, "d2": 1}}, RUN, "P@1")
    assert "1 judgment with a negative grade: pooled but not judged" in evaluation.notes


def test_no_document_in_common_is_a_warning_because_zero_can_be_correct() -> None:
    evaluation = rg.evaluate({"q1": {"a": 1}}, {"q1": ["b"]}, "P@1")
    assert evaluation.mean() == {"P@1": 0.0}
    assert (
        "WARNING: no retrieved document is judged for its query: the run has 'b', "
        "the judgments have 'a'; check that both use the same document ids"
    ) in evaluation.notes
