"""Where a number comes from: the versions that made it, and the commit of its folder."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

_PATIENCE = 10.0


@dataclass(frozen=True)
class Commit:
    """The state of a git checkout."""

    id: str  # the commit, in full
    dirty: bool  # whether files that git knows were changed since


def commit_of(folder: Path) -> Commit | None:
    """The commit of a folder; None without git, outside a checkout, or before the first commit."""
    found = _git(folder, "rev-parse", "--verify", "HEAD")
    if not found:
        return None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return Commit(found, dirty=changed != "")


def _git(folder: Path, *words: str) -> str | None:
    import shutil
    import subprocess

    git = shutil.which("git")
    if git is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the words are ours
            [git, *words],
            cwd=folder,
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
    """The versions that numbers depend on."""
    from importlib.metadata import version

    return {
        "rankgauge": version("rankgauge"),
        "python": platform.python_version(),
        "numpy": version("numpy"),
    }
