"""Compressed files: their content, and limits on unpacking."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import sys
from pathlib import Path

import lz4.frame
import pytest
import zstandard
from hypothesis import given, strategies as st

from rankgauge import Collection, evaluate, read_qrels, read_run
from rankgauge.errors import FormatError, InputError, MissingExtra
from rankgauge.formats.columns import RUN
from rankgauge.formats.compression import packed, unpacking
from rankgauge.formats.lines import KeptStream, numbered_lines, opened
from rankgauge.formats.pieces import PairFile
from rankgauge.formats.readers import read_ids
from rankgauge.formats.registry import PACKINGS, BrokenPackError, Packing

NAMES = [packing.name for packing in PACKINGS]
PACKING = {packing.name: packing for packing in PACKINGS}
# Compressed by the libraries themselves, independent of the tested code.
PACK = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "lz4": lz4.frame.compress,
}
UNPACK = {
    "gzip": gzip.decompress,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().stream_reader(data).read(),
    "lz4": lz4.frame.decompress,
}
LINES = b"".join(b"q%d Q0 d%d 0 %d t\n" % (q, d * 7919 % 1009, -d) for q in range(90) for d in range(99))
EACH = pytest.mark.parametrize("name", NAMES)


def unpacked(name: str, data: bytes) -> bytes:
    return unpacking(io.BytesIO(data), PACKING[name], "a").read()


@EACH
@given(parts=st.lists(st.binary(max_size=300), min_size=1, max_size=4))
def test_all_members_come_out_one_after_the_other(name: str, parts: list[bytes]) -> None:
    assert unpacked(name, b"".join(map(PACK[name], parts))) == b"".join(parts)


@EACH
def test_compressed_output_is_read_by_the_library_of_its_format(name: str) -> None:
    out = io.BytesIO()
    with packed(out, PACKING[name], "a") as stream:
        for start in range(0, len(LINES), 1000):
            stream.write(LINES[start : start + 1000])
    assert UNPACK[name](out.getvalue()) == LINES
    assert not out.closed
    assert out.getvalue().startswith(PACKING[name].starts)
    again = io.BytesIO()
    with packed(again, PACKING[name], "a") as stream:
        stream.write(LINES)
    assert len(again.getvalue()) < len(LINES) / 3


@EACH
def test_truncated_data_and_trailing_data_are_errors(name: str) -> None:
    whole = PACK[name](LINES)
    for size in (len(PACKING[name].starts[0]) + 1, 20, len(whole) // 2, len(whole) - 1):
        with pytest.raises(BrokenPackError):
            unpacked(name, whole[:size])
    with pytest.raises(BrokenPackError):
        unpacked(name, whole + b"no member")
    broken = bytearray(whole)
    broken[len(whole) // 2 :] = random.Random(1).randbytes(len(whole) - len(whole) // 2)
    with pytest.raises(BrokenPackError):
        unpacked(name, bytes(broken))


@EACH
def test_a_faulty_file_is_refused_each_time_it_is_read(name: str) -> None:
    for size in (2, -3):
        stream = unpacking(io.BytesIO(PACK[name](LINES)[:size]), PACKING[name], "a")
        for _ in range(3):
            with pytest.raises(BrokenPackError):
                stream.read()


def test_zeros_behind_xz_and_gzip_are_filling() -> None:
    for name in ("xz", "gzip"):
        assert unpacked(name, PACK[name](b"a") + bytes(8) + PACK[name](b"b")) == b"ab"
        assert unpacked(name, PACK[name](b"a") + bytes(8)) == b"a"


@EACH
def test_a_run_reads_the_same_under_any_compression_and_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "plain.run").write_bytes(LINES)
    (tmp_path / "qrels").write_bytes(b"q1 0 d0 1\nq2 0 d7 1\n")
    path = tmp_path / f"a.run{PACKING[name].suffix}"
    data = PACK[name](LINES[:5000]) + PACK[name](LINES[5000:])
    path.write_bytes(data)
    (tmp_path / "a").write_bytes(data)
    plain = read_run(tmp_path / "plain.run", name="a")
    assert read_run(path) == read_run(tmp_path / "a") == plain
    # Also in whole arrays and in blocks.
    assert sum(map(len, PairFile(path, RUN).blocks())) == 90 * 99
    values = [evaluate(tmp_path / "qrels", run, ["AP"]).mean()["AP"] for run in (path, plain)]
    assert values[0] == values[1] > 0


@EACH
def test_texts_ids_and_tables_are_unpacked_too(name: str, tmp_path: Path) -> None:
    suffix = PACKING[name].suffix
    for file, text in {
        "corpus.jsonl": b'{"_id": "d1", "text": "one"}\n',
        "queries.tsv": b"q1\twhy\n",
        "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\n",
        "ids.txt": b"d1\n",
    }.items():
        path = tmp_path / f"{file}{suffix}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(PACK[name](text))
    found = Collection.load(tmp_path)
    assert (len(found.documents), found.queries["q1"].text) == (1, "why")
    assert found.qrels == read_qrels(tmp_path / f"qrels/test.tsv{suffix}")
    assert read_ids(tmp_path / f"ids.txt{suffix}") == [b"d1"]


@EACH
def test_a_broken_file_is_reported_with_the_last_good_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(PACK[name](LINES)[:-9])
    seen = []
    with opened(path) as stream, pytest.raises(FormatError) as caught:
        seen.extend(numbered_lines(stream, "a"))
    assert caught.value.line == len(seen)
    assert f"{name} data is corrupt or truncated" in str(caught.value)
    assert f"({PACKING[name].program} -t FILE checks it)" in str(caught.value)
    with opened(path) as stream, pytest.raises(FormatError, match=f"{name} data is corrupt"):
        list(numbered_lines(KeptStream(stream), "a"))
    with pytest.raises(FormatError, match=f"{name} data is corrupt"):
        read_run(path)


def bomb(name: str, size: int) -> bytes:
    out = io.BytesIO()
    with packed(out, PACKING[name], "a") as stream:
        for _ in range(size >> 20):
            stream.write(bytes(1 << 20))
    return out.getvalue()


class _Watched(io.BytesIO):
    """Records how much was read."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        part = super().read(size)
        self.taken += len(part)
        return part


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bzip2"])
def test_a_small_file_that_becomes_huge_is_stopped(name: str) -> None:
    data = bomb(name, 70 << 20)
    packed_bytes = _Watched(data)
    given: list[int] = []
    stream = unpacking(packed_bytes, PACKING[name], "a.run")
    with pytest.raises(FormatError, match="text does not compress that much") as caught:
        given.extend(map(len, iter(lambda: stream.read1(1 << 16), b"")))
    assert 64 << 20 >= sum(given) > 63 << 20
    assert packed_bytes.taken <= len(data)
    assert str(packed_bytes.taken) in str(caught.value)
    assert f"{PACKING[name].program} -d FILE" in caught.value.fix


