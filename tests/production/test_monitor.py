"""Offline and online metrics: verdicts on simulated data."""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from tests.online_loops import START, Event, write_events

from rankgauge import Evaluation, parse
from rankgauge.errors import InputError
from rankgauge.production import METRICS, production_health
from rankgauge.production.monitor import Signal, offline_signal, online_signal, verdict_of
from rankgauge.production.online import find_changes
from rankgauge.production.online_result import MetricChange, WeekChange
from rankgauge.stats import DailySums, LinearTrend


def evaluation(values, measure="RR"):
    return Evaluation.from_values("a", [f"q{n}" for n in range(len(values))], {measure: values})


def log(path, *, thumbs, abstains, days=28, users=True):
    """Return answers by day, with shares of thumbs up and abstentions in both halves.

    Each share is exact, so the simulated change is the only one.
    """
    events = []
    for day in range(days):
        late = day * 2 >= days
        for n in range(40):
            when = START + timedelta(days=day, minutes=n)
            who = {"question_id": f"q{day}-{n}", "user_id": f"u{day}-{n // 2}" if users else None}
            shift = (n + 7 * day) % 40 / 40
            message = "I don't know." if shift < abstains[late] else "It is so."
            events += [
                Event(f"q{day}-{n}", "question", when, session_id=f"s{day}-{n}", text="Is it?", **who),
                Event(f"a{day}-{n}", "answer", when, text=message, **who),
                Event(f"t{day}-{n}", "thumbs", when, value=1 if shift < thumbs[late] else -1, **who),
            ]
    return write_events(path, events)


HELD = [(START, [0.5, 0.6, 0.7, 0.8]), (START + timedelta(days=25), [0.5, 0.6, 0.71, 0.8])]
FALLEN = [(START, [0.5, 0.6, 0.7, 0.8]), (START + timedelta(days=25), [0.2, 0.31, 0.4, 0.52])]
CALM, ANGRY = {"thumbs": (0.8, 0.8), "abstains": (0.1, 0.1)}, {"thumbs": (0.8, 0.5), "abstains": (0.1, 0.1)}


@pytest.mark.parametrize(
    ("offline", "online", "drift", "verdict", "says"),
    [
        (HELD, ANGRY, None, "REFRESH", "metrics look good, but users complain: refresh"),
        (HELD, {"thumbs": (0.8, 0.8), "abstains": (0.1, 0.4)}, None, "REFRESH", "users complain"),
        (HELD, CALM, True, "REFRESH", "questions of users differ"),
        (HELD, CALM, None, "STEADY", "metrics hold"),
        (HELD, {"thumbs": (0.5, 0.8), "abstains": (0.1, 0.1)}, False, "STEADY", "metrics hold"),
        (FALLEN, ANGRY, None, "WORSE", "metrics fall and users complain"),
        (FALLEN, CALM, None, "OFFLINE ONLY", "users show no change"),
        (HELD[:1], ANGRY, None, "USERS ONLY", "evaluate again"),
        (HELD[:1], CALM, None, "CANNOT TELL", "too few"),
    ],
)
def test_the_verdict_is_that_of_the_simulated_truth(tmp_path, offline, online, drift, verdict, says):
    points = [(time, evaluation(values)) for time, values in offline]
    found = production_health(log(tmp_path / "log.parquet", **online), points, "RR", drift=drift, margin=0.15)
    assert found.verdict == verdict, str(found)
    assert says in found.sentence
    assert max(map(len, str(found).splitlines())) <= 80
    assert len(found.weeks) == 5


def test_too_few_days_cannot_tell(tmp_path):
    points = [(time, evaluation(values)) for time, values in HELD]
    found = production_health(log(tmp_path / "log.parquet", days=6, **ANGRY), points, "RR")
    assert found.verdict == "CANNOT TELL"
    assert {signal.state for signal in found.online} == {"cannot tell"}
    assert "fewer than 8 days" in str(found)


def test_unknown_users_cannot_tell_before_ten_weeks(tmp_path):
    points = [(time, evaluation(values)) for time, values in HELD]
    found = production_health(log(tmp_path / "log.parquet", users=False, **ANGRY), points, "RR")
    assert found.verdict == "CANNOT TELL"
    assert "fewer than 10 weeks, and users are unknown: log user_id, or wait" in " ".join(str(found).split())


