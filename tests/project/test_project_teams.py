"""A project on two machines with one PostgreSQL: nothing is lost, also if the server stops in the middle."""

import os
import subprocess
import sys
import threading
import time

import pytest
from command import run as run_command
from servers import control, installed_programs, postgres_of

from rankgauge import Project
from rankgauge.judging import Candidate, Document, JudgingProject, Question, Settings, Source

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="PostgreSQL is not tested on Windows")]

# Saves an evaluation, judges a task, and changes the guideline, COUNT times. Prints what is confirmed.
WORKER = """
import sys, time, uuid
import rankgauge
from rankgauge.errors import StorageError
from rankgauge.judging import Choice

folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
project = rankgauge.Project(folder)
qrels = project.collection.qrels
number = done = 0
while done < count:
    number += 1
    try:
        judge = next(judge.id for judge in project.judging.judges.values() if judge.name == name)
        run = rankgauge.Run.of({"q1": {f"{name}-{number}": 2.0, "d1": 1.0}}, name=name)
        evaluation = rankgauge.evaluate(qrels, run, "RR")
        entry = project.save(evaluation, qrels, run, label=f"{name}-{number}")
        print("saved", entry.label, flush=True)
        task = project.judging.next_task(judge)
        if task is not None:
            choice = Choice(str(uuid.uuid4()), task.presentation.id, judge, "none")
            project.judging.record(choice)
            print("chosen", choice.id, flush=True)
        project.judging.change_guideline(f"{name}-{number}", author=name)
        print("changed", name, flush=True)
        done += 1
    except StorageError as error:
        print("error", error, flush=True)
        time.sleep(0.2)
"""


class Machine:
    """A folder with a project, and a process that works in it."""

    def __init__(self, folder, name, where, count):
        folder.mkdir()
        (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "How ties are broken"}\n', encoding="utf-8")
        (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "ties"}\n', encoding="utf-8")
        (folder / "qrels.txt").write_text("q1 0 d1 1\n", encoding="utf-8")
        files = 'source = "corpus.jsonl"\nqueries = "queries.jsonl"\nqrels = "qrels.txt"\n'
        (folder / "rankgauge.toml").write_text(f'store = "{where}"\n[collection]\n{files}', encoding="utf-8")
        self.lines, self.folder = [], folder
        words = [sys.executable, "-c", WORKER, str(folder), name, str(count)]
        self.process = subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def end(self):
        errors = self.process.stderr.read()
        assert self.process.wait(300) == 0, errors
        self._reader.join(60)
        self.process.stderr.close()
        self.process.stdout.close()

    def confirmed(self, kind):
        return [line.partition(" ")[2] for line in list(self.lines) if line.startswith(f"{kind} ")]


def prepare(where):
    """Create the judging project, with more tasks than two machines judge."""
    names = [f"d{number}" for number in range(60)]
    with JudgingProject.create(where, Settings(repeats=0.0, gold=0.0)) as project:
        project.add_questions([Question(f"q{number}", "ties") for number in range(4)])
        pool = [Candidate(f"q{number}", name, (Source("bm25", rank=1),)) for number in range(4) for name in names]
        project.add_candidates(pool, [Document(name) for name in names])
        for name in ("one", "two"):
            project.add_judge(name)


def check_contents(project, machines, *, unconfirmed=0):
    """Check that the store has all that was confirmed, as a whole, and no more than some unconfirmed records."""
    saved = [label for machine in machines for label in machine.confirmed("saved")]
    entries = project.evaluations.entries()
    labels = [entry.label for entry in entries]
    assert len(labels) - unconfirmed <= len(saved) == len(set(saved))
    assert set(saved) <= set(labels)
    for entry in entries:
        assert [*project.evaluations.run(entry)["q1"]] == [entry.label, "d1"]
        assert project.evaluations.load(entry).mean() == {"RR": 0.5}
        assert set(project.evaluations.collection(entry).documents) == {"d1"}
    with project.judging.reading() as stored:
        choices, (version, _) = {choice.id for choice in stored.choices()}, stored.version("guideline")
    chosen = {choice for machine in machines for choice in machine.confirmed("chosen")}
    assert chosen <= choices
    assert len(choices) <= len(chosen) + unconfirmed
    changed = sum(len(machine.confirmed("changed")) for machine in machines)
    assert changed + 1 <= version <= changed + 1 + unconfirmed


def test_two_machines_lose_nothing(postgres, tmp_path):
    prepare(postgres)
    machines = [Machine(tmp_path / name, name, postgres, 8) for name in ("one", "two")]
    for machine in machines:
        machine.end()
        assert not machine.confirmed("error")
    check_contents(Project(machines[0].folder), machines)
    # Both see all of it.
    lists = [run_command("history", "list", cwd=machine.folder).stdout for machine in machines]
    assert lists[0] == lists[1]
    assert all(f"{name}-8" in lists[0] for name in ("one", "two"))


def wait_for(what, machines):
    until = time.monotonic() + 300
    while not all(map(what, machines)):
        assert time.monotonic() < until, [machine.lines for machine in machines]
        assert all(machine.process.poll() is None for machine in machines), [m.process.stderr.read() for m in machines]
        time.sleep(0.05)


def test_a_server_that_stops_in_the_middle_is_reported_and_loses_nothing(tmp_path):
    programs = installed_programs()
    with postgres_of(programs) as where:
        prepare(where)
        machines = [Machine(tmp_path / name, name, where, 10) for name in ("one", "two")]
        for stop in (1, 2):
            before = {machine: len(machine.confirmed("saved")) for machine in machines}
            wait_for(lambda machine, before=before: len(machine.confirmed("saved")) > before[machine], machines)
            control(programs, where, "stop")
            wait_for(lambda machine, stop=stop: len(machine.confirmed("error")) >= stop, machines)
            if stop == 1:
                shown = run_command("history", "list", cwd=machines[0].folder)
                assert shown.returncode == 2
                assert "the server cannot be reached" in shown.stderr
                assert "fix: check host, port, name, and password" in shown.stderr
            control(programs, where, "start")
        for machine in machines:
            machine.end()
            for error in machine.confirmed("error"):
                assert "the server cannot be reached" in error
        # A record whose confirmation was lost is repeated: at most one of each machine and stop.
        check_contents(Project(machines[0].folder), machines, unconfirmed=4)
