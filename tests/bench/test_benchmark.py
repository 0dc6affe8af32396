"""Retrievers over a collection: what is asked, kept, counted and compared."""

import gc
import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import typing

import pytest

import rankgauge
from rankgauge import Benchmark, Collection, InputError, Limits, Run, UnknownName, evaluate
from rankgauge.bench import spending
from rankgauge.bench.compared import changed_settings, cost_table
from rankgauge.bench.outcome import BenchmarkRun, Tally
from rankgauge.bench.timing import Latency

DOCUMENTS = {f"d{n}": f"word{n} common" for n in range(20)}
QUERIES = {f"q{n}": f"word{n}" for n in range(10)}
QRELS = {f"q{n}": {f"d{n}": 1} for n in range(10)}


class Words:
    """The documents that hold the words of a query, most words first; counts what it is asked."""

    def __init__(self, **settings):
        self.settings = {"type": "words", **settings}
        self.asked = []
        self.indexed = 0

    def index(self, documents):
        self.indexed += 1
        self.texts = {document.id: set(document.whole.split()) for document in documents}

    def search(self, queries, k):
        self.asked += [query.id for query in queries]
        return [
            sorted(
                (
                    (name, float(len(words & set(query.text.split()))))
                    for name, words in self.texts.items()
                    if words & set(query.text.split())
                ),
                key=lambda hit: (-hit[1], hit[0]),
            )[:k]
            for query in queries
        ]


@pytest.fixture
def collection():
    return Collection.load(None, documents=DOCUMENTS, queries=QUERIES, qrels=QRELS)


def test_a_run_evaluates_as_the_same_rankings_do(collection):
    bench = Benchmark(collection, k=5)
    run = bench.run("words", Words(), timed=0)
    rankings = {q: [f"d{q[1:]}"] for q in QUERIES}
    assert run.run["q3"] == {"d3": 1.0}
    mine, theirs = run.evaluate(["RR", "P@5"]), evaluate(QRELS, rankings, ["RR", "P@5"])
    assert mine.mean() == theirs.mean()
    assert run.tally.queries == 10
    assert run.index is not None
    assert run.latency is None
    assert run.notes == ()


def test_the_query_added_by_hand_is_asked_beside_those_of_the_collection(collection):
    bench = Benchmark(collection, k=5)
    bench.add_query("mine", "word15", {"d15": 2})
    bench.add_query(7, "word16", ["d16"])
    run = bench.run("words", Words(), timed=0)
    assert len(bench.queries) == 12
    assert run.evaluate("RR").value("7", "RR") == 1.0
    assert run.qrels["mine"] == {"d15": 2.0}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("q1", "text", ["d1"]), "there already"),
        (("new", 7, ["d1"]), "for the text"),
        (("new", "text", "d1"), "relevant documents"),
        (("new", "text", None), "relevant documents"),
        (("new", "text", {"d1": "high"}), "high"),
    ],
    ids=["twice", "no text", "a single id", "nothing", "no grade"],
)
def test_a_query_that_does_not_fit_is_refused(collection, given, said):
    with pytest.raises(InputError, match=said):
        Benchmark(collection).add_query(*given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"timed": "a"}, "'a' for timed"), ({"timed": -1}, "-1 for timed"),
        ({"prices": [1]}, "for prices"), ({"prices": {"tokens": "x"}}, "'x' for the price of"),
        ({"prices": {"tokens": float("nan")}}, "nan for the price"),
        ({"settings": [1]}, "for settings"), ({"limits": {"concurrency": 2}}, "for limits"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_of_the_wrong_kind_is_refused_before_anything_is_asked(collection, given, said):
    asked = []
    with pytest.raises(InputError, match=said):
        Benchmark(collection).run("x", asked.append, **given)
    assert asked == []


@pytest.mark.parametrize("given", [{"store": 5}, {"limits": {"rate": 2}}], ids=str)
def test_a_benchmark_of_the_wrong_kind_is_refused(collection, given):
    with pytest.raises(InputError, match=next(iter(given))):
        Benchmark(collection, **given)


def test_the_id_of_a_query_that_is_no_id_is_refused():
    with pytest.raises(InputError, match=r"query id \[1\]"):
        Benchmark().add_query([1], "late fees", ["d1"])


def test_a_class_is_refused_before_a_journal_is_made(collection, tmp_path):
    with pytest.raises(InputError, match="the class Metered"):
        Benchmark(collection, store=tmp_path).run("x", Metered)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_benchmark_is_refused():
    with pytest.raises(InputError, match="no queries"):
        Benchmark().run("words", lambda text: [])


def test_queries_without_text_or_judgments_are_not_asked_and_said(collection):
    queries = {**QUERIES, "bare": "word1"}
    qrels = {**QRELS, "silent": {"d1": 1}}
    given = Collection.load(None, documents=DOCUMENTS, queries=queries, qrels=qrels)
    bench = Benchmark(given, k=5)
    retriever = Words()
    run = bench.run("words", retriever, timed=0)
    assert sorted(retriever.asked) == sorted(QUERIES)
    assert run.evaluate("RR").mean() == {"RR": 1.0}
    assert len(bench.notes) == 2
    assert "'silent'" in bench.notes[0]


def test_a_retriever_that_indexes_needs_documents():
    bench = Benchmark(k=5)
    bench.add_query("q1", "word1", ["d1"])
    with pytest.raises(InputError, match="wants to index"):
        bench.run("words", Words())


def test_an_index_that_fails_is_told_with_its_own_error(collection):
    class Broken(Words):
        def index(self, documents):
            raise ValueError("disk on fire")

    with pytest.raises(rankgauge.RankgaugeError, match="ValueError: disk on fire") as caught:
        Benchmark(collection).run("broken", Broken())
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"again": "some"}, UnknownName), ({"name": ""}, InputError), ({"name": 7}, InputError),
        ({"settings": {"a": object()}}, InputError),
        ({"settings": {"a": float("nan")}}, InputError),
        ({"timed": -1}, InputError), ({"timed": "all"}, InputError),
        ({"prices": {"tokens": "2e-8"}}, InputError), ({"prices": 2e-8}, InputError),
        ({"prices": {"tokens": -1}}, InputError),
    ],
    ids=[
        "again", "no name", "a number as name", "settings of objects", "settings of NaN",
        "timed below 0", "timed in words", "a price in words", "a price of nothing",
        "a price below 0",
    ],
)  # fmt: skip
def test_choices_that_are_not_possible_are_refused(collection, given, error):
    with pytest.raises(error):
        Benchmark(collection).run(given.pop("name", "words"), Words(), **given)


