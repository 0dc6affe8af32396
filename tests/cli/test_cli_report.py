"""``rankgauge report`` as a process."""

import os
import subprocess
import sys

import pytest

import rankgauge

QRELS = str(rankgauge.sample_path("qrels.txt"))
BM25 = str(rankgauge.sample_path("runs/bm25.run"))
KEYWORD = str(rankgauge.sample_path("runs/keyword.run"))
FOLDER = str(rankgauge.sample_path("qrels.txt").parent)


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "rankgauge", *words],
        capture_output=True, timeout=120, encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"}, check=False,
    )  # fmt: skip


def test_it_writes_one_file_that_is_what_the_library_makes(tmp_path):
    target = tmp_path / "report.html"
    done = run(
        "report", QRELS, BM25, KEYWORD, "-m", "RR", "--baseline", "keyword", "--collection", FOLDER,
        "--title", "A <title>", "--date", "2024-05-01", "--no-plots", "-o", str(target),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"wrote {target}\n"
    assert target.read_text(encoding="utf-8") == rankgauge.html_report(
        QRELS, [BM25, KEYWORD], "RR", baseline="keyword", collection=FOLDER, title="A <title>",
        date="2024-05-01", plots=False,
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == [target]


def test_a_dash_is_standard_output():
    done = run("report", QRELS, BM25, "-m", "RR", "--no-plots", "-o", "-")
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert done.stderr == ""


def test_two_files_of_one_name_are_told_apart(tmp_path):
    other = tmp_path / "bm25.run"
    other.write_bytes(rankgauge.sample_path("runs/keyword.run").read_bytes())
    done = run("report", QRELS, BM25, str(other), "-m", "RR", "--no-plots", "-o", "-")
    assert done.returncode == 0
    assert str(other) in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.txt", BM25], "nowhere.txt"),
        ([QRELS, BM25, KEYWORD, "--baseline", "nope"], "no run is called 'nope'"),
        ([QRELS, BM25, "--collection", "nowhere"], "there is no such folder"),
        ([QRELS, BM25, "-m", "ndgc"], "did you mean"),
    ],
)
def test_a_trouble_is_told_and_an_old_report_is_left_alone(tmp_path, words, said):
    target = tmp_path / "report.html"
    target.write_text("old", encoding="utf-8")
    done = run("report", *words, "--no-plots", "-o", str(target))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert target.read_text(encoding="utf-8") == "old"


def test_a_place_that_cannot_be_written_to_is_told(tmp_path):
    done = run("report", QRELS, BM25, "--no-plots", "-o", str(tmp_path / "none" / "a.html"))
    assert done.returncode == 2
    assert "Could not open file" in done.stderr
