"""``rankgauge fuse``: fuse runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import located, read_runs, unique_names
from rankgauge.cli.output import counted, print_message, print_text, working


@click.command(short_help="Fuse runs into one, with or without tuning.")
@click.argument("runs", metavar="RUN RUN [RUN]...", nargs=-1, required=True)
@click.option(
    "--method", default="rrf", show_default=True, metavar="NAME",
    help="The method: rrf, isr, rbc, borda, condorcet, combsum, combmnz, combanz, combmin, "
    "combmax, "
    "combmed, wsum.",
)  # fmt: skip
@click.option(
    "--norm", metavar="NAME",
    help="The normalization of scores: min-max, z-score, sum, rank, none.  [default: min-max]",
)  # fmt: skip
@click.option(
    "--weights", metavar="W,W[,W]...",
    help="A weight for each run, in order; for wsum, rrf, rbc, borda, and condorcet.",
)  # fmt: skip
@click.option("--k", type=float, help="The rank constant of rrf.  [default: 60]")
@click.option("--phi", type=float, help="The persistence of rbc.  [default: 0.8]")
@options.order
@click.option("--name", metavar="NAME", help="The name of the fused run.  [default: the method]")
@options.output
@click.option(
    "--tune", metavar="QRELS",
    help="Judgments, to choose parameters by cross-validation.",
)  # fmt: skip
@options.measure("With --tune: the measure to maximize.")
@click.option(
    "--folds", type=int, default=5, show_default=True,
    help="With --tune: the number of folds; each is fused with the best parameters on the others.",
)  # fmt: skip
@click.option(
    "--train", metavar="FILE",
    help="With --tune: choose on the queries in this file, one id per line, and fuse the others.",
)  # fmt: skip
@click.option(
    "--grid", "grids", multiple=True, metavar="WORD=V,V...",
    help="With --tune: values to try, such as k=10,60,100 or norm=sum,rank or weights=1/1,2/1; "
    "repeat for more. A parameter with its own option is fixed.",
)  # fmt: skip
@options.run_format
@options.qrels_format
@options.seed("With --tune: the seed of the folds.")
def fuse(
    runs: tuple[str, ...],
    method: str,
    norm: str | None,
    weights: str | None,
    k: float | None,
    phi: float | None,
    ties: Literal["trec", "input"],
    name: str | None,
    output: str,
    tune: str | None,
    measure: str,
    folds: int,
    train: str | None,
    grids: tuple[str, ...],
    run_format: str | None,
    qrels_format: str | None,
    seed: int,
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
                [located(run, run_format) for run in runs],
                output,
                rankgauge.fusion.Fusion(method, norm, given, k, phi),
                ties=ties,
                name=name,
            )
            done = how.method
        else:
            read = read_runs(runs, run_format)
            fixed = {"norm": norm, "weights": given, "k": k, "phi": phi}
            grid: dict[str, list[Any]] = dict(map(_grid, grids))
            grid |= {word: [value] for word, value in fixed.items() if value is not None}
            truth = rankgauge.read_qrels(tune, format=qrels_format)
            tuned = rankgauge.tune_fusion(
                truth, read, measure, method=method, grid=grid, folds=folds,
                train=None if train is None else Path(train), seed=seed, ties=ties,
            )  # fmt: skip
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
        raise click.BadParameter(
            f"{text!r}: expected numbers separated by {between!r}", param_hint=option
        ) from None
