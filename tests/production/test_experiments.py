"""A/B tests of logs: sums by a slow loop, simulated differences, and withheld verdicts."""

import json
import math
import random
from datetime import timedelta

import numpy as np
import pytest
from scipy import stats as scipy_stats

pytest.importorskip("pyarrow")

from tests.online_loops import START, Event, write_events

from rankgauge.errors import InputError, UnknownName
from rankgauge.production import compare_arms
from rankgauge.stats import mixing_sd

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write_log(path, rows):
    """Write a log of answers: rows (user, arm, day, thumbs or None, citation clicked)."""
    events = []
    for number, (user, arm, day, thumbs, clicked) in enumerate(rows):
        base = {"question_id": f"q{number}", "user_id": user, "arm": arm, "day": day}
        events += [base | {"kind": "answer"}, base | {"kind": "citation", "documents": ["d"]}]
        if thumbs is not None:
            events.append(base | {"kind": "thumbs", "value": float(thumbs)})
        if clicked:
            events.append(base | {"kind": "citation click", "documents": ["d"]})
    day = np.array([each["day"] for each in events])
    table = pa.table(
        {
            "event_id": [str(number) for number in range(len(events))],
            "time": pa.array(
                np.datetime64("2026-03-01T12:00", "us") + day * np.timedelta64(1, "D"), pa.timestamp("us", "UTC")
            ),
            **{
                name: pa.array([each.get(name) for each in events], kind)
                for name, kind in (
                    ("kind", pa.string()),
                    ("question_id", pa.string()),
                    ("user_id", pa.string()),
                    ("arm", pa.string()),
                    ("value", pa.float64()),
                    ("documents", pa.list_(pa.string())),
                )
            },
        }
    )
    pq.write_table(table, path)
    return path


def simulated(rng, path, *, users=600, up=(0.6, 0.6), clicks=(0.2, 0.2), share=0.5, days=20):
    rows = []
    for user in range(users):
        arm = int(rng.random() < share)
        taste = rng.normal(0, 0.1)
        for _ in range(1 + rng.poisson(2)):
            rated = rng.random() < 0.7
            liked = rng.random() < up[arm] + taste
            rows.append(
                (
                    f"u{user}",
                    ("control", "new")[arm],
                    int(rng.integers(days)),
                    (1 if liked else -1) if rated else None,
                    rng.random() < clicks[arm],
                )
            )
    return write_log(path, rows), rows


def test_sums_by_day_are_those_of_a_slow_loop(tmp_path):
    log, rows = simulated(np.random.default_rng(1), tmp_path / "log.parquet", users=120, days=6)
    found, known = compare_arms(log, primary="thumbs_ratio"), []
    for number, day in enumerate(found.days):
        assert day.day == f"2026-03-{number + 1:02d}"
        rates, variance, items = [], 0.0, 0
        for arm in ("control", "new"):
            users = {}
            for user, own, at, thumbs, _ in rows:
                if own == arm and at <= number and thumbs is not None:
                    ups, rated = users.get(user, (0, 0))
                    users[user] = (ups + (thumbs > 0), rated + 1)
            y, x = (sum(each[n] for each in users.values()) for n in (0, 1))
            rates.append(y / x)
            items += x
            squares = sum((own - y / x * all_) ** 2 for own, all_ in users.values())
            variance += squares / x**2 * len(users) / (len(users) - 1)
        assert day.difference == pytest.approx(rates[1] - rates[0])
        if math.isfinite(day.low):
            prior = found.mixing**2
            half = math.sqrt(variance * (variance + prior) / prior * math.log((variance + prior) / variance / 0.05**2))
            assert day.high - day.difference == pytest.approx(half)
            known.append(variance * items)
    assert math.isfinite(found.days[-1].low)
    assert len(known) > 1
    # The sequence is narrowest at 5,000 rated answers, for the first known variance.
    assert found.mixing == pytest.approx(mixing_sd(known[0] / 5000))


