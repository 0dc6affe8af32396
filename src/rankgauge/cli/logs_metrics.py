"""``rankgauge logs metrics`` and ``health``."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import read_drift
from rankgauge.cli.output import print_message, print_result, save_plot, working


@click.command(short_help="Compute rates with intervals: thumbs, clicks, abstentions, latency.")
@options.log
@click.option(
    "-m", "--metric", "names", multiple=True, metavar="NAME",
    help="A metric, such as idk_rate; repeat for more.  [default: all]",
)  # fmt: skip
@click.option(
    "--by", metavar="day|week|arm|NAME",
    help="Group by day, week (named by its Monday), arm of an experiment, or attribute.",
)  # fmt: skip
@options.period
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
@options.plot("Plot the first metric by day or week (.svg or .png; needs rankgauge[plots]).")
@options.full("Show units, definitions, and why a metric is not defined.")
@options.output_format()
def metrics(
    log: str,
    names: tuple[str, ...],
    by: str | None,
    since: str | None,
    until: str | None,
    where: tuple[str, ...],
    thresholds: tuple[str, ...],
    strict: bool,
    minutes: float,
    similarity: float,
    drawn: str | None,
    full: bool,
    format: str,
) -> None:
    """Compute the metrics of LOG, with 95% intervals clustered by user.

    A metric whose events are not in LOG is undefined, not 0. --by day or week tests for changes
    over time.

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
        save_plot(found.plot(names[0] if names else None), drawn)
    click.get_current_context().exit(found.exit_code(strict=strict))


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise rankgauge.InputError(
            f"got {text!r:.60}", where="--where", fix="write NAME=VALUE, such as language=de"
        )
    return name, value


# Whether a drift verdict means that users ask other questions; verdicts not listed do.
_DRIFT = {"mixed": False, "cannot tell": None}


@click.command(short_help="Compare saved evaluations with user feedback, week by week.")
@options.log
@options.measure("The measure of the saved evaluations.")
@click.option("--run", metavar="NAME", help="Use only evaluations of this run.")
@click.option(
    "--drift", metavar="FILE",
    help="The result of rankgauge logs drift ... -o drift.json.",
)  # fmt: skip
@click.option(
    "--margin", type=float, default=0.05, show_default=True, metavar="N",
    help="The smallest change of an online metric that matters.",
)  # fmt: skip
@click.option(
    "--offline-margin", type=float, default=0.02, show_default=True, metavar="N",
    help="The smallest loss of the measure that matters.",
)  # fmt: skip
@options.period
@options.store
@options.full("Show all weeks.")
@options.output_format()
def health(
    log: str,
    measure: str,
    run: str | None,
    drift: str | None,
    margin: float,
    offline_margin: float,
    since: str | None,
    until: str | None,
    store: str | None,
    full: bool,
    format: str,
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
    CANNOT TELL   too few queries or ratings

    Only evaluations since the last change of judgments, policies, or queries are compared. A
    verdict is valid for one look: repeating the command every day raises the rate of false alarms.
    Run it on a few dates fixed in advance, or compare two versions with `logs experiment`.

    \b
    Examples:
      rankgauge logs health log --history history.db -m nDCG@10
      rankgauge logs health log --run bm25 --drift drift.json --since 2026-05-01
    """
    from rankgauge.production import production_health

    with working("reading the history"), rankgauge.History.open(store) as kept:
        trend = kept.trend(measure, run=run)
        names = dict.fromkeys(point.entry.run for point in trend.points)
        if len(names) > 1:
            raise rankgauge.InputError(
                f"the history has evaluations of {', '.join(names)}", where="--run",
                fix="name the run that users get: --run NAME",
            )  # fmt: skip
        start = max(trend.breaks, default=0)
        points = [(p.entry.time, kept.load(p.entry)) for p in trend.points[start:]]
    drifted = None if drift is None else _DRIFT.get(read_drift(drift)["verdict"], True)
    with working("reading the log"):
        found = production_health(
            log, points, measure, drift=drifted, margin=margin, offline_margin=offline_margin,
            since=since, until=until,
        )  # fmt: skip
    print_result(found, format, rankgauge.reports.Options(full=full))
    if start:
        count = f"{start} evaluation{'s' * (start > 1)}"
        print_message(f"excluded: {count} before {'; '.join(trend.points[start].breaks)}")
