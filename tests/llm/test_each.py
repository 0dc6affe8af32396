"""Results of several requests in order of completion, with a limit and an estimate."""

import time

import pytest
from loopback import completion, serving

from rankgauge.llm import ChatModel, ChatRequest

PRICES = {"input_price": 2.0, "output_price": 10.0}


def echo(body, _before):
    text = body["messages"][0]["content"]
    time.sleep(0.3 if "slow" in text else 0)
    return completion(text.upper())


def test_results_come_as_they_are_ready_with_their_numbers():
    with serving(echo) as server:
        model = ChatModel(server.url, "small", concurrency=4)
        found = list(model.complete_each(["slow", "a", "b", "a"]))
    assert [number for number, _ in found][-1] == 0
    assert {number: reply.text for number, reply in found} == {0: "SLOW", 1: "A", 2: "B", 3: "A"}


def test_requests_are_sent_only_as_results_are_read():
    with serving(echo) as server:
        model = ChatModel(server.url, "small", concurrency=1)
        results = model.complete_each(f"slow {n}" for n in range(20))
        next(results)
        results.close()
        time.sleep(0.5)
        assert len(server.bodies) <= 3


def test_an_estimate_counts_what_the_cache_does_not_have(tmp_path):
    with serving(echo) as server:
        model = ChatModel(server.url, "m", max_tokens=50, cache=tmp_path / "r.db", **PRICES)
        requests = [ChatRequest("a" * 300), ChatRequest("b" * 300), ChatRequest("a" * 300)]
        usage = model.estimate(requests, [20, 80, 20])
        # 300 bytes at 3 per token and 10 for each message; replies of 20 and, at most, 50 tokens.
        assert (usage.calls, usage.input_tokens, usage.output_tokens) == (2, 220, 70)
        assert usage.cost == pytest.approx((220 * 2 + 70 * 10) / 1e6, rel=1e-12)
        assert server.bodies == []
        model.complete_all(requests[:1])
        usage = model.estimate(requests, [20, 80, 20])
        assert (usage.calls, usage.cached, usage.input_tokens) == (1, 1, 110)
