"""The work of a worker, without an engine: any split of the rows gives the same bits."""

import math
import os
import subprocess
import sys
import sysconfig
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rankgauge
from rankgauge.core.policies import Policies
from rankgauge.distributed.worker import (
    Job,
    Sum,
    mean_of,
    measure_batches,
    read_sums,
    sum_batches,
    sum_of,
    whole_queries,
)
from rankgauge.errors import InputError

pa = pytest.importorskip("pyarrow", reason="without pyarrow no batch is made")

MEASURES = ("nDCG@3", "RR", "AP", "GMAP", "R@2", "P(rel=2)@5", "ERR@3", "NumRet")
DOCS = ["a", "b", "ä", "10", "9", "Z"]
RANKING = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 0.5, 1.0]), min_size=1)
RUN = st.dictionaries(st.sampled_from(["q1", "q2", "é", "q4", "q5"]), RANKING, min_size=1)
JUDGED = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0, 1, 2, 3]), min_size=1)
QRELS = st.dictionaries(st.sampled_from(["q1", "q2", "é", "q4", "q6"]), JUDGED, min_size=1)

SCHEMA = pa.schema(
    [
        ("query_id", pa.string()),
        ("doc_id", pa.string()),
        ("value", pa.float64()),
        ("run", pa.string()),
        ("judged", pa.bool_()),
    ]
)


def rows_of(qrels, runs):
    rows = [(q, d, float(g), "run", True) for q, docs in qrels.items() for d, g in docs.items()]
    for name, run in runs.items():
        rows += [(q, d, s, name, False) for q, docs in run.items() for d, s in docs.items()]
    return sorted(rows, key=lambda row: row[0].encode())


def batches_of(rows, cuts=()):
    bounds = [0, *sorted({cut % (len(rows) + 1) for cut in cuts}), len(rows)]
    return [
        pa.RecordBatch.from_arrays(
            [pa.array(column, kind.type) for column, kind in zip(zip(*part, strict=True), SCHEMA, strict=True)],
            schema=SCHEMA,
        )
        for part in (rows[a:b] for a, b in pairwise(bounds))
        if part
    ]


def values_of(batches):
    return {
        (row["run"], row["query_id"]): [row[name] for name in MEASURES]
        for batch in batches
        for row in batch.to_pylist()
    }


def evaluated(qrels, run, name, **policies):
    found = rankgauge.evaluate(qrels, run, MEASURES, **policies)
    return {
        (name, query): [None if math.isnan(v) else v for v in row]
        for query, row in zip(found.query_ids, found.per_query.tolist(), strict=True)
    }


@given(QRELS, RUN, RUN, st.lists(st.integers(0, 99), max_size=6), st.integers(1, 9))
def test_any_split_of_the_rows_gives_the_values_of_evaluate(qrels, a, b, cuts, size):
    qrels = {"q0": {"a": 1}} | qrels
    a, b = {"q0": {"a": 1.0}} | a, {"q0": {"b": 1.0}} | b
    job = Job(MEASURES, ("a", "b"), Policies())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankgauge.distributed.worker.CHUNK_ROWS", size)
        found = values_of(measure_batches(batches_of(rows_of(qrels, {"a": a, "b": b}), cuts), job))
    assert found == evaluated(qrels, a, "a") | evaluated(qrels, b, "b")


@pytest.mark.parametrize(
    "policies", [{"ties": "best"}, {"ties": "worst"}, {"queries": "intersection"}, {"unjudged": "removed"}]
)
@given(QRELS, RUN)
def test_policies_are_those_of_evaluate(policies, qrels, run):
    qrels, run = {"q0": {"a": 1}} | qrels, {"q0": {"a": 1.0, "b": 1.0}} | run
    job = Job(MEASURES, ("run",), Policies(**policies))
    found = values_of(measure_batches(batches_of(rows_of(qrels, {"run": run})), job))
    assert found == evaluated(qrels, run, "run", **policies)


def test_a_partition_without_values_gives_no_batch():
    job = Job(MEASURES, ("run",), Policies(queries="intersection"))
    rows = rows_of({"q1": {"a": 1}}, {"run": {"q9": {"a": 1.0}}})
    assert list(measure_batches(batches_of(rows), job)) == []


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 30)), unique_by=lambda x: x[0]),
    st.lists(st.integers(0, 99), max_size=9),
    st.integers(1, 40),
)
def test_tables_hold_whole_queries(queries, cuts, size):
    rows = [(q, f"d{n}", 1.0, "run", False) for q, many in sorted(queries) for n in range(many)]
    tables = [table.to_pylist() for table in whole_queries(batches_of(rows, cuts), size)]
    assert [row["doc_id"] for table in tables for row in table] == [row[1] for row in rows]
    seen = [query for table in tables for query in {row["query_id"] for row in table}]
    assert len(seen) == len(set(seen))


