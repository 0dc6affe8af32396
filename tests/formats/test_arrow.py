"""Columns read from their buffers equal those read value by value: ids, notes, and errors."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable
from typing import Any

import duckdb
import ir_measures
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from peers import ir_measure
from strategies import batch

from rankgauge.core.ids import Ids
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.formats import frames
from rankgauge.formats.frames import listed, packed

ODD = ["", "\0", "a\0", "\0a", "a\0b", None]
TEXT = [
    *("q", "q1", "q10", "Q", "7", "-7", " ", "a b", "é", "文書", "😀", "\x7f", "\x80", "x" * 8),
    *("x" * 9, "y" * 31, "z" * 32, "z" * 33, "z" * 300, "é" * 70),
]
WHOLE = [0, 1, -1, 9, 10, 99, 100, 9999, 10_000, 10_001, -9999, -10_000, 2**31, 10**9 - 1, 10**9]


def chunked(values: list[Any], kind: Any) -> Any:
    """Return a column of pyarrow in chunks, some of them empty."""
    cuts = sorted({0, len(values) // 3, len(values) // 2, len(values)})
    parts = [pa.array(values[a:b], kind) for a, b in itertools.pairwise(cuts)]
    return pa.chunked_array([pa.array([], kind), *parts, pa.array([], kind)], kind)


def encoded(values: list[Any]) -> list[Any]:
    return [value if value is None else str(value).encode() for value in values]


def present(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def plain(values: list[Any]) -> list[Any]:
    """Return the values without missing ones, for columns that have no missing values."""
    return ["none" if value is None else value for value in values]


OF_TEXT: dict[str, Callable[[list[Any]], Any]] = {
    "numpy, U": lambda v: np.array(plain(v), dtype="U"),
    "numpy, U of the other byte order": lambda v: np.array(plain(v), dtype="U301").astype(">U301"),
    "numpy, every other U": lambda v: np.repeat(np.array(plain(v), dtype="U"), 2)[::2],
    "numpy, S": lambda v: np.array(encoded(plain(v)), dtype="S"),
    "numpy, every other S, backwards": lambda v: np.repeat(np.array(encoded(plain(v))[::-1], dtype="S"), 2)[::-2],
    "numpy, objects": lambda v: np.array(v, dtype=object),
    "pandas": pd.Series,
    "pandas, string": lambda v: pd.Series(v, dtype="string"),
    "pandas, string of Python": lambda v: pd.Series(v, dtype="string[python]"),
    "pandas, string of arrow": lambda v: pd.Series(v, dtype="string[pyarrow]"),
    "pandas, string of arrow, sliced": lambda v: pd.Series([None, "", *v, "\0"], dtype="string[pyarrow]").iloc[2:-1],
    "pandas, a type of arrow": lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.string())),
    "pandas, a dictionary of arrow": lambda v: pd.Series(
        pa.array(v, pa.string()).dictionary_encode().to_pylist(),
        dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
    ),
    "pandas, category": lambda v: pd.Series(v, dtype="category"),
    "pandas, category with entries that no row has": lambda v: pd.Series(
        pd.Categorical(v, categories=list(dict.fromkeys(["", "\0", *present(v)])))
    ),
    "pandas, an array of arrow": lambda v: pd.array(v, dtype="string[pyarrow]"),
    "pandas, an index of arrow": lambda v: pd.Index(pd.array(v, dtype="string[pyarrow]")),
    "pandas, an array of categories": pd.Categorical,
    "pandas, an index of categories": pd.CategoricalIndex,
    "polars": lambda v: pl.Series(v, dtype=pl.String),
    "polars, sliced": lambda v: pl.Series([None, "", *v, "\0"], dtype=pl.String).slice(2, len(v)),
    "polars, in chunks": lambda v: pl.concat(
        [pl.Series(v[:2], dtype=pl.String), pl.Series(v[2:], dtype=pl.String)], rechunk=False
    ),
    "polars, categorical": lambda v: pl.Series(v, dtype=pl.Categorical),
    "polars, enum": lambda v: pl.Series(v, dtype=pl.Enum(sorted({"zz", *present(v)}))),
    "polars, binary": lambda v: pl.Series(encoded(v), dtype=pl.Binary),
    "pyarrow": lambda v: pa.array(v, pa.string()),
    "pyarrow, large": lambda v: pa.array(v, pa.large_string()),
    "pyarrow, binary": lambda v: pa.array(encoded(v), pa.binary()),
    "pyarrow, large binary": lambda v: pa.array(encoded(v), pa.large_binary()),
    "pyarrow, sliced": lambda v: pa.array([None, "", *v, "\0"], pa.string()).slice(2, len(v)),
    "pyarrow, in chunks": lambda v: chunked(v, pa.string()),
    "pyarrow, a dictionary": lambda v: pa.array(v, pa.string()).dictionary_encode(),
    "pyarrow, a dictionary, sliced": lambda v: pa.array(["", "\0", None, *v, ""]).dictionary_encode().slice(3, len(v)),
    "pyarrow, dictionaries in chunks": lambda v: pa.chunked_array(
        [pa.array(part, pa.string()).dictionary_encode() for part in (v[:2], v[2:])],
        pa.dictionary(pa.int32(), pa.string()),
    ),
}
if hasattr(np.dtypes, "StringDType"):
    OF_TEXT["numpy, texts of any length"] = lambda v: np.array(plain(v), dtype=np.dtypes.StringDType())
if hasattr(pa, "string_view"):
    OF_TEXT["pyarrow, views"] = lambda v: pa.array(v, pa.string_view())
    OF_TEXT["pyarrow, views of bytes"] = lambda v: pa.array(encoded(v), pa.binary_view())

OF_WHOLE: dict[str, Callable[[list[Any]], Any]] = {
    "numpy": lambda v: np.array(plain_whole(v), dtype=np.int64),
    "numpy, of the other byte order": lambda v: np.array(plain_whole(v), dtype=">i8"),
    "numpy, every other": lambda v: np.repeat(np.array(plain_whole(v), dtype=np.int64), 2)[::2],
    "pandas": pd.Series,
    "pandas, Int64": lambda v: pd.Series(v, dtype="Int64"),
    "pandas, a type of arrow": lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.int64())),
    "pandas, category": lambda v: pd.Series(v, dtype="category"),
    "polars": lambda v: pl.Series(v, dtype=pl.Int64),
    "pyarrow": lambda v: pa.array(v, pa.int64()),
    "pyarrow, sliced": lambda v: pa.array([None, *v], pa.int64()).slice(1),
    "pyarrow, in chunks": lambda v: chunked(v, pa.int64()),
    "pyarrow, a dictionary": lambda v: pa.array(v, pa.int64()).dictionary_encode(),
}


def plain_whole(values: list[Any]) -> list[Any]:
    return [0 if value is None else value for value in values]


def outcome(queries: Any, docs: Any) -> Any:
    """Return the run of these columns, or the full error."""
    try:
        table = Run.from_columns(queries, docs, np.arange(len(docs), 0, -1)).table
    except InputError as error:
        return str(error)
    rows = (table.queries.tolist(), table.offsets.tolist(), table.docs.tolist())
    return *rows, table.values.tolist(), table.notes


@pytest.mark.parametrize("column", OF_TEXT.values(), ids=OF_TEXT)
@given(values=st.lists(st.sampled_from(TEXT) | st.sampled_from(TEXT + ODD), max_size=12))
def test_columns_of_text_are_the_list_of_their_values(column: Any, values: list[Any]) -> None:
    made = column(values)
    assert outcome(made, made) == outcome(listed(made), listed(made))


@pytest.mark.parametrize("column", OF_TEXT.values(), ids=OF_TEXT)
@given(
    values=st.lists(st.sampled_from(TEXT) | st.sampled_from(TEXT + ODD), max_size=5),
    sizes=st.lists(st.integers(1, 9), min_size=5, max_size=5),
)
def test_contiguous_values_are_those_of_the_list(column: Any, values: list[Any], sizes: list[int]) -> None:
    made = column([value for value, size in zip(values, sizes, strict=False) for _ in range(size)])
    wanted = outcome(listed(made), [str(row) for row in range(len(made))])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(frames, "_MANY", 4)
        patched.setattr(frames, "_LOOKED_AT", 4)
        patched.setattr(frames, "_RARE", 2)
        assert outcome(made, [str(row) for row in range(len(made))]) == wanted


@pytest.mark.parametrize("column", OF_WHOLE.values(), ids=OF_WHOLE)
@given(values=st.lists(st.sampled_from(WHOLE) | st.integers(-(2**63), 2**63 - 1) | st.just(None), max_size=9))
def test_columns_of_whole_numbers_are_the_list_of_their_values(column: Any, values: list[Any]) -> None:
    made = column(values)
    assert outcome(made, made) == outcome(listed(made), listed(made))


DECLINED = {
    "numpy, texts of any length",
    "numpy, objects",
    "pandas, string of Python",
    # An invalid id is reported only at its position.
    "pandas, category with entries that no row has",
    "pyarrow, a dictionary, sliced",
}


@pytest.mark.parametrize("name", [name for name in OF_TEXT if name not in DECLINED])
def test_sound_text_is_read_out_of_its_buffers(name: str) -> None:
    if name in {"pandas", "pandas, string"} and pd.__version__ < "3":
        pytest.skip("pandas 2 keeps these as Python objects: nothing is in a buffer")
    values = ["b", "a", "a", "longer", "b", "c"]
    ids = packed(OF_TEXT[name](values))
    assert ids is not None
    assert ids.tolist() == [value.encode() for value in values]


@pytest.mark.parametrize("name", OF_WHOLE)
def test_whole_numbers_are_read_out_of_their_buffers(name: str) -> None:
    if name == "pandas, Int64" and pd.__version__ < "2.2":
        pytest.skip("pandas gives these out as Python objects: nothing is in a buffer")
    ids = packed(OF_WHOLE[name](WHOLE))
    assert ids is not None
    assert ids.tolist() == [b"%d" % number for number in WHOLE]


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_whole_numbers_of_every_width_are_written_to_the_end_of_their_range(kind: str) -> None:
    bounds = np.iinfo(kind)
    near = {sign * 10**power + step for power in range(20) for step in (-1, 0, 1) for sign in (1, -1)}
    values = [bounds.min, bounds.max, 0, *(n for n in near if bounds.min <= n <= bounds.max)]
    random.Random(7).shuffle(values)
    # Each alone and with the others: the number of digits depends on the longest.
    for some in (values, *([value] for value in values), values * 400, sorted(values * 400)):
        ids = packed(np.array(some, dtype=kind))
        assert ids is not None
        assert ids.tolist() == [b"%d" % value for value in some]


@pytest.mark.parametrize("mixed", [False, True], ids=["together", "mixed"])
def test_many_rows_are_those_of_the_list(*, mixed: bool) -> None:
    rng = random.Random(3)
    rows = 30_000
    queries = rng.choices(["q", "q1", "x" * 8, "x" * 8 + "é", "y" * 40], k=rows)
    if not mixed:
        queries.sort()
    docs = [rng.randrange(-(10**9), 10**9) for _ in range(rows)]
    wanted = outcome(queries, docs)
    texts = [str(doc) for doc in docs]
    for made in (
        (pl.Series(queries), pl.Series(docs)),
        (pa.array(queries), pd.Series(texts, dtype="category")),
        (pd.Series(queries, dtype="category"), np.array(docs)),
        (chunked(queries, pa.large_string()), chunked(texts, pa.string())),
        (pa.array(queries).dictionary_encode(), np.array(texts, dtype="S")),
    ):
        assert outcome(*made) == wanted


NAMES = ["query_id", "doc_id"]
FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas, string of arrow": lambda frame: frame.astype(dict.fromkeys(NAMES, "string[pyarrow]")),
    "pandas, category": lambda frame: frame.astype(dict.fromkeys(NAMES, "category")),
    "polars": pl.from_pandas,
    "polars, categorical": lambda frame: pl.from_pandas(frame).with_columns(pl.col(NAMES).cast(pl.Categorical)),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "numpy": lambda frame: {name: np.array(frame[name].tolist()) for name in frame},
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_ir_measures_agrees_on_the_same_frame(frame: Any) -> None:
    names = ["nDCG@10", "AP", "RR", "P@5", "R@20", "Success@5"]
    made = batch(11, queries=100, grades=(0, 0, 1, 1, 2, 3), missing=False)
    qrels, run = (
        pd.DataFrame(
            [(query, doc, value) for query, docs in side.items() for doc, value in docs.items()],
            columns=[*NAMES, column],
        ).sample(frac=1, random_state=1)
        for side, column in ((made.qrels, "relevance"), (made.run, "score"))
    )
    ours = evaluate(frame(qrels), frame(run), names)
    theirs = ir_measures.iter_calc([ir_measure(name) for name in names], qrels, run)
    found = {(metric.query_id, str(metric.measure)): metric.value for metric in theirs}
    assert len(found) == 100 * len(names)
    for (query, name), value in found.items():
        # Without a relevant document they return 0 where rankgauge returns an undefined value.
        here = np.nan_to_num(ours.value(query, name))
        assert here == pytest.approx(value, abs=1e-12), (query, name)


# ---- layouts of buffers


def test_bytes_without_any_behind_them_are_copied() -> None:
    ends = np.array([0, 1, 3], dtype=np.int32)
    exact = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(ends), pa.py_buffer(b"abb")])
    ids = packed(exact)
    assert ids is not None
    assert ids.tolist() == [b"a", b"bb"]
    assert ids == Ids.of(["a", "bb"])


def test_a_slice_keeps_no_more_than_its_bytes() -> None:
    column = pa.array(["é" * 1000, "a\0", "", "q1", "q2", "é" * 1000])
    ids = packed(column.slice(3, 2))
    assert ids is not None
    assert ids.tolist() == [b"q1", b"q2"]
    assert len(ids.data) <= 4 + 8


def test_text_of_arrow_that_is_not_utf8_uses_the_slow_path() -> None:
    wrong = pa.array([b"a", b"\xc3", b"\xa9"], pa.binary()).view(pa.string())
    assert packed(wrong) is None
    assert packed(wrong.slice(0, 1)) == Ids.of(["a"])
    as_bytes = packed(pa.array([b"a", b"\xc3"], pa.binary()))
    assert as_bytes == Ids.of([b"a", b"\xc3"])


def test_entries_of_a_dictionary_that_no_row_has_are_no_fault() -> None:
    entries = pa.array(["", "q1", "q1", None, "q2"])
    column = pa.DictionaryArray.from_arrays(pa.array([1, 2, 4], pa.int8()), entries)
    assert outcome(column, column) == outcome(["q1", "q1", "q2"], ["q1", "q1", "q2"])
    twice = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array(["q", "q"]))
    assert outcome(twice, ["a", "b", "c"]) == outcome(["q", "q", "q"], ["a", "b", "c"])
    missing = pa.DictionaryArray.from_arrays(pa.array([1, 3]), entries)
    assert "run, row 2: the query id is missing" in outcome(missing, ["a", "b"])


@pytest.mark.parametrize("entries", [3, 90])
def test_chunks_with_different_dictionaries_are_one_column(entries: int) -> None:
    # The codes of 180 entries do not fit into 8 bits.
    draws, queries = random.Random(entries), [f"q{n}" for n in range(2 * entries)]
    chunks = [draws.choices(part, k=300) for part in (queries[:entries], queries[entries:], queries[:2])]
    coded = [pa.array(chunk).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())) for chunk in chunks]
    docs = [f"d{n}" for n in range(900)]
    assert outcome(pa.chunked_array(coded), docs) == outcome([query for chunk in chunks for query in chunk], docs)


OTHERS: dict[str, Any] = {
    "pyarrow, bool": pa.array([True]),
    "pyarrow, float": pa.array([1.5]),
    "pyarrow, null": pa.array([None]),
    "pyarrow, list": pa.array([["a"]]),
    "pyarrow, time": pa.array([1], pa.timestamp("s")),
    "pyarrow, one value": pa.scalar("a"),
    "pyarrow, a table": pa.table({"a": ["a"]}),
    "pandas, a frame": pd.DataFrame({"a": ["a"], "dtype": ["category"]}),
    "pandas, one value": pd.Timestamp("2026-01-01"),
    "polars, a frame": pl.DataFrame({"a": ["a"]}),
    "polars, an expression": pl.col("a"),
    "narwhals, an expression": nw.col("a"),
    "pandas, float": pd.Series([1.5]),
    "pandas, bool": pd.Series([True]),
    "pandas, category of floats": pd.Series([0.5, 0.5], dtype="category"),
    "pandas, interval": pd.Series(pd.interval_range(0, 2)),
    "pandas, objects": pd.Series(["a", 1], dtype=object),
    "polars, float": pl.Series([1.5]),
    "polars, bool": pl.Series([True]),
    "polars, list": pl.Series([["a"]]),
    "polars, date": pl.Series([1]).cast(pl.Date),
    "numpy, two dimensions": np.array([[1, 2]]),
    "numpy, no dimension": np.array(7),
    "numpy, bool": np.array([True]),
    "numpy, date": np.array(["2026-01-01"], dtype="datetime64[D]"),
    "numpy, masked": np.ma.array([1, 2], mask=[False, True]),
    "numpy, no rows": np.array([], dtype=np.int64),
    "numpy, blanks that are no part of a text": np.array(["a "]).view(np.char.chararray),
    "numpy, no bytes": np.zeros(2, dtype=[("x", "S0")])["x"],
    "a list": ["a"],
    "a text": "a",
    "nothing": None,
}


@pytest.mark.parametrize("values", OTHERS.values(), ids=OTHERS)
def test_all_other_types_use_the_slow_path(values: Any) -> None:
    assert packed(values) is None


def test_arrays_may_change_afterwards() -> None:
    for values, other in (
        (np.array(["a", "b"]), "c"),
        (np.array([b"a", b"b"]), b"c"),
        (np.array([1, 2]), 3),
        (np.array(["a", "b"], dtype=object), "c"),
    ):
        run = Run.from_columns(values, values, [2.0, 1.0])
        before = {query: dict(run[query]) for query in run}
        values[:] = other
        assert {query: dict(run[query]) for query in run} == before


# ---- without pyarrow


@pytest.mark.parametrize("hidden", [True, False], ids=["not installed", "not loaded"])
@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["b", "é", "cc"])], ids=str)
def test_polars_needs_no_pyarrow(kind: Any, *, hidden: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if hidden:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    else:
        monkeypatch.delitem(sys.modules, "pyarrow")
    values = ["b", "é", "cc", "b"]
    assert packed(pl.Series(values, dtype=kind)) == Ids.of(values)
    assert packed(pl.Series([*values, None], dtype=kind)) is None
    assert packed(pl.Series(["", "a"])) is None
    assert packed(pl.Series(["a\0"])) is None
    assert packed(pl.Series([], dtype=kind)) is None
    assert "pyarrow" not in sys.modules or hidden


@pytest.mark.parametrize("kind", ["float64", "int8", "bool"])
def test_arrays_of_pyarrow_hold_numbers(kind: str) -> None:
    numbers = pa.array([True, False, None]).cast(kind)
    assert dict(Run.from_columns(["q", "q"], ["a", "b"], numbers[:2])["q"]) == {"a": 1, "b": 0}
    message = "run, row 3: the score is missing|run: score NaN of document 'c'"
    with pytest.raises(InputError, match=message):
        Run.from_columns(["q", "q", "q"], ["a", "b", "c"], numbers)


def test_a_relation_of_duckdb_is_read_like_the_list_of_its_rows() -> None:
    rows = [("q1", 7, 0.5), ("q2", -8, 0.25), ("q1", 9, 0.75)]
    with duckdb.connect() as connection:
        relation = connection.sql(f"select * from (values {', '.join(map(str, rows))}) as t(query_id, doc_id, score)")
        assert Run.of(relation) == Run.of(rows)
