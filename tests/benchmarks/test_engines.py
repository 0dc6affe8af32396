"""Engines of benchmarks: their measures, and agreement with rankgauge."""

import subprocess
import sys

import pytest
from engines import ENGINES, OURS, PEERS
from processes import Cost, Task, disagreement
from workloads import MEASURES, MORE, Work, columns, files, mappings

WORK = Work(7, 40, 5)
EXACT = ("rankgauge", "pytrec_eval", "ir_measures")


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("rankgauge", 20),
        ("trec_eval", 18),
        ("pytrec_eval", 18),
        ("ir_measures", 19),
        ("ranx", 19),
        ("sklearn", 2),
        ("torchmetrics", 19),
    ],
)
def test_an_engine_computes_only_the_measures_it_has(name, count):
    assert len(ENGINES[name].computes(MEASURES)) == count
    assert len(ENGINES[name].computes(MORE)) == (2 if name == "sklearn" else 10)


def test_a_missing_library_of_an_engine_is_reported():
    for engine in PEERS:
        missing = engine.missing()
        assert missing == "" or engine.name in missing
        assert missing or engine.version()


def test_trec_eval_receives_all_cut_offs_of_a_family_in_one_argument():
    words = ENGINES["trec_eval"].command("q", "r", ["P@1", "AP", "P@5", "nDCG@10", "RR"])
    assert words == (["trec_eval", "-m", "P.1,5", "-m", "map", "-m", "ndcg_cut.10", "-m", "recip_rank", "q", "r"])


def test_output_of_trec_eval_is_mapped_to_our_measure_names():
    message = "map all 0.25\nndcg_cut_10 all 0.5\nrecip_rank all 1.0\nsuccess_1 all 0.0\nP_5 all 0.2\n"
    assert ENGINES["trec_eval"].parse(message) == (
        {"AP": 0.25, "nDCG@10": 0.5, "RR": 1.0, "Success@1": 0.0, "P@5": 0.2}
    )


@pytest.mark.parametrize("name", EXACT)
def test_an_engine_agrees_with_us_on_dicts_and_files(name, tmp_path, ir_measures_reads_names):
    engine = ENGINES[name]
    measures = engine.computes(MEASURES)
    qrels, run = mappings(WORK)
    ours = OURS.prepared(qrels, MEASURES)(run)
    expected = pytest.approx({measure: ours[measure] for measure in measures}, abs=1e-12)
    assert engine.prepared(qrels, measures)(run) == expected
    assert engine.files(*map(str, files(WORK, tmp_path)), measures) == expected


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_an_engine_agrees_with_us_on_frames(library, ir_measures_reads_names):
    frame = pytest.importorskip(library).DataFrame
    qrels, run = map(frame, columns(WORK))
    peer = ENGINES["ir_measures"]
    measures = peer.computes(MEASURES)
    ours = OURS.prepared(qrels, MEASURES)(run)
    assert peer.prepared(qrels, measures)(run) == (
        pytest.approx({measure: ours[measure] for measure in measures}, abs=1e-12)
    )


@pytest.mark.parametrize("pipe", [False, True])
def test_the_output_of_a_command_is_parsed(pipe, tmp_path):
    found = Task(WORK, "CLI", MEASURES, pipe=pipe).measure(OURS, tmp_path)
    assert found.means == OURS.prepared(*_with_measures())(mappings(WORK)[1])
    assert found.cpu > 0
    assert found.peak > 0


def _with_measures():
    return mappings(WORK)[0], MEASURES


def test_a_time_counts_only_where_means_agree():
    ours = Cost(1, 1, 1, {"AP": 0.5, "RR": 0.25})
    peer = ENGINES["pytrec_eval"]
    assert disagreement(peer, {peer.name: Cost(1, 1, 1, {"AP": 0.50005})}, ours) == ""
    found = disagreement(peer, {peer.name: Cost(1, 1, 1, {"AP": 0.5, "RR": 0.26})}, ours)
    assert found == "has RR = 0.260000, rankgauge 0.250000"
    nothing = disagreement(peer, {peer.name: Cost(1, 1, 1, {"AP": float("nan")})}, ours)
    assert nothing.startswith("has AP = nan")


def test_measures_with_other_tie_orders_have_a_wider_tolerance():
    peer = ENGINES["ir_measures"]
    ours = Cost(1, 1, 1, {"RR@10": 0.5, "RR": 0.5})
    assert disagreement(peer, {peer.name: Cost(1, 1, 1, {"RR@10": 0.51})}, ours) == ""
    assert disagreement(peer, {peer.name: Cost(1, 1, 1, {"RR@10": 0.53})}, ours)
    assert disagreement(peer, {peer.name: Cost(1, 1, 1, {"RR": 0.51})}, ours)


def test_means_of_other_definitions_are_not_compared():
    peer = ENGINES["sklearn"]
    took = {peer.name: Cost(1, 1, 1, {"nDCG@10": 0.9})}
    assert peer.other
    assert disagreement(peer, took, Cost(1, 1, 1, {"nDCG@10": 0.5})) == ""


def test_an_engine_is_known_without_loading_a_library():
    code = "import sys, engines; print(*sys.modules.keys() & {'numpy', 'typing', 'rankgauge'})"
    folder = ENGINES["rankgauge"].__class__.__module__
    assert folder == "engines"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=_folder())
    assert done.stdout.split() == []


def _folder():
    import engines

    return engines.__file__.rpartition("engines.py")[0]
