"""Answers saved with an evaluation: read back exactly, evaluated again, forgotten, exported, and restored."""

import json

import pytest
from command import run

from rankgauge import InputError, sample_path
from rankgauge.answers import AnswerRecord, AnswerSet, Citation, Context, read_answers
from rankgauge.evaluation import Evaluation
from rankgauge.store import WholeStore

RECORDS = (
    AnswerRecord(
        "q1",
        "How high?",
        "5 m [1].",
        (Context("d1", "It is 5 m high."), Context("d2", "It is old.")),
        "5 m",
        (Citation("d1", "5 m."), Citation("[7]")),
        (("user", "Hello"), ("assistant", "Hello.")),
        answerable=True,
        gold=("d1",),
        ranking=("d1", "d2", "d3"),
        group="sizes",
        alternatives=("five meters",),
    ),
    AnswerRecord("q2", "How old?", ""),
    AnswerRecord("q3", "How wide?", "2 m", (Context("d2", "It is 2 m wide."),)),
)


@pytest.fixture
def store(tmp_path):
    with WholeStore(tmp_path / "store.db") as store:
        evaluation = Evaluation.from_values("a", ["q1", "q2", "q3"], {"RR": [1.0, 0.5, 0.0]})
        store.add(evaluation, answers=AnswerSet("a", RECORDS).rows())
        yield store


def test_answers_are_read_back_exactly(store):
    assert AnswerSet.saved(store, "a#1").records == RECORDS


def test_an_evaluation_without_answers_says_so(store):
    store.add(store.load(1))
    store.add(store.load(1), answers=AnswerSet("a", RECORDS).rows(), texts=False)
    for number in (2, 3):
        with pytest.raises(InputError, match="without its answers"):
            AnswerSet.saved(store, number)


@pytest.mark.parametrize(
    ("kind", "name", "left", "gone"),
    [
        ("question", "q1", ["q2", "q3"], "How high"),
        ("document", "d1", ["q2", "q3"], "5 m high"),
        ("document", "d2", ["q2"], "2 m wide"),
    ],
)
def test_a_forgotten_text_is_in_no_answer_of_store_export_and_backup(store, tmp_path, kind, name, left, gone):
    assert store.forget(kind, name)["marked evaluation"] == 1
    assert [record.id for record in AnswerSet.saved(store, 1)] == left
    assert "cannot be recomputed" in " ".join(store.entry(1).notes)
    store.export(tmp_path / "out")
    assert gone not in "".join(path.read_text() for path in (tmp_path / "out").glob("answers-*.jsonl"))
    store.backup(tmp_path / "store.zip")
    with WholeStore(tmp_path / "other.db") as other:
        other.restore(tmp_path / "store.zip")
        assert [record.id for record in AnswerSet.saved(other, 1)] == left


def test_saved_answers_are_evaluated_again_without_their_file(tmp_path):
    file = tmp_path / "prompt-1.jsonl"
    file.write_text(sample_path("answers/prompt-1.jsonl").read_text())
    first = run("answers", "evaluate", file, "--save", "-q", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    (saved,) = read_answers(file)
    file.unlink()
    again = run("answers", "evaluate", "prompt-1@latest", "--as", "json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["query_ids"] == [record.id for record in saved]
    assert run("answers", "evaluate", "prompt-1@latest", "-q", cwd=tmp_path).stdout == first.stdout
