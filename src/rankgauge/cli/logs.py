"""``rankgauge logs``: production logs, their metrics, experiments, and questions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.options import read_drift
from rankgauge.cli.output import (
    Output,
    check_writable,
    output_format,
    print_message,
    print_text,
    save_plot,
    working,
    write_report,
)
from rankgauge.cli.parameters import Count, Group, Positive, argument, command, option
from rankgauge.core.escaping import for_terminal
from rankgauge.core.text import many


@command(short_help="Compute rates with intervals: thumbs, clicks, abstentions, latency.")
def metrics(
    *,
    log: str = options.log,
    names: tuple[str, ...] = option(
        "A metric, such as idk_rate; repeat for more.  [default: all]", "-m, --metric NAME"
    ),
    by: str | None = option(
        "Group by day, week (named by its Monday), arm of an experiment, or attribute.", "day|week|arm|NAME"
    ),
    since: str | None = options.since,
    until: str | None = options.until,
    where: dict[str, str] = option("Only questions with this arm or attribute value; repeat for more.", "NAME=VALUE"),
    thresholds: tuple[str, ...] = option(
        "FAIL if the whole 95% interval is beyond this threshold, such as 'idk_rate > 0.2'.", "--fail-if TEXT"
    ),
    strict: bool = option("Exit with 3 if a threshold is INCONCLUSIVE."),
    minutes: Annotated[float, click.FloatRange(0)] = option(
        "Time within which a similar question counts as a reformulation.", "N", default=10
    ),
    similarity: Annotated[float, click.FloatRange(0, 1)] = option(
        "Word cosine from which two questions count as similar.", "N", default=0.5
    ),
    drawn: str | None = option(
        "Plot the first metric by day or week (.svg or .png; needs rankgauge[plots]).", "--plot FILE"
    ),
    out: Output = output_format("Show units, definitions, and why a metric is not defined."),
) -> None:
    """Compute the metrics of LOG, with 95% intervals clustered by user.

    A metric whose events are not in LOG is undefined, not 0. --by day or week searches for shifts,
    and for a week that differs from the others, with the attribute that explains it.

    Intervals, thresholds, and tests are valid for one look. Repeating them every day raises the
    rate of false alarms: look only on a few dates fixed in advance, or compare two versions with
    `logs experiment`, which stays valid however often you look.

    Exit codes: 0 success; 1 a threshold FAILs; 2 an error; 3 INCONCLUSIVE with --strict; 4 a metric
    with a threshold is undefined.

    \b
    Examples:
      rankgauge logs metrics log
      rankgauge logs metrics log -m idk_rate --by day --since 2026-05-01
      rankgauge logs metrics log --where language=de --fail-if 'thumbs_ratio < 0.7'
    """
    from rankgauge.production import online_metrics

    if drawn and by not in {"day", "week"}:
        raise rankgauge.InputError("a plot needs metrics by day or week", where="--plot", fix="add --by day")
    with working("reading the log"):
        result = online_metrics(
            log,
            names or None,
            by=by,
            since=since,
            until=until,
            where=where,
            thresholds=thresholds,
            minutes=minutes,
            similarity=similarity,
        )
    out.print(result)
    if out.is_data:
        for check in result.checks:
            print_message(f"{check.verdict}: {check.sentence}")
    if drawn:
        save_plot(result.plot(names[0] if names else None), drawn)
    click.get_current_context().exit(result.exit_code(strict=strict))


# Whether a drift verdict means that users ask other questions; verdicts not listed do.
_DRIFT = {"mixed": False, "cannot tell": None}


@command(short_help="Compare saved evaluations with user feedback, week by week.")
def health(
    *,
    log: str = options.log,
    measure: str = options.measure("The measure of the saved evaluations."),
    run: str | None = option("Use only evaluations of this run.", "NAME"),
    drift: str | None = option("The result of rankgauge logs drift ... -o drift.json.", "FILE"),
    margin: float = option("The smallest change of an online metric that matters.", "N", default=0.05),
    offline_margin: float = option("The smallest loss of the measure that matters.", "N", default=0.02),
    since: str | None = options.since,
    until: str | None = options.until,
    store: str | None = options.store,
    out: Output = output_format("Show all weeks."),
) -> None:
    """Compare saved evaluations (rankgauge evaluate --save) with user feedback in LOG.

    \b
    REFRESH       metrics hold, but users complain (fewer thumbs up, more
                  abstentions or reformulations); or users do not complain,
                  but drift was found
    WORSE         metrics fall, and users complain
    OFFLINE ONLY  metrics fall, and users show no change
    STEADY        metrics hold, and users show no change
    USERS ONLY    users complain; too few queries to tell if metrics hold
    CANNOT TELL   too few queries, ratings, or days; without users, fewer
                  than ten weeks

    Only evaluations since the last change of judgments, policies, or queries are compared. A
    verdict is valid for one look: repeating the command every day raises the rate of false alarms.
    Run it on a few dates fixed in advance, or compare two versions with `logs experiment`.

    \b
    Examples:
      rankgauge logs health log -m nDCG@10
      rankgauge logs health log --run bm25 --drift drift.json --since 2026-05-01
    """
    from rankgauge.production import production_health

    with working("reading the history"), rankgauge.History(store) as kept:
        trend = rankgauge.comparison.trend_of(kept, measure, run=run)
        names = dict.fromkeys(point.entry.run for point in trend.points)
        if len(names) > 1:
            raise rankgauge.InputError(
                f"the history has evaluations of {', '.join(names)}",
                where="--run",
                fix="name the run that users get: --run NAME",
            )
        start = max(trend.breaks, default=0)
        points = [(p.entry.time, kept.load(p.entry)) for p in trend.points[start:]]
    drifted = None if drift is None else _DRIFT.get(read_drift(drift)["verdict"], True)
    with working("reading the log"):
        result = production_health(
            log, points, measure, drift=drifted, margin=margin, offline_margin=offline_margin, since=since, until=until
        )
    out.print(result)
    if start:
        print_message(f"excluded: {many(start, 'evaluation')} before {'; '.join(trend.points[start].breaks)}")


@command(short_help="Compare two arms of an A/B test, at any time.")
def experiment(
    *,
    log: str = options.log,
    primary: str = option("The metric that decides, such as thumbs_ratio; choose it before the experiment.", "NAME"),
    names: tuple[str, ...] = option("Another metric; repeat for more.", "-m, --metric NAME"),
    arms: tuple[str, str] | None = option("The arms, if the log has more than two.", "BASELINE NEW"),
    ratio: tuple[
        Annotated[float, click.FloatRange(0, min_open=True)], Annotated[float, click.FloatRange(0, min_open=True)]
    ] = option("The intended ratio of users in the baseline and in the new arm.", "N N", default=(1, 1)),
    planned: Positive = option(
        "The denominator of the primary metric at which its interval is narrowest.", default=5000
    ),
    drawn: str | None = option(
        "Plot the primary difference by day (.svg or .png; needs rankgauge[plots]).", "--plot FILE"
    ),
    out: Output = output_format("Also show the primary difference by day and definitions of the metrics."),
) -> None:
    """Compare two arms of an experiment in LOG by online metrics.

    There is no verdict if the numbers of users contradict the intended ratio. The interval and
    p-value of the primary metric are valid however often you look; those of other metrics (Holm)
    are valid for one look, at a size fixed in advance.

    \b
    Examples:
      rankgauge logs experiment log --primary thumbs_ratio
      rankgauge logs experiment log --primary search_ctr -m idk_rate --arms bm25 hybrid
    """
    from rankgauge.production import compare_arms

    with working("comparing the arms"):
        comparison = compare_arms(log, names, primary=primary, arms=arms, ratio=ratio, planned=planned)
    out.print(comparison)
    if drawn:
        save_plot(comparison.plot(), drawn)


@command(short_help="Test which of two interleaved retrievers users prefer.")
def interleaving(
    *,
    log: str = options.log,
    a: str | None = option("Retriever A, if the log has several pairs.", "--a NAME"),
    b: str | None = option("Retriever B.", "--b NAME"),
    seed: Count = option("The seed of the bootstrap over users.", default=0),
    out: Output,
) -> None:
    """Test which of two interleaved retrievers the users of LOG prefer, by their clicks.

    The application calls rankgauge.production.interleave() and logs its attributes with the
    impression. Clicks on results and on citations count. The test is valid for one look, at a size
    fixed in advance.

    \b
    Examples:
      rankgauge logs interleaving log
    """
    from rankgauge.production import analyze_interleaving

    with working("counting clicks"):
        result = analyze_interleaving(log, a=a, b=b, seed=seed)
    out.print(result)


@command(short_help="Estimate judgments from clicks, corrected for rank.")
def judgments(
    *,
    log: str = options.log,
    target: str | None = option("Write the judgments to this file.", "-o, --output FILE"),
    model: Literal["position", "coec"] = option(
        "position: a position-based model, for logs in which documents were shown at several ranks; "
        "coec: clicks over expected clicks, for any log, biased and without intervals.",
        default="position",
    ),
    queries: str | None = option("Judge only these queries, with their identifiers: a file with id and text.", "FILE"),
    min_shown: Positive = option("Leave a document unjudged if it was shown fewer times.", default=10),
    drop_unsure: bool = option("Leave a document unjudged if its interval contains 0.5."),
    form: str | None = option(
        f"The format of FILE, if its name does not show it: {', '.join(rankgauge.formats.TARGET_FORMATS)}.",
        "--format FORMAT",
    ),
    out: Output = output_format("Also show the click rate and the examination of each rank."),
) -> None:
    """Estimate judgments from the impressions and clicks in LOG.

    A document gets a grade from 0 to 3 by the ratio of its clicks to those of the average document
    at the same ranks. Documents that were never or rarely shown remain unjudged. FILE.about.json
    records the method, and FILE.queries.jsonl the questions.

    \b
    Examples:
      rankgauge logs judgments log -o clicks.qrels
      rankgauge logs judgments log --model coec --queries queries.tsv -o clicks.csv
    """
    from rankgauge.corpus import read_queries
    from rankgauge.production import implicit_judgments

    wanted = None
    if queries is not None:
        wanted = {name: query.text for name, query in read_queries(queries).items()}
    with working("counting clicks"):
        result = implicit_judgments(log, model=model, queries=wanted, min_shown=min_shown, drop_unsure=drop_unsure)
    out.print(result)
    if target is not None:
        for note in result.write(target, form):
            print_message(note)


@command(short_help="Sample questions from a log for judging.")
def sample(
    *,
    log: str = options.log,
    n: Positive = option("The number of questions to draw.", default=30),
    by: Literal["frequency", "uniform", "strata"] = option(
        "Draw by frequency, all with equal probability, or equally from head, torso, and tail.", default="frequency"
    ),
    into: str | None = option("Create or refresh this question set (JSON lines). Its core and sentinels stay.", "SET"),
    part: Literal["rotating", "core"] = option(
        "The part of the set to draw; a core is drawn only once.", default="rotating"
    ),
    sentinels: str | None = option("Known failures to add to the set: a file with id and question.", "FILE"),
    judge: bool = option("Also add the questions to the judging project in the store."),
    store: str | None = options.store,
    exclude: tuple[str, ...] = option(
        "A file of questions to exclude, with their near-duplicates; repeat for more.", "FILE"
    ),
    keep_personal_data: bool = option("Do not mask addresses and long numbers."),
    seed: Count = option("The seed of the draw.", default=0),
    out: Output,
) -> None:
    """Draw questions from LOG, and record the inclusion probability of each.

    LOG is a log, a file of questions with a column `count`, or a text file with one question per
    line. Near-duplicates count as one question, and personal data is masked. SET keeps its core and
    sentinels and gets a new rotating part; its previous version is kept next to it.
    If nothing changes, there is no new version.

    \b
    Examples:
      rankgauge logs sample log -n 30 --as csv
      rankgauge logs sample log -n 50 --by strata --into questions.jsonl --part core
      rankgauge logs sample log -n 30 --into questions.jsonl --judge
    """
    from rankgauge.judging import JudgingProject, questions_of
    from rankgauge.production import QuestionSet, sample_questions

    if into is None and (sentinels is not None or part != "rotating"):
        raise click.UsageError("--part and --sentinels need a question set: --into SET")
    known: set[str] = set()
    if judge:
        with JudgingProject(store) as opened:  # it may not exist: check before changing the set
            known = set(opened.questions)
    with working(f"reading {log}"):
        before = QuestionSet() if into is None or not Path(into).exists() else QuestionSet.read(into)
        fixed = [] if sentinels is None else list(QuestionSet.read(sentinels).questions)
        staying = before.part("core", "sentinel", *(["rotating"] if part == "core" else []))
        others = [question for path in exclude for question in QuestionSet.read(path).questions]
        drawn = sample_questions(
            log,
            n,
            by=by,
            exclude=[*staying, *fixed, *others],
            seed=seed,
            personal="keep" if keep_personal_data else "scrub",
        )
    if into is None:
        result: rankgauge.rendering.Result = drawn
        added = drawn.questions
    else:
        result = change = before.refresh(drawn.questions, part=part, sentinels=fixed, frequencies=drawn.known)
        added = change.added
        if change.after is not before:
            if before.questions:
                path = Path(into)
                before.write(path.with_name(f"{path.stem}.v{before.version}{path.suffix}"))
            change.after.write(into)
        print_message(drawn.summary())
    if judge:
        new = [question for question in added if question.id not in known]
        with JudgingProject(store) as opened:
            opened.add_questions(questions_of(new))
        print_message(
            f"{many(len(new), 'question')} added to {opened.where}. "
            f"Next: rankgauge judge pool --collection FOLDER --bm25{opened.flag}"
        )
    out.print(result)


_ENDINGS = (".html", ".json", ".png", ".svg")


@command(short_help="Test whether evaluation questions resemble user questions.")
def drift(
    *,
    evaluation: str | None = argument("[EVAL]"),
    log: str = options.log,
    encoder: str = option(
        "The encoder of questions: tfidf, hashing, use-multilingual, model2vec:NAME, or sentence-transformers:NAME.",
        "NAME",
        default="tfidf",
    ),
    clusters: Annotated[int, click.IntRange(min=2)] | None = option(
        "The number of clusters.  [default: 2 to 20, depending on the number of questions]", "N"
    ),
    permutations: Annotated[int, click.IntRange(min=19)] = option(
        "The number of permutations of the test.", "N", default=499
    ),
    additions: Count = option("The number of proposed questions to list.", "--add N", default=20),
    seed: Count = option("The random seed.", default=0),
    outputs: tuple[str, ...] = option(
        "Also write a report (.html), a plot (.png, .svg), or all numbers (.json); repeat for more.",
        "-o, --output FILE",
    ),
    out: Output = output_format("Also show all clusters, proposed questions, outliers, and the power of the test."),
) -> None:
    """Test whether the questions of EVAL resemble those that users ask in LOG.

    EVAL and LOG are files of questions (CSV, TSV, JSON lines, topics, or text with one question per
    line) or collections; LOG may also be a log written by `logs import`. A column `count` has the
    number of times a question was asked. In a project, EVAL is by default its questions.

    \b
    Examples:
      rankgauge logs drift queries.jsonl log
      rankgauge logs drift queries.jsonl searches.csv -o drift.html
      rankgauge logs drift queries.jsonl log -o drift.json
      rankgauge diagnose qrels.txt bm25.run --drift drift.json
    """
    from rankgauge.production import measure_drift

    for output in outputs:
        if Path(output).suffix.lower() not in _ENDINGS:
            raise click.BadParameter(f"{output!r} ends in none of {', '.join(_ENDINGS)}", param_hint="--output")
        check_writable(output)
    with working("comparing questions"):
        result = measure_drift(
            rankgauge.Project().collection if evaluation is None else evaluation,
            log,
            encoder=encoder,
            permutations=permutations,
            seed=seed,
            clusters=clusters,
            additions=additions,
        )
    for output in outputs:
        match Path(output).suffix.lower():
            case ".html":
                write_report(output, rankgauge.reports.drift_page(result))
            case ".json":
                write_report(output, result.to_json() + "\n")
            case _:
                result.plot().save(output)
        print_message(f"written: {output}")
    out.print(result)


@click.group(cls=Group, short_help="Import production logs and compute metrics.")
def logs() -> None:
    """Monitor quality in production with a log of questions, results, answers, and clicks.

    LOG is a folder written by `logs import`, a Parquet file, or a pattern such as 'log/*.parquet'. In a
    project, it is by default the `log` of rankgauge.toml.

    \b
    Examples:
      rankgauge logs import traces.jsonl log
      rankgauge logs show log
      rankgauge logs metrics log --by week
      rankgauge logs drift queries.jsonl log -o drift.html
    """


@logs.command("import", short_help="Import events from files into a log.")
def import_(
    *,
    paths: tuple[str, ...] = argument("SOURCE... [LOG]"),
    log_format: str | None = option(
        "ubi, spans, phoenix, langfuse, langsmith, mlflow, or events.  [default: recognized by the first rows]",
        "--format NAME",
    ),
    mapping: str | None = option("TOML or JSON: the column of each field of an event.", "FILE"),
    users: Literal["keep", "hash", "drop"] = option(
        "Keep user identifiers, hash them with a key of this machine, or drop them.", default="keep"
    ),
    scrub: bool = option("Mask addresses, long numbers, and secrets in texts. Names of people are not masked."),
    drop_text: bool = option("Do not store the texts of questions and answers."),
    timezone: str | None = option(
        "The time zone of times without one, such as Europe/Berlin; without this option, rows "
        "with such times are refused.",
        "ZONE",
    ),
    first_rank: Annotated[int, click.IntRange(0, 1)] | None = option(
        "Whether ranks in SOURCE start at 0 or 1.  [default: detected]"
    ),
    dry_run: bool = option("Print the report and write nothing."),
    out: Output,
) -> None:
    """Import the events in SOURCE into the folder LOG (in a project, by default its log).

    SOURCE is a UBI log, OpenInference or OpenTelemetry spans, an export of Phoenix, Langfuse, or
    LangSmith, MLflow feedback, or, with --mapping, any CSV, JSON lines, or Parquet file. If its format
    is not known, a draft mapping is written instead, with a reason for each guess. Importing a
    file again adds only new events; an interrupted import resumes. Rows that are not events are
    counted and written to LOG/refused.jsonl.

    \b
    Examples:
      rankgauge logs import traces.jsonl log
      rankgauge logs import traces.jsonl log --users hash --scrub
      rankgauge logs import --dry-run ubi_queries.jsonl.gz ubi_events.jsonl.gz log
      rankgauge logs import --mapping mapping.toml searches.csv log
    """
    from rankgauge.production import draft_mapping, import_log

    *sources, log = paths
    if not sources or Path(log).is_file():
        sources, log = [*paths], options.from_project(lambda file: file.log)()
    if log is None:
        raise rankgauge.InputError(
            "the folder of the log is not named",
            where="logs import",
            fix=f"name it: rankgauge logs import {shlex.join(sources)} log; or write log = 'log' at the beginning of "
            "the project file rankgauge.toml",
        )
    for source in sources if mapping is None and log_format is None else ():
        if draft := draft_mapping(source):
            target = f"{Path(source).stem}.mapping.toml"
            if not Path(target).exists():  # it may have been corrected
                write_report(target, draft)
            print_text("".join(f"{for_terminal(line)}\n" for line in draft.splitlines()))
            raise rankgauge.FormatError(
                f"the format of this log is not known; nothing was imported, and {target} is a draft mapping",
                path=source,
                fix=f"check the draft, then run rankgauge logs import --dry-run --mapping {target} "
                f"{'--timezone ZONE ' * ('--timezone' in draft)}{source} {log}",
            )
    with working("importing"):
        report = import_log(
            sources,
            log,
            format=log_format,
            mapping=mapping,
            personal=users,
            scrub=scrub,
            drop_text=drop_text,
            timezone=timezone,
            first_rank=first_rank,
            dry_run=dry_run,
        )
    out.print(report)


@logs.command(short_help="Count the events of a log.")
def show(*, log: str = options.log, out: Output) -> None:
    """Count the events in LOG by kind.

    \b
    Examples:
      rankgauge logs show log
      rankgauge logs show 'events/*.parquet' --as json
    """
    from rankgauge.production import EventLog

    with working("reading the log"):
        summary = EventLog(log).summary()
    out.print(summary)


for _command in (metrics, health, drift, sample, experiment, interleaving, judgments):
    logs.add_command(_command)