@pytest.mark.parametrize("k", [0, -1, 1.5, "5", True])
def test_k_is_a_whole_number_from_one_on(k):
    with pytest.raises(InputError, match="for k"):
        Benchmark(k=k)


# ---- what the answers hold


def test_repeats_hits_below_k_and_unknown_documents_are_left_out_or_counted(collection):
    def retrieve(text):
        n = int(text.removeprefix("word"))
        return [f"d{n}", f"d{n}", "elsewhere", "d19", "d18", "d17"] if n else []

    run = Benchmark(collection, k=3).run("odd", retrieve, timed=0)
    tally = run.tally
    assert (tally.repeated, tally.beyond, tally.unknown, tally.empty) == (9, 18, 9, 1)
    assert run.run["q1"] == {"d1": 3.0, "elsewhere": 2.0, "d19": 1.0}
    said = " ".join(run.notes)
    for words in ("9 hits on a document that stood before", "18 hits below k", "does not have",
                  "nothing was found for 1 query"):  # fmt: skip
        assert words in said


def test_scores_that_rise_are_told_to_be_distances(collection):
    run = Benchmark(collection, k=3).run(
        "distances", lambda text: [("d1", 0.1), ("d2", 0.2), ("d3", 0.3)], timed=0
    )
    assert run.tally.ascending == 10
    assert "upside down" in " ".join(run.notes)
    assert list(run.run["q1"]) == ["d3", "d2", "d1"]


def test_failures_are_refused_counted_as_empty_if_asked_and_asked_again_alone(collection, tmp_path):
    calls = []
    broken = {"word3", "word4"}

    def retrieve(text):
        calls.append(text)
        if text in broken:
            raise ConnectionError("down")
        return [f"d{text.removeprefix('word')}"]

    bench = Benchmark(collection, k=5, store=tmp_path, limits=Limits(retries=0))
    run = bench.run("flaky", retrieve, timed=0)
    assert [(f.query, f.kind) for f in run.failures] == [("q3", "error"), ("q4", "error")]
    for refused in (lambda: run.run, lambda: run.evaluate("RR"), lambda: list(run.blocks())):
        with pytest.raises(InputError, match="2 queries of 10 failed; q3: ConnectionError: down"):
            refused()
    assert run.evaluate("RR", errors="empty").mean() == {"RR": 0.8}
    assert run.ranked("empty")["q3"] == {}
    assert "2 queries of 10 failed" in run.notes[0]

    calls.clear()
    broken.discard("word3")
    again = bench.run("flaky", retrieve, again="failed", timed=0)
    assert calls == ["word3", "word4"]
    assert [f.query for f in again.failures] == ["q4"]
    assert again.tally.reused == 8
    assert again.evaluate("RR", errors="empty").mean() == {"RR": 0.9}


