"""Whole files: written files are read back, and real ones are read or rejected with a message."""

from __future__ import annotations

import gzip
import os
import stat
import string
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from rankgauge.data.qrels import Qrels, read_qrels, write_qrels
from rankgauge.data.run import Run, read_run, write_run
from rankgauge.errors import InputError
from rankgauge.formats.registry import format_of

SUFFIXES = [form + pack for form in (".run", ".csv", ".tsv", ".json", ".jsonl") for pack in ("", ".gz")]
IDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=9)
# No ASCII whitespace, no comment, and no mark of another format at the start of the file.
PLAIN = IDS.map(lambda text: "".join(c for c in text if c not in string.whitespace)).map(lambda text: "d" + text)
SCORES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9).map(float)
GRADES = st.floats(-1e100, 1e100) | st.integers(-9, 9).map(float)


def rankings(
    ids: st.SearchStrategy[str], numbers: st.SearchStrategy[float] = SCORES
) -> st.SearchStrategy[dict[str, dict[str, float]]]:
    return st.dictionaries(ids, st.dictionaries(ids, numbers, min_size=1, max_size=5), min_size=1, max_size=4)


def sorted_by_score(data: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {query: dict(sorted(docs.items(), key=lambda pair: -pair[1])) for query, docs in data.items()}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.csv", "csv"),
        ("A.CSV", "csv"),
        ("a.ndjson.GZ", "jsonl"),
        ("folder.json/a.run", None),
        (".csv", None),
        ("a.csv.txt", None),
        ("a.gz", None),
        ("a", None),
        ("a.tsv.xz", "tsv"),
        ("a.csv.bz2", "csv"),
        ("a.json.zst", "json"),
        ("a.jsonl.LZ4", "jsonl"),
        ("a.csv.gz.xz", None),
    ],
    ids=str,
)
def test_the_suffix_of_a_name_determines_its_format(name: str, form: str | None) -> None:
    assert format_of(name) == form


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(plain=rankings(PLAIN), free=rankings(IDS))
def test_runs_come_back_as_they_were_written(
    suffix: str,
    plain: dict[str, dict[str, float]],
    free: dict[str, dict[str, float]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("written") / f"a{suffix}"
    data = sorted_by_score(plain) if suffix.startswith(".run") else free
    write_run(Run.of(data, name="a"), path)
    assert read_run(path) == Run.of(data, name="a")


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(plain=rankings(PLAIN, GRADES), free=rankings(IDS, GRADES))
def test_judgments_come_back_as_they_were_written(
    suffix: str,
    plain: dict[str, dict[str, float]],
    free: dict[str, dict[str, float]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("written") / f"a{suffix}"
    data = plain if suffix.startswith(".run") else free
    write_qrels(data, path)
    assert read_qrels(path) == Qrels.of(data)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_lines_end_the_same_on_every_system(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    write_run({"q1": {"d1": 1.5}, "q2": {"d1": 1.0}}, path)
    data = path.read_bytes()
    data = gzip.decompress(data) if suffix.endswith(".gz") else data
    assert b"\r" not in data
    assert data.endswith(b"\n")


def test_a_packed_file_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("a.run.gz", "b.run.gz"):
        write_run(Run.of({"q1": ["d1"]}, name="x"), tmp_path / name)
    assert (tmp_path / "a.run.gz").read_bytes() == (tmp_path / "b.run.gz").read_bytes()


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    write_run({"q1": ["d1"]}, path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="document id 'd 2' cannot be written"):
        write_run({"q1": ["d1"], "q2": ["d 2"]}, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_the_mode_of_a_written_file_is_the_usual_one(tmp_path: Path) -> None:
    write_run({"q1": ["d1"]}, tmp_path / "a.run")
    (tmp_path / "usual").write_bytes(b"")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.run", "usual")}
    assert len(modes) == 1


def test_a_link_is_written_through(tmp_path: Path) -> None:
    target, link = tmp_path / "target.run", tmp_path / "link.run"
    target.write_bytes(b"")
    try:
        link.symlink_to(target)
    except OSError:
        pytest.skip("this system makes no links for us")
    write_run({"q1": ["d1"]}, link)
    assert link.is_symlink()
    assert read_run(target)["q1"] == {"d1": 1.0}


@pytest.mark.skipif(not Path(os.devnull).exists(), reason="this system has no such device")
def test_a_device_is_written_to_not_replaced() -> None:
    write_run({"q1": ["d1"]}, os.devnull)
    assert not Path(os.devnull).is_file()


def test_a_run_is_called_by_its_file(tmp_path: Path) -> None:
    for name, called in [("bm25.run.gz", "bm25"), ("a.b.jsonl", "a.b"), ("x", "x")]:
        write_run({"q1": ["d1"]}, tmp_path / name)
        assert read_run(tmp_path / name).name == called
    assert read_run(tmp_path / "x", name="mine").name == "mine"
    assert Run.of(tmp_path / "bm25.run.gz").name == "bm25"


def test_the_same_judgments_in_two_formats_are_equal(data_folder: Path) -> None:
    for name in ("cranfield", "cisi", "npl"):
        folder = data_folder / name
        assert read_qrels(folder / "qrels/test.tsv") == read_qrels(folder / "trec/qrels.txt")


def test_blank_lines_take_no_memory(tmp_path: Path) -> None:
    def most(empty: int) -> int:
        (tmp_path / "a.run").write_bytes(b"\n" * empty + b"q1 Q0 d1 1 2.5 t\n")
        tracemalloc.start()
        try:
            assert read_run(tmp_path / "a.run")["q1"] == {"d1": 2.5}
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    most(1)  # imports happen once
    assert most(60_000) - most(1) < 10 * 60_000
