"""Means of weighted, grouped, and generated queries."""

import json
import math
import random

import pytest

import rankgauge
from rankgauge import evaluate
from rankgauge.evaluation import group_means, split_origins

RNG = random.Random(5)
NAMES = [f"q{n}" for n in range(40)]
QRELS = {name: {"d1": 1} for name in NAMES}
RUN = {name: [f"x{n}" for n in range(RNG.randrange(5))] + ["d1"] for name in NAMES}
FIELDS = {
    name: {
        "origin": "generated" if place % 4 == 0 else "log",
        "part": "core" if place < 20 else "rotating",
        "weight": 1 + RNG.randrange(9),
    }
    for place, name in enumerate(NAMES)
}


def test_group_means_are_those_of_a_slow_loop():
    made = evaluate(QRELS, RUN, "RR", questions=FIELDS, weights="weight", groups="part", mix_origins=True)
    found = {(m.group, m.weighted): m for m in group_means(made).means}
    groups = {
        "all": NAMES,
        "core": [n for n in NAMES if FIELDS[n]["part"] == "core"],
        "rotating": [n for n in NAMES if FIELDS[n]["part"] == "rotating"],
    }
    for label, names in groups.items():
        weights = [FIELDS[name]["weight"] for name in names]
        values = [1 / len(RUN[name]) for name in names]
        mean = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
        one = found[label, True]
        assert one.mean == pytest.approx(mean)
        assert one.queries == len(names)
        assert one.effective == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))
        assert 0 <= one.low < one.mean < one.high <= 1
    assert found["all", False].mean == pytest.approx(sum(1 / len(RUN[n]) for n in NAMES) / 40)
    assert made.mean()["RR"] == pytest.approx(found["all", True].mean)
    assert made.by_group()["core"]["RR"] == pytest.approx(found["core", True].mean)
    text = str(made)
    assert "all, unweighted" in text
    assert any(f"(Kish): {found['all', True].effective:.1f} of 40 queries" in note for note in made.notes)


def test_eight_queries_have_the_interval_of_student_within_the_bounds_of_the_measure():
    scipy_stats = pytest.importorskip("scipy.stats")
    # Reciprocal ranks: seven times 1, and once 1/3.
    run = {name: ["d1"] if place else ["x", "y", "d1"] for place, name in enumerate(NAMES[:8])}
    made = evaluate(
        {name: QRELS[name] for name in NAMES[:8]}, run, ["RR", "GMAP", "NumRet"], weights=dict.fromkeys(NAMES[:8], 3)
    )
    found = {(each.measure, each.weighted): each for each in group_means(made).means}
    values = [1] * 7 + [1 / 3]
    low, high = scipy_stats.t.interval(0.95, 7, sum(values) / 8, scipy_stats.sem(values))
    assert high > 1
    for weighted in (True, False):
        one = found["RR", weighted]
        assert (one.low, one.high, one.effective) == (pytest.approx(low), 1, pytest.approx(8))
    # Geometric means and sums have none.
    for measure in ("GMAP", "NumRet"):
        assert math.isnan(found[measure, False].low)


def test_a_group_whose_queries_have_no_weight_has_no_mean():
    groups = {name: "none" if place < 10 else "some" for place, name in enumerate(NAMES)}
    weights = {name: float(place >= 10) for place, name in enumerate(NAMES)}
    made = evaluate(QRELS, RUN, "RR", groups=groups, weights=weights)
    (none,) = (each for each in group_means(made).means if each.group == "none")
    assert (none.queries, none.effective) == (10, 0)
    assert math.isnan(none.mean)
    assert math.isnan(none.low)


def test_undefined_values_count_in_no_group_if_they_are_skipped():
    """The reciprocal rank is undefined without a relevant document."""
    qrels = QRELS | {name: {"d1": 0} for name in NAMES[:4]}
    halves = {name: str(place < 20) for place, name in enumerate(NAMES)}
    made = evaluate(qrels, RUN, "RR", groups=halves, undefined="skip")
    (first,) = (each for each in group_means(made).means if each.group == "True")
    assert first.queries == 16
    assert first.mean == pytest.approx(sum(1 / len(RUN[name]) for name in NAMES[4:20]) / 16)


