"""gate() and GateResult: three verdicts from paired gains, and additional limits."""

import json
import math
import pickle
import re
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from gating import LATENCY, OLD, QRELS, RUNS, jittered
from hypothesis import given, settings, strategies as st
from schemas import strict
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests

from rankgauge import Baseline, Evaluation, GateRules, InputError, evaluate, gate, stats
from rankgauge.gates import update_baseline
from rankgauge.gates.non_inferiority import (
    decide,
    queries_to_decide,
    testable_margin as margin_tested,
    untestable_margins,
)
from rankgauge.stats import non_inferiority

RR = {"measures": {"RR": {"margin": 0.03}}}


def _apart(one: str, other: str, measure: str = "nDCG@10") -> np.ndarray:
    values = [evaluate(QRELS, RUNS[name], measure).per_query[:, 0] for name in (one, other)]
    return values[0] - values[1]


def _bounds(apart: np.ndarray, level: float = 0.95, upper: float = 0.99) -> tuple[float, float]:
    """Return one-sided bounds of the mean, by SciPy and a loop over shares of unseen queries."""
    return _lower(apart, level), -_lower(-apart, upper)


def _lower(apart: np.ndarray, level: float) -> float:
    n, mean, error = len(apart), apart.mean(), apart.std(ddof=1) / math.sqrt(len(apart))
    shares = np.linspace(0, 1 - (1 - level) ** (1 / n), 4000, endpoint=False)
    quantiles = scipy_stats.t(n - 1).ppf(1 - (1 - level) / (1 - shares) ** n)
    collapsed = (1 - shares) * (mean - quantiles * error) - shares
    return min(collapsed.min(), stats.mean_lower_bound(apart, level, -1.0))


def _with(**changes):
    return {"measures": {"nDCG@10": {"margin": 0.02}}, **changes}


# ---- the decision


@pytest.mark.parametrize(("run", "verdict"), [("s0", "FAIL"), ("s1", "IDENTICAL"), ("s2", "PASS")])
def test_a_worse_run_fails_and_a_better_one_passes(run, verdict):
    assert gate(QRELS, RUNS[run], baseline=OLD).verdict == verdict


def test_bounds_and_p_value_allow_for_every_share_of_unseen_queries():
    numbers = gate(QRELS, RUNS["s0"], baseline=OLD).checks[0].numbers
    apart = _apart("s0", "s1")
    lower, upper = _bounds(apart)
    assert numbers.upper == pytest.approx(upper, abs=2e-4)
    assert numbers.lower == pytest.approx(lower, abs=2e-4)
    assert numbers.gain == pytest.approx(apart.mean(), rel=1e-12)
    # At the level of the p-value, the upper bound is 0.
    assert _bounds(apart, upper=1 - numbers.p_worse)[1] == pytest.approx(0, abs=2e-4)
    assert (numbers.wins, numbers.ties, numbers.losses) == (
        (apart > 1e-12).sum(),
        (abs(apart) <= 1e-12).sum(),
        (apart < -1e-12).sum(),
    )


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(3, 60), st.floats(-0.1, 0.1), st.floats(0.001, 0.1))
def test_decisions_use_the_correction_of_statsmodels(seed, measures, queries, shift, margin):
    rng = np.random.default_rng(seed)
    columns = [rng.normal(shift, 0.1, queries) for _ in range(measures)]
    founds = decide(columns, [margin] * measures, [(-1.0, 1.0)] * measures)
    raw = [stats.non_inferiority(c, margin, highest=1.0).p_worse for c in columns]
    assert all(
        p >= scipy_stats.ttest_1samp(c, 0, alternative="less").pvalue * (1 - 1e-8)
        for p, c in zip(raw, columns, strict=True)
    )
    reject = multipletests(raw, alpha=0.01, method="holm")[0]
    for column, worse, found in zip(columns, reject, founds, strict=True):
        lower = _bounds(column)[0]
        if abs(lower + margin) < 1e-3:
            continue  # the bound of the loop is not exact
        usual = stats.mean_lower_bound(column, lowest=-1.0) > -margin
        wanted = "PASS unless rare collapse" if usual else "INCONCLUSIVE"
        assert found.verdict == "PASS" if lower > -margin else "FAIL" if worse else wanted
        # The printed bound agrees with the corrected p-value.
        assert (found.bounds.upper < 0) == worse
        assert 0.99 - 1e-12 <= found.bounds.upper_level <= 1 - 0.01 / measures + 1e-12


@pytest.mark.parametrize("name", ["R@1", "DCG@10"])
def test_a_margin_as_large_as_the_mean_of_the_baseline_is_refused(name):
    mean = evaluate(QRELS, RUNS["s1"], name).mean()[name]
    rules = {"measures": {name: {"margin": mean}}}
    baseline = Baseline.from_run(QRELS, RUNS["s1"], rules)
    with pytest.raises(InputError, match="every run passes"):
        gate(QRELS, RUNS["s1"], rules, baseline=baseline)


