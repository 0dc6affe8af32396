import random

import pytest
from checked import effect, good, only, opinion

from rankgauge import check

pytest.importorskip("pytrec_eval")


def test_judgments_and_a_run_without_a_common_query_are_reported():
    qrels, run = good()
    found = check(qrels, {f"{query}z": docs for query, docs in run.items()})
    assert found.codes == ("P101",)
    assert only(found, "P101").evidence.count == len(run)


def test_runs_without_judged_documents_are_reported():
    qrels, run = good()
    other = {query: {f"no{d}yes": s for d, s in docs.items()} for query, docs in run.items()}
    found = check(qrels, other)
    assert found.codes == ("P102",)
    assert only(found, "P102").evidence.count == sum(map(len, run.values()))


def test_one_common_query_and_document_are_enough():
    qrels, run = good()
    few = {"q1": run["q1"]}
    assert not {"P101", "P102"} & set(check(qrels, few).codes)


WAYS = [
    pytest.param(lambda d: f" {d} ", lambda d: d, "spaces", id="blanks"),
    pytest.param(lambda d: f'"{d}"', lambda d: d, "quotes", id="quotes"),
    pytest.param(str.upper, lambda d: d, "the same case", id="case"),
    pytest.param(lambda d: d.replace("d", "d00"), lambda d: d, "leading zeros", id="zeros"),
    pytest.param(
        lambda d: d.replace("d", "8").replace("x", "9") + ".0",
        lambda d: d.replace("d", "8").replace("x", "9"),
        ".0 at the end",
        id="spreadsheet",
    ),
    pytest.param(lambda d: d.replace("d", "a%2F"), lambda d: d.replace("d", "a/"), "%-escapes", id="escapes"),
    pytest.param(lambda d: f"msmarco_v2_{d}", lambda d: d, "the prefix", id="prefix of the run"),
    pytest.param(lambda d: d, lambda d: f"msmarco_v2_{d}", "the prefix", id="prefix of judgments"),
    pytest.param(
        lambda d: "DOC" + d.replace("d", "8").replace("x", "9"),
        lambda d: d.replace("d", "8").replace("x", "9"),
        "the word before the number",
        id="word of the run",
    ),
    pytest.param(
        lambda d: d.replace("d", "8").replace("x", "9"),
        lambda d: "p" + d.replace("d", "8").replace("x", "9"),
        "the word before the number",
        id="word of judgments",
    ),
    pytest.param(lambda d: f"{d}.txt", lambda d: d, "the suffix", id="suffix"),
    pytest.param(lambda d: f"{d.upper()} ", lambda d: d.replace("d", "d0"), "spaces, case", id="all"),
]


@pytest.mark.parametrize(("ours", "theirs", "by"), WAYS)
def test_documents_written_differently_are_matched_and_measured(ours, theirs, by):
    qrels, run = good()
    mended = {q: {theirs(d): s for d, s in docs.items()} for q, docs in run.items()}
    judged = {q: {theirs(d): g for d, g in docs.items()} for q, docs in qrels.items()}
    written = {q: {ours(d): s for d, s in docs.items()} for q, docs in run.items()}
    problem = only(check(judged, written), "P103")
    assert by in problem.message
    assert problem.evidence.count == sum(theirs(d) in judged[q] for q, docs in run.items() for d in docs)
    assert effect(problem, by).after == pytest.approx(opinion(judged, mended))
    assert effect(problem, by).before == 0


@pytest.mark.parametrize(("ours", "theirs", "by"), WAYS)
def test_queries_written_differently_are_matched_and_measured(ours, theirs, by):
    qrels, run = good()
    name = {query: f"d{n + 1}x{n}" for n, query in enumerate(qrels)}
    judged = {theirs(name[q]): docs for q, docs in qrels.items()}
    written = {ours(name[q]): docs for q, docs in run.items()}
    problem = only(check(judged, written), "P103")
    assert (problem.evidence.unit, problem.evidence.count) == ("query", len(run))
    assert effect(problem, by).after == pytest.approx(opinion(qrels, run))


