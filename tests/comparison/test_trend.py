"""A measure over time: intervals, breaks, and a gradual decline."""

import math
import subprocess
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
import scipy.stats
from browser import Tab

from rankgauge import History, InputError, evaluate, stats
from rankgauge.comparison import trend_of

QRELS = {f"q{n:02}": {"d1": 1} for n in range(40)}
NAMES = list(QRELS)


def lost(*slipped: int) -> dict[str, list[str]]:
    """Return a run with the relevant document first, or second for these queries."""
    return {q: ["x", "d1"] if n in slipped else ["d1"] for n, q in enumerate(NAMES)}


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "history.db") as opened:
        yield opened


def keep(history, run, measures=("RR",), qrels=None, label="", **choices):
    judged = QRELS if qrels is None else qrels
    evaluation = evaluate(judged, run, list(measures), **choices)
    return history.add(evaluation, judged, label=label)


def follow(history, *runs, measure="RR"):
    for run in runs:
        keep(history, run, (measure,))
    return trend_of(history, measure)


def test_points_have_the_mean_and_the_interval_of_scipy(history):
    trend = follow(history, lost(), lost(*range(8)))
    values = [0.5] * 8 + [1.0] * 32
    low, high = scipy.stats.t.interval(0.95, 39, np.mean(values), scipy.stats.sem(values))
    assert trend.means == (1.0, pytest.approx(0.9))
    # Older versions of scipy compute quantiles to only nine digits.
    assert (trend.points[1].low, trend.points[1].high) == pytest.approx((low, high), rel=1e-8)
    assert (trend.points[0].low, trend.points[0].high) == (1.0, 1.0)
    assert trend.breaks == ()


def test_the_interval_of_a_sum_is_that_of_the_mean_times_the_queries(history):
    trend = follow(history, lost(1, 2, 3), measure="NumRet")
    values = [2.0] * 3 + [1.0] * 37
    low, high = scipy.stats.t.interval(0.95, 39, np.mean(values), scipy.stats.sem(values))
    assert trend.means == (43.0,)
    assert (trend.points[0].low, trend.points[0].high) == pytest.approx((40 * low, 40 * high))


def test_there_is_no_interval_of_one_query_of_weights_or_of_a_geometric_mean(history):
    keep(history, lost(), queries=NAMES[:1])
    keep(history, lost(1), weights=dict.fromkeys(NAMES, 2.0))
    assert all(map(math.isnan, (point.low for point in trend_of(history, "RR").points)))
    keep(history, lost(1), ("GMAP",))
    assert all(map(math.isnan, (point.high for point in trend_of(history, "GMAP").points)))
    assert "no interval: a single query, weighted means, or a geometric mean" in (trend_of(history, "GMAP").notes)


def test_runs_of_other_names_are_no_change_in_time(history):
    for number, lost_queries in enumerate((0, 20, 4, 20)):
        evaluation = evaluate(QRELS, lost(*range(lost_queries)), "RR")
        name = ("a", "b")[number % 2]
        history.add(replace(evaluation, run_name=name), QRELS)
    trend = trend_of(history, "RR")
    assert [point.entry.id for point in trend.points] == [1, 3, 2, 4]
    changes = [point.change and point.change.difference for point in trend.points]
    assert changes == [None, pytest.approx(-0.05), None, 0]
    assert trend.points[2].breaks == ("another run (b)",)
    assert trend.warnings == ()
    assert trend.summary() == "RR of a#3: 0.9500, b#4: 0.7500"


def test_points_keep_their_order_and_a_run_can_be_picked(history):
    for day, name in ((3, "a"), (1, "b"), (2, "a")):
        evaluation = evaluate(QRELS, lost(day), "RR")
        history.add(
            evaluation.__class__(**{**vars_of(evaluation), "run_name": name}),
            QRELS,
            time=datetime(2026, 1, day, tzinfo=UTC),
        )
    assert [date.day for date in trend_of(history, "RR").dates] == [3, 2, 1]
    assert [date.day for date in trend_of(history, "RR", run="a").dates] == [3, 2]
    assert "2 runs, each tracked separately ('a', 'b'); choose one with --run" in (trend_of(history, "RR").notes)
    with pytest.raises(InputError, match=r"no saved evaluation of a run 'c'\nfix: runs are: a, b"):
        trend_of(history, "RR", run="c")


def vars_of(evaluation):
    return {name: getattr(evaluation, name) for name in type(evaluation).__dataclass_fields__}


def test_a_measure_that_no_entry_has_is_reported(history):
    keep(history, lost())
    with pytest.raises(InputError, match=r"no saved evaluation has AP\nfix: saved measures: RR"):
        trend_of(history, "AP")


# ---- breaks in a line


