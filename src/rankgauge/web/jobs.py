"""Jobs that leads start, each run by a process of its own, and queries that they try with all retrievers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self, TypeAlias

from starlette.responses import Response
from starlette.routing import Route

from rankgauge.benchmark import LiveRanking, LiveRetriever
from rankgauge.corpus import Collection, Query
from rankgauge.data import Run
from rankgauge.errors import InputError
from rankgauge.judging import build_pool, write_question
from rankgauge.project import Project, answer_settings, model_settings
from rankgauge.store import Job, Jobs
from rankgauge.web.evaluations import workbench_of
from rankgauge.web.pages import LEADS, PageError, Visit, address, see_other, visited

_LOOK = 1.0  # seconds between checks for jobs
_LIFELESS = 20.0  # seconds without a heartbeat after which a job is released
_DEPTH = 10  # documents of a live query
_A_DAY = 500  # live queries, if the project file sets no limit
_Command: TypeAlias = tuple[str, ...]
_BENCH: _Command = ("bench",)
_AGAIN: _Command = ("evaluate", "--again")
_ANSWERS: _Command = ("answers", "evaluate")
_TITLES: Mapping[_Command, str] = {
    ("query",): "Query",
    _BENCH: "Run the retrievers and evaluate them",
    _AGAIN: "Evaluate all saved runs on the current judgments",
    _ANSWERS: "Evaluate the answers",
}


@dataclass
class Runner:
    """Starts processes for waiting jobs, one job at a time, and releases jobs whose process has ended.

    Any number of servers may do so: the process that claims a job runs it, and continues if its
    server stops.

    Attributes:
        project: The project.
        trust: Whether to run the code of a project file that belongs to another user.
    """

    project: Project
    trust: bool = False
    jobs: Jobs = field(init=False)
    live: dict[str, LiveRetriever] = field(init=False)

    def __post_init__(self) -> None:
        tables = self.project.file.value({}, "retrievers")
        names = [name for name, table in tables.items() if not (isinstance(table, dict) and table.get("part"))]
        folder = self.project.file.folder
        self.live = {name: LiveRetriever(self._command("--ask", name), folder) for name in names}
        self.jobs = Jobs(self.project.file.store)
        self._seen: dict[int, tuple[Job, float]] = {}
        self.started: tuple[Job, subprocess.Popen[str]] | None = None
        self._changed, self._ended = threading.Event(), False
        self._thread = threading.Thread(target=self._look_often, daemon=True)

    def __enter__(self) -> Self:
        self.jobs.__enter__()
        # Errors of a process before its job begins. A pipe could fill, and breaks when the server stops.
        self._errors = tempfile.TemporaryFile("a+", errors="replace")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._changed.set()
        self._thread.join()
        for retriever in self.live.values():
            retriever.close()
        self._errors.close()
        self.jobs.close()

    def add(self, arguments: _Command, author: str) -> Job:
        """Add a job, which starts as soon as no other job runs."""
        job = self.jobs.add(arguments, author=author)
        self._changed.set()
        return job

    def _look_often(self) -> None:
        while not self._ended:
            with suppress(InputError, OSError):  # such as a lock, or no memory: look again later
                self._look()
            self._changed.wait(_LOOK)
            self._changed.clear()

    def _look(self) -> None:
        jobs = [job for job in self.jobs.jobs() if job.open]
        now = time.monotonic()
        # When this process first saw each job in its current state.
        self._seen = {
            job.id: self._seen[job.id] if self._seen.get(job.id, (None,))[0] == job else (job, now) for job in jobs
        }
        claimed = [job for job in jobs if job.state != "waiting"]
        lifeless = [job for job in claimed if now - self._seen[job.id][1] > _LIFELESS]
        if self.started is not None and self.started[1].poll() is not None:
            begun = self.started[0]
            self._errors.seek(0)
            # Has no effect if a process has begun the job.
            self.jobs.refuse(begun, self._errors.read(2_000).strip() or "its process ended before it began")
            lifeless += [job for job in claimed if (job.id, job.attempt) == (begun.id, begun.attempt + 1)]
            self.started = None
        elif jobs and not claimed and self.started is None:
            self._errors.truncate(0)
            self.started = jobs[-1], self._started(jobs[-1])
        for job in lifeless:
            self.jobs.release(job)

    def _command(self, *words: str) -> list[str]:
        # With -P, no module of the project's folder replaces one of a library.
        file = str(self.project.file.path.resolve())
        return [sys.executable, "-P", "-m", "rankgauge", "serve", file, *words, *(["--trust"] if self.trust else [])]

    def _started(self, job: Job) -> subprocess.Popen[str]:
        store = self.project.file.store  # a relative path begins in the folder of this process
        return subprocess.Popen(  # noqa: S603 - the number of a job
            self._command("--job", str(job.id)),
            cwd=self.project.file.folder,
            env=os.environ | {"RANKGAUGE_STORE": store if "://" in store else os.path.abspath(store)},  # noqa: PTH100
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            text=True,
            start_new_session=True,  # Ctrl-C ends the server only
        )


def title_of(job: Job) -> str:
    """Return a short description of a job."""
    command = next((known for known in _TITLES if job.arguments[: len(known)] == known), ())
    if command == ("query",):
        return f"Query: {job.arguments[1]}"
    only = [name for option, name in zip(job.arguments, job.arguments[1:], strict=False) if option == "--only"]
    return " ".join([_TITLES.get(command, " ".join(job.arguments)), *(f"({name})" for name in only)])


def _offered(project: Project) -> dict[_Command, str]:
    """Return the offered commands, each with what is missing to start it; empty if nothing is."""
    file = type(project.file).read(project.file.path)  # as it is now: jobs read it again
    offered = {command: "" for command in (_BENCH, _AGAIN) if command is _AGAIN or file.value({}, "retrievers")}
    answers = answer_settings(file)
    if "file" in answers:
        model = answers.get("model")
        unlimited = model is not None and "max_cost" not in model_settings(file, model)
        offered[_ANSWERS] = (
            f"set max_cost, the budget of a job, in [models.{model}] of rankgauge.toml" if unlimited else ""
        )
    return offered


def _runner(visit: Visit) -> Runner:
    runner: Runner = visit.request.app.state.runner
    return runner


def _show(visit: Visit) -> Response:
    runner = _runner(visit)
    jobs = runner.jobs.jobs(30)
    return visit.render(
        "jobs.html",
        jobs=[(job, title_of(job)) for job in jobs],
        running=any(job.open for job in jobs),
        offered=[
            (number, _TITLES[command], reason)
            for number, (command, reason) in enumerate(_offered(runner.project).items())
        ],
        retrievers=[*runner.live],
    )


def _start(visit: Visit) -> Response:
    runner = _runner(visit)
    offered = _offered(runner.project)
    command = {str(number): command for number, command in enumerate(offered)}.get(visit.form.get("command", ""))
    only = visit.form.get("only", "")
    if command is None or offered[command] or only not in {"", *runner.live}:
        raise PageError(400, "This job cannot be started.", where="jobs", fix="Reload the page and choose again.")
    runner.add((*command, *(("--only", only) if only and command == _BENCH else ())), visit.judge.name)
    return see_other("/jobs")


def _cancel(visit: Visit) -> Response:
    runner = _runner(visit)
    if any(job.id == visit.request.path_params["job"] for job in runner.jobs.jobs()):  # any open job, at least
        runner.jobs.cancel(visit.request.path_params["job"], by=visit.judge.name)
    return see_other("/jobs")


# ---- queries that leads try: the rankings of all retrievers side by side


def _text(visit: Visit) -> str:
    values = visit.request.query_params if visit.request.method == "GET" else visit.form
    return " ".join(values.get("q", "").split())[:2_000]


def _queries(visit: Visit) -> tuple[int, list[Job]]:
    """Return the limit of a day, and the latest queries, as many or more."""
    most = _runner(visit).project.file.value(_A_DAY, "live_queries")
    return most, [job for job in _runner(visit).jobs.jobs(most + 100) if job.arguments[0] == "query"]


def _asked(visit: Visit) -> str:
    """Return the text of a query that counted within the limit; reject others, and unknown retrievers."""
    text, name = _text(visit), visit.request.path_params.get("name")
    if name not in {None, *_runner(visit).live} or all(job.arguments[1] != text for job in _queries(visit)[1]):
        raise PageError(404, "This query was not tried.", where="try", fix="Enter it in the form.")
    return text


def _ranking(visit: Visit, name: str, text: str) -> LiveRanking:
    """Return the ranking of a query, which is cached: a saved query has the ranking that was shown."""
    retriever = _runner(visit).live[name]
    return workbench_of(visit).results.get(("live", name, text), lambda: retriever.search(text, _DEPTH))


def _try(visit: Visit) -> Response:
    return visit.render("live.html", text=_text(visit), names=[*_runner(visit).live])


def _ask(visit: Visit) -> Response:
    """Record who tries a query, within the budget of a day; the page then requests each ranking."""
    text, (most, queries) = _text(visit), _queries(visit)
    since = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    asked = [job for job in queries if job.time > since]
    if len(asked) >= most:
        raise PageError(
            429,
            f"{len(asked)} queries were tried in the last 24 hours.",
            where="live_queries in rankgauge.toml",
            fix="Raise the limit and restart the server, or try again later.",
        )
    if text:
        _runner(visit).jobs.add(["query", text], author=visit.judge.name, state="done")
    return see_other(address("try", q=text))


def _hits(visit: Visit) -> Response:
    """Return the documents that a retriever finds for a query that was tried."""
    name, text, runner = visit.request.path_params["name"], _asked(visit), _runner(visit)
    try:
        ranking, reason = _ranking(visit, name, text), ""
    except InputError as error:
        ranking, reason = LiveRanking((), (), 0.0), error.what
    documents = runner.project.collection.documents
    found = [(document, documents.get(document)) for document in ranking.documents]
    return visit.render("live_part.html", ranking=ranking, reason=reason, found=found)


def _save(visit: Visit) -> Response:
    """Save a query as a question, whose documents are then judged without seeing ranks."""
    text, runner = _asked(visit), _runner(visit)
    rankings = []
    for name in runner.live:
        try:
            rankings.append(_ranking(visit, name, text))
        except InputError:  # the page shows why
            continue
    documents = runner.project.collection.documents
    found = {name: documents[name] for ranking in rankings for name in ranking.documents if name in documents}
    if not found:
        raise InputError("no retriever found a document", where="query", fix="try another query")
    question = write_question(visit.project, text, author=visit.judge.name)
    runs = [Run({question.id: dict(zip(ranking.documents, ranking.scores, strict=True))}) for ranking in rankings]
    build_pool(visit.project, Collection(found, {question.id: Query(question.id, text)}), runs, k=_DEPTH)
    return see_other("/judge")


routes = [
    Route("/jobs", visited(_show, roles=LEADS)),
    Route("/jobs", visited(_start, roles=LEADS), methods=["POST"]),
    Route("/jobs/{job:int}/cancel", visited(_cancel, roles=LEADS), methods=["POST"]),
    Route("/try", visited(_try, roles=LEADS)),
    Route("/try", visited(_ask, roles=LEADS), methods=["POST"]),
    Route("/try/save", visited(_save, roles=LEADS, share=False), methods=["POST"]),
    Route("/try/{name:path}", visited(_hits, roles=LEADS, share=False)),
]
