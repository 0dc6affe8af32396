"""A/B votes on answers: win rates, sides, credit for source documents, and import."""

import csv
import itertools
import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from rankgauge import FormatError, InputError
from rankgauge.judging import (
    Answer,
    Choice,
    JudgingProject,
    Judgment,
    Presentation,
    Question,
    add_vote,
    import_votes,
    next_pair,
    read_answers,
    summarize_votes,
    vote_report,
)

DATA = Path(os.environ.get("RANKGAUGE_TEST_DATA", "/nowhere")) / "preferences" / "llmfao.csv"


def vote(number, left, right, outcome, judge="ann"):
    """Return a judgment of two answers; `outcome` is a choice's, or the preferred answer."""
    shown = Presentation(f"p{number}", "q1", (left, right), judge, "answers", "vote")
    preferred = (outcome,) if outcome in {left, right} else ()
    made = Choice(f"c{number}", shown.id, judge, "chosen" if preferred else outcome, preferred)
    return Judgment(shown, made, "vote")


def answers_of(*given):
    return {each.id: each for each in given}


OLD = Answer("old", "q1", "old text", "bm25", "p1", "m1", ("d1", "d2"))
NEW = Answer("new", "q1", "new text", "dense", "p1", "m1", ("d2", "d3"))
BOTH = Answer("both", "q1", "other", "dense", "p2", "m1", ("d4",))


def wilson(wins, n):
    """The roots of (p' - p)² = z² p(1 - p) / n, by bisection."""
    share, z2 = wins / n, 1.959963984540054**2

    def inside(p):
        return (share - p) ** 2 <= z2 * p * (1 - p) / n

    def edge(outer, inner):
        for _ in range(80):
            middle = (outer + inner) / 2
            outer, inner = (outer, middle) if inside(middle) else (middle, inner)
        return inner

    return edge(0.0, share), edge(1.0, share)


def test_win_rate_counts_wins_and_losses_and_reports_the_rest():
    made = ["new", "new", "new", "old", "both good", "both bad", "both bad", "cannot tell", "later"]
    report = summarize_votes([vote(n, "old", "new", outcome) for n, outcome in enumerate(made)], answers_of(OLD, NEW))
    (pair,) = report.pairs
    assert (pair.system, pair.other) == ("bm25 / p1 / m1", "dense / p1 / m1")
    assert (pair.wins, pair.losses, pair.both_good, pair.both_bad) == (1, 3, 1, 2)
    assert (pair.cannot_tell, pair.ties, pair.rate, pair.voters) == (1, 0, 0.25, 1)
    assert (pair.low, pair.high) == pytest.approx(wilson(1, 4), abs=1e-9)


def test_votes_of_people_applications_and_models_are_separate():
    votes = [vote(1, "old", "new", "new", "ann"), vote(2, "new", "old", "old", "shop")]
    kinds = {"ann": "person", "shop": "application"}
    report = summarize_votes(votes, answers_of(OLD, NEW), kinds)
    assert [(each.kind, each.wins, each.losses) for each in report.pairs] == [("application", 1, 0), ("person", 0, 1)]
    assert [(each.kind, each.left, each.right) for each in report.sides] == [("application", 0, 1), ("person", 0, 1)]


def test_a_vote_credits_documents_that_only_one_answer_was_made_from():
    outcomes = ["new", "new", "old", "both good", "both bad", "cannot tell"]
    report = summarize_votes(
        [vote(n, "new", "old", outcome) for n, outcome in enumerate(outcomes)], answers_of(OLD, NEW)
    )
    found = {each.document: (each.chosen, each.shown) for each in report.credits}
    assert found == {"d1": (1, 5), "d3": (2, 5)}
    assert report.credited == 5
    assert report.uncredited == {}


def test_nothing_is_credited_where_two_things_changed():
    report = summarize_votes([vote(1, "old", "both", "both")], answers_of(OLD, BOTH))
    assert report.credits == ()
    assert report.uncredited == {"two things changed": 1}
    assert "two things changed (1)" in str(report)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"retrieval": "dense", "model": "m2"}, "two things changed"),
        ({"prompt": "p2", "model": "m2"}, "two things changed"),
        ({}, "nothing changed"),
        ({"model": "m2", "sources": ("d2", "d1")}, "same sources"),
        ({"model": "m2"}, None),
        ({"retrieval": "dense"}, None),
    ],
)
def test_credit_needs_exactly_one_change(change, reason):
    values = {"retrieval": "bm25", "prompt": "p1", "model": "m1", "sources": ("d9",)} | change
    other = Answer("other", "q1", **values)
    report = summarize_votes([vote(1, "old", "other", "old")], answers_of(OLD, other))
    assert report.uncredited == ({reason: 1} if reason else {})
    assert bool(report.credits) == (reason is None)