FLOATS = st.floats(0, 1, allow_subnormal=True) | st.just(math.nan)


@pytest.mark.parametrize("measure", ["nDCG@10", "GMAP", "NumRet", "SetP"])
@given(st.lists(FLOATS, min_size=1), st.integers(0, 20), st.booleans())
def test_means_of_parts_are_the_mean_of_the_whole(measure, values, cut, skip):
    cut = min(cut, len(values))
    total = sum_of(measure, values[cut:]) + sum_of(measure, values[:cut])
    expected = rankgauge.parse(measure).mean(values, skip_undefined=skip)
    assert mean_of(measure, total, skip_undefined=skip) == pytest.approx(expected, rel=0, abs=0, nan_ok=True)


def test_sums_of_a_partition_are_by_run_and_measure():
    batch = pa.RecordBatch.from_pydict({"run": ["b", "a", "a"], "query_id": ["q1", "q1", "q2"], "RR": [0.5, 0.1, None]})
    texts = [text for part in sum_batches([batch, batch], ["RR"]) for text in part["sums"].to_pylist()]
    assert read_sums(texts, Sum) == {
        ("b", "RR"): Sum(2**1074, 2, 2),
        ("a", "RR"): sum_of("RR", [0.1, 0.1, math.nan, math.nan]),
    }


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(None, "d", 1.0, "run", False)], "a query id is missing in the run"),
        ([(None, "d", 1.0, "run", True)], "a query id is missing in the judgments"),
        ([("q1", None, 1.0, "run", False)], "run run: .*document id is missing"),
        ([("q1", None, 1.0, "run", True)], "judgments: .*document id is missing"),
        ([("q1", "d", None, "run", False)], "run run: .*score"),
        ([("q1", "d", math.nan, "run", False)], "run run: .*score"),
        ([("q1", "d", math.nan, "run", True)], "judgments: .*grade"),
        ([("q1", "d", 1.0, "run", False)] * 2, "run run: .*'d' occurs twice"),
        ([("q2", "d", 1.0, "run", False), ("q0", "d", 1.0, "run", False)], "not sorted by query"),
    ],
)
def test_what_evaluate_refuses_is_refused_by_name(rows, message):
    rows = [*rows, ("q3", "d", 1.0, "run", True)]
    if rows[0][0] == "q1":
        rows.insert(0, ("q1", "other", 1.0, "run", True))
    with pytest.raises(InputError, match=message):
        list(measure_batches(batches_of(rows), Job(("RR",), ("run",), Policies())))


def test_code_is_pickled_for_processes_without_the_package(tmp_path):
    cloudpickle = pytest.importorskip("cloudpickle", reason="it comes with Spark")
    from rankgauge.distributed.spark import _on_worker

    qrels, run = {"q1": {"a": 1, "b": 2}, "q2": {"a": 1}}, {"q1": {"b": 0.5, "a": 1.0}}
    work = _on_worker("measure_batches", Job(MEASURES, ("run",), Policies()), "value")
    packed = tmp_path / "job"
    packed.write_bytes(cloudpickle.dumps((work, batches_of(rows_of(qrels, {"run": run})))))
    code = (
        "import importlib.util, pickle, sys\n"
        "assert importlib.util.find_spec('rankgauge') is None\n"
        "sys.modules |= dict.fromkeys(['click', 'jinja2', 'narwhals'])\n"
        "work, batches = pickle.load(open(sys.argv[1], 'rb'))\n"
        "again = list(work(iter(batches)))\n"
        "print([b.to_pylist() for b in work(iter(batches))] == [b.to_pylist() for b in again])\n"
        "print([row for b in again for row in b.to_pylist()])\n"
    )
    site = sysconfig.get_paths()["purelib"]  # without -S, links there are followed
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(packed)],
        env={"PYTHONPATH": site, "PATH": os.environ["PATH"]},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    same, rows = done.stdout.splitlines()
    assert same == "True"
    expected = rankgauge.evaluate(qrels, run, MEASURES)
    found = [[row[name] for name in MEASURES] for row in eval(rows)]
    assert np.array_equal(np.array(found, dtype=float), expected.per_query, equal_nan=True)
