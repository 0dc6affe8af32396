"""``rankgauge evaluate``: evaluate runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import located, read_runs, settings_of, unique_names
from rankgauge.cli.output import print_message, print_result, quiet, working


@click.command(short_help="Evaluate runs against judgments.")
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@options.measures(
    "A measure, such as nDCG@10, AP, or 'P(rel=2)@5'; for more, repeat it or use commas (see "
    "rankgauge measures).  [default: P, R, F1, Success, and nDCG at 1, 3, 5, and 10, RR, and AP]"
)
@click.option(
    "--for", "use", type=click.Choice(list(rankgauge.core.USE_CASES)),
    help="The recommended measures for a use case, with the reason.",
)  # fmt: skip
@click.option("--per-query", is_flag=True, help="Show the values for each query.")
@click.option(
    "--tie-report", is_flag=True,
    help="Show the range of each measure over all orders of tied documents instead.",
)  # fmt: skip
@click.option(
    "--unjudged-report", is_flag=True,
    help="Show the sensitivity to unjudged documents instead: none or all of them relevant, "
    "removed, and nDCG with random grades.",
)  # fmt: skip
@options.output_format("trec")
@options.full("Show all notes of each run.")
@options.policies
@click.option(
    "--draws", type=click.IntRange(2, 1_000_000), metavar="N",
    help="With --ties mean: draw N orders for measures whose mean has no closed form.",
)  # fmt: skip
@options.seed("The seed of the draws.")
@click.option(
    "--profile", metavar="NAME",
    help="Reproduce another tool: trec_eval-9, trec_eval-10, pytrec_eval, ir_measures, ranx, "
    "beir, mteb (mteb-ignore-identical-ids, mteb-skip-first-result), sentence-transformers, "
    "torchmetrics, sklearn, llama-index, or haystack. Sets the policies for ties and queries.",
)  # fmt: skip
@click.option(
    "--questions", metavar="FILE",
    help="The questions with their fields (JSON lines or CSV), such as a question set. Generated "
    "questions (field origin) are evaluated separately.",
)  # fmt: skip
@click.option(
    "--weights", metavar="FIELD|FILE",
    help="Weight queries by a field of the questions (weight: by traffic), or by the column "
    "weight of a file.",
)  # fmt: skip
@click.option(
    "--group-by", metavar="FIELD",
    help="Also show means by a field of the questions, such as part, origin, or language.",
)  # fmt: skip
@click.option(
    "--mix-origins", is_flag=True, help="Average generated questions together with the others."
)
@click.option(
    "--memory", metavar="SIZE",
    help="Read files in parts, with at most this much memory, such as 512MB. Files that are not "
    "sorted by query go through temporary files (TMPDIR).",
)  # fmt: skip
@click.option(
    "--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True,
    help="Evaluate in this process, or on Spark: files on any storage that Spark reads, Parquet "
    "unless the name ends with .csv, .tsv, .json, .jsonl, .txt, .run, .qrels, or .trec.",
)  # fmt: skip
@click.option(
    "--master", metavar="URL",
    help="With --engine spark: the master, such as yarn, spark://host:7077, or sc://host for "
    "Spark Connect.  [default: local[*]]",
)  # fmt: skip
@click.option(
    "--values", metavar="FOLDER",
    help="With --engine spark: write the values for each query to a new folder, as Parquet.",
)  # fmt: skip
@options.run_format
@options.qrels_format
@options.jobs
@options.save
@options.store
@options.label
@click.option(
    "--set", "pairs", multiple=True, metavar="KEY=VALUE",
    help="A setting to save with the evaluation, such as latency_ms=12; repeat for more.",
)  # fmt: skip
@click.option(
    "--date", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="The date to show (UTC).  [default: now] Entries are ordered by the time of saving.",
)  # fmt: skip
def evaluate(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    use: str | None,
    per_query: bool,
    tie_report: bool,
    unjudged_report: bool,
    format: str,
    full: bool,
    policies: dict[str, Any],
    draws: int | None,
    seed: int,
    profile: str | None,
    questions: str | None,
    weights: str | None,
    group_by: str | None,
    mix_origins: bool,
    memory: str | None,
    engine: str,
    master: str | None,
    values: str | None,
    run_format: str | None,
    qrels_format: str | None,
    jobs: int,
    save: bool,
    store: str | None,
    label: str,
    pairs: tuple[str, ...],
    date: datetime | None,
) -> None:
    """Evaluate each RUN against the judgments QRELS.

    Both are files: TREC, CSV, TSV, JSON lines, JSON, Parquet, or Arrow, compressed or not; "-" is
    standard input. The format is recognized by name and first line, or given by --format and
    --qrels-format. QRELS may also be a BEIR folder or zip archive. Without RUN, QRELS is a file of
    records with id, retrieved, and relevant.

    \b
    Examples:
      rankgauge evaluate qrels.txt bm25.run
      rankgauge evaluate qrels.txt bm25.run dense.run -m nDCG@10 -m AP
      rankgauge evaluate qrels.txt bm25.run --for rag
      rankgauge evaluate qrels.txt bm25.run -m nDCG@10 --per-query --as csv
      rankgauge evaluate qrels.txt bm25.run -m nDCG@10 --profile ranx
      rankgauge evaluate qrels.txt bm25.run --tie-report
      rankgauge evaluate records.jsonl
      rankgauge evaluate qrels.txt bm25.run -m nDCG@10 --unjudged-report
      rankgauge evaluate qrels.txt bm25.run --questions set.jsonl --weights weight --group-by part
      rankgauge evaluate qrels.txt bm25.run --save --label 2.1 --set k1=0.9
      rankgauge evaluate qrels.parquet run.parquet --memory 512MB
      rankgauge evaluate s3://logs/qrels s3://logs/run --engine spark --master yarn
    """
    if engine == "spark":
        from rankgauge.cli.evaluate_spark import print_means, refuse_options

        refuse_options(runs, policies, format)
        wanted = _measures_of(use, measures)
        print_means(
            qrels, runs, wanted, policies, master=master or "local[*]", folder=values,
            format=format,
        )  # fmt: skip
        return
    _refuse_options(memory, master or values, save=save, profile=profile)
    kept = _Output.of(label, pairs, date, store, save=save)
    if not runs and (run_format or qrels_format):
        raise click.UsageError("--format and --qrels-format are for QRELS and RUN, not for records")
    wanted = _measures_of(use, measures)
    if tie_report or unjudged_report:
        asked = {"--tie-report": tie_report, "--unjudged-report": unjudged_report}
        reports = [option for option in asked if asked[option]]
        excluded: dict[str, object] = {
            "--save": save, "--draws": draws, "--as trec": format == "trec", "--profile": profile,
            "--weights": weights, "--group-by": group_by, "--memory": memory,
        }  # fmt: skip
        _print_reports(
            reports, qrels, runs, (qrels_format, run_format), wanted, policies, format,
            per_query=per_query, excluded=excluded,
        )  # fmt: skip
        return
    evaluations: list[rankgauge.Evaluation] = []
    read: list[rankgauge.Run | None] = []
    found: list[dict[str, rankgauge.Evaluation]] = []
    fields = _Fields.of(questions, weights, group_by)
    with working(f"reading {qrels}", shares=memory is not None):
        truth = (
            rankgauge.evaluation.read_judgments(qrels, wanted, format=qrels_format, memory=memory)
            if runs
            else rankgauge.Records.of(qrels)
        )

    def evaluated(
        path: str | None,
    ) -> tuple[dict[str, rankgauge.Evaluation], rankgauge.Run | None]:
        # Saving the fingerprint of a run and evaluating it twice both need the whole run.
        whole = (save or questions) and memory is None
        run = rankgauge.read_run(path, format=run_format) if path and whole else None
        where = None if path is None else located(path, run_format)
        how = {**policies, "profile": profile, "draws": draws or 0, "seed": seed, "memory": memory}
        given = where if run is None else run
        return fields.evaluate(truth, given, wanted, how, mix_origins=mix_origins), run

    paths = runs or (None,)
    # Threads that wait for standard input cannot be interrupted; --memory is a limit for one run.
    one = "-" in paths or memory is not None
    results = rankgauge.core.map_in_threads(evaluated, paths, 1 if one else jobs)
    for place, path in enumerate(paths, start=1):
        shares = memory is not None
        with working(f"evaluating {path or qrels} ({place} of {len(paths)})", shares=shares):
            parts, run = next(results)
        found.append(parts)
        read += [run] * len(parts)
    names = [next(iter(parts.values())).run_name for parts in found]
    for name, parts in zip(unique_names(names, runs) if runs else names, found, strict=True):
        evaluations += [
            replace(one, run_name=f"{name} ({part})" if len(parts) > 1 else name)
            for part, one in parts.items()
        ]
    # Save before printing, because the reader may close the pipe early; report failures after it,
    # so that an unwritable store does not suppress the table.
    failure = None if kept is None else kept.failure_of(evaluations, truth, read)
    print_result(evaluations, format, rankgauge.reports.Options(per_query=per_query, full=full))
    for note in rankgauge.reports.notes_of(evaluations):
        # Formats for programs have no notes, but warnings must be visible.
        if format in {"trec", "csv"} or ((format == "json" or quiet()) and "WARNING" in note):
            print_message(note)
    if failure is not None:
        raise failure


def _measures_of(use: str | None, measures: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the measures of the use case (and print its reason) and those of -m, or None."""
    if use is None:
        return measures or None
    case = rankgauge.core.use_case(use)
    print_message(f"{case.title}: {', '.join(case.measures)} ({case.why})")
    return (*case.measures, *measures)


