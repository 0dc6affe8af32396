"""Profiles of other tools: each deviation has the named effect, and no other."""

import random

import numpy as np
import pytest

from rankgauge import InputError, Policies, Qrels, RankgaugeError, Run, UnknownName, evaluate, list_measures, parse
from rankgauge.evaluation import PROFILES, Case, profile_of
from rankgauge.evaluation.profile_deviations import ASCENDING_IDS, NO_FIRST, apply_all

# Common measures of all profiles, and special ones.
ASKED = (
    "RR",
    "RR@10",
    "nDCG",
    "nDCG@10",
    "AP@5",
    "SetP",
    "Bpref",
    "IPrec@0.25",
    "Rprec",
    "SetF(beta=2)",
    "RBP(p=0.8)",
    "ERR@5",
)
PARTS = {
    "run": {"run"},
    "order": {"run", "policies"},
    "judgments": {"qrels"},
    "policy": {"policies"},
    "measure": {"measure"},
}


@pytest.fixture
def case():
    run = Run.of({"q1": {"z": 0.1234567891, "a": 0.1234567892, "q1": 0.5, "b": -1}, "q3": {"a": 1}})
    qrels = Qrels.of({"q1": {"a": 1, "b": 2, "c": 0.5}, "q2": {"b": 1, "a": 0}, "q3": {"a": 0, "d": 1}})
    return Case(qrels, run, parse("RR"), Policies())


def steps_of(name, case):
    """Yield every deviation of a profile, with a case that it affects."""
    for asked in ASKED:
        measure = parse(asked)
        try:
            found = PROFILES[name].deviations(measure)
        except UnknownName:
            continue
        for step in found:
            yield step, case._replace(measure=measure)


@pytest.mark.parametrize("name", PROFILES)
def test_a_step_changes_what_it_names_and_nothing_else(name, case):
    seen = set()
    for step, before in steps_of(name, case):
        after = step.change(before)
        for part in Case._fields:
            if part not in PARTS[step.of]:
                assert getattr(after, part) is getattr(before, part), (step.name, part)
        seen.add(step.name)
    assert seen


@pytest.mark.parametrize("name", PROFILES)
def test_a_step_has_a_name_and_one_sentence(name, case):
    for step, _ in steps_of(name, case):
        assert step.name
        assert not step.why.startswith(" ")
        assert not step.why.endswith(".")


def refusal(name, measure):
    try:
        PROFILES[name].deviations(measure)
    except UnknownName as error:
        return error
    return None


@pytest.mark.parametrize("name", PROFILES)
def test_a_measure_that_a_tool_lacks_is_refused_with_its_alternatives(name):
    refused = [error for bare in list_measures() if (error := refusal(name, bare)) is not None]
    assert refused
    for error in refused:
        assert " has no " in error.what or " cannot be reproduced: " in error.what
        assert error.fix


def test_scores_in_32_bits_become_ties(case):
    changed = apply_all(case, PROFILES["pytrec_eval"].deviations(case.measure))
    assert changed.run["q1"]["a"] == changed.run["q1"]["z"] == float(np.float32(0.1234567892))


def test_a_score_beyond_32_bits_is_infinite_there():
    ev = evaluate({"q": {"b": 1}}, {"q": {"a": 1e300, "b": 2e300}}, "RR", profile="pytrec_eval")
    assert ev.mean() == {"RR": 1.0}


def test_an_unknown_profile_is_refused_with_the_nearest_name():
    with pytest.raises(RankgaugeError, match="pytrec_eval"):
        profile_of("pytrek_eval")


def test_bpref_of_ranx_is_refused_if_it_is_nan():
    judged = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1}}
    with pytest.raises(InputError, match=r"'q2'.*not relevant"):
        evaluate(judged, {"q1": ["a"], "q2": ["a"]}, "Bpref", profile="ranx")


def test_rbp_that_sees_below_rank_1000_is_refused():
    for name in ("RBP(p=0.99)", "SDCG(top=3)@1001"):
        with pytest.raises(UnknownName, match="cwl_eval"):
            PROFILES["ir_measures"].deviations(parse(name))


