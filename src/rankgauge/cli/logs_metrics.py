"""``rankgauge logs metrics`` and ``health``."""

from __future__ import annotations

from typing import Annotated

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import read_drift
from rankgauge.cli.output import Output, output_format, print_message, save_plot, working
from rankgauge.cli.parameters import command, option


@command(short_help="Compute rates with intervals: thumbs, clicks, abstentions, latency.")
def metrics(
    *,
    log: str,
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

    if drawn and by not in {"day", "week"}:
        raise rankgauge.InputError("a plot needs metrics by day or week", where="--plot", fix="add --by day")
    with working("reading the log"):
        found = online_metrics(
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
    out.print(found)
    if out.is_data:
        for check in found.checks:
            print_message(f"{check.verdict}: {check.sentence}")
    if drawn:
        save_plot(found.plot(names[0] if names else None), drawn)
    click.get_current_context().exit(found.exit_code(strict=strict))


# Whether a drift verdict means that users ask other questions; verdicts not listed do.
_DRIFT = {"mixed": False, "cannot tell": None}


@command(short_help="Compare saved evaluations with user feedback, week by week.")
def health(
    *,
    log: str,
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
                f"the history has evaluations of {', '.join(names)}",
                where="--run",
                fix="name the run that users get: --run NAME",
            )
        start = max(trend.breaks, default=0)
        points = [(p.entry.time, kept.load(p.entry)) for p in trend.points[start:]]
    drifted = None if drift is None else _DRIFT.get(read_drift(drift)["verdict"], True)
    with working("reading the log"):
        found = production_health(
            log, points, measure, drift=drifted, margin=margin, offline_margin=offline_margin, since=since, until=until
        )
    out.print(found)
    if start:
        count = f"{start} evaluation{'s' * (start > 1)}"
        print_message(f"excluded: {count} before {'; '.join(trend.points[start].breaks)}")
