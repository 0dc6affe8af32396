"""TREC files with all kinds of anomalies."""

from __future__ import annotations

from pathlib import Path

import pytest
from growth import assert_linear

from rankgauge.data.qrels import Qrels, read_qrels
from rankgauge.data.run import Run, read_run, write_run
from rankgauge.errors import FormatError

RUN = {"q1": {"d1": 2.5, "d2": 1.0}, "q2": {"d1": -3.0}}
TEXT = b"q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1 t\nq2 Q0 d1 1 -3e0 t\n"


@pytest.mark.parametrize(
    "data",
    [
        TEXT,
        TEXT.replace(b" ", b"\t"),
        TEXT.replace(b" ", b" \t  "),
        TEXT.replace(b"\n", b"\r\n"),
        TEXT.replace(b"\n", b"\r"),
        TEXT.rstrip(),
        b"\xef\xbb\xbf" + TEXT,
        b"# a comment\n\n" + TEXT.replace(b"\n", b"\n \n#x\n"),
        TEXT.replace(b"q1 Q0 d1 1", b"  q1 Q0 d1 99"),
    ],
)
def test_a_run_is_read_with_any_separators(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_bytes(data)
    assert read_run(path) == Run.of(RUN, name="a")


@pytest.mark.parametrize("suffix", ["qrels", "txt", "tsv"])
@pytest.mark.parametrize("data", ["q1\t0\td1\t2\nq1\tx\td2\t-1.5\n", "q1\td1\t2\nq1\td2\t-1.5\n"])
def test_judgments_have_three_or_four_fields(data: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_text(data)
    assert read_qrels(path) == Qrels.of({"q1": {"d1": 2, "d2": -1.5}})


def test_queries_whose_lines_are_mixed_are_put_together(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 a 1 3 t\nq2 Q0 a 1 3 t\nq1 Q0 b 2 2 t\n")
    run = read_run(path)
    assert list(run) == ["q1", "q2"]
    assert list(run["q1"]) == ["a", "b"]
    assert run.table.lines is not None
    assert run.table.lines.tolist() == [1, 3, 2]


def test_ids_that_are_not_utf8_are_kept_as_bytes_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_bytes(b"q1 Q0 d\xff 1 2 t\nq1 Q0 d\xfe 2 1 t\nq\xe9 Q0 d\xff 1 1 t\n")
    run = read_run(path)
    assert run[b"q1"] == {"d\\xff": 2.0, "d\\xfe": 1.0}
    assert run.table.notes == (f"{path}: 3 ids not in UTF-8: compared byte by byte",)
    write_run(run, tmp_path / "b.run")
    assert read_run(tmp_path / "b.run", name="a") == run


@pytest.mark.parametrize("number", ["1_0", "0x10", "--1", "1,5", "1.5.2", "٣", "one", "1e", "+-1"])
def test_numbers_that_other_tools_cannot_read_are_refused(number: str, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text(f"q1 Q0 d1 1 {number} t\n", encoding="utf-8")
    with pytest.raises(FormatError, match="not a number") as caught:
        read_run(path)
    assert (caught.value.line, caught.value.column) == (1, 5)


@pytest.mark.parametrize("number", ["nan", "NaN", "inf", "-Infinity", "1e999", "9" * 400])
def test_a_score_that_is_not_finite_is_refused(number: str, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text(f"q1 Q0 d1 1 {number} t\n")
    with pytest.raises(FormatError, match="is not a finite number"):
        read_run(path)


@pytest.mark.parametrize("number", ["1", "+1", "-1.5", ".5", "5.", "1e-300", "007", "1E5"])
def test_numbers_are_read_as_python_reads_them(number: str, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text(f"q1 Q0 d1 1 {number} t\n")
    assert read_run(path)["q1"]["d1"] == float(number)


def test_a_broken_line_among_many_is_found_by_its_number(tmp_path: Path) -> None:
    lines = [f"q{n % 10} Q0 d{n} 1 {n} t\n" for n in range(5000)]
    lines[3210] = "q1 Q0 d1\n"
    path = tmp_path / "a.run"
    path.write_text("".join(lines))
    with pytest.raises(FormatError) as caught:
        read_run(path)
    assert (caught.value.line, caught.value.text) == (3211, "q1 Q0 d1")


@pytest.mark.parametrize(
    ("start", "part", "end"),
    [
        (b"", b"x", b""),
        (b"", b"x ", b""),
        (b"", b"\t", b""),
        (b"", b"\r", b""),
        (b"", b"#", b""),
        (b"", b"{", b""),
        (b"q1 Q0 ", b"d", b" 1 x t"),
        (b"q1 Q0 d 1 ", b"9", b" t"),
        (b"", b'"', b""),
    ],
    ids=["word", "words", "tabs", "returns", "comment", "braces", "id", "number", "quotes"],
)
@pytest.mark.parametrize("suffix", ["run", "csv", "tsv", "json", "jsonl"])
def test_a_long_line_is_refused_in_linear_time_with_a_short_message(
    start: bytes, part: bytes, end: bytes, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"a.{suffix}"

    messages = []

    def read(_: object) -> None:
        with pytest.raises(FormatError) as caught:
            read_run(path)
        messages.append(str(caught.value))

    assert_linear(lambda count: path.write_bytes(start + part * count + end), read, 10_000)
    assert len(messages[-1]) < 1000


def test_an_id_of_a_megabyte_is_read_and_written(tmp_path: Path) -> None:
    run = Run.of({"q1": {"d" * 1_000_000: 2.0, "e": 1.0}}, name="a")
    for suffix in ("run", "json", "jsonl"):
        write_run(run, tmp_path / f"a.{suffix}")
        assert read_run(tmp_path / f"a.{suffix}") == run


def test_runs_are_written_best_first_with_their_rank(tmp_path: Path) -> None:
    run = Run.of({"q1": {"a": 1.0, "b": 0.1 + 0.2, "c": 1.0}}, name="my run")
    write_run(run, tmp_path / "a.run")
    assert (tmp_path / "a.run").read_bytes() == (
        b"q1 Q0 a 1 1.0 my_run\nq1 Q0 c 2 1.0 my_run\nq1 Q0 b 3 0.30000000000000004 my_run\n"
    )
