"""Online metrics, compared with slow loops over the events."""

import json
import math
import random
from collections import defaultdict
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from hypothesis import given, strategies as st
from tests.online_loops import START, Event, pairs, questions_of, random_events, write_events

from rankgauge.core.abstention import abstains
from rankgauge.errors import InputError, UnknownName
from rankgauge.production import METRICS, online_metrics
from rankgauge.production.metrics import Threshold
from rankgauge.production.online_result import OnlineValue, check_threshold
from rankgauge.stats import ClusterSums, DailySums, clustered_mean, clustered_proportion, first_change, holm


def interval(metric, counted):
    """Return the estimate of a metric from (cluster, numerator, denominator) of each unit."""
    sums = defaultdict(lambda: [0.0, 0.0])
    for cluster, above, below in counted:
        sums[cluster][0] += above
        sums[cluster][1] += below
    moments = ClusterSums.of(*zip(*sums.values(), strict=True))
    if METRICS[metric].kind == "mean":
        return clustered_mean(moments, bounds=METRICS[metric].bounds)
    return clustered_proportion(moments)


# Without any such event, a log does not show whether they are recorded.
NEEDED = {
    "search_ctr": ["click"],
    "result_ctr": ["click"],
    "citation_ctr": ["citation click"],
    "citation_click_rate": ["citation click"],
    "containment_rate": ["handover"],
    "feedback_rate": ["thumbs"],
    "abandonment_rate": ["click", "citation click"],
}


def agrees(found, expected, events):
    """Compare every rate and mean with the loop."""
    kinds = {event.kind for event in events}
    for each in found:
        name = each.metric.name
        if each.metric.kind == "quantile":
            continue
        counted = expected[name]
        if not counted or not kinds.intersection(NEEDED.get(name, kinds)):
            assert not each.defined
            assert each.reason
            continue
        own = interval(name, counted)
        assert each.denominator == pytest.approx(sum(row[2] for row in counted)), name
        assert each.numerator == pytest.approx(sum(row[1] for row in counted))
        assert each.value == pytest.approx(own.value)
        assert each.low == pytest.approx(own.low, nan_ok=True), name
        assert each.high == pytest.approx(own.high, nan_ok=True), name


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")


@given(seed=st.integers(0, 10**6), size=st.integers(1, 60), abstentions=st.booleans())
def test_metrics_are_those_of_loops_over_the_events(folder, seed, size, abstentions):
    events = random_events(seed, size, abstentions=abstentions)
    log = write_events(folder / "log.parquet", events)
    by_rule = not any(event.kind == "abstention" for event in events)
    agrees(online_metrics(log).overall, pairs(questions_of(events), by_rule=by_rule), events)


@pytest.mark.parametrize("by", ["day", "week", "arm", "language"])
def test_groups_are_those_of_loops_over_their_questions(folder, by):
    events = random_events(11, 150)
    questions = questions_of(events)
    groups = {
        "day": lambda q: str(q.asked.time.date()),
        "week": lambda q: str(q.asked.time.date() - timedelta(q.asked.time.weekday())),
        "arm": lambda q: q.asked.arm,
        "language": lambda q: q.asked.attributes.get("language", "(unknown)"),
    }
    found = online_metrics(write_events(folder / "log.parquet", events), by=by)
    assert found.group_names == tuple(sorted({groups[by](q) for q in questions}))
    for name in found.group_names:
        own = [q for q in questions if groups[by](q) == name]
        agrees([each for each in found.groups if each.group == name], pairs(own), events)
    agrees(found.overall, pairs(questions), events)


def test_only_questions_of_a_time_and_segment_count(folder):
    events = random_events(12, 200)
    log = write_events(folder / "log.parquet", events)
    since, until = START.date() + timedelta(2), "2026-05-06T12:00:00+02:00"
    found = online_metrics(log, since=since, until=until, where={"language": "de", "arm": "A"})
    questions = [
        q
        for q in questions_of(events)
        if q.asked.attributes.get("language") == "de"
        and q.asked.arm == "A"
        and "2026-05-03" <= q.asked.time.isoformat() < "2026-05-06T10:00:00"
    ]
    assert found.questions == len(questions) > 5
    agrees(found.overall, pairs(questions), events)


