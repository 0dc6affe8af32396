"""Limits per minute, by simulation: no window of 60 seconds exceeds them."""

import random
import threading

import pytest

from rankgauge.llm.limits import Meter, Pace
from rankgauge.llm.replies import ModelError, Usage


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        assert seconds > 0
        self.now += seconds


@pytest.mark.parametrize("seed", range(5))
def test_no_minute_has_more_requests_or_tokens_than_allowed(seed):
    rng = random.Random(seed)
    clock = Clock()
    most, tokens = rng.randint(2, 20), rng.randint(500, 3000)
    pace = Pace(most, tokens, clock)
    sent = []
    for _ in range(300):
        size = rng.randint(1, 400)
        pace.enter(size, clock.wait)
        sent.append((clock.now, size))
        clock.now += rng.choice([0, 0.1, 3])
    for start, _ in sent:
        window = [size for at, size in sent if start <= at < start + 60 - 1e-6]
        assert len(window) <= most
        assert sum(window) <= tokens
    # It does not wait unnecessarily: the limit is nearly used up in the mean minute.
    minutes = (sent[-1][0] - sent[0][0]) / 60
    assert min(len(sent) / most, sum(size for _, size in sent) / tokens) <= minutes + 1
    assert max(len(sent) / most, sum(size for _, size in sent) / tokens) >= 0.6 * minutes


def test_a_request_above_the_limit_of_tokens_is_sent_alone():
    clock = Clock()
    pace = Pace(None, 100, clock)
    pace.enter(50, clock.wait)
    pace.enter(500, clock.wait)
    assert clock.now == 1060
    pace.enter(1, clock.wait)
    assert clock.now == 1120


def test_reported_tokens_replace_the_estimate():
    clock = Clock()
    pace = Pace(None, 100, clock)
    pace.enter(90, clock.wait).tokens = 10
    pace.enter(90, clock.wait)
    assert clock.now == 1000


def test_a_pause_holds_all_requests():
    clock = Clock()
    pace = Pace(None, None, clock)
    pace.pause(5)
    pace.pause(2)
    pace.enter(1, clock.wait)
    assert clock.now == 1005


def test_reserved_costs_never_exceed_the_limit():
    """40 threads with calls that cost at most their estimate."""
    meter = Meter((1e6, 0.0), 100.0)
    lock, under_way, most, refused = threading.Lock(), 0, 0, 0

    def call(n):
        nonlocal under_way, most, refused
        try:
            with meter.reserving(lambda: Usage(input_tokens=7)):
                with lock:
                    under_way += 7
                    most = max(most, under_way + (meter.usage().cost or 0))
                with lock:
                    under_way -= 7
                meter.add(Usage(calls=1, input_tokens=7 - n % 2))
        except ModelError:
            refused += 1

    threads = [threading.Thread(target=call, args=[n]) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.usage().cost <= 100
    assert meter.usage().cost + 7 > 100
    assert refused == 40 - meter.usage().calls
    assert most <= 100


def test_costs_do_not_depend_on_the_order_of_calls():
    rng = random.Random(1)
    parts = [Usage(1, input_tokens=rng.randint(1, 999), output_tokens=n) for n in range(500)]
    costs = set()
    for _ in range(5):
        rng.shuffle(parts)
        meter = Meter((0.15, 0.6), None)
        for part in parts:
            meter.add(part)
        costs.add(meter.usage().cost)
    assert len(costs) == 1
    assert costs.pop() == pytest.approx(
        sum(0.15 * p.input_tokens / 1e6 + 0.6 * p.output_tokens / 1e6 for p in parts), rel=1e-12
    )


def test_usage_of_models_without_prices_has_no_cost():
    assert (Usage(calls=1, cost=0.5) + Usage(calls=2)).cost is None
    assert (Usage(calls=1, cost=0.5) + Usage(calls=2, cost=0.25)).cost == 0.75
