"""Examples of Phoenix, Langfuse, and LangSmith; tests/integrations reads exports of the tools themselves."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from rankgauge.answers import read_answers
from rankgauge.errors import InputError
from rankgauge.formats.experiments import is_example, records_of_example
from rankgauge.formats.questions import read_questions
from rankgauge.formats.texts import TextSource

_TOLD = {"answer": "2 euros", "relevant": ["fees"]}
_EXAMPLES = [
    {"id": "q1", "node_id": "n1", "input": {"question": "fee?"}, "output": _TOLD, "metadata": {"group": "fees"}},
    {"id": "q1", "input.question": "fee?", "output.answer": "2 euros", "output.relevant": '["fees"]', "node_id": "n1"},
    {"id": "q1", "input": "fee?", "expectedOutput": _TOLD, "datasetId": "d", "metadata": None},
    {"id": "q1", "input": '{"question": "fee?"}', "expectedOutput": json.dumps(_TOLD), "datasetId": "d"},
    {"id": '"q1"', "input": '"fee?"', "expectedOutput": json.dumps(_TOLD), "datasetId": '"d"', "metadata": '""'},
    {"id": "q1", "inputs": {"messages": [{"role": "user", "content": "fee?"}]}, "outputs": _TOLD, "dataset_id": "d"},
    {"data": {"dataset_id": "d", "examples": [{"id": "q1", "input": {"a": "fee?"}, "output": _TOLD, "node_id": "n"}]}},
]


@pytest.mark.parametrize("row", _EXAMPLES)
def test_an_example_of_a_dataset_is_a_question_with_its_reference(row, tmp_path):
    assert is_example(row)
    (record,) = records_of_example(row)
    assert record["question"] == "fee?"
    assert (record["id"], record["reference"], record["relevant"]) == ("q1", "2 euros", ["fees"])
    assert "answer" not in record
    texts = {"a.jsonl": json.dumps(row), "a.json": json.dumps([row]), "b.json": json.dumps(row, indent=1)}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        queries, grades = read_questions(TextSource.of(tmp_path / name), {"fees": ""})
        assert (queries["q1"].text, grades) == ("fee?", {"q1": {"fees": 1.0}})
    with pytest.raises(InputError, match="there is no 'answer'"):
        read_answers(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    "row",
    [
        {"example_id": "q1", "input": {"question": "fee?"}, "reference_output": _TOLD, "output": {"answer": "2"}},
        {"example_id": "q1", "inputs.question": "fee?", "reference.answer": "2 euros", "outputs.output": "2"},
        {"item": {"id": "q1", "input": "fee?", "expected_output": "2 euros"}, "output": "2", "evaluations": []},
        {"id": "q1", "inputs": {"q": "fee?"}, "outputs": _TOLD, "runs": [{"run_type": "chain", "outputs": {"a": "2"}}]},
    ],
)
def test_a_row_of_an_experiment_is_an_answer_with_its_reference(row):
    (answers,) = read_answers([row])
    (record,) = answers.records
    assert (record.id, record.question, record.answer, record.reference) == ("q1", "fee?", "2", "2 euros")


def test_runs_of_several_experiments_are_systems():
    runs = [{"run_type": "chain", "session_id": name, "outputs": {"a": name}} for name in ("s1", "s2")]
    sets = read_answers([{"id": "q1", "inputs": {"q": "fee?"}, "outputs": _TOLD, "runs": runs}])
    assert {s.system: s.records[0].answer for s in sets} == {"s1": "s1", "s2": "s2"}
    # The id of a single experiment is no name.
    (one,) = read_answers([{"id": "q1", "inputs": {"q": "fee?"}, "outputs": _TOLD, "runs": runs[:1]}])
    assert (one.system, one.records[0].answer) == ("answers", "s1")


def test_a_failure_of_a_system_is_an_empty_answer():
    shared = {"input": {"question": "fee?"}, "reference_output": _TOLD}
    (answers,) = read_answers(
        [
            shared | {"example_id": "q1", "output": "2", "error": None},
            shared | {"example_id": "q2", "output": None, "error": "late"},
        ]
    )
    assert [record.answer for record in answers.records] == ["2", ""]


@pytest.mark.parametrize(
    "row",
    [
        {"input": "fee?", "actual_output": "2", "expected_output": "2 euros"},
        {"trace_id": "t", "type": "SPAN", "start_time": "2026-05-01", "input": {"question": "fee?"}, "output": "2"},
        {"id": "r", "run_type": "chain", "start_time": "2026-05-01", "inputs": {"q": "fee?"}, "outputs": {"a": "2"}},
        {"question": "fee?", "answer": "2", "metadata": {"group": "fees"}},
    ],
)
def test_other_records_are_not_examples(row):
    assert not is_example(row)


def test_fields_with_lists_are_kept_with_questions(tmp_path):
    (tmp_path / "a.json").write_text(
        json.dumps([{"id": "q1", "question": "fee?", "relevant": ["fees"], "tags": ["x"]}])
    )
    queries, grades = read_questions(TextSource.of(tmp_path / "a.json"), {"fees": ""})
    assert (queries["q1"].fields["tags"], grades) == (["x"], {"q1": {"fees": 1.0}})


_NAMES = "input inputs output outputs expectedOutput reference_output metadata item example run runs data examples id"
_KEYS = st.sampled_from(
    [*_NAMES.split(), "dataset_id", "example_id", "input.question", "messages", "question", "answer"]
)
_CELLS = st.sampled_from([None, "", '""', '"a"', "{}", "[{]", '{"question": "x"}', "text", 1, 2.5, float("nan"), True])
_VALUES = st.recursive(_CELLS, lambda inner: st.dictionaries(_KEYS, inner) | st.lists(inner), max_leaves=8)


@given(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=6))
def test_malformed_examples_are_read_or_refused(row):
    if is_example(row):
        assert all(isinstance(record, dict) for record in records_of_example(row))
    with suppress(InputError):
        read_answers([row])