def test_reformulations_follow_the_stated_rule(folder):
    events = random_events(13, 200, users=3)
    log = write_events(folder / "log.parquet", events)
    for minutes, similarity in ((600, 0.4), (10_000, 1), (0, 0)):
        found = online_metrics(log, ["reformulation_rate", "abandonment_rate"], minutes=minutes, similarity=similarity)
        agrees(found.overall, pairs(questions_of(events), minutes, similarity), events)
        assert f"within {minutes} minutes" in found.to_csv()


def test_latency_quantiles_are_order_statistics_within_their_interval(folder):
    events = random_events(14, 400, users=60)
    values = sorted(q.latency() for q in questions_of(events) if q.latency() is not None)
    found = online_metrics(write_events(folder / "log.parquet", events), by="arm")
    for name, share in (("latency_p50", 0.5), ("latency_p95", 0.95)):
        each = found.value(name)
        assert each.value == values[math.ceil(share * len(values)) - 1]
        assert each.low <= each.value <= each.high
        assert each.denominator == len(values)
        assert {found.value(name, arm).denominator for arm in "AB"} != {len(values)}


LATENCIES = {
    "few different": [float(n * n % 41) for n in range(500)],
    "all different": [float(n) for n in range(3000)],
    "tied at the 95%": [*map(float, range(184)), *[5000.0] * 10, *[6000.0 + n for n in range(6)]],
}


@pytest.mark.parametrize("kind", LATENCIES)
@pytest.mark.parametrize(("name", "quantile"), [("latency_p50", 0.5), ("latency_p95", 0.95)])
def test_intervals_of_quantiles_are_those_of_woodruff_by_a_slow_loop(folder, kind, name, quantile):
    """The share of values up to the quantile has an interval; its quantiles are the bounds."""
    rng, values, ordered = random.Random(3), defaultdict(list), sorted(LATENCIES[kind])
    for value in ordered:
        values[f"u{rng.randrange(70)}"].append(value)
    events = [
        Event(f"{user}-{n}", "answer", START, f"{user}-{n}", user_id=user, latency_ms=value)
        for user, own in values.items()
        for n, value in enumerate(own)
    ]
    (found,) = online_metrics(write_events(folder / "log.parquet", events), [name]).overall

    def at(share):  # the smallest value that at most this share of all values reaches
        return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]

    upto = [sum(value <= at(quantile) for value in own) for own in values.values()]
    share = clustered_proportion(ClusterSums.of(upto, [len(own) for own in values.values()]))
    low, high = (each + quantile - share.value for each in (share.low, share.high))
    assert found.value == at(quantile)
    assert found.low == at(math.floor(low * 1000) / 1000) <= found.value
    known = math.ceil(high * len(ordered)) < len(ordered)
    assert found.high == (at(math.ceil(high * 1000) / 1000) if known else math.inf)


def test_a_question_exactly_at_the_limit_is_within_the_time(folder):
    events = []
    for session, seconds in (("s", 600), ("t", 601)):
        events += [
            Event(f"{session}1", "question", START, f"{session}1", session, text="late fees"),
            Event(f"{session}i", "impression", START, f"{session}1", session, documents=("d",)),
            Event(
                f"{session}2", "question", START + timedelta(seconds=seconds), f"{session}2", session, text="fees late"
            ),
        ]
    events += [Event(kind, kind, START, "x", documents=("d",)) for kind in ("click", "citation click")]
    found = online_metrics(write_events(folder / "log.parquet", events), minutes=10, similarity=1)
    # One of four questions in sessions, the other one of two searches.
    assert found.value("reformulation_rate").value == 0.25
    assert found.value("abandonment_rate").value == 0.5


def test_more_citations_clicked_than_shown_count_as_those_shown(folder):
    events = [Event("c", "citation", START, "q1", documents=("a",))]
    events += [Event(doc, "citation click", START, "q1", documents=(doc,)) for doc in "abc"]
    events.append(Event("d", "citation", START, "q2", documents=("a", "b")))
    found = online_metrics(write_events(folder / "log.parquet", events), "citation_click_rate")
    assert (found.overall[0].numerator, found.overall[0].denominator) == (1, 3)


def test_a_quantile_beyond_the_data_has_no_upper_limit(folder):
    events = [Event(f"e{n}", "answer", START, f"q{n}", user_id=f"u{n}", latency_ms=n) for n in range(30)]
    found = online_metrics(write_events(folder / "log.parquet", events))
    assert math.isinf(found.value("latency_p95").high)
    assert "no limit" in str(found)
    assert found.value("latency_p50").high < 29


