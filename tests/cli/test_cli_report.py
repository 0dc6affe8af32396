"""``rankgauge report``."""

import os
import re

import pytest
from command import run

import rankgauge

QRELS = str(rankgauge.sample_path("qrels.txt"))
BM25 = str(rankgauge.sample_path("runs/bm25.run"))
KEYWORD = str(rankgauge.sample_path("runs/keyword.run"))
FOLDER = str(rankgauge.sample_path("qrels.txt").parent)


def test_it_writes_the_file_that_the_library_makes(tmp_path):
    target = tmp_path / "report.html"
    done = run(
        "report",
        QRELS,
        BM25,
        KEYWORD,
        "-m",
        "RR",
        "--baseline",
        "keyword",
        "--collection",
        FOLDER,
        "--title",
        "A <title>",
        "--date",
        "2024-05-01",
        "--no-plots",
        "-o",
        str(target),
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"wrote {target}\n"
    assert target.read_text(encoding="utf-8") == rankgauge.html_report(
        QRELS,
        [BM25, KEYWORD],
        "RR",
        baseline="keyword",
        collection=FOLDER,
        title="A <title>",
        date="2024-05-01",
        plots=False,
    )
    assert list(tmp_path.iterdir()) == [target]


def test_a_dash_is_standard_output():
    done = run("report", QRELS, BM25, "-m", "RR", "--no-plots", "-o", "-")
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert done.stderr == ""


def test_two_files_with_the_same_name_are_distinguished(tmp_path):
    other = tmp_path / "bm25.run"
    other.write_bytes(rankgauge.sample_path("runs/keyword.run").read_bytes())
    done = run("report", QRELS, BM25, str(other), "-m", "RR", "--no-plots", "-o", "-")
    assert done.returncode == 0
    assert str(other) in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.txt", BM25], "nowhere.txt"),
        ([QRELS, BM25, KEYWORD, "--baseline", "nope"], "unknown run 'nope'"),
        ([QRELS, BM25, "--collection", "nowhere"], "there is no such file or folder"),
        ([QRELS, BM25, "-m", "ndgc"], "did you mean"),
        ([QRELS, BM25, "--diagnose", "bm52"], "unknown run 'bm52'"),
        ([QRELS, BM25, "-m", "FirstRel", "--diagnose"], "FirstRel is not better when higher"),
    ],
)
def test_an_error_is_reported_and_an_old_report_kept(tmp_path, words, said):
    target = tmp_path / "report.html"
    target.write_text("old", encoding="utf-8")
    done = run("report", *words, "--no-plots", "-o", str(target))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert target.read_text(encoding="utf-8") == "old"


def test_an_unwritable_path_is_reported(tmp_path):
    """The error comes before any work: the judgments are not even read."""
    for target, said in (("none/a.html", "there is no folder"), ("", "this is a folder")):
        done = run("report", "nowhere.txt", BM25, "--no-plots", "-o", str(tmp_path / target))
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {tmp_path / target}: ")
        assert said in done.stderr
        assert "fix: " in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_written_through_and_a_device_is_not_replaced(tmp_path):
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.write_text("old", encoding="utf-8")
    link.symlink_to(real)
    assert run("report", QRELS, BM25, "-m", "RR", "--no-plots", "-o", str(link)).returncode == 0
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert run("report", QRELS, BM25, "-m", "RR", "--no-plots", "-o", os.devnull).returncode == 0
    assert not os.path.isfile(os.devnull)  # noqa: PTH113 - it is no path of ours


@pytest.mark.parametrize(("words", "name"), [(["--diagnose"], "keyword"), (["--diagnose", "bm25"], "bm25"), ([], None)])
def test_it_explains_a_run_on_request(words, name):
    done = run("report", QRELS, KEYWORD, BM25, "-m", "RR", "--no-plots", "-o", "-", *words)
    assert done.returncode == 0
    found = re.findall(r"<h2[^>]*>Diagnosis of (.*?)</h2>", done.stdout)
    assert found == ([name] if name else [])
