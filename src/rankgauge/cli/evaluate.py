"""``rankgauge evaluate``: evaluate runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.options import read_inputs
from rankgauge.cli.output import Output, output_format, print_message, working
from rankgauge.cli.parameters import argument, command, option

_AT_ONCE = 4  # runs, since each may be held in memory


@dataclass(frozen=True)
class _Questions:
    """Questions, and their fields used as groups."""

    questions: str | None = option(
        "The questions with their fields (JSON lines or CSV), such as a question set. Generated "
        "questions (field origin) are evaluated separately.",
        "FILE",
    )
    group_by: str | None = option(
        "Also show means by a field of the questions, such as part, origin, or language.", "FIELD"
    )

    def evaluated(
        self, truth: Any, run: Any, measures: Sequence[str] | None, how: Mapping[str, Any]
    ) -> dict[str, rankgauge.Evaluation]:
        """Return one evaluation, or separate evaluations of generated and other questions."""
        settings = {"questions": self.fields, **how, "groups": self.group_by}

        def of(**more: Any) -> rankgauge.Evaluation:
            return rankgauge.evaluate(truth, run, measures, **{**settings, **more})

        if self.fields is None or how.get("mix_origins"):
            return {"": of()}
        parts = rankgauge.evaluation.split_origins(of(mix_origins=True, weights=None, groups=None), self.fields)
        if len(parts) == 1:
            return {"": of()}
        finding = rankgauge.core.Finding(
            "",
            "info",
            f"no mean over {' and '.join(f'{len(q)} {name}' for name, q in parts.items())} "
            "questions: generated questions differ from those of users (mix_origins = true in [evaluation] of "
            "rankgauge.toml averages both)",
        )
        evaluations = {name: of(queries=queries) for name, queries in parts.items()}
        return {
            name: replace(evaluation, findings=(finding, *evaluation.findings))
            for name, evaluation in evaluations.items()
        }

    @cached_property
    def fields(self) -> Mapping[str, Any] | None:
        """Fields of the questions."""
        if self.questions is None and self.group_by:
            raise click.UsageError("--group-by names a field of --questions FILE")
        return None if self.questions is None else rankgauge.evaluation.question_fields(self.questions)


@command()
def evaluate(
    *,
    paths: tuple[str, ...] = argument("[QRELS] [RUN]..."),
    again: bool = option("In a project: evaluate all saved runs on the current judgments, and save the evaluations."),
    measures: tuple[str, ...] = options.measures(
        "A measure, such as nDCG@10, AP, or 'P(rel=2)@5', or the measures recommended for a use "
        f"case: {', '.join(rankgauge.core.USE_CASES)}; for more, repeat it or use commas (see "
        "rankgauge measures).  [default: those of the project, or P, R, F1, Success, and nDCG at 1, 3, 5, "
        "and 10, RR, and AP]"
    ),
    per_query: bool = option("Show the values for each query."),
    out: Output = output_format("Show all notes of each run.", "trec"),
    policies: options.Policies,
    profile: str | None = option(
        "Reproduce another tool: trec_eval-9, trec_eval-10, pytrec_eval, ir_measures, ranx, beir, "
        "mteb (mteb-ignore-identical-ids, mteb-skip-first-result), sentence-transformers, "
        "torchmetrics, sklearn, llama-index, or haystack. Sets the policies for ties and queries.",
        "NAME",
    ),
    questions: _Questions,
    memory: str | None = option(
        "Read files in parts, with at most this much memory, such as 512MB. Files that are not "
        "sorted by query go through temporary files (TMPDIR).",
        "SIZE",
    ),
    jobs: options.Jobs | None = options.jobs,
    saving: options.Saving,
) -> None:
    """Evaluate each RUN against the judgments QRELS.

    Both are files: TREC, CSV, TSV, JSON lines, JSON, Parquet, or Arrow, compressed or not; "-" is
    standard input. The format is recognized by name and first line, or named before the path
    (trec3:scores.run). QRELS may also be a BEIR folder or zip archive. Without RUN, QRELS is a file of
    records with id, retrieved, and relevant.

    In a project, QRELS may be omitted: RUN is a file or a saved evaluation (bm25#3), by default the
    latest of each run. The table [evaluation] of rankgauge.toml has settings that are rarely changed.

    \b
    Examples:
      rankgauge evaluate qrels.txt bm25.run
      rankgauge evaluate qrels.txt bm25.run dense.run -m nDCG@10 -m AP
      rankgauge evaluate qrels.txt bm25.run -m rag
      rankgauge evaluate qrels.txt bm25.run -m nDCG@10 --per-query --as csv
      rankgauge evaluate qrels.txt bm25.run -m nDCG@10 --profile ranx
      rankgauge evaluate records.jsonl
      rankgauge evaluate qrels.txt bm25.run --questions set.jsonl --group-by part
      rankgauge evaluate qrels.txt bm25.run --save --set label=2.1 --set k1=0.9
      rankgauge evaluate qrels.parquet run.parquet --memory 512MB
      rankgauge evaluate --again
    """
    if memory is not None and (saving.save or profile is not None):
        raise click.UsageError("--save and --profile need a whole run: omit them, or --memory")
    project = None if rankgauge.core.find_project_file() is None else rankgauge.Project()
    if again:
        _evaluate_again(project, paths, out)
        return
    # An evaluation of a saved run tells nothing new unless the judgments changed: see --again.
    new = bool(paths) and not any(map(rankgauge.core.is_short_name, paths))
    history = saving.open(project, default=project is not None and memory is None and new)
    wanted = measures_of(measures)
    shares = memory is not None
    with working(f"reading {paths[0] if paths else 'the judgments'}", shares=shares):
        inputs = read_inputs(paths, records=True, project=project).with_judgments(wanted, memory)
        runs = inputs.runs
    if project is not None:
        wanted = wanted or list(project.measures) or None
    settings = {} if project is None else project.settings(policies.ties, questions.fields)
    how = {**policies.keywords(), "profile": profile, "memory": memory, **settings}

    def evaluated(source: Any) -> tuple[dict[str, rankgauge.Evaluation], rankgauge.Run | None]:
        # Saving a run and evaluating it twice both need the whole run.
        if source is not None and (history is not None or questions.questions) and memory is None:
            source = rankgauge.Run.of(source)
        run = source if isinstance(source, rankgauge.Run) else None
        return questions.evaluated(inputs.qrels, source, wanted, how), run

    # Threads that wait for standard input cannot be interrupted; --memory is a limit for one run.
    at_once = 1 if "-" in paths or memory is not None else min(_AT_ONCE, len(runs), jobs or _AT_ONCE)
    how["jobs"] = max(1, (jobs or rankgauge.core.default_jobs(runs.values())) // at_once)
    results = rankgauge.core.map_in_threads(evaluated, runs.values(), at_once)
    saved = []
    for place, name in enumerate(runs, start=1):
        with working(f"evaluating {name} ({place} of {len(runs)})", shares=shares):
            parts, run = next(results)
        for part, evaluation in parts.items():
            title = f"{name} ({part})" if len(parts) > 1 else name
            saved.append((replace(evaluation, run_name=title), run))
    evaluations = [evaluation for evaluation, _ in saved]
    # Save before printing, because the reader may close the pipe early; report failures after it,
    # so that an unwritable store does not suppress the table.
    try:
        if history is not None:
            for evaluation, run in saved:
                saving.add(history, evaluation, qrels=inputs.qrels, run=run, collection=inputs.texts, project=project)
    finally:
        out.print(evaluations, rankgauge.reports.Options(per_query=per_query))
        out.print_notes(rankgauge.reports.notes_of(evaluations))


def _evaluate_again(project: rankgauge.Project | None, paths: tuple[str, ...], out: Output) -> None:
    """Evaluate all saved runs on the current judgments."""
    if project is None or paths:
        raise click.UsageError("--again is for all saved runs of a project: omit QRELS and RUN")
    with working("evaluating the saved runs"):
        entries = project.evaluate_again()
    if not entries:
        print_message("nothing to do: each saved run of these queries is evaluated on the current judgments")
        return
    out.print([replace(project.evaluations.load(entry), run_name=entry.short_name) for entry in entries])
    for entry in entries:
        print_message(f"saved as {entry.short_name} in {project.evaluations.where}")


def measures_of(names: Sequence[str]) -> list[str] | None:
    """Return the measures, and print the reasons for those of use cases; None without any."""
    for name in names:
        case = rankgauge.core.USE_CASES.get(name)
        if case is not None:
            print_message(f"{case.title}: {', '.join(case.measures)} ({case.why})")
    return [*names] or None
