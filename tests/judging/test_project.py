"""Judging projects: the next task, recorded events, and durability."""

import threading
import uuid
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from rankgauge.errors import InputError, UnknownName
from rankgauge.judging import (
    Candidate,
    Choice,
    Document,
    GoldTask,
    Judge,
    JudgingProject,
    Question,
    Settings,
    Source,
    import_judgments,
)
from rankgauge.judging.events import OUTCOMES


def project_at(where, questions=3, documents=8, **settings):
    """A project with pools of equal size."""
    project = JudgingProject.create(where, Settings(**settings))
    project.add_questions([Question(f"q{n}", f"Question {n}?") for n in range(questions)])
    project.add_candidates(
        [
            Candidate(f"q{n}", f"d{m}", (Source("bm25", rank=m + 1),))
            for n in range(questions)
            for m in range(documents)
        ],
        [Document(f"d{m}", {"text": f"Text {m}"}) for m in range(documents)],
    )
    return project


def said(shown, outcome="chosen"):
    """Return a choice of the first document, or another outcome."""
    documents = shown.documents[:1] if outcome == "chosen" else ()
    return Choice(str(uuid.uuid4()), shown.id, shown.judge, outcome, documents)


def judge_all(project, judge, most=10_000):
    """Judge until no task is left; return the presentations."""
    found = []
    while len(found) < most and (task := project.next_task(judge)) is not None:
        project.record(said(task.presentation))
        found.append(task.presentation)
    return found


# ---- the next task


def test_a_task_stays_until_it_is_judged_and_shows_no_sources(where):
    project = project_at(where)
    ann, _ = project.add_judge("Ann")
    task = project.next_task(ann.id)
    assert project.next_task(ann.id) == task
    assert project.task(task.presentation.id, ann.id) == task
    assert {each.id for each in task.documents} == set(task.presentation.documents)
    assert "bm25" not in repr(task)
    project.record(said(task.presentation))
    assert project.next_task(ann.id).presentation.id != task.presentation.id


def test_after_a_lease_expires_another_judge_gets_the_set(where):
    project = project_at(where, questions=1, documents=3, overlap=0.0, budget=1, gold=0)
    ann, _ = project.add_judge("Ann")
    bob, _ = project.add_judge("Bob")
    first = project.next_task(ann.id).presentation
    assert project.next_task(bob.id) is None
    after = datetime.now(UTC) + timedelta(minutes=project.settings.lease + 1)
    second = project.next_task(bob.id, now=after).presentation
    assert second.items == first.items
    # Ann comes back late, and her work is stored.
    assert project.record(said(first))
    assert project.record(said(second))
    assert [each.status for each in project.judgments()] == ["counted", "counted"]


def test_a_choice_sent_again_with_other_values_is_another_choice(where):
    project = project_at(where, questions=1, documents=3)
    ann, _ = project.add_judge("Ann")
    choice = said(project.next_task(ann.id).presentation)
    changed = replace(choice, comment="on second thought")
    assert [project.record(one) for one in (choice, choice, changed, changed)] == [True, False, True, False]
    assert [each.choice.comment for each in project.judgments()] == ["on second thought"]


def test_no_set_is_shown_twice_to_one_judge_but_repeats_and_gold(where):
    project = project_at(where, questions=2, documents=5, repeats=0.2, gold=0.2, budget=12)
    project.add_gold([GoldTask("q0", ("d0", "d1", "d2"), ("d0",))])
    ann, _ = project.add_judge("Ann")
    shown = judge_all(project, ann.id, 60)
    sets = Counter((each.question, each.items) for each in shown if each.purpose not in {"repeat", "gold"})
    assert max(sets.values()) == 1
    statuses = Counter(each.status for each in project.judgments())
    purposes = Counter(each.purpose for each in shown)
    assert purposes["repeat"] > 0
    assert purposes["gold"] == 1
    assert (statuses["repeat"], statuses["gold"]) == (purposes["repeat"], 1)
    assert statuses["counted"] == len(shown) - purposes["repeat"] - 1


@pytest.mark.slow
def test_positions_are_random_and_recorded(tmp_path):
    project = project_at(tmp_path / "a.db", questions=90, documents=3, budget=1, repeats=0.0)
    ann, _ = project.add_judge("Ann")
    firsts = Counter(each.documents[0] for each in judge_all(project, ann.id))
    # Each has 30 of 90 on average; 99.99% of binomial draws are within 4 sd.
    assert firsts.total() == 90
    assert all(12 <= firsts[f"d{n}"] <= 48 for n in range(3))
    stored = [each.presentation.documents for each in project.judgments()]
    assert Counter(documents[0] for documents in stored) == firsts


