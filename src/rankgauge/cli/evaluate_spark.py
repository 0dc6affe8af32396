"""``rankgauge evaluate --engine spark``: evaluation on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import rankgauge
from rankgauge.cli.inputs import named_paths
from rankgauge.cli.output import print_message, print_table, quiet
from rankgauge.distributed import spark

# With fewer rows, one machine finishes before a Spark session starts.
_SMALL = 10_000_000
_OPTIONS = {
    "qrels", "runs", "measures", "use", "format", "quiet", "engine", "master", "values", "ties",
    "queries", "duplicates", "undefined", "unjudged",
}  # fmt: skip


def refuse_options(runs: Sequence[str], policies: Mapping[str, Any], format: str) -> None:
    """Reject options that are not available on Spark, before a session starts."""
    context = click.get_current_context()
    given = [
        max(option.opts, key=len)
        for option in context.command.params
        if option.name not in _OPTIONS
        and context.get_parameter_source(str(option.name)) is not ParameterSource.DEFAULT
    ]
    given += ["--as trec"] * (format == "trec")
    if given:
        raise click.UsageError(f"not available with --engine spark: {', '.join(given)}")
    if policies["queries"] not in {"all", "intersection"}:
        raise click.UsageError("--queries is all or intersection with --engine spark")
    if not runs:
        raise click.UsageError("--engine spark needs QRELS and RUN: it does not read records")


def print_means(
    qrels: str,
    runs: Sequence[str],
    measures: Sequence[str] | None,
    policies: Mapping[str, Any],
    *,
    master: str,
    folder: str | None,
    format: str,
) -> None:
    """Evaluate files on Spark and print the means.

    Args:
        qrels: Path of the judgments.
        runs: Paths of the runs.
        measures: The measures.
        policies: All policies.
        master: URL of the master.
        folder: The folder for the values for each query; if None, they are not written.
        format: The output format.
    """
    how = {name: value for name, value in policies.items() if name != "undefined"}
    paths = {name: str(path) for name, path in named_paths(runs).items()}
    with spark.open_session(master) as session:
        truth = spark.read_files(session, qrels, "qrels")
        every = spark.read_runs(session, paths)
        values = spark.evaluate(every, truth, measures, runs=paths, **how)
        if folder is not None:
            _write(values, folder)
            values = session.read.parquet(spark.literal_path(folder))
        means = spark.summarize(values, undefined=policies["undefined"])
        names = tuple(values.columns[2:])
        rows, judged = every.count(), truth.count()
        for run in paths:
            if not any(means.get(run, {}).values()):
                spark.check_queries(every.where(every.run == run), truth)
    notes = [f"{rows:,} rows of runs and {judged:,} judgments"]
    if rows < _SMALL:
        notes.append(
            "rankgauge evaluate without --engine spark is faster below about 10 million rows"
        )
    cells = tuple(
        (run, *(means[run][name] if run in means else None for name in names)) for run in paths
    )
    print_table(rankgauge.rendering.Table(("run", *names), cells, notes=tuple(notes)), format)
    if format in {"csv", "json"} and not quiet():
        for note in notes:
            print_message(note)


def _write(values: Any, folder: str) -> None:
    """Write values; after a failed job, remove the empty folder."""
    local = Path(folder.removeprefix("file://"))
    existed = local.exists()
    try:
        values.write.parquet(folder)
    except BaseException:
        # Object stores have no empty folders.
        if not existed:
            with suppress(OSError):
                local.rmdir()
        raise
