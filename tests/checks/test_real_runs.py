"""Findings in real judgments and runs, and in faults made from them."""

import pytest
from checked import effect, only, opinion

from rankgauge import check, evaluate, read_qrels, read_run

pytest.importorskip("pytrec_eval")

BM25 = ("bm25-lucene-k0.9-b0.4-stem", "bm25-robertson-k1.5-b0.75-nostem")
RUNS = {
    "cranfield": (*BM25, "minilm-l6-v2-cosine", "rrf-bm25-minilm-k60"),
    "cisi": (*BM25, "minilm-l6-v2-cosine", "rrf-bm25-minilm-k60"),
    "npl": BM25,
}


def run_of(folder, name):
    return str(folder / "runs" / f"{name}.run.gz")


def plain(path):
    run = read_run(path)
    return {query: dict(run[query]) for query in run}


def grades(path):
    qrels = read_qrels(path)
    return {q: {d: int(g) for d, g in qrels[q].items()} for q in qrels}


@pytest.mark.parametrize("name", RUNS)
def test_good_runs_have_no_error(data_folder, name):
    folder = data_folder / name
    found = check(folder / "trec/qrels.txt", [run_of(folder, run) for run in RUNS[name]])
    said = {(p.code, p.evidence.source.rpartition("/")[2]) for p in found.findings}
    # Many relevant documents, only relevant ones, and ties of reciprocal ranks are real.
    wanted = {("J107", "qrels.txt"), ("J108", "qrels.txt")}
    if name == "cranfield":
        wanted.add(("R109", "rrf-bm25-minilm-k60.run.gz"))
    assert said == wanted


@pytest.mark.parametrize("name", RUNS)
def test_scores_of_one_decimal_are_found_to_tie(data_folder, name):
    folder = data_folder / name
    found = check(folder / "trec/qrels.txt", run_of(folder, "bm25-coarse-scores"))
    assert set(found.codes) == {"R109", "J107", "J108"}


@pytest.mark.slow
def test_submitted_runs_have_no_error(data_folder):
    folder = data_folder / "dl20-doc"
    runs = sorted(map(str, (folder / "runs").glob("*.gz")))
    found = check(folder / "qrels.txt", runs)
    assert set(found.codes) <= {"J107", "P104", "P105", "P106", "R109"}
    assert {p.evidence.count for p in found.of("P104")} == {1}


def test_judgments_of_many_kinds_have_no_error(data_folder):
    for path in sorted((data_folder / "formats").glob("qrels_*")):
        assert set(check(path).codes) <= {"J103", "J107", "J108"}, path.name


@pytest.fixture
def cranfield(data_folder):
    folder = data_folder / "cranfield"
    run = plain(run_of(folder, BM25[0]))
    return str(folder / "trec/qrels.txt"), grades(folder / "trec/qrels.txt"), run


FAULTS = [
    pytest.param(lambda q, d, s: (q, str(int(d) - 1), s), "P109", "one higher", id="documents from 0"),
    pytest.param(lambda q, d, s: (str(int(q) - 1), d, s), "P109", "one higher", id="queries from 0"),
    pytest.param(lambda q, d, s: (q, d, 60.0 - s), "R104", "negated", id="distances"),
    pytest.param(lambda q, d, s: (q, d.zfill(4), s), "P103", "leading zeros", id="padded"),
    pytest.param(lambda q, d, s: (q, f"cran-{d}", s), "P103", "prefix", id="prefix"),
    pytest.param(lambda q, d, s: (q, d, 1e7 + s), "R107", "32 bits", id="large scores"),
]


@pytest.mark.parametrize(("change", "code", "by"), FAULTS)
def test_a_fault_seeded_in_a_good_run_is_found_with_its_effect(cranfield, change, code, by):
    path, judged, run = cranfield
    faulty = {}
    for query, docs in run.items():
        for doc, score in docs.items():
            q, d, s = change(query, doc, score)
            faulty.setdefault(q, {})[d] = s
    found = check(path, faulty)
    errors = [problem.code for problem in found.findings if problem.severity == "error"]
    assert errors == [code] * (code != "R107")
    measured = effect(only(found, code), by)
    now = evaluate if code == "R107" else None
    if now is not None:
        assert measured.before == evaluate(judged, faulty, ["nDCG@10"]).mean()["nDCG@10"]
        assert measured.after == pytest.approx(opinion(judged, faulty))
        return
    assert measured.before == pytest.approx(opinion(judged, faulty))
    assert measured.after == pytest.approx(opinion(judged, run))


@pytest.mark.parametrize("other", ["npl", "cisi"])
def test_judgments_of_another_collection_are_detected(data_folder, other):
    run = run_of(data_folder / "cranfield", BM25[0])
    found = check(data_folder / other / "trec/qrels.txt", run)
    assert found.findings[0].code == "P108"
    found = check(data_folder / "cranfield/trec/qrels.txt", run_of(data_folder / other, BM25[0]))
    assert found.findings[0].code == "P108"
