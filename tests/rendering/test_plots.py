"""Content of each plot, compared with plain counts."""

import math
import statistics
from datetime import date

import numpy as np
import pytest
import scipy.stats

import rankgauge
from rankgauge import InputError, Run, UnknownName, compare, evaluate, plot
from rankgauge.rendering import PLOTS, plot_history
from rankgauge.rendering.plots import plot_measures

QRELS = rankgauge.read_qrels(rankgauge.sample_path("qrels.txt"))
RUNS = [rankgauge.read_run(rankgauge.sample_path(f"runs/{n}.run")) for n in ("bm25", "keyword")]
COMPARISON = compare(QRELS, RUNS)
BM25, KEYWORD = COMPARISON.evaluations


def values(evaluation, name):
    return [evaluation.value(query, name) for query in evaluation.query_ids]


def series(shown, panel=0):
    return {s.name: s for s in shown.panels[panel].series}


@pytest.mark.parametrize("kind", PLOTS)
def test_every_kind_is_drawn_with_a_description(kind):
    needed = plot_measures(kind)
    shown = [evaluate(QRELS, run, needed) for run in RUNS] if needed else COMPARISON
    drawn = plot(shown, kind)
    assert drawn.kind == kind
    assert drawn.svg().count("<svg") == 1
    assert drawn.alt.endswith(".")
    assert len(drawn.alt) > 40


def test_means_have_t_intervals():
    drawn = series(plot(COMPARISON, "means"))["bm25"]
    names = plot(COMPARISON, "means").panels[0].ticks
    assert names == tuple(map(str, BM25.measures))
    for name, y, low, high in zip(names, drawn.y, drawn.low, drawn.high, strict=True):
        known = values(BM25, name)
        assert y == BM25.mean()[name] == pytest.approx(statistics.fmean(known))
        wanted = scipy.stats.t.interval(0.95, len(known) - 1, statistics.fmean(known), scipy.stats.sem(known))
        assert (low, high) == pytest.approx((max(0, wanted[0]), min(1, wanted[1])))


def test_a_mean_that_is_no_plain_mean_has_no_interval():
    weighted = evaluate(QRELS, RUNS[0], ["RR"], weights=dict.fromkeys(QRELS, 2.0))
    for shown in (weighted, evaluate(QRELS, RUNS[0], ["GMAP"]), evaluate({"q": {"d"}}, {"q": ["d"]}, "RR")):
        (drawn,) = plot(shown).panels[0].series
        assert drawn.low == drawn.high == drawn.y


def test_measures_on_another_scale_are_not_plotted_with_proportions():
    ev = evaluate(QRELS, RUNS[0], ["NumRet", "RR", "DCG@5"])
    assert plot(ev).panels[0].ticks == ("RR",)
    assert "1 of 3 measures is drawn." in plot(ev).caption
    assert plot(evaluate(QRELS, RUNS[0], ["NumRet"])).panels[0].ticks == ("NumRet",)


def test_differences_are_those_of_the_comparison():
    drawn = plot(COMPARISON, "differences").panels[0]
    (only,) = drawn.series
    for name, y, low, high in zip(drawn.ticks, only.y, only.low, only.high, strict=True):
        found = COMPARISON.difference("keyword", name)
        assert (y, low, high) == (found.difference, found.low, found.high)
    assert only.texts[0] == "-0.163 worse"
    with pytest.raises(InputError, match="shows a comparison"):
        plot([BM25, KEYWORD], "differences")


def test_differences_by_query_are_sorted_and_counted():
    drawn = plot(COMPARISON, "per-query")
    pairs = zip(values(KEYWORD, "nDCG@10"), values(BM25, "nDCG@10"), strict=True)
    apart = sorted((one - other for one, other in pairs), reverse=True)
    (only,) = drawn.panels[0].series
    assert only.y == pytest.approx(apart)
    found = COMPARISON.difference("keyword")
    assert only.texts == (
        f"better in {found.wins} queries",
        f"worse in {found.losses} queries, the same in {found.ties}",
    )
    turned = plot([KEYWORD, BM25], "per-query", measure="nDCG@10").panels[0].series[0]
    assert turned.y == pytest.approx([-y for y in reversed(apart)])
    assert plot(COMPARISON, "per-query", baseline="keyword").panels[0].series[0].y == turned.y


