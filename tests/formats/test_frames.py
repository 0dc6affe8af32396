"""Data frames of all libraries: pandas 2 and 3, polars, pyarrow, DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError

# Queries are not contiguous, and the order differs from that of the scores.
COLUMNS = {"query_id": ["q1", "q2", "q1"], "doc_id": ["d1", "dé", "d2"], "score": [0.5, -1.0, 2.0]}
RUN = Run.of({"q1": {"d1": 0.5, "d2": 2.0}, "q2": {"dé": -1.0}})
NUMBERED = Run.of({"7": {"1": 0.5, "3": 2.0}, "8": {"2": -1.0}})
IDS = {**COLUMNS, "query_id": [7, 8, 7], "doc_id": [1, 2, 3]}
PANDAS, POLARS, ARROW = pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS)
NAMES = ["query_id", "doc_id"]
EVERY_LIBRARY = pytest.mark.parametrize(
    "library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"]
)


def typed(kind: Any) -> Any:
    return PANDAS.astype({"query_id": kind, "doc_id": kind})


def arrow(kind: Any) -> Any:
    types = pa.schema([("query_id", kind), ("doc_id", kind), ("score", pa.float64())])
    return ARROW.cast(types)


FRAMES = {
    "pandas": PANDAS,
    "pandas, string": typed("string"),
    "pandas, string of arrow": typed("string[pyarrow]"),
    "pandas, object": typed(object),
    "pandas, category": typed("category"),
    "pandas, another index": PANDAS.set_axis([9, 9, 1]),
    "pandas, more columns": PANDAS.assign(rank=1, text="x", when=pd.Timestamp("2026-01-01")),
    "pandas, float32": PANDAS.astype({"score": "float32"}),
    "pandas, nullable Float64": PANDAS.astype({"score": "Float64"}),
    "pandas, objects as scores": PANDAS.astype({"score": object}),
    "pandas, bytes": PANDAS.assign(query_id=[b"q1", b"q2", b"q1"], doc_id=[b"d1", "dé".encode(), b"d2"]),
    "polars": POLARS,
    "polars, lazy": POLARS.lazy(),
    "polars, categorical": POLARS.with_columns(pl.col(NAMES).cast(pl.Categorical)),
    "polars, enum": POLARS.with_columns(pl.col("query_id").cast(pl.Enum(["q1", "q2"]))),
    "polars, binary": POLARS.with_columns(pl.col(NAMES).cast(pl.Binary)),
    "polars, decimal": POLARS.with_columns(pl.col("score").cast(pl.Decimal(10, 2))),
    "pyarrow": ARROW,
    "pyarrow, large string": arrow(pa.large_string()),
    "pyarrow, dictionary": ARROW.set_column(1, "doc_id", ARROW["doc_id"].dictionary_encode()),
    "pyarrow, binary": arrow(pa.binary()),
    "pyarrow, many chunks": pa.concat_tables([ARROW.slice(0, 1), ARROW.slice(1, 2)]),
    "pyarrow, a batch": ARROW.to_batches()[0],
    "a mapping of pandas columns": {name: PANDAS[name] for name in COLUMNS},
    "a mapping of polars columns": {name: POLARS[name] for name in COLUMNS},
    "a mapping of pyarrow columns": {name: ARROW[name] for name in COLUMNS},
}
NUMBERED_FRAMES = {
    "pandas": pd.DataFrame(IDS),
    "pandas, Int64": pd.DataFrame(IDS).astype({"query_id": "Int64", "doc_id": "UInt8"}),
    "pandas, object": pd.DataFrame(IDS).astype({"query_id": object, "doc_id": object}),
    "pandas, category": pd.DataFrame(IDS).astype({"query_id": "category", "doc_id": "category"}),
    "pandas, text": pd.DataFrame(IDS).astype({"query_id": str, "doc_id": str}),
    "polars": pl.DataFrame(IDS),
    "polars, unsigned": pl.DataFrame(IDS).with_columns(pl.col(NAMES).cast(pl.UInt64)),
    "pyarrow": pa.table(IDS),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_run_is_read_from_a_data_frame(frame: Any) -> None:
    assert Run.of(frame) == RUN


@pytest.mark.parametrize("frame", NUMBERED_FRAMES.values(), ids=NUMBERED_FRAMES)
def test_whole_numbers_are_ids(frame: Any) -> None:
    assert Run.of(frame) == NUMBERED


def test_a_run_is_read_from_duckdb() -> None:
    with duckdb.connect() as connection:
        assert Run.of(connection.from_arrow(ARROW)) == RUN
        assert Run.of(connection.from_arrow(ARROW).filter("score < 3")) == RUN
        assert Run.of(connection.from_arrow(pa.table(IDS))) == NUMBERED


@EVERY_LIBRARY
def test_columns_have_many_names_and_the_choice_is_noted(library: Any) -> None:
    frame = library({"query": ["text"], "qid": ["q1"], "docno": ["d1"], "label": [2]})
    qrels = Qrels.of(frame)
    assert qrels == Qrels.of({"q1": {"d1": 2}})
    assert qrels.table.notes == (
        "judgments: columns 'qid', 'docno', 'label'",
        "judgments: other candidates, not used: 'query'",
    )
    assert Run.of(PANDAS).table.notes == ()


def test_a_rank_replaces_missing_scores() -> None:
    frame = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["b", "a"], "rank": [2, 1]})
    run = Run.of(frame)
    assert run["q"] == {"b": -2.0, "a": -1.0}
    assert "run: no scores, so documents are ordered by their rank" in run.table.notes


def test_columns_of_a_library_are_read_as_columns() -> None:
    for frame in (PANDAS, POLARS, ARROW):
        assert Run.from_columns(*(frame[name] for name in COLUMNS)) == RUN


def test_booleans_are_grades_and_no_ids() -> None:
    frame = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "relevance": [True, False]})
    for one in (frame, frame.astype({"relevance": "boolean"}), pl.from_pandas(frame)):
        assert Qrels.of(one)["q"] == {"a": 1.0, "b": 0.0}
    with pytest.raises(InputError, match="row 1: document id True is of type bool"):
        Qrels.of(pd.DataFrame({"query_id": ["q"], "doc_id": [True], "relevance": [1]}))


@EVERY_LIBRARY
def test_an_empty_frame_holds_nothing(library: Any) -> None:
    frame = library({name: np.array([], dtype="f8") for name in COLUMNS})
    assert len(Run.of(frame)) == 0


@EVERY_LIBRARY
@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("query_id", ["q1", None], "run, row 2: the query id is missing"),
        ("doc_id", [1.0, 2.0], "run, row 1: document id 1.0 is a decimal number"),
        ("doc_id", ["d1", ""], "run, row 2: the document id is empty"),
        ("score", [1.0, None], "(run, row 2: the score is missing|run: score NaN of document 'd2')"),
        ("score", [float("inf"), 1], "run: score inf of document 'd1' for query 'q1'"),
        ("score", ["1", "2"], "run, row 1: score '1' is text, not a number"),
    ],
)
def test_invalid_cells_are_reported_with_their_row(library: Any, column: str, values: list[Any], message: str) -> None:
    data = {"query_id": ["q1", "q1"], "doc_id": ["d1", "d2"], "score": [1.0, 2.0], column: values}
    with pytest.raises(InputError, match=f"^{message}"):
        Run.of(library(data))


def test_ids_that_pandas_converted_to_floats_are_refused_with_a_fix() -> None:
    frame = pd.DataFrame({"query_id": [1, None], "doc_id": [1, 2], "score": [1, 2]})
    with pytest.raises(InputError, match=r"query id 1\.0 is a decimal number(.|\n)*astype\('int64'\)"):
        Run.of(frame)


def test_mixed_ids_in_a_column_of_objects_are_refused() -> None:
    frame = pd.DataFrame({"query_id": ["q", "q"], "doc_id": [1, "2"], "score": [1, 2]}, dtype=object)
    with pytest.raises(InputError, match="row 2: document id '2' is text, but 1 is a whole number"):
        Run.of(frame)


def test_a_frame_without_the_columns_is_refused_with_their_names() -> None:
    for frame in (PANDAS.set_index("query_id"), POLARS.drop("query_id").lazy()):
        with pytest.raises(InputError, match="run: the columns are 'doc_id', 'score'; a run needs"):
            Run.of(frame)


def test_two_columns_of_one_name_are_refused() -> None:
    twice = pd.DataFrame([["q", "d", "e", 1]], columns=["query_id", "doc_id", "doc_id", "score"])
    with pytest.raises(InputError, match="run: two columns have the same name"):
        Run.of(twice)


def test_changing_the_frame_afterwards_changes_nothing() -> None:
    frame = PANDAS.copy()
    run = Run.of(frame)
    frame.loc[:, "score"] = 9.0
    assert run == RUN


def test_an_inner_series_with_documents_as_labels_holds_their_numbers() -> None:
    numbers = pd.Series({"d1": 2, "d2": 1})
    for value in (numbers, numbers.astype(float), numbers.astype("Int64")):
        assert dict(Qrels.of({"q1": value})["q1"]) == {"d1": 2.0, "d2": 1.0}
        assert dict(Run.of({"q1": value})["q1"]) == {"d1": 2.0, "d2": 1.0}
    whole = pd.Series({7: 0.5, 8: 0.25})
    assert Run.of({"q1": whole, "q2": {9: 1.0}}) == Run.of({"q1": {7: 0.5, 8: 0.25}, "q2": {9: 1}})


def test_an_inner_series_without_labels_is_the_list_of_its_values() -> None:
    column = pd.Series(["d2", "d1", "d3"])
    assert Run.of({"q1": column}) == Run.of({"q1": ["d2", "d1", "d3"]})
    assert Qrels.of({"q1": pd.Series([7, 8])}) == Qrels.of({"q1": [7, 8]})
    # After groupby and a filter: texts indexed by the row numbers of the frame.
    groups = PANDAS.groupby("query_id")["doc_id"]
    assert Run.of(dict(list(groups))) == Run.of({"q1": ["d1", "d2"], "q2": ["dé"]})
    assert Qrels.from_rankings({"q1": column[1:]}) == Qrels.from_rankings({"q1": ["d1", "d3"]})
    assert Run.of({"q1": pl.Series(["d1"])}) == Run.of({"q1": pa.array(["d1"])})


def test_repeated_labels_are_duplicate_documents() -> None:
    twice = pd.Series([2.0, 1.0], index=["d1", "d1"])
    with pytest.raises(InputError, match="document 'd1' occurs twice for query 'q1'"):
        Qrels.of({"q1": twice})
    assert not Run.of({"q1": twice}).table.unique


def test_a_series_that_can_be_read_in_two_ways_is_refused_with_its_query() -> None:
    with pytest.raises(InputError, match=r"^judgments, query 'q1': a series has whole numbers"):
        Qrels.of({"q1": pd.Series({7: 2, 8: 1})})
    with pytest.raises(InputError, match="expected the documents of a query"):
        Qrels.from_rankings({"q1": pd.Series({"d1": 2.0})})
    with pytest.raises(InputError, match="grade 'x' is text, not a number"):
        Qrels.of({"q1": pd.Series({"d1": "x"})})
