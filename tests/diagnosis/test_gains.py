"""Potential gains of fixes, compared with slow counts or pytrec_eval."""

import math
from statistics import fmean

import numpy as np
import pytest
import pytrec_eval

from rankgauge import Collection, Qrels, Run, diagnose, evaluate
from rankgauge.data import ranked
from rankgauge.diagnosis.gains import Sweep, Threshold


def made(seed: int = 3, queries: int = 12) -> tuple[dict, dict, dict]:
    """Return judgments, a run with distinct scores, and another run."""
    rng = np.random.default_rng(seed)
    qrels: dict[str, dict[str, int]] = {}
    runs: tuple[dict, dict] = ({}, {})
    for q in range(queries):
        docs = [f"d{n}" for n in range(40)]
        qrels[f"q{q}"] = {d: int(rng.choice([0, 0, 1, 2])) for d in rng.choice(docs, 14, replace=False)}
        qrels[f"q{q}"]["d0"] = 1
        for run in runs:
            found = rng.choice(docs, 25, replace=False)
            run[f"q{q}"] = {d: float(s) for d, s in zip(found, rng.random(25), strict=True)}
    return qrels, *runs


QRELS, RUN, OTHER = made()
FOUND = diagnose(QRELS, RUN, also=Run.of(OTHER, name="other"), k=5, depth=8)


def order(run: dict) -> dict[str, list[str]]:
    return {q: sorted(docs, key=lambda d, docs=docs: -docs[d]) for q, docs in run.items()}


RANKING, OTHERS = order(RUN), order(OTHER)


def grade(query: str, doc: str) -> int:
    return QRELS[query].get(doc, 0)


def oracle(rankings: dict[str, list[str]]) -> dict[str, float]:
    """Return means by pytrec_eval."""
    asked = {"ndcg_cut.10", "P.5", "recall.5"}
    run = {q: {d: 1000.0 - n for n, d in enumerate(docs)} for q, docs in rankings.items()}
    values = pytrec_eval.RelevanceEvaluator(QRELS, asked).evaluate(run)
    names = {"nDCG@10": "ndcg_cut_10", "P@5": "P_5", "R@5": "recall_5"}
    return {name: fmean(v[theirs] for v in values.values()) for name, theirs in names.items()}


def by_grade(query: str, docs: list[str]) -> list[str]:
    return [d for g in (2, 1, 0) for d in docs if grade(query, d) == g]


def potential(what: str, found=FOUND):
    (one,) = (one for one in found.gains if one.what.endswith(what))
    return one


def close(means, theirs) -> None:
    assert {name: means[name] for name in theirs} == pytest.approx(theirs, abs=1e-12)


def test_the_means_now_are_those_of_the_run():
    close(FOUND.now, oracle(RANKING))


def test_a_perfect_reranker_puts_the_first_documents_in_the_order_of_their_grades():
    reranked = {q: by_grade(q, docs[:8]) + docs[8:] for q, docs in RANKING.items()}
    one = potential("a perfect reranker of the first 8")
    close(one.means, oracle(reranked))
    assert (one.kind, one.fix) == ("at most", "reranking")


def test_both_runs_together_are_reranked_as_one():
    union = {}
    for q, docs in RANKING.items():
        pool = list(dict.fromkeys(docs[:8] + OTHERS[q][:8]))
        union[q] = by_grade(q, pool) + [d for d in docs if d not in pool]
    close(potential("of both runs").means, oracle(union))


def test_hybrid_search_is_not_given_what_a_reranker_of_the_run_alone_reaches():
    alone = potential("a perfect reranker of the first 8").means["nDCG@10"]
    hybrid = next(fix for fix in FOUND.fixes if fix.name == "hybrid search")
    (told,) = (text for text in hybrid.evidence if "both runs" in text)
    assert told.endswith(f"(at most; of this run alone to {alone:.2f})")


def test_no_fusion_of_both_runs_gains_more_than_the_best_order_of_all_that_they_retrieved(data_folder):
    runs = data_folder / "cranfield/runs"
    qrels = Qrels.of(data_folder / "cranfield/trec/qrels.txt")
    found = diagnose(
        qrels,
        runs / "bm25-lucene-k0.9-b0.4-stem.run.gz",
        Collection.read(data_folder / "cranfield"),
        also=runs / "minilm-l6-v2-cosine.run.gz",
    )
    fused = evaluate(qrels, runs / "rrf-bm25-minilm-k60.run.gz", "nDCG@10").mean()["nDCG@10"]
    gains = [gain for gain in found.gains if gain.fix == "hybrid search"]
    assert {gain.kind for gain in gains} == {"at most"}
    assert all(gain.means["nDCG@10"] >= fused for gain in gains if gain.kind == "at most")
    everything = gains[-1]
    assert everything.what == "a perfect reranker of everything that either run retrieved"
    both = [ranked(Run.of(runs / f"{name}.run.gz")) for name in ("bm25-lucene-k0.9-b0.4-stem", "minilm-l6-v2-cosine")]
    best = {
        q: sorted({**both[0].get(q, {}), **both[1].get(q, {})}, key=lambda d, q=q: -qrels[q].get(d, 0))
        for q in qrels.query_ids
    }
    assert everything.means["nDCG@10"] == evaluate(qrels, best, "nDCG@10").mean()["nDCG@10"]


