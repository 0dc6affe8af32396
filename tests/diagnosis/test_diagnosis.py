"""diagnose() and Diagnosis: results, invariants, and errors."""

import gzip
import json
import math
import pickle
import random
from statistics import fmean

import jsonschema
import numpy as np
import pytest
from hypothesis import given, strategies as st
from schemas import strict
from scipy import stats as scipy_stats

import rankgauge
from rankgauge import (
    Collection,
    InputError,
    MismatchError,
    Run,
    UnknownName,
    diagnose,
    evaluate,
    sample_path,
    write_run,
)
from rankgauge.core.findings import Effect, Evidence, Location
from rankgauge.diagnosis.quality import difficulty
from rankgauge.diagnosis.ranked_queries import rankings_of
from rankgauge.formats import fast_trec

FOLDER = sample_path("qrels.txt").parent
SAMPLE = diagnose(
    FOLDER / "qrels.txt",
    FOLDER / "runs/bm25.run",
    Collection.read(FOLDER),
    group_by="type",
    also=FOLDER / "runs/keyword.run",
)
SCHEMA = strict("diagnosis-1")


def test_the_worst_queries_have_the_lowest_values_and_a_cause():
    ev = evaluate(FOLDER / "qrels.txt", FOLDER / "runs/bm25.run", "nDCG@10")
    values = {q: ev.value(q, "nDCG@10") for q in ev.query_ids}
    assert len(SAMPLE.worst) == 5
    assert [one.value for one in SAMPLE.diagnoses] == sorted(one.value for one in SAMPLE.diagnoses)
    assert all(one.value == values[one.query_id] for one in SAMPLE.diagnoses)
    perfect = {q for q, value in values.items() if value == 1}
    assert perfect.isdisjoint(one.query_id for one in SAMPLE.diagnoses)
    assert {q for q, value in values.items() if value < 1 - 1e-9} <= {one.query_id for one in SAMPLE.diagnoses}


def test_the_sample_has_the_gaps_of_its_description():
    """Questions that share no content word, or hardly any, with the page that answers them."""
    for query in ("q03", "q07", "q16"):
        assert SAMPLE.of(query).primary == "vocabulary gap"
    known = {one.query_id for one in SAMPLE.diagnoses if "vocabulary gap" in one.causes}
    assert "q11" in known


@pytest.mark.parametrize(
    ("run", "kind", "said"),
    [
        ({"q": ["a", "x", "y", "z", "w"]}, "noisy context", "P@5 cannot exceed 0.20"),
        ({"r": ["a", "b", "c", "d", "e"]}, "missing information", "R@5 cannot exceed 0.50"),
        ({"r": ["x", "y", "z", "w", "v", "a"]}, "both are low", "a perfect reranker"),
        ({"s": ["a", "b", "c", "d", "e"]}, "both are high", "both are high"),
    ],
)
def test_precision_and_recall_are_read_together(run, kind, said):
    ten = dict.fromkeys("abcdefghij", 1)
    qrels = {"q": {"a": 1}, "r": ten, "s": dict.fromkeys("abcde", 1)}
    (query,) = run
    found = diagnose({query: qrels[query]}, run)
    assert found.precision_recall.kind == kind
    assert any(said in sentence for sentence in found.precision_recall.sentences)


def test_another_cut_off_is_offered_with_its_effect():
    found = diagnose({"q": {"a": 1}}, {"q": ["a", "x", "y", "z", "w"]})
    assert found.precision_recall.sentences[-1] == (
        "k = 3 instead of 5 would raise precision from 0.20 to 0.33, and leave recall at 1.00"
    )
    ten = dict.fromkeys("abcdefghij", 1)
    found = diagnose({"q": ten}, {"q": [*"abcde", "x", "f", *"ywvu"]})
    assert found.precision_recall.sentences[-1] == (
        "k = 10 instead of 5 would raise recall from 0.50 to 0.60, and precision would fall from 1.00 to 0.60"
    )


