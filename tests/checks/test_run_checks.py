import itertools
import math
import random

import numpy as np
import pytest
from checked import effect, good, only, opinion

from rankgauge import Qrels, Run, check

pytest.importorskip("pytrec_eval")


def written(path, rows):
    """Write a TREC file of (query, document, rank, score)."""
    lines = [f"{query} Q0 {doc} {rank} {score!r} t\n" for query, doc, rank, score in rows]
    path.write_text("".join(lines))
    return path


def rows_of(run, ranks=None):
    """Return the rows of a run as in its file."""
    return [
        (query, doc, place + 1 if ranks is None else ranks(place, len(docs)), score)
        for query, docs in run.items()
        for place, (doc, score) in enumerate(docs.items())
    ]


def test_a_good_run_in_a_file_has_no_problem(tmp_path):
    qrels, run = good()
    assert check(qrels, written(tmp_path / "a.run", rows_of(run))).findings == ()


def test_duplicate_documents_are_counted_as_by_other_tools(tmp_path):
    qrels, run = good()
    rows = [row for query in run for row in rows_of({query: run[query]}) * (1 + (query == "q1"))]
    path = written(tmp_path / "a.run", rows)
    problem = only(check(qrels, path), "R101")
    assert problem.evidence.count == len(rows) - len({row[:2] for row in rows}) == 12
    assert problem.evidence.locations[0].line == next(n for n, row in enumerate(rows, 1) if row in rows[: n - 1])
    for policy in ("best", "first"):
        assert effect(problem, policy).after == pytest.approx(opinion(qrels, run))
    # Each document is at two ranks; a loop over them gives the expected value.
    twice = sorted([*run["q1"].items()] * 2, key=lambda pair: (-pair[1], pair[0]))
    gained = sum(qrels["q1"].get(doc, 0) / math.log2(rank + 1) for rank, (doc, _) in enumerate(twice[:10], start=1))
    best = sorted(qrels["q1"].values(), reverse=True)[:10]
    ideal = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, start=1))
    others = opinion(qrels, {q: docs for q, docs in run.items() if q != "q1"})
    assert effect(problem, "best").before == pytest.approx(others + gained / ideal / len(qrels))


def test_a_document_in_two_rankings_is_no_duplicate():
    qrels, run = good()
    run["q1"] = {**run["q1"], "d0x0": 0.5}
    assert "R101" not in check(qrels, run).codes


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "1e999"])
def test_non_finite_scores_are_skipped_and_counted(tmp_path, bad):
    qrels, run = good()
    rows = rows_of(run)
    path = written(tmp_path / "a.run", rows)
    lines = path.read_text().splitlines()
    for number in (1, 14):
        parts = lines[number].split()
        del run[parts[0]][parts[2]]
        lines[number] = " ".join([*parts[:4], bad, "t"])
    path.write_text("\n".join(lines))
    problem = only(check(qrels, path), "R102")
    assert problem.evidence.count == 2
    assert [location.line for location in problem.evidence.locations] == [2, 15]
    assert math.isnan(effect(problem, "without").before)
    assert effect(problem, "without").after == pytest.approx(opinion(qrels, run))


def test_ranks_that_contradict_the_scores_are_measured_by_rank(tmp_path):
    qrels, run = good()
    flipped = {"q2", "q7"}
    rows = []
    for query, docs in run.items():
        order = list(docs)
        if query in flipped:
            order[0], order[5] = order[5], order[0]
        ranks = {doc: place for place, doc in enumerate(order, start=1)}
        rows += [(query, doc, ranks[doc], score) for doc, score in docs.items()]
    problem = only(check(qrels, written(tmp_path / "a.run", rows)), "R103")
    assert (problem.evidence.count, problem.evidence.of) == (2, len(run))
    by_rank = {query: {} for query in run}
    for query, doc, rank, _ in rows:
        by_rank[query][doc] = -rank
    assert effect(problem, "ranks").after == pytest.approx(opinion(qrels, by_rank))
    assert {location.query for location in problem.evidence.locations} == flipped


@pytest.mark.parametrize(
    ("ranks", "note"),
    [
        pytest.param(lambda place, _: place, "count from 0", id="from zero"),
        pytest.param(lambda *_: 1, "is 1 on every line", id="all one"),
        pytest.param(lambda *_: 0, "is 0 on every line", id="all zero"),
    ],
)
def test_other_ranks_are_no_problem_and_are_noted(tmp_path, ranks, note):
    qrels, run = good()
    found = check(qrels, written(tmp_path / "a.run", rows_of(run, ranks)))
    assert found.findings == ()
    assert len(found.notes) == 1
    assert note in found.notes[0]


