"""Alerts: thresholds of the latest whole week, and recent changes for the worse."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest

pytest.importorskip("duckdb", reason="DuckDB is not installed")

from production_logs import write_log

from rankgauge import InputError
from rankgauge.production import METRICS, MetricChange, Threshold, WeekChange, find_alerts, online_metrics

WEEK = "2026-06-01"  # the log ends on the Saturday after it


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_log(tmp_path_factory.mktemp("log") / "log.parquet")


@pytest.fixture(scope="module")
def metrics(path):
    return online_metrics(path, by="week")


@pytest.fixture(scope="module")
def still(metrics):
    """The metrics without changes."""
    return replace(metrics, changes=())


@pytest.mark.parametrize("side", [">", "<"])
def test_a_threshold_is_an_alert_only_if_the_whole_interval_of_the_week_is_beyond_it(still, side):
    value = still.value("idk_rate", WEEK)
    inner, outer = (value.low, value.high) if side == ">" else (value.high, value.low)
    step = 1e-6 if side == ">" else -1e-6
    found = {
        limit: find_alerts(still, [Threshold("idk_rate", side == ">", limit)])
        for limit in (inner - step, inner + step, outer - step, outer + step)
    }
    counts = [(len(each.alerts), len(each.undecided), each.exit_code()) for each in found.values()]
    assert counts == [(1, 0, 1), (0, 1, 0), (0, 1, 0), (0, 0, 0)]
    alert = found[inner - step].alerts[0]
    assert (alert.value, alert.low, alert.high) == (value.value, value.low, value.high)
    assert (alert.since, alert.until) == (WEEK, "2026-06-07")
    assert alert.sentence == (
        f"idk_rate is {'above' if side == '>' else 'below'} {inner - step:g}: {value.value_text()} (95% interval "
        f"{value.interval_text()}), 2026-06-01 to 2026-06-07; assumes that users are independent"
    )


def test_the_days_of_an_unfinished_week_do_not_change_thresholds(path):
    limits = [Threshold.of("idk_rate > 0.2"), Threshold.of("thumbs_ratio < 0.9")]
    found = [
        find_alerts(replace(online_metrics(path, by="week", until=until), changes=()), limits)
        for until in ("2026-06-08", "2026-06-10", None)
    ]
    assert {each.week for each in found} == {WEEK}
    assert found[0] == found[1] == found[2]


def test_without_a_whole_week_the_first_days_count(path):
    found = find_alerts(online_metrics(path, by="week", until="2026-05-07"), [Threshold.of("feedback_rate > 0.01")])
    assert [(alert.since, alert.until) for alert in found.alerts] == [("2026-05-04", "2026-05-06")]


def test_a_metric_without_events_or_a_log_without_questions_cannot_be_checked(still, path):
    limits = [Threshold.of("search_ctr < 0.2")]
    for metrics in (still, online_metrics(path, by="week", until="2000-01-01")):
        found = find_alerts(metrics, limits)
        assert (found.alerts, found.exit_code()) == ((), 4)
        assert found.notes()[0].startswith("NOT DEFINED: search_ctr < 0.2: no ")


def change(name, *, shift="", week="", before=0.2, after=0.3):
    return MetricChange(
        METRICS[name],
        None,
        0.01,
        ((shift, before, after),) if shift else (),
        WeekChange(
            week, after, after - 0.05, after + 0.05, before, 6, 0.02, latest=True, explanation="with user=Ann it is 0.9"
        )
        if week
        else None,
    )


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (change("reformulation_rate", shift="2026-05-11"), ["shift"]),
        (change("reformulation_rate", shift="2026-05-10"), []),  # more than four weeks ago
        (change("reformulation_rate", shift="2026-06-02", before=0.4), []),  # for the better
        (change("search_ctr", shift="2026-06-02"), []),
        (change("search_ctr", shift="2026-06-02", before=0.4), ["shift"]),
        (change("idk_rate", shift="2026-06-02"), ["shift"]),  # has no direction
        (change("idk_rate", shift="2026-06-02", before=0.4), ["shift"]),
        (change("idk_rate", week="2026-06-01"), ["week"]),
        (change("idk_rate", week="2026-06-08"), ["week"]),  # not whole
        (change("idk_rate", week="2026-05-25"), []),
        (change("search_ctr", week="2026-06-01"), []),
        (change("idk_rate", shift="2026-06-02", week="2026-06-01"), ["shift", "week"]),
    ],
)
def test_recent_changes_are_alerts_unless_they_are_for_the_better(metrics, found, kinds):
    alerts = find_alerts(replace(metrics, changes=(found,))).alerts
    assert [alert.kind for alert in alerts] == kinds
    for alert in alerts:
        assert alert.sentence in {found.shift_sentence, found.week_sentence.replace(f"; {alert.explanation}", "")}
        assert alert.text in {found.shift_sentence, found.week_sentence}
        assert "Ann" not in alert.sentence
        assert math.isnan(alert.low) is (alert.kind == "shift")
        assert alert.p in {0.01, 0.02}


def test_a_shift_of_the_log_is_found(metrics):
    (alert,) = find_alerts(metrics).alerts
    assert (alert.metric, alert.kind, alert.until) == ("idk_rate", "shift", "2026-06-13")
    assert "idk_rate changed from 0.1" in alert.sentence
    later = replace(metrics, last=metrics.last + timedelta(weeks=6))
    assert (
        find_alerts(replace(later, groups=(*later.groups, replace(later.groups[0], group="2026-07-13")))).alerts == ()
    )


def test_other_groupings_are_refused(path):
    with pytest.raises(InputError, match='by="week"'):
        find_alerts(online_metrics(path, by="day"))
