"""The state of a project cached between transactions equals that of the store."""

import os
import random
import sqlite3
import uuid

import pytest
from judging_pages import filled

from rankgauge.judging import Choice, JudgingProject, Settings


@pytest.mark.parametrize("seed", range(3))
def test_a_project_kept_open_knows_what_a_new_one_reads(tmp_path, seed):
    rng = random.Random(seed)
    where = tmp_path / "judging.db"
    with filled(where, 3, 4, Settings(overlap=0.5, judges=2, repeats=0.1, budget=6)) as project:
        people = [project.add_judge(name)[0].id for name in "abc"]
        for _ in range(30):
            judge = rng.choice(people)
            task = project.next_task(judge)
            if task is not None:
                shown = task.presentation
                outcome = rng.choice(["chosen", "chosen", "none", "cannot tell", "later"])
                best = shown.documents[:1] if outcome == "chosen" else ()
                project.record(Choice(str(uuid.uuid4()), shown.id, judge, outcome, best, seconds=5))
            last = project.progress(judge).last
            if rng.random() < 0.2 and last is not None:
                project.record(Choice(str(uuid.uuid4()), last, judge, "undone"))
            if rng.random() < 0.1:
                project.change_settings(Settings(overlap=0.5, judges=rng.randrange(1, 4), budget=6))
        with JudgingProject(where) as fresh:
            assert fresh.judgments() == project.judgments()
            for judge in people:
                assert fresh.progress(judge) == project.progress(judge)
            for judge in people:
                task, other = fresh.next_task(judge), project.next_task(judge)
                assert (task and task.presentation) == (other and other.presentation)


def test_a_set_is_judged_by_as_many_people_as_the_settings_say(tmp_path):
    settings = Settings(overlap=1.0, judges=2, repeats=0.0, budget=4)
    with filled(tmp_path / "judging.db", 2, 4, settings) as project:
        people = [project.add_judge(name)[0].id for name in "abcd"]
        for turn in range(40):
            task = project.next_task(people[turn % 4])
            if task is not None:
                shown = task.presentation
                project.record(Choice(str(uuid.uuid4()), shown.id, shown.judge, "none"))
        sets = {}
        for each in project.judgments():
            key = (each.presentation.question, each.presentation.items)
            sets.setdefault(key, []).append(each.presentation.judge)
        assert sets
        assert all(len(judges) == len(set(judges)) == 2 for judges in sets.values())


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be replaced on Windows")
def test_a_file_put_in_the_place_of_an_open_project_is_the_one_that_is_read(tmp_path):
    filled(tmp_path / "other.db", 2, 2, Settings(title="restored"))
    with filled(tmp_path / "judging.db", 1, 2) as project:
        assert project.settings.title == "Judging"
        with sqlite3.connect(tmp_path / "other.db") as raw:
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.close()
        (tmp_path / "other.db").replace(tmp_path / "judging.db")
        for suffix in ("-wal", "-shm"):
            (tmp_path / f"judging.db{suffix}").unlink(missing_ok=True)
        assert project.settings.title == "restored"
        assert project.add_judge("Ann")[0].id in project.judges
