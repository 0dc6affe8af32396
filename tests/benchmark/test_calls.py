"""Whatever a retriever does, every query gets its response, and the run goes on."""

import asyncio
import contextlib
import functools
import itertools
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from rankgauge import InputError, Limits, Query, RankgaugeError
from rankgauge.benchmark.calls import ask
from rankgauge.retrievers.protocol import search

QUERIES = [Query(f"q{n}", f"text {n}") for n in range(12)]
QUICK = Limits(backoff=0.0)


def asked(asked_of, limits=QUICK, queries=QUERIES, k=3):
    """Responses by query, and whether all were asked."""
    responses = []
    whole = ask(asked_of, queries, k, limits=limits, record=responses.append)
    assert len({response.query for response in responses}) == len(responses), (
        "a query was answered twice"
    )
    return {response.query: response for response in responses}, whole


WAYS = {
    "in order": Limits(backoff=0.0),
    "in threads": Limits(backoff=0.0, concurrency=4),
    "in a thread with a time limit": Limits(backoff=0.0, timeout=20.0),
    "batched by the callable": Limits(backoff=0.0, batch=5),
}


def of_kind(limits, function):
    """The function as these limits want it: of one text, or of a list of them."""
    if limits.batch is None:
        return function
    return lambda texts: [function(text) for text in texts]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_asking_gives_the_same_answers(way):
    def retrieve(text):
        return [f"d{text.split()[1]}", "d0"]

    found, whole = asked(of_kind(WAYS[way], retrieve), WAYS[way])
    assert whole
    assert {q: a.hits.ids for q, a in found.items()} == {
        f"q{n}": list(dict.fromkeys([f"d{n}", "d0"])) for n in range(12)
    }


@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize("timeout", [None, 20.0])
def test_async_retrievers_are_awaited_side_by_side(concurrency, timeout):
    under_way = most = 0

    async def retrieve(text):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.002)
        under_way -= 1
        return [text]

    found, _ = asked(retrieve, Limits(concurrency=concurrency, timeout=timeout))
    assert {a.hits.ids[0] for a in found.values()} == {q.text for q in QUERIES}
    assert most == concurrency


def test_threads_are_no_more_than_the_limit_says():
    lock = threading.Lock()
    under_way = most = 0

    def retrieve(text):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.002)
        with lock:
            under_way -= 1
        return [text]

    asked(retrieve, Limits(concurrency=3))
    assert 1 < most <= 3


def test_an_async_retriever_works_where_a_loop_runs_already():
    async def retrieve(text):
        return [text]

    async def notebook():
        return asked(retrieve)

    found, whole = asyncio.run(notebook())
    assert whole
    assert len(found) == len(QUERIES)


class OfOneLoop:
    """As clients for async work are: it can be used in the loop that it met first, and no other."""

    def __init__(self):
        self.loops = set()

    async def __call__(self, text):
        self.loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0)
        return [text]


def test_an_async_client_meets_one_loop_in_all_that_is_asked_of_it():
    client = OfOneLoop()
    asked(client, Limits(concurrency=4))
    asked(client, Limits(timeout=20.0))
    asked(lambda text: client(text))  # noqa: PLW0108 - it is not declared async
    asked(lambda text: client(text), Limits(concurrency=3))  # noqa: PLW0108 - the same
    assert search(client, QUERIES[:1], 3)[0].ids == ["text 0"]
    assert len(client.loops) == 1


def test_code_that_is_not_async_may_wait_inside_code_that_is():
    async def inner(text):
        return [text]

    async def retrieve(text):
        return search(inner, [Query("q", text)], 3)[0].ids

    found, _ = asked(retrieve)
    assert found["q3"].hits.ids == ["text 3"]


