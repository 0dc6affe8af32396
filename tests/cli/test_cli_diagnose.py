"""``rankgauge diagnose``."""

import json

import command
import pytest

import rankgauge

FOLDER = rankgauge.sample_path("qrels.txt").parent
QRELS, BM25, KEYWORD = (str(FOLDER / name) for name in ("qrels.txt", "runs/bm25.run", "runs/keyword.run"))


def run(*words, folder=None):
    return command.run("diagnose", *words, cwd=folder)


def test_it_prints_the_result_of_the_library(tmp_path):
    (tmp_path / "rankgauge.toml").write_text("[bands]\nP = [0.1, 0.2, 0.25]\n")
    done = run(
        QRELS,
        BM25,
        "--collection",
        str(FOLDER),
        "--group-by",
        "type",
        "--also",
        KEYWORD,
        "-m",
        "nDCG@5",
        "-k",
        "3",
        "-n",
        "2",
        "--rel",
        "2",
        "--rerank-depth",
        "10",
        "--as",
        "json",
        folder=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = rankgauge.diagnose(
        QRELS,
        BM25,
        rankgauge.Collection.read(FOLDER),
        measure="nDCG@5",
        k=3,
        worst=2,
        rel=2,
        depth=10,
        group_by="type",
        also=rankgauge.read_run(KEYWORD),
        bands={"P": (0.1, 0.2, 0.25)},
    )
    assert json.loads(done.stdout) == json.loads(found.to_json())


def test_without_texts_skipped_checks_are_listed():
    done = run(QRELS, BM25)
    assert done.returncode == 0
    assert "no texts of documents were given" in " ".join(done.stdout.split())
    assert "vocabulary gap  " not in done.stdout


def test_full_shows_all_sections():
    short, full = run(QRELS, BM25), run(QRELS, BM25, "--full")
    assert "other cut-offs\n" not in short.stdout
    assert "other cut-offs\n" in full.stdout
    assert "--full" in short.stdout
    assert "--full" not in full.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--collection", "no-such-folder"], "there is no such file or folder"),
        (["--group-by", "type"], "no query has a field 'type'"),
        (["-m", "nDGC@10"], "did you mean"),
        (["-k", "0"], "Invalid value for '-k'"),
        (["--also", "none.run"], "none.run"),
        (["--rel", "9"], "no document has grade 9 or more"),
    ],
)
def test_faults_are_reported_and_end_with_2(words, said):
    done = run(QRELS, BM25, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