def test_values_that_are_the_same_pass_whatever_the_margin():
    found = gate(QRELS, RUNS["s1"], {"measures": {"nDCG@10": {"margin": 1e-9}}}, baseline=OLD)
    assert found.verdict == "IDENTICAL"
    assert found.exit_code(strict=True) == 0
    assert "up to 4.9% of unseen queries could still differ" in found.checks[0].sentence
    assert found.checks[0].numbers.p_worse == 1.0


def test_a_wide_interval_is_inconclusive_with_the_queries_needed():
    qrels = {f"q{n}": {"d"} for n in range(40)}
    old = Baseline.from_run(qrels, {q: ["d", "x"] for q in qrels}, RR)
    new = {q: ["x", "d"] if n < 2 else ["d", "x"] for n, q in enumerate(qrels)}
    check = gate(qrels, new, RR, baseline=old).checks[0]
    lower = stats.mean_lower_bound([-0.5] * 2 + [0.0] * 38, lowest=-1.0)
    assert round(lower, 4) == -0.1029
    assert check.verdict == "INCONCLUSIVE"
    assert check.sentence == (
        "RR: the new run is between 0.103 worse and 0.091 better than the baseline; a loss "
        "above your margin of 0.03 cannot be excluded; needs about 300 queries (260 more of this "
        "kind)"
    )
    for margin, passes in ((0.103, True), (0.1025, False)):
        rules = {"measures": {"RR": {"margin": margin}}}
        assert (gate(qrels, new, rules, baseline=old).verdict == "PASS") == passes


def test_a_certain_loss_fails_although_only_rare_collapses_prevent_pass():
    gains = -0.018 + 0.0005 * (-1.0) ** np.arange(300)
    (found,) = decide([gains], [0.02], [(-1.0, 1.0)])
    assert found.bounds.not_inferior_unless_rare
    assert (found.verdict, found.bounds.not_inferior) == ("FAIL", False)
    # With two more measures, p is three times as large: 0.014.
    same = np.zeros(300)
    of_three = decide([same, gains, same], [0.02] * 3, [(-1.0, 1.0)] * 3)[1]
    assert (of_three.verdict, of_three.p_worse) == ("PASS unless rare collapse", 3 * found.p_worse)


def test_the_number_of_queries_that_would_decide_is_the_smallest():
    """Independent check: a loop over n, for samples with this mean and spread."""
    gains = np.array([0.2, -0.1, 0.1, -0.2, 0.03])
    found = queries_to_decide(non_inferiority(gains, 0.05, lowest=-1.0), 5)
    sd, mean = np.std(gains, ddof=1), np.mean(gains)

    def reached(n):
        shares = np.linspace(0, 1 - 0.05 ** (1 / n), 2000, endpoint=False)
        quantiles = scipy_stats.t(n - 1).ppf(1 - 0.05 / (1 - shares) ** n)
        error = sd / math.sqrt(n)
        lower = ((1 - shares) * (mean - quantiles * error) - shares).min()
        return lower - scipy_stats.norm.ppf(0.8) * error + 0.05

    assert reached(found) >= -1e-4
    assert reached(found - 2) < 1e-4


def test_the_queries_needed_without_a_change_decide_the_gate():
    """Independent check: Clopper and Pearson's bound for 0 losses in n queries, from SciPy."""
    needed = queries_to_decide(non_inferiority(np.zeros(30), 0.02, lowest=-1.0), 30)
    assert needed == next(n for n in range(2, 10_000) if scipy_stats.beta.ppf(0.95, 1, n) <= 0.02)
    for queries, passes in ((needed, True), (needed - 1, False)):
        assert (non_inferiority(np.zeros(queries), 0.02, lowest=-1.0).lower > -0.02) == passes


def test_up_to_ten_million_queries_are_stated():
    """Independent check: the normal approximation, exact for so many queries."""
    gains = np.array([0.5, -0.5] * 50)
    normal = scipy_stats.norm.ppf(0.8) + scipy_stats.norm.ppf(0.95)
    for margin in (0.0005, 0.00041, 0.00039):
        needed = (normal * np.std(gains, ddof=1) / margin) ** 2
        found = queries_to_decide(non_inferiority(gains, margin, lowest=-1.0), 100)
        assert found is None if needed > 1e7 else found == pytest.approx(needed, rel=0.02)


def test_a_loss_at_which_more_queries_would_fail_is_counted_by_the_upper_bound():
    """The mirrored case: FAIL needs as many queries as PASS of the opposite gains at its level."""
    gains = np.array([-0.2, 0.1, -0.1, 0.0, -0.05, -0.1])
    found = queries_to_decide(non_inferiority(gains, 0.02, lowest=-1.0, highest=1.0), 6)
    opposite = non_inferiority(-gains, 0.0, 0.99, lowest=-1.0)
    assert found == queries_to_decide(opposite, 6)


def test_a_loss_above_the_margin_that_is_not_significant_is_suspect():
    qrels = {f"q{n}": {"d"} for n in range(30)}
    old = Baseline.from_run(qrels, {q: ["d"] for q in qrels}, _with(depth="any"))
    new = {q: ["d"] if n > 1 else ["x"] for n, q in enumerate(qrels)}
    found = gate(qrels, new, _with(depth="any"), baseline=old)
    assert found.verdict == "INCONCLUSIVE"
    assert found.checks[0].note == "suspicious: the observed loss (0.067) is above the margin"


