"""Backups of the store are complete, damaged ones are refused, and what is forgotten is gone."""

import itertools
import json
import sqlite3
import subprocess
import sys
import threading
import uuid
import zipfile
from contextlib import closing

import pytest
from hypothesis import given, settings
from judging_events import contents, everything, project_of

from rankgauge import Collection, Evaluation, History, Qrels, Run, evaluate
from rankgauge.answers import Verdict, VerdictStore
from rankgauge.errors import FormatError, InputError
from rankgauge.judging import (
    Candidate,
    Choice,
    Document,
    JudgingProject,
    Question,
    Source,
    measure_agreement,
    measure_relevance,
)
from rankgauge.judging.project import hash_secret
from rankgauge.store import Gates, WholeStore
from rankgauge.store.schema import SCHEMA

TEXTS = Collection.of({f"d{n}": f"document number {n} is red" for n in range(4)}, {"q1": "Which colour?", "q2": "How?"})
QRELS = {"q1": {"d1": 1}, "q2": {"d2": 2, "d0": 1}}
RUNS = {"bm25": {"q1": {"d0": 2.5, "d1": 1.0}, "q2": {"d2": 3.0}}, "dense": {"q1": {"d1": 0.5}, "q2": {"d3": 0.25}}}


def small(where):
    """Fill a store: two evaluations, a judging project with two choices, and a verdict."""
    with History(where) as history:
        for name, rankings in RUNS.items():
            run = Run.of(rankings, name=name)
            history.add(evaluate(QRELS, run, ["nDCG@10", "RR"]), QRELS, run=run, collection=TEXTS)
    project = JudgingProject.create(where)
    project.add_questions([Question("q1", "How?", author="Ann Arbor"), Question("q2", "Why?")])
    project.add_candidates(
        [Candidate(q, d, (Source("bm25"),)) for q in ("q1", "q2") for d in ("d0", "d1", "d2", "d3")],
        [Document(d, {"text": TEXTS.documents[d].text}) for d in TEXTS.documents],
    )
    ann, _ = project.add_judge("Ann Arbor")
    for number in range(2):
        shown = project.next_task(ann.id).presentation
        choice = Choice(f"c{number}", shown.id, ann.id, "chosen", shown.documents[:1], comment="I met Ann there")
        project.record(choice)
    with VerdictStore(where) as verdicts:
        verdicts.add([Verdict("k1", "supported", "Ann Arbor", reason="Ann says so")])
    return project


def same(one, other):
    """Assert that two stores have the same contents."""
    with JudgingProject(one) as a, JudgingProject(other) as b:
        assert everything(a) == everything(b)
        assert a.judgments() == b.judgments()
    assert VerdictStore(one).verdicts() == VerdictStore(other).verdicts()
    with History(one) as a, History(other) as b:
        assert a.entries() == b.entries()
        for entry in a.entries():
            assert a.load(entry).to_json() == b.load(entry).to_json()
            assert a.run(entry) == b.run(entry)
            assert a.qrels(entry) == b.qrels(entry)
            assert a.collection(entry).documents == b.collection(entry).documents