def test_suggested_fixes_with_evidence_come_first_in_their_usual_order():
    assert [(fix.name, bool(fix.evidence)) for fix in SAMPLE.fixes] == [
        ("embedding model", True),
        ("hybrid search", True),
        ("reranking", True),
        ("chunking", False),
        ("metadata filter", False),
    ]


def test_documents_found_by_the_other_run_are_counted():
    other = rankgauge.data.ranked(Run.of(FOLDER / "runs/keyword.run"))
    missed = [(one.query_id, doc.doc_id) for one in SAMPLE.diagnoses for doc in one.missed]
    at_5 = sum(doc in list(other[query])[:5] for query, doc in missed)
    at_100 = sum(doc in list(other[query])[:100] for query, doc in missed)
    hybrid = next(fix for fix in SAMPLE.fixes if fix.name == "hybrid search")
    assert (
        f"of {len(missed)} missed documents, keyword ranks {at_5} in the top 5 and {at_100} in the top 100"
    ) in hybrid.evidence


def test_slices_have_the_mean_and_the_t_interval_of_their_queries():
    ev = evaluate(FOLDER / "qrels.txt", FOLDER / "runs/bm25.run", "nDCG@10")
    queries = Collection.read(FOLDER).queries
    values = [ev.value(q, "nDCG@10") for q in ev.query_ids if queries[q].fields["type"] == "how-to"]
    found = next(one for one in SAMPLE.slices if one.label == "how-to")
    assert (found.by, found.queries) == ("type", len(values))
    assert found.mean == pytest.approx(fmean(values))
    low, high = scipy_stats.t.interval(0.95, len(values) - 1, loc=fmean(values), scale=scipy_stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    few = next(one for one in SAMPLE.slices if one.label == "problem")
    assert (few.queries, few.low, few.high) == (7, None, None)
    for by in {one.by for one in SAMPLE.slices}:
        assert sum(one.queries for one in SAMPLE.slices if one.by == by) == 30


def test_intervals_of_slices_are_within_the_bounds_of_the_measure():
    run = {f"q{n}": ["d"] if n else ["x"] for n in range(12)}
    [found] = diagnose({query: {"d": 1} for query in run}, run, measure="RR").slices
    values = [float(query != "q0") for query in run]
    _, high = scipy_stats.t.interval(0.95, 11, loc=fmean(values), scale=scipy_stats.sem(values))
    assert high > 1
    assert found.high == 1
    assert found.low == rankgauge.RR.mean_interval(np.array(values))[0]


def test_difficulty_counts_values_by_tenths_and_queries_with_nothing():
    qrels = {"a": {"d": 1}, "b": {"d": 1}, "c": {"d": 1}, "e": {"d": 0}, "f": {"d": 1, "g": 1}}
    run = {"a": ["d"], "b": ["x", "y", "d"], "c": ["x"], "e": ["d"], "f": ["d"]}
    found = diagnose(qrels, run, measure="R@5", k=2).difficulty
    assert found.counts == (1, 0, 0, 0, 0, 1, 0, 0, 0, 2)
    assert (found.undefined, found.nothing_at_k, found.nothing_at_all) == (1, 2, 1)


def test_json_is_by_the_schema_and_the_same_each_time():
    text = SAMPLE.to_json()
    jsonschema.validate(json.loads(text), SCHEMA)
    assert pickle.loads(pickle.dumps(SAMPLE)) == SAMPLE
    again = diagnose(
        FOLDER / "qrels.txt",
        FOLDER / "runs/bm25.run",
        Collection.read(FOLDER),
        group_by="type",
        also=FOLDER / "runs/keyword.run",
    )
    assert again.to_json() == text


# ---- invariants

documents = st.sampled_from([f"d{n}" for n in range(9)])
judgments = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(documents, st.integers(-1, 3), min_size=1, max_size=6),
    min_size=1,
)
runs = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(documents, st.integers(-5, 5).map(float), max_size=8),
    min_size=1,
)
TEXTS = {f"d{n}": " ".join(f"t{n % m}" for m in range(1, 9)) for n in range(8)}
ASKED = {"q1": "t0 t1 t2", "q2": "t7", "q3": "the"}


