"""Input faults are reported before any verdict, and correct runs have none."""

from __future__ import annotations

import functools
import json
import random
import re
import subprocess
import sys

import pandas as pd
import pytest

from rankgauge import (
    Baseline,
    Benchmark,
    Collection,
    Evaluation,
    InputError,
    MismatchError,
    Run,
    check,
    compare,
    diagnose,
    diff,
    evaluate,
    gate,
    read_qrels,
    read_run,
    sample_path,
)
from rankgauge.evaluation.input_checks import shifted_matches
from rankgauge.reports import render

QRELS, RUN = sample_path("qrels.txt"), sample_path("runs/bm25.run")
BM25 = "bm25-lucene-k0.9-b0.4-stem"
COLLECTIONS = ["cranfield", "cisi", "npl"]
# Each fault's format of query, document, and score; its code and part of its message.
FAULTS = {
    "prefix": (lambda q, d, s: (q, f"doc_{d}", s), "P103", "without the prefix 'doc_'"),
    "path": (lambda q, d, s: (q, f"corpus/{d}", s), "P103", "without the prefix 'corpus/'"),
    "suffix": (lambda q, d, s: (q, f"{d}.txt", s), "P103", "without the suffix '.txt'"),
    "path and suffix": (
        lambda q, d, s: (q, f"corpus/{d}.txt", s),
        "P103",
        "without the prefix 'corpus/' and the suffix '.txt'",
    ),
    "chunk": (lambda q, d, s: (q, f"{d}#3", s), "P103", "without the suffix '#3'"),
    "documents one higher": (lambda q, d, s: (q, str(int(d) + 1), s), "P109", "if those of the run are one lower"),
    "documents one lower": (lambda q, d, s: (q, str(int(d) - 1), s), "P109", "if those of the run are one higher"),
    "queries one higher": (lambda q, d, s: (str(int(q) + 1), d, s), "P109", "more query ids match"),
    "some queries": (lambda q, d, s: (q if int(q) % 2 else f"q_{q}", d, s), "P103", "query ids match only"),
    "other ids": (lambda q, d, s: (q, f"{hash(d):x}x", s), "P102", "no retrieved document"),
    "distances": (lambda q, d, s: (q, d, -s), "R104", "look like distances"),
    "mostly empty": (lambda q, d, s: (q if int(q) % 3 == 0 else f"x{q}y", d, s), "P104", "have no results"),
}


def changed(run, change):
    found = {}
    for query in run:
        for doc, score in run[query].items():
            q, d, s = change(query, doc, score)
            found.setdefault(q, {})[d] = s
    return Run.of(found, name="bad")


@functools.cache
def judged_run(folder):
    """Return judgments and the first 100 documents of each query."""
    run = read_run(folder / f"runs/{BM25}.run.gz")
    first = {q: dict(sorted(run[q].items(), key=lambda pair: -pair[1])[:100]) for q in run}
    return read_qrels(folder / "trec/qrels.txt"), Run.of(first, name=run.name)


@pytest.fixture(params=["cranfield", "npl"])
def good(request, data_folder):
    return judged_run(data_folder / request.param)


@pytest.fixture
def cranfield(data_folder):
    return judged_run(data_folder / "cranfield")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_seeded_in_a_real_run_is_the_first_note_and_withholds_the_verdict(good, fault):
    change, code, said = FAULTS[fault]
    qrels, run = good
    bad = changed(run, change)
    evaluation = evaluate(qrels, bad, ["nDCG@10"])
    first = evaluation.input_findings[0]
    assert (first.code, first.severity) == (code, "error")
    assert said in first.message
    assert evaluation.notes[0] == f"WARNING: {first}"
    found = compare(qrels, {"good": run, "bad": bad}, "nDCG@10", draws=10)
    assert found.difference("bad").verdict == "withheld"
    assert found.sentences == (f"bad cannot be compared: {first}",)


