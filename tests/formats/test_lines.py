"""Lines of files: compressed or not, with any line ends."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from growth import assert_linear

import rankgauge
from rankgauge.core import native
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.lines import mistaken_for, numbered_lines, opened, shorten
from rankgauge.formats.texts import Faults, TextReader, TextSource, read_texts


def lines(data: bytes) -> list[tuple[int, bytes]]:
    return list(numbered_lines(io.BytesIO(data), "a"))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_in_any_way_and_count_from_one(end: bytes) -> None:
    got = lines(end.join([b"one", b"", b"three"]))
    assert [(number, line.strip()) for number, line in got] == [(1, b"one"), (2, b""), (3, b"three")]


def test_a_lone_return_inside_a_line_ends_it() -> None:
    assert [line for _, line in lines(b"a\rb\r\nc")] == [b"a\r", b"b\r\n", b"c"]
    assert [line for _, line in lines(b"ab\rc")] == [b"ab\r", b"c"]
    assert [line for _, line in lines(b"ab\r")] == [b"ab\r"]


def test_the_byte_order_mark_is_dropped_from_the_first_line_only() -> None:
    mark = b"\xef\xbb\xbf"
    assert lines(mark + b"a\n" + mark + b"b") == [(1, b"a\n"), (2, mark + b"b")]


def test_a_packed_file_is_known_by_its_bytes_not_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    with opened(path) as stream:
        assert list(stream) == [b"a\n", b"b\n"]
    (tmp_path / "plain.gz").write_bytes(b"a\n")
    with opened(tmp_path / "plain.gz") as stream:
        assert list(stream) == [b"a\n"]


def test_broken_compressed_data_are_reported_with_the_last_good_line(tmp_path: Path) -> None:
    data = b"".join(b"%d %d\n" % (n, n * n) for n in range(20_000))
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(data)[:-5000])
    seen = []
    with opened(path) as stream:
        lines = numbered_lines(stream, "a.gz")
        with pytest.raises(FormatError) as caught:
            seen.extend(number for number, _ in lines)
    assert caught.value.line == seen[-1] > 1000
    assert caught.value.text == f"{seen[-1] - 1} {(seen[-1] - 1) ** 2}"


def test_a_disk_error_is_reported_with_its_line() -> None:
    class Disk(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: object) -> int:
            raise OSError(5, "Input/output error")

    with pytest.raises(InputError) as caught:
        list(numbered_lines(io.BufferedReader(Disk()), "a"))
    assert caught.value.what == "cannot be read from line 1 on: Input/output error"
    assert caught.value.fix


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here whose first byte cannot be read")
def test_a_file_that_opens_but_cannot_be_read_is_named() -> None:
    for read in (rankgauge.read_run, rankgauge.evaluate, rankgauge.Collection.load):
        with pytest.raises(InputError) as caught:
            read("/proc/self/mem")
        assert caught.value.where == "/proc/self/mem"
        assert "cannot be read" in caught.value.what


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_read_and_left_open(packed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"a\nb\n"
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(data) if packed else data))
    monkeypatch.setattr(sys, "stdin", stdin)
    with opened("-") as stream:
        assert list(stream) == [b"a\n", b"b\n"]
    assert not stdin.buffer.closed


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b"q1 Q0", ""),
        (b"\x1f\x8b\x08", "gzip data"),
        (b"\xff\xfeq\0", "UTF-16 text"),
        (b"\xfd7zXZ\0", "xz data"),
        (b"BZh91AY&SY", "bzip2 data"),
        (b"BZh1 Q0", ""),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b'\x04"M\x18', "lz4 data"),
        (b"PAR1\x15", "a Parquet file"),
    ],
)
def test_binary_files_are_recognized_by_their_first_bytes(start: bytes, what: str, tmp_path: Path) -> None:
    assert mistaken_for(start) == what
    path = tmp_path / "a.run"
    path.write_bytes(start)
    if what == "" or what.endswith(" data"):
        return
    with pytest.raises(FormatError, match=f"this is {what}, expected plain text"), opened(path):
        pass


def test_a_line_for_a_message_is_short_and_printable() -> None:
    assert shorten(b"a\tb\x00\xff\r\n") == "a\tb\\x00\\xff"
    assert shorten(b"x" * 10**6) == "x" * 77 + "..."


@pytest.mark.parametrize("blank", [b"\n", b" \n", b"\r\n"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_runs_of_blank_lines_take_linear_time_and_keep_the_numbers(blank: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    one, other = b'{"_id": "d1", "text": "a"}\n', b'{"_id": "d2", "text": "b"}\n'

    def write(size):
        count = size // len(blank)
        data = blank * 3 + one + blank * count + other + blank + b"{\n"
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return count, data

    def read(given):
        count, data = given
        faults = Faults()
        rows = list(TextReader(TextSource.of(path)).rows(faults))
        assert [(row.number, row.row.id) for row in rows] == [(4, "d1"), (count + 5, "d2")]
        assert [data[row.offset :].startswith(b"{") for row in rows] == [True, True]
        assert f"line {count + 7}:" in faults.first[0]

    assert_linear(write, read, 400_000)


def test_blank_lines_in_a_cell_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\n\nid,text\n\n\nd1,"a\n\n\n b"\n')
    assert [row.text for row in read_texts(path)] == ["a\n\n\n b"]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices")
def test_devices_without_an_end_are_refused():
    for name in ("/dev/zero", "/dev/urandom", "/dev/full"):
        for kind in (rankgauge.Run, rankgauge.Qrels):
            with pytest.raises(InputError, match=f"{name}: this is a device, not a file"):
                kind.of(name)
    with pytest.raises(InputError, match="there are no lines"):
        rankgauge.Run.of(os.devnull)
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            [sys.executable, "-m", "rankgauge", "check", "-"],
            capture_output=True,
            text=True,
            check=False,
            stdin=endless,
        )
    assert done.returncode == 2
    assert "this is a device, not a file" in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.parametrize("compiled_core", [True, False])
@pytest.mark.parametrize("memory", [None, "64MB"])
@pytest.mark.parametrize("place", range(6))
def test_a_tab_in_the_first_line_is_a_blank(monkeypatch, tmp_path, place, memory, compiled_core):
    if not compiled_core:
        monkeypatch.setattr(native, "core", None)
    run, qrels = tmp_path / "run", tmp_path / "qrels"

    def tabbed(line):
        fields = ["", *line.split(" ")]
        return (" ".join(fields[: place + 1]) + "\t" + " ".join(fields[place + 1 :])).lstrip(" ")

    run.write_text(f"{tabbed('q1 Q0 d1 1 2.0 t')}\nq1 Q0 d2 2 1.0 t\n")
    qrels.write_text(f"{tabbed('q1 0 d2 1')}\nq1 0 d1 0\n")
    found = rankgauge.evaluate(qrels, run, "RR", memory=memory)
    assert found.mean() == {"RR": 0.5}


@pytest.mark.parametrize("first", ["q1\twhat is the best run of 2024", "q1\tworld cup 1998"])
def test_an_id_with_a_text_is_no_line_of_judgments(tmp_path, first):
    path = tmp_path / "texts.tsv"
    path.write_text(f"{first}\n")
    with pytest.raises(InputError, match="these are pairs of id and text"):
        rankgauge.Qrels.of(path)