def test_some_ids_written_differently_are_found_among_others():
    qrels = {"q1": {"1": 1, "2": 0, "100": 1}}
    problem = only(check(qrels, {"q1": {"001": 3.0, "002": 2.0, "100": 1.0}}), "P103")
    assert (problem.evidence.count, problem.evidence.of) == (2, 3)
    wanted = opinion(qrels, {"q1": {"1": 3.0, "2": 2.0, "100": 1.0}})
    assert effect(problem, "leading zeros").after == pytest.approx(wanted)


def test_ids_that_would_collide_are_reported():
    qrels = {"q1": {"D1": 1, "D2": 0, "D3": 1}}
    problem = only(check(qrels, {"q1": {"D1#0": 3.0, "D1#1": 2.0, "D2#0": 1.0}}), "P103")
    assert "several ids would become equal" in problem.message
    wanted = opinion(qrels, {"q1": {"D1": 3.0, "D2": 1.0}})
    assert effect(problem, "chunk number").after == pytest.approx(wanted)


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param([str(n) for n in range(200, 240)], id="numbers"),
        pytest.param([f"clueweb09-en{n:04d}-00-0000{n % 10}" for n in range(40)], id="long ids"),
        pytest.param([f"{'aB'[n % 2]}{'Ab'[n // 2 % 2]}{n // 4}" for n in range(40)], id="cases"),
        pytest.param([f"{'ab'[n % 2]}_{n // 2}" for n in range(40)], id="two prefixes"),
        pytest.param([f"{'ab'[n % 2]}{n // 2}" for n in range(40)], id="two words"),
        pytest.param([f"{n // 2}.{'ab'[n % 2]}" for n in range(40)], id="two suffixes"),
    ],
)
def test_different_ids_are_not_matched(ids):
    rng = random.Random(1)
    qrels = {f"q{n}": {doc: n % 2 for n, doc in enumerate(rng.sample(ids, 12))} for n in range(20)}
    run = {
        query: {doc: rng.random() + grade for doc, grade in docs.items()}
        | {doc: 0.001 * n for n, doc in enumerate(rng.sample(ids, 5)) if doc not in docs}
        for query, docs in qrels.items()
    }
    assert "P103" not in check(qrels, run).codes


@pytest.mark.parametrize("step", [1, -1], ids=["one higher", "one lower"])
@pytest.mark.parametrize("side", ["documents", "queries"])
def test_ids_shifted_by_one_are_found_and_measured(side, step):
    rng = random.Random(2)
    qrels, run = {}, {}
    for q in range(30):
        docs = rng.sample(range(1000, 9000), 15)
        run[str(50 + q)] = {str(d): 20.0 - n for n, d in enumerate(docs)}
        qrels[str(50 + q)] = {str(d): int(n < 3) for n, d in enumerate(docs)}
    shifted = {
        str(int(q) - step * (side == "queries")): {
            str(int(d) - step * (side == "documents")): s for d, s in docs.items()
        }
        for q, docs in run.items()
    }
    found = check(qrels, shifted)
    problem = only(found, "P109")
    word = "higher" if step > 0 else "lower"
    assert effect(problem, word).after == pytest.approx(opinion(qrels, run))
    assert not {"P103", "P108"} & set(found.codes)
    assert "P109" not in check(qrels, run).codes


def test_queries_that_are_missing_are_counted_and_averaged_without():
    qrels, run = good()
    del run["q2"], run["q9"]
    problem = only(check(qrels, run), "P104")
    assert (problem.evidence.count, problem.evidence.of) == (len(qrels.keys() - run.keys()), len(qrels))
    assert [location.query for location in problem.evidence.locations] == ["q2", "q9"]
    assert effect(problem, "intersection").before == pytest.approx(opinion(qrels, run))
    both = {query: qrels[query] for query in run}
    assert effect(problem, "intersection").after == pytest.approx(opinion(both, run))


def test_queries_without_judgments_are_counted():
    qrels, run = good()
    del qrels["q2"]
    found = check(qrels, run)
    assert found.codes == ("P105",)
    assert only(found, "P105").evidence.count == len(run.keys() - qrels.keys())


