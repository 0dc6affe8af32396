"""``rankgauge evaluate``: evaluate runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.options import located, located_qrels, unique_names
from rankgauge.cli.output import Output, output_format, print_message, working
from rankgauge.cli.parameters import Count, argument, command, option


@dataclass(frozen=True)
class _Questions:
    """Questions, and their fields used as weights and groups."""

    questions: str | None = option(
        "The questions with their fields (JSON lines or CSV), such as a question set. Generated "
        "questions (field origin) are evaluated separately.",
        "FILE",
    )
    weights: str | None = option(
        "Weight queries by a field of the questions (weight: by traffic), or by the column weight of a file.",
        "FIELD|FILE",
    )
    group_by: str | None = option(
        "Also show means by a field of the questions, such as part, origin, or language.", "FIELD"
    )
    mix_origins: bool = option("Average generated questions together with the others.")

    def evaluated(
        self, truth: Any, run: Any, measures: Sequence[str] | None, how: Mapping[str, Any]
    ) -> dict[str, rankgauge.Evaluation]:
        """Return one evaluation, or separate evaluations of generated and other questions."""
        fields, weights = self._fields

        def of(**more: Any) -> rankgauge.Evaluation:
            settings = {**how, "questions": fields, "mix_origins": self.mix_origins, **more}
            return rankgauge.evaluate(truth, run, measures, **settings)

        weighted = {"weights": weights, "groups": self.group_by}
        if fields is None or self.mix_origins:
            return {"": of(**weighted)}
        parts = rankgauge.evaluation.split_origins(of(mix_origins=True), fields)
        if len(parts) == 1:
            return {"": of(**weighted)}
        finding = rankgauge.core.Finding(
            "",
            "info",
            f"no mean over {' and '.join(f'{len(q)} {name}' for name, q in parts.items())} "
            "questions: generated questions differ from those of users (--mix-origins averages "
            "both)",
        )
        evaluations = {name: of(queries=queries, **weighted) for name, queries in parts.items()}
        return {
            name: replace(evaluation, findings=(finding, *evaluation.findings))
            for name, evaluation in evaluations.items()
        }

    @cached_property
    def _fields(self) -> tuple[Mapping[str, Any] | None, str | Mapping[str, Any] | None]:
        """Fields of the questions, and the weights."""
        if self.questions is None and self.weights is None and self.group_by is None:
            return None, None
        from pathlib import Path

        read = rankgauge.evaluation.question_fields
        weights: str | Mapping[str, Any] | None = self.weights
        if self.weights is not None and Path(self.weights).is_file():
            weights = {query: row.get("weight") for query, row in read(self.weights).items()}
        elif self.questions is None and (self.weights or self.group_by):
            raise click.UsageError("--weights and --group-by name fields of --questions FILE")
        return None if self.questions is None else read(self.questions), weights


@command()
def evaluate(
    *,
    qrels: str,
    runs: tuple[str, ...] = argument("[RUN]..."),
    measures: tuple[str, ...] = options.measures(
        "A measure, such as nDCG@10, AP, or 'P(rel=2)@5', or the measures recommended for a use "
        f"case: {', '.join(rankgauge.core.USE_CASES)}; for more, repeat it or use commas (see "
        "rankgauge measures).  [default: P, R, F1, Success, and nDCG at 1, 3, 5, and 10, RR, and "
        "AP]"
    ),
    per_query: bool = option("Show the values for each query."),
    out: Output = output_format("Show all notes of each run.", "trec"),
    policies: options.Policies,
    draws: Annotated[int, click.IntRange(2, 1_000_000)] | None = option(
        "With --ties mean: draw N orders for measures whose mean has no closed form.", "N"
    ),
    seed: Count = option("The seed of the draws.", default=0),
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
    jobs: options.Jobs = options.jobs,
    saving: options.Saving,
) -> None:
    """Evaluate each RUN against the judgments QRELS.

    Both are files: TREC, CSV, TSV, JSON lines, JSON, Parquet, or Arrow, compressed or not; "-" is
    standard input. The format is recognized by name and first line, or named before the path
    (trec3:scores.run). QRELS may also be a BEIR folder or zip archive. Without RUN, QRELS is a file of
    records with id, retrieved, and relevant.

    \b
    Examples:
      rankgauge evaluate qrels.txt bm25.run
      rankgauge evaluate qrels.txt bm25.run dense.run -m nDCG@10 -m AP
      rankgauge evaluate qrels.txt bm25.run -m rag
      rankgauge evaluate qrels.txt bm25.run -m nDCG@10 --per-query --as csv
      rankgauge evaluate qrels.txt bm25.run -m nDCG@10 --profile ranx
      rankgauge evaluate records.jsonl
      rankgauge evaluate qrels.txt bm25.run --questions set.jsonl --weights weight --group-by part
      rankgauge evaluate qrels.txt bm25.run --save --set label=2.1 --set k1=0.9
      rankgauge evaluate qrels.parquet run.parquet --memory 512MB
    """
    if memory is not None and (saving.save or profile is not None):
        raise click.UsageError("--save and --profile need a whole run: omit them, or --memory")
    history = saving.open()
    wanted = measures_of(measures)
    how = {**policies.keywords(), "profile": profile, "draws": draws or 0, "seed": seed, "memory": memory}
    shares = memory is not None
    with working(f"reading {qrels}", shares=shares):
        truth = (
            rankgauge.evaluation.read_judgments(located_qrels(qrels), wanted, memory=memory)
            if runs
            else rankgauge.Records.of(qrels)
        )

    def evaluated(path: str | None) -> tuple[dict[str, rankgauge.Evaluation], rankgauge.Run | None]:
        # Saving the fingerprint of a run and evaluating it twice both need the whole run.
        whole = (saving.save or questions.questions) and memory is None
        run = rankgauge.Run.of(located(path)) if path and whole else None
        source = located(path) if path and run is None else run
        return questions.evaluated(truth, source, wanted, how), run

    paths = runs or (None,)
    # Threads that wait for standard input cannot be interrupted; --memory is a limit for one run.
    sequential = "-" in paths or memory is not None
    results = rankgauge.core.map_in_threads(evaluated, paths, 1 if sequential else jobs)
    evaluated_runs = []
    for place, path in enumerate(paths, start=1):
        with working(f"evaluating {path or qrels} ({place} of {len(paths)})", shares=shares):
            evaluated_runs.append(next(results))
    names = [next(iter(parts.values())).run_name for parts, _ in evaluated_runs]
    named = zip(unique_names(names, runs) if runs else names, evaluated_runs, strict=True)
    saved = [
        (replace(evaluation, run_name=f"{name} ({part})" if len(parts) > 1 else name), run)
        for name, (parts, run) in named
        for part, evaluation in parts.items()
    ]
    evaluations = [evaluation for evaluation, _ in saved]
    # Save before printing, because the reader may close the pipe early; report failures after it,
    # so that an unwritable store does not suppress the table.
    failure = None
    try:
        if history is not None:
            for evaluation, run in saved:
                saving.add(history, evaluation, qrels=truth, run=run)
    except rankgauge.RankgaugeError as error:
        failure = error
    out.print(evaluations, rankgauge.reports.Options(per_query=per_query))
    out.print_notes(rankgauge.reports.notes_of(evaluations))
    if failure is not None:
        raise failure


def measures_of(names: Sequence[str]) -> list[str] | None:
    """Return the measures, with those of use cases, whose reasons are printed; None without any."""
    measures: list[str] = []
    for name in names:
        case = rankgauge.core.USE_CASES.get(name)
        if case is not None:
            print_message(f"{case.title}: {', '.join(case.measures)} ({case.why})")
        measures += (name,) if case is None else case.measures
    return measures or None
