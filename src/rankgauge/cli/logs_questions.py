"""``rankgauge logs sample`` and ``drift``: questions from users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

import rankgauge
from rankgauge.cli.output import Output, check_writable, counted, output_format, print_message, working, write_report
from rankgauge.cli.parameters import Count, Positive, argument, command, option

if TYPE_CHECKING:
    from rankgauge.production import QuestionSet


@command(short_help="Sample questions from a log for judging.")
def sample(
    *,
    log: str,
    n: Positive = option("The number of questions to draw.", default=30),
    by: Literal["frequency", "uniform", "strata"] = option(
        "Draw by frequency, all with equal probability, or equally from head, torso, and tail.", default="frequency"
    ),
    into: str | None = option("Create or refresh this question set (JSON lines). Its core and sentinels stay.", "SET"),
    part: Literal["rotating", "core"] = option(
        "The part of the set to draw; a core is drawn only once.", default="rotating"
    ),
    sentinels: str | None = option("Known failures to add to the set: a file with id and question.", "FILE"),
    project: str | None = option("Also add the questions to this judging project.", "PROJECT"),
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
      rankgauge logs sample log -n 30 --into questions.jsonl --project judging.db
    """
    from rankgauge.judging import JudgingProject, questions_of
    from rankgauge.production import QuestionSet, sample_questions

    if into is None and (sentinels is not None or part != "rotating"):
        raise click.UsageError("--part and --sentinels need a question set: --into SET")
    known: set[str] = set()
    if project is not None:
        with JudgingProject(project) as opened:  # it may not exist: check before changing the set
            known = set(opened.questions)
    with working(f"reading {log}"):
        before = _set(into)
        fixed = [] if sentinels is None else list(QuestionSet.read(sentinels).questions)
        staying = before.part("core", "sentinel", *(["rotating"] if part == "core" else []))
        others = [each for path in exclude for each in QuestionSet.read(path).questions]
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
    if project is not None:
        new = [each for each in added if each.id not in known]
        with JudgingProject(project) as opened:
            opened.add_questions(questions_of(new))
        print_message(f"{counted(len(new), 'question')} added to {project}. Next: rankgauge judge pool {project} ...")
    out.print(result)


def _set(path: str | None) -> QuestionSet:
    from rankgauge.production import QuestionSet

    return QuestionSet() if path is None or not Path(path).exists() else QuestionSet.read(path)


_ENDINGS = (".html", ".json", ".png", ".svg")


@command(short_help="Test whether evaluation questions resemble user questions.")
def drift(
    *,
    evaluation: str = argument("EVAL"),
    log: str,
    encoder: str = option(
        "The encoder of questions: tfidf, hashing, model2vec:NAME, or sentence-transformers:NAME.",
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
    output: str | None = option(
        "Also write a report (.html), a plot (.png, .svg), or all numbers (.json).", "-o, --output FILE"
    ),
    out: Output = output_format("Also show all clusters, proposed questions, outliers, and the power of the test."),
) -> None:
    """Test whether the questions of EVAL resemble those that users ask in LOG.

    EVAL and LOG are files of questions (CSV, TSV, JSON lines, topics, or text with one question per
    line) or collections; LOG may also be a log written by `logs import`. A column `count` has the
    number of times a question was asked.

    \b
    Examples:
      rankgauge logs drift queries.jsonl log
      rankgauge logs drift queries.jsonl searches.csv -o drift.html
      rankgauge logs drift queries.jsonl log -o drift.json
      rankgauge diagnose qrels.txt bm25.run --drift drift.json
    """
    from rankgauge.production import measure_drift

    if output is not None:
        if Path(output).suffix.lower() not in _ENDINGS:
            raise click.BadParameter(f"{output!r} ends in none of {', '.join(_ENDINGS)}", param_hint="--output")
        check_writable(output)
    with working("comparing questions"):
        found = measure_drift(
            evaluation,
            log,
            encoder=encoder,
            permutations=permutations,
            seed=seed,
            clusters=clusters,
            additions=additions,
        )
    if output is not None:
        match Path(output).suffix.lower():
            case ".html":
                write_report(output, rankgauge.reports.drift_page(found))
            case ".json":
                write_report(output, found.to_json() + "\n")
            case _:
                found.plot().save(output)
        print_message(f"written: {output}")
    out.print(found)
