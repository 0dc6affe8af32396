"""CPU time of the pages of evaluations, as a Markdown table.

    python benchmarks/workbench.py [--tiny] [--folder FOLDER] [--write PAGE]

A store with 20 evaluations of two runs and 200,000 texts, served within this process. A page is opened
twice: when nothing is known about its evaluations, and again. CPU time of the server and of the client,
which parses nothing. Then 20 people grade documents at a server in another process, each every 5 seconds:
the time from sending a grade to its acknowledgment, and that of the page which follows.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from page import number, put, table
from workloads import Work, columns

from rankgauge import Collection, Project, Qrels, Run, evaluate
from rankgauge.judging import hash_secret
from rankgauge.web import judging_app

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions prefer httpx2
    from starlette.testclient import TestClient

HEAD = ("page", "first, ms", "again, ms", "goal, ms")
MEASURES = ("nDCG@10", "P@5", "R@10", "RR")
ORIGIN = "http://testserver"
_TEXTS = 200_000
_PEOPLE, _PAUSE = 20, 5.0  # seconds between grades of a person, on average
FILE = 'collection = "."\nmeasures = ["nDCG@10"]\nbaseline = "old"\n\n[retrievers.old]\ntype = "bm25"\n'


def evaluated(work: Work, evaluations: int, folder: Path) -> Project:
    """Return a project with evaluations of two runs, the second with a tenth of the scores changed."""
    (folder / "rankgauge.toml").write_text(FILE, encoding="utf-8")
    project = Project(folder)
    judged, run = columns(work)
    qrels = Qrels.from_columns(*judged.values())
    queries, docs, scores = run.values()
    draw = random.Random(1)  # noqa: S311 - drawn scores, not a secret
    changed = [score + draw.random() * (draw.random() < 0.1) for score in scores]
    texts = Collection.of(
        dict.fromkeys(set(docs[:_TEXTS]), "The library lends books for three weeks."),
        {query: f"How long can I keep a book in case {query}?" for query in set(queries)},
    )
    for name, values in (("old", scores), ("new", changed)):
        retrieved = Run.from_columns(queries, docs, values)
        evaluation = replace(evaluate(qrels, retrieved, MEASURES), run_name=name)
        for _ in range(evaluations // 2):
            project.evaluations.add(evaluation, qrels, run=retrieved, collection=texts)
    project.open_judging()
    return project


def cpu(client: TestClient, path: str) -> float:
    """Return the CPU milliseconds of a page."""
    start = time.process_time()
    answer = client.get(path)
    took = 1000 * (time.process_time() - start)
    if answer.status_code != 200:
        raise SystemExit(f"{path}: {answer.status_code}")
    return took


def pages(project: Project, work: Work, evaluations: int, grades: int) -> Iterator[tuple[str, ...]]:
    """Open each page twice, and grade documents."""
    with TestClient(judging_app(project.judging, evaluations=project), base_url=ORIGIN) as client:
        secret = project.judging.add_judge("Lead", role="lead")[1]
        client.post(f"/join/{secret}", headers={"Origin": ORIGIN})
        before, after = evaluations // 2, evaluations
        pair = f"a={before}&b={after}&m=nDCG%4010"
        query = project.evaluations.load(after).query_ids[work.queries // 2]
        documents = list(project.evaluations.run(after, [query])[query])[:grades]
        shown = {
            "overview": ("/", "300"),
            "evaluations": ("/evaluations", "300"),
            "evaluation": (f"/evaluations/{after}", "300"),
            "likely causes, after the page": (f"/evaluations/{after}/causes", ""),
            "verdict, after the page": (f"/verdict?{pair}", ""),
            "comparison": (f"/compare?{pair}", "300"),
            "bounds, after the page": (f"/deciding?{pair}", ""),
            "query of a comparison": (f"/compare/{query}?{pair}", "300"),
            "query": (f"/queries/{query}", "300"),
            "document, with its ranks": (f"/documents/{documents[0]}?query={query}", "300"),
            "steps of a value": (f"/explain/{after}/{query}", "300"),
        }
        for name, (path, goal) in shown.items():
            yield name, number(cpu(client, path)), number(cpu(client, path)), goal
        token = client.get("/").text.partition('name="csrf" value="')[2].partition('"')[0]
        took = []
        for document in documents:
            fields = {"a": str(before), "b": str(after), "m": "nDCG@10", "document": document, "grade": "1"}
            start = time.process_time()
            client.post(
                f"/compare/{query}",
                data=fields | {"csrf": token},
                headers={"Origin": ORIGIN},
                follow_redirects=False,
            )
            took.append(1000 * (time.process_time() - start))
        yield "grade: median and 99th percentile", *shares(took), "500"
        yield "query after a grade, with the verdict", number(cpu(client, f"/compare/{query}?{pair}")), "", "1,000"
        yield "bounds after a grade", number(cpu(client, f"/deciding?{pair}")), "", ""


def shares(took: Sequence[float]) -> tuple[str, str]:
    """Return the median and the 99th percentile of times."""
    ordered = sorted(took)
    return number(ordered[len(ordered) // 2]), number(ordered[int(0.99 * len(ordered))])


def people(project: Project, evaluations: int, grades: int) -> Iterator[tuple[str, ...]]:
    """Let people grade documents of different queries at the same time."""
    ends = datetime.now(UTC) + timedelta(days=1)
    names = [project.judging.add_judge(f"Lead {place}", role="lead")[0].id for place in range(_PEOPLE)]
    with project.judging.writing() as stored:
        for name in names:
            stored.add_session(hash_secret(name), name, ends)
    before, after = evaluations // 2, evaluations
    pair = {"a": str(before), "b": str(after), "m": "nDCG@10"}
    queries = project.evaluations.load(after).query_ids[:_PEOPLE]
    run = project.evaluations.run(after, queries)
    words = [sys.executable, "-m", "rankgauge", "serve", "--port", "0"]
    server = subprocess.Popen(words, cwd=project.file.folder, stdout=subprocess.PIPE, text=True)
    url = re.search("http://[^/]+", server.stdout.readline() if server.stdout else "")
    if url is None:
        raise SystemExit("the server did not start")

    def judge(place: int) -> list[tuple[float, float]]:
        query = queries[place % len(queries)]
        took, pauses = [], random.Random(place)  # noqa: S311 - pauses, not a secret
        with httpx.Client(base_url=url[0], timeout=120, cookies={"rankgauge_session": names[place]}) as client:
            token = client.get("/").text.partition('name="csrf" value="')[2].partition('"')[0]
            client.get(f"/compare/{query}", params=pair)
            for document in list(run[query])[:grades]:
                fields = pair | {"document": document, "grade": "1", "csrf": token}
                time.sleep(pauses.uniform(0, 2 * _PAUSE))
                start = time.perf_counter()
                answer = client.post(f"/compare/{query}", data=fields)
                sent = time.perf_counter()
                page = client.get(answer.headers.get("location", ""))
                if (answer.status_code, page.status_code) != (303, 200):
                    raise SystemExit(f"a grade: {answer.status_code}, {page.status_code}")
                took.append((1000 * (sent - start), 1000 * (time.perf_counter() - sent)))
        return took

    try:
        with ThreadPoolExecutor(_PEOPLE) as pool:
            took = [times for own in pool.map(judge, range(_PEOPLE)) for times in own]
    finally:
        server.terminate()
        server.wait()
    grade, page = zip(*took, strict=True)
    yield f"grade, {_PEOPLE} people: median and 99th percentile, wall clock", *shares(grade), "500"
    yield "page after it: median and 99th percentile, wall clock", *shares(page), "1,000"


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    work, evaluations = (Work(20, 30, 5), 4) if given.tiny else (Work(7_000, 1_000, 50), 20)
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        project = evaluated(work, evaluations, Path(name))
        with project.judging, project.evaluations:
            grades = 5 if given.tiny else 50
            rows = [*pages(project, work, evaluations, grades), *people(project, evaluations, grades // 5)]
            text = table(HEAD, rows)
    print(text)
    if given.write:
        put(given.write, "workbench", text)


if __name__ == "__main__":
    main()
