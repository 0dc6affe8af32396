"""``rankgauge judge``: commands that read or print judgments."""

from __future__ import annotations

import statistics
from contextlib import suppress
from typing import Literal

import click

import rankgauge
from rankgauge import judging
from rankgauge.cli import options
from rankgauge.cli.options import named_runs
from rankgauge.cli.output import Output, output_format, print_message, print_result, working
from rankgauge.cli.parameters import command, option
from rankgauge.core.text import many


@command(short_help="Estimate the relevance of each document.")
def relevance(
    *,
    question: str | None = option("Show only the documents of this question.", "ID"),
    store: str | None = options.store,
    out: Output = output_format("Also show unjudged documents, and the judgments that are not counted."),
) -> None:
    """Print how often each document was shown and chosen, and its estimated relevance.

    The table has the share chosen / shown with its Wilson interval, and the probability that the
    document is preferred to none, from a model of all choices for the question.
    """
    with judging.JudgingProject(store) as opened:
        judgments, pools = opened.judgments(), opened.pools
        warning = judging.judging_status(opened).warning
    if question is not None:
        judgments = [judgment for judgment in judgments if judgment.presentation.question == question]
        pools = {name: pool for name, pool in pools.items() if name == question}
    result = judging.measure_relevance(judgments, pools, warning=warning)
    if question is not None:
        result.question(question)  # raises an error if the question is unknown
    if out.format == "table" and not result.counted:
        _print_nothing_judged(opened.flag)
        return
    out.print(result)


@command(short_help="Measure agreement between judges, and of judges with themselves.")
def agreement(
    *,
    store: str | None = options.store,
    out: Output = output_format("Also show the coefficients of each judge, criterion, and pair of judges."),
) -> None:
    """Print how well the judges agree.

    Krippendorff's alpha is 1 for perfect agreement and 0 for judges who guess. Models are compared
    with people and excluded from all other numbers. --as json also lists the tasks that people
    judged differently.
    """
    with judging.JudgingProject(store) as opened:
        judgments, judges = opened.judgments(), opened.judges
        warning = judging.judging_status(opened).warning
        with opened.reading() as stored:
            gold = stored.gold()
    result = judging.measure_agreement(judgments, judges, gold=gold)
    if out.format == "table" and not result.rows:
        _print_nothing_judged(opened.flag)
        return
    out.print(result)
    if warning:
        print_message(warning)


@command(short_help="Compute the numbers of questions and judgments needed.")
def size(
    *,
    difference: float = option("The difference of means to detect, such as 0.05.", "X"),
    sd: float | None = option("The standard deviation of the differences of two systems over questions.", "X"),
    qrels: str | None = option("Without --sd: the judgments with which to evaluate the runs.", "FILE"),
    runs: tuple[str, ...] = option("Without --sd: two or more runs from which to estimate it.", "--run FILE"),
    measure: str = options.measure("The measure of these differences."),
    power: float = option("The power: the probability of detecting the difference.", "X", default=0.8),
    agreement: float = option("The half-width of the interval of alpha: ± X.", "X", default=0.1),
    store: str | None = options.store,
    out: Output,
) -> None:
    """Compute how many questions and judgments the project needs to detect a difference.

    \b
    Examples:
      rankgauge judge size --difference 0.05 --sd 0.2
      rankgauge judge size --difference 0.05 --qrels old.qrels --run a.run --run b.run
    """
    if (qrels is None) == (sd is None) or bool(runs) != bool(qrels):
        raise click.UsageError("pass --sd X, or --qrels FILE and at least two --run FILE")
    settings, sizes = judging.Settings(), [0]
    with suppress(rankgauge.InputError), judging.JudgingProject(store) as opened:  # without it, the defaults count
        settings, sizes = opened.settings, [*map(len, opened.pools.values())]
    evaluations = [rankgauge.evaluate(qrels, run, [measure]) for run in named_runs(runs).values()] if qrels else []
    plan = judging.plan_judging(
        difference,
        sd=sd,
        evaluations=evaluations,
        settings=settings,
        power=power,
        agreement=agreement,
        **({"documents": round(statistics.median(sizes))} if any(sizes) else {}),
    )
    out.print(plan)


def _print_nothing_judged(flag: str) -> None:
    print_message(f"There are no judgments of people yet. Next: rankgauge serve{flag}")


@command(short_help="Add answers of systems for people to compare.")
def answers(*, file: str, store: str | None = options.store) -> None:
    """Add the answers of FILE (CSV, TSV, or JSON lines) to the project.

    Columns: id, question (its identifier), text, retrieval, prompt, model, and sources (identifiers
    of the documents used for the answer; in CSV separated by ;). On the Answers page, people
    compare the answers of two systems to a question, without seeing systems and sources.
    """
    new_answers = judging.read_answers(file)
    with judging.JudgingProject(store) as opened:
        opened.add_answers(new_answers)
        asked = len({answer.question for answer in new_answers} & set(opened.questions))
    print_message(f"{many(len(new_answers), 'answer')} to {many(asked, 'question')} of the project")


