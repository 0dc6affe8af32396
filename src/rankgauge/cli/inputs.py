"""What several commands read alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

import rankgauge

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "format_option", "located", "qrels_format_option", "queries_of", "read_runs", "store_option",
    "told_apart",
]  # fmt: skip

format_option = click.option(
    "--format", "run_format", metavar="NAME", type=click.Choice(rankgauge.formats.RUN_FORMATS),
    help="The format of the runs, where name and first line mislead or leave it open: "
    f"{', '.join(rankgauge.formats.RUN_FORMATS)}.",
)  # fmt: skip
qrels_format_option = click.option(
    "--qrels-format", metavar="NAME", type=click.Choice(rankgauge.formats.QRELS_FORMATS),
    help=f"The same of the judgments: {', '.join(rankgauge.formats.QRELS_FORMATS)}.",
)  # fmt: skip

store_option = click.option(
    "--history", "store", metavar="FILE|URL",
    help="The store: a file of SQLite, or postgresql://... Without: what RANKGAUGE_HISTORY says, "
    "else .rankgauge/history.db here.",
)  # fmt: skip


def told_apart(names: Sequence[str], paths: Sequence[str]) -> list[str]:
    """The names of runs; those of files of the same name become their whole path."""
    return [
        path if names.count(name) > 1 else name for name, path in zip(names, paths, strict=True)
    ]


def located(path: str, form: str | None) -> str | rankgauge.formats.InFormat:
    """The path, with its format if one is given."""
    return path if form is None else rankgauge.formats.InFormat(path, form)


def read_runs(paths: Sequence[str], form: str | None = None) -> list[rankgauge.Run]:
    """The runs of these files, each with a name of its own."""
    runs = [rankgauge.read_run(path, format=form) for path in paths]
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