@pytest.mark.parametrize("fault", ["prefix", "queries one higher", "distances", "other ids"])
def test_every_command_reports_the_fault_first(cranfield, fault):
    change, code, _ = FAULTS[fault]
    qrels, run = cranfield
    bad = changed(run, change)
    first = evaluate(qrels, bad, ["nDCG@10"]).input_findings[0]

    compared = compare(qrels, {"good": run, "bad": bad}, draws=10)
    text = " ".join(render(compared).split())
    assert text.startswith(f"bad cannot be compared: {first} ")
    assert not {"better", "worse", "highest", "best"} & set(text.split())
    data = json.loads(compared.to_json())
    assert {d["verdict"] for d in data["differences"]} == {"withheld", None}
    assert data["runs"][1]["findings"][0]["code"] == code

    baseline = Baseline.from_run(qrels, run)
    for rules in (None, {"measures": {"nDCG@10": {"floor": 0.3}}}):
        held = gate(qrels, bad, rules, baseline=baseline)
        assert (held.verdict, held.exit_code()) == ("NOT COMPARABLE", 4)
        assert held.sentences()[0].startswith(f"NOT COMPARABLE: {first}")
    with pytest.raises(InputError, match=code):
        Baseline.from_run(qrels, bad)

    diagnosis = diagnose(qrels, bad)
    assert " ".join(render(diagnosis).split()).startswith(f"no diagnosis of bad: {first} ")
    assert (diagnosis.fixes, diagnosis.diagnoses, diagnosis.totals) == ((), (), ())
    assert json.loads(diagnosis.to_json())["failing"] is None

    changes = diff(qrels, run, bad)
    assert changes.findings[0] == ("bad", first)
    assert render(changes).startswith("WARNING: bad: ")
    assert json.loads(changes.to_json())["findings"][0]["code"] == code


def test_a_verdict_on_sound_runs_is_kept_despite_a_faulty_one(cranfield):
    qrels, run = cranfield
    cut = Run.of({q: dict(list(run[q].items())[3:]) for q in run}, name="cut")
    bad = changed(run, FAULTS["prefix"][0])
    found = compare(qrels, {"good": run, "cut": cut, "bad": bad}, "nDCG@10", pairs="all", draws=99)
    verdicts = {d.run: d.verdict for d in found.differences if d.baseline == "good"}
    assert verdicts == {"cut": "worse", "bad": "withheld"}
    assert any(text.startswith("cut is worse than good") for text in found.sentences)
    # A faulty run can be the best one.
    assert not found.table().best


def test_ids_that_differ_in_case_alone_are_refused_with_the_command_that_fixes_them():
    qrels = read_qrels(QRELS)
    bad = {q: {d.upper(): s for d, s in docs.items()} for q, docs in read_run(RUN).items()}
    for act in (
        lambda: evaluate(qrels, bad),
        lambda: compare(qrels, {"good": read_run(RUN), "bad": bad}),
        lambda: diagnose(qrels, bad),
    ):
        with pytest.raises(MismatchError, match=r"rankgauge check .*qrels\.txt'? RUN --fix fixed"):
            act()


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda q, d: (q, d.upper()), "differ only in leading zeros, spaces, or case"),
        (lambda q, d: (q, f"0{d}"), "differ only in leading zeros, spaces, or case"),
        (lambda q, d: (f"q_{q}", d), "no query of the run is judged"),
    ],
    ids=["case", "leading zeros", "query prefix"],
)
def test_a_gate_calls_ids_that_do_not_match_not_comparable(tmp_path, write, said):
    judged = {f"{n}": {f"{n}a": 1} for n in range(12)}
    good = {q: dict.fromkeys(docs, 1.0) for q, docs in judged.items()}
    baseline, path = tmp_path / "base.json", tmp_path / "bad.run"
    Baseline.from_run(judged, good).write(baseline)
    pairs = [(q, d) for q, docs in good.items() for d in docs]
    rows = (f"{q} Q0 {d} 1 1 t\n" for q, d in (write(q, d) for q, d in pairs))
    path.write_text("".join(rows), encoding="utf-8")
    held = gate(judged, path, baseline=baseline)
    assert (held.verdict, held.exit_code()) == ("NOT COMPARABLE", 4)
    assert said in held.sentences()[0]
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} 1\n" for q, d in pairs), encoding="utf-8")
    words = ["gate", "qrels", "bad.run", "--baseline", "base.json", "--junit", "x", "--json", "j"]
    done = subprocess.run(
        [sys.executable, "-m", "rankgauge", *words],
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert done.returncode == 4, done.stderr
    assert json.loads((tmp_path / "j").read_text())["verdict"] == "NOT COMPARABLE"
    assert (tmp_path / "x").is_file()


def test_the_command_names_the_files_where_they_are_known(tmp_path):
    qrels, run = tmp_path / "my qrels.txt", tmp_path / "a.run"
    qrels.write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(9)), encoding="utf-8")
    run.write_text("".join(f"q{n} Q0 x/d{n} 1 1 t\n" for n in range(9)), encoding="utf-8")
    (found,) = evaluate(str(qrels), str(run), "RR").input_findings
    assert f"rankgauge check '{qrels}' {run} --fix fixed" in found.fix


