"""Judgments and runs in zip archives and folders: file selection and errors."""

from __future__ import annotations

import gzip
import io
import pickle
import random
import sqlite3
import struct
import sys
import tarfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rankgauge import Collection, evaluate, read_qrels, read_run
from rankgauge.errors import FormatError, InputError, MissingExtra, RankgaugeError
from rankgauge.formats.compression import packed
from rankgauge.formats.readers import read_ids
from rankgauge.formats.registry import PACKINGS, Packing

RUN = "q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.5 t\n"
JUDGED = "query-id\tcorpus-id\tscore\nq1\td1\t2\n"
TEXT = '{"_id": "d1", "text": "x"}\n'


def zipped(path: Path, texts: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return path


def beir(*splits: str) -> dict[str, str | bytes]:
    parts: dict[str, str | bytes] = {"corpus.jsonl": TEXT, "queries.jsonl": TEXT}
    grades = {f"qrels/{split}.tsv": JUDGED + f"q2\t{split}\t1\n" for split in splits}
    return {f"mini/{name}": text for name, text in {**parts, **grades}.items()}


@pytest.mark.parametrize("method", [0, 8, 12], ids=["stored", "deflate", "bzip2"])
def test_an_archive_with_one_file_is_that_file(method: int, tmp_path: Path) -> None:
    texts = {"deep/a.run": RUN, "__MACOSX/._a.run": "x", ".DS_Store": "x", "deep/": ""}
    path = zipped(tmp_path / "one.zip", texts, method)
    run = read_run(path)
    assert run["q1"] == {"d1": 2.5, "d2": 1.5}
    assert (run.name, run.table.source) == ("one", f"{path}!deep/a.run")
    assert read_run(f"{path}!deep/a.run").name == "a"
    assert evaluate({"q1": {"d2"}}, path, ["RR"]).mean()["RR"] == 0.5


def test_a_file_in_an_archive_may_be_packed_or_a_table(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"a.run.gz": gzip.compress(RUN.encode())})
    assert read_run(path) == read_run(f"{path}!a.run.gz", name="a")
    ids = zipped(tmp_path / "ids.zip", {"ids.txt": "d1\nd2\n"})
    assert read_ids(ids) == read_ids(f"{ids}!ids.txt") == [b"d1", b"d2"]
    assert read_qrels(zipped(tmp_path / "q.zip", {"a.tsv": JUDGED}))["q1"] == {"d1": 2.0}


def test_an_archive_is_read_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for texts, read in (({"a.run": RUN}, read_run), (beir("test"), read_qrels)):
        path = zipped(tmp_path / "a.zip", texts)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        assert read("-")["q1"] == read(path)["q1"]


def test_an_archive_of_several_files_needs_the_name_of_one(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {f"{n}.run": RUN for n in range(10)})
    for read in (read_run, read_qrels, read_ids):
        with pytest.raises(FormatError, match=r"10 files in this archive: '0\.run'") as caught:
            read(path)
        assert f"{path}!0.run" in caught.value.fix
    assert "and 2 more" in str(caught.value)
    assert read_run(f"{path}!7.run").name == "7"
    with pytest.raises(InputError, match="no such file in the archive") as missing:
        read_run(f"{path}!x.run")
    assert "'0.run'" in missing.value.fix


def test_a_path_with_the_sign_of_a_member_is_a_path_first(tmp_path: Path) -> None:
    zipped(tmp_path / "a!b.zip", {"c!d.run": RUN})
    assert read_run(f"{tmp_path}/a!b.zip!c!d.run").name == "c!d"
    (tmp_path / "x.zip!y.run").write_text(RUN)
    assert len(read_run(tmp_path / "x.zip!y.run")) == 1
    with pytest.raises(InputError, match="no such file"):
        read_run(f"{tmp_path}/gone.zip!a.run")


