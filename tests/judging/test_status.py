"""Progress of a project."""

from dataclasses import replace

import pytest

import rankgauge
from rankgauge.judging import (
    Candidate,
    Choice,
    Document,
    JudgingProject,
    Question,
    Settings,
    Source,
    judging_status,
    measure_relevance,
)
from rankgauge.reports import Options


@pytest.fixture
def project(tmp_path):
    settings = Settings(shown=2, overlap=0.0, repeats=0.0, gold=0.0, budget=4)
    with JudgingProject.create(tmp_path / "judging.db", settings) as made:
        made.add_questions([Question("q1", "one"), Question("q2", "two")])
        yield made


def test_the_next_step_follows_the_project(project):
    assert "judge pool" in judging_status(project).next_step
    pool = [Candidate(query, name, (Source("bm25", rank=1),)) for query in ("q1", "q2") for name in ("a", "b", "c")]
    project.add_candidates(pool, [Document(name) for name in "abc"])
    found = judging_status(project)
    assert (found.pooled, found.candidates, found.judged, found.left) == (2, 6, 0, 8)
    assert "rankgauge serve" in found.next_step


def test_counts_times_and_judges_are_those_of_the_choices(project):
    project.add_candidates(
        [Candidate("q1", name, (Source("bm25", rank=1),)) for name in "abc"], [Document(name) for name in "abc"]
    )
    ann, _ = project.add_judge("Ann")
    project.add_judge("Bo", role="lead")
    for number, seconds in enumerate((4.0, 9.0, 5.0)):
        task = project.next_task(ann.id)
        outcome = "cannot tell" if number == 2 else "none"
        project.record(Choice(f"c{number}", task.presentation.id, ann.id, outcome, seconds=seconds))
    found = judging_status(project)
    assert found.statuses == {"counted": 2, "cannot tell": 1}
    assert (found.judged, found.left, found.seconds) == (2, 2, 5.0)
    told = {each.name: (each.finished, each.seconds, each.role) for each in found.judges}
    assert told == {"Ann": (3, 5.0, "judge"), "Bo": (0, None, "lead")}
    assert "not counted: cannot tell (1)" in str(found)
    assert "aim for 100" in str(found)


def test_many_judges_are_listed_in_full_only(project):
    for number in range(20):
        project.add_judge(f"Judge {number}")
    found = judging_status(project)
    short, full = str(found), rankgauge.reports.render(found, options=Options(full=True))
    assert "16 more judges hidden; show with --full" in short
    assert len(short.splitlines()) <= 20
    assert full.count("person Judge") == 20


def test_a_question_at_its_budget_is_complete_and_not_resolved(project):
    project.add_candidates(
        [Candidate("q1", name, (Source("bm25", rank=1),)) for name in "abc"], [Document(name) for name in "abc"]
    )
    project.change_settings(replace(project.settings, budget=3))
    ann, _ = project.add_judge("Ann")
    while (task := project.next_task(ann.id)) is not None:
        project.record(Choice(task.presentation.id, task.presentation.id, ann.id, "none"))
    found = judging_status(project)
    assert (found.left, found.complete) == (0, 1)
    assert measure_relevance(project.judgments(), project.pools).resolved == {"q1": False}


def test_a_question_on_whose_documents_judges_are_split_is_reported(project):
    project.add_candidates(
        [Candidate("q1", name, (Source("bm25", rank=1),)) for name in "vwxyz"], [Document(name) for name in "vwxyz"]
    )
    project.change_settings(replace(project.settings, budget=40))
    people = [project.add_judge(name)[0].id for name in ("Ann", "Bo", "Cy", "Di")]
    for judge in people * 10:
        if (task := project.next_task(judge)) is not None:
            shown = task.presentation
            liked = ("x",) if judge in people[:2] and "x" in shown.documents else ()
            project.record(Choice(shown.id, shown.id, judge, "chosen" if liked else "none", liked))
    found = judging_status(project)
    assert found.split == 1
    assert "1 question with a split document: rankgauge judge relevance" in str(found)
    assert project.question_progress()[0].split == ("x",)