def test_weeks_have_the_rates_of_their_days_and_the_latest_evaluation(tmp_path):
    points = [(time, evaluation(values)) for time, values in HELD]
    found = production_health(log(tmp_path / "log.parquet", **CALM), points, "RR")
    assert [week.start for week in found.weeks][:2] == ["2026-04-27", "2026-05-04"]
    assert found.weeks[0].offline == pytest.approx(0.65)
    later = (START + timedelta(days=1), evaluation([0.1, 0.3]))
    again = production_health(tmp_path / "log.parquet", [*points, later], "RR")
    assert again.weeks[0].offline == pytest.approx(0.2)
    sunday = (START + timedelta(days=2, hours=23), 0.4)
    monday = (START + timedelta(days=3), 0.6)
    edge = production_health(tmp_path / "log.parquet", [monday, sunday], "RR").weeks
    assert [(week.start, week.offline) for week in edge[:2]] == [("2026-04-27", 0.4), ("2026-05-04", 0.6)]
    assert math.isnan(found.weeks[1].offline)
    assert all(week.online["thumbs_ratio"] == pytest.approx(0.8) for week in found.weeks)


def test_small_changes_are_shown_with_significant_digits():
    assert Signal("AP", "steady", 0.0, 0.0, 0.0).sentence == ("AP: steady: change 0 (no value changed)")
    assert Signal("AP", "steady", 0.00002, -0.00034, 0.00038).sentence == (
        "AP: steady: change +2e-05 (95% interval -0.0003 to +0.0004)"
    )
    assert Signal("AP", "worse", -0.2, -0.3, -0.0996).sentence == (
        "AP: worse: change -0.200 (95% interval -0.300 to -0.100)"
    )


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ([0.5] * 10, [0.5] * 10, "steady"),
        ([0.5] * 10, [0.9] * 10, "better"),
        ([0.1, 0.9] * 20, [0.9, 0.1] * 20, "cannot tell"),
        ([0.9, 0.8] * 20, [0.5, 0.6] * 20, "worse"),
    ],
)
def test_the_last_evaluation_is_compared_with_the_first(before, after, state):
    found = offline_signal([evaluation(before), evaluation(after)], parse("RR"), 0.02)
    assert found.state == state


@pytest.mark.parametrize(
    ("moves", "state"),
    [
        ([0.0, -0.02, 0.02, -0.01, 0.01, 0.0] * 3, "steady"),
        ([0.05, -0.04, 0.03, -0.06, 0.02, 0.0], "cannot tell"),
        ([-0.03, -0.005, -0.02, -0.03, -0.01, -0.04], "worse"),  # perhaps by less than the margin
        ([-0.011, -0.009, -0.01, -0.01, -0.012, -0.008], "steady"),  # certainly by less
        ([0.03, 0.005, 0.02, 0.03, 0.01, 0.04], "better"),
    ],
)
def test_the_interval_of_the_change_decides(moves, state):
    scipy_stats = pytest.importorskip("scipy.stats")
    first, middle = [0.5] * len(moves), [0.9] * len(moves)
    last = [0.5 + move for move in moves]
    found = offline_signal([evaluation(v) for v in (first, middle, last)], parse("RR"), 0.02)
    low, high = scipy_stats.t.interval(0.95, len(moves) - 1, np.mean(moves), scipy_stats.sem(moves))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.state == state
    worse = "worse" if high < 0 else "cannot tell"
    assert state == (("better" if low > 0 else "steady") if low >= -0.02 else worse)


def test_only_queries_of_both_evaluations_are_compared():
    first = Evaluation.from_values("a", "abc", {"RR": [0.1, 0.2, 0.3]})
    last = Evaluation.from_values("a", "bcd", {"RR": [0.2, 0.3, 0.0]})
    found = offline_signal([first, last], parse("RR"), 0.02)
    assert (found.state, found.change) == ("steady", 0)


def test_means_alone_have_no_interval():
    found = offline_signal([0.8, 0.7], parse("RR"), 0.02)
    assert (found.state, found.reason) == ("worse", "no interval: means without queries")
    assert offline_signal([0.7, 0.69], parse("RR"), 0.02).state == "steady"


def test_a_measure_where_lower_is_better_is_worse_if_it_rises():
    found = offline_signal([2.0, 5.0], parse("FirstRel"), 0.5)
    assert (found.state, found.change) == ("worse", 3.0)


def change_of(name, *, trend=(0.0, -0.01, 0.01, 1.0), p=1.0, shifts=(), week=None):
    return MetricChange(METRICS[name], LinearTrend(*trend), p, shifts, week, week.p if week else math.nan)


