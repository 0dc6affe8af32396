"""Backups of judging projects are complete, and damaged ones are rejected."""

import gzip
import json
import os
import subprocess
import sys
import threading
import uuid

import pytest
from hypothesis import given, settings
from judging_events import contents, everything, project_of

from rankgauge.errors import FormatError, InputError
from rankgauge.judging import (
    Candidate,
    Choice,
    Document,
    JudgingProject,
    Question,
    Settings,
    Source,
    backup,
    restore,
    write_events,
)
from rankgauge.judging.project import hash_secret


def small(where):
    """A project with two choices of one judge."""
    project = JudgingProject.create(where)
    project.add_questions([Question("q1", "How?"), Question("q2", "Why?")])
    project.add_candidates(
        [Candidate(q, d, (Source("bm25"),)) for q in ("q1", "q2") for d in "abcd"],
        [Document(d, {"text": d * 3}) for d in "abcd"],
    )
    ann, _ = project.add_judge("Ann")
    for number in range(2):
        shown = project.next_task(ann.id).presentation
        project.record(Choice(f"c{number}", shown.id, ann.id, "chosen", shown.documents[:1]))
    return project


@settings(deadline=None, max_examples=8)
@given(held=contents())
def test_events_come_back_as_they_were(held, tmp_path_factory):
    folder = tmp_path_factory.mktemp("copies")
    with project_of(str(folder / "a.db"), held) as project:
        write_events(project, folder / "a.jsonl")
        restore(folder / "a.jsonl", folder / "b.db")
        with JudgingProject(folder / "b.db") as other:
            assert everything(other) == everything(project)
            assert other.judgments() == project.judgments()
            write_events(other, folder / "b.jsonl")
    assert (folder / "b.jsonl").read_bytes() == (folder / "a.jsonl").read_bytes()


def test_secrets_and_sessions_are_not_among_the_events(tmp_path):
    project = JudgingProject.create(tmp_path / "a.db")
    _, secret = project.add_judge("Ann")
    write_events(project, tmp_path / "a.jsonl")
    text = (tmp_path / "a.jsonl").read_text()
    assert secret not in text
    assert hash_secret(secret) not in text
    assert "secret" not in text


@pytest.mark.parametrize("way", ["sqlite to postgres", "postgres to sqlite"])
def test_a_project_moves_from_one_database_to_another(way, postgres, tmp_path):
    source, target = str(tmp_path / "a.db"), postgres
    if way == "postgres to sqlite":
        source, target = target, source
    with small(source) as project, JudgingProject(target) as other:
        backup(project, tmp_path / "copy.jsonl.gz")
        restore(tmp_path / "copy.jsonl.gz", target)
        assert everything(other) == everything(project)
        before = [each.presentation.sequence for each in other.judgments()]
        ann = next(iter(other.judges))
        shown = other.next_task(ann).presentation
        assert shown.sequence > max(before)
        assert other.record(Choice("later", shown.id, ann, "none"))


@pytest.mark.parametrize("name", ["copy.db", "copy.jsonl", "copy.jsonl.gz"])
def test_only_the_owner_can_read_a_backup(tmp_path, name):
    project = JudgingProject.create(tmp_path / "a.db")
    backup(project, tmp_path / name)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_a_copy_of_sqlite_has_the_invitations(tmp_path):
    project = JudgingProject.create(tmp_path / "a.db")
    ann, secret = project.add_judge("Ann")
    backup(project, tmp_path / "copy.db")
    restore(tmp_path / "copy.db", tmp_path / "b.db")
    with JudgingProject(tmp_path / "b.db").reading() as stored:
        assert stored.judge_by_secret(hash_secret(secret))[0] == ann


def test_a_copy_taken_while_judges_write_is_one_state(tmp_path):
    project = small(tmp_path / "a.db")
    ann = next(iter(project.judges))
    ended = threading.Event()

    def judge():
        with JudgingProject(tmp_path / "a.db") as own:
            while not ended.is_set() and (task := own.next_task(ann)) is not None:
                shown = task.presentation
                own.record(Choice(str(uuid.uuid4()), shown.id, ann, "none"))

    thread = threading.Thread(target=judge)
    thread.start()
    try:
        for number in range(5):
            backup(project, tmp_path / f"{number}.db")
            backup(project, tmp_path / f"{number}.jsonl")
    finally:
        ended.set()
        thread.join()
    counts = []
    for number in range(5):
        restore(tmp_path / f"{number}.jsonl", tmp_path / f"r{number}.db")
        for name in (f"{number}.db", f"r{number}.db"):
            with JudgingProject(tmp_path / name) as copy:
                counts.append(sum(each.choice is not None for each in copy.judgments()))
    assert counts == sorted(counts)
    assert counts[0] >= 2


