"""``rankgauge fuse``: fuse runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import read_runs, unique_names
from rankgauge.cli.output import counted, print_message, print_text, working
from rankgauge.cli.parameters import Count, argument, command, option


@command()
def fuse(
    *,
    runs: tuple[str, ...] = argument("RUN RUN [RUN]..."),
    method: str = option(
        "The method: rrf, isr, rbc, borda, condorcet, combsum, combmnz, combanz, combmin, combmax, combmed, wsum.",
        "NAME",
        default="rrf",
    ),
    norm: str | None = option(
        "The normalization of scores: min-max, z-score, sum, rank, none.  [default: min-max]", "NAME"
    ),
    weights: str | None = option(
        "A weight for each run, in order; for wsum, rrf, rbc, borda, and condorcet.", "W,W[,W]..."
    ),
    k: float | None = option("The rank constant of rrf.  [default: 60]", "--k"),
    phi: float | None = option("The persistence of rbc.  [default: 0.8]"),
    ties: Literal["trec", "input"] = options.order,
    name: str | None = option("The name of the fused run.  [default: the method]", "NAME"),
    output: str = options.output,
    tune: str | None = option("Judgments, to choose parameters by cross-validation.", "QRELS"),
    measure: str = options.measure("With --tune: the measure to maximize."),
    folds: int = option(
        "With --tune: the number of folds; each is fused with the best parameters on the others.", default=5
    ),
    train: str | None = option(
        "With --tune: choose on the queries in this file, one id per line, and fuse the others.", "FILE"
    ),
    grids: tuple[str, ...] = option(
        "With --tune: values to try, such as k=10,60,100 or norm=sum,rank or weights=1/1,2/1; "
        "repeat for more. A parameter with its own option is fixed.",
        "--grid WORD=V,V...",
    ),
    formats: options.Formats,
    seed: Count = option("With --tune: the seed of the folds.", default=0),
) -> None:
    """Fuse the rankings of the RUNs for each query, and write the fused run.

    Methods combine ranks (rrf, isr, rbc, borda, condorcet) or normalized scores (the others). A
    summary is printed on standard error.

    \b
    Examples:
      rankgauge fuse bm25.run dense.run -o hybrid.run
      rankgauge fuse bm25.run dense.run --method wsum --weights 0.3,0.7 -o hybrid.run
      rankgauge fuse bm25.run dense.run --method wsum --tune qrels.txt -o hybrid.run
    """
    _refuse_tuning_options(tune)
    given = None if weights is None else tuple(_numbers(weights, "--weights", ","))
    with working(f"fusing {len(runs)} runs"):
        if tune is None:
            how, count = rankgauge.fusion.fuse_files(
                [formats.run(run) for run in runs],
                output,
                rankgauge.fusion.Fusion(method, norm, given, k, phi),
                ties=ties,
                name=name,
            )
            done = how.method
        else:
            read = read_runs(runs, formats.run_format)
            fixed = {"norm": norm, "weights": given, "k": k, "phi": phi}
            grid: dict[str, list[Any]] = dict(map(_grid, grids))
            grid |= {word: [value] for word, value in fixed.items() if value is not None}
            truth = formats.read_qrels(tune)
            tuned = rankgauge.tune_fusion(
                truth,
                read,
                measure,
                method=method,
                grid=grid,
                folds=folds,
                train=None if train is None else Path(train),
                seed=seed,
                ties=ties,
            )
            made = rankgauge.Run.of(tuned.run, name=name)
            print_text(f"{tuned}\n", err=True)
            rankgauge.write_run(made, output)
            done, count = made.settings["fusion"]["method"], len(made)
    if output != "-":
        names = ", ".join(unique_names([rankgauge.data.run_name(run) for run in runs], runs))
        print_message(f"{output}: {counted(count)}; {names} fused by {done}")


def _refuse_tuning_options(tune: str | None) -> None:
    """Reject options that have no effect without tuning."""
    context = click.get_current_context()
    for word in ("measure", "folds", "train", "grids", "qrels_format", "seed"):
        source = context.get_parameter_source(word)
        if tune is None and source is click.core.ParameterSource.COMMANDLINE:
            option = "--grid" if word == "grids" else f"--{word.replace('_', '-')}"
            raise click.UsageError(f"{option} needs --tune QRELS")
        if word == "folds" and source is click.core.ParameterSource.COMMANDLINE:
            train = context.get_parameter_source("train")
            if train is click.core.ParameterSource.COMMANDLINE:
                raise click.UsageError("--train and --folds cannot be combined")


def _grid(text: str) -> tuple[str, list[Any]]:
    word, mark, values = text.partition("=")
    if not mark or not values:
        raise click.BadParameter(f"{text!r} is not WORD=V,V...", param_hint="--grid")
    parts = values.split(",")
    if word == "weights":
        return word, [_numbers(part, "--grid", "/") for part in parts]
    return word, parts if word == "norm" else _numbers(values, "--grid", ",")


def _numbers(text: str, option: str, between: str) -> list[float]:
    try:
        return [float(part) for part in text.split(between)]
    except ValueError:
        raise click.BadParameter(f"{text!r}: expected numbers separated by {between!r}", param_hint=option) from None
