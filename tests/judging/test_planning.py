"""Numbers of questions and judgments, verified with statsmodels and by counting."""

import json

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

import rankgauge
from rankgauge.errors import InputError
from rankgauge.judging import Settings, plan_judging
from rankgauge.stats import units_needed


def test_questions_are_those_of_the_paired_t_test():
    plan = plan_judging(0.05, sd=0.2, power=0.9)
    wanted = TTestPower().solve_power(effect_size=0.25, power=0.9, alpha=0.05)
    assert plan.questions == int(np.ceil(wanted))


def test_judgments_are_questions_by_candidates_by_views_over_shown():
    settings = Settings(shown=2, repeats=0.0, overlap=0.0)
    plan = plan_judging(0.1, sd=0.2, documents=12, settings=settings, seconds=36)
    assert plan.tasks == 12 * 6 / 2
    assert plan.judgments == plan.questions * plan.tasks
    assert plan.hours == pytest.approx(plan.judgments / 100)
    assert plan.overlap == 0
    more = plan_judging(0.1, sd=0.2, documents=12, settings=Settings(shown=2, repeats=0.2))
    assert more.judgments == round(plan.judgments / 0.8)


def test_sets_judged_by_several_use_several_tasks():
    """One new set in five is judged by three people: 7 tasks for each 5 sets."""
    settings = Settings(overlap=0.2, judges=3, repeats=0.0)
    plan = plan_judging(0.1, sd=0.2, documents=10, settings=settings)
    sets = plan.judgments * 5 / 7
    assert plan.overlap == round(sets / 5)
    assert plan.overlap_needed == units_needed(0.1, [0.4, 0.2, 0.2, 0.2])
    assert "too few" in str(plan)


def test_graded_tasks_have_the_answers_of_their_scale():
    plan = plan_judging(0.1, sd=0.2, settings=Settings(mode="graded", grades=("no", "yes")))
    assert plan.overlap_needed == units_needed(0.1, [0.5, 0.5])
    assert plan.tasks == 10


def test_the_spread_is_the_largest_of_two_evaluated_runs():
    rng = np.random.default_rng(0)
    qrels = {f"q{n}": {f"d{n}": 1} for n in range(30)}
    runs = [{q: rng.permutation([f"d{n}", "x", "y", "z"]).tolist() for n, q in enumerate(qrels)} for _ in range(3)]
    evaluations = [rankgauge.evaluate(qrels, run, ["nDCG@10", "P@1"]) for run in runs]
    values = [each.per_query[:, 0] for each in evaluations]
    spreads = [np.std(values[i] - values[j], ddof=1) for i, j in ((0, 1), (0, 2), (1, 2))]
    plan = plan_judging(0.1, evaluations=evaluations)
    assert plan.sd == pytest.approx(max(spreads) * (29 / 24) ** 0.5)
    with pytest.raises(InputError, match="standard deviation of the differences is unknown"):
        plan_judging(0.1, evaluations=evaluations[:1])
    other = rankgauge.evaluate({"q1": {"d1": 1}}, {"q1": ["d1"]}, ["nDCG@10"])
    with pytest.raises(InputError, match=r"sd=0\.2"):
        plan_judging(0.1, evaluations=[evaluations[0], other])
    with pytest.raises(InputError, match="seven or more queries"):
        plan_judging(0.1, evaluations=[other, other])


def test_the_plan_prints_and_is_json():
    plan = plan_judging(0.05, sd=0.2)
    assert "128 questions and 2,695 judgments" in plan.summary()
    assert "with 100 questions, differences of 0.057 or more are detectable" in str(plan)
    assert json.loads(plan.to_json())["questions"] == 128
    assert plan.to_csv().splitlines()[0].startswith("difference,sd,power,alpha,questions")
    with pytest.raises(InputError, match="documents"):
        plan_judging(0.05, sd=0.2, documents=0)
