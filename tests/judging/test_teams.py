"""Judges, invitations and sessions, questions from experts, and final verdicts."""

from datetime import UTC, datetime, timedelta

import pytest

from rankgauge import InputError, UnknownName
from rankgauge.judging import (
    Candidate,
    Choice,
    Document,
    JudgingProject,
    Question,
    Settings,
    Source,
    disputed_sets,
    hash_secret,
    write_question,
)

POOL = ("a", "b", "c")
LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def project(where):
    with JudgingProject.create(where, Settings(overlap=1.0, repeats=0.0, judges=3)) as project:
        project.add_questions([Question("q1", "How are ties broken?")])
        project.add_candidates(
            [Candidate("q1", name, (Source("bm25", rank=1),)) for name in POOL],
            [Document(name, {"text": name}) for name in POOL],
        )
        yield project


def choose(project, judge, *documents, number=1):
    task = project.next_task(judge.id)
    outcome = "chosen" if documents else "none"
    project.record(Choice(f"{judge.id}-{number}", task.presentation.id, judge.id, outcome, documents))
    return task.presentation


def judge_of(project, secret):
    with project.reading() as stored:
        found = stored.judge_by_secret(hash_secret(secret))
    return None if found is None else found[0]


def session_of(project, judge):
    with project.writing() as stored:
        stored.add_session(hash_secret("token"), judge.id, LATER)

    def read():
        with project.reading() as stored:
            return stored.session_judge(hash_secret("token"), datetime.now(UTC))

    return read


def test_a_revoked_judge_has_no_session_and_what_was_chosen_is_kept(project):
    ann, _ = project.add_judge("Ann")
    session = session_of(project, ann)
    choose(project, ann, "a")
    assert session().id == ann.id
    project.revoke(ann.id)
    assert session() is None
    assert project.judges[ann.id].revoked
    assert [each.counted for each in project.judgments()] == [True]


def test_a_new_invitation_ends_the_one_before_and_all_sessions(project):
    ann, first = project.add_judge("Ann")
    session = session_of(project, ann)
    second = project.invite_again(ann.id)
    assert judge_of(project, first) is None
    assert judge_of(project, second).id == ann.id
    assert session() is None


def test_roles_can_be_changed_and_unknown_ones_are_refused(project):
    ann, secret = project.add_judge("Ann")
    project.change_role(ann.id, "lead")
    assert judge_of(project, secret).role == "lead"
    with pytest.raises(UnknownName):
        project.change_role(ann.id, "owner")
    with pytest.raises(InputError, match="no judge 'nobody'"):
        project.change_role("nobody", "lead")


def test_the_origins_of_an_application_outlive_a_new_token(project):
    shop, _ = project.add_judge(
        "shop", kind="application", origins=["https://Shop.example:443/", "http://localhost:8080"]
    )
    project.invite_again(shop.id)
    with project.reading() as stored:
        assert stored.origins()[shop.id] == ("https://shop.example", "http://localhost:8080")
    project.revoke(shop.id)
    with project.reading() as stored:
        assert shop.id not in stored.origins()


@pytest.mark.parametrize("origin", ["shop.example", "ftp://x", "https://x/path", "*", "https://[", ""])
def test_an_invalid_origin_is_refused(project, origin):
    with pytest.raises(InputError, match="is not an origin"):
        project.add_judge("shop", kind="application", origins=[origin])