def test_worse_but_within_the_margin_passes_with_a_note():
    rules = {"measures": {"nDCG@10": {"margin": 0.3}}}
    found = gate(QRELS, RUNS["s0"], rules, baseline=OLD)
    assert found.verdict == "PASS"
    assert found.checks[0].note.startswith("worse than the baseline, but within the margin")


def test_small_losses_that_add_up_are_seen_by_the_anchor():
    qrels = {f"q{n}": {"d"} for n in range(100)}
    rules = {"measures": {"RR": {"margin": 0.05}}, "depth": "any"}

    def level(bad):  # every query loses a little
        return {q: ["d"] if n >= bad else ["x", "d"] for n, q in enumerate(qrels)}

    release = Baseline.from_run(qrels, level(0), rules)
    last = release
    verdicts = []
    for bad in range(0, 20, 2):
        run = level(bad)
        verdicts.append(gate(qrels, run, rules, baseline=last, anchor=release))
        last = Baseline.from_run(qrels, run, rules)
    assert {found.checks[0].verdict for found in verdicts} == {"IDENTICAL", "PASS"}
    assert verdicts[-1].checks[1].kind == "anchor"
    assert verdicts[-1].verdict == "FAIL"


def test_an_anchor_is_written_with_the_first_baseline_and_sums_up_losses(tmp_path):
    qrels = {f"q{n}": {"d"} for n in range(200)}
    rules, path = {"measures": {"RR": {"margin": 0.05}}}, tmp_path / "base.json"
    anchor = tmp_path / "base.anchor.json"

    def run(bad):
        return {q: ["d", "x"] if n >= bad else ["x", "d"] for n, q in enumerate(qrels)}

    update_baseline(Baseline.from_run(qrels, run(0), rules), path, rules)
    first = anchor.read_bytes()
    assert first == path.read_bytes()
    # While both are equal, the anchor is not compared.
    assert [c.kind for c in gate(qrels, run(4), rules, baseline=path).checks] == ["baseline"]
    for bad in (8, 16, 24):
        update_baseline(Baseline.from_run(qrels, run(bad), rules), path, rules)
    assert anchor.read_bytes() == first
    found = gate(qrels, run(32), rules, baseline=path)
    assert [check.verdict for check in found.checks] == ["PASS", "FAIL"]
    assert found.checks[1].note == "0.080 lost since the anchor"
    # An anchor of other queries is mentioned, but does not block the gate.
    more = {**qrels, "new": {"d"}}
    wider = {**run(24), "new": ["d", "x"]}
    update_baseline(Baseline.from_run(more, wider, rules), path, rules)
    found = gate(more, wider, rules, baseline=path)
    assert [check.verdict for check in found.checks] == ["IDENTICAL"]
    assert any("base.anchor.json was not compared" in note for note in found.notes)
    anchor.unlink()
    update_baseline(Baseline.from_run(more, wider, rules), path, rules)
    assert anchor.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("worse", "shown"),
    [(0.0, "between {0.lower_unless_rare:.3f} worse and {0.upper:.3f} better"), (3.0, "at least {0.upper:.3f} worse")],
)
def test_an_unbounded_loss_is_not_shown_as_infinite(worse, shown):
    before = np.random.default_rng(1).integers(1, 10, 60)
    after = before + worse + np.random.default_rng(2).normal(0, 0.1, 60)
    old, new = (
        Evaluation.from_values(name, [f"q{n}" for n in range(60)], {"FirstRel": values.tolist()})
        for name, values in (("old", before.astype(float)), ("new", after))
    )
    rules = {"measures": {"FirstRel": {"margin": 1.0}}}
    found = gate(new, rules=rules, baseline=Baseline.from_evaluation(old))
    upper = found.checks[0].numbers.upper
    text = shown.format(found.checks[0].numbers).replace("-", "")
    assert f"the new run is {text} than" in found.checks[0].sentence
    assert f"≤ {upper:+.3f}" in found.table().rows[0]
    assert not any("inf" in text for text in (found.explanation(), found.plot().alt))
    assert found.plot().svg()


def test_a_rollback_to_the_anchor_is_a_change():
    rules = {"measures": {"nDCG@10": {"margin": 0.3}}}
    anchor = Baseline.from_run(QRELS, RUNS["s2"], rules)
    found = gate(QRELS, RUNS["s2"], rules, baseline=OLD, anchor=anchor)
    assert [check.verdict for check in found.checks] == ["PASS", "IDENTICAL"]
    assert found.verdict == "PASS"
    assert found.summary().startswith("PASS: run. PASS: nDCG@10")
    assert "make it the baseline" in found.next_step()
    assert not found.limits()
    # A run that equals the baseline is a missing change, whatever the anchor.
    assert gate(QRELS, RUNS["s1"], rules, baseline=OLD, anchor=anchor).verdict == "IDENTICAL"