@pytest.mark.parametrize("place", ["zip", "folder"])
def test_judgments_are_those_of_the_split(place: str, tmp_path: Path) -> None:
    path = zipped(tmp_path / "mini.zip", beir("dev", "test", "train"))
    if place == "folder":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(tmp_path)
        path = tmp_path / "mini"
    found = read_qrels(path)
    assert found == Collection.load(path).qrels
    assert found["q2"] == {"test": 1.0}
    assert found.table.notes[-1] == (f"{path}: judgments from qrels/test.tsv; there are also: dev, train")
    assert read_qrels(path, split="dev")["q2"] == {"dev": 1.0}
    with pytest.raises(InputError, match="no judgments of a split 'x'") as caught:
        read_qrels(path, split="x")
    assert "dev, test, train" in caught.value.fix
    with pytest.raises(InputError, match=r"folder|has judgments but no run"):
        read_run(path)


def test_the_only_split_is_chosen_with_a_note(tmp_path: Path) -> None:
    path = zipped(tmp_path / "mini.zip", beir("dev"))
    assert read_qrels(path).table.notes[-1] == f"{path}: judgments from qrels/dev.tsv"
    two = zipped(tmp_path / "two.zip", beir("dev", "train"))
    with pytest.raises(InputError, match="2 splits, and none is called test"):
        read_qrels(two)
    bare = {name: text for name, text in beir("dev", "test").items() if "qrels" in name}
    assert read_qrels(zipped(tmp_path / "bare.zip", bare))["q2"] == {"test": 1.0}


def test_the_folder_of_judgments_itself_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text(JUDGED)
    assert read_qrels(tmp_path / "qrels") == read_qrels(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="this folder has no judgments"):
        read_qrels(tmp_path / "empty")


def test_a_split_of_one_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(JUDGED)
    with pytest.raises(InputError, match="split='dev', but this is a single file"):
        read_qrels(path, split="dev")


def test_names_of_members_are_only_names(tmp_path: Path) -> None:
    names = ["../../out.run", "/abs.run", "a\\b.run", "a\nb.run"]
    path = zipped(tmp_path / "evil.zip", dict.fromkeys(names, RUN))
    with pytest.raises(FormatError, match="4 files") as caught:
        read_run(path)
    assert "'a\\nb.run'" in str(caught.value)
    for name in names:
        assert len(read_run(f"{path}!{name}")) == 1
    assert [p.name for p in tmp_path.rglob("*")] == ["evil.zip"]


def locked(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.index(magic) + at
        data[place] |= 1
    path.write_bytes(data)


def claimed(path: Path, size: int) -> None:
    """Claim another unpacked size."""
    data = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = data.index(magic) + at
        data[place : place + 4] = struct.pack("<I", size)
    path.write_bytes(data)


def test_a_locked_member_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"a.run": RUN})
    locked(path)
    with pytest.raises(InputError, match="is encrypted"):
        read_run(path)


def test_a_member_that_claims_too_much_or_too_little_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"a.run": RUN})
    claimed(path, 1 << 31)
    with pytest.raises(FormatError, match="bytes claim to be 2147483648 unpacked"):
        read_run(path)
    claimed(path, 20)
    with pytest.raises(FormatError, match="zip data is corrupt"):
        read_run(path)


def test_a_small_member_with_a_high_compression_ratio_is_read(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"a.run": RUN + " " * (4 << 20)})
    assert path.stat().st_size * 200 < 4 << 20
    assert len(read_run(path)) == 1


def test_a_packed_member_may_not_explode_either(tmp_path: Path) -> None:
    twice = gzip.compress(bytes(80 << 20))
    path = zipped(tmp_path / "a.zip", {"a.run.gz": twice})
    with pytest.raises(FormatError, match=r"a\.run\.gz: [0-9]{3,4} bytes unpack to more than"):
        read_run(path)


