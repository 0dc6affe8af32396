"""Time and size of a project's store, as a Markdown table.

    python benchmarks/project.py [--tiny] [--folder FOLDER] [--write PAGE]

Saves an evaluation with its run, reads one query of the run, lists evaluations, and adds events; while
another process saves, a judge chooses. CPU seconds of this process, except for choices.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from page import number, put, table
from sqlalchemy import text
from workloads import Work, columns

from rankgauge import History, Qrels, Run, evaluate
from rankgauge.answers import Verdict, VerdictStore
from rankgauge.data import write_run
from rankgauge.judging import Candidate, Choice, Document, JudgingProject, Question, Settings, Source
from rankgauge.store.database import Database
from rankgauge.store.schema import SCHEMA

HEAD = ("task", "result", "goal")
WORK = Work(7_000, 1_000, 50)
SAVE = "import sys; sys.path.insert(0, sys.argv[1]); import project; project.save_repeatedly(*sys.argv[2:])"


def inputs(work: Work) -> tuple[Qrels, Run]:
    """Return judgments and a run."""
    judged, run = columns(work)
    return Qrels.from_columns(*judged.values()), Run.from_columns(*run.values())


def cpu(call: Callable[[], Any], rounds: int = 1) -> float:
    """Return the least CPU time of a call."""
    took = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        took.append(time.process_time() - start)
    return min(took)


def saving(work: Work, folder: Path) -> Iterator[tuple[str, ...]]:
    """Save an evaluation with its run, and read a query."""
    qrels, run = inputs(work)
    evaluation = evaluate(qrels, run)
    with History(folder / "store.db") as history:
        history.add(evaluate({"q": {"d": 1}}, {"q": ["d"]}, "RR"))
        took = cpu(lambda: history.add(evaluation, qrels, run=run))
        yield f"save an evaluation with its run ({work})", f"{number(took)} s", "4 s"
        write_run(run, folder / "run.parquet")
        share = history.sizes()["run"] / (folder / "run.parquet").stat().st_size
        yield "size of the run, relative to Parquet", number(share), "1.2"
        middle = run.query_ids[len(run) // 2]
        took = cpu(lambda: history.run(2, [middle]), 5)
        yield "read one query of it", f"{number(1000 * took)} ms", "20 ms"


def listing(count: int, folder: Path) -> Iterator[tuple[str, ...]]:
    """List evaluations; all but one are copies of its row."""
    where = folder / "many.db"
    qrels = {f"q{n}": {"d": 1} for n in range(50)}
    with History(where) as history:
        history.add(evaluate(qrels, {query: ["x", "d"] for query in qrels}), qrels)
        with Database(str(where), SCHEMA, patience=5).writing() as connection:
            connection.execute(
                text(
                    "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < :count) "
                    "INSERT INTO rankgauge_evaluations SELECT i, time, run, queries, head, seal "
                    "FROM n, rankgauge_evaluations WHERE id = 1"
                ),
                {"count": count},
            )
        took = cpu(history.entries, 5)
        yield f"list {count:,} evaluations", f"{number(1000 * took)} ms", "200 ms"


def events(count: int, folder: Path) -> Iterator[tuple[str, ...]]:
    """Add verdicts and read them."""
    with VerdictStore(folder / "events.db") as store:
        verdicts = [Verdict(f"key-{n}", "supported", "judge") for n in range(count)]
        took = cpu(lambda: store.add(verdicts)), cpu(lambda: list(store.verdicts()))
        yield f"add {count:,} events", f"{number(took[0])} s", ""
        yield f"read {count:,} events", f"{number(took[1])} s", ""


def save_repeatedly(where: str, queries: str, docs: str) -> None:
    """Save runs until killed."""
    qrels, run = inputs(Work(int(queries), int(docs), 50))
    evaluation = evaluate(qrels, run, "RR")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    with History(where) as history:
        while True:
            history.delete(history.add(evaluation, qrels, run=run))


def choosing(work: Work, choices: int, folder: Path) -> Iterator[tuple[str, ...]]:
    """Record choices of a judge, alone, and while another process saves large runs and deletes them."""
    where = folder / "judged.db"
    names = [f"q{n}" for n in range(choices)]
    pool = [Candidate(name, f"d{n}", (Source("run", rank=n + 1),)) for name in names for n in range(6)]
    with JudgingProject.create(where, Settings(repeats=0.0)) as project:
        project.add_questions(Question(name, "What does it ask about loans?") for name in names)
        project.add_candidates(pool, [Document(f"d{n}", {"text": "The library lends books."}) for n in range(6)])
        judge = project.add_judge("judge")[0].id
        arguments = map(str, (Path(__file__).parent, where, work.queries, work.docs))
        command = [sys.executable, "-c", SAVE, *arguments]
        for wanted, words in (("", ["true"]), (", while runs are saved", command)):
            with subprocess.Popen(words, stdout=subprocess.PIPE) as saver:
                if saver.stdout is not None:
                    saver.stdout.readline()  # it is ready
                took = []
                for _ in range(choices // 2):
                    task = project.next_task(judge)
                    if task is None:
                        break
                    start = time.perf_counter()
                    project.record(Choice(str(uuid4()), task.presentation.id, judge, "none"))
                    took.append(1000 * (time.perf_counter() - start))
                    time.sleep(0.02)
                saver.kill()
            took.sort()
            middle, most = took[len(took) // 2], took[int(0.99 * len(took))]
            yield (
                f"choice of a judge{wanted}, median / 99th percentile",
                f"{number(middle)} / {number(most)} ms",
                "100 ms",
            )


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    work, count = (Work(20, 30, 5), 100) if given.tiny else (WORK, 10_000)
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        rows = [
            *saving(work, folder),
            *listing(count, folder),
            *events(10 * count, folder),
            *choosing(work, 20 if given.tiny else 400, folder),
        ]
    text = table(HEAD, rows)
    print(text)
    if given.write:
        put(given.write, "project", text)


if __name__ == "__main__":
    main()
