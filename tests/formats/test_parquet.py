"""Parquet and Arrow files: column selection and damaged files."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from rankgauge import read_qrels, read_run
from rankgauge.errors import FormatError, InputError, MissingExtra, RankgaugeError
from rankgauge.formats.columns import RUN
from rankgauge.formats.fast_trec import NotInBlocksError
from rankgauge.formats.pieces import PairFile

ROWS = [(f"q{n // 7}", f"d{n * 31 % 97}", n / 8) for n in range(97)]
SCORES: dict[str, dict[str, float]] = {}
for q, d, s in ROWS:
    SCORES.setdefault(q, {})[d] = s
TABLE = pa.table(dict(zip(("query_id", "doc_id", "score"), map(list, zip(*ROWS, strict=True)), strict=True)))


def dictionary(table: pa.Table) -> pa.Table:
    for place, name in enumerate(("query_id", "doc_id")):
        table = table.set_column(place, name, table[name].dictionary_encode())
    return table


def ipc(table: pa.Table, made: Any, packing: str | None = None, rows: int = 40) -> bytes:
    out = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=packing)
    with made(out, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return out.getvalue()


def parquet(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def feathered(table: pa.Table) -> bytes:
    out = io.BytesIO()
    feather.write_feather(table, out)
    return out.getvalue()


WRITERS: dict[str, Callable[[pa.Table], bytes]] = {
    "parquet": parquet,
    "parquet of several groups": lambda table: parquet(table, row_group_size=30),
    "parquet without dictionaries": lambda table: parquet(table, use_dictionary=False),
    "arrow file": lambda table: ipc(table, pa.ipc.new_file),
    "arrow stream": lambda table: ipc(table, pa.ipc.new_stream),
    "arrow file, packed": lambda table: ipc(table, pa.ipc.new_file, "zstd"),
    "feather": feathered,
}
EACH = pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)


@EACH
def test_every_kind_of_file_reads_by_name_or_not(
    writer: Callable[[pa.Table], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, table in enumerate((TABLE, dictionary(TABLE))):
        data = writer(table)
        path = tmp_path / f"a{number}.parquet"
        path.write_bytes(data)
        run = read_run(path)
        assert {query: dict(run[query]) for query in run} == SCORES
        assert run.name == f"a{number}"
        assert run.table.notes == ()
        with pytest.raises(NotInBlocksError):
            list(PairFile(path, RUN).blocks())
        (tmp_path / "a.gz").write_bytes(gzip.compress(data))
        assert read_run(tmp_path / "a.gz", name=run.name) == run
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr("a.parquet", data)
        assert read_run(tmp_path / "a.zip", name=run.name) == run
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert read_run("-", name=run.name) == run


@EACH
def test_other_names_and_types_of_columns_are_noted(writer: Callable[[pa.Table], bytes], tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": pa.array([["x"], []]),
            "rel": pa.array([2, 0], pa.int8()),
            "corpus-id": pa.array([7, 9]),
            "qid": pa.array(["a", "a"], pa.large_string()),
        }
    )
    path = tmp_path / "q"
    path.write_bytes(writer(table))
    found = read_qrels(path)
    assert found["a"] == {"7": 2.0, "9": 0.0}
    assert found.table.notes == (f"{path}: columns 'qid', 'corpus-id', 'rel'",)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no document": ({"query_id": ["q"], "score": [1.0]}, "the columns are 'query_id', 'score'"),
    "lists": ({"query_id": ["q"], "doc_id": [["a", "b"]], "score": [1.0]}, "'doc_id' has type list"),
    "structs": ({"query_id": ["q"], "doc_id": ["d"], "score": [{"a": 1.0}]}, "'score' has type struct"),
    "nothing": ({"query_id": ["q"], "doc_id": ["d"], "score": [None]}, "'score' has type null"),
    "times": (
        {"query_id": pa.array([1], pa.timestamp("s")), "doc_id": ["d"], "score": [1.0]},
        "'query_id' has type timestamp",
    ),
    "a gap": ({"query_id": ["q", None], "doc_id": ["d", "e"], "score": [1.0, 2.0]}, "row 2"),
    "text for a score": ({"query_id": ["q"], "doc_id": ["d"], "score": ["x"]}, "is text"),
    "no row": ({name: pa.array([], pa.string()) for name in ("query_id", "doc_id", "score")}, "there are no rows"),
    "NaN": ({"query_id": ["q"], "doc_id": ["d"], "score": [float("nan")]}, "NaN of document 'd'"),
}


@pytest.mark.parametrize(("columns", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_columns_of_the_wrong_type_are_refused_with_a_message(
    columns: dict[str, Any], message: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(parquet(pa.table(columns)))
    if library == "polars":
        if message == "'query_id' has type timestamp":
            message = "'query_id' has type datetime"
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=f"a.parquet[^\\0]*{message}") as caught:
        read_run(path)
    assert caught.value.fix


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    names = ["query_id", "doc_id", "score", "score"]
    table = pa.table([TABLE["query_id"], TABLE["doc_id"], TABLE["score"], TABLE["score"]], names)
    path = tmp_path / "a"
    for data in (ipc(table, pa.ipc.new_file), parquet(table)):
        path.write_bytes(data)
        with pytest.raises(FormatError, match="two columns are named 'score'"):
            read_run(path)


@EACH
def test_polars_replaces_a_missing_pyarrow(
    writer: Callable[[pa.Table], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(writer(TABLE))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    run = read_run(path)
    assert {query: dict(run[query]) for query in run} == SCORES
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtra, match="pyarrow or polars") as caught:
        read_run(path)
    assert caught.value.fix == "pip install 'rankgauge[arrow]'"


def test_few_bytes_do_not_become_many_rows(tmp_path: Path) -> None:
    count = 4_000_000
    path = tmp_path / "a"
    zeros = np.zeros(count, np.int8)
    table = pa.table({"query_id": zeros, "doc_id": zeros, "score": zeros})
    for data in (parquet(table), ipc(table, pa.ipc.new_stream, "zstd", count)):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=f"{len(data)} bytes claim to be"):
            read_run(path)


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("packing", ["zstd", "lz4"])
@pytest.mark.parametrize("coded", [False, True], ids=["plain", "coded"])
def test_one_long_text_does_not_fill_the_memory(kind: str, packing: str, coded: Any, tmp_path: Path) -> None:
    text = "d" * (80 << 20)
    table = pa.table({"query_id": ["q"], "doc_id": [text], "score": [1.0]})
    made = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    data = ipc(dictionary(table) if coded else table, made, packing)
    path = tmp_path / "a"
    path.write_bytes(data)
    usual = pa.default_memory_pool()
    watched = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(watched)
    try:
        with pytest.raises(FormatError, match=f"{len(data)} bytes claim to be 838[0-9]{{5}} unp"):
            read_run(path)
    finally:
        pa.set_memory_pool(usual)
    assert watched.max_memory() < 16 << 20


@EACH
def test_a_broken_file_is_refused_wherever_it_is_broken(writer: Callable[[pa.Table], bytes], tmp_path: Path) -> None:
    whole = writer(TABLE)
    rng = random.Random(7)
    path = tmp_path / "a.arrow"
    for _ in range(60):
        data = bytearray(whole[: rng.choice([len(whole), rng.randrange(4, len(whole))])])
        for at in rng.sample(range(len(data)), min(3, len(data))):
            data[at] = rng.choice([0, 127, 255])
        path.write_bytes(data)
        with contextlib.suppress(RankgaugeError):
            read_run(path)
    for start in (b"PAR1\x15", b"ARROW1\0\0", b"\xff\xff\xff\xff"):
        path.write_bytes(start + rng.randbytes(300))
        with pytest.raises(FormatError, match="the file cannot be read"):
            read_run(path)


def test_text_in_a_file_that_is_called_like_columns_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    path.write_text("PAR1 Q0 d1 1 2.5 t\n")
    assert read_run(path)["PAR1"] == {"d1": 2.5}