def test_a_metric_that_does_not_decide_has_a_z_interval_by_users_and_says_what_it_needs(tmp_path):
    log, rows = simulated(np.random.default_rng(8), tmp_path / "log.parquet", users=300, clicks=(0.2, 0.23))
    found = compare_arms(log, ["citation_ctr"], primary="thumbs_ratio").differences[1]
    rates, variance = [], 0.0
    for arm in ("control", "new"):
        users = {}
        for user, own, _, _, clicked in rows:
            if own == arm:
                clicks, shown = users.get(user, (0, 0))
                users[user] = clicks + clicked, shown + 1
        y, x = (sum(each[n] for each in users.values()) for n in (0, 1))
        rates.append(y / x)
        squares = sum((own - y / x * all_) ** 2 for own, all_ in users.values())
        variance += squares / x**2 * len(users) / (len(users) - 1)
    difference, error = rates[1] - rates[0], math.sqrt(variance)
    assert found.difference == pytest.approx(difference)
    assert found.high - difference == pytest.approx(1.959964 * error, rel=1e-6)
    assert found.p == pytest.approx(2 * scipy_stats.norm.sf(abs(difference) / error))
    assert found.verdict == "cannot tell"
    # With the variance divided by (1 + additional / questions), the test has 80% power.
    enough = variance / (1 + found.needed / len(rows))
    power = scipy_stats.norm.sf(1.959964 - abs(difference) / math.sqrt(enough))
    assert power == pytest.approx(0.8, abs=1e-3)


def test_sessions_count_on_their_first_day_with_the_worst_of_their_questions(tmp_path):
    rng, events, sessions = random.Random(3), [], []
    for n in range(240):
        arm, first, handed = "ab"[n % 2], rng.randrange(5), rng.random() < 0.3 + 0.2 * (n % 2)
        sessions.append((arm, first, handed, f"u{arm}{rng.randrange(60)}"))
        shared = {"session_id": f"s{n}", "user_id": sessions[-1][3], "arm": arm}
        for part in range(3):
            when = START + timedelta(days=first + part)
            events.append(Event(f"e{n}-{part}", "question", when, f"q{n}-{part}", **shared))
            if handed and part == 1:
                events.append(Event(f"h{n}", "handover", when, f"q{n}-{part}", **shared))
    found = compare_arms(write_events(tmp_path / "log.parquet", events), primary="containment_rate")
    assert found.primary.denominators == (120, 120)
    for number, day in enumerate(found.days):
        assert day.day == f"2026-05-{number + 1:02d}"
        contained = [
            [not handed for own, first, handed, _ in sessions if own == arm and first <= number] for arm in "ab"
        ]
        base, new = (sum(each) / len(each) for each in contained)
        assert day.difference == pytest.approx(new - base)
    assert len(found.days) == 5


def test_a_simulated_difference_is_found_and_dated(tmp_path):
    log, _ = simulated(np.random.default_rng(2), tmp_path / "log.parquet", up=(0.5, 0.75), clicks=(0.3, 0.1))
    found = compare_arms(log, ["citation_ctr"], primary="thumbs_ratio")
    assert found.arms == ("control", "new")
    assert found.primary.verdict == "better"
    assert found.primary.difference == pytest.approx(0.25, abs=0.08)
    assert found.differences[1].verdict == "worse"
    assert "new is better than control by thumbs_ratio" in found.summary()
    assert any(note.startswith("first found on 2026-03-") for note in found.table().notes)
    swapped = compare_arms(log, primary="thumbs_ratio", arms=("new", "control"))
    assert swapped.primary.verdict == "worse"
    assert swapped.primary.difference == -found.primary.difference


def test_without_a_difference_it_says_how_many_more_questions(tmp_path):
    log, rows = simulated(np.random.default_rng(5), tmp_path / "log.parquet", up=(0.6, 0.63))
    found = compare_arms(log, primary="thumbs_ratio")
    assert found.primary.verdict == "cannot tell"
    assert found.primary.needed > 0
    assert any("more questions (80% power)" in note for note in found.table().notes)
    assert sum(found.questions) == len(rows)


def test_a_sample_ratio_mismatch_withholds_every_verdict(tmp_path):
    log, _ = simulated(np.random.default_rng(3), tmp_path / "log.parquet", up=(0.4, 0.8), share=0.4)
    found = compare_arms(log, ["citation_ctr"], primary="thumbs_ratio")
    chi = (found.users[0] - found.users[1]) ** 2 / sum(found.users)
    assert found.mismatch == pytest.approx(scipy_stats.chi2.sf(chi, 1))
    assert found.mismatched
    assert {each.verdict for each in found.differences} == {"withheld"}
    assert found.summary().startswith("no verdict")
    intended = compare_arms(log, primary="thumbs_ratio", ratio=(3, 2))
    assert not intended.mismatched
    assert intended.primary.verdict == "better"