@pytest.mark.parametrize("text", ["", "{}", "<<<<<<< ours", '{"schema": "rankgauge/baseline/1"}'])
def test_an_unreadable_anchor_is_noted_and_does_not_block_the_gate(tmp_path, text):
    path, anchor = tmp_path / "base.json", tmp_path / "base.anchor.json"
    OLD.write(path)
    anchor.write_text(text, encoding="utf-8")
    found = gate(QRELS, RUNS["s1"], baseline=path)
    assert [check.kind for check in found.checks] == ["baseline"]
    note = next(note for note in found.notes if str(anchor) in note)
    assert "delete it, and repeat --update-baseline" in note
    anchor.unlink()
    update_baseline(OLD, path)
    assert not any("anchor" in note for note in gate(QRELS, RUNS["s1"], baseline=path).notes)
    # A file that the user names is an error, and its fix does not replace the baseline.
    anchor.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        gate(QRELS, RUNS["s1"], baseline=path, anchor=anchor)
    assert "pass --anchor FILE" in raised.value.fix


def test_the_anchor_of_a_newer_version_is_an_error(tmp_path):
    path = tmp_path / "base.json"
    OLD.write(path)
    newer = OLD.to_json().replace("rankgauge/baseline/2", "rankgauge/baseline/99")
    (tmp_path / "base.anchor.json").write_text(newer, encoding="utf-8")
    with pytest.raises(InputError, match="newer rankgauge"):
        gate(QRELS, RUNS["s1"], baseline=path)


@pytest.mark.parametrize("kind", ["baseline", "anchor"])
def test_the_fix_for_other_inputs_updates_only_the_baseline(kind):
    few = {query: QRELS[query] for query in list(QRELS)[:-1]}
    other = Baseline.from_run(few, RUNS["s1"])
    judgments = {query: {**grades, "new": 1} for query, grades in QRELS.items()}
    for stored in (other, Baseline.from_run(judgments, RUNS["s1"])):
        given = {"baseline": OLD} | {kind: stored}
        found = next(c for c in gate(QRELS, RUNS["s1"], **given).checks if c.kind == kind)
        assert found.verdict == "NOT COMPARABLE"
        assert ("--anchor FILE" in found.sentence) == (kind == "anchor")
        assert ("update it" in found.sentence) == (kind == "baseline")


def test_an_anchor_does_not_change_the_check_with_the_baseline():
    rules = {"measures": {"nDCG@10": {}, "RR": {}}}
    old = Baseline.from_run(QRELS, RUNS["s1"], rules)
    anchor = Baseline.from_run(QRELS, RUNS["s2"], rules)
    alone = gate(QRELS, RUNS["s0"], rules, baseline=old)
    both = gate(QRELS, RUNS["s0"], rules, baseline=old, anchor=anchor)
    assert both.checks[:2] == alone.checks
    assert both.checks[2:] == gate(QRELS, RUNS["s0"], rules, baseline=None, anchor=anchor).checks
    assert any("Holm over 2 measures, for baseline and anchor" in note for note in both.notes)


def test_a_baseline_without_an_anchor_becomes_the_anchor(tmp_path):
    path, anchor = tmp_path / "base.json", tmp_path / "base.anchor.json"
    OLD.write(path)
    update_baseline(Baseline.from_run(QRELS, RUNS["s2"]), path)
    assert anchor.read_text(encoding="utf-8") == OLD.to_json() != path.read_text(encoding="utf-8")


def test_the_anchor_of_the_rules_is_used(tmp_path):
    path = tmp_path / "base.json"
    OLD.write(path)
    Baseline.from_run(QRELS, RUNS["s2"]).write(tmp_path / "release.json")
    rules = {"anchor": str(tmp_path / "release.json")}
    found = gate(QRELS, RUNS["s1"], rules, baseline=path)
    assert [check.kind for check in found.checks] == ["baseline", "anchor"]
    update_baseline(OLD, path, rules)
    assert not (tmp_path / "base.anchor.json").exists()
    with pytest.raises(InputError, match="this is the anchor"):
        update_baseline(OLD, rules["anchor"], rules)


def test_lower_is_better_where_the_measure_says_so():
    qrels = {f"q{n}": {"d"} for n in range(40)}
    rules = {"measures": {"FirstRel": {"margin": 0.4}}, "depth": "any"}
    low, high = {q: ["d"] for q in qrels}, {q: ["x", "y", "d"] for q in qrels}
    old = Baseline.from_run(qrels, low, rules)
    assert gate(qrels, high, rules, baseline=old).verdict == "FAIL"
    old = Baseline.from_run(qrels, high, rules)
    # A rank has no upper bound, so a rare collapse could cost any amount.
    assert gate(qrels, low, rules, baseline=old).verdict == "PASS unless rare collapse"


def test_queries_that_lose_their_value_cannot_hide_in_a_mean_that_skips_them():
    qrels = {f"q{n}": {"d"} for n in range(40)}
    rules = {"measures": {"FirstRel": {"margin": 0.4}}, "depth": "any"}
    old = Baseline.from_run(qrels, {q: ["d"] for q in qrels}, rules)
    new = {q: ["x"] if n < 10 else ["d"] for n, q in enumerate(qrels)}
    found = gate(qrels, new, rules, baseline=old)
    assert found.verdict == "NOT COMPARABLE"
    assert "10 queries had a value in the baseline and have none now" in found.checks[0].sentence


