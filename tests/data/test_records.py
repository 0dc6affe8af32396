"""Records that contain both run and judgments: shapes, contradictions, and errors."""

import gzip
import json
import math
import pickle
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankgauge.data.qrels import Qrels
from rankgauge.data.records import Records
from rankgauge.data.run import Run
from rankgauge.errors import InputError, RankgaugeError, UnknownName
from rankgauge.evaluation.evaluation import evaluate

NUMBERED = "records: without ids: queries are numbered from 1"
EXAMPLE = '{"id": "q1", "retrieved": ["d2", "d1"], "relevant": ["d1"]}'


def same(source, *, qrels=None, run=None):
    """Check that the records give these judgments and this run, without notes."""
    found = Records.of(source)
    assert found.qrels == Qrels.of(qrels or {"q1": {"d1": 1}, "q2": {"d9": 1}})
    assert found.run == Run.of(run or {"q1": ["d2", "d1"], "q2": ["d3"]}, name=found.run.name)
    return found


# ---------------------------------------------------------------- shapes


def test_records_are_mappings():
    found = same(
        [
            {"id": "q1", "retrieved": ["d2", "d1"], "relevant": ["d1"]},
            {"id": "q2", "retrieved": ["d3"], "relevant": {"d9"}},
        ]
    )
    assert found.graded is found.qrels
    assert found.notes == ()


@pytest.mark.parametrize("id_name", ["id", "query_id", "qid", "question_id"])
@pytest.mark.parametrize(
    ("retrieved", "relevant"),
    [
        ("retrieved", "relevant"),
        ("retrieved_ids", "relevant_ids"),
        ("retrieved_doc_ids", "relevant_doc_ids"),
        ("retrieved_docs", "relevant_docs"),
        ("retrieved", "relevant_docs"),
    ],
)
def test_the_parts_have_other_names_too(id_name, retrieved, relevant):
    same(
        [
            {id_name: "q1", retrieved: ["d2", "d1"], relevant: ["d1"]},
            {id_name: "q2", retrieved: ["d3"], relevant: ["d9"]},
        ]
    )


@dataclass
class Plain:
    query_id: str
    retrieved_ids: list
    relevant_ids: set
    relevance_scores: dict | None = None


class Slots:
    __slots__ = ("id", "relevant", "retrieved")

    def __init__(self, *values):
        self.id, self.retrieved, self.relevant = values


class Computed:
    def __init__(self, *values):
        self._values = values

    query_id = property(lambda self: self._values[0])
    retrieved = property(lambda self: self._values[1])
    relevant = property(lambda self: self._values[2])


class Named(NamedTuple):
    qid: str
    retrieved: list
    relevant: set


@pytest.mark.parametrize(
    "make",
    [Plain, Slots, Computed, Named, lambda *v: SimpleNamespace(id=v[0], retrieved=v[1], relevant=v[2])],
    ids=["dataclass", "slots", "properties", "namedtuple", "namespace"],
)
def test_records_are_objects_with_such_attributes(make):
    found = same([make("q1", ["d2", "d1"], {"d1"}), make("q2", ["d3"], {"d9"})])
    assert found.notes == ()


def test_records_are_tuples():
    same([("q1", ["d2", "d1"], ["d1"]), ("q2", ["d3"], ["d9"])])
    same([["q1", ["d2", "d1"], ["d1"]], ["q2", ["d3"], ["d9"]]])
    pairs = Records.of([(["d2", "d1"], ["d1"]), (["d3"], ["d9"])])
    assert pairs.run.query_ids == pairs.qrels.query_ids == ("1", "2")
    assert pairs.notes == (NUMBERED,)
    for graded in (("q", ["d1"], ["d1"], {"d1": 3}), (["d1"], ["d1"], {"d1": 3})):
        assert list(Records.of([graded]).graded.values()) == [{"d1": 3.0}]


