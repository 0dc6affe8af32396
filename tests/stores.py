"""The stores of the project, each written by one process and opened by others.

    python stores.py write KIND WHERE NAME     append records and print their ids, without end
    python stores.py visit KIND WHERE FOLDER   run the commands that open the store

A record is confirmed once its id is printed.
"""

import contextlib
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from functools import partial
from pathlib import Path

from judging_pages import filled

from rankgauge import Collection, History, InputError, Qrels, evaluate
from rankgauge.answers import Verdict, VerdictStore
from rankgauge.benchmark.journal import Journal, Response
from rankgauge.cli.main import cli
from rankgauge.judging import Choice, JudgingProject, Settings
from rankgauge.llm.cache import ReplyCache
from rankgauge.production import EventLog, import_log
from rankgauge.retrievers.hits import Hits
from rankgauge.sample import sample_path
from rankgauge.store import Gates, Jobs

AT_ONCE = 5  # records of one import or one opening of a journal
# The signals that end the processes of a scenario: in one order, or in all of them, several times.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_ROUNDS = int(os.environ.get("ROUNDS", "0"))
ORDERS = list(itertools.permutations(_SIGNALS)) * _ROUNDS or [_SIGNALS]


class Store:
    """A kind of store; `one_writer` if a second writer is refused while the first has it open."""

    one_writer = False

    def prepare(self, where):
        """Create what the writers and commands need."""

    def write(self, where, name, confirm):
        """Append records whose ids begin with `name`; call `confirm` with each stored id."""
        raise NotImplementedError

    def ids(self, where):
        """Return the ids of all records."""
        raise NotImplementedError

    def commands(self, where, folder):
        """Return the commands that open the store; `folder` is for their files."""
        return []


class Judging(Store):
    def prepare(self, where):
        project = filled(where, 60, 6, Settings(repeats=0.0))
        for name in ("one", "two", "three"):
            project.add_judge(name)
        project.close()

    def write(self, where, name, confirm):
        with JudgingProject(where) as project:
            judge = next(each.id for each in project.judges.values() if each.name == name)
            while (task := project.next_task(judge)) is not None:
                choice = Choice(str(uuid.uuid4()), task.presentation.id, judge, "none")
                assert project.record(choice)
                confirm(choice.id)

    def ids(self, where):
        with JudgingProject(where).reading() as stored:
            return {each.id for each in stored.choices()}

    def commands(self, where, folder):
        corpus, run = folder / "docs.jsonl", folder / "a.run"
        corpus.write_text('{"_id": "new", "text": "Ties"}\n', encoding="utf-8")
        run.write_text("q000 Q0 new 1 2.5 a\n", encoding="utf-8")
        return [
            ["judge", *words, "--store", where]
            for words in (
                ["status"],
                ["relevance"],
                ["agreement"],
                ["settings", "--title", "Another title"],
                ["pool", "--collection", str(corpus), "--run", str(run)],
                ["invite", f"Guest {folder.name}"],
                ["export", str(folder / "qrels.txt")],
            )
        ] + [["store", "backup", str(folder / "copy.zip"), "--store", where]]


class Grades(Judging):
    """Grades given in sight of the rankings, as a page of a comparison stores them."""

    def write(self, where, name, confirm):
        with JudgingProject(where) as project:
            judge = next(each.id for each in project.judges.values() if each.name == name)
            for number in itertools.count():
                project.grade(judge, f"q{number % 60:03}", f"{name}-{number}", number % 3)
                confirm(f"{name}-{number}")

    def ids(self, where):
        with JudgingProject(where) as project:
            judgments = [each for each in project.judgments() if each.status == "in sight"]
        for each in judgments:
            assert each.choice.grades == (int(each.presentation.documents[0].split("-")[1]) % 3,)
        return {each.presentation.documents[0] for each in judgments}


class Evaluations(Store):
    def write(self, where, name, confirm):
        with History(where) as history:
            for number in itertools.count():
                qrels, run = {"q": {"d": 1}}, {"q": [f"{name}-{number}", "d"]}
                texts = Collection.of(dict.fromkeys(run["q"], "a text"), {"q": "a question"})
                evaluation = evaluate(qrels, run, "RR")
                history.add(evaluation, qrels, run=run, collection=texts, label=f"{name}-{number}")
                confirm(f"{name}-{number}")

    def ids(self, where):
        with History(where) as history:
            return {each.label for each in history.entries() if self.is_whole(history, each)}

    def is_whole(self, history, entry):
        docs = {entry.label, "d"}
        assert {*history.run(entry)["q"]} == {*history.collection(entry).documents} == docs
        return history.qrels(entry) == Qrels({"q": {"d": 1}})

    def commands(self, where, folder):
        return [
            ["history", *words, "--store", where]
            for words in (["list"], ["show", "1"], ["export", "1"], ["trend", "-m", "RR"])
        ]


