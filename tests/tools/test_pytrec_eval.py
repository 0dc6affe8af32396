"""The profile of pytrec_eval, compared with the library on adversarial data."""

import math

import pytest
import pytrec_eval
from unkind import BOTH, SEEDS, held, made

from rankgauge import UnknownName, evaluate, parse

MEASURES = (
    "P@1",
    "P@5",
    "P@10",
    "R@1",
    "R@5",
    "Success@1",
    "Success@5",
    "RR",
    "AP",
    "AP@5",
    "Rprec",
    "SetP",
    "SetR",
    "SetF",
    "SetAP",
    "Bpref",
    "infAP",
    "nDCG",
    "nDCG@5",
    "nDCG@10",
    "IPrec@0.0",
    "IPrec@0.25",
    "IPrec@1.0",
    "IPrecAvg",
    "NumRet",
    "NumRel",
    "NumRelRet",
    "NumNonrelRet",
    "RelP@1",
    "RelP@5",
    "SetRelP",
    "RprecMult@0.4",
    "RprecMult@2.0",
    "G",
    "binG",
    "RnDCG",
    "nDCGrel",
    "Utility",
)
WITH_LEVELS = ("P@5", "R@5", "RR", "AP", "Rprec", "Bpref", "SetF", "Success@5", "IPrec@0.25")


def theirs(inputs, measure, **options):
    """Return its values of a measure, by the name of its counterpart."""
    name = measure.trec_name()
    asked = name.replace("recall_0.25", "recall.0.25").replace("recall_1.00", "recall.1.0")
    asked = asked.replace("Rprec_mult_", "Rprec_mult.").replace("iprec_at_recall_0.00", "iprec_at_recall.0.0")
    found = pytrec_eval.RelevanceEvaluator(inputs.qrels, {asked}, **options).evaluate(inputs.run)
    return {query: values[name] for query, values in found.items()}


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_is_that_of_pytrec_eval(name):
    compared = 0
    for seed in SEEDS:
        inputs = made(seed, deepest=40)
        compared += held("pytrec_eval", inputs, name, theirs(inputs, parse(name)))
    assert compared == BOTH * len(SEEDS)


@pytest.mark.parametrize("name", WITH_LEVELS)
@pytest.mark.parametrize("level", [2, 3])
def test_a_relevance_level_is_that_of_pytrec_eval(name, level):
    compared = 0
    for seed in SEEDS:
        inputs = made(seed)
        found = theirs(inputs, parse(name), relevance_level=level)
        compared += held("pytrec_eval", inputs, parse(name)(rel=level), found)
    assert compared == BOTH * len(SEEDS)


@pytest.mark.parametrize("name", ["P@5", "RR", "AP", "nDCG@5", "SetP"])
def test_judged_documents_only_are_those_of_pytrec_eval(name):
    compared = 0
    for seed in SEEDS:
        inputs = made(seed)
        found = theirs(inputs, parse(name), judged_docs_only_flag=True)
        compared += held("pytrec_eval", inputs, parse(name)(judged_only=True), found)
    assert compared == BOTH * len(SEEDS)


@pytest.mark.parametrize("beta", [0.5, 2, 3])
def test_beta_is_not_squared(beta):
    compared = 0
    for seed in SEEDS:
        inputs = made(seed)
        asked = pytrec_eval.RelevanceEvaluator(inputs.qrels, {f"set_F.{beta}"})
        found = {q: v["set_F"] for q, v in asked.evaluate(inputs.run).items()}
        compared += held("pytrec_eval", inputs, f"SetF(beta={beta})", found)
    assert compared == BOTH * len(SEEDS)


def test_gm_map_is_a_logarithm_there():
    inputs = made(3)
    asked = pytrec_eval.RelevanceEvaluator(inputs.qrels, {"gm_map"})
    found = {q: math.exp(v["gm_map"]) for q, v in asked.evaluate(inputs.run).items()}
    ours = {query: max(value, 1e-5) for query, value in theirs(inputs, parse("AP")).items()}
    assert found == pytest.approx(ours)


def test_utility_has_no_other_worths_than_by_default():
    inputs = made(3)
    asked = pytrec_eval.RelevanceEvaluator(inputs.qrels, {"utility.2,1,0,0"})
    assert {values["utility"] for values in asked.evaluate(inputs.run).values()} == {0.0}
    with pytest.raises(UnknownName, match="not supported there"):
        evaluate(inputs.qrels, inputs.run, "Utility(hit=2)", profile="pytrec_eval")