def test_votes_are_in_no_count_of_the_experts(tmp_path):
    with project_with_answers(tmp_path / "x.db") as project:
        ann, _ = project.add_judge("Ann")
        task = project.next_task(ann.id, votes=True)
        shown = task.presentation
        project.record(Choice("c1", shown.id, ann.id, "chosen", shown.documents[:1]))
        assert [each.counted for each in project.judgments()] == [False]
        assert project.progress(ann.id).own == 0
        assert project.progress(ann.id).last is None


def project_with_answers(where, questions=3, systems=("v1", "v2")):
    project = JudgingProject.create(where)
    project.add_questions([Question(f"q{n}", f"Question {n}?") for n in range(questions)])
    project.add_answers(
        Answer(f"{name}-{n}", f"q{n}", f"answer {name}", name, sources=(name,))
        for n in range(questions)
        for name in systems
    )
    return project


def test_each_judge_votes_on_each_pair_once(where):
    with project_with_answers(where, 4, ("v1", "v2", "v3")) as project:
        ann, _ = project.add_judge("Ann")
        ben, _ = project.add_judge("Ben")
        for judge in (ann, ben):
            seen = set()
            while (task := project.next_task(judge.id, votes=True)) is not None:
                shown = task.presentation
                assert project.next_task(judge.id, votes=True).presentation == shown
                assert (shown.mode, shown.purpose) == ("answers", "vote")
                assert [each.id for each in task.documents] == list(shown.documents)
                assert shown.items not in seen
                seen.add(shown.items)
                project.record(Choice(shown.id, shown.id, judge.id, "both bad"))
            assert len(seen) == 4 * 3
        assert sum(each.both_bad for each in vote_report(project).pairs) == 24


def test_a_vote_task_shows_neither_system_nor_sources(tmp_path):
    with project_with_answers(tmp_path / "x.db") as project:
        ann, _ = project.add_judge("Ann")
        task = project.next_task(ann.id, votes=True)
        assert {tuple(each.fields) for each in task.documents} == {("answer",)}


def test_votes_can_be_undone_and_put_off(tmp_path):
    with project_with_answers(tmp_path / "x.db", 1) as project:
        ann, _ = project.add_judge("Ann")
        first = project.next_task(ann.id, votes=True).presentation
        project.record(Choice("c1", first.id, ann.id, "later"))
        assert project.next_task(ann.id, votes=True).presentation.id == first.id
        project.record(Choice("c2", first.id, ann.id, "both good"))
        assert project.next_task(ann.id, votes=True) is None
        assert project.progress(ann.id, votes=True).last == first.id
        project.record(Choice("c3", first.id, ann.id, "undone"))
        assert project.next_task(ann.id, votes=True).presentation.id == first.id
        assert project.next_task(ann.id) is None


def test_sides_are_random_and_recorded():
    rng = random.Random(7)
    given = [OLD, NEW]
    left = Counter(next_pair(given, {}, [], rng)[0].id for _ in range(4000))
    # Three standard deviations of a fair coin.
    assert abs(left["old"] - 2000) < 95


def test_the_pair_with_the_fewest_votes_comes_first():
    given = [Answer(f"{n}-{name}", f"q{n}", retrieval=name) for n in range(3) for name in "ab"]
    votes = {frozenset(("0-a", "0-b")): 2, frozenset(("2-a", "2-b")): 1}
    pair = next_pair(given, votes, [], random.Random(1))
    assert {each.question for each in pair} == {"q1"}
    pair = next_pair(given, votes, [frozenset(("1-a", "1-b"))], random.Random(1))
    assert {each.question for each in pair} == {"q2"}
    assert next_pair([given[0], given[0]], {}, [], random.Random(1)) is None


def test_a_vote_of_an_application_sent_twice_is_stored_once(where):
    with JudgingProject.create(where) as project:
        shop, _ = project.add_judge("shop", kind="application")
        other, _ = project.add_judge("other", kind="application")
        made = Choice("id-1", "", shop.id, "chosen", ("new",))
        assert add_vote(project, made, NEW, OLD)
        assert not add_vote(project, made, NEW, OLD)
        assert add_vote(project, Choice("id-1", "", other.id, "both good"), OLD, NEW)
        (pair,) = vote_report(project).pairs
        assert (pair.kind, pair.losses, pair.both_good, pair.voters) == ("application", 1, 1, 2)


def test_impossible_votes_of_applications_are_refused_and_nothing_is_stored(tmp_path):
    with JudgingProject.create(tmp_path / "x.db") as project:
        shop, _ = project.add_judge("shop", kind="application")
        with pytest.raises(InputError, match="was not shown"):
            add_vote(project, Choice("1", "", shop.id, "chosen", ("x",)), NEW, OLD)
        with pytest.raises(InputError, match="two different answers"):
            add_vote(project, Choice("1", "", shop.id, "both bad"), NEW, NEW)
        changed = Answer("new", "q1", "changed")
        add_vote(project, Choice("2", "", shop.id, "both bad"), NEW, OLD)
        with pytest.raises(InputError, match="a different answer has the identifier 'new'"):
            add_vote(project, Choice("3", "", shop.id, "both bad"), changed, OLD)
        assert len(project.judgments()) == 1