def test_existing_files_are_never_replaced(tmp_path):
    project = small(tmp_path / "a.db")
    (tmp_path / "other.txt").write_text("mine")
    for name in ("a.db", "other.txt"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(InputError, match="this file already exists"):
            backup(project, tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    backup(project, tmp_path / "b.db")
    with pytest.raises(InputError, match="this file already exists"):
        restore(tmp_path / "b.db", tmp_path / "a.db")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe lets the restore wait")
def test_a_project_created_during_a_restore_is_kept(tmp_path):
    write_events(small(tmp_path / "a.db"), tmp_path / "a.jsonl")
    target, pipe = tmp_path / "b.db", tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)

    def send():
        with pipe.open("wb") as stream:  # waits until the restore has begun to read
            JudgingProject.create(target, Settings(title="of another process")).close()
            stream.write((tmp_path / "a.jsonl").read_bytes())

    sender = threading.Thread(target=send)
    sender.start()
    with pytest.raises(InputError, match="this file already exists"):
        restore(pipe, target)
    sender.join()
    assert JudgingProject(target).settings.title == "of another process"
    assert not list(tmp_path.glob(".*"))


def test_a_database_with_a_project_is_not_restored_into(postgres, tmp_path):
    project = small(postgres)
    backup(project, tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="a judging project already exists"):
        restore(tmp_path / "a.jsonl", postgres)


def _lines(tmp_path):
    small(tmp_path / "a.db").close()
    write_events(JudgingProject(tmp_path / "a.db"), tmp_path / "a.jsonl")
    return (tmp_path / "a.jsonl").read_text().splitlines()


def _changed(line, **values):
    return json.dumps(json.loads(line) | values)


@pytest.mark.parametrize(
    ("change", "said", "at"),
    [
        (lambda lines: lines[:-1], "the file is incomplete", -1),
        (lambda lines: [*lines[:-3], *lines[-2:]], "the file is incomplete", -1),
        (lambda lines: lines[1:], "this is not a copy of a judging project", 1),
        (lambda lines: [*lines[:5], lines[5][:-9], *lines[6:]], "", 6),
        (lambda lines: [*lines[:3], '{"table": "sqlite_master"}', *lines[3:]], "no table", 4),
        (lambda lines: [lines[0], _changed(lines[1], extra=1), *lines[2:]], "it has", 2),
        (
            lambda lines: [*lines[:-2], _changed(lines[-2], presentation="x"), lines[-1]],
            "there is no presentation 'x'",
            -2,
        ),
        (
            lambda lines: [*lines[:-2], _changed(lines[-2], outcome="great"), lines[-1]],
            "'great' is not an outcome of the mode choice",
            -2,
        ),
        (lambda lines: [*lines[:-2], _changed(lines[-2], body={}), lines[-1]], "documents", -2),
        (lambda lines: [*lines[:-2], _changed(lines[-2], time=7), lines[-1]], "time is 7", -2),
        (lambda lines: [], "this is not a copy of a judging project", 0),
    ],
    ids=[
        "cut",
        "a row missing",
        "no head",
        "no JSON",
        "unknown table",
        "extra key",
        "no presentation",
        "unknown outcome",
        "empty body",
        "wrong type",
        "empty",
    ],
)
def test_a_broken_copy_names_its_line_and_leaves_nothing(change, said, at, tmp_path):
    lines = change(_lines(tmp_path))
    (tmp_path / "broken.jsonl").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(FormatError) as caught:
        restore(tmp_path / "broken.jsonl", tmp_path / "new.db")
    error = caught.value
    assert said in str(error)
    assert error.fix
    if at > 0:
        assert error.line == at
    elif at < 0:
        assert error.line == len(lines) + 1 + at
    assert sorted(each.name for each in tmp_path.glob("new.db*")) == []


def test_a_compressed_copy_that_was_cut_off_is_refused(tmp_path):
    _lines(tmp_path)
    packed = gzip.compress((tmp_path / "a.jsonl").read_bytes())
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[:-20])
    with pytest.raises(InputError):
        restore(tmp_path / "cut.jsonl.gz", tmp_path / "new.db")
    assert list(tmp_path.glob("new.db*")) == []


def test_a_damaged_copy_of_sqlite_is_refused(tmp_path):
    project = small(tmp_path / "a.db")
    backup(project, tmp_path / "copy.db")
    content = bytearray((tmp_path / "copy.db").read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    (tmp_path / "copy.db").write_bytes(content)
    with pytest.raises(InputError):
        restore(tmp_path / "copy.db", tmp_path / "new.db")
    assert list(tmp_path.glob("new.db*")) == []


@pytest.mark.slow
def test_a_full_disk_leaves_no_half_copy(tmp_path):
    project = small(tmp_path / "a.db")
    project.add_candidates([], [Document(f"big{n}", {"text": "x" * 100_000}) for n in range(5)])
    project.close()
    code = """
import resource, sys
from rankgauge.errors import InputError
from rankgauge.judging import JudgingProject, backup
import sqlalchemy, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # it would be cut off, too
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    backup(JudgingProject(sys.argv[1]), sys.argv[2])
except InputError as error:
    print(error)
"""
    for name in ("copy.db", "copy.jsonl"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "a.db"), str(tmp_path / name)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "fix: " in done.stdout, done
        assert sorted(each.name for each in tmp_path.iterdir()) == ["a.db"]