def test_findings_are_kept_in_json(cranfield):
    qrels, run = cranfield
    evaluation = evaluate(qrels, changed(run, FAULTS["suffix"][0]), "AP")
    assert Evaluation.from_json(evaluation.to_json()).input_findings == evaluation.input_findings
    old = json.loads(evaluation.to_json())
    del old["findings"]
    assert Evaluation.from_json(json.dumps(old)).input_findings == ()


# ---- no false alarms


def runs_of(folder):
    for path in sorted(folder.glob("runs/*.gz")):
        yield path.name, read_run(path)


@pytest.mark.parametrize("name", [*COLLECTIONS, "dl20-doc"])
def test_real_runs_have_no_finding(data_folder, name):
    folder = data_folder / name
    qrels = read_qrels(folder / ("qrels.txt" if name == "dl20-doc" else "trec/qrels.txt"))
    for path, run in runs_of(folder):
        assert evaluate(qrels, run, "nDCG@10").input_findings == (), path
        short = {q: dict(list(run[q].items())[:10]) for q in run}
        assert evaluate(qrels, short, "nDCG@10").input_findings == (), path


def test_the_bundled_runs_have_no_finding():
    for path in sorted(RUN.parent.iterdir()):
        assert evaluate(read_qrels(QRELS), path, "nDCG@10").input_findings == ()


@pytest.mark.parametrize("depth", [5, 10, 100])
@pytest.mark.parametrize("seed", range(2))
def test_a_random_ranking_is_only_bad(good, depth, seed):
    qrels, run = good
    rng = random.Random(seed)
    docs = sorted({doc for query in run for doc in run[query]})
    bad = {q: {d: -float(n) for n, d in enumerate(rng.sample(docs, depth))} for q in run}
    found = compare(qrels, {"good": run, "bad": bad}, "nDCG@10", draws=99)
    assert found.evaluations[1].input_findings == ()
    assert found.difference("bad").verdict == "worse"


def test_few_judged_documents_are_only_few(cranfield):
    qrels, run = cranfield
    judged = {q: {next(iter(qrels[q])): 1} for q in qrels}
    assert evaluate(judged, run, "nDCG@10").input_findings == ()


def test_unjudged_documents_at_the_top_are_not_reported_as_distances():
    qrels = {f"q{n}": {f"d{d}": d % 2 for d in range(10)} for n in range(30)}
    new = {q: [f"n{d}" for d in range(5)] + [f"d{d}" for d in range(5)] for q in qrels}
    assert evaluate(qrels, new, "nDCG@10").input_findings == ()


@pytest.mark.parametrize(("share", "severity"), [(0.05, None), (0.3, "warning"), (0.6, "error")])
def test_a_strict_retriever_is_distinguished_from_an_empty_one(cranfield, share, severity):
    qrels, run = cranfield
    empty = int(share * len(run))
    strict = {q: {} if n < empty else dict(run[q]) for n, q in enumerate(run)}
    found = compare(qrels, {"good": run, "strict": strict}, "nDCG@10", draws=99)
    assert [one.severity for one in found.evaluations[1].input_findings] == [severity] * bool(severity)
    verdict = found.difference("strict").verdict
    assert (verdict == "withheld") is (severity == "error")
    said = any(text.startswith("strict: 67 of 225 queries have no") for text in found.warnings)
    assert said is (severity == "warning")