def stored_bytes(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("way", ["sqlite", "sqlite to postgres", "postgres to sqlite"])
def test_a_backup_is_restored_into_any_database(way, request, tmp_path):
    source, target = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    if way == "sqlite to postgres":
        target = request.getfixturevalue("postgres")
    if way == "postgres to sqlite":
        source = request.getfixturevalue("postgres")
    small(source).close()
    counts = WholeStore(source).backup(tmp_path / "copy.zip")
    assert (counts["evaluations"], counts["judging_choices"], counts["answers_verdicts"]) == (2, 2, 1)
    assert WholeStore(target).restore(tmp_path / "copy.zip") == counts
    same(source, target)
    with JudgingProject(target) as project:  # numbers continue
        ann = next(iter(project.judges))
        shown = project.next_task(ann).presentation
        assert shown.sequence > max(each.presentation.sequence for each in project.judgments()[:-1])
    assert History(target).add(evaluate(QRELS, RUNS["bm25"], "RR")).id == 3


@settings(deadline=None, max_examples=5)
@given(held=contents())
def test_any_judging_comes_back_as_it_was(held, tmp_path_factory):
    folder = tmp_path_factory.mktemp("copies")
    with project_of(str(folder / "a.db"), held) as project:
        WholeStore(folder / "a.db").backup(folder / "a.zip")
        WholeStore(folder / "b.db").restore(folder / "a.zip")
        with JudgingProject(folder / "b.db") as other:
            assert everything(other) == everything(project)


def test_invitations_are_in_a_private_backup_but_not_in_an_export(tmp_path):
    project = small(tmp_path / "a.db")
    bob, secret = project.add_judge("Bob")
    store = WholeStore(tmp_path / "a.db")
    store.backup(tmp_path / "copy.zip")
    assert (tmp_path / "copy.zip").stat().st_mode & 0o777 == 0o600
    WholeStore(tmp_path / "b.db").restore(tmp_path / "copy.zip")
    with JudgingProject(tmp_path / "b.db").reading() as stored:
        assert stored.judge_by_secret(hash_secret(secret))[0] == bob
    store.export(tmp_path / "out")
    assert hash_secret(secret).encode() not in stored_bytes(tmp_path / "out")


def test_a_backup_taken_while_others_write_is_one_state(tmp_path):
    where = tmp_path / "a.db"
    project = small(where)
    ann = next(iter(project.judges))
    ended = threading.Event()

    def judge():
        with JudgingProject(where) as own:
            while not ended.is_set() and (task := own.next_task(ann)) is not None:
                own.record(Choice(str(uuid.uuid4()), task.presentation.id, ann, "none"))

    def save():
        for number in itertools.takewhile(lambda _: not ended.is_set(), itertools.count()):
            run = {"q1": {"d1": float(number)}, "q2": {"d2": 1.0}}
            History(where).add(evaluate(QRELS, run, "RR"), QRELS, run=run)

    threads = [threading.Thread(target=each) for each in (judge, save)]
    for thread in threads:
        thread.start()
    try:
        for number in range(4):
            WholeStore(where).backup(tmp_path / f"{number}.zip")
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    counts = []
    for number in range(4):
        target = tmp_path / f"r{number}.db"
        WholeStore(target).restore(tmp_path / f"{number}.zip")
        with JudgingProject(target) as copy, History(target) as history:
            entries = history.entries()
            counts.append((sum(each.choice is not None for each in copy.judgments()), len(entries)))
            assert history.run(entries[-1]).name == entries[-1].run
    assert counts == sorted(counts)


def test_existing_files_and_stores_are_never_replaced(tmp_path):
    small(tmp_path / "a.db").close()
    store = WholeStore(tmp_path / "a.db")
    (tmp_path / "other.txt").write_text("mine")
    with pytest.raises(InputError, match="this file already exists"):
        store.backup(tmp_path / "other.txt")
    with pytest.raises(InputError, match="this file already exists"):
        store.export(tmp_path)
    assert (tmp_path / "other.txt").read_text() == "mine"
    store.backup(tmp_path / "copy.zip")
    with pytest.raises(InputError, match="this store has contents"):
        store.restore(tmp_path / "copy.zip")
    with pytest.raises(InputError, match="there is no store yet"):
        WholeStore(tmp_path / "none.db").backup(tmp_path / "none.zip")
    assert not (tmp_path / "none.zip").exists()


def changed(path, name, change):
    """Write the archive again with one member changed, or without it."""
    with zipfile.ZipFile(path) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    members[name] = change(members[name])
    with zipfile.ZipFile(path, "w") as archive:
        for each, content in members.items():
            if content is not None:
                archive.writestr(each, content)


def without_presentations(text):
    return b"".join(line for line in text.splitlines(keepends=True) if b'"judging_presentations"' not in line)


def newer(text):
    return text.replace(f'"{SCHEMA.revision}"'.encode(), b'"0999"')


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-30]), "not a complete backup"),
        (lambda path: path.write_bytes(path.read_bytes()[:200]), "not a complete backup"),
        (lambda path: path.write_bytes(b""), "not a complete backup"),
        (lambda path: path.write_bytes(flipped(path.read_bytes())), "not a complete backup"),
        (lambda path: changed(path, "rows.jsonl", lambda _: None), "not a complete backup"),
        (lambda path: changed(path, "rows.jsonl", lambda text: text[:-9]), "this row cannot be read"),
        (lambda path: changed(path, "rows.jsonl", lambda text: b'{"table": "judging_choices", "x": 1}\n'), "it has x"),
        (lambda path: changed(path, "rows.jsonl", lambda text: b"5\n" + text), "not a complete backup"),
        (lambda path: changed(path, "rows.jsonl", without_presentations), "missing row"),
        (lambda path: changed(path, "rankgauge.json", newer), "version 0999"),
    ],
    ids=[
        "end missing",
        "start only",
        "empty",
        "bit",
        "no table",
        "cut row",
        "other row",
        "number",
        "no reference",
        "newer",
    ],
)
def test_a_damaged_backup_is_refused_as_a_whole(damage, said, tmp_path):
    small(tmp_path / "a.db").close()
    path = tmp_path / "copy.zip"
    WholeStore(tmp_path / "a.db").backup(path)
    damage(path)
    with pytest.raises(InputError, match=said):
        WholeStore(tmp_path / "b.db").restore(path)
    with pytest.raises(InputError):
        JudgingProject(tmp_path / "b.db").settings  # noqa: B018
    WholeStore(tmp_path / "a.db").backup(tmp_path / "intact.zip")
    WholeStore(tmp_path / "b.db").restore(tmp_path / "intact.zip")


