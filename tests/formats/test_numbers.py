"""Integers that 64-bit floats cannot represent: rejected in every input, never silently tied."""

import decimal
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import rankgauge as rg
from rankgauge.formats.columns import RUN, is_lost, numbers_of, whole_numbers_of
from rankgauge.retrievers.hits import hits_of

LOW, HIGH = 2**53, 2**53 + 1  # equal as 64-bit floats
SAID = (
    f"score {HIGH} is not exactly representable as a 64-bit float: it would become {LOW}, and "
    "could tie with another score"
)
QRELS = rg.Qrels.of({"q1": {"d1": 1}})


def evaluated(run: Any) -> dict[str, float]:
    return rg.evaluate(QRELS, run, "RR").mean()


def columns(scores: Any) -> dict[str, Any]:
    return {"query_id": ["q1", "q1"], "doc_id": ["d1", "d2"], "score": scores}


WAYS: dict[str, Callable[[int, int], Any]] = {
    "a dict": lambda a, b: {"q1": {"d1": a, "d2": b}},
    "a dict with floats": lambda a, b: {"q1": {"d1": a, "d2": b, "d3": 0.5}},
    "numbers of NumPy": lambda a, b: {"q1": {"d1": np.int64(a), "d2": np.int64(b)}},
    "decimals": lambda a, b: {"q1": {"d1": decimal.Decimal(a), "d2": decimal.Decimal(b)}},
    "pairs": lambda a, b: {"q1": [("d1", a), ("d2", b)]},
    "rows": lambda a, b: [("q1", "d1", a), ("q1", "d2", b)],
    "columns": lambda a, b: columns([a, b]),
    "an array": lambda a, b: columns(np.array([a, b])),
    "an array without signs": lambda a, b: columns(np.array([a, b], dtype=np.uint64)),
    "pandas": lambda a, b: pd.DataFrame(columns([a, b])),
    "pandas with gaps": lambda a, b: pd.DataFrame(columns(pd.array([a, b], dtype="Int64"))),
    "polars": lambda a, b: pl.DataFrame(columns([a, b])),
    "polars, lazy": lambda a, b: pl.LazyFrame(columns([a, b])),
    "pyarrow": lambda a, b: pa.table(columns([a, b])),
    "pyarrow without signs": lambda a, b: pa.table(columns(pa.array([a, b], pa.uint64()))),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_integer_score_that_no_float_represents_is_refused_in_memory(way: str) -> None:
    with pytest.raises(rg.InputError, match=SAID):
        evaluated(WAYS[way](LOW, HIGH))
    # Large floats are ranked unchanged.
    assert evaluated(WAYS[way](LOW, LOW + 2)) == {"RR": 0.5}


FILES: dict[str, Callable[[int, int], str | bytes]] = {
    "a.trec": lambda a, b: f"q1 Q0 d1 1 {a} t\nq1 Q0 d2 2 {b} t\n",
    "odd.trec": lambda a, b: f"q1 Q0 d1 1 {a} t\n\n# a comment\nq1 Q0 d2 2 {b} t\n",
    "a.csv": lambda a, b: f"query_id,doc_id,score\nq1,d1,{a}\nq1,d2,{b}\n",
    "a.tsv": lambda a, b: f"query_id\tdoc_id\tscore\nq1\td1\t{a}\nq1\td2\t{b}\n",
    "a.json": lambda a, b: json.dumps({"q1": {"d1": a, "d2": b}}),
    "a.jsonl": lambda a, b: "".join(
        json.dumps({"query_id": "q1", "doc_id": doc, "score": score}) + "\n" for doc, score in (("d1", a), ("d2", b))
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_an_integer_score_that_no_float_represents_is_refused_in_a_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(str(FILES[name](LOW, HIGH)), encoding="utf-8")
    with pytest.raises(rg.InputError, match=SAID) as caught:
        evaluated(path)
    assert name in str(caught.value)
    with pytest.raises(rg.InputError, match=SAID):
        rg.read_run(path)
    path.write_text(str(FILES[name](LOW, LOW + 2)), encoding="utf-8")
    assert evaluated(path) == {"RR": 0.5}


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(20, 0)])
def test_an_integer_score_that_no_float_represents_is_refused_in_parquet(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns(pa.array([LOW, HIGH]).cast(kind))), path)
    with pytest.raises(rg.InputError, match=SAID):
        evaluated(path)


@pytest.mark.parametrize("found", [[("d1", LOW), ("d2", HIGH)], {"d1": LOW, "d2": HIGH}, [{"id": "d1", "score": HIGH}]])
def test_an_integer_score_that_no_float_represents_is_refused_from_a_retriever(found: Any) -> None:
    with pytest.raises(rg.InputError, match=SAID):
        hits_of(found, 10)
    assert hits_of([("d1", LOW), ("d2", LOW + 2)], 10).ids == ["d2", "d1"]


def test_scores_with_a_fraction_are_rounded_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text(f"q1 Q0 d1 1 {LOW}.1 t\nq1 Q0 d2 2 {HIGH}.01 t\nq1 Q0 d3 3 0.1 t\n")
    run = rg.read_run(path)
    assert dict(run["q1"]) == {"d1": float(LOW), "d2": float(LOW + 2), "d3": 0.1}


@pytest.mark.parametrize("zeros", [".", ".0", ".000", ".0000000"])
@pytest.mark.parametrize("name", ["a.trec", "odd.trec", "a.csv", "a.tsv"])
def test_zeros_behind_the_point_make_no_float_of_a_whole_score(name: str, zeros: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for low, high in ((LOW, HIGH), (-HIGH, -LOW)):
        lost = low if abs(low) == HIGH else high
        made: Any = FILES[name]
        path.write_text(made(f"{low}{zeros}", f"{high}{zeros}"), encoding="utf-8")
        with pytest.raises(rg.InputError, match=f"score {lost}{re.escape(zeros)} is no"):
            rg.read_run(path)
        path.write_text(made(f"{LOW}{zeros}", f"{LOW + 2}{zeros}"), encoding="utf-8")
        assert evaluated(path) == {"RR": 0.5}


def test_dicts_of_large_floats_are_joined_as_they_are_or_as_a_table() -> None:
    large = {"q1": {"d1": 1e300, "d2": 2.0**60}}
    assert evaluated(large) == {"RR": 1.0}


@given(st.lists(st.integers(-(2**64), 2**64) | st.integers(LOW - 3, LOW + 3), min_size=1))
def test_exactly_the_numbers_that_a_float_cannot_represent_are_refused(values: list[int]) -> None:
    lost = [value for value in values if int(float(value)) != value]
    assert [value for value in values if is_lost(value, float(value))] == lost

    def blame(row: int, what: str, fix: str) -> rg.InputError:
        return rg.InputError(f"{values[row]}: {what}", fix=fix)

    ways: list[Callable[[], Any]] = [lambda: numbers_of(values, RUN, blame)]
    for kind in (np.int64, np.uint64):
        room = np.iinfo(kind)
        if all(room.min <= value <= room.max for value in values):
            array = np.array(values, dtype=kind)
            ways.append(lambda array=array: whole_numbers_of(array, RUN, blame))  # type: ignore[misc]
    for way in ways:
        if lost:
            with pytest.raises(rg.InputError, match=f"^{lost[0]}: "):
                way()
        else:
            assert way().tolist() == [float(value) for value in values]