def test_losers_are_named_rightly_where_other_queries_are_left_out():
    qrels = {f"q{n:02}": {"d"} for n in range(40)}
    rules = {"measures": {"FirstRel": {"margin": 0.4}}, "depth": "any"}
    run = {q: ["x"] if n < 3 else ["d"] for n, q in enumerate(qrels)}
    old = Baseline.from_run(qrels, run, rules)
    numbers = gate(qrels, {**run, "q07": ["x", "d"]}, rules, baseline=old).checks[0].numbers
    assert numbers.queries == 37
    assert [(q.query, q.before, q.after) for q in numbers.losers] == [("q07", 1.0, 2.0)]


def test_one_query_is_no_ground_unless_nothing_changed():
    old = Baseline.from_run({"q": {"d"}}, {"q": ["d"]})
    assert gate({"q": {"d"}}, {"q": ["d"]}, baseline=old).verdict == "IDENTICAL"
    found = gate({"q": {"d"}}, {"q": ["x"]}, baseline=old)
    assert found.verdict == "INCONCLUSIVE"
    assert "too few for a verdict" in found.checks[0].sentence


@settings(max_examples=8)
@given(st.permutations(sorted(QRELS)), st.sampled_from(["s0", "s2"]))
def test_the_order_of_queries_changes_nothing(order, run):
    shuffled = {query: RUNS[run][query] for query in order}
    qrels = {query: QRELS[query] for query in order}
    one, other = gate(QRELS, RUNS[run], baseline=OLD), gate(qrels, shuffled, baseline=OLD)
    assert one.verdict == other.verdict
    assert one.checks[0].numbers.gain == other.checks[0].numbers.gain
    assert one.checks[0].numbers.losers == other.checks[0].numbers.losers


# ---- likely causes


def test_the_worst_queries_come_with_their_values_and_what_moved():
    qrels = {f"q{n}": {"d": 1, "e": 1} for n in range(10)}
    old = Baseline.from_run(qrels, {q: ["d", "e", "x"] for q in qrels})
    new = {q: ["d", "e", "x"] for q in qrels} | {"q3": ["x", "y", "d"], "q4": []}
    found = gate(qrels, new, {"max_failed": 0.2}, baseline=old).checks[0].numbers.losers
    assert [(loser.query, loser.moved) for loser in found] == [
        ("q4", "no results now"),
        ("q3", "d from rank 1 to 3, e from rank 2, not retrieved now"),
    ]
    assert found[1].before == 1.0
    assert found[1].after == evaluate(qrels, new, "nDCG@10").value("q3", "nDCG@10")


def test_fewer_judged_documents_than_in_the_baseline_are_a_warning():
    qrels = {f"q{n}": {f"d{d}": d % 2 for d in range(10)} for n in range(30)}
    old = Baseline.from_run(qrels, {q: [f"d{d}" for d in range(10)] for q in qrels})
    new = {q: [f"n{d}" for d in range(5)] + [f"d{d}" for d in range(5)] for q in qrels}
    found = gate(qrels, new, baseline=old)
    assert any("50% of the top documents are judged" in text for text in found.warnings)


# ---- incomparable evaluations


def _against(qrels, run, **rules):
    return gate(qrels, run, _with(**rules), baseline=OLD)


def test_added_or_removed_queries_are_not_comparable():
    fewer = {query: QRELS[query] for query in list(QRELS)[:50]}
    found = _against(fewer, RUNS["s1"])
    assert (found.verdict, found.exit_code()) == ("NOT COMPARABLE", 4)
    assert "10 queries missing ('q50', 'q51', 'q52', ...)" in found.checks[0].sentence
    more = QRELS | {"new": {"d1": 1}}
    assert "1 query new ('new')" in _against(more, RUNS["s1"]).checks[0].sentence


def test_the_intersection_is_compared_where_the_rules_say_so():
    fewer = {query: QRELS[query] for query in list(QRELS)[:50]} | {"new": {"d1": 1}}
    found = _against(fewer, RUNS["s0"], queries="intersection")
    assert found.checks[0].numbers.queries == 50
    assert any("50 queries in both (1 new and 10 missing excluded" in n for n in found.notes)
    apart = _apart("s0", "s1")[:50]
    assert found.checks[0].numbers.gain == pytest.approx(apart.mean(), rel=1e-12)


def test_judgments_that_changed_are_not_comparable_also_within_the_intersection():
    other = QRELS | {"q07": QRELS["q07"] | {"d1": 9}}
    for queries in ("same", "intersection"):
        found = _against(other, RUNS["s1"], queries=queries)
        assert found.verdict == "NOT COMPARABLE"
        assert "the judgments of 1 query differ from those" in found.checks[0].sentence
        assert "'q07'" in found.checks[0].sentence


def test_judgments_in_another_order_or_as_whole_numbers_are_the_same():
    turned = {q: {d: float(g) for d, g in reversed(grades.items())} for q, grades in QRELS.items()}
    assert _against(turned, RUNS["s1"]).verdict == "IDENTICAL"


