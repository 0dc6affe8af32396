"""``rankgauge logs sample``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import print_message, print_result, working

if TYPE_CHECKING:
    from rankgauge.production import QuestionSet


@click.command(short_help="Sample questions from a log for judging.")
@click.argument("log", metavar="LOG")
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
    help="A file of questions not to draw, nor their near-duplicates; repeat for more.",
)  # fmt: skip
@click.option("--keep-personal-data", is_flag=True, help="Do not mask addresses and long numbers.")
@options.seed("The seed of the draw.")
@options.output_format()
def sample(  # noqa: PLR0913, PLR0917 - one parameter an option
    log: str,
    n: int,
    by: str,
    into: str | None,
    part: str,
    sentinels: str | None,
    project: str | None,
    exclude: tuple[str, ...],
    keep_personal_data: bool,  # noqa: FBT001 - click passes by name
    seed: int,
    format: str,
) -> None:
    """Draw questions from LOG, and record the probability of each.

    LOG is a log, a file of questions with a column `count`, or a text file with one question per
    line. Near-duplicates count as one question, and personal data is masked. SET keeps its core and
    its sentinels and gets a new rotating part; its previous version is kept next to it.
    If nothing changes, there is no new version.

    \b
    Examples:
      rankgauge logs sample log -n 30 --as csv
      rankgauge logs sample log -n 50 --by strata --into questions.jsonl --part core
      rankgauge logs sample log -n 30 --into questions.jsonl --project judging.db
    """  # noqa: D301 - click reads the \b
    from rankgauge.judging import JudgingProject, questions_of
    from rankgauge.production import QuestionSet, sample_questions

    if into is None and (sentinels is not None or part != "rotating"):
        raise click.UsageError("--part and --sentinels are for a question set: add --into SET")
    known: set[str] = set()
    if project is not None:
        with JudgingProject(project) as opened:  # before the set is changed: it may not exist
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
            f"{len(new)} questions added to {project}. Next: rankgauge judge pool {project} ..."
        )
    print_result(result, format)


def _set(path: str | None) -> QuestionSet:
    from rankgauge.production import QuestionSet

    return QuestionSet() if path is None or not Path(path).exists() else QuestionSet.read(path)