def test_records_are_parallel_lists():
    columns = {"id": ["q1", "q2"], "retrieved": [["d2", "d1"], ["d3"]], "relevant": [["d1"], {"d9"}]}
    same(columns)
    same({**columns, "relevance_scores": [None, {"d9": 1}]})
    same({**columns, "retrieved": (("d2", "d1"), ["d3"])})


def test_records_are_mapped_by_query_id():
    same({"q1": {"retrieved": ["d2", "d1"], "relevant": ["d1"]}, "q2": {"retrieved": ["d3"], "relevant": ["d9"]}})


@pytest.mark.parametrize("library", ["pandas", "polars", "polars lazy", "pyarrow", "duckdb"])
def test_records_are_a_data_frame_with_columns_of_lists(library):
    columns = {"qid": ["q1", "q2"], "retrieved": [["d2", "d1"], ["d3"]], "relevant": [["d1"], ["d9"]]}
    arrow = pa.table(columns)
    frame = {
        "pandas": lambda: pd.DataFrame(columns),
        "polars": lambda: pl.DataFrame(columns),
        "polars lazy": lambda: pl.LazyFrame(columns),
        "pyarrow": lambda: arrow,
        "duckdb": lambda: duckdb.from_arrow(arrow),
    }[library]()
    same(frame)


def test_a_data_frame_may_hold_grades_and_arrays():
    frame = pd.DataFrame(
        {
            "retrieved": [np.array(["d2", "d1"]), np.array(["d3"])],
            "relevant": [np.array(["d1"]), np.array(["d9"])],
            "relevance_scores": [{"d1": 1}, {"d9": 1}],
        }
    )
    found = Records.of(frame)
    assert dict(found.graded) == {"1": {"d1": 1.0}, "2": {"d9": 1.0}}
    # A struct column has every field in every row, empty where a row lacks it.
    polars = pl.DataFrame(
        {"retrieved": [["d1"], ["d3"]], "relevance_scores": [{"d1": 3, "d3": None}, {"d1": None, "d3": 2}]}
    )
    assert dict(Records.of(polars).graded) == {"1": {"d1": 3.0}, "2": {"d3": 2.0}}


def test_records_come_from_any_iterable_and_pass_through():
    made = Records.of({"id": q, "retrieved": ["d1"], "relevant": ["d1"]} for q in ("a", "b"))
    assert made.run.query_ids == ("a", "b")
    assert Records.of(made) is made
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("ids", [(1, 2), (b"q1", b"\xff"), ("ä", "雪")])
def test_ids_are_text_whole_numbers_or_bytes(ids):
    found = Records.of([{"id": q, "retrieved": [7, 8], "relevant": [8]} for q in ids])
    assert list(found.qrels.query_index) == [q if isinstance(q, bytes) else str(q).encode() for q in ids]
    assert evaluate(found, measures="RR").mean() == {"RR": 0.5}


def test_a_text_of_the_query_is_no_id():
    texts = [
        {"query": "how to renew?", "retrieved": ["d1"], "relevant": ["d1"]},
        {"query": "how to renew?", "retrieved": ["d1"], "relevant": ["d1"]},
    ]
    assert Records.of(texts).run.query_ids == ("1", "2")
    with_ids = [{**record, "id": place} for record, place in zip(texts, "ab", strict=True)]
    assert Records.of(with_ids).run.query_ids == ("a", "b")
    assert Records.of(with_ids).notes == ()


def test_the_name_of_the_retriever_is_no_misspelling():
    assert Records.of([{**GOOD, "retriever": "bm25"}]).notes == ()


def test_other_keys_are_left_unread_and_named_in_a_note():
    record = {"id": "q", "retrieved": ["d1"], "relevant": ["d1"], "answer": "yes", "latency": 0.2}
    assert Records.of([record]).notes == ("records: unknown fields ignored: 'answer', 'latency'",)


# ---------------------------------------------------------------- files