def test_ranks_that_count_on_from_query_to_query_contradict_nothing(tmp_path):
    qrels, run = good()
    rows = [(query, doc, rank, score + 100 * rank) for rank, (query, doc, _, score) in enumerate(rows_of(run), start=1)]
    scores = {}
    for place, (query, doc, rank, _) in enumerate(rows):
        scores.setdefault(query, []).append((doc, rank, 1000 * len(scores) - place))
    found = check(qrels, written(tmp_path / "a.run", [(q, *row) for q, of in scores.items() for row in of]))
    assert found.findings == ()


def test_ranks_inside_equal_scores_contradict_nothing(tmp_path):
    qrels = {"q1": {"a": 1, "b": 1, "c": 0, "d": 1, "e": 1}}
    rows = [("q1", "a", 2, 5.0), ("q1", "b", 1, 5.0), ("q1", "c", 3, 1.0)]
    found = check(qrels, written(tmp_path / "a.run", rows))
    assert "R103" not in found.codes


def test_ranks_that_are_not_numbers_are_skipped(tmp_path):
    qrels, run = good()
    rows = rows_of(run, lambda *_: "x")
    found = check(qrels, written(tmp_path / "a.run", rows))
    assert found.findings == ()


def test_ranks_next_to_scores_in_frames_and_columns_are_checked():
    pandas = pytest.importorskip("pandas")
    qrels = {"q1": {"d1": 1, "d2": 0, "d3": 0}}
    columns = {"query_id": ["q1"] * 3, "doc_id": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0], "rank": [2, 1, 3]}
    assert check(qrels, columns).codes == ("R103",)
    assert check(qrels, pandas.DataFrame(columns)).codes == ("R103",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "qid,docno,score,rank\nq1,d1,3,2\nq1,d2,2,1\nq1,d3,1,3\n"),
        (
            "a.jsonl",
            "".join(f'{{"qid": "q1", "docno": "d{n}", "score": {3 - n}, "rank": {3 - n}}}\n' for n in range(3)),
        ),
        ("a.run", "q1 Q0 d1 2 3 t\n\n# said\nq1 Q0 d2 1 2 t\n"),
    ],
    ids=["csv", "jsonl", "trec with remarks"],
)
def test_ranks_are_checked_in_files_read_by_the_slow_path(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    found = check({"q1": {"d1": 1, "d2": 0, "d3": 0, "d0": 0}}, path)
    assert {"R103", "R104"} & set(found.codes)


def test_ranks_used_as_scores_contradict_no_rank(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("qid,docno,rank\nq1,d1,1\nq1,d2,2\n")
    assert check({"q1": {"d1": 1, "d2": 0}}, path).codes == ()


def as_distances(run):
    return {q: {doc: 100 - score for doc, score in docs.items()} for q, docs in run.items()}


def test_distances_are_found_by_the_judged_documents_alone():
    qrels, run = good(depth=30)
    shuffled = {}
    for query, docs in as_distances(run).items():
        order = list(docs)
        random.Random(query).shuffle(order)
        shuffled[query] = {doc: docs[doc] for doc in order}
    problem = only(check(qrels, shuffled), "R104")
    assert effect(problem, "negated").after == pytest.approx(opinion(qrels, run))
    assert effect(problem, "negated").before == pytest.approx(opinion(qrels, shuffled))


def test_distances_are_found_by_ranks_where_nothing_is_judged(tmp_path):
    rows = [("q1", f"d{n}", n, n / 8) for n in range(1, 6)]
    path = written(tmp_path / "a.run", rows)
    assert "R104" in check({"q1": {"other": 1, "d9": 0, "d3": 0}}, path).codes


@pytest.mark.parametrize(
    "turn",
    [
        pytest.param(lambda score: score, id="bm25"),
        pytest.param(lambda score: score / 100, id="cosine"),
        pytest.param(lambda score: score - 90.0, id="log likelihood"),
    ],
)
@pytest.mark.parametrize("ascending", [False, True], ids=["best first", "best last"])
def test_good_scores_are_no_distances_in_any_order_of_lines(turn, ascending):
    qrels, run = good(depth=30)
    turned = {
        query: {doc: turn(score) for doc, score in sorted(docs.items(), key=lambda p: p[1])}
        if ascending
        else {doc: turn(score) for doc, score in docs.items()}
        for query, docs in run.items()
    }
    assert "R104" not in check(qrels, turned).codes


def test_a_random_run_is_not_reported_as_distances():
    qrels, run = good(queries=40, depth=30)
    rng = random.Random(3)
    drawn = {query: {doc: rng.random() for doc in docs} for query, docs in run.items()}
    assert "R104" not in check(qrels, drawn).codes


def test_rankings_cut_above_the_cutoff_are_measured_where_they_end():
    qrels, run = good()
    cut = {query: dict(list(docs.items())[:5]) for query, docs in run.items()}
    problem = only(check(qrels, cut), "R105")
    assert problem.evidence.count == len(run)
    # This run is perfect to its end: the value at 5 equals that at 10, so it is omitted.
    assert opinion(qrels, cut) == pytest.approx(opinion(qrels, cut, "ndcg_cut_5"))
    (most,) = problem.evidence.effects
    assert most.before == pytest.approx(opinion(qrels, cut))
    best = {
        query: dict(sorted(((d, float(g)) for d, g in docs.items()), key=lambda p: -p[1])[:5])
        for query, docs in qrels.items()
    }
    assert most.after == pytest.approx(opinion(qrels, best))
    assert "R105" not in check(qrels, cut, ["nDCG@5", "P@5"]).codes


def test_short_rankings_are_not_cut_for_a_measure_of_whole_rankings():
    qrels, run = good()
    cut = {query: dict(list(docs.items())[:5]) for query, docs in run.items()}
    assert "R105" not in check(qrels, cut, "AP").codes


def test_recall_of_truncated_rankings_is_compared_with_its_maximum():
    qrels = {f"q{n}": {f"d{m}": 1 for m in range(4 * n + 1)} for n in range(4)}
    run = {query: {"x": 3.0, "d0": 2.0, "y": 1.0, "z": 0.5} for query in qrels}
    problem = only(check(qrels, run, "R@100"), "R105")
    (most,) = problem.evidence.effects
    assert most.after == pytest.approx((1 + 4 / 5 + 4 / 9 + 4 / 13) / 4)
    assert most.before == pytest.approx((1 + 1 / 5 + 1 / 9 + 1 / 13) / 4)
    assert most.condition == "the maximum for rankings of 4 documents"


def test_rankings_that_end_at_many_depths_are_not_cut():
    qrels, run = good()
    ends = {query: dict(list(docs.items())[: 1 + place % 9]) for place, (query, docs) in enumerate(run.items())}
    assert "R105" not in check(qrels, ends).codes


def test_a_run_truncated_above_another_is_reported():
    qrels, run = good(depth=40)
    cut = {query: dict(list(docs.items())[:10]) for query, docs in run.items()}
    problem = only(check(qrels, {"whole": run, "cut": cut}, ["AP", "nDCG@10"]), "R105")
    (measured,) = problem.evidence.effects
    assert (problem.evidence.source, measured.run) == ("cut", "whole")
    assert measured.before == pytest.approx(opinion(qrels, run, "map"))
    assert measured.after == pytest.approx(opinion(qrels, cut, "map"))
    assert "R105" not in check(qrels, {"whole": run, "cut": cut}, ["nDCG@10", "P@5"]).codes


def best_and_worst(qrels, run):
    """Order ties by grade, best and worst first, with new scores for pytrec_eval."""
    for sign in (1, -1):
        moved = {
            query: {doc: score + sign * 1e-3 * max(qrels[query].get(doc, 0), 0) for doc, score in docs.items()}
            for query, docs in run.items()
        }
        yield opinion(qrels, moved)


def test_constant_scores_give_the_order_of_the_lines_and_an_interval():
    qrels, run = good()
    constant = {query: dict.fromkeys(docs, 1.0) for query, docs in run.items()}
    problem = only(check(qrels, constant), "R106")
    assert problem.evidence.count == problem.evidence.of == len(run)
    assert effect(problem, "ties=input").after == pytest.approx(opinion(qrels, run))
    best, worst = best_and_worst(qrels, constant)
    assert effect(problem, "best").after == pytest.approx(best)
    assert effect(problem, "worst").after == pytest.approx(worst)
    assert "R109" not in check(qrels, constant).codes


def test_a_few_constant_rankings_are_only_ties():
    qrels, run = good()
    run["q1"] = dict.fromkeys(run["q1"], 1.0)
    found = check(qrels, run)
    assert "R106" not in found.codes
    assert only(found, "R109").evidence.count == 1


def test_ties_that_change_a_value_give_an_interval():
    qrels, run = good()
    tied = {q: {d: float(round(s / 4)) for d, s in docs.items()} for q, docs in run.items()}
    problem = only(check(qrels, tied), "R109")
    best, worst = best_and_worst(qrels, tied)
    assert effect(problem, "best").after == pytest.approx(best)
    assert effect(problem, "worst").after == pytest.approx(worst)
    assert effect(problem, "best").before == pytest.approx(opinion(qrels, tied))


def test_ties_within_one_grade_change_no_value():
    qrels = {"q1": {"d1": 1, "d2": 1, "d3": 0}}
    assert check(qrels, {"q1": {"d1": 2.0, "d2": 2.0, "d3": 1.0}}).codes == ()


def collapsing(run, base):
    return {q: {d: base - place for place, d in enumerate(docs)} for q, docs in run.items()}


def test_scores_that_collapse_in_32_bits_give_what_pytrec_eval_gives():
    qrels, run = good()
    near = collapsing(run, 1e9)
    problem = only(check(qrels, near), "R107")
    count = 0
    for docs in near.values():
        scores = list(docs.values())
        for above, below in itertools.pairwise(scores):
            count += np.float32(above) == np.float32(below) and above != below
    assert problem.evidence.count == count > 0
    # pytrec_eval itself uses 32-bit scores.
    assert effect(problem, "32 bits").after == pytest.approx(opinion(qrels, near))
    assert effect(problem, "32 bits").before == pytest.approx(opinion(qrels, run))
    assert "R107" not in check(qrels, collapsing(run, 1e5)).codes


def test_a_collapse_far_from_judged_documents_is_ignored():
    qrels, run = good(depth=300)
    docs = list(run["q0"])
    run["q0"][docs[-1]] = run["q0"][docs[-2]] - 1e-9
    assert check(qrels, run).codes == ()


def test_a_query_that_retrieves_itself_is_measured_without():
    qrels, run = good()
    with_self = {query: {query: 99.0, **docs} for query, docs in run.items()}
    problem = only(check(qrels, with_self), "R108")
    assert problem.evidence.count == len(run)
    assert effect(problem, "own document").after == pytest.approx(opinion(qrels, run))
    assert effect(problem, "own document").before == pytest.approx(opinion(qrels, with_self))


def test_a_number_shared_by_a_query_and_a_document_is_chance():
    qrels = {str(q): {str(d): int(d == q + 1) for d in range(q, q + 6)} for q in range(1, 9)}
    run = {q: {d: 9.0 - n for n, d in enumerate(reversed(list(docs)))} for q, docs in qrels.items()}
    assert "R108" not in check(qrels, run).codes


def test_a_document_judged_relevant_for_its_own_id_is_no_problem():
    qrels, run = good()
    for query in run:
        run[query] = {query: 99.0, **run[query]}
        qrels[query] = {query: 1, **qrels[query]}
    assert "R108" not in check(qrels, run).codes


def test_a_run_under_two_names_is_found_whatever_the_order_of_its_lines():
    qrels, run = good()
    turned = {query: dict(reversed(docs.items())) for query, docs in reversed(run.items())}
    problem = only(check(qrels, {"a": run, "b": turned}), "R110")
    assert (problem.evidence.source, problem.evidence.count) == ("b", sum(map(len, run.values())))
    other = {**run, "q1": {**run["q1"], "last": 0.1}}
    assert "R110" not in check(qrels, {"a": run, "b": other}).codes
    lower = {**run, "q1": {doc: score / 2 for doc, score in run["q1"].items()}}
    assert "R110" not in check(qrels, {"a": run, "b": lower}).codes


def test_runs_and_judgments_that_are_ready_are_taken_as_they_are():
    qrels, run = good()
    found = check(Qrels.of(qrels), [Run.of(run, name="a"), Run.of(as_distances(run), name="b")])
    assert found.inputs == ("judgments", "a", "b")
    assert [problem.evidence.source for problem in found.of("R104")] == ["b"]