def test_other_judgments_policies_and_queries_break_the_line(history):
    graded = {query: {"d1": 2} for query in QRELS}
    keep(history, lost())
    keep(history, lost(), qrels=graded)
    keep(history, lost(), qrels=graded, ties="input")
    keep(history, lost(), qrels=graded, ties="input", queries=NAMES[:20])
    keep(history, lost(), qrels=graded, ties="input", queries=NAMES[:20][::-1])
    trend = trend_of(history, "RR")
    assert trend.breaks == (1, 2, 3)
    assert [text.partition(" (")[0] for point in trend.points for text in point.breaks] == [
        "different judgments",
        "different policies",
        "different queries",
    ]
    assert [point.change is None for point in trend.points] == [True, True, True, True, False]
    assert "4 segments that are not comparable with each other" in trend.notes
    assert sum("not comparable" in str(row) for row in trend.table().rows) == 3


def test_no_decline_is_reported_across_a_break(history):
    graded = {query: {"d1": 2} for query in QRELS}
    keep(history, lost())
    keep(history, lost(*range(40)), qrels=graded)
    assert trend_of(history, "RR").warnings == ()


# ---- decline


def test_a_slow_decline_is_seen_though_no_step_shows_it(history):
    trend = follow(history, *(lost(*range(n)) for n in (0, 2, 4, 6, 8)))
    assert not any(point.change.is_worse for point in trend.points[1:])
    (warning,) = trend.warnings
    moved = [-0.5] * 8 + [0.0] * 32
    low, high = stats.mean_interval(moved, 0.975)
    assert warning == (
        f"slow decline: run#5 is worse than run#1 by RR: -0.100 (97.5% interval {low:+.3f} "
        f"to {high:+.3f}); none of the 4 steps is significant by itself"
    )


def test_a_decline_from_the_best_is_corrected_for_the_number_of_entries(history):
    first = lost(*range(20))
    trend = follow(history, first, lost(), lost(30), lost(*range(10)))
    (warning,) = trend.warnings
    moved = [-0.5] * 10 + [0.0] * 30
    low, high = stats.mean_interval(moved, 1 - 0.025 / 3)
    assert f"is worse than run#2 by RR: -0.125 (99.17% interval {low:+.3f} to {high:+.3f})" in (warning)


def test_a_significant_step_is_named(history):
    trend = follow(history, lost(), lost(1), lost(*range(20)), lost(*range(19)))
    (warning,) = trend.warnings
    assert "slow decline" not in warning
    assert warning.endswith("; it fell from 2 to 3 (-0.237)")


def test_a_recovery_is_not_a_decline(history):
    assert follow(history, lost(), lost(*range(20)), lost(1)).warnings == ()


def test_a_rise_and_noise_are_no_decline(history):
    assert follow(history, lost(*range(20)), lost(*range(10)), lost(3)).warnings == ()
    assert follow(history, lost(1, 2), lost(3, 4), lost(5, 6)).warnings == ()


def test_where_lower_is_better_a_rise_is_the_decline(history):
    runs = (lost(), lost(*range(20)))
    assert "is worse than run#1" in follow(history, *runs, measure="FirstRel").warnings[0]
    assert follow(history, *runs[::-1], measure="FirstRel").warnings == ()


def test_a_count_that_is_neither_good_nor_bad_has_no_decline(history):
    assert follow(history, lost(*range(40)), lost(), measure="NumRet").warnings == ()


@pytest.mark.slow
def test_false_warnings_are_as_rare_as_promised(tmp_path):
    """Twelve equal evaluations: at most about 2.5% may warn at the end.

    Only the warnings are computed: a store, and the intervals and steps of a trend, would take
    minutes.
    """
    from rankgauge import parse
    from rankgauge.comparison.trend import TrendPoint, _decline

    measure = parse("RR")
    with History(tmp_path / "h.db") as history:
        entry = keep(history, lost())
    base = evaluate(QRELS, lost(), "RR")
    rng = np.random.default_rng(7)
    warned = 0
    for drawn in range(400):
        found, points = [], []
        for number in range(12):
            values = rng.beta(2, 2, size=(40, 1))
            mean = float(values.mean())
            known = replace(entry, id=number + 1, means={"RR": mean})
            found.append((known, replace(base, per_query=values)))
            points.append(TrendPoint(known, mean, math.nan, math.nan, None, ()))
        if not drawn:
            with History(tmp_path / "drawn.db") as kept:
                for _, evaluation in found:
                    kept.add(evaluation)
                whole = trend_of(kept, measure)
            assert whole.warnings == (*_decline(points, found),)
            assert whole.means == pytest.approx([point.mean for point in points])
        warned += any(_decline(points, found))
    # 400 draws with 2.5%: 22 or more occur by chance once in a thousand.
    assert warned <= 21


def test_the_commits_between_are_named(tmp_path, monkeypatch):
    def git(*words):
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    git("init", "-q")
    monkeypatch.chdir(tmp_path)
    commits = []
    with History(tmp_path / "history.db") as history:
        for run in (lost(), lost(*range(20))):
            (tmp_path / "a").write_text(str(len(commits)), encoding="utf-8")
            git("add", "a")
            git("commit", "-qm", "a")
            commits.append(git("rev-parse", "HEAD"))
            entry = keep(history, run)
            assert (entry.commit, entry.dirty) == (commits[-1], False)
        (tmp_path / "a").write_text("changed", encoding="utf-8")
        assert keep(history, lost(*range(20))).made_at == commits[-1][:8] + "*"
        warning = trend_of(history, "RR").warnings[0]
    assert f"commits {commits[0][:8]}..{commits[1][:8]}" in warning