def test_excluding_missing_queries_restores_the_verdict(cranfield):
    qrels, run = cranfield
    part = Run.of({q: dict(run[q]) for q in list(run)[:60]}, name="part")
    assert compare(qrels, {"a": run, "b": part}, "AP").difference("b").verdict == "withheld"
    found = compare(qrels, {"a": run, "b": part}, "AP", queries="intersection")
    assert found.difference("b").verdict == "identical"


# ---- ids that partly differ, and chunks

CHUNKS = ["{}_chunk_{}", "{}-chunk-{}", "{}::{}", "{}.md::{}", "{}#{}", "{}-{}"]


@pytest.mark.parametrize("name", CHUNKS)
def test_the_ids_of_chunks_are_recognized_by_their_documents(good, name):
    qrels, run = good
    rng = random.Random(3)
    bad = changed(run, lambda q, d, s: (q, name.format(d, rng.randrange(1, 40)), s))
    found = evaluate(qrels, bad, "nDCG@10").input_findings[0]
    assert found.code == "P103"
    ours, theirs = re.search("the run has '(.*?)', the judgments have '(.*?)'", found.message).groups()
    assert ours.startswith(theirs)
    assert f"without the chunk number, such as '{ours.removeprefix(theirs)}'" in found.message
    assert "of documents instead of chunks" in found.fix


def test_a_few_documents_in_common_by_chance_give_no_finding():
    qrels = {f"q{n}": {f"{n + 1}": 1, f"{n + 100}": 1} for n in range(50)}
    run = {q: {f"x{n}z_{d}": 1.0 - d / 99 for d in range(2)} for n, q in enumerate(qrels)}
    run["q0"]["x_1"] = run["q1"]["x_2"] = 0.5
    assert [one.code for one in evaluate(qrels, run, "nDCG@10").input_findings] != ["P103"]


@pytest.mark.parametrize("prefix", ["x/", "doc_"])
@pytest.mark.parametrize("percent", [30, 50])
def test_a_prefix_of_a_part_of_the_ids_is_found(good, prefix, percent):
    qrels, run = good
    other = random.Random(5)
    parts = {d: f"{prefix}{d}" for q in run for d in run[q]}
    parts = {d: name for d, name in parts.items() if other.random() < percent / 100}
    bad = changed(run, lambda q, d, s: (q, parts.get(d, d), s))
    (found,) = evaluate(qrels, bad, "nDCG@10").input_findings
    assert (found.code, found.severity) == ("P103", "error")
    assert f"without the prefix '{prefix}'" in found.message
    problem = check(qrels, bad).of("P103")[0]
    assert f"without the prefix '{prefix}'" in problem.message


@pytest.mark.parametrize("name", ["{}.txt", "{:0>6}", "{}#3"])
def test_half_of_the_ids_written_differently_are_found_on_either_side(good, name):
    qrels, run = good
    other = random.Random(5)
    half = {
        d: name.format(d)
        for d in sorted({d for q in run for d in run[q]} | {d for q in qrels for d in qrels[q]})
        if other.random() < 0.5
    }
    bad = changed(run, lambda q, d, s: (q, half.get(d, d), s))
    judged = {q: {half.get(d, d): g for d, g in qrels[q].items()} for q in qrels}
    for truth, found in ((qrels, bad), (judged, run)):
        findings = evaluate(truth, found, "nDCG@10").input_findings
        assert [(one.code, one.severity) for one in findings] == [("P103", "error")]
    assert evaluate(judged, bad, "nDCG@10").input_findings == ()


# ---- scores in ascending order

UP, DOWN = [("d1", 0.1), ("d2", 0.5), ("d3", 0.9)], [("d1", 0.9), ("d2", 0.5), ("d3", 0.1)]


def order_found(run):
    judged = {f"q{n}": {"d1": 1} for n in range(8)}
    return [one for one in evaluate(judged, run, "nDCG@10").input_findings if one.code == "R104"]