def test_a_measure_that_the_baseline_lacks_is_not_comparable():
    found = gate(QRELS, RUNS["s1"], {"measures": {"AP": {}}}, baseline=OLD)
    assert found.verdict == "NOT COMPARABLE"
    assert "the baseline has no AP" in found.checks[0].sentence


def test_a_measure_that_was_defined_otherwise_is_not_comparable():
    old = json.loads(OLD.to_json())
    changed = Baseline(OLD.run_name, "0.0.1", OLD.depth, {"nDCG@10": "0123456789abcdef"}, OLD.queries)
    assert old["measures"] != changed.measures
    found = gate(QRELS, RUNS["s1"], baseline=changed)
    assert "nDCG@10 was defined differently in rankgauge 0.0.1" in found.checks[0].sentence


def test_rankings_cut_above_the_cut_off_are_not_comparable():
    short = {q: dict(sorted(docs.items(), key=lambda d: -d[1])[:5]) for q, docs in RUNS["s1"].items()}
    found = _against(QRELS, short)
    assert found.verdict == "NOT COMPARABLE"
    assert "the longest ranking has 5 documents, that of the baseline 30" in found.checks[0].sentence
    assert _against(QRELS, short, depth="any").verdict != "NOT COMPARABLE"
    deep = {q: dict(sorted(docs.items(), key=lambda d: -d[1])[:12]) for q, docs in RUNS["s1"].items()}
    assert _against(QRELS, deep).verdict == "IDENTICAL"


def test_too_many_queries_without_a_ranking_are_not_comparable():
    broken = {query: docs for query, docs in RUNS["s2"].items() if query > "q05"}
    found = _against(QRELS, broken, contracts=[{"query": "q01", "must_include": ["d1"]}])
    assert found.verdict == "NOT COMPARABLE"
    assert len(found.checks) == 1
    assert "6 of 60 queries have no ranking (10.0%" in found.checks[0].sentence
    assert _against(QRELS, broken, max_failed=0.1).verdict != "NOT COMPARABLE"


# ---- contracts and minimum values


@pytest.mark.parametrize(
    ("contract", "said"),
    [
        ({"must_rank_at_most": {"b": 2}}, None),
        ({"must_rank_at_most": {"c": 2}}, "document 'c' is at rank 3, but its contract requires 2"),
        ({"must_rank_at_most": {"z": 2}}, "document 'z' was not retrieved, but its contract requires 2"),
        ({"must_include": ["a", "c"]}, None),
        ({"must_include": ["c"], "k": 2}, "document 'c' is at rank 3, but must be in the first"),
        ({"forbidden": ["z"]}, None),
        ({"forbidden": ["c"], "k": 2}, None),
        ({"forbidden": ["c"], "k": 3}, "document 'c' is at rank 3, where it is forbidden"),
    ],
)
def test_contracts_check_single_queries(contract, said):
    rules = {"contracts": [{"query": "q1", **contract}]}
    found = gate({"q1": {"a"}}, {"q1": ["a", "b", "c"]}, rules, baseline=None)
    assert found.verdict == ("PASS" if said is None else "FAIL")
    if said:
        assert said in found.checks[0].sentence


def test_a_contract_looks_at_ranks_by_the_policy_of_ties():
    rules = {"contracts": [{"query": "q1", "must_rank_at_most": {"b": 1}}]}
    tied = {"q1": {"a": 1.0, "b": 1.0}}
    assert gate({"q1": {"a"}}, tied, rules, baseline=None).verdict == "PASS"


def test_a_contract_on_an_unknown_query_is_an_error():
    rules = {"contracts": [{"query": "q9", "must_include": ["a"]}]}
    with pytest.raises(InputError, match="'q9' is neither judged nor in the run"):
        gate({"q1": {"a"}}, {"q1": ["a"]}, rules, baseline=None)


def test_a_floor_limits_a_mean():
    mean = evaluate(QRELS, RUNS["s1"], "nDCG@10").mean()["nDCG@10"]
    for floor, verdict in ((mean, "IDENTICAL"), (mean + 0.001, "FAIL")):
        rules = {"measures": {"nDCG@10": {"floor": floor}}}
        assert gate(QRELS, RUNS["s1"], rules, baseline=OLD).verdict == verdict


def test_a_floor_is_not_exceeded_where_lower_is_better():
    run = {q: ["x", "d"] for q in "ab"}
    for floor, verdict in ((3, "PASS"), (2, "PASS"), (1.5, "FAIL")):
        rules = {"measures": {"FirstRel": {"margin": 1, "floor": floor}}}
        found = gate({q: {"d"} for q in "ab"}, run, rules, baseline=None)
        assert found.verdict == verdict


def test_a_floor_for_what_is_undefined_everywhere_is_not_reached():
    rules = {"measures": {"FirstRel": {"margin": 1, "floor": 3}}}
    found = gate({"a": {"d"}, "b": {"e"}}, {"a": ["x"], "b": ["y"]}, rules, baseline=None)
    assert found.verdict == "FAIL"
    assert "undefined in every query" in found.checks[0].sentence