def test_metrics_of_unlogged_events_are_undefined_and_not_zero(folder):
    events = [Event(f"e{n}", "question", START, f"q{n}") for n in range(5)]
    found = online_metrics(write_events(folder / "log.parquet", events))
    for name, reason in (
        ("result_ctr", "no impressions were logged"),
        ("thumbs_ratio", "no thumbs were logged"),
        ("search_ctr", "no retrievals were logged, no impressions were logged"),
        ("idk_rate", "no abstentions were logged, and answers have no text"),
        ("wrong_idk_rate", "no abstentions were logged, and answers have no text"),
        ("containment_rate", "no handovers to a person were logged"),
        ("latency_p50", "no questions"),
        ("reformulation_rate", "no questions"),
    ):
        assert math.isnan(found.value(name).value), name
        assert found.value(name).reason == reason


@pytest.mark.parametrize(
    ("known", "unit"),
    [({"user_id": "u", "session_id": "s"}, "1 users"), ({"session_id": "s"}, "1 sessions"), ({}, "3 single questions")],
)
def test_the_clusters_of_questions_are_named(folder, known, unit):
    events = [Event(f"e{n}", "question", START, question_id=f"q{n}", text="why?", **known) for n in range(3)]
    found = online_metrics(write_events(folder / "log.parquet", events))
    assert found.table().title.startswith(f"3 questions of {unit}, ")


def test_clicks_without_impressions_are_no_impressions(folder):
    events = [
        Event(f"e{n}", kind, START, f"q{n}", documents=("a",), ranks=(1,))
        for n, kind in enumerate(("click", "impression", "impression"))
    ]
    found = online_metrics(write_events(folder / "log.parquet", events), "result_ctr")
    assert (found.overall[0].numerator, found.overall[0].denominator) == (0, 2)


def test_unrated_answers_bound_the_thumbs_ratio(folder):
    events = [Event(f"a{n}", "answer", START, f"q{n}", text="Yes.") for n in range(100)]
    events += [Event(f"t{n}", "thumbs", START, f"q{n}", value=1) for n in range(3)]
    events.append(Event("t3", "thumbs", START, "q3", value=-1))
    found = online_metrics(write_events(folder / "log.parquet", events), "thumbs_ratio")
    each = found.value("thumbs_ratio")
    assert (each.value, each.worst, each.best) == (0.75, 0.03, 0.99)
    assert found.value("feedback_rate").value == 0.04
    assert "with all others rated down or up it would be 0.030 or 0.990" in " ".join(str(found).split())


def test_ratings_of_searches_without_an_answer_are_in_the_bounds_too(folder):
    """5 rated, 4 up; of 100 answers 96 are not: from 4 / 101 to 100 / 101."""
    events = [Event(f"a{n}", "answer", START, f"q{n}", text="Yes.") for n in range(100)]
    events += [Event(f"t{n}", "thumbs", START, f"q{n}", value=1 if n else -1) for n in range(4)]
    events += [Event("s", "retrieval", START, "x", documents=("d",)), Event("t", "thumbs", START, "x", value=1)]
    found = online_metrics(write_events(folder / "log.parquet", events)).value("thumbs_ratio")
    assert found.value == 0.8
    assert (found.worst, found.best) == pytest.approx((4 / 101, 100 / 101))


def test_the_rule_on_texts_is_used_only_without_events(folder):
    events = [Event(f"a{n}", "answer", START, f"q{n}", text="I don't know.") for n in range(4)]
    plain = write_events(folder / "rule.parquet", events)
    assert online_metrics(plain, "idk_rate").overall[0].value == 1
    assert "abstention-2" in str(online_metrics(plain, "idk_rate"))
    logged = write_events(folder / "events.parquet", [*events, Event("x", "abstention", START, "q0")])
    assert online_metrics(logged, "idk_rate").overall[0].value == 0.25


PARTS = (
    "1. ",
    "... ",
    "(",
    "Sorry, ",
    "I'm afraid\n",
    "I don't know",
    "I cannot tell",
    "unknown",
    "n/a",
    "No naïve answer was found",
    "The provided context doesn't say",
    "é",
    "However, yes",
    ". ",
    "\n",
    "! ",
    "\u00a0",
    "not stated",
    "It is not mentioned",
    "- ",
    "no answer",
    "42",
    "I do not have\u2003any übliche information",
    "I don\u2019t have any very specific knowledge",
    "This text doesn\u2019t say",
    "I have no details",
)


