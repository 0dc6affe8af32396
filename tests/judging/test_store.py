"""The store of a judging project is append-only and durable."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import uuid

import pytest
from judging_events import everything

from rankgauge.errors import InputError
from rankgauge.judging import (
    Candidate,
    Choice,
    Document,
    GoldTask,
    Judge,
    JudgingProject,
    Presentation,
    Question,
    Source,
)


def small(where, questions=9):
    """A project with one judge, ann."""
    project = JudgingProject.create(where)
    project.add_questions([Question(f"q{n}", "How?") for n in range(questions)])
    project.add_candidates(
        [Candidate(f"q{n}", d, (Source("bm25"),)) for n in range(questions) for d in "abc"],
        [Document(d, {"text": d}) for d in "abc"],
    )
    with project.writing() as stored:
        stored.add_judge(Judge("ann", "Ann"))
    return project


def judge_one(project):
    """Record one choice of ann; return its identifier."""
    shown = project.next_task("ann").presentation
    choice = Choice(str(uuid.uuid4()), shown.id, "ann", "none")
    project.record(choice)
    return choice.id


def choices_of(project):
    with project.reading() as stored:
        return [each.id for each in stored.choices()]


# ---- what is stored


def test_stored_records_round_trip(where):
    project = small(where)
    question = Question("q\u00fc 1", "Wie? \u202e", "need", "me", "log", "2026-01-01T00:00:00+00:00", 0.25, ("a",))
    shown = Presentation("p1", "q1", ("b", "a"), "ann", "ranking", "random", seed=2**40)
    choice = Choice("c1", "p1", "ann", "chosen", ("a",), reason="more detail", comment="\0\ud800", seconds=1.5)
    with project.writing() as stored:
        stored.add_questions([question])
        stored.add_gold([GoldTask("q1", ("a", "b"), ("a",))])
        assert stored.append_presentation(shown).sequence == 1
        assert stored.append_choice(choice).sequence == 1
        assert stored.append_choice(choice) is None
    with project.reading() as stored:
        assert stored.questions()[question.id] == question
        assert stored.gold() == [GoldTask("q1", ("a", "b"), ("a",))]
        read = stored.presentations()[0], stored.choice("c1")
        assert stored.choice("no") is None
    assert read[0].documents == ("b", "a")
    assert (read[0].mode, read[0].seed, read[0].sequence) == ("ranking", 2**40, 1)
    assert (read[1].comment, read[1].seconds, read[1].reason) == ("\0\ud800", 1.5, "more detail")


def test_a_changed_question_is_a_new_row_and_the_latest_counts(where):
    project = small(where)
    project.add_questions([Question("q1", "Better?"), Question("q2", "", withdrawn=True)])
    assert project.questions["q1"].text == "Better?"
    assert list(project.questions) == [f"q{n}" for n in range(9) if n != 2]
    rows = [row[2] for row in everything(project) if row[0] == "rankgauge_judging_questions"]
    assert rows.count("q1") == rows.count("q2") == 2


def test_a_candidate_has_all_its_sources_and_is_new_once(where):
    project = small(where)
    again = [Candidate("q1", "a", (Source("dense", rank=3, score=0.5), Source("bm25")))]
    assert project.add_candidates(again, []) == 0
    with project.reading() as stored:
        held = {each.document: each.sources for each in stored.candidates(["q1"])}
    assert {source.name for source in held["a"]} == {"bm25", "dense"}
    assert project.add_candidates([Candidate("q1", "new", (Source("x"),))], []) == 1


def test_no_statement_changes_or_deletes_an_event(where):
    """Every SQL statement of a judging session is inspected as it is sent."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    sent = []

    def note(_connection, _cursor, statement, *_):
        sent.append(statement.upper())

    event.listen(Engine, "before_cursor_execute", note)
    try:
        project = small(where)
        judge_one(project)
        project.record(Choice(str(uuid.uuid4()), project.progress("ann").last, "ann", "undone"))
        judge_one(project)
        project.revoke("ann")
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert any("INSERT INTO RANKGAUGE_JUDGING_CHOICES" in each for each in sent)
    events = ("RANKGAUGE_JUDGING_CHOICES", "RANKGAUGE_JUDGING_PRESENTATIONS")
    for each in sent:
        changes = each.startswith(("UPDATE", "DELETE")) or "DO UPDATE" in each
        assert not (changes and any(name in each for name in events)), each


@pytest.mark.parametrize("value", ["", "a\nb", "x" * 501, "\0", "\ud800"])
def test_an_invalid_identifier_is_refused(value, tmp_path):
    project = small(tmp_path / "a.db")
    for add in (
        lambda: project.add_questions([Question(value, "?")]),
        lambda: project.add_candidates([], [Document(value)]),
        lambda: project.add_candidates([Candidate("q1", value, (Source("x"),))], []),
    ):
        with pytest.raises(InputError, match="is not a valid identifier"):
            add()


def test_an_oversized_document_is_refused_and_nothing_of_the_call_is_stored(where):
    project = small(where)
    big = Document("big", {"text": "x" * 2_000_001})
    with pytest.raises(InputError, match="document 'big' has 2,000,0") as caught:
        project.add_candidates([Candidate("q1", "z", (Source("x"),))], [Document("z"), big])
    assert "cut it into passages" in caught.value.fix
    assert project.documents(["z", "big"]) == {}
    assert "z" not in project.pools["q1"]


# ---- unusable databases


def test_a_missing_project_is_reported_and_nothing_is_created(tmp_path):
    with pytest.raises(InputError, match="there is no store yet") as caught:
        JudgingProject(tmp_path / "no.db").judgments()
    assert "rankgauge judge create" in caught.value.fix
    assert list(tmp_path.iterdir()) == []


