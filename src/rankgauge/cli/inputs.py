"""What several commands read alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import rankgauge

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["located", "queries_of", "read_runs", "told_apart"]


def told_apart(names: Sequence[str], paths: Sequence[str]) -> list[str]:
    """The names of runs; those of files of the same name become their whole path."""
    return [
        path if names.count(name) > 1 else name for name, path in zip(names, paths, strict=True)
    ]


def located(path: str, format: str | None) -> str | rankgauge.formats.InFormat:
    """The path, with its format if one is given."""
    return path if format is None else rankgauge.formats.InFormat(path, format)


def read_runs(
    paths: Sequence[str], format: str | None = None, *, k: int | None = None
) -> list[rankgauge.Run]:
    """The runs of these files, each with a name of its own; only the first k of each ranking."""
    runs = []
    for path in paths:
        run = rankgauge.read_run(path, format=format)
        # The rest is let go of before the next is read.
        runs.append(run if k is None else rankgauge.cut(run, k, duplicates="best"))
    names = told_apart([run.name for run in runs], paths)
    return [rankgauge.Run.of(run, name=name) for run, name in zip(runs, names, strict=True)]


def queries_of(text: str) -> Literal["all", "intersection"] | Path:
    """Which queries count, as the option has it."""
    if text == "all":
        return "all"
    if text == "intersection":
        return "intersection"
    from pathlib import Path

    return Path(text)
