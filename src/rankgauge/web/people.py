"""Pages for admins: people and applications, their roles, links and tokens; the settings."""

from __future__ import annotations

from dataclasses import asdict

from starlette.responses import Response
from starlette.routing import Route

from rankgauge.errors import InputError
from rankgauge.judging import ROLES, Judge
from rankgauge.web.pages import see_other
from rankgauge.web.sessions import ADMINS, LEADS, Visit, visited


def _people(visit: Visit, *, invited: Judge | None = None, secret: str = "") -> Response:
    judges = visit.project.judges.values()
    done = dict.fromkeys(visit.project.judges, 0)
    for each in visit.project.judgments():
        if each.choice is not None and each.status not in {"open", "expired"}:
            done[each.presentation.judge] = done.get(each.presentation.judge, 0) + 1
    with visit.project.reading() as stored:
        origins = stored.origins()
    return visit.render(
        "people.html",
        people=[each for each in judges if each.kind == "person"],
        others=[each for each in judges if each.kind != "person"],
        done=done,
        origins=origins,
        roles=ROLES,
        invited=invited,
        secret=secret,
        server=str(visit.request.base_url).rstrip("/"),
    )


def _invite(visit: Visit) -> Response:
    """Add a person or an application; the link or token is shown once, on this page."""
    form, name = visit.form, " ".join(visit.form.get("name", "").split())
    kind = form.get("kind", "person")
    if kind not in {"person", "application"}:
        raise InputError(f"the kind is {kind!r:.40}", where="form", fix="reload the page")
    same = (each.name.casefold() for each in visit.project.judges.values() if not each.revoked)
    if name.casefold() in same:
        raise InputError(
            f"the name {name!r:.60} is already taken", where="name",
            fix="give another name, or create a new link for this person",
        )  # fmt: skip
    judge, secret = visit.project.add_judge(
        name, role=form.get("role", "judge") if kind == "person" else "judge", kind=kind,
        origins=form.get("origins", "").split(),
    )  # fmt: skip
    return _people(visit, invited=judge, secret=secret)


def _renew(visit: Visit) -> Response:
    judge = _judge(visit)
    return _people(visit, invited=judge, secret=visit.project.invite_again(judge.id))


def _change_role(visit: Visit) -> Response:
    visit.project.change_role(_other(visit).id, visit.form.get("role", ""))
    return see_other("/people")


def _revoke(visit: Visit) -> Response:
    visit.project.revoke(_other(visit).id)
    return see_other("/people")


def _judge(visit: Visit) -> Judge:
    found = visit.project.judges.get(visit.request.path_params["judge"])
    if found is None or found.kind == "model":
        raise InputError("there is no such person", where="people", fix="reload the page People")
    return found


def _other(visit: Visit) -> Judge:
    """Somebody else, so that a project does not lose its last admin."""
    judge = _judge(visit)
    if judge.id == visit.judge.id:
        raise InputError(
            "you cannot change your own role or access", where="people", fix="ask another admin"
        )
    return judge


def _settings(visit: Visit) -> Response:
    with visit.project.reading() as stored:
        versions = stored.versions("settings")
    return visit.render(
        "settings.html",
        settings=asdict(visit.project.settings),
        versions=versions,
        where=visit.project.path.name if visit.project.path else "PROJECT",
    )


routes = [
    Route("/people", visited(_people, roles=ADMINS)),
    Route("/people", visited(_invite, roles=ADMINS), methods=["POST"]),
    Route("/people/{judge}/link", visited(_renew, roles=ADMINS), methods=["POST"]),
    Route("/people/{judge}/role", visited(_change_role, roles=ADMINS), methods=["POST"]),
    Route("/people/{judge}/revoke", visited(_revoke, roles=ADMINS), methods=["POST"]),
    Route("/settings", visited(_settings, roles=LEADS)),
]