@pytest.mark.parametrize("pooled", [False, True])
def test_unjudged_documents_give_an_interval(pooled):
    qrels, run = good()
    rng = random.Random(4)
    few = {q: {d: g for d, g in docs.items() if rng.random() < 0.6} for q, docs in qrels.items()}
    # In a full pool, a negative grade means unjudged.
    said = {q: dict.fromkeys(qrels[q], -1) | few[q] for q in few} if pooled else few
    problem = only(check(said, run, ["nDCG@10", "P@10", "R@10"]), "P106")
    top = {q: sorted(docs, key=docs.get, reverse=True)[:10] for q, docs in run.items()}
    holes = {q: [d for d in docs if d not in few[q]] for q, docs in top.items()}
    assert problem.evidence.count == sum(map(len, holes.values()))
    assert problem.evidence.of == sum(map(len, top.values()))
    filled = {q: few[q] | dict.fromkeys(holes[q], 1) for q in few}
    for name, theirs in (("nDCG@10", "ndcg_cut_10"), ("P@10", "P_10"), ("R@10", "recall_10")):
        high = effect(problem, "every", name)
        assert high.before == pytest.approx(opinion(few, run, theirs))
        assert high.after == pytest.approx(opinion(filled, run, theirs))


def test_unjudged_documents_are_measured_at_the_level_of_the_measures():
    qrels = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 2, "d2": 1}}
    run = {query: {"x": 3.0, "d1": 2.0, "d2": 1.0} for query in qrels}
    problem = only(check(qrels, run, "AP(rel=2)"), "P106")
    high = effect(problem, "every", "P(rel=2)@10")
    assert (high.before, high.after) == pytest.approx((0.1, 0.2))


def test_unjudged_documents_are_ignored_if_only_relevant_ones_were_recorded():
    qrels, run = good()
    only_good = {q: {d: g for d, g in docs.items() if g > 0} for q, docs in qrels.items()}
    found = check(only_good, run)
    assert found.codes == ("J108",)
    assert "Judged@10" in only(found, "J108").message


def test_a_run_made_from_judgments_is_too_good():
    qrels, _ = good()
    run = {query: {d: float(g) for d, g in docs.items() if g > 0} for query, docs in qrels.items()}
    said = only(check(qrels, run), "P107").message
    assert "nDCG@10 is 1 for all 12 queries" in said
    assert "the scores are the grades" in said
    assert "exactly the relevant documents" in said


def test_a_run_that_is_good_is_not_too_good():
    qrels, run = good()
    for query in list(run)[:-1]:
        run[query] = {d: float(g) - 0.001 * n for n, (d, g) in enumerate(qrels[query].items())}
    assert "P107" not in check(qrels, run).codes


def test_judgments_of_another_collection_are_detected():
    rng = random.Random(5)

    def drawn(grade):
        return {f"q{q}": {f"d{d}": grade(n) for n, d in enumerate(rng.sample(range(300), 60))} for q in range(40)}

    qrels, run = drawn(lambda n: int(n < 3)), drawn(lambda n: 99.0 - n)
    found = check(qrels, run, ignore=["P106"])
    assert found.codes == ("P108",)
    for query in list(run)[:30]:
        run[query] = {d: 200.0 for d, g in qrels[query].items() if g} | run[query]
    assert "P108" not in check(qrels, run).codes


def test_ids_with_different_prefixes_on_both_sides_are_not_matched():
    qrels = {"q1": {"a_1": 1, "a_2": 0}}
    assert check(qrels, {"q1": {"b_1": 2.0, "b_2": 1.0}}).codes == ("P102",)


def test_a_weak_run_is_not_taken_for_one_of_another_collection():
    rng = random.Random(6)
    qrels, run = {}, {}
    for q in range(40):
        docs = [f"d{d}" for d in rng.sample(range(10_000), 20)]
        run[f"q{q}"] = {d: 20.0 - n for n, d in enumerate(docs)}
        qrels[f"q{q}"] = {docs[0] if q < 3 else docs[11]: 1, docs[4]: 0, f"n{q}": 1}
    assert "P108" not in check(qrels, run).codes
