"""Jobs that leads start: benchmarks and evaluations, each run by a process of its own."""

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
from typing import Self, TypeAlias

from starlette.responses import Response
from starlette.routing import Route

from rankgauge.benchmark import LiveRetriever
from rankgauge.errors import InputError
from rankgauge.project import Project, answer_settings, model_settings
from rankgauge.store import Job, Jobs
from rankgauge.web.pages import LEADS, PageError, Visit, see_other, visited

_LOOK = 1.0  # seconds between checks for jobs
_LIFELESS = 20.0  # seconds without a heartbeat after which a job is released
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


def _show(visit: Visit) -> Response:
    runner: Runner = visit.request.app.state.runner
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
    runner: Runner = visit.request.app.state.runner
    offered = _offered(runner.project)
    command = {str(number): command for number, command in enumerate(offered)}.get(visit.form.get("command", ""))
    only = visit.form.get("only", "")
    if command is None or offered[command] or only not in {"", *runner.live}:
        raise PageError(400, "This job cannot be started.", where="jobs", fix="Reload the page and choose again.")
    runner.add((*command, *(("--only", only) if only and command == _BENCH else ())), visit.judge.name)
    return see_other("/jobs")


def _cancel(visit: Visit) -> Response:
    runner: Runner = visit.request.app.state.runner
    if any(job.id == visit.request.path_params["job"] for job in runner.jobs.jobs()):  # any open job, at least
        runner.jobs.cancel(visit.request.path_params["job"], by=visit.judge.name)
    return see_other("/jobs")


routes = [
    Route("/jobs", visited(_show, roles=LEADS)),
    Route("/jobs", visited(_start, roles=LEADS), methods=["POST"]),
    Route("/jobs/{job:int}/cancel", visited(_cancel, roles=LEADS), methods=["POST"]),
]
