"""``rankgauge cut`` and ``rankgauge sample``: write parts of files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import located
from rankgauge.cli.output import counted, make_folder, print_message, working
from rankgauge.cli.parameters import Count, argument, command, option


@command()
def cut(
    *,
    run: str,
    k: int = option("The number of ranks to keep."),
    ties: Literal["trec", "input"] = options.order,
    duplicates: Literal["error", "first", "best"] = option(
        "Duplicate documents in a ranking: reject them, or keep one.", default="error"
    ),
    run_format: options.RunFormat | None = options.run_format,
    output: str = options.output,
) -> None:
    """Keep the first k documents of each query in RUN, and write them in rank order.

    \b
    Examples:
      rankgauge cut bm25.run -k 100 -o bm25-100.run
      rankgauge fuse bm25.run dense.run | rankgauge cut - -k 10
      rankgauge cut chunks.run -k 1000 --duplicates first -o once.run
    """
    with working(f"reading {run}"):
        top = rankgauge.cut(located(run, run_format), k, ties=ties, duplicates=duplicates)
    rankgauge.write_run(top, output)


@command()
def sample(
    *,
    runs: tuple[str, ...] = argument("[RUN]..."),
    qrels: tuple[str, ...] = option("Judgments; repeat for more.", "QRELS"),
    n: int | None = option("The number of queries to draw."),
    seed: Count = option("The seed of the draw.", default=0),
    among: Literal["intersection", "union"] = option(
        "Draw from queries that are in all files, or in any file.", default="intersection"
    ),
    queries: str | None = option("Keep the queries in this file, one id per line, instead of drawing.", "FILE"),
    formats: options.Formats,
    output: str | None = option(
        "The output file [default: standard output]; for several files, the folder in which "
        "each is written under its own name.",
        "-o, --output FILE|FOLDER",
    ),
) -> None:
    """Draw n queries and write each RUN and QRELS with these queries only.

    The sample depends only on the ids and the seed: it is the same for all files, in any order, on
    any machine, and a larger sample contains the smaller one.

    \b
    Examples:
      rankgauge sample bm25.run dense.run --qrels qrels.txt -n 50 -o small
      rankgauge sample bm25.run -n 50 --seed 1 -o bm25-50.run
      rankgauge sample --qrels qrels.txt --queries ids.txt
    """
    targets = _targets((*qrels, *runs), output)
    if (n is None) == (queries is None):
        raise click.UsageError("pass -n NUMBER, or --queries FILE")
    with working(f"reading {counted(len(targets), 'file')}"):
        judgments = [formats.read_qrels(path) for path in qrels]
        rankings = [rankgauge.read_run(path, format=formats.run_format) for path in runs]
    chosen: tuple[str, ...] | Path
    if n is None:
        chosen = Path(str(queries))
    else:
        chosen = rankgauge.sample_queries([*judgments, *rankings], n, seed=seed, among=among)
        if len(targets) > 1 and among == "intersection":
            common = set.intersection(*(set(one) for one in [*judgments, *rankings]))
            print_message(f"drawn: {n} of the {counted(len(common))} that all files have")
    parts = [rankgauge.keep_queries(one, chosen) for one in judgments]
    tops = [rankgauge.keep_queries(one, chosen) for one in rankings]
    if output is not None and len(targets) > 1:
        make_folder(output)
    for one, target in zip(parts, targets, strict=False):
        rankgauge.write_qrels(one, target)
    for other, target in zip(tops, targets[len(parts) :], strict=True):
        rankgauge.write_run(other, target)
    for whole, part, path in zip([*judgments, *rankings], [*parts, *tops], (*qrels, *runs), strict=True):
        print_message(f"{path}: {len(part)} of {counted(len(whole))} kept")


def _targets(paths: tuple[str, ...], output: str | None) -> list[str]:
    """Return the path to which each file is written."""
    if not paths:
        raise click.UsageError("pass a RUN, or --qrels QRELS")
    if paths.count("-") > 1:
        raise click.UsageError("standard input can be read only once")
    if len(paths) == 1:
        return [output or "-"]
    if output is None:
        raise click.UsageError("several files: name a folder for them with -o")
    names = [Path(path).name for path in paths]
    twice = next((name for name in names if names.count(name) > 1 or name == "-"), None)
    if twice is not None:
        raise click.UsageError(f"two files would be written as {twice!r} in the folder: sample them separately")
    targets = [Path(output) / name for name in names]
    for path, target in zip(paths, targets, strict=True):
        if target.exists() and target.samefile(path):
            raise click.UsageError(f"{path} would be overwritten: name another folder with -o")
    return list(map(str, targets))
