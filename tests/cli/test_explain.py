"""``rankgauge explain``, as a process."""

import json
import subprocess
import sys

import rankgauge

QRELS = str(rankgauge.sample_path("qrels.txt"))
BM25 = str(rankgauge.sample_path("runs/bm25.run"))


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "rankgauge", "explain", *words],
        capture_output=True, text=True, timeout=60, encoding="utf-8", check=False,
    )  # fmt: skip


def test_it_prints_what_the_library_reports():
    done = run(QRELS, BM25, "nDCG@10", "--query", "q05")
    assert done.returncode == 0, done.stderr
    found = rankgauge.explain(QRELS, rankgauge.read_run(BM25), "nDCG@10", "q05")
    assert done.stdout == rankgauge.report_explanation(found)


def test_policies_are_passed_on(tmp_path):
    ids = tmp_path / "ids.txt"
    ids.write_text("q03\n", encoding="utf-8")
    done = run(QRELS, BM25, "AP", "--queries", str(ids), "--ties", "input", "--as", "json")
    data = json.loads(done.stdout)
    assert (data["query"], data["queries"], data["policies"]["ties"]) == ("q03", 1, "input")


def test_a_query_that_is_not_judged_is_an_error():
    done = run(QRELS, BM25, "AP", "--query", "nobody")
    assert done.returncode == 2
    assert "query 'nobody' is not judged" in done.stderr


def test_against_a_profile_it_says_why_the_number_differs():
    done = run(QRELS, BM25, "nDCG@10", "--against", "pytrec_eval")
    assert done.returncode == 0, done.stderr
    found = rankgauge.reconcile(QRELS, rankgauge.read_run(BM25), "nDCG@10", "pytrec_eval")
    assert done.stdout == rankgauge.report_reconciliation(found)


def test_a_profile_nobody_knows_is_an_error():
    done = run(QRELS, BM25, "AP", "--against", "pytrek_eval")
    assert done.returncode == 2
    assert "did you mean pytrec_eval" in done.stderr