@pytest.mark.parametrize("name", ["..", "..evil", "x\\..\\..\\evil", "c:evil", ""])
def test_a_backup_cannot_write_outside_the_folder_of_its_store(name, tmp_path):
    small(tmp_path / "a.db").close()
    path = tmp_path / "copy.zip"
    WholeStore(tmp_path / "a.db").backup(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"artifacts/{name}/0", b"evil")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(FormatError, match="not a complete backup"):
        WholeStore(tmp_path / "b.db").restore(path)
    assert [each for each in sorted(tmp_path.iterdir()) if each not in before and each.name != "b.db"] == []


def flipped(content):
    middle = content.index(b"rows.jsonl") + 60
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.slow
def test_a_full_disk_leaves_no_half_backup(tmp_path):
    small(tmp_path / "a.db").close()
    code = """
import resource, signal, sys
from rankgauge.errors import InputError
from rankgauge.store import Gates, WholeStore
from rankgauge.store.schema import SCHEMA
import sqlalchemy
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # it would be cut off, too
store = WholeStore(sys.argv[1])
store.entries()
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
try:
    getattr(store, sys.argv[3])(sys.argv[2])
except InputError as error:
    print(error)
"""
    before = sorted(tmp_path.rglob("*"))
    for how in ("backup", "export"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "a.db"), str(tmp_path / "copy"), how],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "fix: " in done.stdout, done
        left = {path.name for path in tmp_path.rglob("*") if path not in before}
        assert left <= {"a.db-shm", "a.db-wal"}


def test_an_export_is_read_by_other_commands(tmp_path):
    small(tmp_path / "a.db").close()
    store = WholeStore(tmp_path / "a.db")
    counts = store.export(tmp_path / "out")
    assert (counts["evaluations"], counts["run"], counts["judgments"]) == (2, 2, 1)
    saved = [Evaluation.from_json(line) for line in (tmp_path / "out/evaluations.jsonl").read_text().splitlines()]
    index = [json.loads(line) for line in (tmp_path / "out/index.jsonl").read_text().splitlines()]
    assert [each["name"] for each in index] == ["bm25#1", "dense#2"]
    for evaluation, files in zip(saved, index, strict=True):
        [run], [qrels] = files["run"], files["judgments"]
        again = evaluate(tmp_path / "out" / qrels, tmp_path / "out" / run, evaluation.measures)
        assert again.mean() == evaluation.mean() == store.load(files["evaluation"]).mean()
        texts = {}
        for name in files["documents"]:
            for line in (tmp_path / "out" / name).read_text().splitlines():
                texts[json.loads(line)["_id"]] = json.loads(line)["text"]
        assert texts["d1"] == TEXTS.documents["d1"].text
    events = [json.loads(line) for line in (tmp_path / "out/events.jsonl").read_text().splitlines()]
    assert sum(each["table"] == "judging_choices" for each in events) == 2


