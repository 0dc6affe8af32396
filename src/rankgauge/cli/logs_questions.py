"""``rankgauge logs sample`` and ``drift``: questions from users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import (
    check_writable,
    counted,
    print_message,
    print_result,
    working,
    write_report,
)

if TYPE_CHECKING:
    from rankgauge.production import QuestionSet


@click.command(short_help="Sample questions from a log for judging.")
@options.log
@click.option(
    "-n",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="The number of questions to draw.",
)
@click.option(
    "--by", type=click.Choice(["frequency", "uniform", "strata"]), default="frequency",
    show_default=True,
    help="Draw by frequency, all with equal probability, or equally from head, torso, and tail.",
)  # fmt: skip
@click.option(
    "--into", metavar="SET",
    help="Create or refresh this question set (JSON lines). Its core and sentinels stay.",
)  # fmt: skip
@click.option(
    "--part", type=click.Choice(["rotating", "core"]), default="rotating", show_default=True,
    help="The part of the set to draw; a core is drawn only once.",
)  # fmt: skip
@click.option(
    "--sentinels",
    metavar="FILE",
    help="Known failures to add to the set: a file with id and question.",
)
@click.option(
    "--project", metavar="PROJECT", help="Also add the questions to this judging project."
)
@click.option(
    "--exclude", multiple=True, metavar="FILE",
    help="A file of questions to exclude, with their near-duplicates; repeat for more.",
)  # fmt: skip
@click.option("--keep-personal-data", is_flag=True, help="Do not mask addresses and long numbers.")
@options.seed("The seed of the draw.")
@options.output_format()
def sample(
    log: str,
    n: int,
    by: str,
    into: str | None,
    part: str,
    sentinels: str | None,
    project: str | None,
    exclude: tuple[str, ...],
    keep_personal_data: bool,
    seed: int,
    format: str,
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
            log, n, by=by, exclude=[*staying, *fixed, *others], seed=seed,
            personal="keep" if keep_personal_data else "scrub",
        )  # fmt: skip
    if into is None:
        result: rankgauge.rendering.Result = drawn
        added = drawn.questions
    else:
        result = change = before.refresh(
            drawn.questions, part=part, sentinels=fixed, frequencies=drawn.known
        )
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
        print_message(
            f"{counted(len(new), 'question')} added to {project}. "
            f"Next: rankgauge judge pool {project} ..."
        )
    print_result(result, format)


def _set(path: str | None) -> QuestionSet:
    from rankgauge.production import QuestionSet

    return QuestionSet() if path is None or not Path(path).exists() else QuestionSet.read(path)


_ENDINGS = (".html", ".json", ".png", ".svg")


@click.command(short_help="Test whether evaluation questions resemble user questions.")
@click.argument("evaluation", metavar="EVAL")
@options.log
@click.option(
    "--encoder", default="tfidf", show_default=True, metavar="NAME",
    help="The encoder of questions: tfidf, hashing, model2vec:NAME, or "
    "sentence-transformers:NAME.",
)  # fmt: skip
@click.option(
    "--clusters", type=click.IntRange(min=2), metavar="N",
    help="The number of clusters.  [default: 2 to 20, depending on the number of questions]",
)  # fmt: skip
@click.option(
    "--permutations", type=click.IntRange(min=19), default=499, show_default=True, metavar="N",
    help="The number of permutations of the test.",
)  # fmt: skip
@click.option(
    "--add", "additions", type=click.IntRange(min=0), default=20, show_default=True, metavar="N",
    help="The number of proposed questions to list.",
)  # fmt: skip
@options.seed("The random seed.")
@click.option(
    "-o", "--output", metavar="FILE",
    help="Also write a report (.html), a plot (.png, .svg), or all numbers (.json).",
)  # fmt: skip
@options.full("Also show all clusters, proposed questions, outliers, and the power of the test.")
@options.output_format()
def drift(
    evaluation: str,
    log: str,
    encoder: str,
    clusters: int | None,
    permutations: int,
    additions: int,
    seed: int,
    output: str | None,
    full: bool,
    format: str,
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
            raise click.BadParameter(
                f"{output!r} ends in none of {', '.join(_ENDINGS)}", param_hint="--output"
            )
        check_writable(output)
    with working("comparing questions"):
        found = measure_drift(
            evaluation, log, encoder=encoder, permutations=permutations, seed=seed,
            clusters=clusters, additions=additions,
        )  # fmt: skip
    if output is not None:
        match Path(output).suffix.lower():
            case ".html":
                write_report(output, rankgauge.reports.drift_page(found))
            case ".json":
                write_report(output, found.to_json() + "\n")
            case _:
                found.plot().save(output)
        print_message(f"written: {output}")
    print_result(found, format, rankgauge.reports.Options(full=full))
