"""Quantiles of latency, their intervals, and the timed interval."""

import math
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from rankgauge import InputError, Limits, Query
from rankgauge.benchmark import Latency
from rankgauge.benchmark.latency import measure_latency


def latency(times):
    return Latency({f"q{n}": value for n, value in enumerate(times)})


@given(st.lists(st.floats(0.0001, 10), min_size=20, max_size=300), st.sampled_from([0.5, 0.95]))
def test_a_quantile_is_that_of_numpy_and_within_its_interval(times, share):
    found = latency(times).quantile(share)
    assert found.value == np.quantile(times, share, method="inverted_cdf")
    assert math.isnan(found.low) or found.low <= found.value
    assert math.isnan(found.high) or found.high >= found.value


@pytest.mark.parametrize("count", [20, 59, 100, 200, 1000])
@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_the_interval_is_that_of_the_binomial(count, share):
    found = latency(range(1, count + 1)).quantile(share)
    if count * (1 - share) < 1 - 1e-9:
        assert found is None
        return
    below = stats.binom(count, share)
    low = [r for r in range(1, count + 1) if below.cdf(r - 1) <= 0.025]
    high = [r for r in range(1, count + 1) if below.cdf(r - 1) >= 0.975]
    assert found.low == low[-1]
    assert found.high == high[0] if high else math.isnan(found.high)


def test_the_interval_has_its_nominal_coverage():
    rng = np.random.default_rng(1)
    true = float(stats.lognorm(1).ppf(0.95))
    hits = 0
    for _ in range(1000):
        found = latency(rng.lognormal(size=200)).p95
        hits += found.low <= true <= found.high
    assert 0.94 <= hits / 1000 <= 0.985


@pytest.mark.parametrize(
    ("count", "known"), [(1, ""), (2, "p50"), (19, "p50"), (20, "p50 p95"), (99, "p50 p95"), (100, "p50 p95 p99")]
)
def test_too_few_queries_have_no_high_quantile(count, known):
    found = latency([0.1] * count)
    assert " ".join(n for n in ("p50", "p95", "p99") if getattr(found, n) is not None) == known


def test_nothing_timed_has_no_latency_at_all():
    found = Latency()
    assert found.p50 is None
    assert math.isnan(found.throughput)
    assert found.to_dict() == {"queries": 0, "failures": 0}


def test_throughput_is_queries_by_time():
    assert latency([0.5, 0.25, 0.25]).throughput == 3.0


class Retriever:
    def __init__(self):
        self.calls = []

    def index(self, documents):
        pass

    def search(self, queries, k):
        self.calls.append([query.id for query in queries])
        return [["d1"] for _ in queries]


@pytest.mark.parametrize("limits", [Limits(), Limits(concurrency=4, batch=8)], ids=["", "batched"])
def test_queries_are_timed_one_at_a_time_after_the_warm_up(limits):
    queries = [Query(f"q{n}", "text") for n in range(10)]
    retriever = Retriever()
    found = measure_latency(retriever, queries, 5, limits=limits)
    assert retriever.calls == [["q0"], ["q1"], ["q2"], *([query.id] for query in queries)]
    assert list(found.seconds) == [query.id for query in queries]
    assert found.warmup == 3


def test_a_batched_callable_is_timed_with_lists_of_one():
    seen = []

    def retrieve(texts):
        seen.append(texts)
        return [["d1"] for _ in texts]

    measure_latency(retrieve, [Query("q1", "a"), Query("q2", "b")], 5, limits=Limits(batch=8))
    assert seen == [["a"], ["b"], ["a"], ["b"]]


def test_a_failure_has_no_latency_and_is_not_tried_again():
    calls = []

    def retrieve(text):
        calls.append(text)
        if text == "b":
            raise ConnectionError("no")
        return ["d1"]

    queries = [Query("q1", "a"), Query("q2", "b")]
    found = measure_latency(retrieve, queries, 5, limits=Limits(retries=5))
    assert calls == ["a", "b"] * 2  # the warm-up, and the queries
    assert list(found.seconds) == ["q1"]
    assert found.failures == 1


def test_the_gate_reads_what_is_written(tmp_path):
    path = tmp_path / "latency.csv"
    latency([0.5, 0.25]).write(path)
    assert path.read_text() == "query,latency\nq0,0.5\nq1,0.25\n"
    with pytest.raises(InputError, match="cannot be written"):
        latency([0.5]).write(tmp_path / "no" / "latency.csv")


_PEAKS = """
import gc
from rankgauge.benchmark.latency import measure_resources
gc.collect()
with measure_resources() as before:
    block = bytearray(b"1") * 80_000_000
del block
with measure_resources() as after:
    pass
print(before.peak, after.peak)
"""


def test_the_peak_of_memory_is_that_of_the_work_inside():
    # In this process, libraries may return memory of earlier tests in the meantime.
    output = subprocess.check_output([sys.executable, "-c", _PEAKS], text=True)
    before, after = output.split()
    if before == "None":
        pytest.skip("this system does not report the memory of a process")
    assert 50_000_000 < int(before) < 160_000_000
    assert int(after) < 30_000_000


def test_concurrency_limits_do_not_apply_to_timing():
    lock = threading.Lock()
    under_way = most = 0

    def retrieve(text):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.01)
        with lock:
            under_way -= 1
        return [text]

    queries = [Query(f"q{n}", f"text {n}") for n in range(8)]
    measure_latency(retrieve, queries, 3, limits=Limits(concurrency=4, timeout=20.0))
    assert most == 1