# ---- output


def test_the_plot_has_one_scale(history):
    trend = follow(history, lost(*range(20)), lost(*range(10)))
    table = trend.table()
    place = next(n for n, name in enumerate(table.columns) if "  " in name)
    drawn = [row[place] for row in table.rows]
    assert all(text.count("|") == 2 and text.count("o") == 1 for text in drawn)
    assert all(text.index("|") < text.index("o") < text.rindex("|") for text in drawn)
    assert drawn[0].index("|") == 0
    assert len(drawn[1]) == 20
    assert table.columns[place].split() == [
        f"{min(point.low for point in trend.points):.3g}",
        f"{max(point.high for point in trend.points):.3g}",
    ]


def test_the_latest_can_be_shown_while_warnings_are_about_all(history):
    trend = follow(history, *(lost(*range(n)) for n in (0, 2, 4, 6, 8)))
    table = trend.table(2)
    assert [row[0] for row in table.rows] == [4, 5]
    assert "the latest 2 of 5 are shown" in table.notes
    assert any("slow decline" in note for note in table.notes)


def test_one_evaluation_and_equal_values_can_be_shown(history):
    trend = follow(history, lost())
    assert trend.table().rows[0][0] == 1
    assert trend.data_table().rows[0][7:10] == (1.0, 1.0, 1.0)
    assert "identical" in follow(history, lost()).table().rows[1]
    assert trend._repr_html_().startswith("<table")


_PLACES = """[...document.querySelectorAll('tbody td')].flatMap(cell => {
  const at = (cell.firstChild?.data || '').search(/(?<![a-z])o(?![a-z])/);
  if (at < 0) return [];
  const range = document.createRange();
  range.setStart(cell.firstChild, at);
  range.setEnd(cell.firstChild, at + 1);
  const found = range.getBoundingClientRect();
  return [found.left + found.width / 2];
})"""


@pytest.mark.slow
def test_a_browser_draws_each_mean_at_its_place(history, tmp_path):
    trend = follow(history, lost(), lost(*range(30)), lost(*range(10)), lost(*range(20)))
    page = tmp_path / "trend.html"
    # Notebooks align the text of cells to the right.
    page.write_text(f"<style>td, th {{text-align: right}}</style>{trend.to_html()}", "utf-8")
    tab = Tab(tmp_path / "profile")
    try:
        tab.open(page)
        places = tab.run(_PLACES)
        width = tab.run("innerWidth")
    finally:
        tab.close()
    slope, _, correlation, *_ = scipy.stats.linregress(trend.means, places)
    assert 0 < slope < width
    assert correlation > 0.99


def test_steps_that_are_significant_only_without_correction_are_not_named(history):
    # Eight of forty fall by 1/2 and one rises: t = 2.3, significant at 5% but not at 5% / 4.
    steps = [lost(*range(max(0, n - 1), 8 * n)) for n in range(1, 5)]
    trend = follow(history, lost(39), *steps)
    assert all(point.change.is_worse for point in trend.points[1:])
    assert "none of the 4 steps is significant by itself" in trend.warnings[0]


def test_a_plot_is_spaced_by_date_and_broken_where_nothing_is_compared(history):
    more = {**QRELS, "new": {"d1": 1}}
    for day, run, qrels in ((1, lost(), QRELS), (3, lost(1, 2), QRELS), (9, lost(1), more)):
        made = evaluate(qrels, run, "RR")
        history.add(made, qrels, time=datetime(2026, 1, day, 12, tzinfo=UTC))
    trend = trend_of(history, "RR")
    plot = trend.plot()
    (line,) = plot.panels[0].series
    assert line.x == (0.0, 2.0, 8.0, 8.0)
    assert [math.isnan(y) for y in line.y] == [False, False, True, False]
    assert (line.y[:2], line.y[3]) == (trend.means[:2], trend.means[2])
    assert (line.low[:2], line.high[3]) == (tuple(point.low for point in trend.points[:2]), trend.points[2].high)
    assert plot.panels[0].ticks == ("2026-01-01", "2026-01-03", "2026-01-09")
    assert plot.panels[0].at == (0.0, 2.0, 8.0)
    assert "it is broken once" in plot.alt
    assert "cannot be compared across the gap" in plot.caption
    assert plot.svg()
    assert trend.plot(1).panels[0].series[0].y == trend.means[2:]


@pytest.mark.parametrize("days", [(5, 5), (6, 5)])
def test_a_plot_of_evaluations_whose_dates_do_not_rise_is_spaced_evenly(history, days):
    for number, day in enumerate(days, start=1):
        time = datetime(2026, 1, day, tzinfo=UTC)
        history.add(evaluate(QRELS, lost(number), "GMAP"), QRELS, time=time)
    plot = trend_of(history, "GMAP").plot()
    (line,) = plot.panels[0].series
    assert (line.x, line.low) == ((0.0, 1.0), ())
    assert plot.panels[0].ticks == (f"1: 01-0{days[0]}", "2: 01-05")
