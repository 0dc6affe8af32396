"""Progress display during a run."""

import io
import re
import sys
import time

import pytest

from rankgauge import Benchmark, Collection
from rankgauge.benchmark import progress
from rankgauge.benchmark.progress import show_activity, show_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal_of(monkeypatch):
    """Replace standard error with a terminal in the test itself, since pytest restores its own."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return stream


def text_of(stream):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())


def test_a_line_shows_count_rate_time_left_and_failures(monkeypatch):
    terminal = terminal_of(monkeypatch)
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    with show_progress("bm25", 10, done=4) as bar:
        time.sleep(0.01)
        bar.step(failed=False)
        bar.step(failed=True)
    said = text_of(terminal)
    assert "bm25" in said
    assert " 6/10" in said
    assert "/s" in said
    assert "1 failed" in said
    assert re.search(r"\d+:\d\d:\d\d", said)


def test_nothing_is_shown_without_a_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with show_progress("bm25", 10) as bar, show_activity("indexing"):
        bar.step(failed=False)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("name", ["[/b] mine", "[red]mine", "mine [k1=0.9]"])
def test_a_name_with_brackets_is_shown_as_it_is(monkeypatch, name):
    terminal = terminal_of(monkeypatch)
    with show_progress(name, 1) as bar, show_activity(name):
        bar.step(failed=False)
    assert text_of(terminal).count(name) >= 2


def test_indexing_and_timing_are_shown_too(monkeypatch):
    terminal = terminal_of(monkeypatch)

    class Mine:
        def index(self, documents):
            pass

        def search(self, queries, k):
            return [["d1"] for _ in queries]

    collection = Collection.load(None, documents={"d1": "late fees"}, queries={"q1": "fees"}, qrels={"q1": {"d1": 1}})
    Benchmark(collection).run("mine", Mine())
    said = text_of(terminal)
    assert said.index("indexing 1 document") < said.index("mine: latency")


def test_a_line_is_drawn_between_queries_only(monkeypatch):
    terminal = terminal_of(monkeypatch)
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    with show_progress("mine: latency", 2) as bar:
        before = terminal.getvalue()
        time.sleep(0.3)
        assert terminal.getvalue() == before
        bar.step(failed=False)
        assert terminal.getvalue() != before


class Notebook(io.StringIO):
    """Standard error of a notebook cell; newer kernels report a terminal."""

    def isatty(self):
        return True


Notebook.__module__ = "ipykernel.iostream"


def test_a_notebook_has_a_line_that_is_updated_and_removed(monkeypatch):
    stream = Notebook()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_EVERY_LINE", 0.0)
    with show_activity("indexing 3 documents"), show_progress("[bm25]", 10, done=4) as bar:
        time.sleep(0.02)
        bar.step(failed=False)
        bar.step(failed=True)
    message = stream.getvalue()
    assert "\x1b" not in message
    first, second, blank = message.removeprefix("indexing 3 documents\n").split("\r")[1:4]
    assert re.fullmatch(r"\[bm25\]: 5/10, \d+\.\d/s, 0:00:0\d left", first.rstrip())
    assert re.fullmatch(r"\[bm25\]: 6/10, \d+\.\d/s, 0:00:0\d left, 1 failed", second)
    assert blank == " " * len(second)


def test_a_log_has_periodic_lines_on_request(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with show_progress("bm25", 10, done=4, wanted=True) as bar:
        bar.step(failed=False)
        assert stream.getvalue() == ""
        monkeypatch.setattr(bar, "_every", 0.0)
        monkeypatch.setattr(bar, "_begun", time.monotonic() - 20)
        bar.step(failed=False)
    assert stream.getvalue() == "bm25: 6/10, 0.1/s, 0:00:40 left\n"