def test_a_reranker_of_hardly_more_documents_is_left_out():
    def depths(length: int) -> list[str]:
        run = {"q": [f"x{n}" for n in range(length - 1)] + ["d"]}
        return [gain.what for gain in diagnose({"q": {"d": 1}}, run).gains if gain.kind == "at most"]

    assert depths(21) == ["a perfect reranker of the first 21"]
    assert depths(40) == ["a perfect reranker of the first 20", "a perfect reranker of the first 40"]


def test_nothing_retrieved_is_nothing_to_rerank():
    found = diagnose({"q": {"d": 1}, "r": {"e": 1}}, {"q": []}, also={"q": ["d"]}, k=2)
    assert [one.what for one in found.gains] == [
        "if 2 missed documents reached the top 2 at this run's rate for relevant documents (25%)",
        "a perfect reranker of the first 100 of both runs",
    ]


def missed(query: str) -> list[str]:
    """Return relevant documents below rank 5 that are better than one of the first 5."""
    least = min(grade(query, d) for d in RANKING[query][:5])
    return [d for d, g in QRELS[query].items() if g >= 1 and d not in RANKING[query][:5] and g > least]


def test_missed_documents_are_those_that_would_improve_the_first_k():
    found = {one.query_id: {doc.doc_id for doc in one.missed} for one in FOUND.diagnoses}
    assert {q: docs for q, docs in found.items() if docs} == {q: set(missed(q)) for q in QRELS if missed(q)}
    assert FOUND.failing == sum(bool(missed(q)) for q in QRELS)


def test_documents_never_retrieved_enter_the_end_of_the_first_k_as_often_as_others():
    gone = {q: [d for d in missed(q) if d not in RANKING[q]] for q in QRELS}
    lifted = {}
    for q, docs in RANKING.items():
        top = docs[:5] + by_grade(q, gone[q])
        kept = by_grade(q, top)[:5]
        lifted[q] = [d for d in top if d in kept] + docs[5:] + [d for d in top if d not in kept]
    hits = sum(grade(q, d) >= 1 for q, docs in RANKING.items() for d in docs[:5])
    possible = sum(min(5, sum(g >= 1 for g in grades.values())) for grades in QRELS.values())
    rate = (hits + 1) / (possible + 2)
    one = next(gain for gain in FOUND.gains if gain.fix == "not retrieved")
    best = oracle(lifted)
    close(one.means, {name: now + rate * (best[name] - now) for name, now in oracle(RANKING).items()})
    assert one.what.startswith(f"if {sum(map(len, gone.values()))} missed documents reached the top 5")
    assert one.what.endswith(f"({rate:.0%})")
    assert one.kind == "as others"


def test_unjudged_documents_of_queries_with_many_at_the_top_are_taken_out():
    bare = {one.query_id for one in FOUND.diagnoses if "unjudged at the top" in one.causes}
    judged = {q: [d for d in docs if d in QRELS[q] or q not in bare] for q, docs in RANKING.items()}
    one = next(gain for gain in FOUND.gains if gain.kind == "judged only")
    close(one.means, oracle(judged))
    assert one.what.startswith(f"unjudged documents of {len(bare)} queries removed")


def test_attainable_is_the_mean_of_the_best_ranking_the_judgments_allow():
    best = oracle({q: by_grade(q, list(QRELS[q])) for q in QRELS})
    found = {str(one.measure): one.attainable for one in FOUND.qualities}
    assert found["nDCG@5"] == pytest.approx(1.0)
    assert found["P@5"] == pytest.approx(best["P@5"])
    assert found["R@5"] == pytest.approx(best["R@5"])


def test_three_relevant_documents_allow_no_more_than_point_six():
    found = diagnose({"q": {"a", "b", "c"}}, {"q": ["a", "b", "c", "x", "y"]})
    precision = next(one for one in found.qualities if str(one.measure) == "P@5")
    assert (precision.mean, precision.attainable, precision.highest) == (0.6, 0.6, "Good")


@pytest.mark.parametrize("k", [1, 3, 5, 10, 20])
def test_cut_offs_are_counted(k):
    (row,) = (row for row in FOUND.cutoffs if row.k == k)
    hits = {q: sum(grade(q, d) >= 1 for d in docs[:k]) for q, docs in RANKING.items()}
    relevant = {q: sum(g >= 1 for g in QRELS[q].values()) for q in QRELS}
    assert row.precision == pytest.approx(fmean(n / k for n in hits.values()))
    assert row.recall == pytest.approx(fmean(hits[q] / relevant[q] for q in QRELS))
    assert row.success == pytest.approx(fmean(n > 0 for n in hits.values()))


