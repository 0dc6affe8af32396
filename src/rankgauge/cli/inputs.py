"""What several commands read alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import rankgauge

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["located", "queries_of", "read_evaluations", "read_runs", "told_apart"]

_MARK = '"rankgauge/evaluation/'


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


def read_evaluations(paths: Sequence[str]) -> list[rankgauge.Evaluation]:
    """The evaluations in these files of JSON; none if the first file is something else."""
    from pathlib import Path

    def read(path: str) -> str:
        return Path(path).read_text(encoding="utf-8", errors="replace")

    first = Path(paths[0])
    if first.suffix != ".json" or not first.is_file() or _MARK not in read(paths[0])[:200]:
        return []
    found = []
    for path in paths:
        try:
            found.append(rankgauge.Evaluation.from_json(read(path)))
        except OSError as error:
            raise rankgauge.InputError(
                f"cannot be read: {error.strerror or error}", where=path, fix="give its path"
            ) from None
        except rankgauge.RankgaugeError as error:
            raise type(error)(error.what, where=path, fix=error.fix) from None
    names = told_apart([one.run_name for one in found], paths)
    return [replace(one, run_name=name) for one, name in zip(found, names, strict=True)]


def queries_of(text: str) -> Literal["all", "intersection"] | Path:
    """Which queries count, as the option has it."""
    if text == "all":
        return "all"
    if text == "intersection":
        return "intersection"
    from pathlib import Path

    return Path(text)