def test_where_lower_is_better_a_gain_is_below_zero():
    runs = {"old": {"q": ["x", "d"], "p": ["d"]}, "new": {"q": ["d"], "p": ["d"]}}
    compared = compare({"q": {"d"}, "p": {"d"}}, runs, "FirstRel")
    (only,) = plot(compared, "per-query").panels[0].series
    assert only.y == (0.0, -1.0)
    assert only.texts == ("worse in 0 queries", "better in 1 query, the same in 1")


def test_precision_over_recall_is_the_mean_of_interpolated_precision():
    evs = [evaluate(QRELS, run, "IPrec") for run in RUNS]
    drawn = series(plot(evs, "precision-recall"))
    for ev in evs:
        assert drawn[ev.run_name].x == pytest.approx([n / 10 for n in range(11)])
        for at, y in zip(drawn[ev.run_name].x, drawn[ev.run_name].y, strict=True):
            plain = [interpolated(QRELS[q], ev.run_name, q, at) for q in ev.query_ids]
            assert y == pytest.approx(statistics.fmean(plain))


def interpolated(grades, name, query, recall):
    """From the definition: the highest precision at any rank with at least this recall."""
    run = next(run for run in RUNS if run.name == name)
    relevant = {doc for doc, grade in grades.items() if grade >= 1}
    ranking = list(rankgauge.data.ranked(run).get(query, {}))
    best = 0.0
    for k in range(1, len(ranking) + 1):
        hits = len(relevant.intersection(ranking[:k]))
        if hits >= math.floor(recall * len(relevant) + 0.9):
            best = max(best, hits / k)
    return best


def test_cut_offs_are_in_order_with_the_means():
    ev = evaluate(QRELS, RUNS[0], ["nDCG@10", "R@20", "R@5", "nDCG@1", "P@5", "R@100", "RR"])
    drawn = plot(ev, "cutoffs")
    assert [panel.title for panel in drawn.panels] == ["R@k", "nDCG@k"]
    (recall,) = drawn.panels[0].series
    assert recall.x == (5, 20, 100)
    assert recall.y == tuple(ev.mean()[f"R@{k}"] for k in (5, 20, 100))
    with pytest.raises(InputError, match="needs a measure at several cut-offs"):
        plot(evaluate(QRELS, RUNS[0], ["R@5", "P@10"]), "cutoffs")
    default = evaluate(QRELS, RUNS[0])
    assert default.plot("cutoffs").panels[0].series[0].x == (1, 3, 5, 10)


def test_first_ranks_are_counted():
    ev = evaluate(QRELS, RUNS[0], "FirstRel")
    panel = plot(ev, "first-ranks").panels[0]
    counts = dict(zip(panel.ticks, panel.series[0].y, strict=True))
    order = rankgauge.data.ranked(RUNS[0])
    plain = dict.fromkeys(panel.ticks, 0)
    for query, grades in QRELS.items():
        places = [n for n, doc in enumerate(order[query], 1) if grades.get(doc, 0) >= 1]
        first = min(places, default=None)
        for tick in panel.ticks:
            ends = [int(end) for end in tick.split("–")] if tick != "none" else []
            if (first is None and not ends) or (first and ends and ends[0] <= first <= ends[-1]):
                plain[tick] += 1
    assert counts == plain
    assert sum(counts.values()) == 30


def test_the_heat_map_has_the_queries_where_runs_differ_most():
    drawn = plot(COMPARISON, "heat-map")
    assert set(drawn.panels[0].ticks) == set(BM25.query_ids)
    for ev in (BM25, KEYWORD):
        for query, y in zip(drawn.panels[0].ticks, series(drawn)[ev.run_name].y, strict=True):
            assert y == ev.value(query, "nDCG@10")
    many = {f"q{n:03}": {"d": 1} for n in range(100)}
    one = {query: ["d"] for query in many}
    other = one | {"q050": ["x"], "q099": ["x", "d"]}
    drawn = plot(compare(many, {"a": one, "b": other}, "RR"), "heat-map")
    assert drawn.panels[0].ticks[:2] == ("q050", "q099")
    assert len(drawn.panels[0].ticks) == 40
    assert "over runs is first. 40 of 100 queries are drawn" in drawn.caption