LINES = [
    {"id": "q1", "retrieved": ["d2", "d1"], "relevant": ["d1"]},
    {"id": "q2", "retrieved": ["d3"], "relevant": ["d9"]},
]


def test_records_are_read_from_json_lines(tmp_path):
    text = "\n\n".join(map(json.dumps, LINES)) + "\n"
    for name, data in {
        "records.jsonl": text.encode(),
        "records.ndjson": b"\xef\xbb\xbf" + text.encode(),
        "records.txt": text.replace("\n", "\r\n").encode(),
        "records.jsonl.gz": gzip.compress(text.encode()),
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert same(path).run.name == "records"
        same(str(path))


def test_records_are_read_from_a_json_list_or_mapping(tmp_path):
    by_id = {line["id"]: {k: v for k, v in line.items() if k != "id"} for line in LINES}
    columns = {key: [line[key] for line in LINES] for key in ("id", "retrieved", "relevant")}
    for data in (LINES, by_id, columns):
        path = tmp_path / "records.json"
        path.write_text(json.dumps(data, indent=1))
        same(path)
    odd = tmp_path / "records"
    odd.write_text(json.dumps(LINES, indent=1))
    same(odd)


def test_a_broken_gzip_file_is_an_error_whatever_its_name(tmp_path):
    packed = gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in LINES))
    path = tmp_path / "records"
    path.write_bytes(packed[:-12])
    with pytest.raises(InputError, match="gzip"):
        Records.of(path)


def test_ids_that_are_numbers_meet_the_keys_of_json():
    found = Records.of([{"retrieved": [7, 8], "relevant": [8], "relevance_scores": {"8": 2, "9": 0}}])
    assert found.graded is found.qrels
    assert evaluate(found, measures=["RR", "DCG@1"]).mean() == {"RR": 0.5, "DCG@1": 0.0}