def test_an_interrupt_cancels_what_is_awaited_before_it_is_passed_on():
    code = """
    import asyncio, signal, threading, time, os
    from rankgauge.retrievers import protocol
    async def work():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            print("cancelled", flush=True)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        protocol.awaited(work())
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    async def more():
        return "goes on"
    print(protocol.awaited(more()))
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.split("\n")[:3] == ["cancelled", "interrupted", "goes on"]
    assert done.stderr == ""


def test_a_task_that_wants_to_end_the_process_does_not_end_the_loop():
    async def leave():
        sys.exit(3)

    async def retrieve(text):
        if text == "text 3":
            await asyncio.ensure_future(leave())
        return [text]

    found, _ = asked(retrieve, Limits(retries=0))
    assert found["q3"].kind == "error"
    assert found["q4"].hits.ids == ["text 4"]


def test_a_function_that_returns_a_coroutine_is_awaited_too():
    async def inner(text):
        return [text]

    found, _ = asked(lambda text: inner(text))  # noqa: PLW0108 - it is not declared async
    assert found["q3"].hits.ids == ["text 3"]
    found, _ = asked(functools.partial(inner))
    assert found["q3"].hits.ids == ["text 3"]


def test_k_is_given_to_a_callable_that_takes_it():
    found, _ = asked(lambda text, k: [f"{text}-{n}" for n in range(k)], k=2)
    assert found["q1"].hits.ids == ["text 1-0", "text 1-1"]


class Protocol:
    """A retriever of the two methods that remembers how it was asked."""

    def __init__(self):
        self.sizes = []

    def index(self, documents):
        pass

    def search(self, queries, k):
        self.sizes.append(len(queries))
        return [[(query.id, 1.0)] for query in queries]


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [(Limits(), [12]), (Limits(batch=5), [5, 5, 2]), (Limits(timeout=20.0), [1] * 12)],
    ids=["together", "batch of five", "one by one under a time limit"],
)
def test_search_is_given_queries_in_batches(limits, sizes):
    retriever = Protocol()
    found, _ = asked(retriever, limits)
    assert retriever.sizes == sizes
    assert found["q7"].hits.ids == ["q7"]


# ---- what goes wrong


class Unfit(Exception):  # noqa: N818 - a name for a test
    """An error that says how it wants to be treated."""

    def __init__(self, *, retryable=True, retry_after=None):
        super().__init__("no")
        self.retryable = retryable
        self.retry_after = retry_after


def raising(error):
    raise error


class Speechless(Exception):  # noqa: N818 - a name for a test
    """An error whose message and whose properties cannot be read."""

    def __str__(self):
        raise RuntimeError("no")

    @property
    def retryable(self):
        raise RuntimeError("no")


class Hostile:
    """What it is cannot be said."""

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
    "some scores": (lambda: [("d1", 1.0), "d2"], "response", "1 of 2 hits have a score"),
    "a generator that fails": (lambda: (1 / 0 for _ in range(3)), "error", "ZeroDivision"),
    "a surrogate": (lambda: ["d\ud800"], "response", "surrogate"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bad", BAD)
def test_what_goes_wrong_with_a_query_is_its_answer(bad, way):
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
        Unfit(retryable=False), TypeError("a fault of the program"), NameError("x"), KeyError("y"),
        InputError("what we refuse ourselves"),
    ],
    ids=["said so", "type error", "name error", "key error", "input error"],
)  # fmt: skip
def test_what_fails_again_for_sure_is_not_tried_again(error):
    calls = []

    def retrieve(text):
        calls.append(text)
        raise error

    found, _ = asked(retrieve, queries=QUERIES[:1])
    assert calls == ["text 0"]
    assert found["q0"].attempts == 1


def test_an_answer_that_is_no_ranking_is_told_with_what_mends_it():
    found, _ = asked(lambda text: {text, "d1"})
    assert found["q3"].error.endswith("fix: return a list, best first: a set has no order")
    assert found["q3"].attempts == 1
    found, _ = asked(lambda texts: texts[1:], Limits(batch=1))
    assert "with one ranking for each query" in found["q3"].error


class Panic(BaseException):
    """As libraries written in Rust raise: it is no Exception."""


@pytest.mark.parametrize("error", [Panic("index out of range"), asyncio.CancelledError("mine")])
@pytest.mark.parametrize("way", ["in order", "threads", "async"])
def test_what_a_retriever_raises_that_is_no_exception_is_its_answer_too(way, error):
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
    # Of calls side by side, those that were cancelled with it fail too.
    assert len(failed) == 1 or (cancel is cancel_all_tasks and len(failed) <= concurrency)


def test_the_wait_before_a_retry_doubles_unless_the_error_says_it():
    limits = Limits(backoff=0.5)
    assert [limits.wait(n, ValueError()) for n in (1, 2, 3)] == [0.5, 1.0, 2.0]
    assert limits.wait(1, Unfit(retry_after=7)) == 7.0
    assert limits.wait(1, Unfit(retry_after=1e9)) == 120.0
    assert limits.wait(60, ValueError()) == 120.0
    assert limits.wait(1, Unfit(retry_after=float("nan"))) == 0.5


def test_a_call_that_hangs_is_left_behind_and_the_others_go_on():
    release = threading.Event()

    def retrieve(text):
        if text == "text 5":
            release.wait(30)
        return [text]

    before = time.monotonic()
    found, whole = asked(retrieve, Limits(timeout=0.2, retries=0))
    release.set()
    assert whole
    assert time.monotonic() - before < 15
    assert found["q5"].kind == "timeout"
    assert "0.2 s" in found["q5"].error
    assert sum(a.hits is not None for a in found.values()) == len(QUERIES) - 1


def test_a_call_that_hangs_is_tried_again_and_may_come_back_late():
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
def test_a_call_that_comes_back_late_does_not_widen_the_limit():
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


def test_waiting_for_a_retry_while_all_hands_are_busy_takes_no_processor():
    calls = []

    def retrieve(text):
        calls.append(text)
        if len(calls) == 1:
            raise ConnectionError("down")
        # The first is due again, and as many wait in the queue as may.
        time.sleep(1.0 if len(calls) == 2 else 0.0)
        return [text]

    before = time.process_time()
    found, _ = asked(retrieve, Limits(timeout=20.0, backoff=0.01))
    assert found["q0"].attempts == 2
    assert time.process_time() - before < 0.15


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
def test_a_batch_of_the_wrong_length_is_asked_again_one_by_one(wrong):
    def retrieve(texts):
        return wrong if len(texts) > 1 else [["d1"]]

    found, _ = asked(retrieve, Limits(batch=4))
    assert all(a.hits.ids == ["d1"] for a in found.values())


def test_a_batch_that_fails_costs_only_the_query_that_is_to_blame():
    async def retrieve(texts):
        if "text 5" in texts:
            raise Unfit(retryable=False)
        return [[text] for text in texts]

    found, _ = asked(retrieve, Limits(batch=4, concurrency=2))
    assert [q for q, a in found.items() if a.hits is None] == ["q5"]


@pytest.mark.parametrize("way", ["in order", "in threads", "in a thread with a time limit"])
def test_after_many_failures_in_a_row_the_rest_is_not_asked(way):
    def retrieve(text):
        if int(text.split()[1]) < 4:
            return [text]
        raise Unfit(retryable=False)

    limits = Limits(**{**WAYS[way].record(), "stop_after": 3})
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

    limits = Limits(**{**WAYS[way].record(), "stop_after": 3, "concurrency": 1})
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


def test_no_more_than_k_are_kept():
    found, _ = asked(lambda text: [f"d{n}" for n in range(9)])
    assert all((a.hits.ids, a.hits.beyond) == (["d0", "d1", "d2"], 6) for a in found.values())


def test_of_an_error_the_first_line_is_told():
    def retrieve(text):
        raise ValueError("\nno such index\n  at line 7\n")

    found, _ = asked(retrieve, Limits(retries=0))
    assert {a.error for a in found.values()} == {"ValueError: no such index"}


def test_a_rate_is_kept():
    starts = []

    def retrieve(text):
        starts.append(time.monotonic())
        return [text]

    asked(retrieve, Limits(rate=200.0))
    assert starts[-1] - starts[0] >= 11 / 200 - 0.002
    starts.clear()
    asked(retrieve, Limits(rate=200.0, concurrency=4))
    assert starts[-1] - starts[0] >= 11 / 200 - 0.01


def test_what_came_back_is_recorded_while_the_next_call_has_to_wait_for_the_rate():
    events = []

    def retrieve(text):
        events.append("asked")
        return [text]

    limits = Limits(rate=10.0, concurrency=4)
    ask(retrieve, QUERIES[:4], 3, limits=limits, record=lambda _: events.append("recorded"))
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
def test_a_retry_that_is_due_but_has_to_wait_costs_no_work(limits, count):
    asked_once = []

    def retrieve(text):
        if text == "text 1" and not asked_once:
            asked_once.append(text)
            raise OSError("once")
        time.sleep(1.0 if text in {"text 0", "text 2"} else 0.0)
        return [text]

    before = time.thread_time()
    found, _ = asked(retrieve, limits, QUERIES[:count])
    assert found["q1"].attempts == 2
    assert time.thread_time() - before < 0.1


def test_a_time_limit_is_kept_while_the_next_call_has_to_wait_for_the_rate():
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
    ask(retrieve, QUERIES[:2], 3, limits=limits, record=record)
    free.set()
    assert [row[:2] for row in told] == [("q0", "timeout"), ("q1", "")]
    assert told[0][2] < 0.9


def test_an_interrupt_stops_threads_from_beginning_more():
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
        ask(retrieve, QUERIES * 20, 3, limits=Limits(concurrency=2), record=record)
    time.sleep(0.1)
    seen = len(calls)
    time.sleep(0.1)
    assert len(calls) == seen < 20


def test_what_is_no_retriever_is_refused():
    for thing in (None, 7, "bm25", ["d1"]):
        with pytest.raises(InputError, match="for a retriever"):
            asked(thing)


@pytest.mark.parametrize(
    "given",
    [
        {"concurrency": 0}, {"concurrency": 1.5}, {"concurrency": True}, {"rate": 0},
        {"rate": float("nan")}, {"timeout": -1}, {"timeout": "2"}, {"retries": -1},
        {"backoff": -0.1}, {"backoff": None}, {"batch": 0}, {"stop_after": 0},
    ],
    ids=str,
)  # fmt: skip
def test_limits_that_make_no_sense_are_refused(given):
    with pytest.raises(RankgaugeError, match=next(iter(given))):
        Limits(**given)


def test_threads_left_waiting_end_with_the_run():
    before = threading.active_count()
    asked(lambda text: [text], Limits(concurrency=4, timeout=20.0))
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


# ---- async retrievers that do not let go


def finished_in(seconds, retrieve, limits):
    """Responses of a retriever, asked in a thread that is given so long."""
    found = []
    thread = threading.Thread(target=lambda: found.append(asked(retrieve, limits)), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it did not come to an end"
    return found[0]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_call_that_holds_up_the_loop_is_left_behind_with_it(declared, concurrency):
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
def test_a_call_that_does_not_let_itself_be_cancelled_is_left_behind(concurrency):
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


def test_a_call_that_holds_up_the_loop_is_made_again_if_the_limits_say_so():
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


def test_the_time_of_a_ranking_that_is_made_while_it_is_read_is_counted():
    def retrieve(text):
        time.sleep(0.02)
        yield text

    found, _ = asked(retrieve, queries=QUERIES[:2])
    assert all(response.seconds >= 0.02 for response in found.values())


@pytest.mark.slow
def test_an_interrupt_ends_a_run_whose_loop_is_held_up():
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
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=50, check=True,
    )  # fmt: skip
    assert done.stdout == "interrupted\n"
    assert time.monotonic() - began < 30
