"""Provenance of numbers: versions of software, and the git commit."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version

__version__ = version("rankgauge")
_PATIENCE = 10.0


@dataclass(frozen=True)
class Commit:
    """The state of a git checkout."""

    id: str  # full hash
    dirty: bool  # whether tracked files have uncommitted changes


def current_commit() -> Commit | None:
    """Return the commit of this folder; None without git, repository, or commits."""
    commit = _git("rev-parse", "--verify", "HEAD")
    if not commit:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return Commit(commit, dirty=changed != "")


def _git(*words: str) -> str | None:
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the words are ours
            ["git", *words],  # noqa: S607 - the git of the user
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def versions() -> dict[str, str]:
    """Return the versions of the software that determines the numbers."""
    return {"rankgauge": __version__, "python": platform.python_version(), "numpy": version("numpy")}
