"""Rows that contain all documents of a query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rankgauge.data.qrels import Qrels, read_qrels
from rankgauge.data.run import Run, read_run
from rankgauge.errors import FormatError, InputError

RUN = Run.of({"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 1.0}}, name="a")
# Formats of the documents of the two queries, and the names in messages.
SHAPES: dict[str, tuple[str, list[Any], str]] = {
    "objects": (
        "results",
        [[{"docid": "d1", "score": 2.0}, {"docid": "d2", "score": 1.0}], [{"docid": "d1", "score": 1}]],
        "'docid', 'score'",
    ),
    "ids alone": ("hits", [["d1", "d2"], ["d1"]], "'doc_id', 'score'"),
    "pairs": ("docs", [[["d1", 2], ["d2", 1]], [["d1", 1]]], "'doc_id', 'score'"),
    "mappings": ("ranking", [{"d1": 2, "d2": 1}, {"d1": 1}], "'doc_id', 'score'"),
    "id": (
        "ctxs",
        [[{"id": "d1", "score": 2.0, "text": "x"}, {"id": "d2", "score": 1.0}], [{"id": "d1", "score": 1}]],
        "'id', 'score'",
    ),
}


def rows(inner: str, held: list[Any]) -> list[dict[str, Any]]:
    return [{"qid": f"q{n}", "text": "?", inner: one} for n, one in enumerate(held, start=1)]


@pytest.mark.parametrize(("inner", "held", "names"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", ["a.jsonl", "a.txt", "a.json"])
def test_the_documents_of_a_query_can_be_in_one_row(
    inner: str, held: list[Any], names: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    lines = "".join(json.dumps(row) + "\n" for row in rows(inner, held))
    path.write_text(json.dumps(rows(inner, held)) if name == "a.json" else lines)
    found = read_run(path)
    assert found == RUN
    assert found.table.notes == (
        f"{path}: columns 'qid', {names}",
        f"{path}: the documents of each query are those in {inner!r}",
    )


def test_ranks_alone_give_the_order(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"qid": 1, "hits": [{"docno": "b", "rank": 1}, {"docno": "a", "rank": 2}]}')
    assert list(read_run(path)["1"].values()) == [-1, -2]


def test_judgments_have_separate_names(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"qid": "q", "ratings": [{"doc_id": "d", "grade": 2}]}\n'
        '{"qid": "p", "ratings": [{"doc_id": "d", "grade": 0}]}\n'
    )
    assert read_qrels(path) == Qrels.of({"q": {"d": 2}, "p": {"d": 0}})
    with pytest.raises(FormatError, match="the keys are 'qid', 'ratings'; a run needs"):
        read_run(path)
    path.write_text('{"qid": "q", "results": [{"doc_id": "d", "score": 2}]}\n')
    with pytest.raises(FormatError, match="the keys are 'qid', 'results'; judgments need"):
        read_qrels(path)


FAULTS = {
    "another key": ('{"qid": "q2", "docs": []}', "line 2: there is no 'results'"),
    "no query": ('{"id": "q2", "results": []}', "line 2: there is no 'qid'"),
    "a number": ('{"qid": "q2", "results": 7}', "line 2: 'results' is 7, expected a list"),
    "twice": ('{"qid": "q1", "results": ["d3"]}', "line 2: query 'q1' has two lists"),
    "mixed": ('{"qid": "q2", "results": ["d", {"id": 1}]}', "line 2: .*have different forms"),
    "other keys": ('{"qid": "q2", "results": [{"a": 1}]}', "line 2: the keys in 'results' are 'a'"),
    "a list for an id": ('{"qid": ["q2"], "results": ["d"]}', "line 2: query id .*type list"),
    "no number": ('{"qid": "q2", "results": {"d": "x"}}', "line 2: score 'x' is text"),
}


@pytest.mark.parametrize(("line", "message"), FAULTS.values(), ids=FAULTS)
def test_a_row_unlike_the_first_is_refused_with_its_line(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"qid": "q1", "results": ["d1", "d2"]}\n' + line)
    with pytest.raises(InputError, match=message) as caught:
        read_run(path)
    assert caught.value.fix


def test_a_document_without_its_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"qid": "q1", "results": [{"doc_id": "d1", "score": 1}, {"doc_id": "d2"}]}\n')
    with pytest.raises(FormatError, match=r"line 1: there is no 'score' in .'doc_id': 'd2'"):
        read_run(path)


def test_queries_without_documents_are_no_row(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"qid": "q1", "results": []}\n')
    with pytest.raises(FormatError, match="there are no rows"):
        read_run(path)