@given(text=st.lists(st.sampled_from(PARTS), max_size=6).map("".join))
def test_the_database_passes_on_every_text_that_abstains(text):
    import duckdb

    from rankgauge.core.abstention import ABSTENTION_RE2

    passed = duckdb.execute(
        "SELECT regexp_matches($1, $2) OR NOT regexp_matches($1, '\\pL')", [text, ABSTENTION_RE2]
    ).fetchone()[0]
    assert passed or not abstains(text)


def test_thresholds_fail_only_beyond_the_interval(folder):
    events = [
        Event(f"e{n}-{k}", "answer", START, f"q{n}-{k}", user_id=f"u{n}", text="I don't know." if k < 3 else "Yes.")
        for n in range(50)
        for k in range(10)
    ]
    log = write_events(folder / "log.parquet", events)
    limits = ["idk_rate > 0.2", "idk_rate > .3", "idk_rate > 0.5", "idk_rate < 0.4"]
    found = online_metrics(log, "feedback_rate", thresholds=limits)
    assert [check.verdict for check in found.checks] == ["FAIL", "INCONCLUSIVE", "PASS", "FAIL"]
    assert found.exit_code() == 1
    unsure = online_metrics(log, thresholds=[limits[1]])
    assert (unsure.exit_code(), unsure.exit_code(strict=True)) == (0, 3)
    undefined = online_metrics(log, thresholds=["thumbs_ratio < 0.5"])
    assert undefined.checks[0].verdict == "NOT DEFINED"
    assert undefined.exit_code() == 4


@pytest.mark.parametrize(
    ("text", "low", "high", "verdict"),
    [
        ("idk_rate > 0.2", 0.21, 0.3, "FAIL"),
        ("idk_rate > 0.2", 0.2, 0.3, "INCONCLUSIVE"),
        ("idk_rate > 0.2", 0.1, 0.2, "PASS"),
        ("idk_rate > 0.2", 0.1, 0.21, "INCONCLUSIVE"),
        ("idk_rate < 0.2", 0.1, 0.19, "FAIL"),
        ("idk_rate < 0.2", 0.1, 0.2, "INCONCLUSIVE"),
        ("idk_rate < 0.2", 0.2, 0.3, "PASS"),
        ("idk_rate < 0.2", 0.19, 0.3, "INCONCLUSIVE"),
        ("idk_rate > 0.2", math.nan, math.nan, "INCONCLUSIVE"),
        ("idk_rate < 0.2", math.nan, math.nan, "INCONCLUSIVE"),
        ("idk_rate > 0.2", 0.1, math.inf, "INCONCLUSIVE"),
    ],
)
def test_a_value_at_the_threshold_is_not_beyond_it(text, low, high, verdict):
    value = OnlineValue(METRICS["idk_rate"], None, 0.2, low, high, 20, 100, 50)
    assert check_threshold(Threshold.of(text), [value]).verdict == verdict


def test_since_includes_its_moment_and_until_does_not(folder):
    events = [Event(f"e{n}", "question", START + timedelta(hours=n), f"q{n}", text="why?") for n in range(5)]
    log = write_events(folder / "log.parquet", events)
    found = online_metrics(log, since="2026-05-01T01:00:00", until="2026-05-01T03:00:00")
    assert found.questions == 2
    assert (found.first, found.last) == (START + timedelta(hours=1), START + timedelta(hours=2))


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"metrics": "thumbs"}, UnknownName, "thumbs_ratio"),
        ({"by": "langauge"}, UnknownName, "language"),
        ({"where": {"colour": "red"}}, UnknownName, "segment"),
        ({"since": "yesterday"}, InputError, "2026-05-31"),
        ({"thresholds": ["idk_rate >= 2"]}, InputError, "NAME > NUMBER"),
        ({"thresholds": ["idk > 2"]}, UnknownName, "idk_rate"),
        ({"minutes": -1}, InputError, "minutes"),
        ({"metrics": []}, InputError, "no metric"),
    ],
)
def test_impossible_arguments_are_refused(folder, arguments, error, says):
    log = write_events(folder / "log.parquet", random_events(1, 5))
    with pytest.raises(error, match=says):
        online_metrics(log, **arguments)