def test_answers_and_votes_are_imported_once(where, tmp_path):
    answers = tmp_path / "answers.csv"
    answers.write_text("id,question,retrieval,sources\na,q1,v1,d1;d2\nb,q1,v2,d3\n")
    votes = tmp_path / "votes.jsonl"
    rows = [
        {"question": "q1", "left": "a", "right": "b", "winner": "left", "judge": "ann"},
        {"question": "q1", "left": "a", "right": "b", "winner": "left", "judge": "ann"},
        {"question": "q1", "left": "b", "right": "a", "winner": "Both bad"},
    ]
    votes.write_text("".join(json.dumps(each) + "\n" for each in rows))
    with JudgingProject.create(where) as project:
        project.add_answers(read_answers(answers))
        assert import_votes(project, votes) == 3
        assert import_votes(project, votes) == 0
        (pair,) = vote_report(project).pairs
        assert (pair.wins, pair.losses, pair.both_bad, pair.voters) == (2, 0, 1, 2)
        found = {each.document: (each.chosen, each.shown) for each in vote_report(project).credits}
        assert found == {"d1": (2, 3), "d2": (2, 3), "d3": (0, 3)}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("q1,a,b,top", "winner is 'top'"),
        ("q1,a,,left", "there is no right"),
        ("q1,a,zz,left", "no answer 'zz'"),
        ("q2,a,b,left", "is of question 'q1'"),
        ("q1,a,a,left", "both answers are 'a'"),
        ("q1,a,b", "got 3 columns"),
    ],
)
def test_a_broken_line_of_votes_is_named_and_nothing_is_imported(tmp_path, row, what):
    path = tmp_path / "votes.csv"
    path.write_text(f"question,left,right,winner\nq1,a,b,left\n{row}\n")
    with JudgingProject.create(tmp_path / "x.db") as project:
        project.add_answers([Answer("a", "q1", retrieval="v1"), Answer("b", "q1", retrieval="v2")])
        with pytest.raises(FormatError, match=what) as raised:
            import_votes(project, path)
        assert raised.value.line == 3
        assert project.judgments() == []


@pytest.mark.parametrize(
    "line", ['{"id": "a"}', '{"id": 7, "question": "q1"}', '{"id": "a", "question": "q", "sources": 3}']
)
def test_a_broken_line_of_answers_is_named(tmp_path, line):
    path = tmp_path / "answers.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(FormatError) as raised:
        read_answers(path)
    assert raised.value.line == 1


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="needs the shared test data")
def test_the_votes_of_llmfao_are_counted_as_by_a_slow_loop(tmp_path):
    with DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    path = tmp_path / "votes.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "left", "right", "winner", "judge"])
        for each in rows:
            names = [f"{each['prompt']}/{each[side]}" for side in ("left", "right")]
            writer.writerow([each["prompt"], *names, each["winner"], each["worker"]])
    answers = {
        (each["prompt"], each[side]): Answer(f"{each['prompt']}/{each[side]}", each["prompt"], model=each[side])
        for each in rows
        for side in ("left", "right")
    }
    with JudgingProject.create(tmp_path / "llmfao.db") as project:
        project.add_answers(answers.values())
        assert import_votes(project, path) == len(rows) == 8931
        report = vote_report(project)

    pairs = [{each["left"], each["right"]} for each in rows]
    by_pair = {(each.system, each.other): each for each in report.pairs}
    models = sorted({each["left"] for each in rows} | {each["right"] for each in rows})
    counted = 0
    for one, other in itertools.combinations(models, 2):
        wins = losses = ties = 0
        workers = set()
        for each, pair in zip(rows, pairs, strict=True):
            if pair != {one, other}:
                continue
            workers.add(each["worker"])
            winner = None if each["winner"] == "tie" else each[each["winner"]]
            wins += winner == one
            losses += winner == other
            ties += winner is None
        if not workers:
            assert (one, other) not in by_pair
            continue
        pair = by_pair[one, other]
        assert (pair.wins, pair.losses, pair.ties) == (wins, losses, ties)
        assert pair.voters == len(workers)
        counted += wins + losses + ties
    assert counted == 8931
    (side,) = report.sides
    assert (side.left, side.right) == (2911, 2549)
    assert side.rate == pytest.approx(2911 / 5460)
    assert (side.low, side.high) == pytest.approx(wilson(2911, 5460), abs=1e-9)
