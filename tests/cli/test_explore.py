"""``rankgauge explore``."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import rankgauge

FOLDER = str(rankgauge.sample_path("qrels.txt").parent)
PLAN = f"""
collection = '{FOLDER}'
timed = 0
k = 10
[retrievers.bm25]
type = "bm25"
[explore]
retriever = "bm25"
[explore.space]
k1 = [0.9, 1.2]
b = [0.0, 0.4, 0.75]
"""
SLOW = """
import time
class Slow:
    def __init__(self, size):
        self.settings = {"type": "slow", "size": size}
    def index(self, documents):
        pass
    def search(self, queries, k):
        time.sleep(0.05)
        return [[("loans-periods", 1.0)] for _ in queries]
"""


@pytest.fixture
def started(tmp_path):
    def run(text, *words):
        (tmp_path / "rankgauge.toml").write_text(text)
        return subprocess.Popen(
            [sys.executable, "-m", "rankgauge", "explore", "rankgauge.toml", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )

    return run


@pytest.mark.slow
def test_the_best_is_compared_with_today_including_failures(started):
    out, err = started(PLAN, "--full").communicate(timeout=120)
    assert err == ""
    for said in (
        "before",
        "6 of 6 configurations tried",
        "best and before on 15 test queries",
        "not retrieved: queries",
        "one setting changed at a time",
    ):
        assert said in out
    rows = json.loads(started(PLAN, "--as", "json").communicate(timeout=120)[0])
    assert len(rows["rows"]) >= 1


@pytest.mark.slow
def test_an_interrupt_prints_the_finished_trials(started, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    process = started(f"""
collection = '{FOLDER}'
timed = 0
[retrievers.slow]
type = "python"
call = "slow:Slow"
arguments = {{ size = 1 }}
[explore]
retriever = "slow"
[explore.space]
"arguments.size" = {list(range(1, 40))}
""")
    store = tmp_path / ".rankgauge" / "runs"
    while process.poll() is None and len(list(store.glob("*"))) < 3:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "interrupted in number" in out, err
    assert "of 39 configurations tried" in out
