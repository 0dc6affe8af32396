"""``rankgauge collection``, ``check``, ``convert``, ``fuse``, ``cut``, and ``sample``: prepare data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.options import located, located_qrels, named_runs, read_inputs
from rankgauge.cli.output import (
    Output,
    check_writable,
    make_folder,
    output_format,
    print_message,
    print_text,
    working,
)
from rankgauge.cli.parameters import Count, Group, argument, command, option
from rankgauge.core.text import many


@click.group(cls=Group, short_help="Describe a collection and its quality problems.")
def collection() -> None:
    """Describe a collection of documents, queries, and judgments.

    Sources are folders, archives, files, ir_datasets, Hugging Face, and MTEB.

    \b
    Examples:
      rankgauge collection info data/fiqa
      rankgauge collection info docs --queries questions.csv
    """


@collection.command(short_help="Show counts, lengths, overlaps, duplicates, and leaks.")
def info(
    *,
    source: str = argument("COLLECTION"),
    queries: str | None = option(
        "The queries, or questions with their relevant documents, in place of those of COLLECTION.", "FILE"
    ),
    qrels: str | None = option("The judgments, in place of those of COLLECTION.", "FILE"),
    split: str | None = option(
        "The split of the judgments: a file in qrels/.  [default: test, or the only one]", "NAME"
    ),
    runs: tuple[str, ...] = option(
        "A run, to check whether the documents it retrieved are in the collection; repeat for more.", "--run FILE"
    ),
    out: Output = output_format("Show judgments by grade, all lengths, and effects of all problems."),
) -> None:
    """Describe COLLECTION, and report problems that distort evaluation.

    COLLECTION is a folder in the layout of BEIR or TREC, a .zip of such a folder, a folder of
    Markdown or text files, a file of documents, or ir_datasets:NAME, hf:NAME, or mteb:NAME. Invalid
    records are counted and skipped.

    \b
    Examples:
      rankgauge collection info data/fiqa
      rankgauge collection info docs --queries questions.csv --as markdown
      rankgauge collection info data/fiqa --split dev --run bm25.run
    """
    with working(f"reading {source}"):
        description = rankgauge.describe_collection(
            source,
            None if qrels is None else rankgauge.Qrels.of(located_qrels(qrels)),
            queries=queries,
            runs=[rankgauge.Run.of(located(run)) for run in runs],
            split=split,
        )
    out.print(description)


@command()
def check(
    *,
    qrels: str | None = argument("[QRELS]"),
    runs: tuple[str, ...] = argument("[RUN]..."),
    measures: tuple[str, ...] = options.measures(
        "A measure to check against the data, and in which to show effects; repeat for more.  [default: nDCG@10]"
    ),
    collection: str | None = option(
        "Documents and queries, to check their texts as well: a source as for rankgauge collection.", "FOLDER"
    ),
    scale: str | None = option("The scale of the grades, such as 0..3; grades outside are reported.", "LOW..HIGH"),
    ignore: tuple[str, ...] = option("Skip this code; repeat for more.", "CODE"),
    select: tuple[str, ...] = option("Check only this code; repeat for more.", "CODE"),
    out: Output = output_format("Show all effects, and the fixes of warnings.", "github"),
    folder: str | None = option(
        "Write a copy of each file to this folder, with each fault fixed that has one safe fix.", "--fix FOLDER"
    ),
    also: tuple[str, ...] = option(
        "Also fix this code, whose fix may be wrong for your data; repeat for more.", "--fix-also CODE"
    ),
    fail_on: Literal["error", "warning", "info", "never"] = option(
        "The lowest severity at which the exit code is 1.", default="error"
    ),
    explain: str | None = option("Explain one code, and exit.", "CODE"),
    listed: bool = option("List all codes, and exit.", "--list"),
) -> None:
    """Check the judgments QRELS and each RUN for errors that distort the results.

    Each finding has a stable code, the problem and its location, its measured effect on the
    results, and a fix. RUN may be omitted; in a project, both may be: then the latest evaluation of
    each run is checked.

    Exit codes: 0 no finding with the severity of --fail-on or higher, 1 such a finding, 2 an error.

    \b
    Examples:
      rankgauge check qrels.txt bm25.run dense.run
      rankgauge check qrels.txt bm25.run -m nDCG@10 -m R@100 --collection data/fiqa
      rankgauge check qrels.txt bm25.run --fix fixed --fix-also R101
      rankgauge check qrels.txt bm25.run --as github --fail-on warning
      rankgauge check --explain P103
    """
    if listed:
        out.print_table(rankgauge.reports.finding_kinds_table())
        return
    if explain is not None:
        out.print_plain(rankgauge.reports.explain_problem(explain))
        return
    if also and folder is None:
        raise click.UsageError("--fix-also needs --fix FOLDER, a folder for the copies")
    if folder is not None and "-" in (qrels, *runs):
        raise click.UsageError("--fix reads files twice, and standard input can be read only once")
    fixes = rankgauge.checks.fixable_codes(code.upper() for code in also)
    if qrels is None or rankgauge.core.is_short_name(qrels):
        judged, named, texts = read_inputs([*filter(None, (qrels, *runs))])
        sources = [*named.values()]
    else:
        judged, sources, texts = located_qrels(qrels), [*map(located, runs)], None
    kinds = rankgauge.checks.FINDING_KINDS
    # The symmetric difference has unknown codes, too, which are rejected.
    skipped = {*ignore, *(kinds.keys() ^ {code.upper() for code in select} if select else ())}
    with working(f"checking {', '.join(runs) or qrels or 'the saved runs'}"):
        report = rankgauge.check(
            judged,
            sources,
            measures or None,
            collection=texts if collection is None else collection,
            ignore=[code.upper() for code in skipped],
            scale=scale,
        )
    out.print(report)
    if folder is not None:
        for line in rankgauge.checks.fix_inputs(report, judged, sources, also=fixes).write(folder):
            print_message(line)
    failed = fail_on != "never" and report.at_least(fail_on)
    click.get_current_context().exit(1 if failed else 0)


@command()
def convert(
    *,
    source: str = argument("IN"),
    target: str = argument("OUT"),
    source_format: str | None = option(
        "The format of IN, if it is not recognized by name and first line.", "--from, --format FORMAT"
    ),
    target_format: Annotated[str, click.Choice(rankgauge.formats.TARGET_FORMATS)] | None = option(
        f"The format of OUT, if its name does not show it: {', '.join(rankgauge.formats.TARGET_FORMATS)}.",
        "--to FORMAT",
    ),
    kind: Literal["qrels", "run", "queries", "documents"] | None = option(
        "The content of IN, if it is ambiguous; for a collection, the part to write."
    ),
    name: str | None = option("The tag of a run in TREC format.  [default: that of IN]", "TAG"),
    lossy: bool = option(
        "Write OUT even if parts of IN are lost (queries without judgments; titles, fields, "
        "line breaks of texts), and count them."
    ),
) -> None:
    """Write judgments, a run, queries, or documents in another format.

    The name of OUT determines the format (.csv .tsv .json .jsonl .parquet .arrow, else TREC) and
    the compression (.gz .xz .bz2 .zst .lz4). "-" is standard input or output. Numbers are exact.
    Content that OUT cannot hold is an error, or is reported on standard error. A collection (a
    folder or .zip) becomes a new folder or .zip in BEIR format; with --kind, one part is written.

    \b
    Examples:
      rankgauge convert bm25.run bm25.parquet
      rankgauge convert qrels.tsv qrels.json
      rankgauge convert run.json run.txt --kind run --name bm25
      rankgauge convert corpus.jsonl corpus.tsv --lossy
      rankgauge convert scifact.zip scifact
    """
    if not Path(target).is_dir():
        check_writable(target)
    with working(f"converting {source}"):
        done = rankgauge.convert(
            source, target, kind=kind, source_format=source_format, target_format=target_format, name=name, lossy=lossy
        )
    click.echo(str(done), err=True)


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
    seed: Count = option("With --tune: the seed of the folds.", default=0),
) -> None:
    """Fuse the rankings of the RUNs for each query, and write the fused run.

    A RUN is a file or a saved evaluation. Methods combine ranks (rrf, isr, rbc, borda, condorcet) or
    normalized scores (the others). A summary is printed on standard error.

    \b
    Examples:
      rankgauge fuse bm25.run dense.run -o hybrid.run
      rankgauge fuse bm25.run dense.run --method wsum --weights 0.3,0.7 -o hybrid.run
      rankgauge fuse bm25.run dense.run --method wsum --tune qrels.txt -o hybrid.run
      rankgauge fuse bm25@latest dense@latest -o hybrid.run
    """
    _refuse_tuning_options(tune)
    parsed_weights = None if weights is None else tuple(_numbers(weights, "--weights", ","))
    named = named_runs(runs)
    with working(f"fusing {len(runs)} runs"):
        if tune is None:
            how, count = rankgauge.retrievers.fuse_files(
                named,
                output,
                rankgauge.retrievers.Fusion(method, norm, parsed_weights, k, phi),
                ties=ties,
                name=name,
            )
            done = how.method
        else:
            fixed = {"norm": norm, "weights": parsed_weights, "k": k, "phi": phi}
            grid: dict[str, list[Any]] = dict(map(_grid, grids))
            grid |= {word: [value] for word, value in fixed.items() if value is not None}
            tuned = rankgauge.tune_fusion(
                rankgauge.Qrels.of(located_qrels(tune)),
                named,
                measure,
                method=method,
                grid=grid,
                folds=folds,
                train=None if train is None else Path(train),
                seed=seed,
                ties=ties,
            )
            fused = rankgauge.Run.of(tuned.run, name=name)
            print_text(f"{tuned}\n", err=True)
            rankgauge.write_run(fused, output)
            done, count = fused.settings["fusion"]["method"], len(fused)
    if output != "-":
        print_message(f"{output}: {many(count, 'query')}; {', '.join(named)} fused by {done}")


def _refuse_tuning_options(tune: str | None) -> None:
    """Reject options that have no effect without tuning."""
    context = click.get_current_context()
    words = ("measure", "folds", "train", "grids", "seed")
    commandline = click.core.ParameterSource.COMMANDLINE
    passed = [word for word in words if context.get_parameter_source(word) is commandline]
    if tune is None and passed:
        option = "--grid" if passed[0] == "grids" else f"--{passed[0].replace('_', '-')}"
        raise click.UsageError(f"{option} needs --tune QRELS")
    if {"folds", "train"} <= set(passed):
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


@command()
def cut(
    *,
    run: str,
    k: int = option("The number of ranks to keep."),
    ties: Literal["trec", "input"] = options.order,
    duplicates: Literal["error", "first", "best"] = option(
        "Duplicate documents in a ranking: reject them, or keep one.", default="error"
    ),
    output: str = options.output,
) -> None:
    """Keep the first k documents of each query in RUN, and write them in rank order.

    RUN is a file or a saved evaluation.

    \b
    Examples:
      rankgauge cut bm25.run -k 100 -o bm25-100.run
      rankgauge fuse bm25.run dense.run | rankgauge cut - -k 10
      rankgauge cut chunks.run -k 1000 --duplicates first -o once.run
      rankgauge cut bm25#3 -k 100 -o bm25-100.run
    """
    with working(f"reading {run}"):
        top = rankgauge.cut(located(run), k, ties=ties, duplicates=duplicates)
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
    with working(f"reading {many(len(targets), 'file')}"):
        files: list[Any] = [
            *(rankgauge.Qrels.of(located_qrels(path)) for path in qrels),
            *(rankgauge.Run.of(located(path)) for path in runs),
        ]
    chosen: tuple[str, ...] | Path
    if n is None:
        chosen = Path(str(queries))
    else:
        chosen = rankgauge.sample_queries(files, n, seed=seed, among=among)
        if len(targets) > 1 and among == "intersection":
            common = set.intersection(*map(set, files))
            print_message(f"drawn: {n} of the {many(len(common), 'query')} that all files have")
    parts = [rankgauge.keep_queries(file, chosen) for file in files]
    if output is not None and len(targets) > 1:
        make_folder(output)
    for path, target, file, part in zip((*qrels, *runs), targets, files, parts, strict=True):
        if isinstance(part, rankgauge.Run):
            rankgauge.write_run(part, target)
        else:
            rankgauge.write_qrels(part, target)
        print_message(f"{path}: {len(part)} of {many(len(file), 'query')} kept")


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
