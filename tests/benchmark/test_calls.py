"""All kinds of retriever calls give the same responses."""

import asyncio
import functools
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from calling import QUERIES, WAYS, asked, of_kind

from rankgauge import Limits, Query
from rankgauge.retrievers.protocol import search


@pytest.mark.parametrize("way", WAYS)
def test_every_calling_convention_gives_the_same_answers(way):
    def retrieve(text):
        return [f"d{text.split()[1]}", "d0"]

    found, whole = asked(of_kind(WAYS[way], retrieve), WAYS[way])
    assert whole
    assert {q: a.hits.ids for q, a in found.items()} == {
        f"q{n}": list(dict.fromkeys([f"d{n}", "d0"])) for n in range(12)
    }


@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize("timeout", [None, 20.0])
def test_async_retrievers_are_awaited_concurrently(concurrency, timeout):
    under_way = most = 0
    enough = asyncio.Event()

    async def retrieve(text):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == concurrency:
            enough.set()
        await asyncio.wait_for(enough.wait(), 10)
        await asyncio.sleep(0.002)  # time for more than the limit
        under_way -= 1
        return [text]

    found, _ = asked(retrieve, Limits(concurrency=concurrency, timeout=timeout))
    assert {a.hits.ids[0] for a in found.values()} == {q.text for q in QUERIES}
    assert most == concurrency


def test_the_number_of_threads_stays_within_its_limit():
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


def test_an_async_retriever_works_inside_a_running_event_loop():
    async def retrieve(text):
        return [text]

    async def notebook():
        return asked(retrieve)

    found, whole = asyncio.run(notebook())
    assert whole
    assert len(found) == len(QUERIES)


class OfOneLoop:
    """An async client that can be used only in the event loop of its first use."""

    def __init__(self):
        self.loops = set()

    async def __call__(self, text):
        self.loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0)
        return [text]


def test_an_async_client_uses_one_event_loop_for_all_calls():
    client = OfOneLoop()
    asked(client, Limits(concurrency=4))
    asked(client, Limits(timeout=20.0))
    asked(lambda text: client(text))  # noqa: PLW0108 - it is not declared async
    asked(lambda text: client(text), Limits(concurrency=3))  # noqa: PLW0108 - the same
    assert search(client, QUERIES[:1], 3)[0].ids == ["text 0"]
    assert len(client.loops) == 1


def test_sync_code_can_wait_inside_async_code():
    async def inner(text):
        return [text]

    async def retrieve(text):
        return search(inner, [Query("q", text)], 3)[0].ids

    found, _ = asked(retrieve)
    assert found["q3"].hits.ids == ["text 3"]


def test_an_interrupt_cancels_awaited_calls_before_it_propagates():
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
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split("\n")[:3] == ["cancelled", "interrupted", "goes on"]
    assert done.stderr == ""


def test_a_task_that_raises_system_exit_does_not_end_the_event_loop():
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
    """A retriever with both methods that records its calls."""

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