def with_distances(run, k=10):
    """Return the first documents of each query, best first, with distances as scores."""
    for query in run:
        best = sorted(run[query].items(), key=lambda pair: -pair[1])[:k]
        yield query, [(doc, 60.0 - score) for doc, score in best]


def as_file(run, path):
    rows = (
        f"{q} Q0 {doc} {place} {score!r} t\n"
        for q, pairs in with_distances(run)
        for place, (doc, score) in enumerate(pairs, start=1)
    )
    path.write_text("".join(rows), encoding="utf-8")
    return path


def as_frame(run):
    rows = [(q, doc, score) for q, pairs in with_distances(run) for doc, score in pairs]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])


@pytest.mark.parametrize("form", ["file", "dicts", "frame", "lists", "blocks"])
def test_distances_of_ten_documents_get_no_verdict(good, tmp_path, form):
    qrels, run = good
    bad = {
        "file": lambda: as_file(run, tmp_path / "bad.run"),
        "dicts": lambda: {q: dict(pairs) for q, pairs in with_distances(run)},
        "frame": lambda: as_frame(run),
        "lists": lambda: dict(with_distances(run)),
        "blocks": lambda: ({q: dict(pairs)} for q, pairs in with_distances(run)),
    }[form]
    (found,) = evaluate(qrels, bad(), "nDCG@10").input_findings
    assert (found.code, found.severity) == ("R104", "error")
    assert "look like distances" in found.message
    # Other forms are converted to a run first.
    if form not in {"file", "dicts"}:
        return
    assert compare(qrels, {"good": run, "bad": bad()}, draws=10).withheld
    held = gate(qrels, bad(), baseline=Baseline.from_run(qrels, run))
    assert held.verdict == "NOT COMPARABLE"
    assert diagnose(qrels, bad()).withheld
    assert [one.code for _, one in diff(qrels, run, bad()).findings] == ["R104"]


def test_dicts_in_ascending_order_of_scores_are_not_reported_as_distances(good):
    qrels, run = good
    sort = {q: dict(sorted(run[q].items(), key=lambda pair: pair[1])[-10:]) for q in run}
    assert evaluate(qrels, sort, "nDCG@10").input_findings == ()


def test_lists_in_ascending_order_are_named_even_for_few_queries():
    run = {"q1": UP, "q2": UP, "q3": [("d1", 0.5)], "q4": []}
    (found,) = order_found(run)
    assert found.severity == "warning"
    assert "they increase in input order in 2 of 2 rankings" in found.message
    assert order_found(Run.of(run)) == [found]
    assert order_found(iter([Run.of({"q1": UP}), Run.of({"q2": UP})])) == [found]
    assert Run.of(run).table.orders()[:2] == (2, 2)


def test_lists_in_ascending_order_get_no_verdict_with_enough_queries():
    (found,) = order_found({f"q{n}": UP for n in range(8)})
    assert found.severity == "error"
    equal = [("d1", 0.1), ("d2", 0.5), ("d3", 0.5)]
    assert [one.severity for one in order_found({f"q{n}": equal for n in range(8)})] == ["error"]


@pytest.mark.parametrize(
    "run",
    [
        {"q1": DOWN, "q2": DOWN},
        {"q1": UP, "q2": DOWN},
        {"q1": [("d1", 0.5)]},
        {"q1": [("d1", 0.5), ("d2", 0.5)]},
        {"q1": dict(UP), "q2": dict(UP)},
        {"q1": UP, "q2": dict(UP)},
        {"q1": ["d1", "d2"]},
        {"q1": []},
        {"q1": pd.Series([0.1, 0.9], index=["d1", "d2"])},
        {f"q{n}": dict(UP if n else DOWN) for n in range(8)},
        {f"q{n}": dict(UP[:2]) for n in range(8)},
    ],
    ids=str,
)
def test_rankings_in_another_order_have_no_finding(run):
    assert order_found(run) == []


# ---- collections and benchmarks