def test_names_of_segments_are_quoted(folder):
    events = [
        Event("e1", "question", START, "q1", session_id="s", attributes={"it's": "a'b"}),
        Event("e2", "question", START, "q2", session_id="s"),
    ]
    log = write_events(folder / "log.parquet", events)
    assert online_metrics(log, by="it's").group_names == ("(unknown)", "a'b")
    assert online_metrics(log, where={"it's": "a'b"}).questions == 1


def test_an_empty_selection_has_no_questions(folder):
    log = write_events(folder / "log.parquet", random_events(1, 5))
    found = online_metrics(log, since=date(2030, 1, 1), by="day")
    assert (found.questions, found.groups) == (0, ())
    assert "no questions" in found.summary()


def test_a_plot_needs_days_or_weeks(folder):
    log = write_events(folder / "log.parquet", random_events(2, 80))
    with pytest.raises(InputError, match="by="):
        online_metrics(log).plot()
    assert "idk_rate" in online_metrics(log, by="day").plot("idk_rate").alt


def test_the_overall_table_fits_a_screen(folder):
    log = write_events(folder / "log.parquet", random_events(2, 200))
    lines = str(online_metrics(log)).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 32
    assert len(str(online_metrics(log, by="week")).splitlines()) <= 24


def daily(rates, *, answers=60, user="u{day}-{n}", attributes=lambda _day, _n: {}):
    """Return answers by day, with these shares of abstentions."""
    return [
        Event(
            f"e{day}-{n}",
            "answer",
            START + timedelta(days=day),
            f"q{day}-{n}",
            user_id=user and user.format(day=day, n=n // 2),
            text="I don't know." if n < rate * answers else "Yes.",
            attributes=attributes(day, n),
        )
        for day, rate in enumerate(rates)
        for n in range(answers)
    ]


SHIFTED = [0.1, 0.15, 0.12, 0.1, 0.13, 0.11, 0.12, 0.11, 0.1, 0.13, 0.3, 0.28, 0.33, 0.3, 0.31, 0.29, 0.3, 0.32]


@pytest.mark.parametrize("by", ["day", "week"])
def test_a_simulated_change_is_found_on_its_day(folder, by):
    log = write_events(folder / "log.parquet", daily(SHIFTED))
    found = online_metrics(log, ["idk_rate", "latency_p50"], by=by)
    (change,) = found.changes
    assert [shift[0] for shift in change.shifts] == ["2026-05-11"]
    assert change.p < 0.01
    assert change.trend.low > 0
    assert "idk_rate changed" in str(found)
    assert "neighboring days correlate by at most 0.6" in " ".join(str(found).split())
    assert json.loads(found.to_json())["changes"][0]["sentence"] == change.sentence


@pytest.mark.parametrize("unknown", [0.05, 0.2])
def test_without_users_changes_need_ten_weeks(folder, unknown):
    known = daily(SHIFTED)
    events = [replace(e, user_id=None) if n % 20 < 20 * unknown else e for n, e in enumerate(known)]
    found = online_metrics(write_events(folder / "log.parquet", events), "idk_rate", by="week")
    (change,) = found.changes
    if unknown <= 0.1:
        assert change.shifts
    else:
        assert (change.shifts, change.trend) == ((), None)
        assert "changes were not tested: fewer than 10 weeks, and users are unknown: log user_id, or wait" in " ".join(
            str(found).split()
        )


def test_the_habits_of_few_users_are_no_change(folder):
    """All abstentions of the last days are to three users."""
    events = [
        replace(event, user_id=f"heavy{n % 3}") if event.text.startswith("I don") and n >= 600 else event
        for n, event in enumerate(daily(SHIFTED))
    ]
    (change,) = online_metrics(write_events(folder / "log.parquet", events), "idk_rate", by="day").changes
    assert change.p > 0.05
    assert change.trend.low < 0 < change.trend.high


def bad_week(day, n):
    return {"model": "v2" if 24 <= day < 31 else "v1", "language": "de" if n % 3 == 0 else "en", "id": f"{day}-{n}"}


@pytest.mark.parametrize(
    ("attributes", "explanation"),
    [
        (bad_week, "nearly all of its answers have model=v2, and few in other weeks"),
        (lambda day, n: {"language": "de" if n % 3 == 0 else "en"}, ""),
        (
            lambda day, n: {"source": "chat" if (n < 13 and 24 <= day < 31) or n % 40 == 20 else "search"},
            "with source=chat it is 0.867, without 0.067",
        ),
    ],
)
def test_a_week_that_differs_is_named_with_what_explains_it(folder, attributes, explanation):
    rates = [0.28 if 24 <= day < 31 else 0.05 + 0.01 * (day % 3) for day in range(52)]
    log = write_events(folder / "log.parquet", daily(rates, answers=48, attributes=attributes))
    for by in ("day", "week"):
        found = online_metrics(log, "idk_rate", by=by)
        (change,) = found.changes
        assert change.week.start == "2026-05-25"
        assert change.week.value == pytest.approx(14 / 48)
        assert change.week.low < 14 / 48 < change.week.high
        assert (change.week.weeks, change.week.latest) == (8, False)
        assert change.week_p == change.week.p < 0.01
        if explanation.startswith("with"):
            assert change.week.explanation.startswith("with source=chat it is")
        else:
            assert change.week.explanation == explanation
        assert "idk_rate differs in the week of 2026-05-25: 0.292" in " ".join(str(found).split())
    assert json.loads(found.to_json())["changes"][0]["week"]["start"] == "2026-05-25"


def test_changes_of_a_metric_per_session_count_sessions(folder):
    events = [
        event
        for day in range(20)
        for n in range(40)
        for event in (
            Event(
                f"e{day}-{n}",
                "answer",
                START + timedelta(days=day),
                f"q{day}-{n}",
                f"s{day}-{n // 2}",
                f"u{day}-{n // 2}",
            ),
            *(
                [
                    Event(
                        f"h{day}-{n}",
                        "handover",
                        START + timedelta(days=day),
                        f"q{day}-{n}",
                        f"s{day}-{n // 2}",
                        f"u{day}-{n // 2}",
                    )
                ]
                if n % 2 and n // 2 < (2 if day < 10 else 9)
                else []
            ),
        )
    ]
    found = online_metrics(write_events(folder / "log.parquet", events), "containment_rate", by="day")
    (change,) = found.changes
    assert change.shifts == (("2026-05-11", 0.9, 0.55),)


def test_p_values_of_changes_are_corrected_by_holm(folder):
    """Metrics that are shown beside those that were asked for do not count."""
    events = daily([0.1, 0.2, 0.12, 0.18, 0.15, 0.25, 0.2, 0.3, 0.22, 0.28], user="u{n}")
    events += [
        Event(
            f"t{event.event_id}",
            "thumbs",
            event.time,
            event.question_id,
            user_id=event.user_id,
            value=1 if n % 7 < 3 else -1,
        )
        for n, event in enumerate(events[::2])
    ]
    log = write_events(folder / "log.parquet", events)
    found = online_metrics(log, ["idk_rate", "thumbs_ratio"], by="day")
    assert found.value("feedback_rate").defined
    assert [change.metric.name for change in found.changes] == ["idk_rate", "thumbs_ratio"]
    alone = [online_metrics(log, name, by="day").changes[0].p for name in ("idk_rate", "thumbs_ratio")]
    assert [change.p for change in found.changes] == pytest.approx(holm(alone).tolist())


def test_daily_sums_are_those_of_users(folder):
    """The p-value is that of sums by user and day, computed by a loop over events."""
    events = daily([0.1, 0.2, 0.12, 0.18, 0.15, 0.25, 0.2, 0.3, 0.22, 0.28], user="u{n}")
    y, x = np.zeros((30, 10)), np.zeros((30, 10))
    names = sorted({event.user_id for event in events})
    for event in events:
        cell = names.index(event.user_id), (event.time - START).days
        x[cell] += 1
        y[cell] += event.text.startswith("I don")
    (change,) = online_metrics(write_events(folder / "log.parquet", events), "idk_rate", by="day").changes
    days = np.arange(10) + START.toordinal() - 1
    assert change.p == first_change(DailySums.of(y, x, days))


def test_without_a_change_the_table_says_what_could_be_missed(folder):
    log = write_events(folder / "log.parquet", daily([0.1, 0.12] * 5))
    for by in ("day", "week"):
        text = " ".join(str(online_metrics(log, "idk_rate", by=by)).split())
        assert "no shift found; linear trend from first to last day (95% interval; assumes" in text
        assert "weeks were not compared: this requires user_id and at least 5 weeks" in text
