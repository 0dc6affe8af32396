"""Every query gets a response and the run continues, whatever the retriever does."""

import asyncio
import itertools
import sys
import threading
import time

import numpy as np
import pytest
from calling import QUERIES, WAYS, asked, finished_in, of_kind

from rankgauge import Benchmark, InputError, Limits


class Unfit(Exception):  # noqa: N818 - a name for a test
    """An error with attributes that control its handling."""

    def __init__(self, *, retryable=True, retry_after=None):
        super().__init__("no")
        self.retryable = retryable
        self.retry_after = retry_after


def raising(error):
    raise error


class Speechless(Exception):  # noqa: N818 - a name for a test
    """An error whose message and attributes cannot be read."""

    def __str__(self):
        raise RuntimeError("no")

    @property
    def retryable(self):
        raise RuntimeError("no")


class Hostile:
    """An object whose representation raises SystemExit."""

    def __repr__(self):
        sys.exit(3)


BAD = {
    "an error without a message": (lambda: raising(Speechless()), "error", "Speechless (its mess"),
    "exits with an object": (lambda: raising(SystemExit(Speechless())), "error", "SystemExit"),
    "an end of a generator": (lambda: raising(GeneratorExit()), "error", "GeneratorExit"),
    "what cannot be shown": (lambda: [Hostile()], "error", "SystemExit"),
    "exits while it is read": (lambda: (sys.exit(3) for _ in range(3)), "error", "SystemExit"),
    "no end": (lambda: itertools.repeat("d1"), "response", "did not stop"),
    "raises": (lambda: 1 / 0, "error", "ZeroDivisionError: division by zero"),
    "exits": (lambda: (_ for _ in ()).throw(SystemExit(3)), "error", "SystemExit: 3"),
    "nothing at all": (lambda: None, "response", "returned None"),
    "text": (lambda: "d1", "response", "returned 'd1'"),
    "a number": (lambda: 7, "response", "returned 7"),
    "NaN": (lambda: [("d1", float("nan"))], "response", "nan"),
    "infinity": (lambda: {"d1": float("inf")}, "response", "inf"),
    "no ids": (lambda: [object()], "response", "has no id"),
    "an empty id": (lambda: [""], "response", "empty"),
    "some scores": (lambda: [("d1", 1.0), "d2"], "response", "1 of 2 hits has a score"),
    "a generator that fails": (lambda: (1 / 0 for _ in range(3)), "error", "ZeroDivision"),
    "a surrogate": (lambda: ["d\ud800"], "response", "surrogate"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bad", BAD)
def test_an_error_of_a_query_is_its_answer(bad, way):
    fault, kind, said = BAD[bad]

    def retrieve(text):
        return fault() if text == "text 5" else [text]

    found, whole = asked(of_kind(WAYS[way], retrieve), WAYS[way])
    assert whole
    assert len(found) == len(QUERIES)
    assert found["q5"].hits is None
    assert found["q5"].kind == kind
    assert said in found["q5"].error
    assert all(a.hits is not None for q, a in found.items() if q != "q5")


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_is_tried_again_as_often_as_the_limits_say(way):
    seen = dict.fromkeys((query.text for query in QUERIES), 0)

    def retrieve(text):
        seen[text] += 1
        if text == "text 5" and seen[text] < 3:
            raise ConnectionError("reset")
        return [text]

    limits = WAYS[way]
    found, _ = asked(of_kind(limits, retrieve), limits)
    assert found["q5"].hits.ids == ["text 5"]
    assert seen["text 5"] == 3
    if limits.batch is None:
        assert found["q5"].attempts == 3
        assert found["q4"].attempts == 1


@pytest.mark.parametrize(
    "error",
    [
        Unfit(retryable=False),
        TypeError("a fault of the program"),
        NameError("x"),
        KeyError("y"),
        InputError("what we refuse ourselves"),
    ],
    ids=["said so", "type error", "name error", "key error", "input error"],
)
def test_permanent_failures_are_not_retried(error):
    calls = []

    def retrieve(text):
        calls.append(text)
        raise error

    found, _ = asked(retrieve, queries=QUERIES[:1])
    assert calls == ["text 0"]
    assert found["q0"].attempts == 1


def test_an_answer_that_is_no_ranking_is_reported_with_its_fix():
    found, _ = asked(lambda text: {text, "d1"})
    assert found["q3"].error.endswith("fix: return a list, best first: a set has no order")
    assert found["q3"].attempts == 1
    found, _ = asked(lambda texts: texts[1:], Limits(batch=1))
    assert "with one ranking for each query" in found["q3"].error


class Panic(BaseException):
    """Like panics of libraries written in Rust, this is not an Exception."""


@pytest.mark.parametrize("error", [Panic("index out of range"), asyncio.CancelledError("mine")])
@pytest.mark.parametrize("way", ["in order", "threads", "async"])
def test_a_base_exception_of_a_retriever_is_an_answer_too(way, error):
    def retrieve(text):
        if text == "text 3":
            raise error
        return [text]

    async def awaitable(text):
        return retrieve(text)

    limits = Limits(retries=0, timeout=20.0 if way == "threads" else None)
    found, whole = asked(awaitable if way == "async" else retrieve, limits)
    assert whole
    assert len(found) == len(QUERIES)
    assert found["q3"].error == f"{type(error).__name__}: {error}"


def cancel_own_task():
    asyncio.current_task().cancel()


def cancel_own_task_later():
    asyncio.get_running_loop().call_later(0.01, asyncio.current_task().cancel)


def cancel_all_tasks():
    for task in asyncio.all_tasks():
        task.cancel()


@pytest.mark.parametrize("cancel", [cancel_own_task, cancel_own_task_later, cancel_all_tasks])
@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("timeout", [None, 20.0])
def test_a_retriever_that_cancels_tasks_fails_for_its_query_only(cancel, concurrency, timeout):
    async def retrieve(text):
        if text == "text 5":
            cancel()
            await asyncio.sleep(0.05)
        return [text]

    limits = Limits(retries=0, concurrency=concurrency, timeout=timeout)
    found, whole = finished_in(30, retrieve, limits)
    assert whole
    failed = {query: response.error for query, response in found.items() if response.hits is None}
    assert "Cancelled" in failed["q5"]
    # Concurrent calls that were cancelled with it fail, too.
    assert len(failed) == 1 or (cancel is cancel_all_tasks and len(failed) <= concurrency)


def test_the_wait_before_a_retry_doubles_unless_the_error_says_it():
    limits = Limits(backoff=0.5)
    assert [limits.wait(n, ValueError()) for n in (1, 2, 3)] == [0.5, 1.0, 2.0]
    assert limits.wait(1, Unfit(retry_after=7)) == 7.0
    assert limits.wait(1, Unfit(retry_after=1e9)) == 120.0
    assert limits.wait(60, ValueError()) == 120.0
    assert limits.wait(1, Unfit(retry_after=float("nan"))) == 0.5


def test_a_hanging_call_is_abandoned_and_the_others_continue():
    release, ended = threading.Event(), []

    def retrieve(text):
        if text == "text 5":
            release.wait(30)
            ended.append(text)
        return [text]

    found, whole = asked(retrieve, Limits(timeout=0.2, retries=0))
    assert whole
    assert not ended
    release.set()
    assert found["q5"].kind == "timeout"
    assert "0.2 s" in found["q5"].error
    assert sum(a.hits is not None for a in found.values()) == len(QUERIES) - 1


def test_a_hanging_call_is_retried_and_can_return_late():
    calls = []

    def retrieve(text):
        calls.append(text)
        if text == "text 0" and calls.count(text) == 1:
            time.sleep(0.5)
        return [text]

    found, _ = asked(retrieve, Limits(timeout=0.15, backoff=0.0, retries=1))
    assert found["q0"].attempts == 2
    assert found["q0"].hits.ids == ["text 0"]


@pytest.mark.slow
def test_a_late_call_does_not_raise_the_limit():
    lock = threading.Lock()
    under_way = most = 0

    def retrieve(text):
        nonlocal under_way, most
        if text == "text 0":
            time.sleep(0.4)
            return [text]
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.1)
        with lock:
            under_way -= 1
        return [text]

    found, _ = asked(retrieve, Limits(timeout=0.3, retries=0))
    assert found["q0"].kind == "timeout"
    assert most == 1


def test_waiting_for_a_retry_uses_no_processor_time():
    calls = []

    def retrieve(text):
        calls.append(text)
        if len(calls) == 1:
            raise ConnectionError("down")
        # The first call is due again, and the queue is full.
        time.sleep(1.0 if len(calls) == 2 else 0.0)
        return [text]

    begun, before = time.monotonic(), time.process_time()
    found, _ = asked(retrieve, Limits(timeout=20.0, backoff=0.01))
    assert found["q0"].attempts == 2
    assert time.process_time() - before < 0.3 * (time.monotonic() - begun)


def test_an_async_call_that_hangs_is_cancelled():
    async def retrieve(text):
        if text == "text 5":
            await asyncio.sleep(60)
        if text == "text 6":
            raise TimeoutError("its own")
        if text == "text 7":
            raise asyncio.CancelledError
        return [text]

    found, whole = asked(retrieve, Limits(timeout=0.2, retries=0, concurrency=4))
    assert whole
    assert (found["q5"].kind, found["q6"].kind, found["q7"].kind) == ("timeout", "error", "error")
    assert "its own" in found["q6"].error
    assert sum(a.hits is not None for a in found.values()) == len(QUERIES) - 3


@pytest.mark.parametrize("kind", [np.array, tuple], ids=["array", "tuple"])
def test_the_rankings_of_a_batch_may_be_an_array_or_a_tuple(kind):
    found, _ = asked(lambda texts: kind([[7, 3]] * len(texts)), Limits(batch=5))
    assert all(response.hits.ids == ["7", "3"] for response in found.values())


@pytest.mark.parametrize("wrong", [[], [["d1"]] * 9, None, "d1"], ids=repr)
def test_a_batch_of_the_wrong_length_is_retried_one_by_one(wrong):
    def retrieve(texts):
        return wrong if len(texts) > 1 else [["d1"]]

    found, _ = asked(retrieve, Limits(batch=4))
    assert all(a.hits.ids == ["d1"] for a in found.values())


def test_a_failing_batch_loses_only_the_query_that_fails():
    async def retrieve(texts):
        if "text 5" in texts:
            raise Unfit(retryable=False)
        return [[text] for text in texts]

    found, _ = asked(retrieve, Limits(batch=4, concurrency=2))
    assert [q for q, a in found.items() if a.hits is None] == ["q5"]


@pytest.mark.parametrize("way", ["in order", "in threads", "in a thread with a time limit"])
def test_after_many_consecutive_failures_the_rest_is_skipped(way):
    def retrieve(text):
        if int(text.split()[1]) < 4:
            return [text]
        raise Unfit(retryable=False)

    limits = Limits(**{**WAYS[way].to_dict(), "stop_after": 3})
    found, whole = asked(retrieve, limits)
    assert not whole
    assert sum(a.hits is None for a in found.values()) == 3
    found, whole = asked(retrieve, Limits(stop_after=None))
    assert whole
    assert len(found) == len(QUERIES)


@pytest.mark.parametrize("way", ["in order", "in threads", "in a thread with a time limit"])
def test_failures_between_answers_are_not_in_a_row(way):
    def retrieve(text):
        if int(text.split()[1]) % 4:
            return [text]
        raise Unfit(retryable=False)

    limits = Limits(**{**WAYS[way].to_dict(), "stop_after": 3, "concurrency": 1})
    found, whole = asked(retrieve, limits)
    assert whole
    assert sum(a.hits is None for a in found.values()) == 3


def test_a_batch_shares_its_time():
    def retrieve(texts):
        time.sleep(0.2)
        return [[text] for text in texts]

    found, _ = asked(retrieve, Limits(batch=12))
    assert {a.seconds for a in found.values()} == {found["q0"].seconds}
    assert 0.2 / 12 <= found["q0"].seconds < 0.2


def test_at_most_k_hits_are_recorded():
    found, _ = asked(lambda text: [f"d{n}" for n in range(9)])
    assert all((a.hits.ids, a.hits.beyond) == (["d0", "d1", "d2"], 6) for a in found.values())


def test_the_first_line_of_an_error_is_reported():
    def retrieve(text):
        raise ValueError("\nno such index\n  at line 7\n")

    found, _ = asked(retrieve, Limits(retries=0))
    assert {a.error for a in found.values()} == {"ValueError: no such index"}


@pytest.mark.parametrize("stop_after", [3, 100])
def test_a_retriever_without_any_response_has_no_numbers(collection, stop_after):
    def unreachable(text):
        raise ConnectionError("connection refused")

    bench = Benchmark(collection, k=5, limits=Limits(retries=0, stop_after=stop_after))
    run = bench.run("a", unreachable, timed=0)
    bench.run("b", lambda text: ["d1"], timed=0)
    for act in (
        lambda: run.evaluate("RR", errors="empty"),
        lambda: run.ranked("empty"),
        lambda: bench.compare("RR", errors="empty"),
    ):
        with pytest.raises(InputError, match=r"of 10 queries failed.*connection refused") as caught:
            act()
        assert "empty" not in caught.value.fix
