"""The profile of ir_measures, compared with its default pipeline on adversarial data."""

import importlib.util
import shutil

import ir_measures
import pytest
from peers import ir_measure
from unkind import JUDGED, SEEDS, held, made

from rankgauge import evaluate, parse

PYTREC_EVAL = (
    "P@1",
    "P@5",
    "P(rel=2)@5",
    "P(judged_only=True)@5",
    "R@5",
    "RR",
    "RR(rel=2)",
    "RR(judged_only=True)",
    "AP",
    "AP@5",
    "AP(rel=2)",
    "Rprec",
    "Bpref",
    "infAP",
    "nDCG",
    "nDCG@5",
    "nDCG(gains={1:2,2:5,3:9})@10",
    "Success@1",
    "Success(rel=2)@5",
    "SetP",
    "SetR",
    "SetF",
    "SetF(beta=2.0)",
    "SetAP",
    "IPrec@0.1",
    "IPrec@0.5",
    "NumRet",
    "NumRel",
    "NumRet(rel=1)",
)
OTHERS = (
    "RR@1",
    "RR@5",
    "RR(rel=2)@5",
    "Judged@1",
    "Judged@5",
    "Judged@10",
    "RBP(rel=1,p=0.8)",
    "RBP(rel=2,p=0.5)",
    "RBP(rel=1,p=0.95)",
)
GDEVAL = ("ERR@1", "ERR@5", "ERR@10", "nDCG(dcg='exp-log2')@5", "nDCG(dcg='exp-log2')@20")
# Measures of cwl_eval by their names there.
READERS = {
    "SDCG(max_rel=3)@5": "SDCG(top=3)@5",
    "SDCG(max_rel=2)@20": "SDCG(top=2)@20",
    "INST(T=1.0,max_rel=3)": "INST(goal=1,top=3)",
    "INST(T=2.5,max_rel=4)": "INST(goal=2.5,top=4)",
    "INSQ(T=1.0,max_rel=3)": "INSQ(goal=1,top=3)",
    "INSQ(T=3.0,max_rel=1)": "INSQ(goal=3,top=1)",
    "BPM(T=1.0,max_rel=3)@5": "BPM(goal=1,top=3)@5",
    "BPM(T=2.0,max_rel=2)@10": "BPM(goal=2,top=2)@10",
    "NERR8(max_rel=3)@5": "NERR8(top=3)@5",
    "NERR9(max_rel=4)@50": "NERR9(top=4)@50",
    "NERR10(p=0.9,max_rel=3)": "NERR10(p=0.9,top=3)",
    "NERR11(T=1.0,max_rel=3)": "NERR11(goal=1,top=3)",
}
ACCURACY = {"Accuracy": "PairAcc(among=retrieved)", "Accuracy@5": "PairAcc@5", "Accuracy(rel=2)": "PairAcc(rel=2)"}
OURS = {"NumRet(rel=1)": "NumRelRet"}


def theirs(inputs, name):
    found = ir_measures.iter_calc([ir_measure(name)], inputs.qrels, inputs.run)
    return {metric.query_id: metric.value for metric in found if metric.query_id in inputs.qrels}


@pytest.mark.parametrize("name", PYTREC_EVAL + OTHERS)
def test_a_measure_is_that_of_ir_measures(name):
    if name.startswith("RBP") and importlib.util.find_spec("cwl") is None:
        pytest.skip("cwl-eval is not installed: nothing was compared with it")
    compared = 0
    for seed in SEEDS:
        inputs = made(seed, deepest=40)
        compared += held("ir_measures", inputs, OURS.get(name, name), theirs(inputs, name), tolerance=1e-9)
    assert compared == JUDGED * len(SEEDS)


@pytest.mark.parametrize("name", READERS)
def test_a_model_of_a_reader_is_that_of_cwl_eval(name):
    pytest.importorskip("cwl", reason="cwl-eval is not installed: nothing was compared with it")
    compared = 0
    for seed in SEEDS:
        inputs = made(seed, deepest=40)
        compared += held("ir_measures", inputs, parse(READERS[name]), theirs(inputs, name))
    assert compared == JUDGED * len(SEEDS)


@pytest.mark.parametrize("name", ACCURACY)
def test_accuracy_leaves_out_queries_without_a_relevant_document_retrieved(name):
    compared = without = 0
    for seed in SEEDS:
        inputs = made(seed, deepest=40, shortest=15)
        found = theirs(inputs, name)
        without += len(inputs.of_both().run) - len(found)
        compared += held("ir_measures", inputs, parse(ACCURACY[name]), found)
    assert compared > 5 * len(SEEDS)
    assert without


@pytest.mark.parametrize("name", GDEVAL)
def test_a_measure_is_that_of_gdeval(name):
    if shutil.which("perl") is None:
        pytest.skip("Perl is not installed: nothing was compared with gdeval")
    compared = wanted = 0
    for seed in range(3):
        # gdeval divides by 0 for a query without a relevant document.
        inputs = made(seed, queries=40, grades=(-1, 0, 1, 1, 2, 3))
        good = {q: docs for q, docs in inputs.qrels.items() if max(docs.values()) > 0}
        inputs = inputs._replace(qrels=good)
        wanted += len(good)
        found = theirs(inputs, name)
        compared += held("ir_measures", inputs, name, found, tolerance=1.01e-5)
    assert compared == wanted > 50


def test_a_rank_and_its_cut_off_contradict_each_other_there_and_here():
    """Two tied documents: the providers of RR and RR@10 order them differently."""
    qrels, run = {"q": {"b": 1}}, {"q": {"a": 1.0, "b": 1.0}}
    asked = [ir_measures.RR, ir_measures.RR @ 10]
    wanted = {str(m): v for m, v in ir_measures.calc_aggregate(asked, qrels, run).items()}
    assert evaluate(qrels, run, ["RR", "RR@10"], profile="ir_measures").mean() == wanted
    assert wanted == {"RR": 1.0, "RR@10": 0.5}


def test_a_level_of_recall_has_two_decimals_there():
    inputs = made(5)
    wanted = theirs(inputs, "IPrec@0.101")
    assert held("ir_measures", inputs, "IPrec@0.101", wanted) == JUDGED
    ev = evaluate(inputs.qrels, inputs.run, "IPrec@0.101", profile="ir_measures")
    assert ev.measures == (parse("IPrec@0.1"),)