def possible(qrels, run) -> bool:
    return bool(qrels.keys() & run.keys()) and any(grade >= 1 for grades in qrels.values() for grade in grades.values())


def test_a_document_at_the_top_pushes_no_better_one_down():
    qrels = {"q3": {"d0": 0}, "q2": {"d0": 1, "d1": 2}}
    run = {"q2": {"d0": 0.0, "d1": 0.0, "d2": 0.0}}
    found = diagnose(qrels, run, Collection.of(TEXTS, ASKED), k=2, depth=4)
    (gain,) = (one for one in found.gains if one.kind == "as others")
    assert gain.means["nDCG@2"] >= found.now["nDCG@2"]


@pytest.mark.slow
@given(judgments, runs)
def test_any_judgments_and_run_are_diagnosed_and_bounds_hold(qrels, run):
    if not possible(qrels, run):
        with pytest.raises((InputError, MismatchError)):
            diagnose(qrels, run, Collection.of(TEXTS, ASKED), k=2)
        return
    found = diagnose(qrels, run, Collection.of(TEXTS, ASKED), k=2, depth=4)
    jsonschema.validate(json.loads(found.to_json()), SCHEMA)
    for one in found.qualities:
        assert one.mean <= one.attainable + 1e-9
    for one in found.gains:
        if one.kind in {"at most", "if retrieved"}:
            for name, value in one.means.items():
                assert value >= found.now[name] - 1e-9
    for one in found.diagnoses:
        assert one.causes or not one.missed
        for doc in one.missed:
            located = {"rankings cut", "not retrieved", "ranked below k"} & set(doc.causes)
            assert len(located) == 1


@given(judgments, runs, st.permutations([f"d{n}" for n in range(9)]))
def test_names_of_documents_and_the_order_of_queries_change_nothing(qrels, run, names):
    if not possible(qrels, run):
        return
    # Distinct scores, since ties are broken by id.
    run = {q: {d: s + 0.01 * n for n, (d, s) in enumerate(docs.items())} for q, docs in run.items()}
    run = {q: docs if len(set(docs.values())) == len(docs) else {} for q, docs in run.items()}
    if not any(run.values()):
        return
    new = dict(zip([f"d{n}" for n in range(9)], names, strict=True))
    other_qrels = {q: {new[d]: g for d, g in docs.items()} for q, docs in reversed(list(qrels.items()))}
    other_run = {q: {new[d]: s for d, s in docs.items()} for q, docs in reversed(list(run.items()))}
    texts = {new[d]: text for d, text in TEXTS.items()}
    one = diagnose(qrels, run, Collection.of(TEXTS, ASKED), k=2)
    other = diagnose(other_qrels, other_run, Collection.of(texts, ASKED), k=2)
    assert [(f.query_id, f.value, f.causes) for f in one.diagnoses] == [
        (f.query_id, f.value, f.causes) for f in other.diagnoses
    ]
    assert [p.means for p in one.gains] == [pytest.approx(p.means) for p in other.gains]
    assert (one.totals, one.difficulty) == (other.totals, other.difficulty)


@given(judgments, runs, st.integers(-100, 100))
def test_shifting_all_scores_changes_nothing_but_the_thresholds(qrels, run, shift):
    if not possible(qrels, run):
        return
    shifted = {q: {d: s + shift for d, s in docs.items()} for q, docs in run.items()}
    one, other = diagnose(qrels, run, k=2), diagnose(qrels, shifted, k=2)
    assert (one.diagnoses, one.gains, one.cutoffs) == (other.diagnoses, other.gains, other.cutoffs)
    assert [t.f for t in one.sweep.thresholds] == [t.f for t in other.sweep.thresholds]


# ---- errors