class Verdicts(Store):
    def write(self, where, name, confirm):
        with VerdictStore(where) as store:
            for number in itertools.count():
                store.add([Verdict(f"{name}-{number}", "supported", name)])
                confirm(f"{name}-{number}")

    def ids(self, where):
        with VerdictStore(where) as store:
            return {each.key for each in store.verdicts()}

    def commands(self, where, folder):
        answers = str(sample_path("answers/prompt-1.jsonl"))
        return [["answers", "evaluate", answers, "--store", where, "--person"]]


def _put(cache, keys):
    replies = {key: {"text": "yes " * 200} for key in keys}
    cache.put(replies)
    return replies


class Replies(Store):
    def write(self, where, name, confirm):
        cache = ReplyCache(Path(where))
        for number in itertools.count():
            cache.obtain([f"{name}-{number}"], cache.find, partial(_put, cache))
            confirm(f"{name}-{number}")

    def ids(self, where):
        with contextlib.closing(sqlite3.connect(where, timeout=60)) as file:
            return {key for (key,) in file.execute("SELECT key FROM rankgauge_replies_1")}


class Responses(Store):
    one_writer = True

    def write(self, where, name, confirm):
        while True:
            with Journal(Path(where)) as journal:
                journal.open()
                for _ in range(AT_ONCE):
                    query = f"{name}-{uuid.uuid4()}"
                    journal.append(Response(query, "key", Hits(["d"], [1.0])))
                    confirm(query)

    def ids(self, where):
        return {query for query, _ in Journal(Path(where)).known(failed=True)}


class Events(Store):
    one_writer = True

    def write(self, where, name, confirm):
        file = Path(f"{where}-{name}.jsonl")
        while True:
            ids = [f"{name}-{uuid.uuid4()}" for _ in range(AT_ONCE)]
            rows = [{"query_id": each, "user_query": "fees", "timestamp": "2026-05-01T12:00:00Z"} for each in ids]
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            import_log(file, where)
            for each in ids:
                confirm(each)

    def ids(self, where):
        with EventLog(where).connection() as connection:
            return {row[0] for row in connection.execute("SELECT question_id FROM events").fetchall()}

    def commands(self, where, folder):
        return [["logs", "show", where], ["logs", "metrics", where]]


class JobsAdded(Store):
    """Jobs, of which no process runs any."""

    def write(self, where, name, confirm):
        with Jobs(where) as jobs:
            for number in itertools.count():
                confirm(jobs.add([f"{name}-{number}"], author=name).arguments[0])

    def ids(self, where):
        with Jobs(where) as jobs:
            return {job.arguments[0] for job in jobs.jobs(1_000_000)}


class GatesAdded(Store):
    def write(self, where, name, confirm):
        with Gates(where) as gates:
            for number in itertools.count():
                assert gates.add(json.dumps({"verdict": "FAIL", "run": f"{name}-{number}"}))
                confirm(f"{name}-{number}")

    def ids(self, where):
        with Gates(where) as gates:
            return {json.loads(each.body)["run"] for each in gates.results(1_000_000)}


STORES = {
    "judging": Judging(),
    "grades": Grades(),
    "history": Evaluations(),
    "verdicts": Verdicts(),
    "jobs": JobsAdded(),
    "gates": GatesAdded(),
    "replies": Replies(),
    "journal": Responses(),
    "log": Events(),
}
DATABASES = ("judging", "grades", "history", "verdicts", "jobs", "gates")


def start(action, kind, where, *words, **options):
    """Start this program and return the process."""
    program = [sys.executable, __file__, action, kind, str(where), *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(program, **pipes, **options)


def visit(kind, where, folder):
    """Run the commands that open the store in another process."""
    process = start("visit", kind, where, folder)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors


def wait_for(condition):
    """Wait until a condition is true."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "nothing was written"
        time.sleep(0.01)


def _write(store, where, name):
    """Write, and wait while another process has a store with one writer."""

    def confirm(record):
        sys.stdout.write(f"{record}\n")
        sys.stdout.flush()
        time.sleep(0.002)  # leave time to the others, as SQLite has no queue of writers

    while True:
        try:
            store.write(where, name, confirm)
        except InputError as error:
            if not store.one_writer or "another" not in str(error):
                raise
            time.sleep(0.02)
        else:
            return


def _visit(store, where, folder):
    """Run each command in this process, which opens and closes the store for each."""
    folder.mkdir()
    for words in store.commands(where, folder):
        with contextlib.redirect_stdout(sys.stderr):
            code = cli.main(words, standalone_mode=False)
        assert not code, (words, code)


def _only_sqlite_opens(where):
    """Let this process fail if Python opens a database, which would release SQLite's locks."""
    files = {f"{where}{end}" for end in ("", "-wal", "-shm", "-journal")}

    def check(event, details):
        if event == "open" and str(details[0]) in files:
            raise AssertionError(f"{details[0]} is opened outside SQLite")

    sys.addaudithook(check)


def main():
    """Write to a store or visit it, as the arguments say."""
    action, kind, where, last = sys.argv[1:]
    if kind in (*DATABASES, "replies"):
        _only_sqlite_opens(where)
    if action == "write":
        _write(STORES[kind], where, last)
    else:
        _visit(STORES[kind], where, Path(last))


if __name__ == "__main__":
    main()