@command(short_help="Compute win rates of systems from votes on their answers.")
def votes(
    *,
    file: str | None = option(
        "First import votes: CSV, TSV, or JSON lines with question, left, right (identifiers "
        "of the answers as displayed), winner (left, right, both good, both bad, tie, cannot "
        "tell), and optionally judge, comment, and time.",
        "--import FILE",
    ),
    kind: Literal["person", "application", "model"] = option("Who cast the imported votes.", default="person"),
    store: str | None = options.store,
    out: Output = output_format("Also show votes without a preference, and all pairs of systems."),
) -> None:
    """Print the win rate of each pair of systems, with its Wilson interval.

    Votes of people, applications, and models are counted separately, and never as expert judgments.
    --as json also lists the credit of source documents.
    """
    with judging.JudgingProject(store) as opened:
        if file is not None:
            print_message(many(judging.import_votes(opened, file, kind=kind), "new vote"))
        report = judging.vote_report(opened)
    if out.format == "table" and not report.sides and not report.pairs:
        print_message(f"There are no votes yet. Next: rankgauge judge answers FILE{opened.flag}")
        return
    out.print(report)


@command(short_help="Write judgments as qrels or preferences.")
def export(
    *,
    file: str,
    to: Literal["qrels", "preferences", "sampled", "label-studio"] = option(
        "qrels: a grade for each document; preferences: a group for each choice; sampled: the "
        "pool and the random documents from outside it as strata; label-studio: the pool as tasks "
        "of Label Studio, with their labeling configuration in FILE.xml.",
        default="qrels",
    ),
    relevance: Literal["share", "fit", "grade"] | None = option(
        "The source of grades. share: 0 if never chosen, else 1, 2, ... by ascending "
        "chosen/shown; fit: the probability of being preferred to none; grade: the median "
        "grade or, of rankings, place (the first is highest).  [default: share, or grade in a "
        "project of grades or rankings]"
    ),
    drop_unsure: bool = option("With fit: leave a document unjudged if its interval contains 0.5."),
    collection: str | None = option(
        "With sampled: the collection that was searched.  [default: that of the project]", "FOLDER"
    ),
    form: str | None = option(
        f"The format, if the name of FILE does not show it: {', '.join(rankgauge.formats.TARGET_FORMATS)}.",
        "--format FORMAT",
    ),
    store: str | None = options.store,
) -> None:
    """Write the judgments of the project, or its pool as tasks of Label Studio, to FILE.

    Documents that were never shown (in rankings: never ranked) remain unjudged. FILE.about.json
    records guideline, criteria, rule, and origin of the questions; evaluations print them.

    \b
    Examples:
      rankgauge judge export qrels.txt
      rankgauge judge export qrels.csv --relevance fit --drop-unsure
      rankgauge judge export book.csv --format quepid
      rankgauge judge export prefs.txt --to preferences
      rankgauge judge export tasks.json --to label-studio
    """
    if to == "label-studio":
        with judging.JudgingProject(store) as opened:
            number = judging.write_label_studio(opened, file)
        print_message(f"{many(number, 'task')} in {file}; use {file}.xml as the labeling configuration")
        return
    with judging.JudgingProject(store) as opened, working("exporting"):
        documents = options.read_documents(collection).documents if to == "sampled" else None
        exported = judging.export_judgments(
            opened, to, relevance=relevance, drop_unsure=drop_unsure, documents=documents
        )
        notes = exported.write(file, form)
    if file == "-":
        print_message(exported.summary())
        for text in exported.about["warnings"]:
            print_message(f"WARNING: {text}")
    else:
        print_result(exported)
    for note in notes:
        print_message(f"lost: {note}")


@command(name="import", short_help="Import judgments from other tools.")
def import_(
    *,
    file: str,
    name: str = option("The judge, if FILE has no column of judges.", "--judge NAME", default="imported"),
    kind: Literal["person", "model", "application"] = option(
        "The kind of judge; only judgments of people count.", default="person"
    ),
    preferences: bool = option("FILE contains preferences, not grades."),
    columns: str | None = option(
        "The columns of the table: query=NAME,document=NAME,grade=NAME or "
        "query=NAME,left=NAME,right=NAME,winner=NAME; optionally judge=NAME, comment=NAME.",
        "NAMES",
    ),
    several: bool = option("Repeated pairs are judgments of different people."),
    add_questions: bool = option("Add questions that the project does not have."),
    skip_bad: bool = option("Skip rows that cannot be imported, and report them."),
    form: str | None = option("The format of FILE, if its name does not show it.", "--format FORMAT"),
    store: str | None = options.store,
) -> None:
    """Add the judgments in FILE to the project; on an error, add none of them.

    Supports the judgment formats of `rankgauge evaluate`, and exports of Label Studio and Argilla.
    Importing a file again adds new judgments and updates changed ones.

    \b
    Examples:
      rankgauge judge import qrels.txt --judge "Judge 1"
      rankgauge judge import book.csv --judge "Quepid, spring"
      rankgauge judge import label-studio.json
      rankgauge judge import ratings.csv --columns query=q,document=url,grade=stars
      rankgauge judge import prefs.txt --preferences
    """
    pairs = [part.partition("=") for part in (columns or "").split(",")]
    with judging.JudgingProject(store) as opened, working(f"importing {file}"):
        done = judging.import_judgments(
            opened,
            file if form is None else rankgauge.formats.InFormat(file, form),
            name,
            kind=kind,
            preferences=preferences,
            columns=None if columns is None else {key.strip(): name.strip() for key, _, name in pairs},
            several=several,
            add_questions=add_questions,
            skip_bad=skip_bad,
        )
    print_result(done)
