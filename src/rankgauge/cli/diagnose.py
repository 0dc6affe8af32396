"""``rankgauge diagnose``, ``explain``, ``sensitivity``, ``reliability``, and ``measures``: understand values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated, Any

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.options import located, read_drift, read_inputs
from rankgauge.cli.output import Output, output_format, print_message, working
from rankgauge.cli.parameters import Count, Group, Positive, argument, command, declare, option
from rankgauge.core.text import many


@command()
def diagnose(
    *,
    paths: tuple[str, ...] = argument("[QRELS] [RUN]"),
    collection: str | None = option(
        "The texts: a source as for rankgauge collection. Without it, only ranks and judgments are used.", "FOLDER"
    ),
    measure: str = options.measure("The measure that ranks the queries."),
    k: Positive = option("The cut-off: a relevant document below it is missed.", default=5),
    worst: Count = option("The number of worst queries to show.", "-n, --worst", default=5),
    rel: Annotated[float, click.FloatRange(min=0, min_open=True)] = option(
        "The grade from which a document counts as relevant.", default=1
    ),
    depth: Positive = option("The number of documents that a reranker would receive.", "--rerank-depth", default=100),
    group_by: str | None = option("A field of the queries: show a mean for each of its values.", "FIELD"),
    also: str | None = option(
        "Another run, to measure the potential of both together. If it is not deeper than "
        "RUN, it rules out depth as a cause.",
        "RUN",
    ),
    drift: str | None = option("The result of rankgauge logs drift ... -o drift.json.", "FILE"),
    out: Output = output_format(
        "Show potential gains, the worst queries, other cut-offs, thresholds, and means by group."
    ),
) -> None:
    """Diagnose RUN on the judgments QRELS: likely causes of its errors, and suggested fixes.

    Prints quality in bands (those in the table [bands] of the project, if there is one) and the
    likely causes. --full adds the worst queries, the potential gain of each fix if it retrieved the
    missed documents at the top, other cut-offs, thresholds, and the distribution over queries.

    \b
    Examples:
      rankgauge diagnose qrels.txt bm25.run
      rankgauge diagnose qrels.txt bm25.run --collection data --group-by type
      rankgauge diagnose qrels.txt dense.run --collection data --also bm25.run -n 10
      rankgauge diagnose qrels.txt bm25.run --drift drift.json
      rankgauge diagnose @latest
    """
    with working(f"diagnosing {paths[-1] if paths else 'a run'}"):
        inputs = read_inputs(paths, 1)
        (run,) = inputs.runs.values()
        diagnosis = rankgauge.diagnose(
            inputs.qrels,
            run,
            inputs.texts if collection is None else rankgauge.Collection.read(collection),
            measure=measure,
            k=k,
            rel=rel,
            worst=worst,
            depth=depth,
            bands=rankgauge.core.find_project_file(),
            group_by=group_by,
            also=None if also is None else located(also),
            drift=None if drift is None else rankgauge.Finding.from_dict(read_drift(drift)["finding"]),
        )
    out.print(diagnosis)


_NUMBER = re.compile(r"[0-9]*\.?[0-9]+")


@command()
def explain(
    *,
    paths: tuple[str, ...] = argument("[QRELS] [RUN] MEASURE"),
    query: str | None = option("The query to explain.  [default: one that shows how the measure works]", "ID"),
    against: str | None = option(
        "Explain why the value of another tool differs, by its profile, such as pytrec_eval: "
        "the effect of each deviation, and one query computed both ways.",
        "PROFILE",
    ),
    values: str | None = option(
        "Find how the values in this file were computed, and why ours differ: output of "
        "trec_eval -q or ir_measures, CSV, TSV, JSON (pytrec_eval or rankgauge), or JSON "
        "lines.",
        "--against-values FILE",
    ),
    mean: str | None = option(
        "Find how this mean was computed; pass all known digits, such as 0.4123.", "--against-mean NUMBER"
    ),
    policies: options.Policies,
    out: Output = output_format("Show all ranks, the ideal ranking, scores, and all queries that differ."),
) -> None:
    """Explain the value of MEASURE for one query of RUN, step by step.

    Prints the ranking with the contribution of each document, the ideal ranking if the measure uses
    one, and the formula with its numbers. They are computed by separate code and verified against
    rankgauge evaluate. --against, --against-values, and --against-mean explain why two means
    differ.

    \b
    Examples:
      rankgauge explain qrels.txt bm25.run nDCG@10
      rankgauge explain qrels.txt bm25.run AP --query q17
      rankgauge explain qrels.txt bm25.run 'RBP(p=0.8)@10' --as markdown
      rankgauge explain qrels.txt bm25.run nDCG@10 --against pytrec_eval
      rankgauge explain qrels.txt bm25.run nDCG@10 --against-values theirs.csv
      rankgauge explain qrels.txt bm25.run nDCG@10 --against-mean 0.4123
      rankgauge explain @latest nDCG@10
    """
    if sum(source is not None for source in (against, values, mean)) > 1:
        raise click.UsageError("pass one of --against, --against-values, and --against-mean")
    if mean is not None and not _NUMBER.fullmatch(mean):
        raise click.BadParameter(f"got {mean!r}, expected a number such as 0.4123", param_hint="--against-mean")
    file = rankgauge.core.find_project_file()
    # In a project, the latest evaluation is explained by the measure that decides.
    words = paths or (() if file is None else rankgauge.Project(file).measures[:1])
    if not words:
        raise click.UsageError("name the measure: QRELS RUN MEASURE")
    *sources, measure = words
    with working(f"explaining {measure}"):
        inputs = read_inputs(sources, 1)
        truth, (source,) = inputs.qrels, inputs.runs.values()
        result: rankgauge.rendering.Result
        if against is not None:
            result = rankgauge.reconcile(truth, source, measure, against, query=query, **policies.keywords())
        elif values is not None or mean is not None:
            given_values = rankgauge.explanation.GivenValues.of(mean if values is None else values, measure)
            result = rankgauge.reproduce(truth, source, measure, given_values, query=query, **policies.keywords())
        else:
            result = rankgauge.explain(truth, source, measure, query, **policies.keywords())
    out.print(result)


@dataclass(frozen=True, kw_only=True)
class _Runs:
    """Runs, and how to report on each of them."""

    paths: tuple[str, ...] = argument("[QRELS] [RUN]...")
    measures: tuple[str, ...] = options.measures(
        "A measure; for more, repeat it or use commas.  [default: those of rankgauge evaluate]"
    )
    out: Output

    def print(
        self, report: Callable[..., Any], how: dict[str, Any], shown: rankgauge.reports.Options | None = None
    ) -> None:
        """Print the report of each run."""
        with working(f"reading {', '.join(self.paths)}"):
            inputs = read_inputs(self.paths, records=True)
            # Records contain both judgments and a ranking.
            alone = isinstance(inputs.qrels, rankgauge.Records)
            truth = inputs.qrels if alone else rankgauge.Qrels.of(inputs.qrels)
            runs = inputs.runs if alone else {run.name: run for run in inputs.read_runs()}
        results = []
        for place, (name, run) in enumerate(runs.items(), start=1):
            with working(f"evaluating {name} ({place} of {len(runs)})"):
                results.append(report(truth, run, self.measures or None, **how))
        self.out.print(results, shown)
        self.out.print_notes(note for result in results for note in result.table().notes)


@click.group(cls=Group, short_help="Show the effect of ties and of unjudged documents.")
def sensitivity() -> None:
    """Show how much the values of runs depend on ties or on unjudged documents.

    \b
    Examples:
      rankgauge sensitivity ties qrels.txt bm25.run
      rankgauge sensitivity unjudged qrels.txt bm25.run -m nDCG@10
      rankgauge sensitivity deciding qrels.txt bm25.run dense.run --depth 10
    """


@sensitivity.command(short_help="Show the range of each measure over orders of tied documents.")
def ties(
    *,
    runs: _Runs,
    per_query: bool = option("Show the values for each query."),
    policies: options.Policies = declare(unjudged=""),
) -> None:
    """Show the range of each measure over all orders of tied documents.

    QRELS and RUN are those of rankgauge evaluate; without RUN, QRELS is a file of records.

    \b
    Examples:
      rankgauge sensitivity ties qrels.txt bm25.run
      rankgauge sensitivity ties qrels.txt bm25.run -m nDCG@10 --per-query --as csv
    """
    how = policies.keywords("ties", "queries", "duplicates", "undefined")
    runs.print(rankgauge.tie_report, how, rankgauge.reports.Options(per_query=per_query))


@sensitivity.command(short_help="Show the range of each measure over unjudged documents.")
def unjudged(
    *,
    runs: _Runs = declare(paths=argument("[QRELS] RUN...")),
    policies: options.Policies = declare(undefined="", unjudged=""),
) -> None:
    """Show each measure with none or all of the unjudged documents relevant, and without them.

    nDCG is also estimated with random grades.

    \b
    Examples:
      rankgauge sensitivity unjudged qrels.txt bm25.run -m nDCG@10
    """
    runs.print(rankgauge.unjudged_report, policies.keywords("ties", "queries", "duplicates"))


@sensitivity.command(short_help="Find the unjudged documents that could change a difference.")
def deciding(
    *,
    paths: tuple[str, ...] = argument("[QRELS] [BASELINE RUN]"),
    measure: str = options.measure("The measure: P, R, Success, RR, AP, nDCG, or RBP."),
    depth: Positive | None = option(
        "Judge only documents down to this rank of either run.  [default: all]", "--depth RANKS"
    ),
    queue: str | None = option(
        "Write the documents that matter in random order, as a run for rankgauge judge pool.", "--queue FILE"
    ),
    out: Output,
) -> None:
    """Find the unjudged documents that could change the difference of RUN and BASELINE.

    Prints bounds of the difference over all grades of the unjudged documents that either run
    retrieved, whether their judgments could change its sign, and the documents that could change
    it most.

    \b
    Examples:
      rankgauge sensitivity deciding qrels.txt bm25.run dense.run
      rankgauge sensitivity deciding qrels.txt bm25.run dense.run --depth 10 --queue queue.run
      rankgauge sensitivity deciding @baseline @latest --queue queue.run
    """
    with working("reading 2 runs"):
        inputs = read_inputs(paths, 2)
        baseline, run = inputs.read_runs()
        result = rankgauge.comparison.deciding_documents(inputs.qrels, baseline, run, measure, depth=depth)
    out.print(result)
    if queue is not None:
        documents = result.queue()
        rankgauge.write_run(documents, queue)
        print_message(
            f"wrote {queue}: {many(len(result), 'document')}; to judge them: rankgauge judge pool "
            f"--collection FOLDER --run {queue} -k {max(map(len, documents.values()), default=1)}"
        )


@command()
def reliability(
    *,
    paths: tuple[str, ...] = argument("[QRELS] [RUN]..."),
    measures: tuple[str, ...] = options.measures("A measure; repeat for more.", default=("AP", "nDCG@10")),
    k: Positive | None = option(
        "The pool depth: the documents of each run were judged down to this rank.  [default: the whole run]", "RANKS"
    ),
    pairs: tuple[str, ...] = option(
        "The system or team of a run (a file, spelled as in RUN): judgments contributed only "
        "by a group are omitted for all of its runs. Repeat for more; a run without a group "
        "is a group of its own.",
        "--group RUN=GROUP",
    ),
    out: Output,
) -> None:
    """Evaluate each RUN again without the judgments that only it contributed to the pool.

    The runs are those from which the pool was built, files or saved evaluations. The loss of a run
    estimates how much a new run, which did not contribute to the judgments QRELS, may be
    underestimated.

    \b
    Examples:
      rankgauge reliability qrels.txt bm25.run dense.run hybrid.run
      rankgauge reliability qrels.txt *.run -k 100 -m AP -m nDCG@10
      rankgauge reliability qrels.txt a1.run a2.run b.run --group a1.run=a --group a2.run=a
      rankgauge reliability bm25#1 hashing#2
    """
    inputs = read_inputs(paths)
    # Without arguments, the runs are known by their names.
    spelled = paths[-len(inputs.runs) :] or tuple(inputs.runs)
    names = dict(zip(spelled, inputs.runs, strict=True))
    groups = {name: name for name in inputs.runs}
    for pair in pairs:
        path, _, group = pair.rpartition("=")
        if not group or path not in names:
            raise click.BadParameter(
                f"got {pair!r}, expected RUN=GROUP, with RUN spelled as in the arguments", param_hint="--group"
            )
        groups[names[path]] = group
    with working(f"leaving out each of {len(inputs.runs)} runs"):
        result = rankgauge.reliability(inputs.qrels, inputs.runs, measures, k=k, groups=groups if pairs else None)
    out.print(result)


# Measures that the short list omits: others of the same kind are in use.
_RARE = ("GMBpref", "NERR", "PairAcc")


@command()
def measures(
    *,
    name: str | None = argument("[NAME]"),
    out: Output = output_format("Show details, sources, and names in other tools."),
) -> None:
    """List the measures of rankings and answers, and the online metrics, or explain the measure NAME.

    \b
    Examples:
      rankgauge measures
      rankgauge measures nDCG
      rankgauge measures ndcg_cut_10
      rankgauge measures idk_rate
    """
    if name is None:
        table = rankgauge.reports.measures_table()
        whole = out.full or out.format != "table"
        for command, rows in groupby(range(len(table.rows)), lambda row: "" if whole else table.rows[row][-1]):
            shown = [row for row in rows if not str(table.rows[row][0]).startswith(_RARE)]
            part = replace(table.part(rows=shown, columns=(0, 1)), title=f"computed by rankgauge {command}")
            out.print_table(table if whole else replace(part, notes=table.notes[:1]))
    else:
        out.print_plain(rankgauge.reports.describe(name, full=out.full))