Q, R = {"q": {"d": 1}}, {"q": ["x", "d"]}


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        ({"k": 0}, InputError, "k=0 is not valid"),
        ({"k": 2.5}, InputError, "k=2.5 is not valid"),
        ({"k": True}, InputError, "k=True is not valid"),
        ({"worst": -1}, InputError, "worst=-1"),
        ({"depth": 0}, InputError, "depth=0"),
        ({"rel": 0}, InputError, "rel=0"),
        ({"rel": math.nan}, InputError, "rel=nan"),
        ({"rel": 4}, InputError, "no document has grade 4 or more"),
        ({"measure": "nDGC@10"}, UnknownName, "did you mean"),
        ({"measure": "FirstRel"}, UnknownName, "not better when higher"),
        ({"group_by": "type"}, UnknownName, "no query has a field 'type'"),
        ({"also": {"other": ["d"]}}, MismatchError, "no query of 'run' is judged"),
        ({"collection": {"d": "text"}}, InputError, "got dict for the collection"),
        ({"bands": 3}, InputError, "got 3 for the bands"),
    ],
)
def test_impossible_arguments_are_refused(words, error, said):
    with pytest.raises(error, match=said):
        diagnose(Q, R, **words)


def test_judgments_and_run_without_a_query_in_common_are_refused():
    with pytest.raises(MismatchError):
        diagnose(Q, {"other": ["d"]})


@pytest.mark.parametrize("run", [{"q": []}, {"q": ["d"]}, {"q": {"d": 1.0, "x": 1.0}}, {"q": {7: 1.0}}])
def test_small_runs_are_diagnosed(run):
    found = diagnose(Q, run, Collection.of({"d": ""}, {"q": ""}))
    assert json.loads(found.to_json())["queries"] == 1


def test_unprintable_ids_are_diagnosed(tmp_path):
    (tmp_path / "qrels").write_bytes(b"q 0 d\xff 1\nq 0 e 0\n")
    (tmp_path / "run").write_bytes(b"q Q0 e 1 2 x\nq Q0 d\xff 2 1 x\n")
    found = diagnose(tmp_path / "qrels", tmp_path / "run", k=1)
    assert found.now["nDCG@10"] == pytest.approx(1 / math.log2(3))
    assert found.gains[-1].means["nDCG@10"] == pytest.approx(1.0)
    assert json.loads(found.to_json())


def test_a_relevance_level_makes_lower_grades_not_relevant():
    found = diagnose({"q": {"a": 1, "b": 2}}, {"q": ["a", "x", "b"]}, k=1, rel=2)
    assert [doc.doc_id for doc in found.of("q").missed] == ["b"]
    assert {str(one.measure) for one in found.qualities} >= {"P(rel=2)@1", "RR(rel=2)"}
    assert found.precision_recall.kind == "both are low"