def test_a_written_question_has_author_and_date(project):
    asked = write_question(project, " Why? ", need="to know", answers=["a", "a"], author="Ann")
    stored = project.questions[asked.id]
    assert (stored.text, stored.need, stored.author, stored.origin) == ("Why?", "to know", "Ann", "page")
    assert stored.answers == ("a",)
    assert datetime.fromisoformat(stored.time).date() == datetime.now(UTC).date()


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"text": " "}, "0 characters"),
        ({"text": "x" * 5001}, "5,001 characters"),
        ({"text": "how are TIES broken?"}, "already exists as q1"),
        ({"text": "Why?", "answers": ["a", "zz"]}, "no document 'zz'"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(project, given, what):
    with pytest.raises(InputError, match=what):
        write_question(project, **given)
    assert list(project.questions) == ["q1"]


def test_a_final_verdict_replaces_the_judgments_of_its_set(project):
    ann, ben, eve = (project.add_judge(name)[0] for name in ("Ann", "Ben", "Eve"))
    choose(project, ann, "a")
    choose(project, ben, "b")
    task = project.adjudicate("q1", POOL, eve.id)
    assert project.adjudicate("q1", POOL, eve.id).presentation == task.presentation
    assert [each.counted for each in project.judgments()] == [True, True, False]
    project.record(Choice("v1", task.presentation.id, eve.id, "chosen", ("c",)))
    statuses = [each.status for each in project.judgments()]
    assert statuses == ["adjudicated", "adjudicated", "counted"]


def test_the_latest_of_two_final_verdicts_counts(project):
    ann, eve, ken = (project.add_judge(name)[0] for name in ("Ann", "Eve", "Ken"))
    choose(project, ann, "a")
    first = project.adjudicate("q1", POOL, eve.id).presentation
    project.record(Choice("v1", first.id, eve.id, "chosen", ("b",)))
    second = project.adjudicate("q1", POOL, ken.id).presentation
    project.record(Choice("v2", second.id, ken.id, "chosen", ("c",)))
    assert [each.status for each in project.judgments()] == ["adjudicated", "adjudicated", "counted"]
    project.record(Choice("v3", first.id, eve.id, "none"))
    assert [each.status for each in project.judgments()] == ["adjudicated", "counted", "adjudicated"]


def test_unjudged_items_are_not_adjudicated(project):
    eve, _ = project.add_judge("Eve", role="lead")
    with pytest.raises(InputError, match="nobody has judged"):
        project.adjudicate("q1", POOL, eve.id)


def test_a_question_with_a_final_verdict_is_not_a_next_task(project):
    ann, eve = (project.add_judge(name)[0] for name in ("Ann", "Eve"))
    choose(project, ann, "a")
    verdict = project.adjudicate("q1", POOL, eve.id).presentation
    assert project.next_task(eve.id).presentation.id != verdict.id


def test_progress_of_each_question_counts_finished_tasks(project):
    ann, _ = project.add_judge("Ann")
    (before,) = project.question_progress()
    assert (before.documents, before.finished, before.left) == (3, 0, 6)
    choose(project, ann, "a")
    (after,) = project.question_progress()
    assert (after.finished, after.left) == (1, 5)


def test_versions_of_the_guideline_are_listed(project):
    project.change_guideline("Choose well.", author="Eve")
    with project.reading() as stored:
        found = stored.versions("guideline")
    assert [(number, author) for number, _, author in found] == [(2, "Eve"), (1, "")]


def test_people_who_chose_differently_are_listed_until_the_verdict(project):
    ann, ben, eve = (project.add_judge(name)[0] for name in ("Ann", "Ben", "Eve"))
    choose(project, ann, "a")
    assert disputed_sets(project.judgments(), project.judges) == []
    choose(project, ben)
    (found,) = disputed_sets(project.judgments(), project.judges)
    assert (found.question, found.documents, found.verdict) == ("q1", POOL, None)
    assert [each.presentation.judge for each in found.judgments] == [ann.id, ben.id]
    verdict = project.adjudicate("q1", POOL, eve.id).presentation
    project.record(Choice("v1", verdict.id, eve.id, "chosen", ("a",)))
    (found,) = disputed_sets(project.judgments(), project.judges)
    assert len(found.judgments) == 2
    assert found.verdict.choice.documents == ("a",)


def test_equal_choices_and_those_of_models_are_no_disagreement(project):
    ann, ben = (project.add_judge(name)[0] for name in ("Ann", "Ben"))
    model, _ = project.add_judge("model", kind="model")
    choose(project, ann, "a")
    choose(project, ben, "a")
    choose(project, model, "b")
    assert disputed_sets(project.judgments(), project.judges) == []