def test_users_in_both_arms_are_counted_and_reported(tmp_path):
    log, rows = simulated(np.random.default_rng(4), tmp_path / "log.parquet", users=200)
    both = [("u0", arm, 1, 1, False) for arm in ("control", "new")]
    found = compare_arms(write_log(log, [*rows, *both]), primary="thumbs_ratio")
    assert found.in_both == 1
    few = [(f"v{n}", "ab"[n % 2], 1, 1, False) for n in range(8)]
    few += [("v0", "b", 1, 1, False), ("v1", "a", 1, 1, False)]
    found_few = compare_arms(write_log(tmp_path / "few.parquet", few), primary="thumbs_ratio")
    # 2 of 8 users.
    assert found_few.users == (5, 5)
    assert any("2 users seen in both arms (25.0%)" in n for n in found_few.table().notes)
    assert any(note.startswith("1 user seen in both arms") for note in found.table().notes)


def test_bounds_take_unrated_answers_for_all_up_or_all_down(tmp_path):
    rows = [(f"u{n}", "a" if n % 2 else "b", 0, [1, -1, None, None][n // 2 % 4], False) for n in range(160)]
    found = compare_arms(write_log(tmp_path / "log.parquet", rows), primary="thumbs_ratio")
    # 20 up, 20 down, and 40 without a rating in each arm.
    assert (found.primary.worst, found.primary.best) == pytest.approx((-0.5, 0.5))


def test_other_metrics_are_corrected_by_holm(tmp_path):
    log, _ = simulated(np.random.default_rng(15), tmp_path / "log.parquet", clicks=(0.2, 0.24))
    others = ["citation_ctr", "citation_click_rate", "feedback_rate"]
    found = compare_arms(log, others, primary="thumbs_ratio")
    p = [each.p for each in found.differences[1:]]
    order = np.argsort(p)
    corrected = np.maximum.accumulate([min(1, p[n] * (3 - k)) for k, n in enumerate(order)])
    assert [found.differences[1 + n].corrected for n in order] == pytest.approx(corrected)
    assert found.primary.corrected == found.primary.p
    for each in found.differences[1:]:
        assert (each.verdict == "cannot tell") == (each.corrected > 0.05)
    # Some difference is significant only before the correction.
    assert any(each.p <= 0.05 < each.corrected for each in found.differences[1:])


def test_a_metric_without_events_is_not_defined(tmp_path):
    log, _ = simulated(np.random.default_rng(1), tmp_path / "log.parquet", users=60)
    found = compare_arms(log, ["search_ctr"], primary="thumbs_ratio")
    assert found.differences[1].verdict == "not defined"
    assert compare_arms(log, primary="search_ctr").summary().endswith("not defined")
    assert json.loads(found.to_json())["differences"][1]["difference"] is None


def test_too_few_users_decide_nothing(tmp_path):
    rows = [(f"u{n}", "a" if n % 2 else "b", 0, 1 if n % 2 else -1, False) for n in range(12)]
    found = compare_arms(write_log(tmp_path / "log.parquet", rows), primary="thumbs_ratio")
    assert found.primary.verdict == "cannot tell"
    assert any("fewer than 10 users" in note for note in found.table().notes)
    with pytest.raises(InputError, match="no day has an interval"):
        found.plot()


def test_the_plot_shows_the_sequence_by_day(tmp_path):
    log, _ = simulated(np.random.default_rng(1), tmp_path / "log.parquet", users=200)
    found = compare_arms(log, primary="thumbs_ratio")
    series = found.plot().panels[0].series
    assert series[0].y[-1] == found.primary.difference
    assert [each.name for each in series] == ["difference", "low", "high", "no difference"]


def test_missing_arms_and_metrics_are_refused(tmp_path):
    rows = [(f"u{n}", "abc"[n % 3], 0, 1, False) for n in range(9)]
    log = write_log(tmp_path / "log.parquet", rows)
    with pytest.raises(InputError, match="the log has 3 arms: a, b, c"):
        compare_arms(log, primary="thumbs_ratio")
    with pytest.raises(UnknownName):
        compare_arms(log, primary="thumbs_ratio", arms=("a", "z"))
    with pytest.raises(InputError, match="both arms"):
        compare_arms(log, primary="thumbs_ratio", arms=("a", "a"))
    with pytest.raises(UnknownName):
        compare_arms(log, primary="thumbs", arms=("a", "b"))
    with pytest.raises(InputError, match="latency_p50 is a quantile"):
        compare_arms(log, primary="latency_p50", arms=("a", "b"))
    with pytest.raises(InputError, match="is not valid"):
        compare_arms(log, primary="thumbs_ratio", arms=("a", "b"), ratio=(0, 1))