def test_a_judge_who_is_unknown_or_revoked_gets_no_task(where):
    project = project_at(where)
    ann, _ = project.add_judge("Ann")
    shown = project.next_task(ann.id).presentation
    project.record(said(shown))
    project.revoke(ann.id)
    for judge in (ann.id, "nobody"):
        with pytest.raises(InputError, match="the access has ended"):
            project.next_task(judge)
    assert [each.status for each in project.judgments()] == ["counted"]


# ---- recorded events


def test_the_same_choice_is_stored_once(where):
    project = project_at(where)
    ann, _ = project.add_judge("Ann")
    choice = said(project.next_task(ann.id).presentation)
    assert project.record(choice)
    assert not project.record(choice)
    # A change of settings does not invalidate a stored choice.
    project.change_settings(Settings(mode="graded"))
    assert not project.record(choice)
    project.change_settings(Settings())
    other = project.next_task(ann.id).presentation
    with pytest.raises(InputError, match="belongs to another task"):
        project.record(replace(choice, presentation=other.id, documents=other.documents[:1]))
    with project.reading() as stored:
        assert [each.id for each in stored.choices()] == [choice.id]


def test_a_correction_is_a_new_event_and_counts(where):
    project = project_at(where)
    ann, _ = project.add_judge("Ann")
    shown = project.next_task(ann.id).presentation
    project.record(said(shown))
    project.record(said(shown, "none"))
    assert [each.choice.outcome for each in project.judgments()] == ["none"]
    with project.reading() as stored:
        assert [each.outcome for each in stored.choices()] == ["chosen", "none"]


def test_undo_opens_the_last_task_and_later_puts_it_off(where):
    project = project_at(where, questions=1, documents=3, budget=1, overlap=0.0)
    ann, _ = project.add_judge("Ann")
    shown = project.next_task(ann.id).presentation
    assert project.progress(ann.id).last is None
    project.record(said(shown))
    assert project.next_task(ann.id) is None
    assert project.progress(ann.id).last == shown.id
    project.record(said(shown, "undone"))
    assert [each.status for each in project.judgments()] == ["open"]
    assert project.next_task(ann.id).presentation.id == shown.id
    project.record(said(shown, "later"))
    # It comes back when no other task is left.
    assert project.next_task(ann.id).presentation.id == shown.id
    project.record(said(shown, "cannot tell"))
    assert [each.status for each in project.judgments()] == ["cannot tell"]


@pytest.mark.parametrize(
    ("change", "said_of_it"),
    [
        ({"presentation": "nope"}, "there is no task 'nope'"),
        ({"judge": "bob"}, "there is no task"),
        ({"documents": ("d99",)}, "was not shown"),
        ({"documents": ()}, "0 documents chosen"),
        ({"outcome": "great", "documents": ()}, "is not an outcome of the mode choice"),
        ({"outcome": "none"}, "1 document chosen"),
        ({"grades": (1,)}, "grades [1]"),
        ({"comment": "x" * 10_001}, "a comment of 10,001 characters"),
        ({"seconds": float("nan")}, "seconds=nan"),
        ({"seconds": -1.0}, "seconds=-1.0"),
        ({"id": "x" * 37}, "is not a valid identifier of a choice"),
        ({"id": ""}, "is not a valid identifier of a choice"),
    ],
    ids=str,
)
def test_an_impossible_choice_is_refused_with_its_fix_and_nothing_is_stored(change, said_of_it, tmp_path):
    project = project_at(tmp_path / "a.db")
    ann, _ = project.add_judge("Ann")
    choice = said(project.next_task(ann.id).presentation)
    with pytest.raises(InputError) as caught:
        project.record(replace(choice, **change))
    assert said_of_it in str(caught.value)
    assert caught.value.fix
    with project.reading() as stored:
        assert stored.choices() == []
    assert project.record(choice)


def test_grades_are_whole_numbers_of_the_scale(tmp_path):
    project = project_at(tmp_path / "a.db", mode="graded", grades=("no", "yes"))
    ann, _ = project.add_judge("Ann")
    shown = project.next_task(ann.id).presentation
    for grades in ((2,), (-1,), (0.5,), (), (0, 0)):
        with pytest.raises(InputError, match="a grade from 0 to 1"):
            project.record(Choice("c", shown.id, ann.id, "graded", grades=grades))
    assert project.record(Choice("c", shown.id, ann.id, "graded", grades=(1,)))


def test_imported_grades_take_no_task_from_people_who_choose(tmp_path):
    project = project_at(tmp_path / "a.db", questions=1, documents=3)
    ann, _ = project.add_judge("Ann")
    before = project.progress(ann.id)
    import_judgments(project, {"q0": {"d0": 2, "d1": 0}}, "Bob")
    assert project.progress(ann.id) == before
    assert project.next_task(ann.id) is not None


# ---- concurrent judges