def test_a_gate_without_baseline_or_floor_is_an_error():
    with pytest.raises(InputError, match="nothing to compare the run with"):
        gate(QRELS, RUNS["s1"], baseline=None)


# ---- the result


def test_the_worst_verdict_is_the_verdict_and_gives_the_exit_code():
    rules = _with(contracts=[{"query": "q01", "forbidden": ["nope"]}])
    found = gate(QRELS, RUNS["s0"], rules, baseline=OLD)
    assert [check.verdict for check in found.checks] == ["PASS", "FAIL"]
    assert (found.verdict, found.exit_code(), found.exit_code(strict=True)) == ("FAIL", 1, 1)
    assert found.sentences()[-1] == "PASS: 1 contract met"
    latent = gate(QRELS, RUNS["s1"], LATENCY, baseline=OLD)
    assert (latent.exit_code(), latent.exit_code(strict=True)) == (0, 3)


def test_small_moves_of_few_queries_pass_only_unless_rare_queries_collapse():
    ids = [f"q{n}" for n in range(50)]
    old, new = (
        Evaluation.from_values(name, ids, {"RR": [0.5 + sign * 0.01 * (-1) ** n for n in range(50)]})
        for name, sign in (("old", 1), ("new", -1))
    )
    found = gate(new, rules=RR, baseline=Baseline.from_evaluation(old))
    assert found.verdict == found.checks[0].verdict == "PASS unless rare collapse"
    assert (found.exit_code(), found.exit_code(strict=True)) == (0, 3)
    text = found.checks[0].sentence
    assert "margin of 0.03 is excluded unless queries outside the sample fail completely" in text
    bounds = found.checks[0].numbers
    gains = np.array([-0.02 * (-1) ** n for n in range(50)])
    assert bounds.lower_unless_rare == pytest.approx(stats.mean_lower_bound(gains, lowest=-1.0))
    assert bounds.lower < -0.03 < bounds.lower_unless_rare
    assert f"{-bounds.lower_unless_rare:.3f} worse and {bounds.upper:.3f} better" in text
    data = json.loads(found.to_json())["checks"][0]["numbers"]
    assert data["lower_unless_rare"] == bounds.lower_unless_rare
    share = float(re.search(r"up to ([\d.]+)% of unseen queries could", text)[1])
    # None of 50 queries has a share of this size with a probability of 5%.
    assert (1 - share / 100) ** 50 == pytest.approx(0.05, rel=0.02)
    assert found.checks[0].numbers.queries_needed == 93


def test_a_small_loss_of_every_query_does_not_fail_while_rare_gains_could_balance_it():
    ids = [f"q{n}" for n in range(400)]
    verdicts = []
    for queries in (40, 400):
        old, new = (
            Evaluation.from_values(name, ids[:queries], {"RR": [0.5 - loss + 0.01 * (-1) ** n for n in range(queries)]})
            for name, loss in (("old", 0.0), ("new", 0.05))
        )
        stored = Baseline.from_evaluation(old)
        verdicts.append(gate(new, rules=RR, baseline=stored).verdict)
    assert verdicts == ["INCONCLUSIVE", "FAIL"]


def test_a_result_is_printed_and_pickled():
    found = gate(QRELS, RUNS["s0"], baseline=OLD)
    assert "FAIL" in repr(found)
    assert found._repr_html_().count("<table") == 2
    assert pickle.loads(pickle.dumps(found)) == found
    data = json.loads(found.to_json())
    assert data["verdict"] == "FAIL"
    assert data["checks"][0]["numbers"]["measure"] == "nDCG@10"
    assert data["checks"][0]["numbers"]["lower"] == found.checks[0].numbers.lower


def test_rules_may_be_given_ready_made():
    rules = GateRules.of(_with())
    assert gate(QRELS, RUNS["s0"], rules, baseline=OLD).verdict == "FAIL"


# ---- evaluations alone


def _two():
    names = [gated.measure for gated in GateRules.of().measures]
    return [evaluate(QRELS, RUNS[name], names) for name in ("s1", "s2")]


def test_a_gate_of_two_evaluations_decides_as_that_of_their_runs():
    old, new = _two()
    alone = gate(new, baseline=Baseline.from_evaluation(old))
    with_runs = gate(QRELS, RUNS["s2"], baseline=Baseline.from_run(QRELS, RUNS["s1"]))
    assert alone.verdict == with_runs.verdict
    numbers, wanted = (found.checks[0].numbers for found in (alone, with_runs))
    assert replace(numbers, losers=()) == replace(wanted, losers=())
    assert [q.query for q in numbers.losers] == [q.query for q in wanted.losers]
    assert {q.moved for q in numbers.losers} == {""}
    assert "comparability was not checked" in alone.notes[0]
    assert not any("judged" in text for text in alone.warnings)


def test_an_evaluation_can_be_gated_against_the_baseline_of_a_run():
    found = gate(_two()[1], baseline=OLD)
    assert found.checks[0].numbers.queries == len(QRELS)
    assert "comparability was not checked" in found.notes[0]


