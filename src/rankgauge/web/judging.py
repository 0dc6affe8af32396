"""The expert's pages: a task, the guideline, the start page."""

from __future__ import annotations

import uuid

from starlette.responses import Response
from starlette.routing import Route

from rankgauge.errors import InputError
from rankgauge.judging import Choice, Task
from rankgauge.web.pages import see_other
from rankgauge.web.visits import Visit, visited

__all__ = ["routes"]

_OUTCOMES = {"none", "cannot tell", "later", "undone"}


def _start(visit: Visit) -> Response:
    return visit.render("start.html", progress=visit.project.progress(visit.judge.id))


def _next(visit: Visit) -> Response:
    task = visit.project.next_task(visit.judge.id)
    if task is None:
        return visit.render("done.html", progress=visit.project.progress(visit.judge.id))
    return see_other(f"/judge/{task.presentation.id}")


def _show(visit: Visit) -> Response:
    task = visit.project.task(visit.request.path_params["presentation"], visit.judge.id)
    return visit.render(
        "task.html", task=task, choice=str(uuid.uuid4()),
        progress=visit.project.progress(visit.judge.id),
    )  # fmt: skip


def _choose(visit: Visit) -> Response:
    task = visit.project.task(visit.request.path_params["presentation"], visit.judge.id)
    choice = _choice_of(visit, task)
    visit.project.record(choice)
    if choice.outcome == "undone":
        return see_other(f"/judge/{task.presentation.id}")
    return see_other("/judge")


def _choice_of(visit: Visit, task: Task) -> Choice:
    form, shown = visit.form, task.presentation
    pick = form.get("pick", "")
    name = form.get("choice", "")
    if pick in _OUTCOMES:
        return Choice(name, shown.id, visit.judge.id, pick)
    if not pick.isdecimal() or not 1 <= int(pick) <= len(shown.documents):
        raise InputError(f"{pick!r:.20} is no document of this task", fix="choose one of them")
    return Choice(name, shown.id, visit.judge.id, "chosen", (shown.documents[int(pick) - 1],))


routes = [
    Route("/", visited(_start)),
    Route("/judge", visited(_next)),
    Route("/judge/{presentation}", visited(_show)),
    Route("/judge/{presentation}", visited(_choose), methods=["POST"]),
]