def _refuse_options(
    memory: str | None, of_spark: str | None, *, save: bool, profile: str | None
) -> None:
    """Reject options of Spark, and options that need a whole run together with --memory."""
    if of_spark is not None:
        raise click.UsageError("--master and --values need --engine spark")
    if memory is not None and (save or profile is not None):
        raise click.UsageError("--save and --profile need a whole run: omit them, or --memory")


class _Fields(NamedTuple):
    """Fields of questions, with the fields used as weights and groups."""

    questions: Mapping[str, Mapping[str, Any]] | None
    weights: str | Mapping[str, Any] | None
    groups: str | None

    @classmethod
    def of(cls, questions: str | None, weights: str | None, group_by: str | None) -> _Fields:
        """Read the files given as options."""
        if questions is weights is group_by is None:
            return cls(None, None, None)
        from pathlib import Path

        fields = None if questions is None else rankgauge.evaluation.question_fields(questions)
        found: str | Mapping[str, Any] | None = weights
        if weights is not None and Path(weights).is_file():
            of_file = rankgauge.evaluation.question_fields(weights)
            found = {query: row.get("weight") for query, row in of_file.items()}
        elif questions is None and (weights or group_by):
            raise click.UsageError("--weights and --group-by name fields of --questions FILE")
        return cls(fields, found, group_by)

    def evaluate(
        self,
        truth: Any,
        run: Any,
        measures: tuple[str, ...] | None,
        how: Mapping[str, Any],
        *,
        mix_origins: bool,
    ) -> dict[str, rankgauge.Evaluation]:
        """Return one evaluation, or separate evaluations of generated and other questions."""

        def of(**more: Any) -> rankgauge.Evaluation:
            given = {**how, "questions": self.questions, "mix_origins": mix_origins, **more}
            return rankgauge.evaluate(truth, run, measures, **given)

        weighted = {"weights": self.weights, "groups": self.groups}
        if self.questions is None or mix_origins:
            return {"": of(**weighted)}
        parts = rankgauge.evaluation.split_origins(of(mix_origins=True), self.questions)
        if len(parts) == 1:
            return {"": of(**weighted)}
        finding = rankgauge.core.Finding(
            "", "info",
            f"no mean over {' and '.join(f'{len(q)} {name}' for name, q in parts.items())} "
            "questions: generated questions differ from those of users (--mix-origins averages "
            "both)",
        )  # fmt: skip
        made = {name: of(queries=queries, **weighted) for name, queries in parts.items()}
        return {name: replace(one, findings=(finding, *one.findings)) for name, one in made.items()}