def test_small_data_with_a_high_compression_ratio_are_read() -> None:
    assert unpacked("xz", bomb("xz", 60 << 20)) == bytes(60 << 20)


def test_a_bomb_stops_every_reader_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bomb("lz4", 66 << 20)
    path = tmp_path / "a.lz4"
    path.write_bytes(data)
    for read in (read_run, read_qrels, read_ids, lambda name: Collection.load(documents=name)):
        with pytest.raises(FormatError, match=r"text does not compress that much|NUL byte"):
            read(path)
    line = b"q1 Q0 d1 1 1.0 t\n"
    many = gzip.compress(line * 4_000_000)
    assert len(line) * 4_000_000 > 200 * len(many)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(many)))
    with pytest.raises(FormatError, match="text does not compress that much"):
        read_run("-")


def test_xz_that_wants_much_memory_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}]
    path = tmp_path / "a.xz"
    path.write_bytes(lzma.compress(b"q1 Q0 d1 1 1 t\n", filters=filters))
    with pytest.raises(FormatError, match="needs more than 128 MiB of memory") as caught:
        read_run(path)
    assert "xz -d FILE" in caught.value.fix


@EACH
def test_data_compressed_twice_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(PACK[name](LINES)))
    with pytest.raises(FormatError, match=f"{name} data within compressed data"):
        read_run(path)


@pytest.mark.parametrize(("name", "module"), [("zstd", "zstandard"), ("lz4", "lz4.frame")])
def test_a_library_that_is_missing_is_named(
    name: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "zstd" and sys.version_info >= (3, 14):
        pytest.skip("this Python has it")
    path = tmp_path / "a.run"
    path.write_bytes(PACK[name](LINES))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as caught:
        read_run(path)
    assert caught.value.fix == "pip install 'rankgauge[packed]'"


@EACH
@given(cut=st.integers(0, 200), junk=st.binary(max_size=40))
def test_any_bytes_after_the_signature_are_read_or_refused(name: str, cut: int, junk: bytes) -> None:
    packing: Packing = PACKING[name]
    data = PACK[name](LINES[:400])
    for start in (packing.starts[0], data[:cut]):
        stream = unpacking(io.BytesIO(start + junk), packing, "a")
        try:
            assert len(stream.read()) <= 400
        except (BrokenPackError, InputError):
            continue
