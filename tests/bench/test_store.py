"""The store: what is kept, used again, and what it has cost."""

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import typing

import pytest
from counting import DOCUMENTS, QRELS, QUERIES, Priced, Words, worse

from rankgauge import Benchmark, Collection, InputError, Limits
from rankgauge.bench import spending


def test_answers_of_declared_settings_are_used_again_and_only_those(collection, tmp_path):
    first = Benchmark(collection, k=5, store=tmp_path).run("a", Words(k1=1), timed=0)
    again, other, deeper = Words(k1=1), Words(k1=2), Words(k1=1)
    reused = Benchmark(collection, k=5, store=tmp_path).run("b", again, timed=0)
    assert (again.asked, again.indexed, reused.tally.reused) == ([], 0, 10)
    assert reused.run["q3"] == first.run["q3"]
    assert "10 answers of 10 stood in the journal" in reused.notes[0]
    Benchmark(collection, k=5, store=tmp_path).run("a", other, timed=0)
    Benchmark(collection, k=6, store=tmp_path).run("a", deeper, timed=0)
    assert len(other.asked) == len(deeper.asked) == 10


def test_another_document_or_query_is_asked_anew(collection, tmp_path):
    Benchmark(collection, k=5, store=tmp_path).run("a", Words(), timed=0)
    changed = Collection.load(
        None, documents={**DOCUMENTS, "d0": "another text"}, queries=QUERIES, qrels=QRELS
    )
    retriever = Words()
    Benchmark(changed, k=5, store=tmp_path).run("a", retriever, timed=0)
    assert len(retriever.asked) == 10

    asked_otherwise = Collection.load(
        None, documents=DOCUMENTS, queries={**QUERIES, "q3": "word7"}, qrels=QRELS
    )
    retriever = Words()
    run = Benchmark(asked_otherwise, k=5, store=tmp_path).run("a", retriever, timed=0)
    assert retriever.asked == ["q3"]
    assert list(run.run["q3"]) == ["d7"]


