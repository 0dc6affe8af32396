"""Answers are read from files, frames, records of other tools, traces, and live systems."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rankgauge.answers import (
    AnswerRecord,
    AnswerSet,
    Citation,
    Context,
    RuleJudge,
    Verdict,
    evaluate_answers,
    items_of,
    read_answers,
    sentence_claims,
)
from rankgauge.errors import InputError, MismatchError

ROW = {
    "id": "q1",
    "question": "How high is it?",
    "contexts": [{"id": "a", "text": "It is 5 m high."}, {"id": "b", "text": "It is red."}],
    "answer": "5 m [1], red [2], old [3].",
    "reference": "It is 5 m high.",
    "answerable": True,
    "gold": ["a"],
    "ranking": ["a", "b", "c"],
    "history": [{"role": "user", "content": "Hello"}],
    "group": "towers",
}


def only(source: Any, **options: Any) -> Any:
    (record,) = AnswerSet.of(source, **options).records
    return record


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_every_part_of_a_record_is_read() -> None:
    record = only([ROW])
    assert (record.id, record.question, record.reference) == ("q1", ROW["question"], ROW["reference"])
    assert record.contexts == (Context("a", "It is 5 m high."), Context("b", "It is red."))
    assert record.answerable is True
    assert (record.gold, record.ranking, record.group) == (("a",), ("a", "b", "c"), "towers")
    assert record.history == (("user", "Hello"),)
    # A citation of a missing context is kept and counts against the answer.
    assert [citation.context for citation in record.citations] == ["a", "b", "[3]"]


def test_the_formats_of_files_give_the_same_records(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    expected = AnswerSet.of([ROW]).records
    lines = write(tmp_path / "rows.jsonl", [ROW])
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(lines.read_bytes()))
    document = tmp_path / "list.json"
    document.write_text(json.dumps([ROW]))
    held = tmp_path / "held.json"
    held.write_text(json.dumps({"results": [ROW]}))
    table = pa.Table.from_pylist([ROW])
    parquet.write_table(table, tmp_path / "rows.parquet")
    feather.write_feather(table, tmp_path / "rows.arrow")
    cells = tmp_path / "rows.csv"
    with cells.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(ROW))
        writer.writeheader()
        writer.writerow({k: json.dumps(v) if isinstance(v, list) else v for k, v in ROW.items()})
    for path in (lines, packed, document, held, "rows.parquet", "rows.arrow", cells):
        assert AnswerSet.of(tmp_path / path).records == expected, path


def test_data_frames_and_columns_are_read() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"question": ["a?", "b?"], "answer": ["yes", None], "contexts": [["x", "y"], []]}
    expected = AnswerSet.of(columns).records
    assert expected[0].contexts == (Context("1", "x"), Context("2", "y"))
    assert expected[1].answer == ""
    assert AnswerSet.of(pd.DataFrame(columns)).records == expected
    assert AnswerSet.of(pl.DataFrame(columns)).records == expected


@pytest.mark.parametrize("blank", ["", None, "missing", " \t", "\u3000"])
@pytest.mark.parametrize(
    "form", ["records", "columns", "json", "jsonl", "csv", "parquet", "pandas", "objects", "reference"]
)
def test_a_blank_answer_is_an_abstention_in_every_form(form: str, blank: str, tmp_path: Path):
    rows: list[dict[str, Any]] = [
        {"id": "1", "question": "a?", "answer": "yes", "reference": "yes", "contexts": ["x"]},
        {"id": "2", "question": "b?", "answer": blank, "reference": "no", "contexts": ["x"]},
    ]
    full = [row | {"answer": None if row["answer"] == "missing" else row["answer"]} for row in rows]
    if blank == "missing":
        del rows[1]["answer"]
    source: Any = rows
    given: dict[str, Any] = {}
    if form == "columns":
        source = {name: [row[name] for row in full] for name in full[0]}
    elif form == "objects":
        source = AnswerSet("answers", tuple(AnswerRecord(**row | {"contexts": ()}) for row in full))
    elif form == "pandas":
        source = pytest.importorskip("pandas").DataFrame(rows)
    elif form == "parquet":
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        source = tmp_path / "answers.parquet"
        parquet.write_table(pa.Table.from_pylist(full), source)
    elif form == "csv":
        source = tmp_path / "answers.csv"
        with source.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(full[0]))
            writer.writeheader()
            writer.writerows(full)
    elif form == "json":
        source = tmp_path / "answers.json"
        source.write_text(json.dumps(rows))
    elif form == "jsonl":
        source = write(tmp_path / "answers.jsonl", rows)
    elif form == "reference":
        source, given = rows[:1], {"reference": full}
    answers = AnswerSet.of(source, "answers", **given)
    assert answers.records[1].answer == ""
    items = [item for each in answers for item in items_of(each, sentence_claims(each))]
    verdicts = [found for found in RuleJudge().judge(items) if isinstance(found, Verdict)]
    found = evaluate_answers(answers, verdicts, ["Abstention", "AnswerCorrectness"])
    assert found.per_query.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_if_no_record_has_an_answer_none_is_an_abstention(tmp_path: Path) -> None:
    path = tmp_path / "contexts.csv"
    path.write_text("question,answer,contexts\na?,,x\nb?, ,y\n")
    assert [each.answer for each in AnswerSet.of(path)] == [None, None]


def test_blank_references_are_missing() -> None:
    known = [{"question": "a?", "answer": "b", "reference": blank} for blank in ("", " ", None, [])]
    for row in known:
        assert only([row]).reference is None
    with pytest.raises(InputError, match="has no text"):
        only([{"question": " ", "answer": "b"}])


def test_lists_in_cells_are_read_as_python_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "ragas.csv"
    path.write_text('user_input,retrieved_contexts,response\nWhy?,"[\'it is\', ""it\'s""]",Because\n')
    assert [context.text for context in only(path).contexts] == ["it is", "it's"]


@dataclass
class _TestCase:
    input: str
    actual_output: str
    expected_output: str
    retrieval_context: list[str]
    context: list[str]


TOOLS = {
    "ragas": {
        "user_input": "Why?",
        "response": "Rain.",
        "reference": "Since it rains.",
        "retrieved_contexts": ["Sun.", "It rains today."],
        "retrieved_context_ids": ["s", "r"],
        "reference_contexts": ["it rains"],
    },
    "deepeval": _TestCase("Why?", "Rain.", "Since it rains.", ["Sun.", "It rains today."], ["It rains"]),
    "continuous-eval": {
        "question": "Why?",
        "answer": "Rain.",
        "ground_truths": ["Since it rains.", "Rain"],
        "retrieved_contexts": ["Sun.", "It rains today."],
        "ground_truth_contexts": ["It rains"],
    },
}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_parts_of_other_tools_are_known(tool: str) -> None:
    record = only([TOOLS[tool]])
    assert (record.question, record.answer, record.reference) == ("Why?", "Rain.", "Since it rains.")
    assert [context.text for context in record.contexts] == ["Sun.", "It rains today."]
    # A reference context within a longer context is found.
    assert record.gold == (record.contexts[1].id,)


def test_other_reference_answers_are_alternatives() -> None:
    assert only([TOOLS["continuous-eval"]]).alternatives == ("Rain",)


def test_answers_of_ragchecker_are_read(data_folder: Path) -> None:
    answers = AnswerSet.of(data_folder / "rag/ragchecker_checking_inputs.json")
    given = json.loads((data_folder / "rag/ragchecker_checking_inputs.json").read_text())["results"]
    assert [each.id for each in answers] == [row["query_id"] for row in given]
    for record, row in zip(answers, given, strict=True):
        assert (record.reference, record.answer) == (row["gt_answer"], row["response"])
        assert [(c.id, c.text) for c in record.contexts] == [(c["doc_id"], c["text"]) for c in row["retrieved_context"]]


def test_all_answers_of_mtrag_are_read_as_three_systems(data_folder: Path) -> None:
    path = data_folder / "rag/mtrag/answers.jsonl.gz"
    with pytest.raises(InputError, match="answers of 3 systems: reference, gpt-4o, llama"):
        AnswerSet.of(path)
    sets = read_answers(path)
    rows = list(map(json.loads, gzip.decompress(path.read_bytes()).splitlines()))
    assert [len(each) for each in sets] == [159, 159, 159]
    by_id = {record.id: record for each in sets for record in each}
    for row in rows:
        record = by_id[row["id"]]
        assert len(record.history) == len(row["history"])
        wanted = {"answerable": True, "unanswerable": False}.get(row["answerability"])
        assert record.answerable is wanted


def test_answers_of_trec_rag_need_the_texts_of_their_passages() -> None:
    row = {
        "run_id": "ours",
        "topic_id": "t1",
        "topic": "Why?",
        "references": ["d7", "d9"],
        "answer": [{"text": "Rain.", "citations": [1]}, {"text": "Or sun.", "citations": [0, 5]}],
    }
    with pytest.raises(InputError, match=r"context 1: it has no text.*(?s:.*)--collection"):
        AnswerSet.of([row])
    answers = AnswerSet.of([row], texts={"d7": "Sun.", "d9": "Rain."})
    (record,) = answers.records
    assert (answers.system, record.id, record.answer) == ("ours", "t1", "Rain. Or sun.")
    assert record.contexts == (Context("d7", "Sun."), Context("d9", "Rain."))
    assert record.citations == (Citation("d9", "Rain."), Citation("d7", "Or sun."), Citation("[5]", "Or sun."))
    with pytest.raises(MismatchError, match="context 'd9' is not in the collection"):
        AnswerSet.of([row], texts={"d7": "Sun."})


def test_citations_are_identifiers_or_numbers_from_one() -> None:
    rows = [ROW | {"citations": given} for given in (["b", "z"], [2, 9], [{"id": "b", "text": "It"}])]
    found = [only([row]).citations for row in rows]
    assert [[each.context for each in some] for some in found] == [["b", "[z]"], ["b", "[9]"], ["b"]]
    assert found[2][0].text == "It"


def test_flat_spans_become_a_record_for_each_trace() -> None:
    spans: list[dict[str, Any]] = [
        {
            "context.trace_id": "t1",
            "context.span_id": "s2",
            "parent_id": "s1",
            "attributes.openinference.span.kind": "RETRIEVER",
            "attributes.retrieval.documents.0.document.id": "d1",
            "attributes.retrieval.documents.0.document.content": "Sun.",
            "attributes.retrieval.documents.1.document.id": "d2",
            "attributes.retrieval.documents.1.document.content": "Rain.",
        },
        {
            "context.trace_id": "t1",
            "context.span_id": "s3",
            "parent_id": "s1",
            "attributes.reranker.output_documents.0.document.id": "d2",
            "attributes.reranker.output_documents.0.document.content": "Rain.",
            "attributes.input.value": "rerank",
        },
        {
            "context.trace_id": "t1",
            "context.span_id": "s1",
            "parent_id": None,
            "attributes.input.value": '{"question": "Why?"}',
            "attributes.output.value": "Rain [1].",
        },
    ]
    record = only(spans)
    assert (record.id, record.question, record.answer) == ("t1", "Why?", "Rain [1].")
    assert record.contexts == (Context("d2", "Rain."),)
    assert record.ranking == ("d1", "d2")
    assert record.citations == (Citation("d2", "Rain."),)


def test_an_export_of_opentelemetry_is_read(tmp_path: Path) -> None:
    def text(key: str, value: str) -> dict[str, Any]:
        return {"key": key, "value": {"stringValue": value}}

    spans = [
        {
            "traceId": "t1",
            "spanId": "a",
            "attributes": [
                text("input.value", "Why?"),
                text("output.value", "Rain."),
                text("retrieval.documents.0.document.content", "It rains."),
            ],
        }
    ]
    path = tmp_path / "spans.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    record = only(path)
    assert (record.id, record.question, record.answer) == ("t1", "Why?", "Rain.")
    assert record.contexts == (Context("1", "It rains."),)


def test_messages_are_a_question_with_history_and_an_answer() -> None:
    messages = [("user", "Hi"), ("assistant", "Hello"), ("user", "Why?"), ("assistant", "Rain.")]
    row = {"user_input": [{"type": role, "content": text} for role, text in messages]}
    record = only([row])
    assert (record.question, record.answer) == ("Why?", "Rain.")
    assert record.history == tuple(messages[:2])


def test_two_systems_in_a_file_are_two_sets_with_the_same_questions() -> None:
    rows = [
        {"system": name, "question": question, "answer": name} for name in ("a", "b") for question in ("Why?", "How?")
    ]
    one, other = read_answers(rows)
    assert (one.system, other.system) == ("a", "b")
    assert [each.id for each in one] == [each.id for each in other] == ["1", "2"]
    assert AnswerSet.of(rows, system="b").records[0].answer == "b"
    with pytest.raises(InputError, match=r"no record has the system 'c'"):
        AnswerSet.of(rows, system="c")


def test_a_reference_is_joined_by_identifier() -> None:
    answers = [{"id": "q2", "answer": "B"}, {"id": "q3", "question": "c?", "answer": "C"}]
    reference = [
        {"id": "q1", "question": "a?", "reference": "A"},
        {"id": "q2", "question": "b?", "reference": "B", "answerable": False, "group": "g"},
    ]
    found = AnswerSet.of(answers, "s", reference=reference)
    assert [(each.id, each.question, each.answer, each.reference) for each in found] == [
        ("q2", "b?", "B", "B"),
        ("q3", "c?", "C", None),
        ("q1", "a?", "", "A"),
    ]
    assert found.records[0].answerable is False
    assert found.notes == (
        "answers: 1 question without a reference answer",
        "answers: 1 question of the reference without an answer",
    )


def test_a_reference_is_joined_by_question_where_ids_differ() -> None:
    reference = [{"id": "q7", "question": "Why?", "reference": "Rain"}]
    found = AnswerSet.of([{"question": "Why?", "answer": "Sun"}], reference=reference)
    assert (found.records[0].id, found.records[0].reference) == ("q7", "Rain")


def test_mixed_up_ids_are_an_error() -> None:
    answers = [{"id": "q1", "question": "b?", "answer": "B"}]
    with pytest.raises(MismatchError, match=r"record 1: question 'q1' is 'b\?' here and 'a\?' in the"):
        AnswerSet.of(answers, reference=[{"id": "q1", "question": "a?", "reference": "A"}])
    with pytest.raises(MismatchError, match="ids such as 'q1' and 'x'"):
        AnswerSet.of(answers, reference=[{"id": "x", "question": "a?", "reference": "A"}])


BROKEN = {
    '{"question": "a?"}': r"line 2: there is no 'answer'; its fields are 'question'",
    '{"qestion": "a?", "answer": "b"}': r"line 2: there is no 'question'(?s:.*)rename 'qestion'",
    '{"id": "q1", "question": "a?", "answer": "b"}': r"line 2: duplicate question 'q1' \(also .*line 1",
    '{"id": "q2", "question": "a?", "answer": "b", "contexts": [null]}': r"line 2, context 1: it is null",
    '{"id": "q2", "question": "a?", "answer": "b", "contexts": 3}': r"line 2: 'contexts' is 3, expected a list",
    '{"id": "q2", "question": "a?", "answer": ["b"]}': r"line 2: 'answer' is \['b'\], expected text",
    '{"id": "q2", "question": "a?", "answer": "b", "answerable": "maybe"}': r"'answerable' is 'maybe'",
    '{"question": "a?", "answer": "b"}': r"line 2: it has no id, but other records do",
    '{"id": " ", "question": "a?", "answer": "b"}': r"line 2: the id is empty",
    '{"id": "q2", "answer": "b"}': r"line 2: question 'q2' has no text",
    '{"id": "q2", "question": "a?", "answer": "b", "system": "x"}': r"line 1: it has no system",
    '{"id": "q2", "question": "a?", "answer": "b", "citations": [{}]}': r"a citation is \{\}",
    '{"question": "a?", "id": "q2", "contexts": ["x"], "context_ids": ["1", "2"], "answer": "b"}': (
        r"line 2: 'context_ids' has 2 ids, 'contexts' has 1 context"
    ),
    '{"id": "q2", "question": [{"text": "x"}], "answer": "b"}': r"expected role and content",
    "{": r"line 2: not valid JSON",
    "[]": r"line 2: got a list, expected an object",
}


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_record_is_named_with_its_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{line}\n")
    with pytest.raises(InputError, match=BROKEN[line]) as caught:
        AnswerSet.of(path)
    assert caught.value.fix
    assert "answers.jsonl" in caught.value.where


@pytest.mark.parametrize(
    "source", [[], {}, 3, b"x", [3], {"question": "a?"}, [["a", "b"]], {"question": [1], "answer": []}]
)
def test_a_file_without_records_is_refused(source: Any) -> None:
    with pytest.raises(InputError):
        AnswerSet.of(source)


def test_spans_are_read_from_files_with_other_kinds_of_parts() -> None:
    spans = {"scopeSpans": [None, {"spans": ["x", {"traceId": 3, "attributes": [4, {"key": 5}]}]}]}
    for row in (
        {"resourceSpans": [spans, 1], "question": "a?"},
        {"attributes": {"retrieval": {"documents": [{"document": 3}, None, "x"]}}},
        {"retrieval.documents": {1, 2}},
    ):
        with pytest.raises(InputError):
            AnswerSet.of([row])


def test_a_reference_without_questions_is_refused() -> None:
    with pytest.raises(InputError, match="reference: there are no questions"):
        AnswerSet.of([ROW], reference=[])


def test_long_contexts_other_scripts_and_empty_texts_are_read(tmp_path: Path) -> None:
    row = {"question": "尼罗河有多长", "answer": "", "contexts": ["長い" * 2_000_000, "", "مرحبا"], "reference": "Нил"}
    record = only(write(tmp_path / "long.jsonl", [row]))
    assert len(record.contexts[0].text) == 4_000_000
    assert (record.answer, record.contexts[1].text, record.contexts[2].text) == (None, "", "مرحبا")
    cells = tmp_path / "long.csv"
    cells.write_text(f"question,answer,contexts\na?,b,{'x' * 10_000_000}\n")
    with pytest.raises(InputError, match=r"line 2: a cell of this row has more than"):
        AnswerSet.of(cells)


def test_unread_parts_are_noted() -> None:
    assert AnswerSet.of([ROW | {"latency": 3}]).notes == ("answers: unknown fields ignored: 'latency'",)
