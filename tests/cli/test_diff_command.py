"""``rankgauge diff``."""

import json

import command
import pytest

import rankgauge

QRELS = str(rankgauge.sample_path("qrels.txt"))
BM25 = str(rankgauge.sample_path("runs/bm25.run"))
KEYWORD = str(rankgauge.sample_path("runs/keyword.run"))
FOLDER = str(rankgauge.sample_path("qrels.txt").parent)


def run(*words, **env):
    return command.run("diff", *words, env=env)


def test_it_prints_what_the_library_reports():
    done = run(QRELS, BM25, KEYWORD, "-m", "RR", "--collection", FOLDER, "-n", "2", "-k", "3")
    assert done.returncode == 0, done.stderr
    found = rankgauge.diff(
        QRELS, rankgauge.read_run(BM25), rankgauge.read_run(KEYWORD), "RR", collection=FOLDER, n=2, k=3
    )
    assert done.stdout == rankgauge.reports.render(found)
    assert done.stderr == ""


def test_named_queries_are_shown():
    done = run(QRELS, BM25, KEYWORD, "--query", "q05", "--query", "q01", "--as", "json")
    shown = [query["query"] for query in json.loads(done.stdout)["shown"]]
    assert shown == ["q05", "q01"]
    assert done.stderr == ""


def test_sentences_go_to_standard_error_with_csv():
    done = run(QRELS, BM25, KEYWORD, "--as", "csv")
    assert len(done.stdout.splitlines()) == 31
    assert "30 queries: 5 gain, 8 unchanged, 17 lose" in done.stderr


def test_a_narrow_encoding_gets_plain_arrows():
    done = run(QRELS, BM25, KEYWORD, "-n", "1", PYTHONIOENCODING="cp1252")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "bm25 > keyword by nDCG@10"
    assert "v 4" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((BM25,), "name the judgments and the run"),
        ((BM25, KEYWORD, "--query", "q99"), "query 'q99' is not judged"),
        ((BM25, KEYWORD, "--collection", "nosuch"), "nosuch: there is no such file or folder"),
        ((BM25, KEYWORD, "-m", "nDGC@5"), "did you mean"),
        ((BM25, KEYWORD, "-k", "0"), "0 is not in the range"),
        ((BM25, QRELS), "qrels.txt, line 1"),
    ],
)
def test_an_impossible_selection_ends_with_2(words, said):
    done = run(QRELS, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