def test_ids_with_spaces_are_exported_as_json_lines(tmp_path):
    qrels, run = {"q 1": {"d 1": 1}}, {"q 1": {"d 2": 2.0, "d 1": 1.0}}
    store = WholeStore(tmp_path / "a.db")
    store.add(evaluate(qrels, run, "RR"), qrels, run=run)
    store.export(tmp_path / "out")
    [index] = map(json.loads, (tmp_path / "out/index.jsonl").read_text().splitlines())
    assert Qrels.of(tmp_path / "out" / index["judgments"][0]) == Qrels.of(qrels)
    assert evaluate(qrels, tmp_path / "out" / index["run"][0], "RR").mean() == {"RR": 0.5}


def test_sizes_name_each_kind(tmp_path):
    small(tmp_path / "a.db").close()
    Gates(tmp_path / "a.db").add('{"verdict": "PASS"}')
    sizes = WholeStore(tmp_path / "a.db").sizes()
    assert sizes.keys() == {"values", "run", "judgments", "questions", "documents", "judging", "answers", "gates"}
    assert min(sizes.values()) > 0


def statistics(where):
    with JudgingProject(where) as project:
        agreement = measure_agreement(project.judgments(), project.judges)
        return measure_relevance(project.judgments(), project.pools).to_json(), len(agreement.rows)


def test_a_forgotten_judge_leaves_no_name_and_all_numbers(tmp_path):
    where = tmp_path / "a" / "store.db"
    where.parent.mkdir()
    project = small(where)
    ann = next(iter(project.judges))
    before = statistics(where)
    project.close()
    removed = WholeStore(where).forget("judge", "Ann Arbor")
    assert removed == {"name": 1, "comment": 2, "renamed verdict": 1}
    assert statistics(where) == before
    content = stored_bytes(where.parent)
    for text in (b"Ann Arbor", b"I met Ann", b"Ann says so"):
        assert text not in content
    with WholeStore(where)._database.reading() as connection:  # noqa: SLF001 - the hash of an invitation
        assert all(row.secret is None for row in connection.execute(SCHEMA.table("judging_judges").select()))
    with JudgingProject(where) as project:
        assert (project.judges[ann].name, project.judges[ann].revoked) == (f"judge {ann}", True)
    [verdict] = VerdictStore(where).verdicts()
    assert (verdict.label, verdict.judge.partition("-")[0]) == ("supported", "removed")
    with pytest.raises(InputError, match="the store has no judge 'Ann Arbor'"):
        WholeStore(where).forget("judge", "Ann Arbor")


@pytest.mark.parametrize(
    ("kind", "name", "text"), [("document", "d1", b"number 1 is"), ("question", "q1", b"Which col")]
)
def test_a_forgotten_text_is_in_no_file_and_evaluations_say_so(kind, name, text, tmp_path):
    where = tmp_path / "a" / "store.db"
    where.parent.mkdir()
    small(where).close()
    store = WholeStore(where)
    means = [store.load(number).mean() for number in (1, 2)]
    with closing(sqlite3.connect(where)) as other:
        # The log of changes stays as long as another program has the store open.
        other.execute("SELECT count(*) FROM rankgauge_evaluations").fetchone()
        removed = store.forget(kind, name)
        assert removed == {"text": 2, "marked evaluation": 2}
        assert text not in stored_bytes(where.parent)
    with store._database.reading() as connection:  # noqa: SLF001 - texts in artifacts are compressed
        kept = {row.name for row in connection.execute(SCHEMA.table("artifacts").select())}
    assert {path.name for path in where.parent.glob("*.artifacts/??/*")} == kept
    assert text.decode() not in str([store.collection(number).documents for number in (1, 2)])
    assert [store.load(number).mean() for number in (1, 2)] == means
    assert store.run(1)["q1"] == {"d0": 2.5, "d1": 1.0}
    assert f"the text of a {kind} was removed" in store.entry(1).notes[-1]
    texts = store.collection(1)
    assert name not in (texts.documents if kind == "document" else texts.queries)
    assert "d0" in texts.documents
    store.backup(tmp_path / "copy.zip")
    WholeStore(tmp_path / "b.db").restore(tmp_path / "copy.zip")
    assert text not in stored_bytes(tmp_path)
    same(where, tmp_path / "b.db")


def test_what_the_store_does_not_have_cannot_be_forgotten(tmp_path):
    small(tmp_path / "a.db").close()
    with pytest.raises(InputError, match="the store has no document 'x'"):
        WholeStore(tmp_path / "a.db").forget("document", "x")
    with pytest.raises(FormatError, match="not a complete backup"):
        WholeStore(tmp_path / "b.db").restore(__file__)
