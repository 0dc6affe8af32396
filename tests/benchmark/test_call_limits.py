"""Rates, time limits, interrupts, and retrievers that block the event loop."""

import asyncio
import contextlib
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from calling import QUERIES, asked, finished_in

from rankgauge import InputError, Limits, RankgaugeError
from rankgauge.benchmark.calls import send_queries


def test_a_rate_limit_is_respected():
    starts = []

    def retrieve(text):
        starts.append(time.monotonic())
        return [text]

    asked(retrieve, Limits(rate=200.0))
    assert starts[-1] - starts[0] >= 11 / 200 - 0.002
    starts.clear()
    asked(retrieve, Limits(rate=200.0, concurrency=4))
    assert starts[-1] - starts[0] >= 11 / 200 - 0.01


def test_answers_are_recorded_while_the_next_call_waits_for_the_rate():
    events = []

    def retrieve(text):
        events.append("asked")
        return [text]

    limits = Limits(rate=10.0, concurrency=4)
    send_queries(retrieve, QUERIES[:4], 3, limits=limits, record=lambda _: events.append("recorded"))
    assert events == ["asked", "recorded"] * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "count"),
    [
        (Limits(concurrency=1, backoff=0.05, retries=1, timeout=20.0), 12),
        (Limits(concurrency=2, backoff=0.05, retries=1, rate=2.0), 3),
    ],
    ids=["all places taken", "a rate"],
)
def test_a_retry_waiting_for_the_rate_uses_no_processor_time(limits, count):
    asked_once = []

    def retrieve(text):
        if text == "text 1" and not asked_once:
            asked_once.append(text)
            raise OSError("once")
        time.sleep(1.0 if text in {"text 0", "text 2"} else 0.0)
        return [text]

    begun, before = time.monotonic(), time.thread_time()
    found, _ = asked(retrieve, limits, QUERIES[:count])
    assert found["q1"].attempts == 2
    assert time.thread_time() - before < 0.3 * (time.monotonic() - begun)


def test_a_time_limit_is_respected_while_the_next_call_waits():
    began = time.monotonic()
    told = []
    free = threading.Event()

    def retrieve(text):
        if text == "text 0":
            free.wait(30)
        return [text]

    def record(response):
        told.append((response.query, response.kind, time.monotonic() - began))

    limits = Limits(rate=1.0, concurrency=4, timeout=0.1, retries=0)
    send_queries(retrieve, QUERIES[:2], 3, limits=limits, record=record)
    free.set()
    assert [row[:2] for row in told] == [("q0", "timeout"), ("q1", "")]
    assert told[0][2] < 0.9


def test_an_interrupt_prevents_new_calls_of_threads():
    calls = []

    def retrieve(text):
        calls.append(text)
        time.sleep(0.01)
        return [text]

    responses = []

    def record(response):
        responses.append(response)
        if len(responses) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        send_queries(retrieve, QUERIES * 20, 3, limits=Limits(concurrency=2), record=record)
    time.sleep(0.1)
    seen = len(calls)
    time.sleep(0.1)
    assert len(calls) == seen < 20


def test_an_object_that_is_no_retriever_is_refused():
    for thing in (None, 7, "bm25", ["d1"]):
        with pytest.raises(InputError, match="expected a retriever"):
            asked(thing)


@pytest.mark.parametrize(
    "given",
    [
        {"concurrency": 0},
        {"concurrency": 1.5},
        {"concurrency": True},
        {"rate": 0},
        {"rate": float("nan")},
        {"timeout": -1},
        {"timeout": "2"},
        {"retries": -1},
        {"backoff": -0.1},
        {"backoff": None},
        {"batch": 0},
        {"stop_after": 0},
    ],
    ids=str,
)
def test_invalid_limits_are_refused(given):
    with pytest.raises(RankgaugeError, match=next(iter(given))):
        Limits(**given)


def test_threads_left_waiting_end_with_the_run():
    before = threading.active_count()
    asked(lambda text: [text], Limits(concurrency=4, timeout=20.0))
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_call_that_blocks_the_event_loop_is_abandoned_with_it(declared, concurrency):
    release = threading.Event()

    async def retrieve(text):
        await asyncio.sleep(0.01)
        if text == "text 5":
            release.wait(60)
        return [text]

    limits = Limits(timeout=0.3, retries=0, concurrency=concurrency)
    called = retrieve if declared else (lambda text: retrieve(text))  # noqa: PLW0108 - not async
    found, whole = finished_in(30, called, limits)
    assert whole
    others = {query for query, response in found.items() if response.hits is None}
    assert found["q5"].kind == "timeout"
    assert len(others) <= concurrency
    release.set()
    more, _ = finished_in(30, retrieve, limits)
    assert all(response.hits is not None for response in more.values())


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_call_that_ignores_cancellation_is_abandoned(concurrency):
    release = threading.Event()

    async def retrieve(text):
        while text == "text 5" and not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        return [text]

    limits = Limits(timeout=0.2, retries=0, concurrency=concurrency)
    found, whole = finished_in(30, retrieve, limits)
    release.set()
    assert whole
    assert [query for query, response in found.items() if response.hits is None] == ["q5"]
    assert found["q5"].kind == "timeout"


def test_a_call_that_blocks_the_event_loop_is_retried_within_the_limits():
    release = threading.Event()
    calls = []

    async def retrieve(text):
        calls.append(text)
        if text == "text 5" and calls.count(text) == 1:
            release.wait(60)
        return [text]

    found, _ = finished_in(30, retrieve, Limits(timeout=0.3, retries=1, backoff=0.0))
    release.set()
    assert (found["q5"].attempts, found["q5"].hits.ids) == (2, ["text 5"])


def test_a_ranking_that_is_slow_to_read_counts_within_the_time_limit():
    def retrieve(text):
        yield text
        if text == "text 5":
            time.sleep(60)

    found, whole = finished_in(30, retrieve, Limits(timeout=0.3, retries=0))
    assert whole
    assert found["q5"].kind == "timeout"
    assert sum(response.hits is not None for response in found.values()) == len(QUERIES) - 1


def test_latency_includes_reading_a_lazy_ranking():
    def retrieve(text):
        time.sleep(0.02)
        yield text

    found, _ = asked(retrieve, queries=QUERIES[:2])
    assert all(response.seconds >= 0.02 for response in found.values())


@pytest.mark.slow
def test_an_interrupt_ends_a_run_with_a_blocked_event_loop():
    code = """
    import os, signal, threading, time
    from rankgauge import Benchmark
    bench = Benchmark()
    bench.add_query("q1", "text", {"d1"})
    async def retrieve(text):
        time.sleep(60)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        bench.run("mine", retrieve)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=50, check=True
    )
    assert done.stdout == "interrupted\n"
