"""``rankgauge explain``."""

import json

import command

import rankgauge

QRELS = str(rankgauge.sample_path("qrels.txt"))
BM25 = str(rankgauge.sample_path("runs/bm25.run"))


def run(*words):
    return command.run("explain", *words)


def test_it_prints_what_the_library_reports():
    done = run(QRELS, BM25, "nDCG@10", "--query", "q05")
    assert done.returncode == 0, done.stderr
    found = rankgauge.explain(QRELS, rankgauge.read_run(BM25), "nDCG@10", "q05")
    assert done.stdout == rankgauge.reports.render(found)


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


def test_a_profile_explains_why_the_number_differs():
    done = run(QRELS, BM25, "nDCG@10", "--against", "pytrec_eval")
    assert done.returncode == 0, done.stderr
    found = rankgauge.reconcile(QRELS, rankgauge.read_run(BM25), "nDCG@10", "pytrec_eval")
    assert done.stdout == rankgauge.reports.render(found)


def test_an_unknown_profile_is_an_error():
    done = run(QRELS, BM25, "AP", "--against", "pytrek_eval")
    assert done.returncode == 2
    assert "did you mean pytrec_eval" in done.stderr


def test_values_and_a_mean_are_explained(tmp_path):
    there = rankgauge.evaluate(QRELS, BM25, "nDCG(ideal=retrieved)@10")
    path = tmp_path / "theirs.csv"
    rows = zip(there.query_ids, there.per_query[:, 0].tolist(), strict=True)
    path.write_text("query_id,nDCG@10\n" + "".join(f"{q},{v:.4f}\n" for q, v in rows), "utf-8")
    done = run(QRELS, BM25, "nDCG@10", "--against-values", str(path))
    assert done.returncode == 0, done.stderr
    assert "found: ideal of retrieved documents" in done.stdout
    mean = f"{there.mean()['nDCG(ideal=retrieved)@10']:.7f}"
    done = run(QRELS, BM25, "nDCG@10", "--against-mean", mean, "--as", "json")
    assert json.loads(done.stdout)["fits"][0]["name"] == "ideal of retrieved documents"


def test_two_targets_or_an_invalid_mean_are_refused():
    done = run(QRELS, BM25, "AP", "--against", "pytrec_eval", "--against-mean", "0.4")
    assert done.returncode == 2
    assert "pass one of" in done.stderr
    done = run(QRELS, BM25, "AP", "--against-mean", "high")
    assert done.returncode == 2
    assert "expected a number such as 0.4123" in done.stderr
