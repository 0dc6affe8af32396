"""``rankgauge logs health``."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import read_drift
from rankgauge.cli.output import print_message, print_result
from rankgauge.cli.progress import working

# Whether a verdict on drift means that users ask other questions; verdicts not listed do.
_DRIFT = {"mixed": False, "cannot tell": None}


@click.command(short_help="Compare saved evaluations with user feedback, week by week.")
@click.argument("log", metavar="LOG")
@options.measure("The measure of the saved evaluations.")
@click.option("--run", metavar="NAME", help="Only evaluations of this run.")
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
@click.option(
    "--since", metavar="DATE", help="Only questions asked on or after this date or time (UTC)."
)
@click.option(
    "--until", metavar="DATE", help="Only questions asked before this date or time (UTC)."
)
@options.store
@options.full("Show all weeks.")
@options.output_format()
def health(  # noqa: PLR0913, PLR0917 - one parameter an option
    log: str,
    measure: str,
    run: str | None,
    drift: str | None,
    margin: float,
    offline_margin: float,
    since: str | None,
    until: str | None,
    store: str | None,
    full: bool,  # noqa: FBT001 - click passes by name
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
    Run it at a few dates fixed in advance, or compare two versions with `logs experiment`.

    \b
    Examples:
      rankgauge logs health log --history history.db -m nDCG@10
      rankgauge logs health log --run bm25 --drift drift.json --since 2026-05-01
    """  # noqa: D301 - click reads the \b
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
        print_message(
            f"left out: {start} evaluations before {'; '.join(trend.points[start].breaks)}"
        )