def _race(projects, tasks):
    errors, found = [], defaultdict(list)

    def work(number, project):
        try:
            for _ in range(tasks):
                task = project.next_task(f"j{number}")
                if task is None:
                    return
                assert project.record(said(task.presentation))
                found[number].append(task.presentation)
        except Exception as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=each) for each in enumerate(projects)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    return found


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False], ids=["one object", "one object each"])
def test_racing_judges_all_finish_and_the_limit_holds(shared, where):
    project = project_at(where, overlap=1.0, judges=2, repeats=0.0, budget=6)
    with project.writing() as stored:
        for number in range(6):
            stored.add_judge(Judge(f"j{number}", f"Judge {number}"))
    projects = [project if shared else JudgingProject(where) for _ in range(6)]
    found = _race(projects, 8)
    judgments = project.judgments()
    assert len(judgments) == sum(map(len, found.values())) > 0
    assert all(each.status == "counted" for each in judgments)
    people = defaultdict(list)
    for each in judgments:
        people[each.presentation.question, each.presentation.items].append(each.presentation.judge)
    for judges in people.values():
        assert len(judges) == len(set(judges))
    overlapping = defaultdict(set)
    for each in judgments:
        if each.presentation.purpose == "overlap":
            key = each.presentation.question, each.presentation.items
            overlapping[key].add(each.presentation.judge)
    assert max(map(len, overlapping.values())) <= 2


# ---- settings


@given(
    given_settings=st.fixed_dictionaries(
        {},
        optional={
            "mode": st.sampled_from([*OUTCOMES, "", "Choice"]),
            "shown": st.none() | st.integers(-1, 30) | st.floats(),
            "grades": st.lists(st.text(max_size=5), max_size=12),
            "places": st.none() | st.integers(-1, 12),
            "judges": st.integers(-1, 5) | st.booleans(),
            "overlap": st.floats(-0.5, 1.5) | st.just(float("nan")),
            "budget": st.none() | st.integers(-1, 99),
            "lease": st.floats(-1, 100),
            "fields": st.lists(st.text(max_size=5), max_size=3),
            "reasons": st.lists(st.tuples(st.text(max_size=2), st.text(max_size=5)), max_size=4),
            "seed": st.integers(),
        },
    )
)
def test_settings_are_refused_or_stored_as_they_are(given_settings, tmp_path_factory):
    try:
        made = Settings(**given_settings)
    except (InputError, UnknownName):
        return
    assert made.tasks(5) >= 1
    with JudgingProject.create(tmp_path_factory.mktemp("settings") / "a.db", made) as project:
        assert project.settings == made
        assert Settings(**{name: getattr(made, name) for name in made.__slots__}) == made


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("choice", "Choose the document"),
        ("ranking", "Rank the documents"),
        ("graded", "Grade how well"),
        ("yes-no", "Decide whether"),
    ],
)
def test_each_mode_has_a_guideline_of_its_own(tmp_path, mode, words):
    made = JudgingProject.create(tmp_path / "j.db", Settings(mode=mode))
    assert made.guideline()[1].startswith(words)
    assert "Correctness" in made.guideline()[1] or "correct answer" in made.guideline()[1]


def test_versions_of_settings_and_guideline_are_kept(where):
    project = project_at(where)
    assert project.change_guideline("Two.") == 2
    assert project.change_guideline("Two.") == 2
    assert project.guideline(1)[1] != project.guideline(2)[1] == "Two."
    with pytest.raises(InputError, match="no version 3"):
        project.guideline(3)
    with pytest.raises(InputError, match="empty"):
        project.change_guideline(" \n")
    assert project.change_settings(replace(project.settings, title="New")) == 2
    assert project.settings.title == "New"
    ann, _ = project.add_judge("Ann")
    assert project.next_task(ann.id).presentation.guideline == 2


def elsewhere(change):
    """Change a project in another thread."""
    thread = threading.Thread(target=change)
    thread.start()
    thread.join()


def test_reads_share_a_transaction_until_a_write(where):
    project = project_at(where)
    with project.sharing():
        earlier = project.questions.keys()
        elsewhere(lambda: JudgingProject(where).add_questions([Question("later", "Later?")]))
        assert project.questions.keys() == earlier
        project.add_questions([Question("own", "Own?")])
        assert project.questions.keys() == earlier | {"later", "own"}
    assert project.questions.keys() == earlier | {"later", "own"}


def test_a_shared_transaction_does_not_take_contents_back(where):
    project = project_at(where)
    with project.sharing():
        elsewhere(lambda: (project.add_judge("Ann"), project.judges))
        assert [judge.name for judge in project.judges.values()] == ["Ann"]
    with pytest.raises(ZeroDivisionError), project.sharing():
        1 / 0  # noqa: B018
