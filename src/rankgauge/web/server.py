"""`serve`: the pages of a judging project on a local address."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from typing import TYPE_CHECKING

from rankgauge.errors import MissingExtra
from rankgauge.judging import JudgingProject

if TYPE_CHECKING:
    from rankgauge.judging import Judge

__all__ = ["serve"]


def serve(
    project: JudgingProject,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    echo: Callable[[str], None] = print,
) -> None:
    """Serve the pages of a judging project until Ctrl-C.

    Args:
        project: The project.
        host: The address to listen on; other computers reach the pages only if it is not a local
            one.
        port: The port; a free one if 0.
        echo: Called with the link to open.

    Raises:
        MissingExtra: If Starlette or uvicorn is not installed.
        InputError: If there is no such project, or the port is taken.
    """
    try:
        import uvicorn

        from rankgauge.web.app import judging_app
    except ImportError:
        raise MissingExtra(
            "the pages need Starlette and uvicorn, which are not installed",
            fix="pip install 'rankgauge[web]'",
        ) from None
    secret = _local_secret(project)
    app = judging_app(project)
    echo(f"http://{host}:{port}/join/{secret}")
    uvicorn.run(app, host=host, port=port, log_level="warning")


def _local_secret(project: JudgingProject) -> str:
    """A new secret for whoever started the server: the admin with the name of this account."""
    import secrets

    from rankgauge.judging import hash_secret

    name = getpass.getuser()
    mine: list[Judge] = [
        each
        for each in project.judges.values()
        if (each.name, each.role, each.kind, each.revoked) == (name, "admin", "person", False)
    ]
    if not mine:
        return project.add_judge(name, role="admin")[1]
    secret = secrets.token_urlsafe(24)
    with project.writing() as stored:
        stored.add_judge(mine[0], hash_secret(secret))
    return secret
