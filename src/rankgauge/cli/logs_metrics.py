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
    help="A metric, such as idk_rate; repeat for more.  [default: all]",
)  # fmt: skip
@click.option(
    "--by", metavar="day|week|arm|NAME",
    help="Group by day, week (named by its Monday), arm of an experiment, or attribute.",
)  # fmt: skip
@click.option(
    "--since", metavar="DATE", help="Only questions asked on or after this date or time (UTC)."
)
@click.option(
    "--until", metavar="DATE", help="Only questions asked before this date or time (UTC)."
)
@click.option(
    "--where", multiple=True, metavar="NAME=VALUE",
    help="Only questions with this arm or attribute value; repeat for more.",
)  # fmt: skip
@click.option(
    "--fail-if", "thresholds", multiple=True, metavar="TEXT",
    help="FAIL if the whole 95% interval is beyond this threshold, such as 'idk_rate > 0.2'.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Exit with 3 if a threshold is INCONCLUSIVE.")
@click.option(
    "--minutes", type=click.FloatRange(0), default=10, show_default=True, metavar="N",
    help="Time within which a similar question counts as a reformulation.",
)  # fmt: skip
@click.option(
    "--similarity", type=click.FloatRange(0, 1), default=0.5, show_default=True, metavar="N",
    help="Word cosine from which two questions count as similar.",
)  # fmt: skip
@click.option(
    "--plot", "drawn", metavar="FILE",
    help="Plot the first metric by day or week (.svg or .png; needs rankgauge[plots]).",
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

    A metric whose events are not in LOG is not defined, never 0. --by day or week tests for
    changes over time.

    Intervals, thresholds, and tests are valid for one look. Repeating them every day raises the
    rate of false alarms: look at a few dates fixed in advance, or compare two versions with
    `logs experiment`, which stays valid however often you look.

    Exit codes: 0; 1 if a threshold FAILs; 2 for an error; 3 if INCONCLUSIVE with --strict; 4 if a
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