def test_thresholds_keep_what_reaches_them_of_the_first_k():
    assert len(FOUND.sweep.thresholds) == 10
    assert FOUND.sweep.thresholds[0].shown == 5
    for row in FOUND.sweep.thresholds:
        kept = {q: [d for d in docs[:5] if RUN[q][d] >= row.score] for q, docs in RANKING.items()}
        hits = {q: sum(grade(q, d) >= 1 for d in docs) for q, docs in kept.items()}
        relevant = {q: sum(g >= 1 for g in QRELS[q].values()) for q in QRELS}
        assert row.shown == pytest.approx(fmean(map(len, kept.values())))
        assert row.precision == pytest.approx(fmean(hits[q] / len(kept[q]) for q in kept if kept[q]))
        assert row.recall == pytest.approx(fmean(hits[q] / relevant[q] for q in kept))
        assert row.f == pytest.approx(fmean(2 * hits[q] / (len(kept[q]) + relevant[q]) for q in kept))
        assert row.empty == sum(not docs for docs in kept.values())
        assert row.lost == sum(not kept[q] and any(grade(q, d) >= 1 for d in RANKING[q][:5]) for q in kept)
    assert FOUND.sweep.best.f == max(row.f for row in FOUND.sweep.thresholds)


@pytest.mark.parametrize(
    "run",
    [
        {"q1": ["x", "d"], "q2": ["d", "x", "y"]},
        {"q1": {"x": 1.0, "d": 1.0}, "q2": {"x": 1.0}},
        {"q1": {"x": 1.0, "d": 0.5}, "q2": {"d": 1.0, "x": 0.5}},
    ],
)
def test_there_is_no_sweep_over_scores_that_only_repeat_the_ranks(run):
    sweep = diagnose({"q1": {"d"}, "q2": {"d"}}, run).sweep
    assert sweep.thresholds == ()
    assert sweep.why_not
    assert sweep.best is None


COPY = "The library opens at nine on weekdays and at ten on Saturdays and closes at six."


def test_near_duplicates_are_removed_and_the_effect_measured():
    texts = {"a": COPY, "b": COPY, "d": "something else", "x": "other"}
    found = diagnose({"q": {"d": 1}}, {"q": ["a", "b", "d"]}, Collection.of(texts), k=2)
    one = potential("1 near-duplicate removed from the first 8", found)
    assert one.kind == "measured"
    assert one.means["nDCG@10"] == pytest.approx(1 / math.log2(3))
    assert one.means["P@2"] == 0.5


@pytest.mark.parametrize("nested", [False, True])
def test_a_filter_on_a_field_of_queries_and_documents_is_measured(nested):
    def fields(language):
        return {"metadata": {"language": language}} if nested else {"language": language}

    documents = {
        "a": {"text": "one", **fields("de")},
        "b": {"text": "two", **fields(["en", "fr"])},
        "c": {"text": "three"},
        "d": {"text": "four", **fields("en")},
    }
    queries = {"q": {"text": "number", **fields("en")}, "r": {"text": "no language"}}
    run = {"q": ["a", "b", "c", "d"], "r": ["a", "b"]}
    found = diagnose({"q": {"d": 1, "a": 1}, "r": {"b": 1}}, run, Collection.of(documents, queries), k=3, measure="P@3")
    one = potential("documents of another language removed (1, 1 relevant)", found)
    assert one.kind == "measured"
    assert one.means["P@3"] == pytest.approx((1 / 3 + 1 / 3) / 2)
    assert next(c for c in found.fixes if c.name == "metadata filter").evidence == ()


def test_a_filter_that_helps_is_evidence_and_without_fields_there_is_none():
    documents = {"a": {"text": "one", "year": 1}, "d": {"text": "two", "year": 2}}
    queries = {"q": {"text": "number", "year": 2}}
    run = {"q": ["a", "d"]}
    found = diagnose({"q": {"d": 1}}, run, Collection.of(documents, queries), k=1, measure="RR")
    fix = next(c for c in found.fixes if c.name == "metadata filter")
    assert fix.evidence == ("documents of another year removed (1, 0 relevant): RR 0.50 to 1.00 (measured)",)
    assert not any(one.fix == "metadata filter" for one in FOUND.gains)


def test_measuring_gains_does_not_change_the_run():
    run = Run.of(RUN)
    before = list(ranked(run)["q1"])
    diagnose(Qrels.of(QRELS), run)
    assert list(ranked(run)["q1"]) == before


def test_of_equally_good_thresholds_the_lowest_is_best():
    rows = [Threshold(score, 1.0, 0.5, 0.5, f, 0, 0) for score, f in ((1, 0.4), (2, 0.5), (3, 0.5))]
    assert Sweep(tuple(rows)).best.score == 2
    assert Sweep(()).best is None