def test_a_server_without_a_project_is_reported(postgres):
    with pytest.raises(InputError, match="there is no store yet"):
        JudgingProject(postgres).judgments()


def test_a_project_is_created_once(where):
    small(where)
    with pytest.raises(InputError, match="a judging project already exists"):
        JudgingProject.create(where)
    assert len(JudgingProject(where).questions) == 9


def test_a_database_of_another_application_is_not_changed(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as raw:
        raw.execute("CREATE TABLE mine (x)")
    raw.close()
    before = (tmp_path / "a.db").read_bytes()
    for act in (JudgingProject.create, lambda path: JudgingProject(path).judgments()):
        with pytest.raises(InputError, match="another kind of database"):
            act(tmp_path / "a.db")
    assert (tmp_path / "a.db").read_bytes() == before


def test_a_locked_database_is_reported_and_later_events_are_stored(tmp_path):
    project = small(tmp_path / "a.db")
    first = judge_one(project)
    impatient = JudgingProject(tmp_path / "a.db", wait=0.1)
    shown = project.next_task("ann").presentation
    choice = Choice("late", shown.id, "ann", "none")
    raw = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(InputError, match="another program is writing") as caught:
            impatient.record(choice)
        assert "try again" in caught.value.fix
        assert choices_of(impatient) == [first]  # reading continues
    finally:
        raw.close()
    assert impatient.record(choice)
    assert choices_of(project) == [first, "late"]


def test_a_lock_on_a_server_is_reported(postgres):
    import psycopg

    project = small(postgres)
    shown = project.next_task("ann").presentation
    with psycopg.connect(postgres) as raw:
        raw.execute("SELECT pg_advisory_xact_lock(7265001)")
        with (
            JudgingProject(postgres, wait=0.2) as impatient,
            pytest.raises(InputError, match="another program is writing"),
        ):
            impatient.record(Choice("c", shown.id, "ann", "none"))
    assert project.record(Choice("c", shown.id, "ann", "none"))


def test_a_reader_sees_one_state_while_others_write(where):
    """A choice is never visible without its presentation."""
    project = small(where)
    with project.reading() as stored:
        assert stored.presentations() == []
        judge_one(JudgingProject(where))
        assert stored.choices() == []
    assert len(project.judgments()) == 1


def test_readers_and_writers_at_once_raise_nothing(where):
    project = small(where)
    errors = []
    done = threading.Event()

    def read():
        with JudgingProject(where) as own:
            while not done.is_set():
                try:
                    own.judgments()
                except Exception as error:  # noqa: BLE001 - shown by the test
                    errors.append(error)
                    return

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(8):
        judge_one(project)
    done.set()
    thread.join()
    assert errors == []


# ---- kill -9, full disk


_DRILL = '''
import json, os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from rankgauge.judging import Choice, JudgingProject

where, most = sys.argv[1], int(sys.argv[2])

def session(step, told):
    """Judge two tasks, and die before the given statement."""
    count = 0
    def die(*_):
        nonlocal count
        count += 1
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)
    for name in ("before_cursor_execute", "commit"):
        event.listen(Engine, name, die)
    project = JudgingProject(where)
    for number in range(2):
        task = project.next_task("ann")
        choice = Choice(f"{step}-{number}", task.presentation.id, "ann", "none")
        project.record(choice)
        os.write(told, (choice.id + "\\n").encode())
        project.record(Choice(f"{choice.id}-undone", choice.presentation, "ann", "undone"))

killed, recorded = 0, []
for step in range(1, most):
    out, told = os.pipe()
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    child = os.fork()
    if not child:
        os.close(out)
        session(step, told)
        os._exit(0)
    os.close(told)
    with os.fdopen(out) as pipe:
        recorded += pipe.read().split()
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status):
        assert status == 0, status
        break
    killed += 1
print(json.dumps({"killed": killed, "recorded": recorded}))
'''


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is killed at each statement")
def test_a_kill_at_any_statement_loses_no_recorded_choice(where):
    small(where, 200).close()
    done = subprocess.run([sys.executable, "-c", _DRILL, where, "400"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["killed"] > 40  # it ends normally only after that many kills
    project = JudgingProject(where)
    assert set(told["recorded"]) <= set(choices_of(project))
    # Each choice has its presentation, and judging continues.
    assert all(each.presentation.judge == "ann" for each in project.judgments())
    assert judge_one(project) in choices_of(project)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a limit on the size of files")
def test_a_full_disk_is_reported_and_loses_nothing(tmp_path):
    small(tmp_path / "a.db").close()
    code = """
import json, resource, signal, sys
from rankgauge.errors import InputError
from rankgauge.judging import Choice, JudgingProject
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
project = JudgingProject(sys.argv[1])
project.judgments()
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
sys.dont_write_bytecode = True  # it would be cut off, too
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, most))
recorded, said = [], ""
try:
    for number in range(400):
        task = project.next_task("ann")
        choice = Choice(str(number), task.presentation.id, "ann", "none", comment="x" * 5000)
        project.record(choice)
        recorded.append(choice.id)
        project.record(Choice(f"{number}-undone", choice.presentation, "ann", "undone"))
except InputError as error:
    said = str(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
task = project.next_task("ann")
project.record(Choice("after", task.presentation.id, "ann", "none"))
print(json.dumps({"recorded": recorded, "said": said}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.db")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "fix: check the disk; earlier records are unchanged" in told["said"]
    assert told["recorded"]
    held = choices_of(JudgingProject(tmp_path / "a.db"))
    assert {*told["recorded"], "after"} <= set(held)


def test_a_missing_folder_is_reported(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        JudgingProject.create(tmp_path / "no" / "a.db")
