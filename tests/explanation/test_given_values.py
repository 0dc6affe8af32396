"""Values computed elsewhere, in all the formats in which tools report them."""

import gzip
import json

import pytest

from rankgauge import FormatError, InputError, evaluate
from rankgauge.explanation import GivenValues

VALUES = {"q1": 0.5, "q2": 0.25}
QRELS = {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}}
RUN = {"q1": ["a", "x", "b"], "q2": ["x", "a"]}

FILES = {
    "trec_eval -q": (
        "num_q\tall\t2\nmap                \tq1\t0.1000\nndcg_cut_10\tq1\t0.5000\n"
        "ndcg_cut_10\tq2\t0.2500\nndcg_cut_10\tall\t0.3750\nrunid\tall\tbm25\n"
    ),
    "ir_measures": "q1\tAP\t0.1\nq1\tnDCG@10\t0.5\nq2\tnDCG@10\t0.25\n",
    "two columns": "q1 0.5\nq2 0.25\n",
    "csv by column": "query_id,AP,nDCG@10\nq1,0.1,0.5\nq2,0.2,0.25\n",
    "csv with value": "qid,value\nq1,0.5\nq2,0.25\n",
    "tsv long": "query\tmeasure\tvalue\nq1\tndcg_cut_10\t0.5\nq2\tndcg_cut_10\t0.25\nq2\tmap\t1\n",
    "pytrec_eval": json.dumps({q: {"map": 0.1, "ndcg_cut_10": v} for q, v in VALUES.items()}),
    "by measure": json.dumps({"nDCG@10": VALUES, "AP": {"q1": 0.1}}),
    "per_query": json.dumps({"per_query": {q: {"ndcg_cut_10": v} for q, v in VALUES.items()}}),
    "plain json": json.dumps(VALUES),
    "records": json.dumps([{"query_id": q, "nDCG@10": v} for q, v in VALUES.items()]),
    "json lines": "".join(
        json.dumps({"query_id": q, "measure": "nDCG@10", "value": v}) + "\n" for q, v in VALUES.items()
    ),
}


@pytest.mark.parametrize("shape", FILES)
def test_files_of_every_layout_give_the_same_values(shape, tmp_path):
    path = tmp_path / "values.txt"
    path.write_text(FILES[shape], encoding="utf-8")
    given = GivenValues.of(path, "nDCG@10")
    assert given.values == VALUES
    assert given.mean == 0.375
    assert given.source == "values.txt"


def test_our_own_evaluation_and_its_file_are_read(tmp_path):
    evaluation = evaluate(QRELS, RUN, ["AP", "nDCG@10"])
    packed = tmp_path / "ours.json.gz"
    packed.write_bytes(gzip.compress(evaluation.to_json().encode()))
    for source in (evaluation, packed):
        given = GivenValues.of(source, "nDCG@10")
        assert given.mean == evaluation.mean()["nDCG@10"]
        assert given.values["q2"] == evaluation.value("q2", "nDCG@10")


def test_values_in_memory_need_no_file():
    assert GivenValues.of(VALUES, "AP").values == VALUES
    assert GivenValues.of({q: {"map": v} for q, v in VALUES.items()}, "AP").values == VALUES
    assert GivenValues.of([("q1", 0.5), ("q2", 0.25)], "AP").values == VALUES


@pytest.mark.parametrize(
    ("source", "digits", "slack"),
    [
        ("0.41", 2, 0.005),
        ("0.4100", 4, 0.00005),
        (0.4123, 4, 0.00005),
        ({"q1": 0.5, "q2": 0.333}, 3, 0.0005),
        ({"q1": 1 / 3}, 16, 1e-6),
        ({"q1": 1}, 1, 0.05),
    ],
    ids=["text", "zeros", "number", "values", "whole", "one"],
)
def test_as_many_digits_count_as_were_given(source, digits, slack):
    given = GivenValues.of(source, "AP")
    assert given.digits == digits
    assert given.slack == pytest.approx(slack)


def test_a_mean_alone_has_no_values(tmp_path):
    assert GivenValues.of(0.41, "AP").values == {}
    path = tmp_path / "means.txt"
    path.write_text("map\tall\t0.41\nP_5\tall\t0.2\n", encoding="utf-8")
    assert GivenValues.of(path, "AP") == GivenValues("means.txt", {}, 0.41, 0.005, 2)


def test_the_only_measure_is_chosen_with_a_note(tmp_path):
    path = tmp_path / "theirs.tsv"
    path.write_text("q1\tnDCG@10\t0.5\n", encoding="utf-8")
    given = GivenValues.of(path, "nDCG(gain=exp)@10")
    assert given.notes == ("theirs.tsv has values of nDCG@10, read as nDCG(gain=exp)@10",)


def test_undefined_values_are_skipped_with_a_note(tmp_path):
    path = tmp_path / "theirs.csv"
    path.write_text("query_id,AP\nq1,0.5\nq2,nan\n", encoding="utf-8")
    given = GivenValues.of(path, "AP")
    assert given.values == {"q1": 0.5}
    assert "skipped" in given.notes[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there are no values"),
        ("q1 0.5\nq2 x\n", "values.txt, line 2: 'x' is not a value"),
        ("q1 a b c\n", "values.txt, line 1: got 4 fields"),
        ("q1 0.5\nq1 0.6\n", "query 'q1' occurs twice"),
        ("q1 nDCG@5 0.5\nq1 AP 0.1\n", "it has: nDCG@5, AP"),
        ('{"q1": 0.5\n{"q2"\n', "line 1: not valid JSON"),
        ("query_id,AP\nq1,nan\n", "there are no numbers"),
    ],
    ids=["empty", "word", "fields", "twice", "another", "json", "nothing"],
)
def test_unreadable_values_are_reported_with_their_position(text, said, tmp_path):
    path = tmp_path / "values.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        GivenValues.of(path, "nDCG@10")


def test_binary_files_and_other_objects_are_refused(tmp_path):
    path = tmp_path / "values.txt"
    path.write_bytes(b"q1 0.5\nq\xff 1\n")
    with pytest.raises(FormatError, match="not UTF-8"):
        GivenValues.of(path, "AP")
    with pytest.raises(InputError, match="got set"):
        GivenValues.of({1}, "AP")
    with pytest.raises(InputError, match="nowhere"):
        GivenValues.of(str(tmp_path / "nowhere.csv"), "AP")