def test_queries_that_a_tool_does_not_count_are_in_no_group():
    """BEIR's nDCG averages over queries of the run, its reciprocal rank over judged queries."""
    run = {name: RUN[name] for name in NAMES[5:]}
    halves = {name: str(place < 20) for place, name in enumerate(NAMES)}
    made = evaluate(QRELS, run, ["RR@10", "nDCG@10"], profile="beir", groups=halves)
    found = {(m.group, m.measure): m for m in group_means(made).means}
    assert found["True", "RR@10"].queries == 20
    assert found["True", "nDCG@10"].queries == 15
    values = [1 / math.log2(1 + len(RUN[name])) for name in NAMES[5:20]]
    assert found["True", "nDCG@10"].mean == pytest.approx(sum(values) / 15)


def test_few_queries_have_no_interval():
    made = evaluate(QRELS, RUN, "RR", groups={n: str(p < 3) for p, n in enumerate(NAMES)})
    small = next(m for m in group_means(made).means if m.group == "True")
    assert small.queries == 3
    assert math.isnan(small.low)
    assert "–" in str(made)


def test_generated_and_real_questions_have_no_common_mean_unless_asked():
    with pytest.raises(rankgauge.InputError, match="10 of 40 queries are generated and 30 are not"):
        evaluate(QRELS, RUN, "RR", questions=FIELDS)
    made = evaluate(QRELS, RUN, "RR", questions=FIELDS, mix_origins=True)
    assert any("10 of 40 questions were generated" in note for note in made.notes)
    parts = split_origins(made, FIELDS)
    assert {name: len(queries) for name, queries in parts.items()} == {"generated": 10, "log": 30}
    alone = evaluate(QRELS, RUN, "RR", questions=FIELDS, queries=parts["generated"])
    assert "a high value here does not predict quality in production" in alone.notes[0]
    real = evaluate(QRELS, RUN, "RR", questions=FIELDS, queries=parts["log"])
    assert not any("generated" in note for note in real.notes)


def test_a_comparison_repeats_that_questions_are_generated():
    queries = split_origins(evaluate(QRELS, RUN, "RR"), FIELDS)["generated"]
    runs = [evaluate(QRELS, RUN, "RR", questions=FIELDS, queries=queries) for _ in range(2)]
    assert all(found.fix for found in runs[0].findings[:1])
    again = rankgauge.Evaluation.from_json(runs[0].to_json())
    assert again.notes == runs[0].notes


def test_fields_come_from_a_file(tmp_path):
    path = tmp_path / "set.jsonl"
    rows = [{"id": name, "text": "x", **row} for name, row in FIELDS.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    of_file = evaluate(QRELS, RUN, "RR", questions=path, weights="weight", mix_origins=True)
    of_dict = evaluate(QRELS, RUN, "RR", questions=FIELDS, weights="weight", mix_origins=True)
    assert of_file == of_dict


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "weigth"}, "no question has a field 'weigth'"),
        ({"groups": "lang"}, "name one of: origin, part, weight"),
        ({"questions": [1]}, "got list for the questions"),
        ({"questions": {"q1": {"weight": 2}}, "weights": "weight"}, "'q0' has no weight"),
    ],
)
def test_missing_fields_are_named(options, message):
    given = {"questions": FIELDS, "mix_origins": True, **options}
    with pytest.raises(rankgauge.InputError, match=message):
        evaluate(QRELS, RUN, "RR", **given)


def test_other_weights_are_not_compared():
    first = evaluate(QRELS, RUN, "RR", weights={n: 1 + p for p, n in enumerate(NAMES)})
    second = evaluate(QRELS, RUN, "RR")
    with pytest.raises(rankgauge.InputError, match="weights"):
        rankgauge.compare([first, second])