def test_a_baseline_of_values_alone_is_written_and_read(tmp_path):
    made = Baseline.from_evaluation(_two()[0])
    made.write(tmp_path / "base.json")
    assert Baseline.read(tmp_path / "base.json") == made
    assert (made.depth, made.empty()) == (None, [])
    jsonschema.validate(json.loads(made.to_json()), strict("baseline-2"))


def test_noise_may_be_given_as_evaluations():
    runs = jittered(range(3))
    names = [gated.measure for gated in GateRules.of().measures]
    wanted = Baseline.from_run(QRELS, RUNS["s1"], noise=runs).noise
    found = Baseline.from_evaluation(_two()[0], noise=[evaluate(QRELS, r, names) for r in runs])
    assert found.noise == wanted


@pytest.mark.parametrize(
    ("choices", "said"),
    [({"undefined": "skip"}, "weight queries differently"), ({"weights": {"q00": 2.0}}, "weight queries differently")],
)
def test_values_whose_mean_is_another_are_refused(choices, said):
    if "weights" in choices:
        choices = {"weights": dict.fromkeys(QRELS, 1.0) | choices["weights"]}
    with pytest.raises(InputError, match=said):
        gate(evaluate(QRELS, RUNS["s2"], "nDCG@10", **choices), baseline=OLD)


def test_other_policies_are_another_definition():
    found = gate(evaluate(QRELS, RUNS["s2"], "nDCG@10", ties="input"), baseline=OLD)
    assert found.verdict == "NOT COMPARABLE"


def test_rules_that_need_a_run_are_refused_for_evaluations():
    evaluation = _two()[1]
    contracts = {"contracts": [{"query": "q00", "must_include": ["d"]}]}
    with pytest.raises(InputError, match="contracts and an evaluation"):
        gate(evaluation, rules=contracts, baseline=OLD)
    with pytest.raises(InputError, match="a run and an evaluation"):
        gate(evaluation, RUNS["s2"], baseline=OLD)
    with pytest.raises(InputError, match="AP was not evaluated"):
        gate(evaluation, rules={"measures": {"AP": {}}}, baseline=OLD)
    with pytest.raises(InputError, match="repeated runs need the judgments"):
        gate(evaluation, baseline=OLD, noise=[RUNS["s1"], RUNS["s2"]])


def test_failed_queries_of_an_evaluation_are_counted():
    half = {query: docs for query, docs in RUNS["s2"].items() if query < "q05"}
    found = gate(evaluate(QRELS, half, "nDCG@10"), baseline=OLD)
    assert "have no ranking" in found.checks[0].sentence


def test_external_values_are_gated():
    ids = [f"q{n}" for n in range(40)]
    old = Evaluation.from_values("old", ids, {"RR": [0.5 + n % 5 / 10 for n in range(40)]})
    new = Evaluation.from_values("new", ids, {"RR": [0.2 + n % 5 / 10 for n in range(40)]})
    stored = Baseline.from_evaluation(old)
    # No ranking is known, so three in 40 queries could lose without being seen.
    assert gate(old, rules=RR, baseline=stored).verdict == "INCONCLUSIVE"
    assert gate(new, rules=RR, baseline=stored).verdict == "FAIL"
    floor = {"measures": {"RR": {"margin": 0.03, "floor": 0.6}}}
    assert gate(new, rules=floor, baseline=None).checks[0].kind == "floor"


# ---- too few queries


def test_a_run_without_a_loss_passes_the_testable_margin_with_a_power_of_80_percent():
    rng = np.random.default_rng(3)
    margin = margin_tested(non_inferiority(rng.normal(0, 0.1, 400), 0.02, lowest=-1.0), 400)
    draws = rng.normal(0, 0.1, (120, 400))
    passed = [non_inferiority(draw, margin, lowest=-1.0).not_inferior for draw in draws]
    assert 0.74 < np.mean(passed) < 0.92


@pytest.mark.parametrize(("queries", "few"), [(25, True), (140, True), (160, False)])
def test_margins_that_an_unchanged_run_cannot_pass_are_noted_with_the_baseline(queries, few):
    qrels = {f"q{n}": {"d1": 1} for n in range(queries)}
    run = {query: ["d1"] for query in qrels}
    rules = GateRules.of(_with())
    baseline = Baseline.from_run(qrels, run, rules)
    said = list(untestable_margins(baseline, rules))
    assert bool(said) == few
    result = gate(qrels, run, rules, baseline=baseline)
    assert result.verdict == "IDENTICAL"
    assert bool(result.limits()) == few
    if few:
        least = 1 - 0.05 ** (1 / queries)  # Clopper and Pearson, with no query that lost
        assert result.table().notes[0] == result.limits()[0]
        for text in (said[0], result.limits()[0]):
            shown = float(re.search(r"(?:margins|a margin) of ([\d.]+) or more", text)[1])
            assert least <= shown < least + 0.002


def test_the_row_of_a_floor_has_the_mean():
    result = gate(QRELS, RUNS["s1"], {"measures": {"P@5": {"floor": 0.1}}}, baseline=None)
    mean = evaluate(QRELS, RUNS["s1"], "P@5").mean()["P@5"]
    assert result.checks[0].value == mean
    assert result.table().rows[0][3] == f"{mean:.3f}"