@pytest.mark.parametrize("packing", PACKINGS, ids=lambda packing: packing.name)
def test_data_after_a_compression_bomb_does_not_admit_it(
    packing: Packing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankgauge.formats.compression._HARMLESS", 1 << 20)
    parts = []
    for data in (bytes(48 << 20), random.Random(1).randbytes(1 << 18)):
        stream = io.BytesIO()
        with packed(stream, packing, "a") as writer:
            writer.write(data)
        parts.append(stream.getvalue())
    name = f"a.run{packing.suffix}"
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, b"".join(parts))
    # The limit would allow the whole; only the part read so far may count.
    assert 200 * path.stat().st_size > 48 << 20
    with pytest.raises(FormatError, match=f"{name}: [0-9]+ bytes unpack to more than"):
        read_run(path)


def test_other_malformed_archives_are_refused_with_a_message(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "inner.zip", {"a.run": RUN}).read_bytes()
    lzma = zipped(tmp_path / "lzma.zip", {"a.run": RUN}, zipfile.ZIP_LZMA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive:
            archive.writestr("a.run", RUN)
            archive.writestr("a.run", RUN + RUN)
    np.savez(tmp_path / "a.npz", a=np.arange(3), b=np.arange(3))
    for path, said in (
        (zipped(tmp_path / "outer.zip", {"inner.zip": inner}), "an archive within an archive"),
        (lzma, "compressed by method 14"),
        (tmp_path / "twice.zip", "2 files of this name"),
        (zipped(tmp_path / "none.zip", {}), "no file in this archive"),
        (zipped(tmp_path / "x.xlsx", {"[Content_Types].xml": "", "x": ""}), "an Excel or Word file"),
        (tmp_path / "a.npz", "2 NumPy arrays"),
    ):
        with pytest.raises(FormatError, match=said) as caught:
            read_run(path)
        assert caught.value.fix


def test_a_broken_archive_is_refused_wherever_it_is_broken(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "a.zip", {"a.run": RUN * 40, "b.run": RUN}).read_bytes()
    path = tmp_path / "b.zip"
    for at in range(0, len(whole), 3):
        for data in (whole[:at], whole[:at] + b"\xa5\x5a\xff" + whole[at + 3 :]):
            path.write_bytes(data)
            for name in (path, f"{path}!a.run"):
                try:
                    read_run(name)
                except RankgaugeError:
                    continue


def test_files_that_are_no_text_are_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(RUN)
    for name in ("a.tar", "a.tgz"):
        with tarfile.open(tmp_path / name, "w:gz" if name.endswith("z") else "w") as archive:
            archive.add(tmp_path / "a.run", "a.run")
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"q1": {"d1": 1}}))
    np.save(tmp_path / "a.npy", np.arange(3))
    database = sqlite3.connect(tmp_path / "a.db")
    database.execute("create table t (a)")
    database.close()
    (tmp_path / "a.duckdb").write_bytes(bytes(8) + b"DUCK" + bytes(100))
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    for name, what, fix in (
        ("a.tar", "tar archive", "tar -xf FILE"),
        ("a.tgz", "tar archive", "tar -xf FILE"),
        ("a.pkl", "a pickle, which can run any code", "load it yourself"),
        ("a.npy", "a NumPy array", "from_columns"),
        ("a.db", "an SQLite database", "CSV or Parquet"),
        ("a.duckdb", "a DuckDB database", "CSV or Parquet"),
        ("a.h5", "an HDF5 file", "CSV or Parquet"),
    ):
        for read in (read_run, read_qrels, read_ids):
            with pytest.raises(FormatError, match=what) as caught:
                read(tmp_path / name)
            assert fix in caught.value.fix


@pytest.mark.parametrize("source", ["ir_datasets:vaswani", "hf:BeIR/scifact"])
def test_datasets_are_for_judgments_and_need_their_library(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ir_datasets", "datasets"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match="which is not installed"):
        read_qrels(source)
    with pytest.raises(InputError, match="which has judgments but no run"):
        read_run(source)


def test_a_file_that_is_called_like_a_dataset_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hf:mine").write_text("q1 0 d1 1\n")
    assert read_qrels("hf:mine")["q1"] == {"d1": 1.0}