class _Output(NamedTuple):
    """History in which to save evaluations, with their label and settings."""

    history: rankgauge.History
    label: str
    settings: Mapping[str, str | float | bool]
    date: datetime | None

    @classmethod
    def of(
        cls,
        label: str,
        pairs: Iterable[str],
        date: datetime | None,
        store: str | None,
        *,
        save: bool,
    ) -> _Output | None:
        """Return None without --save; report an unusable store before any work is done."""
        if not save:
            if store or label or pairs or date:
                raise click.UsageError("--history, --label, --set, and --date need --save")
            return None
        return cls(rankgauge.History.open(store), label, settings_of(pairs), date)

    def failure_of(
        self,
        evaluations: Sequence[rankgauge.Evaluation],
        truth: object,
        runs: Sequence[rankgauge.Run | None],
    ) -> rankgauge.RankgaugeError | None:
        """Save all evaluations; stop at the first failure and return it."""
        try:
            for evaluation, run in zip(evaluations, runs, strict=True):
                entry = self.history.add(
                    evaluation,
                    truth,
                    run=run,
                    label=self.label,
                    settings=self.settings,
                    time=self.date,
                )
                print_message(f"saved as {entry.id} in {self.history.where}")
        except rankgauge.RankgaugeError as error:
            return error
        return None


