"""`serve`: run the pages of evaluations and of judging on a local address."""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import socket
from collections.abc import Callable, Iterable

from rankgauge.errors import InputError, MissingExtra
from rankgauge.judging import JudgingProject, hash_secret
from rankgauge.production import EventLog
from rankgauge.project import Project


def serve(
    project: JudgingProject,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    log: EventLog | None = None,
    evaluations: Project | None = None,
    trust: bool = False,
    names: Iterable[str] = (),
    echo: Callable[[str], None] = print,
) -> None:
    """Serve the pages of a judging project until Ctrl-C.

    Args:
        project: The project.
        host: The address to listen on; a local address is not reachable from other computers.
        port: The port; if 0, any free port.
        log: A production log for leads; see :func:`judging_app`.
        evaluations: The project whose evaluations are shown, with the same store.
        trust: Whether jobs run the code of a project file that belongs to another user.
        names: Names of this server in links of others, as behind a proxy, besides `host`, the name of
            this computer, and IP addresses.
        echo: Called with the link to open, once the server listens.

    Raises:
        MissingExtra: If Starlette or uvicorn is not installed.
        InputError: If the project does not exist, or the port is in use.
    """
    try:
        import uvicorn

        from rankgauge.web.app import judging_app
        from rankgauge.web.jobs import Runner
    except ImportError:
        raise MissingExtra(
            "the pages need Starlette and uvicorn, which are not installed", fix="pip install 'rankgauge[web]'"
        ) from None
    hosts = ("localhost", host, socket.gethostname(), *names)
    runner = None if evaluations is None else Runner(evaluations, trust=trust)
    app = judging_app(project, log=log, evaluations=evaluations, runner=runner, hosts=map(str.lower, hosts))
    project.question_progress()  # load the project before the first request
    listening = listen(host, port)
    link = f"http://{shown_host(host)}:{listening.getsockname()[1]}/join/{_local_secret(project)}"
    # Keep connections open for longer than a task takes.
    config = uvicorn.Config(app, log_level="warning", timeout_keep_alive=120, timeout_graceful_shutdown=5)
    echo(link)
    # On Ctrl-C, uvicorn finishes open requests and raises the signal again.
    with listening, runner or contextlib.nullcontext(), contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, so that the link is not printed before it works."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name != "nt":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise InputError(
            f"cannot listen: {getattr(error, 'strerror', None) or error}",
            where=f"{host}:{port}",
            fix="use another --port (0: any free port), or end the program that uses it",
        ) from None
    listening.listen(128)
    return listening


def shown_host(host: str) -> str:
    """Return the host for links: the local host for a wildcard address."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _local_secret(project: JudgingProject) -> str:
    """Return a one-time secret that signs in as admin: the creator of the project, or else the user of the server."""
    with project.reading() as stored:
        name = stored.versions("settings")[-1][2] or getpass.getuser()
    wanted = (name, "admin", "person", False)
    known = (
        judge for judge in project.judges.values() if (judge.name, judge.role, judge.kind, judge.revoked) == wanted
    )
    judge = next(known, None) or project.add_judge(name, role="admin")[0]
    secret = secrets.token_urlsafe(24)
    with project.writing() as stored:
        stored.add_judge(judge, hash_secret(secret), {"once": True})
    return secret