def test_texts_whose_ids_are_written_differently_are_reported_before_causes():
    texts = Collection.read(QRELS.parent)
    other = {f"docs/{name}": doc.text for name, doc in texts.documents.items()}
    asked = {name: query.text for name, query in texts.queries.items()}
    found = diagnose(read_qrels(QRELS), read_run(RUN), Collection.of(other, asked))
    (finding,) = found.withheld
    assert finding.code == "T104"
    assert "match the collection only without the prefix 'docs/'" in finding.message


QUERIES = {f"q{n}": f"word{n}" for n in range(20)}
DOCUMENTS = {f"d{n}": f"text of word{n % 20}" for n in range(400)}
JUDGED = {f"q{n}": {f"d{n}": 1} for n in range(20)}


def ranking(query, k, *, close=True):
    n = int(query.removeprefix("word"))
    ids = [f"d{(n if close else n + 1) + 20 * step}" for step in range(k)]
    return [(doc, float(k - place)) for place, doc in enumerate(ids)]


RETRIEVERS = {
    "R104": lambda query: [(doc, -score) for doc, score in ranking(query, 10)],
    "P103": lambda query: [(f"file/{doc}", score) for doc, score in ranking(query, 10)],
    "T104": lambda query: [(f"{query} {n}", -float(n)) for n in range(10)],
    "P104": lambda query: ranking(query, 10) if query.endswith("0") else [],
}


@pytest.mark.parametrize("code", RETRIEVERS)
def test_a_faulty_retriever_gets_no_verdict_in_a_benchmark(tmp_path, code):
    bench = Benchmark(Collection.of(DOCUMENTS, QUERIES), JUDGED, k=10, store=tmp_path)
    bench.run("good", lambda query: ranking(query, 10))
    bench.run("bad", RETRIEVERS[code])
    bench.run("other", lambda query: ranking(query, 10, close=False))
    found = bench.compare(["RR"])
    assert code in {one.code for run, one in found.comparison.withheld if run == "bad"}
    assert {run for run, _ in found.comparison.withheld} == {"bad"}
    assert found.comparison.difference("bad").verdict == "withheld"
    assert found.comparison.difference("other").verdict == "worse"


# ---- the command line


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["evaluate", "QRELS", "BAD"], 0),
        (["compare", "QRELS", "GOOD", "BAD"], 0),
        (["diagnose", "QRELS", "BAD"], 0),
        (["diff", "QRELS", "GOOD", "BAD"], 0),
        (["gate", "QRELS", "BAD", "--baseline", "BASE"], 4),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_commands_name_the_fault_and_the_command_that_fixes_it(tmp_path, words, code):
    run = read_run(RUN)
    paths = {name: str(tmp_path / name.lower()) for name in ("QRELS", "GOOD", "BAD", "BASE")}
    for name, prefix in (("GOOD", ""), ("BAD", "docs/")):
        rows = (f"{q} Q0 {prefix}{d} 1 {s} t\n" for q in run for d, s in run[q].items())
        (tmp_path / name.lower()).write_text("".join(rows), encoding="utf-8")
    qrels = read_qrels(QRELS)
    rows = (f"{q} 0 {d} {g:g}\n" for q in qrels for d, g in qrels[q].items())
    (tmp_path / "qrels").write_text("".join(rows), encoding="utf-8")
    Baseline.from_run(qrels, run).write(paths["BASE"])
    done = subprocess.run(
        [sys.executable, "-m", "rankgauge", *(paths.get(word, word) for word in words)],
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert done.returncode == code, done.stderr
    shown = " ".join(done.stdout.split())
    assert "without the prefix 'docs/'" in shown
    assert f"rankgauge check {paths['QRELS']} {paths['BAD']} --fix fixed" in shown
    assert not {"better", "worse", "FAIL", "PASS"} & set(shown.replace(":", " ").split())


def test_only_ids_that_are_all_whole_numbers_are_shifted():
    judged = {(b"1", b"2"), (b"q1", b"2")}
    mixed = [(b"q1", b"1"), (b"2", b"d2")]
    assert not list(shifted_matches(mixed, judged.__contains__))
    documents = [(b"q1", b"1"), (b"2", b"2")]
    assert list(shifted_matches(documents, judged.__contains__)) == [
        (1, "document", "higher"),
        (0, "document", "lower"),
    ]
