"""What several commands read alike."""

from __future__ import annotations

from collections.abc import Sequence

import click

import rankgauge

__all__ = ["read_runs", "store_option", "told_apart"]

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


def read_runs(paths: Sequence[str]) -> list[rankgauge.Run]:
    """The runs of these files, each with a name of its own."""
    runs = [rankgauge.read_run(path) for path in paths]
    names = told_apart([run.name for run in runs], paths)
    return [rankgauge.Run.of(run, name=name) for run, name in zip(runs, names, strict=True)]