def test_a_function_that_declares_nothing_is_asked_anew_unless_it_was_interrupted(
    collection, tmp_path
):
    calls = []

    def retrieve(text):
        calls.append(text)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return ["d1"]

    bench = Benchmark(collection, k=5, store=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run("mine", retrieve, timed=0)
    run = bench.run("mine", retrieve, timed=0)
    assert (len(calls), run.tally.reused) == (5 + 6, 4)
    run = bench.run("mine", retrieve, timed=0)
    assert (len(calls), run.tally.reused) == (5 + 6 + 10, 0)
    declared = bench.run("mine", retrieve, settings={"model": "a"}, timed=0)
    declared = bench.run("mine", retrieve, settings={"model": "a"}, timed=0)
    assert declared.tally.reused == 10


def test_a_function_that_failed_for_some_queries_is_not_asked_about_the_others_again(
    collection, tmp_path
):
    calls = []

    def retrieve(text):
        calls.append(text)
        if text == "word3":
            raise LookupError(text)
        return ["d1"]

    bench = Benchmark(collection, k=5, store=tmp_path)
    bench.run("mine", retrieve, timed=0)
    run = bench.run("mine", retrieve, timed=0)
    assert (len(calls), run.tally.reused, run.tally.failed) == (10, 10, 1)
    assert run.evaluate("RR", errors="empty").mean() == {"RR": 0.1}


def test_functions_of_one_factory_are_told_apart_by_the_name_of_the_run(collection, tmp_path):
    def make(name):
        return lambda text: [name]

    bench = Benchmark(collection, k=5, store=tmp_path)
    one, two = (bench.run(n, make(n), timed=0) for n in ("d1", "d2"))
    assert list(one.run["q0"]) == ["d1"]
    assert list(two.run["q0"]) == ["d2"]


def test_a_run_whose_journal_was_begun_anew_is_not_mixed_with_it(collection, tmp_path):
    bench = Benchmark(collection, k=5, store=tmp_path)
    old = bench.run("a", Words(), timed=0)
    bench.run("a", Words(), again="all", timed=0)
    with pytest.raises(InputError, match="begun anew"):
        old.evaluate("RR")


def test_everything_anew_asks_everything(collection, tmp_path):
    bench = Benchmark(collection, k=5, store=tmp_path)
    bench.run("a", Words(), timed=0)
    retriever = Words()
    assert bench.run("a", retriever, again="all", timed=0).tally.reused == 0
    assert len(retriever.asked) == 10


def test_a_store_of_its_own_is_removed_when_nobody_needs_it(collection):
    bench = Benchmark(collection)
    run = bench.run("a", Words(), timed=0)
    store = bench.store
    del bench
    assert run.evaluate("RR").mean() == {"RR": 1.0}
    del run
    gc.collect()
    assert not store.exists()


def test_a_retriever_that_is_part_of_several_is_indexed_once(collection):
    shared = Words()
    from rankgauge.retrievers import Hybrid

    bench = Benchmark(collection, k=5)
    bench.run("words", shared, timed=0)
    bench.run("hybrid", Hybrid([shared, Words(x=1)]), timed=0)
    assert shared.indexed == 1


def test_parts_that_were_indexed_before_count_in_the_time_of_the_whole(collection):
    class Slow(Words):
        def index(self, documents):
            time.sleep(0.05)
            super().index(documents)

    from rankgauge.retrievers import Hybrid

    shared = Slow()
    bench = Benchmark(collection, k=5)
    bench.run("words", shared, timed=0)
    before = bench.run("hybrid", Hybrid([shared, Words(x=1)]), timed=0).index
    nested = bench.run("nested", Hybrid([Hybrid([shared, Words(x=2)]), Words(x=3)]), timed=0).index
    assert shared.indexed == 1
    assert (before.peak, nested.peak) == (None, None), "nobody knows it any more"
    whole = Hybrid([shared, Words(x=4)])
    bench.run("whole", whole, timed=0)
    outer = bench.run("outer", Hybrid([whole, Words(x=5)]), timed=0).index
    for cost in (before, nested, outer):
        assert 0.05 <= cost.seconds < 2 * bench.runs["words"].index.seconds + 0.05


def test_two_benchmarks_may_have_one_retriever(collection):
    turned = {name: DOCUMENTS[f"d{19 - n}"] for n, name in enumerate(DOCUMENTS)}
    other = Collection.load(None, documents=turned, queries=QUERIES, qrels=QRELS)
    shared = Words()
    first, second = Benchmark(collection, k=5), Benchmark(other, k=5)
    assert first.run("words", shared, timed=0).evaluate("RR").mean() == {"RR": 1.0}
    assert second.run("words", shared, timed=0).evaluate("RR").mean() == {"RR": 0.0}
    assert first.run("words", shared, again="all").evaluate("RR").mean() == {"RR": 1.0}
    assert shared.indexed == 3


def test_what_was_used_before_an_interrupt_is_counted(collection, tmp_path):
    bench = Benchmark(collection, k=5, store=tmp_path, limits=Limits(batch=1))
    with pytest.raises(KeyboardInterrupt):
        bench.run("words", Priced(ends=4), timed=0)
    run = bench.run("words", Priced(), prices={"tokens": 1.0}, timed=0)
    assert run.tally.reused == 4
    assert run.usage == {"tokens": 500}
    assert (run.asked, run.cost) == (10, 50_000)


def test_the_price_of_a_query_is_that_of_those_that_were_asked(tmp_path):
    runs = []
    for names in (list(QUERIES)[:6], list(QUERIES)[6:]):
        part = Collection.load(
            None, documents=DOCUMENTS, queries={q: QUERIES[q] for q in names},
            qrels={q: QRELS[q] for q in names},
        )  # fmt: skip
        bench = Benchmark(part, k=5, store=tmp_path)
        runs.append(bench.run("words", Priced(), prices={"tokens": 1.0}))
        assert runs[-1].latency.seconds.keys() == set(names)
        bench.run("other", worse)
        found = bench.compare("RR").cost_table()
        assert found.rows[0][found.columns.index("tokens/query")] == "50.0"
    assert [run.cost for run in runs] == [50_000, 50_000]
    assert [run.asked for run in runs] == [6, 10]


def test_a_configuration_that_declares_nothing_is_asked_anew(collection, tmp_path):
    def configured(place, ends):
        calls = []

        def retrieve(text):
            calls.append(text)
            if len(calls) == ends:
                raise KeyboardInterrupt
            return [f"d{place}"]

        return retrieve

    bench = Benchmark(collection, k=5, store=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.runner(timed=0)("1", configured(3, 5))
    run, seconds = bench.runner(timed=0)("1", configured(7, None))
    assert {name for query in run for name in run[query]} == {"d7"}
    assert seconds is None


SCRIPT = """
    import sys, time
    from rankgauge import Benchmark, Collection, Limits

    collection = Collection.load(
        None, documents={{"d1": "x"}},
        queries={{f"q{{n}}": f"word{{n}}" for n in range(200)}},
        qrels={{f"q{{n}}": {{f"d{{n % 7}}": 1}} for n in range(200)}},
    )

    def retrieve(text):
        time.sleep({seconds})
        n = int(text.removeprefix("word"))
        return [(f"d{{n % 5}}", 0.1 + n / 7), ("d6", 0.1)]

    bench = Benchmark(collection, store=sys.argv[1], limits=Limits({limits}))
    run = bench.run("mine", retrieve, settings={{"version": 1}}, timed=0)
    print(run.tally.reused, run.evaluate(["RR", "nDCG@10"]).mean())
"""


def script(seconds, limits=""):
    return textwrap.dedent(SCRIPT).format(seconds=seconds, limits=limits)


@pytest.mark.parametrize("limits", ["", "concurrency=4, timeout=60"], ids=["in order", "threads"])
@pytest.mark.parametrize(
    "end", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name
)
def test_a_process_that_is_ended_goes_on_where_it_stopped_to_the_same_numbers(
    tmp_path, end, limits
):
    killed = subprocess.Popen(
        [sys.executable, "-c", script(0.02, limits), str(tmp_path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        written = [f.read_bytes().count(b"\n") for f in tmp_path.glob("*/answers.jsonl")]
        if written and written[0] >= 20:
            break
        time.sleep(0.01)
    killed.send_signal(end)
    killed.wait(30)
    kept = sum(f.read_bytes().count(b"\n") for f in tmp_path.glob("*/answers.jsonl"))
    assert 20 <= kept < 200

    def finished(store):
        done = subprocess.run(
            [sys.executable, "-c", script(0, limits), str(store)],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        reused, _, values = done.stdout.partition(" ")
        return int(reused), values

    reused, values = finished(tmp_path)
    assert reused == kept
    assert values == finished(tmp_path / "whole")[1]


class Metered:
    """A retriever that says what it has used up, and is interrupted once."""

    settings: typing.ClassVar = {"type": "metered"}

    def __init__(self, after):
        self.calls = 0
        self.after = after

    def index(self, documents):
        pass

    def search(self, queries, k):
        self.calls += len(queries)
        if self.calls == self.after:
            raise KeyboardInterrupt
        return [["d1"] for _ in queries]

    def usage(self):
        return {"tokens": 10 * self.calls}


def test_what_an_interrupted_run_has_used_up_is_counted(collection, tmp_path):
    bench = Benchmark(collection, store=tmp_path, limits=Limits(batch=1))
    with pytest.raises(KeyboardInterrupt):
        bench.run("mine", Metered(8), prices={"tokens": 0.5}, timed=0)
    run = bench.run("mine", Metered(0), prices={"tokens": 0.5}, timed=0)
    assert run.tally.reused == 7
    asked = len(run.queries)
    assert run.usage == {"tokens": 10 * (asked + 1)}, "the one that was in flight is paid for, too"
    assert run.asked == asked
    assert run.cost == pytest.approx(10 * (asked + 1) * 0.5 / asked * 1000)


def test_the_cost_is_that_of_the_answers_whose_price_is_known(collection, tmp_path):
    bench = Benchmark(collection, store=tmp_path, limits=Limits(batch=1))
    with pytest.raises(KeyboardInterrupt):
        bench.run("mine", Metered(8), timed=0)
    head = next(tmp_path.glob("*/run.json"))
    kept = json.loads(head.read_text())
    # As a process leaves it that is killed before it could note anything.
    head.write_text(json.dumps({"stamp": kept["stamp"]}))
    run = bench.run("mine", Metered(0), prices={"tokens": 0.5}, timed=0)
    assert run.asked == len(run.queries) - 7
    assert run.cost == pytest.approx(10 * 0.5 * 1000)


def test_what_asking_has_taken_is_noted_while_it_goes_on(collection, tmp_path, monkeypatch):
    monkeypatch.setattr(spending, "_NOTED_EVERY", 0.0)
    noted = []

    class Watched(Metered):
        def search(self, queries, k):
            noted.append(json.loads(next(tmp_path.glob("*/run.json")).read_text()).get("asked", 0))
            return super().search(queries, k)

    Benchmark(collection, store=tmp_path, limits=Limits(batch=1)).run("mine", Watched(0), timed=0)
    assert noted == list(range(len(noted)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of files are a thing of POSIX")
def test_a_full_disk_loses_nothing_that_was_answered(tmp_path):
    limited = (
        "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))\n"
    )
    full = subprocess.run(
        [sys.executable, "-c", limited + script(0), str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "the journal cannot be written" in full.stderr
    assert "goes on where it stopped" in full.stderr
    done = subprocess.run(
        [sys.executable, "-c", script(0), str(tmp_path)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert int(done.stdout.partition(" ")[0]) > 5