BAD_FILES = {
    "a broken line": ("r.jsonl", json.dumps(LINES[0]) + '\n\n{"id": "q2", \n', "r.jsonl, line 3: not valid JSON"),
    "a part that is missing": (
        "r.jsonl",
        json.dumps(LINES[0]) + '\n{"id": "q2", "retrieved": ["d1"]}\n',
        "r.jsonl, line 2: there is no 'relevant'; its fields are 'id', 'retrieved'",
    ),
    "the same query again": (
        "r.jsonl",
        json.dumps(LINES[0]) + "\n" + json.dumps(LINES[0]),
        "r.jsonl, line 2: query 'q1' is already in r.jsonl, line 1",
    ),
    "an id that is no id": (
        "r.jsonl",
        json.dumps(LINES[0]) + '\n{"id": "b", "retrieved": ["d1", 2.5], "relevant": []}',
        "r.jsonl, line 2: document id 2.5 is",
    ),
    "a score that is text": (
        "r.jsonl",
        '{"retrieved": ["d1"], "scores": ["high"], "relevant": []}',
        "r.jsonl, line 1: score 'high' is text, not a number",
    ),
    "a list of numbers": ("r.json", "[1, 2]", "r.json, record 1: got 1, expected a record"),
    "a number": ("r.json", "7", "r.json: got 7, expected a list of records"),
    "broken JSON": ("r.json", '[\n{"id": ]', "r.json, line 2: not valid JSON"),
    "a key twice": ("r.json", '[{"id": 1, "id": 2}]', "the key 'id' occurs twice in one object"),
    "an empty JSON": ("r.json", " ", "r.json: the file is empty"),
    "UTF-16": ("r.json", "[\0{\0", "r.json, line 1: not valid JSON"),
    "nested too deeply": ("r.json", "[" * 100_000, "r.json: the JSON is nested too deeply"),
    "an empty list": ("r.json", "[]", "r.json: there are no records"),
    "an empty file": ("r.jsonl", "", "r.jsonl: there are no records"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_an_error_with_path_and_line(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    path, text, message = BAD_FILES[name]
    (tmp_path / path).write_text(text)
    with pytest.raises(InputError) as caught:
        Records.of(path)
    assert message in str(caught.value)
    assert "\nfix: " in str(caught.value)


def test_a_missing_file_is_an_error():
    with pytest.raises(InputError, match=r"nowhere\.jsonl: there is no such file"):
        Records.of("nowhere.jsonl")


# ---------------------------------------------------------------- grades, scores, contradictions


def graded_record(**parts):
    return Records.of([{"id": "q", "retrieved": ["a", "b", "c"], **parts}])


@pytest.mark.parametrize("name", ["relevance_scores", "relevance_grades"])
def test_where_relevant_and_grades_agree_there_is_one_set_of_judgments(name):
    found = graded_record(relevant=["a", "b"], **{name: {"a": 3, "b": 1, "c": 0}})
    assert found.graded is found.qrels
    assert found.qrels["q"] == {"a": 3.0, "b": 1.0, "c": 0.0}
    assert found.notes == ()


def test_only_grades_serve_for_both():
    found = graded_record(relevance_scores={"a": 3, "c": 0, "z": 1})
    assert found.graded is found.qrels
    assert found.qrels["q"] == {"a": 3.0, "c": 0.0, "z": 1.0}
    # A mapping named like the relevant documents contains grades.
    assert graded_record(relevant={"a": 3, "c": 0, "z": 1}) == found


def test_where_they_disagree_each_kind_of_measure_has_its_own():
    # b is relevant without a grade; c has a grade but is not listed as relevant.
    found = graded_record(relevant=["a", "b"], relevance_scores={"a": 2, "c": 3, "z": 0})
    assert found.graded["q"] == {"a": 2.0, "c": 3.0, "z": 0.0}
    assert found.qrels["q"] == {"a": 2.0, "b": 1.0, "c": 0.0, "z": 0.0}
    assert found.notes == (
        (
            "records: 1 query where 'relevant' and the grades disagree; binary measures use "
            "'relevant', gains use the grades"
        ),
    )
    values = evaluate(found, measures=["P@3", "R@3", "AP", "DCG", "P(rel=2)@3"]).mean()
    assert values["P@3"] == 2 / 3
    assert values["R@3"] == values["AP"] == 1.0
    assert values["DCG"] == 2 + 3 / 2
    # A higher relevance level still uses the grades of the relevant documents.
    assert values["P(rel=2)@3"] == 1 / 3


def test_the_note_counts_the_queries_that_disagree_and_evaluate_says_it():
    records = [
        {"retrieved": ["a"], "relevant": ["a"], "relevance_scores": {"a": 2}},
        {"retrieved": ["a"], "relevant": ["a"], "relevance_scores": {"b": 2}},
        {"retrieved": ["a"], "relevant": ["a"], "relevance_scores": {"a": 0}},
        {"retrieved": ["a"], "relevant": ["a"]},
    ]
    notes = evaluate(records, measures="P@1").notes
    assert any(note.startswith("records: 2 queries where 'relevant'") for note in notes)


def test_a_relevant_document_with_a_fraction_of_a_grade_stays_relevant():
    found = graded_record(relevant=["a"], relevance_scores={"a": 0.5, "b": 0})
    assert evaluate(found, measures=["P@1", "DCG@1"]).mean() == {"P@1": 1.0, "DCG@1": 0.5}
    assert found.notes == (
        ("records: 1 query with grades between 0 and 1; binary measures use 'relevant', gains use the grades"),
    )


@pytest.mark.parametrize("name", ["scores", "retrieval_scores"])
def test_scores_rule_over_the_order_of_the_list_and_a_note_says_so(name):
    told = graded_record(relevant=["c"], **{name: [0.1, 0.2, 0.9]})
    assert evaluate(told, measures="RR").mean() == {"RR": 1.0}
    assert told.notes == ("records: 1 query whose list order and retrieval scores disagree: the scores are used",)
    quiet = graded_record(relevant=["c"], **{name: [0.9, 0.9, -1]})
    assert quiet.notes == ()
    assert quiet.run["q"] == {"a": 0.9, "b": 0.9, "c": -1.0}


def test_each_query_whose_order_disagrees_counts_once_and_neighbours_do_not():
    records = [
        {"retrieved": ["a", "b"], "scores": [2, 1], "relevant": []},
        {"retrieved": ["a", "b"], "scores": [9, 8], "relevant": []},
        {"retrieved": [], "scores": [], "relevant": []},
        {"retrieved": ["a", "b", "c"], "scores": [1, 2, 3], "relevant": []},
    ]
    assert Records.of(records).notes[-1].startswith("records: 1 query whose list order")
    assert len(Records.of(records[:3]).notes) == 1


def test_retrieved_documents_may_carry_their_scores():
    for retrieved in ({"a": 0.1, "b": 0.9}, [("a", 0.1), ("b", 0.9)]):
        found = Records.of([{"id": "q", "retrieved": retrieved, "relevant": ["b"]}])
        assert found.run["q"] == {"a": 0.1, "b": 0.9}
        assert evaluate(found, measures="RR").mean() == {"RR": 1.0}


def test_repeated_documents_are_handled_by_the_policy():
    records = [{"id": "q", "retrieved": ["a", "b", "a"], "relevant": ["b"]}]
    with pytest.raises(InputError, match="document 'a' occurs twice for query 'q'"):
        evaluate(records, measures="RR")
    assert evaluate(records, measures="RR", duplicates="first").mean() == {"RR": 0.5}


DOCS = [f"d{number}" for number in range(8)]


@given(
    st.dictionaries(
        st.sampled_from(["q1", "q2", "q3"]),
        st.tuples(
            st.lists(st.sampled_from(DOCS), unique=True), st.dictionaries(st.sampled_from(DOCS), st.integers(0, 3))
        ),
        min_size=1,
    )
)
def test_records_give_bit_for_bit_what_judgments_and_a_run_give(data):
    records = [
        {
            "id": q,
            "retrieved": docs,
            "relevance_scores": grades,
            "relevant": [doc for doc, grade in grades.items() if grade > 0],
        }
        for q, (docs, grades) in data.items()
    ]
    apart = evaluate({q: g for q, (_, g) in data.items()}, {q: d for q, (d, _) in data.items()})
    assert np.array_equal(evaluate(records).per_query, apart.per_query, equal_nan=True)
    assert evaluate(records).query_ids == apart.query_ids


# ---------------------------------------------------------------- errors

GOOD = {"id": "q1", "retrieved": ["d1"], "relevant": ["d1"]}
BAD = {
    "nothing": ([], "records: there are no records", f"pass at least one: {EXAMPLE}"),
    "None": (None, "records: got NoneType, expected records", "pass a path, a data frame, or a list of mappings"),
    "judgments alone": (
        {"q1": {"d1": 3}},
        "record 'q1': there is no 'retrieved' and no 'relevant'; its fields are 'id', 'd1'",
        (
            "if these are judgments, pass the run as well: evaluate(qrels, run); "
            f"else pass a list of records, as in {EXAMPLE}"
        ),
    ),
    "judgments that are read": (
        Qrels.of({"q1": {"d1": 3}}),
        "got Qrels alone, expected records or judgments and a run",
        "pass both: evaluate(qrels, run)",
    ),
    "one record": (
        {"retrieved": ["d1"], "relevant": ["d1"]},
        "record 1: 'retrieved' is 'd1', expected a list of document ids",
        "write 'retrieved': [\"d1\", ...], and one record as a list of one: [record]",
    ),
    "text": (["d1"], "record 1: got 'd1', expected a record", f"write {EXAMPLE}"),
    "a misspelt key": (
        [GOOD, {**GOOD, "id": "q2", "relevance_score": {"d1": 3}}],
        "record 2: unknown field of a record: 'relevance_score'",
        "did you mean 'relevance_scores'?",
    ),
    "no ranking": (
        [{"id": "q1", "docs": ["d1"], "relevant": ["d1"]}],
        "record 1: there is no 'retrieved'; its fields are 'id', 'docs', 'relevant'",
        f"add 'retrieved', as in {EXAMPLE}",
    ),
    "no judgments": (
        [{"retrieved": ["d1"], "relevance": ["d1"]}],
        "record 1: there is no 'relevant'; its fields are 'retrieved', 'relevance'",
        f"rename 'relevance' to 'relevant', as in {EXAMPLE}",
    ),
    "None for relevant": (
        [{"retrieved": ["d1"], "relevant": None}],
        "record 1: there is no 'relevant'; its fields are 'retrieved'",
        f"write 'relevant': [] instead of None if there are none, as in {EXAMPLE}",
    ),
    "two names of one thing": (
        [{**GOOD, "relevant_ids": ["d1"]}],
        "record 1: 'relevant' and 'relevant_ids' are two names for the same field",
        "keep one: 'relevant'",
    ),
    "grades twice": (
        [{"retrieved": ["d1"], "relevant": {"d1": 1}, "relevance_scores": {"d1": 1}}],
        "record 1: 'relevant' and 'relevance_scores' both have grades",
        "pass 'relevant' as a list of document ids",
    ),
    "some ids": (
        [GOOD, {"retrieved": ["d1"], "relevant": ["d1"]}],
        "record 2: it has no id, like 1 of 2 records; the others have one",
        "give every record an id, or none",
    ),
    "an id twice": (
        [GOOD, {**GOOD, "id": "q2"}, GOOD],
        "record 3: query 'q1' is already in record 1",
        "give every query one record",
    ),
    "a set": (
        [{"retrieved": {"d1"}, "relevant": ["d1"]}],
        "record 1: 'retrieved' is a set, which has no order, so it is not a ranking",
        "pass 'retrieved' as a list, best first",
    ),
    "a document for a list": (
        [GOOD, {"id": "q2", "retrieved": "d1", "relevant": ["d1"]}],
        "record 2: 'retrieved' is 'd1', expected a list of document ids",
        "write 'retrieved': [\"d1\", ...], and one record as a list of one: [record]",
    ),
    "too few scores": (
        [{"retrieved": ["d1", "d2"], "scores": [0.5], "relevant": ["d1"]}],
        "record 1: 'retrieved' has 2 documents, 'scores' has 1 scores",
        "pass one score for each retrieved document",
    ),
    "scores twice": (
        [{"retrieved": {"d1": 1.0}, "scores": [0.5], "relevant": ["d1"]}],
        "record 1: scores are in both 'retrieved' and 'scores'",
        "remove 'scores', or pass 'retrieved' as a list of document ids",
    ),
    "scores by document": (
        [{"retrieved": ["d1"], "scores": {"d1": 2}, "relevant": ["d1"]}],
        "record 1: 'scores' is a mapping, of either grades or scores",
        ("name grades 'relevance_scores'; pass scores as a list, one for each of 'retrieved'"),
    ),
    "grades in a list": (
        [{"retrieved": ["d1"], "relevance_scores": [3], "relevant": ["d1"]}],
        "record 1: 'relevance_scores' is a list of int, expected a grade by document id",
        'write \'relevance_scores\': {"d1": 3, "d2": 1}',
    ),
    "a relevant document twice": (
        [{"retrieved": ["d1"], "relevant": ["d1", "d2", "d1"]}],
        "record 1: a relevant document is listed twice: 'd1'",
        "list every relevant document once, for example with set(...)",
    ),
    "columns of unequal length": (
        {"retrieved": [["d1"], ["d2"]], "relevant": [["d1"]]},
        "records: the columns have different lengths: 'retrieved' has 2, 'relevant' has 1",
        "give every column one entry for each record",
    ),
    "a column of text": (
        {"retrieved": [["d1"]], "relevant": "d1"},
        "records: 'relevant' is 'd1', expected a list with an entry for each record",
        "pass one record as a list of one: [record]",
    ),
    "a tuple of one": (
        [(["d1"],)],
        "record 1: got (['d1'],), expected a record",
        f"write ([retrieved], [relevant]), (id, [retrieved], [relevant]), or {EXAMPLE}",
    ),
    "an id inside and outside": (
        {"q1": {**GOOD, "qid": "q1"}},
        "record 'q1': 'id' and 'qid' are two names for the same field",
        "keep one: 'id'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_records_are_an_error_with_position_and_fix(name):
    source, what, *fix = BAD[name]
    with pytest.raises(RankgaugeError) as caught:
        Records.of(source)
    assert str(caught.value) == f"{what}\nfix: {''.join(fix)}"


@pytest.mark.parametrize(
    "bad",
    [
        {"retrieved": ["d1", 2], "relevant": ["d1"]},
        {"retrieved": ["d1", None], "relevant": ["d1"]},
        {"retrieved": [""], "relevant": ["d1"]},
        {"retrieved": ["d\0"], "relevant": ["d1"]},
        {"retrieved": ["\ud800"], "relevant": ["d1"]},
        {"retrieved": ["d1"], "relevant": [1.5]},
        {"retrieved": ["d1"], "relevant": [], "scores": [float("nan")]},
        {"retrieved": ["d1"], "relevant": [], "scores": [None]},
        {"retrieved": ["d1"], "relevance_scores": {"d1": float("inf")}},
        {"retrieved": ["d1"], "relevance_scores": {"d1": "3"}},
        {"retrieved": ["d1"], "relevance_scores": {None: 3}},
    ],
    ids=range(11),
)
def test_a_bad_id_or_number_is_an_error_that_names_the_record(bad):
    with pytest.raises(InputError, match=r"(?s)^record 2: .*\nfix: "):
        Records.of([{"retrieved": ["d1"], "relevant": ["d1"]}, bad])


def test_a_key_is_taken_for_a_misspelling_only_if_it_is_near():
    for key in ("retreived", "Retrieved", "relevants", "relevence_scores", "score", "query_ids"):
        with pytest.raises(UnknownName, match="did you mean"):
            Records.of([{**GOOD, key: 1}])
    for key in ("retrieved_at", "category", "n", 7):
        assert Records.of([{**GOOD, key: 1}]).notes == (f"records: unknown fields ignored: {str(key)!r}",)


def test_a_series_with_documents_as_labels_holds_their_grades_or_scores():
    grades, scores = pd.Series({"d1": 2, "d2": 1}), pd.Series({"d2": 0.5, "d1": 0.75})
    for record in (
        {"retrieved": ["d2"], "relevant": grades},
        {"retrieved": ["d2"], "relevant": ["d1", "d2"], "relevance_scores": grades},
    ):
        assert Records.of([record]).graded == Qrels.of({"1": {"d1": 2, "d2": 1}})
    run = Records.of([{"retrieved": scores, "relevant": pd.Series(["d1"])}]).run
    assert run == Run.of({"1": {"d2": 0.5, "d1": 0.75}}, name=run.name)
    twice = pd.Series([1, 2], index=["d1", "d1"])
    with pytest.raises(InputError, match="record 1: document 'd1' has two grades"):
        Records.of([{"retrieved": ["d2"], "relevant": twice}])
    with pytest.raises(InputError, match="'relevant' and 'relevance_scores' both have grades"):
        Records.of([{"retrieved": ["d2"], "relevant": grades, "relevance_scores": grades}])


@pytest.mark.parametrize("part", ["retrieved", "relevant", "relevance_scores"])
def test_a_data_frame_is_no_part_of_a_record(part):
    record = {"retrieved": ["d1"], "relevant": ["d1"], part: pd.DataFrame({"d1": [1]})}
    with pytest.raises(InputError, match=f"record 1: '{part}' is DataFrame, expected a list"):
        Records.of([record])


@pytest.mark.parametrize("empty", [{}, [], {"d1": None}], ids=range(3))
def test_no_grade_beside_relevant_means_that_none_were_given(empty):
    record = {"retrieved": ["d1"], "relevant": ["d1"], "relevance_scores": empty}
    found = Records.of([record])
    assert found.notes == (NUMBERED,)
    assert evaluate(found, measures=["nDCG", "AP"]).mean() == {"nDCG": 1.0, "AP": 1.0}
    alone = Records.of([{"retrieved": ["d1"], "relevance_scores": empty}])
    assert list(alone.graded.values()) == [{}]


@pytest.mark.parametrize("name", ["r", "r.jsonl.gz", "r.json.gz"])
@pytest.mark.parametrize("damage", ["cut", "overwritten", "two bytes"])
def test_broken_gzip_data_is_reported_wherever_it_breaks(tmp_path, monkeypatch, name, damage):
    monkeypatch.chdir(tmp_path)
    rows = [{**LINES[0], "id": f"q{n * 7919 % 10_007}"} for n in range(3000)]
    text = json.dumps(rows, indent=0) if "json." in name else "\n".join(map(json.dumps, rows))
    packed = gzip.compress(text.encode())
    data = {"cut": packed[:-100], "overwritten": packed[:20] + b"\xff" * 200 + packed[220:], "two bytes": packed[:2]}[
        damage
    ]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=f"^{name}.*: the gzip data is corrupt or truncated"):
        Records.of(name)


@pytest.mark.parametrize("convert", [list, tuple, np.array])
def test_lists_of_grades_are_rankings_of_documents_known_by_rank(convert, tmp_path):
    found = Records.of([convert([0, 1, 2]), convert([1, 0])])
    assert {query: dict(found.run[query]) for query in found.run} == {
        "1": {"1": 3.0, "2": 2.0, "3": 1.0},
        "2": {"1": 2.0, "2": 1.0},
    }
    assert dict(found.graded["1"]) == {"1": 0.0, "2": 1.0, "3": 2.0}
    lacking = "WARNING: records: lists of grades lack relevant documents that were not retrieved: recall, F1, AP, and"
    assert found.notes == (f"{lacking} nDCG can be too high; pass judgments and a run", NUMBERED)
    for name, text in (("r.json", "[[0, 1, 2], [1, 0]]"), ("indented.json", "[\n [0, 1, 2],\n [1, 0]\n]\n")):
        (tmp_path / name).write_text(text)
        values = evaluate(tmp_path / name, measures="nDCG@3").per_query[:, 0]
        assert values.tolist() == pytest.approx([0.6199062332840657, 1.0])


def test_a_list_of_grades_has_the_values_of_the_formulas():
    found = evaluate([[0, 1, 2], [True, False], [], [0.0, 0.5]], measures=["P@2", "RR", "DCG", "nDCG@2"])
    second = 1 / math.log2(3)
    expected = [
        [0.5, 0.5, second + 1, second / (2 + second)],
        [0.5, 1, 1, 1],
        [0, math.nan, 0, math.nan],
        [0, math.nan, 0.5 * second, second],
    ]
    assert found.per_query == pytest.approx(np.array(expected), nan_ok=True)


@pytest.mark.parametrize(
    ("source", "said"),
    [([[0, 1.5, "x"]], "expected a list of document ids"), ([[0, math.nan]], "grade NaN"), ([0, 1, 2], "got 0")],
)
def test_what_is_not_a_list_of_grades_is_an_error(source, said):
    with pytest.raises(InputError, match=said):
        Records.of(source)


def test_records_of_ids_and_lists_are_still_records():
    same([("q1", ["d1"], ["d1"])], qrels={"q1": {"d1": 1}}, run={"q1": ["d1"]})
