"""``rankgauge logs metrics``."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import print_message, print_result
from rankgauge.cli.progress import working

__all__ = ["metrics"]


@click.command(short_help="Compute rates with intervals: thumbs, clicks, abstentions, latency.")
@click.argument("log", metavar="LOG")
@click.option(
    "-m", "--metric", "names", multiple=True, metavar="NAME",
    help="A metric, such as idk_rate; again for more. Without: all.",
)  # fmt: skip
@click.option(
    "--by", metavar="day|week|arm|NAME",
    help="Also for each day, week (its Monday), arm of an experiment, or value of an attribute.",
)  # fmt: skip
@click.option("--since", metavar="DATE", help="Only questions from this day or time on, in UTC.")
@click.option("--until", metavar="DATE", help="Only questions before this day or time.")
@click.option(
    "--where", multiple=True, metavar="NAME=VALUE",
    help="Only questions with this arm or value of an attribute; again for more.",
)  # fmt: skip
@click.option(
    "--fail-if", "thresholds", multiple=True, metavar="TEXT",
    help="A threshold, such as 'idk_rate > 0.2': FAIL if the whole 95% interval is beyond it.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="End with 3 where a threshold is INCONCLUSIVE.")
@click.option(
    "--minutes", type=click.FloatRange(0), default=10, show_default=True, metavar="N",
    help="Time within which a similar question is a reformulation.",
)  # fmt: skip
@click.option(
    "--similarity", type=click.FloatRange(0, 1), default=0.5, show_default=True, metavar="N",
    help="Cosine of the words of two questions from which they are similar.",
)  # fmt: skip
@click.option(
    "--plot", "drawn", metavar="FILE",
    help="Draw the first metric by day or week: .svg or .png (needs rankgauge[plots]).",
)  # fmt: skip
@options.full("Show units, definitions, and why a metric is not defined.")
@options.output_format()
def metrics(  # noqa: PLR0913, PLR0917 - one parameter an option
    log: str,
    names: tuple[str, ...],
    by: str | None,
    since: str | None,
    until: str | None,
    where: tuple[str, ...],
    thresholds: tuple[str, ...],
    strict: bool,  # noqa: FBT001 - click passes by name
    minutes: float,
    similarity: float,
    drawn: str | None,
    full: bool,  # noqa: FBT001 - click passes by name
    format: str,
) -> None:
    """Compute metrics of LOG, with 95% intervals clustered by user.

    A metric whose events are not in LOG is not defined, never 0. Changes over time are tested with
    --by day or week.

    Exit codes: 0; 1 if a threshold FAILs; 2 an error; 3 INCONCLUSIVE with --strict; 4 if a
    metric with a threshold is not defined.

    \b
    Examples:
      rankgauge logs metrics log
      rankgauge logs metrics log -m idk_rate --by day --since 2026-05-01
      rankgauge logs metrics log --where language=de --fail-if 'thumbs_ratio < 0.7'
    """  # noqa: D301 - click reads the \b
    from rankgauge.production import online_metrics

    pairs = dict(_pair(text) for text in where)
    if drawn and by not in {"day", "week"}:
        raise rankgauge.InputError(
            "a plot needs metrics by day or week", where="--plot", fix="add --by day"
        )
    with working("reading the log"):
        found = online_metrics(
            log, names or None, by=by, since=since, until=until, where=pairs,
            thresholds=thresholds, minutes=minutes, similarity=similarity,
        )  # fmt: skip
    print_result(found, format, rankgauge.reports.Options(full=full))
    if format in {"csv", "json"}:
        for check in found.checks:
            print_message(f"{check.verdict}: {check.sentence}")
    if drawn:
        found.plot(names[0] if names else None).save(drawn)
        print_message(f"wrote {drawn}")
    click.get_current_context().exit(found.exit_code(strict=strict))


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise rankgauge.InputError(
            f"got {text!r:.60}", where="--where", fix="write NAME=VALUE, such as language=de"
        )
    return name, value
