"""``rankgauge gate``: decide whether a run may replace the baseline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.options import UNNAMED, located, located_qrels, read_evaluations, read_inputs
from rankgauge.cli.output import (
    Output,
    check_writable,
    output_format,
    print_message,
    print_text,
    unwritable,
    working,
    write_baseline,
    write_report,
)
from rankgauge.cli.parameters import argument, command, option

_SUMMARY = 1 << 20
_CUT = "\n\n(truncated: the summary of a step is limited to 1 MiB)\n"


@command()
def gate(
    *,
    qrels: str = argument("[QRELS|EVALUATION|NAME]", default=options.from_project(lambda _: "@latest", UNNAMED)),
    run: str | None = argument("[RUN]"),
    rules: str | None = option(
        "The project file with the rules, in its table [gate].  [default: that of the current folder "
        "or of one above it; without one, nDCG@10 with a margin of 0.02]",
        "FILE",
    ),
    trust: bool = options.trust,
    baseline: str | None = option(
        "The baseline to compare with.  [default: as in the rules, else gate-baseline.json]", "FILE"
    ),
    anchor: str | None = option(
        "A second baseline that is never updated, such as that of a release.  [default: as in "
        "the rules, else gate-baseline.anchor.json, written with the first baseline]",
        "FILE",
    ),
    gating: options.Gating,
    noise: tuple[str, ...] = option(
        "A repeated run of the baseline's system, or its evaluation if EVALUATION is gated; pass at least two.", "RUN"
    ),
    latency: tuple[str, str] | None = option(
        "CSV files (query,latency) of both systems, measured alternately in this job.", "BASELINE NEW"
    ),
    out: Output = output_format("Show margins, wins, ties, losses, and all listed losses.", None),
    page: str | None = options.gate_report,
    junit: str | None = option("Write JUnit XML, one case per check.", "FILE"),
    as_json: str | None = option("Write the result as JSON.", "--json FILE"),
    github: bool = option("Print annotations, and append to the file in GITHUB_STEP_SUMMARY."),
    imported: tuple[str, ...] = option(
        "Store a result that CI wrote with --json in the project, and exit; repeat for more.", "--import FILE"
    ),
) -> None:
    """Compare RUN with a baseline by rules, on the judgments QRELS.

    In a project, NAME is a saved evaluation (default: the latest), or one of its retrievers, which is
    run, reusing stored responses.

    An EVALUATION in JSON, such as that of answers, is compared without RUN.

    PASS: a loss above the margin is excluded. PASS unless rare collapse: it is excluded, unless
    queries that are too rare to be in the sample fail completely. FAIL: the run is worse, or a
    contract or floor is broken. INCONCLUSIVE: neither can be concluded; more queries would decide.
    IDENTICAL: no change. NOT COMPARABLE if queries, judgments, measures, or depth differ from those
    of the baseline, or too many queries have no ranking.

    Exit codes: 0 PASS or IDENTICAL; 1 FAIL; 2 an error; 4 NOT COMPARABLE. INCONCLUSIVE and PASS
    unless rare collapse: 0, or 3 with --strict.

    \b
    Examples:
      rankgauge gate qrels.txt main.run --update-baseline
      rankgauge gate qrels.txt branch.run
      rankgauge gate qrels.txt branch.run --anchor release-1.json --strict --github
      rankgauge gate hashing
      rankgauge gate @latest
      rankgauge gate --import gate.json
    """
    if imported:
        _import(imported)
        return
    check_writable(page)
    project = rules or rankgauge.core.find_project_file()
    wanted = rankgauge.GateRules.of(project)
    alone, judgments, candidate = _inputs(qrels, run, project, trust=trust)
    repeats: list[Any] = read_evaluations(noise) if alone and noise else [located(repeat) for repeat in noise]
    if noise and not repeats:
        raise rankgauge.InputError(
            "this is not an evaluation in JSON",
            where=noise[0],
            fix="pass evaluations of repeated runs, since EVALUATION has no judgments",
        )
    path = baseline or wanted.baseline
    if gating.update_baseline:
        with working("evaluating"):
            new_baseline = (
                rankgauge.Baseline.from_evaluation(alone[0], noise=repeats, max_failed=wanted.max_failed)
                if alone
                else rankgauge.Baseline.from_run(judgments, candidate, wanted, noise=repeats)
            )
        write_baseline(new_baseline, path, wanted, anchor, force=gating.force)
        for text in rankgauge.gates.untestable_margins(new_baseline, wanted):
            print_message(text)
        return
    with working("comparing the run with the baseline"):
        result = rankgauge.gate(
            judgments,
            candidate,
            wanted,
            baseline=path,
            anchor=anchor,
            noise=repeats,
            latency=latency,
            allow_uncalibrated=gating.allow_uncalibrated,
        ).stamped()
    out.print(result)
    report_options = rankgauge.reports.Options(strict=gating.strict)
    if page:
        write_report(page, rankgauge.reports.gate_page(result))
        print_message(f"wrote {page}")
    if junit:
        write_report(junit, rankgauge.reports.render(result, "junit", report_options))
    if as_json:
        write_report(as_json, rankgauge.reports.render(result, "json"))
    if github:
        print_text(rankgauge.reports.render(result, "github", report_options))
        _add_summary(result)
    gating.save_result(result)
    click.get_current_context().exit(result.exit_code(strict=gating.strict))


def _import(paths: tuple[str, ...]) -> None:
    """Store results in files; if one is not valid, none."""
    from rankgauge.core.files import read_text

    texts = {path: read_text(path) for path in paths}
    results = {path: rankgauge.gates.GateResult.from_json(text, where=path) for path, text in texts.items()}
    gates = rankgauge.store.Gates()
    for path, result in results.items():
        new = gates.add(texts[path], author="imported")
        print_message(f"{path}: {'stored' if new else 'already stored'}: {result.verdict}: {result.run_name}")


def _inputs(
    qrels: str, run: str | None, project: str | Path | None, *, trust: bool
) -> tuple[list[rankgauge.Evaluation], Any, Any]:
    """Return an evaluation that has no run, or nothing; the judgments (or this evaluation), and the run."""
    if run is not None:
        return [], rankgauge.Qrels.of(located_qrels(qrels)), located(run)
    if rankgauge.core.is_short_name(qrels) and rankgauge.History().entry(qrels).ranking is not None:
        inputs = read_inputs([qrels], 1)
        return [], inputs.qrels, *inputs.runs.values()
    alone = read_evaluations([qrels])
    if alone:
        return alone, alone[0], None
    if project is None or Path(qrels).is_file():
        raise click.UsageError("name the run: rankgauge gate QRELS RUN")
    # A retriever of the project.
    plan = rankgauge.BenchmarkPlan.read(project, trust=trust)
    bench = rankgauge.benchmark.run_plan(plan, only=[qrels], timed=0).bench
    return [], bench.qrels, bench.runs[qrels].ranked()


def _add_summary(result: rankgauge.gates.GateResult) -> None:
    """Append the result to the step summary; GitHub drops summaries above 1 MiB."""
    named = os.environ.get("GITHUB_STEP_SUMMARY", "")
    if not named:
        return
    path = Path(named)
    try:
        taken = path.stat().st_size if path.exists() else 0
        text = shorten(rankgauge.reports.render(result, "markdown"), _SUMMARY - taken - 1)
        with path.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        raise unwritable(named, error.strerror or str(error)) from None


def shorten(text: str, room: int) -> str:
    """Return as many whole lines as fit, so that no table row or escape sequence is split."""
    whole = text.encode()
    if len(whole) <= room:
        return text
    kept = whole[: max(0, room - len(_CUT))].decode("utf-8", "ignore")
    kept = kept[: kept.rfind("\n") + 1]
    return kept + _CUT if len((kept + _CUT).encode()) <= room else ""
