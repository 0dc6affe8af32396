"""The profiles of trec_eval 9 and 10, compared with their outputs for real runs."""

import gzip
import json
import math

import pytest

from rankgauge import UnknownName, evaluate, parse, read_qrels, read_run

RUNS = {
    "cranfield": ("trec/qrels.txt", "bm25-coarse-scores", "rrf-bm25-minilm-k60"),
    "cisi": ("trec/qrels.txt", "bm25-coarse-scores", "rrf-bm25-minilm-k60"),
    "dl20-doc": ("qrels.txt", "BIT.UA-run3-4"),
}
VERSIONS = {"trec_eval-9": "trec_eval-9.0.8", "trec_eval-10": "trec_eval-10.0-rc3"}
# Measures that version 10 adds and computes from uninitialized memory.
NO_NUMBER = {"rbp", "rbp_resid", "runid", "relstring", "relstring_10", "num_q"}


def known(profile, name):
    """Return our measure of this name; None if the profile says that the tool has no such value."""
    if name in NO_NUMBER:
        return None
    try:
        measure = parse(name, dialect="trec_eval")
        evaluate({"q": {"d": 1}}, {"q": ["d"]}, measure, profile=profile)
    except UnknownName:
        return None
    return measure


@pytest.mark.slow
@pytest.mark.parametrize(
    ("collection", "profile"),
    # Version 10 printed nothing for dl20-doc, since the run lacks a judged query.
    [(c, p) for c in RUNS for p in VERSIONS if (c, p) != ("dl20-doc", "trec_eval-10")],
)
def test_a_measure_is_that_of_trec_eval(collection, profile, data_folder):
    folder, compared, measured = data_folder / collection, 0, set()
    where, *names = RUNS[collection]
    for run in names:
        path = folder / "oracle" / f"{run}.{VERSIONS[profile]}.json.gz"
        said = json.loads(gzip.decompress(path.read_bytes()))["variants"]["default"]
        ours = {name: known(profile, name) for name in said["per_query"]}
        asked = {name: measure for name, measure in ours.items() if measure is not None}
        qrels, ranking = read_qrels(folder / where), read_run(folder / "runs" / f"{run}.run.gz")
        ev = evaluate(qrels, ranking, list(asked.values()), profile=profile)
        columns = dict(zip(ev.profile.asked, ev.per_query.T.tolist(), strict=True))
        for name, measure in asked.items():
            values = dict(zip(ev.query_ids, columns[str(measure)], strict=True))
            for query, value in said["per_query"][name].items():
                mine = 0.0 if math.isnan(values[query]) else values[query]
                theirs = float(value)
                if measure.name in {"GMAP", "GMBpref"}:
                    theirs, mine = math.exp(theirs), max(mine, 1e-5)
                assert mine == pytest.approx(theirs, abs=1e-9), (run, name, query)
                compared += 1
            measured.add(measure.name)
    assert compared > 1000
    assert {"AP", "nDCG", "IPrec", "IPrecAvg", "P", "Bpref", "RR"} <= measured