def test_undefined_values_count_as_in_the_mean_or_are_left_out():
    qrels, run = {"q": {"d": 1}, "none": {"d": 0}}, {"q": ["d"], "none": ["d"]}
    counted = plot(evaluate(qrels, run, "RR"), "heat-map").panels[0]
    assert dict(zip(counted.ticks, counted.series[0].texts, strict=True)) == {"none": "0", "q": "1"}
    skipped = plot(evaluate(qrels, run, "RR", undefined="skip"), "heat-map").panels[0]
    assert skipped.ticks == ("q",)


def test_the_order_of_queries_changes_no_plot():
    turned = dict(reversed(list(QRELS.items())))
    for kind in ("means", "per-query", "first-ranks", "cutoffs"):
        names = plot_measures(kind) or ["nDCG@10", "RR"]
        drawn = [plot([evaluate(q, r, names) for r in RUNS], kind) for q in (QRELS, turned)]
        for one, other in zip(*(p.panels for p in drawn), strict=True):
            for a, b in zip(one.series, other.series, strict=True):
                np.testing.assert_allclose(a.y, b.y)


def test_a_history_is_spaced_by_time_and_names_ten_dates_at_most():
    dates = [date(2024, 1, 1), date(2024, 1, 3), date(2024, 2, 1)]
    drawn = plot_history(dates, [0.5, 0.25, 0.75], [0.4, 0.2, 0.7], [0.6, 0.3, 0.8], measure="RR")
    assert drawn.panels[0].series[0].x == (0.0, 2.0, 31.0)
    assert drawn.panels[0].series[0].low == (0.4, 0.2, 0.7)
    assert drawn.svg() == drawn.svg()
    long = plot_history([f"v{n}" for n in range(95)], [0.5] * 95)
    assert long.panels[0].series[0].x == tuple(range(95))
    assert len(long.panels[0].ticks) <= 10
    assert long.panels[0].ticks[-1] == "v94"
    one = plot_history(["2024-01-01"], [0.5])
    assert one.svg()


@pytest.mark.parametrize(
    ("dates", "means", "low", "high"),
    [([], [], [], []), (["a"], [1, 2], [], []), (["a"], [1], [0], []), (["a"], [1], [0, 1], [1, 1])],
)
def test_a_history_of_lists_that_do_not_fit_is_refused(dates, means, low, high):
    with pytest.raises(InputError, match="pass one mean per date"):
        plot_history(dates, means, low, high)


def test_errors_are_reported():
    with pytest.raises(UnknownName, match="unknown plot 'mean'"):
        plot(COMPARISON, "mean")
    with pytest.raises(UnknownName, match="unknown plot 'nope'"):
        plot_measures("nope")
    with pytest.raises(UnknownName, match="unknown run 'nope'"):
        plot(COMPARISON, "per-query", baseline="nope")
    for nothing in ([], [1], 3, None):
        with pytest.raises(InputError, match="there is no evaluation to plot"):
            plot(nothing)
    with pytest.raises(InputError, match=r"plot_measures\('precision-recall'\)"):
        BM25.plot("precision-recall")
    with pytest.raises(InputError, match="need two runs"):
        BM25.plot("per-query")
    with pytest.raises(InputError, match="AP was not evaluated"):
        BM25.plot("heat-map", measure="AP")
    other = evaluate({"q9": {"d"}}, Run.of({"q9": ["d"]}, name="other"), "nDCG@10")
    with pytest.raises(InputError, match="on different queries"):
        plot([BM25, other], "heat-map")


def test_queries_that_one_run_leaves_out_are_no_step():
    qrels = {f"q{n}": {"d": 1} for n in range(5)}
    one = evaluate(qrels, Run.of({q: ["x", "d"] for q in qrels}, name="one"), "FirstRel")
    two = evaluate(qrels, Run.of({"q0": ["d"], "q1": ["x", "d"]}, name="two"), "FirstRel")
    assert plot([one, two], "per-query").panels[0].series[0].y == (0.0, -1.0)
