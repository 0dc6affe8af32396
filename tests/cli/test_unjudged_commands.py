"""``rankgauge evaluate --unjudged``, ``rankgauge sensitivity unjudged``, and ``reliability``."""

import json
import re

import pytest
from command import run

import rankgauge

FOLDER = rankgauge.sample_path("qrels.txt").parent
QRELS, BM25, KEYWORD = (str(FOLDER / name) for name in ("qrels.txt", "runs/bm25.run", "runs/keyword.run"))


def test_removal_is_that_of_the_library():
    done = run("evaluate", QRELS, BM25, "-m", "AP", "--unjudged", "removed", "--as", "json")
    found = json.loads(done.stdout)
    assert found["policies"]["unjudged"] == "removed"
    wanted = rankgauge.evaluate(QRELS, BM25, "AP", unjudged="removed").mean()["AP"]
    assert found["measures"][0]["mean"] == wanted


def test_the_report_is_that_of_the_library_a_table_a_run():
    names = ["nDCG@10", "AP"]
    words = ("-m", "nDCG@10", "-m", "AP", "--as", "markdown")
    done = run("sensitivity", "unjudged", QRELS, BM25, KEYWORD, *words)
    assert done.returncode == 0
    tables = [
        rankgauge.reports.render(rankgauge.unjudged_report(QRELS, path, names), "markdown") for path in (BM25, KEYWORD)
    ]
    assert done.stdout == "\n".join(tables)


def test_the_queue_of_deciding_documents_is_a_pool_of_a_project(tmp_path):
    queue, store = str(tmp_path / "queue.run"), ("--store", str(tmp_path / "store.db"))
    done = run("sensitivity", "deciding", QRELS, KEYWORD, BM25, "--depth", "10", "--queue", queue, "--as", "json")
    result = rankgauge.comparison.deciding_documents(QRELS, KEYWORD, BM25, depth=10)
    assert json.loads(done.stdout) == result.to_dict()
    assert f"wrote {queue}: {len(result)} documents" in done.stderr
    run("judge", "create", *store, "--questions", str(FOLDER / "queries.jsonl"))
    command = re.search(r"rankgauge (judge pool .*)", done.stderr)[1]
    added = run(*command.replace("FOLDER", str(FOLDER)).split(), *store, "--as", "json")
    assert json.loads(added.stdout)["new"] == len(result)


def test_a_report_needs_a_run():
    assert "a single file must contain records" in run("sensitivity", "unjudged", QRELS).stderr


def test_reliability_is_that_of_the_library():
    words = ("-k", "3", "-m", "RR", "-m", "nDCG@5", "--as", "json")
    done = run("reliability", QRELS, BM25, KEYWORD, *words)
    assert (done.returncode, done.stderr) == (0, "")
    runs = [rankgauge.read_run(path) for path in (BM25, KEYWORD)]
    found = rankgauge.reliability(QRELS, runs, ["RR", "nDCG@5"], k=3)
    assert json.loads(done.stdout) == json.loads(rankgauge.reports.render(found, "json"))


def test_runs_of_one_group_are_left_out_together(tmp_path):
    hybrid = str(tmp_path / "hybrid.run")
    rankgauge.write_run(rankgauge.fuse([BM25, KEYWORD], name="hybrid"), hybrid)
    words = ("--group", f"{BM25}=old", "--group", f"{KEYWORD}=old", "-k", "3", "--as", "json")
    done = run("reliability", QRELS, BM25, KEYWORD, hybrid, *words)
    runs = [rankgauge.read_run(path) for path in (BM25, KEYWORD, hybrid)]
    groups = {runs[0].name: "old", runs[1].name: "old", runs[2].name: "new"}
    found = rankgauge.reliability(QRELS, runs, k=3, groups=groups)
    assert json.loads(done.stdout) == json.loads(rankgauge.reports.render(found, "json"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((BM25,), "expected two or more"),
        ((BM25, KEYWORD, "--group", "bm25"), "expected RUN=GROUP"),
        ((BM25, KEYWORD, "--group", "x.run=a"), "expected RUN=GROUP"),
        ((BM25, KEYWORD, "-m", "num_q"), "is not supported"),
    ],
    ids=["one run", "no group", "no such run", "no measure"],
)
def test_an_impossible_removal_is_reported(words, said):
    done = run("reliability", QRELS, *words)
    assert done.returncode == 2
    assert said in done.stderr
