"""``rankgauge answers calibrate``."""

from __future__ import annotations

from typing import Any

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import check_writable, print_result, say, tell
from rankgauge.cli.progress import working
from rankgauge.core.escaping import for_terminal

__all__ = ["calibrate"]

_ROWS = (".jsonl", ".json", ".csv", ".tsv", ".parquet")


@click.command(short_help="Compare the judge of answers with labels of people.")
@click.argument("file", metavar="FILE")
@click.option(
    "--human", metavar="FILE|STORE", required=True,
    help="Labels of people: rows with label, judge, and key; or record, relation, row, column. "
    "Or a store of verdicts.",
)  # fmt: skip
@click.option(
    "--judge-verdicts", metavar="STORE|FILE",
    help="The verdicts of the judge. Without: rules judge, word by word.",
)  # fmt: skip
@click.option("--judge", metavar="NAME", help="Of several judges, the one to compare.")
@click.option("--reference", metavar="FILE", help="Reference answers, joined by id.")
@options.measures("A measure to correct for errors of the judge; again for more.")
@options.output_format()
@click.option("-o", "--output", metavar="FILE", help="Write the calibration, for later reports.")
def calibrate(  # noqa: PLR0917 - one parameter an option
    file: str,
    human: str,
    judge_verdicts: str | None,
    judge: str | None,
    reference: str | None,
    measures: tuple[str, ...],
    format: str,
    output: str | None,
) -> None:
    """Say how good the judge of the answers in FILE is, and correct means for its errors.

    Label all items of a random sample of the questions; 100 labels are a start. A gate refuses
    measures of answers by a judge that was not compared with people.

    \b
    Examples:
      rankgauge answers calibrate answers.jsonl --human labels.csv
      rankgauge answers calibrate answers.jsonl --human labels.csv --judge-verdicts verdicts.db \\
          -o calibration.json
    """  # noqa: D301 - click reads the \b
    from rankgauge import answers as package

    if output is not None:
        check_writable(output)
    with working(f"reading {file}"):
        sets = package.read_answers(file, reference=reference)
        people = _verdicts(human, sets)
        if judge_verdicts is None:
            items = {
                item.key: item
                for each in sets
                for record in each
                for item in package.items_of(record, package.sentence_claims(record))
            }
            judged = package.RuleJudge().judge(list(items.values()))
            given = [each for each in judged if isinstance(each, package.Verdict)]
        else:
            given = _verdicts(judge_verdicts, sets)
    names = {each.judge for each in given}
    if judge is not None:
        if judge not in names:
            raise rankgauge.InputError(
                f"there are no verdicts of {judge!r:.60}", where=judge_verdicts or "rules",
                fix=f"judges: {', '.join(sorted(names))[:200]}",
            )  # fmt: skip
        given = [each for each in given if each.judge == judge]
        people = [each for each in people if each.judge != judge]
    with working("comparing"):
        found = package.calibrate(sets, given, people)
        means = package.correct_means(sets, given, people, measures or None)
    if output is not None:
        found.write(output)
    print_result(found, format)
    if format == "table":
        say("\n")
    print_result(means, format)
    if output is not None:
        tell(f"wrote {for_terminal(output)}: evaluate with --calibration {for_terminal(output)}")


def _verdicts(where: str, answers: Any) -> list[rankgauge.answers.Verdict]:
    """The verdicts of a store, or of a file."""
    from rankgauge.answers import VerdictStore, read_labels

    if where.endswith(_ROWS):
        return read_labels(where, answers)
    with VerdictStore(where) as store:
        return store.verdicts()