def test_a_retriever_that_always_fails_is_given_up_and_says_so(collection):
    def retrieve(text):
        raise ConnectionError("down")

    run = Benchmark(collection, limits=Limits(stop_after=3, retries=0)).run("dead", retrieve)
    assert (run.tally.failed, run.tally.missing) == (3, 7)
    with pytest.raises(InputError, match="7 were not asked"):
        run.evaluate("RR")


# ---- the store


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


class Priced(Words):
    """It uses 50 tokens for a query, and as many for the index; may be interrupted."""

    def __init__(self, ends=None):
        super().__init__()
        self.tokens, self.ends = 0, ends

    def index(self, documents):
        super().index(documents)
        self.tokens += 50

    def search(self, queries, k):
        if self.ends is not None and len(self.asked) >= self.ends:
            raise KeyboardInterrupt
        self.tokens += 50 * len(queries)
        return super().search(queries, k)

    def usage(self):
        return {"tokens": self.tokens}


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


# ---- side by side


def worse(text):
    n = int(text.removeprefix("word"))
    return ["d19", f"d{n}"] if n % 2 else ["d19", "d18"]


def test_runs_are_compared_with_latency_and_cost_beside_quality(collection):
    bench = Benchmark(collection, k=5)
    bench.run("worse", worse)
    bench.run("words", Priced(), prices={"tokens": 1e-5})
    found = bench.compare(["RR", "P@1"])
    direct = rankgauge.compare(
        QRELS, {"worse": bench.runs["worse"].run, "words": bench.runs["words"].run}, ["RR", "P@1"]
    )
    assert found.comparison.differences == direct.differences
    assert found.comparison.baseline == "worse"
    assert bench.compare(["RR"], baseline="words").comparison.baseline == "words"
    assert bench.runs["words"].cost == pytest.approx(50 * 1e-5 * 1000)
    table = found.cost_table()
    assert {"run", "p50 ms", "queries/s", "tokens/query", "cost/1,000"} <= set(table.columns)
    assert "0.500" in table.rows[1]
    data = json.loads(found.to_json())
    assert data["runs"][1]["cost_per_1000_queries"] == pytest.approx(0.5)
    assert data["comparison"]["schema"] == "rankgauge/comparison/1"


def test_a_large_benchmark_is_compared_by_its_values_alone(collection, monkeypatch):
    bench = Benchmark(collection, k=5)
    bench.run("worse", worse, timed=0)
    bench.run("words", Words(), timed=0)
    whole = bench.compare(["RR", "P@1"]).comparison
    monkeypatch.setattr("rankgauge.bench.compared._IN_MEMORY", 10)
    monkeypatch.setattr("rankgauge.bench.outcome._BLOCK", 3)
    parts = bench.compare(["RR", "P@1"]).comparison
    assert parts.differences == whole.differences
    assert parts.evaluations == whole.evaluations


def test_two_settings_that_differ_at_once_are_told(collection):
    bench = Benchmark(collection, k=5)
    bench.run("one", Words(k1=1, b=1, versions={"x": 1}), timed=0)
    bench.run("two", Words(k1=2, b=1, versions={"x": 2}), timed=0)
    assert not any("nobody knows" in note for note in bench.compare("RR").notes)
    bench.run("three", Words(k1=2, b=2), timed=0)
    said = [note for note in bench.compare("RR").notes if "nobody knows" in note]
    assert said == [
        "three and one differ in 2 settings (b, k1): nobody knows which of them made the difference"
    ]


def test_settings_of_parts_have_their_names_before_them():
    one = {"encoder": {"size": 1, "versions": {"x": 1}}, "size": 2, "type": "dense"}
    other = {"encoder": {"size": 2, "versions": {"x": 2}}, "size": 2, "type": "dense"}
    assert changed_settings(one, other) == ("encoder.size",)


def test_latency_is_shown_in_milliseconds():
    seconds = {f"q{n}": 0.025 for n in range(20)}
    run = BenchmarkRun("a", {}, rankgauge.Qrels.of(QRELS), Tally(queries=20), (), Latency(seconds))
    table = cost_table([run])
    shown = dict(zip(table.columns, table.rows[0], strict=True))
    assert shown == {"run": "a", "p50 ms": "25.0", "p95 ms": "25.0", "queries/s": "40.0"}