def test_a_change_below_the_margin_counts_as_steady():
    change = change_of("idk_rate", trend=(0.02, 0.01, 0.03, 0.01), p=0.001, shifts=(("2026-05-01", 0.2, 0.21),))
    assert online_signal(change, 0.05).state == "steady"
    large = online_signal(change, 0.01)
    assert (large.state, large.p) == ("worse", 0.002)  # of two tests
    assert "change +0.020 (95% interval +0.010 to +0.030, p = 0.002, Holm; assumes that" in large.sentence


@pytest.mark.parametrize(
    ("name", "rates", "state"),
    [
        ("thumbs_ratio", (0.8, 0.5), "worse"),
        ("thumbs_ratio", (0.5, 0.8), "better"),
        ("idk_rate", (0.2, 0.4), "worse"),
        ("idk_rate", (0.4, 0.2), "better"),
        ("reformulation_rate", (0.2, 0.4), "worse"),
        ("reformulation_rate", (0.4, 0.2), "better"),
        # From first to last: up by .3, and down again by .4.
        ("idk_rate", (0.3, 0.6, 0.2), "better"),
        ("thumbs_ratio", (0.3, 0.6, 0.2), "worse"),
        # An outage that is over.
        ("idk_rate", (0.3, 0.6, 0.31), "cannot tell"),
        ("idk_rate", (0.3, 0.6, 0.29), "cannot tell"),
    ],
)
def test_the_direction_of_a_metric_and_its_last_rate_decide(name, rates, state):
    daily = [rate for rate in rates for _ in range(12)]
    x = np.full((200, len(daily)), 10)
    (change,) = find_changes({METRICS[name]: DailySums.of(np.random.default_rng(1).binomial(x, daily), x)})
    assert change.p <= 0.05
    assert online_signal(change, 0.05).state == state


@pytest.mark.parametrize(
    ("name", "trend", "state"),
    [
        ("thumbs_ratio", (-0.02, -0.06, 0.02, 0.3), "cannot tell"),
        ("thumbs_ratio", (0.02, -0.02, 0.06, 0.3), "steady"),
        ("idk_rate", (0.02, -0.02, 0.06, 0.3), "cannot tell"),
        ("idk_rate", (-0.02, -0.06, 0.02, 0.3), "steady"),
        # A gradual change without a shift.
        ("idk_rate", (0.1, 0.02, 0.18, 0.01), "worse"),
        ("thumbs_ratio", (0.1, 0.02, 0.18, 0.01), "better"),
    ],
)
def test_without_a_shift_the_line_decides(name, trend, state):
    assert online_signal(change_of(name, trend=trend), 0.05).state == state


@pytest.mark.parametrize(
    ("value", "latest", "state"), [(0.3, True, "worse"), (0.3, False, "steady"), (0.01, True, "steady")]
)
def test_a_last_week_that_differs_for_the_worse_is_worse(value, latest, state):
    week = WeekChange("2026-05-04", value, value - 0.01, value + 0.05, 0.1, 8, 0.01, latest, "with a=b it is 0.5")
    signal = online_signal(change_of("idk_rate", week=week), 0.05)
    assert signal.state == state
    assert "idk_rate differs in the week of 2026-05-04" in signal.sentence
    assert signal.sentence.endswith("other weeks 0.100; with a=b it is 0.5")


@pytest.mark.parametrize(("high", "state"), [(0.14, "steady"), (0.16, "worse"), (math.nan, "steady")])
def test_a_last_week_within_the_margin_counts_as_steady(high, state):
    week = WeekChange("2026-05-04", 0.12, 0.11, high, 0.1, 8, 0.01, latest=True)
    assert online_signal(change_of("idk_rate", week=week), 0.05).state == state


def test_every_cell_of_the_table_has_words():
    for offline in ("worse", "better", "steady", "cannot tell"):
        for online in ([], ["worse"], ["steady", "better"], ["cannot tell", "steady"]):
            for drift in (None, False, True):
                verdict, sentence = verdict_of(offline, online, drift=drift)
                # One possibly worse metric is enough to withhold the conclusion of no change.
                if "cannot tell" in online and not drift:
                    assert verdict == "CANNOT TELL"
                assert verdict
                assert sentence


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ([], "no evaluation"),
        ([("2026-05-01", 0.5)], "got '2026-05-01' for time"),
        ([(datetime(2026, 5, 1), 0.5)], "time zone"),  # noqa: DTZ001 - that is what is refused
        ([(datetime(2026, 5, 1, tzinfo=UTC), evaluation([0.5], "nDCG@10"))], "was not evaluated"),
    ],
)
def test_impossible_evaluations_are_refused(tmp_path, points, says):
    path = log(tmp_path / "log.parquet", days=1, **CALM)
    with pytest.raises(InputError, match=says):
        production_health(path, points, "RR")