# The function of each option, and the policies that it accepts.
_REPORTS = {
    "--tie-report": ("tie_report", ("ties", "queries", "duplicates", "undefined")),
    "--unjudged-report": ("unjudged_report", ("ties", "queries", "duplicates")),
}


def _print_reports(
    reports: Sequence[str],
    qrels: str,
    paths: Sequence[str],
    formats: tuple[str | None, str | None],
    measures: Sequence[str] | None,
    policies: Mapping[str, Any],
    format: str,
    *,
    per_query: bool,
    excluded: dict[str, object],
) -> None:
    """Print reports of each run instead of its evaluation; reject the options `excluded`."""
    if "--unjudged-report" in reports:
        excluded["--unjudged removed"] = policies["unjudged"] == "removed"
        excluded["a file of records"] = not paths
    for other, given in excluded.items():
        if given:
            raise click.UsageError(
                f"{other} cannot be combined with {reports[-1]}: omit one of them"
            )
    with working(f"reading {qrels}"):
        truth: Any
        runs: Sequence[rankgauge.Run | None]
        if paths:
            truth = rankgauge.read_qrels(qrels, format=formats[0])
            runs = read_runs(paths, formats[1])
        else:  # records contain both judgments and a ranking
            truth, runs = rankgauge.Records.of(qrels), [None]
    for option in reports:
        name, own = _REPORTS[option]
        chosen = {word: policies[word] for word in own}
        found = []
        for place, run in enumerate(runs, start=1):
            shown = qrels if run is None else run.name
            with working(f"evaluating {shown} ({place} of {len(runs)})"):
                found.append(getattr(rankgauge, name)(truth, run, measures, **chosen))
        print_result(found, format, rankgauge.reports.Options(per_query=per_query))
        for note in (note for one in found for note in one.table().notes):
            # CSV has no notes, but warnings must always be visible.
            if format == "csv" or (format == "json" and "WARNING" in note):
                print_message(note)