def test_the_pareto_front_is_there_only_where_all_were_timed(collection):
    bench = Benchmark(collection, k=5)
    bench.run("worse", worse)
    bench.run("words", Words())
    found = bench.compare("RR")
    assert "words" in found.pareto
    assert found.plot().panels
    bench.run("saved", bench.runs["words"].run)
    assert bench.compare("RR").pareto == ()
    with pytest.raises(InputError, match="quality and a latency"):
        bench.compare("RR").plot()


def test_one_run_or_runs_over_other_queries_are_not_compared(collection):
    bench = Benchmark(collection, k=5)
    with pytest.raises(InputError, match="wanted two"):
        bench.compare()
    bench.run("one", Words(), timed=0)
    bench.add_query("late", "word15", ["d15"])
    bench.run("two", worse, timed=0)
    with pytest.raises(InputError, match="asked other queries"):
        bench.compare()
    bench.run("one", Words(), timed=0)
    assert len(bench.compare("RR").comparison.evaluations[0].query_ids) == 11
    with pytest.raises(UnknownName, match="'tow'"):
        bench.compare("RR", baseline="tow")


def test_a_saved_run_stands_beside_retrievers(collection, tmp_path):
    path = tmp_path / "old.run"
    rankgauge.write_run({q: {"d1": 1.0} for q in list(QRELS)[:9]}, path)
    bench = Benchmark(collection, k=5)
    bench.run("words", Words(), timed=0)
    saved = bench.run("old", path)
    assert saved.latency is None
    assert saved.evaluate("RR").mean() == {"RR": 0.1}
    assert bench.run("again", Run.of(rankgauge.read_run(path))).tally.queries == 10
    assert len(bench.compare("RR").runs) == 3


def test_a_run_knows_what_made_it(collection, tmp_path):
    bench = Benchmark(collection, k=5, limits=Limits(concurrency=2))
    run = bench.run("words", Words(k1=0.9))
    settings = run.run.settings
    assert settings["retriever"] == {"type": "words", "k1": 0.9}
    assert settings["k"] == 5
    assert settings["collection"]["documents"] == 20
    assert len(settings["collection"]["fingerprint"]) == 64
    assert settings["limits"]["concurrency"] == 2
    assert {"rankgauge", "numpy", "python"} <= settings["versions"].keys()
    assert settings["timing"]["latency"]["queries"] == 10
    evaluation = run.evaluate("RR")
    assert rankgauge.Evaluation.from_json(evaluation.to_json()).settings == dict(
        evaluation.settings
    )
    with rankgauge.History.open(tmp_path / "history.db") as history:
        entry = history.save(evaluation, run.qrels, run=run.run)
        assert history.load(entry).settings["retriever"]["k1"] == 0.9


def test_a_run_file_has_a_head_that_our_reader_passes_over(collection, tmp_path):
    yaml = pytest.importorskip("yaml")
    run = Benchmark(collection, k=5).run("words", Words(k1=0.9, name="ä: #1\n"), timed=0)
    path, plain = tmp_path / "words.run", tmp_path / "plain.run"
    rankgauge.write_benchmark_run(run, path)
    rankgauge.write_benchmark_run(run, plain, head=False)
    assert rankgauge.read_run(path) == rankgauge.read_run(plain, name="words")
    packed = tmp_path / "words.run.gz"
    rankgauge.write_benchmark_run(run, packed)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    lines = path.read_text().splitlines()
    assert lines[0] == "# ir_metadata.start"
    end = lines.index("# ir_metadata.end")
    assert lines[end + 1 :] == plain.read_text().splitlines()
    head = yaml.safe_load("\n".join(line[2:] for line in lines[1:end]))
    assert head["tag"] == "words"
    assert head["method"]["retrieval"][0]["parameters"]["name"] == "ä: #1\n"
    assert head["run"]["sha256"] == rankgauge.fingerprint(run.run)
    assert head["data"]["test_collection"]["documents"] == 20


def test_the_recall_of_approximate_search_stands_beside_its_latency(collection, tmp_path):
    bench = Benchmark(collection, store=tmp_path, k=2)
    exact, loose = Marked(1.0), Marked(0.625)
    bench.run("exact", exact, timed=0)
    assert bench.runs["exact"].index.recall == 1.0
    made = bench.run("loose", loose, timed=0)
    assert made.index.recall == 0.625
    table = bench.compare("RR").cost_table()
    place = table.columns.index("recall@10")
    assert [row[place] for row in table.rows] == ["1.00", "0.625"]
    again = Benchmark(collection, store=tmp_path, k=2).run("loose", Marked(0.625), timed=0)
    assert again.index.recall == 0.625


class Marked:
    def __init__(self, recall):
        self.recall, self.settings = recall, {"type": "marked", "recall": recall}

    def index(self, documents):
        pass

    def search(self, queries, k):
        return [["d1"] for _ in queries]