# ---- real collections


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cranfield", "cisi"])
def test_ignored_terms_are_a_fault_of_dense_runs_far_more_than_of_keyword_runs(data_folder, name):
    """The rule detects a property of the retriever; it was not tuned on these runs."""
    folder = data_folder / name
    texts = Collection.read(folder)
    counts = {}
    for run in ("minilm-l6-v2-cosine", "bm25-lucene-k0.9-b0.4-stem"):
        found = diagnose(folder / "trec/qrels.txt", folder / f"runs/{run}.run.gz", texts)
        counts[run] = {total.cause.name: total.documents for total in found.totals}
    dense, keyword = counts.values()
    assert dense["ignored query terms"] >= 3 * keyword["ignored query terms"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("run", ["minilm-l6-v2-cosine", "bm25-lucene-k0.9-b0.4-stem"])
def test_means_now_are_those_of_trec_eval(data_folder, run):
    folder = data_folder / "cranfield"
    found = diagnose(folder / "trec/qrels.txt", folder / f"runs/{run}.run.gz")
    with gzip.open(folder / f"expected/{run}.json.gz", "rt", encoding="utf-8") as file:
        expected = json.load(file)
    names = {"P@5": "P@5", "R@5": "R@5", "nDCG@10": "nDCG@10"}
    for ours, theirs in names.items():
        assert found.now[ours] == pytest.approx(expected[theirs]["mean_all_judged"], abs=1e-9)
    assert np.isfinite(list(found.now.values())).all()


def test_a_smaller_k_is_suggested_only_if_it_raises_precision():
    late = diagnose({"q": {"d": 1, "e": 1}}, {"q": ["x", "y", "z", "d", "e"]})
    assert not any("instead of 5 would raise precision" in text for text in late.precision_recall.sentences)
    early = diagnose({"q": {"d": 1, "e": 1}}, {"q": ["d", "x", "e", "y", "z"]})
    assert (
        "k = 3 instead of 5 would raise precision from 0.40 to 0.67, and leave recall at 1.00"
    ) in early.precision_recall.sentences


def test_a_threshold_is_suggested_only_if_it_raises_precision():
    # The best F1 excludes a bad document of one query and the only, good document of the other.
    qrels = {"a": {f"r{n}": 1 for n in range(20)}, "b": {"r1": 1, "r2": 1, "r3": 1}}
    run = {"a": {"r1": 1.0}, "b": {"r1": 9.0, "r2": 7.0, "x": 6.0, "r3": 2.0, "y": 1.0}}
    found = diagnose(qrels, run)
    whole, best = found.sweep.thresholds[0], found.sweep.best
    assert best.score == 2
    assert (whole.precision, best.precision) == (pytest.approx(0.8), pytest.approx(0.75))
    assert not any("threshold" in text for text in found.precision_recall.sentences)
    assert any("a threshold of 1.292" in text for text in SAMPLE.precision_recall.sentences)


def test_recall_is_reported_at_four_times_k():
    assert (
        "k = 20 instead of 5 would raise recall from 0.57 to 0.71, and precision would fall from 0.28 to 0.09"
    ) in SAMPLE.precision_recall.sentences


def test_a_reranker_is_only_given_what_it_reaches():
    run = ["x1", "x2", "d", *(f"y{n}" for n in range(9)), "e"]
    found = diagnose({"q": {"d": 1, "e": 1}}, {"q": run}, k=2, depth=12)
    fix = next(fix for fix in found.fixes if fix.name == "reranking")
    assert (fix.queries, fix.documents) == (1, 1)
    assert fix.evidence[0] == "1 missed document in 1 query at ranks 3 to 12"


def test_a_query_that_misses_is_found_though_its_value_is_the_best():
    found = diagnose({"q": {"d": 1, "e": 1}}, {"q": ["d", "x", "e"]}, measure="P@1", k=2)
    assert found.of("q").value == found.of("q").attainable == 1
    assert [doc.doc_id for doc in found.of("q").missed] == ["e"]


def test_undefined_values_come_last():
    qrels = {"a": {"d": 1}, "b": {"d": 2, "e": 2}}
    run = {"a": ["x", "d"], "b": ["d", "x", "e"]}
    found = diagnose(qrels, run, measure="R(rel=2)@2", k=1)
    assert [one.query_id for one in found.diagnoses] == ["b", "a"]
    assert math.isnan(found.diagnoses[1].value)


def test_a_sum_rounded_to_a_tenth_is_in_the_bin_of_that_tenth():
    spread = difficulty((), {"q": 0.7999999999999999, "r": 1.0}, rankgauge.parse("P@5"), 5)
    assert spread.counts == (0, 0, 0, 0, 0, 0, 0, 0, 1, 1)


def test_a_place_that_is_left_open_is_ill_spent():
    found = diagnose({"q": {"d": 1, "e": 1}}, {"q": ["d"]}, k=2)
    assert [doc.doc_id for doc in found.of("q").missed] == ["e"]


def test_documents_below_the_relevance_level_are_part_of_the_best_ranking():
    found = diagnose({"q": {"d": 2, "e": 1}}, {"q": ["e", "d"]}, rel=2)
    assert found.of("q").attainable == pytest.approx(1)


def test_drift_is_the_third_failure_mode_beside_precision_and_recall():
    drifted = rankgauge.Finding("", "warning", "drift: missing", "means mislead", "add questions")
    qrels, run = {"q": {"d": 1}, "r": {"e": 1}}, {"q": ["d"], "r": ["e"]}
    plain, found = (rankgauge.diagnose(qrels, run, k=1, drift=each) for each in (None, drifted))
    assert found.drift == drifted
    assert found.precision_recall.sentences[:-1] == plain.precision_recall.sentences
    assert "the evaluation set differs" in found.precision_recall.sentences[-1]
    assert "refresh the evaluation set" in found.precision_recall.sentences[-1]
    assert found.summary() == f"{plain.summary()}; drift: missing; add questions"
    assert "the evaluation set differs from users' questions" in str(found)
    assert found.to_dict()["drift"] == drifted.to_dict()
    jsonschema.validate(found.to_dict(), SCHEMA)
    unknown = rankgauge.Finding("", "info", "drift: cannot tell")
    told = rankgauge.diagnose(qrels, run, k=1, drift=unknown)
    assert told.summary() == plain.summary()
    assert told.precision_recall.sentences[-1] == "drift: cannot tell"


def test_the_evidence_of_drift_follows_the_schema():
    evidence = Evidence(
        "log",
        3,
        10,
        "query",
        (Location("log", query="q"),),
        (Effect("run", "RR", math.nan, 0.5, "weighted by traffic"),),
        ("fees",),
    )
    drifted = rankgauge.Finding("", "info", "drift: mixed", evidence=evidence)
    found = diagnose({"q": {"d": 1}}, {"q": ["d"]}, drift=drifted).to_dict()
    jsonschema.validate(found, SCHEMA)
    assert found["drift"]["evidence"]["effects"][0]["before"] is None


def test_a_drift_argument_of_the_wrong_type_is_refused():
    with pytest.raises(rankgauge.InputError, match="got str for drift"):
        rankgauge.diagnose({"q": {"d": 1}}, {"q": ["d"]}, drift="drift.json")


@pytest.mark.parametrize("more", ["", "also", "collection"])
@pytest.mark.parametrize("words", [{}, {"k": 2, "measure": "SetP"}, {"depth": 15, "rel": 2}])
def test_ids_below_the_cut_off_and_blocks_change_no_diagnosis(words, more, tmp_path, monkeypatch):
    dice = random.Random(2)
    docs = [f"d{n}" for n in range(60)]
    qrels = {f"q{q}": {doc: dice.choice((-1, 0, 1, 1, 2)) for doc in dice.sample(docs, 8)} for q in range(40)}
    run = {
        query: {doc: dice.choice((dice.random(), 0.5)) for doc in dice.sample(docs, 25)}
        for query in [*qrels, "unknown"]
        if query != "q7"
    }
    other = {query: dict.fromkeys(dice.sample(docs, 30), 1) for query in [*qrels][3:]}
    paths = [tmp_path / "a.run", tmp_path / "b.run"]
    for path, held in zip(paths, (run, other), strict=True):
        write_run(Run.of(held), path)
    collection = Collection.of(
        {doc: f"the words {dice.randrange(4)} {dice.randrange(9)}" for doc in docs},
        {query: f"words {dice.randrange(9)}" for query in qrels},
    )
    given = collection if more == "collection" else None
    second = ({"also": paths[1]}, {"also": Run.of(other, name="b")}) if more == "also" else ({}, {})
    with monkeypatch.context() as patch:
        patch.setattr(fast_trec, "_BLOCK", 2500)
        patch.setattr(fast_trec, "_PIECE", 500)
        found = diagnose(qrels, paths[0], given, **words, **second[0])
    monkeypatch.setattr(
        "rankgauge.diagnosis.diagnosis.rankings_of",
        lambda runs, judged, _: rankings_of(runs, judged),  # all documents by id
    )
    whole = diagnose(qrels, Run.of(run, name="a"), given, **words, **second[1])
    assert found.to_dict() == whole.to_dict()