TIED = ({"q": {"b": 1}}, {"q": {"a": 1.0, "b": 1.0}})
CLOSE = ({"q": {"a": 1}}, {"q": {"a": 0.1234567892, "z": 0.1234567891}})
MISSING = ({"q1": {"a": 1}, "q2": {"a": 1}}, {"q1": {"a": 1.0}})
SELF = ({"q": {"a": 1}}, {"q": {"q": 2.0, "a": 1.0}})
EMPTY = ({"q1": {"a": 1}, "q2": {"a": 0}}, {"q1": {"a": 1.0}, "q2": {"a": 1.0}})
GRADED = ({"q": {"a": 1, "b": 3}}, {"q": {"a": 2.0, "b": 1.0}})
SEVEN = ({"q": dict.fromkeys("abcdefg", 1)}, {"q": ["a", *(f"x{n}" for n in range(9)), "b"]})


@pytest.mark.parametrize(
    ("profile", "name", "inputs", "says"),
    [
        ("beir", "RR@10", TIED, 0.5),
        ("beir", "nDCG@10", TIED, 1.0),
        ("sentence-transformers", "RR@10", TIED, 0.5),
        ("mteb", "RR@10", TIED, 1.0),
        ("torchmetrics", "nDCG@10", TIED, (1 + 1 / np.log2(3)) / 2),
        ("pytrec_eval", "RR", CLOSE, 0.5),
        ("trec_eval-10", "RR", CLOSE, 1.0),
        ("beir", "RR@10", CLOSE, 1.0),
        ("beir", "AP@10", CLOSE, 0.5),
        ("beir", "RR@10", MISSING, 0.5),
        ("beir", "AP@10", MISSING, 1.0),
        ("ir_measures", "NumRel", MISSING, 1.0),
        ("haystack", "RR", MISSING, 0.5),
        ("beir", "RR@10", SELF, 1.0),
        ("mteb", "RR@10", SELF, 0.5),
        ("mteb-ignore-identical-ids", "RR@10", SELF, 1.0),
        ("mteb-skip-first-result", "RR@10", SELF, 1.0),
        ("mteb-skip-first-result", "nDCG@10", TIED, 1.0),
        ("mteb", "R_cap@10", EMPTY, 1.0),
        ("beir", "R_cap@10", EMPTY, 0.5),
        # Grades above the maximum count as the maximum.
        ("ir_measures", "SDCG(top=2)@1", ({"q": {"a": 3}}, {"q": ["a"]}), 1.0),
        ("ir_measures", "PairAcc", SELF, 0.0),
        ("sentence-transformers", "RR@10", EMPTY, 1.0),
        ("llama-index", "RR", EMPTY, 1.0),
        ("ranx", "RR", EMPTY, 0.5),
        ("sentence-transformers", "nDCG@10", GRADED, 1.0),
        ("llama-index", "nDCG", GRADED, 1.0),
        # Version 9 requires two of seven relevant documents for a recall of 0.2, version 10 one.
        ("trec_eval-9", "IPrec@0.2", SEVEN, 2 / 11),
        ("trec_eval-10", "IPrec@0.2", SEVEN, 1.0),
    ],
)
def test_small_inputs_have_the_numbers_that_the_tools_gave(profile, name, inputs, says):
    (mean,) = evaluate(*inputs, parse(name), profile=profile).mean().values()
    assert mean == pytest.approx(says, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ordered", [False, True])
def test_orders_of_equal_scores_and_the_first_result_are_those_of_a_loop(seed, ordered):
    dice = random.Random(seed)
    run = {
        f"q{q}": [(f"d{doc}", float(dice.randrange(4))) for doc in dice.sample(range(100), dice.randrange(1, 12))]
        for q in range(6)
    }
    if ordered:
        run = {query: sorted(docs, key=lambda pair: -pair[1]) for query, docs in run.items()}
    case = Case(Qrels.of({"q1": {"d1": 1}}), Run.of(run), parse("RR"), Policies())
    ascending = ASCENDING_IDS.change(case)
    assert ascending.policies.ties == "input"
    first = NO_FIRST.change(case).run
    for query, docs in run.items():
        wanted = sorted(docs, key=lambda pair: (-pair[1], pair[0]))
        assert list(ascending.run[query].items()) == wanted
        best = max(docs, key=lambda pair: pair[1])  # the first of several
        assert list(first[query].items()) == [pair for pair in docs if pair != best]
